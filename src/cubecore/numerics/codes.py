"""Formats that no library has: hifloat8 and float4_e1m2, whose arrays hold codes.

hifloat8 (arXiv 2409.16626; amct's page on HiFloat8) has a sign, a dot, an exponent and a mantissa.
The dot is a prefix: 11, 10, 01, 001 and 0001 say that the exponent takes 4, 3, 2, 1 and 0 bits,
0000 that there is none and the mantissa is one: 2**(mantissa - 23). The exponent is a sign and a
magnitude, whose leading 1 is not stored; the mantissa is what is left, 3 bits at most. 0 is the
code 0, NaN 0x80, infinity the largest exponent with the largest mantissa.

float4_e1m2 (a comment in a header of opbase, no page) has a sign, an exponent bit with bias 1 and
two mantissa bits: multiples of a quarter up to 1.75, without NaN and infinity.
"""

from functools import lru_cache

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type

HIFLOAT8 = element_type("hifloat8")
FLOAT4_E1M2 = element_type("float4_e1m2")
_DOTS = {"11": 4, "10": 3, "01": 2, "001": 1, "0001": 0}
"""Bits of the exponent for each dot."""
_DENORMAL = "0000"
_DENORMAL_BIAS = 23
_NAN = 0x80
_INFINITE = "1101111"
"""Dot, exponent +15, mantissa."""


def numbers(values: Array, kind: ElementType) -> Array:
    """Return what an array means: the float32 numbers of codes, `values` of every other type."""
    return values if kind.library != "codes" else _table(kind)[values]


def codes_of(values: Array, kind: ElementType, *, finite: bool = False) -> Array:
    """Return the codes of numbers, each rounded to the nearest, of two the one away from zero.

    NaN: NaN, or 0 where there is none. Beyond the largest number: infinity from half a step on, or
    the largest where there is none. With `finite` there is none of either (asc-devkit,
    __float22hif82_rna: both modes). A negative number that becomes 0 in hifloat8 loses its sign.
    """
    wide = np.asarray(values, np.float64)
    if finite:
        largest = np.nanmax(np.where(np.isinf(_table(kind)), 0, _table(kind)))
        wide = np.where(np.isnan(wide), 0.0, np.clip(wide, -largest, largest))
    # `steps` are the halves between neighbouring magnitudes: their number at or below a value is
    # the index of the nearest one, ties going up (away from zero).
    order, steps = _positive(kind)
    above = np.searchsorted(steps, np.abs(wide), side="right")
    magnitude = order[np.minimum(above, order.size - 1)]
    sign = np.signbit(wide).astype(np.uint8) << (kind.bits - 1)
    codes = np.where((magnitude == 0) & (kind is HIFLOAT8), 0, magnitude | sign)
    unknown = _NAN if kind is HIFLOAT8 else 0
    return np.where(np.isnan(wide), unknown, codes).astype(np.uint8)


def hybrid(exact: Array, source: ElementType) -> Array:
    """Return numbers of hifloat8, rounded as the page of Cast writes hybrid rounding.

    Magnitudes up to 2**4 are rounded to the nearest. Of others the bits behind those that are kept
    are held against the lowest bits of the source: 14 of float32, or of half its last and a 1. What
    hifloat8 holds stays: of such floats these bits are 0, and the page's rule would move them away.
    """
    # A hifloat8 has fewer bits behind the point the larger its exponent is: `kept` of them, which
    # for the smallest is none, and -1 where even the leading 1 is to be rounded up or away. The
    # significand has its leading 1 at bit 23.
    words = exact.astype(np.float32).view(np.uint32)
    low = exact.astype(source.numpy).view(f"u{source.size_bytes}").astype(np.int64)
    exponent = (words >> 23 & 0xFF).astype(np.int64) - 127
    mantissa = (words & 0x7FFFFF).astype(np.int64)
    size = np.abs(exponent)
    kept = np.select([size <= 3, size <= 7, size <= 15], [3, 2, 1], np.where(exponent < -22, -1, 0))
    bits, threshold = (14, low & 0x3FFF) if source.name == "float32" else (2, (low & 1) << 1 | 1)
    significand = mantissa | 1 << 23
    behind = significand >> (23 - kept - bits) & (1 << bits) - 1
    nearest = significand >> (22 - kept) & 1 == 1
    holds = significand & (np.int64(1) << 23 - kept) - 1 == 0
    up = np.where(size <= 3, nearest, (behind >= threshold) & ~holds)
    whole = (significand >> (23 - kept)) + up
    rounded = np.ldexp(whole.astype(np.float64), exponent - kept)
    inside = np.isfinite(exact) & (exponent >= -23) & (exponent <= 15)
    result = np.where(inside, np.copysign(rounded, exact), exact)
    return np.where(np.isfinite(exact) & (exponent < -23), np.copysign(0.0, exact), result)


@lru_cache
def _table(kind: ElementType) -> Array:
    """Return the number of each code."""
    decode = _hifloat8 if kind is HIFLOAT8 else _float4
    return np.array([decode(code) for code in range(1 << kind.bits)], np.float32)


def _hifloat8(code: int) -> float:
    bits = f"{code:08b}"
    sign, rest = (-1.0 if bits[0] == "1" else 1.0), bits[1:]
    if code == _NAN:
        return float("nan")
    if rest == _INFINITE:
        return sign * float("inf")
    if rest.startswith(_DENORMAL):
        mantissa = int(rest, 2)
        return sign * 2.0 ** (mantissa - _DENORMAL_BIAS) if mantissa else 0.0
    dot = next(dot for dot in _DOTS if rest.startswith(dot))
    exponent, mantissa_bits = 0, rest[len(dot) + _DOTS[dot] :]
    if _DOTS[dot]:
        field = rest[len(dot) : len(dot) + _DOTS[dot]]
        exponent = int("1" + field[1:], 2) * (-1 if field[0] == "1" else 1)
    return float(sign * 2.0**exponent * (1 + int(mantissa_bits, 2) / (1 << len(mantissa_bits))))


def _float4(code: int) -> float:
    sign, exponent, mantissa = (-1.0 if code >> 3 else 1.0), code >> 2 & 1, code & 3
    return sign * (exponent + mantissa / 4)


@lru_cache
def _positive(kind: ElementType) -> tuple[Array, Array]:
    """Return the codes from 0 on in order of their numbers, and the halves between neighbours.

    Between the largest number and infinity the half is where another number would be next.
    """
    table = _table(kind).astype(np.float64)[: 1 << kind.bits - 1]
    order = np.argsort(table, kind="stable").astype(np.uint8)
    magnitudes = table[order]
    upper = np.where(np.isinf(magnitudes[1:]), 1.5 * magnitudes[:-1], magnitudes[1:])
    return order, (magnitudes[:-1] + upper) / 2
