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
from cubecore.kernels.operators.launch import OperatorProblem, launch_of_shares, share_of, slots_of
from cubecore.kernels.operators.registers.buffers import TileLayout, layout_of
from cubecore.kernels.operators.registers.vector_function import vector_function


def register_launch(problem: OperatorProblem, chip: Chip, cores: int | None = None) -> Launch:
    """Return the launch of a function on the vector cores of a chip, or on so many of them.

    Raises
    ------
    RequestError
        If no row fits in the Unified Buffer.
    """
    share = share_of(problem, cores or chip.require("aiv_count", "an operator"))
    layout = layout_of(problem, chip, share.length)
    return launch_of_shares(problem, share, lambda length: _Tree(layout, length))


class _Tree:
    """The tree of a core with `length` rows, or elements."""

    def __init__(self, layout: TileLayout, length: int) -> None:
        problem = layout.problem
        b = Builder(f"{problem.op}_{length}", KIND)
        self.layout, self.builder, self.flags = layout, b, Flags(b)
        function = problem.function
        self.slots = {name: b.slot(name) for name in slots_of(problem, 0)}
        self.ring = Ring(b, "buffer", layout.buffers)
        self._functions: dict[tuple[int, int], Issued] = {}
        self._load_vectors()
        step = layout.rows if function.by_rows else layout.columns
        with self.flags.raised(of_tiles(layout.buffers)):
            for index, count in b.split("tile", length, step):
                rows, columns = (count, layout.columns) if function.by_rows else (1, count)
                self._tile(index * step, rows, columns)
        self.program = b.finish()

    def _load_vectors(self) -> None:
        """Bring the vectors that rows share to each region."""
        # Each region has a copy of its own: a vector function finds all that it loads at the same
        # distances from its region's begin.
        layout = self.layout
        for region in range(layout.buffers):
            for number, at in enumerate(layout.vectors):
                into = Expr(region * layout.region_bytes + at)
                self._load(Expr.of(self.slots[f"v{number}"]), into, 1, layout.columns)

    def _tile(self, first: Expr, rows: int, columns: int) -> None:
        problem, flags, event = self.layout.problem, self.flags, self.ring.at
        function, size = problem.function, problem.dtype.size_bytes
        begin = first * (problem.columns if function.by_rows else 1)
        # One tile: MTE2 loads when V has read the buffer; V computes when MTE3 has stored the
        # result that was there before.
        flags.wait("V", "MTE2", event)
        for number, at in enumerate(self.layout.inputs):
            source = Expr.of(self.slots[f"x{number}"]) + begin * size
            self._load(source, self._of(at), rows, columns)
        flags.set("MTE2", "V", event)
        flags.wait("MTE2", "V", event)
        flags.wait("MTE3", "V", event)
        issued = self._function(rows, columns)
        self.builder.issue(issued.template, *(self._of(at) for at in issued.addresses))
        flags.set("V", "MTE2", event)
        flags.set("V", "MTE3", event)
        flags.wait("V", "MTE3", event)
        self._store(first, begin, rows, columns)
        flags.set("MTE3", "V", event)
        self.ring.next()

    def _function(self, rows: int, columns: int) -> Issued:
        """Return the vector function of a tile: the whole ones, and a tail."""
        key = rows, columns
        if key not in self._functions:
            made = vector_function(self.layout.passes, self.layout, rows, columns)
            self._functions[key] = made
        return self._functions[key]

    def _of(self, at: int) -> Expr:
        return self.ring.at * self.layout.region_bytes + at

    def _load(self, source: Expr, into: Expr, rows: int, columns: int) -> None:
        dtype = self.layout.problem.dtype
        strides = self._strides(rows, columns, dtype, "src", "dst")
        copy = CopyGmToUbufAlignV2(
            dtype=dtype, n_burst=rows, len_burst=columns * dtype.size_bytes, **strides
        )
        self.builder.issue(copy, into, source)

    def _store(self, first: Expr, begin: Expr, rows: int, columns: int) -> None:
        layout, problem = self.layout, self.layout.problem
        dtype, gives = problem.dtype, problem.function.gives
        y = Expr.of(self.slots["y"])
        if gives == "rows":
            self._put(y + first * dtype.size_bytes, layout.result, 1, rows, dtype)
            return
        if gives == "quantised":
            scale = Expr.of(self.slots["scale"]) + first * 4
            self._put(scale, layout.scales, 1, rows, element_type("float32"))
            dtype = element_type("int8")
        self._put(y + begin * dtype.size_bytes, layout.result, rows, columns, dtype)
        if gives == "both":
            into = Expr.of(self.slots["sum"]) + begin * dtype.size_bytes
            self._put(into, layout.last, rows, columns, dtype)

    def _put(self, into: Expr, at: int, rows: int, columns: int, dtype: ElementType) -> None:
        strides = self._strides(rows, columns, dtype, "dst", "src")
        copy = CopyUbufToGmAlignV2(
            dtype=dtype, n_burst=rows, len_burst=columns * dtype.size_bytes, **strides
        )
        self.builder.issue(copy, into, self._of(at))

    def _strides(
        self, rows: int, columns: int, dtype: ElementType, in_gm: str, in_ub: str
    ) -> dict[str, Any]:
        """Return bytes from row to row, of more than one."""
        if rows == 1:
            return {}
        size = dtype.size_bytes
        return {f"{in_gm}_stride": columns * size, f"{in_ub}_stride": self.layout.pitch * size}
