"""The order of a core's instructions in time: template MDL, without rows of scales.

It is that of `kernels.matmul.block`, instruction by instruction, and what each does is that of
`timing.pipes`: the answer is the tree's to the cycle.
"""

from functools import lru_cache
from math import lcm
from typing import NamedTuple

from cubecore.timing.tiles.chunk_loads import ChunkQueue
from cubecore.timing.tiles.core_pipes import CorePipes, Rings
from cubecore.timing.tiles.recurrence import TileRecurrence
from cubecore.timing.tiles.stages import BaseKStep, TileWork
from cubecore.units import ceil_div

FEWEST_PERIODS = 6
"""Periods of a tile's base-K steps from which on it is looked whether they recur."""
MOST_MISSES = 40
"""Periods of a tile after which it is no longer looked for."""
FEWEST_SECTIONS = 3
"""Sections of periods from which on it is looked whether these recur."""
_STEPS_AT_LEAST = 4
"""Base-K steps of a period, which is then some times the shorter chunk's own."""


class _Periods(NamedTuple):
    """Base-K steps of a tile that recur: those of a period, and of a section of periods or 0.

    `kinds` are those of the periods and `sections` those of the sections: equal ones load and let
    go the same in the same steps. Steps that make no whole period, and with a tail the last one,
    are like no others.
    """

    steps: int
    kinds: tuple[object, ...]
    section: int
    sections: tuple[object, ...]


@lru_cache(maxsize=4096)
def _periods(count: int, chunks: tuple[int, ...], tail: bool, frees: bool) -> _Periods:
    """Return how `count` base-K steps recur.

    `chunks` are the steps of the chunks that are loaded anew along K. The first step is like no
    other if it `frees` the table of a bias.
    """
    shortest = min(chunks, default=1)
    period = shortest * ceil_div(_STEPS_AT_LEAST, shortest)
    whole = (count - tail) // period
    kinds: list[object] = []
    for first in range(0, whole * period, period):
        steps = range(first, first + period)
        # Two periods are alike if the same operands begin and end chunks at the same steps of them.
        begins = [(x, n - first) for x, every in enumerate(chunks) for n in steps if n % every == 0]
        ends = [
            (x, n - first)
            for x, every in enumerate(chunks)
            for n in steps
            if n % every == every - 1 or n == count - 1
        ]
        kinds.append((tuple(begins), tuple(ends), frees and first == 0))
    # Chunks of A and of B end together only every so many steps: periods within a section differ,
    # sections do not.
    section = lcm(period, *chunks)
    each = section // period
    if each < FEWEST_PERIODS or whole // each < FEWEST_SECTIONS:
        return _Periods(period, (*kinds, None), 0, ())
    ends_of = range(each, whole + 1, each)
    sections = [tuple(kinds[end - each : end]) for end in ends_of]
    return _Periods(period, (*kinds, None), section, (*sections, None))


class _StepRecurrence:
    """The part that recurs of a tile's base-K steps: from section to section, and within each."""

    def __init__(
        self, core: CorePipes, rings: Rings, a: ChunkQueue, b: ChunkQueue, of: _Periods
    ) -> None:
        self._of, self._state = of, (core, rings, a, b)
        self._sections = TileRecurrence(*self._state, of.sections) if of.section else None
        self._begin(0)

    def _begin(self, step: int) -> None:
        """Begin a section, or the only one."""
        of, first = self._of, step // self._of.steps
        end = first + of.section // of.steps if of.section else None
        self._head, self._periods = step, TileRecurrence(*self._state, of.kinds[first:end])

    def skipped(self, number: int) -> int:
        """Return how many steps from the head of a period on need no walk."""
        of, sections, skipped = self._of, self._sections, 0
        if sections is not None and number % of.section == 0 and sections.misses < MOST_MISSES:
            self._periods.finish()
            skipped = of.section * sections.skipped(number // of.section)
            self._begin(number + skipped)
        if not skipped and self._periods.misses < MOST_MISSES:
            skipped = of.steps * self._periods.skipped((number - self._head) // of.steps)
        return skipped

    def finish(self) -> None:
        """Leave the highest peak and the least room of all to what looks at longer periods."""
        self._periods.finish()
        if self._sections is not None:
            self._sections.finish()


def compute_tile(
    core: CorePipes, rings: Rings, work: TileWork, a: ChunkQueue, b: ChunkQueue
) -> int:
    """Walk one tile; return the base-K steps that were walked, which are not those that recur."""
    step_cycles, steps = core.scalars.step, work.steps
    anew = tuple([(chunks, chunks.steps) for chunks in (a, b) if chunks.steps])
    core.time += core.scalars.tile
    core.waited(core.m, rings.l0c[rings.at_c])
    every_chunk = tuple([every for _, every in anew])
    of = _periods(len(steps), every_chunk, steps[-1] is not steps[0], work.frees)
    recurring = None
    if len(of.kinds) > FEWEST_PERIODS:
        recurring = _StepRecurrence(core, rings, a, b, of)
    number, last, walked = 0, len(steps) - 1, 0
    while number <= last:
        # Only at heads of periods: in between the state would never be the same.
        if recurring is not None and number % of.steps == 0:
            number += recurring.skipped(number)
            if number > last:
                break
        step = steps[number]
        core.time += step_cycles
        for chunks, every in anew:
            if number % every == 0:
                core.acquire(chunks)
        moved = _fill_l0(core, step, rings.l0a[rings.at_a], rings.l0b[rings.at_b])
        for chunks, every in anew:
            if number == last or number % every == every - 1:
                core.release(chunks)
        _multiply(core, rings, step, moved, work.frees and number == 0)
        number += 1
        walked += 1
    if recurring is not None:
        recurring.finish()
    # FIX waits for the last product's flag, stores the tile, and then says that the buffer of L0C
    # is free for the tile after the next one.
    core.waited(core.fix, core.raised(core.m))
    _store(core, work)
    rings.l0c[rings.at_c] = core.raised(core.fix)
    rings.at_c = (rings.at_c + 1) % len(rings.l0c)
    return walked


def _fill_l0(core: CorePipes, step: BaseKStep, free_a: int, free_b: int) -> int:
    """Walk the moves of a base-K step, whose places in L0 are free from then on, and their flag.

    Every instruction is written out here and in `_multiply`: they are the cost of a timing.
    """
    mte1, issue, time = core.mte1, core.scalars.issue, core.time
    queue, free, gate, busy, first = mte1.queue, mte1.free, mte1.gate, mte1.busy, mte1.drained
    filled, append = core.mte2.free, queue.append
    for moves, at in ((step.a, free_a), (step.b, free_b)):
        time += issue
        if queue[0] > time:
            time = queue[0]
        if at > gate:
            gate = at
        if gate > free:  # the pipe waits: as if it were taken till then, and idle
            free, first = gate, True
        append(free if free > time else time)
        for times, alone, slowed, idle_head in moves:
            for _ in range(times):
                time += issue
                if queue[0] > time:
                    time = queue[0]
                if time > free:
                    free, first = time, True
                append(free)
                took = slowed if filled > free else alone
                if first:
                    took += idle_head
                    first = False
                free += took
                busy += took
            if not times:
                time += issue
                if queue[0] > time:
                    time = queue[0]
                append(free if free > time else time)
                first = True
    time += issue
    if queue[0] > time:
        time = queue[0]
    at = free if free > time else time
    if gate > at:
        at = gate
    append(at)
    core.time = time
    mte1.free, mte1.gate, mte1.busy, mte1.drained = free, gate, busy, first
    return at


def _multiply(core: CorePipes, rings: Rings, step: BaseKStep, moved: int, frees: bool) -> None:
    """Walk the matmul of a base-K step, whose operands are in L0 at `moved`, and free L0.

    The table of a bias is free behind it, too, if it `frees` that.
    """
    m, issue, time = core.m, core.scalars.issue, core.time
    _, _, took, head, barrier = step
    queue, free, gate = m.queue, m.free, m.gate
    append = queue.append
    time += issue
    if queue[0] > time:
        time = queue[0]
    if moved > gate:
        m.gate = gate = moved
    start = gate if gate > time else time
    append(free if free > start else start)
    time += issue
    if queue[0] > time:
        time = queue[0]
    start = gate if gate > time else time
    if start > free:
        took += head
    else:
        start = free
        if m.drained:
            took += head
    m.free = free = start + took
    m.drained = barrier
    m.busy += took
    append(start)
    if frees:
        core.time = time
        rings.table = core.raised(m)
        time = core.time
    if barrier:
        time += issue
        if queue[0] > time:
            time = queue[0]
        append(free if free > time else time)
    done = free if free > gate else gate
    time += issue
    if queue[0] > time:
        time = queue[0]
    at = rings.at_a
    rings.l0a[at] = flag = done if done > time else time
    rings.at_a = (at + 1) % len(rings.l0a)
    append(flag)
    time += issue
    if queue[0] > time:
        time = queue[0]
    at = rings.at_b
    rings.l0b[at] = flag = done if done > time else time
    rings.at_b = (at + 1) % len(rings.l0b)
    append(flag)
    core.time = time


def _store(core: CorePipes, work: TileWork) -> None:
    fix = core.fix
    time = core.time + core.scalars.issue
    time = max(time, fix.queue[0])
    core.time = time
    start, took = max(fix.gate, time), work.store
    if start > fix.free:
        took += work.store_head
    else:
        start = fix.free
        if fix.drained:
            took += work.store_head
    fix.drained = False
    fix.free = start + took
    fix.busy += took
    fix.queue.append(start)
    core.mte2.store(start, work.request)
