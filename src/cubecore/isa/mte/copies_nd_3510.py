"""The copy of up to five dimensions from global memory to UB, of architecture 3510 alone."""

import math
from typing import ClassVar

import numpy as np

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare import family
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import (
    GlobalTraffic,
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets

_LOOPS = range(5)
_MOST_SIZE = _MOST_NEAR = 2**20 - 1
_MOST_FAR = 2**40 - 1
_MOST_PADDING = 255
_TYPES = (
    *("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32"),
    *("int64", "uint64"),
)


@parameters
class MultiDimensionalCopy(Instruction):
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

    def _of(self, what: str) -> list[int]:
        return [int(getattr(self, f"{what}{n}")) for n in _LOOPS]

    @property
    def _padded(self) -> list[int]:
        """Elements of each loop with its padding."""
        parts = zip(self._of("left"), self._of("size"), self._of("right"), strict=True)
        return [left + size + right for left, size, right in parts]

    @property
    def size_bytes(self) -> int:
        """Bytes that are read."""
        return math.prod(self._of("size")) * self.dtype.size_bytes

    def _nested(self, indices: list[Offsets], strides: list[int]) -> Offsets:
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
        return self._nested(indices, self._of("dst_stride"))

    def offsets_src(self) -> Offsets:
        """Shape as dst's; the constant is negative."""
        indices, outside = [], np.zeros((1,) * len(_LOOPS), bool)
        lefts, sizes = self._of("left"), self._of("size")
        for loop, count in enumerate(self._padded):
            index = np.arange(count, dtype=np.intp) - lefts[loop]
            shape = [1] * len(_LOOPS)
            shape[-1 - loop] = count
            outside = outside | ((index < 0) | (index >= sizes[loop])).reshape(shape)
            indices.append(np.clip(index, 0, sizes[loop] - 1))
        taken = self._nested(indices, self._of("src_stride"))
        return taken if self.nearest else np.where(outside, -1, taken)

    def fill(self, registers: Registers) -> bytes | None:
        """Give the constant."""
        size = self.dtype.size_bytes
        return (self.constant & (1 << 8 * size) - 1).to_bytes(size, "little")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The destination's loops do not overlap; 64 bits pad with 0 alone."""
        if self.dtype.bits == 64 and (self.nearest or self.constant):
            pad = "the nearest element" if self.nearest else str(self.constant)
            return [Violation(f"{self.name}: the padding", f"be 0 for {self.dtype}", pad)]
        loops = [
            (stride, count, loop)
            for loop, (stride, count) in enumerate(
                zip(self._of("dst_stride"), self._padded, strict=True)
            )
            if count > 1
        ]
        written = 1
        for stride, count, loop in sorted(loops):
            if stride < written:
                need = f"be {written} or more, what the loops of smaller strides write"
                return [Violation(f"{self.name}.dst_stride{loop}", need, str(stride))]
            written += stride * (count - 1)
        return []

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE2, a row for each run of the first loop."""
        row = self.dtype.size_bytes * (self._of("size")[0] if self._of("src_stride")[0] == 1 else 1)
        cycles = costs.gm_to_ub_cycles(chip, self.size_bytes, self.size_bytes // row)
        traffic = GlobalTraffic(self.size_bytes, row, writes=False, of_ub=True)
        return InstructionCost(math.ceil(cycles), traffic=traffic)


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
            for n in _LOOPS[1:]
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
    uncertain=(
        "where padding of two loops meets, the constant or the nearest element in both",
        "the cost is that of a copy whose rows are the first loop's (rough)",
        "the copy's own cache of 32 KB always holds what global memory has",
    ),
    archs=ARCH,
    copies=True,
)
