"""Number formats by their definitions, code by code, in exact arithmetic.

A value is an int, a Fraction, or a float for zeros, infinities and NaN.
"""

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np

INF, NAN = math.inf, math.nan
FLOATS = {  # bits of the exponent and of the mantissa, bias
    "float16": (5, 10, 15),
    "bfloat16": (8, 7, 127),
    "float32": (8, 23, 127),
    "float8_e5m2": (5, 2, 15),
    "float8_e4m3fn": (4, 3, 7),
    "float4_e2m1fn": (2, 1, 1),
    "float4_e1m2": (1, 2, 1),
}
NO_INFINITY = {"float8_e4m3fn", "float4_e2m1fn", "float4_e1m2"}
MODES = {
    "CAST_RINT": "rint",
    "CAST_ROUND": "round",
    "CAST_FLOOR": "floor",
    "CAST_CEIL": "ceil",
    "CAST_TRUNC": "trunc",
    "CAST_ODD": "odd",
    "CAST_NONE": "rint",
}


def bits_of(kind):
    """Return the width of a type."""
    if kind in FLOATS:
        return 1 + FLOATS[kind][0] + FLOATS[kind][1]
    return 8 if kind in {"hifloat8", "float8_e8m0fnu"} else int(kind.lstrip("uint"))


def integer_range(kind):
    """Return the ends of an integer type."""
    bits = bits_of(kind)
    return (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def is_integer(kind):
    """Return whether a type is one of integers."""
    return kind.startswith(("int", "uint"))


def decode(code, kind):
    """Return the value of a code."""
    bits = bits_of(kind)
    if is_integer(kind):
        return code - (1 << bits) if kind[0] == "i" and code >> (bits - 1) else code
    if kind == "hifloat8":
        return hifloat8()[code]
    if kind == "float8_e8m0fnu":
        return NAN if code == 255 else Fraction(2) ** (code - 127)
    exponent_bits, mantissa_bits, bias = FLOATS[kind]
    sign = -1 if code >> (bits - 1) else 1
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = code & (1 << mantissa_bits) - 1
    if exponent == (1 << exponent_bits) - 1 and kind not in NO_INFINITY:
        return NAN if mantissa else sign * INF
    if kind == "float8_e4m3fn" and code & 0x7F == 0x7F:
        return NAN
    if not exponent and not mantissa:
        return math.copysign(0.0, sign)
    whole = mantissa + (1 << mantissa_bits if exponent else 0)
    return sign * whole * Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits)


@cache
def hifloat8():
    """Return the values of all codes: a dot says how many bits the exponent has."""
    values = []
    for code in range(256):
        rest, sign = code & 0x7F, -1 if code >> 7 else 1
        if code == 0x80 or rest == 0x6F:
            values.append(NAN if code == 0x80 else sign * INF)
        elif rest < 8:
            values.append(sign * Fraction(2) ** (rest - 23) if rest else 0.0)
        else:
            width = 4 if rest >= 96 else 3 if rest >= 64 else 2 if rest >= 32 else int(rest >= 16)
            dot = 2 if width > 1 else 3 if width else 4
            mantissa_bits = 7 - dot - width
            mantissa = rest & (1 << mantissa_bits) - 1
            field = rest >> mantissa_bits & (1 << width) - 1
            size = field & (1 << max(width - 1, 0)) - 1 | 1 << max(width - 1, 0) if width else 0
            exponent = -size if width and field >> (width - 1) else size
            values.append(
                sign * Fraction(2) ** exponent * (1 + Fraction(mantissa, 1 << mantissa_bits))
            )
    return values


def integral(value, mode):
    """Return a number rounded to an integer."""
    low = math.floor(value)
    rest = value - low
    if not rest:
        return low
    negative = value < 0
    return (
        low
        + {
            "rint": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1),
            "round": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and not negative),
            "floor": False,
            "ceil": True,
            "trunc": negative,
            "odd": low % 2 == 0,
            "up": rest >= Fraction(1, 2),
        }[mode]
    )


def to_integer(value, kind, mode="rint", *, saturates=True):
    """Return the code of a number in an integer type."""
    low, high = integer_range(kind)
    if math.isnan(value):
        return 0
    infinite = high if value > 0 else low
    number = infinite if value in {INF, -INF} else integral(value, mode)
    number = min(max(number, low), high) if saturates else number
    return number & (1 << bits_of(kind)) - 1


def to_float(value, kind, mode="rint", *, finite=False):
    """Return the code of a number in a float type, rounded once."""
    exponent_bits, mantissa_bits, bias = FLOATS[kind]
    top = 1 << (exponent_bits + mantissa_bits)
    largest = decode_largest(kind)
    nan, infinite = top - 1, (top - (1 << mantissa_bits) if kind not in NO_INFINITY else top - 1)
    if math.isnan(value):
        return 0 if finite else nan
    negative = math.copysign(1, value) < 0
    sign = top if negative else 0
    if value in {INF, -INF}:
        return sign | (largest if finite else infinite)
    if not value:
        return sign
    size = abs(Fraction(value))
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    exponent = max(exponent, 1 - bias)
    unit = Fraction(2) ** (exponent - mantissa_bits)
    whole = abs(integral((-size if negative else size) / unit, mode))
    code = (exponent + bias - 1 << mantissa_bits) + whole
    return sign | (code if code <= largest else largest if finite else infinite)


@cache
def decode_largest(kind):
    """Return the code of the largest finite number."""
    exponent_bits, mantissa_bits, _ = FLOATS[kind]
    top = 1 << (exponent_bits + mantissa_bits)
    if kind in NO_INFINITY:
        return top - 2 if kind == "float8_e4m3fn" else top - 1
    return top - (1 << mantissa_bits) - 1


def to_hifloat8(value, *, finite):
    """Return the code nearest to a number, ties away from zero."""
    if math.isnan(value):
        return 0 if finite else 0x80
    size, sign = abs(value), 0x80 if value < 0 else 0
    sizes, codes, steps = hifloat8_steps()
    if size >= Fraction(5, 4) * sizes[-1]:
        return sign | (codes[-1] if finite else 0x6F)
    code = codes[bisect_right(steps, size)]
    return sign | code if code else 0


@cache
def hifloat8_steps():
    """Return the sizes of hifloat8, their codes, and the halves between neighbours."""
    order = sorted((Fraction(s), code) for code, s in enumerate(hifloat8()[:128]) if s < INF)
    sizes, codes = zip(*order, strict=True)
    return sizes, codes, [(low + high) / 2 for low, high in pairwise(sizes)]


def lanes(register, kind):
    """Return the codes of a register's lanes."""
    data, bits = np.ascontiguousarray(register).reshape(-1), bits_of(kind)
    if bits == 4:
        return [n for byte in data.tolist() for n in (byte & 15, byte >> 4)]
    return data.view(f"u{bits // 8}").tolist()


def registers(codes, kind):
    """Return registers with lanes of some codes, as rows; the last one is filled with zeros."""
    bits = bits_of(kind)
    if bits == 4:
        codes = [*codes, *([0] * (len(codes) % 2))]
        codes, bits = (
            [low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True)],
            8,
        )
    data = np.array(codes, f"u{bits // 8}").view(np.uint8)
    return np.pad(data, (0, -data.size % 256)).reshape(-1, 256)


def same(got, wanted, kind):
    """Return whether codes are alike: NaN is NaN whatever its bits."""
    if got == wanted:
        return True
    if is_integer(kind):
        return False
    one, other = decode(got, kind), decode(wanted, kind)
    return math.isnan(one) and math.isnan(other)


def samples(kind, count=192, seed=0):
    """Return codes: all of 8 bits and fewer, else the edges of the type and random ones."""
    bits = bits_of(kind)
    if bits <= 8:
        return list(range(1 << bits))
    sign = 1 << (bits - 1)
    edges = [0, 1, 2, 3, sign - 1, sign - 2, 0x55, 0x7F, 0x80, 0xFF, 0x100]
    if kind in FLOATS:
        largest, mantissa = decode_largest(kind), FLOATS[kind][1]
        one = FLOATS[kind][2] << mantissa
        edges += [
            largest,
            largest - 1,
            largest + 1,
            largest + 2,
            1 << mantissa,
            (1 << mantissa) - 1,
        ]
        edges += [one, one + 1, one - 1, one + (1 << mantissa - 1), one + (1 << mantissa)]
    edges += [code ^ sign for code in edges]
    edges = [code & (1 << bits) - 1 for code in edges]
    random = np.random.default_rng(seed)
    rest = random.integers(0, (1 << bits) - 1, max(count - len(edges), 0), np.uint64, endpoint=True)
    return [*edges, *rest.tolist()]
