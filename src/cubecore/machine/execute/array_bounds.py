"""Array bounds: accesses beyond the array that an address was counted from.

A local memory has no walls between arrays: what leaves one lands in the next, where nothing else
would notice. An address that was counted from an array's start therefore remembers the array.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.declare.registers import CorePosition, Registers
from cubecore.isa.program.check import template_violations
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.scalar.sync import Sync
from cubecore.isa.vector.permute.gather_mask import GatherMask
from cubecore.machine.execute.core import Core
from cubecore.machine.memory.elements import elements
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding


class InArray(int):
    """An address in a local memory, counted from the start of the array in bytes [low, high)."""

    low: int
    high: int

    def __new__(cls, address: int, low: int, high: int) -> Self:
        """Return the address with its array."""
        bounded = super().__new__(cls, address)
        bounded.low, bounded.high = low, high
        return bounded


_plain = int.__new__


# Runs at each pointer arithmetic of a kernel, hence the comparison of classes and the direct call
# of int.__new__.
def moved(address: int, size: int) -> int:
    """Return the address `size` bytes further on, in the same array if it is in one."""
    if address.__class__ is not InArray:
        return address + size
    bounded = _plain(InArray, address + size)
    bounded.low, bounded.high = address.low, address.high
    return bounded


Spans = tuple[tuple[Operand, int, int], ...]


_Effect = tuple[Instruction, Spans, "ArrayState | None"]
"""A template, which is kept as its identity finds it, with its spans, or the state behind it."""


class ArrayState:
    """The effects of each template under the registers of one moment: bytes, or another moment."""

    def __init__(self, registers: Registers) -> None:
        self.registers = registers
        self.effects: dict[int, _Effect] = {}


@dataclass(frozen=True, eq=False, slots=True)
class ArrayPlan:
    """The checks of some instructions in a row: (address, first byte, end); the state behind."""

    checks: tuple[tuple[int, int, int], ...]
    after: ArrayState


class ArraySpans:
    """The effects of templates, which are alike on every core of a launch."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._states: dict[Registers, ArrayState] = {}

    def __len__(self) -> int:
        return sum(1 + len(state.effects) for state in self._states.values())

    def at(self, registers: Registers) -> ArrayState:
        """Return the state under some registers, wherever the core is."""
        registers = registers.leaving("position", CorePosition())
        return self._states.setdefault(registers, ArrayState(registers))

    def effect(self, state: ArrayState, template: Instruction) -> _Effect:
        """Return the effect of a template: the bytes that its operands touch, from their addresses.

        Nothing is said of one that is not legal. Where values decide what it touches, those are
        judged that decide, and what a gather mask reads under a pattern that is built in.
        """
        effect = state.effects.get(id(template))
        if effect is None:
            effect = state.effects[id(template)] = self._learn(state, template)
        return effect

    def _learn(self, state: ArrayState, template: Instruction) -> _Effect:
        # An instruction either touches bytes (spans) or changes registers (`after`, the next
        # state), never both: so that a state is followed by one look-up an instruction.
        resolved = template.resolved(state.registers)
        if isinstance(template, Sync) or template_violations(resolved, self._chip):
            return template, (), None
        after = resolved.apply(state.registers)
        spans = tuple(_span(resolved, operand) for operand in template.operands())
        return template, spans, None if spans else self.at(after)


class ArrayWatch:
    """Follows what one core issues, in program order."""

    def __init__(self, core: Core, spans: ArraySpans) -> None:
        self._core, self._spans = core, spans
        self.state = spans.at(core.registers)

    def issue(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Log what an instruction touches outside the arrays of its operands."""
        _, spans, after = self._spans.effect(self.state, template)
        if after is not None:
            self.state = after
            return
        for (operand, start, end), address in zip(spans, addresses, strict=False):
            if type(address) is not InArray or not end:
                continue
            first, last = address + start, address + end
            if first < address.low or last > address.high:
                touched = template.name, operand.name, operand.mem, first, last
                self.judge(*touched, address, where, writes=operand.access.writes)

    def plan(self, templates: Sequence[Instruction]) -> ArrayPlan:
        """Return the checks of instructions that are issued now, one after another."""
        # Repeated calls check a whole block of instructions at once: positions in their joint list
        # of addresses, with the bytes that each operand touches from there.
        state, checks, at = self.state, [], 0
        for template in templates:
            _, spans, after = self._spans.effect(state, template)
            state = after or state
            checks += [(at + n, low, high) for n, (_, low, high) in enumerate(spans) if high]
            at += len(template.operands())
        return ArrayPlan(tuple(checks), state)

    def load(self, load: LoadScalar, address: int) -> None:
        """Log a value that the scalar unit reads outside the array of its pointer."""
        if type(address) is InArray:
            end = address + load.element.size_bytes
            touched = "scalar load", "src", load.mem, address, end
            self.judge(*touched, address, load.location, writes=False)

    def judge(
        self,
        name: str,
        operand: str,
        mem: Mem,
        first: int,
        last: int,
        address: InArray,
        where: Location,
        *,
        writes: bool,
    ) -> None:
        """Log an access to bytes [first, last) if some of them are outside the address' array."""
        if address.low <= first and last <= address.high:
            return
        message = (
            f"{name}.{operand} must stay inside its array, bytes [{address.low}, {address.high}) "
            f"of {mem.label}, got bytes [{first}, {last})"
        )
        core, how = str(self._core.id), "write" if writes else "read"
        finding = SanitizerFinding(
            *("out-of-bounds", message, name, where, core),
            accesses=(FindingAccess(how, name, operand, "", mem.label, first, last, core, where),),
            limits=(address.low, address.high),
        )
        self._core.log.add(finding, operand)


class NoArrays:
    """Stands for the watch of a core whose arrays nobody watches."""

    state = ArrayState(Registers())

    def plan(self, _templates: Sequence[Instruction]) -> ArrayPlan:
        """Return that nothing is to be checked."""
        return ArrayPlan((), self.state)


def _span(template: Instruction, operand: Operand) -> tuple[Operand, int, int]:
    has_elements = not template.steering or operand.name in template.steering
    if isinstance(template, GatherMask):
        has_elements = operand.access.reads
    span = (
        elements(template, operand.name).span
        if has_elements and operand.mem is not Mem.GM
        else None
    )
    return operand, *(span or (0, 0))
