"""The values in the scalar units' data caches, for orders in which lines stay held.

Semantics. A scalar load or store by the cache loads its line of 64 B from global memory, unless it
is held; loads return the held bytes, and stores change them. A changed line goes back to memory as
a whole, bytes of others' included: at a dcci for it, or when all cores have ended, core by core.
dcci drops the line, so that the next access loads it again. Copies, and scalar accesses past the
cache, meet memory alone. A kernel's plain pointers meet memory, too; the scalar unit of whoever
looks next takes what they stored.

Uncertain: the hardware may write a line back, and load it, at any time; here it does so as late as
it may, and loads no line that is not asked for.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import span_bytes
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import LINE_BYTES, Dcci
from cubecore.isa.scalar.store import StoreScalarGm
from cubecore.machine.memory.buffers import GlobalMemory, GlobalTensor

_Recorded = tuple[Instruction, tuple[int, ...], Location]


class _Line:
    """A held line, as far as its tensor goes: its bytes, which of them were written or changed.

    `below` is memory as instructions have left it since, where pointers may store: what differs
    there they have.
    """

    def __init__(self, tensor: GlobalTensor, number: int, *, pointers: bool) -> None:
        self._tensor, self._at = tensor, number * LINE_BYTES - tensor.address
        self.data, self.valid = self._memory.copy(), self._map.copy()
        self.changed = np.zeros(self.data.size, np.bool_)
        self.below = self.data.copy() if pointers else None

    @property
    def _memory(self) -> NDArray[np.uint8]:
        return self._tensor.buffer.data[self._at : self._at + LINE_BYTES]

    @property
    def _map(self) -> NDArray[np.uint8]:
        return self._tensor.buffer.valid[self._at : self._at + LINE_BYTES]

    def take_pointer_stores(self) -> None:
        """Take what pointers have stored to memory since."""
        if self.below is None:
            return
        stored = self._memory != self.below
        self.data[stored] = self.below[stored] = self._memory[stored]

    def refresh(self) -> None:
        """Take memory as it is now for what instructions have left."""
        if self.below is not None:
            self.below[:] = self._memory

    def store(self, low: int, high: int, execute: Callable[[], None]) -> None:
        """Keep from memory what is stored to bytes [low, high) of the tensor."""
        # The instruction is executed on memory, as every other, and memory is put back: the line
        # takes the new bytes and their marks.
        span = slice(low - self._at, high - self._at)
        memory, written = self._memory[span], self._map[span]
        before = memory.copy(), written.copy()
        execute()
        self.data[span], self.valid[span], self.changed[span] = memory, written, True
        memory[:], written[:] = before
        if not written.all():
            self._tensor.buffer.marks.whole = False

    def write_back(self) -> None:
        """Write the whole line to memory if it was changed."""
        if not self.changed.any():
            return
        self.take_pointer_stores()
        self._memory[:] = self.data
        self._map[:] = self.valid
        if not self.valid.all():
            self._tensor.buffer.marks.whole = False
        if self._tensor.issued is not None:
            self._tensor.issued.note(((1, 0, self._at),), 0, self.data.size)


class DataCaches:
    """The caches of all cores of a launch."""

    def __init__(self, gm: GlobalMemory) -> None:
        self.gm, self._caches = gm, list[DataCache]()

    def of_core(self) -> "DataCache":
        """Return the cache of one more core."""
        self._caches.append(DataCache(self))
        return self._caches[-1]

    def written(self, low: int, high: int) -> None:
        """Take that something other than a pointer has written bytes [low, high)."""
        if self.gm.pointers is not None:
            for cache in self._caches:
                cache.refresh(low, high)

    def end(self) -> None:
        """Write back what is left in any cache."""
        for cache in self._caches:
            cache.clean(None)


class DataCache:
    """The lines that one core's scalar unit holds, by their numbers."""

    def __init__(self, caches: DataCaches) -> None:
        self._caches, self._lines = caches, dict[int, _Line]()

    def load(self, address: int, size: int) -> bytes | None:
        """Return a value's bytes; None if it is not all in a tensor, aligned and written."""
        line = self._held(address, size)
        if line is None:
            return None
        line.take_pointer_stores()
        at = address % LINE_BYTES
        value = line.data[at : at + size]
        return value.tobytes() if line.valid[at : at + size].all() else None

    def perform(self, recorded: _Recorded, execute: Callable[[_Recorded], None]) -> None:
        """Execute an instruction as the cache has it."""
        template, addresses, _ = recorded
        if isinstance(template, StoreScalarGm) and template.cached:
            size = template.dtype.size_bytes
            line, tensor = self._held(addresses[0], size), self._caches.gm.at(addresses[0])
            if line is None or tensor is None:
                execute(recorded)
            else:
                line.take_pointer_stores()
                low = addresses[0] - tensor.address
                line.store(low, low + size, lambda: execute(recorded))
            return
        execute(recorded)
        if isinstance(template, Dcci) and template.cleans_globally:
            single = template.lines == "single"
            self.clean(template.address // LINE_BYTES if single else None)
            return
        for operand, address in zip(template.operands(), addresses, strict=False):
            if operand.mem is Mem.GM and operand.access.writes:
                span = span_bytes(template, operand, address)
                if span is not None:
                    self._caches.written(*span)

    def clean(self, number: int | None) -> None:
        """Write a line back and drop it, or all lines."""
        for each in list(self._lines) if number is None else [number]:
            line = self._lines.pop(each, None)
            if line is not None:
                line.write_back()
                self._caches.written(each * LINE_BYTES, (each + 1) * LINE_BYTES)

    def refresh(self, low: int, high: int) -> None:
        """Take that something other than a pointer has written bytes [low, high)."""
        for number, line in self._lines.items():
            if number * LINE_BYTES < high and low < (number + 1) * LINE_BYTES:
                line.refresh()

    def _held(self, address: int, size: int) -> _Line | None:
        """Return the line of an element, loaded if need be; None outside, or off alignment."""
        tensor = self._caches.gm.at(address)
        if tensor is None or address % size or address + size > tensor.end:
            return None
        number = address // LINE_BYTES
        line = self._lines.get(number)
        if line is None:
            pointers = self._caches.gm.pointers is not None
            line = self._lines[number] = _Line(tensor, number, pointers=pointers)
        return line
