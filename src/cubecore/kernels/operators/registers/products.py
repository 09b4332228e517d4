"""Scales of matmuls in registers: a tile of sums, or of weights, is one vector function."""

from cubecore.dtypes import element_type
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import Location
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.products.scaled import QuantShape, Scaling
from cubecore.kernels.operators.products.weights import Conversion
from cubecore.kernels.operators.registers.lane_calls import FLOAT, LaneCalls, issue_in_region
from cubecore.kernels.operators.tile import LANES

_HALF, _INT8 = element_type("float16"), element_type("int8")


class RegisterScaling(Scaling):
    """The tree of an AIV with a share of `rows` and `columns` of sums."""

    arranged = DoubleBuffers.in_regions

    def begin(self) -> None:
        """Leave UB as it is: loads spread the scales of tokens."""

    def scale_places(self) -> tuple[int, ...]:
        """Return where the scales of columns go: each region has its own."""
        return _of_regions(self.buffers)

    def scale(self, event: Expr, rows: int, columns: int) -> None:
        """Convert a tile, multiply it by its scales, and convert it to the result's type."""
        self.flags.wait("MTE3", "V", event)
        issued = _scaling(self.shape, self.buffers, rows, columns)
        issue_in_region(self.builder, issued, self.buffers, event)


def _scaling(shape: QuantShape, buffers: DoubleBuffers, rows: int, columns: int) -> Issued:
    calls = LaneCalls(Location("products.py", 0, "quant_matmul"))
    sums, scales, tokens, result = (
        buffers.first(name) for name in ("sums", "scale", "token_scale", "c")
    )
    size, dtype = shape.result.size_bytes, shape.result
    # Columns are whole registers. The row's scale stands in all lanes; the scales of columns, which
    # are more than registers hold, are loaded again for each row.
    for row in range(rows):
        token = calls.load(tokens + 4 * row, FLOAT, "BRC_B32", "token")
        for column in range(0, columns, LANES):
            at = row * columns + column
            lanes = calls.load(sums + 4 * at, element_type("int32"), "NORM", "sums")
            lanes = calls.cast(lanes, "int32", "float32", "NO_SAT", calls.all)
            scale = calls.load(scales + 4 * column, FLOAT, "NORM", "scale")
            for factor in (scale, token):
                lanes = calls.operate("Mul", lanes, factor, mask=calls.all)
            calls.narrowed(result + size * at, lanes, dtype, calls.all, "c")
    return calls.issued


class RegisterConversion(Conversion):
    """The tree of an AIV with `count` rows of the weights."""

    arranged = DoubleBuffers.in_regions

    def scale_places(self) -> tuple[int, ...]:
        """Return where the scales of columns go: each region has its own."""
        return _of_regions(self.buffers)

    def convert(self, event: Expr, rows: int, columns: int) -> None:
        """Convert rows to half, and multiply them by their scales."""
        issued = _conversion(self.buffers, rows, columns)
        issue_in_region(self.builder, issued, self.buffers, event)


def _conversion(buffers: DoubleBuffers, rows: int, columns: int) -> Issued:
    calls = LaneCalls(Location("products.py", 0, "weight_quant_matmul"))
    weights, scales, result = (buffers.first(name) for name in ("w", "scale", "b"))
    every = calls.all_halves()
    for row in range(rows):
        for column in range(0, columns, 2 * LANES):
            at = row * columns + column
            lanes = calls.load(weights + at, _INT8, "UNPACK_B8", "w")
            lanes = calls.operate(
                "Cast", lanes, mode="ZERO.NO_SAT.CAST_NONE", dtype=_HALF, source=_INT8, mask=every
            )
            scale = calls.load(scales + 2 * column, _HALF, "NORM", "scale")
            lanes = calls.operate("Mul", lanes, scale, dtype=_HALF, mask=every)
            calls.store(result + 2 * at, lanes, _HALF, "NORM", every, "b")
    return calls.issued


def _of_regions(buffers: DoubleBuffers) -> tuple[int, ...]:
    at, apart = buffers.places["scale"]
    return at, at + apart
