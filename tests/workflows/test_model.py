"""A model's step: published steps, sums, the store, and the answer in every form."""

import csv
import io
import json

import numpy as np
import pytest

import cubecore
from cubecore.answers.model.planned import NOT_COUNTED
from cubecore.errors import RequestError
from cubecore.models.collectives import Links
from cubecore.models.products import BOTH
from cubecore.workflows.operators.operators import time_operator
from cubecore.workflows.operators.step_terms import CONTINUED
from models.configs import DEEPSEEK_V3, LLAMA3_8B, PHI2, QWEN3_8B
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli, shell
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

SMALL = {
    "model_type": "qwen3_moe", "hidden_size": 256, "intermediate_size": 512,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": 3,
    "vocab_size": 1000, "num_experts": 8, "num_experts_per_tok": 2,
    "moe_intermediate_size": 128, "mlp_only_layers": [0],
}  # fmt: skip
A3 = "Ascend910_9391"  # 24 cores at 1.85 GHz and 64 GB, as one die of the published steps
PUBLISHED_MS = {  # Qwen3-8B on Atlas A3, decode (cann-recipes-infer, models/qwen, README)
    ("bf16", 1): 15.48, ("bf16", 2): 10.35, ("int8", 1): 10.46, ("int8", 2): 7.9,
}  # fmt: skip


@pytest.fixture(scope="module")
def small():
    return cubecore.model(SMALL, phase="decode", batch=3, seq=64)


@pytest.fixture(scope="module")
def bare():
    """A decode of which no context is given."""
    return cubecore.model(SMALL, phase="decode", batch=3)


@pytest.mark.parametrize(("dtype", "tp"), PUBLISHED_MS)
@pytest.mark.thinned(4)
def test_published_steps_are_within_their_bound(dtype, tp):
    """The time between launches is fitted to them; products, operators and collectives are not."""
    step = cubecore.model(QWEN3_8B, phase="decode", batch=1, seq=4096, tp=tp, dtype=dtype, chip=A3)
    assert step.whole_us("fused") / 1000 == pytest.approx(PUBLISHED_MS[dtype, tp], rel=0.12)
    assert all(row.us is not None for row in step.terms)
    assert set(step.term_us) == {
        *("attention", "cache", "norms", "rotary", "activations", "launches"),
        *(["quantisation"] if dtype == "int8" else []),
        *(["collectives"] if tp > 1 else []),
    }


def test_a_step_is_its_products_and_the_terms_that_are_counted(small):
    whole = small.whole_us("split") - small.total("step", "split").us
    assert whole == pytest.approx(sum(row.step_us for row in small.terms)) != 0
    left = ["norms", "permutation"]
    without = cubecore.model(SMALL, phase="decode", batch=3, seq=64, without=left)
    assert not {"norms", "permutation"} & set(without.term_us)
    assert {"norms", "permutation"} < set(without.not_counted)
    gone = {"norms", "permutation", "launches"}
    rest = [row for row in small.terms if row.term not in gone]
    assert [row for row in without.terms if row.term != "launches"] == rest
    made = small.to_json()
    assert [one["us"] for one in made["whole"]] == [small.whole_us(v) for v in BOTH]


LATENT = {
    "model_type": "deepseek_v3", "hidden_size": 512, "intermediate_size": 1024,
    "moe_intermediate_size": 256, "num_attention_heads": 16, "num_hidden_layers": 2,
    "vocab_size": 1000, "q_lora_rank": 256, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 8, "num_experts_per_tok": 2,
    "n_shared_experts": 1, "first_k_dense_replace": 1,
}  # fmt: skip


def test_attention_over_latents_is_continued_from_the_widest_heads():
    """All 16 heads read one latent of 512 + 64 elements as keys, and 512 of it as values."""
    step = cubecore.model(LATENT, phase="decode", batch=2, seq=1024, chip=A3)
    (row, *_) = [row for row in step.terms if row.term == "attention"]
    assert row.extents == (2, 16, 1024, 256)
    widest = time_operator("attention", "2x16x1024x256", a="bfloat16", chip=A3).timeline.us
    assert row.us == pytest.approx(widest * (576 + 512) / 512)
    said = "attention over latents of 576 is continued from heads of 256"
    assert row.assumed == (said,)
    assert step.whole_us("fused") is not None
    kinds = {row.term: (row.op, row.extents) for row in step.terms}
    assert kinds["cache"] == ("moe_permute", (2, 1, 1, 576))
    assert kinds["routing"] == ("softmax", (2, 8))


def test_launches_of_a_step_are_apart(small):
    """One gap a launch: of fused matmuls, of operators and of collectives, times layers."""
    (between,) = [row for row in small.terms if row.term == "launches"]
    matmuls = sum(r.product.launches for r in small.rows if "fused" in r.product.variants)
    others = sum(row.launches for row in small.terms if row is not between)
    assert between.launches == matmuls + others
    assert between.step_us == pytest.approx(between.launches * 1.0)
    without = cubecore.model(SMALL, phase="decode", batch=3, seq=64, without=["launches"])
    gone = small.whole_us("fused") - without.whole_us("fused")
    assert gone == pytest.approx(between.step_us)


def test_the_interval_of_a_step_adds_up_those_of_its_parts(small):
    """A product has the interval of `time`, an operator that of `time --op`."""
    for variant in BOTH:
        rows = [row for row in small.rows if variant in row.product.variants]
        spread = sum((row.interval.high_us - row.us) * row.product.launches for row in rows)
        timed = [row for row in small.terms if row.interval is not None]
        spread += sum((row.interval.high_us - row.us) * row.launches for row in timed)
        whole = small.interval(variant)
        assert whole.high_us == pytest.approx(small.whole_us(variant) + spread)
        assert 0 < whole.low_us < small.whole_us(variant)
    product, operator = small.rows[0], timed[0]
    p = product.product
    same = cubecore.time(m=p.m, n=p.n, k=p.k, a="bfloat16", c="bfloat16", trans_b=True)
    assert product.us == same.timeline.us
    assert product.interval == same.interval
    shape = "x".join(map(str, operator.extents))
    assert operator.interval == time_operator(operator.op, shape, a="bfloat16").interval


def test_the_share_of_measured_kinds_of_kernels_is_stated(small):
    kinds = [row for row in small.terms if row.us and not (row.interval and row.interval.measured)]
    experts = [row for row in small.rows if row.product.name.startswith("experts ")]
    experts = [row for row in experts if "fused" in row.product.variants]
    rest = small.unmeasured("fused")
    assert set(rest) == {*(row.op for row in kinds), *(row.product.name for row in experts)}
    own = sum(row.step_us for row in kinds) + sum(r.us * r.product.launches for r in experts)
    assert sum(rest.values()) == pytest.approx(own)
    share = 1 - own / small.counted_us("fused")
    line = f"\n{share:.0%} of it is of measured kinds of kernels; no published time is of "
    assert line in small.text
    assert small.to_json()["whole"][0]["unmeasured_us"] == rest


def test_operators_have_the_time_of_time(bare):
    for row in bare.terms:
        if row.interval is not None:
            shape = "x".join(map(str, row.extents))
            assert row.us == time_operator(row.op, shape, a="bfloat16").timeline.us
    missing = [row for row in bare.terms if row.us is None]
    assert [row.error for row in missing] == [
        "attention needs --seq, the tokens behind each sequence"
    ] * len(missing)
    assert missing


def test_collectives_follow_their_closed_forms():
    mesh, ring = Links("full mesh", 8, 2e9, 3.0, 10.0, ""), Links("ring", 8, 2e9, 3.0, 10.0, "")
    assert mesh.us("all-reduce", 8000, 4) == pytest.approx(10 + 2 * (3 + 1))
    assert ring.us("all-reduce", 8000, 4) == pytest.approx(10 + 6 * (3 + 1))
    assert mesh.us("all-to-all", 8000, 4) == pytest.approx(10 + 3 + 1)
    assert ring.us("all-gather", 8000, 4) == pytest.approx(10 + 3 * (3 + 1))
    assert ring.us("all-reduce", 8000, 2) == mesh.us("all-reduce", 8000, 2)
    step = cubecore.model(SMALL, phase="decode", batch=4, seq=64, tp=2, ep=2, chip=A3)
    kinds = [row.op for row in step.terms if row.term == "collectives"]
    assert kinds == [*["all-reduce"] * 2, *["all-to-all"] * 2, "all-reduce", "all-gather"]
    unknown = cubecore.model(SMALL, phase="decode", batch=4, tp=2, chip="Ascend950PR_9589")
    lines = {row.error for row in unknown.terms if row.term == "collectives"}
    assert lines == {"no page gives the links of 2 cards of Ascend950PR_9589"}


def test_long_attention_is_continued_in_proportion():
    narrow = {"num_hidden_layers": 1, "hidden_size": 256, "intermediate_size": 256}
    one, many = (
        cubecore.model({**QWEN3_8B, **narrow, "vocab_size": 512}, phase="decode", batch=b, seq=s)
        for b, s in ((1, 2048), (4, 65536))
    )
    few, more = ([row for row in step.terms if row.term == "attention"] for step in (one, many))
    assert not few[0].assumed
    assert more[0].assumed == (CONTINUED,)
    assert 20 * few[0].us < more[0].us < 128 * few[0].us


def test_each_product_has_the_time_of_its_plan_and_of_time(small):
    for row in small.rows:
        product = row.product
        problem = {"m": product.m, "n": product.n, "k": product.k, "batch": product.batch}
        problem |= {"a": "bfloat16", "c": "bfloat16", "trans_b": True}
        assert row.us == cubecore.plan(problem).predicted.us
        assert row.us == cubecore.time(problem, tiling=row.tiling).timeline.us


def test_sums_are_those_of_the_rows(small):
    """One dense layer and two with experts."""
    for variant in BOTH:
        rows = [row for row in small.rows if variant in row.product.variants]
        of = dict.fromkeys(("dense layer", "MoE layer", "head"), 0.0)
        for row in rows:
            of[row.product.layers] += row.us
        for name, us in of.items():
            assert small.total(name, variant).us == pytest.approx(us)
        step = of["dense layer"] + 2 * of["MoE layer"] + of["head"]
        total = small.total("step", variant)
        assert total.us == pytest.approx(step)
        weights = sum(2 * row.product.weight_elements * row.product.launches for row in rows)
        assert total.weight_bytes == weights


def test_every_total_says_what_is_not_counted(small):
    totals = small.to_json()["totals"]
    assert [total["of"] for total in totals][::2] == ["dense layer", "MoE layer", "head", "step"]
    assert all(total["not_counted"] == list(NOT_COUNTED) for total in totals)
    shown = str(small)
    assert all(f"\n  {name}" in shown for name in small.not_counted)
    assert all(name in small._repr_html_() for name in small.not_counted)


@pytest.mark.sweep
def test_integers_and_narrow_floats_keep_16_bits_where_models_do():
    step = cubecore.model(SMALL, phase="decode", batch=1, dtype="int8")
    types = {row.product.name: (row.request.problem.a, row.request.problem.c) for row in step.rows}
    assert types["o_proj"] == ("int8", "float16")
    assert types["router"] == types["lm_head"] == ("bfloat16", "bfloat16")
    wide = cubecore.model(SMALL, phase="decode", batch=1, dtype="int8", head_dtype="fp16")
    assert wide.rows[-1].request.problem.a == "float16"
    scaled = cubecore.model(SMALL, phase="decode", batch=1, dtype="mxfp8", chip="Ascend950PR_9599")
    first = scaled.rows[0].request.problem
    assert (first.a, first.scale_a, first.c) == ("float8_e4m3fn", "float8_e8m0fnu", "bfloat16")
    assert scaled.rows[-1].request.problem.a == "bfloat16"


def test_types_of_libraries_are_taken():
    step = cubecore.model(SMALL, phase="decode", batch=1, dtype=np.dtype("float16"))
    assert {row.request.problem.a for row in step.rows} == {"float16"}


def test_a_bias_is_part_of_its_product():
    small = {**PHI2, "num_hidden_layers": 1, "hidden_size": 256, "intermediate_size": 512}
    step = cubecore.model({**small, "vocab_size": 512}, phase="decode", batch=1)
    assert {row.request.problem.bias for row in step.rows} == {"float32"}


def test_weights_by_head_lie_as_they_are_used():
    step = cubecore.model(
        {**DEEPSEEK_V3, "num_hidden_layers": 1, "vocab_size": 512, "hidden_size": 256},
        phase="decode",
        batch=1,
        tp=64,
    )
    stored = {row.product.name: row.request.problem.trans_b for row in step.rows}
    assert not stored.pop("kv_b_proj keys, by head")
    assert all(stored.values())


def test_a_store_answers_the_second_time(tmp_path, monkeypatch):
    store = str(tmp_path / "plans.sqlite")
    first = cubecore.model(SMALL, phase="decode", batch=1, store=store)
    monkeypatch.setattr("cubecore.workflows.sweep.pool.plan_line", None)
    again = cubecore.model(SMALL, phase="decode", batch=1, store=store)
    assert again.to_json() == first.to_json()


def test_a_product_without_a_plan_is_in_no_sum_and_the_others_are():
    """A block of 16 x 16 sums in float32 takes 1 KiB of L0C."""
    limits = {"settings": {"l0c_bytes": "1024"}, "phase": "decode", "batch": 1}
    step = cubecore.model({**SMALL, "vocab_size": 8}, **limits)
    assert step.complete
    tight = cubecore.model(SMALL, **limits | {"settings": {"l0c_bytes": "512"}})
    assert not tight.complete
    total = tight.total("step", "fused")
    assert total.without == len([r for r in tight.rows if "fused" in r.product.variants])
    assert "in no sum" in str(tight)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"dtype": "bf17"}, None),
        ({"dtype": 3}, "dtype must be the name of an element type, got int"),
        ({"chip": "Ascend310P3"},
         "time supports architectures 2201 and 3510; Ascend310P3 is 2002 (plan and check support "
         "it)"),
        ({"dtype": "fp8_e4m3fn_t", "chip": "Ascend910B3"}, None),
        ({"format_b": "NN"}, "format_b must be one of ND, NZ, got 'NN'"),
    ],
)  # fmt: skip
def test_what_cannot_be_timed_is_one_sentence(keys, line):
    with pytest.raises(RequestError) as caught:
        cubecore.model(SMALL, phase="decode", batch=1, **keys)
    told = str(caught.value)
    assert "\n" not in told
    assert line is None or told == line


# --- the command

STEP = ("--phase", "decode", "--batch", 3, "--seq", 64)


@pytest.fixture
def config(folder):
    (folder / "config.json").write_text(json.dumps(SMALL), encoding="utf-8")
    return "config.json"


def test_the_command_prints_the_answer(config, small):
    answer = cli("model", config, *STEP)
    assert (answer.code, answer.out) == (DONE, f"{small}\n")
    assert cli("model", config, *STEP, "--json").json == json.loads(json.dumps(small.to_json()))
    assert cli("model", ".", *STEP).out == answer.out


def test_the_table_as_csv_has_a_line_for_each_product(config, small):
    rows = list(csv.DictReader(io.StringIO(cli("model", config, *STEP, "--csv").out)))
    assert [row["product"] for row in rows] == [row.product.name for row in small.rows]
    assert [float(row["us"]) for row in rows] == [row.us for row in small.rows]
    assert [int(row["baseM"]) for row in rows] == [row.tiling.baseM for row in small.rows]


def test_tilings_are_written_a_line_each(config, small, folder):
    assert cli("model", config, *STEP, "--out", "t.jsonl").code == DONE
    lines = (folder / "t.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["tiling"] for record in records] == [r.tiling.to_json() for r in small.rows]
    problem, tiling = records[0]["problem"], records[0]["tiling"]
    assert cubecore.check(tiling, problem).legal


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "missing --phase, --batch"),
        (("--phase", "decode"), "missing --batch"),
        (("--phase", "train"), "--phase must be prefill or decode, got 'train'"),
        ((*STEP, "--tp", "8"), "tp must divide the attention heads = 4, got 8"),
        ((*STEP, "--report", "none/r.html"), None),
    ],
)
def test_what_the_command_refuses_is_one_line(config, words, line):
    answer = cli("model", config, *words)
    if line is None:
        assert (answer.code, answer.out, answer.err.count("\n")) == (BAD_REQUEST, "", 1)
    else:
        assert_refused(answer, line)


def test_two_forms_exclude_each_other(config):
    answer = cli("model", config, *STEP, "--json", "--csv")
    assert answer.code == BAD_REQUEST
    assert answer.json["error"]["message"] == "--csv excludes --json"


def test_a_product_without_a_plan_is_exit_code_1(config):
    assert cli("model", config, *STEP, "--set", "l0c_bytes=512").code == FOUND


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        pytest.param(LLAMA3_8B, marks=pytest.mark.sweep),
        pytest.param(DEEPSEEK_V3, marks=pytest.mark.sweep),
    ],
    ids=["small", "dense", "MoE"],
)
def test_the_page_has_every_product_and_every_sum(config, tmp_path):
    small = {**config, "vocab_size": 512, "num_hidden_layers": 4}
    step = cubecore.model(small, phase="decode", batch=1, tp=2)
    step.report(str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in page
    for row in step.rows:
        assert f"<td>{row.product.name}</td>" in page
    assert page.count("not nan") == page.count("None") == 0
    assert all(name in page for name in step.not_counted)
    assert page.count(f"<td>{step.terms[0].op}</td>") > 0


def test_the_command_in_a_process_of_its_own(config, folder):
    answer = shell("model", config, *STEP, "--store", "p.sqlite", cwd=folder)
    assert answer.code == DONE
    assert answer.err == ""
