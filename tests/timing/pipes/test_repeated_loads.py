"""A run of equal loads is worked out at once: the same as one by one, to the cycle."""

import random
from dataclasses import replace

import pytest

from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Issue, Loop, Program
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.timing.launch import time_launch
from timing.clock import HERE, ROUND, fetch, issue, load, mad, raises, waits

BASE = Var("base", 99)


def timed(body, chip, *, full=False):
    """Time a body on one core."""
    program = Program(tuple(body), (BASE,))
    launch = Launch((TensorSpec("t", 1 << 30),), (CoreProgram(0, program, {BASE: ("t", 0)}),))
    return time_launch(launch, chip, full=full)


def run_of(number: int, trips: int, blocks: int) -> Loop:
    """Return a loop of loads: each of new blocks, as a copy takes its rows."""
    index = Var(f"row{number}", number)
    place = Expr.of(BASE) + Expr.of(index) * 32 * blocks
    return Loop(index, Expr(trips), (Issue(fetch(blocks), (Expr(0), place), HERE),))


@pytest.mark.parametrize(
    ("of_memory", "cycles"),
    [
        # 10 cycles and 64 blocks of 32 B at 64 B a cycle; memory serves 2,048 B in 2 cycles.
        ({"hbm_bytes_per_second": 1_024_000_000_000}, 42),
        # Memory serves 2,048 B in 64 cycles: longer than MTE2 takes to ask.
        ({"hbm_bytes_per_second": 32_000_000_000}, 64),
        # The same, and it may work ahead for long: MTE2 is slower until it has caught up.
        ({"hbm_bytes_per_second": 32_000_000_000, "hbm_slack_cycles": 20_000}, 64),
    ],
    ids=["pipe", "memory", "ahead"],
)
def test_a_billion_loads_take_the_pace_of_the_slowest(of_memory, cycles):
    chip = replace(ROUND, l2_bytes=1, **of_memory)
    few, many = (timed([run_of(0, n, 64)], chip).cycles for n in (10_000, 10**9))
    assert many - few == (10**9 - 10_000) * cycles


def drawn(rng: random.Random):
    """Return a chip and a body with runs of loads, and what waits for them or is waited for."""
    chip = replace(
        ROUND,
        pipe_queue_depth=rng.choice((3, 8, 32)),
        hbm_slack_cycles=rng.choice((0, 70, 20_000)),
        hbm_bytes_per_second=rng.choice((10**9, 32 * 10**9, 60 * 10**9, 10**12)),
        hbm_latency_cycles=rng.choice((25, 1000)),
        gm_latency_overlap=rng.choice((0.0, 0.5, 1.0)),
        gm_to_l1_bytes_per_cycle=rng.choice((8.0, 64.0)),
        gm_to_l1_transfer_cycles=rng.choice((0, 10)),
        scalar_issue_cycles=rng.choice((1, 7, 40)),
        l1_to_l0_contention=rng.choice((0.0, 0.3)),
        l2_bytes=rng.choice((1, 1 << 14, 1 << 24)),
    )
    body: list = []
    for number in range(rng.randrange(1, 5)):
        flags = [("MTE2", "MTE1", number), ("MTE1", "MTE2", number)]
        body += [
            rng.choice((issue(load()), issue(mad(160)), issue(ScalarWork(step="BASIC")))),
            *([issue(raises(*flags[1])), issue(waits(*flags[1]))] * rng.randrange(3)),
            run_of(number, rng.choice((1, 2, 3, 5, 31, 32, 33, 36, 200)), rng.choice((1, 16, 200))),
            issue(raises(*flags[0])),
            issue(waits(*flags[0])),
            issue(load(rng.choice((1, 60)))),
        ]
    if rng.random() < 0.7:
        body = [Loop(Var("turn", 50), Expr(rng.choice((4, 90))), tuple(body))]
    return chip, body


def require_alike(seed: int) -> None:
    chip, body = drawn(random.Random(seed))
    quick, full = timed(body, chip), timed(body, chip, full=True)
    assert full.simulated_fraction == 1
    assert replace(quick, simulated_fraction=1.0) == full


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.thinned(4)
def test_runs_of_loads_are_timed_as_one_by_one(seed):
    require_alike(seed)


@pytest.mark.sweep
def test_many_runs_of_loads_are_timed_as_one_by_one():
    seed = random.SystemRandom().randrange(10**9)
    for offset in range(4000):
        print("seed", seed + offset)
        require_alike(seed + offset)
