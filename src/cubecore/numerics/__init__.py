"""Rounding and saturation: the only place where precision is lost.

Everything is a pure function of arrays. Integer results that do not fit are clamped (`saturate`) or
wrapped (`wrap`); floats round to nearest even.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType


def saturate(values: Array, target: ElementType) -> Array:
    """Return integer-valued `values` clamped to the range of the integer type `target`."""
    low, high = _range(target)
    if not is_within(values, low, high):
        values = np.clip(values, low, high)
    return values.astype(target.numpy)


@lru_cache
def _range(target: ElementType) -> tuple[int, int]:
    info = np.iinfo(target.numpy)
    return int(info.min), int(info.max)


def wrap(values: Array, target: ElementType) -> Array:
    """Return integer `values` modulo 2**bits, as two's complement of the integer type `target`."""
    return values.astype(np.int64, copy=False).astype(target.numpy)


def round_float(values: Array, target: ElementType, *, finite: bool) -> Array:
    """Return `values` rounded to nearest even in the float type `target`.

    NaN: 0 if `finite`, else NaN. Infinity and overflow: the largest finite value of the same sign
    if `finite`, else infinity. (CTRL[48] chooses between the two; a clear bit means finite.)
    """
    # Fast path for many values that fit in half: pure integer arithmetic, without NumPy's slow
    # handling of subnormal results.
    wide = np.asarray(values)
    if wide.dtype == np.float32 and target.numpy == np.float16 and wide.size >= _MANY:
        words = np.ascontiguousarray(wide).view(np.uint32)
        magnitudes = words & _MAGNITUDE
        if int(magnitudes.max()) <= _LARGEST_HALF_WORD:
            return _halves(words, magnitudes)
    if finite:
        largest, (low, high) = largest_finite(target), ends(wide)
        if not (-largest <= low and high <= largest):
            wide = np.minimum(np.maximum(wide, -largest), largest)
            if low != low:  # noqa: PLR0124 - NaN
                wide = np.where(np.isnan(wide), np.zeros((), wide.dtype), wide)
    if wide.dtype == target.numpy:
        return wide
    if wide.dtype == np.float64 and target.library == "ml_dtypes":
        wide = _to_odd_float32(wide)
    if finite:  # nothing is left that could overflow
        return _narrowed(wide, target)
    with np.errstate(over="ignore", invalid="ignore"):
        return _narrowed(wide, target)


def _narrowed(wide: Array, target: ElementType) -> Array:
    """Return floats of more bits in another float type, rounded to nearest even."""
    kind = _WIDE.get(wide.dtype)
    if target.numpy != np.float16 or kind is None:
        return wide.astype(target.numpy)
    magnitudes = np.abs(wide)
    small = magnitudes < _LEAST_NORMAL_HALF
    if not (small & (magnitudes != 0)).any():
        return wide.astype(np.float16)
    # NumPy sets a status for each number that it makes subnormal, which takes 20 times longer.
    # Subnormal halves are multiples of 2^-24. Added to a number whose neighbours are that far
    # apart, the sum is rounded to such a multiple, and its low bits are the half's.
    codes, grid, sign = kind
    rounded = np.where(small, magnitudes, 0) + grid
    halves = np.where(small, np.zeros((), wide.dtype), wide).astype(np.float16)
    bits = halves.view(np.uint16)
    bits |= (rounded.view(codes) - grid.view(codes)).astype(np.uint16)
    bits |= (wide.view(codes) >> sign).astype(np.uint16) & 0x8000
    return halves


def _halves(words: NDArray[np.uint32], magnitudes: NDArray[np.uint32]) -> Array:
    """Return the words of float32 numbers as halves, by integers: many at a time, none too large.

    To add 2^13 times the power of two below a number, or below the least normal half, leaves its
    rounded bits in the lower half of the sum. `magnitudes` are the words without signs, and lost.
    """
    powers = magnitudes & np.uint32(0x7F800000)
    np.maximum(powers, np.full(powers.shape, 113 << 23, np.uint32), out=powers)
    powers += np.uint32(13 << 23)
    sums = magnitudes.view(np.float32)
    sums += powers.view(np.float32)
    powers >>= np.uint32(13)  # to the exponent of halves
    magnitudes += powers
    bits = magnitudes.astype(np.uint16)
    bits -= np.uint16((113 + 13) << 10 & 0xFFFF)
    signs = (words >> np.uint32(16)).astype(np.uint16)
    signs &= np.uint16(0x8000)
    bits |= signs
    return bits.view(np.float16)


_MANY = 1024
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_LARGEST_HALF = 65504.0
_LARGEST_HALF_WORD = int(np.float32(_LARGEST_HALF).view(np.uint32))
_LEAST_NORMAL_HALF = 2.0**-14
_WIDE: dict[np.dtype[Any], tuple[type, np.generic, int]] = {
    np.dtype(np.float32): (np.uint32, np.float32(2.0**-1), 16),
    np.dtype(np.float64): (np.uint64, np.float64(2.0**28), 48),
}
"""Each wider type's words, a number from which on its numbers are 2^-24 apart, as small halves, and
the bits by which its sign is further up than theirs.

To add the number rounds to them.
"""


def ends(values: Array) -> tuple[Any, Any]:
    """Return the smallest and the largest value, both NaN if one is; of none 0 and 0."""
    if not values.size:
        return 0, 0
    return values.item(values.argmin()), values.item(values.argmax())  # the first NaN, if any


def is_within(values: Array, lowest: float, largest: float) -> bool:
    """Return whether every value is in [lowest, largest], and none NaN; so is none."""
    low, high = ends(values)
    return not values.size or bool(lowest <= low and high <= largest)


def _to_odd_float32(values: Array) -> Array:
    """Return float64 `values` in float32, inexact ones with an odd last bit.

    ml_dtypes rounds float64 by way of float32; from odd, the second rounding is the only one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        near = values.astype(np.float32)
    bits = near.view(np.uint32)
    even = (bits & 1 == 0) & (near.astype(np.float64) != values) & np.isfinite(values)
    away = np.where(near.astype(np.float64) < values, np.float32(np.inf), np.float32(-np.inf))
    return np.where(even, np.nextafter(near, away.astype(np.float32)), near)


HF32_ROUNDINGS = ("nearest_even", "toward_zero")
"""The roundings of float32 to HF32 (asc-devkit, asc_enable_hf32_trans: modes 0 and 1)."""
_SHORT = "_10"
HF32_SHORT_ROUNDINGS = tuple(rounding + _SHORT for rounding in HF32_ROUNDINGS)
"""The same with the 10 bits of mantissa that architecture 3510 keeps (asc-devkit, HF32)."""
_HF32_DROPPED_BITS = 12
"""float32 keeps 23 bits of mantissa, HF32 the upper 11 of them, on architecture 3510 10."""


def round_hf32(values: Array, rounding: str) -> Array:
    """Return float32 `values` rounded to HF32 (1 sign, 8 exponent and 11 or 10 mantissa bits).

    Subnormal numbers keep the same bits; NaN and infinity stay. ``nearest_even`` may round the
    largest numbers to infinity, ``toward_zero`` never does. Results are float32.
    """
    # Round half to even on the bits: add half a unit less one, and one more if the last kept bit is
    # odd; carries run into the exponent by themselves.
    bits = np.asarray(values, np.float32).view(np.uint32)
    dropped = _HF32_DROPPED_BITS + rounding.endswith(_SHORT)
    kept = np.uint32(2**32 - 2**dropped)
    rounded = bits
    if rounding.startswith("nearest_even"):
        rounded = bits + np.uint32(2 ** (dropped - 1) - 1)
        rounded = rounded + (bits >> dropped & 1)
    return np.where(np.isnan(values), bits, rounded & kept).view(np.float32)


@lru_cache
def largest_finite(target: ElementType) -> float:
    """Return the largest finite value of the float type `target`."""
    if target.library == "numpy":
        return float(np.finfo(target.numpy).max)
    import ml_dtypes

    return float(ml_dtypes.finfo(target.numpy).max)  # type: ignore[no-untyped-call]


def exact(values: Array) -> Array:
    """Return numbers in float64, which has every value of the narrower types; perhaps themselves.

    What only ml_dtypes has, and is of 8 bits, is looked up: its conversions take longer.
    """
    if values.dtype.itemsize == 1 and values.dtype.kind not in "iub":
        return _values(values.dtype).take(values.view(np.uint8))
    if values.dtype == np.float16 and values.size >= _MANY:
        return _widened(values)
    return values.astype(np.float64, order="C", copy=False)


def _widened(halves: Array) -> Array:
    """Return halves in float64, by integers: many at a time.

    Their bits are those of a float32 number that is 2^112 times smaller, but for infinity and NaN.
    """
    words = halves.view(np.int16).astype(np.int32, order="C")
    words <<= 13
    words &= ~_ABOVE_HALVES
    numbers = words.view(np.float32)
    numbers *= np.float32(2.0**112)
    if is_within(numbers, -_LARGEST_HALF, _LARGEST_HALF):
        return numbers.astype(np.float64)
    return halves.astype(np.float64, order="C")


_ABOVE_HALVES = np.int32(0x70000000)
"""The bits that the sign was copied to."""


@lru_cache
def _values(dtype: np.dtype[Any]) -> Array:
    """Return the values of all codes of 8 bits."""
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)


def accumulate_product(start: Array, a: Array, b: Array, c: ElementType) -> Array:
    """Return start + a @ b as one `mad` leaves it in L0C.

    a is [m, k], b is [k, n], `start` [m, n] holds values of the type `c`; all may have an axis of
    cores in front, and each core's product is summed as it would be alone. int32: the exact sum,
    clamped. float32: the product is summed in float64 and rounded to float32 once with the start
    added. The hardware's own order of summation is not documented; this is a policy
    (`ACCUMULATION_POLICY`), not a fact.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = _product(a, b)
        total += exact(start)
    if c.kind == "int":
        return saturate(total, c)
    return round_float(total, c, finite=False)


def _product(a: Array, b: Array) -> Array:
    """Return a @ b in float64; where all cores have one b, as the product of all rows by it.

    What all cores have alike may have no strides from core to core.
    """
    if a.ndim == b.ndim == _WITH_CORES and len(a) == len(b) > 1 and _is_shared(b):
        rows = _product(a.reshape(-1, a.shape[-1]), b[0])
        return rows.reshape(*a.shape[:2], b.shape[-1])
    if a.ndim == _WITH_CORES and not a.strides[0]:
        a = a[0]
    product: Array = np.ascontiguousarray(exact(a)) @ np.ascontiguousarray(exact(b))
    return product


def _is_shared(values: Array) -> bool:
    """Return whether all cores have the same values, to the bit."""
    if not values.strides[0]:
        return True
    words = values.view(f"u{values.itemsize}")
    return bool((words[1:, :1] == words[:1, :1]).all() and (words[1:] == words[0]).all())


_WITH_CORES = 3
"""The axes of a matrix of each core."""
_OF_MAD = "float64 within one mad, rounded to float32 in L0C after each"
ACCUMULATION_POLICY = {
    "reference": _OF_MAD,
    "lockstep": _OF_MAD,
    "blas": "float32, in the order of the BLAS library",
}
"""The order in which each engine sums float products; integer sums are exact and saturate."""
