"""Moves of elements between two spots: bytes and their marks, of one core or of many at once."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.dtypes import ElementType
from cubecore.isa.declare.instruction import Instruction, Operand
from cubecore.layouts import Offsets, ascending
from cubecore.machine.memory import int4
from cubecore.machine.memory.buffers import POISON_BYTE, Spot, word_of
from cubecore.machine.memory.strided import Lattice, Rows, gathered, lattices, scatter, whole

_Bytes = NDArray[np.uint8]


class Move:
    """The move of elements from one operand to another, in their order.

    A negative offset of the source is filled: -1 with the first element of `fill`, -2 with the
    second; with zeros if there are no bytes, left unwritten if it is None.
    """

    def __init__(
        self, from_: Offsets, to: Offsets, element: ElementType, fill: bytes | None = b""
    ) -> None:
        from_, to = from_.reshape(-1), to.reshape(-1)
        self._parts: list[_Part] = []
        self._source: tuple[int, int] | None = None
        if not from_.size:
            return
        # Negative offsets are filled: the bytes that must be written before are those between the
        # others.
        copies = from_[from_ >= 0]
        if copies.size and (fill is not None or copies.size == from_.size):
            self._source = element.extent_bytes(int(copies.min()), int(copies.max()))
        if element.bits == int4.BITS:
            self._parts.append(_Nibbles(from_, to, fill))
            return
        size = element.size_bytes
        # Three kinds of parts, the fastest that fits: an even lattice on both sides (one strided
        # copy), scattered elements (gather and scatter), and elements that are filled. Where
        # targets repeat, one scatter keeps the order in which they are written.
        filled = np.flatnonzero(from_ < 0)
        if not filled.size:
            self._parts.append(_copying(from_, to, size) or _Scattered(from_, to, size))
            return
        with_ = [part.take(-from_[filled] - 1, mode="clip") for part in _fillers(fill, size)]
        copied = np.flatnonzero(from_ >= 0)
        if ascending(to).size < to.size:  # what comes last stays
            self._parts.append(_Scattered(from_, to, size, filled, with_))
            return
        if copied.size:
            of_copy = from_[copied], to[copied], size
            self._parts.append(_copying(*of_copy) or _Scattered(*of_copy))
        self._parts.append(_Filling(to[filled], with_, size))

    def __call__(self, here: Spot, there: Spot) -> None:
        """Move bytes and their marks from one spot to the other."""
        # Bytes have a row for each core, maps may be shared by all cores: then one map is moved. A
        # source and a target cut into different rows are cut at all of both's ends.
        rows, to_rows, maps, to_maps = here.rows, there.rows, here.maps, there.maps
        if len(rows) == len(to_rows) == 1:
            pairs = [(rows[0], to_rows[0])]
            map_pairs = [((1, 0, maps[0][2]), to_maps[0])]
        else:
            pairs = list(zip(_cut(rows, to_rows), _cut(to_rows, rows), strict=True))
            first = [(1, 0, at) for _, _, at in _cut(maps, to_maps)[: len(to_maps)]]
            map_pairs = list(zip(first, to_maps, strict=True))
        if there.whole and there.stays_whole(written=self._is_written(here)):
            map_pairs = []
        for part in self._parts:
            for source, target in pairs:
                part.move(0, (here.data, source), (there.data, target))
            for source, target in map_pairs:
                part.move(1, (here.valid, source), (there.valid, target))

    def _is_written(self, here: Spot) -> bool:
        """Return whether all between the first byte that is copied and the last was written."""
        if self._source is None:
            return False
        low, high = self._source
        return all(0 not in here.valid[at + low : at + high].tobytes() for _, _, at in here.maps)


_MOVES = BoundedCache[tuple[Instruction, str, str, bytes | None], Move]()


def move_of(template: Instruction, source: Operand, target: Operand, fill: bytes | None) -> Move:
    """Return the move between two operands of a copy, alike for all cores."""
    key = template, source.name, target.name, fill
    move = _MOVES.get(key)
    if move is None:
        from_, to = (template.offsets(operand.name) for operand in (source, target))
        move = _MOVES[key] = Move(from_, to, template.element(source), fill)
    return move


def _cut(rows: Sequence[Rows], like: Sequence[Rows]) -> Sequence[Rows]:
    """Return rows that all lie evenly cut into as many cores each as others do, if those do not."""
    if len(rows) >= len(like):
        return rows
    ((count, step, at),) = rows
    starts = accumulate((number for number, _, _ in like), initial=0)
    return [
        (number if count > 1 else 1, step, at + core * step)
        for (number, _, _), core in zip(like, starts, strict=False)
    ]


Held = tuple[_Bytes, Rows]
"""Bytes or maps, and where the cores' lie in them."""


class _Part(Protocol):
    """Some of the elements that are moved."""

    def move(self, which: int, here: Held, there: Held) -> None:
        """Move bytes (0) or their maps (1)."""
        ...


class _Evenly:
    """Elements, or runs of them, that lie evenly on both sides."""

    def __init__(self, from_: Lattice, to: Lattice, word: np.dtype[Any], size: int) -> None:
        self._shape, self._word = to.shape, word
        self._from, self._to = (
            (one.first * size, tuple(step * size for step in one.steps)) for one in (from_, to)
        )

    def move(self, _: int, here: Held, there: Held) -> None:
        """Move bytes, or their maps."""
        shape, word = self._shape, self._word
        (start, steps), (data, (count, step, at)) = self._from, here
        values = np.ndarray((count, *shape), word, data, at + start, (step, *steps))
        (start, steps), (data, (count, step, at)) = self._to, there
        to = np.ndarray((count, *shape), word, data, at + start, (step, *steps))
        to[...] = values


def _copying(from_: Offsets, to: Offsets, size: int) -> _Evenly | None:
    """Return what copies elements that lie evenly; None if they do not, or some meet."""
    evenly = lattices(from_, to)
    if evenly is None or not evenly[1].distinct:
        return None
    run = min(one.run for one in evenly)
    source, target = (one.of_runs for one in evenly) if run > 1 else evenly
    return _Evenly(source, target, word_of(run * size), size)


class _Scattered:
    """Elements that lie anywhere; `with_` is put in the places of those that are `filled`."""

    def __init__(
        self,
        from_: Offsets,
        to: Offsets,
        size: int,
        filled: Offsets | None = None,
        with_: Sequence[Array] = (),
    ) -> None:
        self._from, self._to, self._size = np.maximum(from_, 0), to, size
        self._word, self._filled, self._with = word_of(size), filled, with_

    def move(self, which: int, here: Held, there: Held) -> None:
        """Move bytes, or their maps."""
        values = gathered(whole(*here, self._word, self._size), self._from)
        if self._filled is not None:
            values[:, self._filled] = self._with[which].view(self._word)
        scatter(whole(*there, self._word, self._size), self._to, values)


class _Nibbles:
    """Elements of 4 bits, one core's."""

    def __init__(self, from_: Offsets, to: Offsets, fill: bytes | None) -> None:
        self._from, self._to, self._filled = from_, to, from_ < 0
        code = POISON_BYTE if fill is None else (fill or b"\0")[0]
        self._with = np.uint8(code & 0xF), fill is not None

    def move(self, which: int, here: Held, there: Held) -> None:
        """Move codes, or the marks of their bytes."""
        (data, (_, _, at)), (to, (_, _, start)) = here, there
        if which == 0:
            codes = int4.take(data[at:], self._from)
            codes[self._filled] = self._with[0]
            int4.put(to[start:], self._to, codes)
        else:
            defined = data[at:].take(self._from >> 1, mode="clip") != 0
            int4.mark(to[start:], self._to, np.where(self._filled, self._with[1], defined))


class _Filling:
    """Elements that are filled."""

    def __init__(self, to: Offsets, with_: list[Array], size: int) -> None:
        self._to, self._size, self._word = to, size, word_of(size)
        evenly = lattices(to)
        self._lattice = None if evenly is None or not evenly[0].distinct else evenly[0]
        self._with = [self._shaped(part.view(self._word)) for part in with_]

    def _shaped(self, values: Array) -> Array:
        if (values == values[0]).all():
            return values[:1]
        return values if self._lattice is None else values.reshape(self._lattice.shape)

    def move(self, which: int, _: Held, there: Held) -> None:
        """Put the bytes, or their maps."""
        if self._lattice is None:
            scatter(whole(*there, self._word, self._size), self._to, self._with[which])
        else:
            self._lattice.view(*there, self._word, self._size)[...] = self._with[which]


def _fillers(fill: bytes | None, size: int) -> tuple[Array, Array]:
    """Return the elements that fill, and the same of the initialised map."""
    if fill is None:
        raw, defined = bytes([POISON_BYTE]) * size, 0
    else:
        raw, defined = fill or bytes(size), 1
    count = len(raw) // size
    mark = np.full(count * size, defined, np.uint8).view(f"V{size}")
    return np.frombuffer(raw, f"V{size}"), mark
