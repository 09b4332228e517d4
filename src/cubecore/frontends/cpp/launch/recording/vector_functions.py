"""Vector functions of C++ kernels: from the entries that the runtime recorded to an instruction."""

from collections.abc import Callable

import numpy as np

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.dtypes import element_type
from cubecore.frontends.capi.calls.binding import BoundCall
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.indexed_function import CountingFunction, IndexedFunction
from cubecore.isa.vector.registers.landing import (
    Deciders,
    deciders,
    has_landings,
    landed,
    ub_bytes,
)
from cubecore.isa.vector.registers.operation import Call, Form
from cubecore.isa.vector.registers.operations import catalogue
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import Entries
from cubecore.isa.vector.registers.vector_function import VectorFunction

_ENTRY = np.dtype(
    [
        *((name, "<u8") for name in ("operation", "type", "source", "mode", "file")),
        ("address", "<i8"),
        ("scalar", "<u8"),
        ("results", "<u4", 2),
        ("sources", "<u4", 3),
        *((name, "<u4") for name in ("mask", "variable", "line")),
    ]
)
"""The mirror of `cubecore::RegisterEntry` (reg/record.h)."""
ENTRY_BYTES = _ENTRY.itemsize
_FUNCTIONS = BoundedCache[tuple[object, ...], BoundCall](512)


def vector_function(
    raw: bytes, texts: dict[int, str], where: Location, place: Callable[[str, int], Location]
) -> BoundCall:
    """Return the instruction of a vector function that begins at a location.

    `texts` are those that entries point to; `place` gives the location of a line of a file.
    """
    entries = np.frombuffer(raw, _ENTRY)
    words = {name: _texts(entries[name], texts) for name in _TEXTS}
    numbers = tuple(entries[name].tobytes() for name in _NUMBERS)
    key = (where, *numbers, *((names, places.tobytes()) for names, places in words.values()))
    found = _FUNCTIONS.get(key)
    if found is None:
        program = RegisterProgram(_entries(entries, texts, place), where)
        template = _template(program)
        count = len(template.operands())
        found = BoundCall(((template, tuple(range(count))),), masked=False, counted=False)
        _FUNCTIONS[key] = found
    return found


def _template(program: RegisterProgram) -> VectorFunction:
    """Return the instruction of a program: values may decide what it accesses, or what AR has."""
    of_ar = any(step.call.operation.form is Form.AR for step in program.steps.values())
    if not (of_ar or has_landings(program)):
        return VectorFunction(program=program)
    if deciders(program) is Deciders.PROGRAM:
        program = landed(program, np.zeros((1, ub_bytes()[0]), np.uint8), 0)
    return (CountingFunction if of_ar else IndexedFunction)(program=program)


_TEXTS = ("operation", "type", "source", "mode", "file")
_NUMBERS = ("address", "scalar", "results", "sources", "mask", "variable", "line")


def _texts(pointers: Array, texts: dict[int, str]) -> tuple[tuple[str, ...], Array]:
    known, numbers = np.unique(pointers, return_inverse=True)
    return tuple(texts[int(pointer)] for pointer in known), numbers


def _entries(
    entries: Array,
    texts: dict[int, str],
    place: Callable[[str, int], Location],
) -> Entries:
    keys = entries[["operation", "type", "source", "mode"]]
    distinct, calls = np.unique(keys, return_inverse=True)
    lines, places = np.unique(entries[["file", "line"]], return_inverse=True)
    known = catalogue.operations()
    table = tuple(
        Call(
            known[texts[int(each["operation"])]],
            element_type(texts[int(each["type"])]),
            element_type(texts[int(each["source"])]),
            texts[int(each["mode"])],
        )
        for each in distinct
    )
    return Entries(
        table=table,
        locations=tuple(place(texts[int(each["file"])], int(each["line"])) for each in lines),
        calls=calls.reshape(-1),
        places=places.reshape(-1),
        results=entries["results"],
        sources=entries["sources"],
        masks=entries["mask"],
        variables=entries["variable"],
        addresses=entries["address"],
        scalars=entries["scalar"],
    )
