"""The type of an array of any elements, and how long memory stays that work over and over needs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""A NumPy array of any elements and shape."""


def column(value: Array | float, count: int) -> Array:
    """Return a number, or an array of one for each row, as an array of `count` rows."""
    return value if isinstance(value, np.ndarray) and value.ndim else np.full(count, value)


_COLLECT_AFTER = 50_000
"""Objects more than before, of those that may form cycles, after which Python looks for some."""
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


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Look for cycles of garbage seldom: what launches and plans make holds none, and lives on."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _COLLECT_AFTER) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
