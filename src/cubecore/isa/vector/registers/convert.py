"""Conversions between element types in registers (*Reg*, Cast and Truncate).

One instruction converts as many lanes as the wider type has. The narrow side has a group of
positions for each of them, of which the layout chooses one: the others become 0, or are not read.
"""

from collections.abc import Sequence

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.vector.registers.operation import (
    REGISTER_BYTES,
    Bits,
    Call,
    Form,
    RegisterOperation,
    declare,
    governed,
    lanes,
    raw,
    zeroed,
)
from cubecore.numerics import codes, nibbles, round_float, saturate, wrap
from cubecore.numerics.conversion import to_float, to_integer, to_integral

LAYOUTS = ("ZERO", "ONE", "TWO", "THREE")
SATURATIONS = ("NO_SAT", "SAT", "UNKNOWN")
ROUNDINGS = {
    "CAST_NONE": "none",
    "CAST_RINT": "rint",
    "CAST_FLOOR": "floor",
    "CAST_CEIL": "ceil",
    "CAST_ROUND": "round",
    "CAST_TRUNC": "trunc",
    "CAST_ODD": "odd",
    "CAST_HYBRID": "hybrid",
    "CAST_EVEN": "rint",
    "CAST_ZERO": "trunc",
    "CAST_UNKNOWN": "none",
}
"""The words of RoundMode in their order, and what they round to."""
_FIVE = ("CAST_RINT", "CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC")
_HYBRID = ("CAST_ROUND", "CAST_HYBRID")
_RINT = ("CAST_RINT",)
_ODD = (*_FIVE, "CAST_ODD")
_EXACT = ("CAST_NONE",)
CASTS: dict[tuple[str, str], tuple[str, ...]] = {
    **{("float16", to): _FIVE for to in ("int4", "int8", "uint8", "int16", "int32", "bfloat16")},
    ("float16", "hifloat8"): _HYBRID,
    ("float16", "float32"): _EXACT,
    **{("bfloat16", to): _FIVE for to in ("int32", "float16", "float4_e2m1fn", "float4_e1m2")},
    ("bfloat16", "float8_e8m0fnu"): _EXACT,
    ("bfloat16", "float32"): _EXACT,
    **{("float32", to): _FIVE for to in ("int16", "int32", "int64", "bfloat16")},
    ("float32", "float16"): _ODD,
    ("float32", "hifloat8"): _HYBRID,
    ("float32", "float8_e4m3fn"): _RINT,
    ("float32", "float8_e5m2"): _RINT,
    **{("int4", to): _EXACT for to in ("float16", "bfloat16", "int16")},
    **{("int8", to): _EXACT for to in ("float16", "int16", "int32")},
    **{("uint8", to): _EXACT for to in ("float16", "uint16", "uint32")},
    ("int16", "float16"): _FIVE,
    **{("int16", to): _EXACT for to in ("float32", "int32", "uint32", "uint8", "int4")},
    **{("uint16", to): _EXACT for to in ("uint8", "uint32")},
    ("int32", "float32"): _FIVE,
    **{("int32", to): _EXACT for to in ("int16", "uint16", "uint8", "int64")},
    **{("uint32", to): _EXACT for to in ("uint8", "int16", "uint16")},
    ("int64", "float32"): _FIVE,
    ("int64", "int32"): _EXACT,
    **{("hifloat8", to): _EXACT for to in ("float16", "float32")},
    **{(f"float8_{kind}", "float32"): _EXACT for kind in ("e4m3fn", "e5m2")},
    ("float8_e8m0fnu", "bfloat16"): _EXACT,
    **{(f"float4_{kind}", "bfloat16"): _EXACT for kind in ("e2m1fn", "e1m2")},
}
"""The conversions that there are, and their rounding modes."""
_EXACT_IN_FLOAT64 = 53
_LARGEST_OF_INT32 = np.float32(2147483520)
"""The largest int32 in float32, which none rounds beyond (boundary values)."""


def converted(
    values: Array, source: ElementType, target: ElementType, rounding: str, *, saturates: bool
) -> Array:
    """Return values of one type in another one.

    Float to integer: NaN gives 0, infinity the largest or smallest; what is beyond the range
    likewise if it `saturates`, else its low bits. Float to float: beyond the range infinity, or the
    largest finite value. Integers to narrower ones: the nearest, or the low bits.
    """
    numbers = codes.numbers(values, source)
    if source.kind in {"float", "scale"}:
        exact = numbers.astype(np.float64)
        if target.kind in {"int", "uint"}:
            return to_integer(exact, target, rounding, wraps=not saturates)
        if target.library == "codes":
            return codes.codes_of(exact, target, finite=saturates)
        if rounding in {"none", "rint", "hybrid"}:
            return round_float(exact, target, finite=saturates)
        return to_float(exact, target, rounding, finite=saturates)
    exact = numbers.astype(np.int64)
    if target.kind == "float":
        held = exact if source.bits > _EXACT_IN_FLOAT64 else exact.astype(np.float64)
        result = to_float(held, target, rounding, finite=False)
        return np.minimum(result, _LARGEST_OF_INT32) if source.name == "int32" else result
    return (saturate if saturates else wrap)(exact, target)


def _cast(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    layout, saturation, rounding = call.mode.split(".")
    position, saturates = LAYOUTS.index(layout), saturation == "SAT"
    source, target = call.source, call.dtype
    ratio = max(source.bits, target.bits) // min(source.bits, target.bits)
    on = np.ones(REGISTER_BYTES, bool) if mask is None else mask
    if min(source.bits, target.bits) < 8:
        return (_of_pairs(call, inputs[0], on, position, ratio),)
    values, active = lanes(inputs[0], source), governed(on, source.size_bytes)
    if target.bits > source.bits:  # of each group the one position is read
        values, active = values[..., position::ratio], active[..., position::ratio]
    with np.errstate(all="ignore"):
        result = converted(values, source, target, ROUNDINGS[rounding], saturates=saturates)
    result = np.where(active, result, np.zeros((), result.dtype))
    if target.bits >= source.bits:
        return (raw(result),)
    register = np.zeros((*result.shape, ratio), result.dtype)
    register[..., position] = result
    return (raw(register.reshape(*result.shape[:-1], -1)),)


def _of_pairs(call: Call, register: Array, on: Bits, position: int, ratio: int) -> Array:
    """Return a register whose narrow side holds two lanes of 4 bits in each byte.

    Of each group of bytes one holds two lanes; the mask's bit of the first one governs both.
    """
    _, saturation, rounding = call.mode.split(".")
    source, target = call.source, call.dtype
    saturates, rounds = saturation == "SAT", ROUNDINGS[rounding]
    if source.bits < 8:
        packed = np.ascontiguousarray(register)[..., position::ratio]
        active = np.repeat(on[..., position::ratio], 2, axis=-1)
        halves = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)
        values = converted(
            nibbles.decode(halves, source), source, target, rounds, saturates=saturates
        )
        return zeroed(np.where(active, values, np.zeros((), values.dtype)), None, target.size_bytes)
    values = lanes(register, source)
    with np.errstate(all="ignore"):
        narrow = nibbles.encode(converted(values, source, target, rounds, saturates=saturates))
    active = np.repeat(governed(on, source.size_bytes)[..., ::2], 2, axis=-1)
    narrow = np.where(active, narrow, 0).astype(np.uint8)
    packed = narrow[..., ::2] | narrow[..., 1::2] << 4
    groups = np.zeros((*packed.shape, ratio), np.uint8)
    groups[..., position] = packed
    return groups.reshape(*packed.shape[:-1], -1)


def _truncate(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    values = lanes(inputs[0], call.dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        whole = to_integral(values, ROUNDINGS[call.mode]).astype(call.dtype.numpy)
    return (zeroed(whole, mask, call.width),)


def _multiplied(
    call: Call, inputs: Sequence[Array], mask: Bits | None, scalar: Array
) -> Sequence[Array]:
    """Multiply, round, and put each result at the even or odd place of its lane."""
    values = lanes(inputs[0], call.source)
    low = np.ascontiguousarray(scalar).view(np.float32)[..., :1]
    with np.errstate(all="ignore"):
        product = (values * low).astype(np.float64)
        result = to_float(product, call.dtype, ROUNDINGS["CAST_ROUND"], finite=False)
    on = np.ones(REGISTER_BYTES, bool) if mask is None else mask
    result = np.where(governed(on, call.source.size_bytes), result, np.zeros((), result.dtype))
    register = np.zeros((*result.shape, 2), result.dtype)
    register[..., int(call.mode == "ONE")] = result
    return (raw(register.reshape(*result.shape[:-1], -1)),)


_FLOATS = ("float16", "bfloat16", "float32")
_NUMBERS = (
    *("int4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", *_FLOATS),
    *("hifloat8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"),
    *("float4_e2m1fn", "float4_e1m2"),
)
declare(
    RegisterOperation(
        name="Cast",
        form=Form.CAST,
        doc="Convert to another element type",
        compute=_cast,
        types=_NUMBERS,
        cycles=(("", 2), ("float16", 1), ("bfloat16", 1), ("float32", 1)),
        uncertain=(
            "the mask's bit is that of the element that is read",
            "hybrid rounding to hifloat8 is to the nearest",
        ),
    ),
    RegisterOperation(
        name="Truncate",
        form=Form.TRUNCATE,
        doc="Round to an integral value",
        compute=_truncate,
        types=_FLOATS,
        cycles=(("", 2),),
    ),
    RegisterOperation(
        name="MulsCast",
        form=Form.CAST,
        doc="Multiply by a scalar and round to half lanes at even or odd places",
        compute=_multiplied,
        types=("float16",),
        cycles=(("", 2),),
        uncertain=("the product is rounded to float before it is rounded to half",),
    ),
)
