"""The reference engine: slow, readable, and the definition of what an instruction does."""

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.declare.operand_overlap import STEERED, overlaps, relation
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import Sync
from cubecore.layouts import Offsets
from cubecore.machine.memory.buffers import MemoryBuffer
from cubecore.machine.memory.elements import Elements, Use, part, use, uses
from cubecore.machine.memory.moves import move_of
from cubecore.machine.memory.operation import Inputs, Read, Write, combines, operate
from cubecore.machine.memory.places import Known, Place, Spot
from cubecore.machine.reference.core import Core, Recorded
from cubecore.machine.reference.issue_cache import CachedIssue, plan
from cubecore.machine.sanitizer.findings import FindingAccess, SanitizerFinding
from cubecore.numerics.quantisation import atomic

OperandBytes = tuple[Use, MemoryBuffer, int]
"""An operand, the memory that it lies in, and its address there."""


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
    issue = plan(core, template)
    resolved = issue.template
    if issue.wrong:
        core.report(issue.wrong, resolved, where)
        return
    if issue.applies:
        core.registers = resolved.apply(core.registers)
    if not issue.operands:
        if resolved.register and core.watch is not None:
            core.watch.touch(resolved, (), where, core.registers)
        return
    if issue.moves:
        resolved, addresses = resolved.rebased(addresses)
    all_addresses = resolved.operand_addresses(addresses)
    steering: dict[str, tuple[MemoryBuffer, int]] = {}
    if resolved.steering:
        steered = _steered(core, resolved, all_addresses, where)
        if steered is None:
            return
        resolved, steering = steered
    operands = _operand_bytes(core, issue, resolved, steering, (all_addresses, where))
    if operands is None or (issue.judges and not _lies_well(core, resolved, all_addresses, where)):
        return
    settled = resolved is issue.template
    feeds, meets = issue.relation(all_addresses) if settled else relation(resolved, all_addresses)
    if meets:
        _log_overlaps(core, resolved, all_addresses, where)
    if core.watch is not None:
        core.watch.touch(resolved, all_addresses, where, core.registers)
    if core.observe is not None:
        core.observe(core, resolved, all_addresses)
    if resolved.copies:
        _move(core, resolved, operands, where)
    else:
        _compute(core, resolved, operands, where, feeds=feeds)


def _operand_bytes(
    core: Core,
    issue: CachedIssue,
    template: Instruction,
    steering: dict[str, tuple[MemoryBuffer, int]],
    at: tuple[tuple[int, ...], Location],
) -> list[OperandBytes] | None:
    """Return where the operands lie; None, after logging, where one lies outside of its memory."""
    addresses, where = at
    complete, operands = True, []
    for used, usable, address in zip(uses(template), issue.usable, addresses, strict=True):
        if steering and used.name in steering:
            operands.append((used, *steering[used.name]))
            continue
        operand = _if_inside(core, used, usable, address) or _checked(
            core, template, used, address, where
        )
        if operand is None:
            complete = False
        else:
            operands.append(operand)
    return operands if complete else None


def _if_inside(core: Core, used: Use, usable: int, address: int) -> OperandBytes | None:
    """Return an operand's buffer and its address there; None if that takes a closer look."""
    low, high, mem = address + used.low, address + used.high, used.operand.mem
    if address % used.unit or low < 0 or low == high:
        return None
    if mem is Mem.GM:
        tensor = core.gm.at(low)
        if tensor is None or high > tensor.end:
            return None
        return used, tensor.buffer, address - tensor.address
    buffer = core.memories.get(mem)
    return None if buffer is None or high > usable else (used, buffer, address)


def _steered(
    core: Core, template: Instruction, addresses: tuple[int, ...], where: Location
) -> tuple[Instruction, dict[str, tuple[MemoryBuffer, int]]] | None:
    """Return the template that values have located, and where those lie; None where it is wrong."""
    operands = {
        operand.name: _checked(core, template, use(template, operand), address, where)
        for operand, address in zip(template.operands(), addresses, strict=True)
        if operand.name in template.steering
    }
    by_name = {name: one for name, one in operands.items() if one is not None}
    if len(by_name) < len(operands):
        return None
    values = tuple(
        (name, used.element, _elements_at(used, buffer, address).read().tobytes())
        for name, (used, buffer, address) in by_name.items()
    )
    located, violations = _located(template, core.chip, values)
    if violations:  # of what nobody has written, perhaps
        for one in by_name.values():
            _require_written(core, template, one, one[0].elements, where)
    if not core.report(violations, located, where):
        return None
    return located, {name: (buffer, address) for name, (_, buffer, address) in by_name.items()}


def _elements_at(used: Use, buffer: MemoryBuffer, address: int) -> Place:
    return Place(Spot.of(buffer, address), used.elements, used.element)


def _named(template: Instruction, addresses: tuple[int, ...]) -> dict[str, int]:
    return dict(zip((o.name for o in template.operands()), addresses, strict=True))


def _lies_well(
    core: Core, template: Instruction, addresses: tuple[int, ...], where: Location
) -> bool:
    """True if nothing is wrong with the operands' addresses beyond alignment and bounds."""
    return core.report(template.address_violations(_named(template, addresses)), template, where)


def _log_overlaps(
    core: Core, template: Instruction, addresses: tuple[int, ...], where: Location
) -> None:
    for to, source, wrong in overlaps(template, _named(template, addresses)):
        message = f"{template.name}.{to} must {wrong}"
        finding = SanitizerFinding("overlap", message, template.name, where, str(core.id))
        core.log.add(finding, f"{to} {source}")


@lru_cache(maxsize=STEERED)
def _located(
    template: Instruction, chip: Chip, values: tuple[tuple[str, ElementType, bytes], ...]
) -> tuple[Instruction, list[Violation]]:
    """Return what values make of a template, and what it breaks then."""
    values_of = {
        name: np.frombuffer(raw, element.numpy).reshape(template.offsets(name).shape)
        for name, element, raw in values
    }
    located = template.located(values_of)
    return located, located.preconditions(chip)


def _checked(
    core: Core, template: Instruction, used: Use, address: int, where: Location
) -> OperandBytes | None:
    """Return the operand's buffer and its address there, or None after logging what is wrong."""
    operand, span = used.operand, used.elements.span

    def log(kind: str, message: str) -> None:
        subject = f"{template.name}.{operand.name}"
        finding = SanitizerFinding(
            kind, f"{subject} must {message}", template.name, where, str(core.id)
        )
        core.log.add(finding, operand.name)

    first, last = address + used.low, address + used.high
    if address % operand.alignment:
        log(
            "misaligned",
            f"start at a multiple of {operand.alignment} B in {operand.mem.label}, got {address}",
        )
    if operand.mem is Mem.GM:
        if span is None:
            return used, MemoryBuffer(0), 0
        return _checked_global(core, used, address, log)
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
    return used, buffer, address


def _checked_global(
    core: Core, used: Use, address: int, log: Callable[[str, str], None]
) -> OperandBytes | None:
    first, last = address + used.low, address + used.high
    tensor = core.gm.at(first)
    if tensor is None or last > tensor.end:
        near = tensor or core.gm.near(first)
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
        if tensor is None or last - tensor.address > tensor.wide.size_bytes:
            return None
        return used, tensor.wide, address - tensor.address
    return used, tensor.buffer, address - tensor.address


def _inside(what: str, size: int, first: int, last: int) -> str:
    return f"stay inside {what} (0 to {size} B), got bytes [{first}, {last})"


def _move(core: Core, template: Instruction, operands: list[OperandBytes], where: Location) -> None:
    by_name = {one[0].name: one for one in operands}
    fill = template.fill(core.registers)
    for target, origin in template.pairs:
        (dst, to, to_address), (src, source, address) = by_name[target], by_name[origin]
        here = Spot.of(source, address)
        if dst.operand.mem is Mem.GM and core.registers.atomic:
            element = element_type(core.registers.atomic_type)
            cut, there = (_cut(template, name, element) for name in (origin, target))
            elements = Place(here, cut, element)
            combining = _Combining(core, template, by_name[target], there, element, where)
            combining.write(elements.read(), elements.ready())
        else:
            move_of(template, src.operand, dst.operand, fill)(here, Spot.of(to, to_address))


@lru_cache(maxsize=64)
def _cut(template: Instruction, operand: str, element: ElementType) -> Elements:
    """Return the elements that make up each block of an operand, last axis new."""
    (whole,) = (used for used in uses(template) if used.name == operand)
    ratio = whole.element.bits // element.bits
    offsets = whole.elements.offsets[..., None] * ratio + np.arange(ratio, dtype=np.intp)
    return Elements.of(offsets, None, element)


class _Combining:
    """Stores under set_atomic, combined with what the memory holds."""

    def __init__(
        self,
        core: Core,
        template: Instruction,
        target: OperandBytes,
        there: Elements,
        element: ElementType,
        where: Location,
    ) -> None:
        self._core, self._template, self._where = core, template, where
        self._there = there
        used, buffer, address = target
        self._operand = used.operand
        self._elements = Place(Spot.of(buffer, address), there, element)

    def write(self, values: Array, defined: Known) -> None:
        """Store values where the mask lets them through."""
        core, operand, active = self._core, self._operand, self._there.active
        elements = self._elements
        if self._there.span is None:
            return
        there = elements.ready()
        blocks = there.ndim > len(operand.axes.split())
        ready = there if active is None else there[active]
        _log_uninitialised(
            core,
            self._template,
            operand,
            np.asarray(ready.all(axis=-1)) if blocks else ready,
            self._where,
        )
        finite = not core.registers.float_ieee
        combined = atomic(core.registers.atomic, elements.read(), values, finite=finite)
        elements.write(combined, there if defined is None else there & defined)


def _compute(
    core: Core, template: Instruction, operands: list[OperandBytes], where: Location, *, feeds: bool
) -> None:
    """Run an instruction on arrays: all at once, or repeat by repeat where one feeds the next."""
    if not feeds:
        _compute_part(core, template, operands, [u.elements for u, _, _ in operands], where)
        return
    for repeat in range(operands[0][0].elements.offsets.shape[0]):
        touched = [part(template, u.name, repeat) for u, _, _ in operands]
        _compute_part(core, template, operands, touched, where)


def _compute_part(
    core: Core,
    template: Instruction,
    operands: list[OperandBytes],
    touched: list[Elements],
    where: Location,
) -> None:
    before = core.registers
    reads: list[Read] = []
    writes: list[Write] = []
    by_name: dict[str, tuple[OperandBytes, Elements]] = {}
    for one, here in zip(operands, touched, strict=True):
        used, buffer, address = one
        elements = Place(Spot.of(buffer, address), here, used.element)
        if used.reads:
            by_name[used.name] = one, here
            reads.append((used.name, elements, template.propagates and not used.operand.used))
        if used.writes:
            if used.operand.mem is Mem.GM and combines(template, before):
                combining = _Combining(core, template, one, here, used.element, where)
                writes.append((used.name, combining.write))
            else:
                writes.append((used.name, elements.write))

    def compute(inputs: Inputs) -> Mapping[str, Array]:
        results, core.registers = template.run(inputs, before)
        if core.planned_for is before:  # what values leave decides nothing of other templates
            core.planned_for = core.registers
        return results

    def unwritten(name: str, _: Place) -> None:
        _require_written(core, template, *by_name[name], where)

    operate(reads, writes, compute, unwritten)


def _require_written(
    core: Core, template: Instruction, operand: OperandBytes, here: Elements, where: Location
) -> None:
    """Log the uninitialised elements of an operand that are used."""
    used, buffer, address = operand
    ready = Place(Spot.of(buffer, address), here, used.element).ready()
    if here.active is not None:
        ready |= ~here.active
    missing = _extent(here.offsets[~ready], address, used.element)
    _log_uninitialised(core, template, used.operand, ready, where, missing)


def _extent(missing: Offsets, address: int, element: ElementType) -> tuple[int, int]:
    """Return the bytes [start, end) that reach from the first of some elements to the last."""
    if not missing.size:
        return address, address
    low, high = int(missing.min()) * element.bits, (int(missing.max()) + 1) * element.bits
    return address + low // 8, address - (-high // 8)


def _log_uninitialised(
    core: Core,
    template: Instruction,
    operand: Operand,
    ready: NDArray[np.bool_],
    where: Location,
    missing: tuple[int, int] | None = None,
) -> None:
    """Log elements that are not ready; `missing` are the bytes of local memory that they reach."""
    if ready.all():
        return
    index = tuple(int(i) for i in np.argwhere(~ready)[0])
    axes = ", ".join(f"{a} {i}" for a, i in zip(operand.axes.split(), index, strict=True))
    message = (
        f"{template.name}.{operand.name} must be initialised in {operand.mem.label}, "
        f"got {int((~ready).sum())} of {ready.size} elements never written, first {axes}"
    )
    core_name, accesses = str(core.id), tuple[FindingAccess, ...]()
    if missing is not None:
        pipe, memory = template.pipe.value, operand.mem.label
        accesses = (
            FindingAccess(
                "read", template.name, operand.name, pipe, memory, *missing, core_name, where
            ),
        )
    finding = SanitizerFinding(
        "uninitialised", message, template.name, where, core_name, accesses=accesses
    )
    core.log.add(finding, operand.name)
