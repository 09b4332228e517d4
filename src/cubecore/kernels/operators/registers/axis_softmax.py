"""Softmax along an axis that is not the last one, in registers, on Ascend 950."""

from collections.abc import Callable
from functools import cache

from cubecore.chips.model import Chip
from cubecore.isa.program.tree import Location
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.operators.axis_softmax import LOWEST, AxisShape, AxisTree
from cubecore.kernels.operators.registers.lane_calls import FLOAT, LaneCalls
from cubecore.kernels.operators.tile import LANES

_MOST_CALLS = 256
"""Rows of 64 columns of a vector function: its text holds them all."""
_KEPT_BYTES = 16


class RegisterAxis(AxisTree):
    """The tree of a core's share; what is kept of 64 columns is in registers for all rows."""

    @classmethod
    def most_rows(cls, shape: AxisShape, columns: int, chip: Chip) -> int:
        """Return how many rows of some columns fit, and how many a function takes."""
        room = chip.ub_user_bytes - _KEPT_BYTES * columns
        fit = room // (columns * 4 * shape.dtype.size_bytes)
        return min(fit, max(_MOST_CALLS // (columns // LANES), 1))

    def clear(self) -> None:
        """Keep results behind the buffers: registers take the place of tiles of float32."""
        for number, name in enumerate(self.kept):
            self.kept[name] = self.buffers.end + 4 * self.tiles.columns * number
        # A function of each buffer and count of rows: it finds all that it accesses by addresses.
        self.functions = cache(self._function)

    def begin(self, columns: int) -> None:
        """Set what is kept of each column to that of no rows."""
        calls = _calls()
        for name, value in (("top", LOWEST), ("sum", 0.0)):
            lanes = calls.operate("Duplicate", scalar=value, mask=calls.all)
            for start in range(0, 4 * columns, 4 * LANES):
                calls.store(self.kept[name] + start, lanes, FLOAT, "NORM", calls.all, name)
        self._issue(calls.issued)

    def accumulate(self, rows: int, columns: int) -> None:
        """Let the largest elements and the sums grow."""
        self._of_buffer(lambda slot: self.functions(slot, rows, columns, False))

    def finish(self, rows: int, columns: int, *, again: bool) -> None:
        """Compute the exponentials anew, and divide them."""
        del again
        self._of_buffer(lambda slot: self.functions(slot, rows, columns, True))

    def _function(self, slot: int, rows: int, columns: int, last: bool) -> Issued:
        calls = _calls()
        for number, mask in enumerate(calls.masks(columns)):
            written = self._results if last else self._chunk
            written(calls, slot, rows, number, mask)
        return calls.issued

    def _chunk(self, calls: LaneCalls, slot: int, rows: int, number: int, mask: int) -> None:
        """Let both numbers of 64 columns grow."""
        kept = {name: self.kept[name] + 4 * LANES * number for name in ("top", "sum")}
        before = calls.load(kept["top"], FLOAT, "NORM", "top")
        largest = before
        for row in range(rows):
            lanes = self._x(calls, slot, row, number, mask)
            largest = calls.operate("Max", largest, lanes, mask=mask)
        fade = calls.operate("ExpSub", before, largest, mode="ZERO", mask=mask)
        total = calls.operate("Mul", calls.load(kept["sum"], FLOAT, "NORM", "sum"), fade, mask=mask)
        for row in range(rows):
            lanes = self._x(calls, slot, row, number, mask)
            lanes = calls.operate("ExpSub", lanes, largest, mode="ZERO", mask=mask)
            total = calls.operate("Add", total, lanes, mask=mask)
        calls.store(kept["top"], largest, FLOAT, "NORM", mask, "top")
        calls.store(kept["sum"], total, FLOAT, "NORM", mask, "sum")

    def _results(self, calls: LaneCalls, slot: int, rows: int, number: int, mask: int) -> None:
        """Write the results of 64 columns."""
        s, (at, apart) = self.shape, self.buffers.places["y"]
        top, total = (
            calls.load(self.kept[name] + 4 * LANES * number, FLOAT, "NORM", name)
            for name in ("top", "sum")
        )
        for row in range(rows):
            lanes = self._x(calls, slot, row, number, mask)
            lanes = calls.operate("ExpSub", lanes, top, mode="ZERO", mask=mask)
            lanes = calls.operate("Div", lanes, total, mask=mask)
            away = (row * self.tiles.columns + number * LANES) * s.dtype.size_bytes
            calls.narrowed(at + slot * apart + away, lanes, s.dtype, mask, "y")

    def _x(self, calls: LaneCalls, slot: int, row: int, number: int, mask: int) -> int:
        """Return 64 columns of a row in float32."""
        at, apart = self.buffers.places["x"]
        away = (row * self.tiles.columns + number * LANES) * self.shape.dtype.size_bytes
        return calls.widened(at + slot * apart + away, self.shape.dtype, mask, "x")

    def _of_buffer(self, function: Callable[[int], Issued]) -> None:
        """Issue the function of the buffer whose turn it is."""
        for slot in range(2):
            with self.builder.when(self.ring.at, "==", slot):
                self._issue(function(slot))

    def _issue(self, issued: Issued) -> None:
        self.builder.issue(issued.template, *issued.addresses)


def _calls() -> LaneCalls:
    return LaneCalls(Location("axis_softmax.py", 0, "softmax_axis"))
