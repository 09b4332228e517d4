"""What the fast engine computes: tiles of C as sums of block products over global tensors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.machine.memory import GlobalTensor
from cubecore.numerics import round_float, saturate

Array = NDArray[Any]

EXACT_INT8_K = 1024
"""K elements over which int8 products stay exact in float32: 1024 * 128 * 128 = 2**24."""


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle of a global tensor as an operand: `r` by `k` elements, for each core of a group.

    `offset` counts elements from the tensor's start for the first core; core i's lies
    `distances[i]` bytes further. Rows of the stored matrix are `pitch` elements apart; K runs along
    them if `k_inner`, else down the columns.
    """

    tensor: GlobalTensor
    kind: ElementType
    offset: int
    distances: tuple[int, ...]
    r: int
    k: int
    pitch: int
    k_inner: bool

    def continued_by(self, other: "Block") -> bool:
        """Whether `other` is the same rows of the same matrix, from the next K on."""
        step = self.k if self.k_inner else self.k * self.pitch
        return (
            other.offset == self.offset + step
            and other.tensor is self.tensor
            and (other.r, other.pitch, other.k_inner) == (self.r, self.pitch, self.k_inner)
            and other.distances == self.distances
        )

    def extended_by(self, other: "Block") -> bool:
        """Whether `other` is the next rows (or columns) of r, over the same K."""
        step = self.r * self.pitch if self.k_inner else self.r
        return (
            other.offset == self.offset + step
            and other.tensor is self.tensor
            and (other.k, other.pitch, other.k_inner) == (self.k, self.pitch, self.k_inner)
            and other.distances == self.distances
        )

    def values(self, flat: Array, core: int) -> Array:
        """Return the block of one core as an [r, k] view of the tensor's elements `flat`."""
        start = self.offset + self.distances[core] // self.kind.size_bytes
        size = flat.itemsize
        strides = (self.pitch * size, size) if self.k_inner else (size, self.pitch * size)
        return as_strided(flat[start:], (self.r, self.k), strides, writeable=False)


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of L0C: where it starts from, and the products that were added to it."""

    m: int
    n: int
    kind: ElementType
    bias: Block | None = None
    terms: tuple[tuple[Block, Block], ...] = ()

    def plus(self, a: Block, b: Block) -> "Tile":
        """Return the tile with one more product; a continuation of the last one joins it."""
        if self.terms:
            last_a, last_b = self.terms[-1]
            if last_a.continued_by(a) and last_b.continued_by(b):
                joined = (replace(last_a, k=last_a.k + a.k), replace(last_b, k=last_b.k + b.k))
                return replace(self, terms=(*self.terms[:-1], joined))
        return replace(self, terms=(*self.terms, (a, b)))


@dataclass(frozen=True, slots=True)
class Store:
    """A fixpipe: the first m by n of a tile go to a global tensor, rows `pitch` elements apart."""

    tile: Tile
    tensor: GlobalTensor
    kind: ElementType
    offset: int
    distances: tuple[int, ...]
    m: int
    n: int
    pitch: int
    relu: bool


def joined(first: Store, second: Store) -> Store | None:
    """Return two stores as one, if the second is the tile below or beside the first.

    Larger products are the same sums and run faster. Only whole tiles of one product each join.
    """
    whole = all(
        len(s.tile.terms) == 1 and s.tile.bias is None and (s.m, s.n) == (s.tile.m, s.tile.n)
        for s in (first, second)
    )
    alike = (first.tensor, first.kind, first.distances, first.pitch, first.relu) == (
        *(second.tensor, second.kind, second.distances, second.pitch, second.relu),
    )
    if not whole or not alike:
        return None
    (a, b), (next_a, next_b) = first.tile.terms[0], second.tile.terms[0]
    m, n = first.m, first.n
    below = first.offset + m * first.pitch == second.offset and n == second.n
    if below and b == next_b and a.extended_by(next_a):
        m, a = m + second.m, replace(a, r=a.r + next_a.r)
    elif (
        first.offset + n == second.offset
        and m == second.m
        and a == next_a
        and b.extended_by(next_b)
    ):
        n, b = n + second.n, replace(b, r=b.r + next_b.r)
    else:
        return None
    tile = replace(first.tile, m=m, n=n, terms=((a, b),))
    return replace(first, tile=tile, m=m, n=n)


@dataclass(eq=False, slots=True)
class Shadows:
    """Tensors as float32, each converted once."""

    _made: dict[tuple[int, ElementType], Array] = field(default_factory=dict)

    def of(self, tensor: GlobalTensor, kind: ElementType) -> Array:
        """Return the tensor's elements as float32, flat; float16 and int8 convert exactly."""
        found = self._made.get((tensor.address, kind))
        if found is None:
            found = tensor.buffer.data.view(kind.numpy).astype(np.float32)
            self._made[tensor.address, kind] = found
        return found


def perform(store: Store, core: int, shadows: Shadows) -> None:
    """Compute a tile for one core and write it."""
    tile = store.tile
    total = (
        _integer_sum(tile, core, shadows)
        if tile.kind.kind == "int"
        else (_float_sum(tile, core, shadows))
    )
    values = total[: store.m, : store.n]
    if store.relu:
        values = np.maximum(values, np.zeros((), values.dtype))
    if store.kind is not tile.kind:
        values = round_float(values, store.kind, finite=True)
    start = store.offset + store.distances[core] // store.kind.size_bytes
    data = store.tensor.buffer.data.view(store.kind.numpy)
    size = store.kind.size_bytes
    shape, strides = (store.m, store.n), (store.pitch * size, size)
    as_strided(data[start:], shape, strides)[...] = values
    valid = store.tensor.buffer.valid
    rows = as_strided(valid[start * size :], (store.m, store.n * size), (store.pitch * size, 1))
    rows[...] = 1


def _float_sum(tile: Tile, core: int, shadows: Shadows) -> Array:
    """Return start + sum of products in float32; BLAS chooses the order within each."""
    total: Array | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for a, b in _operands(tile, core, shadows):
            product = a @ b.T
            total = product if total is None else np.add(total, product, out=total)
        assert total is not None
        if tile.bias is not None:
            total += _bias(tile, core, tile.bias).astype(np.float32)
    return total


def _integer_sum(tile: Tile, core: int, shadows: Shadows) -> Array:
    """Return the exact sum, clamped to int32: blocks of K are exact in float32."""
    total = np.zeros((tile.m, tile.n), np.int64)
    for a, b in _operands(tile, core, shadows):
        for k in range(0, a.shape[1], EXACT_INT8_K):
            piece = a[:, k : k + EXACT_INT8_K] @ b[:, k : k + EXACT_INT8_K].T
            total[: piece.shape[0], : piece.shape[1]] += piece.astype(np.int32)
    if tile.bias is not None:
        total += _bias(tile, core, tile.bias).astype(np.int64)
    return saturate(total, tile.kind)


def _operands(tile: Tile, core: int, shadows: Shadows) -> Iterator[tuple[Array, Array]]:
    for a, b in tile.terms:
        yield (
            a.values(shadows.of(a.tensor, a.kind), core),
            b.values(shadows.of(b.tensor, b.kind), core),
        )


def _bias(tile: Tile, core: int, bias: Block) -> Array:
    return bias.values(bias.tensor.buffer.data.view(bias.kind.numpy), core)[0, : tile.n]


def overlapping(stores: Iterable[Store]) -> bool:
    """Whether two stores, of any cores, write one byte: their order would matter."""
    written: dict[int, Array] = {}
    for store in stores:
        size = store.kind.size_bytes
        mark = written.setdefault(
            store.tensor.address, np.zeros(store.tensor.buffer.size_bytes, bool)
        )
        for distance in store.distances:
            start = store.offset * size + distance
            place = as_strided(mark[start:], (store.m, store.n * size), (store.pitch * size, 1))
            if store.pitch < store.n or place.any():
                return True
            place[...] = True
    return False
