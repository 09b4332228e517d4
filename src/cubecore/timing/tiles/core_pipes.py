"""A core's pipes and the buffers of L0, while it computes blocks of C."""

from collections import deque
from dataclasses import dataclass

from cubecore.timing.memory.memory_port import MemoryPort
from cubecore.timing.pipes.pipe_clock import PipeClock
from cubecore.timing.tiles.chunk_loads import ChunkQueue, Mte2
from cubecore.timing.tiles.stages import IssueCycles, L0Move


class CorePipes:
    """A core's pipes while it computes blocks of C one after another."""

    def __init__(self, scalars: IssueCycles, depth: int, memory: MemoryPort, start: int) -> None:
        # A queue is full of what has left it long ago: its oldest entry always is the one whose
        # place the next instruction takes.
        queues = [deque([0] * depth, maxlen=depth) for _ in range(4)]
        self.time, self.scalars = start, scalars
        self.m, self.mte1, self.fix = (PipeClock(queue) for queue in queues[1:])
        self.mte2 = Mte2(queues[0], memory=memory, step=scalars.issue, work=scalars.load)

    def raised(self, pipe: PipeClock) -> int:
        """Raise a flag of a pipe."""
        # As `PipeOrder._raise`: `queue` holds when the last instructions left it; as the deque is
        # full from the start, its first entry is the one that must have left for this one to be
        # issued.
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
        queue, time = pipe.queue, self.time + self.scalars.issue
        if queue[0] > time:
            time = queue[0]
        self.time = time
        if at > pipe.gate:
            pipe.gate = at
        else:
            at = pipe.gate
        if pipe.free > at:
            at = pipe.free
        queue.append(at if at > time else time)

    def acquire(self, chunks: ChunkQueue) -> None:
        """Let MTE1 wait for the next chunk of an operand, while the one after it is asked for."""
        if chunks.at < chunks.count:
            self.time = chunks.load(self.time)
        self.waited(self.mte1, chunks.ready[chunks.used])

    def release(self, chunks: ChunkQueue) -> None:
        """Let MTE1 say that a chunk is used up."""
        chunks.release(self.raised(self.mte1))

    def copy_to_table(self, copy: L0Move) -> None:
        """Let MTE1 copy a part of a bias, as it moves blocks into L0."""
        # The same arithmetic as a move into L0: MTE1 is slowed while MTE2 fills L1, and pays its
        # head if it stood idle before.
        mte1, time = self.mte1, self.time + self.scalars.issue
        time = max(time, mte1.queue[0])
        self.time, start = time, max(mte1.gate, time)
        if start > mte1.free:
            mte1.free, mte1.drained = start, True
        mte1.queue.append(mte1.free)
        took = copy.slowed if self.mte2.free > mte1.free else copy.busy
        if mte1.drained:
            took += copy.head
        mte1.drained = False
        mte1.free += took
        mte1.busy += took

    @property
    def end(self) -> int:
        """Return the cycle at which the last pipe ends."""
        return max(
            self.time, self.m.free, self.mte1.free, self.fix.free, self.mte2.free, self.mte2.done
        )


@dataclass(slots=True)
class Rings:
    """The buffers of L0 and L0C: when each was last let go, and which is next.

    `row` and `table` are the same of a bias' row in L1 and of the table that Mmads read.
    """

    l0a: list[int]
    l0b: list[int]
    l0c: list[int]
    at_a: int = 0
    at_b: int = 0
    at_c: int = 0
    row: int = 0
    table: int = 0
