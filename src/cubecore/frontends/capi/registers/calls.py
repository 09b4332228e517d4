"""Calls on registers: from arguments to rows of a vector function, by the declared names."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from cubecore.cache import BoundedCache
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import CubecoreError, refuse, unable
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.capi.registers.handles import (
    ALL_LANES,
    Register,
    VectorRegister,
    register_names,
)
from cubecore.frontends.capi.registers.open_function import OpenFunction
from cubecore.frontends.capi.scalar_access import bits_of
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.c_api.names import c_names
from cubecore.isa.vector.registers.c_api.signatures import CName
from cubecore.isa.vector.registers.operation import Call, Form
from cubecore.isa.vector.registers.operations import catalogue
from cubecore.isa.vector.registers.operations.moves import LOADS, STORES

_WORDS = {"v": "a vector register", "m": "a mask register (vector_bool)", "p": "a pointer into UB"}
_WORDS |= {"u": "the buffer of an unaligned stream", "n": "a number", "t": "a word"}
_MIXED = frozenset({Form.CAST, Form.REDUCE, Form.PLAIN, Form.HISTOGRAM, Form.GATHER})
"""Forms whose source and result have types of their own."""
Shapes = tuple[Hashable, ...]
_ROWS = BoundedCache[tuple[str, Shapes], CName]()
_CALLS = BoundedCache[tuple[str, str, Shapes], Call]()
_OTHER_TYPES = frozenset({"index", "amounts"})
"""Parameters that are registers of another type than the lanes'."""


@cache
def overloads(name: str) -> Mapping[str, CName] | None:
    """Return the overloads of a name by the kinds of their arguments; None of another name."""
    rows = c_names().get(name)
    return None if rows is None else {row.kinds: row for row in rows}


@dataclass(frozen=True, eq=False, slots=True)
class CallArguments:
    """The arguments of a call by the names of its parameters, in a function that is open.

    Calls whose arguments have the same `shapes` (kinds, types and memories) are of one instruction.
    """

    row: CName
    arguments: Mapping[str, Any]
    function: OpenFunction
    where: Location
    shapes: Shapes

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str) -> Any:
        """Return the argument of a parameter, None without one."""
        return self.arguments.get(name)

    def mask(self) -> int:
        """Return the number of the mask that governs the call."""
        mask = self.arguments.get("mask")
        return ALL_LANES if mask is None else mask.value

    def pointer(self) -> Pointer:
        """Return the pointer into UB."""
        pointer: Pointer = self.arguments["src" if "src" in self._pointers else "dst"]
        return pointer

    @property
    def _pointers(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.row.parameters if each.kind == "p")

    def vectors(self, *, results: bool) -> list[VectorRegister]:
        """Return the vector registers that are results, or those that are not."""
        return [
            self.arguments[each.name]
            for each in self.row.parameters
            if each.kind == "v" and each.is_result is results
        ]


def given(
    name: str, arguments: Sequence[object], function: OpenFunction, where: Location
) -> CallArguments:
    """Return a call's arguments as the overload takes them that they fit.

    Raises
    ------
    RequestError
        If they fit none, or a register is another function's or of another type.
    """
    shapes = tuple(map(_shape, arguments))
    known = _ROWS.get((name, shapes))
    row = known or _overload(name, arguments)
    named = {each.name: one for each, one in zip(row.parameters, arguments, strict=True)}
    call = CallArguments(row, named, function, where, shapes)
    for word, one in named.items():
        if isinstance(one, Register) and one.function is not function:
            other = "another call" if one.function.name == function.name else one.function.name
            need = f"be a register of the vector function {function.name} that is open"
            raise refuse(f"{name}.{word}", need, f"one of {other}")
    if known is None:
        _require_types(call)
        _ROWS[name, shapes] = row
    return call


def _overload(name: str, arguments: Sequence[object]) -> CName:
    rows = overloads(name)
    assert rows is not None
    kinds = "".join(map(_kind, arguments))
    row = rows.get(kinds)
    if row is None:
        raise _misfit(name, [*rows.values()], arguments, kinds)
    return row


def _shape(argument: object) -> Hashable:
    """Return what of an argument decides the instruction."""
    if isinstance(argument, VectorRegister):
        return VectorRegister.kind, argument.dtype.name
    if isinstance(argument, Pointer):
        return argument.mem, argument.dtype.name
    return type(argument).__qualname__


def _kind(argument: object) -> str:
    if isinstance(argument, Register):
        return argument.kind
    if isinstance(argument, Pointer):
        return "p"
    if isinstance(argument, str):
        return "t"
    number = isinstance(argument, (int, float, np.integer, np.floating))
    return "n" if number and not isinstance(argument, bool) else "?"


def _misfit(
    name: str, rows: Sequence[CName], arguments: Sequence[object], kinds: str
) -> CubecoreError:
    """Return the refusal of arguments, told of the overload that they come nearest to."""
    counted = [row for row in rows if len(row.parameters) == len(arguments)]
    if not counted:
        listed = " or ".join(
            dict.fromkeys(", ".join(p.name for p in row.parameters) or "nothing" for row in rows)
        )
        return unable(name, f"{name} takes {listed}; got {len(arguments)} arguments")

    def agreement(row: CName) -> int:
        return sum(a == b for a, b in zip(row.kinds, kinds, strict=True))

    nearest = max(counted, key=agreement)
    at = next(n for n, (a, b) in enumerate(zip(nearest.kinds, kinds, strict=True)) if a != b)
    parameter, got = nearest.parameters[at], arguments[at]
    spelled = str(got) if isinstance(got, (Register, Pointer)) else repr(got)
    return refuse(f"{name}.{parameter.name}", f"be {_WORDS[parameter.kind]}", spelled)


def _require_types(call: CallArguments) -> None:
    """Refuse registers and pointers that do not have the type which the call's name or dst says."""
    row = call.row
    for parameter in row.parameters:
        one = call[parameter.name]
        if parameter.kind == "p" and one.mem is not Mem.UB:
            raise refuse(f"{row.name}.{parameter.name}", "point into UB", str(one))
        if row.source and parameter.kind == "v":
            _require_type(
                row, parameter.name, one, row.result if parameter.is_result else row.source
            )
    operation = catalogue.operations().get(row.operation)
    if row.source or operation is None or operation.form in _MIXED:
        return
    same = [
        (each.name, call[each.name])
        for each in row.parameters
        if each.kind == "v" and each.name not in _OTHER_TYPES
    ]
    for name, one in same[1:]:
        _require_type(row, name, one, same[0][1].dtype.name, same[0][0])


def _require_type(
    row: CName, parameter: str, register: VectorRegister, wanted: str, like: str = ""
) -> None:
    if register.dtype.name != wanted:
        need = f"be a {register_names()[wanted]}" + (f", as {like} is" if like else "")
        raise refuse(f"{row.name}.{parameter}", need, register.name)


def record(
    call: CallArguments,
    *,
    results: Sequence[Register] = (),
    sources: Sequence[Register] = (),
    scalar: int = 0,
    **more: int,
) -> None:
    """Record the call's row: its results get new values.

    `more` are a variable and an address, of what accesses UB.
    """
    function = call.function
    read = tuple(one.value for one in sources)
    numbers = tuple(function.new_value() for _ in results)
    function.take(
        issued_call(call),
        call.where,
        results=numbers,
        sources=read,
        mask=call.mask(),
        scalar=scalar,
        **more,
    )
    for one, number in zip(results, numbers, strict=True):
        one.value = number


def issued_call(call: CallArguments) -> Call:
    """Return the register instruction of a call with the types and the mode of its lanes."""
    row = call.row
    key = row.name, row.mode, call.shapes
    known = _CALLS.get(key)
    if known is None:
        known = _CALLS[key] = _made_call(call)
    return known


def _made_call(call: CallArguments) -> Call:
    row = call.row
    operation = catalogue.operations()[row.operation]
    source = dtype = _dtype(call)
    if operation.form in _MIXED and operation.form is not Form.GATHER:
        vectors = call.vectors(results=False)
        source = vectors[0].dtype
    mode = row.mode
    if "{" in mode:
        bits = call.pointer().dtype.bits if "{element}" in mode else dtype.bits
        mode = mode.format(lane=bits, element=bits)
        if mode not in LOADS and mode not in STORES:
            raise refuse(row.name, "take lanes of a width that it moves", f"{bits} bits")
    return call_of(row.operation, dtype.name, source.name, mode)


@lru_cache(maxsize=4096)
def call_of(operation: str, dtype: str, source: str, mode: str) -> Call:
    """Return a register instruction with its types and mode."""
    kinds = element_type(dtype), element_type(source)
    return Call(catalogue.operations()[operation], *kinds, mode)


def _dtype(call: CallArguments) -> ElementType:
    """Return the type of the lanes: of the first vector register, or of the name's width."""
    if call.row.bits:
        return element_type(f"uint{call.row.bits}")
    vectors = [*call.vectors(results=True), *call.vectors(results=False)]
    if not vectors:
        return element_type("uint8")
    operation = catalogue.operations()[call.row.operation]
    if operation.form is Form.BLOCK_MASK:
        return element_type(f"uint{vectors[0].dtype.bits}")
    return vectors[0].dtype


def scalar_of(call: CallArguments) -> int:
    """Return the bits of a call's scalar, which is of the type of the lanes."""
    if (value := call.get("value")) is not None:
        vectors = [*call.vectors(results=False), *call.vectors(results=True)]
        return bits_of(value, vectors[0].dtype)
    if (amount := call.get("amount")) is not None:
        return bits_of(amount, element_type("int16"))
    if (block := call.get("block")) is not None:
        return int(block)
    # Two results in one register are a finding, which the scalar tells of.
    return int("dst1" in call.arguments and call["dst0"] is call["dst1"])
