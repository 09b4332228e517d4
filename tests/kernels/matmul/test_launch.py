"""The matmul kernel: right to the bit for every kind of product, and in every order flags allow."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import cubecore
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.checker import check_tiling
from cubecore.tiling.rules.l1 import l1_capacity
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import ceil_div
from harness import (
    A2,
    expected,
    issued,
    listing,
    make_tiling,
    result_of,
    run_matmul,
    tensor_of,
)
from kernels.cases import (
    KINDS,
    assert_right,
    brief,
    draw_operands,
    draw_problem,
    draw_tiling,
    exact,
    in_turn,
    kind_id,
    make,
)
from kernels.queues import HappensBefore, OrderError, accesses, interleave
from kernels.replay import replay
from parts import crossed, strided

SHAPES = [
    (1, 1, 1),
    (1, 40, 70),
    (17, 1, 33),
    (16, 16, 32),
    (31, 65, 1),
    (113, 47, 129),
]
LARGE = (330, 210, 190)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=kind_id)
half_the_kinds = pytest.mark.parametrize("kind", strided(KINDS, 2), ids=kind_id)
kinds_in_turn = pytest.mark.parametrize("kind", in_turn(), ids=kind_id)
HALF = {"a": "float16", "c": "float32"}
INT8 = {"a": "int8", "c": "int32"}


def check_right(problem, seed=0, **fields):
    """Run `make_tiling(problem, **fields)`, which must be legal, with whole numbers."""
    tiling = make_tiling(problem, **fields)
    found = check_tiling(tiling, problem, A2)
    assert found.legal, [f.message for f in found.findings]
    return assert_right(problem, tiling, draw_operands(np.random.default_rng(seed), problem))


# --- the plan's tiling


def check_plan(kind, shape, *, relu, seed):
    problem = make(kind, *shape, relu=relu)
    plan = cubecore.plan(problem)
    assert check_tiling(plan.tiling, problem, A2).legal
    assert_right(problem, plan.tiling, draw_operands(np.random.default_rng(seed), problem))


@pytest.mark.parametrize("kind", strided(KINDS), ids=kind_id)
@pytest.mark.thinned(10)
def test_the_plans_tiling_gives_the_exact_product(kind):
    """Of one shape, of the next for the next kind; a sweep takes them all."""
    place = KINDS.index(kind)
    number = (place + place // len(SHAPES)) % len(SHAPES)
    check_plan(kind, SHAPES[number], relu=number // 2 % 2 == 1, seed=number)


@kinds_in_turn
@pytest.mark.thinned(9)
def test_the_plans_tiling_of_a_large_product(kind):
    """With and without relu by turns; a sweep takes both of every kind."""
    check_plan(kind, LARGE, relu=in_turn().index(kind) % 2 == 1, seed=6)


@pytest.mark.sweep
@every_kind
@pytest.mark.parametrize("relu", [False, True])
def test_the_plans_tiling_of_every_shape(kind, relu):
    for number, shape in enumerate([*SHAPES, LARGE]):
        check_plan(kind, shape, relu=relu, seed=number)


@pytest.mark.sweep
@every_kind
@pytest.mark.parametrize("cores", [1, 20])
def test_the_plans_tiling_over_many_shapes(kind, cores):
    rng = np.random.default_rng(12345)
    for number in range(25):
        shape = (int(x) for x in rng.integers(1, 500, 3))
        problem = make(kind, *shape, relu=number % 2 == 1, cores=cores)
        assert_right(problem, cubecore.plan(problem).tiling, draw_operands(rng, problem))


# --- shapes of tails


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("kind", [HALF, INT8], ids=["half", "int8"])
def test_one_row_of_a_is_gemv(kind, trans_a):
    problem = make(kind, 1, 37, 100, trans_a=trans_a)
    check_right(problem, baseN=32, baseK=32, stepKa=2, depthA1=4, dbL0A=2)
    mads = issued(matmul_launch(problem, make_tiling(problem), A2), Mad)
    assert {template.m for template, _ in mads} == {1}


@pytest.mark.parametrize("kind", [HALF, INT8], ids=["half", "int8"])
@pytest.mark.parametrize(("base_k", "step_ka"), [(16, 1), (16, 3), (32, 2), (48, 7), (80, 5)])
@pytest.mark.parametrize("m", [33, 65])
@pytest.mark.thinned(3)
def test_a_tail_of_one_row_is_an_m_1_product_in_gemvs_layout(kind, base_k, step_ka, m):
    problem = make(kind, m, 40, 145)
    fields = {"baseM": 32, "baseK": base_k, "stepKa": step_ka, "stepKb": step_ka, "dbL0A": 2}
    check_right(problem, **fields, depthA1=2 * step_ka)
    mads = issued(matmul_launch(problem, make_tiling(problem, **fields), A2), Mad)
    assert {template.m for template, _ in mads} == {32, 1}


@pytest.mark.parametrize("kind", [HALF, INT8], ids=["half", "int8"])
def test_a_one_row_tail_behind_other_tiles_of_its_chunk(kind):
    problem = make(kind, 49, 33, 40)
    check_right(problem, baseM=16, baseK=16, stepM=4, stepKa=3, depthA1=24, dbL0A=2)


@pytest.mark.parametrize("kind", [HALF, INT8], ids=["half", "int8"])
def test_a_transposed_one_row_tail_is_computed_as_two_rows(kind):
    problem = make(kind, 33, 40, 50, trans_a=True)
    check_right(problem, baseM=32, baseK=32, stepKa=2)
    mads = issued(matmul_launch(problem, make_tiling(problem, baseM=32), A2), Mad)
    assert {template.m for template, _ in mads} == {32, 2}


@half_the_kinds
@pytest.mark.thinned(4)
def test_a_one_column_tail_in_n(kind):
    check_right(make(kind, 20, 33, 40), baseN=32, stepKb=3, dbL0B=2)


@half_the_kinds
@pytest.mark.thinned(4)
def test_a_one_element_tail_in_k(kind):
    base_k = 64 if kind["a"] == "int4" else 32
    check_right(make(kind, 20, 33, 97), baseK=base_k, baseN=32, dbL0A=2, dbL0B=2, dbL0C=2)


@every_kind
@pytest.mark.thinned(4)
def test_one_element_in_every_direction(kind):
    check_right(make(kind, 1, 1, 1, relu=True))


# --- steps, buffers, orders


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("kind", [HALF, INT8], ids=["half", "int8"])
def test_k_steps_that_do_not_nest(kind, order):
    problem = make(kind, 40, 40, 320, bias="float32" if kind is HALF else "int32")
    fields = {"baseK": 32, "iterateOrder": order, "dbL0A": 2, "dbL0B": 2}
    check_right(problem, **fields, stepKa=5, stepKb=3, depthA1=10, depthB1=6)


WALKED = [
    *((kind, place // 2 % 2) for place, kind in enumerate(KINDS) if place % 2 == 0),
    *((kind, 1 - KINDS.index(kind) // 2 % 2) for kind in in_turn()),
]
"""Every other kind in one order of the tiles, some in both."""
REST = [(kind, order) for kind in KINDS for order in (0, 1) if (kind, order) not in WALKED]


@pytest.mark.parametrize(
    ("kind", "order"),
    [*WALKED, *(pytest.param(*one, marks=pytest.mark.sweep) for one in REST)],
    ids=lambda x: kind_id(x) if isinstance(x, dict) else f"order {x}",
)
@pytest.mark.thinned(4)
def test_several_tiles_in_a_chunk_where_k_is_whole(kind, order):
    check_right(
        make(kind, 100, 120, 70),
        baseM=32,
        baseN=16,
        baseK=64,
        stepM=2,
        stepN=3,
        stepKa=2,
        stepKb=2,
        depthA1=8,
        depthB1=12,
        iterateOrder=order,
    )


@pytest.mark.parametrize("order", [0, 1])
def test_one_operand_stays_while_the_other_streams(order):
    problem = make(HALF, 100, 120, 200)
    fields = {"baseK": 32, "iterateOrder": order, "dbL0C": 2, "baseM": 32, "baseN": 32}
    check_right(problem, **fields, stepM=3, stepKa=7, depthA1=42, stepKb=2, depthB1=4)
    check_right(problem, **fields, stepN=3, stepKb=7, depthB1=42, stepKa=2, depthA1=4)


@pytest.mark.parametrize("base_k", [16, 48, 80])
@pytest.mark.parametrize("trans", [(True, True), (True, False), (False, False)])
@pytest.mark.thinned(2)
def test_int8_base_k_of_sixteens_is_padded_on_chip(base_k, trans):
    problem = make(INT8, 50, 70, 161, trans_a=trans[0], trans_b=trans[1])
    check_right(problem, baseK=base_k, stepKa=4, stepKb=2, depthA1=8, depthB1=4)


@pytest.mark.parametrize("base", [16, 48])
@pytest.mark.parametrize("step", [1, 3])
def test_int8_blocks_of_half_a_square_transposed(base, step):
    problem = make(INT8, 3 * base + 5, 3 * base + 7, 64, trans_a=True, trans_b=False)
    steps = {"stepM": step, "stepN": step, "stepKa": 2, "stepKb": 2}
    fields = {"baseM": base, "baseN": base, "baseK": 32, "dbL0A": 2, "dbL0B": 2}
    check_right(problem, **fields, **steps, depthA1=4 * step, depthB1=2 * step)


# --- cores


def test_blocks_beyond_the_matrix_are_not_computed():
    problem = make(HALF, 40, 50, 60)
    check_right(problem, singleCoreM=48, singleCoreN=64, baseM=48, baseN=64)


def test_ragged_blocks_on_many_cores():
    problem = make(INT8, 100, 90, 60, bias="int32")
    check_right(problem, singleCoreM=31, singleCoreN=19, baseN=32)


def test_as_many_cores_as_there_are_rows():
    check_right(make(HALF, 20, 30, 40), singleCoreM=1)


def test_a_share_that_starts_at_an_odd_element():
    check_right(make(INT8, 33, 35, 37, trans_a=True, bias="int32"), singleCoreM=7, singleCoreN=9)


@pytest.mark.parametrize("cores", [1, 3, 20])
def test_idle_cores_do_no_harm(cores):
    problem = make(HALF, 70, 30, 50, cores=cores)
    plan = cubecore.plan(problem)
    assert plan.tiling.usedCoreNum <= cores
    assert_right(problem, plan.tiling, draw_operands(np.random.default_rng(1), problem))


# --- long rows


@pytest.mark.thinned(4)
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("kind", [HALF, INT8], ids=["half", "int8"])
def test_rows_of_k_longer_than_one_transfer_can_stride(kind, check):
    problem = make(kind, 3, 2, 70_000, trans_b=True, intrinsics_check=check)
    operands = {
        "a": np.random.default_rng(0).integers(-1, 2, (3, 70_000)).astype(problem.a_type.numpy),
        "b": np.random.default_rng(1).integers(-1, 2, (2, 70_000)).astype(problem.a_type.numpy),
    }
    assert_right(problem, cubecore.plan(problem).tiling, operands)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("extents", [(3, 70_000, 5), (70_000, 3, 5)])
@pytest.mark.parametrize("kind", [HALF, INT8], ids=["half", "int8"])
def test_rows_of_m_or_n_longer_than_one_transfer_can_stride(kind, extents):
    problem = make(kind, *extents, trans_a=True)
    plan = cubecore.plan(problem)
    assert_right(problem, plan.tiling, draw_operands(np.random.default_rng(0), problem))


def test_a_long_bias_is_read_tile_by_tile():
    problem = make(HALF, 3, 70_000, 5, bias="float16")
    check_right(problem, singleCoreN=3504, baseN=256)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "extents", [(128, 151_936, 4096), (1, 70_000, 4096), (3, 70_000, 5), (35, 30_086, 7)]
)
def test_a_wide_product_with_bias_has_a_plan(extents):
    m, n, k = extents
    problem = make(HALF, m, n, k, bias="float32")
    assert cubecore.check(cubecore.plan(problem).tiling, problem).legal


def test_a_pitch_of_exactly_65535_and_one_more():
    for n in (65_535, 65_536):
        problem = make(HALF, 2, n, 3)
        fields = {"singleCoreN": 4096, "baseN": 512, "baseM": 16, "baseK": 16}
        check_right(problem, **fields)


# --- values at the edge of their types


def test_float16_results_beyond_its_range_are_its_largest_values():
    problem = make({"a": "float16", "c": "float16"}, 16, 16, 64)
    operands = {"a": np.full((16, 64), 8, np.float16), "b": np.full((64, 16), 200, np.float16)}
    operands["b"][:, 3] *= -1
    ran = run_matmul(problem, make_tiling(problem), operands)
    assert set(np.unique(ran.c)) == {-65504.0, 65504.0}


def test_int32_sums_saturate():
    problem = make(INT8, 16, 16, 64, bias="int32")
    operands = {"a": np.ones((16, 64), np.int8), "b": np.ones((64, 16), np.int8)}
    operands["bias"] = np.full(16, 2**31 - 5, np.int32)
    operands["bias"][4] = 2**31 - 65
    ran = run_matmul(problem, make_tiling(problem), operands)
    wanted = np.clip(expected(problem, operands), -(2**31), 2**31 - 1)
    assert (ran.c == wanted).all()


# --- what the kernel occupies and issues


@pytest.mark.parametrize("seed", range(12))
def test_the_kernel_stays_inside_what_the_rules_count(seed):
    rng = np.random.default_rng(900 + seed)
    problem = draw_problem(rng)
    tiling = draw_tiling(rng, problem)
    allowed = l1_capacity(RuleCase(tiling, problem, A2)).used
    if problem.bias is not None:  # a core's whole bias row stays where L1 has room left
        allowed = max(allowed, min(allowed + 4 * problem.n + 32, A2.l1_bytes))
    halves = {
        Mem.L0A: A2.l0a_bytes // tiling.dbL0A,
        Mem.L0B: A2.l0b_bytes // tiling.dbL0B,
        Mem.L0C: A2.l0c_bytes // tiling.dbL0C,
        Mem.BT: A2.bt_bytes,
    }
    launch = matmul_launch(problem, tiling, A2)
    for core in launch.cores:
        for one in listing(launch, core.core):
            for mem, where, _, writes in accesses(one):
                first, last = int(where.min()) * 32, int(where.max() + 1) * 32
                if mem is Mem.L1:
                    assert not writes or last <= allowed
                else:
                    assert first // halves[mem] == (last - 1) // halves[mem], (mem, first, last)


@pytest.mark.parametrize("seed", range(8))
def test_every_byte_of_c_is_written_once(seed):
    rng = np.random.default_rng(700 + seed)
    problem = draw_problem(rng)
    tiling = draw_tiling(rng, problem)
    launch = matmul_launch(problem, tiling, A2)
    (c,) = (tensor for tensor in launch.tensors if tensor.output)
    count = np.zeros(c.size_bytes // problem.c_type.size_bytes, np.int64)
    for core in launch.cores:
        for template, (dst, _) in issued(launch, CopyMatrixCcToGm, core.core):
            name, offset = tensor_of(launch, dst)
            assert name == "c"
            first, rest = divmod(offset, problem.c_type.size_bytes)
            assert rest == 0
            np.add.at(count, template.offsets("dst").reshape(-1) + first, 1)
    assert (result_of(problem, count) == 1).all()


def test_small_accumulating_mads_have_a_barrier_between_them():
    for fractals, wanted in ((9, True), (10, False)):
        problem = make(HALF, 16, 16 * fractals, 64)
        tiling = make_tiling(problem, baseN=16 * fractals)
        names = [t for t, _ in listing(matmul_launch(problem, tiling, A2))]
        names = [t for t in names if isinstance(t, Mad | PipeBarrier)]
        followed = [isinstance(after, PipeBarrier) for mad, after in pairwise(names)]
        followed = [f for f, mad in zip(followed, names, strict=False) if isinstance(mad, Mad)]
        assert all(followed) if wanted else not any(followed)


# --- order

RACED = [
    make(HALF, 70, 90, 150, bias="float16"),
    make(HALF, 49, 33, 97, trans_a=True, trans_b=True),
    make(INT8, 70, 90, 150, bias="int32"),
    make(INT8, 49, 65, 97, trans_a=True, trans_b=False, bias="int32"),
]
WALKS = {
    "single buffers": "baseK=32",
    "all buffers doubled": (
        "baseK=32 stepKa=2 stepKb=1 depthA1=4 depthB1=2 dbL0A=2 dbL0B=2 dbL0C=2"
    ),
    "L0A doubled only": "baseK=32 dbL0A=2 depthA1=2",
    "L0B doubled only": "baseK=32 dbL0B=2 depthB1=2 dbL0C=2",
    "K whole, several tiles": (
        "baseK=64 stepKa=3 stepKb=3 stepM=2 stepN=2 depthA1=12 depthB1=6 dbL0A=2"
    ),
    "A stays, B streams": "baseK=32 stepKa=5 stepM=5 depthA1=25 depthB1=2",
    "B stays, A streams": "baseK=32 stepKb=5 stepN=6 depthB1=30 depthA1=2",
    "steps that do not nest": "baseK=32 stepKa=3 stepKb=2 depthA1=6 depthB1=4 dbL0C=2",
}


def fields_of(text):
    """Return the fields of a walk's line."""
    return {name: int(value) for name, value in (one.split("=") for one in text.split())}


@cache
def raced_listing(problem, walk, order):
    tiling = make_tiling(problem, **fields_of(WALKS[walk]), iterateOrder=order)
    legal = {f.rule for f in check_tiling(tiling, problem, A2).findings}
    assert legal <= {"MDL-K-STEP-MULTIPLE"}
    return tiling, listing(matmul_launch(problem, tiling, A2))


def raced_id(value):
    """Return a short name of a problem; other values have their own."""
    if isinstance(value, Problem):
        return f"{value.a}-{int(value.trans_a)}{int(value.trans_b)}"
    return None


every_walk = pytest.mark.parametrize("walk", WALKS)
every_order = pytest.mark.parametrize("order", [0, 1])
every_raced = pytest.mark.parametrize("problem", RACED, ids=raced_id)
raced_walks = pytest.mark.parametrize(
    ("problem", "walk", "order"), crossed(RACED, WALKS, (0, 1)), ids=raced_id
)


@raced_walks
@pytest.mark.thinned(3)
def test_flags_order_every_pair_of_conflicting_accesses(problem, walk, order):
    _, program = raced_listing(problem, walk, order)
    HappensBefore(program).require_order()


@raced_walks
@pytest.mark.thinned(3)
def test_without_preload_all_of_k_is_asked_for_where_it_is_needed(problem, walk, order):
    """The same loads and products, in order; only a chunk that holds all of K comes later."""
    tiling, ahead = raced_listing(problem, walk, order)
    late = listing(matmul_launch(problem, tiling, A2, preload=False))
    HappensBefore(late).require_order()

    def work(program):
        return sorted(repr(one) for one in program if isinstance(one[0], Mad | CopyMatrixCcToGm))

    def loads(program):
        return [repr(one) for one in program if isinstance(one[0], CopyGmToCbufMultiNd2Nz)]

    def loads_before_any_product(program):
        return len(loads(program[: [isinstance(t, Mad) for t, _ in program].index(True)]))

    assert work(late) == work(ahead)
    assert sorted(loads(late)) == sorted(loads(ahead))
    less = loads_before_any_product(ahead) - loads_before_any_product(late)
    assert less > 0 if walk == "K whole, several tiles" else less >= 0


@pytest.mark.parametrize("walk", WALKS)
def test_l0_is_drained_at_the_head_of_each_chunk(walk):
    """The same work in the same order, and a flag from M to MTE1 for each chunk of a tile."""
    problem = RACED[0]
    tiling, apart = raced_listing(problem, walk, 0)
    whole = listing(matmul_launch(problem, tiling, A2, drains_l0=True))
    HappensBefore(whole).require_order()

    def work(program):
        return [repr(one) for one in program if not isinstance(one[0], SetFlag | WaitFlag)]

    assert work(whole) == work(apart)
    pairs = [
        template
        for template, _ in whole
        if isinstance(template, SetFlag | WaitFlag)
        if (template.src, template.dst, template.event_id) == ("M", "MTE1", 5)
    ]
    steps = ceil_div(problem.k, tiling.baseK)
    tiles = ceil_div(problem.m, tiling.baseM) * ceil_div(problem.n, tiling.baseN)
    chunks = ceil_div(steps, min(tiling.stepKa, tiling.stepKb))
    assert len(pairs) == 2 * tiles * chunks


def check_order_of_plan(kind, shape):
    problem = make(kind, *shape, cores=2)
    launch = matmul_launch(problem, cubecore.plan(problem).tiling, A2)
    for core in launch.cores:
        HappensBefore(listing(launch, core.core)).require_order()


@pytest.mark.parametrize("kind", strided(KINDS, 5), ids=kind_id)
@pytest.mark.thinned(9)
def test_flags_order_every_access_of_the_plans_tiling(kind):
    check_order_of_plan(kind, (61, 130, 257))
    if kind in in_turn():
        check_order_of_plan(kind, (300, 35, 90))


@pytest.mark.sweep
@every_kind
def test_flags_order_every_access_of_another_plans_tiling(kind):
    check_order_of_plan(kind, (300, 35, 90))


@every_raced
@every_walk
def test_dependent_mads_of_few_fractals_never_follow_without_a_barrier(problem, walk):
    _, program = raced_listing(problem, walk, 1)
    queue = [one for one in program if isinstance(one[0], Mad | PipeBarrier)]
    seen = 0
    for (before, at), (after, then) in pairwise(queue):
        if not isinstance(after, Mad) or not isinstance(before, Mad):
            continue
        fractals = -(-after.m // 16) * -(-after.n // 16)
        if after.accumulates and at[0] == then[0]:
            assert fractals >= 10
        seen += 1
    assert seen or any(isinstance(t, PipeBarrier) for t, _ in queue)


@every_raced
@every_walk
def test_every_flag_is_waited_for_as_often_as_it_is_raised(problem, walk):
    _, program = raced_listing(problem, walk, 1)
    balance = {}
    for template, _ in program:
        if isinstance(template, SetFlag | WaitFlag):
            key = (template.src, template.dst, template.event_id)
            balance[key] = balance.get(key, 0) + (1 if isinstance(template, SetFlag) else -1)
    assert balance
    assert set(balance.values()) == {0}


@raced_walks
@pytest.mark.thinned(3)
def test_c_is_the_same_in_an_order_that_the_flags_allow(problem, walk, order, drawn_seed):
    check_orders(problem, walk, order, [drawn_seed])


@pytest.mark.sweep
@every_raced
@every_walk
@every_order
def test_c_is_the_same_in_more_orders_that_the_flags_allow(problem, walk, order, drawn_seed):
    check_orders(problem, walk, order, range(drawn_seed + 1, drawn_seed + 4))


def check_orders(problem, walk, order, seeds):
    tiling, program = raced_listing(problem, walk, order)
    operands = draw_operands(np.random.default_rng(3), problem)
    wanted = exact(problem, operands)
    launch = matmul_launch(problem, tiling, A2)
    for seed in seeds:
        changed = interleave(program, np.random.default_rng(seed))
        c, findings = replay(launch, problem, changed, operands)
        assert not findings
        assert (c == wanted).all(), f"order {seed} of {brief(tiling)}"


def _without(program, kind, flag, place):
    """Return the program without the `place`-th set or wait of a flag."""
    seen, kept = -1, []
    for one in program:
        template = one[0]
        if isinstance(template, kind) and (template.src, template.dst) == flag:
            seen += 1
            if seen == place:
                continue
        kept.append(one)
    assert seen >= place
    return kept


FLAGS = [
    ("MTE1", "MTE2"),
    ("MTE2", "MTE1"),
    ("M", "MTE1"),
    ("MTE1", "M"),
    ("M", "FIX"),
    ("FIX", "M"),
]


@pytest.mark.parametrize("kind", [SetFlag, WaitFlag])
@pytest.mark.parametrize("flag", FLAGS, ids="-".join)
@every_walk
@pytest.mark.thinned(4)
def test_without_one_flag_the_order_is_broken(flag, kind, walk):
    _, program = raced_listing(RACED[0], walk, 1)
    for place in (5, 8):
        with pytest.raises(OrderError):
            HappensBefore(_without(program, kind, flag, place)).require_order()


@pytest.mark.parametrize("flag", FLAGS, ids="-".join)
def test_with_neither_a_flag_nor_its_waits_something_races(flag):
    """A pair of pipes without flags stays balanced: only the accesses can tell."""
    _, program = raced_listing(RACED[0], "all buffers doubled", 1)
    broken = [
        (template, addresses)
        for template, addresses in program
        if not isinstance(template, SetFlag | WaitFlag) or (template.src, template.dst) != flag
    ]
    with pytest.raises(OrderError):
        HappensBefore(broken).require_order()


def test_a_slot_that_moves_over_its_neighbour_races():
    """L0A's second half read and filled in place of the first: flags alone cannot tell."""
    _, program = raced_listing(RACED[0], "all buffers doubled", 1)
    half = A2.l0a_bytes // 2
    broken = []
    for template, addresses in program:
        moved = [
            address % half if operand.mem is Mem.L0A else address
            for operand, address in zip(template.operands(), addresses, strict=True)
        ]
        broken.append((template, tuple(moved)))
    with pytest.raises(OrderError, match="races"):
        HappensBefore(broken).require_order()


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_transposing_load_of_int8_reads_only_its_own_buffer(side):
    problem = make(INT8, 32, 32, 128, trans_a=side == "a", trans_b=side == "a")
    fields = {"baseM": 32, "baseN": 32, "baseK": 16, f"stepK{side}": 2}
    if side == "a":
        fields |= {"depthA1": 4, "depthB1": 2}
    else:
        fields |= {"depthA1": 2, "depthB1": 4}
    tiling = make_tiling(problem, **fields)
    assert check_tiling(tiling, problem, A2).legal
    HappensBefore(listing(matmul_launch(problem, tiling, A2))).require_order()


# --- what bias costs

WITH_BIAS = {"m": 807, "n": 2403, "k": 257, "a": "int8", "bias": "int32", "cores": 1}


def test_a_bias_costs_little_time():
    plan = cubecore.plan(WITH_BIAS)
    plain = TCubeTiling(**{**plan.tiling.to_json(), "isBias": 0})
    without = cubecore.time({**WITH_BIAS, "bias": None}, tiling=plain).timeline.cycles
    assert cubecore.time(WITH_BIAS, tiling=plan.tiling).timeline.cycles < 1.15 * without


def test_the_prediction_of_a_product_with_bias_is_near_its_time():
    plan = cubecore.plan(WITH_BIAS)
    timed = cubecore.time(WITH_BIAS, tiling=plan.tiling).timeline
    assert plan.predicted.us > 0.75 * timed.us


# --- what the kernel refuses


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"pos_c": "VECIN"}, "pos_c VECIN can be planned but not executed or timed; use GM"),
        ({"hf32": True}, "hf32 must be false without float32 inputs, got true"),
        (
            {"a": "int4", "trans_a": True},
            "trans_a must be false for int4 (asc-devkit, LoadDataWithTranspose: into L0B alone), "
            "got true",
        ),
        (
            {"split_k": True, "c": "float16"},
            "c must be float32 with split_k, got float16; split_k adds up in C",
        ),
    ],
)
def test_what_the_kernel_does_not_carry_is_refused(keys, line):
    problem = Problem(m=16, n=16, k=16, **keys)
    with pytest.raises(cubecore.RequestError) as refused:
        matmul_launch(problem, make_tiling(problem), A2)
    assert str(refused.value) == line


def test_relu_reaches_every_element():
    problem = make(HALF, 33, 17, 20)
    problem = Problem(**{**problem.to_json(), "epilogue": Epilogue(relu=True)})
    ran = check_right(problem)
    assert (ran.c >= 0).all()
    assert (ran.c > 0).any()


# --- mix launches


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]], ids=kind_id)
@pytest.mark.parametrize("clients", strided([5, 1, 2, 40], 2))
def test_two_clients_of_a_mix_launch_share_an_ai_core(kind, clients):
    """usedCoreNum counts AIV clients; clients 2i and 2i + 1 run on AI Core i, one after another."""
    problem = make(kind, 40 * 16, 48, 70, launch="mix")
    tiling = make_tiling(problem, singleCoreM=-(-40 // clients) * 16, usedCoreNum=clients)
    launch = matmul_launch(problem, tiling, A2)
    assert [core.core for core in launch.cores] == list(range(-(-clients // 2)))
    stores = [len(issued(launch, CopyMatrixCcToGm, core.core)) for core in launch.cores]
    alone = matmul_launch(replace(problem, launch="cube"), tiling, A2)
    each = [len(issued(alone, CopyMatrixCcToGm, core.core)) for core in alone.cores]
    assert stores == [sum(each[i : i + 2]) for i in range(0, len(each), 2)]
    assert_right(problem, tiling, draw_operands(np.random.default_rng(clients), problem))


def test_two_clients_take_turns_in_time_too():
    problem = Problem(m=256, n=512, k=1024, cores=2)
    tiling = make_tiling(problem, singleCoreM=128, usedCoreNum=2, baseM=128, baseN=128, baseK=64)
    apart = cubecore.time(problem, tiling=tiling).timeline.groups[0]
    shared = cubecore.time(replace(problem, launch="mix"), tiling=tiling).timeline.groups[0]
    start = A2.start_cycles
    assert shared.cores == (0,)
    assert shared.busy_cycles["FIX"] == 2 * apart.busy_cycles["FIX"]
    # The second client finds B in L2.
    alone = apart.end_cycles - start
    assert 1.3 * alone < shared.end_cycles - start < 2 * alone


def test_clients_of_different_extents_share_l1_one_after_the_other():
    """The second client's buffers lie where the first one's blocks are still being read."""
    problem = make(HALF, 92, 112, 96, trans_b=True, launch="mix", template="NORM")
    shape = {"singleCoreM": 64, "singleCoreN": 64, "baseM": 64, "baseN": 32, "baseK": 16}
    tiling = make_tiling(problem, **shape, depthA1=2, depthB1=2, dbL0A=2)
    assert check_tiling(tiling, problem, A2).legal
    launch = matmul_launch(problem, tiling, A2)
    for core in launch.cores:
        HappensBefore(listing(launch, core.core)).require_order()
