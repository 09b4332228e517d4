"""Arrays for the typed pointers of an entry: which element types a `__gm__ float*` takes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import refuse
from cubecore.frontends.cpp.launch.signature import EntryParameter
from cubecore.frontends.kernels.host_tensors import host_tensor

_CODES = (1, 2)
"""Bytes of codes: np.save writes arrays of ml_dtypes as V1 and V2."""
_INTEGERS = {"int", "uint"}
_BYTES = "uint8"
"""The type of GM_ADDR (`__gm__ uint8_t*`), which takes arrays of any type."""


@dataclass(frozen=True, slots=True)
class GivenType:
    """The type of an array for a parameter; `spelled` is NumPy's name for it."""

    element: ElementType
    spelled: str


def pointee(parameter: EntryParameter) -> ElementType | None:
    """Return the type that a pointer's arrays must have; None where it takes any.

    A `void*`, a GM_ADDR, a pointer to a struct and what is no pointer take any.
    """
    if parameter.letter != "p" or parameter.type in {"", _BYTES}:
        return None
    return element_type(parameter.type)


def note_on(parameter: EntryParameter, given: GivenType) -> str | None:
    """Return a note on an array that a typed pointer takes by its bits, None if there is none.

    Raises
    ------
    RequestError
        If the pointer does not take the array.
    """
    wanted, has = pointee(parameter), given.element
    if wanted is None or wanted is has or _is_code(wanted, given):
        return None
    pointer = f"`__gm__ {wanted.aliases[0]}*`"
    if wanted.bits == has.bits and {wanted.kind, has.kind} == _INTEGERS:
        return f"{parameter.name} is {has} for {pointer}: its bits are taken as they are"
    remedy = f"{_remedy(parameter.name, wanted, given)}, or declare the parameter GM_ADDR"
    raise refuse(parameter.name, f"be {wanted} for {pointer}", given.spelled, remedy)


def _is_code(wanted: ElementType, given: GivenType) -> bool:
    """True of codes at their width: of a type that NumPy lacks, or V1 and V2 for integers."""
    if given.element.kind not in _INTEGERS or given.element.bits != max(wanted.bits, 8):
        return False
    is_unnamed = given.spelled.startswith("V") and wanted.kind in _INTEGERS
    return is_unnamed or wanted.library != "numpy"


def _remedy(name: str, wanted: ElementType, given: GivenType) -> str:
    if wanted.bits < 8:
        return "pass two elements to a byte in a uint8 array"
    if wanted.library == "codes":
        return "pass its codes in a uint8 array"
    call = "view" if given.spelled.startswith("V") else "astype"
    module = "np" if wanted.library == "numpy" else wanted.library
    return f"convert it with {name}.{call}({module}.{wanted.name})"


def by_codes(value: Any) -> Any:
    """Return an array of V1 or V2 as unsigned integers, anything else as it is."""
    if isinstance(value, np.ndarray) and spelled_code(value) is not None:
        return value.view(f"u{value.dtype.itemsize}")
    return value


def given_type(name: str, value: Any) -> GivenType:
    """Return the type of an array.

    Raises
    ------
    RequestError
        If it cannot be a tensor of the chip.
    """
    host = host_tensor(name, by_codes(value))
    assert host is not None, "an array"
    return GivenType(host.dtype, spelled_code(value) or host.dtype.name)


def spelled_code(value: Any) -> str | None:
    """Return V1 or V2 for an array of such codes, None for anything else."""
    dtype = getattr(value, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.type is not np.void or dtype.names is not None:
        return None
    return f"V{dtype.itemsize}" if dtype.itemsize in _CODES else None


def typed_bytes(parameter: EntryParameter, raw: Array) -> Array:
    """Return the bytes of a file, which has no type, as an array of the parameter's type.

    Raises
    ------
    RequestError
        If the last element is not whole.
    """
    wanted = pointee(parameter)
    if wanted is None or wanted.bits < 8:
        return raw
    if raw.size % wanted.size_bytes:
        need = f"have whole elements of {wanted}, {wanted.size_bytes} B each"
        raise refuse(parameter.name, need, f"{raw.size} B")
    return raw.view(wanted.numpy)
