"""Random products with random legal tilings: exact, ordered by flags, nothing found.

The seed changes with every run and is printed; CUBECORE_SEED repeats one.
"""

import os
import time

import numpy as np
import pytest

from cubecore.kernels.matmul.launch import matmul_launch
from harness import A2, listing
from kernels.cases import assert_right, brief, draw_operands, draw_problem, draw_tiling
from kernels.queues import HappensBefore, OrderError, interleave

DEFAULT_SECONDS = 4.0
SWEEP_SECONDS = float(os.environ.get("CUBECORE_SWEEP_SECONDS", "120"))


def first_seed() -> int:
    """Return a new seed for every run, or the one that the environment asks for."""
    given = os.environ.get("CUBECORE_SEED")
    return int(given) if given else time.time_ns() % 2**40


def sweep(seconds: float, largest: int) -> int:
    """Draw, run and judge cases for some seconds; return how many."""
    seed, end, count = first_seed(), time.monotonic() + seconds, 0
    print(f"seed {seed}: repeat a case with CUBECORE_SEED=<its seed>")
    while time.monotonic() < end:
        rng = np.random.default_rng(seed + count)
        problem = draw_problem(rng, largest)
        tiling = draw_tiling(rng, problem)
        where = f"CUBECORE_SEED={seed + count}: {problem}\n{brief(tiling)}"
        try:
            assert_right(problem, tiling, draw_operands(rng, problem))
            launch = matmul_launch(problem, tiling, A2)
            for core in {core.program: core.core for core in launch.cores}.values():
                program = listing(launch, core)
                interleave(program, rng)
                HappensBefore(program).require_order()
        except (AssertionError, OrderError) as error:
            raise AssertionError(where) from error
        count += 1
    return count


def test_random_tilings_of_random_products(capsys):
    with capsys.disabled():
        count = sweep(DEFAULT_SECONDS, largest=150)
    assert count > 10


@pytest.mark.sweep
def test_random_tilings_of_larger_products(capsys):
    with capsys.disabled():
        count = sweep(SWEEP_SECONDS, largest=400)
    assert count > 50
