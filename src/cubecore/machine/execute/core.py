"""One core: its local memories and registers, and the record of what it issued."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cubecore.cache import BoundedCache
from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import CROSS_CORE_FLAGS, TO_PART, Registers
from cubecore.isa.declare.remark import Line, Remark
from cubecore.isa.mte.partner import ToPartner
from cubecore.isa.program.check import memory_bytes, template_violations
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Breach, Issue, LoadScalar, Location
from cubecore.isa.scalar.load import CachedLoad, ScalarLoad
from cubecore.isa.scalar.sync import (
    AIC_PIPES,
    AIV_PIPES,
    FftsCrossCoreSync,
    Sync,
    WaitFlagDev,
)
from cubecore.machine.execute.checked_ub import checked_at
from cubecore.machine.execute.queue_order import Queues
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.memory.data_cache import DataCache
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding
from cubecore.machine.sanitize.racecheck import CoreWatch
from cubecore.machine.sanitize.shadow_memory import MemoryAccess

AIC_MEMORIES = (
    *(Mem.L1, Mem.L0A, Mem.L0B, Mem.L0B_INDEX, Mem.L0A_MX, Mem.L0B_MX, Mem.L0C, Mem.BT, Mem.FB),
)
AIV_MEMORIES = (Mem.UB,)
FLUSH_AFTER = 8192
"""Issues that a core records before it executes them."""

SCALAR_LOAD = ScalarLoad()
"""Stands for the scalar unit's own reads where an instruction is named."""
CACHED_LOAD = CachedLoad()
"""Stands for those by the data cache."""
Recorded = tuple[Instruction, tuple[int, ...], Location]


@dataclass(eq=False)
class Core:
    """The state of one core during a run.

    The run's life: 1. issues are recorded (`record`); 2. `flush` hands them to the engine in
    program order, at the latest when the core needs a value, signals or waits for another core,
    or ends. `watch` is told of every instruction that is made; where queues change the order, of
    what is issued.
    """

    id: CoreId
    chip: Chip
    gm: GlobalMemory
    log: FindingLog
    execute: Callable[["Core", Recorded], None]
    signal: Callable[["Core", FftsCrossCoreSync, Location], None]
    wait: Callable[["Core", WaitFlagDev, Location], None]
    watch: CoreWatch | None = None
    registers: Registers = Registers()
    memories: dict[Mem, MemoryBuffer] = field(default_factory=dict)
    pending: list[Recorded] = field(default_factory=list)
    issued: int = 0
    queues: Queues | None = None
    """The schedule of instructions in another order than the program's; None: program order."""
    data_cache: DataCache | None = None
    """The values in the data cache, in an order that holds its lines; None: those of memory."""
    checked_for: Registers | None = None
    checked: BoundedCache[Instruction, Any] = field(default_factory=BoundedCache)
    """An engine's checked issues under the registers `checked_for`, of the templates it met."""
    observe: Callable[["Core", Instruction, Sequence[int]], None] | None = None
    """Told what an instruction touches, just before it does; its operands' addresses."""

    @property
    def execution_watch(self) -> CoreWatch | None:
        """The watch that follows what is executed; None where it follows what is issued."""
        return self.watch if self.queues is None else None

    def memory(self, mem: Mem) -> MemoryBuffer | None:
        """Return a local memory, made on first use; None if this part of the core lacks it."""
        buffer = self.memories.get(mem)
        if buffer is None and self.has(mem):
            physical, _ = memory_bytes(self.chip, mem)
            buffer = self.memories[mem] = MemoryBuffer(physical)
        return buffer

    @property
    def _own(self) -> tuple[Mem, ...]:
        """The memories of this part of the core; where Cube and Vector share a core, all."""
        if self.chip.joins_vector:
            return AIC_MEMORIES + AIV_MEMORIES
        return AIC_MEMORIES if self.id.is_aic else AIV_MEMORIES

    def has(self, mem: Mem) -> bool:
        """True if this part of the core has a local memory."""
        return mem in self._own

    def record(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Take one instruction, in program order."""
        self.issued += 1
        if isinstance(template, ToPartner):
            template, addresses = self.gm.windows.sent(self.chip, self.id, template, addresses)
        # Signals to other cores and waits for them are the points at which others may look at
        # global memory: everything issued before must have executed by then.
        if self.queues is not None:
            self._queue(self.queues, (template, addresses, where))
        elif isinstance(template, (FftsCrossCoreSync, WaitFlagDev)):
            self.flush()
            if self.allows(template, where):
                if isinstance(template, WaitFlagDev):
                    self.wait(self, template, where)
                else:
                    self.signal(self, template, where)
        else:
            self.pending.append((template, addresses, where))
            if len(self.pending) >= FLUSH_AFTER:
                self.flush()

    def _queue(self, queues: Queues, recorded: Recorded) -> None:
        template, _, where = recorded
        if isinstance(template, Sync) and not self.allows(template, where):
            return
        if isinstance(template, WaitFlagDev):
            queues.drain()
            self.wait(self, template, where)
        else:
            queues.issue(recorded)

    def perform(self, recorded: Recorded) -> None:
        """Execute one instruction now."""
        if self.data_cache is None:
            self.execute(self, recorded)
        else:
            self.data_cache.perform(recorded, partial(self.execute, self))

    def allows(self, template: Instruction, where: Location) -> bool:
        """Return whether the template breaks nothing on this core; log what it breaks."""
        return self.report(self._broken(template), template, where)

    def may(self, template: Instruction) -> bool:
        """Return whether the template breaks nothing on this core."""
        return not self._broken(template)

    def _broken(self, template: Instruction) -> list[Violation]:
        violations = list(template_violations(template, self.chip))
        if isinstance(template, FftsCrossCoreSync):
            lacks = template.mode == TO_PART and template.flag_id >= CROSS_CORE_FLAGS
            if lacks and not self.id.is_aic:
                need, got = f"be in [0, {CROSS_CORE_FLAGS - 1}] on an AIV", str(template.flag_id)
                violations.append(Violation(f"{template.name}.flag_id", need, got))
            if template.mode == 1 and self.id.is_aic:
                violations.append(Violation(f"{template.name}.mode", "be 0 or 2 on an AIC", "1"))
            if template.on not in ("S", *(AIC_PIPES if self.id.is_aic else AIV_PIPES)):
                part = "AIC" if self.id.is_aic else "AIV"
                need = f"be a pipe of an {part}"
                violations.append(Violation(f"{template.name}.pipe", need, template.on))
        return violations

    def report(
        self, violations: Sequence[Violation], template: Instruction, where: Location
    ) -> bool:
        """Log violations; return whether there were none."""
        kind = "flag-parameter" if isinstance(template, Sync) else "parameter"
        for violation in violations:
            finding = SanitizerFinding(
                kind, str(violation), template.name, where, str(self.id), claim=violation
            )
            self.log.add(finding, violation.subject)
        return not violations

    def remark(
        self,
        remarks: Sequence[Remark],
        template: Instruction,
        addresses: Sequence[int],
        where: Location,
    ) -> None:
        """Log remarks of an instruction on itself; their lines were called as it was."""
        core, pipe = str(self.id), template.pipe.value

        def inside(line: Line | None) -> Location:
            return where if line is None else replace(where, file=line.file, line=line.line)

        for remark in remarks:
            accesses = tuple(
                FindingAccess(
                    *(each.how, each.name, "", pipe, template.operands()[0].mem.label),
                    *(addresses[0] + each.start, addresses[0] + each.end),
                    *(core, inside(each.location)),
                )
                for each in remark.accesses
            )
            finding = SanitizerFinding(
                *(remark.kind, remark.message, template.name, inside(remark.location), core),
                accesses=accesses,
            )
            self.log.add(finding, remark.subject)

    def flush(self) -> None:
        """Execute everything recorded; what stands in queues is left there."""
        pending, self.pending = self.pending, []
        for recorded in pending:
            self.execute(self, recorded)

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the recorder of one leaf (the sink protocol of programs)."""
        # A leaf of a program is called with its loop-dependent values, first those of parameters
        # that are only known at issue (`late`), then addresses. Bound arguments keep the usual
        # handlers short, as they run for each instruction.
        late, template, where, record = len(issue.late), issue.template, issue.location, self.record
        if issue.rules or issue.breaches:
            return lambda *values: self._record_held(issue, values[:late], values[late:])
        if not late:
            return lambda *addresses: record(template, addresses, where)
        return lambda *values: record(issue.bound(values[:late]), values[late:], where)

    def _record_held(
        self, issue: Issue, values: tuple[int, ...], addresses: tuple[int, ...]
    ) -> None:
        """Record an instruction, with findings for its own rules and known breaches."""
        name, core = issue.template.name, str(self.id)
        for breach in issue.breaches:
            claim = Violation(breach.subject, breach.requirement, breach.touched)
            finding = SanitizerFinding(
                "out-of-bounds", str(claim), name, issue.location, core, claim=claim
            )
            start = addresses[breach.operand] - breach.offset
            self.log.add(_beyond_tensor(finding, issue, breach, start), str(claim))
        for rule in issue.rules:
            address, operand = addresses[rule.operand], issue.template.operands()[rule.operand]
            if address % rule.multiple_bytes:
                need = f"start at a multiple of {rule.multiple_bytes} B in {operand.mem.label}"
                claim = Violation(rule.subject, need, str(address))
                finding = SanitizerFinding(
                    "misaligned", str(claim), name, issue.location, core, claim=claim
                )
                self.log.add(finding, str(claim))
        self.record(issue.bound(values), addresses, issue.location)

    def scalars(self, template: Instruction) -> tuple[int, ...]:
        """Return what the scalar unit reads from the core's registers, after flushing."""
        self.flush()
        return template.result(self.registers)

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Return the integer (or the bits of the float) that memory holds at `address`.

        Outside every memory it is 0, where nothing was written poison, each with a finding.
        """
        self.flush()
        value, size = self._cached_value(load, address), load.element.size_bytes
        if value is None:
            value = self.value_at(load, address)
        if value is None:
            value = self._load_wrongly(load, address)
        if value is None:
            return 0
        if self.watch is not None:
            self.watch.scalar_read(scalar_touch(load), address, address + size)
        return value

    def _cached_value(self, load: LoadScalar, address: int) -> int | None:
        """Return what the data cache holds at `address`; None where it is not asked."""
        if self.data_cache is None or not load.by_cache:
            return None
        raw = self.data_cache.load(address, load.element.size_bytes)
        return None if raw is None else _number(load, raw)

    def value_at(self, load: LoadScalar, address: int) -> int | None:
        """Return what memory holds at `address`, unseen; None where reading it is a finding."""
        # The fast path of recording: a value that is in order is given at once, with no finding and
        # no flush. Everything else takes the slow path of `load_scalar`, which reports.
        _, memory, local = self._there(load, address)
        size = load.element.size_bytes
        if memory is None or not 0 <= local <= memory.size_bytes - size:
            return None
        if address % size or not self._is_written(load, memory, address, local):
            return None
        return None if self._checked(load, address) else _scalar(load, memory, local)

    def _is_written(self, load: LoadScalar, memory: MemoryBuffer, address: int, local: int) -> bool:
        """Return whether a value was written, by an instruction or by a pointer."""
        written = memory.written(local, local + load.element.size_bytes)
        return written or (load.mem is Mem.GM and self.gm.has_stored(address))

    def _checked(self, load: LoadScalar, address: int) -> str | None:
        """Return the end of a sentence about a value of UB whose reads the kernel has checked."""
        checks = self.registers.ub_checks
        if not checks or load.mem is not Mem.UB:
            return None
        touched = Footprint.run(address, address + load.element.size_bytes)
        return checked_at(checks, "scalar read", touched)

    def _there(self, load: LoadScalar, address: int) -> tuple[str, MemoryBuffer | None, int]:
        """Return the memory of a value, or the tensor nearest to it, and its place there."""
        if load.mem is Mem.GM and (tensor := self.gm.nearest(address)) is not None:
            return tensor.name, tensor.buffer, address - tensor.address
        memory = self.memory(load.mem)
        if memory is not None and self.queues is not None:
            memory = self.queues.forwarded(load.mem, memory)
        return load.mem.label, memory, address

    def _load_wrongly(self, load: LoadScalar, address: int) -> int | None:
        """Log what is wrong with a value's place; return what is there, None if nothing is."""
        size, (where, memory, local) = load.element.size_bytes, self._there(load, address)
        if memory is None or not 0 <= local <= memory.size_bytes - size:
            extent = where if memory is None else f"{where} (0 to {memory.size_bytes} B)"
            got = f"bytes [{local}, {local + size})"
            got += f", before the first byte of {where}" if load.mem is Mem.GM and local < 0 else ""
            self._log_scalar("out-of-bounds", load, f"stay inside {extent}, got {got}")
            return None
        if address % size:
            need = f"start at a multiple of {size} B in {load.mem.label}, got {address}"
            self._log_scalar("misaligned", load, need)
        if not self._is_written(load, memory, address, local):
            self._log_scalar(
                "uninitialised", load, f"be initialised in {load.mem.label}, got {address}"
            )
        if (checked := self._checked(load, address)) is not None:
            self._log_scalar("checked-access", load, checked)
        return _scalar(load, memory, local)

    def _log_scalar(self, kind: str, load: LoadScalar, message: str) -> None:
        text = f"the scalar {load.target.name} must {message}"
        self.log.add(SanitizerFinding(kind, text, "scalar load", load.location, str(self.id)))


def scalar_touch(load: LoadScalar) -> MemoryAccess:
    """Return the access of a value that the scalar unit reads."""
    name, where = load.target.name, load.location
    template = CACHED_LOAD if load.by_cache else SCALAR_LOAD
    return MemoryAccess(template, name, load.mem, reads=True, writes=False, where=where)


def _scalar(load: LoadScalar, memory: MemoryBuffer, at: int) -> int:
    return _number(load, memory.data[at : at + load.element.size_bytes].tobytes())


def _number(load: LoadScalar, raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=load.element.kind == "int")


def _beyond_tensor(
    finding: SanitizerFinding, issue: Issue, breach: Breach, tensor: int
) -> SanitizerFinding:
    """Return a finding with the bytes that an operand touches, and those of its tensor."""
    operand, template = issue.template.operands()[breach.operand], issue.template
    access = FindingAccess(
        how="write" if operand.access.writes else "read",
        instruction=finding.instruction,
        operand=operand.name,
        pipe=template.pipe.value,
        memory=operand.mem.label,
        start=tensor + breach.start,
        end=tensor + breach.end,
        core=finding.core,
        location=finding.location,
    )
    return replace(finding, accesses=(access,), limits=(tensor, tensor + breach.size_bytes))
