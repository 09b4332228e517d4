"""Issue cache: checks and operands of an issue template, computed once.

An entry holds under one state of the registers, but for what values leave there: those decide
nothing of templates that do not read them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter

from cubecore.cache import BoundedCache
from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import relation
from cubecore.isa.declare.registers import CorePosition, Registers
from cubecore.isa.declare.remark import Remark
from cubecore.isa.program.check import memory_bytes, template_violations
from cubecore.machine.execute.core import Core
from cubecore.machine.memory.elements import Use, uses
from cubecore.machine.memory.moves import Move, move_of

_MOST_ADDRESSES = 256
"""Addresses of one template of which it is remembered how they lie."""


def _nowhere(_: tuple[int, ...]) -> object:
    """Return what stands for the local addresses of a template that has none."""
    return None


@dataclass(frozen=True, eq=False, slots=True)
class CachedIssue:
    """A resolved template, and what it breaks; with operands if it breaks nothing.

    `usable` are the bytes of the operands' memories, `outside` the operands in global memory, and
    `local` picks the addresses of the others. `moves` are those of a copy, each with the numbers of
    its source and its target. `applies` says that it sets registers, `judges` that it has rules of
    its own on how its operands lie. `unsettled`: addresses or values decide what it touches, so
    that nothing is known of operands. `remarks` are findings that the template alone decides.
    """

    template: Instruction
    wrong: tuple[Violation, ...] = ()
    uses: tuple[Use, ...] = ()
    usable: tuple[int, ...] = ()
    outside: tuple[int, ...] = ()
    local: Callable[[tuple[int, ...]], object] = _nowhere
    moves: tuple[tuple[Move, int, int], ...] = ()
    applies: bool = False
    judges: bool = False
    unsettled: bool = False
    remarks: tuple[Remark, ...] = ()
    _relations: BoundedCache[tuple[int, ...], tuple[bool, bool]] = field(
        default_factory=lambda: BoundedCache(_MOST_ADDRESSES)
    )

    @staticmethod
    def of(template: Instruction, registers: Registers, chip: Chip) -> "CachedIssue":
        """Return what is known of a resolved template that breaks nothing."""
        operands, kind = template.operands(), type(template)
        # Everything here depends on the template and the registers, never on addresses, so that it
        # is computed once and serves every core and every iteration.
        inside = [index for index, o in enumerate(operands) if o.mem is not Mem.GM]
        return CachedIssue(
            template=template,
            uses=uses(template),
            usable=tuple(0 if o.mem is Mem.GM else memory_bytes(chip, o.mem)[1] for o in operands),
            outside=tuple(index for index, o in enumerate(operands) if o.mem is Mem.GM),
            local=itemgetter(*inside) if inside else _nowhere,
            moves=_moves(template, registers) if template.copies else (),
            applies=kind.apply is not Instruction.apply,
            judges=kind.address_violations is not Instruction.address_violations,
            remarks=template.remarks(chip),
        )

    @property
    def stops(self) -> bool:
        """True if a remark forbids to execute it."""
        return any(remark.stops for remark in self.remarks)

    def relation(self, addresses: tuple[int, ...]) -> tuple[bool, bool]:
        """Return what `isa.overlap.relation` says of the template at these addresses."""
        cached = self._relations.get(addresses)
        if cached is None:
            cached = self._relations[addresses] = relation(self.template, addresses)
        return cached


def _moves(template: Instruction, registers: Registers) -> tuple[tuple[Move, int, int], ...]:
    operands = {operand.name: operand for operand in template.operands()}
    numbers, fill = list(operands), template.fill(registers)
    return tuple(
        (
            move_of(template, operands[source], operands[target], fill),
            numbers.index(source),
            numbers.index(target),
        )
        for target, source in template.pairs
    )


def checked(core: Core, template: Instruction) -> CachedIssue:
    """Return the checked issue of a template under a core's registers."""
    registers = core.registers
    if template.resolved_by_left:
        return checked_issue(template, registers, core.chip)
    # Identity suffices: registers are frozen, and a core that changes one gets a new record.
    if core.checked_for is not registers:
        core.checked_for, core.checked = registers, issue_cache_of(registers, core.chip)
    return checked_among(core.checked, template, registers, core.chip)


def checked_among(
    known: BoundedCache[Instruction, CachedIssue],
    template: Instruction,
    registers: Registers,
    chip: Chip,
) -> CachedIssue:
    """Return the checked issue of a template under registers, of which `known` is the cache."""
    cached = known.get(template)
    if cached is None:
        cached = known[template] = checked_issue(template, registers, chip)
    return cached


@lru_cache(maxsize=4096)
def checked_issue(template: Instruction, registers: Registers, chip: Chip) -> CachedIssue:
    """Return the checked issue of a template under registers."""
    resolved, kind = template.resolved(registers), type(template)
    # Three outcomes: broken rules (the instruction is not executed), a template whose operands
    # depend on values or addresses (located at each issue), and one that is known for good.
    wrong = template_violations(resolved, chip) or tuple(resolved.unmet(registers))
    if wrong:
        return CachedIssue(resolved, wrong)
    if resolved.steering or kind.rebased is not Instruction.rebased:
        applies = kind.apply is not Instruction.apply
        return CachedIssue(resolved, applies=applies, unsettled=True)
    return CachedIssue.of(resolved, registers, chip)


@lru_cache(maxsize=1024)
def issue_cache_of(registers: Registers, chip: Chip) -> BoundedCache[Instruction, CachedIssue]:
    """Return what is known of templates under some registers, on whichever core."""
    # Two steps of caching: cores differ in their position, which no template reads, so that all of
    # them get the same cache.
    return _known(registers.leaving("position", CorePosition()), chip)


@lru_cache(maxsize=64)
def _known(_registers: Registers, _chip: Chip) -> BoundedCache[Instruction, CachedIssue]:
    """Return what is filled as templates are met."""
    return BoundedCache()
