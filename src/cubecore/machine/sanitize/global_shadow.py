"""The shadow of global memory, which all cores share: who read and wrote each byte last."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from cubecore.isa.declare.instruction import Mem
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitize.happens_before import CoreOrder
from cubecore.machine.sanitize.shadow_memory import Clash, MemoryAccess, Report, hazard

_PAGE_BITS = 12
_PAGE_BYTES = 1 << _PAGE_BITS
_NARROW_BITS = 6
_NARROW_BYTES = 1 << _NARROW_BITS
"""The most bytes of an access that is found by its address, as those of the scalar unit are."""
_MOST_REPLACED = 64
"""Writes to the same bytes that one remembers: a counter between cores holds 15 of them."""


class _Access:
    """An access of global memory: whose, what from where on, and its last time.

    There may be many of them, so that one holds few objects of its own. `replaced` are the numbers
    of the pipe's writes to the same bytes before this one, or None; `known` is the last write of
    another core to them that a read was ordered behind, or -1. A write keeps in `consumed` what
    the reads knew that it took the place of.
    """

    __slots__ = (
        *("consumed", "core", "high", "known", "low", "number", "pipe", "position", "replaced"),
        *("touch", "touched"),
    )

    def __init__(
        self,
        core: int,
        pipe: int,
        touched: Footprint,
        address: int,
        number: int,
        touch: MemoryAccess,
        position: int,
    ) -> None:
        self.core, self.pipe = core, pipe
        self.touched = touched
        self.low = address + touched.low if touched.low else address
        self.high = address + touched.high
        self.replaced: list[int] | None = None
        self.consumed: dict[_Reader, int] | None = None
        self.known = -1
        self.again(number, touch, position)

    @property
    def address(self) -> int:
        """The address that its footprint counts from."""
        return self.low - self.touched.low

    @property
    def access(self) -> "_Access":
        """Itself: where an access is one run of bytes it is its own entry."""
        return self

    def again(self, number: int, touch: MemoryAccess, position: int) -> None:
        """Be instruction `number` of the pipe, `position`-th of all accesses."""
        self.number, self.touch, self.position = number, touch, position

    def replace_all(self, over: Iterable["_Entry"]) -> None:
        """Take the place of accesses: remember writes of the same pipe, and what reads knew."""
        for entry in over:
            before = entry.access
            whose = before.core, before.pipe
            if before.touch.writes:
                if whose == (self.core, self.pipe):
                    self._replace(before)
            elif before.known >= 0:
                self._consume(whose, before.known)

    def _consume(self, reader: "_Reader", known: int) -> None:
        if self.consumed is None:
            self.consumed = {}
        self.consumed[reader] = max(known, self.consumed.get(reader, -1))

    def _replace(self, before: "_Access") -> None:
        for reader, known in (before.consumed or {}).items():
            self._consume(reader, known)
        replaced = [] if before.replaced is None else before.replaced
        if not replaced or replaced[-1] != before.number:
            replaced.append(before.number)
            del replaced[:-_MOST_REPLACED]
        self.replaced = replaced

    def last_known(self, number: int) -> int:
        """Return the last replaced write up to a pipe's `number`; -1 where there is none."""
        return max((one for one in self.replaced or () if one <= number), default=-1)


class _Run(NamedTuple):
    """One of the runs of bytes of an access."""

    low: int
    high: int
    access: _Access


_Entry = _Access | _Run
_Key = tuple[int, int, Footprint]
"""A core, its pipe and a footprint."""
_Reader = tuple[int, int]
"""A core and its pipe that read."""


class _PageEntries:
    """The accesses of a page: narrow ones by the bytes that they begin in, wide ones in a list.

    A scalar loop leaves a thousand narrow ones in a page, a copy a few wide ones.
    """

    __slots__ = ("narrow", "wide")

    def __init__(self) -> None:
        self.wide: list[_Entry] = []
        self.narrow: dict[int, list[_Entry]] = {}

    def add(self, entry: _Entry) -> None:
        """Add an access."""
        self._beside(entry).append(entry)

    def meeting(self, low: int, high: int) -> list[_Entry]:
        """Return the accesses that share a byte with [low, high)."""
        near = [e for e in self.wide if e.low < high and low < e.high]
        narrow = self.narrow
        if not narrow:
            return near
        # A narrow access ends in the bytes that it begins in, or in the next such bytes.
        blocks: Collection[int] = range((low >> _NARROW_BITS) - 1, (high - 1 >> _NARROW_BITS) + 1)
        if len(blocks) > len(narrow):
            blocks = narrow.keys()
        for block in blocks:
            entries = narrow.get(block)
            if entries is not None:
                near += [e for e in entries if e.low < high and low < e.high]
        return near

    def remove(self, entry: _Entry) -> None:
        """Forget an access."""
        entries = self._beside(entry)
        if len(entries) == 1 and entries is not self.wide:
            del self.narrow[entry.low >> _NARROW_BITS]
        else:
            entries.remove(entry)

    def remove_all(self, gone: Collection[_Entry]) -> None:
        """Forget accesses: many wide ones in one pass."""
        ids = set(map(id, gone))
        self.wide = [e for e in self.wide if id(e) not in ids]
        for entry in gone:
            if entry.high - entry.low <= _NARROW_BYTES:
                self.remove(entry)

    def _beside(self, entry: _Entry) -> list[_Entry]:
        """Return the list that an access stands in."""
        if entry.high - entry.low > _NARROW_BYTES:
            return self.wide
        return self.narrow.setdefault(entry.low >> _NARROW_BITS, [])


class GlobalShadow:
    """The shadow of global memory, which all cores share: accesses, page by page.

    Reads meet no reads, so that those of each pipe are a list of their own. Where nobody has
    written, a pipe's read of the same bytes takes the place of the one before as it stands.
    """

    def __init__(self) -> None:
        self._written: dict[int, _PageEntries] = {}
        self._read: dict[int, dict[_Reader, _PageEntries]] = {}
        self._reads: dict[_Key, dict[int, _Access]] = {}
        self._entered = 0

    def touch(
        self,
        core: int,
        order: CoreOrder,
        report: Report,
        footprint: Footprint,
        address: int,
        pipe: int,
        number: int,
        touch: MemoryAccess,
    ) -> None:
        """Enter an access of a core, a footprint at an address, and report what it races with."""
        self._entered += 1
        position = self._entered
        if touch.writes:
            access = _Access(core, pipe, footprint, address, number, touch, position)
        else:
            key = core, pipe, footprint
            reads = self._reads.get(key)
            if reads is None:
                reads = self._reads[key] = {}
            earlier = reads.get(address)
            # Tables and weights are read again and again: where no one writes, a read of the same
            # bytes only gets a new number.
            if earlier is not None and self._is_unwritten(_pages(footprint, address)):
                earlier.again(number, touch, position)
                return
            access = _Access(core, pipe, footprint, address, number, touch, position)
            reads[address] = access
            if earlier is not None:
                access.known = earlier.known
        reported: set[tuple[int, int]] = set()
        if footprint.is_run:
            self._enter(access, order, report, reported)
            return
        for low, high in _runs(footprint, address):
            self._enter(_Run(low, high, access), order, report, reported)

    def written(self, low: int, high: int) -> list[tuple[int, int, _Access]]:
        """Return the last writes of bytes among [low, high), in one page, each with its run."""
        entries = self._written.get(low >> _PAGE_BITS)
        near = [] if entries is None else sorted(entries.meeting(low, high), key=_position)
        return [(e.low, e.high, e.access) for e in near]

    def _is_unwritten(self, pages: Collection[int]) -> bool:
        return self._written.keys().isdisjoint(pages)

    def _enter(
        self, entry: _Entry, order: CoreOrder, report: Report, reported: set[tuple[int, int]]
    ) -> None:
        """Enter one run of bytes into each of its pages; `reported`: cores' touches by id."""
        low, high, access, (tell, again) = entry.low, entry.high, entry.access, report
        reader = None if access.touch.writes else (access.core, access.pipe)
        for page in range(low >> _PAGE_BITS, ((high - 1) >> _PAGE_BITS) + 1):
            near: list[_Entry] = []
            for entries in self._facing(page, reader):
                near += entries.meeting(low, high)
            if near:
                if len(near) > 1:
                    near.sort(key=_position)
                for other in near:
                    # One report for each pair of instructions, however many pages and runs they
                    # share.
                    of_core = other.access.core, id(other.access.touch)
                    if of_core in reported:
                        continue
                    if _races(other.access, access, order):
                        reported.add(of_core)
                        clash = _clash(other, entry, order)
                        if not again(clash.kind, clash.earlier, clash.later):
                            tell(clash)
                    elif reader is not None and other.access.core != access.core:
                        # Ordered: the last write that this read is known to come behind.
                        access.known = max(access.known, other.access.number)
                first = page << _PAGE_BITS
                # What the new entry says all of is forgotten, so that lists stay as short as the
                # bytes are distinct.
                over = [e for e in near if _over(entry, e, first, first + _PAGE_BYTES)]
                if over:
                    self._drop(page, over)
                    if reader is None:
                        access.replace_all(over)
            self._own(page, reader).add(entry)

    def _own(self, page: int, reader: _Reader | None) -> _PageEntries:
        """Return the accesses of a page that those of a reader, or writes, stand among."""
        if reader is None:
            known: _PageEntries | None = self._written.get(page)
            if known is None:
                known = self._written[page] = _PageEntries()
            return known
        readers = self._read.setdefault(page, {})
        known = readers.get(reader)
        if known is None:
            known = readers[reader] = _PageEntries()
        return known

    def _facing(self, page: int, reader: _Reader | None) -> Iterable[_PageEntries]:
        """Return the accesses of a page that a read may meet or say again, or any write."""
        written, read = self._written.get(page), self._read.get(page)
        if read is None:
            return () if written is None else (written,)
        if reader is None:
            return read.values() if written is None else (written, *read.values())
        own = read.get(reader)
        return [entries for entries in (written, own) if entries is not None]

    def _drop(self, page: int, over: list[_Entry]) -> None:
        """Forget accesses of a page that a later one says all of."""
        gone: dict[_Reader | None, list[_Entry]] = {}
        for entry in over:
            access, who = entry.access, None
            if not access.touch.writes:
                who = access.core, access.pipe
                self._reads[*who, access.touched].pop(access.address, None)
            gone.setdefault(who, []).append(entry)
        for who, entries in gone.items():
            known = self._written[page] if who is None else self._read[page][who]
            if len(entries) == 1:
                known.remove(entries[0])
            else:
                known.remove_all(entries)


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
    if touch.mem is not Mem.GM and other.touch.mem is not Mem.GM:
        return False  # a window of the core's own memory, whose shadow judges it
    clock = order.done[access.pipe]
    return clock[other.pipe] < number and (other.pipe, number) != (access.pipe, access.number)


def _over(entry: _Entry, other: _Entry, first: int, last: int) -> bool:
    """True if `entry` says all that `other` said of the page [first, last)."""
    if entry.low > max(other.low, first) or entry.high < min(other.high, last):
        return False
    touch, before = entry.access.touch, other.access
    if touch.writes and not touch.atomic:
        return True
    same = (entry.access.core, entry.access.pipe) == (before.core, before.pipe)
    return same and (before.touch is touch if touch.atomic else not before.touch.writes)


def _clash(earlier: _Entry, later: _Entry, order: CoreOrder) -> Clash:
    """Return the clash of two entries, the one that should come first before the other one."""
    one, other = earlier.access, later.access
    low, high = max(earlier.low, later.low), min(earlier.high, later.high)
    kind = hazard(one.touch, other.touch)
    if kind == "raw" and _overtakes(one, other, order):
        # The writer ran ahead: the write that the read needs was handed over, and a later one to
        # the same slot waits for nothing. What is missing is the reader's signal back.
        ends = other.touch, other.pipe, other.core, one.touch, one.pipe
        return Clash("war", *ends, low, high, one.core)
    return Clash(kind, one.touch, one.pipe, one.core, other.touch, other.pipe, low, high)


def _overtakes(write: _Access, read: _Access, order: CoreOrder) -> bool:
    """Return whether a core's write overtakes another's read of an earlier write to these bytes.

    The read is ordered behind one of the earlier writes, and it is the first read that is: a
    second read behind the same write needs the next one, and lacks a wait.
    """
    if write.core == read.core:
        return False
    known = write.last_known(int(order.foreign[0, write.core, write.pipe]))
    before = max(read.known, (write.consumed or {}).get((read.core, read.pipe), -1))
    read.known = max(known, before)
    return known > before
