"""The calls of a vector function's program: as they were issued, and as steps with their data flow.

A step stands for all trips of the loops around it: its addresses and scalars have an axis for each.
"""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.folding import Indices
from cubecore.isa.vector.registers.operation import (
    BY_VALUES,
    LOADS_MEMORY,
    STORES_MEMORY,
    Call,
)
from cubecore.isa.vector.registers.operations.moves import LOADS, STORES

NONE = -1
"""Stands for a leaf where a register was never written."""


@dataclass(frozen=True, eq=False, slots=True)
class Entries:
    """The calls of a body in their order, as columns.

    `calls` are the numbers of distinct calls in `table`, and `places` those of their lines;
    `results` and `sources` the numbers of values, 0 for none, `masks` the values that are masks;
    `variables` are the registers' variables of loads and stores. `addresses` count from the
    program's base.
    """

    table: tuple[Call, ...]
    locations: tuple[Location, ...]
    calls: Indices
    places: Indices
    results: NDArray[np.uint32]
    sources: NDArray[np.uint32]
    masks: NDArray[np.uint32]
    variables: NDArray[np.uint32]
    addresses: NDArray[np.int64]
    scalars: NDArray[np.uint64]

    def until(self, count: int) -> "Entries":
        """Return the first calls alone."""
        columns = {
            each.name: getattr(self, each.name)[:count]
            for each in fields(self)
            if each.name not in {"table", "locations"}
        }
        return replace(self, **columns)


@dataclass(frozen=True, eq=False, slots=True)
class ValueSource:
    """The origin of a value that a call takes: the leaf that made it, and one of its results.

    With a `level`, on the first trip of that loop it is `initial` instead; a leaf of NONE was
    never made.
    """

    leaf: int
    result: int
    level: int = NONE
    initial: "ValueSource | None" = None


class Pieces(NamedTuple):
    """Bytes [low, high) that a step's accesses touch, with the entry of each, in their order."""

    entries: Indices
    low: NDArray[np.int64]
    high: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Landed:
    """The bytes of UB that a step accesses, which values of registers have decided.

    `low` are the first bytes of pieces and `sizes` how many of their `unit` bytes are touched; they
    are shaped by the loops around the step, with an axis for the pieces behind.
    """

    low: NDArray[np.int64]
    sizes: NDArray[np.int64]
    unit: int


@dataclass(frozen=True, eq=False, slots=True)
class RegisterStep:
    """A call in the program: what it is, where it stands, what it takes.

    `levels` are the numbers of the loops around it, the outermost first; `addresses` and `scalars`
    have an axis for each, and so have `extents`, the bytes of UB that an access touches from its
    address on. Stores that are not `exact` may leave some of theirs: a mask of values decides.
    `landed` is of accesses where values of registers say, None before those are known: none of
    their bytes are then. `strides` say how far `addresses` are apart along each axis, None where
    that is uneven.
    """

    call: Call
    location: Location
    number: int
    levels: tuple[int, ...]
    sources: tuple[ValueSource, ...]
    mask: ValueSource | None
    addresses: NDArray[np.int64]
    scalars: NDArray[np.uint64]
    entries: Indices
    extents: NDArray[np.int64]
    exact: bool
    strides: tuple[int, ...] | None
    landed: Landed | None = None

    @property
    def pieces(self) -> Pieces:
        """The bytes of UB that the accesses touch."""
        if self.landed is None:
            low = self.addresses.reshape(-1)
            return Pieces(self.entries.reshape(-1), low, low + self.extents.reshape(-1))
        on = self.landed.sizes > 0
        low = self.landed.low[on]
        entries = np.broadcast_to(self.entries[..., None], on.shape)[on]
        return Pieces(entries, low, low + self.landed.sizes[on])

    @property
    def by_values(self) -> bool:
        """True if values of registers say where in UB it accesses."""
        return self.call.operation.form in BY_VALUES

    @property
    def stores(self) -> bool:
        """True if it writes to UB."""
        return self.call.operation.form in STORES_MEMORY

    @property
    def loads(self) -> bool:
        """True if it reads UB."""
        return self.call.operation.form in LOADS_MEMORY

    @property
    def span(self) -> int:
        """Bytes of UB of an access whose lanes are all active."""
        return span_of(self.call)


@dataclass(frozen=True, eq=False, slots=True)
class PlannedStep:
    """A step without a mask whose trips all run at once: where its inputs and its bytes are.

    An input is a step's result, with so many axes of length 1 behind those that it has. `part` is
    the number of the part of UB that the step loads from or `stores` to, in bytes [low, high) of
    it, its bytes `as_is` or in another order; a store that `replaces` is the only one there, and of
    the whole part.
    """

    step: RegisterStep
    inputs: tuple[tuple[int, int, int], ...]
    scalars: NDArray[np.uint64]
    shape: tuple[int, ...] = ()
    part: int = NONE
    low: int = 0
    high: int = 0
    stores: bool = False
    as_is: bool = False
    replaces: bool = False


def strides_of(addresses: NDArray[np.int64]) -> tuple[int, ...] | None:
    """Return how far addresses are apart along each axis; None where they are so unevenly."""
    strides = []
    for axis in range(addresses.ndim):
        steps = np.diff(addresses, axis=axis)
        first = int(steps.reshape(-1)[0]) if steps.size else 0
        if steps.size and (steps != first).any():
            return None
        strides.append(first)
    return tuple(strides)


def span_of(call: Call) -> int:
    """Return the bytes of UB that a call touches where all lanes are active.

    0 of calls that touch none, or where values of registers say.
    """
    form = call.operation.form
    if form in BY_VALUES:
        return 0
    if form in STORES_MEMORY:
        return STORES[call.mode].span
    return LOADS[call.mode].span if form in LOADS_MEMORY else 0


def block_of(call: Call) -> int | None:
    """Return which block of a register a call of a strided move is for; None of other calls."""
    number = call.mode.removeprefix("BLOCK")
    return int(number) if number.isdecimal() and number != call.mode else None
