"""Recorded instructions by group of cores and pipe, for the page's timeline and the trace."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from cubecore.timing.pipes.queues import CROSS_CORE
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cubecore.timing.records import CoreTime, Segment, Timeline

PIPE_ORDER = ("S", "MTE2", "MTE1", "M", "FIX", "V", "MTE3")
"""The order of lanes and threads: as data flows through a matrix kernel, then the vector side."""
PIPE_WORK = {
    "S": "scalar unit",
    "MTE2": "GM to L1",
    "MTE1": "L1 to L0",
    "M": "Cube",
    "FIX": "L0C to GM",
    "V": "Vector unit",
    "MTE3": "UB to GM",
}
"""The work of each pipe, in a few words."""
_AIV_WORK = {"MTE2": "GM to UB"}
"""The work of an AIV's pipe of the same name."""
_NOT_RECORDED = ("S",)
"""The scalar unit issues to the others; its own cycles are counted, not recorded."""
_SCALAR_WAITS = ("queue of ", "flag ", CROSS_CORE)
"""The beginnings of reasons for which the scalar unit waits."""
_SHOWN_RANGES = 6
_MOST_INSIDE = 5_000
"""Calls inside of vector functions that a group shows: those of its first functions."""
_FLAG = re.compile(r"flag (?P<from>\w+) -> \w+ \d+")
"""The cause of an instruction that waited for a flag."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One pipe of a group: its first instructions, and in the whole run busy cycles and a count."""

    pipe: str
    busy_cycles: int
    segments: tuple[Segment, ...]
    started: int
    part: str = "core"

    @property
    def work(self) -> str:
        """Return the pipe's work; empty for a pipe that is not known."""
        work_of = _AIV_WORK if self.part == "AIV" else {}
        return work_of.get(self.pipe) or PIPE_WORK.get(self.pipe, "")

    @property
    def complete(self) -> bool:
        """True if every instruction of the pipe is among the segments."""
        return len(self.segments) == self.started

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each segment with the operand that it moves."""
        return tuple(f"{s.name} {s.operand}".rstrip() for s in self.segments)


@dataclass(frozen=True, slots=True)
class Signal:
    """A flag between two instructions: the one that raised it, and the one that waited for it.

    Each is the number of a lane and the number of a segment in it.
    """

    flag: str
    raised: tuple[int, int]
    waited: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Aside:
    """The rows beside instructions: a pipe's waits by reason, or the scalar unit's work."""

    pipe: str
    label: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Inside(Aside):
    """A port of the vector unit, with what vector functions issue to it."""


@dataclass(frozen=True, slots=True)
class LaneGroup:
    """Equal cores with their lanes, `shown` instructions in all.

    `aside` are lanes for who asks for them: the scalar unit's own work, and each pipe's waits;
    `inside` those of what happens inside of vector functions, the first ones.
    """

    time: CoreTime
    lanes: tuple[Lane, ...]
    shown: int
    aside: tuple[Aside, ...] = ()
    inside: tuple[Inside, ...] = ()

    @property
    def label(self) -> str:
        """Return the cores and their block: ``20 cores: 0..19 matmul_128x208x4096``.

        Parts of AI Cores are told by these: ``40 AIVs of cores 0..19 softmax``.
        """
        time, cores = self.time, sorted(set(self.time.cores))
        if time.part == "core":
            return f"{plural(len(cores), 'core')}: {ranges(cores)} {time.program}"
        of = f"core{'s' * (len(cores) > 1)} {ranges(cores)}"
        return f"{plural(len(time.cores), time.part)} of {of} {time.program}"

    @property
    def complete(self) -> bool:
        """True if the group's run is shown to its end."""
        return all(lane.complete for lane in self.lanes)

    @property
    def recorded_end(self) -> int:
        """The cycle at which the last shown instruction ends; 0 without any."""
        return max((s.end for lane in self.lanes for s in lane.segments), default=0)

    @property
    def recorded_share(self) -> float:
        """The part of the group's run until `recorded_end`; 1 of a run that is shown whole."""
        if self.complete:
            return 1.0
        return min(self.recorded_end / max(self.time.end_cycles, 1), 1.0)


def line_of(segment: Segment) -> str:
    """Return the line that issued an instruction, as file:line; empty where it is not known."""
    return "" if segment.line is None else f"{segment.line.file}:{segment.line.line}"


def signals(group: LaneGroup) -> Iterator[Signal]:
    """Yield who signalled whom, for each instruction that started when a flag was up.

    A flag is up when the results of all earlier instructions of its pipe are there: the last of
    these is the one that raised it.
    """
    number = {lane.pipe: index for index, lane in enumerate(group.lanes)}
    done = {lane.pipe: [segment.done for segment in lane.segments] for lane in group.lanes}
    for index, lane in enumerate(group.lanes):
        for place, segment in enumerate(lane.segments):
            match = _FLAG.fullmatch(segment.cause)
            if match is None or match["from"] not in done:
                continue
            # `done` of a lane never falls, as a pipe's results come in order.
            before = bisect_right(done[match["from"]], segment.start) - 1
            if before >= 0:
                yield Signal(segment.cause, (number[match["from"]], before), (index, place))


def groups(timeline: Timeline, limit: int) -> tuple[LaneGroup, ...]:
    """Return the groups of a launch, the first `limit` recorded instructions of each."""
    return tuple(_group(time, limit) for time in timeline.groups)


def _group(time: CoreTime, limit: int) -> LaneGroup:
    by_pipe: dict[str, list[Segment]] = {}
    for segment in islice(time.segments, limit):
        by_pipe.setdefault(segment.pipe, []).append(segment)
    order = (*PIPE_ORDER, *(pipe for pipe in by_pipe if pipe not in PIPE_ORDER))
    lanes = tuple(
        Lane(
            pipe,
            time.busy_cycles.get(pipe, 0),
            tuple(by_pipe.get(pipe, ())),
            time.started.get(pipe, 0),
            time.part,
        )
        for pipe in order
        if pipe in by_pipe or (time.busy_cycles.get(pipe) and pipe not in _NOT_RECORDED)
    )
    # Waits and scalar work behind the last instruction that is shown would stand alone.
    shown = [segment for lane in lanes for segment in lane.segments]
    until = max((segment.end for segment in shown), default=0)
    aside = [s for s in time.aside if s.start < until and s.end > s.start]
    inside = islice((part for segment in shown for part in segment.inside), _MOST_INSIDE)
    return LaneGroup(time, lanes, len(shown), tuple(_aside(aside)), tuple(_inside(inside)))


def _inside(segments: Iterable[Segment]) -> Iterable[Inside]:
    """Yield the lanes of what happened inside of instructions."""
    by_lane: dict[str, list[Segment]] = {}
    for segment in segments:
        by_lane.setdefault(segment.pipe, []).append(segment)
    for lane, chosen in sorted(by_lane.items()):
        yield Inside("V", lane, tuple(chosen))


def _aside(segments: Sequence[Segment]) -> Iterable[Aside]:
    """Yield the lanes beside a group's: the scalar unit's work, then waits in the pipes' order."""
    # A scalar unit has two lanes, of its work and of its waits; other pipes only wait here.
    by_lane: dict[tuple[str, bool], list[Segment]] = {}
    for segment in segments:
        by_lane.setdefault((segment.pipe, is_wait(segment)), []).append(segment)
    order = (("S", False), *((pipe, True) for pipe in PIPE_ORDER))
    for pipe, waits in order:
        chosen = sorted(by_lane.get((pipe, waits), ()), key=lambda s: (s.start, s.end))
        if chosen:
            yield Aside(pipe, f"{pipe} waits" if waits else "S work", tuple(chosen))


def is_wait(segment: Segment) -> bool:
    """True if what happened aside is a wait, not the scalar unit's own work."""
    return segment.pipe not in _NOT_RECORDED or segment.name.startswith(_SCALAR_WAITS)


def ranges(numbers: Sequence[int]) -> str:
    """Return ``0..15, 18`` for ascending numbers; long lists are cut."""
    runs = list(_runs(numbers))
    texts = [str(a) if a == b else f"{a}..{b}" for a, b in runs[:_SHOWN_RANGES]]
    return ", ".join(texts) + (", ..." if len(runs) > _SHOWN_RANGES else "")


def _runs(numbers: Iterable[int]) -> Iterable[tuple[int, int]]:
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = last = number
        elif number == last + 1:
            last = number
        else:
            yield first, last
            first = last = number
    if first is not None and last is not None:
        yield first, last
