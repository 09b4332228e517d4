"""Integer helpers and the spelling of quantities.

`ceil_div` and `align_up` work on Python integers and on NumPy integer arrays alike, so a rule and
its vectorised use are one expression.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cubecore.aliases import Column

if TYPE_CHECKING:
    from cubecore.arrays import Array

DATA_BLOCK_BYTES = 32
"""The unit of vector and local-memory transfers (C API general notes: DataBlock)."""
FRACTAL_BYTES = 512
"""One fractal of L0A, L0B or L1: 16 rows of 32 bytes (Mmad)."""
FRACTAL_ROWS = 16
"""Rows of every fractal, and columns of an L0C fractal (Mmad)."""
KIB = 1024
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
"""Limits of the fields of TCubeTiling."""


class _NoArray:
    """The stand-in for the dtype of a plain number."""

    kind = ""


def ceil_div(value: Column, divisor: Column) -> Column:
    """Return `value` / `divisor` rounded up; numbers or arrays of them, `divisor` > 0.

    Exact for integers, and for whole floats up to 2**52.
    """
    if type(value) is int and type(divisor) is int:
        return -(-value // divisor)
    floats = getattr(value, "dtype", _NoArray).kind == "f"
    if floats or getattr(divisor, "dtype", _NoArray).kind == "f":
        import numpy as np

        return np.ceil(value / divisor)
    return -(-value // divisor)


def floor_div(value: object, divisor: Column) -> Column:
    """Return `value` // `divisor`; NumPy's own is 20 times slower on arrays of floats."""
    floats = getattr(value, "dtype", _NoArray).kind == "f"
    if floats or getattr(divisor, "dtype", _NoArray).kind == "f":
        import numpy as np

        return np.floor(value / divisor)
    return value // divisor


def floats(value: Column) -> Column:
    """Return `value`, a number or an array, as floats."""
    return value if getattr(value, "dtype", _NoArray).kind == "f" else value * 1.0


def distinct(values: Column) -> "Array":
    """Return the distinct values of an array of numbers, sorted; np.unique loads all of np.ma."""
    import numpy as np

    ordered: Array = np.sort(values, axis=None)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def align_up(value: object, multiple: Column) -> Column:
    """Return the least multiple of `multiple` that is at least `value`."""
    if type(value) is int and type(multiple) is int:
        return -(-value // multiple) * multiple
    return ceil_div(value, multiple) * multiple


def first_few(names: Sequence[str], most: int = 4) -> str:
    """Return names in a row, of more than `most` the first and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def plural(count: int, noun: str) -> str:
    """Return ``1 core`` or ``2 cores``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


SCALE_WORD_BYTES = 8
"""A scale of fixpipe: a word of 64 bits (asc-devkit, on-the-fly quantisation, 2201)."""
