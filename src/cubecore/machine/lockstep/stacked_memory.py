"""Local memories of several cores at once: bytes [cores, bytes], and one initialised map for all.

Cores in lockstep write the same places, so that one map says it for every one of them.
"""

from collections.abc import Callable

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.machine.memory.buffers import POISON_BYTE, WORDS, MemoryBuffer
from cubecore.machine.memory.elements import Elements, even
from cubecore.machine.memory.strided import Rows, gathered, scatter


class Stack:
    """One local memory of every core of a group; addresses are bytes from its start.

    Elements are whole bytes; 4-bit ones are left to the rows.
    """

    def __init__(self, cores: int, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.data = np.full((cores, size_bytes), POISON_BYTE, np.uint8)
        self.valid = np.zeros(size_bytes, np.uint8)
        self.rows = [MemoryBuffer.over(row, self.valid) for row in self.data]

    @property
    def map(self) -> MemoryBuffer:
        """A core's memory, for what is asked of the map alone."""
        return self.rows[0]

    def read(self, address: int, here: Elements, element: ElementType) -> Array:
        """Return the elements, [cores, *shape of the offsets]: a view where they are a run."""
        return self.reader(address, here, element)()

    def at(self, address: int) -> Rows:
        """Return where the cores' bytes from an address on lie in `data`."""
        return len(self.data), self.size_bytes, address

    def reader(self, address: int, here: Elements, element: ElementType) -> Callable[[], Array]:
        """Return what reads elements at an address, all that can be looked up beforehand."""
        size, shape = element.size_bytes, (len(self.data), *here.offsets.shape)
        if here.span is None:
            nothing = np.zeros(shape, element.numpy)
            return lambda: nothing
        lattice = even(here)  # lanes that the mask excludes may lie outside
        if lattice is not None and address + (lattice.last + 1) * size <= self.size_bytes:
            view = lattice.view(self.data, self.at(address), element.numpy, size)
            if here.first is None:
                return lambda: view.reshape(shape)
            run = view.reshape(shape)
            return lambda: run
        window = self._window(address, element)
        places = np.clip(here.offsets.reshape(-1), 0, window.shape[1] - 1)
        return lambda: gathered(window, places).reshape(shape)

    def read_inside(self, address: int, here: Elements, element: ElementType) -> Array | None:
        """Return what `read` does; None where that would leave the memory, or nothing is read."""
        if here.span is None:
            return None
        low, high = here.span
        if address + low < 0 or address + high > self.size_bytes:
            return None
        return self.read(address, here, element)

    def writer(
        self, address: int, there: Elements, element: ElementType
    ) -> Callable[[Array], None]:
        """Return what stores values, [cores, *shape] or alike for all cores, at an address.

        Only where the mask lets them through; it says nothing about the map.
        """
        axes, size = there.offsets.ndim, element.size_bytes
        if there.run is not None:
            first, start, stop = there.run
            at = address + first * size
            window = self.data[:, at : at + (stop - start) * size].view(element.numpy)

            def put(values: Array) -> None:
                flat = values.reshape(*values.shape[: values.ndim - axes], -1)
                window[...] = flat[..., start:stop]

            return put
        lattice = even(there) if there.active is None else None
        if lattice is not None and lattice.distinct:
            evenly = lattice.view(self.data, self.at(address), element.numpy, size)
            shape = lattice.shape

            def put_evenly(values: Array) -> None:
                evenly[...] = values.reshape(*values.shape[: values.ndim - axes], *shape)

            return put_evenly
        return self._scatterer(address, there, element)

    def _scatterer(
        self, address: int, there: Elements, element: ElementType
    ) -> Callable[[Array], None]:
        """Return what stores values wherever they lie."""
        axes, window = there.offsets.ndim, self._window(address, element)
        through = there.through.reshape(-1)
        if not through.size:
            return lambda _: None
        chosen = None if there.active is None else np.flatnonzero(there.active)

        def put(values: Array) -> None:
            if np.may_share_memory(values, self.data):
                values = values.copy()
            flat = values.reshape(*values.shape[: values.ndim - axes], -1)
            scatter(window, through, flat if chosen is None else flat[..., chosen])

        return put

    def marker(self, address: int, there: Elements, element: ElementType) -> Callable[[], None]:
        """Return what notes that elements which the mask lets through were written."""
        size = element.size_bytes
        if there.run is not None:
            first, start, stop = there.run
            begin = address + first * size
            whole = self.valid[begin : begin + (stop - start) * size]
            return lambda: whole.fill(1)
        if there.span is None:
            return lambda: None
        lattice = even(there) if there.active is None else None
        if lattice is not None and size in WORDS:
            word, full = WORDS[size]
            view = lattice.view(self.valid, (1, 0, address), word, size)
            return lambda: view.fill(full)
        return lambda: self.map.mark(address, there.through, element, None)

    def _window(self, address: int, element: ElementType) -> Array:
        size = element.size_bytes
        end = address + (self.size_bytes - address) // size * size
        window: Array = self.data[:, address:end].view(element.numpy)
        return window
