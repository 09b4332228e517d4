"""Cycles of a vector function: a first closed form.

Loads and stores take a cycle each, and other instructions share cycles as public traces show; the
constants were fitted by eye to eight of these and to four measured points, and are rough.
"""

from math import ceil

from cubecore.isa.vector.registers.operation import Form
from cubecore.isa.vector.registers.program import RegisterProgram

_START = 35
"""Cycles of a start and of the drain at the end."""
_ISSUED_A_CYCLE = 1.55
"""Register instructions that are issued in a cycle, in the mean."""


def cycles(program: RegisterProgram) -> int:
    """Return whole cycles on pipe V."""
    loads = stores = computed = 0
    for step in program.steps.values():
        count = step.entries.size
        of_each = step.call.operation.cycles_of(step.call.dtype)
        if step.loads:
            loads += count * of_each
        elif step.stores:
            stores += count * of_each
        elif step.call.operation.form is not Form.PATTERN or step.levels:
            computed += count * of_each
    return _START + ceil(max(loads, stores, computed / _ISSUED_A_CYCLE))
