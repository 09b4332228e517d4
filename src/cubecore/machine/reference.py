"""The reference engine: slow, readable, and the definition of what an instruction does."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType, element_type
from cubecore.isa.check import memory_bytes
from cubecore.isa.overlap import overlaps, relation
from cubecore.isa.program import Location
from cubecore.isa.registers import Registers
from cubecore.isa.spec import Instruction, Mem, Operand
from cubecore.isa.sync import Sync
from cubecore.layouts import Offsets
from cubecore.machine.core import Core, Recorded
from cubecore.machine.elements import Elements, elements, part
from cubecore.machine.findings import Finding
from cubecore.machine.memory import Array, Buffer
from cubecore.numerics.quantisation import atomic

Placed = tuple[Operand, Buffer, int]
Target = tuple[Instruction, Operand, Buffer, int]


def execute(core: Core, recorded: Recorded) -> None:
    """Run one instruction on a core and log what is wrong with it.

    An instruction whose parameters are wrong, or that would leave a memory, is not made; one that
    is only misaligned, or reaches into reserved bytes, is.
    """
    template, addresses, where = recorded
    if isinstance(template, Sync):
        if core.allows(template, where) and core.watch is not None:
            core.watch.sync(template, where)
        return
    resolved = _resolved(template, core.registers)
    if not core.allows(resolved, where):
        return
    if not core.report(resolved.unmet(core.registers), resolved, where):
        return
    core.registers = resolved.apply(core.registers)
    operands = resolved.operands()
    if not operands:
        if resolved.register and core.watch is not None:
            core.watch.touch(resolved, (), where, core.registers)
        return
    resolved, addresses = resolved.rebased(addresses)
    places = dict(zip((o.name for o in operands), resolved.places(addresses), strict=True))
    placed: dict[str, Placed | None] = {}
    if resolved.steering:
        for operand in operands:
            if operand.name in resolved.steering:
                placed[operand.name] = _place(core, resolved, operand, places[operand.name], where)
        steering = [p for p in placed.values() if p is not None]
        if len(steering) < len(placed):
            return
        resolved = resolved.located({o.name: _read(resolved, o, b, a) for o, b, a in steering})
        if not core.report(resolved.preconditions(core.chip), resolved, where):
            return
    for operand in operands:
        if operand.name not in placed:
            placed[operand.name] = _place(core, resolved, operand, places[operand.name], where)
    complete = [p for o in operands if (p := placed[o.name]) is not None]
    if len(complete) < len(operands):
        return
    if not core.report(resolved.misplaced(places), resolved, where):
        return
    feeds, meets = relation(resolved, tuple(places.values()))
    for to, source, wrong in overlaps(resolved, places) if meets else ():
        message = f"{resolved.name}.{to} must {wrong}"
        finding = Finding("overlap", message, resolved.name, where, str(core.id))
        core.log.add(finding, f"{to} {source}")
    if core.watch is not None:
        core.watch.touch(resolved, list(places.values()), where, core.registers)
    if core.observe is not None:
        core.observe(core, resolved, list(places.values()))
    if resolved.copies:
        _move(core, resolved, complete, where)
    else:
        _compute(core, resolved, complete, where, feeds=feeds)


@lru_cache(maxsize=4096)
def _resolved(template: Instruction, registers: Registers) -> Instruction:
    """Return what a template becomes; one object for what is met again, which caches know."""
    return template.resolved(registers)


def _read(template: Instruction, operand: Operand, buffer: Buffer, address: int) -> Array:
    return buffer.read(address, template.offsets(operand.name), template.element(operand))


def _place(
    core: Core, template: Instruction, operand: Operand, address: int, where: Location
) -> Placed | None:
    """Return the operand's buffer and its address there, or None after logging what is wrong."""

    def log(kind: str, message: str) -> None:
        subject = f"{template.name}.{operand.name}"
        finding = Finding(kind, f"{subject} must {message}", template.name, where, str(core.id))
        core.log.add(finding, operand.name)

    span = elements(template, operand.name).span
    start, end = span or (0, 0)
    first, last = address + start, address + end
    if address % operand.alignment:
        log(
            "misaligned",
            f"start at a multiple of {operand.alignment} B in {operand.mem.label}, got {address}",
        )
    if operand.mem is Mem.GM:
        if span is None:
            return operand, Buffer(0), 0
        return _place_global(core, operand, address, (first, last), log)
    buffer = core.memory(operand.mem)
    if buffer is None:
        part = "AIC" if core.id.is_aic else "AIV"
        log("parameter", f"lie in a memory of the {part}, got {operand.mem.label}")
        return None
    _, usable = memory_bytes(core.chip, operand.mem)
    if span is not None and (first < 0 or last > buffer.size_bytes):
        log("out-of-bounds", _inside(operand.mem.label, buffer.size_bytes, first, last))
        return None
    if span is not None and last > usable:
        log("capacity", _inside(f"the usable {operand.mem.label}", usable, first, last))
    return operand, buffer, address


def _place_global(
    core: Core, operand: Operand, address: int, span: tuple[int, int], log: object
) -> Placed | None:
    first, last = span
    tensor = core.gm.at(first)
    if tensor is None or last > tensor.end:
        near = tensor or core.gm.near(first)
        assert callable(log)
        if near is None:
            log(
                "out-of-bounds",
                f"lie in a tensor, got bytes [{first}, {last}) before the first one",
            )
        else:
            start = near.address
            log(
                "out-of-bounds",
                _inside(near.name, near.buffer.size_bytes, first - start, last - start),
            )
        return None
    return operand, tensor.buffer, address - tensor.address


def _inside(what: str, size: int, first: int, last: int) -> str:
    return f"stay inside {what} (0 to {size} B), got bytes [{first}, {last})"


def _move(core: Core, template: Instruction, placed: list[Placed], where: Location) -> None:
    by_name = {entry[0].name: entry for entry in placed}
    for target, origin in template.pairs:
        _move_one(core, template, by_name[target], by_name[origin], where)


def _move_one(
    core: Core, template: Instruction, target: Placed, origin: Placed, where: Location
) -> None:
    (dst, to, dst_address), (src, source, src_address) = target, origin
    if dst.mem is Mem.GM and core.registers.atomic:
        element = element_type(core.registers.atomic_type)
        ratio = template.element(dst).bits // element.bits
        here, there = (_cut(template.offsets(operand.name), ratio) for operand in (src, dst))
        values = source.read(src_address, here, element)
        known = source.initialised(src_address, here, element)
        _combine(core, (template, *target), (there, element), values, known, where)
        return
    source.move_to(
        to,
        (src_address, dst_address),
        (template.offsets(src.name), template.offsets(dst.name)),
        template.element(src),
        template.fill(core.registers),
    )


def _cut(offsets: Offsets, ratio: int) -> Offsets:
    """Return the offsets of the `ratio` elements that make up each block, last axis new."""
    return offsets[..., None] * ratio + np.arange(ratio, dtype=np.intp)


def _store(
    core: Core,
    target: Target,
    there: Elements,
    values: Array,
    known: NDArray[np.bool_] | None,
    where: Location,
) -> None:
    """Write the values that the mask lets through (known None: all are)."""
    template, operand, buffer, address = target
    element = template.element(operand)
    if operand.mem is Mem.GM and core.registers.atomic:
        _combine(core, target, (there.through, element), values, known, where)
        return
    first = there.first if there.active is None else None
    buffer.write(address, there.through, element, values, first)
    buffer.mark(address, there.through, element, known, first)


def _combine(
    core: Core,
    target: Target,
    elements_of: tuple[Offsets, ElementType],
    values: Array,
    known: NDArray[np.bool_] | None,
    where: Location,
) -> None:
    """Write values under set_atomic, combined with what the memory holds."""
    template, operand, buffer, address = target
    offsets, element = elements_of
    there = buffer.initialised(address, offsets, element)
    blocks = there.ndim > len(operand.axes.split())
    ready = np.asarray(there.all(axis=-1)) if blocks else there
    _log_uninitialised(core, template, operand, ready, where)
    old = buffer.read(address, offsets, element)
    buffer.write(address, offsets, element, atomic(core.registers.atomic, old, values))
    buffer.mark(address, offsets, element, there if known is None else there & known)


def _compute(
    core: Core, template: Instruction, placed: list[Placed], where: Location, *, feeds: bool
) -> None:
    """Run an instruction on arrays: all at once, or repeat by repeat where one feeds the next."""
    if not feeds:
        touched = {o.name: elements(template, o.name) for o, _, _ in placed}
        _compute_part(core, template, placed, touched, where)
        return
    for repeat in range(template.offsets(placed[0][0].name).shape[0]):
        touched = {o.name: part(template, o.name, repeat) for o, _, _ in placed}
        _compute_part(core, template, placed, touched, where)


def _compute_part(
    core: Core,
    template: Instruction,
    placed: list[Placed],
    touched: dict[str, Elements],
    where: Location,
) -> None:
    inputs: dict[str, Array] = {}
    valid: NDArray[np.bool_] | None = None
    for operand, buffer, address in placed:
        if not operand.access.reads:
            continue
        here, element = touched[operand.name], template.element(operand)
        inputs[operand.name] = buffer.read(address, here.offsets, element, here.first)
        if here.span is None or buffer.written(address, here.span):
            continue
        ready = buffer.initialised(address, here.offsets, element)
        if template.propagates and not operand.used:
            valid = ready if valid is None else valid & ready
        else:
            needed = ready if here.active is None else ready | ~here.active
            _log_uninitialised(core, template, operand, needed, where)
    results = template.compute(inputs, core.registers)
    core.registers = template.leaves(inputs, core.registers)
    for operand, buffer, address in placed:
        if operand.access.writes:
            there, values, known = touched[operand.name], results[operand.name], valid
            if there.active is not None:
                values = values[there.active]
                known = None if valid is None else valid[there.active]
            target = template, operand, buffer, address
            _store(core, target, there, values, known, where)


def _log_uninitialised(
    core: Core, template: Instruction, operand: Operand, ready: NDArray[np.bool_], where: Location
) -> None:
    if ready.all():
        return
    place = tuple(int(i) for i in np.argwhere(~ready)[0])
    axes = ", ".join(f"{a} {i}" for a, i in zip(operand.axes.split(), place, strict=True))
    message = (
        f"{template.name}.{operand.name} must be initialised in {operand.mem.label}, "
        f"got {int((~ready).sum())} of {ready.size} elements never written, first {axes}"
    )
    core.log.add(
        Finding("uninitialised", message, template.name, where, str(core.id)), operand.name
    )
