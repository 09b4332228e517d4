"""The second pass of attention whose keys are split, in registers, on Ascend 950."""

from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import Location
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.operators.attention.join import LOWEST, AttentionJoin
from cubecore.kernels.operators.registers.lane_calls import FLOAT, LaneCalls
from cubecore.kernels.operators.tile import LANES
from cubecore.units import DATA_BLOCK_BYTES


class RegisterJoin(AttentionJoin):
    """A part's turn is one vector function, of each of its two slots."""

    def clear(self) -> None:
        """Set nothing: rows are loaded one by one, each lane of them from its row's own block."""

    def begin(self, rows: int) -> None:
        """Set what is kept of each row, and O, to those of no keys."""
        calls = _calls()
        lowest, zero = (
            calls.operate("Duplicate", scalar=value, mask=calls.all) for value in (LOWEST, 0.0)
        )
        # A block of 8 floats a row: 8 rows fill a register, whether there are as many or not.
        for name, value in (("top", lowest), ("sum", zero)):
            calls.store(self.at[name][0], value, FLOAT, "NORM", calls.all, name)
        for start in range(0, 4 * rows * self.shape.width, 4 * LANES):
            calls.store(self.at["o"][0] + start, zero, FLOAT, "NORM", calls.all, "o")
        self._issue(calls.issued)

    def join(self, parity: Expr, rows: int) -> None:
        """Add a part to O."""
        for slot in range(2):
            with self.builder.when(parity, "==", slot):
                self._issue(self._joined(slot, rows))

    def _joined(self, slot: int, rows: int) -> Issued:
        width, calls = self.shape.width, _calls()
        for row in range(rows):
            stat = row * DATA_BLOCK_BYTES

            def kept(name: str, at: int, stat: int = stat) -> int:
                return calls.load(at + stat, FLOAT, "BRC_B32", name)

            before = kept("top", self.at["top"][0])
            theirs = kept("tops", self._of("tops", slot))
            largest = calls.operate("Max", before, theirs, mask=calls.all)
            fade, gain = (
                calls.operate("ExpSub", each, largest, mode="ZERO", mask=calls.all)
                for each in (before, theirs)
            )
            total = calls.operate("Mul", kept("sum", self.at["sum"][0]), fade, mask=calls.all)
            more = calls.operate("Mul", kept("sums", self._of("sums", slot)), gain, mask=calls.all)
            total = calls.operate("Add", total, more, mask=calls.all)
            for name, value in (("top", largest), ("sum", total)):
                at = self.at[name][0] + stat
                calls.store(at, value, FLOAT, "FIRST_ELEMENT_B32", 0, (name, "kept"))
            for start in range(4 * row * width, 4 * (row + 1) * width, 4 * LANES):
                lanes = calls.load(self.at["o"][0] + start, FLOAT, "NORM", "o")
                part = calls.load(self._of("parts", slot) + start, FLOAT, "NORM", "parts")
                lanes = calls.operate("Mul", lanes, fade, mask=calls.all)
                part = calls.operate("Mul", part, gain, mask=calls.all)
                lanes = calls.operate("Add", lanes, part, mask=calls.all)
                calls.store(self.at["o"][0] + start, lanes, FLOAT, "NORM", calls.all, "o")
        return calls.issued

    def divide(self, rows: int) -> None:
        """Divide O by the sums, in the type of the result."""
        s, calls = self.shape, _calls()
        for row in range(rows):
            total = calls.load(self.at["sum"][0] + row * DATA_BLOCK_BYTES, FLOAT, "BRC_B32", "sum")
            for start in range(row * s.width, (row + 1) * s.width, LANES):
                lanes = calls.load(self.at["o"][0] + 4 * start, FLOAT, "NORM", "o")
                lanes = calls.operate("Div", lanes, total, mask=calls.all)
                into = self.at["out"][0] + s.dtype.size_bytes * start
                calls.narrowed(into, lanes, s.dtype, calls.all, "out")
        self._issue(calls.issued)

    def _of(self, name: str, slot: int) -> int:
        at, apart = self.at[name]
        return at + slot * apart

    def _issue(self, issued: Issued) -> None:
        self.builder.issue(issued.template, *issued.addresses)


def _calls() -> LaneCalls:
    return LaneCalls(Location("attention_join.py", 0, "attention"))
