"""Plans told by the event timing: what `plan` says of a tiling is what `time` says."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from cubecore.arrays import collecting_seldom
from cubecore.chips.model import Chip
from cubecore.errors import InfeasibleError, RequestError
from cubecore.kernels.matmul.launch import require_supported
from cubecore.kernels.matmul.launch_time import is_known, launch_time
from cubecore.kernels.runnable import require_timed
from cubecore.planning.local_search import STANDARD, Effort, LocalSearch, effort_named
from cubecore.planning.planner import over_shared_k, plan_tilings
from cubecore.tiling.cost.closed_form import predict
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.request import TilingRequest
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.solver.branch_and_bound import GROUP_FIELDS
from cubecore.tiling.solver.solver import Ranked, Solution
from cubecore.timing.pipes.queues import DEVICE_MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

SHORTLIST = 6
"""Tilings that the planner puts first and that are timed; variants of the fastest are as well."""
WALKED = 4
"""The same where trees have to be walked, which takes some times as long."""
UNREFINED = 8
"""The same of a template whose tilings are put first by the closed form alone."""
NEAR_FASTEST = {"cube": 1.0, "mix": 1.01}
"""Times the fastest: variants of what is no slower are timed. The planner's walk of two clients in
turn is less exact; with 1.003 for one plans were 0.01 % faster and took 4 % longer."""
START_UP, MEMORY = "start-up", "HBM"


def plan_of(
    request: TilingRequest, alternatives: int, search: str = STANDARD
) -> tuple[Solution, int]:
    """Return `timed_plan` of a request, and where it has none, what excludes each other.

    Raises
    ------
    NoLegalTilingError
        As `timed_plan`; a `ConflictError` in place of an `InfeasibleError`.
    """
    problem, chip = request.problem, request.chip
    # Which constraints exclude each other is looked for where the request is known whole, and only
    # once a search has failed: the proof that none is legal does not need it.
    try:
        return timed_plan(problem, chip, alternatives, search)
    except InfeasibleError as error:
        from cubecore.planning.narrowing import narrowing
        from cubecore.tiling.repair.infeasibility import explained

        raise explained(error, narrowing(problem, request.settings)) from None


def timed_plan(
    problem: Problem, chip: Chip, alternatives: int, search: str = STANDARD
) -> tuple[Solution, int]:
    """Return what `plan_tilings` finds, as the event timing has it, and how many were timed.

    `search` names an `Effort`. Where `time` does not take the problem or the chip, none is timed:
    the closed form's answer stands.
    """
    return solved(PlanSearch(problem, chip, alternatives, effort_named(search)))


@dataclass(frozen=True, slots=True)
class PlanSearch:
    """A search for a plan: all that its result depends on."""

    problem: Problem
    chip: Chip
    alternatives: int
    effort: Effort


@lru_cache(maxsize=256)
def solved(asked: PlanSearch) -> tuple[Solution, int]:
    """Return what `timed_plan` does. The latest are kept: steps of a model repeat products."""
    problem, chip, alternatives = asked.problem, asked.chip, asked.alternatives
    if not can_be_timed(problem, chip):
        return plan_tilings(problem, chip, alternatives), 0
    # Three stages: the planner's shortlist, timed as events; the fastest of each group with
    # variants; then a local search from the best one. Each sees only what the one before left near.
    few = SHORTLIST if is_known(problem, chip) else WALKED
    if problem.template != "MDL":
        few = UNREFINED
    count = max(alternatives, few - 1)
    with collecting_seldom():
        solution = plan_tilings(problem, chip, count, refine=True, classes=asked.effort.classes)
        answer, count = retimed(solution, problem, chip, alternatives)
        return improved(answer, problem, chip, alternatives, asked.effort, count)


def improved(
    solution: Solution, problem: Problem, chip: Chip, alternatives: int, effort: Effort, count: int
) -> tuple[Solution, int]:
    """Return a timed solution behind a local search, and how many tilings were timed in all.

    What was the best is an alternative, if it differs in core split or base block.
    """
    if solution.proven or not effort.rounds:
        return solution, count
    # What the local search leaves is timed once more for its parts (pipes, bytes); the best so far
    # stays as an alternative unless it is of the same core split and base block.
    local = LocalSearch(problem, chip, effort)
    tiling, cycles = local.run(solution.best.tiling, solution.best.predicted.cycles)
    count += len(local.times)
    if tiling == solution.best.tiling:
        return replace(solution, judged=solution.judged + local.judged), count
    best = timed_tiling(tiling, problem, chip)
    assert best.predicted.cycles == cycles, "a tiling takes the same time again"
    known = (solution.best, *solution.alternatives)
    others = [one for one in known if _group(one) != _group(best)]
    return (
        replace(
            solution,
            best=best,
            alternatives=tuple(others[:alternatives]),
            proven=cycles <= solution.lower_bound,
            judged=solution.judged + local.judged,
        ),
        count,
    )


def can_be_timed(problem: Problem, chip: Chip) -> bool:
    """True if `time` takes the problem on its chip."""
    try:
        require_timed(chip)
        require_supported(problem)
    except RequestError:
        return False
    return not chip.unknown_costs


def retimed(
    solution: Solution, problem: Problem, chip: Chip, alternatives: int
) -> tuple[Solution, int]:
    """Return the solution with its tilings in the order of their event timings, and their number.

    Up to `alternatives` of them stay. Only the hardware's bound holds for these times.
    """
    # By group, in the order in which a group's best was timed: sorting is stable, so that this
    # order settles equal times.
    first: dict[tuple[int, ...], Ranked] = {}

    def retime(ranked: Ranked) -> None:
        """Time a tiling as far as it may stay, the first of equal ones of its group."""
        group = _group(ranked)
        one = timed(ranked, problem, chip, _last_to_stay(first, group, alternatives))
        if group not in first or one.predicted.cycles < first[group].predicted.cycles:
            first.pop(group, None)  # the order of equal times is that of the timings
            first[group] = one

    shortlist = solution.best, *solution.alternatives
    for ranked in shortlist:
        retime(ranked)
    near = NEAR_FASTEST[problem.launch] * min(map(_cycles, first.values()))
    fast = {group for group, ranked in first.items() if ranked.predicted.cycles <= near}
    variants = [ranked for ranked in solution.variants if _group(ranked) in fast]
    for ranked in variants:
        retime(ranked)
    best, *others = sorted(first.values(), key=_cycles)
    bound = solution.lower_bound
    answer = replace(
        solution,
        best=best,
        alternatives=tuple(others[:alternatives]),
        variants=(),
        search_bound=bound,
        proven=best.predicted.cycles <= bound,
    )
    return answer, len(shortlist) + len(variants)


def timed_tiling(tiling: TCubeTiling, problem: Problem, chip: Chip) -> Ranked:
    """Return a tiling with its event timing."""
    shared = replace(tiling, Ka=problem.shared_k, Kb=problem.shared_k)
    predicted = predict(shared, over_shared_k(problem), chip)
    return timed(Ranked(tiling, predicted), problem, chip)


def _last_to_stay(
    first: "Mapping[tuple[int, ...], Ranked]", group: tuple[int, ...], alternatives: int
) -> int | None:
    """Return the cycles beyond which a tiling of a group is no answer; None if there are none.

    It is none behind a faster one of its group, nor behind the best and `alternatives` others.
    """
    # A timing may stop early: once a tiling is slower than the last one that is shown, or than its
    # own group's best, it can change nothing.
    known = sorted(ranked.predicted.cycles for ranked in first.values())
    limits = known[alternatives : alternatives + 1]
    if group in first:
        limits.append(first[group].predicted.cycles)
    return min(limits, default=None)


def _cycles(ranked: Ranked) -> int:
    return ranked.predicted.cycles


def _group(ranked: Ranked) -> tuple[int, ...]:
    """Return the core split and the base block of C, in which alternatives differ."""
    return tuple(getattr(ranked.tiling, name) for name in GROUP_FIELDS)


def timed(ranked: Ranked, problem: Problem, chip: Chip, latest: int | None = None) -> Ranked:
    """Return a tiling with the cycles that `time` says, and what its busiest pipes do.

    Beyond `latest` it is only known to take longer (`launch_time`).
    """
    time = launch_time(problem, ranked.tiling, chip, latest)
    if time is None:
        return _walked(ranked, problem, chip)
    start = time.start + chip.require("launch_cycles", "timing")
    pipes = {**ranked.predicted.pipes, **time.pipes}
    waiting = 2 * time.waited > time.pipes["MTE2"]
    limit = _limit(time.cycles, start, pipes, waiting=waiting)
    return _with_time(ranked, chip, time.cycles, pipes, limit)


def _walked(ranked: Ranked, problem: Problem, chip: Chip) -> Ranked:
    """Return the same from the timing of the kernel's trees."""
    from cubecore.planning.timed_product import TimedProduct

    line = TimedProduct(problem, ranked.tiling, chip).line
    slowest = max(line.groups, key=lambda group: group.end_cycles)
    predicted = ranked.predicted.pipes
    pipes = {**predicted, **{name: slowest.busy_cycles[name] for name in predicted if name != "S"}}
    limit = line.limited_by
    if limit != START_UP:
        limit = MEMORY if limit == DEVICE_MEMORY else max(pipes, key=lambda name: pipes[name])
    return _with_time(ranked, chip, line.cycles, pipes, limit)


def _limit(cycles: int, start: int, pipes: dict[str, int], *, waiting: bool) -> str:
    if 2 * start >= cycles:
        return START_UP
    busiest = max(pipes, key=lambda name: pipes[name])
    return MEMORY if busiest == "MTE2" and waiting else busiest


def _with_time(
    ranked: Ranked, chip: Chip, cycles: int, pipes: dict[str, int], limit: str
) -> Ranked:
    prediction = replace(
        ranked.predicted,
        us=chip.microseconds(cycles),
        cycles=cycles,
        limited_by=limit,
        pipes=pipes,
    )
    return Ranked(ranked.tiling, prediction)
