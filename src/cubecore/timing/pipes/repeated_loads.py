"""Repeated loads: a run of equal loads in a row, worked out at once where nothing disturbs it.

A load that waits for its pipe alone starts when the one before has been asked for, one that waits
for device memory alone when the one before has been served. Either way the next is as much later.
"""

from collections import deque
from itertools import islice

from cubecore.lazy_dataclass import dataclass
from cubecore.timing.memory.memory_port import MemoryPort, MemoryRequest
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
        free, done, served, until = pipe.free, pipe.done, request.server_cycles, memory.busy_until
        left = all_issued(pipe.queue, free, asked, times, time, step)
        if left is None or pipe.blocked or free < pipe.gate:
            return None
        if not request.missing_bytes:
            first, apart, served_at = free, asked, 0
        elif until <= free and served <= min(asked, self.arrive):
            first, apart, served_at = free, asked, 0
            highest = free - memory.slack - memory.served - (asked - served)
            memory.repeat(1, served, asked, highest, times)
        elif free < until <= done and asked < served:
            first, apart, served_at = until, served, until + times * served
            highest = max(free, until + asked - served) - memory.slack - memory.served
            memory.repeat(1, served, served, highest, times)
            memory.delays += times
        else:
            return None
        memory.read_bytes += times * request.bytes
        memory.hbm_read_bytes += times * request.missing_bytes
        starts = range(first, first + times * apart, apart)
        depth = pipe.queue.maxlen or 0
        if times > depth:
            left = max(left, starts[times - depth - 1])
        pipe.queue.extend(starts[-depth:])
        pipe.free = starts[-1] + asked
        pipe.done = max(done, starts[-1] + self.arrive, served_at)
        pipe.busy += max(pipe.done, pipe.free) - max(free, done)
        pipe.uses += times
        return left


def all_issued(
    queue: deque[int], free: int, asked: int, times: int, time: int, step: int
) -> int | None:
    """Return when the scalar unit, at `time`, has issued loads to a pipe that is taken till `free`.

    Each takes `step` cycles and the place of the queue's oldest, of those that are in it now. None
    where a load waits for being issued: the first would be asked for at `free`, each next one
    `asked` later.
    """
    if asked < step or time + step > free:
        return None
    room = (queue.maxlen or 0) - len(queue)
    for number, at in enumerate(islice(queue, max(times - room, 0)), room + 1):
        if at > free + (number - 1) * asked:
            return None
        time = max(time, at - number * step)
    return time + times * step
