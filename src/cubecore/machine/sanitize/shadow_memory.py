"""Shadow memory for race detection: last readers and writers of each byte of a core's memories.

That of global memory is `global_shadow`.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import NamedTuple, Protocol

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import LEFT
from cubecore.isa.program.tree import Location
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitize.happens_before import CoreOrder

_MOST_REGIONS = 512
"""Regions that are kept before those of no consequence are dropped."""


@dataclass(frozen=True, slots=True)
class Special:
    """The state that instructions touch besides memories, as bytes of its own."""

    label: str


REGISTERS = Special("the special registers")
_REGISTER_BYTES = 16
_RUNS = {
    name: Footprint.run(_REGISTER_BYTES * number, _REGISTER_BYTES * (number + 1))
    for number, name in enumerate(LEFT)
}
_LABELS = {
    "cmp_mask": "CMPMASK",
    "kept": "RSVD_CNT",
    "stored_by_ar": "AR",
    "extreme": "MAX_MIN_CNT",
    "merged": "VMS4_SR",
    "atomic_old": "the old value of atomic operations",
}
_LABELS |= {"suppressed": "the suppression register"}


class MemoryAccess(NamedTuple):
    """One operand of an instruction: what touches memory, and how.

    `atomic` names the operation of an atomic store; two of the same may meet. `makes` says that
    what is written was computed from memory and is all that there is of the result.
    """

    template: Instruction
    operand: str
    mem: Mem | Special
    reads: bool
    writes: bool
    where: Location
    atomic: str = ""
    makes: bool = False


class Clash(NamedTuple):
    """Two touches of the same bytes [low, high); pipes and cores by number, -1 for the own core.

    Nothing orders them (raw, war, waw), or the later one overwrites unread results (unread), or
    those that `reader` takes (overwritten). `arrays` are the bytes of two that share some.
    """

    kind: str
    earlier: MemoryAccess
    earlier_pipe: int
    earlier_core: int
    later: MemoryAccess
    later_pipe: int
    low: int
    high: int
    later_core: int = -1
    reader: tuple[int, MemoryAccess] | None = None
    arrays: tuple[tuple[int, int], ...] = ()


Report = tuple[Callable[[Clash], None], Callable[[str, MemoryAccess, MemoryAccess], bool]]
"""Reports a clash; and counts one of two touches reported before, False if they were not."""
Touched = tuple[Footprint, int, MemoryAccess]
"""A footprint, the address that it counts from, and what touches it."""


def register_touch(template: Instruction, where: Location) -> Touched | None:
    """Return how an instruction uses a register that others leave, or None if it does not."""
    name = template.register
    if not name:
        return None
    writes = type(template).leaves is not Instruction.leaves
    touch = MemoryAccess(template, _LABELS[name], REGISTERS, not writes, writes, where)
    return _RUNS[name], 0, touch


Numbered = tuple[int, MemoryAccess]

Key = tuple[Footprint | int, int]
"""A footprint and its address, or the ends of a run of bytes."""


class Region:
    """A set of bytes that some operand touches, and for each pipe its last read and write there.

    `near` holds every region that shares a byte and may race with it, itself included, and whether
    it lies within; of two that are only read neither knows the other. `number` counts the regions,
    `written` those that are written, each from its first write. `fresh` is the result that was left
    there, and its pipe, as long as nobody has read a byte of it. `stamp` counts the writes of the
    memory up to its last one; `rivals` are regions of other arrays that share bytes with it.
    """

    __slots__ = (
        *("address", "fresh", "high", "is_run", "low", "near", "number", "reads", "rivals"),
        *("stamp", "touched", "writes", "written"),
    )

    def __init__(self, touched: Footprint, address: int, number: int) -> None:
        self.touched, self.address, self.number = touched, address, number
        self.low, self.high = touched.low + address, touched.high + address
        self.is_run = touched.is_run
        self.near: list[tuple[Region, bool]] = [(self, True)]
        self.written: int | None = None
        self.reads: dict[int, Numbered] = {}
        self.writes: dict[int, Numbered] = {}
        self.fresh: Numbered | None = None
        self.stamp = 0
        self.rivals: list[Region] | None = None


class RegionAccess(NamedTuple):
    """An access of a region by a pipe."""

    region: Region
    pipe: int
    touch: MemoryAccess


class Arrays(Protocol):
    """Judges reads of arrays that share bytes with others."""

    watches: bool
    judges: bool

    def update(self, regions: Iterable[Region], entered: Region) -> None:
        """Look at the arrays that were declared since, and at a region that is new."""

    def meet(self, one: Region, other: Region, *, nested: bool) -> None:
        """Take two regions that share bytes, if it watches."""

    def write(self, region: Region, touch: MemoryAccess) -> None:
        """Take a write that is about to be made, if it judges."""

    def read(self, region: Region, pipe: int, touch: MemoryAccess) -> None:
        """Judge a read, if it does."""

    def finish(self) -> None:
        """Judge what was left for the end."""

    def extents(self, one: RegionAccess, other: RegionAccess) -> tuple[tuple[int, int], ...]:
        """Return the bytes of the arrays of two rivals; none where they may be of one."""
        ...


@lru_cache(maxsize=65536)
def _relation(one: Footprint, other: Footprint, distance: int) -> tuple[bool, bool] | None:
    """Return whether each lies within the other; None where they share no byte.

    The same for every core, and for the next launch.
    """
    far = other.at(distance)
    if one.first_common(far) is None:
        return None
    return one.covers(far), far.covers(one)


_LOCAL_PAGE_BYTES = 4096
_CELL_BYTES = 64
_SMALL_BYTES = 256
"""The size of a region that is small: it is looked up in the cells of its page."""


def _local_pages(region: Region, size: int = _LOCAL_PAGE_BYTES) -> range:
    low, high = region.low, region.high
    return range(low // size, max(high - 1, low) // size + 1)


def _is_small(region: Region) -> bool:
    return region.high - region.low <= _SMALL_BYTES


def _by_write(regions: Iterable[Region]) -> list[Region]:
    """Return the regions that are written, by their first write."""
    written = [(region.written, region) for region in regions if region.written is not None]
    return [region for _, region in sorted(written, key=itemgetter(0))]


class LocalShadow:
    """The shadow of one core's local memory.

    Kernels touch few distinct sets of bytes, again and again. Each set is a region that knows the
    regions it meets, so that an access looks at those alone and never at bytes. A new one looks
    for those it meets in the pages of memory that it touches: a small one for small ones in their
    cells, and for others in their pages. `uses` says that unread results are reported; `arrays`
    judges reads of arrays that share bytes.
    """

    def __init__(
        self, order: CoreOrder, report: Report, *, uses: bool, arrays: Arrays | None = None
    ) -> None:
        self._order, self._uses, self._arrays = order, uses, arrays
        self._report, self._again = report
        self._regions: dict[Key, Region] = {}
        self._pages: dict[int, list[Region]] = {}
        self._large: dict[int, list[Region]] = {}
        self._cells: dict[int, list[Region]] = {}
        self._entered = self._written = self._stamp = 0
        self._limit = _MOST_REGIONS
        self._memos: list[dict[int, Region]] = []

    def memo(self) -> dict[int, Region]:
        """Return where somebody may keep the regions of one footprint: they leave it in time."""
        memo: dict[int, Region] = {}
        self._memos.append(memo)
        return memo

    def region(self, touched: Footprint, address: int, *, writes: bool) -> Region:
        """Return the region of a footprint at an address, which is about to be read or written."""
        # Runs of bytes are the same region whichever footprint they come from; others count as the
        # footprint itself, since equal sets of bytes nearly always come from equal footprints.
        key: Key = touched, address
        if touched.is_run:  # whoever touches these bytes
            key = touched.low + address, touched.high + address
        region = self._regions.get(key)
        if region is None:
            if len(self._regions) >= self._limit:
                self._forget()
            region = Region(touched, address, self._entered)
            if self._arrays is not None:
                self._arrays.update(self._regions.values(), region)
            self._entered += 1
            if self._arrays is not None and self._arrays.watches:
                self._arrays.meet(region, region, nested=True)
            around = self._around(region)
            self._meet_all(region, _by_write(around))
            self._regions[key] = region
            self._enter_pages(region)
        elif writes and region.written is None:
            around = self._around(region)
        # Two regions that are only read cannot race, and are not introduced to each other. With the
        # first write of this one its neighbours that were only read become rivals too.
        if writes and region.written is None:
            others = (r for r in around if r.written is None and r is not region)
            self._meet_all(region, sorted(others, key=attrgetter("number")))
            region.written = self._written
            self._written += 1
        return region

    def _enter_pages(self, region: Region) -> None:
        """Keep a region under each page that it may touch, a small one under each cell."""
        pages = _local_pages(region)
        for page in pages:
            self._pages.setdefault(page, []).append(region)
        small = _is_small(region)
        others = self._cells if small else self._large
        for number in _local_pages(region, _CELL_BYTES) if small else pages:
            others.setdefault(number, []).append(region)

    def _around(self, entered: Region) -> Collection[Region]:
        """Return the regions that share a page with one, small ones a cell with a small one."""
        # A small region meets large ones by page and small ones by cell (64 B), since a page of a
        # busy buffer may hold hundreds of small ones. Every region is in `_pages`; a large one
        # looks there.
        pages = _local_pages(entered)
        if _is_small(entered):
            cells = _local_pages(entered, _CELL_BYTES)
            lists = [self._large.get(page) for page in pages]
            lists += [self._cells.get(cell) for cell in cells]
        else:
            lists = [self._pages.get(page) for page in pages]
        found = [regions for regions in lists if regions]
        if len(found) <= 1:
            return found[0] if found else ()
        around: dict[Region, None] = {}
        for regions in found:
            around |= dict.fromkeys(regions)
        return around.keys()

    def _meet_all(self, region: Region, others: Iterable[Region]) -> None:
        """Let a region know those of `others` that it shares a byte with, and be known to them."""
        low, high = region.low, region.high
        for other in others:
            if low >= other.high or other.low >= high:
                continue
            # Two runs of bytes: ends decide. Other footprints are compared once for all cores
            # (`_relation`).
            if region.is_run and other.is_run:
                covers = low <= other.low and other.high <= high
                lies_within = other.low <= low and high <= other.high
            else:
                far = other.address - region.address
                relation = _relation(region.touched, other.touched, far)
                if relation is None:
                    continue
                covers, lies_within = relation
            region.near.append((other, covers))
            other.near.append((region, lies_within))
            if self._arrays is not None and self._arrays.watches:
                self._arrays.meet(region, other, nested=covers or lies_within)

    def _forget(self) -> None:
        """Drop the regions that nothing is remembered of; make room if few of them were."""
        for memo in self._memos:
            memo.clear()
        # A region that later writes have covered wholly says nothing any more.
        kept = {k: r for k, r in self._regions.items() if r.reads or r.writes}
        alive = set(map(id, kept.values()))
        for region in kept.values():
            region.near = [pair for pair in region.near if id(pair[0]) in alive]
            if region.rivals is not None:
                region.rivals = [rival for rival in region.rivals if id(rival) in alive]
        self._regions, self._pages, self._large, self._cells = kept, {}, {}, {}
        for region in kept.values():
            self._enter_pages(region)
        self._limit = max(_MOST_REGIONS, 2 * len(kept))

    def unread(self) -> list[tuple[Footprint, int, Numbered]]:
        """Return where results lie that nobody has read, and what left them, by first write."""
        regions = _by_write(self._regions.values())
        return [(r.touched, r.address, r.fresh) for r in regions if r.fresh is not None]

    def finish(self) -> None:
        """Judge what was left for the end."""
        if self._arrays is not None:
            self._arrays.finish()

    def release(self) -> None:
        """Forget every region."""
        for region in self._regions.values():
            region.near.clear()
            region.rivals = None
        for held in (self._regions, self._pages, self._large, self._cells):
            held.clear()

    def judge(self, region: Region, pipe: int, touch: MemoryAccess) -> None:
        """Report what an access races with; an instruction's are judged before any enters."""
        # clock[p] is the number of the last instruction of pipe p that happened before this pipe's
        # present one. An earlier access is ordered exactly if its number is at most that.
        clock = self._order.done[pipe]
        reads, writes = touch.reads, touch.writes
        if reads and self._arrays is not None and self._arrays.judges:
            self._arrays.read(region, pipe, touch)
        for other, _ in region.near:
            if reads:
                other.fresh = None
            unread = False
            if writes:
                for at, (when, who) in other.reads.items():
                    if when > clock[at]:
                        unread = True
                        self._meet(
                            "war", RegionAccess(other, at, who), RegionAccess(region, pipe, touch)
                        )
            if unread and not reads:  # the order behind that read is one behind its write, too
                continue
            for at, (when, who) in other.writes.items():
                if when > clock[at]:
                    kind = "raw" if reads else "waw"
                    self._meet(
                        kind, RegionAccess(other, at, who), RegionAccess(region, pipe, touch)
                    )

    def enter(self, region: Region, pipe: int, number: int, touch: MemoryAccess) -> None:
        """Remember an access of instruction `number` of a pipe; a write hides what it covers."""
        # A write that covers a region wholly hides its history: all earlier accesses there either
        # are ordered before this write or were just reported, so that later ones need only know the
        # write.
        if touch.writes:
            if self._arrays is not None and self._arrays.judges:
                self._arrays.write(region, touch)
            for other, within in region.near:
                if within:
                    other.writes.clear()
                    other.reads.clear()
                    if other.fresh is not None:
                        self._lose(other, pipe, touch)
            region.writes[pipe] = number, touch
            self._stamp += 1
            region.stamp = self._stamp
            if touch.makes and self._uses:
                region.fresh = pipe, touch
        else:
            region.reads[pipe] = number, touch

    def _lose(self, other: Region, pipe: int, touch: MemoryAccess) -> None:
        """Report a result that is overwritten before it is read."""
        fresh = other.fresh
        assert fresh is not None
        other.fresh = None
        self._report(Clash("unread", fresh[1], fresh[0], -1, touch, pipe, other.low, other.high))

    def _meet(self, kind: str, earlier: RegionAccess, later: RegionAccess) -> None:
        # Two exceptions: writes of a special register may go unordered (only a read of it matters),
        # and the hardware keeps some instructions of one pipe in order by itself.
        other, at, who = earlier
        region, pipe, touch = later
        mem = touch.mem
        if isinstance(mem, Special):
            if kind == "waw":  # who reads it waits for the last, and nobody need
                return
        elif touch.template.keeps_behind(who.template, mem):
            return
        if self._again(kind, who, touch):
            return
        common = region.touched.at(region.address).first_common(other.touched.at(other.address))
        assert common is not None
        arrays: tuple[tuple[int, int], ...] = ()
        if self._arrays is not None and region.rivals and other in region.rivals:
            arrays = self._arrays.extents(earlier, later)
        self._report(Clash(kind, who, at, -1, touch, pipe, *common, arrays=arrays))


def hazard(earlier: MemoryAccess, later: MemoryAccess) -> str:
    """Return which hazard two accesses are: raw, war or waw."""
    return "war" if not earlier.writes else "raw" if later.reads else "waw"
