"""Calls of vector functions that hang on their arguments alone: an equal one is issued as it was.

A body of a hundred trips costs Python milliseconds, and kernels call it with equal arguments on
every core. It runs again unless its code shows that nothing else has a part in it: it reads its
parameters, plain globals and functions like itself, and calls nothing but registers' names.
"""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from dis import get_instructions
from functools import lru_cache
from types import CodeType, FunctionType, NoneType
from typing import Any

from cubecore.cache import BoundedCache
from cubecore.frontends.capi.pointer import Pointer, RuntimeInt
from cubecore.frontends.capi.registers.calls import overloads
from cubecore.frontends.capi.registers.handles import declared_types
from cubecore.isa.program.tree import Location
from cubecore.kernels.build.register_calls import Issued
from cubecore.machine.execute.array_bounds import InArray

Key = tuple[object, ...]
KNOWN_CALLS = BoundedCache[Key, Issued](4096)
_PLAIN = (int, float, str, bool, NoneType, RuntimeInt)
_PURE = frozenset(
    {
        *("abs", "all", "any", "bool", "divmod", "enumerate", "float", "int", "len", "list"),
        *("max", "min", "range", "reversed", "round", "sorted", "sum", "tuple", "zip"),
    }
)
"""Functions of Python that a body may call."""
_OF_LOCALS = frozenset({"append", "cast"})
"""Methods of lists and pointers that change nothing but what the body has made."""


def call_key(
    function: Callable[..., Any], arguments: Sequence[object], where: Location, *, watched: bool
) -> Key | None:
    """Return what a call hangs on, None where that is more than its arguments behind the core.

    `watched` says that its accesses are held to the arrays of its pointers.
    """
    if not isinstance(function, FunctionType):
        return None
    values = [_value(each) for each in arguments]
    outside = _outside(function, set())
    if outside is None or None in values:
        return None
    return function, where, watched, tuple(values), outside


def _value(argument: object) -> Key | None:
    if isinstance(argument, Pointer):
        at = argument.address
        array = (at.low, at.high) if isinstance(at, InArray) else ()
        return argument.mem, argument.dtype.name, int(at), *array
    if isinstance(argument, float):
        return float, argument.hex()  # 0 has two signs
    return (type(argument), argument) if type(argument) in _PLAIN else None


def _outside(function: FunctionType, seen: set[FunctionType]) -> Key | None:
    """Return the plain values that a function reads beside its arguments; None if more."""
    if function in seen:
        return ()
    seen.add(function)
    names = _globals_of(function.__code__)
    given = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    if names is None or function.__closure__ or any(type(each) not in _PLAIN for each in given):
        return None
    found: list[object] = []
    for name in names:
        one = _global(function.__globals__, name)
        plain = _value(one) if not callable(one) else _of_callable(name, one, seen)
        if plain is None:
            return None
        found.append(plain)
    return tuple(found)


def _global(names: Mapping[str, object], name: str) -> object:
    return names[name] if name in names else getattr(builtins, name, object())


def _of_callable(name: str, one: object, seen: set[FunctionType]) -> Key | None:
    if name in _PURE and one is getattr(builtins, name, None):
        return ()
    plain = getattr(one, "__wrapped__", one)  # another vector function
    return _outside(plain, seen) if isinstance(plain, FunctionType) else None


@lru_cache(maxsize=512)
def _globals_of(code: CodeType) -> tuple[str, ...] | None:
    """Return the globals that code reads; None if it looks at attributes other than calls."""
    names: dict[str, None] = {}
    for each in _all_code(code):
        for step in get_instructions(each):
            word = step.opname
            if word.startswith("LOAD_") and ("GLOBAL" in word or "NAME" in word):
                names[step.argval] = None
            elif "ATTR" in word or "METHOD" in word:
                if not (word.startswith("LOAD_") and _is_call(step.argval)):
                    return None
            elif "GLOBAL" in word or "NAME" in word:  # stores, imports
                return None
    return tuple(names)


def _is_call(name: str) -> bool:
    return name in _OF_LOCALS or name in declared_types() or overloads(name) is not None


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_code(constant)
