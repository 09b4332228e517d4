"""Views of a register's lanes, as the calls of an open vector function leave them."""

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.execution import value_after
from cubecore.isa.vector.registers.landing import has_landings, landed, ub_bytes
from cubecore.isa.vector.registers.operation import REGISTER_BYTES
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import Entries
from cubecore.isa.vector.registers.vector_function import mask_of
from cubecore.machine.debug.matrix_view import MatrixView, view
from cubecore.machine.execute.core import Core
from cubecore.numerics.codes import numbers


def register_view(
    entries: Entries, value: int, element: ElementType, count: int, core: Core
) -> MatrixView:
    """Return the first lanes of a value of a body, which runs on UB as it stands.

    The calls are made again with the function. Lanes of a value that no call makes are not written.
    """
    at, slot = np.nonzero(entries.results == value)
    if not at.size:
        raw = np.zeros(REGISTER_BYTES, np.uint8)
        return _shown(raw, element, count, is_written=False)
    program = RegisterProgram(entries.until(int(at[-1]) + 1), Location("", 0, ""))
    memory = view(core, Mem.UB, 0, element_type("uint8"), (ub_bytes()[0],), "ND")
    image = np.asarray(memory.values, np.uint8)[None]
    mask = mask_of(core.registers)
    if has_landings(program):
        program = landed(program, image.copy(), 0, mask)
    register = value_after(program, image, int(at[-1]), int(slot[-1]), mask)
    return _shown(register, element, count, is_written=True)


def _shown(raw: Array, element: ElementType, count: int, *, is_written: bool) -> MatrixView:
    lanes = numbers(raw.view(element.numpy)[:count], element)
    written = np.full(lanes.shape, is_written)
    return MatrixView("a register", 0, raw.size, element, "ND", lanes, written)
