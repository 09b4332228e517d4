"""Template NORM: base blocks are loaded one by one, each usable as soon as it is in L1 (D13).

L1 holds depth base blocks of an operand. Where they hold all of K, they stay as a chunk does in
template MDL; otherwise they are a ring: chunks of one block, in as many buffers as L1 and the flags
give. The flags bound how far MTE2 runs ahead, not what stays.
"""

from dataclasses import replace

from cubecore.isa.program.expr import Expr, Int
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Event, Ring
from cubecore.kernels.build.loop_cursor import Cursor
from cubecore.kernels.matmul.chunk_stream import (
    EVENTS,
    Along,
    ChunkStream,
    GridCell,
    OperandAddresses,
    Slot,
    Stream,
    StreamGeometry,
)
from cubecore.kernels.matmul.l1_to_l0 import Mover
from cubecore.kernels.matmul.operand import BaseBlock, OperandPlan
from cubecore.tiling.cost.tile_counts import Level
from cubecore.units import ceil_div


def norm_stream(
    builder: Builder,
    plan: OperandPlan,
    addresses: OperandAddresses,
    walk: StreamGeometry,
    *,
    kept: bool = False,
) -> Stream:
    """Return the stream that the operand's residency asks for.

    `kept` says that an earlier client of the core left the operand in L1; it is used if all of it
    was there.
    """
    if walk.own.k_chunks > 1:
        ring = replace(plan, buffers=min(plan.buffers, EVENTS))
        return ChunkStream(builder, ring, addresses, replace(walk, own=walk.own.by_block()))
    whole = walk.own.chunks == 1
    return (KeptBlocks if kept and whole else StayingBlocks)(builder, plan, addresses, walk)


class _Blocks(Stream):
    """The base of both streams: the addresses of a block, and its transfer."""

    def _load(self, r: Expr, k: Expr, slot: Expr) -> None:
        cell = GridCell(r, k, self._plan.base_r, self._plan.base_k)
        self._transfer(cell, self._addresses.l1 + slot * self._size)

    def _move(self, k: int, along_r: Along, to: Slot, slot: Expr) -> None:
        tile = BaseBlock(
            along_r.length, self._plan.multiplied(k), self._plan.chunk(along_r.length, 0)
        )
        at, first = self._addresses.l1 + slot * self._size, Expr(0)
        Mover(self._builder, self._plan).move(at, to.at, first, first, tile)
        self._move_scales(at, first, first, to, tile)


class StayingBlocks(_Blocks):
    """Chunks that hold all of K: loaded block by block during their first use, then used again.

    A flag (MTE2, MTE1) says that a block is there; MTE1 answers when it has seen it, so that the
    flag can be raised for another block. One flag (MTE1, MTE2) for each buffer says that the chunk
    in it is no longer used.
    """

    def __init__(
        self, builder: Builder, plan: OperandPlan, addresses: OperandAddresses, walk: StreamGeometry
    ) -> None:
        super().__init__(builder, plan, addresses, walk)
        # A buffer has a slot for each base block of a chunk, which is loaded in the order of its
        # first use.
        self._slots = self._own.step * self._own.step_k
        self._buffers = plan.buffers // self._slots
        rounds = self._own.passes(self._other)
        tiles = min(self._own.step, self._own.tiles)
        levels = [("k", self._own.k_steps), ("tile", tiles), ("own", self._own.chunks)]
        self._cursor = Cursor(builder, self._name, [*levels, ("round", rounds)])
        if self._own.tiles % self._own.step and self._own.chunks > 1:
            self._cursor.limit("tile", self._tiles_of(self._cursor.at("own")))
        # Events are few: one for each buffer, and what is left announces blocks in turns.
        seen = EVENTS - self._buffers
        self._ready = Ring(builder, f"{self._name}_ready", seen)
        self._taken = Ring(builder, f"{self._name}_taken", seen)
        self._used = Ring(builder, f"{self._name}_used", self._buffers)
        total = self._own.k_steps * self._own.tiles * rounds
        self._left = builder.scalar(f"{self._name}_left", total) if self._buffers > 1 else None

    def _tiles_of(self, chunk: Expr) -> Expr:
        step = self._own.step
        left: Expr = self._own.tiles - chunk * step
        return left.minimum(step)

    @property
    def events(self) -> list[Event]:
        """Blocks that may be announced, and buffers that are free."""
        return [("MTE1", "MTE2", self._first + i) for i in range(EVENTS)]

    def start(self) -> None:
        """Load the first block ahead of its use where there is a second buffer."""
        if self._left is not None:
            self._load_next()
        self.enter("core")

    def enter(self, level: Level) -> None:
        """Begin a chunk: a single buffer is filled from here on."""
        if self._level == level and self._left is None:
            self._load_next()

    def leave(self, level: Level) -> None:
        """Free the chunk's buffer."""
        if self._level == level:
            self._flags.set("MTE1", "MTE2", self._used.at + self._release)
            self._used.next()

    @property
    def _release(self) -> int:
        return self._first + self._ready.size

    def enter_step(self, k_block: Expr, along_r: Along, along_other: Along) -> None:
        """Wait for the step's block where it is used for the first time."""
        # The first tile of the other axis brings the block, all others find it there.
        passes = along_other.in_chunk if self._level == "inner" else along_other.tile
        with self._builder.when(passes, "==", 0):
            event = self._taken.at + self._first
            self._flags.wait("MTE2", "MTE1", event)
            self._flags.set("MTE1", "MTE2", event)
            self._taken.next()
            self._load_ahead(k_block, along_r)

    def _load_ahead(self, k_block: Expr, along_r: Along) -> None:
        """Ask for the block behind the step's: of the same chunk, or of the next buffer's."""
        if self._left is not None:
            with self._builder.when(self._left.value, ">", 0):
                self._load_next()
            return
        # A single buffer is filled up to the chunk's end only: what comes next goes where this
        # chunk lies.
        last = ceil_div(along_r.chunk, self._plan.base_r) * self._own.k_steps - 1
        with self._builder.when(along_r.in_chunk * self._own.k_steps + k_block, "<", last):
            self._load_next()

    def leave_step(self, k_block: Expr) -> None:
        """The block stays."""

    def move(self, k_block: Expr, k: int, along_r: Along, slot: Slot) -> None:
        """Move the step's block of the chunk that is used now."""
        at = self._used.at * self._slots + along_r.in_chunk * self._own.k_steps + k_block
        self._move(k, along_r, slot, at)

    def _load_next(self) -> None:
        """Load the block at the cursor, and announce it."""
        cursor = self._cursor
        r, k, tile = cursor.at("own"), cursor.at("k"), cursor.at("tile")
        index = tile * self._own.k_steps + k
        number: Int = cursor.at("round") * self._own.chunks + r
        buffer = Expr.of(number) % self._buffers
        # The buffer is asked for once a chunk, as its first block comes.
        with self._builder.when(index, "==", 0):
            self._flags.wait("MTE1", "MTE2", buffer + self._release)
        with self._builder.walking(cursor.walk()):
            self._load(r * self._own.step + tile, k, buffer * self._slots + index)
        event = self._ready.at + self._first
        self._flags.wait("MTE1", "MTE2", event)
        self._flags.set("MTE2", "MTE1", event)
        self._ready.next()
        cursor.advance()
        if self._left is not None:
            self._left.set(self._left.value - 1)


class KeptBlocks(_Blocks):
    """An operand that another client of the core has brought to L1, all of it (D13, IBSHARE)."""

    @property
    def events(self) -> list[Event]:
        """None: nothing is loaded, and MTE1 has seen every block arrive."""
        return []

    def start(self) -> None:
        """All is there."""

    def enter(self, level: Level) -> None:
        """All is there."""

    def leave(self, level: Level) -> None:
        """Nobody waits for the place."""

    def enter_step(self, k_block: Expr, along_r: Along, along_other: Along) -> None:
        """The block is there."""

    def leave_step(self, k_block: Expr) -> None:
        """The block stays."""

    def move(self, k_block: Expr, k: int, along_r: Along, slot: Slot) -> None:
        """Move the step's block."""
        self._move(k, along_r, slot, along_r.tile * self._own.k_steps + k_block)
