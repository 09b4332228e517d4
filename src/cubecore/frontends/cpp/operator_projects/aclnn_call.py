"""A call of an operator as its aclnn function takes it: inputs, attributes, outputs in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.errors import refuse
from cubecore.frontends.cpp.operator_projects.element_types import BY_ARRAY, BY_NUMBER, numpy_type
from cubecore.frontends.cpp.operator_projects.registration import OperatorParameter, Registration

_TYPE_NAMES = {"Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Int": "int32"} | {
    "Long": "int64",
    "Bool": "bool",
    "Char": "int8",
    "Byte": "uint8",
    "Double": "float64",
}
"""Names of element types, as PyTorch writes them, by which a call tells an attribute."""


@dataclass(frozen=True, eq=False, slots=True)
class AclnnWords:
    """The arguments of a call by name; `copies` are contiguous ones of arrays that were not."""

    words: dict[str, Any]
    copies: tuple[tuple[Array, Array], ...]

    def write_back(self) -> None:
        """Give arrays that are not contiguous what the call left in their copies."""
        for array, copy in self.copies:
            array[...] = copy


def aclnn_words(own: Registration, arguments: Sequence[Any]) -> AclnnWords:
    """Return the arguments of an aclnn call by the names of the registration.

    A number for an input is an array of one element, of the type that the other inputs have in the
    registration. An output that an input has the name of is that input.

    Raises
    ------
    RequestError
        If there are not as many arguments as the operator registers.
    """
    inputs = {one.name for one in own.inputs}
    outputs = [one for one in own.outputs if one.name not in inputs]
    names = [one.name for one in own.inputs]
    names += [*(one.name for one in own.attributes), *(one.name for one in outputs)]
    if len(arguments) != len(names):
        need = f"take {len(names)} arguments ({', '.join(names)})"
        raise refuse(f"aclnn{own.type}", need, len(arguments))
    words = dict(zip(names, arguments, strict=True))
    column = _column(own, words)
    copies: list[tuple[Array, Array]] = []
    for one in (*own.inputs, *outputs):
        words[one.name] = _array(one, words[one.name], column, copies)
    for attribute in own.attributes:
        words[attribute.name] = _attribute(words[attribute.name])
    return AclnnWords({n: given for n, given in words.items() if given is not None}, tuple(copies))


def _column(own: Registration, words: dict[str, Any]) -> int:
    """Return the first combination of registered types that the arrays have; 0 if none has."""
    width = max((len(one.types) for one in (*own.inputs, *own.outputs)), default=1)
    known = [
        (one.types, number)
        for one in (*own.inputs, *own.outputs)
        if len(one.types) == width and (number := _type(words.get(one.name))) is not None
    ]
    fitting = (c for c in range(width) if all(types[c] == number for types, number in known))
    return next(fitting, 0)


def _type(given: Any) -> int | None:
    first = given[0] if isinstance(given, (list, tuple)) and given else given
    if not isinstance(first, np.ndarray):
        return None
    known = BY_ARRAY.get(str(first.dtype))
    return known.number if known else None


def _array(
    one: OperatorParameter, given: Any, column: int, copies: list[tuple[Array, Array]]
) -> Any:
    """Return what the operator takes for an input or output: arrays, or numbers as arrays."""
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], np.ndarray):
        return [_array(one, each, column, copies) for each in given]
    if isinstance(given, np.ndarray):
        if given.dtype == np.bool_ and BY_ARRAY["bool"].number not in one.types:
            given = given.view(np.uint8)  # as bytes, for an operator that takes bytes
        if given.flags.c_contiguous:
            return given
        copies.append((given, np.ascontiguousarray(given)))
        return copies[-1][1]
    if given is None:
        return None
    number = one.types[min(column, len(one.types) - 1)] if one.types else 0
    known = BY_NUMBER.get(number)
    if known is None:
        raise refuse(one.name, "be an array", repr(given))
    return np.atleast_1d(np.asarray(given)).astype(numpy_type(known))


def _attribute(given: Any) -> Any:
    if isinstance(given, (np.ndarray, np.generic)) and given.size == 1:
        return given.item()
    if isinstance(given, str) and given in _TYPE_NAMES:
        return BY_ARRAY[_TYPE_NAMES[given]].number
    return given
