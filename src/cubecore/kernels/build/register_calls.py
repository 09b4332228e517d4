"""The calls of a vector function while it is written, as rows of a program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.cache import BoundedCache
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.indexed_function import function_of
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import Entries
from cubecore.isa.vector.registers.vector_function import VectorFunction

_BASE_UNIT = 32
"""The base of a program is a multiple of so many bytes, so that alignment is that of addresses."""
_MOST_RESULTS, _MOST_SOURCES = 2, 3
_FUNCTIONS = BoundedCache[tuple[object, ...], VectorFunction](512)


class Row(NamedTuple):
    """One call on registers: numbers of values, variables and types, as `Entries` has them."""

    call: int
    place: int
    results: tuple[int, ...]
    sources: tuple[int, ...]
    mask: int
    variable: int
    address: int
    scalar: int


@dataclass(frozen=True, eq=False, slots=True)
class Issued:
    """The instruction that a vector function is, and where its operands begin."""

    template: VectorFunction
    addresses: tuple[int, ...]


class FunctionCalls:
    """The calls of a vector function, in their order.

    Values and variables are numbered; 0 stands for none. `by_values` says that values of
    registers decide what some calls access.
    """

    def __init__(self, where: Location) -> None:
        self.where = where
        self.by_values = False
        self._rows: list[Row] = []
        self._calls: dict[Call, int] = {}
        self._places: dict[Location, int] = {}
        self._values, self._variables = 1, 0  # 1 stands for registers that were never written

    def new_value(self) -> int:
        """Return the number of a new value."""
        self._values += 1
        return self._values

    def new_variable(self) -> int:
        """Return the number of a new register."""
        self._variables += 1
        return self._variables

    def take(
        self,
        call: Call,
        where: Location,
        *,
        results: tuple[int, ...] = (),
        sources: tuple[int, ...] = (),
        mask: int = 0,
        variable: int = 0,
        address: int = 0,
        scalar: int = 0,
    ) -> None:
        """Record a call."""
        number = self._calls.setdefault(call, len(self._calls))
        place = self._places.setdefault(where, len(self._places))
        self._rows.append(Row(number, place, results, sources, mask, variable, address, scalar))

    @property
    def entries(self) -> Entries:
        """The calls so far."""
        return self._entries(0)

    def issued(self) -> Issued | None:
        """Return the instruction that the body is; None if it has made no call.

        Raises
        ------
        RequestError
            If an instruction does not take the types of a call.
        """
        if not self._rows:
            return None
        touching = [row.address for row in self._rows if row.variable]
        # Where values decide what is accessed, that lies on no side of any base.
        base = 0 if self.by_values or not touching else min(touching) // _BASE_UNIT * _BASE_UNIT
        rows = [
            row._replace(address=row.address - base if row.variable else 0) for row in self._rows
        ]
        # Equal calls at equal distances are one instruction, whatever the base is: a program with
        # its data flow takes longer to make than to look up.
        key = self.where, tuple(self._calls), tuple(self._places), tuple(rows)
        template = _FUNCTIONS.get(key)
        if template is None:
            template = function_of(RegisterProgram(self._entries(base), self.where))
            _FUNCTIONS[key] = template
        starts = tuple(base + runs[0][0] for _, runs in template.spans)
        return Issued(template, starts)

    def _entries(self, base: int) -> Entries:
        rows = self._rows
        return Entries(
            table=tuple(self._calls),
            locations=tuple(self._places),
            calls=np.array([row.call for row in rows], np.intp),
            places=np.array([row.place for row in rows], np.intp),
            results=_padded([row.results for row in rows], _MOST_RESULTS),
            sources=_padded([row.sources for row in rows], _MOST_SOURCES),
            masks=np.array([row.mask for row in rows], np.uint32),
            variables=np.array([row.variable for row in rows], np.uint32),
            addresses=np.array(
                [row.address - base if row.variable else 0 for row in rows], np.int64
            ),
            scalars=np.array([row.scalar for row in rows], np.uint64),
        )


def _padded(rows: Sequence[tuple[int, ...]], width: int) -> NDArray[np.uint32]:
    return np.array([row + (0,) * (width - len(row)) for row in rows], np.uint32)
