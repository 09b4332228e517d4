"""Footprint of an operand: intervals of bytes from its address on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.scalar.store import valueless
from cubecore.layouts import Offsets, ascending

Bytes = NDArray[np.int64]
Outside = Sequence[tuple[int, "Footprint", bool]]
"""Operands in global memory by number, their bytes, and whether those are written."""


@dataclass(frozen=True, eq=False, slots=True)
class Footprint:
    """Bytes [starts, ends) in ascending order, apart from each other; all lie in [low, high).

    Compared by identity: equal templates share one.
    """

    starts: Bytes
    ends: Bytes
    low: int
    high: int

    @property
    def is_run(self) -> bool:
        """True if the bytes follow each other."""
        return self.starts.size == 1

    @staticmethod
    def of(starts: Bytes, ends: Bytes) -> "Footprint":
        """Return the footprint of at least one interval."""
        return Footprint(starts, ends, int(starts[0]), int(ends[-1]))

    @staticmethod
    def of_elements(touched: Offsets, bits: int) -> "Footprint":
        """Return the footprint of at least one element, by their offsets."""
        # Bits to bytes: a 4-bit element touches the byte that it lies in. Intervals that meet are
        # joined.
        elements = ascending(touched).astype(np.int64)
        starts, ends = elements * bits // 8, -(-(elements + 1) * bits // 8)
        apart = np.flatnonzero(starts[1:] > ends[:-1])
        return Footprint.of(
            starts[np.concatenate([[0], apart + 1])], ends[np.concatenate([apart, [ends.size - 1]])]
        )

    @staticmethod
    def run(low: int, high: int) -> "Footprint":
        """Return the footprint of the bytes [low, high)."""
        return Footprint.of(np.array([low]), np.array([high]))

    def at(self, address: int) -> "Footprint":
        """Return the footprint `address` bytes further on."""
        return Footprint.of(self.starts + address, self.ends + address)

    def first_common(self, other: "Footprint") -> tuple[int, int] | None:
        """Return the first run of bytes that both touch, or None."""
        if self.low >= other.high or other.low >= self.high:
            return None
        if self.is_run and other.is_run:
            return max(self.low, other.low), min(self.high, other.high)
        # For each interval of this one the first of the other that ends behind its start: they meet
        # if that one starts before its end.
        index = other.ends.searchsorted(self.starts, side="right")
        inside = index < other.starts.size
        meets = np.zeros(self.starts.size, bool)
        meets[inside] = other.starts[index[inside]] < self.ends[inside]
        if not meets.any():
            return None
        mine = int(np.argmax(meets))
        theirs = int(index[mine])
        low = max(self.starts[mine], other.starts[theirs])
        return int(low), int(min(self.ends[mine], other.ends[theirs]))

    def covers(self, other: "Footprint") -> bool:
        """True if every byte of `other` is touched."""
        if self.is_run or self.low > other.low or self.high < other.high:
            return self.low <= other.low and other.high <= self.high
        index = self.ends.searchsorted(other.starts, side="right")
        if index[-1] >= self.starts.size:
            return False
        whole = (self.starts[index] <= other.starts) & (other.ends <= self.ends[index])
        return bool(whole.all())


def footprints(template: Instruction) -> tuple[Footprint | None, ...]:
    """Return what each operand of a template touches; None where the mask lets nothing through."""
    return (_steered if template.steering else _footprints)(valueless(template))


def outside(template: Instruction) -> Outside:
    """Return what a template touches in global memory."""
    return [
        (number, touched, operand.access.writes)
        for number, operand in enumerate(template.operands())
        if operand.mem is Mem.GM and (touched := footprints(template)[number]) is not None
    ]


def _find(template: Instruction) -> tuple[Footprint | None, ...]:
    reaching = template.reaching()
    if reaching is not template:
        return footprints(reaching)
    return tuple(_of(template, operand) for operand in template.operands())


def _of(template: Instruction, operand: Operand) -> Footprint | None:
    offsets, active = template.offsets(operand.name), template.active(operand.name)
    touched = offsets[offsets >= 0] if active is None else offsets[active & (offsets >= 0)]
    if touched.size == 0:
        return None
    return Footprint.of_elements(touched, template.element(operand).bits)


_footprints = lru_cache(maxsize=4096)(_find)
_steered = lru_cache(maxsize=256)(_find)
"""Values steer a template as seldom twice alike as an index table changes."""
