"""Data moves between global memory and the local memories, arch 2201."""

import math
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import DATA_BLOCK, FRACTAL, ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.archs import BYTES, HALF, HALF_OR_BYTE, NO_TRANSPOSE, Kirin
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
    types,
    write,
)
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_ROWS, align_up, ceil_div

_ND2NZ_TYPES = (
    *("int8", "uint8", "float16", "bfloat16", "int16", "uint16", "float32", "int32", "uint32"),
)


@parameters
class Bursts(Instruction):
    """n_burst runs of len_burst blocks; gaps lie from one run's tail to the next one's head."""

    size_unit = DATA_BLOCK_BYTES
    block: ElementType = types("the unit of the copy", "datablock", default=DATA_BLOCK)
    n_burst: int = param(1, 4095, "runs")
    len_burst: int = param(1, 65535, "length of a run, 32 B blocks")
    src_gap: int = param(0, 65535, "gap between runs at the source, 32 B blocks", default=0)
    dst_gap: int = param(0, 65535, "gap between runs at the destination, 32 B blocks", default=0)

    def offsets_src(self) -> Offsets:
        """Shape [n_burst, len_burst]."""
        return self._runs(self.src_gap)

    def offsets_dst(self) -> Offsets:
        """Shape [n_burst, len_burst]."""
        return self._runs(self.dst_gap)

    def _runs(self, gap: int) -> Offsets:
        starts = np.arange(self.n_burst, dtype=np.intp) * (self.len_burst + gap)
        return starts[:, None] + np.arange(self.len_burst, dtype=np.intp)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.n_burst * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of one run."""
        return self.len_burst * DATA_BLOCK_BYTES


@instruction(
    "copy_gm_to_cbuf",
    Pipe.MTE2,
    since="m100",
    names={"c_api": "asc_copy_gm2l1", "cpp": "DataCopy", "tik": "data_move"},
    source="asc-devkit, asc_copy_gm2l1 (2201, 3510)",
    uncertain=(
        "3510's page gives its strides no unit where nothing is padded: they are taken as 2201's "
        "gaps; its 2D form is not there, since the page gives it no distance of source rows",
    ),
    archs=("2201", "3510"),
    copies=True,
    kirin=Kirin(),
)
class CopyGmToCbuf(Bursts):
    """Copy runs of 32-byte blocks from global memory to L1. Bytes arrive unchanged."""

    signature = ("dst", "src", "n_burst", "len_burst", "src_gap", "dst_gap")
    by_arch = MappingProxyType(
        {
            "3510": (
                ("dst", "src", "n_burst", "len_burst", "pad_func_mode", "src_gap", "dst_gap"),
                MappingProxyType({}),
            )
        }
    )
    dst = write(Mem.L1, "run block", "block")
    src = read(Mem.GM, "run block", "block")
    pad_func_mode: int = choice(
        "3510: what is inserted or removed; 2201 has other names for it", 0, default=0
    )

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer of MTE2."""
        pitch = (self.len_burst + self.src_gap) * DATA_BLOCK_BYTES
        cycles = costs.gm_to_l1_cycles(chip, self.n_burst, self.row_bytes, pitch)
        traffic = l1_traffic(chip, self.n_burst, self.row_bytes, pitch)
        return InstructionCost(math.ceil(cycles), traffic=traffic)


def l1_traffic(
    chip: Chip, rows: int, row_bytes: int, pitch_bytes: int, matrices: int = 1
) -> GlobalTraffic:
    """Return the traffic of a strided transfer into L1 of so many rows of each matrix.

    Starts of rows do not matter unless the caller gives it a pitch.
    """
    one = GlobalTraffic.of_rows(rows, row_bytes, pitch_bytes, writes=False)
    conflict = costs.pitch_conflict_cycles(chip, rows * matrices, pitch_bytes)
    return replace(
        one,
        size_bytes=one.size_bytes * matrices,
        conflict_cycles=float(conflict),
    )


ND2NZ_PITCH_LIMIT = 65535
"""Largest distance of rows, elements, that one ND2NZ transfer takes; longer rows go one by one."""


@instruction(
    "copy_gm_to_cbuf_multi_nd2nz",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2l1_nd2nz", "cpp": "DataCopy(Nd2NzParams)"},
    source="asc-devkit, asc_copy_gm2l1_nd2nz (2201)",
    archs=("2201", "3510"),
    copies=True,
    kirin=Kirin(BYTES, BYTES),
)
class CopyGmToCbufMultiNd2Nz(Instruction):
    """Copy row-major matrices from global memory to L1 in NZ.

    Each row is cut into pieces of C0 elements; the last piece is filled with zeros. nd_num, n_value
    or d_value equal to 0: nothing happens. Rows that the last fractal has beyond n_value keep what
    L1 held.
    """

    steps = MappingProxyType(
        {"src_d_value": "n_value", "dst_nz_n_stride": "n_value", "dst_nz_c0_stride": "pieces"}
    )
    dst = write(Mem.L1, "matrix row column", layout="NZ")
    src = read(Mem.GM, "matrix row column", layout="ND")
    dtype: ElementType = types("element type", *_ND2NZ_TYPES)
    nd_num: int = param(0, 4095, "matrices", default=1)
    n_value: int = param(0, 16384, "rows of a matrix")
    d_value: int = param(0, 65535, "columns of a matrix")
    src_nd_matrix_stride: int = param(0, 65535, "elements between matrices", default=0)
    src_d_value: int = param(1, ND2NZ_PITCH_LIMIT, "elements between rows")
    dst_nz_c0_stride: int = param(1, 16384, "32 B between the pieces of one row")
    dst_nz_n_stride: int = param(1, 16384, "32 B between rows", default=1)
    dst_nz_matrix_stride: int = param(1, 65535, "elements between NZ matrices", default=1)

    @property
    def pieces(self) -> int:
        """Pieces of C0 elements of a row."""
        return int(ceil_div(self.d_value, self.dtype.c0))

    def _axes(self) -> tuple[Offsets, Offsets, Offsets]:
        matrix = np.arange(self.nd_num, dtype=np.intp)[:, None, None]
        row = np.arange(self.n_value, dtype=np.intp)[:, None]
        column = np.arange(align_up(self.d_value, self.dtype.c0), dtype=np.intp)
        return matrix, row, column

    def offsets_src(self) -> Offsets:
        """Shape [nd_num, n_value, d_value rounded up to C0]; the fill is negative."""
        matrix, row, column = self._axes()
        taken = matrix * self.src_nd_matrix_stride + row * self.src_d_value + column
        return np.where(column < self.d_value, taken, -1)

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        # A row is cut into pieces of C0; piece p of row r goes to block p * dst_nz_c0_stride + r *
        # dst_nz_n_stride of the matrix. The usual NZ has rows one block apart.
        matrix, row, column = self._axes()
        c0 = self.dtype.c0
        piece = (column // c0) * self.dst_nz_c0_stride + row * self.dst_nz_n_stride
        return matrix * self.dst_nz_matrix_stride + piece * c0 + column % c0

    def filling(self) -> tuple[NDArray[np.bool_], str] | None:
        """Columns beyond a row's end."""
        chosen = self.offsets_src() < 0
        return (chosen, f"rows of {self.dtype.bytes_of(self.d_value)} B") if chosen.any() else None

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        size: int = self.nd_num * self.n_value * self.dtype.bytes_of(self.d_value)
        return size

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer of nd_num * n_value rows."""
        rows, row_bytes = self.nd_num * self.n_value, self.dtype.bytes_of(self.d_value)
        if not rows or not row_bytes:
            return InstructionCost(0)
        pitch = self.dtype.bytes_of(self.src_d_value)
        if rows == 1 and self.src_d_value == ND2NZ_PITCH_LIMIT:  # its matrix has longer rows
            cycles, pitch = costs.gm_to_l1_lone_row_cycles(chip, row_bytes), costs.LINE_BYTES
        else:
            cycles = costs.gm_to_l1_cycles(chip, rows, row_bytes, pitch)
        traffic = l1_traffic(chip, self.n_value, row_bytes, pitch, self.nd_num)
        traffic = replace(traffic, pitch_bytes=pitch)
        return InstructionCost(math.ceil(cycles), traffic=traffic)


FRACTAL_TYPES = (*("int4", "int8", "uint8", "float16", "bfloat16", "int32", "uint32", "float32"),)
"""The element types of fractals that move whole by the prototypes of the C API (2201)."""


@parameters
class Load2d(Instruction):
    """Move 512-byte fractals from L1 to L0: repeat of them, one after another; 0: nothing."""

    signature = ("dst", "src", "start_index", "repeat", "src_stride", "dst_gap")
    block: ElementType = types("the unit of the move", "fractal", default=FRACTAL)
    repeat: int = param(0, 255, "fractals")
    start_index: int = param(0, 65535, "first fractal, counted from the source address", default=0)
    src_stride: int = param(0, 65535, "fractals from one source to the next", default=1)
    dst_gap: int = param(0, 65535, "fractals left free between two destinations", default=0)
    decrement: bool = param(0, 1, "walk the source downwards", default=False)

    def offsets_src(self) -> Offsets:
        """Shape [repeat]."""
        step = -self.src_stride if self.decrement else self.src_stride
        return self.start_index + np.arange(self.repeat, dtype=np.intp) * step

    def offsets_dst(self) -> Offsets:
        """Shape [repeat]."""
        return np.arange(self.repeat, dtype=np.intp) * (1 + self.dst_gap)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """A walk downwards must not pass the source address."""
        return _walks_below_zero(self, self.start_index)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.repeat * FRACTAL_BYTES


def _walks_below_zero(template: "Load2d | _LoadTranspose", start: int) -> list[Violation]:
    lowest = start - (template.repeat - 1) * template.src_stride
    if template.decrement and lowest < 0:
        return [
            Violation(f"{template.name}.src_stride", "stay at or above the source", str(lowest))
        ]
    return []


def l0_cost(chip: Chip, cycles: float) -> InstructionCost:
    """Return the cost of a load from L1 to L0 that takes so many cycles without its head."""
    queued = chip.require("l1_to_l0_queued_cycles", "timing")
    head = chip.require("l1_to_l0_head_cycles", "timing")
    return InstructionCost(math.ceil(cycles) + queued, idle_head=head - queued)


@instruction(
    "load_cbuf_to_ca",
    Pipe.MTE1,
    since="m100",
    names={"c_api": "asc_copy_l12l0a", "cpp": "LoadData(LoadData2DParams)"},
    source="asc-devkit, asc_copy_l12l0a (2201), 2D form",
    archs=("2201", "3510"),
    copies=True,
    kirin=Kirin(),
)
class LoadCbufToCa(Load2d):
    """Move fractals from L1 to L0A, each unchanged."""

    pointers = FRACTAL_TYPES
    dst = write(Mem.L0A, "fractal", "block")
    src = read(Mem.L1, "fractal", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0A link."""
        return l0_cost(chip, costs.l1_to_l0a_cycles(chip, self.size_bytes))


@instruction(
    "load_cbuf_to_cb",
    Pipe.MTE1,
    since="m100",
    names={"c_api": "asc_copy_l12l0b", "cpp": "LoadData(LoadData2DParams, B2)"},
    source="asc-devkit, asc_copy_l12l0b (2201), 2D form",
    archs=("2201", "3510"),
    copies=True,
    kirin=Kirin(),
)
class LoadCbufToCb(Load2d):
    """Move fractals from L1 to L0B, each unchanged."""

    pointers = FRACTAL_TYPES
    dst = write(Mem.L0B, "fractal", "block")
    src = read(Mem.L1, "fractal", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0B link."""
        return l0_cost(chip, costs.l1_to_l0b_cycles(chip, self.size_bytes))


_TRANSPOSE_TYPES = (
    *("int8", "uint8", "float16", "bfloat16", "int16", "uint16", "float32", "int32", "uint32"),
)
_FLOATS_OF_3510 = (*("float8_e4m3fn", "float8_e5m2", "hifloat8", "float4_e2m1fn", "float4_e1m2"),)
_STEPS = ("dst", "src", "index_id", "repeat", "src_stride", "dst_gap")
_TURNED_3510 = (*_STEPS, "dst_frac_gap", "src_frac_gap")
_EDGES = {4: 64, 8: 32}
"""Rows and columns of a square by the element's bits; 16 for wider ones."""


@parameters
class _LoadTranspose(Instruction):
    """Transpose squares on the way from L1 to L0.

    A square is 16 x 16 of 16-bit (one fractal), 32 x 32 of 8-bit (two fractals, one above the
    other), 64 x 64 of 4-bit (four, one above the other; into L0B alone) or 16 x 16 of 32-bit
    elements (two fractals side by side, so that L1 must hold fractals row by row: asc-devkit,
    LoadDataWithTranspose). Transposed, it is cut into fractals again. repeat equal to 0: nothing
    happens.
    """

    dtype: ElementType = types("element type", *_TRANSPOSE_TYPES)
    index_id: int = param(0, 65535, "first square, counted from the source address", default=0)
    repeat: int = param(0, 255, "squares")
    src_stride: int = param(0, 65535, "squares from one source to the next", default=1)
    dst_gap: int = param(
        0,
        65535,
        "fractals from the end of a square's first fractal to the next square's",
        default=0,
    )
    decrement: bool = param(0, 1, "walk the source downwards", default=False)
    dst_frac_gap: int = param(
        0, 65535, "fractals left free between those of one square (4, 8 and 32 bits)", default=0
    )

    @property
    def edge(self) -> int:
        """Rows and columns of a square."""
        return _EDGES.get(self.dtype.bits, FRACTAL_ROWS)

    def _squares(self) -> tuple[Offsets, Offsets, Offsets]:
        square = np.arange(self.repeat, dtype=np.intp)[:, None, None]
        row = np.arange(self.edge, dtype=np.intp)[:, None]
        return square, row, np.arange(self.edge, dtype=np.intp)

    def offsets_src(self) -> Offsets:
        """Shape [repeat, edge, edge], already transposed: last axis runs down the source's rows."""
        # Row and column are exchanged on this side only, so that element [s, i, j] of the source is
        # written to place [s, i, j] of the target. L1 holds a square as columns of C0, one below
        # the other.
        square, column, row = self._squares()
        step = -self.src_stride if self.decrement else self.src_stride
        number, c0 = self.index_id + square * step, self.dtype.c0
        unit, pitch = self._source_steps()
        start = number * unit + (row // 16 + column // c0) * pitch
        return start + (row % 16) * c0 + column % c0

    def _source_steps(self) -> tuple[int, int]:
        """Elements from a square to the next one of L1, and from a fractal of it to the next."""
        return self.edge**2, 16 * self.dtype.c0

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        square, row, column = self._squares()
        c0 = self.dtype.c0
        part = row // 16 + column // c0
        number = square * (1 + self.dst_gap) + part * (1 + self.dst_frac_gap)
        return number * (16 * c0) + (row % 16) * c0 + column % c0

    def preconditions(self, chip: Chip) -> list[Violation]:
        """A walk downwards must not pass the source address."""
        return _walks_below_zero(self, self.index_id)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        size: int = self.dtype.bytes_of(self.repeat * self.edge**2)
        return size


@instruction(
    "load_cbuf_to_ca_transpose",
    Pipe.MTE1,
    since="m100",
    names={"c_api": "asc_copy_l12l0a_trans", "cpp": "LoadDataWithTranspose"},
    source="asc-devkit, asc_copy_l12l0a_trans (2201)",
    copies=True,
    kirin=Kirin(HALF_OR_BYTE, HALF, NO_TRANSPOSE),
)
class LoadCbufToCaTranspose(_LoadTranspose):
    """Transpose squares on the way from L1 to L0A."""

    dst = write(Mem.L0A, "square column row")
    src = read(Mem.L1, "square column row")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0A link."""
        return l0_cost(chip, costs.l1_to_l0a_cycles(chip, self.size_bytes))


@instruction(
    "load_cbuf_to_cb_transpose",
    Pipe.MTE1,
    since="m100",
    names={"c_api": "asc_copy_l12l0b_trans", "cpp": "LoadDataWithTranspose(B2)"},
    source="asc-devkit, asc_copy_l12l0b_trans (2201, 3510)",
    uncertain=(
        "a square of int4 is 64 x 64: what the page draws and computes with; the table of its "
        "parameters says 16 x 64",
        "C on 3510: index_id and src_stride count fractals, by its table; its text has squares",
    ),
    archs=("2201", "3510"),
    copies=True,
    kirin=Kirin(HALF_OR_BYTE, HALF, NO_TRANSPOSE),
)
class LoadCbufToCbTranspose(_LoadTranspose):
    """Transpose squares on the way from L1 to L0B."""

    dst = write(Mem.L0B, "square column row")
    src = read(Mem.L1, "square column row")
    dtype: ElementType = types("element type", "int4", *_TRANSPOSE_TYPES, *_FLOATS_OF_3510)
    src_frac_gap: int = param(0, 65535, "fractals between those of one square in L1", default=0)
    in_fractals: bool = param(0, 1, "index_id and src_stride count fractals", default=False)
    by_arch = MappingProxyType({"3510": (_TURNED_3510, MappingProxyType({"in_fractals": True}))})

    def _source_steps(self) -> tuple[int, int]:
        """Count fractals where the C API of architecture 3510 does."""
        square, fractal = super()._source_steps()
        return fractal if self.in_fractals else square, (1 + self.src_frac_gap) * fractal

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Floats of 8 and 4 bits are architecture 3510's."""
        if self.dtype.name in _FLOATS_OF_3510 and chip.arch != "3510":
            need = f"be one of int4, {', '.join(_TRANSPOSE_TYPES)} on {chip.name}"
            return [Violation(f"{self.name}.dtype", need, self.dtype.name)]
        return super().preconditions(chip)

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0B link."""
        return l0_cost(chip, costs.l1_to_l0b_cycles(chip, self.size_bytes))


@instruction(
    "copy_gm_to_ubuf",
    Pipe.MTE2,
    since="m100",
    names={"c_api": "asc_copy_gm2ub", "cpp": "DataCopy(VECIN)", "tik": "data_move"},
    source="asc-devkit, asc_copy_gm2ub (2201)",
    copies=True,
)
class CopyGmToUbuf(Bursts):
    """Copy runs of 32-byte blocks from global memory to the Unified Buffer."""

    dst = write(Mem.UB, "run block", "block")
    src = read(Mem.GM, "run block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE2."""
        pitch = self.row_bytes + self.src_gap * DATA_BLOCK_BYTES
        cycles = costs.gm_to_ub_cycles(chip, self.size_bytes, self.n_burst, pitch)
        return InstructionCost(
            math.ceil(cycles),
            traffic=GlobalTraffic.of_rows(
                self.n_burst, self.row_bytes, pitch, writes=False, of_ub=True
            ),
        )


@instruction(
    "copy_ubuf_to_gm",
    Pipe.MTE3,
    since="m100",
    names={"c_api": "asc_copy_ub2gm", "cpp": "DataCopy(VECOUT)", "tik": "data_move"},
    source="asc-devkit, asc_copy_ub2gm (2201)",
    copies=True,
)
class CopyUbufToGm(Bursts):
    """Copy runs of 32-byte blocks from the Unified Buffer to global memory."""

    dst = write(Mem.GM, "run block", "block")
    src = read(Mem.UB, "run block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE3."""
        cycles, row = costs.ub_to_gm_cycles(chip, self.size_bytes), self.row_bytes
        pitch = row + self.dst_gap * DATA_BLOCK_BYTES
        traffic = GlobalTraffic.of_rows(self.n_burst, row, pitch, writes=True, of_ub=True)
        return InstructionCost(math.ceil(cycles), traffic=traffic)
