"""Running kernels in lockstep: cores record, groups of them execute what they recorded.

Each core's kernel runs on its own greenlet and records what it issues (`recorder`), signals to
other cores and waits for them too. It pauses where it reads a value, after a number of issues, and
at its end. Cores that recorded the same (equal instructions, equal local addresses, a distance in
each tensor) execute it as a group. A group runs until it waits; the next one is the first whose
wait is met, as on the reference engine. Where cores of a group part, global memory is put back, and
groups of those that recorded alike until then execute all of it, and go on; where they have the
same before them again they meet (`meeting`). Where a finding may be some cores' only, or cores
touch bytes in no order, all is executed again in the same way, and judged core by core
(`each_core`); cores that must not go together for the sake of these bytes are groups apart.
Whatever lockstep does not take is undone, too, and the reference engine runs what was recorded, and
then the rest of the kernels, from where they have paused. No kernel runs twice.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, count

import numpy as np

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.blas.threads import one_thread
from cubecore.machine.lockstep.group import LockstepGroup
from cubecore.machine.lockstep.known_launches import KnownLaunches, OrderedWatch
from cubecore.machine.lockstep.meeting import Meeting, may_meet, meet, meetings
from cubecore.machine.lockstep.recorder import Asked, Issued, RecordedPart, Recorder
from cubecore.machine.lockstep.running import PartedError, Running
from cubecore.machine.memory.allocator import keep_freed_memory
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.reference.core import Core
from cubecore.machine.reference.scheduler import RunOutcome, Task, run
from cubecore.machine.sanitizer.findings import FindingLog, key_of
from cubecore.machine.sanitizer.racecheck import Sanitizer
from cubecore.machine.sanitizer.turns import Found, log_in_turn
from cubecore.machine.watches.aliasing import Addresses, Snapshots, require_apart
from cubecore.machine.watches.byte_order import ByteOrder
from cubecore.machine.watches.each_core import NotedCore, judge_each
from cubecore.machine.watches.group_watch import GroupWatch, Watching
from cubecore.machine.watches.noting import NotingWatch
from cubecore.machine.watches.partings import EachError, UnevenError, UnorderedError
from cubecore.machine.watches.shared_memory import SharedMemory

_MOST_PARTINGS = 4
"""Times that cores of a group part, and start again in groups, before each is one of its own."""
_MOST_AHEAD = 8
"""Times that cores which do not do the same record on before they execute."""
_COLLECT_AFTER = 50_000
"""Objects more than before, of those that may form cycles, after which Python looks for some."""


def run_together(
    chip: Chip,
    gm: GlobalMemory,
    tasks: Sequence[Task],
    checks: frozenset[str],
    ended: Callable[[Core], None] | None = None,
    known: KnownLaunches | None = None,
) -> tuple[RunOutcome, str]:
    """Run every task to its end; return the findings, and the engine that ran it.

    `ended` is called with each core at its end. `known` are earlier launches of the same kernel.

    Raises
    ------
    DeadlockError
        If every core that has not ended waits for another.
    """
    keep_freed_memory()
    with one_thread(task.id for task in tasks), _collecting_seldom():
        launch = _Launch(chip, gm, checks, known or KnownLaunches())
        return _run_together(launch, tasks, checks, ended)


def _run_together(
    launch: "_Launch",
    tasks: Sequence[Task],
    checks: frozenset[str],
    ended: Callable[[Core], None] | None,
) -> tuple[RunOutcome, str]:
    recorders = [launch.recorder(task) for task in sorted(tasks, key=lambda task: task.id)]
    try:
        launch.run(recorders, ended)
    except IrregularError:
        launch.snapshots.restore()
        again = [Task(recorder.id, recorder.replay) for recorder in recorders]
        return run(launch.chip, launch.gm, again, checks=checks, ended=ended), "reference"
    issued = sum(len(recorder.trace) for recorder in recorders)
    return RunOutcome(tuple(launch.log), issued), "lockstep"


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Look for cycles of garbage seldom: records and prepared acts hold none, and live on."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _COLLECT_AFTER) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Launch:
    """The groups of a launch."""

    def __init__(
        self, chip: Chip, gm: GlobalMemory, checks: frozenset[str], known: KnownLaunches
    ) -> None:
        self.chip, self.gm, self.snapshots = chip, gm, Snapshots()
        self._checks, self.log, self._known = checks, FindingLog(checks), known
        self._signalled = self._uneven = False
        self._watching: Watching = GroupWatch
        self._shared: SharedMemory | None = None
        self._groups: list[LockstepGroup] = []
        self._found_by_each: list[Found] = []
        self._recorders: Sequence[Recorder] = ()
        self._order: ByteOrder | None = None
        """The order in which cores touch bytes, where each core is judged."""
        self._levels: Sequence[int] | None = None
        """Levels of the cores: the lower ones go first, and none together; None: in groups."""

    def recorder(self, task: Task) -> Recorder:
        """Return the core that records a task."""
        return Recorder(task, self.chip, self.gm, self._known.names)

    def run(self, recorders: Sequence[Recorder], ended: Callable[[Core], None] | None) -> None:
        """Let the cores record, and execute what they recorded, until all have ended."""
        self._recorders = recorders
        for recorder in recorders:
            self._record(recorder)
        partings = 0
        while True:
            try:
                groups = self._execute(recorders, ended)
            except PartedError:
                partings += 1
                if partings == _MOST_PARTINGS:
                    self._levels = self._alone
            except UnevenError:
                self._uneven = True
            except EachError as reason:
                self._judge_each(reason)
            else:
                for group in groups:
                    group.release()
                return
            self.snapshots.restore()
            for recorder in recorders:
                recorder.rewind()

    @property
    def _alone(self) -> list[int]:
        """The levels at which each core goes on its own, in its turn."""
        return list(range(len(self._recorders)))

    def _judge_each(self, reason: EachError) -> None:
        """Judge each core from here on, in groups of cores that may go together.

        Cores that may still read what another one writes in no order go one by one: a value of
        another order would steer them.
        """
        if self._order is None:
            self._record_on(self._recorders)
            alive = any(not core.thread.dead for core in self._recorders)
            if alive and (self._signalled or isinstance(reason, UnorderedError)):
                self._levels = self._alone
        elif self._levels is None and (levels := self._order.levels()) is not None:
            self._levels = levels
        elif self._levels != self._alone:
            self._levels = self._alone
        else:
            raise IrregularError(str(reason))
        self._order = ByteOrder(self.gm, len(self._recorders))

    def _execute(
        self, recorders: Sequence[Recorder], ended: Callable[[Core], None] | None
    ) -> list[LockstepGroup]:
        """Execute what the cores recorded from the start on, and let them go on to their ends.

        `ended` may report what a core leaves behind; a core that executes again ends again.
        """
        self.log, self._groups = FindingLog(self._checks), []
        sanitizer = self._sanitizer()
        alike = self._alike(recorders)
        met: Sequence[Meeting] = ()
        if may_meet(alike):
            self._record_on(recorders)
            alike = self._alike(recorders)
            if self._levels is None:
                met = meetings(alike, self.gm, evenly=self._shared is None)
        shares = self._shared is not None
        judged = self._order is None
        issued = self._known.issued(recorders, self.gm, self._checks) if shares and judged else None
        self._watching = OrderedWatch if issued in self._known.ordered else GroupWatch
        if self._order is not None:
            self._watching = partial(NotingWatch, count())
        groups = [Running(self._group(cores, sanitizer), cores, self._next) for cores in alike]
        for running in groups:
            asked = [core.asked.copy() for core in running.cores]
            running.take(self._again(running.group, asked, self._recorded(running)))
        before = meet(groups, met, partial(self._joined, sanitizer))
        if not all(running.ended for running in groups):
            raise IrregularError("cores that wait for each other")
        for running in groups:
            running.group.finish()
            if ended is not None:
                for core in running.group.rows():
                    ended(core)
        if self._order is not None:
            sanitizer = self._judged(self._order)
        elif self._shared is None:
            every = [*before, *(running.group for running in groups)]
            require_apart(group.aliasing for group in every)
        self._tell_in_turn(recorders)
        for group in before:
            group.release()
        sanitizer.finish()
        if issued is not None and not len(self.log):
            self._known.ordered[issued] = None
        return [running.group for running in groups]

    def _sanitizer(self) -> Sanitizer:
        """Return what follows the signals and global memory of all cores, from the start on."""
        ids, joined = [recorder.id for recorder in self._recorders], self.chip.joins_vector
        return Sanitizer(self.gm, self.log, ids, joined=joined)

    def _judged(self, order: ByteOrder) -> Sanitizer:
        """Judge each core; return what has seen their signals.

        Raises
        ------
        EachError
            If cores touched bytes that they share in another order than in their own turns.
        """
        sanitizer = self._sanitizer()
        watches = [watch for g in self._groups if isinstance(watch := g.watch, NotingWatch)]

        def noted(core: Recorder) -> NotedCore:
            notes = chain.from_iterable(watch.notes_of(core.id) for watch in watches)
            return NotedCore(core.id, core.where, notes)

        self._found_by_each = judge_each(sanitizer, map(noted, self._recorders), order)
        if not order.kept:
            raise UnorderedError("bytes that lockstep touches in another order")
        return sanitizer

    def _tell_in_turn(self, recorders: Sequence[Recorder]) -> None:
        """Log what kernels have reported, and what was found in groups and by each core."""
        found = [one for group in self._groups for one in group.found()] + self._found_by_each
        for core in recorders:
            for number, (issue, finding, operand) in enumerate(core.findings):
                if finding.check in self._checks:
                    key, at = key_of(finding, operand), (issue, number)
                    found.append(Found(key, finding, 1, [core.id], at, said=True))
        if found:
            issued = [core.syncs_and_reads(self._known.signals()) for core in recorders]
            if not log_in_turn(self.log, found, issued):
                raise EachError("a finding that is another core's first")

    def _record_on(self, recorders: Sequence[Recorder]) -> None:
        """Let cores that do not do the same record more, so that it shows where they do again."""
        for _ in range(_MOST_AHEAD):
            paused = [recorder for recorder in recorders if recorder.only_paused]
            if not paused:
                return
            for recorder in paused:
                recorder.record_more()
                self._go_on(recorder)
                if recorder.gives_up or recorder.failed is not None:
                    raise IrregularError(f"{recorder.id} does what lockstep does not")

    def _joined(self, sanitizer: Sanitizer, groups: Sequence[Running], left: int) -> Running:
        """Return the cores of groups that have met as one group, with so many issues left."""
        places = {
            core.id: (running.group, row)
            for running in groups
            for row, core in enumerate(running.cores)
        }
        cores = sorted((core for one in groups for core in one.cores), key=lambda core: core.id)
        for core in cores:
            core.take_up(left)
        first = cores[0].segment(self.gm)
        apart = (first.apart(core.segment(self.gm, [first])) for core in cores)
        far = [distances for distances in apart if distances is not None]  # they go alike
        cores = self._in_order(cores, far)
        group = self._group(cores, sanitizer)
        group.take_over([places[core.id] for core in cores])
        group.clock.start({core.id: len(core.trace) - left for core in cores})
        running = Running(group, cores, self._next)
        asked = [core.asked_from(left) for core in cores]
        running.take(self._again(group, asked, self._recorded(running)))
        return running

    def _again(
        self, group: LockstepGroup, asked: Sequence[Sequence[Asked]], steps: Iterator[Issued]
    ) -> Iterator[Issued]:
        """Return the first issues of a group, that ask again in between what was asked there."""
        return self._asking(group, asked, steps) if any(asked) else steps

    def _asking(
        self, group: LockstepGroup, asked: Sequence[Sequence[Asked]], steps: Iterator[Issued]
    ) -> Iterator[Issued]:
        number = 0
        for index, step in enumerate(steps):
            while number < len(asked[0]) and asked[0][number].behind <= index:
                self._ask_again(group, [answers[number] for answers in asked])
                number += 1
            yield step
        for entries in list(zip(*asked, strict=True))[number:]:
            self._ask_again(group, entries)

    def _ask_again(self, group: LockstepGroup, asked: Sequence[Asked]) -> None:
        """Require that the cores of a group are answered as they were."""
        load, template = asked[0].load, asked[0].template
        values: Sequence[object]
        if load is not None:
            loads = [one.load for one in asked if one.load is not None]
            values = self._loaded(group, loads, [one.address for one in asked])
        else:
            assert template is not None
            values = group.scalars(template)
        if any(one.answer != value for one, value in zip(asked, values, strict=True)):
            raise IrregularError("values that are not those of before")

    def _record(self, recorder: Recorder) -> None:
        self._go_on(recorder)
        if recorder.failed is not None and not (self._signalled or self._found_any()):
            raise recorder.failed
        if recorder.gives_up or recorder.failed is not None:
            raise IrregularError(f"{recorder.id} does what lockstep does not")

    def _found_any(self) -> bool:
        """Return whether a kernel has reported anything, or a group has findings."""
        if self._order is not None:
            return True
        in_groups = chain.from_iterable(group.found() for group in self._groups)
        return any(core.findings for core in self._recorders) or any(True for _ in in_groups)

    def _go_on(self, recorder: Recorder) -> None:
        """Let a core record; see whether it signals others, or waits for them."""
        recorder.go_on()
        if not self._signalled:
            self._signalled = recorder.records_any(self._known.signals())

    def _next(self, running: Running) -> None:
        """Answer what a group's cores ask, and let them record what they execute next."""
        self._answer(running.group, running.cores)
        alive = [core for core in running.cores if not core.thread.dead]
        if not alive:
            running.ended = True
            return
        for core in alive:
            self._record(core)
        if self._shared is None and self._signalled:
            raise PartedError("signals after a long way without")
        self._follow_reads(running)
        running.take(self._recorded(running))

    def _follow_reads(self, running: Running) -> None:
        """Follow what the cores of a group read at once, before all else that they recorded."""
        first, *others = [core.read for core in running.cores]
        if any(len(read) != len(first) for read in others):
            raise PartedError("cores of a group that ask differently")
        for number in range(len(first)):
            asked = [core.read[number] for core in running.cores]
            self._move(running.group, [load for load, _ in asked], [at for _, at in asked])
            running.group.follow_load([load for load, _ in asked], [at for _, at in asked])
        for core in running.cores:
            core.read.clear()

    def _group(self, cores: Sequence[Recorder], sanitizer: Sanitizer) -> LockstepGroup:
        positions = [(core.id, core.registers.position) for core in cores]
        group = LockstepGroup(
            self.chip, sanitizer, self.snapshots, positions, self._shared, self._watching
        )
        self._groups.append(group)
        for row, core in enumerate(cores):
            core.peek = partial(group.peek, row)
        return group

    def _alike(self, recorders: Sequence[Recorder]) -> list[list[Recorder]]:
        """Return the cores in groups of those that recorded alike, and may go together.

        Where they lie unevenly in a tensor, its bytes are followed as in a launch with signals.
        """
        groups: list[tuple[RecordedPart, list[Recorder], list[Addresses]]] = []
        levels = {
            recorder.id: level
            for recorder, level in zip(recorders, self._levels or [0] * len(recorders), strict=True)
        }
        for recorder in recorders:
            segment = recorder.segment(self.gm, [first for first, _, _ in groups])
            for first, cores, distances in groups:
                same_level = levels[cores[0].id] == levels[recorder.id]
                if not (same_level and cores[0].asked_like(recorder)):
                    continue
                far = first.apart(segment)
                if far is not None:
                    self._uneven |= not first.evenly(far)
                    cores.append(recorder)
                    distances.append(far)
                    break
            else:
                nowhere = np.zeros(segment.in_gm.size, np.int64)
                groups.append((segment, [recorder], [nowhere]))
        self._shared = SharedMemory() if self._signalled or self._uneven else None
        groups.sort(key=lambda group: levels[group[1][0].id])
        return [self._in_order(cores, distances) for _, cores, distances in groups]

    def _in_order(self, cores: list[Recorder], far: Sequence[Addresses]) -> list[Recorder]:
        """Return a group's cores, perhaps the first of each AI Core first if so they lie evenly.

        Where each core is judged they stay in the order of their turns.
        """
        if self._order is not None:
            return cores
        given = np.array(far)
        by_part = sorted(range(len(cores)), key=lambda number: cores[number].id.sub)
        uneven, otherwise = (
            np.count_nonzero(np.diff(distances, n=2, axis=0))
            for distances in (given, given[by_part])
        )
        return [cores[number] for number in by_part] if otherwise < uneven else cores

    def _recorded(self, running: Running) -> Iterator[Issued]:
        """Return what the cores of a group have recorded since the last time."""
        group, cores = running.group, running.cores
        if not any(core.pending_count for core in cores):
            return iter(())
        first = cores[0].segment(self.gm)
        rows: list[Addresses] = [np.zeros(first.in_gm.size, np.int64)]
        for core in cores[1:]:
            segment = core.segment(self.gm, [first])
            far = first.apart(segment)
            if far is None:
                raise PartedError("cores of a group that go different ways")
            if not first.aligned_like(segment):
                group.issue_apart(partial(_where_of, running))
            rows.append(far)
        for core in cores:
            core.forget()
        return first.issues(np.array(rows), group.aliasing)

    def _answer(self, group: LockstepGroup, cores: Sequence[Recorder]) -> None:
        """Answer what the cores of a group ask."""
        asks = [core.asks for core in cores]
        if asks[0] is None and not any(asks):
            return
        values: Sequence[object]
        loads = [ask[0] for ask in asks if ask is not None]
        templates = {ask[1] for ask in asks if ask is not None}
        if len(loads) < len(asks) or len(templates) > 1:
            raise PartedError("cores of a group that ask differently")
        (template,) = templates
        if template is not None:
            values = group.scalars(template)
        else:
            addresses = [ask[2] for ask in asks if ask is not None]
            values = self._loaded(group, [load for load in loads if load is not None], addresses)
        for core, answer in zip(cores, values, strict=True):
            core.answer, core.asks = answer, None

    def _loaded(
        self, group: LockstepGroup, loads: Sequence[LoadScalar], addresses: Sequence[int]
    ) -> list[int]:
        self._move(group, loads, addresses)
        return group.load_scalars(loads, addresses)

    def _move(
        self, group: LockstepGroup, loads: Sequence[LoadScalar], addresses: Sequence[int]
    ) -> None:
        """Require that the cores of a group read the same value, each its own."""
        kinds = {(load.mem, load.element) for load in loads}
        far = np.array(addresses, np.int64) - addresses[0]
        if len(kinds) > 1:
            raise IrregularError("cores of a group that ask differently")
        if loads[0].mem is not Mem.GM:
            if far.any():
                raise IrregularError("cores of a group that ask differently")
        else:
            tensor = self.gm.at(addresses[0])
            if tensor is not None:
                group.aliasing.move(tensor.address, far)


def _where_of(running: Running, row: int, _where: Location) -> Location:
    """Return the place from which a core of a group issues what the group is at."""
    core, clock = running.cores[row], running.group.clock
    return core.where(clock.issue + clock.ahead.get(core.id, 0))
