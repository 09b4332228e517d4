"""The answer of `compare`: two tilings of one problem side by side, and on one timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.advice.intervals import interval_range
from cubecore.answers.time import Timed, time_legal
from cubecore.lazy_dataclass import dataclass
from cubecore.presented import Presented
from cubecore.presented.text import duration, number, table
from cubecore.reports.html.lanes import PIPE_ORDER
from cubecore.reports.timelines import RECORDED
from cubecore.tiling.model.request import TilingRequest, problem_line
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cubecore.aliases import Json
    from cubecore.presented import Figures
    from cubecore.reports.files.trace_view import TraceView
    from cubecore.tiling.rules.checker import Findings
    from cubecore.timing.records import Timeline

_LIMIT = 5000


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

    @property
    def text(self) -> str:
        """Both side by side, and what is wrong with each."""
        first, second = self.first, self.second
        rows: list[Sequence[object]] = [("", "first", "second")]
        rows += [(name, *pair) for name, pair in self.differing.items()]
        if len(rows) == 1:
            rows.append(("(no field differs)", "", ""))
        rows.append(("legal", _yes(first.findings.legal), _yes(second.findings.legal)))
        for label, value in (("us", _us), ("in 8 of 10 cases", _likely), ("limited by", _limit)):
            rows.append((label, value(first), value(second)))
        lines = [problem_line(self.request), "", *table(rows)]
        if self.ratio is not None:
            lines += ["", _verdict(*self.timed)]
        for name, side in (("first", first), ("second", second)):
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
        figures = [("first", times[0]), ("second", times[1])]
        figures += [("second over first", "none" if ratio is None else f"{ratio:.3f}")]
        return problem_line(self.request), figures

    def _picture(self) -> str:
        from cubecore.presented.card import bars

        sides = zip(("first", "second"), self.timed, strict=False)
        times = {name: timed.timeline.cycles for name, timed in sides}
        return bars({name: cycles / max(times.values()) for name, cycles in times.items()})

    def _page(self) -> str:
        if not self.timed:
            raise self._without_page()
        first, second = (time_legal(self.request, one.tiling, RECORDED) for one in self.timed)
        return pair_report(first, second, problem_line(self.request))

    def page(self, tiling_from: str = "") -> str:
        """Return the page with both on one timeline; `tiling_from` says which is which."""
        first, second = self.timed
        named = f"{tiling_from}: " if tiling_from else ""
        return pair_report(first, second, named + problem_line(self.request))

    def trace(self, view: TraceView) -> Json:
        """Return the Chrome trace of both on one time axis: groups ``first`` and ``second``."""
        from cubecore.reports.files.chrome_trace import trace_json

        names = ("first: ", "second: ")
        runs = [(name, t.timeline) for name, t in zip(names, self.timed, strict=True)]
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


def pair_report(first: Timed, second: Timed, title: str, *, limit: int = _LIMIT) -> str:
    """Return the page about two runs; `limit` instructions of the slowest cores of each are drawn.

    The runs may differ in anything: tiling, problem or chip.
    """
    from cubecore.reports.html.page import page

    return page(title, pair_data(first, second, title, limit))


def pair_data(first: Timed, second: Timed, title: str, limit: int) -> Json:
    """Return everything that the page shows."""
    from cubecore.reports.html.page import common_data, timeline_data

    chip = first.request.chip
    common = common_data(title, chip, first.timeline, limit)
    clocks = [timeline_data(run.timeline, run.request.chip, limit) for run in (first, second)]
    for clock, run in zip(clocks, (first, second), strict=True):
        clock["groups"] = [clock["groups"][_slowest(run.timeline, len(clock["groups"]))]]
    merged = clocks[0] | {
        "groups": [_merged([clock["groups"][0] for clock in clocks])],
        "end": max(clock["end"] for clock in clocks),
        "start": min(clock["start"] for clock in clocks),
        "left_out": 0,
    }
    return {
        "version": common["version"],
        "pair": {"title": title, "rows": list(_rows(first, second))},
        "timeline": merged,
    }


def _slowest(timeline: Timeline, shown: int) -> int:
    ends = [group.end_cycles for group in timeline.groups[:shown]]
    return ends.index(max(ends))


def _merged(groups: list[Json]) -> Json:
    """Return one group with the lanes of two, each pipe's under each other."""
    lanes: list[Json] = []
    aside: list[Json] = []
    for pipe in PIPE_ORDER:
        for number_of, group in enumerate(groups, 1):
            for kind, into in (("lanes", lanes), ("aside", aside)):
                of_pipe = [lane for lane in group[kind] if lane["pipe"] == pipe]
                of = {"of": group["end"]} if into is lanes else {}
                into += [lane | of | {"label": f"{lane['label']} {number_of}"} for lane in of_pipe]
    return {
        "label": "; ".join(f"{i}: {group['label']}" for i, group in enumerate(groups, 1)),
        "cores": groups[0]["cores"],
        "end": max(group["end"] for group in groups),
        "scalar": groups[0]["scalar"],
        "shown": sum(group["shown"] for group in groups),
        "complete": all(group["complete"] for group in groups),
        "recorded_end": max(group["recorded_end"] for group in groups),
        "signals": [],
        "lanes": lanes,
        "aside": aside,
    }


def _rows(first: Timed, second: Timed) -> Iterator[tuple[str, ...]]:
    """Yield what the runs' figures are, where they differ, and by how much."""
    runs = (first, second)
    times = [run.timeline.us for run in runs]
    yield ("time", *(duration(us) for us in times), _difference(*times))
    yield ("limited by", *(run.timeline.limited_by for run in runs), "")
    rates = [run.timeline.tflops for run in runs]
    yield ("TFLOPS", *map(number, rates), _difference(*rates))
    for pipe in PIPE_ORDER:
        busy = [run.timeline.pipes.get(pipe, 0) for run in runs]
        if any(busy):
            cycles = (f"{cycles:,}" for cycles in busy)
            yield (f"{pipe} busy, cycles", *cycles, _difference(*busy))
    moved = (("read", "read_bytes"), ("read from device memory", "hbm_read_bytes"))
    for name, field in moved:
        sizes = [getattr(run.timeline, field) for run in runs]
        yield (name, *(f"{size / 1e6:,.2f} MB" for size in sizes), _difference(*sizes))
    chips = [run.request.chip.name for run in runs]
    if chips[0] != chips[1]:
        yield ("chip", *chips, "")
    for name in FIELDS:
        values = [getattr(run.tiling, name) for run in runs]
        if values[0] != values[1]:
            yield (name, *map(str, values), f"{values[1] - values[0]:+,}")


def _difference(first: float | None, second: float | None) -> str:
    """Return how much more or less the second is than the first; empty where there is no ratio."""
    if not first or second is None:
        return ""
    return f"{second / first - 1:+.1%}"


def _verdict(first: Timed, second: Timed) -> str:
    """Return which of two is faster, by how much, and whether it reads less."""
    lines = {"first": first.timeline, "second": second.timeline}
    if first.timeline.cycles == second.timeline.cycles:
        return "Both take the same time."
    fast, slow = sorted(lines, key=lambda name: lines[name].cycles)
    factor = lines[slow].cycles / lines[fast].cycles
    times = f"{duration(lines[fast].us)} against {duration(lines[slow].us)}"
    verdict = f"The {fast} is {factor:.2f}x faster ({times})"
    read, other = lines[fast].read_bytes, lines[slow].read_bytes
    if read >= other:
        return f"{verdict}."
    return f"{verdict}: it reads {1 - read / other:.0%} less from L2."
