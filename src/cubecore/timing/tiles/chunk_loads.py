"""An operand's chunks on their way into L1, in time."""

from collections.abc import Sequence
from dataclasses import dataclass

from cubecore.timing.memory.memory_port import MemoryPort, MemoryRequest
from cubecore.timing.pipes.pipe_clock import PipeClock
from cubecore.timing.pipes.repeated_loads import alike, all_issued, started
from cubecore.timing.steady_state.visits import NO_LIMIT
from cubecore.timing.tiles.stages import ChunkStages, Load

NO_PEAK = -(1 << 62)
LEAST, IN_TURN = 24, 12
"""Equal transfers that are asked for at once where that is possible, and in turn where not."""


@dataclass(eq=False, slots=True, kw_only=True)
class Mte2(PipeClock):
    """The pipe that loads, and what it waits for; an issue takes `step`, one of a chunk `work`.

    `waited` are the cycles for which nothing but device memory was waited for, `room` those by
    which it could have been later without holding up a transfer since that was last set; negative
    where it held one up. `peak` is its highest peak since that was last set.
    """

    memory: MemoryPort
    step: int
    work: int
    waited: int = 0
    room: int = NO_LIMIT
    peak: int = NO_PEAK

    def chunk(self, time: int, free_at: int, loads: Sequence[Load], work: int) -> tuple[int, int]:
        """Wait for a free buffer, load a chunk and raise its flag.

        Return the scalar unit's time, and the flag's. `work` are its cycles before the loads.
        """
        time = self.waited_for(time, free_at) + work
        for load in loads:
            time = self._one(time, load) if load.times == 1 else self._several(time, load)
        return self.raised(time)

    def waited_for(self, time: int, at: int) -> int:
        """Wait for a flag that is up at `at`; return the scalar unit's time."""
        queue = self.queue
        time += self.step
        if queue[0] > time:
            time = queue[0]
        if at > self.gate:
            self.gate = at
        ready = self.gate if self.gate > time else time
        queue.append(self.free if self.free > ready else ready)
        return time

    def raised(self, time: int) -> tuple[int, int]:
        """Raise a flag behind what was loaded; return the scalar unit's time, and the flag's."""
        queue = self.queue
        time += self.step
        if queue[0] > time:
            time = queue[0]
        at = self.done if self.done > time else time
        if self.gate > at:
            at = self.gate
        queue.append(at)
        return time, at

    def store(self, time: int, request: MemoryRequest) -> None:
        """Let device memory take what fixpipe stores at `time`."""
        memory = self.memory
        if request.missing_bytes:
            self.peak = max(self.peak, time - memory.slack - memory.served)
        memory.store(time, request)

    def _one(self, time: int, load: Load) -> int:
        """Ask for one transfer, as `CoreClock` does."""
        _, asked, arrive, request = load
        # In this order: the scalar unit issues (a place in the queue), the gate and the pipe open
        # (`ready`), device memory serves in its own order and at most `slack` ahead of the request,
        # and data are there after the transfer's latency or the service, whichever is later. `room`
        # and `peak` record how far this is from going differently, for the search for recurring
        # states.
        queue, memory, free, done = self.queue, self.memory, self.free, self.done
        time += self.step
        if queue[0] > time:
            time = queue[0]
        ready = self.gate if self.gate > time else time
        if free > ready:
            ready = free
        idle_from = done if done > free else free
        if request.missing_bytes:
            cycles = request.server_cycles
            earliest = ready - memory.slack
            served = memory.busy_until if memory.busy_until > earliest else earliest
            if earliest - memory.served > self.peak:
                self.peak = earliest - memory.served
            memory.served += cycles
            memory.busy_until = data_at = served + cycles
            start = served if served > ready else ready
            if start > ready and start > done:
                self.waited += start - (done if done > ready else ready)
            arrived = start + arrive
            if ready - served < self.room:
                self.room = ready - served
            if arrived - data_at < self.room:
                self.room = arrived - data_at
            if data_at > arrived:
                arrived = data_at
        else:
            start = ready
            arrived = start + arrive
        self.free = free = start + asked
        self.done = done = arrived if arrived > done else done
        self.busy += (done if done > free else free) - (idle_from if idle_from > ready else ready)
        queue.append(start)
        return time

    def _several(self, time: int, load: Load) -> int:
        """Ask for equal transfers one after another, from where they wait for one thing at once."""
        # At once where all wait for one thing; else a few in turn, after which that may be so.
        left = load.times
        while left:
            after = self._at_once(time, load, left) if left >= LEAST else None
            if after is not None:
                return after
            now = min(left, IN_TURN)
            time = self._in_turn(time, load, now)
            left -= now
        return time

    def _at_once(self, time: int, load: Load, times: int) -> int | None:
        """Ask for transfers that all wait for the pipe, or for device memory: `EqualLoads`.

        None, and nothing has happened, where they do not.
        """
        (_, asked, arrive, request), memory = load, self.memory
        left = all_issued(self.queue, self.free, asked, times, time, self.step)
        if left is None or self.free < self.gate:
            return None
        run = alike(self.free, self.done, memory, request, asked, arrive)
        if run is None:
            return None
        if request.missing_bytes:
            cycles = request.server_cycles
            last = run.highest + times * (run.apart - cycles)
            self.room, self.peak = min(self.room, run.room), max(self.peak, last)
            memory.repeat(0, cycles, run.apart, run.highest, times)
        return started(self, run, times, left, asked=asked, arrive=arrive)

    def _in_turn(self, time: int, load: Load, times: int) -> int:
        """Ask for equal transfers one after another: `_one` again and again, written out."""
        _, asked, arrive, request = load
        queue, memory, step, append = self.queue, self.memory, self.step, self.queue.append
        free, done, gate, peak, busy = self.free, self.done, self.gate, self.peak, self.busy
        # Attributes are local names for the loop's length, and written back behind it: this loop is
        # where a plan spends its time.
        cycles, slack, missing = request.server_cycles, memory.slack, request.missing_bytes
        until, served, room = memory.busy_until, memory.served, self.room
        for _ in range(times):
            time += step
            if queue[0] > time:
                time = queue[0]
            ready = gate if gate > time else time
            if free > ready:
                ready = free
            idle_from = done if done > free else free
            if missing:
                earliest = ready - slack
                if earliest - served > peak:
                    peak = earliest - served
                start = until if until > earliest else earliest
                served += cycles
                until = start + cycles
                if ready - start < room:
                    room = ready - start
                if start > ready:
                    if start > done:
                        self.waited += start - (done if done > ready else ready)
                else:
                    start = ready
                arrived = start + arrive
                if arrived - until < room:
                    room = arrived - until
                if until > arrived:
                    arrived = until
            else:
                start = ready
                arrived = start + arrive
            free = start + asked
            if arrived > done:
                done = arrived
            end = done if done > free else free
            busy += end - (idle_from if idle_from > ready else ready)
            append(start)
        self.free, self.done, self.peak, self.busy = free, done, peak, busy
        memory.busy_until, memory.served, self.room = until, served, room
        return time


class ChunkQueue:
    """The chunks of one operand for one block of C: which comes next, which buffers are free."""

    __slots__ = (
        *("ahead", "at", "count", "filled", "free", "loads", "mte2", "order", "ready"),
        *("steps", "used", "width"),
    )

    def __init__(self, mte2: Mte2, free: list[int], chunks: ChunkStages) -> None:
        self.mte2, self.free, self.order, self.loads = mte2, free, chunks.order, chunks.loads
        self.steps, self.ahead = chunks.steps, chunks.ahead
        self.count, self.width = len(chunks.order), len(chunks.loads[0])
        self.at = self.filled = self.used = 0
        self.ready = [0] * len(free)

    def start(self, time: int) -> int:
        """Ask for the first chunk where it is loaded ahead."""
        return self.load(time) if self.ahead else time

    def load(self, time: int) -> int:
        """Ask for the chunk that comes next."""
        at, number = self.filled, self.at
        loads = self.loads[self.order.passes[number // self.width]][number % self.width]
        time, self.ready[at] = self.mte2.chunk(time, self.free[at], loads, self.mte2.work)
        self.filled = (at + 1) % len(self.free)
        self.at = number + 1
        return time

    def release(self, at: int) -> None:
        """Let go of the chunk that was used."""
        self.free[self.used] = at
        self.used = (self.used + 1) % len(self.free)
