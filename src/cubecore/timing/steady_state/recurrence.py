"""Exact steady state: what recurs up to a shift in time is not walked again (D8).

At the head of a loop's trip the whole state is written relative to the scalar unit's clock: pipes,
queues, flags and device memory as far as the loop uses them, and the variables that decide
something in it. Where a state recurs, everything up to then recurs, if the program takes the same
way. Variables that only count (`own = own + 1`) may differ by a constant: then every condition on
them has to come out the same over the whole range that they pass (`Guards`), which bounds how many
periods are skipped.

What happened from one visit of a loop's head to the next stays known when the loop is left: where
it is entered again and comes to the same state, that stretch follows, and the core is left as it
was left then.
"""

from collections import deque
from collections.abc import Mapping
from itertools import dropwhile
from operator import not_
from typing import NamedTuple

from cubecore.isa.declare.registers import Registers
from cubecore.timing.pipes.core_clock import CoreClock
from cubecore.timing.pipes.issue_log import LogMark
from cubecore.timing.pipes.queues import SCALAR, PipeState
from cubecore.timing.steady_state.loop_body import LoopBody
from cubecore.timing.steady_state.loop_guards import CounterPath
from cubecore.timing.steady_state.visits import MemoryState, Visits

_MOST_STRETCHES = 1024
"""Stretches that are remembered of a loop."""
_MOST_STATES = 4096
"""States above which a loop that is entered anew forgets them, and what followed."""


class Visit(NamedTuple):
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
    memory: MemoryState
    requests: int
    delays: int
    logged: LogMark | None


class PipeAt(NamedTuple):
    """A pipe at a visit; `free` and `done` only if it was used before."""

    free: int | None
    done: int | None
    gate: int
    reason: str
    drained: bool
    queue: tuple[int, ...]


class Stretch(NamedTuple):
    """The events between two visits of a loop's head, and the state of the core after them.

    `state` is the one that it led to. `values` are what then decides and changes, `pipes`, `flags`
    and `units` are of then, `peak` is device memory's highest; None without requests.
    """

    before: Visit
    after: Visit
    state: int
    values: tuple[int, ...]
    peak: int | None
    pipes: tuple[PipeAt, ...]
    flags: tuple[tuple[int, ...], ...]
    units: Mapping[int, tuple[PipeState, int, int]]
    unit_span: int
    level: int
    registers: Registers


class Mark(NamedTuple):
    """The start of a stretch: the state and the level, and the addresses in L0C then."""

    key: tuple[int, int]
    visit: Visit
    units: Mapping[int, tuple[PipeState, int, int]]


class Recurrence:
    """Recognises the states at the head of one loop, and skips."""

    def __init__(self, clock: CoreClock, body: LoopBody) -> None:
        self._clock, self._body = clock, body
        self._pipes = [clock.pipes[i] for i in body.pipes]
        self._flags = [clock.flags[flag] for flag in body.flags]
        self._seen = Visits[Visit](1)
        self._numbers: dict[tuple[object, ...], int] = {}
        self._stretches: dict[tuple[int, int], dict[int, Stretch]] = {}
        self._room = _MOST_STRETCHES
        self._last: Mark | None = None
        self._unsettled: tuple[Stretch, int] | None = None

    def begin(self) -> None:
        """Forget the visits: the loop is entered anew. Stretches stay known."""
        self._seen.clear()
        self._last = None
        if len(self._numbers) > _MOST_STATES:
            self._numbers.clear()
            self._stretches.clear()

    def skip(self, trip: int, total: int, values: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many of `total` trips, from `trip` on, need no walk, and then what changes.

        `values` are those of the body's counters and of what it is given; of these the counters and
        the first `LoopBody.others` change.
        """
        clock, body = self._clock, self._body
        count = len(body.counters)
        counters, given = values[:count], values[count:]
        # A blocked pipe's order is not part of the state, and segments that are still to be
        # recorded must be walked.
        if (
            total - trip < body.stride
            or len(clock.segments) < clock.record
            or any(pipe.blocked for pipe in clock.pipes)
        ):
            return (0, *counters, *given[: body.others])
        at, state = trip, self._state(given)
        visit = self._visit(at, counters)
        if self._last is not None:
            self._learn(self._last, state, visit, given)
        # Two ways to get on, in turn: periods of a state that recurs here, and stretches known from
        # an earlier time in this loop. Neither needs the walk.
        while at < total:
            at, counters = self._recur(state, visit, total, given)
            if at > visit.trip:
                visit = self._visit(at, counters)
            stretch = self._next(state, visit, total, given)
            if stretch is None:
                break
            at, counters = self._repeat(stretch, visit)
            state, given = stretch.state, (*stretch.values, *given[body.others :])
            visit = self._visit(at, counters)
        self._settle()
        self._last = self._mark(state, visit)
        return (at - trip, *counters, *given[: body.others])

    def _mark(self, state: int, visit: Visit) -> Mark:
        return Mark((state, self._clock.level), visit, dict(self._clock.units))

    def _recur(
        self, state: int, visit: Visit, total: int, given: tuple[int, ...]
    ) -> tuple[int, tuple[int, ...]]:
        """Skip the periods of a state that was seen since the loop was entered.

        Return the trip and the counters after them.
        """
        whole = self._body.whole
        keys: list[object] = [state]
        # Remainders of the index (`k % 3`) return to where they were only after whole rounds: such
        # a visit is preferred, as its periods meet no wrap.
        if self._body.stride != whole:
            keys.insert(0, (state, visit.trip % whole))
        for key in keys:
            for before in self._seen.earlier(key, visit):
                if self._recurs(before, visit):
                    periods = self._periods(before, visit, total, given)
                    if periods:
                        return self._advance(before, visit, periods)
        return visit.trip, visit.counters

    def _recurs(self, before: Visit, now: Visit) -> bool:
        apart, whole = now.trip - before.trip, self._body.whole
        if apart % whole and before.trip // whole != (now.trip + apart - 1) // whole:
            return False  # a remainder wraps on the way
        return self._idles_alike(before, now, now) and self._served_alike(before, now)

    # --- what is known from an earlier time

    def _learn(self, start: Mark, state: int, visit: Visit, given: tuple[int, ...]) -> None:
        """Remember the stretch of the walk that ends here."""
        before, units = start.visit, start.units
        stretches = self._stretches.setdefault(start.key, {})
        if not self._room or before.trip in stretches:
            return
        clock = self._clock
        # The memory port forgets old peaks; without them it is not known how late it may be in a
        # repetition.
        peak = clock.memory.peak_since(before.requests)
        if peak is None and visit.requests != before.requests:
            return
        pipes = []
        for i, pipe in zip(self._body.pipes, self._pipes, strict=True):
            used = visit.uses[i] != before.uses[i]
            # `free` of an idle pipe is in the state only while it lies ahead; moved without a use
            # it would be lost.
            if not used and visit.free[i] != before.free[i]:
                return  # a barrier moved it
            free, done = (pipe.free, pipe.done) if used else (None, None)
            queue = tuple(pipe.queue)
            pipes.append(PipeAt(free, done, pipe.gate, pipe.reason, pipe.drained, queue))
        self._room -= 1
        stretches[before.trip] = Stretch(
            before,
            visit,
            state,
            given[: self._body.others],
            peak if visit.requests != before.requests else None,
            tuple(pipes),
            tuple([tuple(flag) for flag in self._flags]),
            {address: unit for address, unit in clock.units.items() if units.get(address) != unit},
            clock.unit_span,
            clock.level,
            clock.registers,
        )

    def _next(self, state: int, now: Visit, total: int, given: tuple[int, ...]) -> Stretch | None:
        """Return the known stretch that follows: one from the same trip, or the first from here."""
        if now.trip >= total:
            return None
        stretches = self._stretches.get((state, self._clock.level), {})
        # A stretch from the same trip is most likely to take the same branches; the first known one
        # stands for all others, to keep a miss cheap.
        likely = dict.fromkeys(
            trip for trip in (now.trip, next(iter(stretches), -1)) if trip in stretches
        )
        candidates = (stretches[trip] for trip in likely)
        return next((one for one in candidates if self._follows(one, now, total, given)), None)

    def _follows(self, stretch: Stretch, now: Visit, total: int, given: tuple[int, ...]) -> bool:
        """True if a known stretch follows: device memory is no later, and it takes its way."""
        before, after = stretch.before, stretch.after
        if now.trip + after.trip - before.trip > total:
            return False
        if not self._idles_alike(before, after, now):
            return False
        if after.requests != before.requests:
            # Device memory that is done earlier than then changes nothing if it held up nobody
            # then; if it did, it must be as late as then.
            then, here = before.memory.lag, now.memory.lag
            if here > then or (after.delays != before.delays and here != then):
                return False
        values = zip(
            _index_and_counters(before),
            _index_and_counters(after),
            _index_and_counters(now),
            strict=True,
        )
        paths = [None if a == c else CounterPath.once(a, b, c) for a, b, c in values]
        if self._body.was_reset(before.counters, after.counters, now.counters):
            return False
        return self._body.guards.periods(paths, given, 1) > 0

    def _repeat(self, stretch: Stretch, now: Visit) -> tuple[int, tuple[int, ...]]:
        """Leave the core as a known stretch left it, so much later; return trip and counters."""
        clock, before, after = self._clock, stretch.before, stretch.after
        # The peak is relative to what had been served: in the repetition both the clock and the
        # served cycles are further on.
        later = now.time - after.time - (now.memory.served - after.memory.served)
        self._add(before, after, 1, None if stretch.peak is None else stretch.peak + later)
        clock.scalar = now.time + after.time - before.time
        shift = now.time - before.time
        for pipe, then in zip(self._pipes, stretch.pipes, strict=True):
            if then.free is not None and then.done is not None:
                pipe.free, pipe.done = then.free + shift, then.done + shift
        self._unsettled = stretch, shift
        for address, (pipe, began, ended) in stretch.units.items():
            clock.units[address] = pipe, began + shift, ended + shift
        clock.unit_span = max(clock.unit_span, stretch.unit_span)
        clock.level = stretch.level
        if self._body.registers:
            clock.registers = stretch.registers
        steps = zip(now.counters, before.counters, after.counters, strict=True)
        return now.trip + after.trip - before.trip, tuple(at + b - a for at, a, b in steps)

    def _settle(self) -> None:
        """Fill queues and flags as the last of the stretches that were repeated left them."""
        if self._unsettled is None:
            return
        stretch, shift = self._unsettled
        self._unsettled = None
        for pipe, then in zip(self._pipes, stretch.pipes, strict=True):
            # `free` and `done` were set as the stretch was repeated, because the next state is
            # compared by them.
            pipe.gate, pipe.reason, pipe.drained = then.gate + shift, then.reason, then.drained
            pipe.queue.clear()
            pipe.queue.extend([at + shift for at in then.queue])
        for flag, times in zip(self._flags, stretch.flags, strict=True):
            flag.clear()
            if times:
                flag.extend([at + shift for at in times])

    def _add(self, before: Visit, after: Visit, times: int, peak: int | None) -> None:
        """Count so many times what was counted from `before` to `after`.

        Device memory serves its requests again; `peak` is its highest in a period right before now.
        """
        clock, memory = self._clock, self._clock.memory
        for i, pipe in enumerate(clock.pipes):
            # Most pipes do nothing in a loop: the tests are cheaper than adding zeros to
            # attributes.
            if uses := after.uses[i] - before.uses[i]:
                pipe.uses += times * uses
            if busy := after.busy[i] - before.busy[i]:
                pipe.busy += times * busy
        stalls, earlier = clock.stalls, before.stalls
        for key, stalled in after.stalls.items():
            if stalled != (earlier_cycles := earlier.get(key, 0)):
                stalls[key] = stalls.get(key, 0) + times * (stalled - earlier_cycles)
        issued = times * (after.issued - before.issued)
        clock.issued += issued
        clock.skipped += issued
        if clock.log is not None and before.logged is not None and after.logged is not None:
            clock.log.repeat(before.logged, after.logged, times)
        if requests := after.requests - before.requests:
            assert peak is not None, "a period without a peak"
            cycles, served = after.time - before.time, after.memory.served - before.memory.served
            memory.repeat(requests, served, cycles, peak, times)
        more = [times * (b - a) for a, b in zip(before.bytes, after.bytes, strict=True)]
        memory.read_bytes += more[0]
        memory.hbm_read_bytes += more[1]
        memory.written_bytes += more[2]
        memory.waited += more[3]
        memory.delays += times * (after.delays - before.delays)

    def _state(self, given: tuple[int, ...]) -> int:
        """Return the number of what decides all that follows, times relative to the scalar unit's.

        What is over by now is 0: nothing can be issued before now.
        """
        clock, now = self._clock, self._clock.scalar
        # All times relative to `now`, and 0 for what is over: two states that differ only in the
        # past are one. What is added up (busy, stalls, bytes) decides nothing and stays out.
        state: list[object] = [given]
        for pipe in self._pipes:
            queue, free, done, gate = pipe.queue, pipe.free, pipe.done, pipe.gate
            state += (
                free - now if free > now else 0,
                done - now if done > now else 0,
                pipe.drained,
                (gate - now, pipe.reason) if gate > now else None,
                _to_come(queue, now) if queue and max(queue) > now else (),
            )
        for flag in self._flags:
            state.append(tuple([at - now if at > now else 0 for at in flag]) if flag else ())
        # Pipes that the loop does not use still slow those it uses (MTE2 slows MTE1) while they
        # run.
        state += [max(clock.pipes[i].free - now, 0) for i in self._body.beside]
        span = clock.unit_span
        for address, (pipe, began, ended) in clock.units.items():
            # An entry of L0C decides as long as the longest product or store after it may still
            # pair with it.
            if ended + span > now:
                state.append((address, pipe.name, max(began - now, -span), ended - now, span))
        if self._body.registers:
            state.append(clock.registers)
        return self._numbers.setdefault(tuple(state), len(self._numbers))

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
            MemoryState.of(memory, clock.scalar),
            memory.requests,
            memory.delays,
            None if clock.log is None else clock.log.mark(),
        )

    def _idles_alike(self, before: Visit, after: Visit, now: Visit) -> bool:
        """True if each pipe used from `before` to `after` has been idle now for as long as then.

        Stalls count it. A pipe that loads is idle from when it is free and its last data are there.
        """
        shift = now.time - before.time
        for i in self._body.pipes:
            if after.uses[i] != before.uses[i]:
                (free, done), (then_free, then_done) = now.free[i], before.free[i]
                if free - then_free != shift or done - then_done != shift:
                    return False
        return True

    def _served_alike(self, before: Visit, now: Visit) -> bool:
        """True if device memory is where it was, or falls behind without having held up anyone.

        If it comes to a period with less in hand than to the one before and that one did not wait
        for it, none that follows does.
        """
        memory = self._clock.memory
        if now.requests == before.requests:
            return True
        held_up = now.delays != before.delays
        if not before.memory.periods(now.memory, -1 if held_up else 0):
            return False
        return memory.peak_since(before.requests) is not None

    # --- how far

    def _periods(self, before: Visit, now: Visit, total: int, given: tuple[int, ...]) -> int:
        """Return how many more periods take the same way through the program."""
        # Whole periods only: the rest is walked, and may leave the loop in another way.
        most = (total - now.trip) // (now.trip - before.trip)
        if not most or self._body.was_reset(before.counters, now.counters, now.counters):
            return 0
        values = zip(_index_and_counters(before), _index_and_counters(now), strict=True)
        paths = [None if a == b else CounterPath.recurring(a, b) for a, b in values]
        return self._body.guards.periods(paths, given, most)

    def _advance(self, before: Visit, now: Visit, periods: int) -> tuple[int, tuple[int, ...]]:
        """Move everything on by `periods` times what happened between two visits.

        Return the trip to which this is, and what the counters then are.
        """
        self._settle()
        clock, shift = self._clock, periods * (now.time - before.time)
        time = clock.scalar
        for pipe in self._pipes:
            _move(pipe.queue, time, shift)
            # Gates and queue entries of the past stay in the past: they hold up nobody.
            if pipe.gate > time:
                pipe.gate += shift
        for i, pipe in enumerate(clock.pipes):
            if now.uses[i] != before.uses[i] and i != SCALAR:
                pipe.free += shift
                pipe.done += shift
        for flag in self._flags:
            if flag:
                _move(flag, time, shift)
        for address, (pipe, began, ended) in clock.units.items():
            if ended + clock.unit_span > time:
                clock.units[address] = (pipe, began + shift, ended + shift)
        self._add(before, now, periods, clock.memory.peak_since(before.requests))
        clock.scalar += shift
        steps = zip(before.counters, now.counters, strict=True)
        return (
            now.trip + periods * (now.trip - before.trip),
            tuple(b + periods * (b - a) for a, b in steps),
        )


def _index_and_counters(visit: Visit) -> tuple[int, ...]:
    """Return where the index and the counters are."""
    return visit.trip, *visit.counters


def _to_come(queue: deque[int], now: int) -> tuple[int, ...]:
    """Return a queue's times from now on; an entry of the past at its head is a free place."""
    return tuple(dropwhile(not_, [at - now if at > now else 0 for at in queue]))


def _move(times: deque[int], now: int, shift: int) -> None:
    """Move what is still to come."""
    moved = [at + shift if at > now else at for at in times]
    times.clear()
    times.extend(moved)
