"""The event timing of tilings: what `plan` tells of them is what `time` says."""

from dataclasses import replace

from cubecore.errors import RequestError
from cubecore.kernels.matmul.launch import require_supported
from cubecore.kernels.matmul_time.launch import is_known, launch_time
from cubecore.tiling.solver.solver import Ranked, Solution
from cubecore.timing.pipes.queues import DEVICE_MEMORY
from cubecore.workflows.request import TilingRequest, require_timed

SHORTLIST = 12
"""Tilings that the closed form puts first and that are timed; each takes some milliseconds."""
WALKED = 6
"""The same where trees have to be walked, which takes some times as long."""
START_UP, MEMORY = "start-up", "HBM"


def shortlist(request: TilingRequest) -> int:
    """Return how many tilings are timed for an answer."""
    return SHORTLIST if is_known(request.problem, request.chip) else WALKED


def can_be_timed(request: TilingRequest) -> bool:
    """True if `time` takes the problem on its chip."""
    try:
        require_timed(request.chip)
        require_supported(request.problem)
    except RequestError:
        return False
    return not request.chip.unknown_costs


def retimed(found: Solution, request: TilingRequest, alternatives: int) -> tuple[Solution, int]:
    """Return the solution with its tilings in the order of their event timings, and their number.

    Up to `alternatives` of them stay. Only the hardware's bound holds for these times.
    """
    known = [timed(ranked, request) for ranked in (found.best, *found.alternatives)]
    best, *others = sorted(known, key=lambda ranked: ranked.predicted.cycles)
    bound = found.lower_bound
    answer = replace(
        found,
        best=best,
        alternatives=tuple(others[:alternatives]),
        search_bound=bound,
        proven=best.predicted.cycles <= bound,
    )
    return answer, len(known)


def timed(ranked: Ranked, request: TilingRequest) -> Ranked:
    """Return a tiling with the cycles that `time` says, and what its busiest pipes do."""
    problem, chip = request.problem, request.chip
    found = launch_time(problem, ranked.tiling, chip)
    if found is None:
        return _walked(ranked, request)
    start = found.start + chip.require("launch_cycles", "timing")
    pipes = {**ranked.predicted.pipes, **found.pipes}
    waiting = 2 * found.waited > found.pipes["MTE2"]
    return _told(
        ranked, request, found.cycles, pipes, _limit(found.cycles, start, pipes, waiting=waiting)
    )


def _walked(ranked: Ranked, request: TilingRequest) -> Ranked:
    """Return the same from the timing of the kernel's trees."""
    from cubecore.workflows.timed_product import TimedProduct

    line = TimedProduct(request.problem, ranked.tiling, request.chip).line
    slowest = max(line.groups, key=lambda group: group.end_cycles)
    known = ranked.predicted.pipes
    pipes = {**known, **{name: slowest.busy_cycles[name] for name in known if name != "S"}}
    limit = line.limited_by
    if limit != START_UP:
        limit = MEMORY if limit == DEVICE_MEMORY else max(pipes, key=lambda name: pipes[name])
    return _told(ranked, request, line.cycles, pipes, limit)


def _limit(cycles: int, start: int, pipes: dict[str, int], *, waiting: bool) -> str:
    if 2 * start >= cycles:
        return START_UP
    busiest = max(pipes, key=lambda name: pipes[name])
    return MEMORY if busiest == "MTE2" and waiting else busiest


def _told(
    ranked: Ranked, request: TilingRequest, cycles: int, pipes: dict[str, int], limit: str
) -> Ranked:
    told = replace(
        ranked.predicted,
        us=request.chip.microseconds(cycles),
        cycles=cycles,
        limited_by=limit,
        pipes=pipes,
    )
    return Ranked(ranked.tiling, told)
