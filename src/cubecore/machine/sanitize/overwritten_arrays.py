"""Arrays of a local memory that share bytes: results in one that a write of the other destroys.

An access belongs to the arrays that hold all bytes that its line touches. Two sets of bytes are
rivals if they may belong to two arrays of which each has bytes of its own. A read of one array that
takes bytes from a write of its rival, over a result of its own, is a finding: no barrier fixes it.

Where no arrays are declared, two sets of bytes are rivals if they overlap in part. A read is one of
the first if it takes what is left of it, and none of the second beyond it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Mem
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.local_arrays import Extent, overlap_in_part
from cubecore.machine.sanitize.shadow_memory import Clash, MemoryAccess, Region, RegionAccess

_MOST_LOOKS = 32
"""Looks at the last writes of one set of bytes, which are slow."""
_MOST_UNDECIDED = 256
"""Reads that wait for the end, where the lines of a kernel have said whose array they touch."""
_BY_ADDRESSES = -1
"""Stands for the number of arrays that share bytes, where none are declared."""


class _Write(NamedTuple):
    """A write of a region, its pipe, and how many writes of the memory there were up to it."""

    region: Region
    pipe: int
    touch: MemoryAccess
    stamp: int


class _Read(NamedTuple):
    """A read that took what `over` wrote over `lost`."""

    region: Region
    pipe: int
    touch: MemoryAccess
    lost: _Write
    over: _Write


class OverwrittenArrays:
    """Judges the reads of a core's local memory.

    `watches`: arrays share bytes, or might. `judges`: so might bytes that were touched.
    """

    def __init__(self, mem: Mem, gm: GlobalMemory, report: Callable[[Clash], None]) -> None:
        self._mem, self._gm, self._report = mem, gm, report
        self.watches = self.judges = False
        self._sharing = 0
        self._looks: Counter[Region] = Counter()
        self._covered: dict[Region, _Write] = {}
        self._read: dict[Region, int] = {}
        self._owners: dict[tuple[int, str], tuple[frozenset[Extent], MemoryAccess]] = {}
        self._undecided: list[_Read] = []

    def update(self, regions: Iterable[Region], entered: Region) -> None:
        """Look at the arrays since the last region, of which regions may become rivals."""
        arrays = self._gm.local_arrays
        arrays.touch(self._mem, entered.low, entered.high)
        sharing = arrays.partial(self._mem)
        if arrays.by_addresses and not arrays.declares(self._mem):
            sharing = _BY_ADDRESSES
        if sharing == self._sharing:
            return
        self._sharing, self.watches, self.judges = sharing, sharing != 0, sharing > 0
        for known in (self._looks, self._covered, self._read, self._owners):
            known.clear()
        known_regions = list(regions)
        for region in known_regions:
            region.rivals = None
        for region in known_regions:
            for other, covers in region.near:
                if other.number <= region.number:
                    within = any(one is region and inside for one, inside in other.near)
                    self.meet(region, other, nested=covers or within)
            for touch in (touch for _, touch in region.writes.values()):
                self._belong(region, touch)

    def meet(self, one: Region, other: Region, *, nested: bool) -> None:
        """Take two regions that share bytes; `nested` if one lies within the other."""
        if self._sharing == _BY_ADDRESSES:
            if nested:
                return
        elif not any(
            overlap_in_part(first, second)
            for first in self._holders(one)
            for second in self._holders(other)
        ):
            return
        for region, rival in {(one, other), (other, one)}:
            region.rivals = [*(region.rivals or ()), rival]
        self.judges = True
        self._looks.clear()

    def _holders(self, region: Region) -> frozenset[Extent]:
        return self._gm.local_arrays.holders(self._mem, region.low, region.high)

    def _belong(self, region: Region, touch: MemoryAccess) -> None:
        """Note which arrays the bytes of an access are of: one of them may be its line's."""
        key, holders = (id(touch.where), touch.operand), self._holders(region)
        # A line that touches bytes of several arrays in a loop means the one that holds all of
        # them.
        if (known := self._owners.get(key)) is not None:
            holders &= known[0]
        self._owners[key] = holders, touch

    def _arrays_of(self, region: Region, touch: MemoryAccess) -> frozenset[Extent]:
        """Return the arrays that an access may be of.

        Of several that hold its bytes it is of those that hold all that its line touches, if any
        does.
        """
        holders = self._holders(region)
        known = self._owners.get((id(touch.where), touch.operand))
        return (holders if known is None else holders & known[0]) or holders

    def write(self, region: Region, touch: MemoryAccess) -> None:
        """Take a write; of what it covers the last writes are remembered."""
        if self._sharing == _BY_ADDRESSES:
            return
        self._belong(region, touch)
        for other, covers in region.near:
            if covers and other.writes and other.rivals and region in other.rivals:
                self._covered[other] = _last_write(other)

    def read(self, region: Region, pipe: int, touch: MemoryAccess) -> None:
        """Judge a read: report each result of its array that a rival lies over."""
        if self._sharing != _BY_ADDRESSES:
            self._belong(region, touch)
        # Most reads end here: arrays of one kernel seldom share bytes.
        contested = [other for other, _ in region.near if other.rivals]
        if contested and self._looks[region] < _MOST_LOOKS:
            pairs = list(self._pairs(region, contested))
            if pairs:
                self._looks[region] += 1
                last = _LastWrites(region)
                for lost, over in pairs:
                    if last.are_of(over, lost, survive=self._sharing == _BY_ADDRESSES):
                        self._judge(_Read(region, pipe, touch, lost, over))
        for other in contested:
            self._read[other] = other.stamp

    def finish(self) -> None:
        """Judge the reads of bytes that may have been of several arrays, by what is known now."""
        undecided, self._undecided = self._undecided, []
        for read in undecided:
            if self._is_decided(read):
                self._tell(read)

    def _pairs(
        self, region: Region, contested: Sequence[Region]
    ) -> Iterator[tuple[_Write, _Write]]:
        """Yield writes, and those of their rivals that may lie over them."""
        for over in (_last_write(other) for other in contested if other.writes):
            for rival in over.region.rivals or ():
                if rival not in contested:
                    continue
                writes = [self._covered[rival]] if rival in self._covered else []
                writes += [_last_write(rival)] if rival.writes else []
                for lost in writes:
                    # Overwritten before it was read; a write that came later is what the read is
                    # for.
                    if lost.stamp < over.stamp and self._may_be_read(region, lost, over):
                        yield lost, over

    def _may_be_read(self, region: Region, lost: _Write, over: _Write) -> bool:
        """Return whether a region may be read as the array of `lost`, not of `over`."""
        if self._sharing != _BY_ADDRESSES:
            return not self._renewed(region, lost, over)
        if lost.touch.where is over.touch.where or _rewritten(lost, over):
            return False
        one, other = lost.region, over.region
        inside = one.low <= region.low and region.high <= one.high
        around = region.low <= one.low and one.high <= region.high
        low, high = max(region.low, other.low), min(region.high, other.high)
        return inside or (around and one.low <= low and high <= one.high)

    def _renewed(self, region: Region, lost: _Write, over: _Write) -> bool:
        """Return whether the array of `lost` was written anew since `over`.

        Where `lost` was read before, any part of it that is read counts.
        """
        near, first = dict(lost.region.near), self._arrays_of(lost.region, lost.touch)
        was_read = self._read.get(lost.region) == lost.stamp
        return any(
            other.stamp > over.stamp
            and (was_read or other in near)
            and self._arrays_of(other, _last_write(other).touch) & first
            for other, _ in region.near
            if other.writes
        )

    def _judge(self, read: _Read) -> None:
        if self._sharing == _BY_ADDRESSES or self._is_decided(read):
            self._tell(read)
        elif len(self._undecided) < _MOST_UNDECIDED:
            self._undecided.append(read)

    def _is_decided(self, read: _Read) -> bool:
        """Return whether a read is one of the array of `lost`, and `over` is of another."""
        first, second = self._arrays(read)
        return bool(first and second) and not second & self._arrays_of(read.region, read.touch)

    def _arrays(self, read: _Read) -> tuple[frozenset[Extent], frozenset[Extent]]:
        """Return the arrays that are read and that `lost` may be of, and those of `over`."""
        lost, over = read.lost, read.over
        first = self._arrays_of(read.region, read.touch)
        first &= self._arrays_of(lost.region, lost.touch)
        return first, self._arrays_of(over.region, over.touch)

    def _tell(self, read: _Read) -> None:
        _, pipe, touch, lost, over = read
        common = over.region.touched.at(over.region.address).first_common(
            lost.region.touched.at(lost.region.address)
        )
        assert common is not None
        arrays: tuple[Extent, ...] = _span(lost.region), _span(over.region)
        if self._sharing != _BY_ADDRESSES:
            first, second = self._arrays(read)
            arrays = _shortest(first), _shortest(second)
        writes = lost.touch, lost.pipe, -1, over.touch, over.pipe
        self._report(Clash("overwritten", *writes, *common, reader=(pipe, touch), arrays=arrays))

    def extents(self, one: RegionAccess, other: RegionAccess) -> tuple[Extent, ...]:
        """Return the bytes of two arrays; without arrays what the accesses span."""
        if self._sharing == _BY_ADDRESSES:
            return _span(one.region), _span(other.region)
        first = self._arrays_of(one.region, one.touch)
        second = self._arrays_of(other.region, other.touch)
        if not first or not second or first & second:
            return ()
        return _shortest(first), _shortest(second)


def _span(region: Region) -> Extent:
    return region.low, region.high


def _shortest(arrays: Iterable[Extent]) -> Extent:
    return min(arrays, key=lambda extent: (extent[1] - extent[0], extent[0]))


def _last_write(region: Region) -> _Write:
    pipe, (_, touch) = next(reversed(region.writes.items()))
    return _Write(region, pipe, touch, region.stamp)


def _rewritten(lost: _Write, over: _Write) -> bool:
    """Return whether bytes of `lost` were written since `over`, but by its rivals."""
    rivals = lost.region.rivals or ()
    return any(
        other.writes and other.stamp > over.stamp and other not in rivals
        for other, _ in lost.region.near
    )


class _LastWrites:
    """The last write of each byte of a region."""

    def __init__(self, region: Region) -> None:
        self._ends = region.low, region.high
        written = [other for other, _ in region.near if other.writes]
        self._order = sorted(written, key=lambda other: other.stamp)
        self._last = np.full(region.high - region.low, -1, np.int32)
        for number, other in enumerate(self._order):
            self._last[_bytes(other, *self._ends)] = number
        self._last[~_bytes(region, *self._ends)] = -1

    def are_of(self, over: _Write, lost: _Write, *, survive: bool) -> bool:
        """Return whether bytes of `lost` are those of `over`; others must `survive`."""
        # Judged byte by byte: what was written since then over both hides the loss.
        destroyed = self._last[_bytes(lost.region, *self._ends)] == self._order.index(over.region)
        if not survive:
            return bool(destroyed.any())
        return bool(destroyed.any() and (self._last == self._order.index(lost.region)).any())


def _bytes(region: Region, low: int, high: int) -> NDArray[np.bool_]:
    """Return which of the bytes [low, high) a region has."""
    begin = region.address - low
    starts = np.clip(region.touched.starts + begin, 0, high - low)
    ends = np.clip(region.touched.ends + begin, 0, high - low)
    edges = np.bincount(starts, minlength=high - low + 1)
    edges -= np.bincount(ends, minlength=high - low + 1)
    inside: NDArray[np.bool_] = np.cumsum(edges[:-1]) > 0
    return inside
