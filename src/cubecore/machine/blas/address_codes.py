"""Codes of bytes in global memory, and the blocks that they make where `mad` reads them.

A code says where 32 B of L1, or some of them, are from: the first core's address, and how many
bytes are from there (ND2NZ fills the rest with zeros). The other cores of a group hold what lies a
fixed distance further; a code names the set of distances too. An operand of `mad` is proven when
its codes are those of a matrix in global memory.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.isa.cube.mad import Mad
from cubecore.isa.cube.mad_mx import MadMx
from cubecore.layouts import Offsets
from cubecore.machine.blas.block_products import IrregularError
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, distinct

Codes = NDArray[np.int64]

UNKNOWN = -1
ZERO = -2
"""Nothing but zeros, which are from nowhere."""
IN_WORDS = -3
"""Words of 16 bits, each from elsewhere (`cubecore.machine.blas.scale_provenance`)."""
TAKEN_BITS, ADDRESS_BITS = 6, 42
TAKEN = (1 << TAKEN_BITS) - 1
"""A code: set of distances << 48 | address << 6 | bytes taken from there; or a negative one."""
UNITS = 64
"""Units kept for a fractal: int4 has most, 64 K of 16 elements each."""
AS_IT_WAS = 0
"""The way of a fractal to L0: as it was, or transposed as elements of this C0."""


def unit_elements(kind: ElementType) -> int:
    """Return the elements of a unit of a transposed fractal: they lie together in L1."""
    return min(FRACTAL_ROWS, kind.c0)


def transposed_units(offsets: Offsets, kind: ElementType) -> Offsets:
    """Return the units of L0 that start at element `offsets` of transposed fractals."""
    unit = unit_elements(kind)
    fractal, within = np.divmod(offsets, FRACTAL_ROWS * kind.c0)
    r, k = np.divmod(within, kind.c0)
    units: Offsets = fractal * UNITS + k * (FRACTAL_ROWS // unit) + r // unit
    return units


@dataclass(frozen=True, eq=False, slots=True)
class ReadLayout:
    """The addresses at which `mad` reads an operand in L0, as stored and transposed.

    `as_stored` is [r, pieces of K], `transposed` [units of r, k]. With `filled` K may end in zeros
    that are no part of the block.
    """

    r: int
    k: int
    kind: ElementType
    is_vector: bool
    filled: bool
    fractals: Offsets
    as_stored: Offsets
    transposed: Offsets

    @staticmethod
    def of(
        offsets: Offsets, kind: ElementType, *, is_vector: bool = False, filled: bool = False
    ) -> "ReadLayout":
        """Return the read layout of an operand whose elements [r, k] lie at `offsets`."""
        r, k = offsets.shape
        fractal, within = np.divmod(offsets[:, :: kind.c0], FRACTAL_ROWS * kind.c0)
        return ReadLayout(
            r=r,
            k=k,
            kind=kind,
            is_vector=is_vector,
            filled=filled,
            fractals=distinct(fractal),
            as_stored=fractal * UNITS + within // kind.c0,
            transposed=transposed_units(offsets[:: unit_elements(kind)], kind),
        )


@lru_cache(maxsize=128)
def read_layouts(template: Mad | MadMx) -> tuple[ReadLayout, ReadLayout]:
    """Return where `mad` reads A, and B; K of scaled ones is filled up to whole pairs of scales."""
    a, b = template.offsets("a"), template.offsets("b").T
    filled = isinstance(template, MadMx)
    return (
        ReadLayout.of(a, template.a_type, is_vector=template.is_gemv, filled=filled),
        ReadLayout.of(b, template.b_type, filled=filled),
    )


@dataclass(frozen=True, eq=False, slots=True)
class Shape:
    """A block by its bytes: rows `pitch_bytes` apart, pieces of C0 `step_bytes`; all its extent.

    `relative` are the codes that `mad` finds for such a block, from the first one on, which has
    `taken` bytes; `kind` is how the fractals came to L0.
    """

    r: int
    k: int
    pitch_bytes: int
    step_bytes: int
    size_bytes: int
    k_inner: bool
    kind: int
    taken: int
    relative: Codes

    def is_of(self, kind: int, taken: int, relative: Codes) -> bool:
        """True if codes are those of such a block."""
        alike = self.kind == kind and self.taken == taken
        return alike and np.array_equal(self.relative, relative)


def without_zeros(codes: Codes) -> Codes:
    """Return the codes [r, K] of a filled operand without the zeros that K ends in."""
    # Zeros must be the same columns in all rows: those that fill K up to whole pairs of scales.
    last = codes.shape[1] - int(np.count_nonzero(codes[0] == ZERO))
    if not last or (codes[:, last:] != ZERO).any():
        raise IrregularError("zeros in other places than behind K")
    return codes[:, :last]


def _stored(taken: Codes, kind: ElementType) -> int:
    """Return how many elements of the last piece are stored, in every row; zeros follow."""
    if (taken != taken[0]).any():
        raise IrregularError("rows of several lengths")
    return int(taken[0]) * 8 // kind.bits


def stored_shape(codes: Codes, layout: ReadLayout) -> Shape:
    """Return the shape of the block whose [r, pieces of K] have these codes."""
    (kind, wanted), (r, pieces) = (layout.kind, layout.k), codes.shape
    address, taken = codes >> TAKEN_BITS, codes & TAKEN
    first = int(address[0, 0])
    # A block is proven by its first row and column: pitch and step are read off them, and all other
    # addresses must be what these say.
    pitch = int(address[1, 0]) - first if r > 1 else 0
    step = int(address[0, 1]) - first if pieces > 1 else DATA_BLOCK_BYTES
    rows = first + np.arange(r)[:, None] * pitch
    _require_in_order(address, rows + np.arange(pieces) * step, pitch, step)
    # The last piece may be stored in part: K ends where its bytes do.
    if layout.filled:
        wanted = min(wanted, _stored(taken[:, -1], kind) + (pieces - 1) * kind.c0)
    last = -(-(wanted - (pieces - 1) * kind.c0) * kind.bits // 8)
    if (taken[:, :-1] < DATA_BLOCK_BYTES).any() or (taken[:, -1] < last).any():
        raise IrregularError("lanes that were never loaded")
    size = (r - 1) * pitch + (pieces - 1) * step + last
    return Shape(
        r=layout.r,
        k=wanted,
        pitch_bytes=pitch,
        step_bytes=step,
        size_bytes=size,
        k_inner=True,
        kind=AS_IT_WAS,
        taken=int(taken[0, 0]),
        relative=codes - codes[0, 0],
    )


def transposed_shape(codes: Codes, layout: ReadLayout) -> Shape:
    """Return the shape of the block whose [units of r, k] have these codes.

    r may reach beyond the lanes that are stored, into zeros: the block leaves those out.
    """
    if layout.is_vector:
        raise IrregularError("a vector in transposed fractals")
    kind, (units, k) = layout.kind, codes.shape
    unit = unit_elements(kind)
    each, unit_bytes = kind.c0 // unit, kind.bytes_of(unit)
    address, taken = codes >> TAKEN_BITS, codes & TAKEN
    first = int(address[0, 0])
    pitch = int(address[0, 1]) - first if k > 1 else 0
    step = int(address[each, 0]) - first if units > each else DATA_BLOCK_BYTES
    number = np.arange(units)
    along = number // each * step + number % each * unit_bytes
    _require_in_order(address, first + along[:, None] + np.arange(k) * pitch, pitch, step)
    # Rows beyond those stored read ND2NZ's zeros in the last unit; the block ends before them.
    r, full, least = layout.r, (units - 1) * unit, int(taken[-1].min())
    if (taken[:-1] < unit_bytes).any():
        raise IrregularError("lanes that were never loaded")
    if least < kind.bytes_of(r - full):
        lanes, odd = divmod(least * 8, kind.bits)
        if odd or not lanes or (taken[-1] > least).any():
            raise IrregularError("lanes that were never loaded")
        r = full + lanes
    size = (k - 1) * pitch + int(along[-1]) + -(-(r - full) * kind.bits // 8)
    return Shape(
        r=r,
        k=k,
        pitch_bytes=pitch,
        step_bytes=step,
        size_bytes=size,
        k_inner=False,
        kind=kind.c0,
        taken=int(taken[0, 0]),
        relative=codes - codes[0, 0],
    )


def _require_in_order(addresses: Codes, wanted: Codes, pitch: int, step: int) -> None:
    if pitch < 0 or step <= 0 or (addresses != wanted).any():
        raise IrregularError("fractals in another order")
