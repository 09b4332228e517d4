"""Shadow memory for race detection: last readers and writers of each byte range."""

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import NamedTuple

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import LEFT
from cubecore.isa.program.tree import Location
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitizer.happens_before import CoreOrder

_MOST_REGIONS = 512
"""Regions that are kept before those of no consequence are dropped."""
_PAGE_BITS = 12
_PAGE_BYTES = 1 << _PAGE_BITS


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
_LABELS = {"cmp_mask": "CMPMASK", "kept": "RSVD_CNT", "extreme": "MAX_MIN_CNT", "merged": "VMS4_SR"}
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


class Meeting(NamedTuple):
    """Two touches of the same bytes [low, high); pipes by number.

    Nothing orders them (raw, war, waw), or the later one overwrites unread results (unread).
    """

    kind: str
    earlier: MemoryAccess
    earlier_pipe: int
    earlier_core: int
    later: MemoryAccess
    later_pipe: int
    low: int
    high: int


Report = tuple[Callable[[Meeting], None], Callable[[str, MemoryAccess, MemoryAccess], bool]]
"""Reports a meeting; and counts one of two touches reported before, False if they were not."""
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
    there, and its pipe, as long as nobody has read a byte of it.
    """

    __slots__ = (
        *("address", "bytes", "fresh", "near", "number", "reads", "touched", "writes"),
        "written",
    )

    def __init__(self, touched: Footprint, address: int, number: int) -> None:
        self.touched, self.address, self.number = touched, address, number
        self.bytes = touched.at(address)
        self.near: list[tuple[Region, bool]] = [(self, True)]
        self.written: int | None = None
        self.reads: dict[int, Numbered] = {}
        self.writes: dict[int, Numbered] = {}
        self.fresh: tuple[int, MemoryAccess] | None = None


@lru_cache(maxsize=65536)
def _relation(one: Footprint, other: Footprint, distance: int) -> tuple[bool, bool] | None:
    """Return whether each lies within the other; None where they share no byte.

    The same for every core, and for the next launch.
    """
    far = other.at(distance)
    if one.first_common(far) is None:
        return None
    return one.covers(far), far.covers(one)


_LOCAL_PAGE_BYTES = 1024


def _local_pages(region: Region) -> range:
    low, high = region.bytes.low, region.bytes.high
    return range(low // _LOCAL_PAGE_BYTES, max(high - 1, low) // _LOCAL_PAGE_BYTES + 1)


def _by_write(regions: Iterable[Region]) -> list[Region]:
    """Return the regions that are written, by their first write."""
    written = [(region.written, region) for region in regions if region.written is not None]
    return [region for _, region in sorted(written, key=itemgetter(0))]


class LocalShadow:
    """The shadow of one core's local memory.

    Kernels touch few distinct sets of bytes, again and again. Each set is a region that knows the
    regions it meets, so that an access looks at those alone and never at bytes. A new one looks
    for those it meets in the pages of memory that it touches. `uses` says that unread results are
    reported.
    """

    def __init__(self, order: CoreOrder, report: Report, *, uses: bool) -> None:
        self._order, self._uses = order, uses
        self._report, self._again = report
        self._regions: dict[Key, Region] = {}
        self._pages: dict[int, list[Region]] = {}
        self._entered = self._written = 0
        self._limit = _MOST_REGIONS
        self._memos: list[dict[int, Region]] = []

    def memo(self) -> dict[int, Region]:
        """Return where somebody may keep the regions of one footprint: they leave it in time."""
        memo: dict[int, Region] = {}
        self._memos.append(memo)
        return memo

    def region(self, touched: Footprint, address: int, *, writes: bool) -> Region:
        """Return the region of a footprint at an address, which is about to be read or written."""
        key: Key = touched, address
        if touched.is_run:  # whoever touches these bytes
            key = touched.low + address, touched.high + address
        region = self._regions.get(key)
        if region is None:
            if len(self._regions) >= self._limit:
                self._forget()
            region = Region(touched, address, self._entered)
            self._entered += 1
            self._meet_all(region, _by_write(self._around(region)))
            self._regions[key] = region
            self._enter_pages(region)
        if writes and region.written is None:
            others = (r for r in self._around(region) if r.written is None and r is not region)
            self._meet_all(region, sorted(others, key=attrgetter("number")))
            region.written = self._written
            self._written += 1
        return region

    def _enter_pages(self, region: Region) -> None:
        """Keep a region under each page that it may touch."""
        for page in _local_pages(region):
            self._pages.setdefault(page, []).append(region)

    def _around(self, entered: Region) -> Iterable[Region]:
        """Return the regions that share a page with one."""
        pages = _local_pages(entered)
        if len(pages) == 1:
            return self._pages.get(pages[0], ())
        return {
            region.number: region for page in pages for region in self._pages.get(page, ())
        }.values()

    @staticmethod
    def _meet_all(region: Region, others: Iterable[Region]) -> None:
        """Let a region know those of `others` that it shares a byte with, and be known to them."""
        low, high = region.bytes.low, region.bytes.high
        for other in others:
            theirs = other.bytes
            if low >= theirs.high or theirs.low >= high:
                continue
            relation = _relation(region.touched, other.touched, other.address - region.address)
            if relation is not None:
                region.near.append((other, relation[0]))
                other.near.append((region, relation[1]))

    def _forget(self) -> None:
        """Drop the regions that nothing is remembered of; make room if few of them were."""
        for memo in self._memos:
            memo.clear()
        kept = {k: r for k, r in self._regions.items() if r.reads or r.writes}
        alive = set(map(id, kept.values()))
        for region in kept.values():
            region.near = [pair for pair in region.near if id(pair[0]) in alive]
        self._regions, self._pages = kept, {}
        for region in kept.values():
            self._enter_pages(region)
        self._limit = max(_MOST_REGIONS, 2 * len(kept))

    def judge(self, region: Region, pipe: int, touch: MemoryAccess) -> None:
        """Report what an access races with; an instruction's are judged before any enters."""
        clock = self._order.done[pipe]
        reads, writes = touch.reads, touch.writes
        for other, _ in region.near:
            if reads:
                other.fresh = None
            for at, (when, who) in other.writes.items():
                if when > clock[at]:
                    kind = "raw" if reads else "waw"
                    self._meet(kind, (other, at, who), (region, pipe, touch))
            if writes:
                for at, (when, who) in other.reads.items():
                    if when > clock[at]:
                        self._meet("war", (other, at, who), (region, pipe, touch))

    def enter(self, region: Region, pipe: int, number: int, touch: MemoryAccess) -> None:
        """Remember an access of instruction `number` of a pipe; a write hides what it covers."""
        if touch.writes:
            for other, within in region.near:
                if within:
                    other.writes.clear()
                    other.reads.clear()
                    if other.fresh is not None:
                        self._lose(other, (region, pipe, touch))
            region.writes[pipe] = number, touch
            if touch.makes and self._uses:
                region.fresh = pipe, touch
        else:
            region.reads[pipe] = number, touch

    def _lose(self, other: Region, later: tuple[Region, int, MemoryAccess]) -> None:
        """Report a result that is overwritten before it is read."""
        (_, pipe, touch), fresh = later, other.fresh
        assert fresh is not None
        other.fresh = None
        low, high = other.bytes.low, other.bytes.high
        self._report(Meeting("unread", fresh[1], fresh[0], -1, touch, pipe, low, high))

    def _meet(
        self,
        kind: str,
        earlier: tuple[Region, int, MemoryAccess],
        later: tuple[Region, int, MemoryAccess],
    ) -> None:
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
        common = region.bytes.first_common(other.bytes)
        assert common is not None
        self._report(Meeting(kind, who, at, -1, touch, pipe, *common))


class _Access:
    """An access of global memory: whose, from where to where, and its last time.

    `key` is that of a read, by which it is found again.
    """

    __slots__ = ("core", "high", "key", "low", "number", "pipe", "position", "touch")

    def __init__(self, key: "_Key", number: int, touch: MemoryAccess, position: int) -> None:
        self.core, self.pipe, touched, address = key
        self.key = None if touch.writes else key
        self.low, self.high = touched.low + address, touched.high + address
        self.again(number, touch, position)

    @property
    def access(self) -> "_Access":
        """Itself: where an access is one run of bytes it is its own entry."""
        return self

    @property
    def pages(self) -> Collection[int]:
        """The pages that it lies in."""
        if self.key is None:
            return range(self.low >> _PAGE_BITS, ((self.high - 1) >> _PAGE_BITS) + 1)
        return _pages(*self.key[2:])

    def again(self, number: int, touch: MemoryAccess, position: int) -> None:
        """Be instruction `number` of the pipe, `position`-th of all accesses."""
        self.number, self.touch, self.position = number, touch, position


class _Run(NamedTuple):
    """One of the runs of bytes of an access."""

    low: int
    high: int
    access: _Access


_Entry = _Access | _Run
_Key = tuple[int, int, Footprint, int]
"""A core, its pipe, a footprint and its address."""
_Reader = tuple[int, int] | None
"""A core and its pipe that read, or None for whoever writes."""


class GlobalShadow:
    """The shadow of global memory, which all cores share: lists of accesses, page by page.

    Reads meet no reads, so that those of each pipe are a list of their own. Where nobody has
    written, a pipe's read of the same bytes takes the place of the one before as it stands.
    """

    def __init__(self) -> None:
        self._pages: dict[int, dict[_Reader, list[_Entry]]] = {}
        self._written: set[int] = set()
        self._reads: dict[_Key, _Access] = {}
        self._entered = 0

    def touch(
        self,
        core: tuple[int, CoreOrder, Report],
        touched: tuple[Footprint, int],
        pipe: int,
        number: int,
        touch: MemoryAccess,
    ) -> None:
        """Enter an access of a core, a footprint at an address, and report what it races with."""
        core_number, order, report = core
        self._entered += 1
        key = (core_number, pipe, *touched)
        earlier = None if touch.writes else self._reads.get(key)
        if earlier is not None and self._written.isdisjoint(earlier.pages):
            earlier.again(number, touch, self._entered)
            return
        access = _Access(key, number, touch, self._entered)
        if touch.writes:
            self._written.update(_pages(*touched))
        else:
            self._reads[key] = access
        reported: set[int] = set()
        if touched[0].is_run:
            self._enter(access, order, report, reported)
            return
        for low, high in _runs(*touched):
            self._enter(_Run(low, high, access), order, report, reported)

    def _enter(self, entry: _Entry, order: CoreOrder, report: Report, reported: set[int]) -> None:
        """Enter one run of bytes into each of its pages; `reported`: touches by id."""
        low, high, access, (tell, again) = entry.low, entry.high, entry.access, report
        reader = None if access.touch.writes else (access.core, access.pipe)
        for page in range(low >> _PAGE_BITS, ((high - 1) >> _PAGE_BITS) + 1):
            held = self._pages.get(page)
            if held is None:
                self._pages[page] = {reader: [entry]}
                continue
            near = [
                other
                for who in (held if reader is None else (None, reader))
                if who in held
                for other in held[who]
                if other.low < high and low < other.high
            ]
            if near:
                if reader is None:
                    near.sort(key=_position)
                for other in near:
                    touch = other.access.touch
                    if id(touch) not in reported and _races(other.access, access, order):
                        reported.add(id(touch))
                        if not again(_kind(touch, access.touch), touch, access.touch):
                            tell(_meeting(other, entry))
                first = page << _PAGE_BITS
                over = [e for e in near if _over(entry, e, first, first + _PAGE_BYTES)]
                if over:
                    self._drop(held, over)
            entries = held.get(reader)
            if entries is None:
                held[reader] = [entry]
            else:
                entries.append(entry)

    def _drop(self, held: dict[_Reader, list[_Entry]], over: list[_Entry]) -> None:
        """Forget accesses of a page that a later one says all of."""
        gone = set(map(id, over))
        for access in {e.access for e in over}:
            who = None
            if access.key is not None:
                who = access.core, access.pipe
                self._reads.pop(access.key, None)
            if who in held:
                left = [e for e in held[who] if id(e) not in gone]
                if left:
                    held[who] = left
                else:
                    del held[who]


def _position(entry: _Entry) -> int:
    return entry.access.position


def _pages(touched: Footprint, address: int) -> Collection[int]:
    """Return the pages of a footprint at an address."""
    if touched.is_run:
        low, high = touched.low + address, touched.high + address
        return range(low >> _PAGE_BITS, ((high - 1) >> _PAGE_BITS) + 1)
    first = (touched.starts + address) >> _PAGE_BITS
    last = (touched.ends + (address - 1)) >> _PAGE_BITS
    pages = {*first.tolist(), *last.tolist()}
    for low, high in zip(first[last - first > 1], last[last - first > 1], strict=True):
        pages.update(range(low, high))
    return pages


def _runs(touched: Footprint, address: int) -> Iterable[tuple[int, int]]:
    """Return the runs of bytes of a footprint at an address."""
    if touched.is_run:
        return ((touched.low + address, touched.high + address),)
    return zip((touched.starts + address).tolist(), (touched.ends + address).tolist(), strict=True)


def _races(other: _Access, access: _Access, order: CoreOrder) -> bool:
    """True if nothing orders two accesses, which share a byte."""
    touch, number = access.touch, other.number
    if not (touch.writes or other.touch.writes):
        return False
    if touch.atomic and touch.atomic == other.touch.atomic:
        return False
    if other.core != access.core:
        return bool(order.foreign[0, other.core, other.pipe] < number)
    clock = order.done[access.pipe]
    return clock[other.pipe] < number and (other.pipe, number) != (access.pipe, access.number)


def _over(entry: _Entry, other: _Entry, first: int, last: int) -> bool:
    """True if `entry` says all that `other` said of the page [first, last)."""
    if entry.low > max(other.low, first) or entry.high < min(other.high, last):
        return False
    touch, before = entry.access.touch, other.access
    if touch.writes:
        return not touch.atomic
    same = (entry.access.core, entry.access.pipe) == (before.core, before.pipe)
    return same and not before.touch.writes


def _kind(earlier: MemoryAccess, later: MemoryAccess) -> str:
    return "war" if not earlier.writes else "raw" if later.reads else "waw"


def _meeting(earlier: _Entry, later: _Entry) -> Meeting:
    one, other = earlier.access, later.access
    low, high = max(earlier.low, later.low), min(earlier.high, later.high)
    kind = _kind(one.touch, other.touch)
    return Meeting(kind, one.touch, one.pipe, one.core, other.touch, other.pipe, low, high)
