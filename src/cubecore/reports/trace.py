"""A timeline as Chrome JSON, the format that Perfetto and chrome://tracing open."""

import json
from collections.abc import Iterator
from math import inf, nextafter
from typing import Any

from cubecore.chips.model import Chip
from cubecore.reports.lanes import PIPE_ORDER, Group, groups
from cubecore.reports.text import problem_line
from cubecore.timing.timeline import Timeline
from cubecore.workflows.script import TimedLaunch
from cubecore.workflows.time import Timed

TRACED_INSTRUCTIONS = 20_000
"""Instructions of each group of cores that a trace holds, unless there are many groups."""
MAX_EVENTS = 120_000
"""Instructions of all groups together: about 17 MB."""


def trace_bytes(timed: Timed, limit: int = TRACED_INSTRUCTIONS) -> bytes:
    """Return the trace as UTF-8 JSON; `limit` instructions of each group at most."""
    return _bytes(trace_json(timed, limit))


def launch_trace_bytes(launch: TimedLaunch, limit: int = TRACED_INSTRUCTIONS) -> bytes:
    """Return the same of a launch of a user's kernel."""
    return _bytes(_trace(launch.title, launch.run.chip, launch.timeline, limit))


def _bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def trace_json(timed: Timed, limit: int = TRACED_INSTRUCTIONS) -> dict[str, Any]:
    """Return the trace as a JSON object.

    A group of equal cores is a process, a pipe a thread, an instruction a complete event. Time 0 is
    the cores' start, so the launch before it is not in the trace. Times are microseconds in whole
    nanoseconds; `args` keep the cycles, which are exact. What was cut is in ``otherData``.
    """
    return _trace(problem_line(timed.request), timed.request.chip, timed.timeline, limit)


def _trace(title: str, chip: Chip, timeline: Timeline, limit: int) -> dict[str, Any]:
    hertz: int = chip.require("frequency_hz", "a trace")
    fair = min(limit, max(MAX_EVENTS // max(len(timeline.groups), 1), 1))
    found = groups(timeline, fair)
    events: list[dict[str, Any]] = []
    for number, group in enumerate(found):
        events += _names(number, group)
        events += _events(number, group, hertz)
    return {
        "displayTimeUnit": "ns",
        "traceEvents": events,
        "otherData": {
            "problem": title,
            "chip": chip.name,
            "frequency_hz": hertz,
            "cycles": timeline.cycles,
            "us": timeline.us,
            "limited_by": timeline.limited_by,
            "launch_cycles_before_0": chip.launch_cycles,
            "not_recorded": "flags, barriers and the scalar unit's own work",
            "groups": [_extent(group) for group in found],
        },
    }


def _extent(group: Group) -> dict[str, Any]:
    """Return what of a group the trace holds."""
    return {
        "name": group.label,
        "instructions": group.shown,
        "complete": group.complete,
        "recorded_until_cycle": group.recorded_end,
        "end_cycle": group.time.end_cycles,
    }


def _names(number: int, group: Group) -> Iterator[dict[str, Any]]:
    def meta(kind: str, thread: int, **args: Any) -> dict[str, Any]:
        return {"name": kind, "ph": "M", "pid": number, "tid": thread, "args": args}

    yield meta("process_name", 0, name=group.label)
    yield meta("process_sort_index", 0, sort_index=number)
    for thread, lane in enumerate(group.lanes):
        place = _thread(lane.pipe, thread)
        work = lane.work
        yield meta("thread_name", place, name=f"{lane.pipe} ({work})" if work else lane.pipe)
        yield meta("thread_sort_index", place, sort_index=place)


def _thread(pipe: str, place: int) -> int:
    """Return a pipe's thread: 1 and up in the fixed order, others behind."""
    return 1 + (PIPE_ORDER.index(pipe) if pipe in PIPE_ORDER else len(PIPE_ORDER) + place)


def _events(number: int, group: Group, hertz: int) -> Iterator[dict[str, Any]]:
    for place, lane in enumerate(group.lanes):
        thread = _thread(lane.pipe, place)
        for segment in lane.segments:
            start = _nanoseconds(segment.start, hertz)
            yield {
                "name": segment.name,
                "cat": segment.pipe,
                "ph": "X",
                "ts": _microseconds(start),
                "dur": _microseconds(_nanoseconds(segment.end, hertz) - start),
                "pid": number,
                "tid": thread,
                "args": {"start_cycle": segment.start, "end_cycle": segment.end},
            }


def _nanoseconds(cycles: int, hertz: int) -> int:
    return (cycles * 1_000_000_000 + hertz // 2) // hertz


def _microseconds(nanoseconds: int) -> float:
    """Return the microseconds that a reader's ``int(us * 1000)`` turns back into `nanoseconds`.

    Where the nearest double falls short, the truncation would make neighbours overlap.
    """
    value = nanoseconds / 1000
    while int(value * 1000) < nanoseconds:
        value = nextafter(value, inf)
    return value
