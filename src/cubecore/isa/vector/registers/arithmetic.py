"""Arithmetic on registers, lane by lane; lanes that the mask does not let through become 0."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.vector.common import lane_functions
from cubecore.isa.vector.common.repeated import wide
from cubecore.isa.vector.registers.operation import (
    Bits,
    Call,
    Compute,
    Form,
    RegisterOperation,
    declare,
    lanes,
    zeroed,
)
from cubecore.numerics import round_float, wrap

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
FLOATS = ("float16", "bfloat16", "float32")
_ALL = (*INTEGERS, *FLOATS)
_SLOW_INTEGERS = tuple((name, 2) for name in INTEGERS)
_SPECIAL = (("float16", 8), ("float32", 4))


def settled(exact: Array, element: ElementType) -> Array:
    """Return results in a type: integers wrap, floats are rounded once, infinities appear.

    That floats of 16 bits saturate unless CTRL[48] is uncertain on 3510 (boundary values page).
    """
    if element.kind == "float":
        return round_float(exact, element, finite=False)
    return wrap(exact, element)


def scalars(call: Call, scalar: Array) -> Array:
    """Return scalars of the type from their bits, with a last axis of one lane."""
    size = call.dtype.size_bytes
    low = np.ascontiguousarray(scalar).view(np.uint8).reshape(*scalar.shape, 8)[..., :size]
    return np.ascontiguousarray(low).view(call.dtype.numpy)


def lane_by_lane(function: Callable[..., Any]) -> Compute:
    """Return a meaning: a function of wide values, whose result is settled once."""

    def compute(
        call: Call, inputs: Sequence[Array], mask: Bits | None, scalar: Array
    ) -> Sequence[Array]:
        operands = [wide(lanes(each, call.dtype), call.dtype) for each in inputs]
        if call.operation.form in {Form.SCALAR, Form.AXPY}:
            operands.insert(1, wide(scalars(call, scalar), call.dtype))
        with np.errstate(all="ignore"):
            exact = function(*operands)
        return (zeroed(settled(exact, call.dtype), mask, call.width),)

    return compute


def _operation(
    name: str,
    form: Form,
    doc: str,
    function: Callable[..., Any],
    types: tuple[str, ...],
    **more: Any,
) -> RegisterOperation:
    return RegisterOperation(name, form, doc, lane_by_lane(function), types, **more)


declare(
    _operation(
        "Add",
        Form.BINARY,
        "Add",
        np.add,
        _ALL,
        c_api="asc_add",
        cycles=_SLOW_INTEGERS,
    ),
    _operation(
        "Sub", Form.BINARY, "Subtract", np.subtract, _ALL, c_api="asc_sub", cycles=_SLOW_INTEGERS
    ),
    _operation(
        "Mul",
        Form.BINARY,
        "Multiply",
        np.multiply,
        ("int16", "uint16", "int32", "uint32", *FLOATS),
        c_api="asc_mul",
        cycles=_SLOW_INTEGERS,
    ),
    _operation("Max", Form.BINARY, "Take the larger", lane_functions.larger, _ALL, c_api="asc_max"),
    _operation(
        "Min", Form.BINARY, "Take the smaller", lane_functions.smaller, _ALL, c_api="asc_min"
    ),
    _operation(
        "Adds",
        Form.SCALAR,
        "Add the scalar",
        np.add,
        _ALL,
        c_api="asc_add_scalar",
        cycles=_SLOW_INTEGERS,
    ),
    _operation(
        "Muls",
        Form.SCALAR,
        "Multiply by the scalar",
        np.multiply,
        ("int16", "uint16", "int32", "uint32", "float16", "float32"),
        c_api="asc_mul_scalar",
        cycles=_SLOW_INTEGERS,
    ),
    _operation(
        "Exp",
        Form.UNARY,
        "Raise e to src",
        lane_functions.exponential,
        ("float16", "float32"),
        c_api="asc_exp",
        cycles=_SPECIAL,
        uncertain=("rounded correctly, where the page promises one unit in the last place",),
    ),
    _operation(
        "Abs",
        Form.UNARY,
        "Take the absolute value",
        np.abs,
        ("int8", "int16", "int32", "float16", "float32"),
        c_api="asc_abs",
        cycles=_SLOW_INTEGERS,
    ),
)
