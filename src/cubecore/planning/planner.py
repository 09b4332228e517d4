"""From a problem with all its options to the best tilings, or to why there are none.

The solver plans one matrix whose operands share one K. Here a longer Ka or Kb, the layout of a
batch and what is asked of fields and buffers come in, and what they make is checked again.
"""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cubecore.chips import Chip
from cubecore.errors import NoLegalTilingError, Violation
from cubecore.tiling.model.field_limits import SHARED_AXES, FieldLimits, Limits
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.repair.smallest import least, legal
from cubecore.tiling.rules.batches import fits_together, too_large, with_batch
from cubecore.tiling.rules.capabilities import require_plannable
from cubecore.tiling.rules.checker import RuleFinding, check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import core_splits
from cubecore.tiling.solver.solver import (
    Ranked,
    Solution,
    single_solution,
    solve,
    solve_plannable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_GUIDES = (("singleCoreM", "singleCoreN", "singleCoreK"), ("baseM", "baseN", "baseK"))
"""Fields of a tiling known to be legal that the solver is given where it finds none by itself."""


def plan_tilings(
    problem: Problem,
    chip: Chip,
    count: int,
    *,
    refine: bool = False,
    classes: int = 0,
) -> Solution:
    """Return the best tiling of a problem with every option, and up to `count` alternatives.

    `chip` has the problem's budget, and is known to multiply it (`validate`). The prediction is of
    the shared K: what a longer Ka or Kb holds besides is not read. `refine` and `classes` as
    `solve_plannable` has them.

    Raises
    ------
    RequestError
        If L1 does not hold the part of the batch that a call computes.
    NoLegalTilingError
        If no tiling is legal; an `InfeasibleError` where that is proven, which
        `tiling.repair.infeasibility.explained` turns into the constraints that conflict.
    """
    require_plannable(problem)
    shared = over_shared_k(problem)
    _require_room(shared, chip)
    # A proof that nothing is legal is cheap next to an exhausted search, so that requests that
    # narrow fields, or whose smallest tiling breaks a rule, are settled first.
    may_be_infeasible = _may_be_infeasible(problem, chip)
    plannable = _find_any_legal(problem, chip) if may_be_infeasible else None
    try:
        solution = solve_plannable(
            shared,
            chip,
            count,
            problem.fix,
            explained=plannable is None,
            refine=refine,
            classes=classes,
        )
        return _with_batch_and_k(solution, problem, chip)
    except NoLegalTilingError:
        plannable = plannable if may_be_infeasible else _find_any_legal(problem, chip)
        if plannable is None:
            raise
        return _near_known_legal(problem, chip, count, plannable, refine=refine)


def _find_any_legal(problem: Problem, chip: Chip) -> TCubeTiling | None:
    """Return a tiling that is legal, None where none is found and none is excluded.

    Raises
    ------
    InfeasibleError
        If no tiling is legal.
    """
    from cubecore.tiling.repair.infeasibility import any_legal

    return any_legal(problem, chip)


def over_shared_k(problem: Problem) -> Problem:
    """Return the problem as the solver knows it: of one K."""
    return replace(problem, k=problem.shared_k, kb=None)


def _require_room(problem: Problem, chip: Chip) -> None:
    """Refuse a batch of which L1 does not hold what a call computes, however C is divided."""
    if problem.layout in {None, "NORMAL"}:
        return
    splits = core_splits(RuleCase(None, problem, chip), problem.core_count(chip), problem.fix)
    shares = splits.take(problem.fix.of(SHARED_AXES).mask(splits))
    if len(shares) and not fits_together(shares, problem, chip).any():
        raise too_large(shares, problem, chip)


def _may_be_infeasible(problem: Problem, chip: Chip) -> bool:
    """True if a search for any legal tiling pays before the search for the fastest."""
    case = least(problem, chip)
    return bool(problem.fix.fields) or not legal(case)


def _near_known_legal(
    problem: Problem, chip: Chip, count: int, plannable: TCubeTiling, *, refine: bool
) -> Solution:
    """Return the solver's answer near a tiling that is known to be legal, or that tiling."""
    shared = over_shared_k(problem)
    # The solver's space leaves out tilings that do the same work with more, of which a request may
    # need one. It is led there by the shares of a tiling known to be legal, then by its base blocks
    # as well.
    # The fewer fields are held, the more the solver may still improve; with all of them held it
    # finds at least that tiling, or it is the answer itself.
    for size in range(1, len(_GUIDES) + 1):
        names = [name for group in _GUIDES[:size] for name in group]
        values = {name: getattr(plannable, name) for name in names}
        guide = {name: Limits(value, value) for name, value in values.items()}
        with suppress(NoLegalTilingError):
            wanted = FieldLimits({**problem.fix.fields, **guide})
            near = solve_plannable(shared, chip, count, wanted, explained=False, refine=refine)
            return _with_batch_and_k(near, problem, chip)
    return _with_batch_and_k(single_solution(plannable, shared, chip), problem, chip)


def _with_batch_and_k(solution: Solution, problem: Problem, chip: Chip) -> Solution:
    """Return a solution with the fields of the whole problem; only tilings that are legal so."""
    if _is_shared(problem):
        return solution
    refused: list[NoLegalTilingError] = []
    broken: list[RuleFinding] = []

    def completed(given: "Iterable[Ranked]") -> list[Ranked]:
        kept = []
        for ranked in given:
            try:
                tiling = _completed(ranked.tiling, problem, chip)
            except NoLegalTilingError as error:
                refused.append(error)
                continue
            findings = check_case(RuleCase(tiling, problem, chip)).findings
            broken.extend(findings[:1])
            if not findings:
                kept.append(Ranked(tiling, ranked.predicted))
        return kept

    # The solver's order stays: what is illegal with the whole K or batch drops out. Where nothing
    # is left, the reason is the batch's own if it has one, else the last rule that was broken.
    tilings = completed((solution.best, *solution.alternatives))
    if not tilings:
        if refused:
            raise refused[0]
        subject = f"{problem.m} x {problem.n} x {problem.shared_k} on {chip.name}"
        sentence = f"no legal tiling for {subject}: {broken[-1].message}"
        raise NoLegalTilingError([Violation(subject, "", "", sentence=sentence)])
    best, *others = tilings
    variants = tuple(completed(solution.variants))
    return replace(solution, best=best, alternatives=tuple(others), variants=variants)


def _is_shared(problem: Problem) -> bool:
    """True if a problem is the solver's: without a batch's layout, and of one K."""
    return problem.layout is None and problem.kb in {None, problem.k}


def _completed(tiling: TCubeTiling, problem: Problem, chip: Chip) -> TCubeTiling:
    """Return a tiling over the shared K with the batch and K of the whole problem."""
    whole: Any = replace(tiling, Ka=problem.k, Kb=problem.kb or problem.k)
    return with_batch(whole, problem, chip)


def whole_tiling(tiling: TCubeTiling, problem: Problem, chip: Chip) -> TCubeTiling | None:
    """Return a legal tiling over the shared K as the whole problem has it; None if illegal so.

    `chip` is the one whose L1 it may fill.
    """
    if _is_shared(problem):
        return tiling
    try:
        whole = _completed(tiling, problem, chip)
    except NoLegalTilingError:
        return None
    return None if check_case(RuleCase(whole, problem, chip)).findings else whole


def tilings_within(problem: Problem, chip: Chip, count: int, wanted: FieldLimits) -> Solution:
    """Return the best tilings of a problem whose fields are as `wanted`, in place of `problem.fix`.

    Where there is none, nothing is looked for that would say why.

    Raises
    ------
    RequestError
        If the chip does not multiply the types, or options contradict each other.
    NoLegalTilingError
        If the solver finds no legal tiling.
    """
    shared = over_shared_k(problem)
    return _with_batch_and_k(solve(shared, chip, count, wanted), problem, chip)
