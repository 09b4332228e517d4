"""Static checks of an instruction, made before it runs."""

from functools import lru_cache

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.tree import Program

MOST_BYTES = 2**24
"""Of one instruction: 32 times what L1 holds, for those that read a run again and again."""


@lru_cache(maxsize=8192)
def template_violations(
    template: Instruction, chip: Chip, *, letter: bool = False
) -> tuple[Violation, ...]:
    """Return what a template breaks on a chip: ranges, types, preconditions; each judged once.

    By the `letter` of the pages a stride has its range where nothing is repeated, too.

    Parameters may each be in their ranges and together ask for terabytes; that ends here.
    """
    violations = template.violations(chip, letter=letter)
    if not violations and template.size_bytes > MOST_BYTES:
        need = f"move at most {MOST_BYTES} B, more than all memories of a core hold"
        violations = [Violation(template.name, need, f"{template.size_bytes} B")]
    return tuple(violations)


def program_violations(program: Program, chip: Chip) -> list[Violation]:
    """Return what the program's templates break, in program order, each template once."""
    distinct = dict.fromkeys(issue.template for issue in program.issues if not issue.late)
    return [v for template in distinct for v in template_violations(template, chip)]


@lru_cache(maxsize=256)
def memory_bytes(chip: Chip, mem: Mem) -> tuple[int, int]:
    """Return (physical, usable) bytes of a core's local memory on `chip`.

    All of L1 is usable: the vendor's published matmul kernel fills it (docs/decisions/plans.md).
    """
    sizes = {
        Mem.UB: (chip.ub_bytes, chip.ub_user_bytes),
        Mem.L1: (chip.l1_bytes, chip.l1_bytes),
        Mem.L0A: (chip.l0a_bytes, chip.l0a_bytes),
        Mem.L0B: (chip.l0b_bytes, chip.l0b_bytes),
        Mem.L0B_INDEX: (chip.l0b_bytes // 4, chip.l0b_bytes // 4),
        Mem.L0A_MX: (chip.l0a_bytes // 16, chip.l0a_bytes // 16),
        Mem.L0B_MX: (chip.l0b_bytes // 16, chip.l0b_bytes // 16),
        Mem.L0C: (chip.l0c_bytes, chip.l0c_bytes),
        Mem.BT: (chip.bt_bytes or 0, chip.bt_bytes or 0),
        Mem.FB: (chip.fb_bytes or 0, chip.fb_bytes or 0),
    }
    return sizes[mem]
