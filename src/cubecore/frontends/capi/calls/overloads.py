"""Prototypes of the C API whose arguments are no parameters of an instruction: packed for it."""

from collections.abc import Callable, Sequence

import numpy as np

from cubecore.errors import refuse
from cubecore.frontends.capi.pointer import Pointer
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.vector.elementwise.dequantise import deq_word

Arguments = Sequence[object]
Call = tuple[str, Arguments]

_ATOMIC_TYPES = ("none", "float", "float16", "int16", "int", "int8", "bfloat")
"""Types of asc_set_store_atomic_config_v1 by number, as the calls that set them are named."""
_DEQ_FORM = 3


def _deq_scale(call: str, arguments: Arguments) -> Call:
    """Pack (scale, offset, sign_mode), or take a half alone."""
    if len(arguments) == _DEQ_FORM:
        scale, offset, signed = arguments
        numbers = (float, int, np.floating, np.integer)
        if not isinstance(scale, numbers):
            raise refuse(f"{call}.scale", "be a number", repr(scale))
        if not isinstance(offset, (int, np.integer)):
            raise refuse(f"{call}.offset", "be an integer", repr(offset))
        return call, (deq_word(float(scale), int(offset), signed=bool(signed)),)
    return call, [_bits(a, np.float16) if is_float(a) else a for a in arguments]


def _pad_value(call: str, arguments: Arguments) -> Call:
    """Take a float as the bits of its own type; Python's are of float."""
    return call, [_bits(a, None) if is_float(a) else a for a in arguments]


def _atomic_config(call: str, arguments: Arguments) -> Call:
    """Name the call that sets (type, op)."""
    if len(arguments) != len(("type", "op")):
        return call, arguments
    kind, operation = arguments
    if not isinstance(kind, int) or not 0 <= kind < len(_ATOMIC_TYPES):
        raise refuse(f"{call}.type", f"be in [0, {len(_ATOMIC_TYPES) - 1}]", repr(kind))
    if operation != 0:
        raise refuse(f"{call}.op", "be 0, which adds", repr(operation))
    name = _ATOMIC_TYPES[kind]
    return f"asc_set_atomic_{name}" if name == "none" else f"asc_set_atomic_add_{name}", ()


def _bias_table(call: str, arguments: Arguments) -> Call:
    """Take dst as the address in BiasTable that it is in C; a header has typed it as bytes."""
    if len(arguments) < len(("dst", "src")) or not isinstance(src := arguments[1], Pointer):
        return call, arguments
    match arguments[0]:
        case int(address):
            pass
        case Pointer(mem=Mem.BT, dtype=kind, address=address) if kind.name == "uint8":
            pass
        case _:
            return call, arguments
    converts = len(arguments) > _DEQ_FORM and bool(arguments[2])
    to = src.cast("float32") if converts else src
    return call, (Pointer(Mem.BT, to.dtype, address, src.reader), *arguments[1:])


OVERLOADS: dict[str, Callable[[str, Arguments], Call]] = {
    "asc_set_deq_scale": _deq_scale,
    "asc_set_copy_pad_val": _pad_value,
    "asc_set_ndim_pad_value": _pad_value,
    "asc_set_gm2l1_pad": _pad_value,
    "asc_set_store_atomic_config_v1": _atomic_config,
    "asc_copy_l12bt": _bias_table,
    "asc_copy_l12bt_sync": _bias_table,
}
"""By call what makes a call of an instruction's parameters of one of the page's forms."""


def packed(call: str, arguments: Arguments) -> Call:
    """Return the call and the arguments that an instruction takes for a call of the C API.

    Raises
    ------
    RequestError
        If an argument of a form is not of its kind or range.
    """
    pack = OVERLOADS.get(call)
    return (call, arguments) if pack is None else pack(call, arguments)


def is_float(value: object) -> bool:
    """Return whether a value is a float: of Python, NumPy or ml_dtypes."""
    return isinstance(value, float) or (isinstance(value, np.generic) and value.dtype.kind in "fV")


def _bits(value: object, kind: type[np.floating] | None) -> int:
    # A Python float is C's float in a call, so that it is rounded to 32 bits first.
    natural = np.float32 if type(value) is float else type(value)
    with np.errstate(over="ignore"):
        converted = np.asarray(value).astype(kind or natural)
    return int(converted.view(f"u{converted.itemsize}"))
