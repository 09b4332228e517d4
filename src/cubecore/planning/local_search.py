"""Local search: one- and two-field changes of a timed tiling, until none of them is faster.

The changes are those of `tiling.solver.changes`. Of each round the likeliest are timed as events;
the fastest is changed next, until a round saves no more than `LEAST_GAIN`. Base blocks that are
longer than the share then are cut to it, where that takes no longer.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cubecore.errors import refuse
from cubecore.kernels.matmul.launch_time import is_known, launch_time
from cubecore.planning.planner import over_shared_k, whole_tiling
from cubecore.tiling.rules.checker import check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.changes import changes
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

if TYPE_CHECKING:
    from cubecore.chips.model import Chip
    from cubecore.tiling.model.problem import Problem
    from cubecore.tiling.model.tcubetiling import TCubeTiling

LEAST_GAIN = 0.001
"""Share of the time that a round must save for another one, or for a tiling that is less simple."""

MUCH_GAIN = 0.005
"""Share of the time that the walk must promise for a timing once enough has been timed."""

MOST_LITTLE = 2
"""Rounds that save less, by which enough has been timed: the first may lead to more."""
LEAST_TIMED = 6
"""Changes of a round that are timed however the walk has them; twice as many where it is rough."""
SHORT_STEPS = 64
"""Base-K steps of a core up to which twice as many changes are timed."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of a search, by the word for it.

    `timed` changes a round are timed at most, of which none is `near` times slower than the best by
    the walk; `walked` where trees have to be walked. The search ends behind so many `rounds`; once
    `all` timings are through, only what promises `MUCH_GAIN` is timed. So many of each of the
    `classes` of base blocks are timed before.
    """

    timed: int
    walked: int
    near: float
    rounds: int
    all: int
    classes: int


STANDARD = "standard"
EFFORTS = {
    "quick": Effort(0, 0, 1.0, 0, 0, classes=0),
    STANDARD: Effort(10, 3, 1.006, 8, 32, classes=1),
    "thorough": Effort(24, 6, 1.015, 16, 160, classes=2),
}
"""`quick` has no local search."""


def effort_named(search: str) -> Effort:
    """Return the effort of a search by its name."""
    if search not in EFFORTS:
        raise refuse("search", "be quick, standard or thorough", repr(search))
    return EFFORTS[search]


def ragged(t: "TCubeTiling") -> int:
    """Return how many lengths of a tiling do not divide what they cut: the fewer, the simpler."""
    k_steps = ceil_div(t.singleCoreK, t.baseK)
    cuts = (
        *((t.M, t.singleCoreM), (t.N, t.singleCoreN), (min(t.Ka, t.Kb), t.singleCoreK)),
        *((t.singleCoreM, t.baseM), (t.singleCoreN, t.baseN), (t.singleCoreK, t.baseK)),
        *((k_steps, t.stepKa), (k_steps, t.stepKb)),
    )
    return sum(whole % part != 0 for whole, part in cuts)


class LocalSearch:
    """The search from timed tilings of one problem; `times` are the cycles of all that it timed.

    A change is timed as far as it may be the fastest: its cycles are then some behind those.
    """

    def __init__(self, problem: "Problem", chip: "Chip", effort: Effort) -> None:
        self.problem, self.chip, self.effort = problem, chip, effort
        self.times: dict[TCubeTiling, int] = {}
        self.judged = 0

    def run(self, start: "TCubeTiling", cycles: int) -> "tuple[TCubeTiling, int]":
        """Return the tiling at which no change that was timed is faster, and its cycles."""
        # Hill climbing. A round that saves little may still lead on, so up to `MOST_LITTLE` of them
        # are allowed; a tiling with more ragged lengths must pay for that by a clear gain.
        best, fewest, little = start, cycles, 0
        for _ in range(self.effort.rounds):
            tired = little >= MOST_LITTLE or len(self.times) >= self.effort.all
            found, least = self._round(best, fewest, tired=tired)
            if found is None:
                break
            enough = least <= (1 - LEAST_GAIN) * fewest
            if not enough and ragged(found) > ragged(best):
                break
            best, fewest, little = found, least, little + (not enough)
        return self._trimmed(best, fewest)

    def _trimmed(self, tiling: "TCubeTiling", cycles: int) -> "tuple[TCubeTiling, int]":
        """Return a tiling with base blocks no longer than its shares need, if it is as fast so."""
        # The search lengthens base blocks for the last core's sake and may leave one beyond every
        # share; a shorter one does the same work, and reads as what it is.
        best, fewest = tiling, cycles
        for base, share in (("baseM", tiling.singleCoreM), ("baseN", tiling.singleCoreN)):
            for size in range(align_up(share, FRACTAL_ROWS), getattr(tiling, base), FRACTAL_ROWS):
                one = replace(best, **{base: size})
                if not self._is_legal(one):
                    continue
                took = self._time(one, fewest)
                if took <= fewest:
                    best, fewest = one, took
                break
        return best, fewest

    def _is_legal(self, tiling: "TCubeTiling") -> bool:
        """Return whether a tiling breaks no rule and is as asked."""
        if next(self.problem.fix.broken(tiling), None) is not None:
            return False
        return not check_case(RuleCase(tiling, self.problem, self.chip)).findings

    def _round(
        self, tiling: "TCubeTiling", cycles: int, *, tired: bool
    ) -> "tuple[TCubeTiling | None, int]":
        """Return the fastest of a tiling's changes and its cycles; None if none is faster.

        Where the search is `tired`, those alone are timed that promise much.
        """
        case = RuleCase(None, over_shared_k(self.problem), self.chip)
        shared = replace(tiling, Ka=case.problem.k, Kb=case.problem.k)
        near = changes(case, shared, cycles, self.problem.fix)
        self.judged += near.judged
        # `left` counts timings, not changes: most of what is listed is skipped by what the walk of
        # its chunks promises, or was timed in an earlier round.
        most = left = self._at_once(tiling)
        least = LEAST_TIMED if near.rough == 1 else 2 * LEAST_TIMED
        worth = self.effort.near
        if tired:
            most, least, worth = min(most, LEAST_TIMED), 0, 1 - MUCH_GAIN
            left = most
        found, fewest = None, cycles
        for one, likely in zip(near.tilings, near.likely, strict=True):
            if left == 0:
                break
            # `likely` is relative to the round's start; once a faster one is found, the bar rises
            # with it. The walk is about as far off as the last ones that it leaves: some are timed
            # whatever it says.
            if likely > worth * fewest / cycles and most - left >= least:
                continue
            whole = whole_tiling(one, self.problem, self.chip)
            if whole is None or whole in self.times:
                continue
            left -= 1
            took = self._time(whole, fewest - 1)
            if took < fewest:
                found, fewest = whole, took
        return found, fewest

    def _at_once(self, tiling: "TCubeTiling") -> int:
        """Return how many changes of a tiling are timed: more where a timing costs less."""
        t = tiling
        if not is_known(self.problem, self.chip):
            return self.effort.walked
        # The clock without trees walks base-K steps one by one until they recur; what has few of
        # them is timed in a fraction of the usual time.
        tiles = ceil_div(t.singleCoreM, t.baseM) * ceil_div(t.singleCoreN, t.baseN)
        short = tiles * ceil_div(t.singleCoreK, t.baseK) <= SHORT_STEPS
        return self.effort.timed * (2 if short else 1)

    def _time(self, tiling: "TCubeTiling", latest: int) -> int:
        """Return the cycles of a tiling; some behind `latest` where it takes longer."""
        time = launch_time(self.problem, tiling, self.chip, latest)
        if time is not None:
            self.times[tiling] = time.cycles
        else:
            from cubecore.planning.timed_product import TimedProduct

            self.times[tiling] = TimedProduct(self.problem, tiling, self.chip).line.cycles
        return self.times[tiling]
