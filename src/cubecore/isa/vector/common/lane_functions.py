"""Lane functions of the vector unit, on values wide enough to be exact.

Edge values are the vendor's documented ones (asc-devkit, boundary values of Memory vector compute):
NaN in gives NaN; of two zeros the larger is +0.
"""

import numpy as np

from cubecore.arrays import Array


def larger(x: Array, y: Array) -> Array:
    """Return the larger of two; NaN if either is."""
    if x.dtype.kind != "f":
        return np.maximum(x, y)
    result = np.maximum(x, y)
    if result.all():  # nothing is a zero, whose sign would count
        return result
    return np.where(x == y, np.where(np.signbit(x), y, x), result)


def smaller(x: Array, y: Array) -> Array:
    """Return the smaller of two; NaN if either is."""
    if x.dtype.kind != "f":
        return np.minimum(x, y)
    result = np.minimum(x, y)
    if result.all():
        return result
    return np.where(x == y, np.where(np.signbit(x), x, y), result)


def relu(x: Array) -> Array:
    """Return x where it is positive, NaN where it is NaN, else +0."""
    return np.where(x <= 0, np.zeros((), x.dtype), x)


def leaky_relu(x: Array, slope: Array) -> Array:
    """Return x where its sign is +, else slope * x: +0 stays, whatever the slope; -0 does not."""
    return np.where(np.signbit(x), x * slope, x)


def exponential(x: Array) -> Array:
    """Return e**x from float64."""
    return np.exp(x.astype(np.float64))


def logarithm(x: Array) -> Array:
    """Return the natural logarithm from float64: -infinity at both zeros, NaN below."""
    return np.log(x.astype(np.float64))


def quotient(x: Array, y: Array) -> Array:
    """Return x / y; of integers rounded toward zero, and of a divisor 0 all ones."""
    if x.dtype.kind == "f":
        return np.asarray(np.divide(x, y))
    safe = np.where(y == 0, np.ones((), y.dtype), y)
    down = x // safe
    toward_zero = down + ((down * safe != x) & ((x < 0) != (safe < 0))).astype(down.dtype)
    return np.where(y == 0, ~np.zeros((), y.dtype), toward_zero)


def reciprocal(x: Array) -> Array:
    """Return 1 / x; a zero gives infinity of its sign, and of integers all ones."""
    return quotient(np.ones((), x.dtype), x)


def reciprocal_root(x: Array) -> Array:
    """Return 1 / sqrt(x) from float64; -0 gives -infinity."""
    return 1 / np.sqrt(x.astype(np.float64))


def shift_left(x: Array, distance: Array) -> Array:
    """Return x * 2**distance; the type's width takes the low bits."""
    return np.left_shift(x, distance)


def shift_right(x: Array, distance: Array) -> Array:
    """Return x / 2**distance rounded down; signed types keep their sign."""
    return np.right_shift(x, distance)


def shift_right_rounded(x: Array, distance: Array) -> Array:
    """Return x / 2**distance with the last bit that is shifted out added."""
    last = np.right_shift(x, np.maximum(distance - 1, 0)) & 1
    return np.right_shift(x, distance) + np.where(distance > 0, last, 0)
