"""Global memory that cores in lockstep share: whose accesses of the same bytes signals order.

A region is a footprint that a group's first core touches by one pipe; the group's other cores touch
the same bytes at their distances. Regions know which others they meet, core by core, so that an
access looks at those alone. Two cores that meet unordered would have another result, or a race, in
another order of execution: lockstep ends there, and the reference engine says which.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.machine.group.sanitize.aliasing import Distances
from cubecore.machine.group.sanitize.divergence import UnorderedError
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitize.happens_before import CoreOrder
from cubecore.units import distinct

_Numbers = NDArray[np.int64]
_Key = tuple[int, Footprint, int, int, bool]
"""A class, a footprint, its address, the pipe, and whether it is written."""


class SharedRegion:
    """Bytes that one pipe of a group's cores touches, and its last instruction there by number."""

    __slots__ = ("address", "kind", "near", "number", "pipe", "touched")

    def __init__(self, kind: "_Class", touched: Footprint, address: int, pipe: int) -> None:
        self.kind, self.touched, self.address, self.pipe = kind, touched, address, pipe
        self.number = 0
        self.near: list[_Near] = []


class _Near:
    """Another region of which cores touch what this one's cores do.

    `rows` are this group's cores, by their places in it, and `cores` the other's by their numbers
    in the launch; `in_group`: a core meets itself. `seen` is the last number known to be ordered.
    """

    __slots__ = ("cores", "in_group", "other", "rows", "seen")

    def __init__(
        self, other: SharedRegion, rows: _Numbers, cores: _Numbers, *, in_group: bool
    ) -> None:
        self.other, self.rows, self.cores, self.in_group = other, rows, cores, in_group
        self.seen = 0


class _Many:
    """Regions with the ends of what their first core touches, in arrays that grow."""

    def __init__(self) -> None:
        self.regions: list[SharedRegion] = []
        self._ends = np.zeros((2, 64), np.int64)

    def add(self, region: SharedRegion) -> None:
        """Take one more."""
        count = len(self.regions)
        if count == self._ends.shape[1]:
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)], axis=1)
        self._ends[0, count] = region.touched.low + region.address
        self._ends[1, count] = region.touched.high + region.address
        self.regions.append(region)

    def meeting(self, low: int, high: int, far: _Numbers) -> list[tuple[SharedRegion, _Numbers]]:
        """Return what may share a byte with [low, high) moved by some of `far`, and by which."""
        count = len(self.regions)
        # [start, end) of the other meets [low + f, high + f) for the distances f with start - high
        # < f < end - low. `far` ascends, so that these are a slice, found for all regions by two
        # binary searches.
        starts, ends = self._ends[:, :count]
        first = far.searchsorted(starts - high, side="right")
        last = far.searchsorted(ends - low, side="left")
        hits = np.flatnonzero(last > first)
        return [(self.regions[n], far[first[n] : last[n]]) for n in hits.tolist()]


class _Class:
    """The regions of a group at one set of distances in a tensor, read and written."""

    def __init__(self, group: int, cores: _Numbers, far: Distances) -> None:
        self.group, self.cores, self.far = group, cores, far.values
        self.distances = far  # kept, as its identity tells classes apart
        self.read, self.written = _Many(), _Many()


class _Between:
    """Distances between the cores of one class and those of another, each with its cores."""

    def __init__(self, one: _Class, other: _Class) -> None:
        # [cores of one, cores of other]: two cores meet where their bases differ by what separates
        # their distances. Pairs of a core with itself are kept apart: there its own program order
        # decides, not a signal.
        far = one.far[:, None] - other.far[None, :]
        same = one.cores[:, None] == other.cores[None, :]
        rows, columns = np.nonzero(~same)
        values = far[rows, columns]
        order = np.argsort(values, kind="stable")
        self._sorted, self._rows, self._columns = values[order], rows[order], columns[order]
        self.far = distinct(values)
        in_group = one.group == other.group and one is not other
        self.in_group = distinct(far[same]) if in_group else np.zeros(0, np.int64)

    def cores(self, far: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Return the places of both classes' cores that lie at some of the distances."""
        first = self._sorted.searchsorted(far, side="left")
        last = self._sorted.searchsorted(far, side="right")
        indices = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
        return self._rows[indices], self._columns[indices]


class _Table:
    """The regions of one tensor."""

    def __init__(self) -> None:
        self.regions: dict[_Key, SharedRegion] = {}
        self._classes: dict[tuple[int, int], _Class] = {}
        self._between: dict[tuple[int, int], _Between] = {}

    def kind(self, group: int, cores: _Numbers, far: Distances) -> _Class:
        """Return the class of a group at its present distances."""
        key = group, id(far)
        kind = self._classes.get(key)
        if kind is None:
            kind = self._classes[key] = _Class(group, cores, far)
        return kind

    def enter(self, region: SharedRegion, *, writes: bool) -> None:
        """Take a new region, and let it and those that it meets know each other."""
        # The expensive search runs once per new region: from then on each access compares numbers
        # with the regions in `near` only. A read needs to know writes, a write both.
        kind = region.kind
        low, high = region.touched.low + region.address, region.touched.high + region.address
        for other in self._classes.values():
            between = self._between.get((id(kind), id(other)))
            if between is None:
                between = self._between[id(kind), id(other)] = _Between(kind, other)
            for many in (other.written, other.read) if writes else (other.written,):
                if not many.regions:
                    continue
                for earlier, far in many.meeting(low, high, between.far):
                    _introduce(region, earlier, between, _exactly(region, earlier, far))
                for earlier, far in many.meeting(low, high, between.in_group):
                    if _exactly(region, earlier, far).size:
                        _introduce_in_group(region, earlier)
        if writes:
            self._require_apart(region, low, high)
        (kind.written if writes else kind.read).add(region)

    def _require_apart(self, region: SharedRegion, low: int, high: int) -> None:
        """Require that no two cores of a group write the same byte by one instruction."""
        alone = _Many()
        alone.add(region)
        between = self._between[id(region.kind), id(region.kind)]
        for other, far in alone.meeting(low, high, between.far):
            if _exactly(region, other, far).size:
                raise UnorderedError("cores that write the same bytes at once")


class SharedMemory:
    """The accesses of global memory by all groups of a launch."""

    def __init__(self) -> None:
        self._tables: dict[int, _Table] = {}

    def touch(
        self,
        order: CoreOrder,
        tensor: int,
        far: Distances,
        footprint: Footprint,
        address: int,
        pipe: int,
        number: int,
        *,
        writes: bool,
    ) -> None:
        """Enter an access of the first core's bytes in a tensor, and the others' at distances.

        It is that of the pipe's instruction of this number.

        Raises
        ------
        UnorderedError
            If another core touched the same bytes, one of the two writes, and no signal orders
            them.
        """
        table = self._tables.get(tensor)
        if table is None:
            table = self._tables[tensor] = _Table()
        kind = table.kind(id(order), order.cores, far)
        key = id(kind), footprint, address, pipe, writes
        region = table.regions.get(key)
        if region is None:
            region = SharedRegion(kind, footprint, address, pipe)
            table.enter(region, writes=writes)
            table.regions[key] = region
        # Numbers of a pipe's instructions grow, and knowledge of other cores never shrinks: once an
        # instruction of another region was known to be ordered before this one, it is not looked at
        # again until that region has a later one.
        for near in region.near:
            other = near.other
            last = other.number
            if near.seen < last:
                _require_ordered(order, near, pipe, number)
                near.seen = last
        region.number = number


def _require_ordered(order: CoreOrder, near: _Near, pipe: int, number: int) -> None:
    """Require that all which another region's cores did is known to those that meet them."""
    # `foreign[row, core, pipe]` is the vector clock: the last instruction of that pipe of that core
    # which happened before the present instruction of this row.
    last, before = near.other.number, near.other.pipe
    if near.rows.size and (order.foreign[near.rows, near.cores, before] < last).any():
        raise UnorderedError("cores that touch the same bytes in no order")
    is_itself = (pipe, number) == (before, last)
    if near.in_group and order.done[pipe][before] < last and not is_itself:
        raise UnorderedError("a core that touches the same bytes in no order")


def _introduce(region: SharedRegion, other: SharedRegion, between: _Between, far: _Numbers) -> None:
    """Let two regions know each other where they meet."""
    if not far.size:
        return
    mine, theirs = between.cores(far)
    region.near.append(_Near(other, mine, other.kind.cores[theirs], in_group=False))
    other.near.append(_Near(region, theirs, region.kind.cores[mine], in_group=False))


def _introduce_in_group(region: SharedRegion, other: SharedRegion) -> None:
    nobody = np.zeros(0, np.int64)
    region.near.append(_Near(other, nobody, nobody, in_group=True))
    other.near.append(_Near(region, nobody, nobody, in_group=True))


def _exactly(region: SharedRegion, other: SharedRegion, far: _Numbers) -> _Numbers:
    """Return by which distances the bytes of two regions themselves meet."""
    if region.touched.is_run and other.touched.is_run:
        return far
    apart = region.address - other.address
    hits = [_meets(other.touched, region.touched, apart + int(f)) for f in far]
    meeting: _Numbers = far[np.array(hits, bool)]
    return meeting


@lru_cache(maxsize=65536)
def _meets(one: Footprint, other: Footprint, distance: int) -> bool:
    return one.first_common(other.at(distance)) is not None
