"""Global memory under cores in lockstep: each core's bytes of a tensor lie at a distance."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.aliasing import Distances
from cubecore.machine.lockstep.operands import Cores, LockstepOperand
from cubecore.machine.memory.buffers import WORDS, MemoryBuffer
from cubecore.machine.memory.elements import even
from cubecore.machine.memory.strided import Rows, scatter, whole

Known = NDArray[np.bool_] | None
"""The known elements of a store; None: all."""


@dataclass(frozen=True, eq=False, slots=True)
class Window:
    """The addresses of one operand on all cores in a tensor: the first core's from `at` on."""

    buffer: MemoryBuffer
    at: int
    far: Distances

    def rows(self, cores: int) -> list[Rows]:
        """Return the cores' bytes: all of them, or if they lie unevenly core by core."""
        if self.far.step is not None:
            return [(cores, self.far.step, self.at)]
        return [(1, 0, at) for _, at in self.each()]

    def each(self) -> Iterator[tuple[MemoryBuffer, int]]:
        """Yield the buffer, and each core's address in it."""
        for distance in self.far.values.tolist():
            yield self.buffer, self.at + distance


def outside(cores: Cores, one: LockstepOperand) -> Callable[[int], Window]:
    """Return what finds an operand in global memory, which must touch something.

    Raises
    ------
    IrregularError
        If a core would leave the tensor, or read uninitialised bytes.
    """
    span, unit, writes = (
        one.elements.span or (0, 0),
        one.operand.alignment,
        one.operand.access.writes,
    )
    reach, gm, snapshots = cores.reach, cores.gm, cores.snapshots
    offsets = one.elements.offsets
    inside = offsets[offsets >= 0]

    def find(address: int) -> Window:
        low = address + span[0]
        tensor = reach.visible(gm.at(low), low, address + span[1])
        far = reach.distances(tensor)
        if address % unit or far.unit % unit:
            raise IrregularError("a global address that is misaligned")
        window = Window(tensor.buffer, address - tensor.address, far)
        if writes:
            snapshots.keep(tensor)
        elif not tensor.placed:
            for buffer, at in window.each():
                if not (
                    buffer.written(at, span) or buffer.initialised(at, inside, one.element).all()
                ):
                    raise IrregularError("uninitialised global memory")
        return window

    return find


def storing(cores: Cores, one: LockstepOperand) -> Callable[[int, Array, Known], None]:
    """Return what stores values of every core, [cores, *shape], in global memory."""
    if one.elements.span is None:
        return lambda *_: None
    find, size, numpy = outside(cores, one), one.element.size_bytes, one.element.numpy
    word, full = WORDS[size]
    lattice, places = even(one.elements), one.elements.offsets.reshape(-1)
    if lattice is not None and not lattice.distinct:
        lattice = None

    def store(address: int, values: Array, known: Known) -> None:
        window, first = find(address), 0
        buffer = window.buffer
        marks = full if known is None else np.where(known, full, 0)
        for rows in window.rows(cores.count):
            own = values[first : first + rows[0]]
            first += rows[0]
            if lattice is None:
                own = own.reshape(len(own), -1)
                scatter(whole(buffer.data, rows, numpy, size), places, own)
                known_there = marks if isinstance(marks, int) else marks.reshape(1, -1)
                scatter(whole(buffer.valid, rows, word, size), places, np.asarray(known_there))
                continue
            lattice.view(buffer.data, rows, numpy, size)[...] = own.reshape(-1, *lattice.shape)
            map_ = lattice.view(buffer.valid, rows, word, size)
            map_[...] = marks if isinstance(marks, int) else marks.reshape(lattice.shape)

    return store
