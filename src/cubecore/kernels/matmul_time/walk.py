"""The order of a core's instructions in time: template MDL, without bias or rows of scales.

It is that of `kernels.matmul.block`, instruction by instruction, and what each does is that of
`timing.pipes`: the answer is the tree's to the cycle.
"""

from collections import deque

from cubecore.kernels.matmul_time.loads import ChunkQueue, Mte2
from cubecore.kernels.matmul_time.work import BaseKStep, IssueCycles
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
        time = self.time + self.scalars.issue
        time = max(time, pipe.queue[0])
        self.time = time
        at = max(time, pipe.free, pipe.gate)
        pipe.queue.append(at)
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
    """Walk one tile; `a` and `b` are operands and the base-K steps of a chunk, 0 where it stays.

    Every instruction is written out: they are what a timing takes.
    """
    scalars, m, mte1, filler = core.scalars, core.m, core.mte1, core.mte2
    issue, own_step = scalars.issue, scalars.step
    anew = tuple(pair for pair in (a, b) if pair[1])
    l0a, l0b, at_a, at_b = rings.l0a, rings.l0b, rings.at_a, rings.at_b
    m_queue, queue = m.queue, mte1.queue
    m_append, append = m_queue.append, queue.append
    core.time += scalars.tile
    core.waited(m, rings.l0c[rings.at_c])
    time, last = core.time, len(work.steps) - 1
    m_free, m_gate, drained, m_busy = m.free, m.gate, m.drained, m.busy
    free, gate, busy, first = mte1.free, mte1.gate, mte1.busy, mte1.drained
    for number, (moves_a, moves_b, product, head, barrier) in enumerate(work.steps):
        time += own_step
        for chunks, every in anew:
            if number % every == 0:
                time, at = chunks.acquire(time)
                time += issue
                if queue[0] > time:
                    time = queue[0]
                if at > gate:
                    gate = at
                start = gate if gate > time else time
                append(free if free > start else start)
        filled = filler.free
        at, moves = l0a[at_a], moves_a
        for _ in (0, 1):
            time += issue
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
            at, moves = l0b[at_b], moves_b
        time += issue  # the step is in L0
        if queue[0] > time:
            time = queue[0]
        moved = gate if gate > time else time
        if free > moved:
            moved = free
        append(moved)
        for chunks, every in anew:
            if number == last or number % every == every - 1:
                time += issue
                if queue[0] > time:
                    time = queue[0]
                at = gate if gate > time else time
                if free > at:
                    at = free
                append(at)
                chunks.release(at)
        time += issue
        if m_queue[0] > time:
            time = m_queue[0]
        if moved > m_gate:
            m_gate = moved
        start = m_gate if m_gate > time else time
        m_append(m_free if m_free > start else start)
        time += issue
        if m_queue[0] > time:
            time = m_queue[0]
        start, took = (m_gate if m_gate > time else time), product
        if start > m_free:
            took += head
        else:
            start = m_free
            if drained:
                took += head
        drained = barrier
        m_free = start + took
        m_busy += took
        m_append(start)
        if barrier:
            time += issue
            if m_queue[0] > time:
                time = m_queue[0]
            m_append(m_free if m_free > time else time)
        time += issue
        if m_queue[0] > time:
            time = m_queue[0]
        at = m_gate if m_gate > time else time
        if m_free > at:
            at = m_free
        m_append(at)
        l0a[at_a] = at
        time += issue
        if m_queue[0] > time:
            time = m_queue[0]
        if time > at:
            at = time
        m_append(at)
        l0b[at_b] = at
        at_a = (at_a + 1) % len(l0a)
        at_b = (at_b + 1) % len(l0b)
    core.time = time
    m.free, m.gate, m.drained, m.busy = m_free, m_gate, drained, m_busy
    mte1.free, mte1.gate, mte1.busy, mte1.drained = free, gate, busy, first
    rings.at_a, rings.at_b = at_a, at_b
    core.waited(core.fix, core.raised(m))
    _store(core, work)
    rings.l0c[rings.at_c] = core.raised(core.fix)
    rings.at_c = (rings.at_c + 1) % len(rings.l0c)


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
