"""Calls, arrays and blocks of a launch in the words of its source."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cubecore.chips.model import Chip
from cubecore.frontends.diagnosis.arguments import argument, calls_at, receiver
from cubecore.frontends.diagnosis.dependence import IssuedCores
from cubecore.frontends.diagnosis.dialects import C_API, CLASS_API, Dialect
from cubecore.isa.catalogue import instructions
from cubecore.isa.program.tree import Location
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding

_METHODS = frozenset({"GetValue", "SetValue"})
"""Calls whose array stands in front of them, and not among their arguments."""
_SHOWN_BLOCKS = 3
"""Blocks of a core that a finding lists."""


def line_of(where: Location) -> str:
    """Return a location as file:line."""
    return f"{where.file}:{where.line}"


@dataclass(frozen=True, slots=True)
class SourceWords:
    """The words of a launch, and what they tell of: its cores' instructions, and its findings.

    A kernel of the class API may call the C API as well: `dialect` is that of most calls. `blocks`
    are those that each core runs in turns, by its name.
    """

    dialect: Dialect
    chip: Chip
    issued: IssuedCores
    blocks: Mapping[str, range] = field(default_factory=dict)
    arrays: Mapping[str, range] = field(default_factory=dict)
    """The bytes of global memory that each array takes."""
    findings: tuple[SanitizerFinding, ...] = ()

    def of(self, where: Location) -> Dialect:
        """Return the dialect of the call at a location."""
        if self.dialect.key != CLASS_API.key:
            return self.dialect
        calls = (where.call,) if where.call else calls_at(where.file, where.line)
        of_c = bool(calls) and all(each.startswith("asc_") for each in calls)
        return C_API if of_c else self.dialect

    def said(self, sentence: str, where: Location) -> str:
        """Return a check's sentence in the words of the call at a location."""
        return self.of(where).in_words(sentence, calls_at(where.file, where.line))

    def short(self, instruction: str, where: Location) -> str:
        """Return the call that issued an instruction, by its name alone."""
        if where.call in _METHODS and (of := receiver(where)):
            return f"{of}.{where.call}"
        if where.call:
            return where.call
        kind = instructions().get(instruction)
        return instruction if kind is None else self.of(where).name(kind)

    def call(self, instruction: str, where: Location) -> str:
        """Return the call at its line, with the instruction where that has another name."""
        name = self.short(instruction, where)
        known = instruction in instructions() and name != instruction
        return f"{name}{f' ({instruction})' if known else ''} at {line_of(where)}"

    def plain(self, instruction: str, where: Location) -> str:
        """Return the call at its line, by its name alone."""
        return f"{self.short(instruction, where)} at {line_of(where)}"

    def operand(self, instruction: str, operand: str, where: Location) -> str:
        """Return an operand's argument as the source writes it; empty where it is not known."""
        kind = instructions().get(instruction)
        names = () if kind is None else self.of(where).operands_of(where.call, kind)
        if operand not in names:
            return ""
        position = names.index(operand)
        if where.operands:
            return where.operands[position] if position < len(where.operands) else ""
        return argument(where, position)

    def parameter(self, name: str, where: Location) -> str:
        """Return what a call names a parameter of its instruction."""
        return self.of(where).parameters.get(where.call, {}).get(name, name)

    def updates(self, access: FindingAccess) -> bool:
        """Return whether the call writes what it reads: it adds to it."""
        kind = instructions().get(access.instruction)
        declared = () if kind is None else kind.declared
        return any(each.name == access.operand and each.access.writes for each in declared)

    def array(self, access: FindingAccess) -> str:
        """Return the bytes of an access, with the name that its array has in the source."""
        name = self.operand(access.instruction, access.operand, access.location)
        if access.memory in self.arrays:
            return f"bytes [{access.start}, {access.end}) of {access.memory}"
        spot = f"{access.memory}[{access.start}, {access.end})"
        return f"{name} ({spot})" if name else spot

    def block(self, core: str) -> str:
        """Return the blocks of a core, with the core."""
        blocks = self.blocks_of(core)
        return f"{blocks} ({core})" if blocks else core

    def blocks_of(self, core: str) -> str:
        """Return the blocks that a core takes in turns; nothing for what is no core."""
        blocks = self.blocks.get(core, range(0))
        if len(blocks) <= 1:
            return f"block {blocks[0]}" if blocks else ""
        shown = ", ".join(map(str, blocks[:_SHOWN_BLOCKS]))
        return f"one of blocks {shown}{', ...' if len(blocks) > _SHOWN_BLOCKS else ''}"

    def at(self, finding: SanitizerFinding) -> str:
        """Return the call that a finding is about, at its line."""
        return self.call(finding.instruction, finding.location)
