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
from cubecore.numerics.conversion import integer_range, to_float, to_integer, to_integral

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
_KEEPING = frozenset(
    {("float16", "bfloat16"), ("float8_e8m0fnu", "bfloat16"), ("hifloat8", "float16")}
)
_NEVER_WRAPS = frozenset({("float16", "int16")})
_EXACT_IN_FLOAT64 = 53


def saturates_at_all(source: ElementType, target: ElementType) -> bool:
    """Return whether a conversion has both modes; the others between floats keep infinities."""
    return target.name != "float32" and (source.name, target.name) not in _KEEPING


def converted(
    values: Array, source: ElementType, target: ElementType, rounding: str, *, saturates: bool
) -> Array:
    """Return values of one type in another one.

    Float to integer: NaN gives 0, infinity the largest or smallest; what is beyond the range
    likewise if it `saturates`, else its low bits. Float to float: beyond the range infinity, or the
    largest finite value. Integers to narrower ones: the nearest, or the low bits; to wider ones
    without a sign: at least 0.
    """
    numbers = codes.numbers(values, source)
    if rounding == "hybrid" and target.name != "hifloat8":
        rounding = "rint"  # a finding says that there is no such conversion
    if source.kind not in {"float", "scale"}:
        return _of_integers(numbers.astype(np.int64), source, target, rounding, saturates=saturates)
    exact = numbers.astype(np.float64)
    if target.kind in {"int", "uint"}:
        never_wraps = (source.name, target.name) in _NEVER_WRAPS
        return to_integer(exact, target, rounding, wraps=not (saturates or never_wraps))
    finite = saturates and saturates_at_all(source, target)
    if target.kind == "scale":
        return _scales(exact, target)
    if target.bits < 8:
        return _float4(exact, target, rounding)
    if target.library == "codes":
        if rounding == "hybrid":
            exact = codes.hybrid(exact, source)
        return codes.codes_of(exact, target, finite=finite)
    if rounding in {"none", "rint"}:
        return round_float(exact, target, finite=finite)
    return to_float(exact, target, rounding, finite=finite)


def _of_integers(
    exact: Array, source: ElementType, target: ElementType, rounding: str, *, saturates: bool
) -> Array:
    if target.kind == "float":
        held = exact if source.bits > _EXACT_IN_FLOAT64 else exact.astype(np.float64)
        return to_float(held, target, rounding, finite=False)
    if target.bits < 8:
        low, high = integer_range(target)
        # The low four bits with their sign: moved to 0 and up, modulo 16, and back.
        kept = np.clip(exact, low, high) if saturates else (exact + high + 1) % (2 * high + 2) + low
        return kept.astype(target.numpy)
    always = target.bits > source.bits and target.kind == "uint"
    return (saturate if saturates or always else wrap)(exact, target)


def _scales(exact: Array, target: ElementType) -> Array:
    """Return the powers of two at or below magnitudes; of infinity and NaN NaN."""
    # frexp gives magnitudes as [0.5, 1) times a power of two: the power at or below is half of
    # that.
    _, exponents = np.frexp(np.where(np.isfinite(exact), exact, 1.0))
    biased = np.clip(exponents - 1 + _SCALE_BIAS, 0, _LARGEST_SCALE)
    biased = np.where(exact == 0, 0, biased)
    biased = np.where(np.isfinite(exact), biased, _LARGEST_SCALE + 1)
    return np.asarray(biased.astype(np.uint8).view(target.numpy))


_SCALE_BIAS, _LARGEST_SCALE = 127, 254
_FLOAT4: dict[str, tuple[float, ...]] = {
    "float4_e2m1fn": (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
    "float4_e1m2": tuple(n / 4 for n in range(8)),
}


def _float4(exact: Array, target: ElementType, rounding: str) -> Array:
    """Return numbers of 4 bits: NaN is +0, beyond the range the largest of the sign."""
    sizes = np.array(_FLOAT4[target.name])
    size = np.minimum(np.where(np.isnan(exact), 0.0, np.abs(exact)), sizes[-1])
    negative = np.signbit(exact) & ~np.isnan(exact)
    # A code without its sign is the index of its size: between neighbours the rounding mode
    # chooses, and of two in the middle the even index is the even code.
    below = np.searchsorted(sizes, size, side="right") - 1
    above = np.minimum(below + 1, sizes.size - 1)
    inside = sizes[below] != size
    middle = (sizes[below] + sizes[above]) / 2
    ties: dict[str, Array] = {
        "trunc": np.zeros_like(inside),
        "floor": negative,
        "ceil": ~negative,
        "round": size >= middle,
        "rint": (size > middle) | (size == middle) & (below % 2 == 1),
    }
    up = ties.get(rounding, ties["rint"])
    code = np.where(inside & up, above, below).astype(np.uint8) | negative.astype(np.uint8) << 3
    return np.asarray(code.view(target.numpy))


def _cast(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    words = call.mode.split(".")
    position, rounding, saturates = LAYOUTS.index(words[0]), words[2], _saturates(call)
    source, target = call.source, call.dtype
    ratio = max(source.bits, target.bits) // min(source.bits, target.bits)
    on = np.ones(REGISTER_BYTES, bool) if mask is None else mask
    if min(source.bits, target.bits) < 8:
        return (_of_pairs(call, inputs[0], on, position, ratio),)
    # Lanes of the wider type fill the register. Those of the narrower one stand at one of `ratio`
    # places in each of them, `position`; of a result the other places are 0.
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


def _saturates(call: Call) -> bool:
    """Return whether a conversion saturates, as CTRL or the instruction says."""
    everywhere = call.global_saturation
    return call.mode.split(".")[1] == "SAT" if everywhere is None else everywhere


def _of_pairs(call: Call, register: Array, on: Bits, position: int, ratio: int) -> Array:
    """Return a register whose narrow side holds two lanes of 4 bits in each byte.

    Of each group of bytes one holds two lanes; the mask's bit of the first one governs both.
    """
    source, target = call.source, call.dtype
    saturates, rounds = _saturates(call), ROUNDINGS[call.mode.split(".")[2]]
    if source.bits < 8:
        # Two lanes in a byte, the first in its low half.
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
    with np.errstate(all="ignore"):
        values = lanes(inputs[0], call.dtype).astype(np.float64)
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
        result = to_float(product, call.dtype, ROUNDINGS["CAST_ROUND"], finite=call.finite)
    on = np.ones(REGISTER_BYTES, bool) if mask is None else mask
    result = np.where(governed(on, call.source.size_bytes), result, np.zeros((), result.dtype))
    register = np.zeros((*result.shape, 2), result.dtype)
    register[..., int(call.mode == "ONE")] = result
    return (raw(register.reshape(*result.shape[:-1], -1)),)


_FLOATS = ("float16", "bfloat16", "float32")
_LATENCY = (("", 8),)
declare(
    RegisterOperation(
        name="Cast",
        form=Form.CAST,
        doc="Convert to another element type",
        compute=_cast,
        types=(),
        pairs=tuple((*types, "") for types in CASTS),
        cycles=(("", 2), ("float16", 1), ("bfloat16", 1), ("float32", 1)),
        latency=_LATENCY,
        uncertain=(
            "the mask's bit is that of the element that is read",
            "half results to hifloat8 are normalised before hybrid rounding looks at them",
            "hybrid rounding keeps numbers that hifloat8 holds, where the page's rule for float32 "
            "takes them a step away from 0",
            "to float8_e8m0fnu the exponent is kept; infinity gives NaN, as the page of boundary "
            "values has it, where the page of Cast has the largest scale",
            "half to int16 saturates in both modes, as the page of boundary values has it",
            "CTRL[50] (NaN stays in a saturating conversion to 8 bits) is not looked at",
            "in a kernel that leaves CTRL[60] alone the instruction says whether it saturates",
        ),
    ),
    RegisterOperation(
        name="Truncate",
        form=Form.TRUNCATE,
        doc="Round to an integral value",
        compute=_truncate,
        types=_FLOATS,
        cycles=(("", 2),),
        latency=_LATENCY,
    ),
    RegisterOperation(
        name="MulsCast",
        form=Form.CAST,
        doc="Multiply by a scalar and round to half lanes at even or odd places",
        compute=_multiplied,
        types=(),
        pairs=(("float32", "float16", ""),),
        cycles=(("", 2),),
        latency=_LATENCY,
        uncertain=("the product is rounded to float before it is rounded to half",),
    ),
)
