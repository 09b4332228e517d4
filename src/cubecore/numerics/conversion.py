"""Conversions between number formats in every rounding mode.

Everything is exact until the one rounding: values come as float64 (or as int64, of which float64
would lose bits) and leave in the target type.
"""

from functools import lru_cache

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.numerics import ends, largest_finite, round_float, wrap

ROUNDINGS = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
"""The vendor's modes: nearest with ties to even (none and rint) or away from zero (round), towards
minus infinity, plus infinity or zero, and inexact to odd."""
_EXACT_BITS = 53
"""Integers of so many bits are float64 numbers."""
_SIGNIFICANT_BITS = {"float16": (11, -24), "bfloat16": (8, -133), "float32": (24, -149)}
"""Bits of the significand, the leading one included, and the exponent of the smallest number."""


def to_integral(values: Array, rounding: str) -> Array:
    """Return float64 `values` rounded to integral values; infinities and NaN stay."""
    match rounding:
        case "none" | "rint":
            return np.rint(values)
        case "round":
            whole = np.trunc(values)
            with np.errstate(invalid="ignore"):  # infinity minus itself
                away = np.abs(values - whole) >= 0.5
            return np.asarray(whole + np.copysign(away, values))
        case "floor":
            return np.floor(values)
        case "ceil":
            return np.ceil(values)
        case "trunc":
            return np.trunc(values)
    assert rounding == "odd", rounding
    low = np.floor(values)
    with np.errstate(invalid="ignore"):
        even = np.fmod(low, 2) == 0
    return np.asarray(low + ((low != values) & even & np.isfinite(values)))


def to_integer(values: Array, target: ElementType, rounding: str, *, wraps: bool) -> Array:
    """Return float64 `values` in the integer type `target`.

    NaN: 0. Infinity: the largest or smallest integer. Beyond the range: the same, or with `wraps`
    the low bits of the exact integer.
    """
    low, high = integer_range(target)
    integral = to_integral(np.asarray(values, np.float64), rounding)
    if target.bits < _EXACT_BITS:  # the ends of the range are float64 numbers
        least, most = ends(integral)
        inside = low <= least and most <= high
        if inside or not wraps:
            held = integral
            if not inside:
                held = np.minimum(np.maximum(integral, float(low)), float(high))
                if least != least:  # noqa: PLR0124 - NaN
                    held = np.where(np.isnan(held), 0.0, held)
            return held.astype(target.numpy) if target.bits >= 8 else wrap(held, target)
    below, above = integral < float(low), integral >= float(high + 1)
    if wraps:
        below, above = below & np.isinf(integral), above & np.isinf(integral)
    # fmod of float64 is exact, so the low 64 bits of integers far beyond the range come out right.
    span = 2.0**64
    inside = np.where(np.isfinite(integral) & ~below & ~above, integral, 0.0)
    folded = np.fmod(inside, span)
    folded = np.where(folded >= span / 2, folded - span, folded)
    folded = np.where(folded < -span / 2, folded + span, folded)
    exact = np.where(below, low, np.where(above, high, folded.astype(np.int64)))
    return wrap(exact, target)


def integer_range(target: ElementType) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type, 4-bit ones too."""
    if target.kind == "uint":
        return 0, 2**target.bits - 1
    return -(2 ** (target.bits - 1)), 2 ** (target.bits - 1) - 1


def to_float(values: Array, target: ElementType, rounding: str, *, finite: bool) -> Array:
    """Return float64 or int64 `values` rounded in the float type `target`.

    NaN: 0 if `finite`, else NaN. What rounds beyond the largest finite value becomes infinite, in
    every mode; infinities become the largest finite value of their sign if `finite`.
    """
    exact = _odd_float64(values) if values.dtype == np.int64 else np.asarray(values, np.float64)
    if rounding in {"none", "rint"}:
        return round_float(exact, target, finite=finite)
    bits, lowest = _SIGNIFICANT_BITS[target.name]
    _, exponent = np.frexp(np.where(np.isfinite(exact), exact, 0.0))
    # The distance of neighbours in the target; subnormal numbers all have the smallest one.
    unit = np.ldexp(1.0, np.maximum(exponent - bits, lowest))
    rounded = np.copysign(to_integral(exact / unit, rounding) * unit, exact)
    largest = largest_finite(target)
    over = np.abs(rounded) > largest
    if finite:
        rounded = np.where(np.isnan(rounded), 0.0, np.clip(rounded, -largest, largest))
    else:
        rounded = np.where(over, np.copysign(np.inf, rounded), rounded)
    return np.asarray(rounded).astype(target.numpy)


def _odd_float64(values: Array) -> Array:
    """Return int64 `values` in float64, those that need more than 53 bits with an odd last bit.

    A later rounding to fewer bits, in any mode, is then as good as one from the integer.
    """
    # Round to odd: keep 53 bits and set the last one if any dropped bit is set ("sticky"). A later
    # rounding to fewer bits then sees on which side of a tie the integer was.
    size = np.where(values < 0, 0 - values.astype(np.uint64), values.astype(np.uint64))
    drop = np.uint64(11)  # 64 - 53
    wide = size >> np.uint64(53) != 0
    kept = size >> drop
    kept = kept | (kept << drop != size).astype(np.uint64)
    whole = np.where(wide, np.ldexp(kept.astype(np.float64), int(drop)), size.astype(np.float64))
    return np.where(values < 0, -whole, whole)


def bits_of(value: float, element: ElementType) -> int:
    """Return the bits of a scalar in `element`: a float rounded to it, an integer's low bits."""
    if element.kind == "float":
        scalar = round_float(np.array(value, np.float64), element, finite=False)
        return int(scalar.view(f"u{element.size_bytes}"))
    return int(value) & ((1 << element.bits) - 1)


@lru_cache(maxsize=4096)
def value_of(bits: int, element: ElementType) -> Array:
    """Return the scalar of type `element` that `bits` (or an integer) stand for, 0-dimensional.

    It is read-only.
    """
    value = np.array(bits & (2**element.bits - 1), f"u{element.size_bytes}").view(element.numpy)
    value.flags.writeable = False
    return value
