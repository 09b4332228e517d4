"""Stores to global memory by a kernel's plain pointers, of which no instruction tells."""

import numpy as np
from numpy.typing import NDArray

from cubecore.units import distinct

_Bytes = NDArray[np.uint8]
LINE_BYTES = 64
"""Bytes that the data cache writes back together (pages SetValue, DataCacheCleanAndInvalid)."""


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

    def settle(
        self, address: int, data: _Bytes, valid: _Bytes, span: tuple[int, int], *, every: bool
    ) -> bool:
        """Mark stored bytes of a span as written if they were cleaned, or in `every` case.

        `address` is that of the first byte of `data`, at the start of a line; `valid` are its
        marks, and the span counts from it. Return whether some are not marked.
        """
        low, high = max(span[0], 0) // LINE_BYTES * LINE_BYTES, -(-span[1] // LINE_BYTES)
        data, valid = data[low : high * LINE_BYTES], valid[low : high * LINE_BYTES]
        lines = distinct(np.flatnonzero(self._stored(data, valid)) // LINE_BYTES)
        if not (every or self._cleaned_all):
            first = (address + low) // LINE_BYTES
            lines = lines[[first + int(line) in self._cleaned for line in lines]]
        marked = np.zeros(-(-data.size // LINE_BYTES), np.bool_)
        marked[lines] = True
        valid[np.repeat(marked, LINE_BYTES)[: data.size]] = 1
        return bool(self._stored(data, valid).any())

    def has_stored(self, data: _Bytes, valid: _Bytes, at: int) -> bool:
        """Return whether the line of a byte, counted from the first one, was stored to."""
        line = slice(at // LINE_BYTES * LINE_BYTES, (at // LINE_BYTES + 1) * LINE_BYTES)
        return bool(self._stored(data[line], valid[line]).any())

    def _stored(self, data: _Bytes, valid: _Bytes) -> NDArray[np.bool_]:
        stored: NDArray[np.bool_] = (valid == 0) & (data != self._fill)
        return stored
