"""Gathers by offsets in memory: of elements, and of blocks of 32 bytes."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.common_3510 import PageTypes
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    Pipe,
    instruction,
    param,
    read,
    taken,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import BYTES, LATE_MOVED, LONG, Member, declare
from cubecore.isa.vector.common.repeated import Repeated
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES

UINT32 = element_type("uint32")
_BLOCKS = 8
_GATHERED = ("int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32")


def _picked(offsets: bytes | None, repeats: int, lanes: int) -> Offsets:
    """Return byte offsets, shape [repeats, lanes]; zeros before they are known."""
    if offsets is None:
        return np.zeros((repeats, lanes), np.intp)
    return np.frombuffer(offsets, np.uint32).astype(np.intp).reshape(repeats, lanes)


def _misaligned(name: str, offsets: Offsets, unit: int) -> list[Violation]:
    """Return a violation if an offset is no multiple of `unit` bytes."""
    wrong = np.argwhere(offsets % unit != 0)
    if not wrong.size:
        return []
    index = tuple(int(i) for i in wrong[0])
    got = f"{offsets[index]} at {list(index)}"
    return [Violation(f"{name}: the offsets", f"be multiples of {unit} B", got)]


@parameters
class Gather(Repeated):
    """dst[lane] = the element of src that lies offset[lane] bytes behind src's address.

    The offsets of successive lanes and repeats lie one after another. Offsets are multiples of the
    element; what they reach stays inside the Unified Buffer. Unwritten elements stay unwritten. dst
    must not meet src.
    """

    in_repeats = False
    propagates = True
    overlap = "none"
    steered_by = ("offset",)
    signature = ("dst", "src", "offset", "dst_repeat_stride", "repeat")
    offset_type: ClassVar[ElementType] = UINT32
    dst = write(Mem.UB, "repeat lane")
    src = read(Mem.UB, "repeat lane")
    offset = read(Mem.UB, "repeat lane", "offset_type", used=True)
    dtype: ElementType = types("element type")
    dst_repeat_stride: int = param(0, 65535, "32 B between dst's repeats", default=8)
    picks: bytes | None = taken("the offsets, taken when the instruction starts")

    @property
    def widest(self) -> ElementType:
        """The element that is gathered: a repeat fills eight blocks of dst."""
        return self.dtype

    def operands(self) -> tuple[Operand, ...]:
        """Dst, src and the offsets; src is aligned to an element, as a base address may be."""
        return _by_element(self.declared, self.dtype.size_bytes)

    def located(self, values: Mapping[str, Array]) -> Self:
        """Take the offsets."""
        return replace(self, picks=values["offset"].tobytes())

    def _bytes(self) -> Offsets:
        """Return the byte offset of each lane; 0 where the mask excludes it."""
        picked, on = _picked(self.picks, self.repeats, self.width), self.active("dst")
        return picked if on is None else np.where(on, picked, 0)

    def offsets_dst(self) -> Offsets:
        """Shape [repeats, lanes]."""
        return self.strided(self.dtype, 1, self.dst_repeat_stride)

    def offsets_src(self) -> Offsets:
        """Shape [repeats, lanes]."""
        return self._bytes() // self.dtype.size_bytes

    def offsets_offset(self) -> Offsets:
        """Shape [repeats, lanes]."""
        count = self.repeats * self.width
        return np.arange(count, dtype=np.intp).reshape(self.repeats, self.width)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Offsets are multiples of the element."""
        violations = super().preconditions(chip)
        return violations or _misaligned(self.name, self._bytes(), self.dtype.size_bytes)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src"]}


@lru_cache(maxsize=8)
def _by_element(declared: tuple[Operand, ...], size_bytes: int) -> tuple[Operand, ...]:
    dst, src, offset = declared
    return dst, replace(src, align_bytes=size_bytes), offset


declare(
    Gather,
    Member(
        name="vgather",
        since="2002",
        c_api="asc_gather",
        cpp="Gather",
        tik="vgather",
        doc="Gather elements by offsets",
        types=_GATHERED,
        late=PageTypes((*_GATHERED, *LONG), BYTES),
    ),
    __name__,
    source="basic API, Gather",
)


@instruction(
    "vgatherb",
    Pipe.V,
    names={"c_api": "asc_gather_datablock", "cpp": "Gatherb", "tik": "vgatherb"},
    source="asc-devkit, asc_gather_datablock (2201); basic API, Gatherb",
    carried=True,
)
class Vgatherb(Instruction):
    """Gather blocks of 32 bytes by offsets; without a mask.

    Block b of repeat r of dst is the block of src that lies offset[8 r + b] bytes behind src's
    address; offsets are multiples of 32 B and stay inside the Unified Buffer. A dst_block_stride of
    0 counts as 1. Unwritten elements stay unwritten. dst must not meet src. repeat 0: nothing
    happens.
    """

    propagates = True
    overlap = "none"
    steered_by = ("offset",)
    signature = ("dst", "src", "offset", "dst_repeat_stride", "dst_block_stride", "repeat")
    offset_type: ClassVar[ElementType] = UINT32
    dst = write(Mem.UB, "repeat block lane")
    src = read(Mem.UB, "repeat block lane")
    offset = read(Mem.UB, "repeat block", "offset_type", used=True)
    dtype: ElementType = types("element type", "uint16", "uint32", late=LATE_MOVED)
    repeat: int = param(0, 255, "repeats", default=1)
    dst_block_stride: int = param(0, 255, "32 B between dst's blocks", default=1)
    dst_repeat_stride: int = param(0, 65535, "32 B between dst's repeats", default=8)
    picks: bytes | None = taken("the offsets, taken when the instruction starts")

    def located(self, values: Mapping[str, Array]) -> Self:
        """Take the offsets."""
        return replace(self, picks=values["offset"].tobytes())

    def elements_of(self, blocks: Offsets) -> Offsets:
        """Return every element's offset, from the blocks' in elements."""
        return blocks[..., None] + np.arange(self.dtype.c0, dtype=np.intp)

    def offsets_dst(self) -> Offsets:
        """Shape [repeat, 8, C0]."""
        repeat = np.arange(self.repeat, dtype=np.intp)[:, None] * self.dst_repeat_stride
        block = np.arange(_BLOCKS, dtype=np.intp) * (self.dst_block_stride or 1)
        return self.elements_of((repeat + block) * self.dtype.c0)

    def offsets_src(self) -> Offsets:
        """Shape as dst's."""
        picked = _picked(self.picks, self.repeat, _BLOCKS)
        return self.elements_of(picked // self.dtype.size_bytes)

    def offsets_offset(self) -> Offsets:
        """Shape [repeat, 8]."""
        return np.arange(self.repeat * _BLOCKS, dtype=np.intp).reshape(self.repeat, _BLOCKS)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Offsets are multiples of a block."""
        picked = _picked(self.picks, self.repeat, _BLOCKS)
        return _misaligned(self.name, picked, DATA_BLOCK_BYTES)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src"]}

    def cost(self, chip: Chip) -> InstructionCost:
        """A head, and for each repeat what the chip states."""
        if not self.repeat:
            return InstructionCost(0)
        lanes = _BLOCKS * self.dtype.c0
        each = costs.vector_repeat_cycles(chip, self.name, self.dtype.name, lanes)
        return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, self.repeat, each)))
