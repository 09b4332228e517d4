"""Filling the Cube's input buffers with one value."""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.archs import BYTES_NOT_FILLED, HALF, Kirin
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    instruction,
    param,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES

_TYPES = ("int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32")
_RATE = "no page gives the cost: the rate of the memory's inputs is taken"


@parameters
class Fill(Instruction):
    """Runs of blk_num blocks, dst_gap blocks from one run's tail to the next one's head.

    The value is given as dst's bits, or as a float that is rounded to dst's type. repeat or blk_num
    0: nothing happens.
    """

    block_bytes: ClassVar[int] = FRACTAL_BYTES
    signature = ("dst", "bits", "repeat", "blk_num", "dst_gap")
    dtype: ElementType = types("element type", *_TYPES)
    bits: int = param(0, 2**32 - 1, "the value's bits", bits_of="dtype")
    repeat: int = param(0, 32767, "runs", default=0)
    blk_num: int = param(0, 32767, "blocks of a run", default=0)
    dst_gap: int = param(0, 32767, "blocks from one run to the next", default=0)

    def offsets_dst(self) -> Offsets:
        """Shape [repeat, elements of a run]."""
        elements = self.block_bytes // self.dtype.size_bytes
        pitch = (self.blk_num + self.dst_gap) * elements
        starts = np.arange(self.repeat, dtype=np.intp)[:, None] * pitch
        return starts + np.arange(self.blk_num * elements, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """The value everywhere."""
        word = np.array(self.bits, f"u{self.dtype.size_bytes}").view(self.dtype.numpy)
        return {"dst": np.broadcast_to(word, self.offsets("dst").shape)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The value is no wider than the element."""
        if self.bits < 1 << self.dtype.bits:
            return []
        need = f"fit the {self.dtype.bits} bits of {self.dtype}"
        return [Violation(f"{self.name}.bits", need, hex(self.bits))]

    @property
    def size_bytes(self) -> int:
        """Bytes written."""
        return self.repeat * self.blk_num * self.block_bytes


@instruction(
    "create_ca_matrix",
    Pipe.MTE1,
    names={"c_api": "asc_fill_l0a", "cpp": "Fill(A2)"},
    source="asc-devkit, asc_fill_l0a, asc_fill_value_config and Fill (2201)",
    uncertain=(_RATE,),
    kirin=Kirin(HALF, HALF, BYTES_NOT_FILLED),
)
class CreateCaMatrix(Fill):
    """Fill blocks of 512 bytes of L0A."""

    dst = write(Mem.L0A, "run element")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0A link."""
        return InstructionCost(math.ceil(costs.l1_to_l0a_cycles(chip, self.size_bytes)))


@instruction(
    "create_cb_matrix",
    Pipe.MTE1,
    names={"c_api": "asc_fill_l0b", "cpp": "Fill(B2)"},
    source="asc-devkit, asc_fill_l0b, asc_fill_value_config and Fill (2201)",
    uncertain=(_RATE,),
    kirin=Kirin(HALF, HALF, BYTES_NOT_FILLED),
)
class CreateCbMatrix(Fill):
    """Fill blocks of 512 bytes of L0B."""

    dst = write(Mem.L0B, "run element")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0B link."""
        return InstructionCost(math.ceil(costs.l1_to_l0b_cycles(chip, self.size_bytes)))


@instruction(
    "create_cbuf_matrix",
    Pipe.MTE2,
    names={"c_api": "asc_fill_l1", "cpp": "Fill(A1)"},
    source="asc-devkit, asc_fill_l1, asc_fill_value_config and Fill (2201, 3510)",
    uncertain=(_RATE,),
    archs=("2201", "3510"),
    kirin=Kirin(HALF, HALF, BYTES_NOT_FILLED),
)
class CreateCbufMatrix(Fill):
    """Fill blocks of 32 bytes of L1."""

    block_bytes = DATA_BLOCK_BYTES
    dst = write(Mem.L1, "run element")

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer into L1 without global memory."""
        row = self.blk_num * DATA_BLOCK_BYTES
        cycles = costs.gm_to_l1_cycles(chip, self.repeat, row, row)
        return InstructionCost(math.ceil(cycles) if self.size_bytes else 0)
