"""Calls, arrays and blocks of a launch in the words of its source."""

from collections.abc import Mapping
from dataclasses import field

from cubecore.frontends.diagnosis.arguments import argument
from cubecore.frontends.diagnosis.dialects import C_API, Dialect
from cubecore.isa.catalogue import instructions
from cubecore.isa.program.tree import Location
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.sanitizer.findings import FindingAccess, SanitizerFinding


@dataclass(frozen=True, slots=True)
class SourceWords:
    """The words of a launch: its dialect, and the blocks that each core runs, by its name.

    A kernel of the class API may call the C API as well: `dialect` is that of most calls.
    """

    dialect: Dialect
    blocks: Mapping[str, str] = field(default_factory=dict)
    arrays: frozenset[str] = frozenset()
    """The names of arrays in global memory."""

    def of(self, where: Location) -> Dialect:
        """Return the dialect of the call at a location."""
        both = {self.dialect.key, C_API.key}
        return C_API if "cpp" in both and where.call.startswith("asc_") else self.dialect

    def short(self, instruction: str, where: Location) -> str:
        """Return the call that issued an instruction, by its name alone."""
        if where.call:
            return where.call
        kind = instructions().get(instruction)
        return instruction if kind is None else self.of(where).name(kind)

    def call(self, instruction: str, where: Location) -> str:
        """Return the call at its line, with the instruction where that has another name."""
        name = self.short(instruction, where)
        known = instruction in instructions() and name != instruction
        return f"{name}{f' ({instruction})' if known else ''} at {where.file}:{where.line}"

    def operand(self, instruction: str, operand: str, where: Location) -> str:
        """Return an operand's argument as the source writes it; empty where it is not known."""
        kind = instructions().get(instruction)
        names = [] if kind is None else [each.name for each in kind.declared]
        if operand not in names:
            return ""
        position = names.index(operand)
        if where.operands:
            return where.operands[position] if position < len(where.operands) else ""
        return argument(where, position)

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
        blocks = self.blocks.get(core, "")
        return f"{blocks} ({core})" if blocks else core

    def at(self, finding: SanitizerFinding) -> str:
        """Return the call that a finding is about, at its line."""
        return self.call(finding.instruction, finding.location)
