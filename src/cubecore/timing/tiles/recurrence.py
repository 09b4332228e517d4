"""Recurrence in a block of C, from row to row, tile to tile and along K: none is walked again.

At the head of each, everything that decides what follows is compared relative to the scalar unit's
time. Where it is as before an earlier one, and those to come and their chunks are like those since
then, so is what they take.
"""

from collections.abc import Sequence

from cubecore.timing.steady_state.visits import NO_LIMIT, MemoryState, Visits
from cubecore.timing.tiles.chunk_loads import NO_PEAK, ChunkQueue
from cubecore.timing.tiles.core_pipes import CorePipes, Rings

_MOST_COMPARED = 4
"""The latest visits of a state that are compared."""
_MOST_REMEMBERED = 8
"""The most skipped stretches after which what was seen before is kept."""


class _Visit:
    """The head of a row of tiles, a tile or a period along K: when, and what was done by then."""

    __slots__ = ("_coming", "_times", "busy", "loaded", "memory", "number", "time")

    def __init__(
        self, number: int, core: CorePipes, times: list[int], a: ChunkQueue, b: ChunkQueue
    ) -> None:
        mte2 = core.mte2
        self.number, self.time, self.loaded = number, core.time, (a.at, b.at)
        self.busy = core.m.busy, core.mte1.busy, core.fix.busy, mte2.busy, mte2.waited
        self.memory = MemoryState.of(mte2.memory, core.time)
        self._times: list[int] = times
        self._coming: list[int] | None = None

    def coming(self) -> list[int]:
        """Return every time that decides what follows, relative to its own; what is over is 0."""
        if self._coming is None:
            # What is over by now is 0, as nothing can be issued before now: states that differ in
            # the past alone are one.
            now = self.time
            self._coming = [at - now if at > now else 0 for at in self._times]
        return self._coming


class TileRecurrence:
    """Recognises states at the heads of rows, of tiles or of a tile's periods along K, and skips.

    `kinds` are the same for those that are alike; `misses` counts the states that led nowhere.
    """

    def __init__(
        self,
        core: CorePipes,
        rings: Rings,
        a: ChunkQueue,
        b: ChunkQueue,
        kinds: Sequence[object],
    ) -> None:
        self._core, self._rings, self._chunks, self._kinds = core, rings, (a, b), kinds
        self._seen = Visits[_Visit](_MOST_COMPARED)
        self._peaks: list[int] = []
        self._rooms: list[int] = []
        self._highest, self._least_room = NO_PEAK, NO_LIMIT
        self.misses = 0

    def skipped(self, number: int) -> int:
        """Return how many from `number` on need no walk; everything is as after them."""
        mte2 = self._core.mte2
        peak, room = mte2.peak, mte2.room
        self._peaks.append(peak)
        self._rooms.append(room)
        self._highest = max(self._highest, peak)
        self._least_room = min(self._least_room, room)
        # Peaks and rooms are kept for each visit, as those of a period are the extreme of its
        # visits'.
        mte2.peak, mte2.room = NO_PEAK, NO_LIMIT
        visit = self._visit(number)
        earlier = self._seen.earlier(self._state(), visit)
        if not earlier:
            self.misses += 1
            return 0
        before, periods = self._repeated(visit, earlier)
        if before is None:
            return 0
        self._advance(before, visit, periods)
        self._remember(before, visit, periods)
        self.misses = 0
        return periods * (number - before.number)

    def _repeated(self, now: _Visit, earlier: Sequence[_Visit]) -> tuple[_Visit | None, int]:
        """Return the visit of the same state since which most recurs, and how many times it does.

        None where nothing recurs. That is a miss if only the `coming` times stand against it.
        """
        found, most, differs = None, 0, False
        # The period that skips most wins: a short one may break off where a longer one goes on.
        for before in earlier:
            period = now.number - before.number
            periods = before.memory.periods(now.memory, min(self._rooms[-period:]))
            if periods:
                periods = min(periods, _alike(self._kinds, now.number, period))
            for chunk, was, at in zip(self._chunks, before.loaded, now.loaded, strict=True):
                if periods and at > was:
                    periods = min(periods, chunk.order.alike(at, at - was, periods))
            if periods * period <= most:
                continue
            if before.coming() == now.coming():
                found, most = before, periods * period
            else:
                differs = True
        if found is None:
            self.misses += differs
            return None, 0
        return found, most // (now.number - found.number)

    def _remember(self, before: _Visit, now: _Visit, periods: int) -> None:
        """Keep what was seen, with the peaks and rooms of the periods that were skipped.

        After many, what was seen is forgotten: what recurs next is another stretch.
        """
        period = now.number - before.number
        if periods * period > _MOST_REMEMBERED:
            for seen in (self._seen, self._peaks, self._rooms):
                seen.clear()
            return
        # A peak is a time minus what was served by then: it rises in each period by the time that
        # device memory was idle. What it falls behind instead takes room.
        each, served = now.time - before.time, now.memory.served - before.memory.served
        peaks, rooms = self._peaks[-period:], self._rooms[-period:]
        later = max(served - each, 0)
        for count in range(1, periods + 1):
            self._peaks += [peak + count * (each - served) for peak in peaks]
            self._rooms += [room - count * later for room in rooms]

    def finish(self) -> None:
        """Leave the highest peak and the least room of all to what looks at longer periods."""
        mte2 = self._core.mte2
        mte2.peak = max(mte2.peak, self._highest)
        mte2.room = min(mte2.room, self._least_room)

    def _visit(self, number: int) -> _Visit:
        core, rings, (a, b) = self._core, self._rings, self._chunks
        mte2, m, mte1, fix = core.mte2, core.m, core.mte1, core.fix
        times = [mte2.done, m.free, m.gate, mte1.free, mte1.gate, fix.free, fix.gate]
        times += [mte2.free, mte2.gate, *rings.l0a, *rings.l0b, *rings.l0c, rings.table]
        times += [*a.free, *a.ready, *b.free, *b.ready]
        times += [*m.queue, *mte1.queue, *fix.queue, *mte2.queue]
        return _Visit(number, core, times, a, b)

    def _state(self) -> tuple[int | bool, ...]:
        """Return what is the same wherever what follows is: some of what decides it."""
        core, rings, (a, b) = self._core, self._rings, self._chunks
        now, mte2, m, mte1, fix = core.time, core.mte2, core.m, core.mte1, core.fix
        return (
            *(rings.at_a, rings.at_b, rings.at_c, a.filled, a.used, b.filled, b.used),
            *(m.drained, mte1.drained, fix.drained),
            m.free - now if m.free > now else 0,
            mte1.free - now if mte1.free > now else 0,
            mte2.free - now if mte2.free > now else 0,
        )

    def _advance(self, before: _Visit, now: _Visit, periods: int) -> None:
        """Move everything on by so many times what happened between two visits."""
        core, rings = self._core, self._rings
        shift = periods * (now.time - before.time)
        mte2 = core.mte2
        memory = mte2.memory
        served = now.memory.served - before.memory.served
        if served:
            peak = max(self._peaks[-(now.number - before.number) :])
            each = now.time - before.time
            memory.repeat(0, served, each, peak, periods)
            self._highest = max(self._highest, peak + periods * (each - served))
        core.time += shift
        for pipe in (core.m, core.mte1, core.fix, mte2):
            pipe.move(shift)
        for times in (rings.l0a, rings.l0b, rings.l0c):
            times[:] = [at + shift for at in times]
        rings.table += shift
        for chunk, was, at in zip(self._chunks, before.loaded, now.loaded, strict=True):
            chunk.at += periods * (at - was)
            chunk.free[:] = [time + shift for time in chunk.free]
            chunk.ready[:] = [time + shift for time in chunk.ready]
        more = [periods * (b - a) for a, b in zip(before.busy, now.busy, strict=True)]
        core.m.busy += more[0]
        core.mte1.busy += more[1]
        core.fix.busy += more[2]
        mte2.busy += more[3]
        mte2.waited += more[4]


def _alike(kinds: Sequence[object], start: int, period: int) -> int:
    """Return how many periods from `start` on are like the one before it."""
    whole = kinds[start - period : start]
    count = 0
    while kinds[start : start + period] == whole:
        count, start = count + 1, start + period
    return count
