"""Buffers of a vector core that there are two of, for a tile and the next one."""

from collections.abc import Mapping
from dataclasses import dataclass

from cubecore.isa.program.expr import Expr
from cubecore.units import align_up

_UNIT_BYTES = 256


@dataclass(frozen=True, slots=True)
class DoubleBuffers:
    """The place of the first of two buffers in UB, and bytes to the second; and where all end."""

    places: Mapping[str, tuple[int, int]]
    end: int

    @classmethod
    def side_by_side(cls, sizes: Mapping[str, int]) -> "DoubleBuffers":
        """Return buffers of so many bytes, each beside its second one."""
        places, at = {}, 0
        for name, size in sizes.items():
            apart = align_up(size, _UNIT_BYTES)
            places[name] = at, apart
            at += 2 * apart
        return cls(places, at)

    @classmethod
    def in_regions(cls, sizes: Mapping[str, int]) -> "DoubleBuffers":
        """Return buffers of so many bytes in two regions that are alike.

        A vector function finds all that it accesses at the same distances from its region's begin.
        """
        whole = {name: align_up(size, _UNIT_BYTES) for name, size in sizes.items()}
        places, at, apart = {}, 0, sum(whole.values())
        for name, size in whole.items():
            places[name] = at, apart
            at += size
        return cls(places, 2 * apart)

    def first(self, name: str) -> int:
        """Return where the first one of a name lies."""
        return self.places[name][0]

    def of(self, name: str, event: Expr) -> Expr:
        """Return the one of a turn."""
        at, apart = self.places[name]
        return event * apart + at
