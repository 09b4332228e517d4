"""Recorded traces: the instructions that cores issued, in order, compactly."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.tree import Location

Recorded = tuple[Instruction, tuple[int, ...], Location]


class OperandPlaces:
    """The operands of templates by their numbers: how many, and which lie in global memory.

    A kernel may have a template for each value that it stores: only new ones are looked at.
    """

    def __init__(self) -> None:
        self._count = 0
        self._widths = np.zeros(_ROOM, np.intp)
        self._in_gm: list[NDArray[np.bool_]] = []

    @property
    def widths(self) -> NDArray[np.intp]:
        """The number of operands of each template."""
        return self._widths[: self._count]

    def extend(self, mems: Sequence[tuple[Mem, ...]]) -> None:
        """Take the templates that are new among all of them."""
        if self._count == len(mems):
            return
        if len(mems) > self._widths.size:
            room = 2 * len(mems)
            self._widths = np.resize(self._widths, room)
            self._in_gm = [_with_room(of_operand, room) for of_operand in self._in_gm]
        for kind in range(self._count, len(mems)):
            of_kind = mems[kind]
            self._widths[kind] = len(of_kind)
            while len(self._in_gm) < len(of_kind):
                self._in_gm.append(np.zeros(self._widths.size, bool))
            for number, mem in enumerate(of_kind):
                self._in_gm[number][kind] = mem is Mem.GM
        self._count = len(mems)

    def of_issues(self, kinds: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which of some issues' addresses lie in global memory, and which do not."""
        # ends - widths is where each issue's addresses begin in the flat array: a whole trace is
        # split into global and local addresses by at most as many steps as an instruction has
        # operands.
        widths = self.widths[kinds]
        ends = np.cumsum(widths)
        local = np.ones(int(ends[-1]) if ends.size else 0, bool)
        for number, in_gm in enumerate(self._in_gm):
            issues = in_gm[kinds]
            local[(ends - widths)[issues] + number] = False
        return np.flatnonzero(~local), np.flatnonzero(local)


_ROOM = 64
"""Templates for which there is room at first."""


def _with_room(of_operand: NDArray[np.bool_], room: int) -> NDArray[np.bool_]:
    """Return marks of templates with room for more of them."""
    wider = np.zeros(room, bool)
    wider[: of_operand.size] = of_operand
    return wider


def _no_callers(_: Iterable[Location]) -> Mapping[int, Location]:
    return {}


class Names:
    """Numbers of issue templates and source locations; traces that share them compare by number.

    `kind_of` and `location_of` find them by the identity of those that came first, which is
    faster than by value. `with_callers` returns locations with the calls that led there, by the
    identity of each, where the front end that recorded knows them.
    """

    def __init__(self) -> None:
        self.templates: list[Instruction] = []
        self.locations: list[Location] = []
        self.mems: list[tuple[Mem, ...]] = []
        self._kinds: dict[Instruction, int] = {}
        self._locations: dict[Location, int] = {}
        self.to_partner: set[int] = set()
        """Those that are copies into a memory of another part, from no core yet."""
        self.kind_of: dict[int, int] = {}
        self.location_of: dict[int, int] = {}
        self._operands = OperandPlaces()
        self.with_callers: Callable[[Iterable[Location]], Mapping[int, Location]] = _no_callers

    def operands(self) -> OperandPlaces:
        """Return the operands of the templates that there are."""
        self._operands.extend(self.mems)
        return self._operands

    def kind(self, template: Instruction) -> int:
        """Return the number of a template."""
        number = self._kinds.get(template)
        if number is None:
            number = self._kinds[template] = len(self.templates)
            self.templates.append(template)
            self.kind_of[id(template)] = number
            self.mems.append(tuple(operand.mem for operand in template.operands()))
            if template.to_partner:
                self.to_partner.add(number)
        return number

    def new_location_number(self, where: Location) -> int:
        """Return a number that no place has, for this one."""
        number = len(self.locations)
        self._locations.setdefault(where, number)
        self.locations.append(where)
        self.location_of[id(where)] = number
        return number

    def location_number(self, where: Location) -> int:
        """Return the number of a place; those that calls are known of have numbers of their own."""
        known = self.location_of.get(id(where)) if where.callers else self._locations.get(where)
        return self.new_location_number(where) if known is None else known


class InstructionTrace:
    """Instructions with concrete addresses; equal templates and locations are held once."""

    def __init__(self, names: Names | None = None) -> None:
        self.names = names or Names()
        self.kinds = array("I")
        self.wheres = array("I")
        self.addresses = array("q")

    @property
    def templates(self) -> list[Instruction]:
        """The templates by their numbers."""
        return self.names.templates

    @property
    def locations(self) -> list[Location]:
        """The source locations by their numbers."""
        return self.names.locations

    def append(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Take the next instruction."""
        names = self.names
        kind, location_number = names.kind_of.get(id(template)), names.location_of.get(id(where))
        self.kinds.append(names.kind(template) if kind is None else kind)
        self.wheres.append(
            names.location_number(where) if location_number is None else location_number
        )
        self.addresses.extend(addresses)

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[Recorded]:
        return self.part(0, len(self))

    def part(self, start: int, stop: int, address: int | None = None) -> Iterator[Recorded]:
        """Yield instructions by number; `address` is where the first one's stand, if known."""
        widths = [len(mems) for mems in self.names.mems]
        at = sum(widths[k] for k in self.kinds[:start]) if address is None else address
        for number in range(start, stop):
            kind = self.kinds[number]
            end = at + widths[kind]
            location_number = self.names.locations[self.wheres[number]]
            yield self.names.templates[kind], tuple(self.addresses[at:end]), location_number
            at = end
