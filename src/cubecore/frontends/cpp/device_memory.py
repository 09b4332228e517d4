"""Global memory of C++ kernels: pages that the process of a launch shares with this one."""

import ctypes
import mmap
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from cubecore.machine.memory.allocator import untouched_bytes
from cubecore.machine.memory.buffers import (
    GM_ALIGN_BYTES,
    GM_GUARD_BYTES,
    POISON_BYTE,
    Bytes,
    GlobalMemory,
)

_GM_BASE = 0x100000000000
"""The host's address of global memory, so that two runs see the same addresses."""
_FIXED_NOREPLACE = 0x100000
_POPULATE_READ, _POPULATE_WRITE = 22, 23


class DeviceMemory(GlobalMemory):
    """Global memory in pages that both processes see, at the host address `base` plus its own.

    On Linux the executor has the pages at another address as well: `guarded` is how many bytes from
    `base` on a kernel can be kept from, and 0 elsewhere. What is allocated beyond `size` bytes is
    the process's own. The map of what was written is that of the process that settles.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map, self._written = untouched_bytes(self._size), list[Bytes]()
        self.guarded = 0
        if sys.platform != "linux":
            self._pages, self.base = shared_pages(self._size)
            return
        region = _region_of(self._size)
        self._pages = _bytes_at(region.at, self._size, _keep, region)
        self.base, self._at = region.base, region.at
        self.guarded = self._size
        self._pages[:GM_ALIGN_BYTES] = 0

    def settle(self) -> None:
        """Give this process all pages at once, which takes less than to meet them one by one."""
        if self.guarded:
            _give(self._at, self._size, _POPULATE_READ)
        for valid in self._written:
            valid[:] = 1

    def _filled(self, address: int, raw: Bytes | None, size: int) -> Bytes:
        end = address + size + GM_GUARD_BYTES
        if end > self._size:
            return super()._filled(address, raw, size)
        pages = self._pages
        pages[address : address + size] = POISON_BYTE if raw is None else raw
        behind = min(-(-end // GM_ALIGN_BYTES) * GM_ALIGN_BYTES, self._size)
        pages[address + size : behind] = POISON_BYTE
        filled: Bytes = pages[address:end]
        return filled

    def _unwritten(self, address: int, size: int) -> Bytes:
        end = address + size
        return self._map[address:end] if end <= self._size else super()._unwritten(address, size)

    def _mark(self, valid: Bytes) -> None:
        self._written.append(valid)


class _Region(NamedTuple):
    """Pages of a file in memory: their addresses, for kernels and for the executor.

    `process` is the one that made it.
    """

    size: int
    base: int
    at: int
    process: int


_MOST_SPARE_BYTES = 1 << 28
_spare: list[_Region] = []
"""At most one region of a launch before: its pages are there already, which new ones are not."""


def _region_of(size: int) -> _Region:
    """Return a region of `size` bytes that nobody else sees."""
    while _spare:
        region = _spare.pop()
        if region.size == size and region.process == os.getpid():
            return region
        _release(region)
    file = os.memfd_create("global memory")
    try:
        os.ftruncate(file, size)
        base, at = _address_of(size, file), _anywhere(size, file)
    finally:
        os.close(file)
    _give(at, size, _POPULATE_WRITE)
    return _Region(size, base, at, os.getpid())


def _keep(region: _Region) -> None:
    """Keep a region for the next launch, unless there is one or it is large."""
    if _spare or region.size > _MOST_SPARE_BYTES:
        _release(region)
    else:
        _spare.append(region)


def _release(region: _Region) -> None:
    for address in (region.base, region.at):
        _unmapped(address, region.size)


def _give(address: int, size: int, how: int) -> None:
    _libc().madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), how)


def take_pages(arrays: Iterable[Bytes]) -> None:
    """Take the pages of arrays that a process has shared, all at once: one by one takes longer."""
    if sys.platform != "linux":
        return
    for raw in arrays:
        begin = -(-raw.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
        whole = (raw.ctypes.data + raw.size - begin) // mmap.PAGESIZE * mmap.PAGESIZE
        if raw.flags.writeable and whole > 0:
            _give(begin, whole, _POPULATE_WRITE)


def shared_pages(size: int) -> tuple[Any, int]:
    """Return shared memory, and its address: a fixed one where that is free."""
    if sys.platform == "linux":
        address = _address_of(size, -1)
        return _bytes_at(address, size, _unmapped, address, size), address
    pages = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    return pages, pages.ctypes.data


def _bytes_at(address: int, size: int, ended: Callable[..., None], *told: Any) -> Bytes:
    """Return the bytes at an address; `ended` is told when the last view of them is gone."""
    raw = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(raw, ended, *told)
    return np.frombuffer(memoryview(raw), np.uint8)


def _address_of(size: int, file: int) -> int:
    """Return where shared pages of a file, or new ones, are: at a fixed address that is free."""
    for attempt in range(64):
        wanted = _GM_BASE + attempt * (1 << 38)
        got = _mapped(wanted, size, _FIXED_NOREPLACE, file)
        if got == wanted:
            return got
        if got:  # an older system takes the address for a hint
            _unmapped(got, size)
    return _anywhere(size, file)


def _anywhere(size: int, file: int) -> int:
    address = _mapped(None, size, 0, file)
    if not address:
        raise MemoryError
    return address


def _mapped(wanted: int | None, size: int, flags: int, file: int) -> int:
    """Return the address of pages of a file, or of new ones; 0 if the system refuses."""
    flags |= mmap.MAP_SHARED | (mmap.MAP_ANONYMOUS if file < 0 else 0)
    address = _libc().mmap(wanted, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0)
    return 0 if address in {None, ctypes.c_void_p(-1).value} else int(address)


def _unmapped(address: int, size: int) -> None:
    _libc().munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))


def _libc() -> Any:
    c = ctypes.CDLL(None, use_errno=True)
    c.mmap.restype = ctypes.c_void_p
    c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    return c
