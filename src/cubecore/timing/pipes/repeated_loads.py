"""Repeated loads: a run of equal loads in a row, worked out at once where nothing disturbs it.

A load that waits for its pipe alone starts when the one before has been asked for, one that waits
for device memory alone when the one before has been served. Either way the next is as much later.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from cubecore.timing.memory.memory_port import MemoryPort, MemoryRequest
from cubecore.timing.pipes.pipe_clock import PipeClock
from cubecore.timing.pipes.queues import PipeState

LEAST = 3
"""Loads from which on a run is looked at as a whole."""


@dataclass(frozen=True, slots=True)
class EqualLoads:
    """Loads of one kind on a pipe: each is asked for in `asked` cycles, and there in `arrive`."""

    pipe: PipeState
    memory: MemoryPort
    request: MemoryRequest
    asked: int
    arrive: int

    def issue(self, times: int, time: int, step: int) -> int | None:
        """Issue so many, the scalar unit at `time` with `step` cycles for each; return its time.

        None, and nothing has happened, where they do not all wait for the same.
        """
        pipe, memory, request, asked = self.pipe, self.memory, self.request, self.asked
        left = all_issued(pipe.queue, pipe.free, asked, times, time, step)
        if left is None or pipe.blocked or pipe.free < pipe.gate:
            return None
        run = alike(pipe.free, pipe.done, memory, request, asked, self.arrive)
        if run is None:
            return None
        if request.missing_bytes:
            memory.repeat(1, request.server_cycles, run.apart, run.highest, times)
            if run.served:
                memory.delays += times
        memory.read_bytes += times * request.bytes
        memory.hbm_read_bytes += times * request.missing_bytes
        pipe.uses += times
        return started(pipe, run, times, left, asked=asked, arrive=self.arrive)


class LoadRun(NamedTuple):
    """A run of equal loads: when the first starts, and how much later each next one.

    `served` is when device memory is done with the first, 0 where it holds up none. `highest` is
    the highest peak of a period right before (`MemoryPort.repeat`), `room` the cycles by which
    device memory could be later without holding up a load; both only where it is asked.
    """

    first: int
    apart: int
    served: int = 0
    highest: int = 0
    room: int = 0


def alike(
    free: int, done: int, memory: MemoryPort, request: MemoryRequest, asked: int, arrive: int
) -> LoadRun | None:
    """Return the run of loads that all wait for their pipe, or all for device memory, or None.

    The pipe is taken until `free`, its data are there at `done`; a load is asked for in `asked`
    cycles, and there in `arrive`.
    """
    # Three cases. All hits: each load starts when the pipe is free. Device memory keeps pace: the
    # same. Device memory is the bottleneck: each starts when the one before has been served. All
    # else (a mixture) is issued one by one.
    if not request.missing_bytes:
        return LoadRun(free, asked)
    until, cycles = memory.busy_until, request.server_cycles
    earliest = free - memory.slack
    if until <= free and cycles <= min(asked, arrive):
        begun = max(until, earliest)
        room = min(free - begun, free + arrive - begun - cycles)
        return LoadRun(free, asked, 0, earliest - memory.served - (asked - cycles), room)
    if free < until <= done and asked < cycles:
        room = min(free - until, asked - cycles, arrive - cycles)
        highest = max(free, until + asked - cycles) - memory.slack - memory.served
        return LoadRun(until, cycles, until + cycles, highest, room)
    return None


def started(
    pipe: PipeClock, run: LoadRun, times: int, left: int, *, asked: int, arrive: int
) -> int:
    """Let a pipe take a run of loads; return when the scalar unit, at `left`, has issued all."""
    # An arithmetic progression: only the last `depth` starts are in the queue behind them, and the
    # scalar unit has waited for the one before those to leave it.
    starts = range(run.first, run.first + times * run.apart, run.apart)
    depth = pipe.queue.maxlen or 0
    if times > depth:
        left = max(left, starts[times - depth - 1])
    pipe.queue.extend(starts[-depth:])
    idle_from = max(pipe.free, pipe.done)
    served = run.served and run.served + (times - 1) * run.apart
    pipe.free = starts[-1] + asked
    pipe.done = max(pipe.done, starts[-1] + arrive, served)
    pipe.busy += max(pipe.done, pipe.free) - idle_from
    return left


def all_issued(
    queue: deque[int], free: int, asked: int, times: int, time: int, step: int
) -> int | None:
    """Return when the scalar unit, at `time`, has issued loads to a pipe that is taken till `free`.

    Each takes `step` cycles and the place of the queue's oldest, of those that are in it now. None
    where a load waits for being issued: the first would be asked for at `free`, each next one
    `asked` later.
    """
    # The scalar unit must keep ahead of the pipe: then no load waits for being issued. Oldest
    # entries of the queue make room one by one; each must be gone before the load that takes its
    # place.
    if asked < step or time + step > free:
        return None
    room = (queue.maxlen or 0) - len(queue)
    for number, at in enumerate(islice(queue, max(times - room, 0)), room + 1):
        if at > free + (number - 1) * asked:
            return None
        time = max(time, at - number * step)
    return time + times * step
