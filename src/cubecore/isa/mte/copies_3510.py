"""Moves of architecture 3510 that 2201 has under the same names, or not at all.

A chip's row of the C API decides which of two a name is. Where 2201 counts gaps of 32 B from one
run's tail to the next one's head, 3510 counts bytes from head to head.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import RAW_BYTE, ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.common_3510 import ARCH, FAR, L2_HINTS, NEAR
from cubecore.isa.declare.instruction import (
    GlobalTraffic,
    Instruction,
    InstructionCost,
    Mem,
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
from cubecore.isa.declare.scale_registers import UINT64
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import l1_traffic
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES, align_up

_SMALL_C0 = 4
"""Elements of a row in the mode for at most so many columns (DataCopy DN2NZ, enableSmallC0)."""
_LAYOUT_TYPES = (
    *("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "int16", "uint16"),
    *("float32", "int32", "uint32", "hifloat8"),
)


@dataclass(frozen=True, slots=True)
class NzPara:
    """The fields of MTE2_NZ_PARA: the count of matrices, and distances of 32 B at the target."""

    matrices: int
    row_stride: int
    column_stride: int
    matrix_stride: int

    @classmethod
    def unpack(cls, word: int) -> "NzPara":
        """Return the four fields of 16 bits."""
        return cls(*(word >> shift & 0xFFFF for shift in (0, 16, 32, 48)))

    def pack(self) -> int:
        """Return the register's 64 bits."""
        fields = (self.matrices, self.row_stride, self.column_stride, self.matrix_stride)
        return sum(value << 16 * index for index, value in enumerate(fields))


@instruction(
    "set_mte2_nz_para",
    Pipe.S,
    names={"c_api": "asc_set_gm2l1_nz_para"},
    source="asc-devkit, asc_set_gm2l1_nz_para (3510)",
    uncertain=("the distances count 32 B, the matrices' too: the page gives no unit",),
    archs=ARCH,
)
class SetMte2NzPara(Instruction):
    """Set how many matrices ND2NZ and DN2NZ move, and where their parts go.

    From bit 0 on, 16 bits each: matrices, from one row to the next, from one column of C0 to the
    next, from one matrix to the next.
    """

    config: int = param(0, 2**64 - 1, "the register's 64 bits")

    def apply(self, registers: Registers) -> Registers:
        """Keep the word."""
        return replace(registers, nz_para=self.config)


@parameters
class _ToNz(Instruction):
    """Matrices from global memory to L1 in NZ, as MTE2_NZ_PARA says where.

    No matrices, rows or columns: nothing happens. A row is cut into pieces of C0 elements, the last
    one filled with zeros. With smallc0_en and at most 4 columns a row is 4 elements, rows follow
    each other, and the end is filled with zeros up to 32 B.
    """

    signature = (
        *("dst", "src", "loop1_src_stride", "l2_cache_ctl", "n_value", "d_value"),
        *("loop4_src_stride", "smallc0_en"),
    )
    dst = write(Mem.L1, "matrix row column", layout="NZ")
    src = read(Mem.GM, "matrix row column")
    dtype: ElementType = types("element type", *_LAYOUT_TYPES)
    loop1_src_stride: int = param(0, FAR, "bytes between what is stored side by side")
    l2_cache_ctl: int = choice(
        "L2 hint: 0 normal, 1 last, 2 persistent, 4 disable; no value depends on it",
        *L2_HINTS,
        default=0,
    )
    n_value: int = param(0, 16384, "rows of a matrix")
    d_value: int = param(0, NEAR, "columns of a matrix")
    loop4_src_stride: int = param(0, FAR, "bytes between matrices", default=0)
    smallc0_en: bool = param(0, 1, "rows of 4 elements", default=False)
    para: int | None = taken("MTE2_NZ_PARA")

    def resolved(self, registers: Registers) -> Self:
        """Take the register."""
        return replace(self, para=registers.nz_para)

    def unmet(self, registers: Registers) -> list[Violation]:
        """The register must have been set."""
        if registers.nz_para is not None:
            return super().unmet(registers)
        return [Violation(self.name, "follow a set_mte2_nz_para", "none")]

    @property
    def nz(self) -> NzPara:
        """The register's fields."""
        return NzPara.unpack(self.para or 0)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        size: int = self.nz.matrices * self.n_value * self.dtype.bytes_of(self.d_value)
        return size

    @property
    def small(self) -> bool:
        """True if rows are 4 elements."""
        return self.smallc0_en and self.d_value <= _SMALL_C0

    def _axes(self) -> tuple[Offsets, Offsets, Offsets]:
        count = self.nz.matrices if self.d_value else 0
        matrix = np.arange(count, dtype=np.intp)[:, None, None]
        # What is written: rows up to whole pieces of C0. Of small rows as many as fill 32 B at the
        # end.
        rows, wide = self.n_value if count else 0, align_up(self.d_value, self.dtype.c0)
        if self.small:
            rows, wide = align_up(rows, self.dtype.c0 // _SMALL_C0 or 1), _SMALL_C0
        row = np.arange(rows, dtype=np.intp)[:, None]
        return matrix, row, np.arange(wide, dtype=np.intp)

    def _taken(self, row_bytes: int, column_bytes: int) -> Offsets:
        """Offsets at the source; what is filled is negative."""
        matrix, row, column = self._axes()
        size = self.dtype.size_bytes
        offsets = (matrix * self.loop4_src_stride + row * row_bytes + column * column_bytes) // size
        return np.where((column < self.d_value) & (row < self.n_value), offsets, -1)

    def offsets_dst(self) -> Offsets:
        """Shape [matrices, rows, columns], both with what is filled."""
        matrix, row, column = self._axes()
        c0, nz = self.dtype.c0, self.nz
        if self.small:
            return matrix * (nz.matrix_stride * c0) + row * _SMALL_C0 + column
        # The register's distances count pieces of 32 B, each the C0 elements of a row.
        piece = column // c0 * nz.column_stride + row * nz.row_stride + matrix * nz.matrix_stride
        return piece * c0 + column % c0

    def filling(self) -> tuple[NDArray[np.bool_], str] | None:
        """Columns beyond a row's end, and rows beyond the last."""
        chosen = self.offsets("src") < 0
        return (chosen, f"rows of {self.dtype.bytes_of(self.d_value)} B") if chosen.any() else None

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Distances at the source are whole elements."""
        return [
            Violation(f"{self.name}.{name}", f"be a multiple of {size} B", str(value))
            for name in ("loop1_src_stride", "loop4_src_stride")
            if (value := getattr(self, name)) % (size := self.dtype.size_bytes)
        ]

    def _cost(self, chip: Chip, rows: int, row_bytes: int, each: float = 0) -> InstructionCost:
        """Return the cost of a transfer whose rows take `each` more cycles."""
        matrices, pitch = self.nz.matrices, self.loop1_src_stride
        traffic = l1_traffic(chip, rows, row_bytes, pitch, matrices)
        traffic = replace(traffic, pitch_bytes=pitch)
        rows *= matrices
        if not rows or not row_bytes:
            return InstructionCost(0)
        cycles = costs.gm_to_l1_cycles(chip, rows, row_bytes, pitch) + rows * each
        return InstructionCost(math.ceil(cycles), traffic=traffic)


@instruction(
    "copy_gm_to_cbuf_multi_nd2nz_v2",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2l1_nd2nz"},
    source="asc-devkit, asc_copy_gm2l1_nd2nz (3510) and DataCopy (ND2NZ)",
    uncertain=(
        "smallc0_en makes rows of 4 elements, as the basic API has it; the C API's page says so of "
        "false",
    ),
    archs=ARCH,
    copies=True,
)
class CopyGmToCbufMultiNd2NzV2(_ToNz):
    """Copy row-major matrices from global memory to L1 in NZ; rows are loop1_src_stride apart."""

    def offsets_src(self) -> Offsets:
        """Shape as the target's; the fill is negative."""
        return self._taken(self.loop1_src_stride, self.dtype.size_bytes)

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer of n_value rows a matrix."""
        return self._cost(chip, self.n_value, self.dtype.bytes_of(self.d_value))


@instruction(
    "copy_gm_to_cbuf_multi_dn2nz",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2l1_dn2nz", "cpp": "DataCopy(Dn2NzParams)"},
    source="asc-devkit, asc_copy_gm2l1_dn2nz (3510) and DataCopy (DN2NZ)",
    uncertain=(
        "smallc0_en makes rows of 4 elements, as the basic API has it; the C API's page says so of "
        "false",
        "no page gives the cost: that of a transfer of the stored rows is taken, and what each row "
        "took more where scales were measured",
    ),
    archs=ARCH,
    copies=True,
)
class CopyGmToCbufMultiDn2Nz(_ToNz):
    """Copy column-major matrices from global memory to L1 in NZ: transposed, as they are stored.

    Stored are d_value rows of n_value elements, loop1_src_stride apart.
    """

    def offsets_src(self) -> Offsets:
        """Shape as the target's; the fill is negative."""
        return self._taken(self.dtype.size_bytes, self.loop1_src_stride)

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer of d_value stored rows a matrix, each to be transposed."""
        each = chip.gm_to_l1_turned_row_cycles or 0
        return self._cost(chip, self.d_value, self.dtype.bytes_of(self.n_value), each)


@parameters
class _ByteRuns(Instruction):
    """n_burst runs of len_burst bytes; strides lie from one run's head to the next one's."""

    size_unit = 1
    block: ElementType = types("the unit of the copy", "byte", default=RAW_BYTE)
    n_burst: int = param(1, 4095, "runs")
    len_burst: int = param(1, NEAR, "length of a run, bytes")
    src_stride: int = param(0, FAR, "from run to run at the source, bytes", default=0)
    dst_stride: int = param(0, FAR, "from run to run at the destination, bytes", default=0)

    def offsets_src(self) -> Offsets:
        """Shape [n_burst, len_burst]."""
        return self._runs(self.src_stride)

    def offsets_dst(self) -> Offsets:
        """Shape [n_burst, len_burst]."""
        return self._runs(self.dst_stride)

    def _runs(self, pitch: int) -> Offsets:
        starts = np.arange(self.n_burst, dtype=np.intp)[:, None] * pitch
        return starts + np.arange(self.len_burst, dtype=np.intp)

    def _in_blocks(self, name: str) -> list[Violation]:
        """Judge the stride in the Unified Buffer: whole blocks, unless runs follow each other."""
        stride: int = getattr(self, name)
        if self.n_burst == 1 or stride == self.len_burst or stride % DATA_BLOCK_BYTES == 0:
            return []
        need = f"be len_burst or a multiple of {DATA_BLOCK_BYTES} B"
        return [Violation(f"{self.name}.{name}", need, str(stride))]

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.n_burst * self.len_burst

    @property
    def traffic(self) -> GlobalTraffic:
        """Return the traffic that the copy causes in global memory."""
        writes = self.pipe is Pipe.MTE3
        return GlobalTraffic(self.size_bytes, self.len_burst, writes=writes, of_ub=True)


_BITS = "the prototype's 16 bits cannot hold the lengths and strides that the page allows"


@instruction(
    "copy_gm_to_ubuf_v2",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2ub"},
    source="asc-devkit, asc_copy_gm2ub (3510)",
    uncertain=(_BITS,),
    archs=ARCH,
    copies=True,
)
class CopyGmToUbufV2(_ByteRuns):
    """Copy runs of bytes from global memory to the Unified Buffer."""

    dst = write(Mem.UB, "run byte", "block")
    src = read(Mem.GM, "run byte", "block")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The stride in the Unified Buffer."""
        return self._in_blocks("dst_stride")

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE2."""
        cycles = costs.gm_to_ub_cycles(chip, self.size_bytes, self.n_burst, self.src_stride)
        return InstructionCost(math.ceil(cycles), traffic=self.traffic)


@instruction(
    "copy_ubuf_to_gm_v2",
    Pipe.MTE3,
    names={"c_api": "asc_copy_ub2gm"},
    source="asc-devkit, asc_copy_ub2gm (3510)",
    uncertain=(_BITS,),
    archs=ARCH,
    copies=True,
)
class CopyUbufToGmV2(_ByteRuns):
    """Copy runs of bytes from the Unified Buffer to global memory."""

    signature = ("dst", "src", "n_burst", "len_burst", "dst_stride", "src_stride")
    dst = write(Mem.GM, "run byte", "block")
    src = read(Mem.UB, "run byte", "block")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The stride in the Unified Buffer."""
        return self._in_blocks("src_stride")

    def unmet(self, registers: Registers) -> list[Violation]:
        """An atomic store moves whole elements of the type that was set."""
        if not registers.atomic:
            return []
        size = element_type(registers.atomic_type).size_bytes
        strides = (self.dst_stride, self.src_stride) if self.n_burst > 1 else ()
        split = [length for length in (self.len_burst, *strides) if length % size]
        wanted = f"move elements of {registers.atomic_type}, as set_atomic says"
        return [Violation(self.name, wanted, f"{length} B") for length in split[:1]]

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE3."""
        cycles = costs.ub_to_gm_cycles(chip, self.size_bytes)
        return InstructionCost(math.ceil(cycles), traffic=self.traffic)


_SCALE_UNIT = 64
_WORDS = _SCALE_UNIT // 8


@instruction(
    "copy_cbuf_to_fbuf_v2",
    Pipe.FIX,
    names={"c_api": "asc_copy_l12fb"},
    source="asc-devkit, asc_copy_l12fb (3510)",
    archs=ARCH,
    copies=True,
)
class CopyCbufToFbufV2(Instruction):
    """Copy scales, 64 bits each, from L1 to the Fixpipe buffer, in units of 64 B, by fixpipe."""

    size_unit = _SCALE_UNIT
    dst = write(Mem.FB, "run word", "word", align_bytes=_SCALE_UNIT)
    src = read(Mem.L1, "run word", "word")
    word: ElementType = types("the unit of the copy", "uint64", default=UINT64)
    n_burst: int = param(1, 4095, "runs", default=1)
    len_burst: int = param(1, 65535, "length of a run, 64 B")
    src_gap_size: int = param(0, 65535, "gap between runs in L1, 32 B", default=0)
    dst_gap_size: int = param(0, 65535, "gap between runs at the target, 64 B", default=0)

    def offsets_src(self) -> Offsets:
        """Shape [n_burst, words of a run]."""
        return self._runs(self.src_gap_size * DATA_BLOCK_BYTES)

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        return self._runs(self.dst_gap_size * _SCALE_UNIT)

    def _runs(self, gap_bytes: int) -> Offsets:
        words = self.len_burst * _WORDS
        starts = np.arange(self.n_burst, dtype=np.intp)[:, None] * (words + gap_bytes // 8)
        return starts + np.arange(words, dtype=np.intp)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.n_burst * self.len_burst * _SCALE_UNIT

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to Fixpipe link."""
        return InstructionCost(math.ceil(costs.l1_to_fb_cycles(chip, self.size_bytes)))
