"""The lines of a core's data cache, as its own program loads, changes and cleans them."""

from collections.abc import Iterator, Sequence

from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import LINE_BYTES, Dcci, line_bits, lines_between
from cubecore.machine.memory.written_spans import WrittenSpans

Writer = tuple[str, Location]
"""An instruction that writes global memory past the cache, and its location."""
_WHOLE = (1 << LINE_BYTES) - 1


class _Changed:
    """A line that the scalar unit stored to: the bytes as bits, by location, and all of them."""

    __slots__ = ("all", "stores")

    def __init__(self) -> None:
        self.all = 0
        self.stores: dict[Location, int] = {}

    def add(self, bits: int, where: Location) -> None:
        """Take one more store."""
        self.all |= bits
        self.stores[where] = self.stores.get(where, 0) | bits

    def at(self, bits: int) -> Location:
        """Return the first location that stored one of some bytes."""
        return next(where for where, stored in self.stores.items() if stored & bits)


class CacheLines:
    """The lines of 64 B that the scalar unit of one core holds, in program order.

    A scalar load or store of global memory loads its line, unless that is held. A store changes the
    held line, not memory. dcci writes a changed line back, whole, and drops it: one line, or all.
    Copies and stores past the cache change memory, not held lines. Lines stay held until a dcci
    drops them: no line is replaced, as one may be at any time on the hardware.

    `changed` are the lines that wait to be written back, by their numbers.
    """

    def __init__(self) -> None:
        self.changed: dict[int, _Changed] = {}
        self._written = WrittenSpans[Writer]()
        self._held: dict[int, int] = {}
        """The epoch in which each line was loaded: what was written from there on is not in it."""
        self._cleaned: dict[int, int] = {}
        self._epoch = self._cleaned_all = 0

    # --- what happens

    def write(self, low: int, high: int, by: Writer) -> None:
        """Take that bytes [low, high) of global memory are written past the cache."""
        self._written.add(low, high, by, self._epoch)

    def store(self, low: int, high: int, where: Location) -> None:
        """Take that the scalar unit stores bytes [low, high) by the cache."""
        for line, bits in lines_between(low, high):
            self._hold(line)
            changed = self.changed.get(line)
            if changed is None:
                changed = self.changed[line] = _Changed()
            changed.add(bits, where)

    def clean(self, dcci: Dcci) -> None:
        """Take that a line is written back and dropped, or all lines."""
        if not dcci.cleans_globally:
            return
        self._epoch += 1
        if dcci.lines == "single":
            line = dcci.address // LINE_BYTES
            self._cleaned[line] = self._epoch
            self._held.pop(line, None)
            self.changed.pop(line, None)
            return
        self._cleaned_all = self._epoch
        for held in (self._cleaned, self._held, self.changed, self._written):
            held.clear()

    def _hold(self, line: int) -> None:
        if line not in self._held:
            self._epoch += 1
            self._held[line] = self._epoch

    # --- what it makes wrong

    def load(self, low: int, high: int) -> Writer | None:
        """Take a scalar load of bytes [low, high); return what wrote some since their last dcci.

        Bytes that the scalar unit itself has changed are its own.
        """
        found = None
        for line, bits in lines_between(low, high):
            changed = self.changed.get(line)
            if changed is None or bits & ~changed.all:
                since = self._cleaned.get(line, self._cleaned_all)
                start = line * LINE_BYTES
                span = max(low, start), min(high, start + LINE_BYTES)
                found = found or self._written.meeting(*span, since)
            self._hold(line)
        return found

    def overwritten(self, low: int, high: int) -> Writer | None:
        """Return what wrote past the cache beside a store of [low, high), since its line is held.

        The line's write-back takes the old bytes there with it. It is said once.
        """
        found = None
        for line, _ in lines_between(low, high):
            since = self._held.get(line)
            if since is None:
                continue
            start = line * LINE_BYTES
            for first, last in ((start, low), (high, start + LINE_BYTES)):
                if found is None and first < last:
                    found = self._written.meeting(first, last, since)
            if found is not None:
                self._epoch += 1
                self._held[line] = self._epoch
        return found

    def changed_at(self, low: int, high: int) -> Location | None:
        """Return the first store by the cache to one of the bytes [low, high) of global memory."""
        return next(
            (c.at(bits) for c, bits in self._changed_lines(low, high) if c.all & bits), None
        )

    def waiting_at(self, low: int, high: int) -> Location | None:
        """Return the first store by the cache to a line with one of the bytes [low, high)."""
        return next((c.at(_WHOLE) for c, _ in self._changed_lines(low, high)), None)

    def _changed_lines(self, low: int, high: int) -> Iterator[tuple[_Changed, int]]:
        """Yield changed lines with bytes of [low, high), and which bytes these are."""
        first, last = low // LINE_BYTES, (high - 1) // LINE_BYTES
        many = last - first >= len(self.changed)
        lines: Sequence[int] = list(self.changed) if many else range(first, last + 1)
        for line in lines:
            changed = self.changed.get(line)
            if changed is not None and first <= line <= last:
                yield changed, line_bits(line, low, high)
