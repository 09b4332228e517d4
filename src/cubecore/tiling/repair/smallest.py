"""The smallest tiling of a problem, which is most often legal, and whether a tiling is."""

from dataclasses import replace

from cubecore.chips import Chip
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.checker import rules
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.rules.ub import derived_fields
from cubecore.units import FRACTAL_ROWS


def legal(case: RuleCase) -> bool:
    """True if the case's tiling keeps every rule."""
    measures = (rule.measure(case) for rule in rules())
    return all(measure is None or bool(measure.holds()) for measure in measures)


def smallest(case: RuleCase) -> TCubeTiling:
    """Return the case's tiling with the smallest blocks, one at a time, on one core.

    With what follows from them.
    """
    given, problem = case.tiling, case.problem
    ones = ("depthA1", "depthB1", "stepM", "stepN", "stepKa", "stepKb", "dbL0A", "dbL0B", "dbL0C")
    fields = dict.fromkeys(ones, 1) | {
        "usedCoreNum": 1,
        "singleCoreM": given.M,
        "singleCoreN": given.N,
        "singleCoreK": problem.shared_k,
        "baseM": FRACTAL_ROWS,
        "baseN": FRACTAL_ROWS,
        "baseK": case.base_k_multiple,
        "isBias": int(problem.bias is not None),
        "iterateOrder": 0,
    }
    shrunk = case.with_tiling(fields)
    smallest_one: TCubeTiling = shrunk.with_tiling(derived_fields(shrunk)).tiling
    return smallest_one


def least(problem: Problem, chip: Chip) -> RuleCase:
    """Return the case of the smallest tiling of a problem."""
    extents = {"M": problem.m, "N": problem.n, "Ka": problem.k, "Kb": problem.kb or problem.k}
    case = RuleCase(TCubeTiling(**dict.fromkeys(FIELDS, 0) | extents), problem, chip)
    return replace(case, tiling=smallest(case))
