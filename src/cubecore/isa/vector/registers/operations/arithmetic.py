"""Arithmetic on registers, lane by lane; lanes that the mask does not let through become 0."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.vector.common import lane_functions
from cubecore.isa.vector.common.repeated import wide
from cubecore.isa.vector.registers.operation import (
    MERGING,
    Bits,
    Call,
    Compute,
    Form,
    RegisterOperation,
    declare,
    governed,
    lanes,
    raw,
    zeroed,
)
from cubecore.numerics import round_float, saturate, wrap

LONG = ("int64", "uint64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", *LONG)
WIDER = ("int16", "uint16", "int32", "uint32", *LONG)
FLOATS = ("float16", "bfloat16", "float32")
HALF_AND_FLOAT = ("float16", "float32")
ALL = (*INTEGERS, *FLOATS)
_SLOW_INTEGERS = tuple((name, 2) for name in INTEGERS)
_SPECIAL = (("float16", 8), ("float32", 4))
_PRECISE = ("rounded correctly, where the page promises one unit in the last place",)
_FLUSHED = (
    *_PRECISE,
    "a subnormal operand counts as 0, and a result that rounds to a subnormal number is 0",
)
_BY_CTRL = "half results may be infinite unless a kernel sets CTRL[60] and leaves CTRL[48] clear"
_SOFTWARE = ("the cycles of 64-bit types, which take several instructions, are not published",)
KEEPS_SUBNORMALS = "SUBNORMAL"
"""The mode of an algorithm that does not flush subnormal numbers (FTZ_FALSE)."""


def widened(values: Array, element: ElementType) -> Array:
    """Return values in a type in which a sum or a product loses nothing; 64 bits wrap."""
    return values if element.bits > 32 else wide(values, element)


def settled(exact: Array, call: Call, *, clamps: bool = False) -> Array:
    """Return results in a call's type: floats are rounded once, halves clamped where CTRL says so.

    Integers wrap, or where an instruction `clamps` saturate under CTRL[53]; 64 bits always wrap.
    """
    element = call.dtype
    if element.kind == "float":
        return round_float(exact, element, finite=call.finite)
    if element.bits > 32:
        return exact.astype(element.numpy)
    if not (clamps and call.integers_saturate):
        return wrap(exact, element)
    if element.name == "uint32":  # a product beyond int64 has become lower than any difference
        exact = np.where(exact < -(1 << 32), 1 << 32, exact)
    return saturate(exact, element)


def scalars(element: ElementType, scalar: Array) -> Array:
    """Return scalars of a type from their bits, with a last axis of one lane."""
    low = np.ascontiguousarray(scalar).view(np.uint8).reshape(*scalar.shape, 8)
    return np.ascontiguousarray(low[..., : element.size_bytes]).view(element.numpy)


def flushed(values: Array, element: ElementType) -> Array:
    """Return floats with zeros of their signs for subnormal numbers."""
    smallest = float(2.0**-14 if element.name == "float16" else 2.0**-126)
    tiny = np.abs(values) < smallest
    if not tiny.any():
        return values
    return np.where(tiny, np.copysign(np.zeros((), values.dtype), values), values)


def lane_by_lane(
    function: Callable[..., Any], *, clamps: bool = False, flushes: bool = False
) -> Compute:
    """Return a meaning: a function of wide values, whose result is settled once.

    With a scalar, that is the second argument. A merging instruction has the old dst last. One that
    `clamps` saturates integers under CTRL[53]; one that `flushes` takes subnormal numbers as 0.
    """

    def compute(
        call: Call, inputs: Sequence[Array], mask: Bits | None, scalar: Array
    ) -> Sequence[Array]:
        values = [lanes(each, call.dtype) for each in inputs]
        # The exact result of wide operands is settled (rounded or wrapped) once, and lanes that the
        # mask keeps out become 0, or keep the old dst.
        old = values.pop() if call.mode == MERGING else None
        operands = [widened(each, call.dtype) for each in values]
        form = call.operation.form
        if form is Form.SCALAR or form is Form.AXPY:
            operands.insert(1, widened(scalars(call.dtype, scalar), call.dtype))
        flush = flushes and call.dtype.kind == "float" and call.mode != KEEPS_SUBNORMALS
        with np.errstate(all="ignore"):
            operands = [flushed(each, call.dtype) if flush else each for each in operands]
            results = settled(function(*operands), call, clamps=clamps)
            results = flushed(results, call.dtype) if flush else results
        return (zeroed(results, mask, call.width, old),)

    return compute


# --- functions of wide values


def fused(x: Array, y: Array, more: Array) -> Array:
    """Return x * y + more, which rounding to the type makes correct; integers are exact.

    A product of two floats is exact in float64; a sum that is not gets an odd last bit, so that
    rounding it again does no harm.
    """
    if x.dtype.kind != "f":
        return x * y + more
    product, addend = x.astype(np.float64) * y, more.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    inexact = np.isfinite(total) & (error != 0) & (total.view(np.int64) & 1 == 0)
    return np.where(inexact, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)


def _negated(x: Array) -> Array:
    return -x


def _difference(x: Array, y: Array) -> Array:
    """Return |x - y|: the difference is rounded, and then its sign is left out."""
    return np.asarray(np.abs(x - y))


# --- more than lane by lane

_UINT32 = element_type("uint32")


def _sum_and_carry(total: Array, mask: Bits | None) -> tuple[Array, Array]:
    """Return the carries of sums in 64 bits as a mask, and their low words."""
    carry = np.zeros((*total.shape, 4), bool)
    carry[..., 0] = total >> 32 & 1 != 0
    bits = carry.reshape(*total.shape[:-1], -1)
    bits = bits if mask is None else bits & mask
    return bits, zeroed((total & 0xFFFFFFFF).astype(np.uint32), mask, 4)


def _adds(*, subtracts: bool) -> Compute:
    def compute(
        call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array
    ) -> Sequence[Array]:
        x, y = (lanes(each, _UINT32).astype(np.int64) for each in inputs[:2])
        carried = call.operation.form is Form.CARRIED
        more = governed(inputs[2], 4).astype(np.int64) if carried else int(subtracts)
        return _sum_and_carry(x + ((y ^ 0xFFFFFFFF) if subtracts else y) + more, mask)

    return compute


def _long_product(
    call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array
) -> Sequence[Array]:
    x, y = (lanes(each, call.dtype) for each in inputs)
    longer = np.int64 if call.dtype.kind == "int" else np.uint64
    product = x.astype(longer) * y.astype(longer)
    low, high = (part.astype(np.uint32) for part in (product & 0xFFFFFFFF, product >> 32))
    return zeroed(low, mask, 4), zeroed(high, mask, 4)


def _exponential_of_difference(
    call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array
) -> Sequence[Array]:
    parts = [lanes(each, call.source) for each in inputs]
    on = None if mask is None else governed(mask, call.source.size_bytes)
    if call.source.size_bytes < call.dtype.size_bytes:  # one lane of each two, and its own bit
        read = slice(int(call.mode == "ONE"), None, 2)
        parts = [each[..., read] for each in parts]
        on = None if on is None else on[..., read]
    with np.errstate(all="ignore"):
        x, y = (each.astype(np.float32) for each in parts)
        result = settled(np.exp((x - y).astype(np.float64)), call)
    return (raw(result if on is None else np.where(on, result, np.zeros((), result.dtype))),)


def _lane_zero(
    call: Call, inputs: Sequence[Array], mask: Bits | None, scalar: Array
) -> Sequence[Array]:
    """Fill with the scalar, or with lane 0 of a register."""
    old = lanes(inputs[-1], call.dtype) if call.mode == MERGING else None
    if call.operation.form is Form.FILL:
        value = scalars(call.dtype, scalar)
    else:
        value = lanes(inputs[0], call.dtype)[..., :1]
    count = 256 // call.width
    filled = np.broadcast_to(value, (*value.shape[:-1], count))
    return (zeroed(filled, mask, call.width, old),)


def _moved(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    if mask is None:
        return (inputs[0],)
    new, old = (lanes(each, call.dtype) for each in inputs)
    return (raw(np.where(governed(mask, call.width), new, old)),)


def _row(
    name: str,
    form: Form,
    doc: str,
    function: Callable[..., Any],
    types: tuple[str, ...],
    c_api: str = "",
    **more: Any,
) -> RegisterOperation:
    return RegisterOperation(name, form, doc, lane_by_lane(function), types, c_api=c_api, **more)


def _sum(
    name: str,
    form: Form,
    doc: str,
    function: Callable[..., Any],
    types: tuple[str, ...],
    c_api: str,
    latency: int = 7,
) -> RegisterOperation:
    """Return an instruction whose integers CTRL[53] saturates."""
    compute = lane_by_lane(function, clamps=True)
    return RegisterOperation(
        *(name, form, doc, compute, types),
        c_api=c_api,
        cycles=_SLOW_INTEGERS,
        latency=(("", latency),),
        uncertain=(_BY_CTRL, "CTRL[53] saturates integers of 8 to 32 bits", *_SOFTWARE),
    )


def _special(
    name: str,
    doc: str,
    function: Callable[..., Any],
    c_api: str = "",
    older: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
) -> RegisterOperation:
    """Return an instruction of the unit that flushes subnormal numbers."""
    return RegisterOperation(
        *(name, Form.UNARY, doc, lane_by_lane(function, flushes=True), HALF_AND_FLOAT),
        c_api=c_api,
        older=older,
        cycles=_SPECIAL,
        latency=(("", 16), ("float16", 21)),
        uncertain=(*_FLUSHED, _BY_CTRL, *more),
    )


def _logarithm(base: Callable[..., Any]) -> Callable[[Array], Array]:
    def function(x: Array) -> Array:
        return np.asarray(base(x.astype(np.float64)))

    return function


_SIGNED = ("int8", "int16", "int32", "int64", *HALF_AND_FLOAT)
_CLAMPED = (_BY_CTRL,)
_LARGER, _SMALLER = lane_functions.larger, lane_functions.smaller
BYTES = ("hifloat8", "float8_e8m0fnu", "float8_e5m2", "float8_e4m3fn")
_CARRIES = ("int32", "uint32")
_TWO_CYCLES = (("", 2),)
_SHORT = (("", 5),)
declare(
    _sum("Add", Form.BINARY, "Add", np.add, ALL, "asc_add"),
    _sum("Sub", Form.BINARY, "Subtract", np.subtract, ALL, "asc_sub"),
    _sum("Mul", Form.BINARY, "Multiply", np.multiply, (*WIDER, *FLOATS), "asc_mul", 8),
    _sum("Adds", Form.SCALAR, "Add the scalar", np.add, ALL, "asc_add_scalar"),
    _sum(
        *("Muls", Form.SCALAR, "Multiply by the scalar", np.multiply, (*WIDER, *HALF_AND_FLOAT)),
        *("asc_mul_scalar", 8),
    ),
    RegisterOperation(
        *("Div", Form.BINARY, "Divide", lane_by_lane(lane_functions.quotient, flushes=True)),
        (*WIDER, *HALF_AND_FLOAT),
        c_api="asc_div",
        cycles=_SPECIAL,
        latency=(("", 17), ("float16", 22)),
        uncertain=(*_FLUSHED, _BY_CTRL, "a quotient of integers by 0 is all ones", *_SOFTWARE),
    ),
    *(
        _row(name, form, doc, function, ALL, c_api, latency=(("", 6),), uncertain=_CLAMPED)
        for name, form, doc, function, c_api in (
            ("Max", Form.BINARY, "Take the larger", _LARGER, "asc_max"),
            ("Min", Form.BINARY, "Take the smaller", _SMALLER, "asc_min"),
            ("Maxs", Form.SCALAR, "Take the larger, or the scalar", _LARGER, "asc_max_scalar"),
            ("Mins", Form.SCALAR, "Take the smaller, or the scalar", _SMALLER, "asc_min_scalar"),
        )
    ),
    *(
        _row(name, form, doc, lane_functions.leaky_relu, HALF_AND_FLOAT, c_api, uncertain=_CLAMPED)
        for name, form, doc, c_api in (
            ("Prelu", Form.BINARY, "Multiply what has a sign", "asc_prelu"),
            ("LeakyRelu", Form.SCALAR, "Multiply what has a sign by the scalar", "asc_leakyrelu"),
        )
    ),
    _row(
        *("AbsSub", Form.BINARY, "Take the absolute difference", _difference),
        (*HALF_AND_FLOAT, "int64"),
        "asc_abs_sub",
        older=("FusedAbsSub",),
        uncertain=_CLAMPED,
    ),
    *(
        _row(
            *(name, Form.UNARY, doc, function, _SIGNED, c_api),
            cycles=_SLOW_INTEGERS,
            latency=_SHORT,
            uncertain=more,
        )
        for more in ((*_CLAMPED, "the lowest integer stays, whatever CTRL[53] says"),)
        for name, doc, function, c_api in (
            ("Abs", "Take the absolute value", np.abs, "asc_abs"),
            ("Neg", "Negate", _negated, "asc_neg"),
        )
    ),
    _row(
        *("Relu", Form.UNARY, "Replace what is negative by 0", lane_functions.relu),
        ("float16", "int32", "float32", "int64"),
        "asc_relu",
        uncertain=_CLAMPED,
    ),
    _special("Exp", "Raise e to src", lane_functions.exponential, "asc_exp"),
    _special("Ln", "Take the natural logarithm", lane_functions.logarithm, "asc_ln", ("Log",)),
    _special("Log2", "Take the logarithm to base 2", _logarithm(np.log2)),
    _special("Log10", "Take the logarithm to base 10", _logarithm(np.log10)),
    _special("Sqrt", "Take the square root", _logarithm(np.sqrt), "asc_sqrt"),
    _row(
        *("MulAddDst", Form.TERNARY, "Multiply, and add dst", fused, (*WIDER, *FLOATS)),
        older=("Mula",),
        uncertain=_CLAMPED,
    ),
    _row(
        *("MulDstAdd", Form.TERNARY, "Multiply dst, and add"),
        lambda x, y, dst: fused(dst, x, y),
        FLOATS,
        "asc_madd",
        older=("FusedMulDstAdd",),
        uncertain=(*_CLAMPED, "halves give a half, where the page's table of types has a float"),
    ),
    _row(
        *("Axpy", Form.AXPY, "Multiply by the scalar, and add dst", fused),
        (*HALF_AND_FLOAT, *LONG),
        "asc_axpy",
        uncertain=_CLAMPED,
    ),
    *(
        RegisterOperation(
            *(name, form, doc, compute, _CARRIES, c_api),
            cycles=_TWO_CYCLES,
            cpp=name.removesuffix("Carry"),
        )
        for name, form, doc, compute, c_api in (
            (
                *("AddCarry", Form.CARRY, "Add, with the carry as a mask"),
                *(_adds(subtracts=False), ""),
            ),
            (
                *("SubCarry", Form.CARRY, "Subtract; the mask says no borrow"),
                *(_adds(subtracts=True), ""),
            ),
            (
                *("AddC", Form.CARRIED, "Add two numbers and a carry"),
                *(_adds(subtracts=False), "asc_addc"),
            ),
            (
                *("SubC", Form.CARRIED, "Subtract with a borrow"),
                *(_adds(subtracts=True), "asc_subc"),
            ),
            ("Mull", Form.WIDE, "Multiply; low words, then high words", _long_product, "asc_mull"),
        )
    ),
    RegisterOperation(
        *("ExpSub", Form.CAST, "Raise e to the difference", _exponential_of_difference),
        (),
        pairs=(("float16", "float32", ""), ("float32", "float32", "")),
        older=("FusedExpSub",),
        cycles=(("", 4),),
        latency=(("", 16),),
        uncertain=_PRECISE,
    ),
    RegisterOperation(
        *("Duplicate", Form.FILL, "Fill with the scalar", _lane_zero, (*ALL, *BYTES)),
        c_api="asc_duplicate_scalar",
        latency=_SHORT,
    ),
    RegisterOperation(
        *("DuplicateLane", Form.UNARY, "Fill with lane 0", _lane_zero, (*ALL, *BYTES)),
        c_api="asc_duplicate",
        latency=_SHORT,
        by_lane=False,
        cpp="Duplicate",
    ),
    RegisterOperation(
        *("Move", Form.MOVE, "Copy the active lanes, and keep the others", _moved, ALL),
        c_api="asc_copy",
        older=("Copy",),
    ),
)
