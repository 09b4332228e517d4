"""Verification against an independent product, with a tolerance that is derived, not chosen."""

import math
import statistics
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.chips.products import L0A_NZ_ARCHS
from cubecore.numerics import (
    HF32_ROUNDINGS,
    HF32_SHORT_ROUNDINGS,
    largest_finite,
    round_hf32,
)
from cubecore.numerics.codes import codes_of, numbers
from cubecore.tiling.model.problem import SCALE_GROUP, Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.units import ceil_div
from cubecore.workflows.data.operands import Operands, matrices, shared_scales
from cubecore.workflows.data.stored_layout import from_nz

Array = NDArray[Any]

_FLOAT32_UNIT = 2.0**-24
_HALF_UNITS = {
    "float16": (2.0**-11, 2.0**-25),
    "bfloat16": (2.0**-8, 2.0**-134),
    "float8_e4m3fn": (2.0**-4, 2.0**-10),
}
"""Half a unit in the last place of what fixpipe rounds to: relative, and of the least numbers."""
_SCALE_BITS = 0xFFFFE000
"""What fixpipe keeps of a float32 scale: sign, exponent, 10 bits of mantissa."""
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


def verify(
    problem: Problem, operands: Operands, result: Array, tiling: TCubeTiling
) -> Verification:
    """Compare `result`, as stored, with the product of the operands in float64.

    Integers must be exact; a sum that leaves int32 is clamped after each baseK of K, as L0C is.
    A float may be off by one rounding of float32 for each Mmad and each part of a split K, and the
    square root of K for an order of summation that nobody documents, times the sum of magnitudes; a
    float16 result by its own rounding on top. NaN and infinity must be where the product has them.
    """
    p = problem
    a, b = factors(p, operands)
    shape = (p.batch, p.m, p.n)
    c = (from_nz(result, p.m, p.n) if p.format_c == "NZ" else result).reshape(shape)
    scale = operands.scale if p.scales_columns else p.epilogue.scale
    scales = None if scale is None else np.asarray(scale, np.float32)
    rows = (operands.bias, scales)
    return _combined([_verify_one(p, (a[i], b[i]), rows, c[i], tiling) for i in range(p.batch)])


def _combined(parts: list[Verification]) -> Verification:
    return Verification(
        verified=all(part.verified for part in parts),
        max_abs_error=max(part.max_abs_error for part in parts),
        max_rel_error=max(part.max_rel_error for part in parts),
        tolerance=max(part.tolerance for part in parts),
        worst=max(part.worst for part in parts),
    )


def _verify_one(
    problem: Problem,
    pair: tuple[Array, Array],
    rows: tuple[Array | None, Array | None],
    result: Array,
    tiling: TCubeTiling,
) -> Verification:
    (a, b), (bias, scales) = pair, rows
    wide, magnitude = b.astype(np.float64), _magnitudes(b)
    parts = []
    slices = ceil_div(problem.k, tiling.singleCoreK)
    steps = ceil_div(problem.k, tiling.baseK) + 1 + (slices if slices > 1 else 0)
    clamps = problem.accumulator_type.kind == "int" and _may_saturate(problem, bias)
    for row in range(0, problem.m, _ROWS_AT_ONCE):
        part = slice(row, row + _ROWS_AT_ONCE)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = a[part].astype(np.float64) @ wide
            sums = (_magnitudes(a[part]) @ magnitude).astype(np.float64)
        if clamps:
            exact = _clamped_sum(a[part].astype(np.float64), wide, bias, tiling.baseK)
            parts.append(_compare(problem, (None, scales), (exact, sums), result[part], steps))
        else:
            parts.append(_compare(problem, (bias, scales), (exact, sums), result[part], steps))
    return _combined(parts)


def factors(problem: Problem, operands: Operands) -> tuple[Array, Array]:
    """Return A as [batch, m, k] and B as [batch, k, n], scaled, or rounded to HF32, as is asked."""
    a, b = matrices(problem, operands)
    if problem.mx:
        k, (of_a, of_b) = problem.k, shared_scales(problem, operands)
        of_a, of_b = (x.repeat(SCALE_GROUP, axis=2)[:, :, :k] for x in (of_a, of_b))
        return a.astype(np.float64) * of_a, b.astype(np.float64) * of_b.swapaxes(1, 2)
    if problem.hf32:
        short = problem.chip_record.arch in L0A_NZ_ARCHS
        rounding = (HF32_SHORT_ROUNDINGS if short else HF32_ROUNDINGS)[0]
        return round_hf32(a, rounding), round_hf32(b, rounding)
    return a, b


def _magnitudes(values: Array) -> Array:
    """Return absolute values as float32; scaled ones, which may leave its range, as they are."""
    sizes: Array = np.abs(values if values.dtype == np.float64 else values.astype(np.float32))
    return sizes


def _may_saturate(problem: Problem, bias: Array | None) -> bool:
    """Whether a partial sum could leave int32."""
    most = 0 if bias is None else int(np.abs(bias.astype(np.int64)).max())
    return most + (problem.k << (problem.a_type.bits + problem.b_type.bits - 2)) >= 1 << 31


def _clamped_sum(a: Array, b: Array, bias: Array | None, base_k: int) -> Array:
    """Return the product summed as L0C does: bias first, clamped after each block of K."""
    info = np.iinfo(np.int32)
    total = np.zeros((a.shape[0], b.shape[1])) if bias is None else bias.astype(np.float64)
    for k in range(0, a.shape[1], base_k):
        total = np.clip(total + a[:, k : k + base_k] @ b[k : k + base_k], info.min, info.max)
    return total


def _compare(
    problem: Problem,
    rows: tuple[Array | None, Array | None],
    product: tuple[Array, Array],
    result: Array,
    steps: int,
) -> Verification:
    """Judge some rows of C.

    `rows` are bias and scales, `product` is (A x B in float64, the sums of magnitudes).
    """
    (bias, scales), (exact, magnitude) = rows, product
    if bias is not None:
        row = bias.astype(np.float64)
        exact, magnitude = exact + row, magnitude + np.abs(row)
    if problem.epilogue.relu:
        exact = np.maximum(exact, 0.0)
    if problem.accumulator_type.kind == "int":
        info = np.iinfo(np.int32)
        exact, limit = np.clip(exact, info.min, info.max), np.zeros_like(exact)
    else:
        limit = magnitude * (_FLOAT32_UNIT * (steps + math.ceil(math.sqrt(problem.k))))
    if scales is not None:
        exact, limit = _scaled(exact, limit, scales)
    exact, limit = _written(problem, exact, limit)
    with np.errstate(divide="ignore", invalid="ignore"):
        wide = numbers(result, problem.c_type).astype(np.float64)
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


def _scaled(exact: Array, limit: Array, scales: Array) -> tuple[Array, Array]:
    """Return a sum times its scale, and how far off it may be.

    A scale keeps 10 bits of its mantissa; the product may be rounded to float32 twice.
    """
    kept = np.asarray(scales, np.float32).view(np.uint32) & np.uint32(_SCALE_BITS)
    factor = kept.view(np.float32).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        product = exact * factor
        return product, limit * np.abs(factor) + np.abs(product) * (4 * _FLOAT32_UNIT)


def _written(problem: Problem, exact: Array, limit: Array) -> tuple[Array, Array]:
    """Return what fixpipe makes of a value in C's type, and how far off that may be."""
    kind = problem.c_type
    if kind.name in _HALF_UNITS:
        largest = largest_finite(kind)
        exact = np.where(np.isnan(exact), 0.0, np.clip(exact, -largest, largest))
        unit, least = _HALF_UNITS[kind.name]
        return exact, limit + np.abs(exact) * unit + least
    if kind.library == "codes":
        lowest, near, highest = (
            numbers(codes_of(value, kind, finite=True), kind).astype(np.float64)
            for value in (exact - limit, exact, exact + limit)
        )
        return near, np.maximum(near - lowest, highest - near)
    if kind.kind == "float" or problem.epilogue.quant is None:
        return exact, limit
    # Rounding is monotone: what the value may be bounds what is written.
    low, near, high = (_to_int8(problem, value) for value in (exact - limit, exact, exact + limit))
    return near, np.maximum(near - low, high - near)


def _to_int8(problem: Problem, value: Array) -> Array:
    """Return the value rounded to even, in nine bits, with its offset, in eight bits."""
    with np.errstate(invalid="ignore"):
        whole = np.rint(np.where(np.isnan(value), 0.0, value))
    shifted: Array = np.clip(whole, -256, 255) + problem.epilogue.offset
    return np.clip(shifted, -128, 127)


def _largest(values: Array) -> float:
    """Return the largest value; NaN, which compares with nothing, counts as infinite."""
    return float(np.where(np.isnan(values), np.inf, values).max())


def finite(value: float) -> float | None:
    """Return a number that JSON has: None for infinity."""
    return value if math.isfinite(value) else None


def reference_seconds(problem: Problem, operands: Operands) -> float:
    """Return the median time of NumPy's float32 product of the shape, at its own thread count."""
    a, b = (values.astype(np.float32) for values in matrices(problem, operands))
    times = []
    for _ in range(_REFERENCE_RUNS):
        begin = perf_counter()
        for left, right in zip(a, b, strict=True):
            _ = left @ right
        times.append(perf_counter() - begin)
    return statistics.median(times)
