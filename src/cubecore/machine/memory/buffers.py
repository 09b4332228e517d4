"""Byte-faithful memories: bytes, and for each byte whether anything was ever written there."""

from bisect import bisect_right
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.layouts import Offsets
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.memory import int4

POISON_BYTE = 0xFF
"""The contents of uninitialised memory: NaN in every float type, -1 in every integer type."""
GM_ALIGN_BYTES = 512
_GM_GUARD_BYTES = 4096
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


class MemoryBuffer:
    """A run of bytes with an initialised map; addresses are bytes from its start.

    Elements are whole bytes, or of 4 bits and packed (`cubecore.machine.memory.int4`).
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.data = np.full(size_bytes, POISON_BYTE, np.uint8)
        self.valid = np.zeros(size_bytes, np.uint8)

    @classmethod
    def over(cls, data: NDArray[np.uint8], valid: NDArray[np.uint8]) -> Self:
        """Return a buffer over bytes and a map that exist, and that others may share."""
        made = cls.__new__(cls)
        made.size_bytes, made.data, made.valid = data.size, data, valid
        return made

    def read(
        self, address: int, offsets: Offsets, element: ElementType, first: int | None = None
    ) -> Array:
        """Return the elements at `offsets` (elements from `address`), shaped as the offsets.

        The address may be any byte; all elements must lie inside the buffer. `first` says that the
        offsets count up from there one by one, here and below: it is faster to be told.
        """
        if first is not None:
            size = element.size_bytes
            start = address + first * size
            run = self.data[start : start + offsets.size * size].copy()
            return run.view(element.numpy).reshape(offsets.shape)
        if element.bits == int4.BITS:
            return int4.decode(int4.take(self.data[address:], offsets), element)
        return self._window(self.data, address, element).take(offsets, mode="clip")

    def written(self, address: int, span: tuple[int, int]) -> bool:
        """Return whether all bytes [start, end) from `address` were written, gaps included."""
        return 0 not in self.valid[address + span[0] : address + span[1]].tobytes()

    def initialised(
        self, address: int, offsets: Offsets, element: ElementType
    ) -> NDArray[np.bool_]:
        """Return whether every byte of each element was written, shaped as the offsets."""
        if element.bits == int4.BITS:
            return np.asarray(self.valid[address:].take(offsets >> 1, mode="clip") == 1)
        size = element.size_bytes
        window = self.valid[address : self._end(address, size)]
        if size not in WORDS:  # a block
            return np.asarray(window.reshape(-1, size).all(axis=1).take(offsets, mode="clip"))
        word, full = WORDS[size]
        return np.asarray(window.view(word).take(offsets, mode="clip") == full)

    def write(
        self,
        address: int,
        offsets: Offsets,
        element: ElementType,
        values: Array,
        first: int | None = None,
    ) -> None:
        """Store `values` at `offsets`; says nothing about the initialised map."""
        if first is not None:
            window = self._window(self.data, address, element)
            window[first : first + offsets.size] = values.reshape(-1)
            return
        if element.bits == int4.BITS:
            int4.put(self.data[address:], offsets, int4.encode(values))
        else:
            self._window(self.data, address, element)[offsets] = values

    def mark(
        self,
        address: int,
        offsets: Offsets,
        element: ElementType,
        valid: NDArray[np.bool_] | None,
        first: int | None = None,
    ) -> None:
        """Record that elements are initialised (None) or as initialised as `valid` says."""
        if first is not None and valid is None:
            start = address + first * element.size_bytes
            self.valid[start : start + offsets.size * element.size_bytes] = 1
            return
        if element.bits == int4.BITS:
            window, places = self.valid[address:], offsets >> 1
            window[places] = 1
            if valid is not None:
                window[places[~valid]] = 0
            return
        size = element.size_bytes
        raw = self.valid[address : self._end(address, size)].view(f"V{size}")
        full, none = np.ones(size, np.uint8).view(f"V{size}"), np.zeros(size, np.uint8)
        if valid is None:
            raw[offsets] = full
        else:
            raw[offsets] = np.where(valid, full, none.view(f"V{size}"))

    def move_to(
        self,
        target: "MemoryBuffer",
        addresses: tuple[int, int],
        offsets: tuple[Offsets, Offsets],
        element: ElementType,
        fill: bytes | None = b"",
        firsts: tuple[int, int] | None = None,
    ) -> None:
        """Copy elements to `target` with their initialised bytes.

        `addresses` and `offsets` are (here, at the target). A negative offset here is filled: -1
        with the first element of `fill`, -2 with the second; with zeros if there are no bytes, left
        unwritten if it is None. `firsts` says that both count up from there.
        """
        here, there = offsets
        if firsts is not None:
            size = element.size_bytes
            start, end = addresses[0] + firsts[0] * size, addresses[1] + firsts[1] * size
            stop = start + here.size * size
            target.data[end : end + stop - start] = self.data[start:stop]
            target.valid[end : end + stop - start] = self.valid[start:stop]
            return
        filled = here < 0
        if element.bits == int4.BITS:
            codes = int4.take(self.data[addresses[0] :], here)
            codes[filled] = (fill or b"\0")[0] & 0xF if fill is not None else POISON_BYTE & 0xF
            int4.put(target.data[addresses[1] :], there, codes)
            known = self.initialised(addresses[0], here, element)
            known = np.where(filled, fill is not None, known)
            target.mark(addresses[1], there, element, known)
            return
        size = element.size_bytes
        parts: tuple[Array, Array] | None = None
        if filled.any():
            number = -here[filled] - 1
            filler, known = (part.take(number, mode="clip") for part in fillers(fill, size))
            parts = filler, known
        word = word_of(size)
        last = target._end(addresses[1], size)  # noqa: SLF001 - the same class
        for part, source, sink in (0, self.data, target.data), (1, self.valid, target.valid):
            whole = source[addresses[0] : self._end(addresses[0], size)].view(word)
            values = whole.take(here, mode="clip")
            if parts is not None:
                values[filled] = parts[part].view(word)
            sink[addresses[1] : last].view(word)[there] = values

    def _window(self, data: NDArray[np.uint8], address: int, element: ElementType) -> Array:
        return data[address : self._end(address, element.size_bytes)].view(element.numpy)

    def _end(self, address: int, size: int) -> int:
        return address + (self.size_bytes - address) // size * size


def fillers(fill: bytes | None, size: int) -> tuple[Array, Array]:
    """Return the elements that fill, and the same of the initialised map."""
    if fill is None:
        raw, known = bytes([POISON_BYTE]) * size, 0
    else:
        raw, known = fill or bytes(size), 1
    count = len(raw) // size
    mark = np.full(count * size, known, np.uint8).view(f"V{size}")
    return np.frombuffer(raw, f"V{size}"), mark


@dataclass(frozen=True, eq=False, slots=True)
class GlobalTensor:
    """A tensor in global memory: its start, its bytes, and whether the host placed them all.

    `scratch`: its contents are not needed afterwards.
    """

    name: str
    address: int
    buffer: MemoryBuffer
    placed: bool = False
    scratch: bool = False

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.buffer.size_bytes


class GlobalMemory:
    """The device's memory: named tensors, apart from each other, with nothing between them."""

    def __init__(self) -> None:
        self._tensors: list[GlobalTensor] = []
        self._starts: list[int] = []
        self._next = GM_ALIGN_BYTES
        self._last: tuple[int, int, GlobalTensor | None] = 0, 0, None

    @property
    def tensors(self) -> tuple[GlobalTensor, ...]:
        """The tensors, by their addresses."""
        return tuple(self._tensors)

    def allocate(
        self, name: str, size_bytes: int, *, zeroed: bool = False, scratch: bool = False
    ) -> GlobalTensor:
        """Return a new tensor, 512-byte aligned: uninitialised, or all 0."""
        made = GlobalTensor(name, self._next, MemoryBuffer(size_bytes), scratch=scratch)
        tensor = self._enter(made)
        if zeroed:
            tensor.buffer.data[:], tensor.buffer.valid[:] = 0, 1
        return tensor

    def _enter(self, tensor: GlobalTensor) -> GlobalTensor:
        self._tensors.append(tensor)
        self._starts.append(tensor.address)
        behind = tensor.end + _GM_GUARD_BYTES
        self._next = -(-behind // GM_ALIGN_BYTES) * GM_ALIGN_BYTES
        return tensor

    def allocate_from(self, name: str, values: Array) -> GlobalTensor:
        """Return a new tensor that holds the bytes of `values` in C order."""
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        tensor = self._enter(GlobalTensor(name, self._next, MemoryBuffer(raw.size), placed=True))
        tensor.buffer.data[:] = raw
        tensor.buffer.valid[:] = 1
        return tensor

    def at(self, address: int) -> GlobalTensor | None:
        """Return the tensor that holds `address`, or None between tensors."""
        start, end, last = self._last  # most often it is the same as before
        if start <= address < end:
            return last
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address >= self._tensors[place].end:
            return None
        found = self._tensors[place]
        self._last = found.address, found.end, found
        return found

    def owners(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each address the start of the last tensor at or before it; -1 for none."""
        starts = np.array([-1, *self._starts], np.int64)
        return np.asarray(starts[np.searchsorted(starts[1:], addresses, side="right")])

    def near(self, address: int) -> GlobalTensor | None:
        """Return the tensor that holds `address` or ends last before it."""
        place = bisect_right(self._starts, address) - 1
        return self._tensors[place] if place >= 0 else None
