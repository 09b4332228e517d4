"""Lines of the data cache that cores share: what one core's line is too old for, or overwrites.

The scalar unit of each core loads lines of 64 B, stores to them and writes them back whole
(`isa.scalar.caches`). A line holds what the core knew to be written when it was loaded. Two cores
may touch one line where each has what the other wrote: a dcci of the writer, an order between the
cores, and a line that is loaded behind it. What a core's own copies make of its lines is followed
as kernels are recorded; races of the same bytes are those of `racecheck`.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import LINE_BYTES, Dcci, line_bits, lines_between
from cubecore.isa.scalar.load import CachedLoad
from cubecore.isa.scalar.store import StoreScalarGm
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitize.flags import SCALAR, Foreign
from cubecore.machine.sanitize.global_shadow import GlobalShadow
from cubecore.machine.sanitize.happens_before import CoreOrder
from cubecore.machine.sanitize.shadow_memory import MemoryAccess

Say = Callable[[str, MemoryAccess], None]
"""Takes a sentence about an access."""
_FIRST = "call asc_dcci_single first"
_READ = "a scalar read of global memory"


class _Store(NamedTuple):
    """A store by the cache: whose, its number on the scalar unit, its bytes as bits, its place."""

    core: int
    number: int
    bits: int
    where: Location


class _Other(NamedTuple):
    """A write past the cache of another core: what, and its bytes in a line as bits.

    `ordered`: the core knows it now; `held`: it knew it when it loaded the line.
    """

    text: str
    bits: int
    ordered: bool
    held: bool


class DataCacheOrder:
    """The data caches of a launch: the stores to each line, and who cleaned it when."""

    def __init__(self, cores: Sequence[CoreId], memory: GlobalShadow) -> None:
        self.cores, self.memory = cores, memory
        self.stores: dict[int, dict[tuple[int, int], _Store]] = {}
        self._cleaned: dict[tuple[int, int | None], list[int]] = {}

    def of_core(self, number: int, order: CoreOrder, say: Say) -> "CoreCache":
        """Return the cache of a core by its number in the launch."""
        return CoreCache(self, number, order, say)

    def clean(self, core: int, line: int | None, number: int) -> None:
        """Take that a core's instruction `number` cleans a line, or all."""
        self._cleaned.setdefault((core, line), []).append(number)

    def visible(self, store: _Store, line: int) -> int | None:
        """Return the number of the first instruction that wrote a store back; None if none did."""
        # The numbers ascend, as they are entered in program order: the first cleaning behind the
        # store is found by bisection, that of the line and that of the whole cache; the earlier one
        # counts.
        first = None
        for key in ((store.core, line), (store.core, None)):
            numbers = self._cleaned.get(key, [])
            behind = bisect_right(numbers, store.number)
            if behind < len(numbers) and (first is None or numbers[behind] < first):
                first = numbers[behind]
        return first


class CoreCache:
    """The lines that one core holds: what it knew of other cores when it loaded each."""

    def __init__(self, caches: DataCacheOrder, number: int, order: CoreOrder, say: Say) -> None:
        self._caches, self._number, self._order, self._say = caches, number, order, say
        self._held: dict[int, Foreign] = {}

    def clean(self, template: Dcci) -> None:
        """Take that the core cleans a line, or all."""
        if not template.cleans_globally:
            return
        line = template.address // LINE_BYTES if template.lines == "single" else None
        self._caches.clean(self._number, line, self._order.enter(SCALAR))
        if line is None:
            self._held.clear()
        else:
            self._held.pop(line, None)

    def touch(self, touched: Footprint, address: int, touch: MemoryAccess, number: int) -> None:
        """Judge and take an access of the core to global memory, by its number on its pipe."""
        template = touch.template
        low, high = address + touched.low, address + touched.high
        if isinstance(template, CachedLoad):
            for line, bits in lines_between(low, high):
                self._load(line, bits, touch)
        elif isinstance(template, StoreScalarGm) and template.cached:
            for line, bits in lines_between(low, high):
                self._store(line, bits, touch, number)
        elif self._caches.stores:
            for line in self._stored_lines(low, high):
                if bits := _bits(touched, address, line):
                    self._pass(line, bits, touch)

    def _stored_lines(self, low: int, high: int) -> Sequence[int]:
        """Return the lines with bytes of [low, high) that some scalar unit has stored to."""
        stores, lines = self._caches.stores, range(low // LINE_BYTES, -(-high // LINE_BYTES))
        if len(lines) > len(stores):
            return [line for line in stores if line in lines]
        return [line for line in lines if line in stores]

    # --- accesses

    def _load(self, line: int, bits: int, touch: MemoryAccess) -> None:
        # Two ways to read a stale value: the writer has not written its line back before it
        # signalled, or it has, but this core loaded the line before it knew of that. `foreign` is
        # what the core knows now, `held` what it knew when the line was loaded.
        held = self._hold(line)
        for store in self._stores_of_others(line):
            if not (store.bits & bits and self._knows(store)):
                continue
            cleaned = self._caches.visible(store, line)
            if cleaned is None or cleaned > self._order.foreign[0, store.core, SCALAR]:
                self._say(self._unclean(_READ, "come", store, near=False), touch)
            elif cleaned > held[store.core, SCALAR]:
                self._say(_old_read(self._text(store)), touch)
        for other in self._writes_of_others(line, held):
            if other.bits & bits and other.ordered and not other.held:
                self._say(_old_read(other.text), touch)

    def _store(self, line: int, bits: int, touch: MemoryAccess, number: int) -> None:
        # A store writes the whole line back some day, with this core's view of all other bytes in
        # it: those that others changed meanwhile (`bits` of theirs outside of this store's) would
        # be undone.
        held, name = self._hold(line), touch.template.name
        for store in self._stores_of_others(line):
            if not self._knows(store):
                if not store.bits & bits:
                    self._say(_shared(name, self._text(store)), touch)
                continue
            cleaned = self._caches.visible(store, line)
            if cleaned is None or cleaned > self._order.foreign[0, store.core, SCALAR]:
                self._say(self._unclean(name, "store", store, near=True), touch)
            elif cleaned > held[store.core, SCALAR] and store.bits & ~bits:
                self._say(_old_store(name, self._text(store)), touch)
        for other in self._writes_of_others(line, held):
            if not other.bits & ~bits:
                continue
            if other.ordered and not other.held:
                self._say(_old_store(name, other.text), touch)
            elif not other.ordered and not other.bits & bits:
                self._say(_shared(name, other.text), touch)
        stores = self._caches.stores.setdefault(line, {})
        stores[self._number, bits] = _Store(self._number, number, bits, touch.where)

    def _pass(self, line: int, bits: int, touch: MemoryAccess) -> None:
        """Judge an access past the cache to a line that other cores' scalar units stored to."""
        name = touch.template.name
        for store in self._stores_of_others(line):
            if not self._knows(store):
                if touch.writes and not store.bits & bits:
                    self._say(_shared(name, self._text(store)), touch)
                continue
            cleaned = self._caches.visible(store, line)
            if cleaned is not None and cleaned <= self._order.foreign[0, store.core, SCALAR]:
                continue
            if touch.writes:
                self._say(self._unclean(name, "write global memory", store, near=True), touch)
            elif store.bits & bits:
                self._say(self._unclean(name, "read global memory", store, near=False), touch)

    # --- what others did

    def _hold(self, line: int) -> Foreign:
        """Return what the core knew when it loaded a line, which is now if it did not hold it."""
        held = self._held.get(line)
        if held is None:
            held = self._held[line] = self._order.foreign[0]
        return held

    def _stores_of_others(self, line: int) -> list[_Store]:
        stores = self._caches.stores.get(line, {}).values()
        return [store for store in stores if store.core != self._number]

    def _knows(self, store: _Store) -> bool:
        return bool(store.number <= self._order.foreign[0, store.core, SCALAR])

    def _writes_of_others(self, line: int, held: Foreign) -> Iterator[_Other]:
        """Yield what other cores wrote past the cache into a line."""
        start, now = line * LINE_BYTES, self._order.foreign[0]
        for low, high, access in self._caches.memory.written(start, start + LINE_BYTES):
            core, template = access.core, access.touch.template
            if core == self._number or (isinstance(template, StoreScalarGm) and template.cached):
                continue
            text = f"{template.name} of {self._caches.cores[core]} at {access.touch.where}"
            ordered = bool(access.number <= now[core, access.pipe])
            known = bool(access.number <= held[core, access.pipe])
            yield _Other(text, line_bits(line, low, high), ordered, known)

    def _text(self, store: _Store) -> str:
        return f"{StoreScalarGm.name} of {self._caches.cores[store.core]} at {store.where}"

    def _unclean(self, subject: str, does: str, store: _Store, *, near: bool) -> str:
        beside = f" to the same {LINE_BYTES} B" if near else ""
        return (
            f"{subject} must {does} behind a dcci by {self._caches.cores[store.core]}, got none "
            f"between its scalar unit's store at {store.where}{beside} and its signal; call "
            "asc_dcci_single behind the store"
        )


def _old_read(writer: str) -> str:
    return (
        f"{_READ} must come behind a dcci, got none since {writer} wrote "
        f"there, and the data cache has held these {LINE_BYTES} B since before; {_FIRST}"
    )


def _old_store(name: str, writer: str) -> str:
    return (
        f"{name} must store behind a dcci, got none since {writer} wrote into the same "
        f"{LINE_BYTES} B, which the data cache holds as they were before and writes back; {_FIRST}"
    )


def _shared(name: str, other: str) -> str:
    return (
        f"{name} must have its {LINE_BYTES} B of the data cache alone, got {other} in the same "
        "ones and no order between the cores: lines are written back whole; keep what cores write "
        f"{LINE_BYTES} B apart"
    )


def _bits(touched: Footprint, address: int, line: int) -> int:
    """Return which bytes of a line a footprint at an address touches, as bits."""
    if touched.is_run:
        return line_bits(line, address + touched.low, address + touched.high)
    # Runs of a footprint ascend: bisection finds those that meet the line, both ends counted from
    # the footprint's address.
    start = line * LINE_BYTES - address
    first = int(touched.ends.searchsorted(start, side="right"))
    last = int(touched.starts.searchsorted(start + LINE_BYTES, side="left"))
    bits = 0
    for low, high in zip(touched.starts[first:last], touched.ends[first:last], strict=True):
        bits |= line_bits(line, address + int(low), address + int(high))
    return bits
