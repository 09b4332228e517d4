"""Logic, shifts, comparisons and selections on registers and on masks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type
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
from cubecore.isa.vector.registers.operations.arithmetic import (
    ALL,
    HALF_AND_FLOAT,
    INTEGERS,
    scalars,
)

COMPARISONS: dict[str, Callable[[Array, Array], Any]] = {
    "LT": np.less,
    "GT": np.greater,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GE": np.greater_equal,
    "NE": np.not_equal,
}
"""The modes of comparisons, in the order of CMPMODE."""


def _bits(register: Array, width: int) -> Array:
    """Return lanes as unsigned integers of their width."""
    return np.ascontiguousarray(register).view(f"u{width}")


def _bitwise(function: Callable[..., Any]) -> Compute:
    def compute(
        call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array
    ) -> Sequence[Array]:
        values = [_bits(each, call.width) for each in inputs]
        old = values.pop() if call.mode == MERGING else None
        return (zeroed(function(*values), mask, call.width, old),)

    return compute


def _of_masks(function: Callable[..., Any]) -> Compute:
    def compute(_: Call, inputs: Sequence[Array], mask: Bits | None, _s: Array) -> Sequence[Array]:
        result = function(*(each.astype(bool) for each in inputs))
        return (result if mask is None else result & mask,)

    return compute


def _shifted(values: Array, amount: Array, element: ElementType, *, left: bool) -> Array:
    """Return values shifted; the sign of a signed type that is shifted left stays.

    A shift by the width of a lane or more gives 0; of a signed type to the right, its sign.
    """
    bits = element.bits
    # In 64 bits, as shifts by a lane's width or more are not defined in NumPy. 63 is the most
    # there; what a larger amount leaves is chosen at the end.
    held = values.astype(np.int64) if element.kind == "int" else values.astype(np.uint64)
    amount = np.clip(amount.astype(np.int64), 0, bits)
    most = np.minimum(amount, 63).astype(held.dtype)
    zero = np.zeros((), values.dtype)
    if not left:
        moved = (held >> most).astype(values.dtype)
        return moved if element.kind == "int" else np.where(amount >= bits, zero, moved)
    moved = (held << most).astype(values.dtype)
    if element.kind == "int":
        sign = np.array(1 << (bits - 1), np.uint64).astype(f"u{bits // 8}")
        codes = moved.view(sign.dtype) & ~sign | values.view(sign.dtype) & sign
        moved = np.asarray(codes.view(values.dtype))
    return np.where(amount >= bits, zero, moved)


def _shift(*, left: bool) -> Compute:
    def compute(
        call: Call, inputs: Sequence[Array], mask: Bits | None, scalar: Array
    ) -> Sequence[Array]:
        values = np.ascontiguousarray(lanes(inputs[0], call.dtype))
        if call.operation.form is Form.SHIFT_SCALAR:
            amount = scalars(element_type("int16"), scalar)
        else:
            amount = lanes(inputs[1], element_type(f"int{call.dtype.bits}"))
        return (zeroed(_shifted(values, amount, call.dtype, left=left), mask, call.width),)

    return compute


def compared(call: Call, x: Array, y: Array, mask: Bits | None) -> Bits:
    """Return a comparison's mask: the lowest bit of each lane says what holds."""
    with np.errstate(invalid="ignore"):
        holds = COMPARISONS[call.mode](x, y)
    # A mask has a bit for each byte of a register, whatever the lanes' width.
    bits = np.zeros((*holds.shape, call.width), bool)
    bits[..., 0] = holds
    flat = bits.reshape(*holds.shape[:-1], -1)
    return flat if mask is None else flat & mask


def _compare(
    call: Call, inputs: Sequence[Array], mask: Bits | None, scalar: Array
) -> Sequence[Array]:
    x = lanes(inputs[0], call.dtype)
    if call.operation.form is Form.COMPARE_SCALAR:
        y = scalars(call.dtype, scalar)
    else:
        y = lanes(inputs[1], call.dtype)
    return (compared(call, x, y, mask),)


def _select(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    if mask is None:
        return (inputs[0],)
    x, y = (_bits(each, call.width) for each in inputs)
    return (raw(np.where(governed(mask, call.width), x, y)),)


def _select_masks(
    _: Call, inputs: Sequence[Array], mask: Bits | None, _s: Array
) -> Sequence[Array]:
    x, y = (each.astype(bool) for each in inputs)
    return (x if mask is None else np.where(mask, x, y),)


SELECTION_LATENCY = 6
"""Cycles, which no page states: the middle of what published traces of merging calls allow."""
_NOT = (*INTEGERS, *HALF_AND_FLOAT)
_AMOUNT = (
    "a shift by exactly the width of a lane gives what a shift by more gives: the page says only"
    " what a shift by more gives"
)
_SHIFTED = ("the sign of a signed type stays, as in the page's example", _AMOUNT)
_BITS = ("the bits of a lane behind its lowest are 0: the page does not say",)
declare(
    *(
        RegisterOperation(
            *(name, Form.BINARY, f"{name} the bits", _bitwise(function), INTEGERS),
            c_api=f"asc_{name.lower()}",
        )
        for name, function in (
            ("And", np.bitwise_and),
            ("Or", np.bitwise_or),
            ("Xor", np.bitwise_xor),
        )
    ),
    RegisterOperation("Not", Form.UNARY, "Invert the bits", _bitwise(np.invert), _NOT, "asc_not"),
    RegisterOperation(
        *("ShiftLeft", Form.SHIFT, "Shift to the left by lanes", _shift(left=True), INTEGERS),
        c_api="asc_shiftleft",
        uncertain=_SHIFTED,
    ),
    RegisterOperation(
        *("ShiftRight", Form.SHIFT, "Shift to the right by lanes", _shift(left=False), INTEGERS),
        c_api="asc_shiftright",
        uncertain=(_AMOUNT,),
    ),
    RegisterOperation(
        *("ShiftLefts", Form.SHIFT_SCALAR, "Shift to the left", _shift(left=True), INTEGERS),
        c_api="asc_shiftleft_scalar",
        uncertain=_SHIFTED,
    ),
    RegisterOperation(
        *("ShiftRights", Form.SHIFT_SCALAR, "Shift to the right", _shift(left=False), INTEGERS),
        c_api="asc_shiftright_scalar",
        uncertain=(_AMOUNT,),
    ),
    RegisterOperation(*("Compare", Form.COMPARE, "Compare lanes", _compare, ALL), uncertain=_BITS),
    RegisterOperation(
        *("Compares", Form.COMPARE_SCALAR, "Compare lanes with the scalar", _compare, ALL),
        older=("CompareScalar",),
        uncertain=_BITS,
    ),
    RegisterOperation(
        *("Select", Form.SELECT, "Take active lanes of src0, others of src1", _select, ALL),
        c_api="asc_select",
        latency=(("", SELECTION_LATENCY),),
    ),
    RegisterOperation(
        *("MaskNot", Form.MASK_UNARY, "Invert a mask", _of_masks(np.logical_not), ()),
        c_api="asc_not",
        cpp="Not",
    ),
    *(
        RegisterOperation(
            *(f"Mask{name}", Form.MASK_BINARY, f"{name} two masks", _of_masks(function), ()),
            c_api=f"asc_{name.lower()}",
            cpp=name,
        )
        for name, function in (
            ("And", np.logical_and),
            ("Or", np.logical_or),
            ("Xor", np.logical_xor),
        )
    ),
    RegisterOperation(
        *("MaskMove", Form.MASK_UNARY, "Copy a mask", _of_masks(np.array), ()),
        c_api="asc_copy",
        cpp="Move",
    ),
    RegisterOperation(
        *("MaskSelect", Form.MASK_BINARY, "Select of two masks", _select_masks, ()),
        c_api="asc_select",
        cpp="Select",
    ),
)
