"""Instructions prepared for cores in lockstep: what an issue does once its addresses are known.

An act checks an address the first time that it meets it: alignment, bounds, overlap. What the
reference engine would report, or do repeat by repeat, ends lockstep or is left to it.
"""

from collections.abc import Callable, Mapping
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.dtypes import ElementType
from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.declare.operand_overlap import relation
from cubecore.isa.declare.registers import Registers
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.global_memory import storing
from cubecore.machine.lockstep.operands import Cores, limits_of, require_inside, side
from cubecore.machine.lockstep.sanitizer import NOWHERE
from cubecore.machine.lockstep.stacked_memory import Stack
from cubecore.machine.memory.elements import Elements, elements

_MOST_PLACED = 1024
"""Addresses of one template that are remembered, with what is done there."""
_Bytes = NDArray[np.uint8]


def steers(template: Instruction) -> tuple[Operand, ...]:
    """Return the operands of a template whose values decide what the others touch."""
    names = template.steering
    return tuple(o for o in template.operands() if o.name in names) if names else ()


def prepares(template: Instruction, registers: Registers) -> bool:
    """True if a resolved template, located if values steer it, is done for all cores at once."""
    kind = type(template)
    if not template.lies_anywhere:
        return False
    operands = template.operands()
    if any(template.element(operand).bits < 8 for operand in operands):
        return False
    if template.copies:
        to_global = any(o.mem is Mem.GM and o.access.writes for o in operands)
        return not (to_global and registers.atomic)
    globally = [o for o in operands if o.mem is Mem.GM]
    if any(o.access.reads or registers.atomic for o in globally):
        return False
    if kind.leaves is not Instruction.leaves:
        some = all(elements(template, o.name).span is not None for o in operands)
        if not ((template.leaves_whole or template.stacks_left) and some):
            return False
    return template.stacks_left if template.reads_left else template.stacks


@dataclass(frozen=True, eq=False, slots=True)
class _Source:
    """An operand that is read: where, and whether an unwritten element is a finding."""

    place: int
    name: str
    stack: Stack
    here: Elements
    element: ElementType
    propagates: bool

    def written(self, at: int) -> bool:
        """Return whether all between its first and its last byte was written."""
        return self.here.span is None or self.stack.map.written(at, self.here.span)


@dataclass(frozen=True, eq=False, slots=True)
class _Target:
    """An operand that is written: its memory (None: global), and its elements."""

    place: int
    name: str
    stack: Stack | None
    there: Elements
    element: ElementType


Inputs = dict[str, Array]
_Read = tuple[_Source, Callable[[], Array], _Bytes | None]
"""A source, what reads it, and the part of its memory's map; None where that does not count."""
_Write = tuple[_Target, Callable[[Array], None], Callable[[], None]]
"""A target in a local memory, what stores values there, and what notes that it is written."""


@dataclass(frozen=True, eq=False, slots=True)
class _Bound:
    """The operation of a template at given addresses; `alone`: one repeat feeds the next."""

    alone: bool
    reads: tuple[_Read, ...] = ()
    writes: tuple[_Write, ...] = ()


def computing(
    cores: Cores,
    template: Instruction,
    one_by_one: Callable[[tuple[int, ...]], object],
    compute: Callable[[Inputs], Mapping[str, Array]],
) -> Callable[[tuple[int, ...]], Inputs | None]:
    """Return the act of a template that computes of local memories, into them or global memory.

    It returns what was read, [cores, ...] each, perhaps as views; None where one repeat feeds the
    next, so that it was done `one_by_one`. So is one that may touch less than it reaches, where
    that matters.
    """
    loose = type(template).reaching is not Instruction.reaching
    bind = _binding(cores, template, loose=loose)
    follow = cores.watch.follower(template, NOWHERE, cores.registers)
    outside = [
        (place, o.name, storing(cores, side(cores, template, place)))
        for place, o in enumerate(template.operands())
        if o.access.writes and o.mem is Mem.GM
    ]
    inside = _local(template)
    local = (itemgetter(*inside) if inside else _same) if outside else None
    bounds = BoundedCache[object, _Bound](_MOST_PLACED)

    def act(addresses: tuple[int, ...]) -> Inputs | None:
        places = template.operand_addresses(addresses)
        key = places if local is None else local(places)
        bound = bounds.get(key)
        if bound is None:
            bound = bounds[key] = bind(places)
        if bound.alone or (
            loose and not all(s.written(places[s.place]) for s, _, _ in bound.reads)
        ):
            one_by_one(addresses)
            return None
        follow(places)
        inputs: Inputs = {}
        known: NDArray[np.bool_] | None = None
        for source, read, map_ in bound.reads:
            inputs[source.name] = read()
            if map_ is not None and 0 in map_.tobytes():
                known = _known(template, source, places[source.place], known)
        results = compute(inputs)
        for target, put, mark in bound.writes:
            put(results[target.name])
            if known is None:
                mark()
            else:
                _mark(target, places[target.place], known)
        for place, name, store in outside:
            store(places[place], results[name], known)
        return inputs

    return act


def _local(template: Instruction) -> list[int]:
    return [index for index, o in enumerate(template.operands()) if o.mem is not Mem.GM]


def _binding(
    cores: Cores, template: Instruction, *, loose: bool
) -> Callable[[tuple[int, ...]], _Bound]:
    """Return what finds out what a template does at addresses."""
    limits = limits_of(cores, template)
    sides = [side(cores, template, place) for place in range(len(template.operands()))]
    sources = [
        _Source(
            *(one.place, one.operand.name, one.stack, one.elements, one.element),
            propagates=template.propagates and not one.operand.used,
        )
        for one in sides
        if one.stack is not None and one.operand.access.reads
    ]
    targets = [
        _Target(one.place, one.operand.name, one.stack, one.elements, one.element)
        for one in sides
        if one.stack is not None and one.operand.access.writes
    ]

    def bind(places: tuple[int, ...]) -> _Bound:
        require_inside(template, limits, places)
        feeds, meets = relation(template, places)
        if meets and not loose:
            raise IrregularError(f"{template.name}: operands that meet")
        if feeds or meets:
            return _Bound(alone=True)
        reads = [
            (s, s.stack.reader(places[s.place], s.here, s.element), _map(s, places, loose=loose))
            for s in sources
        ]
        writes = []
        for target in targets:
            assert target.stack is not None
            given = places[target.place], target.there, target.element
            writes.append((target, target.stack.writer(*given), target.stack.marker(*given)))
        return _Bound(False, tuple(reads), tuple(writes))

    return bind


def _map(source: _Source, places: tuple[int, ...], *, loose: bool) -> _Bytes | None:
    """Return a source's part of its memory's map; None where it is empty, or known before."""
    span, at = source.here.span, places[source.place]
    return None if loose or span is None else source.stack.valid[at + span[0] : at + span[1]]


def _known(
    template: Instruction, source: _Source, at: int, known: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return which elements of the result are known; None: all."""
    here = source.here
    ready = source.stack.map.initialised(at, here.offsets, source.element)
    if source.propagates:
        return ready if known is None else known & ready
    if not (ready if here.active is None else ready | ~here.active).all():
        raise IrregularError(f"{template.name} reads uninitialised bytes")
    return known


def _mark(target: _Target, at: int, known: NDArray[np.bool_]) -> None:
    """Note which elements of a target in a local memory were written."""
    there = target.there
    if there.active is not None:
        known = known[there.active]
    assert target.stack is not None
    target.stack.map.mark(at, there.through, target.element, known)


def _same(_: tuple[int, ...]) -> object:
    """Return what stands for the local addresses of a template that has none."""
    return None
