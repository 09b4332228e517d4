"""What one core issued, in order: a million instructions in some tens of megabytes."""

from array import array
from collections.abc import Iterator

from cubecore.isa.program import Location
from cubecore.isa.spec import Instruction

Recorded = tuple[Instruction, tuple[int, ...], Location]


class Trace:
    """Instructions with concrete addresses; equal templates and places are held once."""

    def __init__(self) -> None:
        self.templates: list[Instruction] = []
        self.places: list[Location] = []
        self.kinds = array("I")
        self.wheres = array("I")
        self.addresses = array("q")
        self._starts = array("Q")
        self._kind_of: dict[Instruction, int] = {}
        self._place_of: dict[Location, int] = {}

    def append(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Take the next instruction."""
        kind = self._kind_of.get(template)
        if kind is None:
            kind = self._kind_of[template] = len(self.templates)
            self.templates.append(template)
        place = self._place_of.get(where)
        if place is None:
            place = self._place_of[where] = len(self.places)
            self.places.append(where)
        self.kinds.append(kind)
        self.wheres.append(place)
        self._starts.append(len(self.addresses))
        self.addresses.extend(addresses)

    def __len__(self) -> int:
        return len(self.kinds)

    def at(self, number: int) -> Recorded:
        """Return an instruction by its number."""
        template = self.templates[self.kinds[number]]
        start = self._starts[number]
        end = start + len(template.operands())
        return template, tuple(self.addresses[start:end]), self.places[self.wheres[number]]

    def __iter__(self) -> Iterator[Recorded]:
        return (self.at(number) for number in range(len(self)))
