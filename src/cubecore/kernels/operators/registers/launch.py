"""The launch of a function whose vector cores compute in registers.

As on A2 each core walks its share in tiles with two buffers, or with one where two do not fit; a
tile is one vector function, from what MTE2 has brought to what MTE3 stores.
"""

from typing import Any

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.mte.copies_unaligned_3510 import CopyGmToUbufAlignV2, CopyUbufToGmAlignV2
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import Launch
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.elementwise import KIND
from cubecore.kernels.operators.functions import OperatorProblem
from cubecore.kernels.operators.launch import (
    ShareBlock,
    launch_of_shares,
    share_of,
    slots_of,
)
from cubecore.kernels.operators.registers.buffers import TileLayout, layout_of
from cubecore.kernels.operators.registers.vector_function import vector_function

_FLOAT = element_type("float32")


def register_launch(problem: OperatorProblem, chip: Chip, cores: int | None = None) -> Launch:
    """Return the launch of a function on the vector cores of a chip, or on so many of them.

    Raises
    ------
    RequestError
        If no row fits in the Unified Buffer.
    """
    share = share_of(problem, cores or chip.require("aiv_count", "an operator"))
    layout = layout_of(problem, chip, share.block)
    return launch_of_shares(problem, share, lambda block: _Tree(layout, block))


class _Tree:
    """The tree of a core with a block of rows, or of elements."""

    def __init__(self, layout: TileLayout, block: ShareBlock) -> None:
        problem = layout.problem
        b = Builder(f"{problem.op}_{block.rows}x{block.columns}", KIND)
        self.layout, self.builder, self.flags = layout, b, Flags(b)
        self.slots = {name: b.slot(name) for name in slots_of(problem, 0)}
        self.ring = Ring(b, "buffer", layout.buffers)
        self._functions: dict[ShareBlock, Issued] = {}
        self._load_vectors()
        with self.flags.raised(of_tiles(layout.buffers)):
            for row, rows in b.split("tile", block.rows, layout.rows):
                for piece, columns in b.split("piece", block.columns, layout.columns):
                    self._tile(row * layout.rows, piece * layout.columns, ShareBlock(rows, columns))
        self.program = b.finish()

    def _load_vectors(self) -> None:
        """Bring the vectors that rows share to each region."""
        # Each region has a copy of its own: a vector function finds all that it loads at the same
        # distances from its region's begin.
        layout = self.layout
        for region in range(layout.buffers):
            for number, at in enumerate(layout.vectors):
                into = Expr(region * layout.region_bytes + at)
                source = Expr.of(self.slots[f"v{number}"])
                row = ShareBlock(1, layout.columns)
                self._load(source, into, row, layout.problem.vector_type)

    def _tile(self, row: Expr, column: Expr, tile: ShareBlock) -> None:
        problem, flags, event = self.layout.problem, self.flags, self.ring.at
        begin = (row * problem.pitch + column) * problem.dtype.size_bytes
        # One tile: MTE2 loads when V has read the buffer; V computes when MTE3 has stored the
        # result that was there before.
        flags.wait("V", "MTE2", event)
        for number, at in enumerate(self.layout.inputs):
            source = Expr.of(self.slots[f"x{number}"]) + begin
            self._load(source, self._of(at), tile, problem.dtype)
        for number, at in enumerate(self.layout.numbers):
            source = Expr.of(self.slots[f"s{number}"]) + row * 4
            self._load(source, self._of(at), ShareBlock(1, tile.rows), _FLOAT)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        flags.wait("MTE3", "V", event)
        issued = self._function(tile)
        self.builder.issue(issued.template, *(self._of(at) for at in issued.addresses))
        flags.set("V", "MTE2", event)
        flags.set("V", "MTE3", event)
        flags.wait("V", "MTE3", event)
        self._store(row, column, tile)
        flags.set("MTE3", "V", event)
        self.ring.next()

    def _function(self, tile: ShareBlock) -> Issued:
        """Return the vector function of a tile: the whole ones, and a tail."""
        if tile not in self._functions:
            function = vector_function(self.layout.passes, self.layout, tile.rows, tile.columns)
            self._functions[tile] = function
        return self._functions[tile]

    def _of(self, at: int) -> Expr:
        return self.ring.at * self.layout.region_bytes + at

    def _load(self, source: Expr, into: Expr, tile: ShareBlock, dtype: ElementType) -> None:
        fields = self._fields(tile, dtype)
        if tile.rows > 1:
            layout = self.layout
            fields |= self._strides(dtype, src=layout.problem.pitch, dst=layout.pitch)
        self.builder.issue(CopyGmToUbufAlignV2(**fields), into, source)

    def _store(self, row: Expr, column: Expr, tile: ShareBlock) -> None:
        layout, problem = self.layout, self.layout.problem
        dtype, function = problem.dtype, problem.function
        y, begin, few = Expr.of(self.slots["y"]), row * problem.columns + column, tile.rows
        if function.gives == "rows":
            self._put(y + row * dtype.size_bytes, layout.result, ShareBlock(1, few), dtype)
            return
        if function.last:
            into = Expr.of(self.slots["sum"]) + begin * dtype.size_bytes
            self._put(into, layout.last, tile, dtype)
        if function.gives == "quantised":
            scale = Expr.of(self.slots["scale"]) + row * 4
            self._put(scale, layout.scales, ShareBlock(1, few), _FLOAT)
            dtype = element_type("int8")
        self._put(y + begin * dtype.size_bytes, layout.result, tile, dtype)

    def _put(self, into: Expr, at: int, tile: ShareBlock, dtype: ElementType) -> None:
        fields = self._fields(tile, dtype)
        if tile.rows > 1:
            columns = self.layout.problem.columns
            fields |= self._strides(dtype, dst=columns, src=self.layout.pitch)
        self.builder.issue(CopyUbufToGmAlignV2(**fields), into, self._of(at))

    def _fields(self, tile: ShareBlock, dtype: ElementType) -> dict[str, Any]:
        """Return the fields of a copy of a tile."""
        length = tile.columns * dtype.size_bytes
        return {"dtype": dtype, "n_burst": tile.rows, "len_burst": length}

    def _strides(self, dtype: ElementType, *, src: int, dst: int) -> dict[str, Any]:
        """Return the bytes from row to row, of so many elements on either side."""
        return {"src_stride": src * dtype.size_bytes, "dst_stride": dst * dtype.size_bytes}
