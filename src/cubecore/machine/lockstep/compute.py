"""Instructions prepared for cores in lockstep: what an issue does once its addresses are known.

An act checks an address the first time that it meets it: alignment, bounds, overlap. Where there
is something to report, or one repeat feeds the next, the cores take turns (`ApartError`).
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.declare.operand_overlap import relation
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.tree import Location
from cubecore.machine.lockstep.batching import REPLACING, computing_left, stacks
from cubecore.machine.lockstep.operands import (
    Act,
    ApartError,
    Cores,
    LockstepOperand,
    finding,
    limits_of,
    require_inside,
    side,
)
from cubecore.machine.memory.elements import elements
from cubecore.machine.memory.operation import Inputs, Read, Write, operate
from cubecore.machine.memory.places import Place, Spot

_MOST_BOUND = 1024
"""Addresses of one template that are remembered, with what is done there."""


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
        if not ((issubclass(kind, REPLACING) or computing_left(kind)) and some):
            return False
    return computing_left(kind) is not None if template.reads_left else stacks(kind)


class _Bound(NamedTuple):
    """The operation of a template at given addresses; `alone`: one repeat feeds the next."""

    alone: bool
    reads: Sequence[Read] = ()
    writes: Sequence[Write] = ()


def computing(
    cores: Cores,
    template: Instruction,
    one_by_one: Act,
    compute: Callable[[Inputs], Mapping[str, Array]],
) -> Callable[[tuple[int, ...], Location], Inputs | None]:
    """Return the act of a template that computes of local memories, into them or global memory.

    It returns what was read, [cores, ...] each, perhaps as views; None where one repeat feeds the
    next, so that it was done `one_by_one`. So is one that may touch less than it reaches, where
    that matters.
    """
    loose = type(template).reaching is not Instruction.reaching
    sides = [side(cores, template, number) for number in range(len(template.operands()))]
    bind = _binding(cores, template, sides, loose=loose)
    follow = cores.watch.followers(template, cores.registers)
    outside = [
        (one, finding(cores, one))
        for one in sides
        if one.stack is None and one.operand.access.writes and one.elements.span is not None
    ]
    inside = [one.number for one in sides if one.stack is not None]
    local = (itemgetter(*inside) if inside else _same) if outside else None
    bounds = BoundedCache[object, _Bound](_MOST_BOUND)
    unwritten = _refusing(template)

    def act(addresses: tuple[int, ...], where: Location) -> Inputs | None:
        all_addresses = template.operand_addresses(addresses)
        key = all_addresses if local is None else local(all_addresses)
        bound = bounds.get(key)
        if bound is None:
            bound = bounds[key] = bind(all_addresses)
        if bound.alone or (loose and not all(lanes.written() for _, lanes, _ in bound.reads)):
            one_by_one(addresses, where)
            return None
        writes = bound.writes
        if outside:
            writes = [
                *writes,
                *[_globally(one, find(all_addresses[one.number])) for one, find in outside],
            ]
        follow(all_addresses, where)
        return operate(bound.reads, writes, compute, unwritten)

    return act


def _globally(one: LockstepOperand, spot: Spot) -> Write:
    return one.operand.name, Place(spot, one.elements, one.element).write


def _binding(
    cores: Cores, template: Instruction, sides: Sequence[LockstepOperand], *, loose: bool
) -> Callable[[tuple[int, ...]], _Bound]:
    """Return what finds out what a template does at addresses."""
    limits = limits_of(cores.chip, template)

    def bind(addresses: tuple[int, ...]) -> _Bound:
        require_inside(template, limits, addresses)
        feeds, meets = relation(template, addresses)
        if meets and not loose:
            raise ApartError(f"{template.name}: operands that meet")
        if feeds or meets:
            return _Bound(alone=True)
        reads: list[Read] = []
        writes: list[Write] = []
        for one in sides:
            if one.stack is None:
                continue
            lanes = Place(one.stack.spot(addresses[one.number]), one.elements, one.element)
            operand = one.operand
            if operand.access.reads:
                reads.append((operand.name, lanes, template.propagates and not operand.used))
            if operand.access.writes:
                writes.append((operand.name, lanes.write))
        return _Bound(False, reads, writes)

    return bind


def _refusing(template: Instruction) -> Callable[[str, Place], None]:
    """Return what takes no element that was not written, if the mask lets it through."""

    def unwritten(name: str, operand: Place) -> None:
        active = elements(template, name).active
        ready = operand.ready()
        if not (ready if active is None else ready | ~active).all():
            raise ApartError(f"{template.name} reads uninitialised bytes", followed=True)

    return unwritten


def _same(_: tuple[int, ...]) -> object:
    """Return what stands for the local addresses of a template that has none."""
    return None
