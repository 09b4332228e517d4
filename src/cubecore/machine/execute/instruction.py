"""Execution of an instruction on some cores: on one, or on a group of equal ones at once.

Where its operands lie is found out, it is followed, and elements are read, computed and written, or
moved. One core and a group differ in where their bytes are, and in what becomes of an exception:
one core logs it, a group lets each of its cores meet it alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Mem, Pipe
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.remark import Remark
from cubecore.isa.program.tree import Location
from cubecore.layouts import Offsets
from cubecore.machine.execute.filled_reads import (
    FilledRead,
    computed,
    followed,
    mark_filled,
    require_unfilled,
)
from cubecore.machine.execute.issue_cache import CachedIssue
from cubecore.machine.memory.buffers import GlobalMemory, GlobalTensor, Spot
from cubecore.machine.memory.elements import Elements, Use, part, uses
from cubecore.machine.memory.filling_table import FillingReader
from cubecore.machine.memory.operation import Inputs, Read, Write, combines, operate
from cubecore.machine.memory.places import Known, Place
from cubecore.numerics.quantisation import atomic


class MemoryOfCores(Protocol):
    """One local memory of some cores."""

    def spot(self, address: int) -> Spot:
        """Return an address, the same on every core."""
        ...


class Cores(Protocol):
    """The cores that an instruction runs on, and what becomes of its exceptions there."""

    gm: GlobalMemory

    @property
    def registers(self) -> Registers:
        """The registers, but for what values have left there."""
        ...

    def memory(self, mem: Mem) -> MemoryOfCores | None:
        """Return a local memory; None if the cores lack it."""
        ...

    def share(self, tensor: GlobalTensor, used: Use, address: int) -> Spot | None:
        """Return where an operand lies in a tensor; None if a core leaves it."""
        ...

    def look(self, template: Instruction, used: Use, address: int, where: Location) -> Spot | None:
        """Take an operand that is not where it may lie; None if it leaves its memory."""
        ...

    def report(
        self, violations: Sequence[Violation], template: Instruction, where: Location
    ) -> bool:
        """Take what addresses break; return whether that is nothing."""
        ...

    def meet(
        self, template: Instruction, addresses: tuple[int, ...], where: Location, *, wrong: bool
    ) -> None:
        """Take operands of which a later repeat reads what one wrote, or that wrongly overlap."""
        ...

    def lack(self, template: Instruction, lacking: "Lacking", where: Location) -> None:
        """Take elements that are read and were never written."""
        ...

    def remark(
        self,
        remarks: Sequence[Remark],
        template: Instruction,
        addresses: tuple[int, ...],
        where: Location,
    ) -> None:
        """Take what an instruction says of elements that were never written."""
        ...

    def read_filling(self, found: FilledRead, reader: FillingReader) -> None:
        """Take filling that an operand of an instruction reads."""
        ...


class ComputeStep(NamedTuple):
    """The way to make an instruction: what cores compute, who follows it, what they remember.

    `known` are bound instructions by their local addresses, so that those are not looked at again.
    """

    compute: Callable[[Inputs], Mapping[str, Array]]
    follow: Callable[[tuple[int, ...], Location], object]
    known: dict[object, "Bound"] | None = None


class Bound(NamedTuple):
    """An instruction at addresses: where its operands lie, and those in local memories.

    `feeds`: one repeat writes what a later one reads.
    """

    feeds: bool
    spots: list[Spot]
    reads: list[Read]
    writes: list[Write]


class Lacking(NamedTuple):
    """Elements of an operand that are not `ready`; `extent` are the bytes that they reach.

    It is None of global memory that a store combines with.
    """

    used: Use
    ready: Array
    extent: tuple[int, int] | None = None


def perform(
    cores: Cores,
    issue: CachedIssue,
    addresses: tuple[int, ...],
    where: Location,
    step: ComputeStep,
    given: Mapping[str, Spot] | None = None,
) -> Inputs | None:
    """Make a settled instruction on all cores; return what was read, perhaps as views.

    None: of a copy, and where an operand lies outside of its memory, so that nothing was done.
    `given` are operands that were found before.
    """
    template, known = issue.template, step.known
    at = template.operand_addresses(addresses)
    # At the same local addresses operands lie, and are checked, as before.
    bound = None if known is None else known.get(issue.local(at))
    if bound is None:
        bound = _bind(cores, issue, at, where, given or {})
        if bound is None:
            return None
        if known is not None:
            known[issue.local(at)] = bound
        spots = bound.spots
    elif issue.outside:
        spots = _found_again(cores, issue, bound.spots, at, where)
    else:
        spots = bound.spots
    step.follow(at, where)
    if template.copies:
        _move(cores, issue, spots, where)
        return None

    def lack(name: str, place: Place) -> None:
        number = next(n for n, used in enumerate(issue.uses) if used.name == name)
        require_written(cores, template, issue.uses[number], place, at[number], where)

    if bound.feeds:

        def make(reads: list[Read], writes: list[Write]) -> Inputs:
            return operate(reads, writes, step.compute, lack, template)

        _one_by_one(cores, issue, spots, where, make)
        return None
    reads, writes = bound.reads, bound.writes
    if issue.outside:
        outside = ((issue.uses[n], spots[n], issue.uses[n].elements) for n in issue.outside)
        also_reads, also_writes = _sides(cores, template, outside, where)
        reads, writes = [*reads, *also_reads], [*writes, *also_writes]

    def needed(remarks: Sequence[Remark]) -> None:
        cores.remark(remarks, template, at, where)

    work = partial(operate, reads, writes, step.compute, lack, template, needed=needed)
    if cores.gm.fillings is None and template.pipe is not Pipe.FIX:
        return work()
    touched = [(u, s, u.elements) for u, s in zip(issue.uses, spots, strict=True)]
    return followed(cores, template, touched, where, work)


def _one_by_one(
    cores: Cores,
    issue: CachedIssue,
    spots: Sequence[Spot],
    where: Location,
    make: Callable[[list[Read], list[Write]], Inputs],
) -> None:
    """Make the repeats of an instruction whose results feed later ones; `make` is of one repeat."""
    template = issue.template
    follows = cores.gm.fillings is not None and template.pipe is Pipe.V
    for repeat in range(issue.uses[0].elements.offsets.shape[0]):
        parts = [part(template, used.name, repeat) for used in issue.uses]
        touched = list(zip(issue.uses, spots, parts, strict=True))
        work = partial(make, *_sides(cores, template, touched, where))
        if follows:
            computed(cores, template, touched, where, work)
        else:
            work()


# --- where operands lie


def _bind(
    cores: Cores,
    issue: CachedIssue,
    addresses: tuple[int, ...],
    where: Location,
    given: Mapping[str, Spot],
) -> Bound | None:
    """Find the operands at addresses; None where one lies outside of its memory."""
    template, spots = issue.template, list[Spot]()
    for number, (used, address) in enumerate(zip(issue.uses, addresses, strict=True)):
        spot = given.get(used.name) or find(cores, issue, number, address, where)
        if spot is not None:
            spots.append(spot)
    if len(spots) < len(addresses):
        return None
    if issue.judges:
        names = (used.name for used in issue.uses)
        named = dict(zip(names, addresses, strict=True))
        if not cores.report(template.address_violations(named), template, where):
            return None
    feeds, meets = issue.relation(addresses)
    # Also in lockstep: there each core meets its own operands, so it raises, and goes core by core.
    if feeds or meets:
        cores.meet(template, addresses, where, wrong=meets)
    if template.copies or feeds:
        return Bound(feeds, spots, [], [])
    inside = [
        (used, spot, used.elements)
        for used, spot in zip(issue.uses, spots, strict=True)
        if used.operand.mem is not Mem.GM
    ]
    return Bound(feeds, spots, *_sides(cores, template, inside, where))


def _found_again(
    cores: Cores,
    issue: CachedIssue,
    before: list[Spot],
    addresses: tuple[int, ...],
    where: Location,
) -> list[Spot]:
    """Return spots, those in global memory anew: cores may lie elsewhere than the last time."""
    spots = list(before)
    for number in issue.outside:
        spot = find(cores, issue, number, addresses[number], where)
        assert spot is not None
        spots[number] = spot
    return spots


def find(
    cores: Cores, issue: CachedIssue, number: int, address: int, where: Location
) -> Spot | None:
    """Return where an operand lies; None if that is outside of its memory."""
    used = issue.uses[number]
    return within(cores, used, issue.usable[number], address) or cores.look(
        issue.template, used, address, where
    )


def within(cores: Cores, used: Use, usable: int, address: int) -> Spot | None:
    """Return where an operand lies, inside of `usable` bytes; None if it is not where it may be."""
    low, high, mem = address + used.low, address + used.high, used.operand.mem
    if address % used.unit or low < 0:
        return None
    if mem is Mem.GM:
        if used.elements.span is None:
            return NOWHERE
        tensor = cores.gm.at(low)
        return None if tensor is None else cores.share(tensor, used, address)
    memory = cores.memory(mem)
    return None if memory is None or high > usable else memory.spot(address)


_NOTHING = np.zeros(1, np.uint8)
NOWHERE = Spot(_NOTHING, _NOTHING, ((1, 0, 0),), ((1, 0, 0),), alone=True)
"""The place of an operand that touches nothing."""


# --- elements


def _move(cores: Cores, issue: CachedIssue, spots: Sequence[Spot], where: Location) -> None:
    """Move bytes, or combine them with those of global memory."""
    for move, source, target in issue.moves:
        here, there = spots[source], spots[target]
        to = issue.uses[target]
        followed = cores.gm.fillings is not None
        if followed:
            require_unfilled(cores, issue.template, issue.uses[source], here, to, there, where)
        if to.operand.mem is Mem.GM and cores.registers.atomic:
            element = element_type(cores.registers.atomic_type)
            cut = [
                _cut(issue.template, issue.uses[number].name, element)
                for number in (source, target)
            ]
            values = Place(here, cut[0], element)
            write = _combining(cores, issue.template, to, Place(there, cut[1], element), where)
            write(values.read(), values.ready())
        else:
            move(here, there)
            if followed:
                mark_filled(cores, issue.template, (to, there, to.elements), where)


@lru_cache(maxsize=64)
def _cut(template: Instruction, operand: str, element: ElementType) -> Elements:
    """Return the elements that make up each block of an operand, last axis new.

    Of units narrower than an element, which lie one behind another, they are those of its first.
    """
    (whole,) = (used for used in uses(template) if used.name == operand)
    units = element.bits // whole.element.bits
    if units > 1:
        return Elements.of(whole.elements.offsets[..., ::units] // units, None, element)
    ratio = whole.element.bits // element.bits
    offsets = whole.elements.offsets[..., None] * ratio + np.arange(ratio, dtype=np.intp)
    return Elements.of(offsets, None, element)


def _sides(
    cores: Cores,
    template: Instruction,
    operands: Iterable[tuple[Use, Spot, Elements]],
    where: Location,
) -> tuple[list[Read], list[Write]]:
    """Return what is read and what is written of operands."""
    reads: list[Read] = []
    writes: list[Write] = []
    for used, spot, elements in operands:
        place = Place(spot, elements, used.element)
        if used.reads:
            reads.append((used.name, place, template.propagates and not used.operand.used))
        if used.writes:
            combined = used.operand.mem is Mem.GM and combines(template, cores.registers)
            write = _combining(cores, template, used, place, where) if combined else place.write
            writes.append((used.name, write))
    return reads, writes


def _combining(
    cores: Cores, template: Instruction, used: Use, there: Place, where: Location
) -> Callable[[Array, Known], None]:
    """Return what stores values under set_atomic, combined with what the memory holds."""

    def write(values: Array, defined: Known) -> None:
        if there.here.span is None:
            return
        known, active = there.ready(), there.here.active
        ready = known if active is None else known[active]
        # Elements that are read in several bytes are ready if all of them are.
        if known.ndim > len(used.operand.axes.split()):
            ready = np.asarray(ready.all(axis=-1))
        if not ready.all():
            cores.lack(template, Lacking(used, ready), where)
        registers = cores.registers
        finite = not registers.float_ieee
        combined = atomic(registers.atomic, there.read(), values, finite=finite)
        there.write(combined, known if defined is None else known & defined)

    return write


def require_written(
    cores: Cores, template: Instruction, used: Use, place: Place, address: int, where: Location
) -> None:
    """Tell of the elements of an operand at an address that were never written."""
    ready, here = place.ready(), place.here
    if here.active is not None:
        ready |= ~here.active
    if not ready.all():
        extent = _extent(here.offsets[~ready], address, used.element)
        cores.lack(template, Lacking(used, ready, extent), where)


def _extent(missing: Offsets, address: int, element: ElementType) -> tuple[int, int]:
    """Return the bytes [start, end) that reach from the first of some elements to the last."""
    low, high = int(missing.min()) * element.bits, (int(missing.max()) + 1) * element.bits
    return address + low // 8, address - (-high // 8)
