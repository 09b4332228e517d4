"""An operator called as its binding calls it: arguments in order, made inputs and attributes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from cubecore.frontends.cpp.operator_projects.element_types import BY_ARRAY, BY_NUMBER, numpy_type
from cubecore.frontends.cpp.operator_projects.operator_project import Operator
from cubecore.frontends.cpp.operator_projects.registration import OperatorParameter, Registration


class MisfitError(Exception):
    """The arguments are not those of the operator's registration."""


def run_in_place(operator: Operator, arguments: Sequence[Any]) -> tuple[str, ...]:
    """Run an operator on its inputs, attributes and outputs in order; return the findings."""
    own = operator.registration
    names = {one.name for one in own.inputs}
    outputs = [one for one in own.outputs if one.name not in names]
    order = [*own.inputs, *own.attributes, *outputs]
    if len(arguments) != len(order):
        raise MisfitError(f"{own.type} takes {len(order)} arguments, got {len(arguments)}")
    words = {one.name: given for one, given in zip(order, arguments, strict=True)}
    column = _column(own, words)
    copies: list[tuple[torch.Tensor, torch.Tensor]] = []
    for one in (*own.inputs, *outputs):
        words[one.name] = _array(one, words[one.name], column, copies)
    for attribute in own.attributes:
        words[attribute.name] = _attribute(words[attribute.name])
    left = operator.run(**{name: given for name, given in words.items() if given is not None})
    for tensor, copy in copies:
        tensor.copy_(copy)
    return tuple(str(finding) for finding in left.launch.findings)


def _column(own: Registration, words: dict[str, Any]) -> int:
    """Return the first combination of registered types that the tensors have."""
    width = max((len(one.types) for one in (*own.inputs, *own.outputs)), default=1)
    for column in range(width):
        fits = True
        for one in (*own.inputs, *own.outputs):
            kind = _type(words.get(one.name))
            if kind is not None and len(one.types) == width:
                fits = fits and one.types[column] == kind
        if fits:
            return column
    return 0


def _type(given: Any) -> int | None:
    first = given[0] if isinstance(given, list) and given else given
    if not isinstance(first, torch.Tensor):
        return None
    known = BY_ARRAY.get(str(first.dtype).removeprefix("torch."))
    return known.number if known else None


def _array(
    one: OperatorParameter,
    given: Any,
    column: int,
    copies: list[tuple[torch.Tensor, torch.Tensor]],
) -> Any:
    """Return what the operator takes for an input or output: torch tensors, or values as arrays."""
    if isinstance(given, list) and given and isinstance(given[0], torch.Tensor):
        return [_array(one, each, column, copies) for each in given]
    if isinstance(given, torch.Tensor):
        if given.dtype is torch.bool and BY_ARRAY["bool"].number not in one.types:
            return given.view(torch.uint8)  # as bytes, for an operator that takes bytes
        if given.is_contiguous():
            return given
        copies.append((given, given.contiguous()))
        return copies[-1][1]
    if given is None:
        return None
    number = one.types[min(column, len(one.types) - 1)] if one.types else 0
    dtype = numpy_type(BY_NUMBER[number])
    return np.atleast_1d(np.asarray(given)).astype(dtype)


def _attribute(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return given.item()
    names = {"Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Int": "int32"}
    names |= {"Long": "int64", "Bool": "bool", "Char": "int8", "Byte": "uint8", "Double": "float64"}
    if isinstance(given, str) and given in names:
        return BY_ARRAY[names[given]].number
    return given
