"""A vector function as one instruction of pipe V: it reads and writes runs of UB."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    OperandAccess,
    Pipe,
    instruction,
)
from cubecore.isa.declare.registers import Registers
from cubecore.layouts import Offsets

if TYPE_CHECKING:
    from cubecore.isa.vector.registers.program import RegisterProgram

Runs = tuple[tuple[int, int], ...]
Spans = tuple[tuple[Operand, Runs], ...]
"""Operands, and the bytes [start, end) of each from the program's base on."""
_BYTE = element_type("uint8")
MOST_RUNS = 4
"""Runs of bytes that are operands of their own; more of them are one operand."""


@instruction(
    "vector_function",
    Pipe.V,
    source="asc-devkit, Reg vector compute",
    archs=("3510",),
    listed=False,
)
class VectorFunction(Instruction):
    """A program of register instructions, which no other instruction of the core interrupts.

    Its operands are the bytes that it loads before it has stored there, and those that it stores;
    their addresses are the program's base and where they begin from there on.
    """

    propagates = True
    program: "RegisterProgram"

    def operands(self) -> tuple[Operand, ...]:
        """Return the runs that are read, then those that are written."""
        return tuple(operand for operand, _ in self.spans)

    @property
    def spans(self) -> Spans:
        """The operands and the bytes of each, from the program's base on."""
        found: Spans | None = self.__dict__.get("_spans")
        if found is None:
            found = self.__dict__["_spans"] = _spans(self.program)
        return found

    def element(self, operand: Operand) -> ElementType:
        """Return bytes."""
        return _BYTE

    def offsets(self, operand: str) -> Offsets:
        """Return the bytes of a run, from its first one on."""
        (runs,) = (runs for each, runs in self.spans if each.name == operand)
        first = runs[0][0]
        return np.concatenate([np.arange(low - first, high - first) for low, high in runs])

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Run the program on the bytes that it reads."""
        from cubecore.isa.vector.registers.execution import execute  # most kernels have none

        size = max(runs[-1][1] for _, runs in self.spans)
        some = next(iter(inputs.values()), np.zeros(0, np.uint8))
        image = np.empty((some.shape[0] if some.ndim > 1 else 1, size), np.uint8)
        for operand, runs in self.spans:
            if operand.access.reads:
                _put(image, runs, inputs[operand.name])
        execute(self.program, image, registers.ctrl)
        taken = self._written(image)
        return taken if some.ndim > 1 else {name: values[0] for name, values in taken.items()}

    def known(self, ready: Mapping[str, NDArray[np.bool_]]) -> Mapping[str, NDArray[np.bool_]]:
        """Return which stored bytes hang on none that were never written."""
        from cubecore.isa.vector.registers.undefined_lanes import mark_undefined

        image = np.zeros((1, max(runs[-1][1] for _, runs in self.spans)), np.uint8)
        for operand, runs in self.spans:
            if operand.name in ready:
                _put(image, runs, (~ready[operand.name]).astype(np.uint8))
        mark_undefined(self.program, image)
        return {name: marks[0] == 0 for name, marks in self._written(image).items()}

    def _written(self, image: Array) -> dict[str, Array]:
        written = (each for each in self.spans if each[0].access.writes)
        return {operand.name: _taken(image, runs) for operand, runs in written}

    def cost(self, chip: Chip) -> InstructionCost:
        """Return the cycles of the first model."""
        from cubecore.isa.vector.registers.cost import cycles

        return InstructionCost(cycles(self.program))


def _spans(program: "RegisterProgram") -> Spans:
    stored = OperandAccess.WRITE if program.exact else OperandAccess.UPDATE
    sides = (("src", OperandAccess.READ, program.loaded.runs), ("dst", stored, program.stored.runs))
    return tuple(
        (Operand(Mem.UB, access, "", "byte", align_bytes=1, name=f"{name}{n}"), runs)
        for name, access, all_runs in sides
        for n, runs in enumerate(_grouped(all_runs))
    )


def _grouped(runs: tuple[tuple[int, int], ...]) -> list[tuple[tuple[int, int], ...]]:
    if not runs:
        return []
    return [(run,) for run in runs] if len(runs) <= MOST_RUNS else [runs]


def _put(image: Array, runs: tuple[tuple[int, int], ...], values: Array) -> None:
    at = 0
    for low, high in runs:
        image[:, low:high] = values[..., at : at + high - low]
        at += high - low


def _taken(image: Array, runs: tuple[tuple[int, int], ...]) -> Array:
    return np.concatenate([image[:, low:high] for low, high in runs], axis=-1)
