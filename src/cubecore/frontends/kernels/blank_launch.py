"""Launches whose arrays have sizes alone: cores record what they issue, and nothing is executed.

A value that a kernel reads from a local memory is 0. What overflows such a memory is found in the
record, as that takes no values.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cubecore.chips.model import Chip
from cubecore.errors import Violation, unable
from cubecore.frontends.capi.calls.issues import Issues
from cubecore.frontends.kernels.session import KernelRun
from cubecore.frontends.source_locations import InstructionLimitError
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.machine.execute.scheduler import RunOutcome, Task
from cubecore.machine.group.recorder import Recorder
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.elements import Use, uses
from cubecore.machine.sanitize.findings import SanitizerFinding

_ROOM = 8


def recorded_alone(
    chip: Chip, gm: GlobalMemory, tasks: Sequence[Task], issues: Issues
) -> RunOutcome:
    """Let each core record to its end; return what overflows its memories.

    One that has its share of an eighth of the launch's limit is stopped, which `issues` then says:
    a single call may record many at once.

    Raises
    ------
    RequestError
        If a kernel fails that has read values, which may be others.
    Exception
        What another kernel raises.
    """
    # Waits are recorded like any other instruction: nobody is kept waiting where nobody executes.
    # An AIV goes before its AIC, which takes the work of Matmul objects from it.
    names = issues.calls.launches.names
    cores = [Recorder(task, chip, gm, names) for task in sorted(tasks, key=_turn)]
    gm.windows.begin(sorted(core.id for core in cores))
    share, guessed = issues.most // _ROOM // len(cores), False
    for core in cores:
        before = sum(len(each.trace) for each in cores)  # a call of an AIV records on its AIC, too
        while not core.over:
            if sum(len(each.trace) for each in cores) - before > share:
                break
            core.record_more()
            core.go_on()
            core.take_ahead()
            if core.asks is not None:
                guessed |= core.asks[0] is not None
                core.answer, core.asks = _answer(core), None
        if (
            core.failed is not None
            and guessed
            and not isinstance(core.failed, InstructionLimitError)
        ):
            raise unable("the kernel", f"it depends on values that it reads: {core.failed}")
        if core.failed is not None:
            raise core.failed
    # All are cut behind the same instruction, so that equal cores stay equal; what they wait for
    # may lie behind that.
    for core in cores:
        if len(core.trace) > share:
            issues.cut = True
            core.halt(share)
    for core in cores if issues.cut else ():
        _leave_out_signals(core.trace)
    findings = [each for core in cores for each in _overflows(chip, core)]
    return RunOutcome(tuple(findings), sum(len(core.trace) for core in cores))


def _leave_out_signals(trace: InstructionTrace) -> None:
    """Take signals between cores, and waits for them, out of a record."""
    templates, widths = trace.templates, trace.names.operands().widths
    signals = (FftsCrossCoreSync, WaitFlagDev)
    numbers = [n for n, each in enumerate(templates) if isinstance(each, signals) and not widths[n]]
    kinds, wheres = np.array(trace.kinds, np.uint32), np.array(trace.wheres, np.uint32)
    kept = ~np.isin(kinds, numbers)
    trace.kinds[:] = array("I", kinds[kept].tobytes())
    trace.wheres[:] = array("I", wheres[kept].tobytes())


def _turn(task: Task) -> tuple[int, int]:
    return task.id.core, -task.id.sub


def _answer(core: Recorder) -> Any:
    """Return the value that a core asks for: of global memory what it holds, else 0."""
    assert core.asks is not None
    load, template, address = core.asks
    if load is None:
        assert template is not None
        return tuple(template.result(core.registers))
    tensor = core.gm.at(address) if load.mem is Mem.GM else None
    if tensor is None:
        return 0
    at = address - tensor.address
    raw = tensor.buffer.data[at : at + load.element.size_bytes].tobytes()
    return int.from_bytes(raw, "little", signed=load.element.kind == "int")


def _overflows(chip: Chip, core: Recorder) -> Iterator[SanitizerFinding]:
    """Yield a finding for each operand of a template that leaves its local memory."""
    trace = core.trace
    kinds = np.frombuffer(trace.kinds, np.uint32)
    widths = trace.names.operands().widths[kinds]
    begins = np.cumsum(widths) - widths
    addresses = np.frombuffer(trace.addresses, np.int64)
    for kind in np.unique(kinds).tolist():
        template = trace.templates[kind]
        issues = np.flatnonzero(kinds == kind)
        for number, used in enumerate(() if template.steering else uses(template)):
            if used.operand.mem is Mem.GM or used.elements.span is None:
                continue
            at = addresses[begins[issues] + number]
            worst = int(at.argmax())
            overflow = _overflow(chip, template, used, int(at[worst]))
            if overflow is not None:
                kind_of, claim = overflow
                where = core.where(int(issues[worst]))
                name = template.name
                yield SanitizerFinding(kind_of, str(claim), name, where, str(core.id), claim=claim)


def _overflow(
    chip: Chip, template: Instruction, used: Use, address: int
) -> tuple[str, Violation] | None:
    """Return what is wrong with the end of an operand, and the kind of finding; None if nothing."""
    size, usable = memory_bytes(chip, used.operand.mem)
    first, last = address + used.low, address + used.high
    if last <= usable:
        return None
    kind, most = ("out-of-bounds", size) if last > size else ("capacity", usable)
    label = used.operand.mem.label
    name = label if kind == "out-of-bounds" else f"the usable {label}"
    need, got = f"stay inside {name} (0 to {most} B)", f"bytes [{first}, {last})"
    return kind, Violation(f"{template.name}.{used.name}", need, got)


def recorded_share(run: KernelRun) -> float | None:
    """Return how much of its work a launch has recorded that was cut; None if that is not known.

    It is the share of an array's bytes that were stored by then, of the arrays that are stored to
    the one stored to most; of a launch that has stored nothing yet, the same of what it loads.
    """
    for writes in (True, False):
        moved: dict[str, int] = {}
        for trace in run.traces.values():
            for name, size in _moved(run, trace, writes=writes):
                moved[name] = moved.get(name, 0) + size
        sizes = {t.name: t.buffer.size_bytes for _, t in run.tensors if not t.scratch}
        shares = [size / sizes[name] for name, size in moved.items() if sizes.get(name)]
        if shares:
            share = max(shares) * len(run.cores) / len(run.traces)
            return share if share < 1 else None
    return None


def _moved(run: KernelRun, trace: InstructionTrace, *, writes: bool) -> Iterator[tuple[str, int]]:
    """Yield the tensors that a core's instructions store to, or load from, and how many bytes."""
    kinds = np.frombuffer(trace.kinds, np.uint32)
    widths = trace.names.operands().widths[kinds]
    begins = np.cumsum(widths) - widths
    addresses = np.frombuffer(trace.addresses, np.int64)
    tensors = sorted((tensor for _, tensor in run.tensors), key=lambda tensor: tensor.address)
    starts = np.array([tensor.address for tensor in tensors], np.int64)
    for kind in np.unique(kinds).tolist():
        template = trace.templates[kind]
        issues = np.flatnonzero(kinds == kind)
        for number, used in enumerate(() if template.steering else uses(template)):
            if used.operand.mem is not Mem.GM or used.writes is not writes:
                continue
            size = used.elements.through.size * used.element.bits // 8
            at = np.searchsorted(starts, addresses[begins[issues] + number], side="right") - 1
            for tensor, count in zip(*np.unique(at, return_counts=True), strict=True):
                if tensor >= 0:
                    yield tensors[tensor].name, int(count) * size
