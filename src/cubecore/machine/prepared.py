"""Instructions prepared for cores in lockstep: what an issue does once its addresses are known.

An act checks an address the first time that it meets it: alignment, bounds, overlap. What the
reference engine would report, or do repeat by repeat, ends lockstep or is left to it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.isa.check import memory_bytes
from cubecore.isa.overlap import relation
from cubecore.isa.registers import Registers
from cubecore.isa.spec import Array, Instruction, Mem, Operand
from cubecore.machine.elements import Elements, elements
from cubecore.machine.groupwatch import NOWHERE, GroupWatch
from cubecore.machine.memory import Buffer, GlobalMemory, fillers
from cubecore.machine.products import IrregularError
from cubecore.machine.reach import Reach, Snapshots
from cubecore.machine.stacks import Stack

_MOST_PLACED = 4096
"""Addresses of one template that are remembered as checked."""
_Bytes = NDArray[np.uint8]


class Cores(Protocol):
    """What acts work on: a group of cores."""

    chip: Chip
    gm: GlobalMemory
    count: int
    reach: Reach
    watch: GroupWatch
    snapshots: Snapshots
    registers: Registers

    def stack(self, mem: Mem) -> Stack:
        """Return a local memory of all cores."""
        ...


def steers(template: Instruction) -> tuple[Operand, ...]:
    """Return the operands of a template whose values decide what the others touch."""
    names = template.steering
    return tuple(o for o in template.operands() if o.name in names) if names else ()


def prepares(template: Instruction, registers: Registers) -> bool:
    """Whether a resolved template, located if values steer it, is done for all cores at once."""
    kind = type(template)
    if not template.lies_anywhere:
        return False
    operands = template.operands()
    if any(template.element(operand).bits < 8 for operand in operands):
        return False
    if template.copies:
        to_global = any(o.mem is Mem.GM and o.access.writes for o in operands)
        return len(operands) == 2 and not (to_global and registers.atomic)
    globally = [o for o in operands if o.mem is Mem.GM]
    if any(o.access.reads or registers.atomic for o in globally):
        return False
    if kind.leaves is not Instruction.leaves:
        some = all(elements(template, o.name).span is not None for o in operands)
        if not ((template.leaves_whole or template.stacks_left) and some):
            return False
    return template.stacks_left if template.reads_left else template.stacks


@dataclass(frozen=True, eq=False, slots=True)
class _Limit:
    """Where an operand in a local memory may lie: a multiple of `unit` in [low, high]."""

    place: int
    unit: int
    low: int
    high: int


def _limits(cores: Cores, template: Instruction) -> list[_Limit]:
    found = []
    for place, operand in enumerate(template.operands()):
        if operand.mem is Mem.GM:
            continue
        span = elements(template, operand.name).span
        usable = memory_bytes(cores.chip, operand.mem)[1]
        low, high = (-(1 << 62), 1 << 62) if span is None else (-span[0], usable - span[1])
        found.append(_Limit(place, operand.alignment, low, high))
    return found


def _require_inside(template: Instruction, limits: list[_Limit], places: tuple[int, ...]) -> None:
    for limit in limits:
        address = places[limit.place]
        if address % limit.unit or not limit.low <= address <= limit.high:
            raise IrregularError(f"{template.name} leaves its memory")


# --- instructions that compute


@dataclass(frozen=True, eq=False, slots=True)
class _Source:
    """An operand that is read: where, and whether an unwritten element is a finding."""

    place: int
    operand: Operand
    stack: Stack
    here: Elements
    element: ElementType
    propagates: bool

    def written(self, at: int) -> bool:
        """Return whether all between its first and its last byte was written."""
        return self.here.span is None or self.stack.map.written(at, self.here.span)


@dataclass(frozen=True, eq=False, slots=True)
class _Side:
    """An operand: its memory (None: global) and its elements, which are a run or not."""

    place: int
    operand: Operand
    stack: Stack | None
    elements: Elements
    element: ElementType


@dataclass(frozen=True, eq=False, slots=True)
class _Window:
    """Bytes of every core, [cores, bytes], and their maps, [cores or 1, bytes].

    `rows` are the buffers of single cores, with an address in each.
    """

    data: _Bytes | None
    valid: _Bytes | None
    rows: list[tuple[Buffer, int]]


Inputs = dict[str, Array]


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
    operands, registers = template.operands(), cores.registers
    limits = _limits(cores, template)
    follow = cores.watch.follower(template, NOWHERE, registers)
    sources = [
        _Source(
            *(place, o, cores.stack(o.mem), elements(template, o.name), template.element(o)),
            propagates=template.propagates and not o.used,
        )
        for place, o in enumerate(operands)
        if o.access.reads
    ]
    targets = [side for side in _sides(cores, template) if side.operand.access.writes]
    regular: dict[tuple[int, ...], bool] = {}

    def act(addresses: tuple[int, ...]) -> dict[str, Array] | None:
        places = template.places(addresses)
        feeds = regular.get(places)
        if feeds is None:
            _require_inside(template, limits, places)
            feeds, meets = relation(template, places)
            if meets and not loose:
                raise IrregularError(f"{template.name}: operands that meet")
            feeds = feeds or meets
            if len(regular) >= _MOST_PLACED:
                regular.clear()
            regular[places] = feeds
        if feeds or (loose and not all(s.written(places[s.place]) for s in sources)):
            one_by_one(addresses)
            return None
        follow(places)
        inputs: dict[str, Array] = {}
        known: NDArray[np.bool_] | None = None
        for source in sources:
            at = places[source.place]
            inputs[source.operand.name] = source.stack.read(at, source.here, source.element)
            if not loose and not source.written(at):
                known = _known(template, source, at, known)
        results = compute(inputs)
        for target in targets:
            _store(cores, target, places, results[target.operand.name], known)
        return inputs

    return act


def _known(
    template: Instruction, source: _Source, at: int, known: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return which elements of the result are known; None: all."""
    here = source.here
    ready = source.stack.map.initialised(at, here.offsets, source.element)
    if source.propagates:
        return ready if known is None else known & ready
    if not (ready if here.active is None else ready | ~here.active).all():
        raise IrregularError(f"{template.name} reads what nobody wrote")
    return known


def _store(
    cores: Cores,
    target: _Side,
    places: tuple[int, ...],
    values: Array,
    known: NDArray[np.bool_] | None,
) -> None:
    there, element, at = target.elements, target.element, places[target.place]
    if target.stack is None:
        _store_globally(cores, target, places, values, known)
        return
    target.stack.write(at, there, element, values)
    if known is None and there.run is not None:
        first, start, stop = there.run
        begin = at + first * element.size_bytes
        target.stack.valid[begin : begin + (stop - start) * element.size_bytes] = 1
        return
    if known is not None and there.active is not None:
        known = known[there.active]
    target.stack.map.mark(at, there.through, element, known)


def _store_globally(
    cores: Cores,
    target: _Side,
    places: tuple[int, ...],
    values: Array,
    known: NDArray[np.bool_] | None,
) -> None:
    """Store values of every core, [cores, *shape], in global memory."""
    offsets, element = target.elements.offsets, target.element
    if not offsets.size:
        return
    window = _window(cores, target, places)
    if window.data is None or window.valid is None:
        for (buffer, at), own in zip(window.rows, values, strict=True):
            buffer.write(at, offsets, element, own)
            buffer.mark(at, offsets, element, known)
        return
    size = element.size_bytes
    full = int.from_bytes(b"\1" * size, "little")
    window.data.view(element.numpy)[:, offsets] = values
    window.valid.view(f"u{size}")[:, offsets] = full if known is None else np.where(known, full, 0)


# --- copies


def moving(cores: Cores, template: Instruction) -> Callable[[tuple[int, ...]], None]:
    """Return the act of a copy."""
    dst, src = _sides(cores, template)
    registers, limits = cores.registers, _limits(cores, template)
    element = src.element
    local = src.stack is not None and dst.stack is not None
    follow = cores.watch.follower(template, NOWHERE, registers)
    run = src.elements.first is not None and dst.elements.first is not None
    run = run and src.elements.active is None and dst.elements.active is None
    nothing = src.elements.offsets.size == 0
    scatter = _scattering(src, dst, template.fill(registers))

    def act(addresses: tuple[int, ...]) -> None:
        places = template.places(addresses)
        _require_inside(template, limits, places)
        if local and any(relation(template, places)):
            raise IrregularError(f"{template.name}: operands that meet")
        follow(places)
        if nothing:
            return
        here, there = _window(cores, src, places), _window(cores, dst, places)
        if run and _copied(src, here, dst, there, element.size_bytes):
            return
        scatter(here, there)

    return act


def _sides(cores: Cores, template: Instruction) -> list[_Side]:
    return [
        _Side(
            place,
            operand,
            None if operand.mem is Mem.GM else cores.stack(operand.mem),
            elements(template, operand.name),
            template.element(operand),
        )
        for place, operand in enumerate(template.operands())
    ]


def _scattering(src: _Side, dst: _Side, fill: bytes | None) -> Callable[[_Window, _Window], None]:
    """Return what copies elements that are no run, of all cores at once where they lie evenly.

    Negative offsets of the source are filled as `Buffer.move_to` does it.
    """
    element, size = src.element, src.element.size_bytes
    pair = (src.elements.offsets, dst.elements.offsets)
    word = f"u{size}" if size in {1, 2, 4, 8} else f"V{size}"
    filled = np.flatnonzero(pair[0] < 0)
    from_, to = (offsets.reshape(-1) for offsets in pair)
    from_ = np.maximum(from_, 0)
    filler, known = (part.view(word) for part in fillers(fill, size))
    number = -pair[0].reshape(-1)[filled] - 1
    put = filler.take(number, mode="clip"), known.take(number, mode="clip")

    def scatter(here: _Window, there: _Window) -> None:
        if here.data is None or there.data is None or here.valid is None or there.valid is None:
            before = None if dst.stack is None else dst.stack.valid.copy()
            for (source, at), (target, end) in zip(here.rows, there.rows, strict=True):
                if before is not None and dst.stack is src.stack:
                    target.valid[:] = before
                source.move_to(target, (at, end), pair, element, fill)
            return
        parts = (here.data, there.data, put[0]), (here.valid[:1], there.valid, put[1])
        for given, taken, with_ in parts:
            values = _words(given, word, size)[:, from_]
            if filled.size:
                values[:, filled] = with_
            _words(taken, word, size)[:, to] = values

    return scatter


def _words(data: _Bytes, word: str, size: int) -> Array:
    """Return bytes, [cores, bytes], as words."""
    whole: Array = data[:, : data.shape[1] // size * size].view(word)
    return whole


def _copied(src: _Side, here: _Window, dst: _Side, there: _Window, size: int) -> bool:
    """Copy a run of bytes on all cores at once; False where cores lie at uneven distances."""
    if here.data is None or there.data is None or here.valid is None or there.valid is None:
        return False
    first, to = src.elements.first or 0, dst.elements.first or 0
    count = src.elements.offsets.size * size
    own, other = (slice(at * size, at * size + count) for at in (first, to))
    there.data[:, other] = here.data[:, own]
    there.valid[:, other] = here.valid[:1, own]
    return True


def _all_written(side: _Side, rows: list[tuple[Buffer, int]]) -> bool:
    """Whether every element that cores read from global memory was written."""
    span, offsets = side.elements.span, side.elements.offsets
    inside = offsets[offsets >= 0]
    return span is None or all(
        buffer.written(at, span) or buffer.initialised(at, inside, side.element).all()
        for buffer, at in rows
    )


def _window(cores: Cores, side: _Side, places: tuple[int, ...]) -> _Window:
    """Return one side's bytes from its address on."""
    address = places[side.place]
    if side.stack is not None:
        stack = side.stack
        rows = [(row, address) for row in stack.rows]
        return _Window(stack.data[:, address:], stack.valid[None, address:], rows)
    span = side.elements.span
    if span is None:
        return _Window(None, None, [(Buffer(0), 0)] * cores.count)
    low, high = address + span[0], address + span[1]
    tensor = cores.reach.place(cores.gm.at(low), low, high)
    far, buffer = cores.reach.distances(tensor), tensor.buffer
    unit = side.operand.alignment
    if address % unit or far.unit % unit:
        raise IrregularError("a global address that is misaligned")
    local = address - tensor.address
    rows = [(buffer, local + int(distance)) for distance in far.values]
    if side.operand.access.writes:
        cores.snapshots.keep(tensor)
    elif not tensor.placed and not _all_written(side, rows):
        raise IrregularError("global memory that nobody wrote")
    if far.step is None or local < 0:
        return _Window(None, None, rows)
    shape = (cores.count, span[1])
    data, valid = (
        np.ndarray(shape, np.uint8, whole, local, (far.step, 1))
        for whole in (buffer.data, buffer.valid)
    )
    return _Window(data, valid, rows)
