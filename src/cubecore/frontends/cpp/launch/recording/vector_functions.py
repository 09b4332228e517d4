"""Vector functions of C++ kernels: from the entries that the runtime recorded to an instruction."""

from collections.abc import Callable

import numpy as np

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.dtypes import element_type
from cubecore.frontends.capi.calls.binding import BoundCall
from cubecore.frontends.cpp.launch.messages import Message
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.indexed_function import function_of
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations import catalogue
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import Entries
from cubecore.machine.debug.matrix_view import MatrixView
from cubecore.machine.debug.register_view import register_view
from cubecore.machine.execute.core import Core

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
_TEXTS = 5
"""Words of an entry, the first ones, that point to texts."""
_FUNCTIONS = BoundedCache[tuple[object, ...], BoundCall](512)


def vector_function(
    raw: bytes, texts: dict[int, str], where: Location, place: Callable[[str, int], Location]
) -> BoundCall:
    """Return the instruction of a vector function that begins at a location.

    `texts` are those that entries point to; `place` gives the location of a line of a file.
    """
    # Texts lie elsewhere in every process: the key has their numbers in the order of addresses.
    words = np.frombuffer(raw, "<u8").reshape(-1, ENTRY_BYTES // 8)
    pointers = sorted(texts)
    named = np.searchsorted(np.array(pointers, "<u8"), words[:, :_TEXTS])
    spelled = tuple(texts[pointer] for pointer in pointers)
    key = (where, spelled, named.tobytes(), words[:, _TEXTS:].tobytes())
    found = _FUNCTIONS.get(key)
    if found is None:
        entries = np.frombuffer(raw, _ENTRY)
        program = RegisterProgram(_entries(entries, texts, place), where)
        template = function_of(program)
        count = len(template.operands())
        found = BoundCall(((template, tuple(range(count))),), masked=False, counted=False)
        _FUNCTIONS[key] = found
    return found


def dumped_register(
    message: Message, core: Core, place: Callable[[str, int], Location]
) -> MatrixView:
    """Return a register as an open function's calls so far leave it, as a matrix."""
    element, count, value = element_type(message.said()), message.word(), message.word()
    texts = {message.word(): message.said() for _ in range(message.word())}
    raw = np.frombuffer(message.raw(message.word() * ENTRY_BYTES), _ENTRY)
    return register_view(_entries(raw, texts, place), value, element, count, core)


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
