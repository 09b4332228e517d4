"""Image to column on the way from L1 to L0A and L0B (load3d v2), and its registers.

A feature map lies in L1 as NC1HWC0: pixels of C0 channels, all blocks of channels one after
another; a last block of fewer channels lies as densely as it is. The expanded matrix has a row for
each place of the filter (row by row over the map) and a column for each channel that the filter
sees: by block of channels, then filter row, filter column, channel. An instruction writes a window
of it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.archs import HALF_OR_BYTE, ON_X90_ALONE, REPEATS, Kirin
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    instruction,
    param,
    read,
    taken,
    types,
    write,
)
from cubecore.isa.declare.registers import FeatureMap, Load3dRepeat, Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import l0_cost
from cubecore.layouts import Offsets
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

_TAILS = {4: (8, 16, 32), 8: (4, 8, 16), 16: (4, 8), 32: (4,)}
"""Channels of a last block that is not whole, by the element's bits."""
_MORE = 256
"""The addends of filter_size_w and filter_size_h."""
_LEAST_BOUNDARY = 1024


class WindowAxis(NamedTuple):
    """One axis of the window: which of the matrix's indices, and where they go."""

    taken: Offsets
    at: Offsets
    extent: int


@parameters
class Img2col(Instruction):
    """Write a window of the expanded matrix to L0.

    The filter has filter_w x filter_h points (256 more with filter_size_w, filter_size_h), dilated;
    it moves by stride_w and stride_h over the map with its padding. set_fmatrix gives the map (with
    f_matrix_ctrl set_fmatrix_b), set_l3d_padding what points outside read, unwritten before it is
    set. set_l3d_rpt repeats the window along M (rpt_stride x 16 rows on) or K (rpt_stride x 32 B
    on); all windows together are one matrix in L0. rpt_time 0: nothing happens. With
    set_l3d_size bytes of L1 from the boundary on are those from L1's start on.

    Lanes of fractals beyond the window or the matrix keep what L0 held.
    """

    transposes: ClassVar[bool]
    transposed_bits: ClassVar[tuple[int, ...]] = (16, 32)
    """Elements that `transpose` takes."""
    signature = (
        *("dst", "src", "k_extension", "m_extension", "k_start_pt", "m_start_pt"),
        *("stride_w", "stride_h", "filter_w", "filter_h", "dilation_filter_w"),
        *("dilation_filter_h", "filter_size_w", "filter_size_h", "transpose", "f_matrix_ctrl"),
        "channel_size",
    )
    dtype: ElementType = types("element type")
    k_extension: int = param(1, 65535, "columns of the window")
    m_extension: int = param(1, 65535, "rows of the window")
    k_start_pt: int = param(0, 65535, "first column", default=0)
    m_start_pt: int = param(0, 65535, "first row", default=0)
    stride_w: int = param(1, 63, "the filter's step along a row of the map", default=1)
    stride_h: int = param(1, 63, "its step down the map", default=1)
    filter_w: int = param(1, 255, "points of a row of the filter", default=1)
    filter_h: int = param(1, 255, "rows of the filter", default=1)
    dilation_filter_w: int = param(1, 255, "map columns from point to point", default=1)
    dilation_filter_h: int = param(1, 255, "map rows from row to row", default=1)
    filter_size_w: bool = param(0, 1, "256 more points in a row of the filter", default=False)
    filter_size_h: bool = param(0, 1, "256 more rows of the filter", default=False)
    transpose: bool = param(0, 1, "transpose the window", default=False)
    f_matrix_ctrl: bool = param(0, 1, "take the map that set_fmatrix_b described", default=False)
    channel_size: int = param(1, 65535, "channels of the map")
    feature: FeatureMap | None = taken("the map, from set_fmatrix")
    repetition: Load3dRepeat | None = taken("how the window is repeated, from set_l3d_rpt")
    boundary: int | None = taken("where L1 begins anew, from set_l3d_size")
    src_at: int | None = taken("src's address, where L1 begins anew")

    def resolved(self, registers: Registers) -> Self:
        """Take the map, the repetition and the boundary."""
        feature = registers.fmatrix_b if self.f_matrix_ctrl else registers.fmatrix
        return replace(
            self,
            feature=feature,
            repetition=registers.load3d_repeat,
            boundary=registers.load3d_boundary or None,
        )

    def unmet(self, registers: Registers) -> list[Violation]:
        """Return a violation if no set_fmatrix described the map."""
        if self.feature is not None:
            return super().unmet(registers)
        setter = "set_fmatrix_b" if self.f_matrix_ctrl else "set_fmatrix"
        return [Violation(self.name, f"follow a {setter}", "none")]

    def rebased(self, addresses: tuple[int, ...]) -> tuple[Self, tuple[int, ...]]:
        """Return the load with its source counted from L1's start, if L1 has a boundary."""
        if self.boundary is None:
            return self, addresses
        return replace(self, src_at=addresses[1]), (addresses[0], 0)

    def address_violations(self, addresses: Mapping[str, int]) -> list[Violation]:
        """Src starts before the boundary, on its alignment."""
        if self.src_at is None or self.boundary is None:
            return []
        subject, violations = f"{self.name}.src", []
        if self.src_at >= self.boundary:
            need = f"start before the boundary {self.boundary} of set_l3d_size"
            violations.append(Violation(subject, need, str(self.src_at)))
        if self.src_at % Mem.L1.align_bytes:
            need = f"start at a multiple of {Mem.L1.align_bytes} B in L1"
            violations.append(Violation(subject, need, str(self.src_at)))
        return violations

    @property
    def lies_anywhere(self) -> bool:
        """Unless L1 begins anew."""
        return self.boundary is None

    # --- the expanded matrix

    @property
    def filter(self) -> tuple[int, int]:
        """Rows and points of the filter."""
        return (
            self.filter_h + _MORE * self.filter_size_h,
            self.filter_w + _MORE * self.filter_size_w,
        )

    @property
    def filter_positions(self) -> tuple[int, int]:
        """Places of the filter down and along the map; none before the map is known."""
        f = self.feature
        if f is None:
            return 0, 0
        high, wide = self.filter
        down = f.height + f.top + f.bottom - self.dilation_filter_h * (high - 1) - 1
        along = f.width + f.left + f.right - self.dilation_filter_w * (wide - 1) - 1
        return (
            down // self.stride_h + 1 if down >= 0 else 0,
            along // self.stride_w + 1 if along >= 0 else 0,
        )

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of the expanded matrix."""
        high, wide = self.filter
        down, along = self.filter_positions
        return down * along, high * wide * self.channel_size

    def window_axis(self, along_k: bool) -> WindowAxis:
        """Return one axis of all windows; indices outside of the matrix are left out."""
        unit = self.dtype.c0 if along_k else FRACTAL_ROWS
        start, extent = (
            (self.k_start_pt, self.k_extension) if along_k else (self.m_start_pt, self.m_extension)
        )
        repetition = self.repetition or Load3dRepeat()
        times = repetition.time if repetition.along_k == along_k else min(repetition.time, 1)
        window = np.arange(extent, dtype=np.intp)
        number = np.arange(times, dtype=np.intp)[:, None]
        whole = int(align_up(extent, unit))
        indices = (start + number * repetition.stride * unit + window).ravel()
        at = (number * whole + window).ravel()
        inside = indices < self.matrix[int(along_k)]
        return WindowAxis(indices[inside], at[inside], times * whole)

    def offsets_src(self) -> Offsets:
        """Shape [rows, columns] of the windows; points outside of the map are negative."""
        f = self.feature
        rows, columns = self.window_axis(along_k=False).taken, self.window_axis(along_k=True).taken
        if f is None:
            return np.zeros((0, 0), np.intp)
        base, channel, width, y, x = self._columns(columns, f)
        down, along = np.divmod(rows, max(1, self.filter_positions[1]))
        y = down[:, None] * self.stride_h - f.top + y * self.dilation_filter_h
        x = along[:, None] * self.stride_w - f.left + x * self.dilation_filter_w
        inside = (y >= 0) & (y < f.height) & (x >= 0) & (x < f.width)
        offsets = base + (y * f.width + x) * width + channel
        if self.boundary is not None and self.src_at is not None:
            per_byte = 8 / self.dtype.bits
            offsets = (offsets + int(self.src_at * per_byte)) % int(self.boundary * per_byte)
        return np.where(inside, offsets, -1)

    def _columns(self, columns: Offsets, f: FeatureMap) -> tuple[Offsets, ...]:
        """Return for each column: its block's start, channel there and width, filter row, point."""
        high, wide = self.filter
        c0, points = self.dtype.c0, high * wide
        whole, tail = divmod(self.channel_size, c0)
        last = columns >= whole * points * c0
        width = np.where(last, max(tail, 1), c0)
        inner = np.where(last, columns - whole * points * c0, columns % (points * c0))
        block = np.where(last, whole, columns // (points * c0))
        point = inner // width
        base = block * (f.height * f.width * c0)
        return base, inner % width, width, point // wide, point % wide

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        rows, columns = self.window_axis(along_k=False), self.window_axis(along_k=True)
        c0 = self.dtype.c0
        i, j = rows.at[:, None], columns.at
        if not self.turned:
            across = columns.extent // c0
            fractal = (i // FRACTAL_ROWS) * across + j // c0
            return fractal * (FRACTAL_ROWS * c0) + i % FRACTAL_ROWS * c0 + j % c0
        if self.transposes:  # L0B: fractals of C0 rows, elements down the columns
            across = ceil_div(columns.extent, FRACTAL_ROWS)
            fractal = (i // c0) * across + j // FRACTAL_ROWS
        else:
            across = rows.extent // c0
            fractal = (j // FRACTAL_ROWS) * across + i // c0
        return fractal * (FRACTAL_ROWS * c0) + j % FRACTAL_ROWS * c0 + i % c0

    @property
    def turned(self) -> bool:
        """True if the window is transposed on the way."""
        return self.transposes or self.transpose

    def fill(self, registers: Registers) -> bytes | None:
        """Points outside of the map: what was set, unwritten before."""
        if registers.load3d_padding is None:
            return None
        size = -(-self.dtype.bits // 8)
        return (registers.load3d_padding & (1 << 8 * size) - 1).to_bytes(size, "little")

    # --- what it asks

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Channels, starts and sizes by element; a filter that fits the map."""
        violations = []
        c0, bits = self.dtype.c0, self.dtype.bits
        tails = (0, *_TAILS[bits])
        if self.channel_size < tails[1] or self.channel_size % c0 not in tails:
            rests = ", ".join(str(tail) for tail in _TAILS[bits])
            need = f"be a multiple of {c0}, or {rests} more, for {self.dtype}"
            violations.append(Violation(f"{self.name}.channel_size", need, str(self.channel_size)))
        if self.k_start_pt % c0:
            need = f"be a multiple of {c0} for {self.dtype}"
            violations.append(Violation(f"{self.name}.k_start_pt", need, str(self.k_start_pt)))
        if self.transpose and not self.transposes and bits not in self.transposed_bits:
            sizes = " or ".join(str(size) for size in self.transposed_bits)
            need = f"be off for {self.dtype}, which is not of {sizes} bits"
            violations.append(Violation(f"{self.name}.transpose", need, "on"))
        if self.feature is None or violations:
            return violations
        high, wide = self.filter
        down, along = self.filter_positions
        for word, fits, size in (("filter_h", down, high), ("filter_w", along, wide)):
            if not fits:
                need = "fit the padded map"
                violations.append(Violation(f"{self.name}.{word}", need, f"{size} dilated points"))
        return violations or self._extents(c0)

    def _extents(self, c0: int) -> list[Violation]:
        """A size that does not reach the last fractals is a multiple of a fractal's edge."""
        rows, columns = self.matrix
        violations = []
        for word, start, extent, edge, most in (
            ("k_extension", self.k_start_pt, self.k_extension, c0, columns),
            ("m_extension", self.m_start_pt, self.m_extension, FRACTAL_ROWS, rows),
        ):
            free = word == "m_extension" and self.dtype.bits == 32
            reaches = start + extent > (most - 1) // edge * edge
            if extent % edge and not reaches and not free:
                need = f"be a multiple of {edge} unless it reaches the last fractal"
                violations.append(Violation(f"{self.name}.{word}", need, str(extent)))
        return violations

    @property
    def size_bytes(self) -> int:
        """Bytes written: whole fractals of the windows."""
        rows, columns = (
            self.window_axis(along_k=False).extent,
            self.window_axis(along_k=True).extent,
        )
        size: int = self.dtype.bytes_of(rows * columns)
        return size


UNCERTAIN = (
    "channel_size takes all the values of the page's list, up to 65535 as in the basic API; the C "
    "API's range [1, 63] contradicts the list",
    "a last block of fewer than C0 channels lies densely behind the whole ones: the pages show it "
    "for 4 channels alone",
    "f_matrix_ctrl works; the pages say that only false is supported at present",
    "set_l3d_padding gives the low bits of an element of any type",
    "where windows are repeated, each starts at whole fractals of L0",
)


@instruction(
    "img2colv2_cbuf_to_ca",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0a", "cpp": "LoadData(LoadData3DParamsV2)"},
    source="asc-devkit, asc_copy_l12l0a (2201), 3D form; LoadData (3D)",
    uncertain=(
        *UNCERTAIN,
        "a transposed window has as many fractals in a row as hold its rows rounded up to 16",
    ),
    copies=True,
    kirin=Kirin(HALF_OR_BYTE, ON_X90_ALONE, REPEATS),
)
class Img2colv2CbufToCa(Img2col):
    """Expand a feature map from L1 to L0A, in ZZ; with transpose, the window's transpose in ZZ."""

    transposes = False
    dst = write(Mem.L0A, "row column")
    src = read(Mem.L1, "row column")
    dtype: ElementType = types(
        "element type",
        *("int4", "uint8", "int8", "float16", "bfloat16", "uint32", "int32", "float32"),
    )

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0A link."""
        return l0_cost(chip, costs.l1_to_l0a_cycles(chip, self.size_bytes))


@instruction(
    "img2colv2_cbuf_to_cb",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0b", "cpp": "LoadData(LoadData3DParamsV2, B2)"},
    source="asc-devkit, asc_copy_l12l0b (2201), 3D form; LoadData (3D)",
    uncertain=UNCERTAIN,
    copies=True,
    kirin=Kirin(HALF_OR_BYTE, ON_X90_ALONE, REPEATS),
)
class Img2colv2CbufToCb(Img2col):
    """Expand a feature map from L1 to L0B, in ZN: rows of the window are K of the matmul.

    transpose changes nothing: on this way every fractal is transposed.
    """

    transposes = True
    dst = write(Mem.L0B, "row column")
    src = read(Mem.L1, "row column")
    dtype: ElementType = types("element type", "float16", "bfloat16", "uint32", "int32", "float32")

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0B link."""
        return l0_cost(chip, costs.l1_to_l0b_cycles(chip, self.size_bytes))


# --- registers


@parameters
class _SetFmatrix(Instruction):
    l1_height: int = param(1, 32767, "rows of the map")
    l1_width: int = param(1, 32767, "columns of the map")
    padding_left_size: int = param(0, 255, "columns of padding on the left", default=0)
    padding_right_size: int = param(0, 255, "columns of padding on the right", default=0)
    padding_top_size: int = param(0, 255, "rows of padding above", default=0)
    padding_bottom_size: int = param(0, 255, "rows of padding below", default=0)

    @property
    def feature(self) -> FeatureMap:
        """The map."""
        return FeatureMap(
            self.l1_height,
            self.l1_width,
            self.padding_left_size,
            self.padding_right_size,
            self.padding_top_size,
            self.padding_bottom_size,
        )


@instruction(
    "set_fmatrix",
    Pipe.S,
    names={"c_api": "asc_set_l13d_fmatrix", "cpp": "SetFmatrix"},
    source="asc-devkit, asc_set_l13d_fmatrix, asc_l13d_fmatrix_config and SetFmatrix (2201, 3510)",
    archs=("2201", "3510"),
    kirin=Kirin(),
)
class SetFmatrix(_SetFmatrix):
    """Describe the feature map that load3d expands, and its padding."""

    def apply(self, registers: Registers) -> Registers:
        """Keep the map."""
        return replace(registers, fmatrix=self.feature)


@instruction(
    "set_fmatrix_b",
    Pipe.S,
    names={"c_api": "asc_set_l13d_fmatrix_b"},
    source="asc-devkit, asc_set_l13d_fmatrix_b and asc_l13d_fmatrix_config (2201, 3510)",
    archs=("2201", "3510"),
    kirin=Kirin(),
)
class SetFmatrixB(_SetFmatrix):
    """Describe the feature map that load3d expands with f_matrix_ctrl, and its padding."""

    def apply(self, registers: Registers) -> Registers:
        """Keep the map."""
        return replace(registers, fmatrix_b=self.feature)


@instruction(
    "set_l3d_padding",
    Pipe.S,
    names={"c_api": "asc_set_l13d_padding", "cpp": "SetLoadDataPaddingValue"},
    source="asc-devkit, asc_set_l13d_padding and SetLoadDataPaddingValue (2201, 3510)",
    archs=("2201", "3510"),
    kirin=Kirin(),
)
class SetL3dPadding(Instruction):
    """Set what load3d reads outside of the feature map: an element's bits, from the lowest up."""

    config: int = param(-(2**15), 2**64 - 1, "the value's bits", bits_of="float16")

    def apply(self, registers: Registers) -> Registers:
        """Keep the bits."""
        return replace(registers, load3d_padding=self.config & 2**64 - 1)


@instruction(
    "set_l3d_rpt",
    Pipe.S,
    names={"c_api": "asc_set_l13d_rpt", "cpp": "SetLoadDataRepeat"},
    source="asc-devkit, asc_set_l13d_rpt, asc_load3d_v2_config and SetLoadDataRepeat (2201)",
)
class SetL3dRpt(Instruction):
    """Set how load3d repeats its window: how often, how far on, along M (0) or K (1)."""

    rpt_stride: int = param(0, 65535, "16 rows, or 32 B of columns, between windows", default=0)
    rpt_time: int = param(0, 255, "windows", default=1)
    rpt_mode: int = param(0, 1, "the axis: 0 is M, 1 is K", default=0)

    def apply(self, registers: Registers) -> Registers:
        """Keep them."""
        repeat = Load3dRepeat(self.rpt_stride, self.rpt_time, bool(self.rpt_mode))
        return replace(registers, load3d_repeat=repeat)


@instruction(
    "set_l3d_size",
    Pipe.S,
    names={"c_api": "asc_set_l13d_size", "cpp": "SetLoadDataBoundary"},
    source="asc-devkit, asc_set_l13d_size and SetLoadDataBoundary (2201)",
)
class SetL3dSize(Instruction):
    """Set where load3d takes L1 to begin anew, in bytes; 0: nowhere."""

    value: int = param(0, 2**32 - 1, "the boundary, bytes", multiple=Mem.L1.align_bytes)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """1024 bytes or more, within L1."""
        if not self.value or _LEAST_BOUNDARY <= self.value <= chip.l1_bytes:
            return []
        need = f"be 0 or in [{_LEAST_BOUNDARY}, {chip.l1_bytes}]"
        return [Violation(f"{self.name}.value", need, str(self.value))]

    def apply(self, registers: Registers) -> Registers:
        """Keep the boundary."""
        return replace(registers, load3d_boundary=self.value)
