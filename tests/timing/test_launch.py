"""Launches: groups of cores, determinism, what may never be faster, and what nobody knows."""

import tracemalloc
from dataclasses import fields, replace

import pytest

from cubecore.chips.costs import peak_ops_per_cycle
from cubecore.errors import RequestError
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.mte.copies import CopyGmToUbuf, CopyUbufToGm
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Issue, Loop, Program
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.solver.solver import solve
from cubecore.timing.launch import time_launch
from timing.clock import A2, HERE, ROUND, WORD, barrier, fetch, issue, load, mad, raises, waits

SLOT = Var("a", 0)
INSIDE = (load(), raises("MTE1", "M"), waits("MTE1", "M"), mad(160), mad(), barrier("M"), mad())


def launch(*body, distances=(0,), sizes=(1 << 16,)) -> Launch:
    """Cores that run one tree; each one's slot lies a distance into the first tensor."""
    tensors = tuple(TensorSpec(f"t{i}", size) for i, size in enumerate(sizes))
    program = Program(tuple(body), (SLOT,))
    cores = [CoreProgram(i, program, {SLOT: ("t0", d)}) for i, d in enumerate(distances)]
    return Launch(tensors, tuple(cores))


def flat(*templates):
    return tuple(issue(template) for template in templates)


def gm(template, dst=0, offset=0) -> Issue:
    return Issue(template, (Expr(dst), Expr.of(SLOT) + offset), HERE)


def test_start_and_launch_are_added():
    timeline = time_launch(launch(*flat(mad())), ROUND)
    assert timeline.cycles == 100 + 61 + 1000
    assert timeline.us == 1.161
    assert timeline.limited_by == "start-up"


@pytest.mark.parametrize("cores", [2, 3, 20])
def test_cores_that_share_nothing_take_the_time_of_one(cores):
    alone = time_launch(launch(*flat(*INSIDE)), ROUND)
    together = time_launch(launch(*flat(*INSIDE), distances=range(0, cores * 512, 512)), ROUND)
    assert together.cycles == alone.cycles
    assert together.pipes == alone.pipes
    assert together.stalls == alone.stalls
    assert together.issued == cores * alone.issued == cores * len(INSIDE)


def test_cores_that_read_one_block_take_the_time_of_one():
    body = gm(fetch()), *flat(raises("MTE2", "MTE1"), waits("MTE2", "MTE1"), load())
    alone = time_launch(launch(*body), ROUND)
    together = time_launch(launch(*body, distances=[0] * 8), ROUND)
    assert together.cycles == alone.cycles
    assert together.hbm_read_bytes == alone.hbm_read_bytes == 512
    assert together.read_bytes == 8 * alone.read_bytes == 8 * 512


def test_cores_that_read_blocks_of_their_own_share_device_memory():
    """8 blocks of 512 KiB over one server of 32 B a cycle."""
    big = fetch(16384)
    sizes = (8 << 19,)
    alone = time_launch(launch(gm(big), sizes=sizes), ROUND)
    apart = launch(gm(big), distances=range(0, 8 << 19, 1 << 19), sizes=sizes)
    together = time_launch(apart, ROUND)
    assert alone.hbm_read_bytes * 8 == together.hbm_read_bytes == 8 << 19
    assert alone.cycles == 1000 + 101 + (1 << 19) // 32
    assert together.cycles == 1000 + 101 + 8 * (1 << 19) // 32


def test_groups_divide_device_memory_by_what_they_miss():
    """One misses three times as much: it has three quarters of the 32 B a cycle.

    The other has its turn: of two cores each is served half of the time if it asks for it.
    """
    big, small = (Program((gm(fetch(size)),), (SLOT,), str(size)) for size in (49152, 16384))
    ends = []
    for order in ((big, small), (small, big)):
        cores = [CoreProgram(i, p, {SLOT: ("t0", (p is big) << 21)}) for i, p in enumerate(order)]
        timeline = time_launch(Launch((TensorSpec("t0", 1 << 23),), tuple(cores)), ROUND)
        ends.append({g.program: g.end_cycles for g in timeline.groups})
        assert [g.cores for g in timeline.groups] == [(0,), (1,)]
    assert ends[0] == ends[1]
    assert ends[0] == {"49152": 101 + (1 << 16), "16384": 101 + (1 << 15)}


@pytest.mark.parametrize("columns", [16, 32, 240])
def test_a_small_last_core_does_not_end_last(columns):
    """Device memory serves every core in turn: who asks for little is done no later."""
    p = Problem(m=128, n=17 * 240 + columns, k=4096)
    tiling = replace(
        solve(p, A2).best.tiling,
        singleCoreM=128,
        singleCoreN=240,
        baseM=128,
        baseN=240,
        baseK=64,
        usedCoreNum=18,
        depthA1=8,
        stepKa=4,
        depthB1=4,
        stepKb=2,
        dbL0C=1,
    )
    line = time_launch(matmul_launch(p, tiling, A2), A2)
    ends = {group.cores[-1]: group.end_cycles for group in line.groups}
    assert ends[17] == max(ends.values()) if columns == 240 else ends[17] < max(ends.values())


def test_groups_share_what_both_read():
    """Two trees that read one block bring it in once, and each pays half."""
    one, other = (Program((gm(fetch(16384)),), (SLOT,), name) for name in "ab")
    cores = tuple(CoreProgram(i, p, {SLOT: ("t0", 0)}) for i, p in enumerate((one, other)))
    timeline = time_launch(Launch((TensorSpec("t0", 1 << 20),), cores), ROUND)
    assert timeline.hbm_read_bytes == 1 << 19
    assert {g.end_cycles for g in timeline.groups} == {101 + (1 << 14)}


def test_tensors_lie_apart():
    """The same offset of two tensors is not one block."""
    two = (Var("a", 0), Var("b", 1))
    body = tuple(Issue(fetch(), (Expr(0), Expr.of(var)), HERE) for var in two)
    program = Program(body, two)
    core = CoreProgram(0, program, {two[0]: ("a", 0), two[1]: ("b", 0)})
    for size in (512, 4096, 4097, 1 << 20):
        timeline = time_launch(
            Launch((TensorSpec("a", size), TensorSpec("b", 512)), (core,)), ROUND
        )
        assert timeline.hbm_read_bytes == 1024


def test_issued_counts_every_trip():
    index, inner = Var("i", 1), Var("j", 2)
    body = Loop(
        index, Expr(7), (*flat(mad()), Loop(inner, Expr.of(index), flat(load(), barrier())))
    )
    timeline = time_launch(launch(body), ROUND)
    assert timeline.issued == 7 + 2 * sum(range(7))


# --- a matmul


def product(m=512, k=512, n=512, on=A2, cores=4, **keys):
    problem = Problem(chip=on.name, cores=cores, m=m, k=k, n=n, **keys)
    tiling = solve(problem, A2, 1).best.tiling
    return problem, matmul_launch(problem, tiling, on)


@pytest.fixture(scope="module")
def matmul():
    return product()[1]


def test_the_same_launch_takes_the_same_time_twice(matmul):
    first, second = time_launch(matmul, A2), time_launch(matmul, A2)
    assert first == second
    again = time_launch(product()[1], A2)
    assert again.to_json() == first.to_json()


def test_issued_is_what_a_listing_has(matmul):
    bases = {t.name: i << 40 for i, t in enumerate(matmul.tensors, 1)}
    counts = [len(list(c.program.listing(c.addresses(bases)))) for c in matmul.cores]
    assert time_launch(matmul, A2).issued == sum(counts)


def test_pipes_and_stalls_stay_inside_the_time(matmul):
    timeline = time_launch(matmul, A2)
    for name, cycles in timeline.pipes.items():
        waited = sum(stall.cycles for stall in timeline.stalls if stall.pipe == name)
        assert 0 <= cycles <= timeline.cycles
        assert cycles + waited <= timeline.cycles
    assert timeline.pipes["M"] >= 512**3 / (4 * 16**3)
    assert all(stall.cycles > 0 for stall in timeline.stalls)
    assert [s.cycles for s in timeline.stalls] == sorted(
        (s.cycles for s in timeline.stalls), reverse=True
    )
    assert timeline.read_bytes >= timeline.hbm_read_bytes >= 2 * 512 * 512 * 2
    assert timeline.written_bytes == 512 * 512 * 4


def test_tflops_and_utilisation(matmul):
    operations = 2 * 512**3
    peak = peak_ops_per_cycle(A2, Problem(m=1, n=1, k=1).a_type)
    timeline = time_launch(matmul, A2, operations=operations, peak=peak)
    assert timeline.us == pytest.approx(timeline.cycles / 1800)
    assert timeline.tflops == pytest.approx(operations / timeline.us / 1e6)
    assert timeline.utilisation == pytest.approx(operations / timeline.cycles / (20 * 2 * 4096))


SLOWER = {
    **dict.fromkeys(("l1_to_l0a_bytes_per_cycle", "l1_to_l0b_bytes_per_cycle"), 0.5),
    **dict.fromkeys(("hbm_bytes_per_second", "gm_to_l1_bytes_per_cycle"), 0.5),
    **dict.fromkeys(("l0c_to_gm_bytes_per_cycle", "l2_bytes"), 0.5),
    **dict.fromkeys(("hbm_latency_cycles", "l2_latency_cycles", "hbm_row_bytes"), 2),
    **dict.fromkeys(("gm_to_l1_transfer_cycles", "gm_to_l1_row_cycles"), 2),
    **dict.fromkeys(("l0c_to_gm_row_cycles", "l0c_to_gm_head_cycles"), 2),
    **dict.fromkeys(("mad_head_cycles", "mad_queued_cycles"), 2),
    **dict.fromkeys(("l1_to_l0_head_cycles", "l1_to_l0_queued_cycles"), 2),
    **dict.fromkeys(("scalar_issue_cycles", "start_cycles", "launch_cycles"), 2),
}


@pytest.mark.parametrize("name", SLOWER)
@pytest.mark.parametrize("shape", [(512, 512, 512), (300, 1000, 200)], ids=str)
@pytest.mark.thinned(4)
def test_a_slower_chip_is_never_faster(name, shape):
    m, k, n = shape
    launch_of = product(m=m, k=k, n=n)[1]
    # A miss at its own rate takes as long over any faster link, but for the rounding.
    apart = replace(A2, gm_miss_bytes_per_cycle=None)
    slower = replace(apart, **{name: type(getattr(A2, name))(getattr(A2, name) * SLOWER[name])})
    assert getattr(slower, name) != getattr(A2, name)
    assert time_launch(launch_of, slower).cycles >= time_launch(launch_of, apart).cycles


def test_a_slower_cube_is_never_faster(matmul):
    half = replace(A2, cube_k={**A2.cube_k, "float16": 8})
    assert time_launch(matmul, half).cycles > time_launch(matmul, A2).cycles


def test_no_list_of_issues_is_made():
    """4096^3: about 200 thousand issues by each group of cores, in a few MB."""
    _, launch_of = product(4096, 4096, 4096, cores=20)
    tracemalloc.start()
    try:
        timeline = time_launch(launch_of, A2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert timeline.issued > 100_000
    assert peak < 50_000_000


def test_a_longer_program_needs_no_more_memory():
    index = Var("i", 1)
    peaks = []
    for trips in (100, 50_000):
        body = Loop(
            index, Expr(trips), flat(load(), raises("MTE1", "M"), waits("MTE1", "M"), mad())
        )
        tracemalloc.start()
        try:
            time_launch(launch(body), ROUND)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000


# --- constants that nobody knows

COSTS = [f.name for f in fields(A2) if f.metadata.get("cost")]
VECTOR_COSTS = (
    *("vector_head_cycles", "vector_repeat_cycles", "gm_to_ub_bytes_per_cycle"),
    *("gm_to_ub_transfer_cycles", "ub_to_gm_bytes_per_cycle"),
)
TABLES = ("gm_to_l1_misaligned_block_cycles", "scalar_step_cycles")


def vector_launch() -> Launch:
    vadd = Issue(instruction_named("vadd")(dtype=WORD), (Expr(0),) * 3, HERE)
    runs = {"n_burst": 1, "len_burst": 8}
    into = Issue(CopyGmToUbuf(**runs), (Expr(0), Expr.of(SLOT)), HERE)
    out = Issue(CopyUbufToGm(**runs), (Expr.of(SLOT), Expr(0)), HERE)
    return launch(into, vadd, out)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.thinned(4)
def test_a_cost_that_nobody_knows_is_refused(name):
    launch_of = vector_launch() if name in VECTOR_COSTS else product(bias="float32")[1]
    with pytest.raises(RequestError) as caught:
        time_launch(launch_of, replace(A2, **{name: None}))
    remedy = "" if name in TABLES else f"; give one with --set {name}=VALUE"
    assert str(caught.value) == (
        f"Ascend910B3.{name} must be known for timing, got no published value{remedy}"
    )


def test_a_clock_that_nobody_knows_is_refused(matmul):
    with pytest.raises(RequestError) as caught:
        time_launch(matmul, replace(A2, frequency_hz=None))
    assert str(caught.value) == (
        "Ascend910B3.frequency_hz must be known for timing, got no published value; "
        "give one with --set frequency_hz=VALUE"
    )


def test_a_broken_template_is_refused_before_it_is_timed():
    with pytest.raises(RequestError) as caught:
        time_launch(launch(*flat(mad(5000))), ROUND)
    assert str(caught.value) == "mad.k must be in [0, 4095], got 5000"


# --- segments


def test_the_first_instructions_can_be_kept():
    timeline = time_launch(launch(*flat(*INSIDE)), ROUND, record=3)
    (group,) = timeline.groups
    assert [(s.pipe, s.name, s.start, s.end) for s in group.segments] == [
        ("MTE1", "load_cbuf_to_ca", 101, 139),
        ("M", "mad", 139, 208),
        ("M", "mad", 208, 218),
    ]
    assert time_launch(launch(*flat(*INSIDE)), ROUND).groups[0].segments == ()
