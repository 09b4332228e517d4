"""Calls that were bound before, found by their arguments' types and numbers.

A call of the C API, from Python or through a header of C++, passes these on its way to a trace;
each is asked first and fills the one before it. Figures are of one launch of 2 blocks of
`examples/cpp/flash_attention.cpp`, 24 ms of CPU, with 122 different calls.

1. C++: the runtime's table in the child process (`runtime/recording/calls.h`), by name, numbers,
   types and memories. Without it every call of a loop would be a question to Python.
   Python: the calls of a place (`call_sites`, `repeated_calls`), by code and position.
2. `bound_call`, here, for all launches of this process: 0.9 ms in place of 5.4 ms.
3. C++: `runtime_steps`, the records of a bound call that the table takes, saves 2 ms.

`forms` in `binding` is no such cache but the table of declared calls, a row built at its first use.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cubecore.cache import BoundedCache
from cubecore.frontends.capi.calls.binding import BoundCall, bind
from cubecore.frontends.capi.pointer import Pointer

_BOUND = BoundedCache[tuple[object, ...], BoundCall]()


def bound_call(
    name: str, arguments: Sequence[object], keywords: Mapping[str, object], arch: str
) -> BoundCall:
    """Return what a call issues; it is remembered, unless a struct is among the arguments.

    Parameters
    ----------
    name : str
        The call.
    arguments : sequence
        Pointers, numbers, words, lists of them, or a struct.
    keywords : mapping
        Parameters by name.
    arch : str
        The architecture.

    Returns
    -------
    BoundCall
        The instructions, without addresses.

    Raises
    ------
    RequestError
        If there is no such call, or the arguments fit none of its forms.
    """
    words = ((word, _shape(value)) for word, value in keywords.items())
    key: tuple[object, ...] | None = (arch, name, *map(_shape, arguments), *words)
    try:
        bound = _BOUND.get(key)  # type: ignore[arg-type]
    except TypeError:  # a struct of parameters
        key = bound = None
    if bound is None:
        bound = bind(name, arguments, keywords, arch)
        if key is not None and bound.reusable:
            _BOUND[key] = bound
    return bound


def _shape(argument: object) -> Any:
    """Return what of an argument decides the instruction: of a pointer its type and memory."""
    if isinstance(argument, Pointer):
        return argument.mem, argument.dtype
    if isinstance(argument, (list, tuple)):
        return tuple(map(_shape, argument))
    if isinstance(argument, (float, np.floating)):
        return type(argument), repr(argument)  # 0.0 equals -0.0
    return type(argument), argument
