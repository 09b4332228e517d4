"""A float32 product that settles nearly all elements of a large one; float64 takes the rest.

The screen passes an element only if every matmul within the reference's own error would keep the
element's limit, so that what it passes needs no second look.
"""

import numpy as np

from cubecore.arrays import Array
from cubecore.numerics import largest_finite
from cubecore.tiling.model.problem import Problem
from cubecore.units import ceil_div
from cubecore.workflows.data.limits import HALF_UNITS, ErrorLimits
from cubecore.workflows.data.product_sums import Factors

_SLICES = 8
"""Parts of K that are summed apart, to keep the reference's error below 0.36 of the limit."""
_SHARE = 0.5
"""The part of the limit that the screen uses."""
_GROUP = 8
"""Terms of which the sum of magnitudes is bounded from below at once."""
_EXPONENT = np.uint32(0x7F800000)
"""A float32 number with these bits alone is the power of two below it."""
_BELOW = np.float32(1 - 2.0**-12)
"""The fraction of a power of two above which the reference may be on its other side."""
_SMALLEST = 1 << 31
_SMALLEST_K = 1024
_FAR = 0.65
"""Of the largest distance in a block: what is as far is compared in float64 as well."""
_MOST_FAR = 512
_MOST_DOUBTFUL = 1 / 128
"""Of a block: above that, a whole matmul in float64 is faster."""


def is_worth_screening(problem: Problem) -> bool:
    """True if a matmul is large, and of floats that are written by rounding alone."""
    p = problem
    return (
        p.m * p.n * p.k >= _SMALLEST
        and p.k >= _SMALLEST_K
        and p.accumulator_type.name == "float32"
        and not p.mx
        and p.c_type.name in {"float32", *HALF_UNITS}
        and p.epilogue.scale is None
        and not p.scales_columns
    )


class Screen:
    """Compares rows of one matmul with a float32 product of their own."""

    def __init__(self, limits: ErrorLimits, sums: Factors) -> None:
        self._limits, self._sums = limits, sums
        k, n = limits.problem.k, limits.problem.n
        self._steps = range(0, k, ceil_div(k, _SLICES))
        whole = k // _GROUP * _GROUP
        # B's magnitudes, summed by groups of K; what is over is left out.
        self._groups = np.abs(sums.float32_b[:whole]).reshape(-1, _GROUP, n).sum(axis=1)

    def doubtful(self, rows: slice, result: Array) -> tuple[Array, Array] | None:
        """Return rows and columns of elements to compare in float64; None: all of them."""
        with np.errstate(all="ignore"):
            distance, relative, limit = self._compared(rows, result)
            passed = (distance <= limit) & (limit < np.inf)
        if np.count_nonzero(passed) < passed.size * (1 - _MOST_DOUBTFUL):
            return None
        chosen = ~passed
        chosen.flat[_farthest(distance)] = True
        chosen.flat[_farthest(relative)] = True
        chosen.flat[np.nanargmax(limit)] = True
        at_row, at_column = np.nonzero(chosen)
        return at_row, at_column

    def _compared(self, rows: slice, result: Array) -> tuple[Array, Array, Array]:
        """Return how far results are from the float32 product, also relative, and may surely be."""
        a, problem = self._sums.a[rows].astype(np.float32), self._limits.problem
        product = self._product(a)
        sizes = self._least_magnitudes(a)
        limit = np.abs(product)
        np.maximum(sizes, limit, out=sizes)
        # (sum of magnitudes + |sum|) / 2, from below
        limit += sizes
        limit *= np.float32(_SHARE * self._limits.factor / 2)
        if problem.epilogue.relu:
            np.maximum(product, 0, out=product)
        if problem.c_type.name in HALF_UNITS:
            largest = np.float32(largest_finite(problem.c_type))
            np.clip(product, -largest, largest, out=product)
            np.abs(product, out=sizes)
            sizes *= _BELOW
            powers = sizes.view(np.uint32)
            powers &= _EXPONENT
            sizes *= np.float32(HALF_UNITS[problem.c_type.name][0])
            limit += sizes
        distance = np.abs(product - result.astype(np.float32, copy=False))
        relative = np.divide(distance, np.abs(product, out=product), out=product)
        return distance, relative, limit

    def _product(self, a: Array) -> Array:
        b, (first, *others) = self._sums.float32_b, self._steps
        step = self._steps.step
        total = a[:, first : first + step] @ b[first : first + step]
        part = np.empty_like(total)
        for k in others:
            total += np.matmul(a[:, k : k + step], b[k : k + step], out=part)
        if self._sums.bias is not None:
            total += self._sums.bias.astype(np.float32)
        return total

    def _least_magnitudes(self, a: Array) -> Array:
        """Return lower bounds of the sums of magnitudes: the least of a group times its sum."""
        whole = a.shape[1] // _GROUP * _GROUP
        least = np.abs(a[:, :whole]).reshape(a.shape[0], -1, _GROUP).min(axis=2)
        bounds: Array = least @ self._groups
        return bounds


def _farthest(distance: Array) -> Array:
    """Return places, in the flat array, of elements that may be the farthest from the product."""
    flat = distance.reshape(-1)
    return np.flatnonzero(flat >= _FAR * flat.max())[:_MOST_FAR]
