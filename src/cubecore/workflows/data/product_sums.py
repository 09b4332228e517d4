"""Sums behind the elements of one matmul: in float64, of magnitudes, and sequential in float32."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.tiling.model.problem import Problem

Sums = tuple[Array, Array]
"""The matmul with its bias, and the sums of the magnitudes of its terms."""

_EXACT_FLOAT32 = 1 << 24
"""Sums of integers up to this are exact in float32."""
_SAFE_FLOAT32 = 2.0**120
"""Sums of magnitudes up to this need no float64."""


@dataclass(frozen=True, eq=False)
class Factors:
    """A as [m, k], B as [k, n] and the bias row of one product.

    Integer sums that may leave int32 are clamped after each `base_k` of K, as L0C is.
    """

    problem: Problem
    a: Array
    b: Array
    bias: Array | None
    base_k: int

    @cached_property
    def _wide(self) -> Array:
        return self.b.astype(np.float64)

    @cached_property
    def float32_b(self) -> Array:
        """B in float32."""
        return self.b.astype(np.float32, copy=False)

    @cached_property
    def _magnitudes(self) -> Array:
        """Return B's magnitudes in float32, or in float64 where sums might leave its range."""
        with np.errstate(over="ignore", invalid="ignore"):
            most = [float(np.abs(x).max(initial=0).astype(np.float64)) for x in (self.a, self.b)]
            safe = most[0] * most[1] * self.problem.k < _SAFE_FLOAT32
            kind = np.float32 if safe and max(most) < _SAFE_FLOAT32 else np.float64
            magnitudes: Array = np.abs(self.b.astype(kind))
            return magnitudes

    @cached_property
    def _row(self) -> Array | None:
        return None if self.bias is None else self.bias.astype(np.float64)

    @property
    def _is_integer(self) -> bool:
        return self.problem.accumulator_type.kind == "int"

    def of_rows(self, rows: slice) -> Sums:
        """Return the sums of some rows of C; magnitudes of integers are 0."""
        a = self.a[rows]
        if self._is_integer:
            total = self._clamped(a) if self._may_saturate else self._integers(a)
            return total, np.zeros((), np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = a.astype(np.float64) @ self._wide
            sizes = np.abs(a.astype(self._magnitudes.dtype)) @ self._magnitudes
            return self._biased(exact, sizes.astype(np.float64), ...)

    def of_elements(self, rows: Array, columns: Array) -> Sums:
        """Return the sums of some elements of C, of a matmul of floats."""
        exact, sizes = np.empty(rows.size), np.empty(rows.size)
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, rows.size, 256):
                part = slice(first, first + 256)
                terms = self._terms(rows[part], columns[part])
                exact[part] = terms.sum(axis=1)
                sizes[part] = np.abs(terms).sum(axis=1)
            return self._biased(exact, sizes, columns)

    def drift(self, rows: Array, columns: Array, exact: Array) -> Array:
        """Return how far a sum of some elements, term after term in float32, may be from `exact`.

        Terms are added in the order of K or the largest first, where small ones are rounded most.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self._terms(rows, columns).astype(np.float32)
            if self.bias is not None:
                row = self.bias[columns].astype(np.float32)
                terms = np.concatenate([row[:, None], terms], axis=1)
            along_k = np.abs(_added(terms) - exact)
            falling = np.argsort(-np.abs(terms), axis=1, kind="stable")
            terms = np.take_along_axis(terms, falling, axis=1)
            drift: Array = np.maximum(along_k, np.abs(_added(terms) - exact))
            return drift

    def _terms(self, rows: Array, columns: Array) -> Array:
        left, right = self.a[rows].astype(np.float64), self.b.T[columns].astype(np.float64)
        return left * right

    def _biased(self, exact: Array, sizes: Array, columns: Any) -> Sums:
        if self._row is None:
            return exact, sizes
        return exact + self._row[columns], sizes + np.abs(self._row[columns])

    @property
    def _may_saturate(self) -> bool:
        """True if a partial sum could leave int32."""
        p = self.problem
        most = 0 if self.bias is None else int(np.abs(self.bias.astype(np.int64)).max())
        return most + (p.k << (p.a_type.bits + p.b_type.bits - 2)) >= 1 << 31

    def _integers(self, a: Array) -> Array:
        """Return the exact sum: parts of K that are exact in float32 are added in float64."""
        p = self.problem
        step = _EXACT_FLOAT32 >> (p.a_type.bits + p.b_type.bits - 2)
        total = np.zeros((a.shape[0], p.n))
        total += 0 if self._row is None else self._row
        left = a.astype(np.float32)
        for k in range(0, p.k, step):
            total += left[:, k : k + step] @ self.float32_b[k : k + step]
        return total

    def _clamped(self, a: Array) -> Array:
        """Return the sum as L0C makes it: bias first, clamped after each block of K."""
        info = np.iinfo(np.int32)
        left = a.astype(np.float64)
        total = np.zeros((a.shape[0], self.problem.n))
        total += 0 if self._row is None else self._row
        for k in range(0, self.problem.k, self.base_k):
            part = slice(k, k + self.base_k)
            total = np.clip(total + left[:, part] @ self._wide[part], info.min, info.max)
        return total


def _added(terms: Array) -> Array:
    """Return sums of rows, added one term after another in float32."""
    return np.add.accumulate(terms, axis=1)[:, -1].astype(np.float64)
