"""Vector functions some of whose accesses of UB lie where values of registers say."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import (
    Instruction,
    Mem,
    Operand,
    OperandAccess,
    Pipe,
    instruction,
    taken,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.remark import Remark
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.registers.vector_function import (
    MOST_RUNS,
    Spans,
    VectorFunction,
    mask_of,
    put,
)

if TYPE_CHECKING:
    from cubecore.isa.vector.registers.program import RegisterProgram

_WINDOW = Operand(
    Mem.UB, OperandAccess.READ, "", "function byte", align_bytes=1, used=True, name="window"
)
"""All of UB, on which the bytes of a program's accesses may hang before they are known."""


_BEFORE = "deciding_"
"""Begins the names of operands before the bytes of all accesses are known."""
_DECIDING = tuple(f"{_BEFORE}src{n}" for n in range(MOST_RUNS))


def _renamed(operand: Operand) -> Operand:
    """Return an operand of a name that no operand has afterwards, at another address perhaps."""
    other = copy(operand)
    other.name = f"{_BEFORE}{operand.name}"
    return other


@parameters
class IndexedFunction(VectorFunction):
    """A vector function that gathers, scatters, or stores as many bytes as a squeeze has counted.

    Its program counts addresses from the beginning of UB. Which bytes it accesses follows from the
    values of what it loads, or of all of UB where indices hang on what it has stored or picked.
    """

    ctrl: int | None = taken("CTRL, taken when it starts")
    vector_mask: int | None = taken("MASK1 and MASK0, taken when it starts")
    is_landed: bool | None = taken("whether the bytes that it accesses are known")

    @property
    def spans(self) -> Spans:
        """The operands and the bytes of each; before those are known, with what decides them."""
        from cubecore.isa.vector.registers.landing import Deciders, deciders, ub_bytes

        found: Spans | None = self.__dict__.get("_spans")
        if found is None:
            found = super().spans
            if self.steering and not self.is_landed:
                found = tuple((_renamed(operand), runs) for operand, runs in found)
            if deciders(self.program) is Deciders.MEMORY and not self.is_landed:
                found = ((_WINDOW, ((0, ub_bytes()[1]),)), *found)
            self.__dict__["_spans"] = found
        return found

    @property
    def steering(self) -> tuple[str, ...]:
        """All that it loads, or all of UB; those that it touches have other names afterwards."""
        from cubecore.isa.vector.registers.landing import Deciders, deciders

        by = deciders(self.program)
        if by is Deciders.PROGRAM:
            return ()
        if by is Deciders.MEMORY:
            return (_WINDOW.name,)
        return _DECIDING

    def resolved(self, registers: Registers) -> Self:
        """Take CTRL and the vector mask, on which indices and masks may hang."""
        return replace(self, ctrl=registers.ctrl, vector_mask=mask_of(registers))

    def located(self, values: Mapping[str, Array]) -> Self:
        """Take the bytes that the accesses touch from the values of what decides them."""
        from cubecore.isa.vector.registers.execution import ALL_BITS
        from cubecore.isa.vector.registers.landing import landed, ub_bytes

        images = []
        for _ in range(2):
            image = np.zeros((1, ub_bytes()[0]), np.uint8)
            for operand, runs in self.spans:
                if operand.name in values:
                    put(image, runs, values[operand.name])
            images.append(image)
        ctrl, mask = self.ctrl or 0, ALL_BITS if self.vector_mask is None else self.vector_mask
        performed = self.performed and landed(self.performed, images[1], ctrl, mask)
        program = landed(self.program, images[0], ctrl, mask)
        return replace(self, program=program, performed=performed, is_landed=True)

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """Return where each operand begins: the program counts from the beginning of UB."""
        return tuple(runs[0][0] for _, runs in self.spans)

    def remarks(self, chip: Chip) -> tuple[Remark, ...]:
        """Return what is wrong with the program, once the bytes of its accesses are known."""
        return super().remarks(chip) if self.is_landed or not self.steering else ()


@parameters
class CountingFunction(IndexedFunction):
    """A vector function that leaves in AR how many bytes its counted stores have stored."""

    register = "stored_by_ar"

    def run(
        self, inputs: Mapping[str, Array], registers: Registers
    ) -> tuple[Mapping[str, Array], Registers]:
        """Run the program once for both its results and AR."""
        results, ar = self.performed_on(inputs, registers)
        return results, registers.leaving(self.register, ar)

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Leave AR."""
        return registers.leaving(self.register, self.performed_on(inputs, registers)[1])


def function_of(program: "RegisterProgram") -> VectorFunction:
    """Return the instruction of a program: values may decide what it accesses, or what AR has."""
    from cubecore.isa.vector.registers.landing import (
        Deciders,
        deciders,
        has_landings,
        landed,
        ub_bytes,
    )
    from cubecore.isa.vector.registers.operation import Form

    of_ar = any(step.call.operation.form is Form.AR for step in program.steps.values())
    if not (of_ar or has_landings(program)):
        return VectorFunction(program=program)
    if deciders(program) is Deciders.PROGRAM:
        program = landed(program, np.zeros((1, ub_bytes()[0]), np.uint8), 0)
    return (CountingFunction if of_ar else IndexedFunction)(program=program)


@instruction(
    "get_ar",
    Pipe.S,
    names={"c_api": "asc_get_squeeze_status", "cpp": "GetSpr"},
    source="asc-devkit, asc_get_squeeze_status and GetSpr (3510)",
    archs=("3510",),
)
class GetAr(Instruction):
    """Read AR: the bytes that a vector function has stored by it since it was cleared.

    The scalar unit must have waited for the vector unit.
    """

    register = "stored_by_ar"

    def result(self, registers: Registers) -> tuple[int, ...]:
        """The bytes."""
        return (registers.stored_by_ar,)
