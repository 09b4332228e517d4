"""One core, one instruction: what the reference engine does, and its findings.

Slow, readable, and the definition: nothing is remembered of an issue for the next one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.declare.operand_overlap import STEERED, overlaps
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.remark import Remark
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import Dcci
from cubecore.isa.scalar.sync import FftsCrossCoreSync, Sync
from cubecore.machine.execute.checked_ub import checked_accesses
from cubecore.machine.execute.core import Core, Recorded
from cubecore.machine.execute.filled_reads import FilledRead
from cubecore.machine.execute.instruction import (
    NOWHERE,
    ComputeStep,
    Lacking,
    perform,
    require_written,
    within,
)
from cubecore.machine.execute.issue_cache import CachedIssue, checked
from cubecore.machine.memory.buffers import GlobalTensor, Spot
from cubecore.machine.memory.elements import Use, steering_uses, uses
from cubecore.machine.memory.filling_table import FillingReader
from cubecore.machine.memory.operation import Inputs
from cubecore.machine.memory.places import Place
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding
from cubecore.machine.sanitize.racecheck import CoreWatch


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
    # 1. Broken parameters: reported, not made. 2. Remarks, which may forbid it. 3. Registers. 4.
    # What touches memory: located by addresses and by values, checked, followed by the watch, and
    # made.
    issue = checked(core, template)
    if issue.wrong:
        core.report(issue.wrong, issue.template, where)
        _log_starts(core, issue.template, addresses, where)
        return
    if issue.remarks:
        core.remark(issue.remarks, issue.template, addresses, where)
        if issue.stops:
            return
    if issue.applies:
        core.registers = issue.template.apply(core.registers)
    if not issue.template.operands():
        if _is_followed(issue.template) and core.execution_watch is not None:
            core.execution_watch.touch(issue.template, (), where, core.registers)
        return
    alone, given = OneCore(core), None
    resolved, addresses = _rebased(issue, addresses)
    if issue.unsettled:
        if resolved.steering:
            steered = _steered(alone, resolved, addresses, where)
            if steered is None:
                return
            resolved, given = steered
        issue = CachedIssue.of(resolved, core.registers, core.chip)
        if issue.remarks:  # of what values have decided
            core.remark(issue.remarks, resolved, resolved.operand_addresses(addresses), where)
            if issue.stops:
                return
    if core.registers.ub_checks:
        _log_checked(core, resolved, addresses, where)
    step = ComputeStep(partial(_run, core, resolved), partial(_follow, core, resolved))
    perform(alone, issue, addresses, where, step, given)


def _is_followed(template: Instruction) -> bool:
    """Return whether a template without operands is followed: a register, or lines of the cache."""
    return bool(template.register) or isinstance(template, Dcci)


def follow_issue(core: Core, watch: CoreWatch, recorded: Recorded) -> None:
    """Let a watch follow what a core issues and will execute in another order.

    Operands that values locate are left out: the values are those of the other order. So is an
    instruction that leaves a memory, which is not made.
    """
    template, addresses, where = recorded
    if isinstance(template, Sync):
        if not isinstance(template, FftsCrossCoreSync):  # the signal itself carries clocks
            watch.sync(template, where)
        return
    issue = checked(core, template)
    if (
        issue.wrong
        or issue.stops
        or not (issue.template.operands() or _is_followed(issue.template))
    ):
        return
    resolved, addresses = _rebased(issue, addresses)
    if resolved.steering:
        return
    at = resolved.operand_addresses(addresses)
    if _is_made(core, resolved, at):
        watch.touch(resolved, at, where, core.registers)


def _rebased(issue: CachedIssue, addresses: tuple[int, ...]) -> tuple[Instruction, tuple[int, ...]]:
    """Return a template with its addresses, which may decide what it touches."""
    return issue.template.rebased(addresses) if issue.unsettled else (issue.template, addresses)


def _is_made(core: Core, template: Instruction, addresses: tuple[int, ...]) -> bool:
    """Return whether an instruction is made at its operands' addresses."""
    given = zip(uses(template), addresses, strict=True)
    if any(_is_outside(core, used, address) for used, address in given):
        return False
    if type(template).address_violations is Instruction.address_violations:
        return True
    names = (operand.name for operand in template.operands())
    return not template.address_violations(dict(zip(names, addresses, strict=True)))


def _is_outside(core: Core, used: Use, address: int) -> bool:
    """Return whether an operand leaves its memory, or global memory with what lies behind."""
    first, last = address + used.low, address + used.high
    if used.operand.mem is Mem.GM:
        tensor = None if used.elements.span is None else core.gm.at(first)
        if tensor is None:
            return used.elements.span is not None
        return last - tensor.address > max(tensor.wide.size_bytes, tensor.buffer.size_bytes)
    memory = core.memory(used.operand.mem)
    if memory is None:
        return True
    return used.elements.span is not None and (first < 0 or last > memory.size_bytes)


def _run(core: Core, template: Instruction, inputs: Inputs) -> Mapping[str, Array]:
    """Compute, and leave in registers what is left there."""
    before = core.registers
    results, core.registers = template.run(inputs, before)
    if core.checked_for is before:  # what values leave decides nothing of other templates
        core.checked_for = core.registers
    return results


def _follow(core: Core, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
    watch = core.execution_watch
    if watch is not None:
        watch.touch(template, addresses, where, core.registers)
    if core.observe is not None:
        core.observe(core, template, addresses)


def _log_starts(
    core: Core, template: Instruction, addresses: tuple[int, ...], where: Location
) -> None:
    """Log the operands of an instruction that is not made that begin outside of a local memory."""
    for operand, address in zip(template.operands(), addresses, strict=False):
        if operand.mem is Mem.GM:
            continue
        size = memory_bytes(core.chip, operand.mem)[0]
        if not 0 <= address < size:
            need = f"start inside {operand.mem.label} (0 to {size} B)"
            claim = Violation(f"{template.name}.{operand.name}", need, f"address {address}")
            finding = SanitizerFinding(
                *("out-of-bounds", str(claim), template.name, where, str(core.id)), claim=claim
            )
            core.log.add(finding, operand.name)


def _log_checked(
    core: Core, template: Instruction, addresses: tuple[int, ...], where: Location
) -> None:
    """Log the accesses to UB that the kernel has checked."""
    at = template.operand_addresses(addresses)
    for operand, message in checked_accesses(core.registers.ub_checks, template, at):
        finding = SanitizerFinding("checked-access", message, template.name, where, str(core.id))
        core.log.add(finding, operand)


# --- values that steer


def _steered(
    alone: "OneCore", template: Instruction, addresses: tuple[int, ...], where: Location
) -> tuple[Instruction, dict[str, Spot]] | None:
    """Return the template that values have located, and where those lie; None where it is wrong."""
    core = alone.core
    at = template.operand_addresses(addresses)
    steering = [(used, at[number]) for number, used in steering_uses(template)]
    spots = {used.name: alone.find(template, used, address, where) for used, address in steering}
    given = {name: spot for name, spot in spots.items() if spot is not None}
    if len(given) < len(spots):
        return None
    places = [Place(given[used.name], used.elements, used.element) for used, _ in steering]
    values = tuple(
        (used.name, used.element, place.read().tobytes())
        for (used, _), place in zip(steering, places, strict=True)
    )
    located, violations = _located(template, core.chip, values)
    if violations:  # of what nobody has written, perhaps
        for (used, address), place in zip(steering, places, strict=True):
            require_written(alone, template, used, place, address, where)
    return (located, given) if core.report(violations, located, where) else None


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


# --- exceptions


class OneCore:
    """One core, as an instruction finds it: exceptions are logged."""

    __slots__ = ("core", "gm", "memory", "report")

    def __init__(self, core: Core) -> None:
        self.core, self.gm = core, core.gm
        self.memory, self.report = core.memory, core.report

    @property
    def registers(self) -> Registers:
        """Return the core's registers."""
        return self.core.registers

    def share(self, tensor: GlobalTensor, used: Use, address: int) -> Spot | None:
        """Return where an operand lies in a tensor; None if it leaves it, or reads stale bytes."""
        low, high = address + used.low, address + used.high
        if high > tensor.end or self._reads_stale(tensor, used, low, high):
            return None
        self._note(tensor, used, low, high)
        return tensor.buffer.spot(address - tensor.address)

    def _reads_stale(self, tensor: GlobalTensor, used: Use, low: int, high: int) -> bool:
        """Return whether an operand reads what pointers have stored in the data cache alone."""
        written = used.writes or tensor.buffer.marks.whole
        return not written and self.gm.settle(tensor, low, high)

    @staticmethod
    def _note(tensor: GlobalTensor, used: Use, low: int, high: int) -> None:
        """Note bytes that an instruction is about to write, where pointers may write others."""
        if used.writes and tensor.issued is not None:
            tensor.issued.note(((1, 0, 0),), low - tensor.address, high - tensor.address)

    def find(self, template: Instruction, used: Use, address: int, where: Location) -> Spot | None:
        """Return where an operand lies, or None after logging that it is outside its memory."""
        mem = used.operand.mem
        usable = 0 if mem is Mem.GM else memory_bytes(self.core.chip, mem)[1]
        return within(self, used, usable, address) or self.look(template, used, address, where)

    def look(self, template: Instruction, used: Use, address: int, where: Location) -> Spot | None:
        """Log what is wrong with an operand's address; return where it lies, None if outside."""
        core, operand, span = self.core, used.operand, used.elements.span

        subject, at = f"{template.name}.{operand.name}", where

        def log(
            kind: str, need: str, got: str, remedy: str = "", outside: _Outside | None = None
        ) -> None:
            claim = Violation(subject, need, got, remedy)
            finding = SanitizerFinding(
                kind, str(claim), template.name, at, str(core.id), claim=claim
            )
            if outside is not None:
                finding = outside.completed(finding, operand, template.pipe.value)
            core.log.add(finding, operand.name)

        first, last = address + used.low, address + used.high
        if address % operand.alignment:
            need = f"start at a multiple of {operand.alignment} B in {operand.mem.label}"
            log("misaligned", need, str(address))
        if operand.mem is Mem.GM:
            return NOWHERE if span is None else self._look_in_gm(used, address, log)
        memory = core.memory(operand.mem)
        if memory is None:
            kind = "AIC" if core.id.is_aic else "AIV"
            log("parameter", f"lie in a memory of the {kind}", operand.mem.label)
            return None
        _, usable = memory_bytes(core.chip, operand.mem)
        if (inner := template.beyond(operand.name, address, usable)) is not None:
            subject, first, last, line = inner
            at = replace(where, file=line.file, line=line.line)
        if _is_outside(core, used, address):
            outside = _Outside(operand.mem.label, memory.size_bytes, first, last)
            log("out-of-bounds", *outside.parts, outside=outside)
            return None
        if span is not None and last > usable:
            outside = _Outside(f"the usable {operand.mem.label}", usable, first, last)
            log("capacity", *outside.parts)
        return memory.spot(address)

    def _look_in_gm(self, used: Use, address: int, log: Callable[..., None]) -> Spot | None:
        """Log an operand that leaves its tensor; return where it lies unless that is too far."""
        first, last = address + used.low, address + used.high
        tensor = self.gm.at(first)
        if tensor is not None and last <= tensor.end:
            if self._reads_stale(tensor, used, first, last):
                got = f"none since a pointer stored to {tensor.name}, which is in the data cache"
                log("stale-cache", "be read behind a dcci", got, "call asc_dcci_single first")
                self.gm.settle(tensor, first, last, every=True)
            self._note(tensor, used, first, last)
            return tensor.buffer.spot(address - tensor.address)
        near = tensor or self.gm.nearest(first)
        if near is None:
            got = f"bytes [{first}, {last}) before the first one"
            log("out-of-bounds", "lie in a tensor", got)
        else:
            size, start = near.buffer.size_bytes, near.address
            outside = _Outside(near.name, size, first - start, last - start)
            need, got = outside.parts
            got += f", before the first byte of {near.name}" if first < start else ""
            log("out-of-bounds", need, got, outside=outside)
        if tensor is None or _is_outside(self.core, used, address):
            return None
        self._note(tensor, used, first, last)
        return tensor.wide.spot(address - tensor.address)

    def meet(
        self, template: Instruction, addresses: tuple[int, ...], where: Location, *, wrong: bool
    ) -> None:
        """Log operands that overlap."""
        if not wrong:
            return
        core, names = self.core, (operand.name for operand in template.operands())
        for to, source, broken in overlaps(template, dict(zip(names, addresses, strict=True))):
            message = f"{template.name}.{to} must {broken}"
            finding = SanitizerFinding("overlap", message, template.name, where, str(core.id))
            core.log.add(finding, f"{to} {source}")

    def lack(self, template: Instruction, lacking: Lacking, where: Location) -> None:
        """Log elements that nobody wrote."""
        # The first unwritten element is named by the operand's own axes, as "row 3, column 0".
        operand, ready, core = lacking.used.operand, lacking.ready, str(self.core.id)
        index = tuple(int(i) for i in np.argwhere(~ready)[0])
        axes = ", ".join(f"{a} {i}" for a, i in zip(operand.axes.split(), index, strict=True))
        missing = int((~ready).sum())
        claim = Violation(
            f"{template.name}.{operand.name}",
            f"be initialised in {operand.mem.label}",
            f"{missing} of {ready.size} elements never written, first {axes}",
        )
        accesses: Sequence[FindingAccess] = ()
        if lacking.extent is not None:
            name, pipe, memory = template.name, template.pipe.value, operand.mem.label
            accesses = (
                FindingAccess(
                    "read", name, operand.name, pipe, memory, *lacking.extent, core, where
                ),
            )
        finding = SanitizerFinding(
            *("uninitialised", str(claim), template.name, where, core),
            accesses=tuple(accesses),
            elements=(missing, ready.size),
            claim=claim,
        )
        self.core.log.add(finding, operand.name)

    def remark(
        self,
        remarks: Sequence[Remark],
        template: Instruction,
        addresses: tuple[int, ...],
        where: Location,
    ) -> None:
        """Log remarks of an instruction on itself."""
        self.core.remark(remarks, template, addresses, where)

    def read_filling(self, found: FilledRead, reader: FillingReader) -> None:
        """Log filling that was read for a result that is needed."""
        core, (name, operand, where) = self.core, reader
        finding = SanitizerFinding("filling-read", found.message, name, where, str(core.id))
        core.log.add(finding, f"{operand} {found.filling.where}")


@dataclass(frozen=True, slots=True)
class _Outside:
    """Bytes [first, last) that an operand touches, of an array or a memory that ends at `size`."""

    array: str
    size: int
    first: int
    last: int

    @property
    def parts(self) -> tuple[str, str]:
        """The requirement, and the bytes that there are."""
        return (
            f"stay inside {self.array} (0 to {self.size} B)",
            f"bytes [{self.first}, {self.last})",
        )

    def completed(self, finding: SanitizerFinding, operand: Operand, pipe: str) -> SanitizerFinding:
        """Return a finding with the access, and the bytes that it had to stay in."""
        how = "write" if operand.access.writes else "read"
        access = FindingAccess(
            how=how,
            instruction=finding.instruction,
            operand=operand.name,
            pipe=pipe,
            memory=self.array,
            start=self.first,
            end=self.last,
            core=finding.core,
            location=finding.location,
        )
        return replace(finding, accesses=(access,), limits=(0, self.size))
