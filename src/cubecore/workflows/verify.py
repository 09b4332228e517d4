"""Verification against an independent product, with a tolerance that is derived, not chosen."""

import math
import statistics
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.numerics import largest_finite
from cubecore.tiling.problem import Problem
from cubecore.units import ceil_div
from cubecore.workflows.operands import Operands

Array = NDArray[Any]

_FLOAT32_UNIT = 2.0**-24
_HALF_UNITS = {"float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 2.0**-134)}
"""Half a unit in the last place of what fixpipe rounds to: relative, and of the least numbers."""
_REFERENCE_RUNS = 3
_ROWS_AT_ONCE = 512
"""Rows of C that are verified together: a product in float64 takes memory."""


@dataclass(frozen=True, slots=True)
class Verification:
    """How a result compares with the product.

    `tolerance` is the largest error that any element may have; each element has its own limit.
    `worst` is the largest error over its limit.
    """

    verified: bool
    max_abs_error: float
    max_rel_error: float
    tolerance: float
    worst: float


def verify(problem: Problem, operands: Operands, result: Array, base_k: int) -> Verification:
    """Compare `result` with the product of the operands in float64.

    Integers must be exact; a sum that leaves int32 is clamped after each `base_k` of K, as L0C is.
    A float may be off by one rounding of float32 for each Mmad and the square root of K for an
    order of summation that nobody documents, times the sum of magnitudes; a float16 result by its
    own rounding on top. NaN and infinity must be where the product has them.
    """
    a, b = _factors(problem, operands)
    wide, magnitude = b.astype(np.float64), np.abs(b.astype(np.float32))
    parts, steps = [], ceil_div(problem.k, base_k) + 1
    clamps = problem.c_type.kind == "int" and _may_saturate(problem, operands)
    for row in range(0, problem.m, _ROWS_AT_ONCE):
        rows = slice(row, row + _ROWS_AT_ONCE)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = a[rows].astype(np.float64) @ wide
            sums = (np.abs(a[rows].astype(np.float32)) @ magnitude).astype(np.float64)
        if clamps:
            exact = _clamped_sum(a[rows].astype(np.float64), wide, operands.bias, base_k)
            parts.append(_compare(problem, None, (exact, sums), result[rows], steps))
        else:
            parts.append(_compare(problem, operands.bias, (exact, sums), result[rows], steps))
    return Verification(
        verified=all(part.verified for part in parts),
        max_abs_error=max(part.max_abs_error for part in parts),
        max_rel_error=max(part.max_rel_error for part in parts),
        tolerance=max(part.tolerance for part in parts),
        worst=max(part.worst for part in parts),
    )


def _factors(problem: Problem, operands: Operands) -> tuple[Array, Array]:
    """Return A as [m, k] and B as [k, n]."""
    a = operands.a.T if problem.trans_a else operands.a
    return a, operands.b.T if problem.trans_b else operands.b


def _may_saturate(problem: Problem, operands: Operands) -> bool:
    """Whether a partial sum could leave int32."""
    bias = 0 if operands.bias is None else int(np.abs(operands.bias.astype(np.int64)).max())
    return bias + (problem.k << (problem.a_type.bits + problem.b_type.bits - 2)) >= 1 << 31


def _clamped_sum(a: Array, b: Array, bias: Array | None, base_k: int) -> Array:
    """Return the product summed as L0C does: bias first, clamped after each block of K."""
    info = np.iinfo(np.int32)
    total = np.zeros((a.shape[0], b.shape[1])) if bias is None else bias.astype(np.float64)
    for k in range(0, a.shape[1], base_k):
        total = np.clip(total + a[:, k : k + base_k] @ b[k : k + base_k], info.min, info.max)
    return total


def _compare(
    problem: Problem, bias: Array | None, product: tuple[Array, Array], result: Array, steps: int
) -> Verification:
    """Judge some rows; `product` is (A x B in float64, the sums of magnitudes)."""
    exact, magnitude = product
    if bias is not None:
        row = bias.astype(np.float64)
        exact, magnitude = exact + row, magnitude + np.abs(row)
    if problem.epilogue.relu:
        exact = np.maximum(exact, 0.0)
    kind = problem.c_type
    if kind.kind == "int":
        info = np.iinfo(kind.numpy)
        limit = np.zeros_like(exact)
        exact = np.clip(exact, info.min, info.max)
    else:
        limit = magnitude * (_FLOAT32_UNIT * (steps + math.ceil(math.sqrt(problem.k))))
        if kind.name in _HALF_UNITS:
            largest = largest_finite(kind)
            exact = np.where(np.isnan(exact), 0.0, np.clip(exact, -largest, largest))
            unit, least = _HALF_UNITS[kind.name]
            limit = limit + np.abs(exact) * unit + least
    with np.errstate(divide="ignore", invalid="ignore"):
        wide = result.astype(np.float64)
        same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
        error = np.where(same, 0.0, np.abs(wide - exact))
        relative = np.where(error == 0, 0.0, error / np.abs(exact))
        share = np.where(error == 0, 0.0, error / limit)
    return Verification(
        verified=bool((same | (error <= limit)).all()),
        max_abs_error=_largest(error),
        max_rel_error=_largest(relative),
        tolerance=_largest(limit),
        worst=_largest(share),
    )


def _largest(values: Array) -> float:
    """Return the largest value; NaN, which compares with nothing, counts as infinite."""
    return float(np.where(np.isnan(values), np.inf, values).max())


def finite(value: float) -> float | None:
    """Return a number that JSON has: None for infinity."""
    return value if math.isfinite(value) else None


def reference_seconds(problem: Problem, operands: Operands) -> float:
    """Return the median time of NumPy's float32 product of the shape, at its own thread count."""
    a, b = (factor.astype(np.float32) for factor in _factors(problem, operands))
    times = []
    for _ in range(_REFERENCE_RUNS):
        begin = perf_counter()
        _ = a @ b
        times.append(perf_counter() - begin)
    return statistics.median(times)
