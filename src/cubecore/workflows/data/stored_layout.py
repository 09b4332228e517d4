"""Stored operands and results: ND or NZ, a batch one after another, 4 bits packed.

A matrix [rows, columns] in NZ is an array [columns / C0, rows / 16, 16, C0]; its last pieces are
padded with zeros. In files and arrays a 4-bit element takes a byte; in memory two share one.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.machine.memory import int4
from cubecore.numerics.nibbles import decode, encode
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div


def stored_shape(
    rows: int, columns: int, c0: int, *, nz: bool = False, batch: int = 1
) -> tuple[int, ...]:
    """Return the shape of an array that holds `batch` matrices; no batch axis for one."""
    shape: tuple[int, ...] = (rows, columns)
    if nz:
        shape = (ceil_div(columns, c0), ceil_div(rows, FRACTAL_ROWS), FRACTAL_ROWS, c0)
    return (batch, *shape) if batch > 1 else shape


def to_nz(matrices: Array, c0: int) -> Array:
    """Return [..., rows, columns] as [..., columns / c0, rows / 16, 16, c0]."""
    *more, rows, columns = matrices.shape
    high, wide = align_up(rows, FRACTAL_ROWS), align_up(columns, c0)
    padded = np.zeros((*more, high, wide), matrices.dtype)
    padded[..., :rows, :columns] = matrices
    cut = padded.reshape(*more, high // FRACTAL_ROWS, FRACTAL_ROWS, wide // c0, c0)
    return np.ascontiguousarray(np.moveaxis(cut, -2, -4))


def from_nz(values: Array, rows: int, columns: int) -> Array:
    """Return the matrices [..., rows, columns] that an NZ array holds."""
    *more, across, down, high, wide = values.shape
    cut = np.moveaxis(values, -4, -2)
    return cut.reshape(*more, down * high, across * wide)[..., :rows, :columns]


def memory_bytes(values: Array, kind: ElementType) -> Array:
    """Return the bytes that memory holds for an array, flat."""
    if kind.bits == int4.BITS:
        return int4.pack(encode(values).reshape(-1))
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def from_memory(data: NDArray[np.uint8], kind: ElementType) -> Array:
    """Return the elements that bytes of memory hold, flat; no copy but for 4-bit types."""
    if kind.bits == int4.BITS:
        return decode(int4.unpack(data), kind)
    return data.view(kind.numpy)
