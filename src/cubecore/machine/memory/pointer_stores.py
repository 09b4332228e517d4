"""Stores to global memory by a kernel's plain pointers, of which no instruction tells."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.scalar.caches import LINE_BYTES
from cubecore.machine.memory.strided import Rows
from cubecore.units import distinct

_Bytes = NDArray[np.uint8]
_MOST_NOTED = 1 << 16
"""Writes that are noted before they are marked."""
_BLOCK_BYTES = 1 << 16
"""Bytes that are looked through at a time."""


class IssuedBytes:
    """The bytes that instructions wrote to a tensor: noted as they do, and marked when asked for.

    Addresses count from the tensor's start, and go on behind it.
    """

    __slots__ = ("_marks", "_noted", "_size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes, self._marks = size_bytes, np.zeros(0, np.uint8)
        self._noted: list[tuple[Sequence[Rows], int, int]] = []

    def note(self, rows: Sequence[Rows], low: int, high: int) -> None:
        """Take that bytes [low, high) from each of some rows are written."""
        self._noted.append((rows, low, high))
        if len(self._noted) == _MOST_NOTED:
            self.marked(0, 0)

    def marked(self, low: int, high: int) -> NDArray[np.bool_]:
        """Return which of the bytes [low, high) were written."""
        if not self._marks.size:
            self._marks = np.zeros(self._size_bytes, np.uint8)
        for rows, first, last in self._noted:
            for part in spans(self._marks, rows, 0, first, last):
                part[...] = 1
        self._noted.clear()
        return self._marks[low:high].view(np.bool_)


def spans(marks: _Bytes, rows: Sequence[Rows], at: int, low: int, high: int) -> Iterator[_Bytes]:
    """Yield the marks of bytes [low, high) from each row on, rows of one kind at once."""
    for count, step, first in rows:
        yield np.ndarray((count, high - low), np.uint8, marks, at + first + low, (step, 1))


class Contents(NamedTuple):
    """Some bytes of a tensor, from the byte `first` on, and marks of those that were written.

    Instructions leave bytes unmarked where they store what was not written.
    """

    data: _Bytes
    valid: _Bytes
    issued: IssuedBytes
    first: int = 0

    def within(self, low: int, high: int) -> "Contents":
        """Return the bytes [low, high) of these."""
        return Contents(self.data[low:high], self.valid[low:high], self.issued, self.first + low)

    def unissued(self) -> NDArray[np.bool_]:
        """Return which of the bytes no instruction wrote."""
        return ~self.issued.marked(self.first, self.first + self.data.size)


class PointerStores:
    """The stores of a launch by plain pointers.

    They reach global memory when their lines of the data cache are cleaned. A byte is one of theirs
    if no instruction wrote it and it differs from `fill`, which unwritten memory holds; with it the
    rest of its line counts as stored.
    """

    def __init__(self, fill: int) -> None:
        self._fill, self._cleaned_all = fill, False
        self._cleaned = set[int]()

    def clean(self, address: int | None = None) -> None:
        """Take that the line of an address was written back, or all lines."""
        if address is None:
            self._cleaned_all = True
        else:
            self._cleaned.add(address // LINE_BYTES)

    def settle(self, address: int, contents: Contents, low: int, high: int, *, every: bool) -> bool:
        """Mark stored bytes of [low, high) as written if they were cleaned, or in `every` case.

        `address` is that of the first byte, at the start of a line, from which the two count.
        Return whether some are not marked.
        """
        low = max(low, 0) // LINE_BYTES * LINE_BYTES
        contents = contents.within(low, -(-high // LINE_BYTES) * LINE_BYTES)
        stored = self._stored(contents)
        if not stored.size:
            return False
        lines = distinct(stored // LINE_BYTES)
        if not (every or self._cleaned_all):
            first = (address + low) // LINE_BYTES
            lines = lines[[first + int(line) in self._cleaned for line in lines]]
        size = contents.data.size
        marked = np.zeros(-(-size // LINE_BYTES), np.bool_)
        marked[lines] = True
        contents.valid[np.repeat(marked, LINE_BYTES)[:size] & contents.unissued()] = 1
        return bool(self._stored(contents).size)

    def has_stored(self, contents: Contents, at: int) -> bool:
        """Return whether the line of a byte, counted from the first one, was stored to."""
        line = at // LINE_BYTES * LINE_BYTES
        return bool(self._stored(contents.within(line, line + LINE_BYTES)).size)

    def take_whole(self, contents: Contents) -> None:
        """Mark what no instruction wrote as written if some of it was stored."""
        if self._stored(contents).size:
            contents.valid[contents.unissued()] = 1

    def _stored(self, contents: Contents) -> NDArray[np.int64]:
        """Return the numbers of the bytes that are stored."""
        # Block by block: most launches store nothing by pointers, in memory of any size.
        found = [np.zeros(0, np.int64)]
        for first in range(0, contents.data.size, _BLOCK_BYTES):
            part = contents.within(first, first + _BLOCK_BYTES)
            if part.valid.all():
                continue
            stored = (part.valid == 0) & (part.data != self._fill)
            if stored.any():
                stored &= part.unissued()
                found.append(first + np.flatnonzero(stored))
        return np.concatenate(found)
