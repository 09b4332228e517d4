"""The reference engine: slow, readable, and the definition of what an instruction does."""

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType, element_type
from cubecore.isa.check import memory_bytes
from cubecore.isa.overlap import apart, distinct, lane_by_lane, overlaps, reach
from cubecore.isa.program import Location
from cubecore.isa.spec import Instruction, Mem, Operand
from cubecore.isa.sync import Sync
from cubecore.layouts import Offsets
from cubecore.machine.core import Core, Recorded
from cubecore.machine.findings import Finding
from cubecore.machine.memory import Array, Buffer
from cubecore.numerics.quantisation import atomic

Placed = tuple[Operand, Buffer, int]


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
    resolved = template.resolved(core.registers)
    if not core.allows(resolved, where):
        return
    if not core.report(resolved.unmet(core.registers), resolved, where):
        return
    core.registers = resolved.apply(core.registers)
    operands = resolved.operands()
    if not operands:
        return
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
    for to, source, wrong in overlaps(resolved, places):
        message = f"{resolved.name}.{to} must {wrong}"
        finding = Finding("overlap", message, resolved.name, where, str(core.id))
        core.log.add(finding, f"{to} {source}")
    if core.watch is not None:
        core.watch.touch(resolved, list(places.values()), where, core.registers)
    (_move if resolved.copies else _compute)(core, resolved, complete, where)


def _read(template: Instruction, operand: Operand, buffer: Buffer, address: int) -> Array:
    return buffer.read(address, template.offsets(operand.name), template.element(operand))


def _place(
    core: Core, template: Instruction, operand: Operand, address: int, where: Location
) -> Placed | None:
    """Return the operand's buffer and its address there, or None after logging what is wrong."""
    subject = f"{template.name}.{operand.name}"

    def log(kind: str, message: str) -> None:
        finding = Finding(kind, f"{subject} must {message}", template.name, where, str(core.id))
        core.log.add(finding, operand.name)

    touched = reach(template, operand.name)
    start, end = template.element(operand).extent_bytes(*((0, -1) if touched is None else touched))
    first, last = address + start, address + end
    if address % operand.alignment:
        log(
            "misaligned",
            f"start at a multiple of {operand.alignment} B in {operand.mem.label}, got {address}",
        )
    if operand.mem is Mem.GM:
        if touched is None:
            return operand, Buffer(0), 0
        return _place_global(core, operand, address, (first, last), log)
    buffer = core.memory(operand.mem)
    if buffer is None:
        part = "AIC" if core.id.is_aic else "AIV"
        log("parameter", f"lie in a memory of the {part}, got {operand.mem.label}")
        return None
    _, usable = memory_bytes(core.chip, operand.mem)
    if touched is not None and (first < 0 or last > buffer.size_bytes):
        log("out-of-bounds", _inside(operand.mem.label, buffer.size_bytes, first, last))
        return None
    if touched is not None and last > usable:
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
    (dst, to, dst_address), (src, source, src_address) = placed
    if dst.mem is Mem.GM and core.registers.atomic:
        element = element_type(core.registers.atomic_type)
        ratio = template.element(dst).bits // element.bits
        here, there = (_cut(template.offsets(operand.name), ratio) for operand in (src, dst))
        values = source.read(src_address, here, element)
        known = source.initialised(src_address, here, element)
        target = template, dst, to, dst_address
        _store(core, target, there, element, values, known, where)
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
    target: tuple[Instruction, Operand, Buffer, int],
    offsets: Offsets,
    element: ElementType,
    values: Array,
    known: NDArray[np.bool_] | None,
    where: Location,
) -> None:
    """Write values (known None: all are), under set_atomic combined with what the memory holds."""
    template, operand, buffer, address = target
    if operand.mem is Mem.GM and core.registers.atomic:
        there = buffer.initialised(address, offsets, element)
        blocks = there.ndim > len(operand.axes.split())
        ready = np.asarray(there.all(axis=-1)) if blocks else there
        _log_uninitialised(core, template, operand, ready, where)
        old = buffer.read(address, offsets, element)
        values = atomic(core.registers.atomic, old, values)
        known = there if known is None else there & known
    buffer.write(address, offsets, element, values)
    buffer.mark(address, offsets, element, known)


def _compute(core: Core, template: Instruction, placed: list[Placed], where: Location) -> None:
    """Run an instruction on arrays: all at once, or repeat by repeat where one feeds the next."""
    if template.in_repeats and _feeds_itself(template, placed):
        for repeat in range(template.offsets(placed[0][0].name).shape[0]):
            _compute_part(core, template, placed, slice(repeat, repeat + 1), where)
    else:
        _compute_part(core, template, placed, slice(None), where)


def _feeds_itself(template: Instruction, placed: list[Placed]) -> bool:
    """Whether bytes that one repeat writes are bytes that another reads."""
    for to, target, address in placed:
        if not to.access.writes:
            continue
        for source, buffer, start in placed:
            if not source.access.reads or target is not buffer:
                continue
            if to is source:
                if not distinct(template, to.name):
                    return True
            elif not (
                apart(template, (to, address), (source, start))
                or (address == start and lane_by_lane(template, to.name, source.name))
            ):
                return True
    return False


def _compute_part(
    core: Core, template: Instruction, placed: list[Placed], part: slice, where: Location
) -> None:
    inputs: dict[str, Array] = {}
    valid: NDArray[np.bool_] | None = None
    for operand, buffer, address in placed:
        if not operand.access.reads:
            continue
        offsets, element = template.offsets(operand.name)[part], template.element(operand)
        inputs[operand.name] = buffer.read(address, offsets, element)
        ready = buffer.initialised(address, offsets, element)
        if template.propagates and not operand.used:
            valid = ready if valid is None else valid & ready
        else:
            active = _active(template, operand, part)
            needed = ready if active is None else ready | ~active
            _log_uninitialised(core, template, operand, needed, where)
    results = template.compute(inputs, core.registers)
    core.registers = template.leaves(inputs, core.registers)
    for operand, buffer, address in placed:
        if operand.access.writes:
            offsets = template.offsets(operand.name)[part]
            values, known = results[operand.name], valid
            active = _active(template, operand, part)
            if active is not None:
                offsets, values = offsets[active], values[active]
                known = None if valid is None else valid[active]
            target = template, operand, buffer, address
            _store(core, target, offsets, template.element(operand), values, known, where)


def _active(template: Instruction, operand: Operand, part: slice) -> NDArray[np.bool_] | None:
    active = template.active(operand.name)
    return None if active is None else active[part]


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
