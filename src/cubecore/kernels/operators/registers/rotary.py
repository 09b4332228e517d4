"""Rotary embedding in registers: heads of a token, as many as fit, are one vector function."""

from cubecore.isa.program.tree import Location
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.kernels.operators.registers.lane_calls import LaneCalls, issue_in_region
from cubecore.kernels.operators.rotary import RotaryShape, RotaryTree
from cubecore.kernels.operators.tile import LANES


class RegisterRotary(RotaryTree):
    """The tree of a core with `count` tokens."""

    arranged = DoubleBuffers.in_regions

    def compute(self, heads: int) -> None:
        """Compute a tile, from what MTE2 has brought to what MTE3 stores."""
        flags, event = self.flags, self.ring.at
        flags.wait("MTE3", "V", event)
        issued = _turning(self.shape, self.buffers, heads)
        issue_in_region(self.builder, issued, self.buffers, event)
        flags.set("V", "MTE2", event)


def _turning(shape: RotaryShape, buffers: DoubleBuffers, heads: int) -> Issued:
    """Return the function that turns heads: 64 columns of all of them, and the next columns."""
    calls = LaneCalls(Location("rotary.py", 0, "rotary"))
    size, dtype = shape.dtype.size_bytes, shape.dtype
    at = {name: buffers.first(name) for name in buffers.places}
    # Cosines and sines of 64 columns serve all heads and stay in registers; of each head both
    # halves are loaded once. Loads of a tail reach into the buffer behind, which is of its region.
    for chunk, mask in enumerate(calls.masks(shape.half)):
        column = chunk * LANES * size
        cos, sin = (calls.widened(at[name] + column, dtype, mask, name) for name in ("cos", "sin"))
        for head in range(heads):
            first = head * shape.width * size + column
            second = first + shape.half * size
            x1, x2 = (
                calls.widened(at["x"] + begin, dtype, mask, half)
                for half, begin in enumerate((first, second))
            )
            for name, into, kept, other in (("Sub", first, x1, x2), ("Add", second, x2, x1)):
                by_cos = calls.operate("Mul", kept, cos, mask=mask)
                by_sin = calls.operate("Mul", other, sin, mask=mask)
                turned = calls.operate(name, by_cos, by_sin, mask=mask)
                calls.narrowed(at["y"] + into, turned, dtype, mask, name)
    return calls.issued
