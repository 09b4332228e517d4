"""vsel: take each lane from one of two sources, in its three modes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.declare.common_3510 import PageTypes
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import Mem, Operand, param, read, taken, types, write
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import LATE_ANY, Member, declare
from cubecore.isa.vector.common.repeated import Repeated
from cubecore.isa.vector.elementwise.binary import BinaryStrides
from cubecore.isa.vector.elementwise.compare import CMP_MASK_BYTES
from cubecore.layouts import Offsets
from cubecore.numerics.conversion import value_of

UINT8 = element_type("uint8")
_LATE = PageTypes(LATE_ANY.types)
"""3510's page has 8 and 64 bits, too, which no mode takes here."""


def _lanes(bits: bytes, repeats: int, width: int) -> NDArray[np.bool_]:
    """Return bits as booleans, shape [repeats, width]; one repeat's bits serve every repeat."""
    if not repeats:
        return np.zeros((0, width), np.bool_)
    lanes = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").astype(np.bool_)
    if lanes.size < repeats * width:
        return np.broadcast_to(lanes[:width], (repeats, width))
    return lanes[: repeats * width].reshape(repeats, width)


@parameters
class Selects(Repeated):
    """The fields common to the modes: `chosen` are the bits, 1 for src0; None until known."""

    reads_left = True
    resolved_by_left = True
    register = "cmp_mask"
    chosen: bytes | None = taken("the bits, taken when the instruction starts")

    def chooses(self) -> NDArray[np.bool_] | None:
        """Return which lanes take src0; None before the bits are known."""
        return None if self.chosen is None else _lanes(self.chosen, self.repeats, self.width)

    def reaching(self) -> Self:
        """Before the bits are known: it may take any lane from either source."""
        return self if self.chosen is None else replace(self, chosen=None)

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """The mask, and of the sources the lanes that are taken from each."""
        on, chosen = super().active(operand), self.chooses()
        if chosen is None or operand == "dst":
            return on
        of_operand = chosen if operand == "src0" else ~chosen
        return of_operand if on is None else on & of_operand


@parameters
class BitsInMemory(Selects):
    """The modes whose bits lie in UB, those of one repeat behind those of the last."""

    in_repeats = False
    steered_by = ("sel",)
    bit_type: ClassVar[ElementType] = UINT8
    dtype: ElementType = types("element type", *HALF_AND_FLOAT, late=_LATE)
    chosen: bytes | None = taken("the bits, taken when the instruction starts")

    @property
    def widest(self) -> ElementType:
        """The sources' type."""
        return self.dtype

    def located(self, values: Mapping[str, Array]) -> Self:
        """Take the bits."""
        return replace(self, chosen=values["sel"].tobytes())

    def offsets(self, operand: str) -> Offsets:
        """Of the bits: shape [repeats, lanes / 8]."""
        if operand != "sel":
            return super().offsets(operand)
        size = self.width // 8
        return np.arange(self.repeats * size, dtype=np.intp).reshape(self.repeats, size)

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """Every bit is read."""
        return None if operand == "sel" else super().active(operand)

    def bits(self, inputs: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Return which lanes take src0, shape [repeats, lanes]; of several cores as well."""
        return np.unpackbits(inputs["sel"], axis=-1, bitorder="little").view(np.bool_)


@parameters
class SelectByRegister(BinaryStrides, Selects):
    """dst = src0 where CMPMASK has a 1, else src1; every repeat uses the same bits."""

    dst = write(Mem.UB, "repeat lane")
    src0 = read(Mem.UB, "repeat lane")
    src1 = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type", *HALF_AND_FLOAT, late=_LATE)
    chosen: bytes | None = taken("CMPMASK, taken when the instruction starts")

    def resolved(self, registers: Registers) -> Self:
        """Take the mask and CMPMASK."""
        raw = registers.cmp_mask.to_bytes(CMP_MASK_BYTES, "little")
        return replace(super().resolved(registers), chosen=raw[: self.width // 8])

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Choose; one repeat's bits serve all."""
        bits = _lanes(self.chosen or b"", 1, self.width)
        return {"dst": np.where(bits, inputs["src0"], inputs["src1"])}


@parameters
class SelectByTensor(BitsInMemory, BinaryStrides):
    """dst = src0 where a bit in memory is 1, else src1; each repeat uses bits of its own.

    The bits lie one repeat's behind the last one's. Their address in UB is the low half of CMPMASK,
    which set_cmpmask has loaded.
    """

    addressed_by_left = True
    dst = write(Mem.UB, "repeat lane")
    src0 = read(Mem.UB, "repeat lane")
    src1 = read(Mem.UB, "repeat lane")
    sel = read(Mem.UB, "repeat byte", "bit_type")
    sel_at: int | None = taken("the bits' address, taken when the instruction starts")

    def resolved(self, registers: Registers) -> Self:
        """Take the mask and the bits' address."""
        return replace(super().resolved(registers), sel_at=registers.cmp_mask & 2**64 - 1)

    def operands(self) -> tuple[Operand, ...]:
        """Dst and the sources; when the instruction starts, the bits too."""
        return self.declared if self.sel_at is not None else self.declared[:3]

    def fully_addressed(self) -> Self:
        """With the bits, which calls give behind the sources."""
        return replace(self, sel_at=0)

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """As given; the bits where CMPMASK says."""
        return (*addresses, self.sel_at or 0)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Choose."""
        return {"dst": np.where(self.bits(inputs), inputs["src0"], inputs["src1"])}


@parameters
class SelectScalar(BitsInMemory):
    """dst = src0 where a bit in memory is 1, else CMPMASK's scalar; each repeat has its own bits.

    The bits lie one repeat's behind the last one's. The scalar is the first element of what
    set_cmpmask has loaded.
    """

    dst = write(Mem.UB, "repeat lane")
    src0 = read(Mem.UB, "repeat lane")
    sel = read(Mem.UB, "repeat byte", "bit_type")
    dst_block_stride: int = param(0, 255, "32 B between dst's blocks", default=1)
    src0_block_stride: int = param(0, 255, "32 B between src0's blocks", default=1)
    dst_repeat_stride: int = param(0, 255, "32 B between dst's repeats", default=8)
    src0_repeat_stride: int = param(0, 255, "32 B between src0's repeats", default=8)

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeats, lanes], of the bits [repeats, lanes / 8]."""
        if operand == "sel":
            return super().offsets(operand)
        block: int = getattr(self, f"{operand}_block_stride")
        repeat: int = getattr(self, f"{operand}_repeat_stride")
        return self.strided(self.dtype, block, repeat)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Choose."""
        scalar = value_of(registers.cmp_mask, self.dtype)
        return {"dst": np.where(self.bits(inputs), inputs["src0"], scalar)}


_PAGE = "basic API, Select and SetCmpMask"
declare(
    SelectByRegister,
    Member(
        name="vsel",
        since="m100",
        c_api="asc_select",
        cpp="Select",
        tik="vec_sel",
        doc="Take each lane from one of two sources, by CMPMASK",
    ),
    __name__,
    source=_PAGE,
)
declare(
    SelectByTensor,
    Member(
        name="vsel_tensor",
        since="2002",
        c_api="",
        cpp="Select",
        doc="Take each lane from one of two sources, by bits in memory",
        uncertain=("the whole low half of CMPMASK is the bits' address: inferred",),
    ),
    __name__,
    source=_PAGE,
)
declare(
    SelectScalar,
    Member(
        name="vsel_scalar",
        since="2002",
        c_api="",
        cpp="Select",
        doc="Take each lane from a source or a scalar, by bits in memory",
    ),
    __name__,
    source=_PAGE,
)
