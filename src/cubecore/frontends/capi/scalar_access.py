"""Values that the scalar unit reads from memory and writes there."""

from functools import lru_cache

import numpy as np

from cubecore.dtypes import ElementType, element_type
from cubecore.errors import CubecoreError, refuse
from cubecore.frontends.capi.pointer import Pointer, RuntimeInt
from cubecore.frontends.source_locations import KernelError
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.scalar.store import StoreScalar, StoreScalarGm
from cubecore.numerics.codes import codes_of, numbers

Read = tuple[LoadScalar, str]
"""A read, and what it says of its value."""


def scalar_load(pointer: Pointer, where: Location) -> Read:
    """Return a read of what a pointer points to, wherever that is.

    Raises
    ------
    KernelError
        If the element has fewer than 8 bits.
    """
    kind = pointer.dtype
    if kind.bits < 8:
        raise KernelError.at(where, refuse("a value", "be of 8 bits or more", kind.name))
    load = LoadScalar(Var("value", 0), pointer.mem, kind, Expr(0), where, cached=True)
    return load, f"{pointer.mem.label} at {where}"


def decoded(raw: int, read: Read) -> int | float:
    """Return the value that was read: a float's bits, or an integer."""
    kind = read[0].element
    return RuntimeInt(raw, read[1]) if kind.kind != "float" else value_read(raw, kind, read[1])


def value_read(raw: int, kind: ElementType, said: str) -> int | float:
    """Return the value of an element's bits; `said` says of an integer where it is from."""
    if kind.kind == "float":
        bits = np.array(raw, f"u{kind.size_bytes}")
        return float(numbers(bits.view(kind.numpy), kind))
    signed = kind.kind == "int" and raw >> kind.bits - 1
    return RuntimeInt(raw - (1 << kind.bits) if signed else raw, said)


def scalar_store(pointer: Pointer, value: object, where: Location) -> Instruction:
    """Return what writes a value to the element at a pointer.

    Raises
    ------
    KernelError
        If the scalar unit does not reach the memory, or the element does not hold the value.
    """
    kind = pointer.dtype
    try:
        if pointer.mem not in {Mem.UB, Mem.GM}:
            need = "lie in UB or GM, the memories that the scalar unit writes"
            raise refuse("the pointer of a store", need, pointer.mem.label)
        if kind.bits < 8:
            raise refuse("a value", "be of 8 bits or more", kind.name)
        return _store_of(pointer.mem, kind.bits, bits_of(value, kind))
    except CubecoreError as error:
        raise KernelError.at(where, error) from None


def bits_of(value: object, kind: ElementType) -> int:
    """Return the bits of a value as an element.

    Raises
    ------
    RequestError
        If the element does not hold the value.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if kind.kind == "float":
        if not isinstance(value, (int, np.integer, float, np.floating)) or value is True:
            raise refuse(f"a value of {kind.name}", "be a number", repr(value))
        number = np.array(float(value))
        codes = kind.library == "codes"
        with np.errstate(over="ignore"):
            converted = codes_of(number, kind) if codes else number.astype(kind.numpy)
        return int.from_bytes(converted.tobytes(), "little")
    low = -(1 << kind.bits - 1) if kind.kind == "int" else 0
    high = low + (1 << kind.bits) - 1
    number_ = int(value) if whole else None  # type: ignore[call-overload]
    if number_ is None or not low <= number_ <= high:
        need = f"be a whole number in [{low}, {high}]"
        raise refuse(f"a value of {kind.name}", need, repr(value))
    return int(number_ & (1 << kind.bits) - 1)


@lru_cache(maxsize=4096)
def _store_of(mem: Mem, bits: int, value: int) -> Instruction:
    kind = element_type(f"uint{bits}")
    if mem is Mem.GM:
        return StoreScalarGm(dtype=kind, value=value)
    return StoreScalar(dtype=kind, value=value)
