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
from cubecore.workflows.operands import Operands

Array = NDArray[Any]

_FLOAT32_UNIT = 2.0**-24
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


def verify(problem: Problem, operands: Operands, result: Array, rounded_steps: int) -> Verification:
    """Compare `result` with the product of the operands in float64.

    Integers must be exact (clamped to int32). A float may be off by one rounding of float32 for
    each of `rounded_steps` Mmads and the square root of K for an order of summation that nobody
    documents, times the sum of magnitudes; a float16 result by its own rounding on top.
    """
    a = operands.a.T if problem.trans_a else operands.a
    b = operands.b.T if problem.trans_b else operands.b
    wide, magnitude = b.astype(np.float64), np.abs(b.astype(np.float32))
    parts = []
    for row in range(0, problem.m, _ROWS_AT_ONCE):
        rows = slice(row, row + _ROWS_AT_ONCE)
        exact = a[rows].astype(np.float64) @ wide
        sums = (np.abs(a[rows].astype(np.float32)) @ magnitude).astype(np.float64)
        parts.append(_compare(problem, operands.bias, (exact, sums), result[rows], rounded_steps))
    return Verification(
        verified=all(part.verified for part in parts),
        max_abs_error=max(part.max_abs_error for part in parts),
        max_rel_error=max(part.max_rel_error for part in parts),
        tolerance=max(part.tolerance for part in parts),
        worst=max(part.worst for part in parts),
    )


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
        if kind.name == "float16":
            largest = largest_finite(kind)
            exact = np.clip(exact, -largest, largest)
            limit = limit + np.abs(exact) * 2.0**-11 + 2.0**-25
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(result.astype(np.float64) - exact)
        relative = np.where(error == 0, 0.0, error / np.abs(exact))
        share = np.where(error == 0, 0.0, error / limit)
    return Verification(
        verified=bool((error <= limit).all()),
        max_abs_error=_largest(error),
        max_rel_error=_largest(relative),
        tolerance=float(limit.max()),
        worst=_largest(share),
    )


def _largest(values: Array) -> float:
    """Return the largest value; NaN, which compares with nothing, counts as infinite."""
    return float(np.where(np.isnan(values), np.inf, values).max())


def reference_seconds(problem: Problem, operands: Operands) -> float:
    """Return the median time of NumPy's float32 product of the shape, at its own thread count."""
    a = (operands.a.T if problem.trans_a else operands.a).astype(np.float32)
    b = (operands.b.T if problem.trans_b else operands.b).astype(np.float32)
    times = []
    for _ in range(_REFERENCE_RUNS):
        begin = perf_counter()
        _ = a @ b
        times.append(perf_counter() - begin)
    return statistics.median(times)
