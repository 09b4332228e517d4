"""A timeline as Chrome JSON, the format that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from math import inf, nextafter
from typing import TYPE_CHECKING

from cubecore.errors import RequestError, refuse
from cubecore.reports.files.trace_view import (
    EVENT_BYTES,
    MOST_BYTES,
    TRACED_INSTRUCTIONS,
    WHOLE,
)
from cubecore.reports.html.lanes import (
    PIPE_ORDER,
    Aside,
    Inside,
    Lane,
    LaneGroup,
    groups,
    line_of,
    ranges,
    signals,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cubecore.aliases import Json
    from cubecore.chips.model import Chip
    from cubecore.reports.files.trace_view import TraceView
    from cubecore.timing.records import CoreTime, Segment, Timeline

MAX_EVENTS = 110_000
"""Instructions of all groups together, unless more are asked for: about 19 MB."""
_FIRST_INSIDE, _FIRST_ASIDE = 50, 100
_MOST_ARROWS, _MOST_COUNTS = 1_000, 2_000
"""Of each group, so that the instructions keep the file's room: the first ones."""


def require_openable(lines: Sequence[Timeline], chip: Chip, view: TraceView) -> None:
    """Refuse a trace that would be too large to open, by what the launches issue.

    Nothing has to be recorded for that. What lies in a window is taken to be spread evenly, so only
    what is far too large is refused here; any trace is measured before it is made.

    Raises
    ------
    RequestError
        If the trace has more events than viewers open; the message says how to keep fewer.
    """
    hertz: int = chip.require("frequency_hz", "a trace")
    events = 0.0
    ends, chosen = [0.0], [time for line in lines for time in _asked(line, view)]
    for time in chosen:
        started = sum(n for pipe, n in time.started.items() if pipe in PIPE_ORDER[1:])
        traced = min(started, view.instructions or TRACED_INSTRUCTIONS)
        end = time.end_cycles * 1e6 / hertz * traced / max(started, 1)
        ends.append(end)
        begin, until = view.window or (0.0, end)
        part = max(min(until, end) - begin, 0) / end if end else 0.0
        events += traced * part
    size = events * EVENT_BYTES
    if size > MOST_BYTES * (1 if view.window is None else 2):
        begin, until = view.window or (0.0, max(ends))
        fits = begin + (min(until, max(ends)) - begin) * MOST_BYTES / size
        raise _too_large(size, int(events), begin, fits, chosen)


def trace_bytes(document: Json) -> bytes:
    """Return a trace as UTF-8 JSON."""
    return json.dumps(document, separators=(",", ":")).encode()


def trace_json(
    title: str, chip: Chip, runs: Sequence[tuple[str, Timeline]], view: TraceView = WHOLE
) -> Json:
    """Return the trace of timelines on one time axis as a JSON object, each with its name.

    A group of equal cores is a process, a pipe a thread, an instruction a complete event. Time 0 is
    the cores' start, so the launch before it is not in the trace. Times are microseconds in whole
    nanoseconds; `args` keep the cycles, which are exact. What was cut is in ``otherData``.

    Raises
    ------
    RequestError
        If no viewer would open the trace; raised before it is made.
    """
    hertz: int = chip.require("frequency_hz", "a trace")
    named_groups = [(name, group) for name, line in runs for group in _chosen(line, view)]
    _require_small([group for _, group in named_groups], view, hertz)
    events: list[Json] = []
    arrow = 0
    for number, (name, group) in enumerate(named_groups):
        events += _names(number, name + group.label, group, view)
        events += _events(number, group, view, hertz)
        events += _recording_end(number, group, view, hertz)
        events += islice(_counters(number, group, view, hertz), _MOST_COUNTS)
        arrows = list(islice(_flows(number, group, view, hertz, arrow), 2 * _MOST_ARROWS))
        arrow += len(arrows) // 2 + 1
        events += arrows
    timeline = runs[0][1]
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
            "not_recorded": "flags and barriers"
            + ("" if view.waits else ", waits and the scalar unit's own work"),
            "groups": [_extent(name, group) for name, group in named_groups],
        },
    }


def _chosen(timeline: Timeline, view: TraceView) -> list[LaneGroup]:
    """Return the groups that a view asks for."""
    times, limit = _asked(timeline, view), view.record
    if view.instructions is None:
        limit = min(limit, max(MAX_EVENTS // len(times), 1))
    return list(groups(replace(timeline, groups=tuple(times)), limit))


def _asked(timeline: Timeline, view: TraceView) -> list[CoreTime]:
    """Return the times of the groups that a view asks for."""
    times = [t for t in timeline.groups if view.cores is None or view.cores & set(t.cores)]
    if not times:
        cores = ranges(sorted({core for time in timeline.groups for core in time.cores}))
        asked = ranges(sorted(view.cores or ()))
        raise refuse("--trace-cores", f"name some of the cores {cores}", asked)
    return times


def _require_small(chosen: Sequence[LaneGroup], view: TraceView, hertz: int) -> None:
    """Refuse a trace that would be too large to open, by what its events take."""
    segments = [s for group in chosen for lane in _lanes(group, view) for s in lane.segments]
    seen = [s for s in segments if _seen(s, view, hertz)]
    size = sum(EVENT_BYTES + len(s.name) for s in seen)
    # Beside an event for each segment a group may have arrows (two events each) and counts (of the
    # pipes at work, where an instruction begins and ends), at most as many as the trace takes.
    most = (2 * min(g.shown, _MOST_ARROWS) + min(2 * g.shown, _MOST_COUNTS) for g in chosen)
    size += min(sum(most), 2 * len(seen)) * EVENT_BYTES
    if size <= MOST_BYTES:
        return
    # Events lie about evenly in time: a window in proportion to the bytes that fit is near enough.
    begin_us = min(s.start for s in seen) * 1e6 / hertz
    end_us = max(s.end for s in seen) * 1e6 / hertz
    fits_us = begin_us + (end_us - begin_us) * MOST_BYTES / size
    raise _too_large(size, len(seen), begin_us, fits_us, [group.time for group in chosen])


def _too_large(
    size: float, events: int, begin_us: float, end_us: float, groups: Sequence[CoreTime]
) -> RequestError:
    """Return the error of a trace of so many bytes, of which about that window fits."""
    core = min(core for group in groups for core in group.cores)
    remedy = f"--trace-window {begin_us:.0f}..{end_us:.0f}"
    if len(groups) > 1:
        remedy = f"--trace-cores {core}, or {remedy}"
    return refuse(
        "--trace",
        f"take at most {MOST_BYTES // 1_000_000} MB to be opened",
        f"{size / 1e6:,.0f} MB ({events:,} events)",
        f"{remedy}, keeps less",
    )


def _seen(segment: Segment, view: TraceView, hertz: int) -> bool:
    """True if a part of a segment lies in the window."""
    if view.window is None:
        return True
    begin, end = (us * hertz / 1e6 for us in view.window)
    return segment.end > begin and segment.start < end


def _extent(name: str, group: LaneGroup) -> Json:
    """Return what of a group the trace holds."""
    return {
        "name": name + group.label,
        "instructions": group.shown,
        "complete": group.complete,
        "recorded_until_cycle": group.recorded_end,
        "recorded_share": group.recorded_share,
        "end_cycle": group.time.end_cycles,
    }


def _lanes(group: LaneGroup, view: TraceView) -> Sequence[Lane | Aside]:
    return (*group.lanes, *group.inside, *(group.aside if view.waits else ()))


def _names(number: int, name: str, group: LaneGroup, view: TraceView) -> Iterator[Json]:
    def meta(kind: str, thread: int, **args: object) -> Json:
        return {"name": kind, "ph": "M", "pid": number, "tid": thread, "args": args}

    yield meta("process_name", 0, name=name)
    yield meta("process_sort_index", 0, sort_index=number)
    for index, lane in enumerate(_lanes(group, view)):
        thread = _thread(lane, index)
        label = lane.label if isinstance(lane, Aside) else lane.pipe
        work = "" if isinstance(lane, Aside) else lane.work
        yield meta("thread_name", thread, name=f"{label} ({work})" if work else label)
        yield meta("thread_sort_index", thread, sort_index=thread)


def _thread(lane: Lane | Aside, index: int) -> int:
    """Return a lane's thread: pipes 1 and up in the fixed order, others behind, then asides."""
    pipe = lane.pipe
    number = PIPE_ORDER.index(pipe) if pipe in PIPE_ORDER else len(PIPE_ORDER) + index
    if isinstance(lane, Inside):
        return _FIRST_INSIDE + index
    if isinstance(lane, Aside):
        return _FIRST_ASIDE + 2 * number + lane.label.endswith("waits")
    return 1 + number


def _events(number: int, group: LaneGroup, view: TraceView, hertz: int) -> Iterator[Json]:
    for index, lane in enumerate(_lanes(group, view)):
        thread = _thread(lane, index)
        for segment in lane.segments:
            if not _seen(segment, view, hertz):
                continue
            start = _nanoseconds(segment.start, hertz)
            yield {
                "name": segment.name,
                "cat": "aside" if isinstance(lane, Aside) else segment.pipe,
                "ph": "X",
                "ts": _microseconds(start),
                "dur": _microseconds(_nanoseconds(segment.end, hertz) - start),
                "pid": number,
                "tid": thread,
                "args": {"start_cycle": segment.start, "end_cycle": segment.end} | _more(segment),
            }


def _recording_end(number: int, group: LaneGroup, view: TraceView, hertz: int) -> Iterator[Json]:
    """Yield a mark over all threads where the recorded instructions of a longer run end."""
    at_us = _microseconds(_nanoseconds(group.recorded_end, hertz))
    if group.complete or (view.window is not None and at_us > view.window[1]):
        return
    yield {
        "name": f"recording ends here: {group.recorded_share:.1%} of the run",
        "cat": "recording",
        "ph": "i",
        "s": "p",
        "ts": at_us,
        "pid": number,
        "tid": 0,
        "args": {"cycle": group.recorded_end, "end_cycle": group.time.end_cycles},
    }


def _more(segment: Segment) -> Json:
    """Return its line, what an instruction moves and what it waited for, where that is known."""
    record = {"line": line_of(segment), "operand": segment.operand, "waited_for": segment.cause}
    return {name: text for name, text in record.items() if text}


def _flows(
    number: int, group: LaneGroup, view: TraceView, hertz: int, first: int
) -> Iterator[Json]:
    """Yield an arrow for each flag: from the instruction that raised it to the one that waited."""
    for index, signal in enumerate(signals(group), first):
        ends = [(*signal.raised, "s"), (*signal.waited, "f")]
        chosen = [(group.lanes[lane], group.lanes[lane].segments[at], ph) for lane, at, ph in ends]
        if not all(_seen(segment, view, hertz) for _, segment, _ in chosen):
            continue
        for lane, segment, phase in chosen:
            at = _nanoseconds(segment.start, hertz)
            yield {
                "name": signal.flag,
                "cat": "signal",
                "ph": phase,
                "id": index,
                "ts": _microseconds(at),
                "pid": number,
                "tid": _thread(lane, 0),
                **({"bp": "e"} if phase == "f" else {}),
            }


def _counters(number: int, group: LaneGroup, view: TraceView, hertz: int) -> Iterator[Json]:
    """Yield how many pipes are at work, whenever that changes."""
    changes: dict[int, int] = {}
    for lane in group.lanes:
        for segment in lane.segments:
            if _seen(segment, view, hertz) and segment.end > segment.start:
                changes[segment.start] = changes.get(segment.start, 0) + 1
                changes[segment.end] = changes.get(segment.end, 0) - 1
    busy = 0
    for cycle in sorted(changes):
        busy += changes[cycle]
        if changes[cycle]:
            yield {
                "name": "pipes at work",
                "ph": "C",
                "ts": _microseconds(_nanoseconds(cycle, hertz)),
                "pid": number,
                "tid": 0,
                "args": {"pipes": busy},
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
