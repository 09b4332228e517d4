"""Fixpipe's scales and what they do to an accumulator (asc-devkit, on-the-fly quantisation, 2201).

A scale is a word of 64 bits. Bits 31 to 0 are a float32 of which 1 sign, 8 exponent and 10
mantissa bits count; bits 45 to 37 a signed offset; bit 46 says that an 8-bit result is signed. With
bit 36 an int32 accumulator is shifted right by 1 to 16 (bits 35 to 32, plus 1) and clamped to 16
bits first.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import FLOAT16, ElementType
from cubecore.numerics import round_float

Words = NDArray[np.uint64]

SCALE_MASK = 0xFFFFE000
"""The bits of a float32 that a scale keeps: (1, 8, 10)."""
SIGNED_BIT = 46
_SHIFT_AT, _SHIFT_ON_BIT, _OFFSET_AT = 32, 36, 37
_POST_SIGNED_BIT = 9
_OFFSET_MIN, _OFFSET_MAX = -256, 255
"""Nine bits, for the offset and for the integer that it is added to."""
_INT16_MIN, _INT16_MAX = -(2**15), 2**15 - 1


def scale_words(scales: Array | float, *, offset: int = 0, signed: bool = True) -> Words:
    """Return float `scales` as words, shaped as they are; 0-dimensional for a number.

    The low 13 bits of each float32 stay in the word, as the hardware ignores them. `offset` is in
    [-256, 255] and meant for 8-bit results, as is `signed`.
    """
    bits = np.asarray(scales, np.float32).view(np.uint32).astype(np.uint64)
    fields = (offset & 0x1FF) << _OFFSET_AT | int(signed) << SIGNED_BIT
    return np.asarray(bits | np.uint64(fields), np.uint64)


def scale_values(words: Words) -> Array:
    """Return the factors that `words` hold, in float32."""
    return (words & np.uint64(SCALE_MASK)).astype(np.uint32).view(np.float32)


def scaled(values: Array, words: Words) -> Array:
    """Return int32 or float32 `values` times their scales, a float32 product rounded once.

    `words` broadcasts against `values`. An int32 becomes float32 first, to nearest even.
    """
    if values.dtype.kind == "i":
        shift = (_field(words, _SHIFT_AT, 4) + 1).astype(np.int32)
        shifted = np.clip(values >> shift, _INT16_MIN, _INT16_MAX)
        values = np.where(_field(words, _SHIFT_ON_BIT, 1) == 1, shifted, values)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(values.astype(np.float32) * scale_values(words))


def quantised(values: Array, words: Words, target: ElementType) -> Array:
    """Return `values` scaled and made integers of `target`: int8 (or its bits) or int4.

    To nearest even, clamped to 9 bits, the offset added, clamped to the target. NaN counts as 0. An
    8-bit result whose word is not signed is in [0, 255]; its bits are returned as int8.
    """
    exact = np.rint(scaled(values, words))
    whole = np.clip(np.nan_to_num(exact, nan=0.0), _OFFSET_MIN, _OFFSET_MAX).astype(np.int32)
    offset = _field(words, _OFFSET_AT, 9).astype(np.int32)
    whole = whole + np.where(offset > _OFFSET_MAX, offset - 512, offset)
    half = 1 << (target.bits - 1)
    result = np.clip(whole, -half, half - 1)
    if target.bits == 8:
        unsigned = np.clip(whole, 0, 2 * half - 1)
        result = np.where(_field(words, SIGNED_BIT, 1) == 1, result, unsigned)
    return np.asarray((result & 0xFF).astype(np.uint8).view(np.int8).astype(target.numpy))


def requantised(values: Array, word: int, target: ElementType) -> Array:
    """Return half `values` as int4, int8 (or its bits) or int16, by a word of QUANT_POST.

    Times the factor in float32, to nearest even, clamped to one bit more than the target has, the
    offset added, clamped to the target. NaN counts as 0. An 8-bit result whose word is not signed
    is in [0, 255]; its bits are returned as int8.
    """
    factor = np.uint32(word & SCALE_MASK).view(np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        exact = np.nan_to_num(np.rint(values.astype(np.float32) * factor), nan=0.0)
    half = 1 << (target.bits - 1)
    raw = word & 0x1FF | (word >> 32 & 0xFF) << 9 if target.bits == 16 else word
    offset = (raw + 2 * half) % (4 * half) - 2 * half
    whole = np.clip(exact, -2 * half, 2 * half - 1).astype(np.int32) + offset
    low, high = (-half, half - 1)
    if target.bits == 8 and not word >> _POST_SIGNED_BIT & 1:
        low, high = 0, 2 * half - 1
    result = np.clip(whole, low, high)
    return np.asarray((result & 2 * half - 1 if low == 0 else result).astype(target.numpy))


def _field(words: Words, at: int, bits: int) -> Words:
    return np.asarray(words >> np.uint64(at) & np.uint64((1 << bits) - 1), np.uint64)


def leaky(values: Array, alpha: int) -> Array:
    """Return float32 values, the negative ones times the factor whose bits `alpha` are."""
    factor = np.array(alpha, np.uint32).view(np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(np.where(values < 0, values * factor, values), np.float32)


def atomic(operation: str, old: Array, new: Array, *, finite: bool) -> Array:
    """Return what a store leaves in memory under an atomic ``add``, ``max`` or ``min``.

    In the elements' own type: floats round to nearest even, integers wrap. +0 is larger than -0.
    `finite` is for half alone: infinities become the largest finite values and NaN 0 (CTRL[48]
    clear; boundary values of atomic operations, tables 1 to 3).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if operation == "add":
            result = np.asarray(np.add(old, new, dtype=old.dtype))
        else:
            result = _extreme(operation, old, new)
        return round_float(result, FLOAT16, finite=finite) if result.dtype == np.float16 else result


def _extreme(operation: str, old: Array, new: Array) -> Array:
    largest = operation == "max"
    result = np.maximum(old, new) if largest else np.minimum(old, new)
    if result.dtype.kind in "iu":
        return np.asarray(result)
    first = np.signbit(old) != largest  # of equal values: the one with the sign that is asked for
    return np.asarray(np.where(old == new, np.where(first, old, new), result))
