"""Cycles of a vector function on pipe V."""

from collections.abc import Sequence

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import InnerCall, InstructionCost
from cubecore.isa.vector.registers.issue.reliefs import Relief, relieved
from cubecore.isa.vector.registers.issue.schedule import Started, VectorUnit, Wait, schedule
from cubecore.isa.vector.registers.issue.work import Port, UnitWork, lines_of, work_of
from cubecore.isa.vector.registers.program import RegisterProgram


def cost_of(program: RegisterProgram, chip: Chip, without: Relief | None = None) -> InstructionCost:
    """Return the cycles from the start of a vector function until its last result is written.

    What a function begins while another one ends is hidden, and is paid when pipe V was idle.
    `without` leaves a limit of the unit out.
    """
    work, unit = work_of(program), VectorUnit.of(chip)
    if without is not None:
        work, unit = relieved(work, lines_of(program, work), unit, without)
    begins = int(chip.require("vf_start_cycles", "timing"))
    return InstructionCost(_end(schedule(work, unit), chip), idle_head=begins)


def _end(started: Sequence[Started], chip: Chip) -> int:
    """Return the cycle in which a function ends: behind its last result."""
    drain = int(chip.require("vf_drain_cycles", "timing"))
    return max((each.done for each in started), default=0) + drain


def parts_of(program: RegisterProgram, chip: Chip) -> tuple[InnerCall, ...]:
    """Return each instruction of a vector function on a lane of its port, by its start."""
    work, entries = work_of(program), program.entries
    started = schedule(work, VectorUnit.of(chip))
    ends = _end(started, chip)
    free = dict.fromkeys(_LANES[Port.COMPUTE], 0)
    parts = []
    for number in sorted(range(len(work)), key=lambda n: started[n].start):
        each, start = work[number], started[number].start
        if each.port is Port.BARRIER:
            continue
        end = start + max(each.cycles, 1)
        lanes = _LANES[each.port]
        # Two lanes show what starts in one cycle; what takes several cycles of a unit beside other
        # work is drawn until the next one on its lane starts, as events of a lane cannot overlap.
        lane = min(lanes, key=lambda name: free.get(name, 0))
        start = max(start, free.get(lane, 0))
        if start >= end:
            end = start + 1
        free[lane] = end
        cause = _cause(program, work, started[number])
        name, where = _name(program, each), entries.locations[entries.places[each.entry]]
        parts.append(InnerCall(lane, name, start - ends, end - ends, where, cause))
    return tuple(parts)


def _name(program: RegisterProgram, each: UnitWork) -> str:
    """Return an instruction's call as its author wrote it."""
    entries = program.entries
    name: str = entries.locations[entries.places[each.entry]].call
    return name or entries.table[entries.calls[each.entry]].operation.spelling


def _cause(program: RegisterProgram, work: Sequence[UnitWork], started: Started) -> str:
    """Return what kept an instruction from an earlier start, and whose it was."""
    if started.wait is Wait.ORDER:
        return ""
    # Of several waits the last one is known: it is what kept the instruction until its start.
    reason: str = started.wait.value
    if started.by < 0:
        return reason
    other = work[started.by]
    line = program.entries.locations[program.entries.places[other.entry]].line
    return f"{reason}: {_name(program, other)} at line {line}"


_LANES = {
    Port.LOAD: ("V loads",),
    Port.STORE: ("V stores",),
    Port.COMPUTE: ("V instructions 1", "V instructions 2"),
}
"""The lanes of what happens inside of a vector function, by port."""
