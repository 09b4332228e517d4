"""Global memory of C++ kernels: pages that the process of a launch shares with this one."""

import ctypes
import mmap
import os
import sys
import weakref
from typing import Any, NamedTuple

import numpy as np

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
_POPULATE_READ = 22


class DeviceMemory(GlobalMemory):
    """Global memory in pages that both processes see, at the host address `base` plus its own.

    On Linux the executor has the pages at another address as well: `guarded` is how many bytes from
    `base` on a kernel can be kept from, and 0 elsewhere. What is allocated beyond `size` bytes is
    the process's own.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.guarded = 0
        if sys.platform != "linux":
            self._pages, self.base = shared_pages(self._size)
            return
        file = _file_of(self._size)
        self._file = file.number
        self._kernel_pages, self.base = shared_pages(self._size, self._file)
        self._pages, self._at = _mapped(None, self._size, 0, self._file)
        weakref.finalize(self._pages.base, _keep, file)
        self.guarded = self._size
        self._write(0, np.zeros(GM_ALIGN_BYTES, np.uint8))

    def settle(self) -> None:
        """Give this process all pages at once, which takes less than to meet them one by one."""
        if self.guarded:
            _libc().madvise(ctypes.c_void_p(self._at), ctypes.c_size_t(self._size), _POPULATE_READ)

    def _filled(self, address: int, raw: Bytes | None, size: int) -> Bytes:
        end = address + size + GM_GUARD_BYTES
        if end > self._size:
            return super()._filled(address, raw, size)
        own = np.full(size, POISON_BYTE, np.uint8) if raw is None else raw
        self._write(address, own)
        behind = min(-(-end // GM_ALIGN_BYTES) * GM_ALIGN_BYTES, self._size)
        self._write(address + size, np.full(behind - address - size, POISON_BYTE, np.uint8))
        filled: Bytes = self._pages[address:end]
        return filled

    def _write(self, address: int, raw: Bytes) -> None:
        """Write bytes: by a call, since the system then makes pages without a fault for each."""
        if not self.guarded:
            self._pages[address : address + raw.size] = raw
            return
        left = memoryview(raw.data)
        while left:
            written = os.pwrite(self._file, left, address)
            left, address = left[written:], address + written


class _File(NamedTuple):
    """A file in memory, the bytes that it has, and the process that made it."""

    number: int
    size: int
    process: int


_MOST_SPARE_BYTES = 1 << 28
_spare: list[_File] = []
"""At most one file of a launch before: its pages are there already, which new ones are not."""


def _file_of(size: int) -> _File:
    """Return a file of at least `size` bytes that nobody else sees."""
    while _spare:
        file = _spare.pop()
        if file.size >= size and file.process == os.getpid():
            return file
        os.close(file.number)
    number = os.memfd_create("global memory")
    os.ftruncate(number, size)
    return _File(number, size, os.getpid())


def _keep(file: _File) -> None:
    """Keep a file for the next launch, unless there is one or it is large."""
    if _spare or file.size > _MOST_SPARE_BYTES:
        os.close(file.number)
    else:
        _spare.append(file)


def shared_pages(size: int, file: int = -1) -> tuple[Any, int]:
    """Return shared memory, of a file or none, and its address: a fixed one where that is free."""
    if sys.platform == "linux":
        for attempt in range(64):
            wanted = _GM_BASE + attempt * (1 << 38)
            pages, got = _mapped(wanted, size, _FIXED_NOREPLACE, file)
            if got == wanted:
                return pages, got
    pages = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    return pages, pages.ctypes.data


def _mapped(wanted: int | None, size: int, flags: int, file: int) -> tuple[Any, int]:
    """Return pages of a file, or new ones, and their address; they go with the last view of them.

    The address is 0 if the system refuses.
    """
    c = _libc()
    flags |= mmap.MAP_SHARED | (mmap.MAP_ANONYMOUS if file < 0 else 0)
    address = c.mmap(wanted, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0)
    if address in {None, ctypes.c_void_p(-1).value}:
        return None, 0
    raw = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(raw, c.munmap, ctypes.c_void_p(address), ctypes.c_size_t(size))
    return np.frombuffer(memoryview(raw), np.uint8), address


def _libc() -> Any:
    c = ctypes.CDLL(None, use_errno=True)
    c.mmap.restype = ctypes.c_void_p
    c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    return c
