"""Copies of up to five dimensions from global memory to UB, of architecture 3510 alone.

The class API gives the loops with the call, the C API in registers.
"""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare import family
from cubecore.isa.declare.common_3510 import ARCH, L2_HINTS
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
from cubecore.isa.declare.registers import CopyDimensions, Registers
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets

_LOOPS = range(5)
_OUTER = _LOOPS[1:]
_MOST_SIZE = _MOST_NEAR = 2**20 - 1
_MOST_FAR = 2**40 - 1
_MOST_PADDING = 255
_TYPES = (
    *("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32"),
    *("int64", "uint64"),
)
_C_TYPES = (
    *(*_TYPES[:-2], "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"),
    *("float4_e2m1fn", "float4_e1m2"),
)
_BYTE = element_type("uint8")
_UNCERTAIN = (
    "where padding of two loops meets, the constant or the nearest element in both",
    "the cost is that of a copy whose rows are the first loop's (rough)",
    "the copy's own cache of 32 KB always holds what global memory has",
)


@parameters
class _DimensionalCopy(Instruction):
    """Five nested loops, the first innermost; those of size 1 add nothing.

    Strides count elements. Each loop has padding in front of its elements and behind them at the
    destination, which the destination's strides count, too: a constant, or the loop's first and
    last element. What the loops write must not overlap.
    """

    stride_names: ClassVar[str] = "dst_stride{}"
    dtype: ElementType = types("element type", *_C_TYPES)

    @property
    @abstractmethod
    def pads_with_nearest(self) -> bool:
        """True if padding is the loop's first and last element."""

    @property
    @abstractmethod
    def loops(self) -> CopyDimensions:
        """The strides, the padding of all but the first loop, and the constant."""

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Elements of each loop without its padding."""

    @property
    @abstractmethod
    def first_padding(self) -> tuple[int, int]:
        """Elements in front of the first loop's, and behind."""

    @property
    def unit(self) -> ElementType:
        """Return the unit of the copy; of two numbers in a byte it is the byte."""
        return self.dtype if self.dtype.bits >= _BYTE.bits else _BYTE

    @property
    def _lefts(self) -> list[int]:
        return [self.first_padding[0], *self.loops.left]

    @property
    def _padded(self) -> list[int]:
        """Elements of each loop with its padding."""
        rights = [self.first_padding[1], *self.loops.right]
        parts = zip(self._lefts, self.sizes, rights, strict=True)
        return [left + size + right for left, size, right in parts]

    @property
    def size_bytes(self) -> int:
        """Bytes that are read."""
        return math.prod(self.sizes) * self.unit.size_bytes

    def _nested(self, indices: list[Offsets], strides: tuple[int, ...]) -> Offsets:
        """Return the sums of indices times strides, the last loop outermost."""
        total = np.zeros((1,) * len(_LOOPS), np.intp)
        for loop, (index, stride) in enumerate(zip(indices, strides, strict=True)):
            shape = [1] * len(_LOOPS)
            shape[-1 - loop] = index.size
            total = total + (index * stride).reshape(shape)
        return total

    def offsets_dst(self) -> Offsets:
        """Shape [loop4, ..., loop0], with padding."""
        indices = [np.arange(count, dtype=np.intp) for count in self._padded]
        return self._nested(indices, self.loops.dst_strides)

    def offsets_src(self) -> Offsets:
        """Shape as dst's; the constant is negative."""
        indices, outside = [], np.zeros((1,) * len(_LOOPS), bool)
        lefts, sizes = self._lefts, self.sizes
        for loop, count in enumerate(self._padded):
            index = np.arange(count, dtype=np.intp) - lefts[loop]
            shape = [1] * len(_LOOPS)
            shape[-1 - loop] = count
            outside = outside | ((index < 0) | (index >= sizes[loop])).reshape(shape)
            indices.append(np.clip(index, 0, sizes[loop] - 1))
        taken = self._nested(indices, self.loops.src_strides)
        return taken if self.pads_with_nearest else np.where(outside, -1, taken)

    def fill(self, registers: Registers) -> bytes | None:
        """Give the constant."""
        constant = self.loops.constant
        if constant is None:
            return None
        size = self.unit.size_bytes
        return (constant & (1 << 8 * size) - 1).to_bytes(size, "little")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The destination's loops do not overlap; 64 bits pad with 0 alone."""
        constant = self.loops.constant
        if self.dtype.bits == 64 and (self.pads_with_nearest or constant):
            pad = "the nearest element" if self.pads_with_nearest else str(constant)
            return [Violation(f"{self.name}: the padding", f"be 0 for {self.dtype}", pad)]
        loops = [
            (stride, count, loop)
            for loop, (stride, count) in enumerate(
                zip(self.loops.dst_strides, self._padded, strict=True)
            )
            if count > 1
        ]
        # Loops in ascending order of their strides: one whose stride passes all that those before
        # it write meets none of it; loops of one turn count for nothing, whatever their stride.
        written = 1
        for stride, count, loop in sorted(loops):
            if stride < written:
                need = f"be {written} or more, what the loops of smaller strides write"
                subject = f"{self.name}.{self.stride_names.format(loop)}"
                return [Violation(subject, need, str(stride))]
            written += stride * (count - 1)
        return []

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE2, a row for each run of the first loop."""
        row = self.unit.size_bytes * (self.sizes[0] if self.loops.src_strides[0] == 1 else 1)
        cycles = costs.gm_to_ub_cycles(chip, self.size_bytes, self.size_bytes // row)
        traffic = GlobalTraffic(self.size_bytes, row, writes=False, of_ub=True)
        return InstructionCost(math.ceil(cycles), traffic=traffic)


@parameters
class MultiDimensionalCopy(_DimensionalCopy):
    """Five nested loops, the first innermost; those of size 1 add nothing.

    Strides count elements. Each loop has padding in front of its elements and behind them at the
    destination, which the destination's strides count, too: a constant, or with `nearest` the
    loop's first and last element. What the loops write must not overlap.
    """

    dst = write(Mem.UB, "loop4 loop3 loop2 loop1 loop0")
    src = read(Mem.GM, "loop4 loop3 loop2 loop1 loop0")
    dtype: ElementType = types("element type", *_TYPES)
    nearest: bool = param(0, 1, "pad with the nearest element", default=False)
    constant: int = param(0, 2**64 - 1, "bits of what pads otherwise", default=0)
    counts: ClassVar[tuple[str, ...]] = tuple(f"size{n}" for n in _LOOPS)

    @property
    def pads_with_nearest(self) -> bool:
        """True if padding is the loop's first and last element."""
        return self.nearest

    def _of(self, what: str, loops: range = _LOOPS) -> tuple[int, ...]:
        return tuple(int(getattr(self, f"{what}{n}")) for n in loops)

    @property
    def sizes(self) -> list[int]:
        """Elements of each loop without its padding."""
        return list(self._of("size"))

    @property
    def first_padding(self) -> tuple[int, int]:
        """Elements in front of the first loop's, and behind."""
        return self._of("left")[0], self._of("right")[0]

    @property
    def loops(self) -> CopyDimensions:
        """As the call gives them."""
        return CopyDimensions(
            self._of("src_stride"),
            self._of("dst_stride"),
            self._of("left", _OUTER),
            self._of("right", _OUTER),
            self.constant,
        )


family.member(
    MultiDimensionalCopy,
    "copy_gm_to_ubuf_nd",
    Pipe.MTE2,
    doc="Copy elements of up to five dimensions from global memory to the Unified Buffer",
    body={"__module__": __name__},
    fields={
        **{f"size{n}": (int, param(1, _MOST_SIZE, f"elements of loop {n}")) for n in _LOOPS[:1]},
        **{
            f"size{n}": (int, param(1, _MOST_SIZE, f"elements of loop {n}", default=1))
            for n in _OUTER
        },
        **{
            f"{side}_stride{n}": (
                int,
                param(0, most, f"elements from one of loop {n} to the next", default=n == 0),
            )
            for side, most in (("src", _MOST_FAR), ("dst", _MOST_NEAR))
            for n in _LOOPS
        },
        **{
            f"{side}{n}": (int, param(0, _MOST_PADDING, f"padding of loop {n}", default=0))
            for side in ("left", "right")
            for n in _LOOPS
        },
    },
    names={"cpp": "DataCopy(NdDmaParams)"},
    source="asc-devkit, DataCopy of NdDmaParams (3510)",
    uncertain=_UNCERTAIN,
    archs=ARCH,
    copies=True,
)


@instruction(
    "copy_gm_to_ubuf_ndim",
    Pipe.MTE2,
    names={"c_api": "asc_ndim_copy_gm2ub"},
    source="asc-devkit, asc_ndim_copy_gm2ub and what sets its loops (3510)",
    uncertain=(
        *_UNCERTAIN,
        "before set_ndim_pad_value padding stays unwritten: the page names no first value",
        "an element of two 4-bit floats is the byte of both",
        "cache modes that drop what L2 holds are refused: no value of L2 is modelled",
    ),
    archs=ARCH,
    copies=True,
)
class CopyGmToUbufNdim(_DimensionalCopy):
    """Copy elements of up to five dimensions from global memory to the Unified Buffer.

    Strides, the padding of loops 1 to 4 and the constant are what registers hold. padding_mode 1
    pads with the constant, 0 with the loop's first and last element. What the loops write must not
    overlap.
    """

    signature = (
        *("dst", "src", *(f"loop{n}_size" for n in _LOOPS)),
        *("loop0_lp_count", "loop0_rp_count", "padding_mode", "l2_cache_mode"),
    )
    stride_names = "loop{}_dst_stride"
    counts: ClassVar[tuple[str, ...]] = tuple(f"loop{n}_size" for n in _LOOPS)
    dst = write(Mem.UB, "loop4 loop3 loop2 loop1 loop0", "unit")
    src = read(Mem.GM, "loop4 loop3 loop2 loop1 loop0", "unit")
    loop0_size: int = param(1, _MOST_SIZE, "elements of loop 0")
    loop1_size: int = param(1, _MOST_SIZE, "elements of loop 1", default=1)
    loop2_size: int = param(1, _MOST_SIZE, "elements of loop 2", default=1)
    loop3_size: int = param(1, _MOST_SIZE, "elements of loop 3", default=1)
    loop4_size: int = param(1, _MOST_SIZE, "elements of loop 4", default=1)
    loop0_lp_count: int = param(0, _MOST_PADDING, "padding before loop 0", default=0)
    loop0_rp_count: int = param(0, _MOST_PADDING, "padding behind loop 0", default=0)
    padding_mode: bool = param(0, 1, "pad with the constant", default=False)
    l2_cache_mode: int = choice(
        "L2 hint: 0 first victim, 1 last victim, 2 persistent, 4 none; no value depends on it",
        *L2_HINTS,
        default=0,
    )
    dimensions: CopyDimensions | None = taken("the loops")

    def resolved(self, registers: Registers) -> Self:
        """Take the loops."""
        return replace(self, dimensions=registers.dimensions)

    @property
    def pads_with_nearest(self) -> bool:
        """True if padding is the loop's first and last element."""
        return not self.padding_mode

    @property
    def loops(self) -> CopyDimensions:
        """As registers hold them."""
        return self.dimensions or CopyDimensions()

    @property
    def sizes(self) -> list[int]:
        """Elements of each loop without its padding."""
        return [int(getattr(self, name)) for name in self.counts]

    @property
    def first_padding(self) -> tuple[int, int]:
        """Elements in front of the first loop's, and behind."""
        return self.loop0_lp_count, self.loop0_rp_count


@parameters
class _SetDimensionStride(Instruction):
    """Strides of one loop; they stay until they are set anew."""

    loop: ClassVar[int]
    dst_stride: int = param(0, _MOST_NEAR, "elements from one to the next in UB")
    src_stride: int = param(0, _MOST_FAR, "elements from one to the next in global memory")

    def apply(self, registers: Registers) -> Registers:
        """Keep the two."""
        held, loop = registers.dimensions, self.loop
        src = (*held.src_strides[:loop], self.src_stride, *held.src_strides[loop + 1 :])
        dst = (*held.dst_strides[:loop], self.dst_stride, *held.dst_strides[loop + 1 :])
        return replace(registers, dimensions=replace(held, src_strides=src, dst_strides=dst))


for _loop in _LOOPS:
    family.member(
        _SetDimensionStride,
        f"set_ndim_loop{_loop}_stride",
        Pipe.S,
        doc=f"Set how far elements of loop {_loop} of a copy of five dimensions lie apart",
        body={"__module__": __name__, "loop": _loop},
        fields={},
        names={"c_api": f"asc_set_ndim_loop{_loop}_stride"},
        source="asc-devkit, asc_set_ndim_loop_stride (3510)",
        archs=ARCH,
    )


@instruction(
    "set_ndim_pad_count",
    Pipe.S,
    names={"c_api": "asc_set_ndim_pad_count"},
    source="asc-devkit, asc_set_ndim_pad_count (3510)",
    archs=ARCH,
)
class SetNdimPadCount(Instruction):
    """Set the padding of loops 1 to 4 of a copy of five dimensions; of loop 0 the copy gives it."""

    loop1_lp_count: int = param(0, _MOST_PADDING, "elements before loop 1", default=0)
    loop1_rp_count: int = param(0, _MOST_PADDING, "elements behind loop 1", default=0)
    loop2_lp_count: int = param(0, _MOST_PADDING, "elements before loop 2", default=0)
    loop2_rp_count: int = param(0, _MOST_PADDING, "elements behind loop 2", default=0)
    loop3_lp_count: int = param(0, _MOST_PADDING, "elements before loop 3", default=0)
    loop3_rp_count: int = param(0, _MOST_PADDING, "elements behind loop 3", default=0)
    loop4_lp_count: int = param(0, _MOST_PADDING, "elements before loop 4", default=0)
    loop4_rp_count: int = param(0, _MOST_PADDING, "elements behind loop 4", default=0)

    def apply(self, registers: Registers) -> Registers:
        """Keep the eight."""
        left, right = (
            tuple(int(getattr(self, f"loop{n}_{side}_count")) for n in _OUTER)
            for side in ("lp", "rp")
        )
        return replace(registers, dimensions=replace(registers.dimensions, left=left, right=right))


@instruction(
    "set_ndim_pad_value",
    Pipe.S,
    names={"c_api": "asc_set_ndim_pad_value"},
    source="asc-devkit, asc_set_ndim_pad_value (3510)",
    archs=ARCH,
)
class SetNdimPadValue(Instruction):
    """Set what a copy of five dimensions pads with where padding_mode is 1."""

    pad_value: int = param(0, 2**32 - 1, "bits of the value")

    def apply(self, registers: Registers) -> Registers:
        """Keep the bits."""
        dimensions = replace(registers.dimensions, constant=self.pad_value)
        return replace(registers, dimensions=dimensions)
