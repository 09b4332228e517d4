"""Cycles of a vector function on pipe V."""

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import InstructionCost
from cubecore.isa.vector.registers.issue.schedule import Unit, schedule
from cubecore.isa.vector.registers.issue.work import work_of
from cubecore.isa.vector.registers.program import RegisterProgram


def cost_of(program: RegisterProgram, chip: Chip) -> InstructionCost:
    """Return the cycles from the start of a vector function until its last result is written.

    What a function begins while another one ends is hidden, and is paid when pipe V was idle.
    """
    started = schedule(work_of(program), Unit.of(chip))
    last = max((each.done for each in started), default=0)
    ends, begins = (chip.require(f"vf_{name}_cycles", "timing") for name in ("drain", "start"))
    return InstructionCost(last + int(ends), idle_head=int(begins))
