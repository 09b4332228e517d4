"""What cores issued, in order: a million instructions in some tens of megabytes."""

from array import array
from collections.abc import Iterator

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.tree import Location

Recorded = tuple[Instruction, tuple[int, ...], Location]


class Names:
    """Numbers of templates and places; traces that share them compare by number.

    `kind_of` and `place_of` find them by the identity of those that were met first, which is faster
    than by value.
    """

    def __init__(self) -> None:
        self.templates: list[Instruction] = []
        self.places: list[Location] = []
        self.mems: list[tuple[Mem, ...]] = []
        self._kinds: dict[Instruction, int] = {}
        self._places: dict[Location, int] = {}
        self.kind_of: dict[int, int] = {}
        self.place_of: dict[int, int] = {}

    def kind(self, template: Instruction) -> int:
        """Return the number of a template."""
        found = self._kinds.get(template)
        if found is None:
            found = self._kinds[template] = len(self.templates)
            self.templates.append(template)
            self.kind_of[id(template)] = found
            self.mems.append(tuple(operand.mem for operand in template.operands()))
        return found

    def place(self, where: Location) -> int:
        """Return the number of a place."""
        found = self._places.get(where)
        if found is None:
            found = self._places[where] = len(self.places)
            self.places.append(where)
            self.place_of[id(where)] = found
        return found


class InstructionTrace:
    """Instructions with concrete addresses; equal templates and places are held once."""

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
    def places(self) -> list[Location]:
        """The places by their numbers."""
        return self.names.places

    def append(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Take the next instruction."""
        names = self.names
        kind, place = names.kind_of.get(id(template)), names.place_of.get(id(where))
        self.kinds.append(names.kind(template) if kind is None else kind)
        self.wheres.append(names.place(where) if place is None else place)
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
            place = self.names.places[self.wheres[number]]
            yield self.names.templates[kind], tuple(self.addresses[at:end]), place
            at = end
