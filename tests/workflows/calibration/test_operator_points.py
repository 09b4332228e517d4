"""Points of operators, of several kernels in a time, and what is left out of any."""

import json

import pytest

from cubecore.kernels.operators.attention.options import AttentionOptions
from cubecore.workflows.calibration.validate import validate
from cubecore.workflows.operators.operators import time_operator

COMMON = {"kind": "vector", "chip": "Ascend910B2", "dtype_a": "float16"}
TIME = {"measured": {"total_us": 50.0}}
ADD = {"op": "elementwise", "cores": 48, "M": 1024, "N": 4096}
ONE = {"reads": 2, "writes": 1, "instructions": 1}


def validated(tmp_path, *points):
    lines = [json.dumps({"id": f"p{n}", **COMMON, **TIME, **p}) for n, p in enumerate(points)]
    path = tmp_path / "points.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    return validate(path)


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        ("rotary", (64, 8, 128)),
        ("moe_permute", (64, 8, 2, 256)),
        ("grouped_matmul", (2, 64, 64, 64)),
    ],
)
def test_an_operator_takes_what_time_says_of_it(tmp_path, op, shape):
    (case,) = validated(tmp_path, {"op": op, "tiling": {"shape": shape}}).cases
    timed = time_operator(op, "x".join(map(str, shape)), chip="Ascend910B2").timeline
    assert case.group == "operator"
    assert case.wall.predicted_us == pytest.approx(timed.us)


def attention(tmp_path, shape, **columns):
    tiling = {"shape": shape, **columns.pop("tiling", {})}
    (case,) = validated(tmp_path, {"op": "attention", "tiling": tiling, **columns}).cases
    return case


@pytest.mark.parametrize(
    ("cuts", "options"),
    [
        ({}, {}),
        ({"causal": True}, {"causal": True}),
        ({"kv_heads": 2, "splits": 2}, {"kv_heads": 2, "splits": 2}),
        ({"rows": 128, "keys": 64}, {"rows": 128, "keys": 64}),
    ],
)
def test_attention_is_cut_as_its_point_says(tmp_path, cuts, options):
    case = attention(tmp_path, [4, 256, 512, 128], api="library", tiling=cuts)
    asked = AttentionOptions(**options)
    timed = time_operator("attention", "4x256x512x128", chip="Ascend910B2", options=asked)
    assert case.group == "attention library"
    assert case.wall.predicted_us == pytest.approx(timed.timeline.us)


def test_attention_by_hand_is_of_a_group_of_its_own_and_two_blocks_ahead(tmp_path):
    shape, asked = [1, 128, 2048, 128], AttentionOptions(ahead=2)
    case = attention(tmp_path, shape, api="basic")
    timed = time_operator("attention", "1x128x2048x128", chip="Ascend910B2", options=asked)
    assert case.group == "attention"
    assert case.wall.predicted_us == pytest.approx(timed.timeline.us)
    ahead = attention(tmp_path, shape, api="basic", tiling={"ahead": 1})
    assert ahead.wall.predicted_us > case.wall.predicted_us


def test_rows_of_a_point_are_whole_blocks_behind_as_many_keys(tmp_path):
    """100 rows over 300 keys are 128 over 328, in whole lanes 384; the last one still sees all."""
    case = attention(tmp_path, [24, 100, 300, 128], api="library", tiling={"causal": True})
    asked = AttentionOptions(causal=True)
    timed = time_operator("attention", "24x128x384x128", chip="Ascend910B2", options=asked)
    assert case.wall.predicted_us == pytest.approx(timed.timeline.us)
    assert "queries in whole blocks of rows" in case.assumed


def test_arrays_that_are_read_and_written_and_instructions_cost_time(tmp_path):
    more = [ONE, {**ONE, "reads": 3}, {**ONE, "writes": 2}, {**ONE, "instructions": 60}]
    bare = {"reads": 0, "writes": 1, "instructions": 0}
    cases = validated(tmp_path, *({**ADD, "tiling": tiling} for tiling in (*more, bare))).cases
    assert [case.skipped for case in cases] == [None] * 5
    one, *others, least = (case.wall.predicted_us for case in cases)
    assert min(others) > 1.05 * one
    assert least < one


def test_rows_of_swiglu_hold_both_halves(tmp_path):
    point = {"op": "swiglu", "cores": 48, "M": 512, "N": 4096}
    one, odd = validated(tmp_path, point, {**point, "N": 4097}).cases
    timed = time_operator("swiglu", "512x2048", chip="Ascend910B2").timeline
    assert one.wall.predicted_us == pytest.approx(timed.us)
    assert odd.skipped == "N must be even for op swiglu, whose rows have two halves"


def test_narrow_types_are_computed_in_float32(tmp_path):
    point = {**ADD, "dtype_a": "bfloat16", "tiling": {**ONE, "instructions": 40}}
    wide, narrow = validated(tmp_path, point, {**point, "dtype_a": "float16"}).cases
    assert wide.wall.predicted_us > narrow.wall.predicted_us
    assert wide.assumed[0].startswith("bfloat16 computed in float32")


def test_several_kernels_take_their_sum(tmp_path):
    softmax = {"op": "softmax", "M": 512, "N": 512}
    product = {"kind": "matmul", "cores": 24, "M": 256, "N": 256, "K": 256, "op": None}
    product |= dict.fromkeys(("dtype_a", "dtype_b", "dtype_c"), "float16")
    kernels = [{**softmax, "dtype_a": "float16"}, product]
    alone = [{**softmax, "cores": 48}, product, {"cores": 48, "kernels": kernels}]
    first, second, both = validated(tmp_path, *alone).cases
    assert both.wall.predicted_us == pytest.approx(
        first.wall.predicted_us + second.wall.predicted_us
    )
    assert "our planner's tiling" in both.assumed


def test_any_kind_may_lack_a_part_or_be_doubted(tmp_path):
    parts = {"left_out": "the copy before"}
    partial, doubted = validated(
        tmp_path, {**ADD, "tiling": ONE, **parts}, {**ADD, "tiling": ONE, "doubt": "rounded"}
    ).cases
    assert (partial.group, doubted.group) == ("partial", "doubted")
    assert "the copy before: left out" in partial.assumed
    assert "rounded" in doubted.assumed


WRONG = {
    "tiling.shape must be tokens x heads x head size of rotary, got [64, 8]": {
        "op": "rotary", "tiling": {"shape": [64, 8]}},
    "tiling.writes must be stated for op elementwise": {
        **ADD, "tiling": {"reads": 2, "instructions": 1}},
    "M, N and cores must be stated for op elementwise": {"op": "elementwise", "tiling": ONE},
}  # fmt: skip


def test_sizes_that_are_missing_are_named(tmp_path):
    cases = validated(tmp_path, *WRONG.values()).cases
    assert [case.skipped for case in cases] == list(WRONG)


UNREADABLE = {
    "kernels must be a list of objects, got []": {"kernels": []},
    "kernels[0] must have only columns of a kernel, got 'chip'": {"kernels": [{"chip": "x"}]},
    "kernels[0]: M must be a positive integer, got -1": {"kernels": [{"M": -1}]},
    "tiling.reads must be 0 or a positive integer, got -2": {"tiling": {"reads": -2}},
}


def test_a_bad_line_never_refuses_a_file(tmp_path):
    path = tmp_path / "points.jsonl"
    lines = [{**ADD, **point} for point in UNREADABLE.values()] + [{**ADD, "tiling": ONE}]
    texts = [json.dumps({"id": f"p{n}", **COMMON, **TIME, **p}) for n, p in enumerate(lines)]
    path.write_bytes(b"\xff\n" + "\n".join(texts).encode())
    answer = validate(path)
    reasons = ["a line must be UTF-8 text, got other bytes", *UNREADABLE]
    assert [line.reason for line in answer.unreadable] == reasons
    assert [case.skipped for case in answer.cases] == [None]
