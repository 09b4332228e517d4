"""Array bounds: accesses beyond the array that an address was counted from.

A local memory has no walls between arrays: what leaves one lands in the next, where nothing else
would notice. An address that was counted from an array's start therefore remembers the array.
"""

from typing import Self

from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.check import template_violations
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.vector.permute.gather_mask import GatherMask
from cubecore.machine.memory.elements import elements
from cubecore.machine.reference.core import Core
from cubecore.machine.sanitizer.findings import SanitizerFinding


class InArray(int):
    """An address in a local memory, counted from the start of the array in bytes [low, high)."""

    low: int
    high: int

    def __new__(cls, address: int, low: int, high: int) -> Self:
        """Return the address with its array."""
        made = super().__new__(cls, address)
        made.low, made.high = low, high
        return made


def moved(address: int, size: int) -> int:
    """Return the address `size` bytes further on, in the same array if it is in one."""
    if type(address) is InArray:
        return InArray(address + size, address.low, address.high)
    return address + size


Spans = tuple[tuple[Operand, int, int], ...]


class _State:
    """The effects of each template under the registers of one moment: bytes, or another moment."""

    def __init__(self, registers: Registers) -> None:
        self.registers = registers
        self.spans: dict[Instruction, Spans] = {}
        self.after: dict[Instruction, _State] = {}


class ArrayWatch:
    """Follows what one core issues, in program order."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._states: dict[Registers, _State] = {}
        self._state = self._at(core.registers)

    def issue(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Log what an instruction touches outside the arrays of its operands."""
        spans = self._state.spans.get(template)
        if spans is None:
            after = self._state.after.get(template)
            if after is not None:
                self._state = after
                return
            spans = self._learn(template)
        for (operand, start, end), address in zip(spans, addresses, strict=False):
            if type(address) is not InArray or not end:
                continue
            first, last = address + start, address + end
            if first < address.low or last > address.high:
                what = template.name, operand.name
                self._judge(what, operand.mem, (first, last), address, where)

    def load(self, load: LoadScalar, address: int) -> None:
        """Log a value that the scalar unit reads outside the array of its pointer."""
        if type(address) is InArray:
            whole = address, address + load.element.size_bytes
            self._judge(("scalar load", "src"), load.mem, whole, address, load.location)

    def _judge(
        self,
        what: tuple[str, str],
        mem: Mem,
        touched: tuple[int, int],
        address: InArray,
        where: Location,
    ) -> None:
        """Log an access to bytes [first, last) if some of them are outside the address' array."""
        first, last = touched
        if address.low <= first and last <= address.high:
            return
        name, operand = what
        message = (
            f"{name}.{operand} must stay inside its array, bytes [{address.low}, {address.high}) "
            f"of {mem.label}, got bytes [{first}, {last})"
        )
        core = str(self._core.id)
        self._core.log.add(SanitizerFinding("out-of-bounds", message, name, where, core), operand)

    def _learn(self, template: Instruction) -> Spans:
        """Find out what a template does; the bytes that its operands touch, from their addresses.

        Nothing is said of one that is not legal. Where values decide what it touches, those are
        judged that decide, and what a gather mask reads under a pattern that is built in.
        """
        state, core = self._state, self._core
        spans: Spans = ()
        resolved = template.resolved(state.registers)
        if not template_violations(resolved, core.chip):
            after = resolved.apply(state.registers)
            spans = tuple(_span(resolved, operand) for operand in template.operands())
            if not spans:
                self._state = state.after[template] = self._at(after)
                return ()
        state.spans[template] = spans
        return spans

    def _at(self, registers: Registers) -> _State:
        return self._states.setdefault(registers, _State(registers))


def _span(template: Instruction, operand: Operand) -> tuple[Operand, int, int]:
    known = not template.steering or operand.name in template.steering
    if isinstance(template, GatherMask):
        known = operand.access.reads
    found = elements(template, operand.name).span if known and operand.mem is not Mem.GM else None
    return operand, *(found or (0, 0))
