"""Issue cache: checks and operands of an issue template, computed once.

A plan holds under one state of the registers, but for what values leave there: those decide nothing
of templates that do not read them.
"""

from dataclasses import field
from functools import lru_cache

from cubecore.cache import BoundedCache
from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.declare.operand_overlap import relation
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.check import memory_bytes, template_violations
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.reference.core import Core

_MOST_ADDRESSES = 256
"""Addresses of one template of which it is remembered how they lie."""


@dataclass(frozen=True, eq=False, slots=True)
class CachedIssue:
    """A resolved template, and what it breaks; with operands if it breaks nothing.

    `applies` says that it sets registers, `moves` that an address may be counted in its offsets,
    `judges` that it has rules of its own on how its operands lie. `usable` are the bytes of the
    operands' memories.
    """

    template: Instruction
    wrong: tuple[Violation, ...]
    operands: tuple[Operand, ...] = ()
    usable: tuple[int, ...] = ()
    applies: bool = False
    moves: bool = False
    judges: bool = False
    _relations: BoundedCache[tuple[int, ...], tuple[bool, bool]] = field(
        default_factory=lambda: BoundedCache(_MOST_ADDRESSES)
    )

    def relation(self, addresses: tuple[int, ...]) -> tuple[bool, bool]:
        """Return what `isa.overlap.relation` says of the template at these addresses."""
        cached = self._relations.get(addresses)
        if cached is None:
            cached = self._relations[addresses] = relation(self.template, addresses)
        return cached


def plan(core: Core, template: Instruction) -> CachedIssue:
    """Return a template's plan under a core's registers."""
    registers = core.registers
    if template.resolved_by_left:
        return _planned_by_left(template, registers, core.chip)
    if core.planned_for is not registers:
        core.planned_for, core.planned = registers, _plans(registers, core.chip)
    cached: CachedIssue | None = core.planned.get(template)
    if cached is None:
        cached = core.planned[template] = _plan(template, registers, core.chip)
    return cached


def _plan(template: Instruction, registers: Registers, chip: Chip) -> CachedIssue:
    resolved, kind = template.resolved(registers), type(template)
    wrong = template_violations(resolved, chip) or tuple(resolved.unmet(registers))
    if wrong:
        return CachedIssue(resolved, wrong)
    operands = resolved.operands()
    return CachedIssue(
        template=resolved,
        wrong=(),
        operands=operands,
        usable=tuple(0 if o.mem is Mem.GM else memory_bytes(chip, o.mem)[1] for o in operands),
        applies=kind.apply is not Instruction.apply,
        moves=kind.rebased is not Instruction.rebased,
        judges=kind.address_violations is not Instruction.address_violations,
    )


_planned_by_left = lru_cache(maxsize=4096)(_plan)


@lru_cache(maxsize=64)
def _plans(_registers: Registers, _chip: Chip) -> BoundedCache[Instruction, CachedIssue]:
    """Return what is known of templates under some registers: filled as they are met."""
    return BoundedCache()
