"""Copies of a vector core beyond whole blocks: inside the Unified Buffer, of any length, padded."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import (
    GlobalTraffic,
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
from cubecore.isa.mte.copies import Bursts
from cubecore.isa.vector.common.mask import REPEAT_BYTES
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES, align_up

BYTE = element_type("uint8")
_LOADED = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32")
_STORED = (*_LOADED, "int64", "uint64")
_GAPS = (
    "gaps count bytes in global memory and 32 B in UB, as the basic API has it; the C API's page "
    "counts 32 B for both",
)


@instruction(
    "copy_ubuf_to_ubuf",
    Pipe.V,
    since="m100",
    names={"c_api": "asc_copy_ub2ub", "cpp": "DataCopy(UB to UB)", "tik": "data_move"},
    source="asc-devkit, asc_copy_ub2ub (2201, 3510)",
    archs=("2201", "3510"),
    copies=True,
)
class CopyUbufToUbuf(Bursts):
    """Copy runs of 32-byte blocks inside the Unified Buffer. Bytes arrive unchanged."""

    overlap = "none"
    dst = write(Mem.UB, "run block", "block")
    src = read(Mem.UB, "run block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """A head and 256 bytes a cycle."""
        repeats = self.size_bytes / REPEAT_BYTES
        return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, repeats)))


@instruction(
    "set_mov_pad_val",
    Pipe.S,
    names={"c_api": "asc_set_copy_pad_val", "cpp": "SetPadValue"},
    source="asc-devkit, asc_set_copy_pad_val (2201, 3510)",
    archs=("2201", "3510"),
)
class SetMovPadVal(Instruction):
    """Set what copies with padding fill with: the bits of an element, from the lowest up."""

    value: int = param(0, 2**64 - 1, "the value's bits")

    def apply(self, registers: Registers) -> Registers:
        """Keep the bits."""
        return replace(registers, pad_value=self.value)


@parameters
class Aligned(Instruction):
    """Runs of any number of elements, each from a block of UB on.

    Gaps lie from one run's tail to the next one's head, in global memory in bytes; in UB, where a
    run fills whole blocks, in 32 bytes. n_burst or len_burst 0: nothing happens.
    """

    gap_in_gm: ClassVar[str]
    gap_in_ub: ClassVar[str]
    size_unit = 1
    dtype: ElementType = types("element type", *_LOADED)
    n_burst: int = param(0, 4095, "runs")
    len_burst: int = param(0, 2**21 - 1, "length of a run, bytes")
    left_padding_num: int = param(0, 32, "elements in front of each run in UB", default=0)
    right_padding_num: int = param(0, 32, "elements behind each run in UB", default=0)
    src_gap: int = param(0, 2**32 - 1, "gap between runs at the source", default=0)
    dst_gap: int = param(0, 2**32 - 1, "gap between runs at the destination", default=0)

    @property
    def unit(self) -> ElementType:
        """Return the unit of the copy: elements where all are aligned to their size, else bytes."""
        return self.dtype if self.splits_elements() is None else BYTE

    def splits_elements(self) -> tuple[str, str, str] | None:
        """Return the gap in global memory if it is no whole number of elements."""
        gap: int = getattr(self, self.gap_in_gm)
        if self.n_burst <= 1 or gap % self.dtype.size_bytes == 0:
            return None
        need = f"be a multiple of {self.dtype}'s {self.dtype.size_bytes} B"
        return self.gap_in_gm, need, f"{gap} B; gaps in global memory count bytes"

    @property
    def _padded_bytes(self) -> int:
        return self._front + self.len_burst + self.right_padding_num * self.dtype.size_bytes

    @property
    def _front(self) -> int:
        return self.left_padding_num * self.dtype.size_bytes

    @property
    def _pitch_bytes(self) -> int:
        """Bytes from one run's block to the next one's in UB."""
        gap: int = getattr(self, self.gap_in_ub)
        return int(align_up(self._padded_bytes, DATA_BLOCK_BYTES)) + gap * DATA_BLOCK_BYTES

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.n_burst * self.len_burst

    def _runs(self, pitch_bytes: int, count: int) -> Offsets:
        """Return units from the start of each run, shape [runs, count]; none if nothing moves."""
        runs = self.n_burst if self.len_burst else 0
        start = np.arange(runs, dtype=np.intp)[:, None] * (pitch_bytes // self.unit.size_bytes)
        return start + np.arange(count, dtype=np.intp)

    def _global(self) -> Offsets:
        gap: int = getattr(self, self.gap_in_gm)
        return self._runs(self.len_burst + gap, self.len_burst // self.unit.size_bytes)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Whole elements; padding of at most 32 bytes; no more than UB holds."""
        violations = []
        size = self.dtype.size_bytes
        if self.len_burst % size:
            whole = f"be a multiple of {self.dtype}'s {size} B"
            subject, remedy = f"{self.name}.len_burst", "it is a number of bytes"
            violations.append(Violation(subject, whole, str(self.len_burst), remedy))
        for side in ("left", "right"):
            padding = getattr(self, f"{side}_padding_num") * size
            if padding > DATA_BLOCK_BYTES:
                most = f"fill at most {DATA_BLOCK_BYTES} B"
                subject = f"{self.name}.{side}_padding_num"
                violations.append(Violation(subject, most, f"{padding} B"))
        last = int(align_up(self._padded_bytes, DATA_BLOCK_BYTES))
        span = (self.n_burst - 1) * self._pitch_bytes + last
        if self.len_burst and span > chip.ub_bytes:
            most = f"take at most {chip.ub_bytes} B of UB"
            violations.append(Violation(f"{self.name}: the runs", most, f"{span} B"))
        return violations


@instruction(
    "copy_gm_to_ubuf_align",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2ub_align", "cpp": "DataCopyPad"},
    source="asc-devkit, asc_copy_gm2ub_align (2201); basic API, DataCopyPad from GM to UB",
    uncertain=_GAPS,
    copies=True,
)
class CopyGmToUbufAlign(Aligned):
    """Copy runs of any length from global memory to the Unified Buffer, with padding.

    Gaps lie from one run's tail to the next one's head, in global memory in bytes; in UB, where a
    run fills whole blocks, in 32 bytes. n_burst or len_burst 0: nothing happens.

    What is left of a run's last block is filled: without padding with the run's first element, with
    padding as the padding itself, with what set_mov_pad_val set (before that, it stays unwritten).
    """

    gap_in_gm = "src_gap"
    gap_in_ub = "dst_gap"
    dst = write(Mem.UB, "run element", "unit")
    src = read(Mem.GM, "run element", "unit")

    def offsets_dst(self) -> Offsets:
        """Shape [runs, elements of a run with its padding]."""
        whole = int(align_up(self._padded_bytes, DATA_BLOCK_BYTES))
        return self._runs(self._pitch_bytes, whole // self.unit.size_bytes)

    def offsets_src(self) -> Offsets:
        """Shape as dst's; the padding is negative."""
        taken, unit = self._global(), self.unit.size_bytes
        count = self.offsets_dst().shape[1]
        if not self.size_bytes:
            return np.zeros((0, count), np.intp)
        # The place in a run as UB has it: below 0 is the left padding, from the run's length on
        # what fills its last block. A negative offset names a unit of the padding's element: -1 is
        # its first byte (or the element itself), -2 the next one. Without padding the first element
        # is repeated.
        element = np.arange(count, dtype=np.intp) - self._front // unit
        inside = (element >= 0) & (element < taken.shape[1])
        offsets = taken[:, np.clip(element, 0, taken.shape[1] - 1)]
        pattern = np.arange(count, dtype=np.intp) % (self.dtype.size_bytes // unit)
        pads = self.left_padding_num or self.right_padding_num
        filled = -1 - pattern if pads else taken[:, pattern]
        return np.where(inside, offsets, filled)

    def filling(self) -> tuple[NDArray[np.bool_], str] | None:
        """The rest of a run's last block, unless it is padding."""
        shape, count = self.offsets_dst().shape, self.len_burst // self.unit.size_bytes
        if self.left_padding_num or self.right_padding_num or count == shape[1]:
            return None
        chosen = np.broadcast_to(np.arange(shape[1]) >= count, shape)
        return chosen, f"{'runs' if self.n_burst > 1 else 'a run'} of {self.len_burst} B"

    def fill(self, registers: Registers) -> bytes | None:
        """Give the padding's element."""
        if registers.pad_value is None:
            return None
        size = self.dtype.size_bytes
        return (registers.pad_value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE2."""
        if not self.size_bytes:
            return InstructionCost(0)
        pitch = self.len_burst + self.src_gap
        cycles = costs.gm_to_ub_cycles(chip, self.size_bytes, self.n_burst, pitch)
        traffic = GlobalTraffic.of_rows(
            self.n_burst, self.len_burst, pitch, writes=False, of_ub=True
        )
        return InstructionCost(math.ceil(cycles), traffic=traffic)


@instruction(
    "copy_ubuf_to_gm_align",
    Pipe.MTE3,
    names={"c_api": "asc_copy_ub2gm_align", "cpp": "DataCopyPad"},
    source="asc-devkit, asc_copy_ub2gm_align (2201); basic API, DataCopyPad from UB to GM",
    uncertain=(*_GAPS, "padding has no effect on stores: the basic API has none"),
    copies=True,
)
class CopyUbufToGmAlign(Aligned):
    """Copy runs of any length from the Unified Buffer to global memory.

    Gaps lie from one run's tail to the next one's head, in global memory in bytes; in UB, where a
    run fills whole blocks, in 32 bytes. n_burst or len_burst 0: nothing happens.

    Each run starts at a block of UB; what is left of its last block is not stored.
    """

    gap_in_gm = "dst_gap"
    gap_in_ub = "src_gap"
    dst = write(Mem.GM, "run element", "unit")
    src = read(Mem.UB, "run element", "unit")
    dtype: ElementType = types("element type", *_STORED)

    def offsets_dst(self) -> Offsets:
        """Shape [runs, elements of a run]."""
        return self._global()

    def offsets_src(self) -> Offsets:
        """Shape as dst's."""
        return self._runs(self._pitch_bytes, self.len_burst // self.unit.size_bytes)

    @property
    def _padded_bytes(self) -> int:
        return self.len_burst

    def unmet(self, registers: Registers) -> list[Violation]:
        """An atomic store moves elements of the type that was set."""
        if not registers.atomic or self.unit.bits >= element_type(registers.atomic_type).bits:
            return super().unmet(registers)
        wanted = f"move elements of {registers.atomic_type}, as set_atomic says"
        return [Violation(f"{self.name}", wanted, f"runs of {self.unit}")]

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE3."""
        if not self.size_bytes:
            return InstructionCost(0)
        cycles = costs.ub_to_gm_cycles(chip, self.size_bytes)
        pitch = self.len_burst + self.dst_gap
        traffic = GlobalTraffic.of_rows(
            self.n_burst, self.len_burst, pitch, writes=True, of_ub=True
        )
        return InstructionCost(math.ceil(cycles), traffic=traffic)
