"""Bytes that memories are made of; in a process forked for one launch, in pages of their own."""

import mmap
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

_LARGE_BYTES = 1 << 20
_PAGE_BYTES = 2 << 20
"""A large page of most systems."""
_begun: list[int] = []
"""Not empty in a process that was forked for one launch."""


def begin_process() -> None:
    """Say that this process has just been forked: memory that was freed before is not its own."""
    _begun.append(1)


def new_bytes(size: int) -> NDArray[np.uint8]:
    """Return bytes that hold anything; in a forked process many of them lie in pages of their own.

    What was freed before the fork would have to be copied, or cleared, 4 KiB at a time.
    """
    if _begun and size >= _LARGE_BYTES:
        return untouched_bytes(size)
    return np.empty(size, np.uint8)


def untouched_bytes(size: int) -> NDArray[np.uint8]:
    """Return bytes, all 0, that take memory only once they are touched, in large pages."""
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(size, np.uint8)
    whole = -(-max(size, 1) // _PAGE_BYTES) * _PAGE_BYTES  # else they begin anywhere
    pages = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # of a system without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)[:size]
