"""Proven stores to global tensors: larger stores that they make, and those that overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.declare.registers import Registers
from cubecore.machine.blas.block_products import (
    Block,
    IrregularError,
    Leftover,
    ProductSum,
)
from cubecore.machine.blas.mx_scales import Scales
from cubecore.machine.memory.buffers import GlobalTensor
from cubecore.units import FRACTAL_ROWS

_LARGEST_STORE = 1 << 19
"""Elements of C that one store may grow to: enough for BLAS, little enough to share out."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a store: its address, and rows `pitch` elements apart.

    In NZ a row is cut into columns of fractals, `wide` elements of a row in each, `step` elements
    apart; `wide` is 0 in ND. Elements behind the last whole column of fractals make one that is 16
    wide.
    """

    kind: ElementType
    pitch: int
    wide: int = 0
    step: int = 0

    def below(self, m: int, n: int) -> int | None:
        """Return how far the m-th row lies from the first; None if not all of it equally."""
        return None if self.wide and n % self.wide else m * self.pitch

    def beside(self, n: int) -> int | None:
        """Return how far the n-th column lies from the first; None inside a fractal."""
        if not self.wide:
            return n
        return None if n % self.wide else n // self.wide * self.step

    def meets_itself(self, m: int, n: int) -> bool:
        """True if m by n elements may not all have places of their own."""
        if not self.wide:
            return m > 1 and self.pitch < n
        return n > self.wide and self.step < m * self.pitch

    def panels(self, flat: Array, m: int, n: int) -> Iterator[tuple[slice, Array]]:
        """Yield columns and their places in `flat`, as [columns of fractals, m, columns in one]."""
        # NZ as strided views: [columns of fractals, m, columns in one]. Behind the last whole
        # column of fractals a narrower rest is left, whose rows lie 16 elements apart.
        size = flat.itemsize
        if not self.wide:
            yield slice(n), as_strided(flat, (1, m, n), (0, self.pitch * size, size))
            return
        groups, left = divmod(n, self.wide)
        strides = (self.step * size, self.pitch * size, size)
        if groups:
            yield slice(groups * self.wide), as_strided(flat, (groups, m, self.wide), strides)
        if left:
            last = flat[groups * self.step :]
            panel = as_strided(last, (1, m, left), (0, FRACTAL_ROWS * size, size))
            yield slice(groups * self.wide, n), panel


@dataclass(frozen=True, slots=True)
class ProvenStore:
    """A fixpipe: m by n of L0C, a tile and what lies beside it, go to a global tensor.

    `template` says what happens to the values, whatever its shape; `scales` is the row of them, if
    it takes one for each column. `atomic` is how they combine with what is there.
    """

    tile: ProductSum
    tensor: GlobalTensor
    offset: int
    distances: tuple[int, ...]
    m: int
    n: int
    target: Target
    template: CopyMatrixCcToGm
    registers: Registers
    scales: Block | None = None
    leftovers: tuple[Leftover, ...] = ()

    @property
    def atomic(self) -> str:
        """``add``, ``max``, ``min``, or empty."""
        return self.registers.atomic

    @property
    def is_whole(self) -> bool:
        """True if it takes all of one matmul and nothing else."""
        tile = self.tile
        if len(tile.terms) != 1:
            return False
        return (self.m, self.n) == (tile.m, tile.n) and tile.terms[0][0].r == tile.m

    def tiles(self) -> Iterator[ProductSum]:
        """Yield every tile that the values come from."""
        yield self.tile
        for leftover in self.leftovers:
            yield leftover.tile

    def reads(self) -> Iterator[Block | Scales]:
        """Yield every block that the values are made from, and what scales it."""
        for tile in self.tiles():
            for block in (block for pair in tile.terms for block in pair):
                yield block
                if block.scales is not None:
                    yield block.scales
            if tile.bias is not None:
                yield tile.bias
        if self.scales is not None:
            yield self.scales

    def in_runs(self, run: int) -> "ProvenStore":
        """Return an ND store that counts runs of elements in place of elements; all fit."""
        if run == 1:
            return self
        target = replace(self.target, pitch=self.target.pitch // run)
        distances = tuple(distance // run for distance in self.distances)
        n, offset = self.n // run, self.offset // run
        return replace(self, n=n, offset=offset, distances=distances, target=target)

    def located(self, flat: Array, core: int) -> Iterator[tuple[slice, Array]]:
        """Yield columns and their places in a flat array with one entry for each element."""
        start = self.offset + self.distances[core] // self.target.kind.size_bytes
        return self.target.panels(flat[start:], self.m, self.n)


def joined(first: ProvenStore, second: ProvenStore) -> ProvenStore | None:
    """Return two stores as one, if the second is the tile below or beside the first.

    Larger products are the same sums and run faster. Only whole tiles of one product each join.
    """
    # A tile with lanes of older tiles beside it, or of several matmuls, is stored as it is.
    if not (first.is_whole and second.is_whole):
        return None
    alike = (first.tensor, first.target, first.distances) == (
        *(second.tensor, second.target, second.distances),
    ) and (first.template, first.registers) == (second.template, second.registers)
    if not alike:
        return None
    (a, b), (next_a, next_b) = first.tile.terms[0], second.tile.terms[0]
    m, n, gap = first.m, first.n, second.offset - first.offset
    rows = (first.tile.bias, second.tile.bias), (first.scales, second.scales)
    left: Block | None
    right: Block | None
    # Below: the same columns of B, rows of A that follow; beside: the other way round. Bias and
    # scales belong to columns, so below they must be the same and beside they must follow.
    if b == next_b and gap == first.target.below(m, n):
        m, left, right = m + second.m, a.joined(next_a, "r"), b
        rows_joined = [(row, row == next_row) for row, next_row in rows]
    elif a == next_a and gap == first.target.beside(n):
        n, left, right = n + second.n, a, b.joined(next_b, "r")
        rows_joined = [_row_beside(row, next_row) for row, next_row in rows]
    else:
        return None
    (bias, same_bias), (scales, same_scales) = rows_joined
    if left is None or right is None or not (same_bias and same_scales):
        return None
    # Larger matmuls gain nothing, and leave fewer to share among threads.
    if m * n > _LARGEST_STORE:
        return None
    largest = max(first.tile.largest, second.tile.largest)
    tile = ProductSum(m, n, first.tile.kind, bias, ((left, right),), largest)
    return replace(first, tile=tile, m=m, n=n, scales=scales)


def _row_beside(first: Block | None, second: Block | None) -> tuple[Block | None, bool]:
    """Return the row for both tiles' columns, if any; and whether there is one as they need it."""
    # Two tiles without a row are alike; a tile with one and a tile without cannot be joined.
    if first is None or second is None:
        return None, first is second
    row = first.joined(second, "k")
    return row, row is not None


def require_order_does_not_matter(stores: Sequence[ProvenStore]) -> None:
    """Give up if stores, of any cores, meet; atomic ones of one kind may, where all is written."""
    by_tensor: dict[int, list[ProvenStore]] = {}
    for store in stores:
        by_tensor.setdefault(store.tensor.address, []).append(store)
    for group in by_tensor.values():
        _require_alike(group)
        if group[0].atomic:
            if not group[0].tensor.buffer.valid.all():
                raise IrregularError("an atomic store to uninitialised bytes")
        else:
            _require_apart(group)


def _require_alike(group: Sequence[ProvenStore]) -> None:
    first = group[0]
    for store in group:
        if (store.atomic, store.target.kind) != (first.atomic, first.target.kind):
            raise IrregularError("stores of several kinds to one tensor")
        if store.target.meets_itself(store.m, store.n):
            raise IrregularError("a store that meets itself")
        if store.atomic and store.n > store.tile.n:
            raise IrregularError("an atomic store of lanes that are not the tile's")


def _require_apart(group: Sequence[ProvenStore]) -> None:
    """Give up if two stores to one tensor, of any cores, meet.

    In ND what is marked are runs of elements that every store takes whole.
    """
    tensor, kind = group[0].tensor, group[0].target.kind
    count, size = tensor.buffer.size_bytes // kind.size_bytes, kind.size_bytes
    is_nd = not any(store.target.wide for store in group)
    run = 1
    if is_nd:
        extents = {x for s in group for x in (s.offset, s.n, s.target.pitch)}
        # Marks of runs, not of elements: all stores begin and end at multiples of the run, so the
        # marks of a large C stay small.
        run = gcd(*extents, *{d // size for s in group for d in s.distances})
    mark = np.zeros(-(-count // run), bool)
    for store in group:
        for core in range(len(store.distances)):
            for _, panel in store.in_runs(run).located(mark, core):
                if panel.any():
                    raise IrregularError("stores that meet")
                panel[...] = True
