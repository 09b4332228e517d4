"""Conversions of integers with a scale: DEQSCALE and the instructions that read it."""

import struct
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import FLOAT16, INT16, INT32, ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import (
    Instruction,
    Mem,
    Operand,
    Pipe,
    choice,
    instruction,
    param,
    read,
    taken,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import Member, declare
from cubecore.isa.vector.elementwise.unary import UnaryStrides
from cubecore.layouts import Offsets
from cubecore.numerics.conversion import to_float, to_integer, value_of
from cubecore.units import DATA_BLOCK_BYTES

UINT64 = element_type("uint64")
_HALF_BLOCK_BYTES = DATA_BLOCK_BYTES // 2
_SCALES = 16
"""Scales of the vector form: one for each lane of a block of 16-bit elements."""
_OFFSET_BIT, _OFFSET_BITS, _SIGN_BIT = 37, 9, 46


def deq_word(scale: float, offset: int, *, signed: bool) -> int:
    """Return DEQSCALE for 8-bit results: a float scale, a 9-bit offset, and whether they are int8.

    Only the low 9 bits of `offset` count (asc-devkit, asc_set_deq_scale).
    """
    (bits,) = struct.unpack("<I", struct.pack("<f", scale))
    low = offset & (1 << _OFFSET_BITS) - 1
    return int(bits) | low << _OFFSET_BIT | int(signed) << _SIGN_BIT


@instruction(
    "set_deqscale",
    Pipe.V,
    since="m100",
    names={"c_api": "asc_set_deq_scale", "cpp": "SetDeqScale"},
    source="asc-devkit, asc_set_deq_scale (2201)",
    carried=True,
)
class SetDeqscale(Instruction):
    """Set DEQSCALE's 64 bits.

    For vconv_deq the low 16 bits are a half scale. For vconv_deqs162b8: bits 31 to 0 a float scale,
    45 to 37 a signed offset, 46 whether the result is int8 (`deq_word` packs them). For
    vconv_vdeqs162b8: the address in UB, in 32 bytes, of 16 such words.
    """

    value: int = param(0, 2**64 - 1, "the register")

    def apply(self, registers: Registers) -> Registers:
        """Keep the word."""
        return replace(registers, deq_scale=self.value)


@parameters
class Dequantise(UnaryStrides):
    """dst = src * scale rounded to half, lane by lane; the scale is DEQSCALE's half.

    Beyond the largest half it is infinite if CTRL[48], else the largest.
    """

    src_type: ClassVar[ElementType] = INT32
    dst_type: ClassVar[ElementType] = FLOAT16
    dst = write(Mem.UB, "repeat lane", "dst_type")
    src = read(Mem.UB, "repeat lane", "src_type")
    dst_repeat_stride: int = param(0, 255, "32 B between dst's repeats", default=4)
    src_repeat_stride: int = param(0, 255, "32 B between src's repeats", default=8)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Multiply exactly, then round."""
        scale = value_of(registers.deq_scale, FLOAT16).astype(np.float64)
        finite = not registers.float_ieee
        with np.errstate(all="ignore"):
            exact = inputs["src"].astype(np.float64) * scale
            return {"dst": to_float(exact, FLOAT16, "rint", finite=finite)}


def _factors(words: Array) -> tuple[Array, Array]:
    """Return the scales and the offsets of words, in float64: of both it has every value."""
    # A word: bits 0 to 31 the float scale, 37 to 45 the offset in two's complement, 46 the sign.
    scale = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
    offset = words >> np.uint64(_OFFSET_BIT) & np.uint64((1 << _OFFSET_BITS) - 1)
    signed = offset.astype(np.int64)
    signed = signed - (signed >> (_OFFSET_BITS - 1) << _OFFSET_BITS)
    with np.errstate(invalid="ignore"):
        return scale.astype(np.float64), signed.astype(np.float64)


@lru_cache(maxsize=256)
def _factors_of(word: int) -> tuple[Array, Array]:
    """Return those of DEQSCALE."""
    return _factors(np.array([word], np.uint64))


@parameters
class DequantiseBytes(UnaryStrides):
    """dst = src * scale + offset as 8 bits, in one half of each block of dst.

    A block of 16 int16 gives 16 bytes, which fill the upper or the lower half of dst's block; the
    other half keeps its old bytes. The result is the nearest integer (ties to even), saturated; NaN
    gives 0.
    """

    dense = MappingProxyType({"dst": 8})
    src_type: ClassVar[ElementType] = INT16
    dst = write(Mem.UB, "repeat lane", "dst_type")
    src = read(Mem.UB, "repeat lane", "src_type")
    dst_type: ElementType = types("dst's element type", "int8", "uint8")
    half: str = choice("half of dst's blocks", "high", "low", default="high")
    dst_repeat_stride: int = param(0, 255, "32 B between dst's repeats", default=8)
    src_repeat_stride: int = param(0, 255, "32 B between src's repeats", default=8)
    scale: int | None = taken("DEQSCALE, taken when the instruction starts")

    def resolved(self, registers: Registers) -> Self:
        """Take the mask and the scale."""
        return replace(super().resolved(registers), scale=registers.deq_scale)

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeats, lanes]."""
        if operand == "src":
            return super().offsets(operand)
        lane = np.arange(self.width, dtype=np.intp)
        repeat = np.arange(self.repeats, dtype=np.intp)[:, None] * self.dst_repeat_stride
        block = repeat + lane // _SCALES * self.dst_block_stride
        upper = _HALF_BLOCK_BYTES if self.half == "high" else 0
        return block * DATA_BLOCK_BYTES + upper + lane % _SCALES

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Scale every lane by DEQSCALE."""
        return self.scaled(inputs["src"], *_factors_of(registers.deq_scale))

    def scaled(self, values: Array, scale: Array, offset: Array) -> Mapping[str, Array]:
        """Return values * scale + offset in dst's type, lane by lane."""
        with np.errstate(all="ignore"):
            exact = values.astype(np.float64) * scale + offset
            return {"dst": to_integer(exact, self.dst_type, "rint", wraps=False)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """DEQSCALE says the sign that dst's type has."""
        violations = super().preconditions(chip)
        if self.scale is not None:
            violations += self.sign_violations(np.array([self.scale], np.uint64))
        return violations

    def sign_violations(self, words: Array) -> list[Violation]:
        """Return a violation if a word's sign bit is not dst's type's."""
        signed = (words >> np.uint64(_SIGN_BIT) & np.uint64(1)).astype(bool)
        if (signed == (self.dst_type.kind == "int")).all():
            return []
        stated = "int8" if signed[0] else "uint8"
        needs = f"state the sign of {self.dst_type}"
        return [Violation(f"{self.name}: DEQSCALE", needs, stated if signed.size == 1 else "mixed")]


@parameters
class DequantiseBytesByLane(DequantiseBytes):
    """dst = src * scale[lane] + offset[lane] as 8 bits, in one half of each block of dst.

    DEQSCALE holds the address, in 32 bytes, of 16 words, one for each lane of a block. Otherwise as
    vconv_deqs162b8.
    """

    in_repeats = False
    steered_by = ("scales",)
    word_type: ClassVar[ElementType] = UINT64
    signature = (
        *("dst", "src", "repeat", "dst_block_stride", "src_block_stride"),
        *("dst_repeat_stride", "src_repeat_stride"),
    )
    scales = read(Mem.UB, "lane", "word_type")
    signs: bool | None = taken("whether the words in memory state dst's sign")

    def operands(self) -> tuple[Operand, ...]:
        """Dst and src; when the instruction starts, the scales too."""
        return self.declared if self.scale is not None else self.declared[:2]

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """Dst and src as given; the scales where DEQSCALE says."""
        return (*addresses, (self.scale or 0) * DATA_BLOCK_BYTES)

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeats, lanes], of the scales [16]."""
        return (
            np.arange(_SCALES, dtype=np.intp) if operand == "scales" else super().offsets(operand)
        )

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """Every scale is read."""
        return None if operand == "scales" else super().active(operand)

    def located(self, values: Mapping[str, Array]) -> Self:
        """Look at the words' signs."""
        return replace(self, signs=not self.sign_violations(values["scales"]))

    @property
    def widest(self) -> ElementType:
        """int16: the scales do not count."""
        return self.src_type

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Scale every lane by the word of its place in a block."""
        words = np.tile(inputs["scales"], self.width // _SCALES)
        return self.scaled(inputs["src"], *_factors(words))

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The words say the sign that dst's type has."""
        violations = UnaryStrides.preconditions(self, chip)
        if self.signs is False:
            needs = f"state the sign of {self.dst_type}"
            violations.append(Violation(f"{self.name}: the scales", needs, "another"))
        return violations


_ONCE = ("the product, and the sum with the offset, are rounded once: inferred",)
declare(
    Dequantise,
    Member(
        name="vconv_deq",
        since="m100",
        c_api="asc_deq_int322half",
        cpp="CastDequant",
        doc="Scale int32 and convert to half",
        uncertain=_ONCE,
    ),
    __name__,
    source="boundary values of Memory vector compute, table 29",
)
for _base, _name, _c_api, _doc in (
    (DequantiseBytes, "vconv_deqs162b8", "asc_deq_int162b8", "by one scale"),
    (DequantiseBytesByLane, "vconv_vdeqs162b8", "asc_vdeq_int162b8", "by a scale for each lane"),
):
    declare(
        _base,
        Member(
            name=_name,
            c_api="",
            cpp="CastDequant",
            doc=f"Scale int16 {_doc} and convert to 8 bits",
            uncertain=_ONCE,
            variants={f"{_c_api}_h": {"half": "high"}, f"{_c_api}_l": {"half": "low"}},
        ),
        __name__,
        source=f"asc-devkit, {_c_api}_h and {_c_api}_l",
    )
