"""Exact steady state: what recurs up to a shift in time is not walked again (D8).

At the head of a loop's trip the whole state is written relative to the scalar unit's clock: pipes,
queues, flags and device memory as far as the loop uses them, and the variables that decide
something in it. Where a state recurs, everything up to then recurs, if the program takes the same
way. Variables that only count (`own = own + 1`) may differ by a constant: then every condition on
them has to come out the same over the whole range that they pass (`Way`), which bounds how many
periods are skipped.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from cubecore.isa.expr import Var
from cubecore.timing.body import Body
from cubecore.timing.pipes import CoreClock
from cubecore.timing.queues import SCALAR
from cubecore.timing.way import Way


@dataclass(frozen=True, slots=True)
class Visit:
    """The head of one trip: when, the counters, and what had been added up by then."""

    trip: int
    time: int
    counters: tuple[int, ...]
    free: tuple[tuple[int, int], ...]
    uses: tuple[int, ...]
    busy: tuple[int, ...]
    issued: int
    bytes: tuple[int, int, int, int]
    stalls: Mapping[tuple[str, str], int]
    busy_until: int
    served: int
    requests: int
    delays: int

    def lag(self, slack: int) -> int:
        """Return how far device memory is ahead of now; no less than it can use of the past."""
        return max(self.busy_until - self.time, -slack)


class Recurrence:
    """Recognises the states at the head of one loop, and skips."""

    def __init__(self, clock: CoreClock, body: Body) -> None:
        self._clock, self._body = clock, body
        self._pipes = [clock.pipes[i] for i in body.pipes]
        self._seen: dict[object, Visit] = {}

    def begin(self) -> None:
        """Forget: the loop is entered anew."""
        self._seen.clear()

    def skip(self, trip: int, total: int, values: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many of `total` trips, from `trip` on, need no walk, and then the counters.

        `values` are those of the body's counters and of what it is given.
        """
        clock, counters = self._clock, values[: len(self._body.counters)]
        if total - trip <= self._body.stride or len(clock.segments) < clock.record:
            return (0, *counters)
        if any(pipe.blocked for pipe in clock.pipes):
            return (0, *counters)
        given = values[len(counters) :]
        state, visit = self._state(given), self._visit(trip, counters)
        values_of = dict(zip(self._body.given, given, strict=True))
        for key in (state, (state, trip % self._body.whole)):
            before = self._seen.get(key)
            self._seen[key] = visit
            if before is not None and self._recurs(before, visit):
                periods = self._periods(before, visit, total, values_of)
                if periods:
                    return self._advance(before, visit, periods)
        return (0, *counters)

    def _recurs(self, before: Visit, now: Visit) -> bool:
        return self._idles_alike(before, now) and self._served_alike(before, now)

    def _state(self, given: tuple[int, ...]) -> object:
        """Return what decides all that follows, times relative to the scalar unit's.

        What is over by now is 0: nothing can be issued before now.
        """
        clock, now = self._clock, self._clock.scalar
        state: list[object] = [given]
        for pipe in self._pipes:
            queue = [at - now for at in pipe.queue]
            if queue and min(queue) <= 0:  # an entry of the past is a free place
                queue = [max(at, 0) for at in queue]
                first = next((i for i, at in enumerate(queue) if at), len(queue))
                del queue[:first]
            waits = pipe.gate > now
            state.append(
                (
                    *(max(pipe.free - now, 0), max(pipe.done - now, 0), pipe.drained),
                    *((pipe.gate - now, pipe.reason) if waits else ()),
                    tuple(queue),
                )
            )
        state += [
            tuple([max(at - now, 0) for at in clock.flags[flag]]) for flag in self._body.flags
        ]
        state += [max(clock.pipes[i].free - now, 0) for i in self._body.beside]
        reach = clock.unit_reach
        for place, (pipe, began, ended) in clock.units.items():
            if ended + reach > now:
                state.append((place, pipe.name, max(began - now, -reach), ended - now, reach))
        if self._body.registers:
            state.append(clock.registers)
        return tuple(state)

    def _visit(self, trip: int, counters: tuple[int, ...]) -> Visit:
        clock, memory = self._clock, self._clock.memory
        return Visit(
            trip,
            clock.scalar,
            counters,
            tuple([(pipe.free, pipe.done) for pipe in clock.pipes]),
            tuple([pipe.uses for pipe in clock.pipes]),
            tuple([pipe.busy for pipe in clock.pipes]),
            clock.issued,
            (memory.read_bytes, memory.hbm_read_bytes, memory.written_bytes, memory.waited),
            dict(clock.stalls),
            memory.busy_until,
            memory.served,
            memory.requests,
            memory.delays,
        )

    def _idles_alike(self, before: Visit, now: Visit) -> bool:
        """Whether each pipe that was used since has been idle for as long: stalls count it.

        A pipe that loads is idle from when it is free and its last data are there.
        """
        shift = now.time - before.time
        return all(
            now.uses[i] == before.uses[i]
            or now.free[i] == (before.free[i][0] + shift, before.free[i][1] + shift)
            for i in self._body.pipes
        )

    def _served_alike(self, before: Visit, now: Visit) -> bool:
        """Whether device memory is where it was, or falls behind without having held up anyone.

        If it comes to a period with less in hand than to the one before and that one did not wait
        for it, none that follows does.
        """
        memory = self._clock.memory
        if now.requests == before.requests:
            return True
        lags = before.lag(memory.slack), now.lag(memory.slack)
        held_up = now.delays != before.delays
        if lags[0] < lags[1] or (held_up and lags[0] != lags[1]):
            return False
        return memory.peak_since(before.requests) is not None

    # --- how far

    def _periods(self, before: Visit, now: Visit, total: int, given: Mapping[Var, int]) -> int:
        """Return how many more periods take the same way through the program."""
        period = now.trip - before.trip
        ranges = {self._body.loop.index: (before.trip, now.trip, period)}
        for var, old, new in zip(self._body.counters, before.counters, now.counters, strict=True):
            if old != new:
                ranges[var] = (old, new, new - old)
        most = (total - now.trip) // period
        way = Way(ranges, self._body.moving, given)
        return way.periods(self._body.guards, most)

    def _advance(self, before: Visit, now: Visit, periods: int) -> tuple[int, ...]:
        """Move everything on by `periods` times what happened between two visits.

        Return the trips that this is, and what the counters then are.
        """
        clock, shift = self._clock, periods * (now.time - before.time)
        time = clock.scalar
        for pipe in self._pipes:
            _move(pipe.queue, time, shift)
            if pipe.gate > time:
                pipe.gate += shift
        for i, pipe in enumerate(clock.pipes):
            used = now.uses[i] - before.uses[i]
            if used and i != SCALAR:
                pipe.free += shift
                pipe.done += shift
            pipe.uses += periods * used
            pipe.busy += periods * (now.busy[i] - before.busy[i])
        for flag in self._body.flags:
            _move(clock.flags[flag], time, shift)
        for place, (pipe, began, ended) in clock.units.items():
            if ended + clock.unit_reach > time:
                clock.units[place] = (pipe, began + shift, ended + shift)
        memory = clock.memory
        if requests := now.requests - before.requests:
            served = now.served - before.served
            memory.repeat(requests, served, now.time - before.time, before.requests, periods)
        more = [periods * (b - a) for a, b in zip(before.bytes, now.bytes, strict=True)]
        memory.read_bytes += more[0]
        memory.hbm_read_bytes += more[1]
        memory.written_bytes += more[2]
        memory.waited += more[3]
        for key, cycles in now.stalls.items():
            clock.stalls[key] += periods * (cycles - before.stalls.get(key, 0))
        clock.issued += periods * (now.issued - before.issued)
        clock.skipped += periods * (now.issued - before.issued)
        clock.scalar += shift
        pairs = zip(before.counters, now.counters, strict=True)
        return (periods * (now.trip - before.trip), *(b + periods * (b - a) for a, b in pairs))


def _move(times: deque[int], now: int, shift: int) -> None:
    """Move what is still to come."""
    moved = [at + shift if at > now else at for at in times]
    times.clear()
    times.extend(moved)
