"""plan: the best tilings for a problem, and why."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

from cubecore.aliases import JsonMapping
from cubecore.answers.plan import TilingPlan
from cubecore.errors import refuse, unable
from cubecore.planning.event_ranking import plan_of, timed_tiling
from cubecore.planning.local_search import STANDARD, LocalSearch, effort_named
from cubecore.tiling.model.core_grid import problem_blocks
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.request import TilingRequest
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.rules.advice import advise_plan
from cubecore.tiling.rules.checker import check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.solver import Ranked
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.request import IllegalTilingError, given_tiling, make_request


@takes_problem
def plan(
    problem: Problem | JsonMapping | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    alternatives: int = 5,
    search: str = STANDARD,
    **keys: Unpack[ProblemKeys],
) -> TilingPlan:
    """Return the fastest legal tiling for a problem, and the next best.

    The closed form ranks tilings; those that it puts first are timed event by event, and so are
    changes of one and two fields of the fastest, until none of them is faster: that is the answer.
    Predictions are what `time` says.

    Parameters
    ----------
    problem : Problem or mapping or None
        The product: a record or a JSON object. Keys of it can also be given as keywords, and
        replace those of `problem`.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    alternatives : int
        How many more tilings to return.
    search : str
        ``quick`` leaves out the changes of the fastest, ``thorough`` looks at more of everything.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    TilingPlan
        The tiling, its predicted time, bounds, alternatives and the block of each core.

    Raises
    ------
    RequestError
        If the problem is malformed, or the chip or cubecore does not support it.
    NoLegalTilingError
        If no tiling satisfies every rule; a `ConflictError` where the constraints that exclude each
        other are known.

    Examples
    --------
    >>> cubecore.plan(m=512, n=512, k=1024).tiling.baseM
    112
    """
    if alternatives < 0:
        raise refuse("alternatives", "be at least 0", alternatives)
    if "exact" in keys:
        raise unable("exact", "exact is gone: every plan is timed event by event")
    effort_named(search)
    return plan_request(make_request(problem, settings, keys), alternatives, search)


def plan_request(request: TilingRequest, alternatives: int, search: str = STANDARD) -> TilingPlan:
    """Return the plan of a request, as `plan` does; raises `NoLegalTilingError` as it does.

    Notes
    -----
    1. `planning.event_ranking.timed_plan` asks for more tilings than are wanted, to time them.
    2. `planning.planner.plan_tilings` refuses types that the chip does not multiply, and where a
       tiling may not exist looks for why first.
    3. `tiling.solver.branch_and_bound.TilingSearch.run` searches core splits
       (`tiling.solver.candidates.core_splits`), base blocks
       (`tiling.solver.candidates.base_blocks`) and what stays in L1
       (`tiling.solver.l1_residency.residencies`), each level below its lower bounds.
    4. `tiling.cost.closed_form.cost` predicts the complete tilings that are left.
    5. `tiling.solver.refinement.refined` walks the likely ones chunk by chunk, all at once
       (`tiling.cost.chunk_walk.walked_cycles`); `tiling.solver.solver.legal` holds every rule
       against them.
    6. `planning.event_ranking.retimed` times the first of them as events, without building their
       trees (`kernels.matmul.launch_time.launch_time`).
    7. `planning.local_search.LocalSearch.run` times changes of one and two fields of the fastest
       (`tiling.solver.changes.changes`) until none is faster.
    """
    solution, timed = plan_of(request, alternatives, search)
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
        timed=timed,
    )


def improved_plan(plan: TilingPlan, tiling: TCubeTiling, cycles: int) -> TilingPlan:
    """Return the plan that a search from another, faster tiling of known cycles leads to.

    What was the plan is then the first alternative.
    """
    problem, chip = plan.problem, plan.request.chip
    local = LocalSearch(problem, chip, effort_named(STANDARD))
    found, _ = local.run(tiling, cycles)
    best = timed_tiling(found, problem, chip)
    gap = plan.gap * best.predicted.cycles / plan.predicted.cycles
    return replace(
        plan,
        tiling=found,
        predicted=best.predicted,
        gap=gap,
        proven=gap <= 1,
        alternatives=(Ranked(plan.tiling, plan.predicted), *plan.alternatives),
        blocks=problem_blocks(problem, chip, found),
        judged=plan.judged + local.judged,
        timed=plan.timed + len(local.times),
        advice=advise_plan(RuleCase(found, problem, chip)),
    )


def legal_or_planned(
    tiling: TCubeTiling | JsonMapping | None, request: TilingRequest
) -> TCubeTiling:
    """Return the given tiling if it is the problem's and legal; the plan's, if none is given.

    Raises
    ------
    RequestError
        If the tiling is malformed, or its sizes or fields differ from those asked for.
    IllegalTilingError
        If the tiling breaks a rule.
    NoLegalTilingError
        If none is given and none satisfies every rule.
    """
    if tiling is None:
        return plan_of(request, 0)[0].best.tiling
    given = given_tiling(tiling, request.problem)
    checked = check_case(RuleCase(given, request.problem, request.chip))
    if checked.findings:
        raise IllegalTilingError(checked.findings)
    return given
