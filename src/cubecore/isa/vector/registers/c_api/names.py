"""Every name of the C API on registers, with its overloads.

A name without a row of its own is that of its declaration (`c_api`), with the parameters of its
form.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

from cubecore.isa.vector.registers.c_api.conversions import conversions
from cubecore.isa.vector.registers.c_api.modes import BY_WIDTH, MODES
from cubecore.isa.vector.registers.c_api.moves import (
    BLOCK_MOVES,
    MOVED,
    MOVES,
    STREAM_STORES,
    STREAMS,
)
from cubecore.isa.vector.registers.c_api.signatures import (
    BINARY,
    SCALAR,
    SIGNATURES,
    CName,
    parameters_of,
)
from cubecore.isa.vector.registers.operation import RegisterOperation
from cubecore.isa.vector.registers.operations import catalogue

_OTHER_SIGNATURES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ExpSub": (BINARY,),
        "MulsCast": (SCALAR,),
        "GatherB": ("V dst, p src, v index, m mask", "V dst, p src, v index"),
    }
)
"""Parameters of instructions whose form has others."""


@cache
def c_names() -> Mapping[str, tuple[CName, ...]]:
    """Return every name of the C API on registers with its overloads."""
    found: defaultdict[str, list[CName]] = defaultdict(list)
    for row in (*conversions(), *_moves(), *_streams()):
        found[row.name].append(row)
    for operation in catalogue.operations().values():
        for row in _of(operation):
            found[row.name].append(row)
    return MappingProxyType({name: tuple(rows) for name, rows in found.items()})


def _of(operation: RegisterOperation) -> Iterator[CName]:
    """Yield the names of an instruction that is no move."""
    if operation.name in _MOVING:
        return
    signatures = _OTHER_SIGNATURES.get(operation.name) or SIGNATURES.get(operation.form, ())
    if operation.name in BY_WIDTH:
        form, widths = BY_WIDTH[operation.name]
        named = [(form.format(bits=bits), "", bits) for bits in widths]
    else:
        own = [(operation.c_api, "")] if operation.c_api else []
        named = [(name, mode, 0) for name, mode in MODES.get(operation.name, own)]
    for name, mode, bits in named:
        for signature in signatures:
            yield CName(name, operation.name, parameters_of(signature), mode, bits)


_MOVING = frozenset(
    {
        *(move.operation for move in MOVES),
        *(operation for _, operation, _ in (*STREAM_STORES, *BLOCK_MOVES)),
    }
)
"""Instructions whose names are in tables of their own."""


def _moves() -> Iterator[CName]:
    for move in MOVES:
        form = catalogue.operations()[move.operation].form
        name, mode = f"{move.function}{move.name}{move.after}", move.mode
        for signature in move.signatures or SIGNATURES[form]:
            yield CName(name, move.operation, parameters_of(signature), mode)
        moved = move.moved or MOVED.get(form)
        if moved is not None:
            name = f"{move.function}{move.name}_postupdate{move.after}"
            yield CName(name, move.operation, parameters_of(moved), mode, moves=True)


def _streams() -> Iterator[CName]:
    rows = (
        *((name, *row) for name, row in STREAMS.items()),
        *STREAM_STORES,
        *BLOCK_MOVES,
    )
    for name, operation, signature in rows:
        moves = name.endswith("_postupdate")
        yield CName(name, operation, parameters_of(signature), "UNALIGNED", moves=moves)
    yield CName("asc_copy", "", parameters_of("M dst, m src"))
