"""4-bit elements in memory: two to a byte, the first of them in the low half.

asc-devkit, LoadDataWithTranspose: of 6 and 7 the byte is 0x76. The initialised map stays one mark
for each byte, since whatever moves or stores 4-bit elements does so by whole bytes: a byte counts
as written if both of its elements are.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore.layouts import Offsets

Bytes = NDArray[np.uint8]

BITS = 4


def take(data: Bytes, offsets: Offsets) -> Bytes:
    """Return the codes at `offsets` (elements from the start of `data`), shaped as the offsets."""
    pairs = data.take(offsets >> 1, mode="clip")
    return np.asarray(pairs >> (BITS * (offsets & 1)).astype(np.uint8) & 0xF, np.uint8)


def put(data: Bytes, offsets: Offsets, codes: Bytes) -> None:
    """Store `codes` at `offsets`; the other half of a byte stays."""
    low = offsets & 1 == 0
    even, odd = offsets[low] >> 1, offsets[~low] >> 1
    data[even] = data[even] & 0xF0 | codes[low]
    data[odd] = data[odd] & 0x0F | codes[~low] << BITS


def mark(valid: Bytes, offsets: Offsets, defined: NDArray[np.bool_] | None) -> None:
    """Note that the bytes of elements are written (None), or those of the `defined` ones alone."""
    valid[offsets >> 1] = 1
    if defined is not None:
        valid[offsets[~defined] >> 1] = 0


def pack(codes: Bytes) -> Bytes:
    """Return flat codes two to a byte; an odd one out is followed by 0."""
    even = np.zeros(codes.size + codes.size % 2, np.uint8)
    even[: codes.size] = codes
    return np.asarray(even[0::2] | even[1::2] << BITS, np.uint8)


def unpack(data: Bytes) -> Bytes:
    """Return the codes that bytes hold, flat."""
    codes = np.empty(2 * data.size, np.uint8)
    codes[0::2], codes[1::2] = data & 0xF, data >> BITS
    return codes
