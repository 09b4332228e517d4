"""Global memory of C++ kernels: pages that the process of a launch shares with this one."""

import ctypes
import mmap
import sys
import weakref
from typing import Any

import numpy as np

from cubecore.machine.memory.buffers import POISON_BYTE, GlobalMemory

_GM_BASE = 0x100000000000
"""The host's address of global memory, so that two runs see the same addresses."""
_MREMAP_MAYMOVE = 1


class DeviceMemory:
    """Global memory in pages that both processes see, at the host address `base` plus its own.

    The executor has the pages at another address as well, where the system can do that: `guarded`
    is how many bytes from `base` on a kernel can be kept from, and 0 elsewhere.
    """

    def __init__(self, gm: GlobalMemory) -> None:
        tensors = gm.tensors
        size = max((tensor.end for tensor in tensors), default=0) + mmap.PAGESIZE
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._pages, self.base = shared_pages(size)
        pages = _again(self.base, size)
        self.guarded = 0 if pages is None else size
        held = self._pages if pages is None else pages
        for tensor in tensors:
            own, wide = tensor.buffer, tensor.wide
            wide.data = held[tensor.address : tensor.address + wide.size_bytes]
            wide.data[: own.size_bytes] = own.data
            wide.data[own.size_bytes :] = POISON_BYTE
            own.data = held[tensor.address : tensor.end]


def shared_pages(size: int) -> tuple[Any, int]:
    """Return shared memory as bytes, and its address: the same in each run where that is free."""
    if sys.platform == "linux":
        c = _mapping()
        shared_fixed = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x100000  # MAP_FIXED_NOREPLACE
        access = mmap.PROT_READ | mmap.PROT_WRITE
        for attempt in range(64):
            wanted = _GM_BASE + attempt * (1 << 38)
            got = c.mmap(wanted, size, access, shared_fixed, -1, 0)
            if got == wanted:
                return _view(got, size, c), got
            if got not in {None, ctypes.c_void_p(-1).value}:
                c.munmap(ctypes.c_void_p(got), ctypes.c_size_t(size))
    pages = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    return pages, pages.ctypes.data


def _again(address: int, size: int) -> Any:
    """Return the same shared pages at another address; None if the system does not do that."""
    if sys.platform != "linux":
        return None
    c = _mapping()
    c.mremap.restype = ctypes.c_void_p
    c.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    got = c.mremap(address, 0, size, _MREMAP_MAYMOVE)  # of 0 bytes: the old pages stay
    return None if got in {None, ctypes.c_void_p(-1).value} else _view(got, size, c)


def _mapping() -> Any:
    c = ctypes.CDLL(None, use_errno=True)
    c.mmap.restype = ctypes.c_void_p
    c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    return c


def _view(address: int, size: int, c: Any) -> Any:
    """Return pages as bytes; they are given back with the last view of them."""
    raw = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(raw, c.munmap, ctypes.c_void_p(address), ctypes.c_size_t(size))
    return np.ctypeslib.as_array(raw)
