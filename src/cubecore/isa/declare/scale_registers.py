"""Registers that fixpipe reads: its scales, and how stores to global memory combine."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ELEMENT_TYPES, ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.archs import Kirin
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    choice,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import ATOMICS, Registers
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES

UINT64 = ELEMENT_TYPES["uint64"]
FIXPIPE_ALIGN_BYTES = 128
"""Alignment and unit of scales in the Fixpipe buffer (asc-devkit, DataCopy L1 to Fixpipe)."""
_WORDS = FIXPIPE_ALIGN_BYTES // 8
_BLOCK_WORDS = DATA_BLOCK_BYTES // 8


@instruction(
    "copy_cbuf_to_fbuf",
    Pipe.FIX,
    names={"c_api": "asc_copy_l12fb", "cpp": "DataCopy(C2PIPE2GM)"},
    source="asc-devkit, DataCopy L1 to Fixpipe buffer and asc_copy_l12fb (2201)",
    uncertain=(
        "runs count 128 B and starts are given head to head, as the basic API has it; the C API "
        "page counts 32 B from tail to head",
        "FIX, as the samples of the basic API wait for it and as on 3510; the C API's page says "
        "MTE1",
    ),
    copies=True,
)
class CopyCbufToFbuf(Instruction):
    """Copy scales, 64 bits each, from L1 to the Fixpipe buffer. Bytes arrive unchanged."""

    size_unit = FIXPIPE_ALIGN_BYTES
    dst = write(Mem.FB, "run word", "word", align_bytes=FIXPIPE_ALIGN_BYTES)
    src = read(Mem.L1, "run word", "word")
    word: ElementType = types("the unit of the copy", "uint64", default=UINT64)
    n_burst: int = param(1, 4095, "runs", default=1)
    len_burst: int = param(1, 65535, "length of a run, 128 B")
    src_stride: int = param(0, 65535, "from one run to the next in L1, 32 B", default=0)
    dst_stride: int = param(0, 65535, "from one run to the next at the target, 128 B", default=0)

    def offsets_src(self) -> Offsets:
        """Shape [n_burst, words of a run]."""
        return self._runs(self.src_stride * _BLOCK_WORDS)

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        return self._runs(self.dst_stride * _WORDS)

    def _runs(self, pitch: int) -> Offsets:
        starts = np.arange(self.n_burst, dtype=np.intp)[:, None] * pitch
        return starts + np.arange(self.len_burst * _WORDS, dtype=np.intp)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.n_burst * self.len_burst * FIXPIPE_ALIGN_BYTES

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to Fixpipe link."""
        return InstructionCost(math.ceil(costs.l1_to_fb_cycles(chip, self.size_bytes)))


@instruction(
    "set_quant_pre",
    Pipe.S,
    names={"c_api": "asc_set_l0c_copy_prequant", "cpp": "SetFixpipePreQuantFlag"},
    source="asc-devkit, asc_set_l0c_copy_prequant (2201, 3510)",
    archs=("2201", "3510"),
    kirin=Kirin(),
)
class SetQuantPre(Instruction):
    """Set the scale of fixpipe's modes with one scale; `numerics.quantisation` has its fields."""

    scale: int = param(0, 2**64 - 1, "the word")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The factor is an ordinary number or 0 (asc-devkit, Fixpipe, constraints)."""
        exponent = self.scale >> 23 & 0xFF
        if exponent in {0, 0xFF} and self.scale >> 13 & 0x3FFFF:
            return [
                Violation(
                    f"{self.name}.scale",
                    "hold no infinity, NaN or subnormal number in bits 31 to 13",
                    f"{self.scale:#018x}",
                )
            ]
        return []

    def apply(self, registers: Registers) -> Registers:
        """Keep the word."""
        return replace(registers, quant_pre=self.scale)


@instruction(
    "set_fpc",
    Pipe.S,
    names={"c_api": "asc_set_l0c2gm_config", "cpp": "SetFixPipeConfig"},
    source="asc-devkit, asc_set_l0c2gm_config and SetFixPipeConfig (2201, 3510)",
    archs=("2201", "3510"),
    uncertain=(
        "the relu tensor is kept for later, the page says: only asc_get_l0c2gm_relu reads it; how "
        "the register packs the addresses is not documented",
    ),
)
class SetFpc(Instruction):
    """Say where in the Fixpipe buffer the scales are, one word of 64 bits for each column.

    reset_unit_flags takes all unit flags of L0C down.
    """

    signature = ("relu_at", "scales_at", "reset_unit_flags")
    relu_at: int = param(
        0,
        65535,
        "first ReLU factor, bytes from the buffer's start",
        default=0,
        multiple=FIXPIPE_ALIGN_BYTES,
    )
    scales_at: int = param(
        0, 65535, "first scale, bytes from the buffer's start", multiple=FIXPIPE_ALIGN_BYTES
    )
    reset_unit_flags: bool = param(0, 1, "take all unit flags down", default=False)

    def apply(self, registers: Registers) -> Registers:
        """Keep the addresses."""
        return replace(
            registers,
            scales_at=self.scales_at,
            relu_at=self.relu_at,
            resets_units=bool(self.reset_unit_flags),
        )


_ATOMIC_TYPES = {
    "float": "float32",
    "float16": "float16",
    "int16": "int16",
    "int": "int32",
    "int8": "int8",
    "bfloat": "bfloat16",
}
_ATOMIC_SPELLINGS: dict[str, dict[str, Any]] = {
    "asc_set_atomic_none": {"operation": "none"},
    "SetAtomicNone": {"operation": "none"},
} | {
    f"asc_set_atomic_{operation}_{suffix}": {"operation": operation, "dtype": ELEMENT_TYPES[name]}
    for operation in ATOMICS
    for suffix, name in _ATOMIC_TYPES.items()
}


@instruction(
    "set_atomic",
    Pipe.S,
    since="1001",
    names={"c_api": "asc_set_store_atomic_config_v1", "cpp": "SetAtomicType"},
    variants=_ATOMIC_SPELLINGS,
    source="asc-devkit, asc_set_atomic_{add,max,min,none} (2201, 3510), and boundary values of "
    "atomic operations (2201)",
    archs=("2201", "3510"),
    uncertain=(
        "integer sums wrap, and float sums round to nearest even, those of float and bfloat16 with "
        "infinities: not documented",
        "3510: half saturates as on 2201, of which alone the page is",
    ),
)
class SetAtomic(Instruction):
    """Let later stores to global memory add to what is there, or take the larger or smaller.

    It holds for stores from L0C and from the Unified Buffer until it is set again. What is there
    counts: nothing writes zeros first, so uninitialised memory is a finding.
    """

    operation: str = choice("what stores do", "none", *ATOMICS, default="none")
    dtype: ElementType = types(
        "element type of the stores", *_ATOMIC_TYPES.values(), default=ELEMENT_TYPES["float32"]
    )

    def apply(self, registers: Registers) -> Registers:
        """Keep the operation and the type."""
        atomic = "" if self.operation == "none" else self.operation
        return replace(registers, atomic=atomic, atomic_type=self.dtype.name)


@instruction(
    "get_atomic",
    Pipe.S,
    names={"c_api": "asc_get_store_atomic_config"},
    source="asc-devkit, asc_get_store_atomic_config and asc_store_atomic_config (2201, 3510)",
    archs=("2201", "3510"),
    uncertain=("the codes of max (1) and min (2): the page has that of add alone",),
)
class GetAtomic(Instruction):
    """Read what set_atomic left: the element type's code (0: plain stores), the operation's.

    1 float32, 2 float16, 3 int16, 4 int32, 5 int8, 6 bfloat16.
    """

    def result(self, registers: Registers) -> tuple[int, ...]:
        """The type's code, the operation's."""
        if not registers.atomic:
            return (0, 0)
        coded = [*_ATOMIC_TYPES.values()].index(registers.atomic_type) + 1
        return (coded, ATOMICS.index(registers.atomic))
