"""Operations of expressions beyond sums and products: bits, relations, floats as bits.

Every function takes integers and gives one, so that an expression stays a value and a program stays
Python over integers. A float stands for itself as the bits of a float32, rounded after every step
(the scalar unit's float arithmetic is float32: TIK, Scalar).
"""

import math
import operator
import struct
from collections.abc import Callable, Mapping

ROUND_MODES = ("trunc", "rint", "floor", "ceil", "away")
"""The roundings of `f32toint`, by its second argument: `away` takes halves away from zero."""


def float_of(bits: int) -> float:
    """Return the float32 that has these bits."""
    value: float = struct.unpack("<f", (bits & 0xFFFFFFFF).to_bytes(4, "little"))[0]
    return value


def bits_of_float(value: float) -> int:
    """Return the bits of `value` rounded to float32; beyond its range they are infinity's."""
    try:
        raw = struct.pack("<f", value)
    except OverflowError:
        raw = struct.pack("<f", math.copysign(math.inf, value))
    return int.from_bytes(raw, "little")


def _half_to_float(bits: int, _: int) -> int:
    value: float = struct.unpack("<e", (bits & 0xFFFF).to_bytes(2, "little"))[0]
    return bits_of_float(value)


def _float_to_half(bits: int, _: int) -> int:
    value = float_of(bits)
    try:
        raw = struct.pack("<e", value)
    except OverflowError:
        raw = struct.pack("<e", math.copysign(math.inf, value))
    return int.from_bytes(raw, "little")


def _wrap(value: int, code: int) -> int:
    """Return the low bits of `value`: `code` is the width, negative for a signed type."""
    # Two's complement: the low bits, minus 2^width if the sign bit is set.
    width = abs(code)
    low = value & (1 << width) - 1
    return low - (1 << width) if code < 0 and low >> (width - 1) else low


def _to_integer(bits: int, mode: int) -> int:
    value = float_of(bits)
    if not math.isfinite(value):
        return 0 if math.isnan(value) else int(math.copysign(2**63, value))
    rounding: tuple[Callable[[float], int], ...] = (math.trunc, round, math.floor, math.ceil, _away)
    return rounding[mode](value)


def _away(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _quotient(x: float, y: float) -> float:
    if y == 0:
        undefined = x == 0 or math.isnan(x)
        return math.nan if undefined else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def _on_floats(function: Callable[[float, float], float]) -> Callable[[int, int], int]:
    return lambda a, b: bits_of_float(function(float_of(a), float_of(b)))


def _on_integers(function: Callable[[int, int], bool]) -> Callable[[int, int], int]:
    return lambda a, b: int(function(a, b))


def _relation(function: Callable[[float, float], bool]) -> Callable[[int, int], int]:
    return lambda a, b: int(function(float_of(a), float_of(b)))


_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "shl": operator.lshift,
    "shr": operator.rshift,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "wrap": _wrap,
    "countbits": lambda value, width: (value & (1 << width) - 1).bit_count(),
    "leadingzeros": lambda value, width: width - (value & (1 << width) - 1).bit_length(),
    **{name: _on_integers(f) for name, f in _RELATIONS.items()},
    **{f"f32{name}": _relation(f) for name, f in _RELATIONS.items()},
    "f32add": _on_floats(operator.add),
    "f32sub": _on_floats(operator.sub),
    "f32mul": _on_floats(operator.mul),
    "f32div": _on_floats(_quotient),
    "f32sqrt": lambda a, _: bits_of_float(math.sqrt(float_of(a)) if float_of(a) >= 0 else math.nan),
    "f32toint": _to_integer,
    "inttof32": lambda value, _: bits_of_float(float(value)),
    "f16tof32": _half_to_float,
    "f32tof16": _float_to_half,
}
"""Each operation by its name in an expression; those of one argument ignore the second."""
