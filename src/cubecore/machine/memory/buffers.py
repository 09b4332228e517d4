"""Byte-faithful memories: bytes, and for each byte whether anything was ever written there."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.machine.memory.filling_table import FillingTable
from cubecore.machine.memory.local_arrays import LocalArrays
from cubecore.machine.memory.partner_windows import PartnerWindows
from cubecore.machine.memory.pointer_stores import Contents, IssuedBytes, PointerStores
from cubecore.machine.memory.strided import Rows

Bytes = NDArray[np.uint8]
POISON_BYTE = 0xFF
"""The contents of uninitialised memory: NaN in every float type, -1 in every integer type."""
GM_ALIGN_BYTES = 512
GM_GUARD_BYTES = 4096
GM_SPACE_BYTES = 1 << 38
"""The addresses that tensors are spread over, so that what leaves one does not come to another."""
_GAP_SHARE = 16
_LEAST_GAP_BYTES = 1 << 20
"""A gap is a 16th of the addresses that are left, as a power of two: tensors lie as without gaps
in all that depends on an address's lower bits. One that would be smaller is left out."""
WORDS: dict[int, tuple[str, int]] = {
    1: ("u1", 0x01),
    2: ("u2", 0x0101),
    4: ("u4", 0x01010101),
    8: ("u8", 0x0101010101010101),
}
"""A size's unsigned word, and what a map holds where an element of that size was written."""


@lru_cache
def word_of(size: int) -> np.dtype[Any]:
    """Return the type of words of so many bytes."""
    return np.dtype(f"u{size}" if size in WORDS else f"V{size}")


class Marks:
    """The marks of a tensor's bytes.

    `whole` while each byte of it is known to have its mark; `scratch`: they are not needed
    afterwards.
    """

    __slots__ = ("scratch", "whole")

    def __init__(self, *, scratch: bool = False) -> None:
        self.scratch, self.whole = scratch, False


class Spot(NamedTuple):
    """An address in the memory of each of some cores.

    `rows` are where the cores' bytes from there on lie in `data`, and `maps` where the marks of
    what was written lie in `valid`. `alone`: it is one core's, and arrays have no axis of cores.
    `marks` tell of a tensor's; one core may also reach what lies behind it.
    """

    data: Bytes
    valid: Bytes
    rows: Sequence[Rows]
    maps: Sequence[Rows]
    alone: bool = False
    marks: Marks | None = None

    @property
    def whole(self) -> bool:
        """True if it lies in a tensor each byte of which is known to have its mark."""
        return self.marks is not None and self.marks.whole

    def stays_whole(self, *, written: bool) -> bool:
        """Take that something is stored, all of it `written`; return whether no mark changes."""
        if not self.whole:
            return False
        assert self.marks is not None
        self.marks.whole = written
        return written and not self.alone


class MemoryBuffer:
    """A run of bytes with an initialised map; addresses are bytes from its start."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.data = np.full(size_bytes, POISON_BYTE, np.uint8)
        self.valid = np.zeros(size_bytes, np.uint8)
        self.marks = Marks()

    @classmethod
    def over(cls, data: Bytes, valid: Bytes, marks: Marks | None = None) -> Self:
        """Return a buffer over bytes and a map that exist, and that others may share."""
        buffer = cls.__new__(cls)
        buffer.size_bytes, buffer.data, buffer.valid = data.size, data, valid
        buffer.marks = marks or Marks()
        return buffer

    def spot(self, address: int) -> Spot:
        """Return an address, of one core."""
        rows = ((1, 0, address),)
        return Spot(self.data, self.valid, rows, rows, alone=True, marks=self.marks)

    def written(self, low: int, high: int) -> bool:
        """Return whether all bytes [low, high) were written, gaps included."""
        return 0 not in self.valid[low:high].tobytes()


@dataclass(frozen=True, eq=False, slots=True)
class GlobalTensor:
    """A tensor in global memory: its start, its bytes, and whether the host placed them all.

    `wide` has the bytes behind it as well, which an access that leaves the tensor reaches on a
    device. `origin` are the host's bytes that it was filled with, if they stay as they are while a
    launch runs. `issued` are the bytes of `wide` that instructions wrote, where a kernel's pointers
    may have written others.
    """

    name: str
    address: int
    buffer: MemoryBuffer
    placed: bool = False
    wide: MemoryBuffer = field(default_factory=lambda: MemoryBuffer(0))
    origin: Bytes | None = None
    issued: IssuedBytes | None = None

    @property
    def scratch(self) -> bool:
        """True if its contents are not needed afterwards."""
        return self.buffer.marks.scratch

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.buffer.size_bytes

    def stored(self, low: int, high: int) -> NDArray[np.bool_]:
        """Return which of the bytes [low, high) were stored to, from initialised memory or not.

        Where stores are not noted, those that are initialised.
        """
        valid = np.asarray(self.buffer.valid[low:high] != 0)
        return valid if self.issued is None else valid | self.issued.marked(low, high)


def starts_of(sizes: Iterable[int], space_bytes: int = GM_SPACE_BYTES) -> Iterator[int]:
    """Yield the addresses of tensors of these sizes, allocated one after another."""
    start = GM_ALIGN_BYTES
    for size in sizes:
        yield start
        start = _next_start(start + size, space_bytes)


def _next_start(end: int, space_bytes: int) -> int:
    """Return the address of the tensor behind one that ends at `end`, a gap between them."""
    # A guard behind each tensor catches small overruns; the gap behind it lets an address that
    # strays far still be told from the next tensor. Gaps shrink with what is left of the address
    # space.
    start = -(-(end + GM_GUARD_BYTES) // GM_ALIGN_BYTES) * GM_ALIGN_BYTES
    share = max(space_bytes - start, 0) // _GAP_SHARE
    return start + (1 << share.bit_length() - 1 if share >= _LEAST_GAP_BYTES else 0)


class GlobalMemory:
    """The device's memory: named tensors, apart from each other, with nothing between them.

    `pointers` are the stores to it that no instruction makes, if the kernel can make such stores;
    `local_arrays` what the launch's kernels declare in local memories; `fillings` are those of its
    launches, if they are followed; `windows` what AI Cores' parts write into each other's memories.
    The tensors are spread over `space_bytes` addresses.
    """

    def __init__(
        self, pointers: PointerStores | None = None, space_bytes: int = GM_SPACE_BYTES
    ) -> None:
        self.pointers, self._space_bytes = pointers, space_bytes
        self._follows_stores = pointers is not None
        self.local_arrays = LocalArrays()
        self.windows = PartnerWindows(self._open_windows)
        self.fillings: FillingTable | None = None
        self._tensors: list[GlobalTensor] = []
        self._starts: list[int] = []
        self._next = GM_ALIGN_BYTES
        self._last: tuple[int, int, GlobalTensor | None] = 0, 0, None

    @property
    def tensors(self) -> tuple[GlobalTensor, ...]:
        """The tensors, by their addresses."""
        return tuple(self._tensors)

    def follow_fillings(self) -> None:
        """Mark filling from here on, in these tensors and in local memories."""
        if self.fillings is None:
            self.fillings = FillingTable()
        for tensor in self._tensors:
            tensor.buffer.marks.whole = False

    def follow_stores(self) -> None:
        """Note the bytes that instructions write, in tensors from here on."""
        self._follows_stores = True

    def allocate(
        self, name: str, size_bytes: int, *, zeroed: bool = False, scratch: bool = False
    ) -> GlobalTensor:
        """Return a new tensor, 512-byte aligned: uninitialised, or all 0."""
        tensor = self._entered(name, None, size_bytes, scratch=scratch)
        if zeroed:
            tensor.buffer.data[:], tensor.buffer.valid[:] = 0, 1
            tensor.buffer.marks.whole = self.fillings is None
        return tensor

    def allocate_from(self, name: str, values: Array, *, stays: bool = False) -> GlobalTensor:
        """Return a new tensor that holds the bytes of `values` in C order.

        `stays`: nobody changes the values while a launch runs.
        """
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        tensor = self._entered(name, raw, raw.size, placed=True, origin=raw if stays else None)
        tensor.buffer.valid[:], tensor.buffer.marks.whole = 1, self.fillings is None
        return tensor

    def _entered(
        self,
        name: str,
        raw: Bytes | None,
        size: int,
        *,
        placed: bool = False,
        scratch: bool = False,
        origin: Bytes | None = None,
        notes: Callable[[int], IssuedBytes] | None = None,
    ) -> GlobalTensor:
        """Return a new tensor of these bytes, or uninitialised.

        `notes` makes what notes the bytes that instructions write, for so many.
        """
        address, data = self._next, self._filled(self._next, raw, size)
        marks = Marks(scratch=scratch)
        valid = self._map(data.size)
        if notes is None and self._follows_stores:
            notes = IssuedBytes
        issued = None if notes is None else notes(data.size)
        buffer = MemoryBuffer.over(data[:size], valid[:size], marks)
        wide = MemoryBuffer.over(data, valid, marks)
        tensor = GlobalTensor(name, address, buffer, placed, wide, origin, issued)
        self._tensors.append(tensor)
        self._starts.append(address)
        self._next = _next_start(tensor.end, self._space_bytes)
        return tensor

    def _open_windows(
        self, name: str, size: int, notes: Callable[[int], IssuedBytes]
    ) -> tuple[GlobalTensor, Bytes, Bytes]:
        """Return a tensor for what parts of AI Cores write into each other's memories."""
        tensor = self._entered(name, None, size, scratch=True, notes=notes)
        return tensor, tensor.buffer.data, tensor.buffer.valid

    def _map(self, size: int) -> Bytes:
        """Return the map of what was written of so many bytes: nothing."""
        return np.zeros(size, np.uint8)

    def _filled(self, _address: int, raw: Bytes | None, size: int) -> Bytes:
        """Return memory that holds these bytes, or nobody's, and nobody's behind them."""
        data = np.empty(size + GM_GUARD_BYTES, np.uint8)
        data[:size] = POISON_BYTE if raw is None else raw
        data[size:] = POISON_BYTE
        return data

    def at(self, address: int) -> GlobalTensor | None:
        """Return the tensor that holds `address`, or None between tensors."""
        start, end, last = self._last  # most often it is the same as before
        if start <= address < end:
            return last
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._tensors[index].end:
            return None
        tensor = self._tensors[index]
        self._last = tensor.address, tensor.end, tensor
        return tensor

    def settle(self, tensor: GlobalTensor, low: int, high: int, *, every: bool = False) -> bool:
        """Mark bytes that pointers stored as written, if they were cleaned or in `every` case.

        Return whether others were stored, which are in the data cache alone.
        """
        if self.pointers is None:
            return False
        at = tensor.address
        return self.pointers.settle(at, _contents(tensor), low - at, high - at, every=every)

    def has_stored(self, address: int) -> bool:
        """Return whether a pointer stored to the line of an address."""
        tensor = self.at(address)
        if self.pointers is None or tensor is None:
            return False
        return self.pointers.has_stored(_contents(tensor), address - tensor.address)

    def take_stores(self) -> None:
        """Take tensors as written, but for what instructions wrote, if pointers stored to them.

        Stores of what unwritten memory holds are not seen.
        """
        if self.pointers is not None:
            for tensor in self._tensors:
                self.pointers.take_whole(_contents(tensor))

    def owners(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each address the start of the last tensor at or before it; -1 for none."""
        starts = np.array([-1, *self._starts], np.int64)
        return np.asarray(starts[np.searchsorted(starts[1:], addresses, side="right")])

    def start_of(self, address: int) -> int:
        """Return the start of the last tensor at or before an address; -1 for none."""
        index = bisect_right(self._starts, address) - 1
        return self._starts[index] if index >= 0 else -1

    def near(self, address: int) -> GlobalTensor | None:
        """Return the tensor that holds `address` or ends last before it."""
        index = bisect_right(self._starts, address) - 1
        return self._tensors[index] if index >= 0 else None

    def nearest(self, address: int) -> GlobalTensor | None:
        """Return the tensor that an address was counted from, if it leaves it; None for null.

        It is the last tensor before the address, or the next one, where a quarter of the gap
        between them or less is left.
        """
        # An address in a gap most likely ran over its tensor's end; only right before the next
        # tensor it more likely ran below that one's start.
        behind = bisect_right(self._starts, address)
        last = self._tensors[behind - 1] if behind else None
        if behind == len(self._tensors) or (last is not None and address < last.end):
            return last
        next_one = self._tensors[behind]
        left = next_one.address - address
        if last is None:
            return next_one if left <= self._space_bytes // _GAP_SHARE else None
        gap = next_one.address - last.end
        return next_one if gap >= _LEAST_GAP_BYTES and left <= gap // 4 else last


def _contents(tensor: GlobalTensor) -> Contents:
    """Return what pointer stores are looked up in."""
    assert tensor.issued is not None, "a tensor of memory that pointers store to"
    return Contents(tensor.buffer.data, tensor.buffer.valid, tensor.issued)
