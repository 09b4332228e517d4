"""Skipping what recurs gives the full walk's answer, to the cycle."""

import random
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecore.errors import DeadlockError, RequestError
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.program.expr import Condition, Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Assign, Branch, Issue, Loop, Program
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.solver.solver import solve
from cubecore.timing.launch import time_launch
from cubecore.timing.records import Timeline
from cubecore.timing.steady_state.loop_body import LoopBody, resets_of
from cubecore.timing.steady_state.loop_guards import CounterPath, ValueRange, _Test
from kernels.cases import draw_problem, draw_tiling
from parts import examples
from timing.clock import (
    A2,
    HALF,
    HERE,
    ROUND,
    WORD,
    assert_adds_up,
    barrier,
    fetch,
    issue,
    load,
    mad,
    raises,
    waits,
)

COUNTED, RING, OTHER = (Var(name, 90 + i) for i, name in enumerate(("n", "ring", "other")))
BASE = Var("base", 99)


def alike(launch: Launch, chip, **keys) -> Timeline:
    """Time a launch both ways; they must agree in everything but what was walked."""
    quick = time_launch(launch, chip, lines=True, **keys)
    full = time_launch(launch, chip, full=True, lines=True, **keys)
    assert full.simulated_fraction == 1
    assert replace(quick, simulated_fraction=1.0) == full
    assert_adds_up(quick)
    return quick


def launch_of(*body, cores: int = 1) -> Launch:
    program = Program(tuple(body), (BASE,))
    made = tuple(CoreProgram(i, program, {BASE: ("t", i << 20)}) for i in range(cores))
    return Launch((TensorSpec("t", cores << 20),), made)


def loop(number: int, trips: int, *body) -> Loop:
    return Loop(Var(f"i{number}", number), Expr(trips), body)


def at(var: Var) -> Expr:
    return Expr.of(var)


def gm(template, offset=0) -> Issue:
    return Issue(template, (Expr(0), at(BASE) + offset), HERE)


# --- matmuls

SHAPES = [
    (512, 512, 4096, {}),
    (2048, 2048, 2048, {"cores": 20}),
    (3000, 2000, 5000, {"cores": 7}),
    (1, 4096, 8192, {}),
    (16, 20000, 768, {"bias": "float32"}),
    (4096, 4096, 500, {"a": "int8", "cores": 3}),
    (700, 900, 20000, {"trans_a": True, "trans_b": True, "cores": 2}),
    (2500, 2500, 2500, {"launch": "mix", "cores": 6}),
    pytest.param(640, 70000, 640, {"cores": 2}, marks=pytest.mark.sweep),
]


@pytest.mark.parametrize(("m", "n", "k", "keys"), SHAPES, ids=str)
@pytest.mark.thinned(4)
def test_products_take_the_same_time_both_ways(m, n, k, keys):
    problem = Problem(chip=A2.name, **{"cores": 4, **keys}, m=m, n=n, k=k)
    tiling = solve(problem, A2, 1).best.tiling
    alike(matmul_launch(problem, tiling, A2), A2)


def changed(rng: np.random.Generator):
    """Return A2 with other costs: who waits for whom changes."""

    def one(*of):
        return of[rng.integers(len(of))]

    return replace(
        A2,
        gm_to_l1_bytes_per_cycle=one(8.0, 60.0, 125.0),
        hbm_bytes_per_second=one(3e10, 2e11, 1.49e12),
        hbm_slack_cycles=one(1, 1000, 20000),
        gm_latency_overlap=one(0.0, 0.5, 1.0),
        pipe_queue_depth=one(4, 9, 32),
        scalar_step_cycles=dict.fromkeys(("MDL", "NORM"), one(0, 57, 450, 1500)),
        l0c_to_gm_bytes_per_cycle=one(5.0, 80.0),
        l2_bytes=one(1 << 18, 1 << 27),
    )


def compare_random(seed: int) -> float:
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, 600)
    tiling, chip = draw_tiling(rng, problem), changed(rng)
    return alike(matmul_launch(problem, tiling, chip), chip).simulated_fraction


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.thinned(12)
def test_random_tilings_on_random_chips(seed):
    compare_random(seed)


@pytest.mark.sweep
def test_many_random_tilings():
    seed = random.SystemRandom().randrange(10**9)
    for offset in range(600):
        print("seed", seed + offset)
        compare_random(seed + offset)


def far_rows(rng: np.random.Generator):
    """Return a problem whose rows lie further apart than an instruction can say, and a tiling."""
    while True:
        extent = {"nk"[rng.integers(2)]: 65_536 + 32 * int(rng.integers(1, 46))}
        try:
            problem = replace(draw_problem(rng, 300), **extent, batch=1, cores=20)
            return problem, solve(problem, problem.chip_record, 1).best.tiling
        except RequestError:  # a format or a vector of scales that wants another extent
            continue


@pytest.mark.sweep
def test_many_products_whose_rows_are_loaded_one_by_one():
    """Rows too far apart for one instruction, ragged edges, every template and kind of type."""
    seed = random.SystemRandom().randrange(10**9)
    for offset in range(60):
        print("seed", seed + offset)
        rng = np.random.default_rng(seed + offset)
        (problem, tiling), chip = far_rows(rng), changed(rng)
        alike(matmul_launch(problem, tiling, chip), chip)


def test_a_large_product_is_hardly_walked():
    problem = Problem(chip=A2.name, cores=20, m=65535, n=65535, k=65535)
    tiling = solve(problem, A2, 1).best.tiling
    timeline = time_launch(matmul_launch(problem, tiling, A2), A2)
    assert timeline.issued > 10**9
    assert timeline.simulated_fraction < 1e-3
    cube = 65535**3 / 4096 / 20
    assert cube < timeline.cycles < 20 * cube


def test_what_is_recorded_is_walked_first():
    problem = Problem(chip=A2.name, cores=4, m=512, n=512, k=8192)
    launch = matmul_launch(problem, solve(problem, A2, 1).best.tiling, A2)
    timeline = alike(launch, A2, record=300)
    assert len(timeline.groups[0].segments) == 300
    assert timeline.simulated_fraction < 1


# --- trees of all kinds

PRODUCT = mad(160), load(8)
TRANSFER = CopyMatrixCcToGm(
    src_type=WORD, n_size=16, m_size=16, dst_stride=16, src_stride=16, nz2nd_en=True
)


CHASED = replace(mad(160), unit_flag=3)
CHASING = replace(TRANSFER, unit_flag=3)


def flat(lists) -> tuple:
    return tuple(chain.from_iterable(lists))


def leaves(index: Expr):
    """Strategies for short bodies: what they raise they await."""
    vadd = instruction_named("vadd")(dtype=HALF, repeat=3)
    plain = st.sampled_from([*PRODUCT, vadd, ScalarWork(step="BASIC"), barrier("M"), barrier()])
    flagged = st.tuples(
        st.sampled_from([("MTE1", "M"), ("MTE2", "MTE1"), ("M", "FIX"), ("M", "MTE1"), ("V", "S")]),
        st.integers(0, 1),
    ).map(lambda f: [issue(raises(*f[0], f[1])), issue(waits(*f[0], f[1]))])
    memory = st.sampled_from(
        [
            gm(fetch(64)),
            gm(fetch(16), index * 512),
            gm(fetch(2048), index * 65536 + at(COUNTED) * 512),
            Issue(TRANSFER, (at(BASE) + index * 1024, Expr(0)), HERE),
            Issue(CHASING, (at(BASE) + index * 1024, at(RING) * 1024), HERE),
            Issue(CHASED, (at(RING) * 1024, Expr(0), Expr(0)), HERE),
        ]
    )
    scalars = st.sampled_from(
        [
            [Assign(COUNTED, at(COUNTED) + 1)],
            [Assign(COUNTED, at(COUNTED) - 3)],
            [Assign(RING, (at(RING) + 1) % 3)],
            [Assign(OTHER, index % 4 + at(RING))],
            [Assign(COUNTED, Expr(0))],
            [Assign(OTHER, at(COUNTED) * 2)],
        ]
    )
    conditions = st.sampled_from(
        [
            Condition.of(at(COUNTED), ">=", 7),
            Condition.of(at(COUNTED), "==", 11),
            Condition.of(at(COUNTED) + index, "<", 9),
            Condition.of(index, "==", 0),
            Condition.of(index % 3, "==", 1),
            Condition.of(index % 40, "!=", 39),
            Condition.of((at(COUNTED) + 2) % 5, "<=", 1),
            Condition.of(at(RING), ">", 0),
            Condition.of(at(OTHER), "==", 2),
            Condition.of(at(COUNTED).minimum(4), "==", 4),
            Condition.of(index // 8, "==", 2),
        ]
    )
    simple = st.one_of(plain.map(lambda t: [issue(t)]), flagged, memory.map(lambda i: [i]), scalars)
    branch = st.tuples(conditions, st.lists(simple, max_size=3), st.lists(simple, max_size=2))
    return st.one_of(simple, branch.map(lambda b: [Branch(b[0], flat(b[1]), flat(b[2]))]))


@st.composite
def trees(draw, depth: int = 3, number: int = 0):
    """Return nodes: leaves, and a loop of the same."""
    index = at(Var(f"i{number}", number))
    body = [*flat(draw(st.lists(leaves(index), min_size=1, max_size=6)))]
    if depth > 1 and draw(st.booleans()):
        body += draw(trees(depth - 1, number + 1))
    trips = draw(st.sampled_from([2, 7, 30, 150] if depth == 3 else [1, 3, 9, 25]))
    return [loop(number, trips, *body)]


START = tuple(Assign(var, Expr(0)) for var in (COUNTED, RING, OTHER))
CHIPS = [
    replace(ROUND, scalar_step_cycles={"BASIC": 20}, vector_head_cycles=5, vector_repeat_cycles=2),
    replace(
        ROUND,
        scalar_step_cycles={"BASIC": 3},
        vector_head_cycles=5,
        vector_repeat_cycles=2,
        pipe_queue_depth=5,
        hbm_slack_cycles=5000,
        gm_latency_overlap=0.5,
    ),
]


def compare_tree(nodes, chip, cores=2) -> None:
    launch = launch_of(*START, *nodes, cores=cores)
    try:
        time_launch(launch, chip, full=True)
    except DeadlockError as error:
        wanted = str(error)
    else:
        alike(launch, chip)
        return
    with pytest.raises(DeadlockError) as caught:
        time_launch(launch, chip)
    assert str(caught.value) == wanted


def test_how_long_a_pipe_that_loads_was_idle_is_part_of_the_state():
    """The last data of the first trips came later than those of the rest."""
    products = loop(1, 1, issue(mad(160)), issue(mad(160)), issue(barrier("M")))
    compare_tree([loop(0, 30, gm(fetch(64)), products)], CHIPS[0])


@examples(250)
@given(trees(), st.sampled_from(CHIPS))
def test_random_trees(nodes, chip):
    compare_tree(nodes, chip)


@pytest.mark.sweep
@settings(max_examples=10_000)
@given(trees(), st.sampled_from(CHIPS))
def test_many_random_trees(nodes, chip):
    compare_tree(nodes, chip)


STEP = issue(load()), issue(raises("MTE1", "M")), issue(waits("MTE1", "M")), issue(mad(160))


def test_a_plain_loop_is_walked_a_few_times():
    timeline = alike(launch_of(loop(0, 10_000, *STEP)), ROUND)
    assert timeline.issued == 40_000
    assert timeline.simulated_fraction < 0.01


def test_loops_in_loops_are_skipped_at_every_level():
    timeline = alike(launch_of(loop(0, 300, loop(1, 300, *STEP), issue(mad()))), ROUND)
    assert timeline.simulated_fraction < 0.01


def test_a_loop_that_is_entered_again_is_not_walked_again():
    """The outer trips never recur, each being a product longer, but the inner loop's do."""
    inner = loop(1, 90, *STEP, *STEP)
    products = Loop(Var("j", 2), at(Var("i0", 0)) + 1, (issue(mad(160)), issue(barrier("M"))))
    body = loop(0, 30, issue(barrier()), inner, products)
    timeline = alike(launch_of(body), ROUND)
    alone = alike(launch_of(issue(barrier()), inner), ROUND)
    walked = timeline.issued * timeline.simulated_fraction - 2 * sum(range(1, 31))
    assert alone.simulated_fraction * alone.issued > 20
    assert walked < 30 * 0.7 * alone.simulated_fraction * alone.issued


def test_a_counter_that_decides_ends_the_period():
    """The seventieth trip does something else: it is walked, the others recur."""
    count = Assign(COUNTED, at(COUNTED) + 1)
    other = Branch(Condition.of(at(COUNTED), "==", 70), (issue(mad(1600)),))
    with_it = alike(launch_of(*START, loop(0, 1000, *STEP, count, other)), ROUND)
    without = alike(launch_of(*START, loop(0, 1000, *STEP, count)), ROUND)
    assert with_it.issued == without.issued + 1
    assert with_it.cycles > without.cycles
    assert with_it.simulated_fraction < 0.1


def test_a_program_that_never_recurs_is_walked():
    """Each trip's inner loop is longer than the one before."""
    inner = Loop(Var("j", 1), at(Var("i0", 0)) + 1, STEP)
    timeline = alike(launch_of(loop(0, 40, inner, issue(barrier()))), ROUND)
    assert timeline.issued == 40 + 4 * sum(range(1, 41))


def test_a_flag_that_nobody_awaits_piles_up():
    timeline = alike(launch_of(loop(0, 500, *STEP, issue(raises("M", "V")))), ROUND)
    assert timeline.simulated_fraction == 1


# --- the way through a program


INDEX = Var("i0", 0)
CONDITIONS = [
    Condition.of(at(COUNTED), ">=", 7),
    Condition.of(at(COUNTED) + at(INDEX), "<", 9),
    Condition.of(at(INDEX) % 3, "==", 1),
    Condition.of((at(COUNTED) + 2) % 5, "<=", 1),
    Condition.of(at(RING), "==", 4),
    Condition.of(at(OTHER), "==", 2),
]
SCALARS = [
    Assign(COUNTED, at(COUNTED) + 1),
    Assign(COUNTED, at(COUNTED) - 3),
    Assign(COUNTED, Expr(0)),
    Assign(RING, at(RING) + 1),
    Assign(RING, Expr(0)),
    Assign(OTHER, (at(OTHER) + 1) % 3),
    Assign(OTHER, at(RING) % 2),
]


def taken(body, values, trips, turning=()) -> list:
    """Run `trips` trips of scalar nodes on `values`; return what was decided on the way.

    The nodes that turn a counter back are counted.
    """
    told: list = []

    def run(nodes):
        for node in nodes:
            if isinstance(node, Assign):
                values[node.target] = node.value.at(values)
                if node in turning:
                    values[resets_of(node.target)] += 1
                continue
            left, right = (x.at(values) for x in (node.condition.left, node.condition.right))
            told.append(eval(f"{left}{node.condition.comparison}{right}"))
            run(node.then if told[-1] else node.otherwise)

    for _ in range(trips):
        run(body)
        values[INDEX] += 1
    return told


@st.composite
def scalar_bodies(draw):
    sides = st.lists(st.sampled_from(SCALARS), max_size=2).map(tuple)
    inner = st.builds(Branch, st.sampled_from(CONDITIONS), sides, sides)
    branch = st.builds(
        Branch, st.sampled_from(CONDITIONS), st.tuples(st.sampled_from(SCALARS), inner), sides
    )
    body = draw(st.lists(st.one_of(st.sampled_from(SCALARS), inner, branch), min_size=2))
    return (*body, Branch(Condition.of(at(COUNTED) + at(RING) + at(OTHER), "<", -99), ()))


@examples(400)
@given(scalar_bodies(), st.integers(1, 9), st.data())
def test_a_stretch_that_is_said_to_follow_takes_the_same_way(body, trips, data):
    """Against running it from both places: what is decided, what then holds, what was counted."""
    found = LoopBody.of(Loop(INDEX, Expr(99), (*body, *STEP)))
    small = st.integers(0, 6)
    first = {v: data.draw(small) for v in (COUNTED, RING, OTHER, INDEX)}
    later = {v: first[v] + data.draw(st.sampled_from([0, 0, 1, 3, 5])) for v in first}
    counters = (INDEX, *found.counters)
    later |= {v: first[v] for v in first if v not in counters}
    for values in (first, later):
        values.update(dict.fromkeys(set(counters) - set(values), 0))
    begin, now = dict(first), dict(later)
    known, then = (taken(body, values, trips, found.resets) for values in (first, later))
    places = [[values[v] for v in found.counters] for values in (begin, first, now)]
    paths = [CounterPath.once(begin[v], first[v], now[v]) for v in counters]
    told = [now[v] for v in found.given]
    if not found.was_reset(*places) and found.guards.periods(paths, told, 1):
        assert then == known
        for v, value in begin.items():
            assert later[v] == first[v] + (now[v] - value if v in counters else 0)


def test_a_wheel_that_turns_elsewhere_is_no_other_way():
    """A slower wheel stands one further on: nothing turns it in the stretch, so it follows."""
    slow = Branch(Condition.of(at(RING), ">=", 5), (Assign(RING, Expr(0)),))
    carry = (Assign(COUNTED, Expr(0)), Assign(RING, at(RING) + 1), slow)
    moduli = (
        Assign(COUNTED, at(COUNTED) + 1),
        Branch(Condition.of(at(COUNTED), ">=", 4), carry),
    )
    found = LoopBody.of(Loop(INDEX, Expr(99), (*moduli, *STEP)))

    def follows(places):
        counters = INDEX, *found.counters
        paths = [CounterPath.once(*places.get(v, (0, 0, 0))) for v in counters]
        return bool(found.guards.periods(paths, [0] * len(found.given), 1))

    assert follows({COUNTED: (0, 2, 0), RING: (1, 1, 2)})
    assert follows({COUNTED: (2, 0, 2), RING: (1, 2, 2)})  # it turns in both
    assert not follows({COUNTED: (2, 0, 2), RING: (1, 2, 4)})  # and wraps in one of them
    assert not follows({COUNTED: (0, 2, 2), RING: (1, 1, 1)})  # the fast one would wrap


@pytest.mark.parametrize("down", [False, True])
def test_a_wheel_may_turn_between_two_looks(down):
    """The state is looked at every few trips; a wheel then stands further on, one turn or none."""
    one, index = (-1 if down else 1), Var("i0", 0)
    work = Issue(ScalarWork(step="BASIC"), (), HERE)
    for modulus in range(2, 12):
        over = Condition.of(at(COUNTED) * one, ">=", modulus)
        for stride in range(3, 9):
            body = (
                work,
                Assign(COUNTED, at(COUNTED) + one),
                Branch(over, (Assign(COUNTED, Expr(0)), issue(mad(160)))),
                Branch(Condition.of(at(index) % stride, "==", 0), (issue(mad(160)),)),
            )
            alike(launch_of(Assign(COUNTED, Expr(0)), Loop(index, Expr(60), body)), A2)


@pytest.mark.parametrize("comparison", ["<", "<=", "==", "!=", ">=", ">"])
@pytest.mark.thinned(2)
def test_a_condition_is_constant_as_long_as_it_says_exhaustively(comparison):
    """Against trying every value of every period."""
    for low in range(-6, 7):
        for high in range(low, 7):
            for down, up in ((0, 0), (0, 1), (0, 3), (-1, 0), (-2, 2)):
                taken, periods = _Test.of(comparison).outcome(low, high, down, up, 9)
                assert 0 <= periods <= 9

                def outcomes(number, low=low, high=high, down=down, up=up):
                    values = range(low + number * down, high + number * up + 1)
                    return {eval(f"{d}{comparison}0") for d in values}

                if len(outcomes(0)) > 1:
                    assert periods == 0
                    continue
                longest = next((t for t in range(1, 10) if len(outcomes(t)) > 1), 10) - 1
                if comparison in {"==", "!="} and low == high == 0:
                    assert periods == 0
                else:
                    assert periods == longest
                    assert outcomes(periods) == {taken}


def test_remainders_that_do_not_wrap_exhaustively():
    for divisor in (1, 2, 5):
        for low in range(-6, 7):
            for high in range(low, low + 5):
                for down, up in ((0, 0), (0, 1), (-1, 0), (-2, 3)):
                    found = ValueRange(low, high, down, up, 50).within(divisor)
                    whole = {value // divisor for value in range(low, high + 1)}
                    if len(whole) > 1:
                        assert found is None
                        continue
                    assert found is not None
                    assert (found.low, found.high) == (low % divisor, high % divisor)
                    spans = [
                        range(low + t * down, high + t * up + 1) for t in range(found.most + 1)
                    ]
                    assert all({v // divisor for v in span} == whole for span in spans[:20])
                    if found.most < 50:
                        t = found.most + 1
                        after = range(low + t * down, high + t * up + 1)
                        assert {v // divisor for v in after} != whole
