"""A walk over a tree that makes the reference engine's checks of each instruction."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import span_bytes
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.check import memory_bytes, template_violations
from cubecore.isa.program.tree import Issue, LoadScalar
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.machine.blas.block_products import IrregularError

Act = Callable[..., None]
"""The act that follows one leaf, given its addresses."""


class CheckedWalk(ABC):
    """A sink for `Program.run`; it gives up where a check of the reference engine would fail.

    Registers are followed. `move` says what becomes of an instruction with operands; it is asked
    once for each leaf, and again when registers have changed.
    """

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.registers = Registers()
        self.issued = 0

    @abstractmethod
    def move(self, template: Instruction, issue: Issue) -> Act:
        """Return what an instruction with operands does, its template resolved and legal."""

    def handler(self, issue: Issue) -> Act:
        """Return the function that follows one leaf; it is made anew when registers change."""
        if issue.late:
            return self._late(issue)
        # What a leaf does is fixed by its template and the registers: it is prepared at the first
        # call, and anew only when registers have changed, so that the checks that no address
        # decides run once.
        registers_of_act: Registers | None = None
        act: Act

        def follow(*addresses: int) -> None:
            nonlocal registers_of_act, act
            self.issued += 1
            if registers_of_act is not self.registers:
                registers_of_act, act = self.registers, self._act(issue)
            act(*addresses)

        return follow

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Give up: cores may read different values."""
        raise IrregularError(f"{load.target.name} is read from {load.mem.label} {address}")

    def _late(self, issue: Issue) -> Act:
        """Return what follows a leaf whose parameters are known late, but for moves and sums."""
        if issue.template.declared:
            raise IrregularError(f"{issue.template.name} with parameters known late")
        acts: dict[tuple[int, ...], Act] = {}
        registers_of_act: Registers | None = None

        def follow(*values: int) -> None:
            nonlocal registers_of_act
            self.issued += 1
            if registers_of_act is not self.registers:
                registers_of_act = self.registers
                acts.clear()
            act = acts.get(values)
            if act is None:
                act = acts[values] = self._act(Issue(issue.bound(values), (), issue.location))
            act()

        return follow

    def _act(self, issue: Issue) -> Act:
        """Return what a leaf does while the registers are as they are now."""
        template = issue.template.resolved(self.registers)
        if template_violations(template, self.chip) or template.unmet(self.registers):
            raise IrregularError(f"{template.name} is not legal")
        if isinstance(template, (FftsCrossCoreSync, WaitFlagDev)):
            raise IrregularError("cores that wait for each other")
        if not template.declared:
            return self._setter(template)
        return self._at_addresses(template, self.move(template, issue))

    def _setter(self, template: Instruction) -> Act:
        after = template.apply(self.registers)
        if after == self.registers:
            return nothing

        def set_registers() -> None:
            self.registers = after

        return set_registers

    def _at_addresses(self, template: Instruction, act: Act) -> Act:
        """Check alignment and bounds of local operands before `act`."""
        # The spans of operands are known, so that bounds become limits of the address itself: start
        # >= 0 and end <= size give -start <= address <= usable - end.
        limits = []
        for index, operand in enumerate(template.operands()):
            if operand.mem is Mem.GM:
                continue
            start, end = span_of(template, operand.name)
            usable = memory_bytes(self.chip, operand.mem)[1]
            limits.append((index, operand.alignment, -start, usable - end))

        def run(*addresses: int) -> None:
            resolved = template.operand_addresses(addresses)
            for index, alignment, least, most in limits:
                address = resolved[index]
                if address % alignment or not least <= address <= most:
                    raise IrregularError(f"{template.name} leaves its memory")
            act(*addresses)

        return run


def nothing(*addresses: int) -> None:
    """Do nothing: the instruction changes no value."""


def span_of(template: Instruction, name: str) -> tuple[int, int]:
    """Return the bytes that an operand reaches over, from its address; (0, 0) for none."""
    (operand,) = (o for o in template.operands() if o.name == name)
    return span_bytes(template, operand, 0) or (0, 0)
