"""The stream of an operand's chunks: L1 residency, loads ahead of use, moves to L0.

`Stream` is what every template shares; `ChunkStream` moves a chunk of several base blocks in one
transfer. What stays under template NORM is in `cubecore.kernels.matmul.norm_stream`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cubecore.errors import refuse
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Event, Flags, Ring
from cubecore.kernels.build.loop_cursor import Cursor
from cubecore.kernels.matmul.gm_to_l1 import Loader
from cubecore.kernels.matmul.l1_to_l0 import Mover
from cubecore.kernels.matmul.operand import BaseBlock, OperandPlan
from cubecore.tiling.cost.tile_counts import Level, OperandWalk
from cubecore.timing.tiles.stages import ChunkOrder

EVENTS = 3
"""Event ids of an operand for each of (MTE1, MTE2) and (MTE2, MTE1)."""


@dataclass(frozen=True, slots=True)
class OperandAddresses:
    """The addresses of an operand: its start in global memory, its buffers in L1; bytes.

    `scales` is where its scales come from, if it has some.
    """

    source: Expr
    l1: int
    scales: Expr | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A buffer of L0: which of them, and the bytes of one."""

    number: Expr
    size_bytes: int

    @property
    def at(self) -> Expr:
        """Its address."""
        return self.number * self.size_bytes


@dataclass(frozen=True, slots=True)
class Along:
    """The position of a tile along M or N.

    `first` is the first tile of its chunk, `in_chunk` the tile in the chunk, `length` its elements,
    `chunk` those of the chunk.
    """

    first: Expr
    in_chunk: Expr
    length: int
    chunk: int

    @property
    def tile(self) -> Expr:
        """The tile's number along the axis."""
        return self.first + self.in_chunk


@dataclass(frozen=True, slots=True)
class StreamGeometry:
    """The geometry of a core's walk as a stream needs it: of its `own` operand and of the `other`.

    `k` are elements. `ahead` says that the next chunk is asked for ahead of its use even if it
    holds all of K.
    """

    own: OperandWalk
    other: OperandWalk
    k: int
    ahead: bool = True


@dataclass(frozen=True, slots=True)
class GridCell:
    """Cell (r, k) of an operand that is cut into cells of r_size x k_size elements."""

    r: Expr
    k: Expr
    r_size: int
    k_size: int


class Stream(ABC):
    """The chunks of one operand.

    A chunk that holds all of K stays until its own axis moves on; otherwise every tile loads its
    chunks anew.
    """

    def __init__(
        self, builder: Builder, plan: OperandPlan, addresses: OperandAddresses, walk: StreamGeometry
    ) -> None:
        self._builder, self._plan, self._addresses = builder, plan, addresses
        self._flags = Flags(builder)
        self._first = 0 if plan.is_a else EVENTS
        self._name = "a" if plan.is_a else "b"
        self._own, self._other, self._k = walk.own, walk.other, walk.k
        self._size = plan.buffer_bytes(self._own.extent)
        self._level = self._own.level
        if self._level == "step" and self._own.step > 1:
            name = "stepM" if plan.is_a else "stepN"
            raise refuse(name, "be 1 while K is not in one chunk", self._own.step)

    def _repeats(self, k: int) -> list[tuple[str, int]]:
        """Return the wheels of a cursor over what every tile loads anew: K in `k` parts."""
        if self._own.outer:
            return [("k", k), ("again", self._other.tiles), ("own", self._own.tiles)]
        again = min(self._other.step, self._other.tiles)
        return [("k", k), ("again", again), ("own", self._own.tiles), ("round", self._other.chunks)]

    def _limit_repeats(self, cursor: Cursor) -> None:
        """Let the last chunk of the other axis have the tiles that are left."""
        step = self._other.step
        if not self._own.outer and step > 1 and self._other.tiles % step:
            left = self._other.tiles - cursor.at("round") * step
            cursor.limit("again", left.minimum(step))

    def _lengths(self, index: Expr, total: int, size: int) -> Iterator[int]:
        """Give the length of part `index`, in a branch where the last one is shorter."""
        whole, tail = divmod(total, size)
        if not tail:
            yield size
            return
        for last in self._builder.choose(index, "==", whole):
            yield tail if last else size

    def _transfer(self, cell: GridCell, target: Expr) -> None:
        """Load a cell, and the scales that come with it."""
        self._builder.issue(ScalarWork(step=self._builder.kind, part="load"))
        loader = Loader(self._builder, self._plan)
        start = self._plan.offset(cell.r, cell.r_size, cell.k, cell.k_size)
        source = self._addresses.source + start
        for r in self._lengths(cell.r, self._own.extent, cell.r_size):
            for k in self._lengths(cell.k, self._k, cell.k_size):
                loader.load(source, target, self._plan.chunk(r, k))
                if self._chunks_of_scales == 1:
                    self._load_scales(cell, target, r, k)

    @property
    def _chunks_of_scales(self) -> int:
        """The chunks whose scales travel at once; a chunk with all of K brings its own."""
        scales = self._plan.scales
        return 1 if scales is None or self._level != "step" else scales.chunks

    def _load_scales(self, cell: GridCell, buffer: Expr, r: int, k: int) -> None:
        """Load the scales of the r x k values that a cell has."""
        scales, source = self._plan.scales, self._addresses.scales
        if scales is not None and source is not None:
            to = buffer + self._plan.values_bytes(self._own.extent)
            start = scales.offset(cell.r, cell.r_size, cell.k, cell.k_size)
            scales.load(self._builder, source + start, to, r, k)

    def _move_scales(self, buffer: Expr, r: Expr, k: Expr, slot: Slot, tile: BaseBlock) -> None:
        """Move the scales of base block (r, k) of those behind `buffer` beside its values."""
        plan = self._plan
        if plan.scales is not None:
            start = buffer + plan.values_bytes(self._own.extent)
            start = start + plan.scales.at(r, plan.base_r, k, plan.base_k)
            plan.scales.move(self._builder, start, slot.number, slot.size_bytes, tile.r, tile.k)

    @property
    @abstractmethod
    def events(self) -> list[Event]:
        """Flags that are up while everything of the operand in L1 is free."""

    @abstractmethod
    def start(self) -> None:
        """Load what runs ahead, and what stays for the whole core."""

    @abstractmethod
    def enter(self, level: Level) -> None:
        """Begin a chunk of the outer or the inner axis."""

    @abstractmethod
    def leave(self, level: Level) -> None:
        """End it."""

    @abstractmethod
    def enter_step(self, k_block: Expr, along_r: Along, along_other: Along) -> None:
        """Begin a base-K step."""

    @abstractmethod
    def leave_step(self, k_block: Expr) -> None:
        """End it: everything of it has been moved to L0."""

    @abstractmethod
    def move(self, k_block: Expr, k: int, along_r: Along, slot: Slot) -> None:
        """Move the base block of a step into a buffer of L0."""

    def finish(self) -> None:
        """Let go of what stayed for the whole core."""
        self.leave("core")


class ChunkStream(Stream):
    """Chunks of step x stepK base blocks in some buffers: template MDL has one or two of them."""

    def __init__(
        self, builder: Builder, plan: OperandPlan, addresses: OperandAddresses, walk: StreamGeometry
    ) -> None:
        super().__init__(builder, plan, addresses, walk)
        self._cursor = self._sequence()
        self._filled = Ring(builder, f"{self._name}_filled", plan.buffers)
        self._used = Ring(builder, f"{self._name}_used", plan.buffers)
        # As many places for scales as for values: what a load of scales overwrites was read before
        # the buffer of values became free that is waited for at the same time.
        buffers = plan.buffers if self._chunks_of_scales > 1 else 1
        self._scales_filled = Ring(builder, f"{self._name}_scales_filled", buffers)
        self._scales_used = Ring(builder, f"{self._name}_scales_used", buffers)
        # Loading ahead needs a second buffer. `_left` counts what is still to be loaded, so that
        # the last chunk asks for none behind it.
        total = self._own.k_chunks * self._own.chunks * self._own.passes(self._other)
        ahead = plan.buffers > 1 and (walk.ahead or self._level == "step")
        self._left = builder.scalar(f"{self._name}_left", total) if ahead else None

    def _sequence(self) -> Cursor:
        """Return the cursor over the loads of a core."""
        b, name = self._builder, self._name
        if self._level == "step":
            cursor = Cursor(b, name, self._repeats(self._own.k_chunks))
            self._limit_repeats(cursor)
            return cursor
        rounds = self._own.passes(self._other)
        return Cursor(b, name, [("own", self._own.chunks), ("round", rounds)])

    @property
    def events(self) -> list[Event]:
        """One for each buffer."""
        return [("MTE1", "MTE2", self._first + i) for i in range(self._plan.buffers)]

    @property
    def level(self) -> Level:
        """Return the loop level for which a chunk stays in L1."""
        return self._level

    @property
    def ahead(self) -> bool:
        """True if the next chunk is asked for while one is used."""
        return self._left is not None

    @property
    def buffers(self) -> int:
        """Return the number of chunks that L1 holds."""
        return self._plan.buffers

    def order(self) -> ChunkOrder:
        """Return what kind of chunk is loaded after which."""
        plan = self._plan
        r_tail, k_tail = (
            total // size if total % size else -1
            for total, size in (
                (self._own.extent, plan.step_r * plan.base_r),
                (self._k, plan.step_k * plan.base_k),
            )
        )
        along_k = range(self._own.k_chunks)
        numbers: dict[tuple[bool, int], int] = {}
        kinds: dict[tuple[bool, bool, int], int] = {}
        patterns: list[list[int]] = []
        firsts: list[tuple[int, int, int]] = []

        def number(r: int, level: int) -> int:
            """Return the number of a pass along K in the patterns."""
            # Passes along K are alike if their rows are as long and L2 has them from the same loop;
            # `number` is what the timing compares in place of chunks.
            row = r == r_tail, level
            if row not in numbers:
                numbers[row] = len(patterns)
                patterns.append([])
                for k in along_k:
                    kind = row[0], k == k_tail, level
                    if kind not in kinds:
                        kinds[kind] = len(firsts)
                        firsts.append((r, k, level))
                    patterns[-1].append(kinds[kind])
            return numbers[row]

        passes: list[int] = []
        turns: dict[tuple[bool, int], list[int]] = {}
        for turn in self._turns():
            if turn not in turns:
                again, times = turn
                turns[turn] = self._passes(number, again=again, times=times)
            passes += turns[turn]
        return ChunkOrder(passes, patterns, firsts)

    def _turns(self) -> list[tuple[bool, int]]:
        """Return of each turn around the operand whether others were before it.

        And how often each of its passes along K is repeated.
        """
        if self._level != "step":
            return [(turn > 0, 1) for turn in range(self._own.passes(self._other))]
        if self._own.outer:
            return [(False, self._other.tiles)]
        step, left = self._other.step, self._other.tiles
        return [(turn > 0, min(step, left - turn * step)) for turn in range(self._other.chunks)]

    def _passes(self, number: Callable[[int, int], int], *, again: bool, times: int) -> list[int]:
        """Return the passes along K of a turn, each as `number` says of its row and its level."""
        # Level 0: loaded for the first time; 1: again in the outer loop; above: again in an inner
        # one.
        inner = 1 + (len(self._turns()) > 1)  # the level of a repetition within a turn
        passes: list[int] = []
        for r in range(self._own.chunks):
            passes.append(number(r, int(again)))
            if times > 1:
                passes += [number(r, inner)] * (times - 1)
        return passes

    def variables(self, r: int, k: int) -> dict[Var, int]:
        """Return what the variables of a load hold for a chunk."""
        wheels = [("own", r)] + ([("k", k)] if self._level == "step" else [])
        at = ((self._cursor.at(name), value) for name, value in wheels)
        return {var: value for counter, value in at for var in counter.variables()}

    def start(self) -> None:
        """Load the first chunk ahead of its use where there is a second buffer."""
        if self._left is not None:
            self.load_next()
        self.enter("core")

    def enter(self, level: Level) -> None:
        """Wait for the chunk that stays at this level."""
        if self._level == level:
            self._acquire()

    def leave(self, level: Level) -> None:
        """Free its buffer."""
        if self._level == level:
            self._release()

    def enter_step(self, k_block: Expr, along_r: Along, along_other: Along) -> None:
        """Wait for a chunk of K where one begins."""
        if self._level == "step":
            with self._builder.when(k_block % self._plan.step_k, "==", 0):
                self._acquire()

    def leave_step(self, k_block: Expr) -> None:
        """Free a chunk of K where one ends."""
        if self._level != "step":
            return
        step, last = self._plan.step_k, self._own.k_steps - 1
        if step == 1:
            self._release()
            return
        # The last chunk of K may be shorter than step_k: it ends with K, whatever its number.
        for final in self._builder.choose(k_block, "==", last):
            if final:
                self._release()
                self._scales_used.next()
            else:
                with self._builder.when(k_block % step, "==", step - 1):
                    self._release()
                    self._leave_scales(k_block)

    def _leave_scales(self, k_block: Expr) -> None:
        """Step on to the next transfer of scales where one chunk of several ends."""
        steps = self._chunks_of_scales * self._plan.step_k
        if self._scales_used.size > 1:
            with self._builder.when(k_block % steps, "==", steps - 1):
                self._scales_used.next()

    def _acquire(self) -> None:
        """Wait for the next chunk, after asking for the one behind it."""
        if self._left is None:
            self.load_next()
        else:
            with self._builder.when(self._left.value, ">", 0):
                self.load_next()
        self._flags.wait("MTE2", "MTE1", self._used.at + self._first)

    def _release(self) -> None:
        self._flags.set("MTE1", "MTE2", self._used.at + self._first)
        self._used.next()

    def load_next(self) -> None:
        """Load the chunk at the cursor into the buffer that is filled next."""
        event = self._filled.at + self._first
        self._flags.wait("MTE1", "MTE2", event)
        self.load_chunk()
        self._flags.set("MTE2", "MTE1", event)
        self._filled.next()
        self._cursor.advance()
        if self._left is not None:
            self._left.set(self._left.value - 1)

    def _load_more_scales(self, cell: GridCell) -> None:
        """Load the scales of a chunk and of those behind it along K, as many as travel at once."""
        together = self._chunks_of_scales
        wide = GridCell(cell.r, cell.k // together, cell.r_size, cell.k_size * together)
        buffer = self._addresses.l1 + self._scales_filled.at * self._size
        for r in self._lengths(wide.r, self._own.extent, wide.r_size):
            for k in self._lengths(wide.k, self._k, wide.k_size):
                self._load_scales(wide, buffer, r, k)
        self._scales_filled.next()

    def load_chunk(self) -> None:
        """Issue the transfers of the chunk at the cursor."""
        plan = self._plan
        k = self._cursor.at("k") if self._level == "step" else Expr(0)
        r_size, k_size = plan.step_r * plan.base_r, plan.step_k * plan.base_k
        cell = GridCell(self._cursor.at("own"), k, r_size, k_size)
        target = self._addresses.l1 + self._filled.at * self._size
        with self._builder.walking(self._cursor.walk()):
            self._transfer(cell, target)
            if self._chunks_of_scales > 1:
                with self._builder.when(k % self._chunks_of_scales, "==", 0):
                    self._load_more_scales(cell)

    def move(self, k_block: Expr, k: int, along_r: Along, slot: Slot) -> None:
        """Move a base block of the chunk that is used now."""
        plan = self._plan
        local = k_block % plan.step_k if self._own.k_chunks > 1 else k_block
        buffer = self._addresses.l1 + self._used.at * self._size
        tile = BaseBlock(along_r.length, plan.multiplied(k), plan.chunk(along_r.chunk, 0))
        Mover(self._builder, plan).move(buffer, slot.at, along_r.in_chunk, local, tile)
        if self._chunks_of_scales > 1:
            buffer = self._addresses.l1 + self._scales_used.at * self._size
            local = k_block % (self._chunks_of_scales * plan.step_k)
        self._move_scales(buffer, along_r.in_chunk, local, slot, tile)
