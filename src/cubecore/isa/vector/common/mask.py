"""The vector mask: the lanes that an instruction computes (C API general notes, mask)."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Instruction, Pipe, instruction, param
from cubecore.isa.declare.registers import CTRL_MASK_COUNTS_BIT, Registers

REPEAT_BYTES = 256
"""Bytes that one repeat takes from each operand: 8 blocks of 32 (C API general notes)."""


@dataclass(frozen=True, slots=True)
class MaskState:
    """The state of the mask registers at a vector instruction's issue."""

    high: int
    low: int
    counts: bool

    @property
    def count(self) -> int:
        """Elements in counter mode: the low 32 bits."""
        return self.low & 0xFFFFFFFF

    @property
    def bits(self) -> int:
        """The 128 mask bits as one number."""
        return self.low | self.high << 64

    def repeats(self, stated: int, lanes: int) -> int:
        """Return the repeats: as stated, or in counter mode as many as the count needs."""
        return -(-self.count // lanes) if self.counts else stated

    def active(self, repeats: int, lanes: int) -> NDArray[np.bool_] | None:
        """Return which lanes compute, shape [repeats, lanes], not to be written; None: all."""
        return _active(self, repeats, lanes)


@lru_cache(maxsize=64)
def _active(mask: MaskState, repeats: int, lanes: int) -> NDArray[np.bool_] | None:
    # In counter mode lanes count through all repeats; in normal mode the same bits gate each
    # repeat.
    if mask.counts:
        active = (np.arange(repeats * lanes) < mask.count).reshape(repeats, lanes)
    else:
        words = np.array([mask.low, mask.high], dtype="<u8").view(np.uint8)
        bits = np.unpackbits(words, bitorder="little")[:lanes].astype(bool)
        active = np.broadcast_to(bits, (repeats, lanes))
    if active.all():
        return None
    active.setflags(write=False)
    return active


def lanes_of(registers: Registers) -> MaskState:
    """Return the registers' mask as one record."""
    return MaskState(registers.mask_high, registers.mask_low, registers.mask_counts)


@instruction(
    "set_vector_mask",
    Pipe.S,
    since="m100",
    names={"c_api": "asc_set_vector_mask", "cpp": "SetVectorMask"},
    source="C API general notes, mask",
    carried=True,
)
class SetVectorMask(Instruction):
    """Set the 128 mask bits, high word first; in counter mode the low word is the element count."""

    mask_high: int = param(0, 2**64 - 1, "lanes 64 to 127")
    mask_low: int = param(0, 2**64 - 1, "lanes 0 to 63, or the count")

    def apply(self, registers: Registers) -> Registers:
        """Keep both words."""
        return replace(registers, mask_high=self.mask_high, mask_low=self.mask_low)


@instruction(
    "set_mask_norm",
    Pipe.S,
    since="m100",
    names={"c_api": "asc_set_mask_norm", "cpp": "SetMaskNorm"},
    source="C API general notes, mask",
    carried=True,
)
class SetMaskNorm(Instruction):
    """Let the mask bits gate the lanes of every repeat."""

    def apply(self, registers: Registers) -> Registers:
        """Leave counter mode."""
        return replace(registers, ctrl=registers.ctrl & ~(1 << CTRL_MASK_COUNTS_BIT))


@instruction(
    "set_mask_count",
    Pipe.S,
    since="2002",
    names={"c_api": "asc_set_mask_count", "cpp": "SetMaskCount"},
    source="C API general notes, mask",
    carried=True,
)
class SetMaskCount(Instruction):
    """Let the mask's low word count the elements; the repeat argument is then ignored."""

    def apply(self, registers: Registers) -> Registers:
        """Enter counter mode."""
        return replace(registers, ctrl=registers.ctrl | 1 << CTRL_MASK_COUNTS_BIT)
