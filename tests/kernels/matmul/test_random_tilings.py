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

CASES, SWEEP_CASES = 30, int(os.environ.get("CUBECORE_SWEEP_CASES", "600"))


def first_seed() -> int:
    """Return a new seed for every run, or the one that the environment asks for."""
    given = os.environ.get("CUBECORE_SEED")
    return int(given) if given else time.time_ns() % 2**40


def sweep(cases: int, largest: int) -> None:
    """Draw, run and judge `cases` products of up to `largest` in each extent."""
    seed = first_seed()
    print(f"seed {seed}: repeat a case with CUBECORE_SEED=<its seed>")
    for count in range(cases):
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


def test_random_tilings_of_random_products(capsys):
    with capsys.disabled():
        sweep(CASES, largest=150)


@pytest.mark.sweep
def test_random_tilings_of_larger_products(capsys):
    with capsys.disabled():
        sweep(SWEEP_CASES, largest=400)
