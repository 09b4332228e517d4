"""Local memories of several cores at once: bytes [cores, bytes], and one initialised map for all.

Cores in lockstep write the same places, so that one map says it for every one of them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.machine.elements import Elements
from cubecore.machine.memory import POISON_BYTE, Array, Buffer


class Stack:
    """One local memory of every core of a group; addresses are bytes from its start.

    Elements are whole bytes; 4-bit ones are left to the rows.
    """

    def __init__(self, cores: int, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.data = np.full((cores, size_bytes), POISON_BYTE, np.uint8)
        self.valid = np.zeros(size_bytes, np.uint8)
        self.rows = [Buffer.over(row, self.valid) for row in self.data]

    @property
    def map(self) -> Buffer:
        """A core's memory, for what is asked of the map alone."""
        return self.rows[0]

    def read(self, address: int, here: Elements, element: ElementType) -> Array:
        """Return the elements, [cores, *shape of the offsets]: a view where they are a run."""
        size = element.size_bytes
        if here.first is not None:
            start = address + here.first * size
            run = self.data[:, start : start + here.offsets.size * size]
            return run.view(element.numpy).reshape(len(self.data), *here.offsets.shape)
        found: Array = self._window(address, element)[:, here.offsets]
        return found

    def read_inside(self, address: int, here: Elements, element: ElementType) -> Array | None:
        """Return what `read` does; None where that would leave the memory, or nothing is read."""
        if here.span is None:
            return None
        low, high = here.span
        if address + low < 0 or address + high > self.size_bytes:
            return None
        return self.read(address, here, element)

    def write(self, address: int, there: Elements, element: ElementType, values: Array) -> None:
        """Store values, [cores, *shape] or alike for all cores, where the mask lets them through.

        Says nothing about the map.
        """
        axes = there.offsets.ndim
        if np.may_share_memory(values, self.data):
            values = values.copy()
        lead = values.shape[: values.ndim - axes]
        flat = values.reshape(*lead, -1)
        if there.run is None:
            if there.active is not None:
                flat = flat[..., there.active.reshape(-1)]
            self._window(address, element)[:, there.through.reshape(-1)] = flat
            return
        first, start, stop = there.run
        size = element.size_bytes
        at = address + first * size
        window = self.data[:, at : at + (stop - start) * size].view(element.numpy)
        window[...] = flat[..., start:stop]

    def run(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the bytes [start, stop) of every core, as a view."""
        return self.data[:, start:stop]

    def _window(self, address: int, element: ElementType) -> Array:
        size = element.size_bytes
        end = address + (self.size_bytes - address) // size * size
        window: NDArray[Any] = self.data[:, address:end].view(element.numpy)
        return window
