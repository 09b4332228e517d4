"""Where the contents of L1 and L0 come from, in place of the bytes.

L1 is blocks of 32 B. For each a code says which bytes of global memory it holds: the first core's
address, and how many of the 32 B are from there (ND2NZ fills the rest with zeros). The other cores
of a group hold what lies a fixed distance further; a code names the set of distances too. L0 is
fractals of at most 64 units: 16 rows of 32 B, or after a transposing load, for each K, runs along
the other axis. An operand of `mad` is proven when its codes are those of a matrix in global memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.isa.check import memory_bytes
from cubecore.isa.cube import Mad
from cubecore.isa.moves import (
    CopyGmToCbuf,
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from cubecore.isa.spec import Mem
from cubecore.layouts import Offsets
from cubecore.machine.memory import GlobalMemory
from cubecore.machine.products import Block, IrregularError
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_ROWS, ceil_div

Codes = NDArray[np.int64]
Fill = CopyGmToCbuf | CopyGmToCbufMultiNd2Nz
FractalLoad = LoadCbufToCa | LoadCbufToCb
SquareLoad = LoadCbufToCaTranspose | LoadCbufToCbTranspose
Follow = Callable[[int, int], None]
"""What follows one move, given its two addresses."""

_UNKNOWN = -1
_TAKEN_BITS, _ADDRESS_BITS = 6, 42
_TAKEN = (1 << _TAKEN_BITS) - 1
"""A code: set of distances << 48 | address << 6 | bytes taken from there."""
_MOST_DISTANCES = 1 << (63 - _TAKEN_BITS - _ADDRESS_BITS)
_UNITS = 64
"""Units kept for a fractal: int4 has most, 64 K of 16 elements each."""
_BLOCKS = FRACTAL_BYTES // DATA_BLOCK_BYTES
_AS_IT_WAS = 0
"""How a fractal came to L0: as it was, or transposed as elements of this C0."""


def _unit(kind: ElementType) -> int:
    """Return the elements of a unit of a transposed fractal: they lie together in L1."""
    return min(FRACTAL_ROWS, kind.c0)


@dataclass(frozen=True, eq=False, slots=True)
class _Move:
    """Units that a load takes from L1 and where it leaves them; `skipped` bytes of each block.

    `fractals` are those of L0 that it fills.
    """

    source: Offsets
    target: Offsets
    skipped: Offsets
    fractals: Offsets


@lru_cache(maxsize=1024)
def _fill(template: Fill) -> tuple[Offsets, Codes]:
    """Return the blocks of L1 that a transfer fills, and what to add to its source's code."""
    source, target = template.offsets("src"), template.offsets("dst")
    if isinstance(template, CopyGmToCbuf):
        return target, (source * DATA_BLOCK_BYTES << _TAKEN_BITS) + DATA_BLOCK_BYTES
    c0, size = template.dtype.c0, template.dtype.size_bytes
    blocks, odd = np.divmod(target[..., ::c0] * size, DATA_BLOCK_BYTES)
    if odd.any():
        raise IrregularError("matrices that do not start at a block of L1")
    taken = (source >= 0).reshape(*blocks.shape, c0).sum(axis=-1) * size
    return blocks, (source[..., ::c0] * size << _TAKEN_BITS) + taken


@lru_cache(maxsize=1024)
def _straight(template: FractalLoad) -> _Move:
    within, fractals = np.arange(_BLOCKS, dtype=np.intp), template.offsets("dst")
    return _Move(
        source=template.offsets("src")[:, None] * _BLOCKS + within,
        target=fractals[:, None] * _UNITS + within,
        skipped=np.zeros(0, np.intp),
        fractals=fractals,
    )


@lru_cache(maxsize=1024)
def _turned(template: SquareLoad) -> _Move:
    """Return a transposing load by units; the declared offsets already are transposed."""
    unit = _unit(template.dtype)
    first, to = (template.offsets(name)[:, ::unit] for name in ("src", "dst"))
    blocks, skipped = np.divmod(template.dtype.bytes_of(first), DATA_BLOCK_BYTES)
    places = _turned_places(to, template.dtype)
    return _Move(blocks, places, skipped, np.unique(places // _UNITS))


def _turned_places(offsets: Offsets, kind: ElementType) -> Offsets:
    """Return the units of L0 that start at element `offsets` of transposed fractals."""
    unit = _unit(kind)
    fractal, within = np.divmod(offsets, FRACTAL_ROWS * kind.c0)
    r, k = np.divmod(within, kind.c0)
    places: Offsets = fractal * _UNITS + k * (FRACTAL_ROWS // unit) + r // unit
    return places


@dataclass(frozen=True, eq=False, slots=True)
class _Grid:
    """Where `mad` reads an operand in L0, either way, and what the codes must run along.

    `straight` is [r, pieces of K], `turned` [units of r, k].
    """

    r: int
    k: int
    kind: ElementType
    is_vector: bool
    fractals: Offsets
    straight: Offsets
    turned: Offsets

    @staticmethod
    def of(offsets: Offsets, kind: ElementType, *, is_vector: bool) -> "_Grid":
        """Return the grid of an operand whose elements [r, k] lie at `offsets`."""
        r, k = offsets.shape
        fractal, within = np.divmod(offsets[:, :: kind.c0], FRACTAL_ROWS * kind.c0)
        return _Grid(
            r=r,
            k=k,
            kind=kind,
            is_vector=is_vector,
            fractals=np.unique(fractal),
            straight=fractal * _UNITS + within // kind.c0,
            turned=_turned_places(offsets[:: _unit(kind)], kind),
        )


@lru_cache(maxsize=1024)
def _grids(template: Mad) -> tuple[_Grid, _Grid]:
    a, b = template.offsets("a"), template.offsets("b").T
    return (
        _Grid.of(a, template.a_type, is_vector=template.m == 1),
        _Grid.of(b, template.b_type, is_vector=False),
    )


class Origins:
    """L1, L0A and L0B of a group of cores."""

    def __init__(self, chip: Chip, gm: GlobalMemory) -> None:
        self._gm = gm
        self._l1 = np.full(memory_bytes(chip, Mem.L1)[0] // DATA_BLOCK_BYTES, _UNKNOWN, np.int64)
        fractals = {m: memory_bytes(chip, m)[0] // FRACTAL_BYTES for m in (Mem.L0A, Mem.L0B)}
        self._l0 = {m: np.full(n * _UNITS, _UNKNOWN, np.int64) for m, n in fractals.items()}
        self._kinds = {m: np.zeros(n, np.uint8) for m, n in fractals.items()}
        self._distances: list[tuple[int, ...]] = []

    # --- moves; addresses are bytes

    def fill(self, template: Fill, distances: tuple[int, ...]) -> Follow:
        """Return what brings blocks from global memory to L1: (to, from)."""
        blocks, codes = _fill(template)
        source = self._source(distances) << _ADDRESS_BITS

        def fill(dst: int, src: int) -> None:
            at = (source + src) << _TAKEN_BITS
            self._l1[dst // DATA_BLOCK_BYTES + blocks] = codes + at

        return fill

    def _source(self, distances: tuple[int, ...]) -> int:
        """Return the number that codes name a group's distances by."""
        if distances not in self._distances:
            if len(self._distances) == _MOST_DISTANCES:
                raise IrregularError("too many ways in which cores differ")
            self._distances.append(distances)
        return self._distances.index(distances)

    def load(self, template: FractalLoad) -> Follow:
        """Return what brings fractals from L1 to L0 as they are: (to, from)."""
        mem, move = template.operands()[0].mem, _straight(template)
        codes, kinds = self._l0[mem], self._kinds[mem]

        def load(dst: int, src: int) -> None:
            first = dst // FRACTAL_BYTES
            codes[first * _UNITS + move.target] = self._l1[src // DATA_BLOCK_BYTES + move.source]
            kinds[first + move.fractals] = _AS_IT_WAS

        return load

    def turn(self, template: SquareLoad) -> Follow:
        """Return what brings squares from L1 to L0, transposed: (to, from)."""
        mem, move = template.operands()[0].mem, _turned(template)
        codes, kinds = self._l0[mem], self._kinds[mem]
        c0 = template.dtype.c0
        unit_bytes = template.dtype.bytes_of(_unit(template.dtype))

        def turn(dst: int, src: int) -> None:
            found = self._l1[src // DATA_BLOCK_BYTES + move.source]
            if unit_bytes < DATA_BLOCK_BYTES:
                taken = found & _TAKEN
                left = np.clip(taken - move.skipped, 0, unit_bytes)
                parts = found - taken + (move.skipped << _TAKEN_BITS) + left
                found = np.where(found < 0, _UNKNOWN, parts)
            first = dst // FRACTAL_BYTES
            codes[first * _UNITS + move.target] = found
            kinds[first + move.fractals] = c0

        return turn

    # --- what is there

    def operands(self, template: Mad) -> Callable[[int, int], tuple[Block, Block]]:
        """Return what finds the blocks that `mad` reads at (address in L0A, address in L0B)."""
        for_a, for_b = _grids(template)
        return lambda a, b: (self._operand(Mem.L0A, a, for_a), self._operand(Mem.L0B, b, for_b))

    def _operand(self, mem: Mem, address: int, grid: _Grid) -> Block:
        first = address // FRACTAL_BYTES
        kinds = self._kinds[mem][first + grid.fractals]
        kind = int(kinds[0])
        if (kinds != kind).any() or kind not in {_AS_IT_WAS, grid.kind.c0}:
            raise IrregularError("fractals of several kinds, or of another type")
        places = grid.straight if kind == _AS_IT_WAS else grid.turned
        codes = self._l0[mem][first * _UNITS + places]
        if codes.min() < 0:
            raise IrregularError("lanes that were never loaded")
        if kind == _AS_IT_WAS:
            return self._straight_block(codes, grid)
        if grid.is_vector:
            raise IrregularError("a vector in transposed fractals")
        return self._turned_block(codes, grid)

    def _straight_block(self, codes: Codes, grid: _Grid) -> Block:
        """Return the block whose [r, pieces of K] have these codes."""
        kind, (r, pieces) = grid.kind, codes.shape
        place, taken = codes >> _TAKEN_BITS, codes & _TAKEN
        first = int(place[0, 0])
        pitch = int(place[1, 0]) - first if r > 1 else 0
        step = int(place[0, 1]) - first if pieces > 1 else DATA_BLOCK_BYTES
        rows = first + np.arange(r)[:, None] * pitch
        if (place != rows + np.arange(pieces) * step).any():
            raise IrregularError("fractals in another order")
        last = -(-(grid.k - (pieces - 1) * kind.c0) * kind.bits // 8)
        if (taken[:, :-1] < DATA_BLOCK_BYTES).any() or (taken[:, -1] < last).any():
            raise IrregularError("lanes that were never loaded")
        end = (r - 1) * pitch + (pieces - 1) * step + last
        return self._block(first, end, kind, (grid.r, grid.k), (pitch, step), k_inner=True)

    def _turned_block(self, codes: Codes, grid: _Grid) -> Block:
        """Return the block whose [units of r, k] have these codes.

        r may reach beyond the lanes that are stored, into zeros: the block leaves those out.
        """
        kind, (units, k) = grid.kind, codes.shape
        unit = _unit(kind)
        each, size = kind.c0 // unit, kind.bytes_of(unit)
        place, taken = codes >> _TAKEN_BITS, codes & _TAKEN
        first = int(place[0, 0])
        pitch = int(place[0, 1]) - first if k > 1 else 0
        step = int(place[each, 0]) - first if units > each else DATA_BLOCK_BYTES
        number = np.arange(units)
        along = number // each * step + number % each * size
        if (place != first + along[:, None] + np.arange(k) * pitch).any():
            raise IrregularError("fractals in another order")
        r, full = grid.r, (units - 1) * unit
        least = int(taken[-1].min())
        if (taken[:-1] < size).any():
            raise IrregularError("lanes that were never loaded")
        if least < kind.bytes_of(r - full):
            lanes, odd = divmod(least * 8, kind.bits)
            if odd or not lanes or (taken[-1] > least).any():
                raise IrregularError("lanes that were never loaded")
            r = full + lanes
        end = (k - 1) * pitch + int(along[-1]) + -(-(r - full) * kind.bits // 8)
        return self._block(first, end, kind, (r, grid.k), (pitch, step), k_inner=False)

    def row(self, address: int, kind: ElementType, count: int) -> Block:
        """Return the one row that L1 holds from `address` on: at most `count` elements."""
        first = address // DATA_BLOCK_BYTES
        codes = self._l1[first : first + ceil_div(kind.bytes_of(count), DATA_BLOCK_BYTES)]
        place, taken = codes >> _TAKEN_BITS, codes & _TAKEN
        follows = (codes >= 0) & (place == place[0] + np.arange(codes.size) * DATA_BLOCK_BYTES)
        whole = follows & (taken == DATA_BLOCK_BYTES)
        blocks = codes.size if whole.all() else int(whole.argmin())
        size = blocks * DATA_BLOCK_BYTES
        if blocks < codes.size and follows[blocks]:
            size += int(taken[blocks])
        count = min(count, size * 8 // kind.bits)
        if not count:
            raise IrregularError("L1 holds nothing known there")
        end = kind.bytes_of(count)
        return self._block(int(place[0]), end, kind, (1, count), (0, 32), k_inner=True)

    def _block(
        self,
        place: int,
        size_bytes: int,
        kind: ElementType,
        extents: tuple[int, int],
        distances: tuple[int, int],
        *,
        k_inner: bool,
    ) -> Block:
        """Return a block that starts at a place; `distances` are of rows and pieces, bytes."""
        number, address = place >> _ADDRESS_BITS, place & ((1 << _ADDRESS_BITS) - 1)
        tensor = self._gm.at(address)
        if tensor is None or min(distances) < 0 or address + size_bytes > tensor.end:
            raise IrregularError("a block that is not in one tensor")
        between = self._distances[number]
        pitch, step = distances
        start = address - tensor.address
        if kind.bits > 8 and gcd(start, pitch, step, *between) % kind.size_bytes:
            raise IrregularError("a source off its elements")
        offset, pitch, step = (d * 8 // kind.bits for d in (start, pitch, step))
        return Block(tensor, kind, offset, between, *extents, pitch, step, k_inner)
