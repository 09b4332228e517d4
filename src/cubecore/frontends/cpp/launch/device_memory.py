"""Global memory of C++ kernels: pages that the process of a launch shares with this one."""

import ctypes
import mmap
import os
import sys
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np

from cubecore.frontends.kernels.blank_memory import BlankMemory
from cubecore.machine.memory.buffers import (
    GM_ALIGN_BYTES,
    GM_GUARD_BYTES,
    GM_SPACE_BYTES,
    POISON_BYTE,
    Bytes,
    GlobalMemory,
    starts_of,
)
from cubecore.machine.memory.pointer_stores import PointerStores

_BASES = (0x100000000000, 0x1000000000)
"""Addresses of global memory, so that two runs see the same; not all systems have the first."""
_FIXED_NOREPLACE = 0x100000
_POPULATE_WRITE = 23


Spans = tuple[tuple[int, int], ...]
"""Bytes [start, end) of pages, whole ones."""


class SharedPages(NamedTuple):
    """Pages of a file in memory, which a process has at a host address `base`.

    `process` is the one that made them, `used` are those that were there at once.
    """

    file: int
    map: mmap.mmap
    base: int
    process: int
    used: Spans = ()

    @property
    def size(self) -> int:
        """Bytes of all pages."""
        return len(self.map)

    @property
    def space_bytes(self) -> int:
        """The addresses that tensors are spread over: 0 where they lie together."""
        return GM_SPACE_BYTES if self.size >= GM_SPACE_BYTES else 0

    def release(self) -> None:
        """Give the file back; the pages go with the last view of them."""
        os.close(self.file)


class DeviceMemory(GlobalMemory):
    """Global memory in pages that both processes see, at the host address `base` plus its own.

    Tensors of `sizes` lie apart in it; the pages between them take no memory. Where a system does
    not have so many addresses they lie together, and what is allocated beyond is this process's.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.shared = _pages_for(sizes)
        super().__init__(PointerStores(POISON_BYTE), self.shared.space_bytes)
        self.base = self.shared.base
        self._pages = _bytes_of(self.shared)
        self._pages[:GM_ALIGN_BYTES] = 0

    @property
    def array_pages(self) -> Spans:
        """The pages of its tensors, with what lies behind each of them."""
        mine = [t for t in self.tensors if t.end + GM_GUARD_BYTES <= self._pages.size]
        return _pages_of((t.address, t.buffer.size_bytes) for t in mine)

    def named(self, host_address: int) -> str | None:
        """Return which byte of which tensor a host's address was counted to, if it is one's."""
        address = host_address - self.base
        tensor = self.nearest(address) if address < self._pages.size else None
        if tensor is None:
            return None
        byte = address - tensor.address
        return f"byte {byte} of {tensor.name} (0 to {tensor.buffer.size_bytes} B)"

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


class BlankDeviceMemory(BlankMemory, DeviceMemory):
    """Global memory of a launch whose arrays have sizes alone."""

    def __init__(self, _: Sequence[int]) -> None:
        self.shared = spread_pages(GM_SPACE_BYTES)
        self._pages = np.frombuffer(self.shared.map, np.uint8)
        BlankMemory.__init__(self, self._pages, self.shared.space_bytes)
        self.base = self.shared.base


_MOST_SPARE_BYTES = 1 << 28
_spare: list[SharedPages] = []
"""At most the pages of one launch before: they are there already, which new ones are not."""


def _pages_for(sizes: Sequence[int]) -> SharedPages:
    """Return pages for tensors of these sizes, which nobody else sees."""
    # New pages cost a fault each at the first touch. Those of the launch before are taken again if
    # the tensors lie at the same places; else new ones are populated at once.
    used = _spans(sizes, GM_SPACE_BYTES)
    while _spare:
        pages = _spare.pop()
        if pages.used == used and pages.process == os.getpid():
            return pages
        pages.release()
    fresh = spread_pages(_spans(sizes, 0)[-1][1])
    used = _spans(sizes, fresh.space_bytes)
    for start, end in used:
        with suppress(OSError):  # of an older system
            fresh.map.madvise(_POPULATE_WRITE, start, end - start)
    return fresh._replace(used=used)


def _spans(sizes: Sequence[int], space_bytes: int) -> Spans:
    """Return the pages that tensors of these sizes lie in, and what is behind each of them."""
    return _pages_of(zip(starts_of(sizes, space_bytes), sizes, strict=True))


def _pages_of(tensors: Iterable[tuple[int, int]]) -> Spans:
    """Return the pages of tensors, each at an address and of a size; the first page is one."""
    spans = [(0, mmap.PAGESIZE)]
    for start, size in tensors:
        first = start - start % mmap.PAGESIZE
        behind = start + size + GM_GUARD_BYTES + GM_ALIGN_BYTES
        end = -(-behind // mmap.PAGESIZE) * mmap.PAGESIZE
        if first <= spans[-1][1]:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((first, end))
    return tuple(spans)


def _bytes_of(pages: SharedPages) -> Bytes:
    """Return the bytes of pages, kept for the next launch once the last view of them is gone."""
    raw = (ctypes.c_uint8 * pages.size).from_buffer(pages.map)
    weakref.finalize(raw, _keep, pages)
    return np.frombuffer(memoryview(raw), np.uint8)


def _keep(pages: SharedPages) -> None:
    """Keep pages for the next launch, unless there are some or they are many."""
    if _spare or sum(end - start for start, end in pages.used) > _MOST_SPARE_BYTES:
        pages.release()
    else:
        _spare.append(pages)


def spread_pages(size: int) -> SharedPages:
    """Return pages that tensors may be spread over; `size` bytes, if the system has not so many."""
    try:
        return shared_pages(GM_SPACE_BYTES)
    except (OSError, OverflowError, ValueError):
        return shared_pages(size)


def shared_pages(size: int) -> SharedPages:
    """Return new pages, all 0, which take memory once they are touched."""
    file = file_of_pages(size)
    try:
        return SharedPages(file, mmap.mmap(file, size), device_base(), os.getpid())
    except (OSError, OverflowError, ValueError):
        os.close(file)
        raise


def file_of_pages(size: int) -> int:
    """Return a file that lies in memory: in a box in its folder for temporary files."""
    try:
        file = os.memfd_create("memory")
    except (AttributeError, PermissionError):  # of another system, or of a box
        from tempfile import TemporaryFile

        with TemporaryFile() as backing:
            file = os.dup(backing.fileno())
    try:
        os.ftruncate(file, size)
    except OSError:
        os.close(file)
        raise
    return file


@cache
def device_base() -> int:
    """Return the host's address of global memory: the first that the system has."""
    if sys.platform != "linux":
        return _BASES[0]
    # A trial mapping with MAP_FIXED_NOREPLACE: the address is free if the system grants exactly it.
    # It is unmapped at once, as the child process maps the shared file there.
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
