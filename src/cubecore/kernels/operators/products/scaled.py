"""A matmul of int8 whose sums vector cores scale: by column, and by row (a scale per token).

The AICs leave sums of int32 in global memory. When all are there, every vector core brings its
share into UB, converts it to float32, multiplies by both scales, and writes it as C's type.
Kernels that scale a tile while the next one is multiplied are faster.
"""

from dataclasses import dataclass, replace
from functools import cache, partial

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import refuse
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, WaitFlagDev
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.kernels.build.builder import BASIC, Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.products.weights import cores_with, product_launch
from cubecore.kernels.operators.tile import LANES
from cubecore.kernels.operators.wide import FROM_FLOAT
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

_ALL_DONE, _SUMS = 0, 1
"""Flags: of all AICs, and from an AIC to its vector cores."""
_TILE, _MOST_COLUMNS = 8192, 1024
"""Sums in a tile, and the columns of one."""
_ROWS = _TILE // LANES
_SCALE_READ = 2
"""The event of scales of columns; 0 and 1 are those of tiles."""
_FLOAT, _INT8 = element_type("float32"), element_type("int8")


@dataclass(frozen=True, slots=True)
class QuantShape:
    """C[m, n] = (A[m, k] B[k, n]) scale[n] token_scale[m] with A and B of int8.

    `result` is the type of C; the scales are of float32.

    Raises
    ------
    RequestError
        If the kernel cannot take so many columns.
    """

    m: int
    n: int
    k: int
    result: ElementType

    def __post_init__(self) -> None:
        if self.n % LANES:
            raise refuse("the columns of quant_matmul", f"be a multiple of {LANES}", self.n)


def quant_launch(shape: QuantShape, chip: Chip, tree_of: "type[Scaling] | None" = None) -> Launch:
    """Return the launch in our planner's tiling; `tree_of` as in `scaled`."""
    product = product_launch(chip, _INT8, m=shape.m, n=shape.n, k=shape.k, result="int32")
    return scaled(product, shape, tree_of)


def scaled(product: Launch, shape: QuantShape, tree_of: "type[Scaling] | None" = None) -> Launch:
    """Return a launch of sums followed by their scaling, by the vector cores of its AI Cores.

    `tree_of` makes the tree of a core's share, A2's if None.
    """
    signals = (
        FftsCrossCoreSync(on="FIX", mode=0, flag_id=_ALL_DONE),
        WaitFlagDev(flag_id=_ALL_DONE),
        FftsCrossCoreSync(on="FIX", mode=2, flag_id=_SUMS),
    )
    cores = [_of_sums(core) for core in cores_with(product, after=signals)]
    # Rows are dealt out if there are enough for all vector cores, else columns in whole repeats.
    numbers = [(core.core, sub) for core in cores for sub in range(2)]
    by_rows = shape.m >= len(numbers)
    extent = shape.m if by_rows else shape.n
    each = ceil_div(extent, len(numbers))
    each = each if by_rows else align_up(each, LANES)
    tree = cache(partial(tree_of or Scaling, shape))
    for number, (core, sub) in enumerate(numbers):
        first = min(number * each, extent)
        count = min(each, extent - first)
        rows, columns = (count, shape.n) if by_rows else (shape.m, count)
        cores.append(
            tree(rows, columns).on_core(core, sub, *((first, 0) if by_rows else (0, first)))
        )
    tensors = [
        TensorSpec("scale", 4 * shape.n),
        TensorSpec("token_scale", 4 * shape.m),
        *(replace(one, name="sums") if one.name == "c" else one for one in product.tensors),
        TensorSpec("c", shape.result.size_bytes * shape.m * shape.n, output=True),
    ]
    return Launch(tuple(tensors), tuple(cores), product.kind, product.warm)


def _of_sums(core: CoreProgram) -> CoreProgram:
    """Return a core of the product that writes sums in the place of C."""
    slots = {var: ("sums" if name == "c" else name, at) for var, (name, at) in core.slots.items()}
    return replace(core, slots=slots)


class Scaling:
    """The tree of an AIV with a share of `rows` and `columns`."""

    arranged = DoubleBuffers.side_by_side

    def __init__(self, shape: QuantShape, rows: int, columns: int) -> None:
        b = self.builder = Builder(f"scaling_{rows}x{columns}", BASIC)
        self.flags, self.shape = Flags(b), shape
        self.slots = {name: b.slot(name) for name in ("sums", "scale", "token_scale", "c")}
        self.ring = Ring(b, "buffer", 2)
        sizes = {"sums": 4 * _TILE, "c": 4 * _TILE, "token_scale": 4 * _ROWS}
        sizes |= {"spread": DATA_BLOCK_BYTES * _ROWS, "scale": 4 * _MOST_COLUMNS}
        self.buffers = self.arranged(sizes)
        b.issue(WaitFlagDev(flag_id=_SUMS))
        if rows and columns:
            width = min(_MOST_COLUMNS, columns)
            self.begin()
            with self.flags.raised([*of_tiles(2), ("V", "MTE2", _SCALE_READ)]):
                for index, count in b.split("columns", columns, width):
                    self._columns(index * width, count, rows)
        self.program = b.finish()

    def begin(self) -> None:
        """Clear the scales of tokens, which are read in whole blocks."""
        fill = instruction_named("vector_dup")(dtype=_FLOAT, value=0, repeat=2 * _ROWS // LANES)
        self.builder.issue(fill, self.buffers.first("token_scale"))

    def on_core(self, core: int, sub: int, row: int, column: int) -> CoreProgram:
        """Return the share of an AIV that begins at a row and a column."""
        at = row * self.shape.n + column
        starts = {"sums": 4 * at, "scale": 4 * column, "token_scale": 4 * row}
        starts["c"] = self.shape.result.size_bytes * at
        slots = {self.slots[name]: (name, place) for name, place in starts.items()}
        return CoreProgram(core, self.program, slots, sub=1 + sub)

    def scale_places(self) -> tuple[int, ...]:
        """Return where the scales of columns go in UB."""
        return (self.buffers.first("scale"),)

    def _columns(self, first: Expr, columns: int, rows: int) -> None:
        """Scale some columns of all rows, a few rows at a time."""
        b, flags = self.builder, self.flags
        flags.wait("V", "MTE2", _SCALE_READ)
        load = CopyGmToUbufAlign(dtype=_FLOAT, n_burst=1, len_burst=4 * columns)
        for into in self.scale_places():
            b.issue(load, into, Expr.of(self.slots["scale"]) + first * 4)
        flags.set("MTE2", "V", _SCALE_READ)
        flags.wait("MTE2", "V", _SCALE_READ)
        each = _TILE // align_up(columns, LANES)
        for index, count in b.split("rows", rows, min(each, rows)):
            self._tile(index * min(each, rows), first, count, columns)
        flags.set("V", "MTE2", _SCALE_READ)

    def _tile(self, row: Expr, first: Expr, rows: int, columns: int) -> None:
        b, flags, event = self.builder, self.flags, self.ring.at
        sums, tokens = self.buffers.of("sums", event), self.buffers.of("token_scale", event)
        gap = (self.shape.n - columns) * (rows > 1)
        at = row * self.shape.n + first
        flags.wait("V", "MTE2", event)
        load = CopyGmToUbufAlign(dtype=_FLOAT, n_burst=rows, len_burst=4 * columns, src_gap=4 * gap)
        b.issue(load, sums, Expr.of(self.slots["sums"]) + at * 4)
        load = CopyGmToUbufAlign(dtype=_FLOAT, n_burst=1, len_burst=4 * rows)
        b.issue(load, tokens, Expr.of(self.slots["token_scale"]) + row * 4)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        self.scale(event, rows, columns)
        flags.set("V", "MTE2", event)
        flags.set("V", "MTE3", event)
        flags.wait("V", "MTE3", event)
        size = self.shape.result.size_bytes
        store = CopyUbufToGmAlign(
            dtype=self.shape.result, n_burst=rows, len_burst=size * columns, dst_gap=size * gap
        )
        b.issue(store, Expr.of(self.slots["c"]) + at * size, self.buffers.of("c", event))
        flags.set("MTE3", "V", event)
        self.ring.next()

    def scale(self, event: Expr, rows: int, columns: int) -> None:
        """Convert a tile, multiply it by its scales, and convert it to the result's type."""
        repeats = rows * columns // LANES
        sums, spread = self.buffers.of("sums", event), self.buffers.of("spread", event)
        b = self.builder
        b.issue(instruction_named("vconv_s322f32")(repeat=repeats), sums, sums)
        blocks = instruction_named("vbrcb")(
            dtype=element_type("uint32"), repeat=ceil_div(rows, DATA_BLOCK_BYTES // 4)
        )
        b.issue(blocks, spread, self.buffers.of("token_scale", event))
        b.issue(PipeBarrier(on="V"))
        pitch = 4 * columns // DATA_BLOCK_BYTES
        strides = {"dst_repeat_stride": pitch, "src0_repeat_stride": pitch}
        by_column = instruction_named("vmul")(
            dtype=_FLOAT, repeat=rows, src1_repeat_stride=0, **strides
        )
        by_row = instruction_named("vmul")(
            dtype=_FLOAT, repeat=rows, src1_block_stride=0, src1_repeat_stride=1, **strides
        )
        parts = range(0, 4 * columns, 4 * LANES)
        for part in parts:
            b.issue(by_column, sums + part, sums + part, self.buffers.first("scale") + part)
        b.issue(PipeBarrier(on="V"))
        for part in parts:
            b.issue(by_row, sums + part, sums + part, spread)
        b.issue(PipeBarrier(on="V"))
        self.flags.wait("MTE3", "V", event)
        result = self.buffers.of("c", event)
        b.issue(instruction_named(FROM_FLOAT[self.shape.result.name])(repeat=repeats), result, sums)
