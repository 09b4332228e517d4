"""Softmax along an axis that is not the last one: exp(x) over its sum down each column.

A tile holds some columns of all rows of a block, or of as many rows as fit; lanes are columns, so
that the largest element and the sum need no reduction within a register. Where not all rows fit,
they are walked twice: once for both numbers of each column, which grow as in attention, and once
for the results. Blocks of rows are dealt out to the vector cores, columns of a block where there
are fewer blocks than cores.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import refuse
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.elementwise import KIND, on_vector_core
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.tile import LANES, Tile, float_code
from cubecore.kernels.operators.wide import narrowed, widened
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

LOWEST = -(2.0**100)
_FLOAT = element_type("float32")
_MOST_REPEATS = 255
_MOST_COLUMNS = 512
_FLOATS = 6
"""Bytes of float32 beside an element's two loads and two stores: its own, and half of a scratch."""
_KEPT = 4
"""Floats a column: its largest element, its sum, and two that both grow by."""


@dataclass(frozen=True, slots=True)
class AxisShape:
    """`outer` blocks of `length` rows of `inner` columns; columns are what is normalised."""

    outer: int
    length: int
    inner: int
    dtype: ElementType

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of rows."""
        return self.length * self.inner * self.dtype.size_bytes


class ColumnShare(NamedTuple):
    """The share of a core: so many blocks of rows, and so many columns of each."""

    blocks: int
    columns: int


class AxisTile(NamedTuple):
    """The columns and rows of a tile, at most."""

    columns: int
    rows: int


def axis_launch(shape: AxisShape, chip: Chip, tree_of: "type[AxisTree] | None" = None) -> Launch:
    """Return the launch on the vector cores of a chip.

    `tree_of` makes the tree of a core's share, A2's if None.
    """
    tree_class = tree_of or AxisTree
    cores = chip.require("aiv_count", "an operator")
    tree = cache(lambda share: tree_class(shape, share, tree_class.tile(shape, share, chip)))
    size = shape.dtype.size_bytes
    programs = [
        tree(share).on_core(core, block * shape.block_bytes + column * size)
        for core, (share, block, column) in enumerate(_shares(shape, cores))
    ]
    whole = shape.outer * shape.block_bytes
    tensors = TensorSpec("x", whole), TensorSpec("y", whole, output=True)
    return Launch(tensors, tuple(programs), KIND)


def _shares(shape: AxisShape, cores: int) -> Iterator[tuple[ColumnShare, int, int]]:
    """Yield the share of each core, its first block of rows and its first column."""
    if shape.outer >= cores:
        each = ceil_div(shape.outer, cores)
        for first in range(0, shape.outer, each):
            yield ColumnShare(min(each, shape.outer - first), shape.inner), first, 0
        return
    columns: int = align_up(ceil_div(shape.inner, cores // shape.outer), LANES)
    for block in range(shape.outer):
        for column in range(0, shape.inner, columns):
            yield ColumnShare(1, min(columns, shape.inner - column)), block, column


class AxisTree:
    """The tree of a core's share."""

    arranged = DoubleBuffers.side_by_side

    @classmethod
    def tile(cls, shape: AxisShape, share: ColumnShare, chip: Chip) -> AxisTile:
        """Return the widest tile that holds all rows, or one of as many rows as fit.

        Raises
        ------
        RequestError
            If the Unified Buffer holds no row of 64 columns.
        """
        most: int = min(align_up(share.columns, LANES), _MOST_COLUMNS)
        cls.require_room(shape, chip)
        for columns in range(most, 0, -LANES):
            tile = AxisTile(columns, min(cls.most_rows(shape, columns, chip), shape.length))
            if tile.rows == shape.length:
                break
        else:
            columns = min(most, 4 * LANES)
            tile = AxisTile(columns, min(cls.most_rows(shape, columns, chip), shape.length))
        count = ceil_div(share.columns, tile.columns)
        return tile._replace(columns=align_up(ceil_div(share.columns, count), LANES))

    @classmethod
    def most_rows(cls, shape: AxisShape, columns: int, chip: Chip) -> int:
        """Return how many rows of some columns fit."""
        room = chip.ub_user_bytes - 4 * (_KEPT + 2) * columns
        each = columns * (4 * shape.dtype.size_bytes + _FLOATS)
        return min(room // each, _MOST_REPEATS)

    @classmethod
    def require_room(cls, shape: AxisShape, chip: Chip) -> None:
        """Require that a row of 64 columns fits."""
        if cls.most_rows(shape, LANES, chip) < 1:
            floats = 4 * (_KEPT + 2) * LANES
            need = LANES * (4 * shape.dtype.size_bytes + _FLOATS) + floats
            subject = f"ub_user_bytes of {chip.name}"
            requirement = f"be at least {need} B for a tile of {LANES} columns"
            raise refuse(subject, requirement, chip.ub_user_bytes)

    def __init__(self, shape: AxisShape, share: ColumnShare, tile: AxisTile) -> None:
        self.shape, self.tiles = shape, tile
        b = Builder(f"softmax_axis_{share.blocks}x{shape.length}x{share.columns}", KIND)
        self.builder, self.flags = b, Flags(b)
        self.slots: dict[str, Var] = {name: b.slot(name) for name in "xy"}
        size = tile.rows * tile.columns * shape.dtype.size_bytes
        self.buffers = self.arranged({"x": size, "y": size})
        self.wide = self.buffers.end
        self.scratch = self.wide + 4 * tile.rows * tile.columns
        kept = self.scratch + 4 * ceil_div(tile.rows, 2) * tile.columns
        names = ("top", "sum", "new", "fade")
        self.kept = {name: kept + 4 * tile.columns * n for n, name in enumerate(names)}
        self.ring = Ring(b, "buffer", 2)
        self.clear()
        with self.flags.raised(of_tiles(2)), b.loop("block", share.blocks) as block:
            for index, columns in b.split("columns", share.columns, tile.columns):
                first = index * (tile.columns * shape.dtype.size_bytes)
                self._columns(block * shape.block_bytes + first, columns)
        self.program = b.finish()

    def on_core(self, core: int, first: int) -> CoreProgram:
        """Return the share of a core that begins at a byte."""
        slots = {var: (name, first) for name, var in self.slots.items()}
        return on_vector_core(core, self.program, slots)

    def _columns(self, begin: Expr, columns: int) -> None:
        """Compute some columns of a block of rows."""
        s, b, flags = self.shape, self.builder, self.flags
        pitch, whole = s.inner * s.dtype.size_bytes, self.tiles.rows >= s.length
        self.begin(columns)
        if not whole:
            for index, rows in b.split("rows", s.length, self.tiles.rows):
                event = self.ring.at
                self._load(begin + index * (self.tiles.rows * pitch), rows, columns)
                self.accumulate(rows, columns)
                flags.set("V", "MTE2", event)
                self.ring.next()
        for index, rows in b.split("rows", s.length, self.tiles.rows):
            event, at = self.ring.at, begin + index * (self.tiles.rows * pitch)
            self._load(at, rows, columns)
            if whole:
                self.accumulate(rows, columns)
            flags.wait("MTE3", "V", event)
            self.finish(rows, columns, again=not whole)
            flags.set("V", "MTE2", event)
            flags.set("V", "MTE3", event)
            flags.wait("V", "MTE3", event)
            burst, between, beside = self._strides(columns)
            store = CopyUbufToGmAlign(
                dtype=s.dtype, n_burst=rows, len_burst=burst, src_gap=between, dst_gap=beside
            )
            b.issue(store, Expr.of(self.slots["y"]) + at, self.buffers.of("y", event))
            flags.set("MTE3", "V", event)
            self.ring.next()

    def _strides(self, columns: int) -> tuple[int, int, int]:
        """Return the bytes of a row, the blocks between rows in UB, and the bytes in memory."""
        size = self.shape.dtype.size_bytes
        burst = columns * size
        held = align_up(burst, DATA_BLOCK_BYTES)
        between = (self.tiles.columns * size - held) // DATA_BLOCK_BYTES
        return burst, between, (self.shape.inner - columns) * size

    def _load(self, at: Expr, rows: int, columns: int) -> None:
        event, dtype = self.ring.at, self.shape.dtype
        self.flags.wait("V", "MTE2", event)
        burst, between, beside = self._strides(columns)
        load = CopyGmToUbufAlign(
            dtype=dtype, n_burst=rows, len_burst=burst, src_gap=beside, dst_gap=between
        )
        self.builder.issue(load, self.buffers.of("x", event), Expr.of(self.slots["x"]) + at)
        self.flags.set("MTE2", "V", event)
        self.flags.wait("MTE2", "V", event)

    def clear(self) -> None:
        """Set what loads of fewer columns leave out: their lanes are computed, and never stored."""
        size = self.tiles.rows * self.tiles.columns * self.shape.dtype.size_bytes
        for slot in range(2):
            at = self.buffers.of("x", Expr(slot))
            self._repeated("vector_dup", ceil_div(size, 4 * LANES), (at,), value=0)

    def begin(self, columns: int) -> None:
        """Set what is kept of each column to that of no rows."""
        del columns
        repeats = self.tiles.columns // LANES
        self._barrier()
        for name, value in (("top", LOWEST), ("sum", 0.0)):
            self._repeated("vector_dup", repeats, self._at(name), value=float_code(value))

    def accumulate(self, rows: int, columns: int) -> None:
        """Widen rows, and let the largest elements and the sums grow; leaves exponentials."""
        del columns
        repeats = self.tiles.columns // LANES
        top, total, new, fade = (self._at(name)[0] for name in ("top", "sum", "new", "fade"))
        self._widen(rows)
        self._fold("max", rows)
        self._steps(("vmax", new, top, Expr(self.scratch)))
        self._steps(("vsub", fade, top, new))
        self._steps(("vexp", fade, fade), ("vmax", top, new, new))
        self._steps(("vmul", total, total, fade))
        self._down("vsub", rows, top)
        self._repeated("vexp", rows * repeats, (Expr(self.wide), Expr(self.wide)))
        self._fold("add", rows)
        self._steps(("vadd", total, total, Expr(self.scratch)))

    def finish(self, rows: int, columns: int, *, again: bool) -> None:
        """Divide the exponentials of rows, computed `again` or as they are, and narrow them."""
        del columns
        if again:
            self._widen(rows)
            self._down("vsub", rows, self._at("top")[0])
            place = Expr(self.wide)
            self._repeated("vexp", rows * self.tiles.columns // LANES, (place, place))
        self._barrier()
        self._down("vdiv", rows, self._at("sum")[0])
        tile = Tile(self.builder, 1, rows * self.tiles.columns)
        narrowed(tile, self.buffers.of("y", self.ring.at), self.wide, self.shape.dtype)

    def _widen(self, rows: int) -> None:
        tile = Tile(self.builder, 1, rows * self.tiles.columns)
        widened(tile, self.wide, self.buffers.of("x", self.ring.at), self.shape.dtype)
        self._barrier()

    def _fold(self, name: str, rows: int) -> None:
        """Join all rows of the tile into the first row of the scratch."""
        # Halves are joined until one row is left; an odd row in the middle is taken as it is.
        pitch, repeats = 4 * self.tiles.columns, self.tiles.columns // LANES
        source, into = self.wide, self.scratch
        self._barrier()
        while rows > 1 or source == self.wide:
            upper = ceil_div(rows, 2)
            lower = rows - upper
            places = (Expr(at) for at in (into, source, source + upper * pitch))
            self._repeated(f"v{name}", lower * repeats, tuple(places))
            if lower < upper and source != into:
                odd = (Expr(into + lower * pitch), Expr(source + lower * pitch))
                self._repeated("vadds", repeats, odd, value=0)
            self._barrier()
            source, rows = into, upper

    def _down(self, name: str, rows: int, kept: Expr) -> None:
        """Compute all rows with what is kept of their columns."""
        pitch = 4 * self.tiles.columns // DATA_BLOCK_BYTES
        self._barrier()
        for column in range(0, 4 * self.tiles.columns, 4 * LANES):
            one = instruction_named(name)(
                dtype=_FLOAT,
                repeat=rows,
                dst_repeat_stride=pitch,
                src0_repeat_stride=pitch,
                src1_repeat_stride=0,
            )
            place = Expr(self.wide + column)
            self.builder.issue(one, place, place, kept + column)
        self._barrier()

    def _at(self, name: str) -> tuple[Expr]:
        return (Expr(self.kept[name]),)

    def _steps(self, *steps: tuple[str, *tuple[Expr, ...]]) -> None:
        """Issue instructions on what is kept of columns, behind those before them."""
        self._barrier()
        for name, *places in steps:
            self._repeated(name, self.tiles.columns // LANES, tuple(places))

    def _repeated(
        self, name: str, repeats: int, places: tuple[Expr, ...], **fields: object
    ) -> None:
        """Issue an instruction on places that follow each other."""
        for first in range(0, repeats, _MOST_REPEATS):
            now = min(_MOST_REPEATS, repeats - first)
            one = instruction_named(name)(dtype=_FLOAT, repeat=now, **fields)
            self.builder.issue(one, *(place + 4 * LANES * first for place in places))

    def _barrier(self) -> None:
        self.builder.issue(PipeBarrier(on="V"))
