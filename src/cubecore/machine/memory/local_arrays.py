"""Arrays that a launch's kernels declare in local memories: which bytes belong together.

Instructions carry addresses alone. Where two arrays share bytes, the array that an access belongs
to is the one that holds all of its bytes. One that an access leaves for the next array is in truth
as long as that access.
"""

from cubecore.isa.declare.instruction import Mem

Extent = tuple[int, int]
"""Bytes [low, high) of a local memory."""

_MOST = 64
"""Arrays of a memory that are told apart; a kernel with more takes pieces of it as it likes."""
_MOST_LONGER = 8
"""Arrays of a memory that accesses make longer."""


class LocalArrays:
    """The arrays of a launch, which every core of one kind declares alike.

    `by_addresses`: the kernels may use addresses in memories without declaring arrays there.
    """

    def __init__(self, *, by_addresses: bool = False) -> None:
        self.by_addresses = by_addresses
        self._extents: dict[Mem, list[Extent]] = {}
        self._partial: dict[Mem, int] = {}
        self._holders: dict[tuple[Mem, int, int], frozenset[Extent]] = {}
        self._longer: dict[Mem, int] = {}

    def declare(self, mem: Mem, low: int, high: int) -> None:
        """Take an array in bytes [low, high) of a memory."""
        known = self._extents.setdefault(mem, [])
        if low >= high or (low, high) in known or len(known) > _MOST:
            return
        if any(overlap_in_part((low, high), other) for other in known):
            self._partial[mem] = self._partial.get(mem, 0) + 1
        known.append((low, high))
        self._holders.clear()
        if len(known) > _MOST:
            self._partial[mem] = 0

    def touch(self, mem: Mem, low: int, high: int) -> None:
        """Take an access of bytes [low, high): one that ends in the next array makes its longer."""
        arrays = self._extents.get(mem)
        if not arrays or self.holders(mem, low, high):
            return
        own = max((one for one in arrays if one[0] <= low < one[1]), default=None)
        if own is None or self._longer.get(mem, 0) == _MOST_LONGER:
            return
        longer = own[0], high
        if any(own[1] <= other[0] and overlap_in_part(longer, other) for other in arrays):
            self._longer[mem] = self._longer.get(mem, 0) + 1
            self.declare(mem, *longer)

    def declares(self, mem: Mem) -> bool:
        """Return whether some array was declared in a memory."""
        return bool(self._extents.get(mem))

    def partial(self, mem: Mem) -> int:
        """Return how many arrays of a memory share some of their bytes with one before."""
        return self._partial.get(mem, 0)

    def holders(self, mem: Mem, low: int, high: int) -> frozenset[Extent]:
        """Return the arrays that hold all of the bytes [low, high)."""
        held = self._holders.get((mem, low, high))
        if held is None:
            arrays = self._extents.get(mem, ())
            held = frozenset(one for one in arrays if one[0] <= low and high <= one[1])
            self._holders[mem, low, high] = held
        return held


def overlap_in_part(one: Extent, other: Extent) -> bool:
    """Return whether two arrays share bytes, and each has some of its own."""
    (low, high), (start, end) = sorted((one, other))
    return low < start < high < end
