"""Attention with a mask, shared keys and cuts of its own: values, shares, work, bad input."""

import numpy as np
import pytest

import cubecore
from cubecore.dtypes import element_type
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.operators.attention import join
from cubecore.kernels.operators.attention.options import AttentionOptions
from cubecore.kernels.operators.attention.shape import AttentionShape
from cubecore.kernels.operators.attention.shares import attention_shares
from cubecore.workflows.operators import results
from cubecore.workflows.operators.operator_run import run_operator
from cubecore.workflows.operators.operators import time_operator
from workflows.command import assert_refused, cli

HALF = element_type("float16")
CHIP_950 = "Ascend950PR_9589"
CHIPS = pytest.mark.parametrize("chip", [None, CHIP_950])


def assert_right(shape, chip, a="float16", **options):
    done = run_operator("attention", shape, a=a, chip=chip, options=AttentionOptions(**options))
    assert done.findings == ()
    assert done.verified, done.worst


@CHIPS
@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize(
    ("shape", "kv_heads"),
    [
        ("2x64x64x64", None),  # one block of keys, on the diagonal
        ("2x64x320x64", None),  # a block before it
        ("3x5x320x64", None),  # rows off a fractal
        ("4x40x128x64", 2),
        ("1x512x512x128", None),  # last blocks of four lengths
        ("4x192x448x128", 2),  # rows behind a prefix, cut over cores
        ("30x128x128x64", None),  # heads that cores share unevenly
        ("2x128x256x256", 1),
    ],
)
def test_a_mask_is_right(shape, kv_heads, ahead, chip):
    assert_right(shape, chip, a="bfloat16", causal=True, kv_heads=kv_heads, ahead=ahead)


@CHIPS
@pytest.mark.parametrize(
    ("shape", "kv_heads"), [("3x1x128x64", None), ("8x1x192x128", 2), ("4x5x64x256", 1)]
)
def test_few_rows_are_right(shape, kv_heads, chip):
    """A decode has a row of Q a head, or as many as share keys: what fills a fractal is zeros."""
    assert_right(shape, chip, kv_heads=kv_heads)
    assert_right(shape, chip, kv_heads=kv_heads, causal=shape.split("x")[1] == "1")


@CHIPS
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ("1x256x512x128", {"rows": 128}),
        ("1x256x448x64", {"rows": 128, "keys": 64}),
        ("2x128x576x128", {"keys": 128, "ahead": 2}),
        ("1x384x640x128", {"rows": 128, "causal": True}),
    ],
)
def test_rows_and_keys_of_a_core_are_right(shape, options, chip):
    assert_right(shape, chip, **options)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ("1x256x640x128", {"rows": 128, "keys": 256}),
        ("1x512x448x128", {"rows": 256}),
        ("2x512x320x64", {"rows": 256, "keys": 64}),
    ],
)
def test_rows_of_two_products_are_right(shape, options):
    assert_right(shape, None, **options)


@CHIPS
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ("8x1x1024x128", {"kv_heads": 2, "splits": 4}),  # 8 rows of two heads, a row an AIV
        ("2x1x512x64", {"splits": 8}),  # more parts than blocks of keys
        ("3x16x640x128", {"splits": 5}),
        ("30x1x256x64", {"splits": 2}),  # parts of several heads on a core
        ("1x256x1024x128", {"splits": 4}),  # blocks of rows, too
        ("2x60x512x256", {"splits": 2}),
        ("2x128x1280x64", {"splits": 4, "rows": 128}),  # a last block of each part that is shorter
    ],
)
def test_parts_of_keys_are_joined_right(shape, options, chip):
    assert_right(shape, chip, a="bfloat16", **options)


@CHIPS
def test_parts_that_are_joined_before_all_are_there_are_found(monkeypatch, chip):
    """The kernel with one synchronisation missing: no AIV waits for the others."""
    monkeypatch.setattr(join, "WaitFlagDev", lambda **_: PipeBarrier(on="V"))
    options = AttentionOptions(splits=4)
    done = run_operator("attention", "2x1x512x64", chip=chip, options=options)
    assert not done.verified
    assert any("parts" in str(finding) for finding in done.findings)


@pytest.mark.parametrize("aivs", [1, 8, 40])
@pytest.mark.parametrize("rows", [1, 7, 16, 100])
def test_each_row_is_joined_once(rows, aivs):
    shape = AttentionShape(1, rows, 128, 64, HALF, splits=2) if rows <= 64 else None
    shape = shape or AttentionShape(rows // 4, 4, 128, 64, HALF, splits=2)
    given = [join.joined_rows(shape, aivs, aiv) for aiv in range(aivs)]
    assert [row for each in given for row in range(each.first, each.end)] == [*range(rows)]


@CHIPS
def test_parts_of_keys_pay_where_heads_are_fewer_than_cores(chip):
    """Eight heads of keys leave cores idle; 32 do not, and the second pass costs its time."""

    def timed(heads, splits):
        options = AttentionOptions(kv_heads=heads // 4, splits=splits)
        timed = time_operator("attention", f"{heads}x1x4096x128", chip=chip, options=options)
        return timed.timeline.us

    assert timed(32, 2) < 0.75 * timed(32, 1)
    assert timed(128, 1) < timed(128, 2)


def test_a_mask_that_is_left_out_is_not_verified(monkeypatch):
    whole = results.REFERENCES["attention"]
    monkeypatch.setitem(results.REFERENCES, "attention", lambda q, k, v, _: whole(q, k, v, 0))
    options = AttentionOptions(causal=True)
    assert not run_operator("attention", "1x64x64x64", options=options).verified
    assert run_operator("attention", "1x64x64x64").verified


def test_the_reference_shows_each_row_the_keys_up_to_its_own():
    """By a loop over rows, each with its own slice of the keys of its group."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=size) for size in ((4, 3, 8), (2, 5, 8), (2, 5, 8)))
    made = results.REFERENCES["attention"](q, k, v, 1)
    for head in range(4):
        for row in range(3):
            seen = slice(0, 5 - 3 + row + 1)
            power = np.exp(q[head, row] @ k[head // 2, seen].T / np.sqrt(8))
            assert np.allclose(made[head, row], power @ v[head // 2, seen] / power.sum())


def of_part(shape, part):
    """Yield the blocks of rows of a part, counted over all heads."""
    size = shape.width * shape.dtype.size_bytes * shape.rows
    numbers = [part.extent.start]
    for trips, apart in part.extent.levels:
        numbers = [n + turn * apart for n in numbers for turn in range(trips)]
    for head in range(part.extent.heads):
        first = part.query // size + head * part.extent.apart * shape.row_blocks
        yield from (first + number for number in numbers)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 3, 7, 24, 25, 64])
@pytest.mark.parametrize("blocks", [1, 2, 5, 8, 32])
def test_cores_share_all_rows_once_and_evenly(heads, blocks, causal):
    keys = 64 * blocks + 192
    shape = AttentionShape(heads, 64 * blocks, keys, 64, HALF, causal=causal)
    shares = attention_shares(shape, 24)
    taken = [[n for part in share for n in of_part(shape, part)] for share in shares]
    assert sorted(n for each in taken for n in each) == list(range(heads * blocks))
    work = [sum(shape.key_blocks(n % blocks) for n in each) for each in taken]
    longest = max(shape.key_blocks(n) for n in range(blocks))
    assert max(work) <= max(sum(work) / 24 * 1.1 + longest, -(-heads // 24) * blocks * longest)
    if heads * blocks >= 24 * 16:
        assert max(work) <= 1.35 * sum(work) / 24


def test_products_are_those_of_the_keys_that_rows_see():
    """Counted pair by pair: a row of a block of 64 has a product with each key its block sees."""
    shape = AttentionShape(3, 256, 448, 128, HALF, causal=True)
    row, key = np.arange(256)[:, None], np.arange(448)
    seen = key < (row // 64 + 1) * 64 + 448 - 256
    assert shape.operations == 3 * 2 * 2 * 128 * seen.sum()
    line = time_operator("attention", "3x256x448x128", options=AttentionOptions(causal=True))
    assert line.timeline.tflops == pytest.approx(shape.operations / line.timeline.us / 1e6)


def test_blocks_beyond_the_diagonal_cost_nothing():
    """Work goes with half of the pairs, and each block of rows has one block that is masked."""
    full = time_operator("attention", "24x2048x2048x128").timeline
    masked = time_operator("attention", "24x2048x2048x128", options=AttentionOptions(causal=True))
    assert 0.5 < masked.timeline.cycles / full.cycles < 0.68
    share = (1 + 32) / 2 / 32
    assert masked.timeline.read_bytes == pytest.approx(share * full.read_bytes, rel=0.02)


def test_heads_that_share_keys_read_them_from_memory_once():
    alone = time_operator("attention", "32x1x2048x128", chip=CHIP_950).timeline
    shared = AttentionOptions(kv_heads=8)
    together = time_operator("attention", "32x1x2048x128", chip=CHIP_950, options=shared).timeline
    of_keys = 2 * 2048 * 128 * 2
    assert alone.read_bytes - together.read_bytes == (32 - 8) * of_keys
    assert together.cycles < alone.cycles


def test_more_rows_a_core_read_keys_less_often():
    size = 2 * 128 * 2
    for rows in (64, 128):
        options = AttentionOptions(rows=rows, keys=128)
        timed = time_operator("attention", "2x512x1024x128", chip=CHIP_950, options=options)
        of_queries = 2 * 512 * 128 * 2
        keys = 2 * (512 // rows) * 1024 * size
        assert timed.timeline.read_bytes == of_queries + keys


def test_the_answer_says_the_options():
    asked = ("--op", "attention", "--shape", "4x64x128x64", "--causal", "--kv-heads", "2")
    done = cli("time", *asked)
    assert "4 x 64 x 128 x 64 float16, causal, 2 heads of keys on Ascend910B3" in done.out
    assert " TFLOPS\n" in done.out
    made = cli("run", *asked, "--keys", "64", "--json").json
    assert made["verified"] is True
    options = {"causal": True, "kv_heads": 2, "keys": 64}
    named = {"op": "attention", "shape": [4, 64, 128, 64], "a": "float16"}
    assert made["operator"] == {**named, **options}


OF_ATTENTION = ("--op", "attention", "--shape")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--causal",), "--causal needs --op beside it"),
        (
            ("--op", "gelu", "--shape", "4x4", "--kv-heads", "2"),
            "--kv-heads applies to --op attention, not to gelu",
        ),
        (
            (*OF_ATTENTION, "4x64x64x64", "--kv-heads", "3"),
            "--kv-heads must divide the 4 heads of attention, got 3",
        ),
        ((*OF_ATTENTION, "4x64x64x64", "--rows", "96"), "--rows must be 64, 128 or 256, got 96"),
        ((*OF_ATTENTION, "4x64x64x64", "--keys", "0"), "--keys must be 64, 128 or 256, got 0"),
        (
            (*OF_ATTENTION, "1x192x64x64", "--rows", "128"),
            "the queries of attention must be at most 64, or a multiple of 128, got 192",
        ),
        (
            (*OF_ATTENTION, "1x256x256x256", "--rows", "128"),
            "--rows must be 64 with heads of 256: L0A holds Q, got 128",
        ),
        (
            (*OF_ATTENTION, "1x128x64x64", "--causal"),
            "the keys of attention must be at least the 128 queries with --causal, got 64",
        ),
        (
            (*OF_ATTENTION, "1x256x320x64", "--causal", "--rows", "128"),
            "the keys of attention must be a multiple of the 128 rows of a core with --causal, "
            "got 320",
        ),
        (
            (*OF_ATTENTION, "1x256x512x64", "--causal", "--rows", "256"),
            "--rows must be at most the 128 keys in L1 with --causal, got 256",
        ),
        (
            (*OF_ATTENTION, "1x64x64x64", "--causal", "--splits", "2"),
            "--splits must be 1 with --causal, got 2",
        ),
        (
            (*OF_ATTENTION, "1x64x192x64", "--splits", "2"),
            "--splits must cut 192 keys into equal multiples of 64, got 2",
        ),
        (
            (*OF_ATTENTION, "1x256x512x128", "--rows", "256", "--keys", "256"),
            "256 rows of Q and 256 keys of attention must take at most the 524032 B of L1 of "
            "Ascend910B3, got 589824; fewer of them fit: --rows, --keys",
        ),
    ],
)
def test_bad_input_is_one_sentence(arguments, line):
    assert_refused(cli("time", *arguments), line)


def test_what_ub_does_not_hold_is_refused_on_950():
    arguments = ("--rows", "256", "--chip", CHIP_950)
    done = cli("time", *OF_ATTENTION, "1x256x512x128", *arguments)
    room = cubecore.chip(CHIP_950).ub_user_bytes
    assert done.code == 2
    assert f"at most the {room} B of UB of {CHIP_950}, got " in done.err
