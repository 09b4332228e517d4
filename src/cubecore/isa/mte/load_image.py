"""Images from global memory to L1, cropped, padded and converted on the way (AIPP)."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    Pipe,
    choice,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import l1_traffic
from cubecore.layouts import Offsets
from cubecore.numerics import round_float
from cubecore.numerics.conversion import value_of
from cubecore.units import DATA_BLOCK_BYTES

_SOURCE = "basic API, LoadImageToLocal and SetAippFunctions"
_UNCERTAIN = (
    "pixels are converted, then padded with pixels, then with channels: no page has an order",
    "block padding repeats the image's border of the padding's size, mirrored in mode 3; the "
    "pages' figures are not in the public copy",
    "half results are rounded once, from the exact value of the page's formula",
    "no page gives the cost: that of rows of the image from global memory to L1 is taken",
)
_SIDE = 4095
_PADDING = 32
_CONSTANT = 0
_BLOCK, _MIRROR = 2, 3
_WHOLE_BLOCK, _FOUR = 0, 1
_BITS = (-(2**15), 2**16 - 1)


@lru_cache
def _words(operand: Operand) -> Operand:
    return replace(operand, align_bytes=4)


@parameters
class _LoadImage(Instruction):
    """Rows of pixels of an image, one pixel after another, with its channels together.

    A pixel's value is itself less `mean` for int8, which saturates, and (itself - mean - minimum)
    * factor for half, channel by channel; further channels are `channel_value`.
    """

    channels: ClassVar[int] = 1
    dst = write(Mem.L1, "row column channel")
    dtype: ElementType = types("type in L1", "int8", "float16")
    rows: int = param(2, _SIDE, "rows of the crop, pixels")
    columns: int = param(2, _SIDE, "columns of the crop, pixels")
    first_row: int = param(0, _SIDE, "the crop's first row in the image", default=0)
    first_column: int = param(0, _SIDE, "the crop's first column in the image", default=0)
    image_columns: int = param(2, _SIDE, "columns of the image, pixels")
    pad_top: int = param(0, _PADDING, "rows of padding above", default=0)
    pad_bottom: int = param(0, _PADDING, "rows of padding below", default=0)
    pad_left: int = param(0, _PADDING, "columns of padding on the left", default=0)
    pad_right: int = param(0, _PADDING, "columns of padding on the right", default=0)
    pad_mode: int = param(0, 3, "constant, nearest pixel, block, mirrored block", default=0)
    pad_0: int = param(*_BITS, "constant of channel 0", default=0, bits_of="dtype")
    pad_1: int = param(*_BITS, "constant of channel 1", default=0, bits_of="dtype")
    pad_2: int = param(*_BITS, "constant of channel 2", default=0, bits_of="dtype")
    one_row: bool = param(0, 1, "only the crop's first row", default=False)
    mean_0: int = param(0, 255, "mean of channel 0", default=0)
    mean_1: int = param(0, 255, "mean of channel 1", default=0)
    mean_2: int = param(0, 255, "mean of channel 2", default=0)
    minimum_0: int = param(*_BITS, "minimum of channel 0", default=0, bits_of="float16")
    minimum_1: int = param(*_BITS, "minimum of channel 1", default=0, bits_of="float16")
    minimum_2: int = param(*_BITS, "minimum of channel 2", default=0, bits_of="float16")
    factor_0: int = param(*_BITS, "factor of channel 0", default=0x3C00, bits_of="float16")
    factor_1: int = param(*_BITS, "factor of channel 1", default=0x3C00, bits_of="float16")
    factor_2: int = param(*_BITS, "factor of channel 2", default=0x3C00, bits_of="float16")
    channel_mode: int = param(0, 1, "32 B of channels (0), or four (1)", default=0)
    channel_value: int = param(*_BITS, "value of further channels", default=0, bits_of="dtype")

    @property
    def byte(self) -> ElementType:
        """Return the type of the image's bytes."""
        return element_type("uint8")

    @property
    def _samples(self) -> int:
        """Return the bytes of a pixel in the first plane."""
        return 1

    @property
    def _crop_rows(self) -> int:
        return 1 if self.one_row else self.rows

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Return rows, columns and channels of what is written."""
        rows = self.pad_top + self._crop_rows + self.pad_bottom
        columns = self.pad_left + self.columns + self.pad_right
        whole = DATA_BLOCK_BYTES // self.dtype.size_bytes
        return rows, columns, 4 if self.channel_mode == _FOUR else whole

    @property
    def size_bytes(self) -> int:
        """Bytes that are written."""
        return math.prod(self._shape) * self.dtype.size_bytes

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Constants lie beside the image alone; blocks of padding are no longer than the crop."""
        violations = []
        sides = (
            ("pad_top", self.pad_top, self._crop_rows),
            ("pad_bottom", self.pad_bottom, self._crop_rows),
            ("pad_left", self.pad_left, self.columns),
            ("pad_right", self.pad_right, self.columns),
        )
        for number, (word, size, extent) in enumerate(sides):
            subject = f"{self.name}.{word}"
            if self.pad_mode == _CONSTANT and number < 2 and size:
                violations.append(Violation(subject, "be 0 where pad_mode is 0", str(size)))
            if self.pad_mode in (_BLOCK, _MIRROR) and size > extent:
                need = f"be at most the crop's {extent} where pad_mode is {self.pad_mode}"
                violations.append(Violation(subject, need, str(size)))
        return violations

    def _even(self, *words: str) -> list[Violation]:
        return [
            Violation(f"{self.name}.{word}", "be even", str(value))
            for word in words
            if (value := getattr(self, word)) % 2
        ]

    def _pixels(self, row_bytes: int, samples: int) -> tuple[Offsets, Offsets]:
        """Return rows and columns of the crop, shaped so that they add up to pixels."""
        row = self.first_row + np.arange(self._crop_rows, dtype=np.intp)
        column = self.first_column + np.arange(self.columns, dtype=np.intp)
        return row[:, None] * row_bytes, column[None, :] * samples

    def offsets_src(self) -> Offsets:
        """Shape [rows, columns, channels of the first plane]."""
        row, column = self._pixels(self.image_columns * self._samples, self._samples)
        return (row + column)[:, :, None] + self._order()

    def _order(self) -> Offsets:
        """Return where a pixel's channels lie in it."""
        return np.arange(self._samples, dtype=np.intp)

    def offsets_dst(self) -> Offsets:
        """Shape [rows, columns, channels], padding included."""
        return np.arange(math.prod(self._shape), dtype=np.intp).reshape(self._shape)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Convert, pad with pixels, then with channels."""
        # Y stands in a plane of its own: with U and V behind it a pixel has its three channels.
        planes = [inputs[name] for name in ("src", "chroma") if name in inputs]
        pixels = np.concatenate(planes, axis=2).astype(np.float64)
        padded = self._padded(self._converted(pixels, registers))
        filled = np.full(self._shape, value_of(self.channel_value, self.dtype), self.dtype.numpy)
        filled[:, :, : self.channels] = padded
        return {"dst": filled}

    def _of_channels(self, word: str) -> list[int]:
        return [getattr(self, f"{word}_{number}") for number in range(self.channels)]

    def _converted(self, pixels: Array, registers: Registers) -> Array:
        """Convert pixels to the type in L1."""
        pixels = pixels - np.array(self._of_channels("mean"), np.float64)
        if self.dtype.name == "int8":
            return pixels.clip(-128, 127).astype(np.int8)
        half = element_type("float16")
        minimum, factor = (
            np.array([value_of(bits, half) for bits in self._of_channels(word)], np.float64)
            for word in ("minimum", "factor")
        )
        finite = not registers.float_ieee
        return round_float((pixels - minimum) * factor, self.dtype, finite=finite)

    def _padded(self, pixels: Array) -> Array:
        """Pad along a row, then with rows."""
        if self.pad_mode == _CONSTANT:
            constants = [value_of(bits, self.dtype) for bits in self._of_channels("pad")]
            row = np.array(constants, pixels.dtype)
            beside = [np.broadcast_to(row, (len(pixels), n, row.size)) for n in self._beside]
            return np.concatenate([beside[0], pixels, beside[1]], axis=1)
        # Padding repeats pixels of the crop: each padded position is a position of the crop.
        columns = self._positions(pixels.shape[1], *self._beside)
        rows = self._positions(pixels.shape[0], self.pad_top, self.pad_bottom)
        return pixels[rows][:, columns]

    @property
    def _beside(self) -> tuple[int, int]:
        return self.pad_left, self.pad_right

    def _positions(self, extent: int, before: int, behind: int) -> Offsets:
        """Return the positions of the crop that stand along one padded axis."""
        inside = np.arange(extent, dtype=np.intp)
        if self.pad_mode not in (_BLOCK, _MIRROR):
            return np.arange(-before, extent + behind, dtype=np.intp).clip(0, extent - 1)
        first, last = inside[:before], inside[extent - behind :]
        if self.pad_mode == _MIRROR:
            first, last = first[::-1], last[::-1]
        return np.concatenate([first, inside, last])

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer of MTE2, a row for each of the image's."""
        rows = self._crop_rows
        row, pitch = self.columns * self._samples, self.image_columns * self._samples
        cycles = costs.gm_to_l1_cycles(chip, rows, row, pitch)
        return InstructionCost(math.ceil(cycles), traffic=l1_traffic(chip, rows, row, pitch))


@instruction("load_image_gray", Pipe.MTE2, source=_SOURCE, uncertain=_UNCERTAIN)
class LoadImageGray(_LoadImage):
    """Load an image of one byte a pixel (YUV400)."""

    src = read(Mem.GM, "row column channel", "byte")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The first column is even."""
        return [*self._even("first_column"), *super().preconditions(chip)]


@instruction("load_image_rgb", Pipe.MTE2, source=_SOURCE, uncertain=_UNCERTAIN)
class LoadImageRgb(_LoadImage):
    """Load an image of red, green and blue (RGB888), or of four bytes a pixel (XRGB8888).

    Of four the last one is dropped, of those with `first_dropped` the first.
    """

    channels = 3
    src = read(Mem.GM, "row column channel", "byte")
    pixel: str = choice("the image's pixels", "RGB888", "XRGB8888", default="RGB888")
    swaps: bool = param(0, 1, "red and blue change places", default=False)
    first_dropped: bool = param(0, 1, "of four bytes the first is dropped", default=False)

    @property
    def _samples(self) -> int:
        return 4 if self.pixel == "XRGB8888" else 3

    def operands(self) -> tuple[Operand, ...]:
        """Four bytes a pixel start at a multiple of 4 B."""
        return (self.declared[0], _words(self.declared[1])) if self._samples == 4 else self.declared

    def _order(self) -> Offsets:
        skipped = 1 if self.first_dropped and self.pixel == "XRGB8888" else 0
        order = np.arange(3, dtype=np.intp) + skipped
        return order[::-1] if self.swaps else order

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The first column is even."""
        return [*self._even("first_column"), *super().preconditions(chip)]


@instruction("load_image_yuv", Pipe.MTE2, source=_SOURCE, uncertain=_UNCERTAIN)
class LoadImageYuv(_LoadImage):
    """Load an image whose 2 x 2 pixels share a U and a V, which have a plane of their own."""

    channels = 3
    src = read(Mem.GM, "row column channel", "byte", align_bytes=2)
    chroma = read(Mem.GM, "row column channel", "byte", align_bytes=2)
    swaps: bool = param(0, 1, "U and V change places", default=False)

    def offsets_chroma(self) -> Offsets:
        """Shape [rows, columns, 2]."""
        # Rows of U, V pairs are as long as the image's, as each pair stands for two columns: 2 B
        # for 2 B.
        row = (self.first_row + np.arange(self._crop_rows, dtype=np.intp)) // 2
        column = (self.first_column + np.arange(self.columns, dtype=np.intp)) // 2
        pair = row[:, None] * self.image_columns + column * 2
        return pair[:, :, None] + np.array([1, 0] if self.swaps else [0, 1], np.intp)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The crop begins at, and the image's rows have, even numbers of pixels."""
        even = self._even("first_row", "first_column", "image_columns")
        return [*even, *super().preconditions(chip)]
