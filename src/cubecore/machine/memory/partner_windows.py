"""Windows of global memory for what parts of AI Cores write into each other's memories.

An AIC's copy to its AIV's Unified Buffer, and an AIV's to its AIC's L1, is made in a window of
global memory, so that its order among the cores' accesses is judged as that of any of those. The
window's new bytes arrive in the memory itself where its core has waited for others. What that core
does in the memory is followed in the window, too (`windows_of`), in launches with such copies.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakMethod

import numpy as np
from numpy.typing import NDArray

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.mte.partner import AIVS, WINDOW_BYTES, ToPartner
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.topology import CoreId
from cubecore.machine.memory.pointer_stores import IssuedBytes
from cubecore.machine.memory.strided import Rows

Bytes = NDArray[np.uint8]
Run = tuple[int, int]


class LocalTarget(Protocol):
    """A local memory of one core, or of some in lockstep."""

    data: Bytes
    valid: Bytes


class Window(Protocol):
    """A tensor of global memory that windows lie in."""

    @property
    def address(self) -> int:
        """Its first address."""
        ...

    @property
    def end(self) -> int:
        """The first address behind it."""
        ...


class Unlike(Exception):  # noqa: N818 - no error: the cores go on apart
    """Cores in lockstep to which different bytes have come; `kinds` tell them apart."""

    def __init__(self, kinds: Sequence[object]) -> None:
        super().__init__("bytes that other parts have written")
        self.kinds = kinds


class _Arrivals(IssuedBytes):
    """The bytes written to windows, by window, until they have arrived."""

    __slots__ = ("_window_bytes", "pending")

    def __init__(self, size_bytes: int, window_bytes: int) -> None:
        super().__init__(size_bytes)
        self._window_bytes = window_bytes
        self.pending: dict[int, list[Run]] = {}

    def note(self, rows: Sequence[Rows], low: int, high: int) -> None:
        """Take that bytes [low, high) from each of some rows are about to be written."""
        super().note(rows, low, high)
        pitch = self._window_bytes
        for count, step, first in rows:
            for start in range(first + low, first + low + count * max(step, 1), max(step, 1)):
                end = start + high - low
                # A copy with two targets reaches from one window into the next.
                for window in range(start // pitch, (end - 1) // pitch + 1):
                    base = window * pitch
                    run = max(start - base, 0), min(end - base, pitch)
                    runs = self.pending.setdefault(window, [])
                    if run not in runs:
                        runs.append(run)


@dataclass(frozen=True, eq=False, slots=True)
class _Opened:
    """The windows of one memory of all cores of a launch, and what is on its way to them."""

    tensor: Window
    data: Bytes
    valid: Bytes
    arrivals: _Arrivals


Open = Callable[[str, int, Callable[[int], IssuedBytes]], tuple[Window, Bytes, Bytes]]
"""Makes a tensor of global memory: its bytes, and the map of those that were written.

It takes its name, its size, and what makes the notes of bytes that instructions write to it.
"""


class PartnerWindows:
    """The windows of a launch; none are there before a core sends something.

    They are part of the memory whose method `open_` is, and do not keep it.
    """

    def __init__(self, open_: Open) -> None:
        # A reference back would make a cycle, and a launch's memory would stay until it is found.
        self._open = WeakMethod(open_)
        self._opened: dict[Mem, _Opened] = {}
        self._blocks: dict[int, int] = {}
        self._cores: frozenset[CoreId] = frozenset()
        self._known: dict[CoreId, Mapping[Mem, int]] = {}

    def begin(self, cores: Sequence[CoreId]) -> None:
        """Begin a launch of cores: nothing is on its way."""
        blocks = sorted({core.core for core in cores})
        if self._blocks.keys() != set(blocks):
            self._opened.clear()
        self._blocks = {core: number for number, core in enumerate(blocks)}
        self._cores = frozenset(cores)
        self._known.clear()
        self.drop()

    def drop(self) -> None:
        """Drop what is on its way: the launch begins anew."""
        for opened in self._opened.values():
            opened.arrivals.pending.clear()
            opened.valid[:] = 0

    @property
    def are_used(self) -> bool:
        """True if some core has sent something."""
        return bool(self._opened)

    @property
    def memories(self) -> frozenset[Mem]:
        """The memories that some core has sent something to."""
        return frozenset(self._opened)

    def sent(
        self, chip: Chip, core: CoreId, copy: ToPartner, addresses: tuple[int, ...]
    ) -> tuple[Instruction, tuple[int, ...]]:
        """Return a copy as it is made from a core, with dst's address in its window."""
        parts = sum((core.core, 1 + part) in self._cores for part in range(AIVS))
        opened = self._opened.get(copy.window) or self._make(copy.window)
        template = copy.sent(addresses[0], memory_bytes(chip, copy.window)[0], parts)
        start = opened.tensor.address + self._window(copy.window, core) * WINDOW_BYTES[copy.window]
        # What breaks a rule is not made; its address is any.
        at = 0 if template.refused else addresses[0]
        return template, (start + at, *addresses[1:])

    def _window(self, mem: Mem, core: CoreId) -> int:
        """Return the number of the first window of a core's AI Core."""
        return self._blocks[core.core] * (AIVS if mem is Mem.UB else 1)

    def _make(self, mem: Mem) -> _Opened:
        pitch = WINDOW_BYTES[mem]
        count = len(self._blocks) * (AIVS if mem is Mem.UB else 1)
        arrivals: list[_Arrivals] = []

        def notes(size_bytes: int) -> IssuedBytes:
            arrivals.append(_Arrivals(size_bytes, pitch))
            return arrivals[0]

        name = f"{mem.label} of the {'AIVs' if mem is Mem.UB else 'AICs'}"
        open_ = self._open()
        assert open_ is not None  # of the memory that these are part of
        self._opened[mem] = _Opened(*open_(name, count * pitch, notes), arrivals[0])
        self._known.clear()
        return self._opened[mem]

    def windows_of(self, core: CoreId) -> Mapping[Mem, int]:
        """Return where in global memory a core's own memories have windows."""
        known = self._known.get(core)
        if known is None:
            own = Mem.L1 if core.is_aic else Mem.UB
            known = {}
            if (opened := self._opened.get(own)) is not None:
                number = self._window(own, core) + max(core.sub - 1, 0)
                known = {own: opened.tensor.address + number * WINDOW_BYTES[own]}
            self._known[core] = known
        return known

    def distances(self, cores: Sequence[CoreId]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the tensors that windows of cores' own memories lie in, and their distances."""
        for mem, first in self.windows_of(cores[0]).items():
            starts = np.array([self.windows_of(core)[mem] for core in cores], np.int64)
            yield self._opened[mem].tensor.address, starts - first

    def place(self, address: int) -> tuple[str, int] | None:
        """Return whose memory an address of global memory is a window of, and its start."""
        for mem, opened in self._opened.items():
            if opened.tensor.address <= address < opened.tensor.end:
                number, at = divmod(address - opened.tensor.address, WINDOW_BYTES[mem])
                parts = AIVS if mem is Mem.UB else 1
                core = next(c for c, n in self._blocks.items() if n == number // parts)
                part = CoreId(core, 1 + number % parts if mem is Mem.UB else 0)
                return f"{mem.label} of {part}", address - at
        return None

    def arrive(self, cores: Sequence[CoreId], memory: Callable[[Mem], LocalTarget | None]) -> None:
        """Put what was sent to cores, which have waited for others, into their own memories.

        Raises
        ------
        Unlike
            If other bytes have come to some of them.
        """
        for mem, opened in self._opened.items():
            if (mem is Mem.L1) is not cores[0].is_aic:
                continue
            first = [self._window(mem, core) + max(core.sub - 1, 0) for core in cores]
            pending = opened.arrivals.pending
            runs = [tuple(pending.get(number, ())) for number in first]
            if not any(runs):
                continue
            target = memory(mem)
            if target is not None:
                _arrive(opened, WINDOW_BYTES[mem], first, runs, target)
            for number in first:
                pending.pop(number, None)


def _arrive(
    opened: _Opened,
    pitch: int,
    numbers: Sequence[int],
    runs: Sequence[tuple[Run, ...]],
    target: LocalTarget,
) -> None:
    # Cores in lockstep have one map of what was written: all must get the same bytes. The runs are
    # no more than where to look; the marks in the window say which of their bytes are new, and are
    # taken off, so that a later copy beside them does not bring them again over newer ones.
    if any(each != runs[0] for each in runs):
        raise Unlike(runs)
    rows = target.data.reshape(len(numbers), -1)
    for low, high in runs[0]:
        starts = [number * pitch + low for number in numbers]
        marks = [opened.valid[start : start + high - low] for start in starts]
        if any((each != marks[0]).any() for each in marks):
            raise Unlike([each.tobytes() for each in marks])
        written = marks[0] != 0
        for row, start in zip(rows, starts, strict=True):
            part = opened.data[start : start + high - low]
            np.copyto(row[low:high], part, where=written)
        np.copyto(target.valid[low:high], marks[0].copy(), where=written)
        for each in marks:
            each[:] = 0
