"""Gather mask: the elements that a pattern of bits keeps, one behind another."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
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
from cubecore.isa.vector.common.mask import REPEAT_BYTES
from cubecore.layouts import Offsets
from cubecore.units import ceil_div

_MOST_ELEMENTS = 2**23
"""More than any pattern can ask for in normal mode: 65535 repeats of 128."""
_PATTERNS = {1: 0b0101, 2: 0b1010, 3: 0b0001, 4: 0b0010, 5: 0b0100, 6: 0b1000, 7: 0b1111}
"""Built-in patterns, repeated every four elements (asc-devkit, asc_reduce)."""


@parameters
class GatherMask(Instruction):
    """The semantics common to gather mask and squeeze: the elements kept, and their addresses."""

    overlap = "whole"  # general notes of the C API, by a reference of asc_reduce and asc_squeeze
    register = "kept"
    propagates = True
    dst = write(Mem.UB, "element")
    src0 = read(Mem.UB, "element")
    src1 = read(Mem.UB, "repeat word", used=True)
    dtype: ElementType = types("element type", "uint16", "uint32")
    counted: int | None = taken("elements of a repeat in counter mode, taken when it starts")
    bits: bytes | None = taken("the pattern in memory, taken when it starts")
    repeat: int
    src0_block_stride: int
    src0_repeat_stride: int
    src1_repeat_stride: int

    def resolved(self, registers: Registers) -> Self:
        """Take the count of counter mode."""
        count = registers.mask_low & 0xFFFFFFFF if registers.mask_counts else None
        return replace(self, counted=count)

    @property
    def width(self) -> int:
        """Elements of a repeat: 256 bytes, or what counter mode counts."""
        full = REPEAT_BYTES // self.dtype.size_bytes
        return full if self.counted is None else self.counted

    def located(self, values: Mapping[str, Array]) -> Self:
        """Take the pattern."""
        words = values.get("src1")
        return self if words is None else replace(self, bits=words.tobytes())

    def keeps(self) -> NDArray[np.bool_]:
        """Return which elements are kept, shape [repeat, width]."""
        return np.zeros((self.repeat, self.width), np.bool_)

    def stored(self) -> NDArray[np.bool_]:
        """Return the pattern in memory, shape [repeat, width]; all zeros before it is known."""
        if self.bits is None:
            return np.zeros((self.repeat, self.width), np.bool_)
        # Each repeat begins a new word of the pattern; surplus bits of its last word do not count.
        size = ceil_div(self.width, self.dtype.bits) * self.dtype.size_bytes
        raw = np.frombuffer(self.bits, np.uint8).reshape(self.repeat, size)
        bits = np.unpackbits(raw, axis=1, bitorder="little")[:, : self.width]
        return bits.astype(np.bool_)

    def offsets_src0(self) -> Offsets:
        """Shape [kept elements]."""
        c0 = self.dtype.c0
        repeat, element = np.nonzero(self.keeps())
        block = repeat * self.src0_repeat_stride + element // c0 * self.src0_block_stride
        return np.asarray(block * c0 + element % c0, np.intp)

    def offsets_dst(self) -> Offsets:
        """Shape [kept elements]: one behind another."""
        return np.arange(int(self.keeps().sum()), dtype=np.intp)

    def offsets_src1(self) -> Offsets:
        """Shape [repeat, words]."""
        words = ceil_div(self.width, self.dtype.bits)
        start = np.arange(self.repeat, dtype=np.intp)[:, None] * self.src1_repeat_stride
        return start * self.dtype.c0 + np.arange(words, dtype=np.intp)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Counter mode asks for no more than 65535 repeats of 256 bytes may have."""
        if self.repeat * self.width <= _MOST_ELEMENTS:
            return []
        needs = f"take at most {_MOST_ELEMENTS} elements"
        return [
            Violation(f"{self.name}: repeats of the count", needs, str(self.repeat * self.width))
        ]

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src0"]}

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Count what was kept."""
        return registers.leaving("kept", int(inputs["src0"].size))

    def cost(self, chip: Chip) -> InstructionCost:
        """A head, and for each repeat what the chip states."""
        repeats = self.repeat * ceil_div(self.width, REPEAT_BYTES // self.dtype.size_bytes)
        if not repeats:
            return InstructionCost(0)
        lanes = REPEAT_BYTES // self.dtype.size_bytes
        each = costs.vector_repeat_cycles(chip, self.name, self.dtype.name, lanes)
        return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, repeats, each)))


@instruction(
    "vreducev2",
    Pipe.V,
    since="2002",
    names={"c_api": "asc_reduce", "cpp": "GatherMask"},
    source="asc-devkit, asc_reduce (2201); basic API, GatherMask",
    uncertain=("repeats of counter mode may be longer than 256 bytes: from a figure",),
    carried=True,
)
class Vreducev2(GatherMask):
    """Keep the elements that a pattern names, one behind another; the mask bits do not count.

    pattern 1 to 7: of every four elements those whose bit is set in 0101, 1010, 0001, 0010, 0100,
    1000, 1111 (the first element is the lowest bit). pattern 0: element e of repeat r is kept if
    bit e of src1's repeat r is set. In counter mode each repeat has as many elements as the mask
    counts, else 256 bytes. RSVD_CNT takes the number of kept elements. Unwritten elements stay
    unwritten. repeat 0: nothing happens.
    """

    steered_by = ("src1",)
    signature = (
        *("dst", "src0", "src1", "repeat", "src0_block_stride"),
        *("pattern", "src0_repeat_stride", "src1_repeat_stride"),
    )
    count_form: ClassVar[Mapping[str, Any] | None] = MappingProxyType({"pattern": 0})
    repeat: int = param(0, 65535, "repeats", default=1)
    src0_block_stride: int = param(0, 255, "32 B between src0's blocks", default=1)
    pattern: int = param(0, 7, "built-in pattern; 0: the bits of src1")
    src0_repeat_stride: int = param(0, 65535, "32 B between src0's repeats", default=8)
    src1_repeat_stride: int = param(0, 255, "32 B between src1's repeats", default=1)

    def operands(self) -> tuple[Operand, ...]:
        """Dst and src0, and for pattern 0 src1."""
        return self.declared if self.pattern == 0 else self.declared[:2]

    def keeps(self) -> NDArray[np.bool_]:
        """Shape [repeat, width]."""
        if self.pattern == 0:
            return self.stored()
        return np.broadcast_to(_built_in(self.pattern, self.width), (self.repeat, self.width))


@lru_cache(maxsize=64)
def _built_in(pattern: int, width: int) -> NDArray[np.bool_]:
    kept = _PATTERNS.get(pattern, 0)  # of another a finding says so
    return (kept >> np.arange(width) % 4 & 1).astype(np.bool_)


@instruction(
    "vreduce",
    Pipe.V,
    since="2002",
    names={"c_api": "asc_squeeze"},
    source="asc-devkit, asc_squeeze (2201)",
    uncertain=(
        "the page says no more than that src1's bits compress src0: the bits are consumed as by "
        "vreducev2, results lie one behind another, and dst's strides have no effect",
    ),
    carried=True,
)
class Vreduce(GatherMask):
    """Keep the elements of src0 whose bit is set in src1, one behind another.

    RSVD_CNT takes the number of kept elements. Unwritten elements stay unwritten. repeat 0: nothing
    happens.
    """

    steered_by = ("src1",)
    signature = (
        *("dst", "src0", "src1", "repeat"),
        *("dst_block_stride", "src0_block_stride", "src1_block_stride"),
        *("dst_repeat_stride", "src0_repeat_stride", "src1_repeat_stride"),
    )
    repeat: int = param(0, 255, "repeats", default=1)
    dst_block_stride: int = param(0, 255, "no effect", default=1)
    src0_block_stride: int = param(0, 255, "32 B between src0's blocks", default=1)
    src1_block_stride: int = param(0, 255, "no effect", default=1)
    dst_repeat_stride: int = param(0, 255, "no effect", default=8)
    src0_repeat_stride: int = param(0, 255, "32 B between src0's repeats", default=8)
    src1_repeat_stride: int = param(0, 255, "32 B between src1's repeats", default=8)

    def keeps(self) -> NDArray[np.bool_]:
        """Shape [repeat, width]."""
        return self.stored()


@instruction(
    "get_rsvd_cnt",
    Pipe.S,
    since="2002",
    names={"c_api": "asc_get_rsvd_count", "cpp": "GetRsvdCnt"},
    source="asc-devkit, asc_get_rsvd_count (2201)",
    carried=True,
)
class GetRsvdCnt(Instruction):
    """Read RSVD_CNT: how many elements the last gather mask kept.

    The scalar unit must have waited for the vector unit.
    """

    register = "kept"

    def result(self, registers: Registers) -> tuple[int, ...]:
        """The count."""
        return (registers.kept,)
