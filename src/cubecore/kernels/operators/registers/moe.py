"""Sums of a token's rows in registers: the rows that fit in a tile are one vector function."""

from cubecore.isa.program.tree import Location
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.moe import MoeShape, MoeTree
from cubecore.kernels.operators.registers.lane_calls import FLOAT, LaneCalls, issue_in_region
from cubecore.kernels.operators.tile import LANES, Tile


class RegisterMoe(MoeTree):
    """The tree of a core with some turns of some tokens."""

    arranged = DoubleBuffers.in_regions

    def compute(self, buffers: DoubleBuffers, tile: Tile) -> None:
        """Weigh a token's rows and leave their sum where MTE3 takes it."""
        flags, event = self.flags, self.ring.at
        flags.wait("MTE3", "V", event)
        issue_in_region(self.builder, _summing(self.shape, buffers, tile), buffers, event)
        flags.set("V", "MTE2", event)


def _summing(shape: MoeShape, buffers: DoubleBuffers, tile: Tile) -> Issued:
    """Return the function that adds rows up: 64 columns of all rows, and the next columns."""
    calls = LaneCalls(Location("moe.py", 0, "moe_unpermute"))
    size, dtype = shape.dtype.size_bytes, shape.dtype
    rows, weights, result = (buffers.first(name) for name in ("rows", "weights", "result"))
    # The sum of 64 columns stays in a register while the rows go by, each with its weight in all
    # lanes: nothing goes back to UB before the last row. Products are rounded before they are
    # added, as on A2.
    for chunk, mask in enumerate(calls.masks(tile.columns)):
        column = chunk * LANES * size
        total = calls.operate("Duplicate", scalar=0.0, mask=calls.all)
        for row in range(tile.rows):
            lanes = calls.widened(rows + row * tile.pitch * size + column, dtype, mask, "rows")
            weight = calls.load(weights + 4 * row, FLOAT, "BRC_B32", "weights")
            weighed = calls.operate("Mul", lanes, weight, mask=mask)
            total = calls.operate("Add", total, weighed, mask=mask)
        calls.narrowed(result + column, total, dtype, mask, "result")
    return calls.issued
