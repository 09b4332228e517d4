"""Global memory of C++ kernels: pages that the process of a launch shares with this one."""

import ctypes
import mmap
import os
import sys
import weakref
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np

from cubecore.machine.memory.buffers import (
    GM_ALIGN_BYTES,
    GM_GUARD_BYTES,
    POISON_BYTE,
    Bytes,
    GlobalMemory,
)
from cubecore.machine.memory.pointer_stores import PointerStores

_BASES = (0x100000000000, 0x1000000000)
"""Addresses of global memory, so that two runs see the same; not all systems have the first."""
_FIXED_NOREPLACE = 0x100000
_POPULATE_WRITE = 23


class SharedPages(NamedTuple):
    """Pages of a file in memory, which a process has at a host address `base`.

    `process` is the one that made them.
    """

    file: int
    map: mmap.mmap
    base: int
    process: int

    @property
    def size(self) -> int:
        """Bytes of all pages."""
        return len(self.map)

    def release(self) -> None:
        """Give the file back; the pages go with the last view of them."""
        os.close(self.file)


class DeviceMemory(GlobalMemory):
    """Global memory in pages that both processes see, at the host address `base` plus its own.

    What is allocated beyond `size` bytes is this process's own.
    """

    def __init__(self, size: int) -> None:
        super().__init__(PointerStores(POISON_BYTE))
        self.shared = _pages_for(-(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        self.base = self.shared.base
        self._pages = _bytes_of(self.shared)
        self._pages[:GM_ALIGN_BYTES] = 0

    def _filled(self, address: int, raw: Bytes | None, size: int) -> Bytes:
        end, whole = address + size + GM_GUARD_BYTES, self._pages.size
        if end > whole:
            return super()._filled(address, raw, size)
        pages = self._pages
        pages[address : address + size] = POISON_BYTE if raw is None else raw
        behind = min(-(-end // GM_ALIGN_BYTES) * GM_ALIGN_BYTES, whole)
        pages[address + size : behind] = POISON_BYTE
        filled: Bytes = pages[address:end]
        return filled


_MOST_SPARE_BYTES = 1 << 28
_spare: list[SharedPages] = []
"""At most the pages of one launch before: they are there already, which new ones are not."""


def _pages_for(size: int) -> SharedPages:
    """Return `size` bytes of pages that nobody else sees."""
    while _spare:
        pages = _spare.pop()
        if pages.size == size and pages.process == os.getpid():
            return pages
        pages.release()
    made = shared_pages(size)
    with suppress(OSError):  # of an older system
        made.map.madvise(_POPULATE_WRITE)
    return made


def _bytes_of(pages: SharedPages) -> Bytes:
    """Return the bytes of pages, kept for the next launch once the last view of them is gone."""
    raw = (ctypes.c_uint8 * pages.size).from_buffer(pages.map)
    weakref.finalize(raw, _keep, pages)
    return np.frombuffer(memoryview(raw), np.uint8)


def _keep(pages: SharedPages) -> None:
    """Keep pages for the next launch, unless there are some or they are many."""
    if _spare or pages.size > _MOST_SPARE_BYTES:
        pages.release()
    else:
        _spare.append(pages)


def shared_pages(size: int) -> SharedPages:
    """Return new pages, all 0, which take memory once they are touched."""
    file = file_of_pages(size)
    return SharedPages(file, mmap.mmap(file, size), device_base(), os.getpid())


def file_of_pages(size: int) -> int:
    """Return a file that lies in memory."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("memory")
    else:
        from tempfile import TemporaryFile

        with TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.ftruncate(file, size)
    return file


@cache
def device_base() -> int:
    """Return the host's address of global memory: the first that the system has."""
    if sys.platform != "linux":
        return _BASES[0]
    c = ctypes.CDLL(None)
    c.mmap.restype = ctypes.c_void_p
    c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
    for base in _BASES:
        got = c.mmap(base, mmap.PAGESIZE, mmap.PROT_READ, flags, -1, 0)
        if got not in {None, ctypes.c_void_p(-1).value}:
            c.munmap(ctypes.c_void_p(got), ctypes.c_size_t(mmap.PAGESIZE))
        if got == base:
            return base
    raise MemoryError
