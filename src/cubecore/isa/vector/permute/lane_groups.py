"""Sums and extremes of groups of neighbouring lanes."""

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType

_FEW = 16


def added(level: Array, size: int, element: ElementType) -> Array:
    """Return the sums of groups of `size` neighbours, a power of two, each sum rounded."""
    while size > 1:
        level = level[::2] + level[1::2]
        if level.dtype != element.numpy:
            level = level.astype(element.numpy).astype(level.dtype)
        size >>= 1
    return level.astype(element.numpy, copy=False)


def of_integers(
    values: Array, on: NDArray[np.bool_] | None, *, takes_largest: bool
) -> tuple[Array, Array]:
    """Return the extremes along the last axis of what is on, and their first places."""
    if on is not None:
        limits = np.iinfo(values.dtype)
        least = limits.min if takes_largest else limits.max
        values = np.where(on, values, np.array(least, values.dtype))
    place = values.argmax(axis=-1) if takes_largest else values.argmin(axis=-1)
    best = np.take_along_axis(values, place[..., None], axis=-1)
    return best[..., 0], place


def extreme(larger: np.ufunc, values: Array) -> Array:
    """Return the extreme along the last axis: of few by halves, since NumPy goes row by row."""
    size = values.shape[-1]
    if size > _FEW:
        return np.asarray(larger.reduce(values, axis=-1))
    level = values.reshape(-1)
    while level.size * size > values.size:
        level = larger(level[0::2], level[1::2])
    return level.reshape(values.shape[:-1])
