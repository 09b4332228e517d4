"""Vector instructions that fill: duplicate, copy, index, broadcast."""

from collections.abc import Mapping

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import ARITHMETIC, LATE_MOVED, Member, declare
from cubecore.isa.vector.common.repeated import Repeated, settle
from cubecore.isa.vector.elementwise.unary import SCALAR_DOC, UnaryStrides
from cubecore.layouts import Offsets
from cubecore.numerics.conversion import value_of
from cubecore.units import DATA_BLOCK_BYTES

_BLOCKS = 8
"""Blocks of 32 bytes in one repeat."""


@parameters
class Duplicate(Repeated):
    """dst = value, in every lane."""

    dst = write(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type")
    value: int = param(-(2**31), 2**32 - 1, SCALAR_DOC)
    dst_block_stride: int = param(0, 65535, "32 B between dst's blocks", default=1)
    dst_repeat_stride: int = param(0, 65535, "32 B between dst's repeats", default=8)

    def offsets_dst(self) -> Offsets:
        """Shape [repeats, lanes]."""
        return self.strided(self.dtype, self.dst_block_stride, self.dst_repeat_stride)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Take the scalar for every lane."""
        shape = (self.repeats, self.width)
        return {"dst": np.broadcast_to(value_of(self.value, self.dtype), shape)}


@parameters
class Copy(UnaryStrides):
    """dst = src, lane by lane; unwritten elements stay unwritten."""

    propagates = True
    dst = write(Mem.UB, "repeat lane")
    src = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type")

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src"]}


declare(
    Duplicate,
    Member(
        name="vector_dup",
        since="m100",
        c_api="asc_duplicate",
        cpp="Duplicate",
        tik="vec_dup",
        doc="Fill dst with a scalar",
        types=("float16", "int16", "uint16", "bfloat16", "float32", "int32", "uint32"),
    ),
    __name__,
)
declare(
    Copy,
    Member(
        name="vcopy",
        since="m100",
        c_api="asc_copy",
        cpp="Copy",
        tik="vec_copy",
        doc="Copy lanes inside the Unified Buffer",
        types=("int16", "uint16", "int32", "uint32"),
    ),
    __name__,
)


@instruction(
    "vci",
    Pipe.V,
    names={"cpp": "CreateVecIndex"},
    source="basic API, CreateVecIndex (2201); C API general notes",
    uncertain=(
        "the index goes on from repeat to repeat: shown for one repeat, and for a count",
        "a half beyond 2048 is the nearest to first + index, ties to even",
        "int16 beyond its range wraps, or saturates under CTRL[53]",
    ),
    carried=True,
)
class Vci(Repeated):
    """dst = first + index, in every lane; lane e of repeat r has the index r * lanes + e."""

    dst = write(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type", *ARITHMETIC)
    first: int = param(-(2**31), 2**32 - 1, SCALAR_DOC)
    dst_block_stride: int = param(0, 65535, "32 B between dst's blocks", default=1)
    dst_repeat_stride: int = param(0, 255, "32 B between dst's repeats", default=8)

    def offsets_dst(self) -> Offsets:
        """Shape [repeats, lanes]."""
        return self.strided(self.dtype, self.dst_block_stride, self.dst_repeat_stride)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Count on from the first."""
        first = value_of(self.first, self.dtype)
        index = np.arange(self.repeats * self.width).reshape(self.repeats, self.width)
        exact = first.astype(np.float64 if self.dtype.kind == "float" else np.int64) + index
        return {"dst": settle(exact, self.dtype, registers)}


@instruction(
    "vbrcb",
    Pipe.V,
    names={"c_api": "asc_brcb", "cpp": "Brcb", "tik": "vbrcb"},
    source="asc-devkit, asc_brcb (2201); basic API, Brcb",
    carried=True,
)
class Vbrcb(Instruction):
    """Fill eight blocks of dst with one element each; `repeat` times, without a mask.

    Repeat r takes elements 8 r to 8 r + 7 of src; element i fills block r * dst_repeat_stride + i *
    dst_block_stride of dst, a dst_block_stride of 0 counting as 1. repeat 0: nothing happens. dst
    must not be src.
    """

    overlap = "none"
    signature = ("dst", "src", "dst_block_stride", "dst_repeat_stride", "repeat")
    dst = write(Mem.UB, "repeat block lane")
    src = read(Mem.UB, "repeat block")
    dtype: ElementType = types("element type", "uint16", "uint32", late=LATE_MOVED)
    repeat: int = param(0, 255, "repeats", default=1)
    dst_block_stride: int = param(0, 65535, "32 B between dst's blocks", default=1)
    dst_repeat_stride: int = param(0, 65535, "32 B between dst's repeats", default=8)

    def offsets_src(self) -> Offsets:
        """Shape [repeat, 8]."""
        return np.arange(self.repeat * _BLOCKS, dtype=np.intp).reshape(self.repeat, _BLOCKS)

    def offsets_dst(self) -> Offsets:
        """Shape [repeat, 8, C0]."""
        repeat = np.arange(self.repeat, dtype=np.intp)[:, None, None] * self.dst_repeat_stride
        block = np.arange(_BLOCKS, dtype=np.intp)[:, None] * (self.dst_block_stride or 1)
        c0 = self.dtype.c0
        return (repeat + block) * c0 + np.arange(c0, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Repeat each element over its block."""
        elements = inputs["src"][..., None]
        return {"dst": np.broadcast_to(elements, (*inputs["src"].shape, self.dtype.c0))}

    def cost(self, chip: Chip) -> InstructionCost:
        """A head and, at 256 bytes a cycle, a cycle for each repeat."""
        if not self.repeat:
            return InstructionCost(0)
        each = costs.vector_repeat_cycles(
            chip, self.name, self.dtype.name, _BLOCKS * DATA_BLOCK_BYTES // self.dtype.size_bytes
        )
        return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, self.repeat, each)))
