"""compare: two tilings of one problem, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from cubecore.kernels.runnable import require_timed
from cubecore.lazy_dataclass import dataclass
from cubecore.presented import Presented
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.checker import Findings, check_case
from cubecore.tiling.rules.model import RuleCase
from cubecore.workflows.keywords import ProblemKeys, takes_problem
from cubecore.workflows.request import TilingRequest, given_tiling, make_request
from cubecore.workflows.time import Timed, time_legal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cubecore.aliases import Json, JsonMapping
    from cubecore.tiling.model.problem import Problem


@dataclass(frozen=True, slots=True)
class ComparedTiling:
    """One of two tilings, its broken rules, and its time if it is legal."""

    tiling: TCubeTiling
    findings: Findings
    timed: Timed | None

    def to_json(self) -> Json:
        """Return the side as JSON; `time` and `interval` are null for an illegal tiling."""
        return {
            "tiling": self.tiling.to_json(),
            **self.findings.to_json(),
            "time": None if self.timed is None else self.timed.timeline.to_json(),
            "interval": None if self.timed is None else self.timed.interval.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Comparison(Presented):
    """Two tilings; `ratio` is the second's time over the first's, None unless both are legal."""

    request: TilingRequest
    first: ComparedTiling
    second: ComparedTiling

    @property
    def ratio(self) -> float | None:
        """Time of the second over time of the first."""
        if self.first.timed is None or self.second.timed is None:
            return None
        return self.second.timed.timeline.cycles / self.first.timed.timeline.cycles

    @property
    def timed(self) -> list[Timed]:
        """The times of both, none unless both are legal."""
        first, second = self.first.timed, self.second.timed
        return [] if first is None or second is None else [first, second]

    @property
    def differing(self) -> dict[str, tuple[int, int]]:
        """Fields whose values differ."""
        pairs = {f: (getattr(self.first.tiling, f), getattr(self.second.tiling, f)) for f in FIELDS}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    @property
    def legal(self) -> bool:
        """True if both are legal."""
        return self.first.findings.legal and self.second.findings.legal

    def to_json(self) -> Json:
        """Return both sides, the differing fields and the ratio."""
        return {
            "problem": self.request.problem.to_json(),
            "tilings": [self.first.to_json(), self.second.to_json()],
            "differing": {name: list(pair) for name, pair in self.differing.items()},
            "ratio": self.ratio,
        }


@takes_problem
def compare(
    first: TCubeTiling | JsonMapping,
    second: TCubeTiling | JsonMapping,
    problem: Problem | JsonMapping | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    record: int = 0,
    **keys: Unpack[ProblemKeys],
) -> Comparison:
    """Return two tilings of one problem side by side: checked and, where legal, timed.

    Parameters
    ----------
    first : TCubeTiling or mapping
        One tiling.
    second : TCubeTiling or mapping
        The other.
    problem : Problem or mapping or None
        The product: a record or a JSON object. Keys of it can also be given as keywords, and
        replace those of `problem`.
    settings : mapping or None
        Fields of the chip to replace, as texts: a what-if chip.
    record : int
        Instructions of each group of cores to keep as segments, for a report or a trace.
    **keys
        Fields of `Problem` (m, n, k, a, chip, ...).

    Returns
    -------
    Comparison
        Both, the fields that differ, and the ratio of their times.

    Raises
    ------
    RequestError
        If the request cannot be timed, or the extents differ.

    Examples
    --------
    >>> tiling = cubecore.plan(m=64, n=64, k=64).tiling
    >>> cubecore.compare(tiling, tiling, m=64, n=64, k=64).ratio
    1.0
    """
    request = make_request(problem, settings, keys, first)
    require_timed(request.chip)
    sides = []
    for tiling in (given_tiling(x, request.problem) for x in (first, second)):
        findings = check_case(RuleCase(tiling, request.problem, request.chip))
        timed = time_legal(request, tiling, record) if findings.legal else None
        sides.append(ComparedTiling(tiling, findings, timed))
    return Comparison(request, *sides)
