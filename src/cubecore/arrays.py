"""The type of an array of any elements, and how long its memory stays: both need NumPy."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""A NumPy array of any elements and shape."""
_LARGEST_BLOCK = 31 << 20
"""Bytes of the block that is freed first; from 32 MiB on glibc learns nothing of it."""


@cache
def keep_freed_memory() -> None:
    """Let the allocator keep what freed arrays leave, for the next ones; once in a process.

    glibc gives memory back to the system once twice the largest block lies free that it has mapped
    and freed. A search makes and frees some megabytes of columns over and over, a launch those of
    its instructions' elements, and each page that comes back costs a fault. The block is never
    written to, so that it takes no memory itself.
    """
    np.empty(_LARGEST_BLOCK, np.uint8)
