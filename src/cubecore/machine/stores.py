"""What the fast engine computes: stores of tiles of C to global tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.isa.fixpipe import CopyMatrixCcToGm
from cubecore.isa.registers import Registers
from cubecore.machine.memory import GlobalTensor
from cubecore.machine.products import (
    EXACT_FLOAT32_BITS,
    Block,
    IrregularError,
    Leftover,
    Tile,
    fits_int32,
    product_bound,
)
from cubecore.machine.shadows import Shadows, row_values
from cubecore.numerics import saturate
from cubecore.numerics.quantisation import atomic
from cubecore.units import FRACTAL_ROWS

Array = NDArray[Any]
Known = NDArray[np.bool_] | None
"""Which elements were written in L0C; None: all."""

_LARGEST_STORE = 1 << 19
"""Elements of C that one store may grow to: enough for BLAS, little enough to share out."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a store's elements go: rows `pitch` elements apart.

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
        """Whether m by n elements may not all have places of their own."""
        if not self.wide:
            return m > 1 and self.pitch < n
        return n > self.wide and self.step < m * self.pitch

    def panels(self, flat: Array, shape: tuple[int, int]) -> Iterator[tuple[slice, Array]]:
        """Yield columns and their places in `flat`, as [columns of fractals, m, columns in one]."""
        (m, n), size = shape, flat.itemsize
        if not self.wide:
            yield slice(n), as_strided(flat, (1, m, n), (0, self.pitch * size, size))
            return
        groups, left = divmod(n, self.wide)
        strides = (self.step * size, self.pitch * size, size)
        if groups:
            yield slice(groups * self.wide), as_strided(flat, (groups, m, self.wide), strides)
        if left:
            last = flat[groups * self.step :]
            place = as_strided(last, (1, m, left), (0, FRACTAL_ROWS * size, size))
            yield slice(groups * self.wide, n), place


@dataclass(frozen=True, slots=True)
class Store:
    """A fixpipe: m by n of L0C, a tile and what lies beside it, go to a global tensor.

    `template` says what happens to the values, whatever its shape; `scales` is the row of them, if
    it takes one for each column. `atomic` is how they combine with what is there.
    """

    tile: Tile
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
        """Whether it takes all of one product and nothing else."""
        tile = self.tile
        if len(tile.terms) != 1 or tile.bias is not None:
            return False
        return (self.m, self.n) == (tile.m, tile.n) and tile.terms[0][0].r == tile.m

    def tiles(self) -> Iterator[Tile]:
        """Yield every tile that the values come from."""
        yield self.tile
        for leftover in self.leftovers:
            yield leftover.tile

    def reads(self) -> Iterator[Block]:
        """Yield every block that the values are made from."""
        for tile in self.tiles():
            for pair in tile.terms:
                yield from pair
            if tile.bias is not None:
                yield tile.bias
        if self.scales is not None:
            yield self.scales

    def in_runs(self, run: int) -> "Store":
        """Return an ND store that counts runs of elements in place of elements; all fit."""
        if run == 1:
            return self
        target = replace(self.target, pitch=self.target.pitch // run)
        distances = tuple(distance // run for distance in self.distances)
        n, offset = self.n // run, self.offset // run
        return replace(self, n=n, offset=offset, distances=distances, target=target)

    def places(self, flat: Array, core: int) -> Iterator[tuple[slice, Array]]:
        """Yield columns and their places in a flat array with one entry for each element."""
        start = self.offset + self.distances[core] // self.target.kind.size_bytes
        return self.target.panels(flat[start:], (self.m, self.n))


def joined(first: Store, second: Store) -> Store | None:
    """Return two stores as one, if the second is the tile below or beside the first.

    Larger products are the same sums and run faster. Only whole tiles of one product each join.
    """
    if not (first.is_whole and second.is_whole):
        return None
    alike = (first.tensor, first.target, first.distances) == (
        *(second.tensor, second.target, second.distances),
    ) and (first.template, first.registers) == (second.template, second.registers)
    if not alike:
        return None
    (a, b), (next_a, next_b) = first.tile.terms[0], second.tile.terms[0]
    m, n, scales, gap = first.m, first.n, first.scales, second.offset - first.offset
    pair: tuple[Block | None, Block | None] = (None, None)
    if b == next_b and scales == second.scales and gap == first.target.below(m, n):
        m, pair = m + second.m, (a.joined(next_a, "r"), b)
    elif a == next_a and gap == first.target.beside(n):
        n, pair = n + second.n, (a, b.joined(next_b, "r"))
        if scales is not None and second.scales is not None:
            scales = scales.joined(second.scales, "k")
    a_part, b_part = pair
    if a_part is None or b_part is None or m * n > _LARGEST_STORE:
        return None
    if (scales is None) != (first.scales is None):
        return None
    tile = Tile(m, n, first.tile.kind, None, ((a_part, b_part),), first.tile.largest)
    return replace(first, tile=tile, m=m, n=n, scales=scales)


def computed(store: Store, core: int, shadows: Shadows) -> tuple[Array, Known]:
    """Return what one core stores, [m, n] in the target's type."""
    total, known = _sum(store.tile, core, shadows)[: store.m, : store.n], None
    if total.shape != (store.m, store.n):
        whole = np.zeros((store.m, store.n), total.dtype)
        known = np.zeros(whole.shape, bool)
        whole[:, : total.shape[1]], known[:, : total.shape[1]] = total, True
        for leftover in store.leftovers:
            _add_leftover(whole, leftover, core, shadows)
            known[leftover.rows, leftover.columns] = True
        total = whole
    inputs = {"src": total}
    if store.scales is not None:
        inputs["scales"] = row_values(store.scales, core)[: store.n]
    return store.template.compute(inputs, store.registers)["dst"], known


def commit(store: Store, core: int, values: Array, known: Known) -> None:
    """Write what one core stores, and which elements are initialised by that."""
    buffer, kind = store.tensor.buffer, store.target.kind
    size = kind.size_bytes
    for columns, place in store.places(buffer.data.view(kind.numpy), core):
        found = _by_panel(values[:, columns], place.shape)
        place[...] = atomic(store.atomic, place, found) if store.atomic else found
    if store.atomic:
        return  # all of it was initialised, and is
    whole = np.ones(size, np.uint8).view(f"u{size}")[0]
    for columns, place in store.places(buffer.valid.view(f"u{size}"), core):
        place[...] = whole if known is None else _by_panel(known[:, columns], place.shape) * whole


def _by_panel(values: Array, shape: tuple[int, ...]) -> Array:
    """Return [m, columns] as [columns of fractals, m, columns in one]."""
    groups, m, wide = shape
    return values.reshape(m, groups, wide).transpose(1, 0, 2)


def _add_leftover(total: Array, leftover: Leftover, core: int, shadows: Shadows) -> None:
    """Fill in the lanes of an older tile: 16 columns of it at a time are computed again."""
    groups = leftover.tile_columns // FRACTAL_ROWS
    for group in np.unique(groups):
        first = int(group) * FRACTAL_ROWS
        values = _sum(leftover.tile.columns(first), core, shadows)
        here = groups == group
        lanes = values[leftover.tile_rows[here], leftover.tile_columns[here] - first]
        total[leftover.rows[here], leftover.columns[here]] = lanes


def _sum(tile: Tile, core: int, shadows: Shadows) -> Array:
    """Return start + sum of products, [m, n]."""
    bias = None if tile.bias is None else row_values(tile.bias, core)[: tile.n]
    integer = tile.kind.kind == "int"
    return (_integer_sum if integer else _float_sum)(tile, bias, core, shadows)


def _float_sum(tile: Tile, bias: Array | None, core: int, shadows: Shadows) -> Array:
    """Return the sum in float32; BLAS chooses the order within each product."""
    total: Array | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for a, b in tile.terms:
            product = _rows(a, tile.m, core, shadows) @ shadows.values(b, core).T
            total = product if total is None else np.add(total, product, out=total)
        assert total is not None
        if bias is not None:
            total += bias.astype(np.float32)
    return total


def _integer_sum(tile: Tile, bias: Array | None, core: int, shadows: Shadows) -> Array:
    """Return the sum as int32, clamped after each product that may leave its range.

    Parts of K are exact in float32.
    """
    total = np.zeros((tile.m, tile.n), np.int32)
    if bias is not None:
        total += bias
    largest = tile.largest - sum(product_bound(a, b) for a, b in tile.terms)
    for a, b in tile.terms:
        largest += product_bound(a, b)
        left, right = _rows(a, tile.m, core, shadows), shadows.values(b, core)
        exact = 1 << (EXACT_FLOAT32_BITS - (a.kind.bits - 1) - (b.kind.bits - 1))
        parts = (slice(k, k + exact) for k in range(0, a.k, exact))
        pieces = (left[:, part] @ right[:, part].T for part in parts)
        if fits_int32(largest):
            for piece in pieces:
                total += piece.astype(np.int32)
        else:
            wide = total.astype(np.int64)
            for piece in pieces:
                wide += piece.astype(np.int64)
            total = saturate(wide, tile.kind)
    return total


def _rows(a: Block, m: int, core: int, shadows: Shadows) -> Array:
    """Return the block's [r, k] with rows of zeros up to m."""
    values = shadows.values(a, core)
    return values if a.r == m else np.pad(values, ((0, m - a.r), (0, 0)))


def require_order_does_not_matter(stores: Sequence[Store]) -> None:
    """Give up if stores, of any cores, meet; atomic ones of one kind may, where all is written."""
    by_tensor: dict[int, list[Store]] = {}
    for store in stores:
        by_tensor.setdefault(store.tensor.address, []).append(store)
    for group in by_tensor.values():
        _require_alike(group)
        if group[0].atomic:
            if not group[0].tensor.buffer.valid.all():
                raise IrregularError("an atomic store to what nobody wrote")
        else:
            _require_apart(group)


def _require_alike(group: Sequence[Store]) -> None:
    first = group[0]
    for store in group:
        if (store.atomic, store.target.kind) != (first.atomic, first.target.kind):
            raise IrregularError("stores of several kinds to one tensor")
        if store.target.meets_itself(store.m, store.n):
            raise IrregularError("a store that meets itself")
        if store.atomic and store.n > store.tile.n:
            raise IrregularError("an atomic store of lanes that are not the tile's")


def _require_apart(group: Sequence[Store]) -> None:
    """Give up if two stores to one tensor, of any cores, meet.

    In ND what is marked are runs of elements that every store takes whole.
    """
    tensor, kind = group[0].tensor, group[0].target.kind
    count, size = tensor.buffer.size_bytes // kind.size_bytes, kind.size_bytes
    is_nd = not any(store.target.wide for store in group)
    run = 1
    if is_nd:
        extents = {x for s in group for x in (s.offset, s.n, s.target.pitch)}
        run = gcd(*extents, *{d // size for s in group for d in s.distances})
    mark = np.zeros(-(-count // run), bool)
    for store in group:
        for core in range(len(store.distances)):
            for _, place in store.in_runs(run).places(mark, core):
                if place.any():
                    raise IrregularError("stores that meet")
                place[...] = True
