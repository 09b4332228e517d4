"""A core's walk over the stages of its blocks of C, from the first setting to the last flag.

It is what the clock of trees does with the kernel's tree, instruction by instruction: the answer is
the same to the cycle. Rows of tiles recur, tiles within a row, and steps within a tile; each level
skips what it can.
"""

from collections.abc import Sequence

from cubecore.timing.memory.memory_port import MemoryPort
from cubecore.timing.tiles.chunk_loads import ChunkQueue
from cubecore.timing.tiles.core_pipes import CorePipes, Rings
from cubecore.timing.tiles.recurrence import TileRecurrence
from cubecore.timing.tiles.stages import BlockStages, CoreStages, NotEveryInstruction, TileTurn
from cubecore.timing.tiles.tile_walk import compute_tile

MOST_STEPS = 4000
"""Base-K steps of a core that are walked; beyond, the trees are, which skip more of what recurs."""


def walk_core(stages: CoreStages, memory: MemoryPort, start: int) -> CorePipes:
    """Return a core at the end of all its blocks; it begins at `start`.

    Raises
    ------
    NotEveryInstruction
        If more than `MOST_STEPS` steps do not recur.
    """
    return _CoreWalk(stages, memory, start).ended()


class _CoreWalk:
    """The blocks of a core, one after another: its pipes, and what is free in L1 and L0."""

    def __init__(self, stages: CoreStages, memory: MemoryPort, start: int) -> None:
        self._stages = stages
        self._core = CorePipes(stages.scalars, stages.depth, memory, start)
        self._rings = Rings([0] * stages.l0a, [0] * stages.l0b, [0] * stages.l0c)
        self._free: tuple[list[int], ...] = ()
        self._has_bias = False
        self._walked = 0

    def ended(self) -> CorePipes:
        """Walk all blocks."""
        core, rings, issue = self._core, self._rings, self._stages.scalars.issue
        # The kernel's settings come first, one after another.
        core.time += sum(issue + cycles for cycles in self._stages.settings)
        for block in self._stages.blocks:
            if block.lies_apart:
                self._settle()
            self._block(block)
        # The kernel takes down every flag that it raised; waits for them are its last instructions.
        up = [(core.m, rings.l0c), (core.mte1, rings.l0a), (core.mte1, rings.l0b)]
        for pipe, ring in up:
            for at in ring:
                core.waited(pipe, at)
        self._await_l1()
        if self._has_bias:
            core.waited(core.mte1, rings.table)
        core.time += issue * self._stages.resets
        return core

    def _await_l1(self) -> None:
        """Let MTE2 wait until all of L1 is let go."""
        core, row = self._core, [self._rings.row] if self._has_bias else []
        for at in (*(at for free in self._free for at in free), *row):
            core.time = core.mte2.waited_for(core.time, at)

    def _settle(self) -> None:
        """Let MTE2 wait until all of L1 is read: a block's buffers lie elsewhere (`settle`)."""
        core, rings = self._core, self._rings
        self._await_l1()
        core.time, at = core.mte2.raised(core.time)
        core.waited(core.mte1, at)
        for free in self._free:
            free[:] = [core.raised(core.mte1) for _ in free]
        if self._has_bias:
            rings.row = core.raised(core.mte1)

    def _block(self, block: BlockStages) -> None:
        """Walk a block of C, for each matrix of the batch."""
        core, rings = self._core, self._rings
        # The first block raises all flags of free buffers; later ones find them up.
        if not self._free:
            for pipe, ring in ((core.fix, rings.l0c), (core.m, rings.l0a), (core.m, rings.l0b)):
                ring[:] = [core.raised(pipe) for _ in ring]
            self._free = tuple(
                [core.raised(core.mte1) for _ in range(chunks.buffers)] for chunks in block.chunks
            )
        if block.bias is not None and not self._has_bias:
            rings.row, rings.table = core.raised(core.mte1), core.raised(core.m)
            self._has_bias = True
        # Rings begin at their first buffer in each block: so the kernel's counters do, which are
        # set where a block's part of the tree begins.
        rings.at_a = rings.at_b = rings.at_c = 0
        for _ in range(block.matrices):
            self._matrix(block)

    def _matrix(self, block: BlockStages) -> None:
        core, rings = self._core, self._rings
        a, b = (
            ChunkQueue(core.mte2, free, chunks)
            for free, chunks in zip(self._free, block.chunks, strict=True)
        )
        if block.bias is not None:
            core.time, at = core.mte2.chunk(core.time, rings.row, block.bias, 0)
            core.waited(core.mte1, at)
        # First loads are asked for before anything is waited for. What stays for the whole core is
        # acquired here, once; all else where its level begins, in `_row` or along K.
        staying = []
        for queue, chunks in zip((a, b), block.chunks, strict=True):
            core.time = queue.start(core.time)
            if chunks.level == "core":
                core.acquire(queue)
                staying.append(queue)
        steady = TileRecurrence(core, rings, a, b, block.rows)
        number = 0
        while number < len(block.rows):
            if len(block.rows) - number > 1:
                number += steady.skipped(number)
            if number < len(block.rows):
                self._row(block.turns[block.rows[number]], a, b)
            number += 1
        for queue in staying:
            core.release(queue)
        if block.bias is not None:
            rings.row = core.raised(core.mte1)

    def _row(self, turns: Sequence[TileTurn], a: ChunkQueue, b: ChunkQueue) -> None:
        """Walk the tiles of a chunk of the outer axis."""
        core, rings, chunks = self._core, self._rings, (a, b)
        steady = TileRecurrence(core, rings, a, b, [turn.kind for turn in turns])
        number = 0
        while number < len(turns):
            if len(turns) - number > 1:
                number += steady.skipped(number)
            if number >= len(turns):
                break
            turn = turns[number]
            for index in turn.enters:
                core.acquire(chunks[index])
            if turn.copy is not None:
                core.waited(core.mte1, rings.table)
                core.copy_to_table(turn.copy)
            self._walked += compute_tile(core, rings, turn.work, a, b)
            # Behind the last tile of a column the table of the bias is free for the next column's
            # part; then the chunks go that no later tile of the row reads.
            if turn.frees:
                rings.table = core.raised(core.m)
            for index in turn.releases:
                core.release(chunks[index])
            number += 1
            if self._walked > MOST_STEPS:
                raise NotEveryInstruction
        steady.finish()
