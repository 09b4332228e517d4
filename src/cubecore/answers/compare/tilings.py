"""The answer of `compare`: two tilings of one problem side by side, and on one timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecore.advice.intervals import interval_range
from cubecore.answers.compare.figures import figures_of, verdict
from cubecore.answers.compare.pair_page import pair_report
from cubecore.answers.time import Timed, time_legal
from cubecore.presented import Presented
from cubecore.presented.text import duration, number, table
from cubecore.reports.timelines import RECORDED
from cubecore.tiling.model.request import TilingRequest, problem_line
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cubecore.aliases import Json
    from cubecore.presented import Figures
    from cubecore.reports.files.trace_view import TraceView
    from cubecore.tiling.rules.checker import Findings


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
    """Two tilings; `ratio` is the second's time over the first's, None unless both are legal.

    `names` are what they are called: their files, where they come from files.
    """

    request: TilingRequest
    first: ComparedTiling
    second: ComparedTiling
    names: Sequence[str] = ("first", "second")

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
    def sentence(self) -> str | None:
        """The faster of the two, by how much and why; None unless both are legal."""
        if not self.timed:
            return None
        chip = self.request.chip.name
        return verdict(self.names, [figures_of(one.timeline, chip) for one in self.timed])

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
            "names": list(self.names),
            "difference": self.sentence,
        }

    @property
    def text(self) -> str:
        """Both side by side, and what is wrong with each."""
        first, second = self.first, self.second
        rows: list[Sequence[object]] = [("", *self.names)]
        rows += [(name, *pair) for name, pair in self.differing.items()]
        if len(rows) == 1:
            rows.append(("(no field differs)", "", ""))
        rows.append(("legal", _yes(first.findings.legal), _yes(second.findings.legal)))
        for label, value in (("us", _us), ("in 8 of 10 cases", _likely), ("limited by", _limit)):
            rows.append((label, value(first), value(second)))
        lines = [problem_line(self.request), "", *table(rows)]
        if self.sentence is not None:
            lines += ["", f"{self.sentence}."]
        for name, side in zip(self.names, (first, second), strict=True):
            lines += [f"{name}: {finding.message}" for finding in side.findings.findings]
        return "\n".join(lines) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each tiling."""
        return [
            {"legal": side.findings.legal, "us": side.timed and side.timed.timeline.us}
            | side.tiling.to_json()
            for side in (self.first, self.second)
        ]

    def _figures(self) -> Figures:
        ratio, sides = self.ratio, (self.first, self.second)
        times = [duration(s.timed.timeline.us) if s.timed else "illegal" for s in sides]
        figures = list(zip(self.names, times, strict=True))
        figures += [("second over first", "none" if ratio is None else f"{ratio:.3f}")]
        return problem_line(self.request), figures

    def _picture(self) -> str:
        from cubecore.presented.card import bars

        sides = zip(self.names, self.timed, strict=False)
        times = {name: timed.timeline.cycles for name, timed in sides}
        return bars({name: cycles / max(times.values()) for name, cycles in times.items()})

    def _page(self) -> str:
        if not self.timed:
            raise self._without_page()
        first, second = (time_legal(self.request, one.tiling, RECORDED) for one in self.timed)
        return pair_report(first, second, problem_line(self.request), self.names)

    def page(self, tiling_from: str = "") -> str:
        """Return the page with both on one timeline; `tiling_from` says which is which."""
        first, second = self.timed
        named = f"{tiling_from}: " if tiling_from else ""
        return pair_report(first, second, named + problem_line(self.request), self.names)

    def trace(self, view: TraceView) -> Json:
        """Return the Chrome trace of both on one time axis: groups ``first`` and ``second``."""
        from cubecore.reports.files.chrome_trace import trace_json

        pairs = zip(("first", "second"), self.timed, strict=True)
        runs = [(f"{name}: ", one.timeline) for name, one in pairs]
        return trace_json(problem_line(self.request), self.request.chip, runs, view)

    def metrics(self) -> Json:
        """Return the figures of both."""
        first, second = self.timed
        return {"first": first.metrics(), "second": second.metrics()}


def _yes(legal: bool) -> str:
    return "yes" if legal else "no"


def _us(side: ComparedTiling) -> str:
    return "-" if side.timed is None else number(side.timed.timeline.us)


def _likely(side: ComparedTiling) -> str:
    return "-" if side.timed is None else interval_range(side.timed.interval)


def _limit(side: ComparedTiling) -> str:
    return "-" if side.timed is None else side.timed.timeline.limited_by
