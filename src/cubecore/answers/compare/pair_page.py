"""The page of two timed launches: their figures, and both on one timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.answers.compare.figures import difference_of, figures_of, verdict
from cubecore.presented.text import duration, number
from cubecore.reports.html.lanes import PIPE_ORDER
from cubecore.tiling.model.tcubetiling import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cubecore.aliases import Json
    from cubecore.answers.compare.figures import LaunchFigures
    from cubecore.answers.time import Timed
    from cubecore.timing.records import Timeline

_LIMIT = 5000


def pair_report(
    first: Timed,
    second: Timed,
    title: str,
    names: Sequence[str] = ("first", "second"),
    *,
    limit: int = _LIMIT,
) -> str:
    """Return the page about two runs; `limit` instructions of the slowest cores of each are drawn.

    The runs may differ in anything: tiling, problem or chip. `names` are what they are called.
    """
    from cubecore.reports.html.page import page

    return page(title, pair_data(first, second, title, names, limit))


def pair_data(first: Timed, second: Timed, title: str, names: Sequence[str], limit: int) -> Json:
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
        "pair": {
            "title": title,
            "names": list(names),
            "sentence": verdict(names, [_figures(run) for run in (first, second)]),
            "rows": list(_rows(first, second)),
        },
        "timeline": merged,
    }


def _figures(run: Timed) -> LaunchFigures:
    return figures_of(run.timeline, run.request.chip.name)


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
    yield ("time", *(duration(us) for us in times), difference_of(*times))
    yield ("limited by", *(run.timeline.limited_by for run in runs), "")
    rates = [run.timeline.tflops for run in runs]
    yield ("TFLOPS", *map(number, rates), difference_of(*rates))
    for pipe in PIPE_ORDER:
        busy = [run.timeline.pipes.get(pipe, 0) for run in runs]
        if any(busy):
            cycles = (f"{cycles:,}" for cycles in busy)
            yield (f"{pipe} busy, cycles", *cycles, difference_of(*busy))
    moved = (("read", "read_bytes"), ("read from device memory", "hbm_read_bytes"))
    for name, field in moved:
        sizes = [getattr(run.timeline, field) for run in runs]
        yield (name, *(f"{size / 1e6:,.2f} MB" for size in sizes), difference_of(*sizes))
    chips = [run.request.chip.name for run in runs]
    if chips[0] != chips[1]:
        yield ("chip", *chips, "")
    for name in FIELDS:
        values = [getattr(run.tiling, name) for run in runs]
        if values[0] != values[1]:
            yield (name, *map(str, values), f"{values[1] - values[0]:+,}")
