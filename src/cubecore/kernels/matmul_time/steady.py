"""Recurrence from tile to tile of a block: recurring tiles are not walked again.

At the head of a tile everything that decides what follows is compared relative to the scalar unit's
time. Where it is as before an earlier tile, and the tiles and the chunks to come are like those
since then, so is what they take.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from cubecore.kernels.matmul_time.loads import NO_PEAK, ChunkQueue, Mte2
from cubecore.kernels.matmul_time.walk import CorePipes, PipeClock, Rings


class _Visit(NamedTuple):
    """The head of a tile: when, chunks loaded by then, busy cycles, and device memory."""

    number: int
    time: int
    loaded: tuple[int, int]
    busy: tuple[int, ...]
    served: int
    lag: int
    delays: int


class Steady:
    """Recognises states at the heads of a block's tiles, and skips."""

    def __init__(
        self,
        core: CorePipes,
        rings: Rings,
        chunks: tuple[ChunkQueue, ChunkQueue],
        kinds: Sequence[int],
    ) -> None:
        self._core, self._rings, self._chunks, self._kinds = core, rings, chunks, kinds
        self._seen: dict[tuple[object, ...], _Visit] = {}
        self._peaks: list[int] = []

    def skipped(self, number: int) -> int:
        """Return how many tiles from `number` on need no walk; everything is as after them."""
        core = self._core
        mte2 = core.mte2
        self._peaks.append(mte2.peak)
        mte2.peak = NO_PEAK
        state, visit = self._state(), self._visit(number)
        before = self._seen.get(state)
        self._seen[state] = visit
        if before is None or not _served_alike(before, visit):
            return 0
        period = number - before.number
        periods = _alike(self._kinds, number, period)
        for own, was, now in zip(self._chunks, before.loaded, visit.loaded, strict=True):
            if now > was:
                periods = min(periods, _alike(own.kinds, now, now - was))
        if periods:
            self._advance(before, visit, periods)
            self._seen.clear()
            self._peaks.clear()
        return periods * period

    def _visit(self, number: int) -> _Visit:
        core = self._core
        mte2 = core.mte2
        memory = mte2.memory
        return _Visit(
            number,
            core.time,
            (self._chunks[0].at, self._chunks[1].at),
            (core.m.busy, core.mte1.busy, core.fix.busy, mte2.busy, mte2.waited),
            memory.served,
            max(memory.busy_until - core.time, -memory.slack),
            mte2.delays,
        )

    def _state(self) -> tuple[object, ...]:
        core, rings = self._core, self._rings
        now, mte2 = core.time, core.mte2
        state: list[object] = [rings.at_a, rings.at_b, rings.at_c, max(mte2.done - now, 0)]
        for pipe in (core.m, core.mte1, core.fix, mte2):
            state += (pipe.free - now if pipe.free > now else 0, _coming(pipe.queue, now))
            state.append(pipe.gate - now if pipe.gate > now else 0)
        state += [core.m.drained, core.mte1.drained, core.fix.drained]
        for times in (rings.l0a, rings.l0b, rings.l0c):
            state.append(_coming(times, now))
        for own in self._chunks:
            state += (own.filled, own.used, _coming(own.free, now), _coming(own.ready, now))
        return tuple(state)

    def _advance(self, before: _Visit, now: _Visit, periods: int) -> None:
        """Move everything on by so many times what happened between two visits."""
        core, rings = self._core, self._rings
        shift = periods * (now.time - before.time)
        mte2 = core.mte2
        memory = mte2.memory
        served = now.served - before.served
        if served:
            peak = max(self._peaks[-(now.number - before.number) :])
            memory.repeat(0, served, now.time - before.time, peak, periods)
        core.time += shift
        pipes: tuple[PipeClock | Mte2, ...] = (core.m, core.mte1, core.fix, mte2)
        for pipe in pipes:
            pipe.free += shift
            pipe.gate += shift
            pipe.queue.extend([at + shift for at in pipe.queue])
        mte2.done += shift
        for times in (rings.l0a, rings.l0b, rings.l0c):
            times[:] = [at + shift for at in times]
        for own, was, at in zip(self._chunks, before.loaded, now.loaded, strict=True):
            own.at += periods * (at - was)
            own.free[:] = [time + shift for time in own.free]
            own.ready[:] = [time + shift for time in own.ready]
        more = [periods * (b - a) for a, b in zip(before.busy, now.busy, strict=True)]
        core.m.busy += more[0]
        core.mte1.busy += more[1]
        core.fix.busy += more[2]
        mte2.busy += more[3]
        mte2.waited += more[4]


def _coming(times: Sequence[int] | deque[int], now: int) -> tuple[int, ...]:
    """Return times relative to now; what is over is 0."""
    return tuple([at - now if at > now else 0 for at in times])


def _served_alike(before: _Visit, now: _Visit) -> bool:
    """True if device memory is where it was, or falls behind without having held up anything."""
    if now.served == before.served:
        return True
    held_up = now.delays != before.delays
    return now.lag <= before.lag and (not held_up or now.lag == before.lag)


def _alike(kinds: Sequence[int], start: int, period: int) -> int:
    """Return how many periods from `start` on are like the one before it."""
    whole = kinds[start - period : start]
    count = 0
    while kinds[start : start + period] == whole:
        count, start = count + 1, start + period
    return count
