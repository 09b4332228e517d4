"""Places of operands in memory: elements from an address on, of one core or of many at once.

A place knows the bytes and the initialised map that its elements lie in, and how the cores' shares
of both are apart: rows of a stack that share a map, or distances in a tensor.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.machine.memory import int4
from cubecore.machine.memory.buffers import POISON_BYTE, WORDS, MemoryBuffer, Spot, word_of
from cubecore.machine.memory.elements import Elements, even
from cubecore.machine.memory.strided import Lattice, Rows, gathered, scatter, whole
from cubecore.numerics.nibbles import decode, encode

Bytes = NDArray[np.uint8]
Known = NDArray[np.bool_] | None
"""The known elements of what is written, alike on all cores; None: all."""


class MemoryStack:
    """One local memory of each core of a group; addresses are bytes from its start.

    Cores in lockstep write the same places, so that one initialised map says it for all of them.
    """

    def __init__(self, cores: int, size_bytes: int) -> None:
        self.cores, self.size_bytes = cores, size_bytes
        self.data = np.empty((cores, size_bytes), np.uint8)
        self.data[:] = POISON_BYTE
        self.valid = np.zeros(size_bytes, np.uint8)
        self.rows = [MemoryBuffer.over(row, self.valid) for row in self.data]
        self._flat = self.data.reshape(-1)

    def spot(self, address: int) -> Spot:
        """Return an address, the same on every core."""
        rows = ((self.cores, self.size_bytes, address),)
        return Spot(self._flat, self.valid, rows, ((1, 0, address),))


class Place:
    """The elements of an operand at a spot: [cores, *shape of the offsets], or the shape alone."""

    __slots__ = ("_element", "_evenly", "_in_order", "_map", "_shape", "_spot", "_view", "here")

    def __init__(self, spot: Spot, here: Elements, element: ElementType) -> None:
        self._spot, self.here, self._element = spot, here, element
        self._view: Array | None = None
        self._in_order = False
        self._map: Bytes | None = None
        self._evenly: _Even | None = None
        cores = () if spot.alone else (sum(row[0] for row in spot.rows),)
        self._shape = *cores, *here.offsets.shape

    # --- reading

    def read(self) -> Array:
        """Return the elements; of many cores perhaps a view.

        Those that the mask excludes may lie outside of the memory, and are anything.
        """
        spot, here, element, view = self._spot, self.here, self._element, self._view
        if view is not None:
            return self._again(view)
        if here.span is None:
            return np.zeros(self._shape, element.numpy)
        if element.bits == int4.BITS:
            codes = [int4.take(spot.data[at:], here.offsets) for at in _starts(spot.rows)]
            return decode(np.stack(codes), element).reshape(self._shape)
        parts = []
        for rows in spot.rows:
            lattice = even(here)
            if lattice is None or not self._fits(lattice, rows):
                parts.append(self._gathered(rows))
                continue
            # Even offsets are a strided view, several times faster than gathering by an index
            # array.
            words = _words(lattice, spot.data, rows, element.size_bytes)
            if not spot.alone and len(spot.rows) == 1:
                view = lattice.view(spot.data, rows, element.numpy, element.size_bytes)
                elements = view.reshape(self._shape)
                self._in_order = np.may_share_memory(elements, view)
                self._view = elements if self._in_order else words
                return elements
            parts.append(self._copied(words).reshape(rows[0], -1))
        elements = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return elements.reshape(self._shape)

    def _copied(self, words: Array) -> Array:
        """Return the elements of words that lie apart, one after another."""
        return np.array(words, order="C").view(self._element.numpy)

    def _again(self, view: Array) -> Array:
        """Return the elements of all cores by what is known of them; one's if it serves for all."""
        if self._in_order:
            return view
        if not self._is_shared():
            return self._copied(view).reshape(self._shape)
        return np.broadcast_to(self._copied(view[:1]).reshape(self._shape[1:]), self._shape)

    def _is_shared(self) -> bool:
        """Return whether all cores have the same bytes between the first and the last."""
        low, high = self.here.span or (0, 0)
        ((count, step, at),) = self._spot.rows
        size = 8 if (high - low) % 8 == 0 else 1
        shape, strides = (count, (high - low) // size), (step, size)
        words = np.ndarray(shape, f"u{size}", self._spot.data, at + low, strides)
        # Most often the first bytes differ if any do: a look at few spares the comparison of all.
        if (words[1:, :_FEW] != words[0, :_FEW]).any():
            return False
        return bool((words[1:] == words[0]).all())

    def _fits(self, lattice: Lattice, rows: Rows) -> bool:
        """True if all elements lie inside of the bytes, those too that the mask excludes."""
        count, step, at = rows
        behind = at + (lattice.last + 1) * self._element.size_bytes
        return behind + step * (count - 1) <= self._spot.data.size

    def _gathered(self, rows: Rows) -> Array:
        window = whole(self._spot.data, rows, self._element.numpy, self._element.size_bytes)
        indices = np.clip(self.here.offsets.reshape(-1), 0, window.shape[1] - 1)
        return gathered(window, indices)

    # --- the initialised map

    def written(self) -> bool:
        """Return whether all between the first byte and the last was written, on every core."""
        cached = self._map
        if cached is None:
            span = self.here.span
            if span is None:
                return True
            valid, starts = self._spot.valid, list(_starts(self._spot.maps))
            if len(starts) > 1:
                parts = [valid[at + span[0] : at + span[1]] for at in starts]
                return all(0 not in part.tobytes() for part in parts)
            cached = self._map = valid[starts[0] + span[0] : starts[0] + span[1]]
        return 0 not in cached.tobytes()

    def ready(self) -> NDArray[np.bool_]:
        """Return whether every byte of each element was written, shaped as the offsets.

        The map must be one.
        """
        ((_, _, at),) = self._spot.maps
        offsets, bits = self.here.offsets, self._element.bits
        valid = self._spot.valid
        if bits == int4.BITS:
            return np.asarray(valid[at:].take(offsets >> 1, mode="clip") != 0)
        size = bits // 8
        window = valid[at : at + (valid.size - at) // size * size]
        if size not in WORDS:  # a block
            return np.asarray(window.reshape(-1, size).all(axis=1).take(offsets, mode="clip"))
        word, full = WORDS[size]
        marks = window.view(word).take(offsets, mode="clip")
        ready = np.asarray(marks == full)
        if not ready.all():  # of filling, which has marks of its own, or unwritten
            # A byte is 0 where taking 1 from each byte sets a top bit that it did not have.
            ready = np.asarray((marks - full) & ~marks & (full << 7) == 0)
        return ready

    # --- writing

    def write(self, values: Array, defined: Known = None) -> None:
        """Store values, of each core or alike for all, where the mask lets them through.

        What is stored counts as written, or of `defined` elements that part.
        """
        here, element = self.here, self._element
        if here.span is None:
            return
        marked = self._spot.stays_whole(written=defined is None)
        axes = here.offsets.ndim
        flat = values.reshape(*values.shape[: values.ndim - axes], -1)
        if element.bits == int4.BITS:
            self._write_nibbles(flat, defined)
            return
        even_ = self._evenly
        if even_ is None:
            even_ = self._evenly = self._layout() or _NOWHERE
        if even_ is _NOWHERE:
            self._scatter(flat, defined)
            return
        views, maps, kept, full = even_
        if kept is not None:
            flat = flat[..., kept]
        else:
            flat = np.ascontiguousarray(flat, element.numpy).view(views[0][1].dtype)
        for number, view in views:
            values_of_rows = flat[number : number + len(view)] if flat.ndim > 1 else flat
            view[...] = values_of_rows.reshape(*values_of_rows.shape[:-1], *view.shape[1:])
        for map_ in () if marked else maps:
            if defined is None:
                map_.fill(full)
            else:
                marks = defined.reshape(-1)[kept or slice(None)].reshape(map_.shape[1:])
                map_[...] = np.where(marks, full, np.zeros_like(full))

    def _layout(self) -> "_Even | None":
        """Return where elements lie that are stored evenly; None if they do not."""
        spot, here, element = self._spot, self.here, self._element
        size, kept = element.size_bytes, None
        if size not in WORDS:
            return None
        if here.run is not None:
            first, start, stop = here.run
            lattice, kept = Lattice(first, (stop - start,), (1,)), slice(start, stop)
            views = [
                (number, lattice.view(spot.data, rows, element.numpy, size))
                for number, rows in _numbered(spot.rows)
            ]
        else:
            evenly = even(here) if here.active is None else None
            if evenly is None or not evenly.distinct:
                return None
            lattice = evenly
            views = [
                (number, _words(lattice, spot.data, rows, size))
                for number, rows in _numbered(spot.rows)
            ]
        word, full = WORDS[size]
        maps = [lattice.view(spot.valid, rows, word, size) for rows in spot.maps]
        return views, maps, kept, np.dtype(word).type(full)

    def _scatter(self, flat: Array, defined: Known) -> None:
        """Store flat values wherever they lie."""
        spot, here, size = self._spot, self.here, self._element.size_bytes
        through, marks = here.through.reshape(-1), _full(size)
        if defined is not None:
            marks = np.where(defined.reshape(-1), marks, _none(size))
        if here.active is not None:
            chosen = np.flatnonzero(here.active)
            flat = flat[..., chosen]
            marks = marks if defined is None else marks[chosen]
        if np.may_share_memory(flat, spot.data):
            flat = flat.copy()
        for number, rows in _numbered(spot.rows):
            values_of_rows = flat[number : number + rows[0]] if flat.ndim > 1 else flat[None]
            scatter(whole(spot.data, rows, self._element.numpy, size), through, values_of_rows)
        for rows in spot.maps:
            scatter(whole(spot.valid, rows, marks.dtype, size), through, marks[None])

    def _write_nibbles(self, flat: Array, defined: Known) -> None:
        spot, here = self._spot, self.here
        through = here.through.reshape(-1)
        chosen = slice(None) if here.active is None else np.flatnonzero(here.active)
        codes = encode(flat)[..., chosen]
        for number, at in enumerate(_starts(spot.rows)):
            int4.put(spot.data[at:], through, codes[number] if codes.ndim > 1 else codes)
        for at in _starts(spot.maps):
            int4.mark(
                spot.valid[at:], through, None if defined is None else defined.reshape(-1)[chosen]
            )


def _words(lattice: Lattice, data: Bytes, rows: Rows, size: int) -> Array:
    """Return runs of elements as one word each: NumPy copies these in half the time."""
    runs = lattice.of_runs if lattice.run > 1 else lattice
    return runs.view(data, rows, word_of(lattice.run * size), size)


_FEW = 8
"""Words that are compared first: cores that differ do so in these most often."""
_Even = tuple[Sequence[tuple[int, Array]], Sequence[Array], slice | None, np.generic]
"""Views of bytes, each with its first core, and of maps; what they take of the values; a mark."""
_NOWHERE: _Even = (), (), None, np.uint8(0)


def _starts(rows: Sequence[Rows]) -> Iterator[int]:
    """Yield where each core's bytes start."""
    for count, step, at in rows:
        for core in range(count):
            yield at + core * step


def _numbered(rows: Sequence[Rows]) -> Iterator[tuple[int, Rows]]:
    """Yield rows with the number of their first core."""
    number = 0
    for part in rows:
        yield number, part
        number += part[0]


@lru_cache
def _full(size: int) -> Array:
    """Return the mark of one element all of which is written."""
    return np.ones(size, np.uint8).view(word_of(size))


@lru_cache
def _none(size: int) -> Array:
    return np.zeros(size, np.uint8).view(word_of(size))
