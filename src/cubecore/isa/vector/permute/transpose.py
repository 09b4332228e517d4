"""Transposes: 16 x 16 in place of a repeat, and blocks at sixteen addresses (NCHW to 5HD)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
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
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES

_EDGE = 16
_ADDRESSES = 8
"""Addresses that one VA register holds."""


def _cycles(
    template: Instruction, chip: Chip, element: str, repeats: int, lanes: int
) -> InstructionCost:
    if not repeats:
        return InstructionCost(0)
    each = costs.vector_repeat_cycles(chip, template.name, element, lanes)
    return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, repeats, each)))


@instruction(
    "vtranspose",
    Pipe.V,
    since="m100",
    names={"c_api": "asc_transpose", "cpp": "Transpose", "tik": "vec_trans"},
    source="asc-devkit, asc_transpose (2201, 3510)",
    archs=("2201", "3510"),
)
class Vtranspose(Instruction):
    """Transpose 16 x 16 elements of 16 bits, 512 bytes each of src and dst; without a mask.

    Unwritten elements stay unwritten. dst may be src.
    """

    propagates = True
    overlap = "general"
    dst = write(Mem.UB, "repeat row column")
    src = read(Mem.UB, "repeat column row")
    dtype: ElementType = types("element type", "int16", "uint16")

    def offsets_dst(self) -> Offsets:
        """Shape [1, 16, 16]."""
        return np.arange(_EDGE**2, dtype=np.intp).reshape(1, _EDGE, _EDGE)

    def offsets_src(self) -> Offsets:
        """Shape [1, 16, 16], already transposed."""
        return self.offsets_dst().transpose(0, 2, 1)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src"]}

    def cost(self, chip: Chip) -> InstructionCost:
        """A head, and 512 bytes at the chip's rate."""
        return _cycles(self, chip, self.dtype.name, 1, _EDGE**2)


def _address(number: int) -> Any:
    high = 2**32 - DATA_BLOCK_BYTES
    return param(0, high, f"address {number} in UB, bytes", multiple=DATA_BLOCK_BYTES)


@instruction(
    "set_va_reg_sb",
    Pipe.V,
    since="m100",
    names={"c_api": "asc_set_va_reg"},
    source="asc-devkit, asc_set_va_reg (2201, 3510)",
    archs=("2201", "3510"),
)
class SetVaRegSb(Instruction):
    """Put eight addresses of blocks into a VA register."""

    va: int = param(0, 7, "VA0 to VA7")
    address0: int = _address(0)
    address1: int = _address(1)
    address2: int = _address(2)
    address3: int = _address(3)
    address4: int = _address(4)
    address5: int = _address(5)
    address6: int = _address(6)
    address7: int = _address(7)

    def apply(self, registers: Registers) -> Registers:
        """Keep the addresses."""
        given = tuple(getattr(self, f"address{i}") for i in range(_ADDRESSES))
        kept = list(registers.block_addresses)
        kept[self.va] = given
        return replace(registers, block_addresses=tuple(kept))


_BY_REGISTER = ("dst_va", "src_va", "repeat", "dst_stride", "src_stride")


@parameters
class To5hd(Instruction):
    """Transpose between sixteen blocks of src and sixteen of dst, wherever they lie; no mask.

    Two successive VA registers hold the addresses of dst's blocks, two those of src's. Repeat r
    adds r times the strides to every address; a single repeat adds the strides once (documented so:
    a stride of 0 avoids it). repeat 0: nothing happens. Unwritten elements stay unwritten.
    """

    in_repeats = True
    propagates = True
    overlap = "general"
    signature: ClassVar[tuple[str, ...]] = _BY_REGISTER
    unit: ClassVar[ElementType]
    dst = write(Mem.UB, "repeat row column", "unit")
    src = read(Mem.UB, "repeat row column", "unit")
    dst_va: int = param(0, 6, "first of the two VA registers with dst's addresses")
    src_va: int = param(0, 6, "first of the two VA registers with src's addresses")
    repeat: int = param(0, 255, "repeats", default=1)
    dst_stride: int = param(0, 65535, "32 B between dst's repeats", default=0)
    src_stride: int = param(0, 65535, "32 B between src's repeats", default=0)
    blocks: tuple[tuple[int, ...], tuple[int, ...]] | None = taken(
        "addresses of dst's and src's blocks, taken when the instruction starts"
    )

    def resolved(self, registers: Registers) -> Self:
        """Take the addresses."""
        held = registers.block_addresses
        count = len(held)  # a register that there is not is found by its range, later
        starts = (self.dst_va, self.src_va)
        dst, src = (held[va % count] + held[(va + 1) % count] for va in starts)
        return replace(self, blocks=(dst, src))

    def operands(self) -> tuple[Operand, ...]:
        """None is given an address; when the instruction starts, dst and src."""
        return () if self.blocks is None else self.declared

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """The offsets count from the start of the Unified Buffer."""
        return (0, 0)

    def _blocks(self, operand: str) -> Offsets:
        """Return the address of each block in each repeat, in elements: [repeat, 16]."""
        held = self.blocks or ((0,) * _EDGE,) * 2
        at, stride = (held[0], self.dst_stride) if operand == "dst" else (held[1], self.src_stride)
        # As documented: a single repeat adds the strides once, several begin without.
        first = 1 if self.repeat == 1 else 0
        moved = np.arange(first, first + self.repeat, dtype=np.intp) * stride * DATA_BLOCK_BYTES
        return (moved[:, None] + np.array(at, np.intp)) // self.unit.size_bytes

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src"]}

    def cost(self, chip: Chip) -> InstructionCost:
        """A head, and for each repeat what the chip states."""
        lanes = _EDGE * DATA_BLOCK_BYTES // self.unit.size_bytes
        return _cycles(self, chip, self.unit.name, self.repeat, min(lanes, _EDGE**2))


_PAGE = "asc-devkit, asc_transto5hd (2201, 3510); basic API, TransDataTo5HD"
_ARCHS = ("2201", "3510")


def _names(bits: int) -> dict[str, str]:
    return {"c_api": f"asc_transto5hd_b{bits}", "cpp": "TransDataTo5HD", "tik": "vec_trans_scatter"}


@instruction(
    "scatter_vnchwconv_b16", Pipe.V, since="m100", names=_names(16), source=_PAGE, archs=_ARCHS
)
class ScatterVnchwconvB16(To5hd):
    """Element i of src's block j becomes element j of dst's block i: 16 x 16 of 16 bits."""

    unit = element_type("uint16")

    def offsets_dst(self) -> Offsets:
        """Shape [repeat, 16, 16]."""
        return self._blocks("dst")[:, :, None] + np.arange(_EDGE, dtype=np.intp)

    def offsets_src(self) -> Offsets:
        """Shape as dst's."""
        return self._blocks("src")[:, None, :] + np.arange(_EDGE, dtype=np.intp)[:, None]


@instruction(
    "scatter_vnchwconv_b32", Pipe.V, since="m100", names=_names(32), source=_PAGE, archs=_ARCHS
)
class ScatterVnchwconvB32(To5hd):
    """Element i of src's block j becomes element j of the pair of dst's blocks 2 i and 2 i + 1.

    16 x 8 of 32 bits: the first eight of src go to block 2 i, the others to block 2 i + 1.
    """

    unit = element_type("uint32")

    def offsets_dst(self) -> Offsets:
        """Shape [repeat, 8, 16]."""
        # [repeat, pair, 16]: element i of all sixteen sources fills the two blocks of dst's pair i,
        # eight elements in each.
        half = _EDGE // 2
        pairs = self._blocks("dst").reshape(self.repeat, half, 2)
        lanes = np.arange(half, dtype=np.intp)
        return (pairs[:, :, :, None] + lanes).reshape(self.repeat, half, _EDGE)

    def offsets_src(self) -> Offsets:
        """Shape as dst's."""
        return self._blocks("src")[:, None, :] + np.arange(_EDGE // 2, dtype=np.intp)[:, None]


@instruction(
    "scatter_vnchwconv_b8", Pipe.V, since="m100", names=_names(8), source=_PAGE, archs=_ARCHS
)
class ScatterVnchwconvB8(To5hd):
    """Byte i of one half of src's block j becomes byte j of one half of dst's block i: 16 x 16.

    The other half of dst's blocks keeps its bytes.
    """

    signature = (*_BY_REGISTER, "dst_high_half", "src_high_half")
    unit = element_type("uint8")
    dst_high_half: bool = param(0, 1, "fill the upper half of dst's blocks", default=False)
    src_high_half: bool = param(0, 1, "take the upper half of src's blocks", default=False)

    def offsets_dst(self) -> Offsets:
        """Shape [repeat, 16, 16]."""
        lanes = np.arange(_EDGE, dtype=np.intp) + (_EDGE if self.dst_high_half else 0)
        return self._blocks("dst")[:, :, None] + lanes

    def offsets_src(self) -> Offsets:
        """Shape as dst's."""
        lanes = np.arange(_EDGE, dtype=np.intp) + (_EDGE if self.src_high_half else 0)
        return self._blocks("src")[:, None, :] + lanes[:, None]


@instruction(
    "v4dtrans",
    Pipe.V,
    names={"tik": "v4dtrans"},
    source="inferred from how public TIK programs use the call",
    archs=("2002",),
    copies=True,
    uncertain=("matrices lie without gaps: no known program has any",),
)
class V4dtrans(Instruction):
    """Transpose a matrix in UB: [C, HW] to [HW, C] with chw2hwc, else [HW, C] to [C, HW]."""

    overlap = "none"
    dst = write(Mem.UB, "row column")
    src = read(Mem.UB, "row column")
    dtype: ElementType = types(
        "element type", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"
    )
    chw2hwc: bool = param(0, 1, "from channels outside to channels inside", default=False)
    hw_size: int = param(1, 4095, "points")
    c_size: int = param(1, 4095, "channels")

    def offsets_dst(self) -> Offsets:
        """Shape [C, HW], or [HW, C] with chw2hwc turned off; as src is walked."""
        rows, columns = self._shape
        return np.arange(rows * columns, dtype=np.intp).reshape(columns, rows).T

    def offsets_src(self) -> Offsets:
        """Shape as dst's, in the order of memory."""
        rows, columns = self._shape
        return np.arange(rows * columns, dtype=np.intp).reshape(rows, columns)

    @property
    def _shape(self) -> tuple[int, int]:
        """Rows and columns of the source."""
        shape = (self.c_size, self.hw_size)
        return shape if self.chw2hwc else shape[::-1]
