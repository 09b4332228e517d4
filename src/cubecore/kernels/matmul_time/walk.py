"""The order of a core's instructions in time: template MDL, without bias or rows of scales.

It is that of `kernels.matmul.block`, instruction by instruction, and what each does is that of
`timing.pipes`: the answer is the tree's to the cycle.
"""

from collections import deque

from cubecore.kernels.matmul_time.loads import ChunkQueue, Mte2
from cubecore.kernels.matmul_time.work import BaseKStep, IssueCycles, Move
from cubecore.lazy_dataclass import dataclass
from cubecore.timing.memory.memory_port import MemoryRequest


@dataclass(slots=True)
class PipeClock:
    """A pipe that does one thing after another."""

    queue: deque[int]
    free: int = 0
    gate: int = 0
    busy: int = 0
    drained: bool = True


@dataclass(frozen=True, slots=True)
class TileWork:
    """A tile of C: its base-K steps, and its store's cycles and request.

    `enters` and `leaves` say which operands' chunks of the outer or inner axis begin before the
    tile and end behind it.
    """

    steps: tuple[BaseKStep, ...]
    store: int
    store_head: int
    request: MemoryRequest


class CorePipes:
    """A core's pipes while it computes blocks of C one after another."""

    def __init__(self, scalars: IssueCycles, depth: int, mte2: Mte2, start: int) -> None:
        self.time, self.scalars, self.mte2 = start, scalars, mte2
        self.m, self.mte1, self.fix = (
            PipeClock(deque([0] * depth, maxlen=depth)) for _ in range(3)
        )
        self.scalar_waits = 0

    def raised(self, pipe: PipeClock) -> int:
        """Raise a flag of a pipe."""
        queue, time = pipe.queue, self.time + self.scalars.issue
        if queue[0] > time:
            time = queue[0]
        self.time = at = time
        if pipe.free > at:
            at = pipe.free
        if pipe.gate > at:
            at = pipe.gate
        queue.append(at)
        return at

    def waited(self, pipe: PipeClock, at: int) -> None:
        """Let a pipe wait for a flag."""
        time = self.time + self.scalars.issue
        time = max(time, pipe.queue[0])
        self.time = time
        pipe.gate = max(pipe.gate, at)
        pipe.queue.append(max(time, pipe.gate, pipe.free))

    def acquire(self, chunks: ChunkQueue) -> None:
        """Let MTE1 wait for the next chunk of an operand."""
        self.time, at = chunks.acquire(self.time)
        self.waited(self.mte1, at)

    def release(self, chunks: ChunkQueue) -> None:
        """Let MTE1 say that a chunk is used up."""
        chunks.release(self.raised(self.mte1))

    @property
    def end(self) -> int:
        """Return the cycle at which the last pipe ends."""
        return max(
            self.time, self.m.free, self.mte1.free, self.fix.free, self.mte2.free, self.mte2.done
        )


@dataclass(slots=True)
class Rings:
    """The buffers of L0 and L0C: when each was last let go, and which is next."""

    l0a: list[int]
    l0b: list[int]
    l0c: list[int]
    at_a: int = 0
    at_b: int = 0
    at_c: int = 0


def compute_tile(
    core: CorePipes,
    rings: Rings,
    work: TileWork,
    a: tuple[ChunkQueue, int],
    b: tuple[ChunkQueue, int],
) -> None:
    """Walk one tile; `a` and `b` are operands and the base-K steps of a chunk, 0 where it stays."""
    own_step, mte1 = core.scalars.step, core.mte1
    anew = tuple(pair for pair in (a, b) if pair[1])
    core.time += core.scalars.tile
    core.waited(core.m, rings.l0c[rings.at_c])
    last = len(work.steps) - 1
    for number, step in enumerate(work.steps):
        core.time += own_step
        for chunks, every in anew:
            if number % every == 0:
                core.acquire(chunks)
        _move_into_l0(core, step.a, rings.l0a[rings.at_a])
        _move_into_l0(core, step.b, rings.l0b[rings.at_b])
        moved = core.raised(mte1)
        for chunks, every in anew:
            if number == last or number % every == every - 1:
                core.release(chunks)
        _multiply(core, rings, step, moved)
    core.waited(core.fix, core.raised(core.m))
    _store(core, work)
    rings.l0c[rings.at_c] = core.raised(core.fix)
    rings.at_c = (rings.at_c + 1) % len(rings.l0c)


def _move_into_l0(core: CorePipes, moves: tuple[Move, ...], at: int) -> None:
    """Walk the moves of one operand of a base-K step, whose place in L0 is free from `at`.

    Every instruction is written out here and in `_multiply`: they are the cost of a timing.
    """
    mte1, issue = core.mte1, core.scalars.issue
    queue, free, gate, busy, first = mte1.queue, mte1.free, mte1.gate, mte1.busy, mte1.drained
    filled, append = core.mte2.free, queue.append
    time = core.time + issue
    if queue[0] > time:
        time = queue[0]
    if at > gate:
        gate = at
    start = gate if gate > time else time
    append(free if free > start else start)
    for times, alone, slowed, idle_head in moves:
        for _ in range(times):
            time += issue
            if queue[0] > time:
                time = queue[0]
            start = gate if gate > time else time
            took = 0
            if start > free:
                took = idle_head
            else:
                start = free
                if first:
                    took = idle_head
            first = False
            took += slowed if filled > start else alone
            free = start + took
            busy += took
            append(start)
    core.time = time
    mte1.free, mte1.gate, mte1.busy, mte1.drained = free, gate, busy, first


def _multiply(core: CorePipes, rings: Rings, step: BaseKStep, moved: int) -> None:
    """Walk the product of a base-K step, whose operands are in L0 at `moved`, and free L0."""
    m, issue, time = core.m, core.scalars.issue, core.time
    queue, free = m.queue, m.free
    append = queue.append
    time += issue
    if queue[0] > time:
        time = queue[0]
    if moved > m.gate:
        m.gate = moved
    gate = m.gate
    start = gate if gate > time else time
    append(free if free > start else start)
    time += issue
    if queue[0] > time:
        time = queue[0]
    start, took = (gate if gate > time else time), step.busy
    if start > free:
        took += step.head
    else:
        start = free
        if m.drained:
            took += step.head
    free = start + took
    m.free, m.drained = free, step.barrier
    m.busy += took
    append(start)
    if step.barrier:
        time += issue
        if queue[0] > time:
            time = queue[0]
        append(free if free > time else time)
    core.time = time
    rings.l0a[rings.at_a] = core.raised(m)
    rings.l0b[rings.at_b] = core.raised(m)
    rings.at_a = (rings.at_a + 1) % len(rings.l0a)
    rings.at_b = (rings.at_b + 1) % len(rings.l0b)


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
    core.mte2.memory.store(start, work.request)
