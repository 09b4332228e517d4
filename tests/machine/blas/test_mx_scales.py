"""Products with MX scales: the fast engine proves them, and both engines leave the same."""

from dataclasses import replace

import numpy as np
import pytest

from cubecore import Problem
from cubecore.chips import chip
from cubecore.dtypes import INT8, element_type
from cubecore.isa.cube.mad_mx import LoadCbufToCaMx, LoadCbufToCbMx
from cubecore.isa.mte.copies_3510 import CopyGmToCbufMultiDn2Nz, SetMte2NzPara
from cubecore.isa.mte.fill import CreateCbufMatrix
from cubecore.isa.program.launch import Launch
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.machine.blas.block_products import Block
from cubecore.machine.blas.mx_scales import Scales
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.workflows.data.operands import stored_shapes
from harness import make_tiling
from kernels.broken import changed
from kernels.cases import brief, draw_extent, draw_tiling
from machine.agreement import answer, assert_agree
from machine.broken_leaves import CHANGES, Changes, assert_broken_agrees, longer, ways
from parts import part

A5 = chip("Ascend950PR_9599")
FP4, FP8 = "float4_e2m1fn", ("float8_e4m3fn", "float8_e5m2")
ONE, NAN = 127, 255
TURNED = [(False, False), (False, True), (True, False), (True, True)]


def problem_of(m: int, n: int, k: int, **keys) -> Problem:
    """Return an MX problem; of 4 bits stored rows are even."""
    p = Problem(m=m, n=n, k=k, chip=A5.name, scale_a="float8_e8m0fnu", **({"a": FP4} | keys))
    if p.a == FP4:
        p = replace(p, m=m + m % 2 * p.trans_a, n=n + n % 2, k=k + k % 2)
    return p


def draw(rng: np.random.Generator, p: Problem, scales: tuple[int, int] = (ONE - 1, ONE + 2)):
    """Return bytes of each operand: whole numbers or any 4 bits, and scales in a range of codes."""
    found = {}
    for name, (shape, kind) in stored_shapes(p).items():
        if kind.kind == "scale":
            found[name] = rng.integers(*scales, shape).astype(np.uint8)
        elif kind.bits == 4:
            found[name] = rng.integers(0, 256, np.prod(shape) // 2).astype(np.uint8)
        else:
            found[name] = rng.integers(-6, 7, shape).astype(kind.numpy)
    return found


def draw_problem(rng: np.random.Generator, largest: int) -> Problem:
    m, n, k = (draw_extent(rng, largest) for _ in range(3))
    a = FP4 if rng.integers(2) else FP8[rng.integers(2)]
    trans_a, trans_b = TURNED[rng.integers(4)]
    keys = {"a": a, "b": a if a == FP4 else FP8[rng.integers(2)]}
    keys |= {
        "launch": ("cube", "mix")[rng.integers(2)],
        "template": ("MDL", "NORM")[rng.integers(2)],
    }
    if rng.integers(6) == 0:
        keys["batch"] = int(rng.integers(2, 4))
    elif rng.integers(3) == 0:
        keys["split_k"] = True
    if rng.integers(3) == 0:
        keys["bias"] = "float32"
    if rng.integers(3) == 0 and "split_k" not in keys:
        keys["format_c"] = "NZ"
    if rng.integers(3) == 0:
        keys |= {"format_a": "NZ", "format_b": "NZ"}
        m, n, k = (-(-x // 64) * 64 for x in (m, n, k))
    return problem_of(m, n, k, trans_a=trans_a, trans_b=trans_b, **keys)


def sweep(seed: int, count: int, largest: int) -> None:
    print(f"seed {seed}")
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        problem = draw_problem(rng, largest)
        tiling = draw_tiling(rng, problem)
        told = f"{problem}\n{brief(tiling)}"
        launch = matmul_launch(problem, tiling, A5)
        assert assert_agree(launch, draw(rng, problem), told, A5) == "blas", told


def test_whatever_the_kernel_carries_is_proven_and_agrees_to_the_bit(drawn_seed):
    sweep(drawn_seed, part(40), 150)


@pytest.mark.sweep
def test_many_more_are_proven_and_agree(drawn_seed):
    sweep(drawn_seed, 600, 400)


# --- one leaf of the tree broken

FIELDS = {"baseM": 32, "baseN": 64, "baseK": 64, "stepKa": 2, "stepKb": 1, "depthA1": 4}
FIELDS |= {"depthB1": 2, "dbL0A": 2, "dbL0B": 2, "dbL0C": 2, "mxTypePara": 0x01010101}
PROBLEMS = {
    "4 bits, ragged K": problem_of(50, 70, 200, trans_b=True),
    "4 bits, turned": problem_of(34, 66, 150, trans_a=True, bias="float32"),
    "8 bits": problem_of(49, 70, 200, a=FP8[0], b=FP8[1]),
    "8 bits, turned": problem_of(33, 33, 110, a=FP8[1], trans_a=True, trans_b=True),
    "8 bits, one row": problem_of(1, 33, 150, a=FP8[1], template="NORM"),
    "NZ": problem_of(64, 128, 128, format_a="NZ", format_b="NZ"),
}
LESS = ("x_step", "y_step", "src_stride", "dst_stride", "loop1_src_stride", "blk_num")
MORE = ("x_start_pos", "y_start_pos", "dst_gap", "bits", "config", "loop4_src_stride")
OWN: Changes = (
    CHANGES
    | {f"{name} less": longer(name, -1, 1) for name in LESS}
    | {f"{name} more": longer(name, 1) for name in MORE}
    | {f"{name} less 64": longer(name, -64, 64) for name in ("k", "d_value")}
    | {f"dst_at {n} on": longer("dst_at", n) for n in (32, 64)}
    | {f"config {n} on": longer("config", 1 << n) for n in (16, 32, 48)}
)


def intact(name: str) -> tuple[Launch, dict]:
    problem = PROBLEMS[name]
    launch = matmul_launch(problem, make_tiling(problem, **FIELDS), A5)
    return launch, draw(np.random.default_rng(1), problem)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.thinned(2)
def test_the_intact_kernel_is_proven(name):
    assert assert_agree(*intact(name), on=A5) == "blas"


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.thinned(5)
def test_a_kernel_with_one_leaf_broken_is_the_same_on_both_engines(name, drawn_seed):
    rng, found = np.random.default_rng(drawn_seed), ways(intact(name)[0], OWN)
    for place in rng.choice(len(found), part(12), replace=False):
        assert_broken_agrees(intact(name), OWN, found[place], A5)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_kernel_with_any_leaf_broken_is_the_same_on_both_engines(name):
    for way in ways(intact(name)[0], OWN):
        assert_broken_agrees(intact(name), OWN, way, A5)


NEEDED = (LoadCbufToCaMx, LoadCbufToCbMx, CreateCbufMatrix, CopyGmToCbufMultiDn2Nz, SetMte2NzPara)


@pytest.mark.parametrize("kind", NEEDED, ids=lambda kind: kind.__name__)
def test_what_scales_need_is_missed_where_it_is_dropped(kind):
    launch, operands = intact("8 bits")
    without = changed(launch, lambda leaf: None if isinstance(leaf.template, kind) else leaf)
    assert assert_agree(without, operands, on=A5) == "reference"
    assert answer(without, operands, "reference", A5).findings


@pytest.mark.parametrize(
    ("kind", "changes"),
    [(CreateCbufMatrix, {"bits": 1}), (CopyGmToCbufMultiDn2Nz, {"dtype": INT8})],
    ids=["other than zeros", "scales as bytes"],
)
def test_what_is_no_pair_of_scales_is_left_to_the_reference_engine(kind, changes):
    def alter(leaf):
        if not isinstance(leaf.template, kind):
            return leaf
        return replace(leaf, template=replace(leaf.template, **changes))

    launch, operands = intact("8 bits")
    assert assert_agree(changed(launch, alter), operands, on=A5) == "reference"


# --- values

FAR = {"one row's": (100, 160), "NaN": (NAN - 1, NAN + 1), "far": (0, 255)}


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("k", [64, 40])
def test_scales_beyond_float32_and_nan(far, k):
    """One product for each element of C: exact in float64, then rounded once.

    A scale of NaN that belongs to zeros behind K makes NaN of its row, too.
    """
    rng = np.random.default_rng(k)
    problem = problem_of(32, 48, k, a=FP8[1], trans_b=True)
    operands = draw(rng, problem)
    for name, rows in (("a", 32), ("b", 48)):
        values = np.zeros((rows, k))
        values[:, 3] = rng.integers(1, 7, rows)
        operands[name] = values.astype(problem.a_type.numpy)
        codes = np.full((rows, 2), ONE, np.uint8)
        low, high = FAR[far]
        codes[::3, 0] = rng.integers(low, high, codes[::3, 0].shape)
        codes[1::5, 1] = rng.integers(low, high, codes[1::5, 1].shape)
        operands[f"scale_{name}"] = codes
    launch = matmul_launch(problem, make_tiling(problem, **FIELDS), A5)
    a, b = (
        [
            float("nan") if NAN in codes else float(row[3]) * 2.0 ** (int(codes[0]) - ONE)
            for row, codes in zip(operands[name], operands[f"scale_{name}"], strict=True)
        ]
        for name in "ab"
    )
    with np.errstate(over="ignore"):
        wanted = np.outer(a, b).astype(np.float32)
    for engine in ("blas", "reference"):
        found = answer(launch, operands, engine, A5)
        assert found.engine == engine
        assert np.array_equal(found.data.view(np.float32), wanted.ravel(), equal_nan=True), engine


def test_a_sum_of_far_and_near_scales():
    """One base block's scales are beyond float32, the other's are not; both are added."""
    problem = problem_of(16, 16, 128, a=FP8[1], trans_b=True)
    operands = {name: np.ones((16, 128)).astype(problem.a_type.numpy) for name in "ab"}
    scale_a, scale_b = (np.full((16, 4), ONE, np.uint8) for _ in "ab")
    scale_a[:, :2], scale_b[:, :2] = ONE + 100, ONE - 100
    operands |= {"scale_a": scale_a, "scale_b": scale_b}
    launch = matmul_launch(problem, make_tiling(problem, **FIELDS), A5)
    assert assert_agree(launch, operands, on=A5) == "blas"
    assert (answer(launch, operands, "fast", A5).data.view(np.float32) == 128).all()


# --- the record of scales

CODES = (np.arange(40 * 24) % NAN).astype(np.uint8)


def scales(offset: int, r: int, pairs: int, to_r: int, to_k: int, tensor=None, distances=(0, 6)):
    tensor = tensor or GlobalMemory().allocate_from("scales", CODES)
    steps = (to_r if r > 1 else 0, to_k if pairs > 1 else 0)
    return Scales(tensor, offset, distances, r, pairs, *steps)


def meant(made: Scales, core: int) -> list[list[float]]:
    """The scales by their places, one at a time."""
    data = made.tensor.buffer.data
    return [
        [
            2.0 ** (int(data[2 * (made.offset + i * made.to_r + j // 2 * made.to_k)
                             + made.distances[core] + j % 2]) - ONE)
            for j in range(2 * made.pairs)
        ]
        for i in range(made.r)
    ]  # fmt: skip


@pytest.mark.parametrize("axis", ["r", "k"])
@pytest.mark.parametrize(("to_r", "to_k"), [(12, 1), (1, 40)])
def test_scales_that_follow_each_other_are_one(axis, to_r, to_k):
    tensor = GlobalMemory().allocate_from("scales", CODES)
    for first in range(1, 5):
        for second in range(1, 5):
            along = (first, 3) if axis == "r" else (3, first)
            more = (second, 3) if axis == "r" else (3, second)
            a = scales(50, *along, to_r, to_k, tensor)
            b = scales(50 + first * (to_r if axis == "r" else to_k), *more, to_r, to_k, tensor)
            both = a.joined(b, axis)
            assert both is not None
            for core in (0, 1):
                wanted = np.concatenate([meant(a, core), meant(b, core)], 0 if axis == "r" else 1)
                assert (both.values(core) == wanted).all()


APART = {
    "a gap": {"offset": 63},
    "behind": {"offset": 0},
    "other rows": {"r": 2},
    "other distances": {"distances": (0, 8)},
    "rows elsewhere": {"to_r": 13},
    "pairs elsewhere": {"to_k": 2},
}


@pytest.mark.parametrize("change", APART)
def test_scales_that_do_not_follow_each_other_stay_two(change):
    tensor = GlobalMemory().allocate_from("scales", CODES)
    first, second = (scales(at, 3, 2, 12, 1, tensor) for at in (0, 2))
    assert first.joined(second, "k") is not None
    assert first.joined(replace(second, **APART[change]), "k") is None
    assert first.joined(scales(2, 3, 2, 12, 1), "k") is None


def test_a_part_of_scales_is_its_rows():
    made = scales(7, 6, 3, 12, 1)
    for first, count in ((0, 6), (2, 3), (5, 1)):
        assert meant(made.part(first, count), 1) == meant(made, 1)[first : first + count]


@pytest.mark.parametrize("narrow", [True, False])
def test_every_code_of_a_scale_is_its_power_of_2(narrow):
    codes = np.arange(ONE - 32, ONE + 33) if narrow else np.arange(256)
    tensor = GlobalMemory().allocate_from("scales", np.resize(codes, 256).astype(np.uint8))
    found = Scales(tensor, 0, (0,), 1, codes.size // 2, 0, 1).values(0).ravel()
    wanted = [float("nan") if c == NAN else 2.0 ** (int(c) - ONE) for c in codes[: found.size]]
    assert found.dtype == (np.float32 if narrow else np.float64)
    assert np.array_equal(found, wanted, equal_nan=True)


def test_a_block_that_ends_in_zeros_does_not_go_on():
    """60 of 64 values are stored: what follows them belongs to the next pair of scales."""
    gm, kind = GlobalMemory(), element_type(FP8[1])
    values, own = (
        gm.allocate_from("a", np.zeros(16 * 128, np.uint8)),
        gm.allocate_from("scales", CODES),
    )
    whole = Block(values, kind, 0, (0,), 16, 64, 128, kind.c0, k_inner=True)
    whole = whole.with_scales(scales(0, 16, 1, 2, 1, own, (0,)))
    for k, more in ((64, True), (60, False)):
        first = replace(whole, k=k)
        after = replace(whole, offset=k).with_scales(scales(1, 16, 1, 2, 1, own, (0,)))
        assert (first.joined(after, "k") is not None) is more
    assert whole.joined(replace(whole, offset=64, scales=None), "k") is None
