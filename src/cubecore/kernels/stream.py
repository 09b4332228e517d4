"""An operand's chunks on their way: which stays in L1, which is loaded ahead, what moves to L0."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cubecore.errors import refuse
from cubecore.isa.expr import Expr, Int
from cubecore.isa.sync import SetFlag, WaitFlag
from cubecore.kernels.builder import Builder, Scalar
from cubecore.kernels.cursor import Cursor
from cubecore.kernels.operand import Chunk, OperandPlan, Tile
from cubecore.units import ceil_div

Level = Literal["core", "outer", "inner", "step"]
"""What a chunk stays in L1 for: the core, a chunk of the outer or inner axis, a chunk of K."""


@dataclass(frozen=True, slots=True)
class Flags:
    """Raises and awaits flags in a program."""

    builder: Builder

    def set(self, src: str, dst: str, event: Int) -> None:
        """Raise a flag."""
        self.builder.issue(SetFlag(src=src, dst=dst, event_id=0), event_id=event)

    def wait(self, src: str, dst: str, event: Int) -> None:
        """Wait for a flag."""
        self.builder.issue(WaitFlag(src=src, dst=dst, event_id=0), event_id=event)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operand comes from in global memory, and where its buffers start in L1, bytes."""

    source: Expr
    l1: int


class Ring:
    """A counter modulo a small size; a size of 1 needs no scalar."""

    def __init__(self, builder: Builder, name: str, size: int) -> None:
        self.size = size
        self._scalar: Scalar | None = builder.scalar(name) if size > 1 else None

    @property
    def at(self) -> Expr:
        """Where it stands."""
        return Expr(0) if self._scalar is None else self._scalar.value

    def next(self) -> None:
        """Step on."""
        if self._scalar is not None:
            self._scalar.set((self.at + 1) % self.size)


class Stream:
    """The chunks of one operand: loads ahead, residency in L1, and moves to L0.

    `outer` says that the operand's own axis is the outer one of the tiling's order. A chunk that
    holds all of K stays until its own axis moves on; otherwise every tile loads its chunks anew.
    """

    def __init__(
        self,
        builder: Builder,
        plans: tuple[OperandPlan, OperandPlan],
        place: Place,
        shape: tuple[int, int, int],
        *,
        outer: bool,
    ) -> None:
        """`plans` are this operand's and the other's; `shape` is the core's (m, n, k)."""
        self._plan, other_plan = plans
        m, n, self._k = shape
        self._own, other = (m, n) if self._plan.is_a else (n, m)
        self._builder, self._place, self._outer = builder, place, outer
        self._flags = Flags(builder)
        plan = self._plan
        self._event = 0 if plan.is_a else 2
        self._size = plan.buffer_bytes(self._own)
        name = "a" if plan.is_a else "b"
        self._k_blocks = ceil_div(self._k, plan.base_k)
        self._k_chunks = ceil_div(self._k_blocks, plan.step_k)
        self._own_chunks = ceil_div(self._own, plan.step_r * plan.base_r)
        self._level = self._residency()
        self._cursor = self._sequence(name, other, other_plan)
        self._filled = Ring(builder, f"{name}_filled", plan.buffers)
        self._used = Ring(builder, f"{name}_used", plan.buffers)
        self._left = builder.scalar(f"{name}_left", self._total) if plan.buffers > 1 else None

    def _residency(self) -> Level:
        if self._k_chunks > 1:
            if self._plan.step_r > 1:
                raise refuse(
                    "stepM" if self._plan.is_a else "stepN",
                    "be 1 while K is not in one chunk",
                    self._plan.step_r,
                )
            return "step"
        if self._own_chunks == 1:
            return "core"
        return "outer" if self._outer else "inner"

    def _sequence(self, name: str, other: int, other_plan: OperandPlan) -> Cursor:
        """Set `_total`, the loads of a core, and return the cursor over them."""
        b = self._builder
        other_tiles = ceil_div(other, other_plan.base_r)
        other_chunks = ceil_div(other, other_plan.base_r * other_plan.step_r)
        if self._level == "step":
            self._total = self._k_chunks * self._own_chunks * other_tiles
            if self._outer:
                wheels = [("k", self._k_chunks), ("again", other_tiles), ("own", self._own_chunks)]
                return Cursor(b, name, wheels)
            wheels = [
                ("k", self._k_chunks),
                ("again", min(other_plan.step_r, other_tiles)),
                ("own", self._own_chunks),
                ("round", other_chunks),
            ]
            cursor = Cursor(b, name, wheels)
            left = other_tiles - cursor.at("round") * other_plan.step_r
            if other_tiles % other_plan.step_r and other_plan.step_r > 1:
                cursor.limit("again", left.minimum(other_plan.step_r))
            return cursor
        rounds = other_chunks if self._level == "inner" else 1
        self._total = self._own_chunks * rounds
        return Cursor(b, name, [("own", self._own_chunks), ("round", rounds)])

    # --- where a chunk begins and ends

    def start(self) -> None:
        """Load what runs ahead, and what stays for the whole core."""
        if self._left is not None:
            self._load_next()
        self.enter("core")

    def finish(self) -> None:
        """Let go of what stayed."""
        self.leave("core")

    def enter(self, level: Level) -> None:
        """Begin the core, or a chunk of the outer or the inner axis."""
        if self._level == level:
            self._acquire()

    def leave(self, level: Level) -> None:
        """End it."""
        if self._level == level:
            self._release()

    def enter_step(self, k_block: Expr) -> None:
        """Begin a chunk of K where one begins."""
        if self._level == "step":
            with self._builder.when(k_block % self._plan.step_k, "==", 0):
                self._acquire()

    def leave_step(self, k_block: Expr) -> None:
        """End a chunk of K where one ends."""
        if self._level != "step":
            return
        step, last = self._plan.step_k, self._k_blocks - 1
        for final in self._builder.choose(k_block, "==", last):
            if final:
                self._release()
            else:
                with self._builder.when(k_block % step, "==", step - 1):
                    self._release()

    def _acquire(self) -> None:
        """Wait for the next chunk, after asking for the one behind it."""
        if self._left is None:
            self._load_next()
        else:
            with self._builder.when(self._left.value, ">", 0):
                self._load_next()
        self._flags.wait("MTE2", "MTE1", self._used.at + self._event)

    def _release(self) -> None:
        self._flags.set("MTE1", "MTE2", self._used.at + self._event)
        self._used.next()

    def _load_next(self) -> None:
        """Load the chunk at the cursor into the buffer that is filled next."""
        plan = self._plan
        own, k = self._cursor.at("own"), self._chunk_of_k()
        event = self._filled.at + self._event
        self._flags.wait("MTE1", "MTE2", event)
        r_size, k_size = plan.step_r * plan.base_r, plan.step_k * plan.base_k
        for r in self._lengths(own, self._own, r_size):
            for k_len in self._lengths(k, self._k, k_size):
                self._transfer(own * r_size, k * k_size, plan.chunk(r, k_len))
        self._flags.set("MTE2", "MTE1", event)
        self._filled.next()
        self._cursor.advance()
        if self._left is not None:
            self._left.set(self._left.value - 1)

    def _chunk_of_k(self) -> Expr:
        return self._cursor.at("k") if self._level == "step" else Expr(0)

    def _lengths(self, index: Expr, total: int, size: int) -> Iterator[int]:
        """Give the length of chunk `index`, in a branch where the last one is shorter."""
        whole, tail = divmod(total, size)
        if not tail:
            yield size
            return
        for last in self._builder.choose(index, "==", whole):
            yield tail if last else size

    def _transfer(self, r: Expr, k: Expr, chunk: Chunk) -> None:
        plan = self._plan
        size = plan.dtype.size_bytes
        elements = r * plan.pitch + k if plan.k_inner else k * plan.pitch + r
        target = self._place.l1 + self._filled.at * self._size
        plan.load(self._builder, self._place.source + elements * size, target, chunk)

    # --- to L0

    def move(self, k_block: Expr, k: int, along: tuple[Expr, Expr, int, int], slot: Expr) -> None:
        """Move the base block of a step into the L0 address `slot`.

        `along` is (first tile of the chunk, tile in the chunk, its extent, the chunk's extent).
        """
        plan = self._plan
        _, place, r, chunk_r = along
        local = k_block % plan.step_k if self._k_chunks > 1 else k_block
        buffer = self._place.l1 + self._used.at * self._size
        tile = Tile(r, k, plan.chunk(chunk_r, 0))
        plan.move(self._builder, buffer, slot, (place, local), tile)
