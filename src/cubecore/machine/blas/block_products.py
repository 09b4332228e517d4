"""Matmuls proven by the BLAS engine: tiles of C as sums of matmuls of global tensors."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.machine.blas.mx_scales import PAIR, Scales
from cubecore.machine.memory.buffers import GlobalTensor
from cubecore.units import FRACTAL_ROWS

EXACT_FLOAT32_BITS = 24
"""Integers of this many bits, and products that stay below, are exact in float32."""


class IrregularError(Exception):
    """The program is not shown to be matmuls of blocks; the reference engine runs it."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a stored matrix as an operand: `r` by `k` elements, for each core of a group.

    `offset` counts elements from the tensor's start for the first core; core i's lies
    `distances[i]` bytes further. Rows of the stored matrix are `pitch` elements apart; K runs along
    them if `k_inner`, else down the columns. A row is cut into pieces of C0, which are `step`
    elements apart: `step` is C0 in ND (and where there is one piece only), more in NZ. `hf32` is
    how float32 elements are rounded first. `scales` are those of an MX product; k is then what is
    stored of their pairs of 32, and zeros follow.
    """

    tensor: GlobalTensor
    kind: ElementType
    offset: int
    distances: tuple[int, ...]
    r: int
    k: int
    pitch: int
    step: int
    k_inner: bool
    hf32: str = "off"
    scales: Scales | None = None

    @property
    def rows(self) -> int:
        """Rows of the stored matrix."""
        return self.r if self.k_inner else self.k

    @property
    def columns(self) -> int:
        """Columns of the stored matrix."""
        return self.k if self.k_inner else self.r

    @property
    def is_nz(self) -> bool:
        """True if its rows are not in one piece."""
        return self.step != self.kind.c0

    def start(self, core: int) -> int:
        """Return a core's first element, counted from the tensor's start."""
        return self.offset + self.distances[core] * 8 // self.kind.bits

    def joined(self, other: "Block", axis: Literal["r", "k"]) -> "Block | None":
        """Return both as one block, if `other` is what follows along the axis; else None."""
        extent, same = ((self.k, self.r == other.r), (self.r, self.k == other.k))[axis == "r"]
        # Blocks join where one matrix is read on: the same tensor, pitch, type and core distances.
        alike = (
            same
            and self.tensor is other.tensor
            and self.kind is other.kind
            and self.k_inner is other.k_inner
            and self.pitch == other.pitch
            and self.hf32 == other.hf32
            and (self.distances is other.distances or self.distances == other.distances)
        )
        if not alike:
            return None
        if (axis == "k") is self.k_inner:
            step = self._step_to(other)
        else:
            below = other.offset == self.offset + extent * self.pitch
            step = self.step if below and self.step == other.step else None
        if step is None:
            return None
        r, k = (self.r + other.r, self.k) if axis == "r" else (self.r, self.k + other.k)
        if self.scales is None and other.scales is None:
            return self._sized(self.offset, r, k, step)
        scales = self._scales_with(other, axis)
        if scales is None:
            return None
        return self._sized(self.offset, r, k, step).with_scales(scales)

    def _scales_with(self, other: "Block", axis: Literal["r", "k"]) -> Scales | None:
        """Return the scales of both; None if they do not follow, or zeros lie between."""
        if self.scales is None or other.scales is None:
            return None
        if axis == "k" and self.k != self.scales.pairs * PAIR:
            return None
        return self.scales.joined(other.scales, axis)

    def _step_to(self, other: "Block") -> int | None:
        """Return the distance of pieces in the rows that both make; None if they do not follow."""
        c0, columns, gap = self.kind.c0, self.columns, other.offset - self.offset
        # ND: the other begins where this row ends.
        if gap == columns and not (self.is_nz or other.is_nz):
            return c0
        # NZ: pieces of C0 lie a step apart; the gap must be a whole number of steps, and the same
        # for all pieces.
        if columns % c0 or gap % (columns // c0):
            return None
        step = gap // (columns // c0)
        fits = step > 0 and self.pitch == c0
        for block in (self, other):
            fits = fits and (block.columns <= c0 or block.step == step)
        return step if fits else None

    def part(self, first: int, count: int) -> "Block":
        """Return `count` of r from `first` on: in NZ within one piece, or whole ones."""
        offset = first * self.pitch
        if not self.k_inner:
            pieces, lane = divmod(first, self.kind.c0)
            offset = pieces * self.step + lane
        part = self._sized(self.offset + offset, count, self.k, self.step)
        return part if self.scales is None else part.with_scales(self.scales.part(first, count))

    def with_scales(self, scales: Scales) -> "Block":
        """Return the block with these scales."""
        return replace(self, scales=scales)

    def _sized(self, offset: int, r: int, k: int, step: int) -> "Block":
        # not dataclasses.replace: this is the inner loop of a proof
        return Block(
            self.tensor,
            self.kind,
            offset,
            self.distances,
            r,
            k,
            self.pitch,
            step,
            self.k_inner,
            self.hf32,
        )


@dataclass(frozen=True, slots=True)
class ProductSum:
    """A tile of L0C: where it starts from, and the matmuls that were added to it, in order.

    Where a product has fewer rows than the tile, A has rows of zeros behind them.
    `largest` bounds what an integer sum can be on the way, its start included. A product that may
    pass the range of int32 stays one of its own, since `mad` clamps what it leaves.
    """

    m: int
    n: int
    kind: ElementType
    bias: Block | None = None
    terms: tuple[tuple[Block, Block], ...] = ()
    largest: int = 0

    def plus(self, a: Block, b: Block) -> "ProductSum":
        """Return the tile with one more matmul; a continuation of the last one joins it."""
        terms, pair = self.terms, (a, b)
        largest = self.largest + product_bound(a, b)
        # A sum that may pass int32 is clamped matmul by matmul, so that no two of them may be
        # one.
        if terms and fits_int32(largest):
            last_a, last_b = terms[-1]
            longer_a, longer_b = last_a.joined(a, "k"), last_b.joined(b, "k")
            if longer_a is not None and longer_b is not None:
                terms, pair = terms[:-1], (longer_a, longer_b)
        return ProductSum(self.m, self.n, self.kind, self.bias, (*terms, pair), largest)

    def columns(self, first: int) -> "ProductSum":
        """Return the (at most 16) columns from `first`, a multiple of 16, on."""
        count = min(FRACTAL_ROWS, self.n - first)
        terms = tuple((a, b.part(first, count)) for a, b in self.terms)
        bias = self.bias
        if bias is not None:
            bias = replace(bias, offset=bias.offset + first, k=count)
        return ProductSum(self.m, count, self.kind, bias, terms, self.largest)


def product_bound(a: Block, b: Block) -> int:
    """Return the largest magnitude of an integer product; 0 for floats."""
    if a.kind.kind != "int":
        return 0
    return a.k << (a.kind.bits + b.kind.bits - 2)


def fits_int32(magnitude: int) -> bool:
    """True if int32 holds it with either sign."""
    return magnitude < 1 << 31


@dataclass(frozen=True, eq=False, slots=True)
class Leftover:
    """Lanes of L0C that a store takes although they are not its tile's: an older tile's.

    `rows` and `columns` say where in the store, `tile_rows` and `tile_columns` where in `tile`.
    """

    tile: ProductSum
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    tile_rows: NDArray[np.intp]
    tile_columns: NDArray[np.intp]
