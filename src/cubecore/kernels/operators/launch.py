"""The launch of an operator: rows, or elements, dealt out to the vector cores in equal shares.

Each core walks its share in tiles with two buffers, or with one where two do not fit: MTE2 brings a
tile, the Vector unit computes in float32, MTE3 writes the result back.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Protocol

from cubecore.chips.model import Chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import Launch, TensorSpec
from cubecore.isa.program.tree import Program
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.elementwise import KIND, on_vector_core
from cubecore.kernels.operators.functions import OperatorProblem, TileBuffers
from cubecore.kernels.operators.long_rows import LongRowTree, row_pieces
from cubecore.kernels.operators.tile import LANES, Tile, float_code
from cubecore.kernels.operators.wide import narrowed, quantised, widened
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

_TILE_BYTES = 32 * 1024
"""Bytes of a tile in float32, where a row is not longer."""
_MOST_EXTENT = 2**31 - 1
_FLOAT = element_type("float32")


@dataclass(frozen=True, slots=True)
class ShareBlock:
    """Rows and columns of a matrix."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """The sizes of a tile, and the number of buffers of x and y."""

    rows: int
    columns: int
    buffers: int


@dataclass(frozen=True, slots=True)
class Share:
    """A matrix and the block of it that a core computes; the last blocks may be smaller."""

    whole: ShareBlock
    block: ShareBlock

    @classmethod
    def in_parts(cls, whole: ShareBlock, cores: int, unit: int) -> "Share":
        """Return shares of rows; where cores are left, of parts of them, a multiple of `unit`."""
        parts = max(cores // whole.rows, 1)
        columns = align_up(ceil_div(whole.columns, parts), unit)
        return cls(whole, ShareBlock(ceil_div(whole.rows, cores // parts), columns))

    def begins(self) -> Iterator[tuple[int, ShareBlock, int]]:
        """Yield each core's number, its block, and the block's first element."""
        whole, block = self.whole, self.block
        firsts = product(range(0, whole.rows, block.rows), range(0, whole.columns, block.columns))
        for core, (row, column) in enumerate(firsts):
            rows = min(block.rows, whole.rows - row)
            columns = min(block.columns, whole.columns - column)
            yield core, ShareBlock(rows, columns), row * whole.columns + column


def share_of(problem: OperatorProblem, cores: int) -> Share:
    """Return how rows or elements are dealt out to so many cores.

    A function of elements sees one row of them all, that of halves a part of a row where there are
    fewer rows than cores.
    """
    whole = ShareBlock(problem.rows, problem.columns)
    # A row whose elements depend on each other stays on one core; halves may be cut along a row, at
    # whole blocks of UB, as soon as a core would be left without a row.
    if problem.function.by_rows:
        return Share(whole, ShareBlock(ceil_div(whole.rows, cores), whole.columns))
    if not problem.function.halves:
        whole = ShareBlock(1, problem.operations)
    return Share.in_parts(whole, cores, DATA_BLOCK_BYTES // problem.dtype.size_bytes)


def operator_launch(problem: OperatorProblem, chip: Chip, cores: int | None = None) -> Launch:
    """Return the launch of an operator on the vector cores of A2, or on so many of them.

    Raises
    ------
    RequestError
        If no tile fits in the Unified Buffer.
    """
    share = share_of(problem, cores or chip.require("aiv_count", "an operator"))
    layout = _layout(problem, chip, share.block)
    if layout is not None:
        return launch_of_shares(problem, share, lambda block: _Tree(problem, layout, block))
    pieces = row_pieces(problem, chip)
    slots = slots_of(problem, 0)
    return launch_of_shares(problem, share, lambda block: LongRowTree(pieces, slots, block.rows))


class ShareTree(Protocol):
    """The tree of all cores whose blocks have one size."""

    @property
    def program(self) -> Program:
        """The program of such a core."""

    @property
    def slots(self) -> Mapping[str, Var]:
        """Its slots, by the names of `slots_of`."""


def launch_of_shares(
    problem: OperatorProblem, share: Share, tree_of: Callable[[ShareBlock], ShareTree]
) -> Launch:
    """Return the launch of an operator, with one tree for each size of a core's block."""
    once = cache(tree_of)
    programs = []
    for core, block, first in share.begins():
        tree, begins = once(block), slots_of(problem, first)
        slots = {var: begins[name] for name, var in tree.slots.items()}
        programs.append(on_vector_core(core, tree.program, slots))
    return Launch(tuple(_tensors_of(problem)), tuple(programs), KIND)


def slots_of(problem: OperatorProblem, first: int) -> dict[str, tuple[str, int]]:
    """Return where a core finds each tensor that begins at element `first`, by its name."""
    function, size = problem.function, problem.dtype.size_bytes
    row, column = divmod(first, problem.columns)
    slots = {f"x{n}": first * size for n in range(function.arrays)}
    slots |= {f"v{n}": 0 for n in range(function.vectors)}
    slots |= {f"s{n}": 4 * row for n in range(function.numbers)}
    slots["y"] = {"rows": row * size, "quantised": first}.get(function.gives, first * size)
    if function.gives == "quantised":
        slots["scale"] = row * 4
    if function.last:
        slots["sum"] = first * size
    found = {name: (name, begin) for name, begin in slots.items()}
    # Halves are one tensor to a user: x1 and v1 begin half a row behind x0 and v0.
    if function.halves:
        begin = row * problem.pitch + column
        for n in range(function.arrays):
            found[f"x{n}"] = "x0", (begin + n * problem.columns) * size
        for n in range(function.vectors):
            found[f"v{n}"] = "v0", n * problem.columns * problem.vector_type.size_bytes
    return found


def _tensors_of(problem: OperatorProblem) -> Iterator[TensorSpec]:
    """Yield the tensors of a launch."""
    function = problem.function
    size = problem.operations * problem.dtype.size_bytes
    for name, (rows, columns) in problem.stored.items():
        kind = {"x": problem.dtype, "v": problem.vector_type}.get(name[0], element_type("float32"))
        yield TensorSpec(name, rows * columns * kind.size_bytes)
    out = {"tile": size, "rows": problem.rows * problem.dtype.size_bytes}
    yield TensorSpec("y", out.get(function.gives, problem.operations), output=True)
    if function.gives == "quantised":
        yield TensorSpec("scale", 4 * problem.rows, output=True)
    if function.last:
        yield TensorSpec("sum", size, output=True)


def _layout(problem: OperatorProblem, chip: Chip, block: ShareBlock) -> _Layout | None:
    """Return the largest tile up to `_TILE_BYTES` that fits, with two buffers or one.

    None if not even one row does.
    """
    function = problem.function
    # Two buffers overlap loads with work, so that half a tile in two buffers goes before a whole
    # one in one.
    for buffers in (2, 1):
        for size in (_TILE_BYTES, _TILE_BYTES // 2, _TILE_BYTES // 4):
            columns = block.columns if function.by_rows else min(size // 4, block.columns)
            rows = max(1, min(size // (4 * align_up(columns, LANES)), block.rows, 255))
            layout = _Layout(rows, columns, buffers)
            if _Buffers(problem, layout).end <= chip.ub_user_bytes:
                return layout
    return None


class _Buffers:
    """The places of a core's buffers in UB."""

    def __init__(self, problem: OperatorProblem, layout: _Layout) -> None:
        function, size = problem.function, problem.dtype.size_bytes
        self.end = 0
        pitch = align_up(layout.columns, LANES)
        tile = layout.rows * pitch
        given = [
            [self._take(tile * size) for _ in range(function.arrays)] for _ in range(layout.buffers)
        ]
        self.given = given
        each = range(function.numbers)
        self.given_numbers = [
            [self._take(4 * layout.rows) for _ in each] for _ in range(layout.buffers)
        ]
        numbers = tuple(self._take(4 * align_up(layout.rows, LANES)) for _ in each)
        self.made = [self._take(tile * size) for _ in range(layout.buffers)]
        self.sums = [self._take(tile * size * function.last) for _ in range(layout.buffers)]
        self.scales = [self._take(4 * layout.rows) for _ in range(layout.buffers)]
        wide = tuple(self._take(4 * tile) for _ in range(max(function.wide, function.arrays)))
        vector_bytes = problem.vector_type.size_bytes
        raw = tuple(self._take(pitch * vector_bytes) for _ in range(function.vectors))
        vectors = tuple(self._take(4 * pitch) for _ in range(function.vectors))
        self.raw = raw
        few = align_up(layout.rows, 8)
        by_rows = function.by_rows
        partial = self._take(
            4 * LANES * (1 + max(layout.rows, ceil_div(pitch, LANES**2))) * by_rows
        )
        one, spread = (
            self._take(4 * align_up(few, LANES) * by_rows),
            self._take(DATA_BLOCK_BYTES * few * by_rows),
        )
        ones = self._take(4 * LANES)
        self.places = TileBuffers(wide, vectors, partial, one, spread, ones, numbers)
        self.few = few

    def _take(self, size: int) -> int:
        at = self.end
        self.end += align_up(size, 256)
        return at


class _Tree:
    """The tree of a core with a block of rows, or of elements."""

    def __init__(self, problem: OperatorProblem, layout: _Layout, block: ShareBlock) -> None:
        b = Builder(f"{problem.op}_{block.rows}x{block.columns}", KIND)
        self.problem, self.layout, self.builder, self.flags = problem, layout, b, Flags(b)
        function = problem.function
        self.slots = {name: b.slot(name) for name in slots_of(problem, 0)}
        self.inputs = [self.slots[f"x{i}"] for i in range(function.arrays)]
        self.vectors = [self.slots[f"v{i}"] for i in range(function.vectors)]
        self.numbers = [self.slots[f"s{i}"] for i in range(function.numbers)]
        self.out = self.slots["y"]
        self.scale, self.sum = self.slots.get("scale"), self.slots.get("sum")
        self.buffers = _Buffers(problem, layout)
        self.ring = Ring(b, "buffer", layout.buffers)
        self._begin()
        with self.flags.raised(of_tiles(layout.buffers)):
            for row, rows in b.split("tile", block.rows, layout.rows):
                for piece, columns in b.split("piece", block.columns, layout.columns):
                    tile = Tile(b, rows, columns)
                    self._tile(row * layout.rows, piece * layout.columns, tile)
        self.program = b.finish()

    def _begin(self) -> None:
        """Bring the vectors that rows share, and clear what is read whole before it is written."""
        places, dtype = self.buffers.places, self.problem.vector_type
        ones = instruction_named("vector_dup")(dtype=element_type("float32"), value=float_code(1.0))
        self.builder.issue(ones, Expr(places.ones))
        if self.problem.function.by_rows:
            clear = instruction_named("vector_dup")(
                dtype=element_type("float32"),
                value=float_code(0.0),
                repeat=ceil_div(self.buffers.few, LANES),
            )
            for numbers in (places.one, *places.numbers):
                self.builder.issue(clear, Expr(numbers))
        self.builder.issue(PipeBarrier(on="V"))
        if not self.vectors:
            return
        row = Tile(self.builder, 1, self.layout.columns)
        for slot, raw in zip(self.vectors, self.buffers.raw, strict=True):
            row.load(raw, Expr.of(slot), dtype)
        self.flags.set("MTE2", "V", 0)
        self.flags.wait("MTE2", "V", 0)
        for raw, wide in zip(self.buffers.raw, places.vectors, strict=True):
            widened(row, wide, Expr(raw), dtype)

    def _tile(self, row: Expr, column: Expr, tile: Tile) -> None:
        problem, flags, event = self.problem, self.flags, self.ring.at
        function, size = problem.function, problem.dtype.size_bytes
        source = (row * problem.pitch + column) * size
        given, places = self.buffers.given, self.buffers.places
        # One tile: MTE2 loads when V has freed the buffer; V widens to float32, which frees it, and
        # works; the result is narrowed when MTE3 has freed its buffer, and stored.
        flags.wait("V", "MTE2", event)
        for number, slot in enumerate(self.inputs):
            into = self._of(given, number)
            tile.load(into, Expr.of(slot) + source, problem.dtype, problem.pitch)
        few, numbers = Tile(self.builder, 1, tile.rows), self.buffers.given_numbers
        for number, slot in enumerate(self.numbers):
            few.load(self._of(numbers, number), Expr.of(slot) + row * 4, _FLOAT)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        for number in range(function.arrays):
            widened(tile, places.wide[number], self._of(given, number), problem.dtype)
        for number in range(function.numbers):
            widened(few, places.numbers[number], self._of(numbers, number), _FLOAT)
        flags.set("V", "MTE2", event)
        function.work(tile, places)
        flags.wait("MTE3", "V", event)
        self._give(tile)
        flags.set("V", "MTE3", event)
        flags.wait("V", "MTE3", event)
        self._store(row, column, tile)
        flags.set("MTE3", "V", event)
        self.ring.next()

    def _of(self, given: list[list[int]], number: int) -> Expr:
        """Return the buffer of an input that is its turn's."""
        apart = given[1][number] - given[0][number] if len(given) > 1 else 0
        return self.ring.at * apart + given[0][number]

    def _turn(self, buffers: list[int]) -> Expr:
        apart = buffers[1] - buffers[0] if len(buffers) > 1 else 0
        return self.ring.at * apart + buffers[0]

    def _give(self, tile: Tile) -> None:
        """Bring the result to the buffer that MTE3 stores."""
        function, dtype, places = self.problem.function, self.problem.dtype, self.buffers.places
        made, wide = self._turn(self.buffers.made), places.wide
        if function.last:
            narrowed(tile, self._turn(self.buffers.sums), wide[-1], dtype)
        if function.gives == "quantised":
            quantised(tile, made, wide[0], wide[1])
            few = Tile(self.builder, 1, tile.rows)
            narrowed(few, self._turn(self.buffers.scales), places.one, element_type("float32"))
            return
        if function.gives == "rows":
            few = Tile(self.builder, 1, tile.rows)
            narrowed(few, made, places.one, dtype)
            return
        narrowed(tile, made, wide[0], dtype)

    def _store(self, row: Expr, column: Expr, tile: Tile) -> None:
        function, dtype, pitch = self.problem.function, self.problem.dtype, self.problem.columns
        made, out, begin = self._turn(self.buffers.made), Expr.of(self.out), row * pitch + column
        few = Tile(self.builder, 1, tile.rows)
        if function.gives == "rows":
            few.store(out + row * dtype.size_bytes, made, dtype)
            return
        if self.scale is not None:
            tile.store(out + begin, made, element_type("int8"), pitch)
            scales = self._turn(self.buffers.scales)
            few.store(Expr.of(self.scale) + row * 4, scales, element_type("float32"))
        else:
            tile.store(out + begin * dtype.size_bytes, made, dtype, pitch)
        if self.sum is not None:
            sums = self._turn(self.buffers.sums)
            tile.store(Expr.of(self.sum) + begin * dtype.size_bytes, sums, dtype, pitch)
