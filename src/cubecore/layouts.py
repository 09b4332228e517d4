"""Layouts of a matrix: ND, NZ, ZZ and ZN as index maps.

A layout cuts a matrix into fractals; a letter says how things follow each other, Z row by row, N
column by column: first letter the elements inside a fractal, second letter the fractals (the field
writes the two the other way round for NZ, and so do we: NZ is small z, big N; ZN is small n, big Z;
ZZ is both row by row). Offsets count elements from the first one.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

Offsets = NDArray[np.intp]
Runs = tuple[tuple[int, int], ...]
"""Bytes [start, end), ascending."""


def offsets_of_runs(runs: Runs) -> Offsets:
    """Return the bytes of runs, counted from the first one's start."""
    first = runs[0][0]
    return np.concatenate([np.arange(low - first, high - first) for low, high in runs])


def ascending(values: Array) -> Array:
    """Return integers in ascending order, each once, flat; none: none.

    `np.unique` does so, too, but imports masked arrays when it is first called (20 ms).
    """
    flat = values.reshape(-1)
    if (flat[1:] > flat[:-1]).all():
        return flat
    flat = np.sort(flat)
    first = np.ones(flat.size, np.bool_)
    np.not_equal(flat[1:], flat[:-1], out=first[1:])
    return flat[first]


@dataclass(frozen=True, slots=True)
class Layout:
    """An order of fractals and of the elements inside each."""

    name: str
    fractals_by_row: bool
    elements_by_row: bool


ZZ = Layout("ZZ", fractals_by_row=True, elements_by_row=True)
"""L0A: fractals row by row, elements row by row (Mmad, matrix A)."""
ZN = Layout("ZN", fractals_by_row=True, elements_by_row=False)
"""L0B: fractals row by row, elements column by column (Mmad, matrix B)."""
NZ = Layout("NZ", fractals_by_row=False, elements_by_row=True)
"""L0C and L1: fractals column by column, elements row by row (Mmad, matrix C)."""


class Fractal(NamedTuple):
    """The block of elements that a layout keeps together."""

    rows: int
    cols: int


def padded_elements(rows: int, cols: int, fractal: Fractal) -> int:
    """Return the elements that a rows x cols matrix occupies, its last fractals whole."""
    return int(align_up(rows, fractal.rows) * align_up(cols, fractal.cols))


@lru_cache(maxsize=512)
def offsets(
    layout: Layout, rows: int, cols: int, fractal: Fractal, column_rows: int = 0
) -> Offsets:
    """Return the offset of every element, shape [rows, cols], read-only.

    `column_rows`, for NZ only, is the number of rows from one column of fractals to the next (a
    multiple of nothing in particular: a fixpipe may stride by any); 0 means the rows of this matrix
    rounded up to the fractal.
    """
    high, wide = fractal
    i = np.arange(rows, dtype=np.intp)[:, None]
    j = np.arange(cols, dtype=np.intp)[None, :]
    inside = (
        (i % high) * wide + j % wide if layout.elements_by_row else (j % wide) * high + i % high
    )
    if layout.fractals_by_row:
        number = (i // high) * ceil_div(cols, wide) + j // wide
        result = number * (high * wide) + inside
    else:
        tall = column_rows or align_up(rows, high)
        result = (j // wide) * (tall * wide) + (i // high) * (high * wide) + inside
    result = np.asarray(result, dtype=np.intp)
    result.flags.writeable = False
    return result


def pack(matrix: Array, layout: Layout, fractal: Fractal) -> Array:
    """Return `matrix` laid out in `layout`, padding zero, shape [padded_elements]."""
    rows, cols = matrix.shape
    flat = np.zeros(padded_elements(rows, cols, fractal), matrix.dtype)
    flat[offsets(layout, rows, cols, fractal)] = matrix
    return flat


def unpack(flat: Array, layout: Layout, rows: int, cols: int, fractal: Fractal) -> Array:
    """Return the rows x cols matrix that `flat` holds in `layout`: the inverse of `pack`."""
    return flat[offsets(layout, rows, cols, fractal)]


def l0a_fractal(c0: int) -> Fractal:
    """Return the fractal of L0A and of NZ operands in L1: 16 rows of C0."""
    return Fractal(FRACTAL_ROWS, c0)


def l0b_fractal(c0: int) -> Fractal:
    """Return the fractal of L0B: C0 rows (K) of 16 columns (N)."""
    return Fractal(c0, FRACTAL_ROWS)


L0C_FRACTAL = Fractal(FRACTAL_ROWS, FRACTAL_ROWS)
"""The fractal of L0C: 16 x 16 whatever the element (Mmad)."""


def nz_multiple(c0: int, *, along_k: bool, inner: bool) -> int:
    """Return what a size of an operand in NZ is a multiple of, as it is stored.

    Table 1 of the seeds has C0 along K and 16 along M and N; the vendor's Matmul pages have C0
    along the inner axis, which is stored contiguously, and 16 along the outer one. Both are asked.
    """
    return max(c0 if along_k else FRACTAL_ROWS, c0 if inner else FRACTAL_ROWS)
