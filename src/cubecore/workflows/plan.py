"""plan: the best tilings for a problem, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

from cubecore.aliases import Json, JsonMapping
from cubecore.errors import refuse
from cubecore.tiling.cost.closed_form import Prediction
from cubecore.tiling.model.core_grid import CoreBlock, problem_blocks
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.planner import plan_tilings
from cubecore.tiling.rules.advice import Advice, advise_plan
from cubecore.tiling.rules.checker import check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.solver import Ranked, Solution, planned_chip
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.request import (
    IllegalTilingError,
    TilingRequest,
    as_tiling,
    make_request,
    require_runnable,
)

if TYPE_CHECKING:
    from cubecore.tiling.repair.infeasibility import Narrowing


@dataclass(frozen=True, slots=True)
class TilingPlan:
    """The best tiling found, what it is expected to take, and the next best.

    `lower_bound_us` is what no tiling can beat in this model, by the hardware's rates; `gap` is the
    prediction over it. `search_bound_us` is what no tiling of the planner's space takes less than:
    where `proven`, every other one was excluded by a bound, and none is faster than this one.
    `complete` says that values of no field were left out.
    `blocks` says which core computes which block of C. `judged` counts complete tilings. `advice`
    says what was asked for in vain. `timed_us` are the event timings of this one and of the
    alternatives, where they were asked for: then they are in that order, and `proven` and the
    bounds are still of the closed form.
    """

    request: TilingRequest
    tiling: TCubeTiling
    predicted: Prediction
    lower_bound_us: float | None
    gap: float
    search_bound_us: float | None
    complete: bool
    proven: bool
    alternatives: tuple[Ranked, ...]
    blocks: tuple[CoreBlock, ...]
    judged: int
    advice: tuple[Advice, ...] = ()
    timed_us: tuple[float | None, ...] = ()

    @property
    def problem(self) -> Problem:
        """The problem that was planned."""
        return self.request.problem

    def to_json(self) -> Json:
        """Return the public contract's object; with ``timed_us`` where tilings were timed."""
        first, *others = self.timed_us or (None,)
        alternatives = [ranked.to_json() for ranked in self.alternatives]
        for shown, us in zip(alternatives, others, strict=bool(self.timed_us)):
            shown["timed_us"] = us
        return {
            "problem": self.problem.to_json(),
            "tiling": self.tiling.to_json(),
            "predicted": self.predicted.to_json(),
            **({"timed_us": first} if self.timed_us else {}),
            "lower_bound_us": self.lower_bound_us,
            "gap": self.gap,
            "search_bound_us": self.search_bound_us,
            "complete": self.complete,
            "proven": self.proven,
            "alternatives": alternatives,
            "cores": [block.to_json() for block in self.blocks],
            "judged": self.judged,
            "advice": [advice.to_json() for advice in self.advice],
        }


@takes_problem
def plan(
    problem: Problem | JsonMapping | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    alternatives: int = 5,
    exact: bool = False,
    **keys: Unpack[ProblemKeys],
) -> TilingPlan:
    """Return the fastest legal tiling for a problem, and the next best.

    Parameters
    ----------
    problem : Problem or mapping or None
        The product: a record or a JSON object. Keys of it can also be given as keywords, and
        replace those of `problem`.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    alternatives : int
        How many more tilings to return.
    exact : bool
        Time the answers with the event model and put the fastest first; some tenths of a second
        each. The prediction is the planner's closed form without it.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    TilingPlan
        The tiling, its predicted time, bounds, alternatives and the block of each core.

    Raises
    ------
    RequestError
        The request cannot be planned as it stands.
    NoLegalTilingError
        No tiling satisfies every rule; a `ConflictError` where it is known which constraints
        exclude each other.

    Examples
    --------
    >>> cubecore.plan(m=512, n=512, k=1024).tiling.baseM
    112
    """
    if alternatives < 0:
        raise refuse("alternatives", "be at least 0", alternatives)
    request = make_request(problem, settings, keys)
    solution = _solution(request, settings, alternatives)
    timed: tuple[float | None, ...] = ()
    if exact:
        solution, timed = _in_timed_order(solution, request)
    return TilingPlan(
        request=request,
        tiling=solution.best.tiling,
        predicted=solution.best.predicted,
        lower_bound_us=solution.lower_bound_us,
        gap=solution.gap,
        search_bound_us=request.chip.microseconds(solution.search_bound),
        complete=solution.complete,
        proven=solution.proven,
        alternatives=solution.alternatives,
        blocks=problem_blocks(request.problem, request.chip, solution.best.tiling),
        judged=solution.judged,
        advice=advise_plan(RuleCase(solution.best.tiling, request.problem, request.chip)),
        timed_us=timed,
    )


def _in_timed_order(
    solution: Solution, request: TilingRequest
) -> tuple[Solution, tuple[float | None, ...]]:
    """Return the solution with its tilings in the order of their event timings, and these."""
    from cubecore.kernels.matmul.launch import require_supported
    from cubecore.workflows.timed_product import TimedProduct

    require_runnable(request.chip)
    require_supported(request.problem)
    ranked = (solution.best, *solution.alternatives)
    lines = [TimedProduct(request.problem, r.tiling, request.chip).line for r in ranked]
    order = sorted(range(len(ranked)), key=lambda index: (lines[index].cycles, index))
    best, *others = (ranked[index] for index in order)
    proven = solution.proven and order[0] == 0
    timed_solution = replace(solution, best=best, alternatives=tuple(others), proven=proven)
    return timed_solution, tuple(lines[index].us for index in order)


def _solution(
    request: TilingRequest, settings: Mapping[str, str] | None, alternatives: int
) -> Solution:
    def narrowed() -> "Narrowing":
        from cubecore.workflows.infeasibility import narrowing

        return narrowing(request.problem, settings, planned_chip)

    return plan_tilings(request.problem, request.chip, alternatives, narrowed)


def legal_or_planned(
    tiling: TCubeTiling | JsonMapping | None, request: TilingRequest
) -> TCubeTiling:
    """Return the given tiling if it is the problem's and legal; the plan's, if none is given.

    Raises:
        RequestError: a malformed tiling, or extents that are not the problem's.
        IllegalTilingError: the tiling breaks a rule.
        NoLegalTilingError: none is given and none satisfies every rule.
    """
    if tiling is None:
        return _solution(request, request.settings, 1).best.tiling
    given = as_tiling(tiling)
    given.require_match(*request.problem.extents)
    checked = check_case(RuleCase(given, request.problem, request.chip))
    if checked.findings:
        raise IllegalTilingError(checked.findings)
    return given
