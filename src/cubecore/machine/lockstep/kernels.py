"""Running kernels in lockstep: cores record, groups of them execute what they recorded.

Each core's kernel runs on its own greenlet and records what it issues. It pauses where it reads a
value, after a number of issues, and at its end. When all cores have paused, those that recorded the
same since the last time (equal instructions, equal local addresses, in each tensor a distance that
never changes) go on as groups in lockstep. Whatever lockstep does not take (a finding, cores that
wait for each other, cores of a group that go different ways, bytes that one core writes and another
touches) is undone: global memory is put back, and the reference engine runs what was recorded, and
then the rest of the kernels, from where they have paused. No kernel runs twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.trace import InstructionTrace, Names
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.isa.scalar.system_variables import Variable
from cubecore.layouts import ascending
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.aliasing import Snapshots, require_apart
from cubecore.machine.lockstep.group import LockstepGroup
from cubecore.machine.lockstep.sanitizer import StrictLog
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.reference import execute
from cubecore.machine.reference.core import FLUSH_AFTER, Core
from cubecore.machine.reference.scheduler import RunOutcome, Task, run
from cubecore.machine.sanitizer.findings import FindingLog, SanitizerFinding

Addresses = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A value that a core asked for, behind so many issues: a load, or registers, and the answer.

    `address` counts in the trace's addresses.
    """

    behind: int
    load: LoadScalar | None
    template: Instruction | None
    address: int
    answer: Any


class _Segment:
    """The record of a core from some issue on: kinds, and addresses by their memories.

    `like` is another core's, which most often has the same kinds.
    """

    def __init__(
        self,
        trace: InstructionTrace,
        begin: tuple[int, int],
        gm: GlobalMemory,
        like: "_Segment | None" = None,
    ) -> None:
        issue, at = begin
        names = self._names = trace.names
        self.kinds = np.frombuffer(trace.kinds[issue:], np.uint32)
        self.addresses: Addresses = np.frombuffer(trace.addresses[at:], np.int64)
        self.in_gm: NDArray[np.intp]
        self.local: NDArray[np.intp]
        if like is not None and np.array_equal(self.kinds, like.kinds):
            self.in_gm, self.local = like.in_gm, like.local
        else:
            in_gm = [mem is Mem.GM for kind in self.kinds.tolist() for mem in names.mems[kind]]
            self.in_gm = np.flatnonzero(in_gm)
            self.local = np.flatnonzero(np.logical_not(in_gm))
        self.owners = gm.owners(self.addresses[self.in_gm])
        self.tensors: list[int] = ascending(self.owners).tolist()

    def distances(self, other: "_Segment") -> dict[int, int] | None:
        """Return how far another core lies from this one in each tensor; None if not alike."""
        if not np.array_equal(self.kinds, other.kinds):
            return None
        far = other.addresses - self.addresses
        if far[self.local].any() or not np.array_equal(self.owners, other.owners):
            return None
        found = {}
        for tensor in self.tensors:
            own = far[self.in_gm[self.owners == tensor]]
            if (own != own[0]).any():
                return None
            found[tensor] = int(own[0])
        return found

    def issues(self) -> Iterator[tuple[Instruction, tuple[int, ...]]]:
        """Yield the instructions with their addresses."""
        templates, widths = self._names.templates, [len(mems) for mems in self._names.mems]
        addresses, at = self.addresses.tolist(), 0
        for kind in self.kinds.tolist():
            end = at + widths[kind]
            yield templates[kind], tuple(addresses[at:end])
            at = end


class Recorder(Core):
    """A core that records; once lockstep is over, it hands on to the core that executes.

    `trace` is what it issued, to the end.
    """

    def __init__(self, task: Task, chip: Chip, gm: GlobalMemory, names: Names) -> None:
        super().__init__(task.id, chip, gm, _Handing(self), execute.execute, _nobody, _nobody)
        self.thread = greenlet(lambda: task.body(self))
        self.trace = InstructionTrace(names)
        self.asked: list[_Asked] = []
        self._kind_of, self._place_of = names.kind_of, names.location_of
        self._kinds, self._wheres = self.trace.kinds, self.trace.wheres
        self._addresses, self._pause_at = self.trace.addresses, FLUSH_AFTER
        self._done = self._at = 0
        self.real: Core | None = None
        self.asks: tuple[LoadScalar | None, Instruction | None, int] | None = None
        self.answer: object = None
        self.gives_up = False
        self._hub = getcurrent()

    def record(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Take one instruction, in program order."""
        if self.real is not None:
            self.trace.append(template, addresses, where)
            self.real.record(template, addresses, where)
            return
        kind, place = self._kind_of.get(id(template)), self._place_of.get(id(where))
        if kind is None or place is None:
            if isinstance(template, (FftsCrossCoreSync, WaitFlagDev)):
                self.give_up()
                self.record(template, addresses, where)
                return
            self.trace.append(template, addresses, where)
        else:  # what appending does, of what was met before
            self._kinds.append(kind)
            self._wheres.append(place)
            self._addresses.extend(addresses)
        if len(self._kinds) >= self._pause_at:
            self._hub.switch()

    @property
    def records(self) -> bool:
        """True if nothing is executed by this core itself yet."""
        return self.real is None

    def record_block(self, kinds: bytes, wheres: bytes, addresses: bytes) -> None:
        """Take instructions in the trace's own numbers; none of them waits for another core."""
        self._kinds.frombytes(kinds)
        self._wheres.frombytes(wheres)
        self._addresses.frombytes(addresses)
        if len(self._kinds) >= self._pause_at:
            self._hub.switch()

    def scalars(self, template: Instruction) -> tuple[int, ...]:
        """Return what the scalar unit reads from the core's registers."""
        if isinstance(template, Variable) and template.of_launch:
            return template.result(self.registers)
        found: tuple[int, ...] = self._ask(None, template, 0)
        return found

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Return the integer, or the bits, that memory holds at `address`."""
        found: int = self._ask(load, None, address)
        return found

    def _ask(self, load: LoadScalar | None, template: Instruction | None, address: int) -> Any:
        if self.real is None:
            self.asks = load, template, address
            self._hub.switch()
        if self.real is None:
            behind = len(self.trace)
            self.asked.append(_Asked(behind, load, template, address, self.answer))
            return self.answer
        self._tell_place(self.real)
        return _answered(self.real, load, template, address)

    def _tell_place(self, core: Core) -> None:
        """Tell the core that executes which it is: a kernel says so as it starts, perhaps late."""
        core.registers = replace(core.registers, position=self.registers.position)

    def flush(self) -> None:
        """Execute everything recorded and end lockstep: a look at the machine needs it."""
        if self.real is None:
            self.give_up()
        assert self.real is not None
        self.real.flush()

    def memory(self, mem: Mem) -> MemoryBuffer | None:
        """Return a local memory of the core that executes."""
        return None if self.real is None else self.real.memory(mem)

    def segment(self, gm: GlobalMemory, like: "_Segment | None" = None) -> "_Segment":
        """Return what was recorded and not executed yet; `like` is another core's."""
        return _Segment(self.trace, (self._done, self._at), gm, like)

    def forget(self) -> None:
        """Take what was recorded as executed."""
        self._done, self._at = len(self.trace), len(self.trace.addresses)
        self._pause_at = self._done + FLUSH_AFTER

    def give_up(self) -> None:
        """End lockstep."""
        self.gives_up = True
        self._hub.switch()

    def replay(self, core: Core) -> None:
        """Issue on `core` what was recorded, and from here on what is issued.

        A kernel whose cores race may have been given another value than it is given now: it goes on
        with the one that it has.
        """
        self._tell_place(core)
        recorded = iter(self.trace)
        done = 0
        for asked in self.asked:
            for step in islice(recorded, asked.behind - done):
                core.record(*step)
            done = asked.behind
            _answered(core, asked.load, asked.template, asked.address)
        for step in recorded:
            core.record(*step)
        self.real = core
        self.thread.parent = getcurrent()
        while not self.thread.dead:
            self.thread.switch()


def _answered(
    core: Core, load: LoadScalar | None, template: Instruction | None, address: int
) -> Any:
    """Return what a core that executes answers."""
    if load is not None:
        return core.load_scalar(load, address)
    assert template is not None
    return core.scalars(template)


class _Handing(FindingLog):
    """The report of a kernel itself: lockstep ends, and the reference engine takes the core."""

    def __init__(self, recorder: "Recorder") -> None:
        super().__init__()
        self._recorder = recorder

    def add(self, finding: SanitizerFinding, operand: str = "") -> None:
        """Hand a finding on."""
        if self._recorder.real is None:
            self._recorder.give_up()
        assert self._recorder.real is not None
        self._recorder.real.log.add(finding, operand)


def _nobody(core: Core, *_: object) -> None:
    raise AssertionError(f"{core.id} records and does not wait")


def run_together(
    chip: Chip, gm: GlobalMemory, tasks: Sequence[Task], checks: frozenset[str]
) -> tuple[RunOutcome, str]:
    """Run every task to its end; return what was found, and the engine that ran it.

    Raises
    ------
    DeadlockError
        If every core that has not ended waits for another.
    """
    snapshots = Snapshots()
    launch = _Launch(chip, gm, checks, snapshots)
    recorders = [launch.recorder(task) for task in sorted(tasks, key=lambda task: task.id)]
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            launch.run(recorders)
    except IrregularError:
        snapshots.restore()
        again = [Task(recorder.id, recorder.replay) for recorder in recorders]
        return run(chip, gm, again, checks=checks), "reference"
    return RunOutcome((), sum(len(recorder.trace) for recorder in recorders)), "lockstep"


class _Launch:
    """The groups of a launch."""

    def __init__(
        self, chip: Chip, gm: GlobalMemory, checks: frozenset[str], snapshots: Snapshots
    ) -> None:
        self._chip, self._gm, self._snapshots = chip, gm, snapshots
        self._log = StrictLog(checks)
        self._names = Names()
        self._groups: list[tuple[LockstepGroup, list[Recorder]]] = []

    def recorder(self, task: Task) -> Recorder:
        """Return the core that records a task."""
        return Recorder(task, self._chip, self._gm, self._names)

    def run(self, recorders: Sequence[Recorder]) -> None:
        """Let the cores record, and execute what they recorded, until all have ended."""
        while any(not recorder.thread.dead for recorder in recorders):
            for recorder in recorders:
                if not recorder.thread.dead:
                    recorder.thread.switch()
                    if recorder.gives_up:
                        raise IrregularError(f"{recorder.id} does what lockstep does not")
            if not self._groups:
                self._groups = [(self._group(cores), cores) for cores in self._alike(recorders)]
            for group, cores in self._groups:
                self._execute(group, cores)
                self._answer(group, cores)
        for group, _ in self._groups:
            group.finish()
        require_apart(group.reach for group, _ in self._groups)

    def _group(self, cores: Sequence[Recorder]) -> LockstepGroup:
        places = [(core.id, core.registers.position) for core in cores]
        return LockstepGroup(self._chip, self._gm, self._log, self._snapshots, places)

    def _alike(self, recorders: Sequence[Recorder]) -> list[list[Recorder]]:
        """Return the cores in groups of those that recorded alike, in order."""
        found: list[tuple[_Segment, list[Recorder]]] = []
        for recorder in recorders:
            own = recorder.segment(self._gm, found[0][0] if found else None)
            for first, cores in found:
                if first.distances(own) is not None:
                    cores.append(recorder)
                    break
            else:
                found.append((own, [recorder]))
        return [cores for _, cores in found]

    def _execute(self, group: LockstepGroup, cores: Sequence[Recorder]) -> None:
        """Execute what the cores of a group have recorded since the last time."""
        first = cores[0].segment(self._gm)
        far = [first.distances(core.segment(self._gm, first)) for core in cores[1:]]
        for tensor in first.tensors:
            values = [0]
            for distances in far:
                if distances is None:
                    raise IrregularError("cores of a group that go different ways")
                values.append(distances[tensor])
            if not group.reach.agree(tensor, np.array(values, np.int64)):
                raise IrregularError("distances that change")
        if None in far:
            raise IrregularError("cores of a group that go different ways")
        for core in cores:
            core.forget()
        for template, addresses in first.issues():
            group.issue(template, addresses)

    def _answer(self, group: LockstepGroup, cores: Sequence[Recorder]) -> None:
        """Answer what the cores of a group ask."""
        asks = [core.asks for core in cores]
        if asks[0] is None and not any(asks):
            return
        found: Sequence[object]
        loads = [ask[0] for ask in asks if ask is not None]
        templates = {ask[1] for ask in asks if ask is not None}
        if len(loads) < len(asks) or len(templates) > 1:
            raise IrregularError("cores of a group that ask differently")
        (template,) = templates
        if template is not None:
            found = group.scalars(template)
        else:
            addresses = [ask[2] for ask in asks if ask is not None]
            found = self._loaded(group, [load for load in loads if load is not None], addresses)
        for core, answer in zip(cores, found, strict=True):
            core.answer, core.asks = answer, None

    def _loaded(
        self, group: LockstepGroup, loads: Sequence[LoadScalar], addresses: Sequence[int]
    ) -> list[int]:
        kinds = {(load.mem, load.element) for load in loads}
        far = np.array(addresses, np.int64) - addresses[0]
        if len(kinds) > 1:
            raise IrregularError("cores of a group that ask differently")
        if loads[0].mem is not Mem.GM:
            if far.any():
                raise IrregularError("cores of a group that ask differently")
        else:
            tensor = self._gm.at(addresses[0])
            if tensor is None or not group.reach.agree(tensor.address, far):
                raise IrregularError("cores of a group that ask differently")
        return group.load_scalars(loads[0], addresses[0])
