"""Memory of launches whose arrays have sizes alone: larger than a machine's, and all 0.

Pages that nobody touches take no memory: those of arrays, of the maps of what was written, and of
cores that do not run.
"""

import mmap

import numpy as np

from cubecore.arrays import Array
from cubecore.machine.memory.buffers import (
    GM_GUARD_BYTES,
    Bytes,
    GlobalMemory,
    GlobalTensor,
)

_NO_RESERVE = 0x4000
_SMALL_BYTES = 1 << 20


class BlankMemory(GlobalMemory):
    """Global memory whose tensors are 0, and count as written as a whole."""

    def __init__(self, held: Bytes, space_bytes: int) -> None:
        GlobalMemory.__init__(self, None, space_bytes)  # not that of a class beside it
        self._held = held

    def allocate(
        self, name: str, size_bytes: int, *, zeroed: bool = False, scratch: bool = False
    ) -> GlobalTensor:
        """Return a new tensor; it is 0 in any case."""
        del zeroed
        tensor = self._entered(name, None, size_bytes, scratch=scratch)
        tensor.buffer.marks.whole = True
        return tensor

    def allocate_from(self, name: str, values: Array, *, stays: bool = False) -> GlobalTensor:
        """Return a new tensor of the size of `values`; a small one holds them: tiling data do."""
        del stays
        tensor = self._entered(name, None, values.nbytes, placed=True)
        if values.nbytes <= _SMALL_BYTES:
            tensor.buffer.data[:] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        tensor.buffer.marks.whole = True
        return tensor

    def _map(self, size: int) -> Bytes:
        # Shared pages without a reservation: neither a limit of a process's data nor the machine's
        # memory counts those that are not touched.
        flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NO_RESERVE
        return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8)

    def _filled(self, address: int, raw: Bytes | None, size: int) -> Bytes:
        del raw
        return self._held[address : address + size + GM_GUARD_BYTES]
