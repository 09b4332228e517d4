"""The launch of an operator: rows, or elements, dealt out to the vector cores in equal shares.

Each core walks its share in tiles with two buffers, or with one where two do not fit: MTE2 brings a
tile, the Vector unit computes in float32, MTE3 writes the result back.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Protocol

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import Launch, TensorSpec
from cubecore.isa.program.tree import Program
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.elementwise import KIND, on_vector_core
from cubecore.kernels.operators.functions import FUNCTIONS, Function, TileBuffers
from cubecore.kernels.operators.long_rows import LongRowTree, row_pieces
from cubecore.kernels.operators.tile import LANES, Tile, float_code
from cubecore.kernels.operators.wide import narrowed, quantised, widened
from cubecore.lazy_dataclass import dataclass
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

TYPES = ("float16", "bfloat16", "float32")
_TILE_BYTES = 32 * 1024
"""Bytes of a tile in float32, where a row is not longer."""
_MOST_EXTENT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class OperatorProblem:
    """An operator on `rows` rows of `columns` elements of `dtype`."""

    op: str
    rows: int
    columns: int
    dtype: ElementType

    @property
    def function(self) -> Function:
        """The function that is computed."""
        return FUNCTIONS[self.op]

    @property
    def operations(self) -> int:
        """Elements of x."""
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class _Layout:
    """The sizes of a tile, and the number of buffers of x and y."""

    rows: int
    columns: int
    buffers: int


@dataclass(frozen=True, slots=True)
class Share:
    """The rows, or elements, of a launch and of a core; `row` has so many elements."""

    total: int
    length: int
    row: int

    def begins(self) -> Iterator[tuple[int, int, int]]:
        """Yield each core's number, how many it has, and its first element."""
        for core in range(ceil_div(self.total, self.length)):
            first = core * self.length
            yield core, min(self.length, self.total - first), first * self.row


def share_of(problem: OperatorProblem, cores: int) -> Share:
    """Return how rows or elements are dealt out to so many cores."""
    if problem.function.by_rows:
        return Share(problem.rows, ceil_div(problem.rows, cores), problem.columns)
    length = ceil_div(problem.operations, cores)
    block = DATA_BLOCK_BYTES // problem.dtype.size_bytes
    return Share(problem.operations, align_up(length, block), 1)


def operator_launch(problem: OperatorProblem, chip: Chip, cores: int | None = None) -> Launch:
    """Return the launch of an operator on the vector cores of A2, or on so many of them.

    Raises
    ------
    RequestError
        If no tile fits in the Unified Buffer.
    """
    share = share_of(problem, cores or chip.require("aiv_count", "an operator"))
    layout = _layout(problem, chip, share.length)
    if layout is not None:
        return launch_of_shares(problem, share, lambda length: _Tree(problem, layout, length))
    pieces = row_pieces(problem.function, problem.columns, problem.dtype, chip)
    slots = slots_of(problem, 0)
    return launch_of_shares(problem, share, partial(LongRowTree, pieces, slots))


class ShareTree(Protocol):
    """The tree of all cores whose shares have one length."""

    @property
    def program(self) -> Program:
        """The program of such a core."""

    @property
    def slots(self) -> Mapping[str, Var]:
        """Its slots, by the names of `slots_of`."""


def launch_of_shares(
    problem: OperatorProblem, share: Share, tree_of: Callable[[int], ShareTree]
) -> Launch:
    """Return the launch of an operator, with one tree for each length of a share."""
    once = cache(tree_of)
    programs = []
    for core, length, first in share.begins():
        tree, begins = once(length), slots_of(problem, first)
        slots = {var: begins[name] for name, var in tree.slots.items()}
        programs.append(on_vector_core(core, tree.program, slots))
    return Launch(tuple(_tensors_of(problem)), tuple(programs), KIND)


def slots_of(problem: OperatorProblem, first: int) -> dict[str, tuple[str, int]]:
    """Return where a core finds each tensor that begins at element `first`, by its name."""
    size, gives = problem.dtype.size_bytes, problem.function.gives
    row = first // problem.columns
    slots = {f"x{n}": first * size for n in range(problem.function.arrays)}
    slots |= {f"v{n}": 0 for n in range(problem.function.vectors)}
    slots["y"] = {"rows": row * size, "quantised": first}.get(gives, first * size)
    if gives == "quantised":
        slots["scale"] = row * 4
    if gives == "both":
        slots["sum"] = first * size
    return {name: (name, begin) for name, begin in slots.items()}


def _tensors_of(problem: OperatorProblem) -> Iterator[TensorSpec]:
    """Yield the tensors of a launch."""
    function = problem.function
    size = problem.operations * problem.dtype.size_bytes
    for number in range(function.arrays):
        yield TensorSpec(f"x{number}", size)
    for number in range(function.vectors):
        yield TensorSpec(f"v{number}", problem.columns * problem.dtype.size_bytes)
    out = {"tile": size, "both": size, "rows": problem.rows * problem.dtype.size_bytes}
    yield TensorSpec("y", out.get(function.gives, problem.operations), output=True)
    if function.gives == "quantised":
        yield TensorSpec("scale", 4 * problem.rows, output=True)
    if function.gives == "both":
        yield TensorSpec("sum", size, output=True)


def _layout(problem: OperatorProblem, chip: Chip, share: int) -> _Layout | None:
    """Return the largest tile up to `_TILE_BYTES` that fits, with two buffers or one.

    None if not even one row does.
    """
    function = problem.function
    # Two buffers overlap loads with work, so that half a tile in two buffers goes before a whole
    # one in one.
    for buffers in (2, 1):
        for size in (_TILE_BYTES, _TILE_BYTES // 2, _TILE_BYTES // 4):
            if function.by_rows:
                pitch = align_up(problem.columns, LANES)
                rows = max(1, min(size // (4 * pitch), share, 255))
                layout = _Layout(rows, problem.columns, buffers)
            else:
                layout = _Layout(1, min(size // 4, share), buffers)
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
        self.made = [self._take(tile * size) for _ in range(layout.buffers)]
        both = function.gives == "both"
        self.sums = [self._take(tile * size * both) for _ in range(layout.buffers)]
        self.scales = [self._take(4 * layout.rows) for _ in range(layout.buffers)]
        wide = tuple(self._take(4 * tile) for _ in range(max(function.wide, function.arrays)))
        raw = tuple(self._take(pitch * size) for _ in range(function.vectors))
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
        self.places = TileBuffers(wide, vectors, partial, one, spread, self._take(4 * LANES))
        self.few = few

    def _take(self, size: int) -> int:
        at = self.end
        self.end += align_up(size, 256)
        return at


class _Tree:
    """The tree of a core with `length` rows, or elements."""

    def __init__(self, problem: OperatorProblem, layout: _Layout, length: int) -> None:
        b = Builder(f"{problem.op}_{length}", KIND)
        self.problem, self.layout, self.builder, self.flags = problem, layout, b, Flags(b)
        function = problem.function
        self.slots = {name: b.slot(name) for name in slots_of(problem, 0)}
        self.inputs = [self.slots[f"x{i}"] for i in range(function.arrays)]
        self.vectors = [self.slots[f"v{i}"] for i in range(function.vectors)]
        self.out = self.slots["y"]
        self.scale, self.sum = self.slots.get("scale"), self.slots.get("sum")
        self.buffers = _Buffers(problem, layout)
        self.ring = Ring(b, "buffer", layout.buffers)
        self._begin()
        step = layout.rows if function.by_rows else layout.columns
        with self.flags.raised(of_tiles(layout.buffers)):
            for index, count in b.split("tile", length, step):
                shape = (count, layout.columns) if function.by_rows else (1, count)
                self._tile(index * step, Tile(b, *shape))
        self.program = b.finish()

    def _begin(self) -> None:
        """Bring the vectors that rows share, and clear what is read whole before it is written."""
        places, dtype = self.buffers.places, self.problem.dtype
        ones = instruction_named("vector_dup")(dtype=element_type("float32"), value=float_code(1.0))
        self.builder.issue(ones, Expr(places.ones))
        if self.problem.function.by_rows:
            clear = instruction_named("vector_dup")(
                dtype=element_type("float32"),
                value=float_code(0.0),
                repeat=ceil_div(self.buffers.few, LANES),
            )
            self.builder.issue(clear, Expr(places.one))
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

    def _tile(self, first: Expr, tile: Tile) -> None:
        problem, flags, event = self.problem, self.flags, self.ring.at
        function, size = problem.function, problem.dtype.size_bytes
        begin = first * (problem.columns if function.by_rows else 1)
        given, places = self.buffers.given, self.buffers.places
        # One tile: MTE2 loads when V has freed the buffer; V widens to float32, which frees it, and
        # works; the result is narrowed when MTE3 has freed its buffer, and stored.
        flags.wait("V", "MTE2", event)
        for number, slot in enumerate(self.inputs):
            tile.load(self._of(given, number), Expr.of(slot) + begin * size, problem.dtype)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        for number in range(function.arrays):
            widened(tile, places.wide[number], self._of(given, number), problem.dtype)
        flags.set("V", "MTE2", event)
        function.work(tile, places)
        flags.wait("MTE3", "V", event)
        self._give(tile)
        flags.set("V", "MTE3", event)
        flags.wait("V", "MTE3", event)
        self._store(first, begin, tile)
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
        if function.gives == "both":
            narrowed(tile, self._turn(self.buffers.sums), wide[-1], dtype)

    def _store(self, first: Expr, begin: Expr, tile: Tile) -> None:
        function, dtype = self.problem.function, self.problem.dtype
        made, out = self._turn(self.buffers.made), Expr.of(self.out)
        if function.gives == "rows":
            few = Tile(self.builder, 1, tile.rows)
            few.store(out + first * dtype.size_bytes, made, dtype)
            return
        if function.gives == "quantised":
            tile.store(out + begin, made, element_type("int8"))
            assert self.scale is not None
            few = Tile(self.builder, 1, tile.rows)
            scales = self._turn(self.buffers.scales)
            few.store(Expr.of(self.scale) + first * 4, scales, element_type("float32"))
            return
        tile.store(out + begin * dtype.size_bytes, made, dtype)
        if self.sum is not None:
            sums = self._turn(self.buffers.sums)
            tile.store(Expr.of(self.sum) + begin * dtype.size_bytes, sums, dtype)
