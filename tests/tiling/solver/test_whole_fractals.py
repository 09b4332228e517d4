"""Searches for M's whole fractals: problems that end in the same one share tilings."""

from dataclasses import replace

import pytest

from cubecore.chips import chip
from cubecore.tiling.model.field_limits import NO_LIMITS
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling
from cubecore.tiling.solver.solver import solve_plannable
from cubecore.units import ceil_div

LAYER = Problem(m=48, n=3584, k=2048, trans_b=True, chip="Ascend910B3")
MANY_ROWS = replace(LAYER, m=1008, n=1536)


def shortlist(problem):
    """Return the tilings that are to be timed, in their order."""
    found = solve_plannable(problem, chip(problem.chip), 5, NO_LIMITS, refine=True)
    ranked = (found.best, *found.alternatives, *found.variants)
    return [one.tiling for one in ranked]


@pytest.mark.parametrize("m", [33, 40, 47])
def test_rows_of_the_last_fractal_change_no_field_but_those_of_m(m):
    problem = replace(LAYER, m=m)
    for whole, cut in zip(shortlist(LAYER), shortlist(problem), strict=True):
        assert (cut.M, cut.singleCoreM) == (m, min(ceil_div(m, ceil_div(48, whole.singleCoreM)), m))
        of_m = {"M": whole.M, "singleCoreM": whole.singleCoreM, "usedCoreNum": whole.usedCoreNum}
        assert replace(cut, **of_m) == whole


@pytest.mark.parametrize("m", [993, 1000, 1007])
def test_tilings_of_cut_rows_are_legal_and_use_the_cores_of_their_grid(m):
    problem = replace(MANY_ROWS, m=m)
    for tiling in shortlist(problem):
        assert check_tiling(tiling, problem, chip(problem.chip)).legal
        rows, columns = ceil_div(m, tiling.singleCoreM), ceil_div(tiling.N, tiling.singleCoreN)
        assert tiling.usedCoreNum == rows * columns


def test_shares_that_were_even_are_so_of_fewer_rows():
    even = [
        ceil_div(1008, tiling.singleCoreM)
        for tiling in shortlist(MANY_ROWS)
        if tiling.singleCoreM == ceil_div(1008, ceil_div(1008, tiling.singleCoreM))
    ]
    assert even
    shares = [tiling.singleCoreM for tiling in shortlist(replace(MANY_ROWS, m=993))]
    assert {ceil_div(993, blocks) for blocks in even} <= set(shares)


def test_longer_rows_of_a_transposed_operand_are_another_problem():
    problem = replace(LAYER, m=1001, trans_a=True)
    assert shortlist(problem) != [
        replace(tiling, M=1001, singleCoreM=min(tiling.singleCoreM, 1001))
        for tiling in shortlist(replace(problem, m=1008))
    ]
