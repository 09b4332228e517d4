"""The meanings of register instructions that work lane by lane, from their pages, code by code."""

import decimal
import math
from fractions import Fraction
from math import copysign, isnan

from isa.vector.registers.formats import (
    FLOATS,
    INF,
    NAN,
    bits_of,
    decode,
    integer_range,
    is_integer,
    to_float,
)

decimal.getcontext().prec = 50


def plain(value):
    """Return a Fraction for a finite float that is not zero, other values as they are."""
    return Fraction(value) if isinstance(value, float) and value and abs(value) < INF else value


def special(*values):
    """Return whether a value is a zero, an infinity or NaN."""
    return any(isinstance(value, float) for value in values)


def total(x, y):
    if special(x, y):
        return (
            plain(float(x) + float(y))
            if abs(float(x)) in {0, INF} or abs(float(y)) in {0, INF}
            else NAN
        )
    return x + y or 0.0


def times(x, y):
    return plain(float(x) * float(y)) if special(x, y) else x * y


def negative(x):
    return copysign(1, x) < 0


def minus(x, y):
    return total(x, -y)


def larger(x, y):
    if isnan(x) or isnan(y):
        return NAN
    if x == y:
        return y if negative(x) else x
    return max(x, y)


def smaller(x, y):
    if isnan(x) or isnan(y):
        return NAN
    if x == y:
        return x if negative(x) else y
    return min(x, y)


def leaky(x, slope):
    return times(x, slope) if negative(x) or isnan(x) else x


def relu(x):
    return x if isnan(x) or x > 0 else 0.0


def quotient(x, y):
    if isnan(x) or isnan(y):
        return NAN
    sign = -1 if negative(x) != negative(y) else 1
    if abs(x) == INF or abs(y) == INF:
        return NAN if abs(x) == abs(y) else sign * (INF if abs(x) == INF else 0.0)
    if y == 0:
        return NAN if x == 0 else sign * INF
    return Fraction(x) / Fraction(y) if x else sign * 0.0


def root(x):
    if isnan(x) or x in {INF, 0}:
        return x
    if x < 0:
        return NAN
    scaled = x.numerator * x.denominator << 200
    whole = math.isqrt(scaled)
    return Fraction(2 * whole + (whole * whole != scaled), x.denominator << 101)


def power(x):
    if isnan(x):
        return NAN
    if abs(x) > 200:
        return INF if x > 0 else 0.0
    x = Fraction(x)
    return Fraction((decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)).exp())


def logarithm(base):
    def function(x):
        if isnan(x) or x < 0:
            return NAN
        if x in {0, INF}:
            return -INF if x == 0 else INF
        result = (decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)).ln()
        if base:
            result /= decimal.Decimal(base).ln()
        return Fraction(result) or 0.0

    return function


def shift_left(x, n, kind):
    bits = bits_of(kind)
    if n >= bits:
        return 0
    sign = 1 << (bits - 1) if kind[0] == "i" else 0
    return (x << n) & ((1 << bits) - 1 - sign) | x & sign


def shift_right(x, n, kind):
    value = decode(x, kind)
    return (value >> min(n, bits_of(kind))) & (1 << bits_of(kind)) - 1


def truncated(x, y):
    if y == 0:
        return -1
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


BITWISE = {"And": lambda x, y: x & y, "Or": lambda x, y: x | y, "Xor": lambda x, y: x ^ y}
INTEGERS = {
    **{name: lambda x, y: x + y for name in ("Add", "Adds")},
    "Sub": lambda x, y: x - y,
    **{name: lambda x, y: x * y for name in ("Mul", "Muls")},
    "Div": truncated,
    **dict.fromkeys(("Max", "Maxs"), max),
    **dict.fromkeys(("Min", "Mins"), min),
    "AbsSub": lambda x, y: abs((x - y + 2**63) % 2**64 - 2**63),
    "Abs": abs,
    "Neg": lambda x: -x,
    "Relu": lambda x: max(x, 0),
    "MulAddDst": lambda x, y, dst: x * y + dst,
    "Axpy": lambda x, s, dst: x * s + dst,
}
REALS = {
    **dict.fromkeys(("Add", "Adds"), total),
    "Sub": minus,
    **dict.fromkeys(("Mul", "Muls"), times),
    **dict.fromkeys(("Max", "Maxs"), larger),
    **dict.fromkeys(("Min", "Mins"), smaller),
    **dict.fromkeys(("Prelu", "LeakyRelu"), leaky),
    "AbsSub": lambda x, y: abs(minus(x, y)),
    "Abs": abs,
    "Neg": lambda x: -x,
    "Relu": relu,
    "MulAddDst": lambda x, y, dst: total(times(x, y), dst),
    "Axpy": lambda x, s, dst: total(times(x, s), dst),
    "MulDstAdd": lambda x, y, dst: total(times(dst, x), y),
    "Div": quotient,
    "Sqrt": root,
    "Exp": power,
    "Ln": logarithm(0),
    "Log2": logarithm(2),
    "Log10": logarithm(10),
}
FLUSHING = {"Div", "Sqrt", "Exp", "Ln", "Log2", "Log10"}
SATURATING = {"Add", "Sub", "Mul", "Adds", "Muls"}


def flushed(code, kind):
    """Return a code, of a subnormal number that of its zero."""
    top = 1 << (bits_of(kind) - 1)
    return code & top if not code & ~top & (top - (1 << FLOATS[kind][1])) else code


def lane(name, kind, codes, *, finite=False, saturates=False):
    """Return the code that an instruction makes of a lane."""
    bits = bits_of(kind)
    if name in BITWISE or name == "Not":
        return (BITWISE[name](*codes) if len(codes) > 1 else ~codes[0]) & (1 << bits) - 1
    if is_integer(kind):
        result = INTEGERS[name](*(decode(code, kind) for code in codes))
        if saturates and name in SATURATING and bits < 64:
            low, high = integer_range(kind)
            result = min(max(result, low), high)
        return result & (1 << bits) - 1
    if name in FLUSHING:
        codes = [flushed(code, kind) for code in codes]
    value = REALS[name](*(decode(code, kind) for code in codes))
    result = to_float(value, kind, finite=finite and kind == "float16")
    return flushed(result, kind) if name in FLUSHING else result
