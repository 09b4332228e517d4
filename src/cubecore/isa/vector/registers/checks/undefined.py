"""Lanes that nobody wrote, in UB or in registers, and the calls that they decide."""

from collections.abc import Iterator, Mapping

import numpy as np

from cubecore.isa.declare.remark import Remark
from cubecore.isa.vector.registers.checks.forms import merges_into, never_written
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.undefined_lanes import UndefinedLanes


def needed_remarks(program: RegisterProgram, needing: Mapping[int, int]) -> tuple[Remark, ...]:
    """Return findings about calls that look at so many bytes of UB that were never written."""
    return tuple(
        Remark(
            "uninitialised",
            f"{program.steps[number].call.operation.name} must look at lanes that were written in "
            f"UB before they were loaded, got {count} B of them never written; a "
            "mask of the count (UpdateMask) leaves the others out",
            "lanes",
            program.steps[number].location,
        )
        for number, count in needing.items()
    )


def stale_lane_remarks(program: RegisterProgram) -> Iterator[Remark]:
    """Yield the calls that lanes reach that were kept of a register which no call has written."""
    steps = program.steps.values()
    merged = [s for s in steps if merges_into(s) and s.sources and s.mask is not None]
    if not any(never_written(step.sources[-1]) for step in merged):
        return
    run = UndefinedLanes(program, np.zeros((1, program.reach), np.uint8))
    for number, count in sorted({**run.stored, **run.needing}.items()):
        step = program.steps[number]
        name = step.call.operation.name
        yield Remark(
            "lanes-stale",
            f"{name} must take lanes that were written in the vector function, got {count} B of"
            " lanes kept of a register that no call has written; fill it before lanes are merged"
            " into it, or mask them out",
            "lanes",
            step.location,
        )
