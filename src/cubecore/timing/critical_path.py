"""The critical path: what the end of a group's run waited for, step by step back to the start.

It is walked over recorded instructions, from the one that ends last. An instruction that followed
another on its pipe without a gap waited for that one; one behind a flag, for the last instruction
of the pipe that raised it whose result was there; one that came late out of the scalar unit, for
that unit's work, or for the instruction that made room in a full queue.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping

from cubecore.timing.pipes.queues import ISSUE, NAMES, SCALAR, UNIT_FLAG
from cubecore.timing.records import CriticalPath, PathStep, Segment

_FLAG = "flag "
_QUEUE = "queue of "
START_UP = "start-up"
"""The entry that counts the time before the first step of a path."""


def critical_path(
    segments: Iterable[Segment], aside: Iterable[Segment], started: Mapping[str, int]
) -> CriticalPath | None:
    """Return the path over recorded `segments`, as `CoreTime` has them; None without any."""
    lanes = _Lanes(segments, aside)
    if not lanes.of:
        return None
    steps = tuple(reversed(lanes.walk()))
    cycles: dict[str, int] = {START_UP: steps[0].start}
    for step in steps:
        cycles[step.pipe] = cycles.get(step.pipe, 0) + step.end - step.start
    counted = {name: n for name, n in started.items() if name != NAMES[SCALAR]}
    complete = all(len(lanes.of.get(name, ())) == n for name, n in counted.items())
    return CriticalPath(steps, cycles, complete)


class _Lanes:
    """A group's instructions by pipe, with the ends of each lane to search in."""

    def __init__(self, segments: Iterable[Segment], aside: Iterable[Segment]) -> None:
        self.of: dict[str, list[Segment]] = {}
        for segment in segments:
            self.of.setdefault(segment.pipe, []).append(segment)
        unit = NAMES[SCALAR]
        self.scalar = sorted(
            (s for s in aside if s.pipe == unit and s.end > s.start), key=lambda s: s.end
        )
        self._done = {pipe: [s.done for s in lane] for pipe, lane in self.of.items()}
        self._starts = {pipe: [s.start for s in lane] for pipe, lane in self.of.items()}
        self._ends = [s.end for s in self.scalar]

    def walk(self) -> list[PathStep]:
        """Return the steps of the path, the last one first."""
        # `at` is an instruction (pipe, number) and `until` the time down to which the path is
        # explained. Each step goes to what the instruction waited for, never forward in time, so
        # that it ends.
        last = max(self.of, key=lambda pipe: self._done[pipe][-1])
        at: tuple[str, int] | None = (last, len(self.of[last]) - 1)
        until = self._done[last][-1]
        steps: list[PathStep] = []
        while at is not None:
            pipe, number = at
            segment = self.of[pipe][number]
            steps.append(PathStep(pipe, segment.name, segment.start, until, number))
            until = segment.start
            at = self._before(pipe, number, segment)
            if at is None and segment.cause == ISSUE:
                at, until = self._issued(steps, until)
        return steps

    def _before(self, pipe: str, number: int, segment: Segment) -> tuple[str, int] | None:
        """Return what an instruction waited for, None where it is none or the scalar unit."""
        if segment.cause.startswith(_FLAG):
            return self._last(segment.cause.split()[1], self._done, segment.start)
        if segment.cause == UNIT_FLAG:
            return self._last("FIX" if pipe == "M" else "M", self._starts, segment.start - 1)
        if segment.cause == ISSUE:
            return None
        return (pipe, number - 1) if number else None

    def _last(self, pipe: str, times: dict[str, list[int]], until: int) -> tuple[str, int] | None:
        """Return the last instruction of a pipe whose time is at most `until`."""
        index = bisect_right(times.get(pipe, ()), until) - 1
        return (pipe, index) if index >= 0 else None

    def _issued(self, steps: list[PathStep], until: int) -> tuple[tuple[str, int] | None, int]:
        """Follow the scalar unit back to what held it up, adding its steps."""
        # Segments of the scalar unit are its own work and its waits, by end. Work is passed
        # through; a wait for a full queue leads to the instruction that made room, a wait for a
        # flag to the pipe that raised it.
        index = bisect_right(self._ends, until) - 1
        while index >= 0:
            segment = self.scalar[index]
            if segment.name.startswith(_QUEUE):
                if until > segment.end:
                    steps.append(PathStep(segment.pipe, ISSUE, segment.end, until))
                held = self._last(segment.name.split()[2], self._starts, segment.end)
                return held, segment.end
            if segment.name.startswith(_FLAG):
                if until > segment.end:
                    steps.append(PathStep(segment.pipe, ISSUE, segment.end, until))
                return self._last(segment.name.split()[1], self._done, segment.end), segment.end
            steps.append(PathStep(segment.pipe, segment.name, segment.start, until))
            until = segment.start
            index -= 1
        return None, until
