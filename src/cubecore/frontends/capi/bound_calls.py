"""Calls that were bound before, found by their arguments' types and numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cubecore.cache import BoundedCache
from cubecore.frontends.capi.binding import BoundCall, bind
from cubecore.frontends.capi.pointer import Pointer

_BOUND = BoundedCache[tuple[object, ...], BoundCall]()


def bound_call(
    name: str, arguments: tuple[object, ...], keywords: dict[str, Any], arch: str
) -> BoundCall:
    """Return what a call issues; of calls without keywords it is remembered.

    Parameters
    ----------
    name : str
        The call.
    arguments : tuple
        Pointers, numbers, words, lists of them, or a struct.
    keywords : dict
        Parameters by name.
    arch : str
        The architecture.

    Returns
    -------
    BoundCall
        The instructions, without addresses.
    """
    key = None if keywords else call_key(name, arguments, {}, arch)
    bound = None
    try:
        bound = _BOUND.get(key) if key is not None else None
    except TypeError:  # a struct of parameters
        key = None
    if bound is None:
        bound = bind(name, arguments, keywords, arch)
        if key is not None and bound.reusable:
            _BOUND[key] = bound
    return bound


def call_key(
    name: str, arguments: Sequence[object], keywords: Mapping[str, object], arch: str
) -> tuple[object, ...]:
    """Return what decides the instructions of a call: two calls with equal ones issue the same."""
    words = ((word, _shape(value)) for word, value in keywords.items())
    return arch, name, *map(_shape, arguments), *words


def _shape(argument: object) -> Any:
    """Return what of an argument decides the instruction: of a pointer its type and memory."""
    if isinstance(argument, Pointer):
        return argument.mem, argument.dtype
    if isinstance(argument, (list, tuple)):
        return tuple(map(_shape, argument))
    if isinstance(argument, (float, np.floating)):
        return type(argument), repr(argument)  # 0.0 equals -0.0
    return type(argument), argument
