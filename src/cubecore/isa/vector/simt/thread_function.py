"""A function of threads as one instruction of pipe V: what it read and wrote, known when issued.

Threads are machine code of the host's and run when the function is called, on memory as all that
was issued before leaves it. The instruction holds the bytes that they left in UB.
"""

from collections.abc import Mapping

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
from cubecore.isa.vector.simt.thread_work import ThreadWork
from cubecore.layouts import Offsets, Runs, offsets_of_runs

_BYTE = element_type("uint8")
_READ = Operand(Mem.UB, OperandAccess.READ, "", "thread byte", align_bytes=1, name="src")
_WRITTEN = Operand(Mem.UB, OperandAccess.WRITE, "", "thread byte", align_bytes=1, name="dst")


@instruction(
    "thread_function",
    Pipe.V,
    source="asc-devkit, SIMT programming",
    archs=("3510",),
    listed=False,
)
class ThreadFunction(Instruction):
    """A function that the threads of one block ran, or a kernel of threads on one core.

    `read` and `written` are bytes of UB, `values` what was written, `number` tells one call from
    others; `work` is what its time follows from: nothing where none is asked for.
    """

    propagates = is_function = True
    number: int
    read: Runs = ()
    written: Runs = ()
    values: bytes = b""
    work: ThreadWork | None = None

    def operands(self) -> tuple[Operand, ...]:
        """Return the bytes of UB that were read, and those that were written."""
        return (*((_READ,) if self.read else ()), *((_WRITTEN,) if self.written else ()))

    @property
    def addresses(self) -> tuple[int, ...]:
        """The first byte of each operand."""
        return tuple(runs[0][0] for runs in (self.read, self.written) if runs)

    def element(self, operand: Operand) -> ElementType:
        """Return bytes."""
        return _BYTE

    def offsets(self, operand: str) -> Offsets:
        """Return the bytes of an operand, from its first one on."""
        return offsets_of_runs(self.read if operand == "src" else self.written)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Return what the threads left."""
        return {"dst": np.frombuffer(self.values, np.uint8)} if self.written else {}

    def known(self, ready: Mapping[str, NDArray[np.bool_]]) -> Mapping[str, NDArray[np.bool_]]:
        """Return that all is known: threads say themselves where they read what nobody wrote."""
        return {"dst": np.ones(len(self.values), np.bool_)} if self.written else {}

    def cost(self, chip: Chip) -> InstructionCost:
        """Return the rough time."""
        return InstructionCost(0 if self.work is None else self.work.cycles(chip))
