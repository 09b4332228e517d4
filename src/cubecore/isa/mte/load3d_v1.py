"""Image to column and back on the earlier AI Cores (load3d v1, col2img), fractal by fractal.

A feature map is [C1, height, width, C0]. A fractal has 16 rows, places of the filter one after
another, and C0 columns, the channels of one block that one point of the filter sees there.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import JOINED_ARCHS, Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import (
    Instruction,
    Mem,
    Pipe,
    instruction,
    param,
    read,
    types,
    update,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets
from cubecore.numerics import round_float
from cubecore.units import FRACTAL_ROWS

_SOURCE = "the pages of TIK, and how public TIK programs use the call"


@parameters
class _FilterPositions(Instruction):
    """The map, the filter, and the places that it takes."""

    height: int = param(1, 32767, "rows of the map")
    width: int = param(1, 32767, "columns of the map")
    pad_left: int = param(0, 255, "columns of padding on the left", default=0)
    pad_right: int = param(0, 255, "columns of padding on the right", default=0)
    pad_top: int = param(0, 255, "rows of padding above", default=0)
    pad_bottom: int = param(0, 255, "rows of padding below", default=0)
    fetch_filter_w: int = param(0, 255, "the filter's point, along a row", default=0)
    fetch_filter_h: int = param(0, 255, "the filter's point, its row", default=0)
    left_top_w: int = param(-255, 32767, "column of the first place's corner", default=0)
    left_top_h: int = param(-255, 32767, "row of the first place's corner", default=0)
    stride_w: int = param(1, 63, "the filter's step along a row of the map", default=1)
    stride_h: int = param(1, 63, "its step down the map", default=1)
    filter_w: int = param(1, 255, "points of a row of the filter", default=1)
    filter_h: int = param(1, 255, "rows of the filter", default=1)
    dilation_filter_w: int = param(1, 255, "map columns from point to point", default=1)
    dilation_filter_h: int = param(1, 255, "map rows from row to row", default=1)
    repeat: int = param(0, 255, "fractals", default=1)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The filter fits the padded map along a row, and its point is one of it."""
        violations = []
        for word, at, extent in (
            ("fetch_filter_w", self.fetch_filter_w, self.filter_w),
            ("fetch_filter_h", self.fetch_filter_h, self.filter_h),
        ):
            if at >= extent:
                need = f"be below the filter's size {extent}"
                violations.append(Violation(f"{self.name}.{word}", need, str(at)))
        if self._row_positions < 1:
            points = f"{self.filter_w} dilated points"
            violations.append(Violation(f"{self.name}.filter_w", "fit the padded map", points))
        return violations

    @property
    def _last_column(self) -> int:
        """Return the last column at which the window's corner may lie."""
        extent = self.dilation_filter_w * (self.filter_w - 1) + 1
        return self.width + self.pad_right - extent

    @property
    def _row_positions(self) -> int:
        return (self._last_column + self.pad_left) // self.stride_w + 1

    def corners(self, count: int) -> tuple[Offsets, Offsets]:
        """Return the rows and columns of the corners of `count` places, from the first one on."""
        # The first row of places begins at the given corner, wherever that is, and has `first`
        # places; all rows below begin at the padding's edge and have `_row_positions`.
        first = max(1, (self._last_column - self.left_top_w) // self.stride_w + 1)
        number = np.arange(count, dtype=np.intp)
        row, column = np.divmod(np.maximum(number - first, 0), max(1, self._row_positions))
        begun = number >= first
        x = np.where(
            begun, column * self.stride_w - self.pad_left, self.left_top_w + number * self.stride_w
        )
        y = self.left_top_h + np.where(begun, row + 1, 0) * self.stride_h
        return y, x


@parameters
class _Img2col(_FilterPositions):
    """Fractals of a feature map in L1: 16 places from the first one on, at one point of the filter.

    With repeat_mode 1 the next fractal is of the next 16 places, with 0 of the filter's next point:
    along its row, then its rows, then the next block of channels. Points outside of the map, and
    places beyond the last one, are pad_value. repeat 0: nothing happens.
    """

    transposes: ClassVar[bool] = False
    dtype: ElementType = types("element type", "int8", "uint8", "float16")
    c1_index: int = param(0, 4095, "the block of channels", default=0)
    jump_offset: int = param(0, 127, "fractals from one to the next in dst", default=1)
    repeat_mode: int = param(0, 1, "the next places (1) or the filter's next point (0)", default=0)
    pad_value: int = param(0, 65535, "bits of what is outside of the map", default=0)

    def offsets_src(self) -> Offsets:
        """Shape [repeat, 16, C0]; points outside of the map are -1."""
        # `point` numbers (block of channels, row and column of the filter) in mixed radix. With
        # repeat_mode 0 it counts up with each fractal, and all fractals share the same 16 places.
        number = np.arange(self.repeat, dtype=np.intp)
        points = self.filter_w * self.filter_h
        first = self.fetch_filter_h * self.filter_w + self.fetch_filter_w
        point = first + (number if self.repeat_mode == 0 else 0 * number)
        block = self.c1_index + point // points
        down, along = np.divmod(point % points, self.filter_w)
        count = self.repeat if self.repeat_mode == 1 else min(self.repeat, 1)
        y, x = (c.reshape(count, FRACTAL_ROWS) for c in self.corners(count * FRACTAL_ROWS))
        y = y + (down * self.dilation_filter_h)[:, None]
        x = x + (along * self.dilation_filter_w)[:, None]
        inside = (y >= 0) & (y < self.height) & (x >= 0) & (x < self.width)
        pixel = (block[:, None] * self.height + y) * self.width + x
        c0 = self.dtype.c0
        offsets = pixel[:, :, None] * c0 + np.arange(c0, dtype=np.intp)
        return np.where(inside[:, :, None], offsets, -1)

    def offsets_dst(self) -> Offsets:
        """Shape [repeat, 16, C0]."""
        c0 = self.dtype.c0
        start = np.arange(self.repeat, dtype=np.intp) * (self.jump_offset * FRACTAL_ROWS * c0)
        row, column = np.arange(FRACTAL_ROWS, dtype=np.intp), np.arange(c0, dtype=np.intp)
        if self.transposes:
            inner = column * FRACTAL_ROWS + row[:, None]
        else:
            inner = row[:, None] * c0 + column
        return start[:, None, None] + inner

    def fill(self, registers: Registers) -> bytes | None:
        """The padding's value."""
        size = self.dtype.size_bytes
        return (self.pad_value & (1 << 8 * size) - 1).to_bytes(size, "little")


_UNCERTAIN = (
    "where the first place is no multiple of the stride from the padding's edge, its row goes on "
    "from it and the next row starts at the edge",
    "places beyond the last one are pad_value",
)


@instruction(
    "img2col_cbuf_to_ca",
    Pipe.MTE1,
    names={"tik": "load3dv1"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    copies=True,
    uncertain=_UNCERTAIN,
)
class Img2colCbufToCa(_Img2col):
    """Expand a feature map from L1 to L0A; places are rows of a fractal."""

    dst = write(Mem.L0A, "fractal place channel")
    src = read(Mem.L1, "fractal place channel")


@instruction(
    "img2col_cbuf_to_cb",
    Pipe.MTE1,
    names={"tik": "load3dv1"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    copies=True,
    uncertain=(*_UNCERTAIN, "places are K of the matmul, so that each fractal is transposed"),
)
class Img2colCbufToCb(_Img2col):
    """Expand a feature map from L1 to L0B; channels are rows of a fractal there."""

    transposes = True
    dst = write(Mem.L0B, "fractal place channel")
    src = read(Mem.L1, "fractal place channel")
    dtype: ElementType = types("element type", "float16")


@instruction(
    "img2col_cbuf_to_ub",
    Pipe.MTE1,
    names={"tik": "load3dv1"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    copies=True,
    uncertain=_UNCERTAIN,
)
class Img2colCbufToUb(_Img2col):
    """Expand a feature map from L1 to UB; places are rows of a fractal."""

    dst = write(Mem.UB, "fractal place channel")
    src = read(Mem.L1, "fractal place channel")


@instruction(
    "col2img",
    Pipe.V,
    names={"tik": "col2img"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    uncertain=(
        "the queue is V's: both ends are in UB",
        "a fractal has 16 channels for float32 too",
        "places beyond the last one, and points outside of the map, add nothing",
    ),
)
class Col2img(_FilterPositions):
    """Add fractals of 16 places x 16 channels to a feature map in UB, at one point of the filter.

    Each next fractal is of the next 16 places. repeat 0: nothing happens.
    """

    overlap = "none"
    dst = update(Mem.UB, "point channel")
    src = read(Mem.UB, "point channel")
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)

    def _inside(self) -> tuple[Offsets, Offsets]:
        """Return the places whose point is in the map, and those points' numbers there."""
        y, x = self.corners(self.repeat * FRACTAL_ROWS)
        y = y + self.fetch_filter_h * self.dilation_filter_h
        x = x + self.fetch_filter_w * self.dilation_filter_w
        inside = (y >= 0) & (y < self.height) & (x >= 0) & (x < self.width)
        return np.flatnonzero(inside), (y * self.width + x)[inside]

    def offsets_dst(self) -> Offsets:
        """Shape [points in the map, 16]."""
        return self._pixels(self._inside()[1])

    def offsets_src(self) -> Offsets:
        """Shape as dst's."""
        return self._pixels(self._inside()[0])

    def _pixels(self, numbers: Offsets) -> Offsets:
        return numbers[:, None] * FRACTAL_ROWS + np.arange(FRACTAL_ROWS, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Add; no point is met twice, since all places differ."""
        total = inputs["dst"].astype(np.float32) + inputs["src"].astype(np.float32)
        return {"dst": round_float(total, self.dtype, finite=not registers.float_ieee)}
