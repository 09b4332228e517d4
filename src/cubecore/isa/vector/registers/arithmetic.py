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
from cubecore.numerics import round_float, wrap

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
WIDER = ("int16", "uint16", "int32", "uint32")
FLOATS = ("float16", "bfloat16", "float32")
HALF_AND_FLOAT = ("float16", "float32")
ALL = (*INTEGERS, *FLOATS)
_SLOW_INTEGERS = tuple((name, 2) for name in INTEGERS)
_SPECIAL = (("float16", 8), ("float32", 4))
_PRECISE = ("rounded correctly, where the page promises one unit in the last place",)
_FLUSHED = (*_PRECISE, "subnormal numbers are kept, which the page says are taken as 0")


def settled(exact: Array, element: ElementType) -> Array:
    """Return results in a type: integers wrap, floats are rounded once, infinities appear.

    That floats of 16 bits do not saturate is uncertain: the page of boundary values says so.
    """
    if element.kind == "float":
        return round_float(exact, element, finite=False)
    return wrap(exact, element)


def scalars(element: ElementType, scalar: Array) -> Array:
    """Return scalars of a type from their bits, with a last axis of one lane."""
    low = np.ascontiguousarray(scalar).view(np.uint8).reshape(*scalar.shape, 8)
    return np.ascontiguousarray(low[..., : element.size_bytes]).view(element.numpy)


def lane_by_lane(function: Callable[..., Any]) -> Compute:
    """Return a meaning: a function of wide values, whose result is settled once.

    With a scalar, that is the second argument. A merging instruction has the old dst last.
    """

    def compute(
        call: Call, inputs: Sequence[Array], mask: Bits | None, scalar: Array
    ) -> Sequence[Array]:
        values = [lanes(each, call.dtype) for each in inputs]
        old = values.pop() if call.mode == MERGING else None
        operands = [wide(each, call.dtype) for each in values]
        if call.operation.form in {Form.SCALAR, Form.AXPY}:
            operands.insert(1, wide(scalars(call.dtype, scalar), call.dtype))
        with np.errstate(all="ignore"):
            exact = function(*operands)
        return (zeroed(settled(exact, call.dtype), mask, call.width, old),)

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


def divided(x: Array, y: Array) -> Array:
    """Return x / y; of integers rounded toward zero, and of a divisor 0 all ones."""
    if x.dtype.kind == "f":
        return x / y
    safe = np.where(y == 0, 1, y)
    quotient = np.sign(x) * np.sign(safe) * (np.abs(x) // np.abs(safe))
    return np.where(y == 0, -1, quotient)


def _prelu(x: Array, slope: Array) -> Array:
    return np.where(x > 0, x, x * slope)


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
    if call.source.size_bytes < call.dtype.size_bytes:
        parts = [each[..., int(call.mode == "ONE") :: 2] for each in parts]
    x, y = (each.astype(np.float32) for each in parts)
    with np.errstate(all="ignore"):
        return (zeroed(settled(np.exp((x - y).astype(np.float64)), call.dtype), mask, call.width),)


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


_SIGNED = ("int8", "int16", "int32", *HALF_AND_FLOAT)
_LARGER, _SMALLER = lane_functions.larger, lane_functions.smaller
declare(
    _row("Add", Form.BINARY, "Add", np.add, ALL, "asc_add", cycles=_SLOW_INTEGERS),
    _row("Sub", Form.BINARY, "Subtract", np.subtract, ALL, "asc_sub", cycles=_SLOW_INTEGERS),
    _row(
        *("Mul", Form.BINARY, "Multiply", np.multiply, (*WIDER, *FLOATS), "asc_mul"),
        cycles=_SLOW_INTEGERS,
    ),
    _row(
        *("Div", Form.BINARY, "Divide", divided, (*WIDER, *HALF_AND_FLOAT), "asc_div"),
        cycles=_SPECIAL,
        uncertain=(*_FLUSHED, "a quotient of integers by 0 is all ones"),
    ),
    _row("Max", Form.BINARY, "Take the larger", _LARGER, ALL, "asc_max"),
    _row("Min", Form.BINARY, "Take the smaller", _SMALLER, ALL, "asc_min"),
    _row(
        *("Prelu", Form.BINARY, "Multiply what is not above 0", _prelu, HALF_AND_FLOAT),
        "asc_prelu",
    ),
    _row(
        *("AbsSub", Form.BINARY, "Take the absolute difference", _difference, HALF_AND_FLOAT),
        "asc_abs_sub",
        older=("FusedAbsSub",),
    ),
    _row(
        "Adds", Form.SCALAR, "Add the scalar", np.add, ALL, "asc_add_scalar", cycles=_SLOW_INTEGERS
    ),
    _row(
        *("Muls", Form.SCALAR, "Multiply by the scalar", np.multiply, (*WIDER, *FLOATS)),
        "asc_mul_scalar",
        cycles=_SLOW_INTEGERS,
    ),
    _row(
        "Maxs", Form.SCALAR, "Take the larger of src and the scalar", _LARGER, ALL, "asc_max_scalar"
    ),
    _row(
        "Mins",
        Form.SCALAR,
        "Take the smaller of src and the scalar",
        _SMALLER,
        ALL,
        "asc_min_scalar",
    ),
    _row(
        *("LeakyRelu", Form.SCALAR, "Multiply what is not above 0 by the scalar", _prelu),
        HALF_AND_FLOAT,
        "asc_leakyrelu",
    ),
    _row(
        "Abs",
        Form.UNARY,
        "Take the absolute value",
        np.abs,
        _SIGNED,
        "asc_abs",
        cycles=_SLOW_INTEGERS,
    ),
    _row("Neg", Form.UNARY, "Negate", _negated, _SIGNED, "asc_neg", cycles=_SLOW_INTEGERS),
    _row(
        *("Relu", Form.UNARY, "Replace what is negative by 0", lane_functions.relu),
        ("float16", "int32", "float32"),
        "asc_relu",
    ),
    _row(
        *(
            "Exp",
            Form.UNARY,
            "Raise e to src",
            lane_functions.exponential,
            HALF_AND_FLOAT,
            "asc_exp",
        ),
        cycles=_SPECIAL,
        uncertain=_FLUSHED,
    ),
    _row(
        *("Ln", Form.UNARY, "Take the natural logarithm", lane_functions.logarithm, HALF_AND_FLOAT),
        "asc_ln",
        older=("Log",),
        cycles=_SPECIAL,
        uncertain=_FLUSHED,
    ),
    _row(
        *("Log2", Form.UNARY, "Take the logarithm to base 2"),
        lambda x: np.log2(x.astype(np.float64)),
        HALF_AND_FLOAT,
        cycles=_SPECIAL,
        uncertain=_FLUSHED,
    ),
    _row(
        *("Log10", Form.UNARY, "Take the logarithm to base 10"),
        lambda x: np.log10(x.astype(np.float64)),
        HALF_AND_FLOAT,
        cycles=_SPECIAL,
        uncertain=_FLUSHED,
    ),
    _row(
        *("Sqrt", Form.UNARY, "Take the square root", np.sqrt, HALF_AND_FLOAT, "asc_sqrt"),
        cycles=_SPECIAL,
        uncertain=_FLUSHED,
    ),
    _row(
        *("MulAddDst", Form.TERNARY, "Multiply, and add dst", fused, (*WIDER, *FLOATS)),
        older=("Mula",),
    ),
    _row(
        *("MulDstAdd", Form.TERNARY, "Multiply dst, and add"),
        lambda x, y, dst: fused(dst, x, y),
        FLOATS,
        "asc_madd",
        older=("FusedMulDstAdd",),
    ),
    _row(
        *("Axpy", Form.AXPY, "Multiply by the scalar, and add dst", fused, HALF_AND_FLOAT),
        "asc_axpy",
    ),
    RegisterOperation(
        *("AddCarry", Form.CARRY, "Add, with the carry as a mask", _adds(subtracts=False)),
        ("int32", "uint32"),
        cycles=(("", 2),),
        by_lane=True,
    ),
    RegisterOperation(
        *("SubCarry", Form.CARRY, "Subtract; the mask says no borrow", _adds(subtracts=True)),
        ("int32", "uint32"),
        cycles=(("", 2),),
    ),
    RegisterOperation(
        *("AddC", Form.CARRIED, "Add two numbers and a carry", _adds(subtracts=False)),
        ("int32", "uint32"),
        c_api="asc_addc",
        cycles=(("", 2),),
    ),
    RegisterOperation(
        *("SubC", Form.CARRIED, "Subtract with a borrow", _adds(subtracts=True)),
        ("int32", "uint32"),
        c_api="asc_subc",
        cycles=(("", 2),),
    ),
    RegisterOperation(
        *("Mull", Form.WIDE, "Multiply; low words, then high words", _long_product),
        ("int32", "uint32"),
        c_api="asc_mull",
        cycles=(("", 2),),
    ),
    RegisterOperation(
        *("ExpSub", Form.CAST, "Raise e to the difference", _exponential_of_difference),
        ("float32",),
        older=("FusedExpSub",),
        cycles=(("", 4),),
        uncertain=_PRECISE,
    ),
    RegisterOperation(
        *("Duplicate", Form.FILL, "Fill with the scalar", _lane_zero, ALL),
        c_api="asc_duplicate_scalar",
    ),
    RegisterOperation(
        *("DuplicateLane", Form.UNARY, "Fill with lane 0", _lane_zero, ALL),
        c_api="asc_duplicate",
        by_lane=False,
    ),
    RegisterOperation(
        *("Move", Form.MOVE, "Copy the active lanes, and keep the others", _moved, ALL),
        c_api="asc_copy",
        older=("Copy",),
    ),
)
