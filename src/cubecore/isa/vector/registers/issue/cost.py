"""Cycles of a vector function on pipe V."""

from collections.abc import Sequence

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import InstructionCost
from cubecore.isa.vector.registers.issue.reliefs import Relief, relieved
from cubecore.isa.vector.registers.issue.schedule import Unit, schedule
from cubecore.isa.vector.registers.issue.work import Work, work_of
from cubecore.isa.vector.registers.program import RegisterProgram


def cost_of(program: RegisterProgram, chip: Chip, without: Relief | None = None) -> InstructionCost:
    """Return the cycles from the start of a vector function until its last result is written.

    What a function begins while another one ends is hidden, and is paid when pipe V was idle.
    `without` leaves a limit of the unit out.
    """
    work, unit = work_of(program), Unit.of(chip)
    if without is not None:
        work, unit = relieved(work, lines_of(program, work), unit, without)
    last = max((each.done for each in schedule(work, unit)), default=0)
    ends, begins = (chip.require(f"vf_{name}_cycles", "timing") for name in ("drain", "start"))
    return InstructionCost(last + int(ends), idle_head=int(begins))


def lines_of(program: RegisterProgram, work: Sequence[Work]) -> list[int]:
    """Return the number of each instruction's line in the program's locations."""
    places = program.entries.places
    return [int(places[each.entry]) for each in work]
