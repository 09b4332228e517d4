"""Copies by cores in lockstep: bytes and their maps, for all cores at once."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import relation
from cubecore.layouts import Offsets, ascending
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.global_memory import outside
from cubecore.machine.lockstep.operands import (
    Cores,
    LockstepOperand,
    limits_of,
    require_inside,
    side,
)
from cubecore.machine.lockstep.sanitizer import NOWHERE
from cubecore.machine.memory.buffers import fillers, word_of
from cubecore.machine.memory.strided import Lattice, Rows, gathered, lattices, scatter, whole

_MOST_PLACED = 4096
"""Addresses of one template that are remembered as checked."""
_Bytes = NDArray[np.uint8]
Place = tuple[_Bytes, _Bytes, list[Rows], list[Rows]]
"""An operand's memory: bytes, map, and where the cores' bytes and their maps lie in them."""


def moving(cores: Cores, template: Instruction) -> Callable[[tuple[int, ...]], None]:
    """Return the act of a copy."""
    names = [operand.name for operand in template.operands()]
    pairs = [
        tuple(side(cores, template, names.index(name)) for name in pair) for pair in template.pairs
    ]
    fill, limits = template.fill(cores.registers), limits_of(cores, template)

    def move(dst: LockstepOperand, src: LockstepOperand) -> _Move:
        key = template, dst.place, src.place, fill
        return _MOVES.get(key) or _MOVES.setdefault(key, _Move(dst, src, fill))

    moves = [
        (dst.place, _finding(cores, dst), src.place, _finding(cores, src), move(dst, src))
        for dst, src in pairs
        if src.elements.offsets.size
    ]
    follow = cores.watch.follower(template, NOWHERE, cores.registers)
    inside = [index for index, o in enumerate(template.operands()) if o.mem is not Mem.GM]
    local = itemgetter(*inside)
    checked = BoundedCache[object, None](_MOST_PLACED)

    def act(addresses: tuple[int, ...]) -> None:
        places = template.operand_addresses(addresses)
        key = local(places)
        if key not in checked:
            require_inside(template, limits, places)
            if any(relation(template, places)):
                raise IrregularError(f"{template.name}: operands that meet")
            checked[key] = None
        follow(places)
        for to, find_to, from_, find_from, move in moves:
            move(find_from(places[from_]), find_to(places[to]))

    return act


def _finding(cores: Cores, one: LockstepOperand) -> Callable[[int], Place]:
    """Return what finds an operand at an address."""
    stack, count = one.stack, cores.count
    if stack is not None:
        data, valid = stack.data, stack.valid
        return lambda address: (data, valid, [stack.at(address)], [(1, 0, address)])
    if one.elements.span is None:  # all of it is filled
        nothing = np.zeros(1, np.uint8), np.zeros(1, np.uint8), [(1, 0, 0)], [(1, 0, 0)]
        return lambda _: nothing
    find = outside(cores, one)

    def found(address: int) -> Place:
        window = find(address)
        rows = window.rows(count)
        return window.buffer.data, window.buffer.valid, rows, rows

    return found


class _Move:
    """The copy of the elements of one pair of operands, on all cores.

    Negative offsets of the source are filled as `MemoryBuffer.move_to` does it.
    """

    def __init__(self, dst: LockstepOperand, src: LockstepOperand, fill: bytes | None) -> None:
        from_, to = (one.elements.offsets.reshape(-1) for one in (src, dst))
        size = src.element.size_bytes
        filled = np.flatnonzero(from_ < 0)
        self._parts: list[_Part] = []
        if not filled.size:
            self._parts.append(_copying(from_, to, size) or _Scattered(from_, to, size))
            return
        with_ = [part.take(-from_[filled] - 1, mode="clip") for part in fillers(fill, size)]
        copied = np.flatnonzero(from_ >= 0)
        if ascending(to).size < to.size:  # what comes last stays
            self._parts.append(_Scattered(from_, to, size, (filled, with_)))
            return
        if copied.size:
            own = from_[copied], to[copied], size
            self._parts.append(_copying(*own) or _Scattered(*own))
        self._parts.append(_Filling(to[filled], with_, size))

    def __call__(self, here: Place, there: Place) -> None:
        """Move from one place to the other."""
        (data, valid, rows, maps), (to, to_valid, to_rows, to_maps) = here, there
        if len(rows) == len(to_rows) == 1:
            pairs = [(rows[0], to_rows[0])]
            known = [((1, 0, maps[0][2]), to_maps[0])]
        else:
            sources = _as_many(rows, len(to_rows))
            pairs = list(zip(sources, _as_many(to_rows, len(sources)), strict=True))
            first = [(1, 0, at) for _, _, at in _as_many(maps, len(to_maps))[: len(to_maps)]]
            known = list(zip(first, to_maps, strict=True))
        for part in self._parts:
            for source, target in pairs:
                part.move(0, (data, source), (to, target))
            for source, target in known:
                part.move(1, (valid, source), (to_valid, target))


_MOVES = BoundedCache[tuple[Instruction, int, int, bytes | None], _Move]()
"""Moves by template, the places of both operands and the fill: alike for every group."""


def _as_many(rows: list[Rows], count: int) -> list[Rows]:
    """Return rows that lie evenly core by core, if there are more of them elsewhere."""
    if len(rows) >= count:
        return rows
    ((_, step, at),) = rows
    return [(1, 0, at + core * step) for core in range(count)]


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
    found = lattices(from_, to)
    if found is None or not found[1].distinct:
        return None
    run = min(one.run for one in found)
    source, target = (one.of_runs for one in found) if run > 1 else found
    return _Evenly(source, target, word_of(run * size), size)


class _Scattered:
    """Elements that lie anywhere; `filled` are the places of some, and what is put there."""

    def __init__(
        self,
        from_: Offsets,
        to: Offsets,
        size: int,
        filled: tuple[Offsets, list[Array]] | None = None,
    ) -> None:
        self._from, self._to, self._size = np.maximum(from_, 0), to, size
        self._word, self._filled = word_of(size), filled

    def move(self, which: int, here: Held, there: Held) -> None:
        """Move bytes, or their maps."""
        values = gathered(whole(*here, self._word, self._size), self._from)
        if self._filled is not None:
            places, with_ = self._filled
            values[:, places] = with_[which].view(self._word)
        scatter(whole(*there, self._word, self._size), self._to, values)


class _Filling:
    """Elements that are filled."""

    def __init__(self, to: Offsets, with_: list[Array], size: int) -> None:
        self._to, self._size, self._word = to, size, word_of(size)
        found = lattices(to)
        self._lattice = None if found is None or not found[0].distinct else found[0]
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
