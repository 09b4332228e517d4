"""Running kernels in lockstep: cores record, groups of them execute what they recorded.

A group runs until it waits; the next one is the first whose wait is met. No kernel runs twice:
where cores diverge or may have findings of their own, what they recorded is executed again.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import chain, count

import numpy as np

from cubecore.arrays import collecting_seldom, keep_freed_memory
from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.machine.blas.threads import one_thread
from cubecore.machine.execute.core import Core
from cubecore.machine.execute.scheduler import RunOutcome, Task
from cubecore.machine.finding_kinds import RACECHECK, USECHECK
from cubecore.machine.group.answers import answers, asking_again, follow_reads, values_ahead
from cubecore.machine.group.known_launches import KnownLaunches, OrderedWatch
from cubecore.machine.group.lockstep_group import LockstepGroup
from cubecore.machine.group.reconvergence import (
    Reconvergence,
    may_reconverge,
    reconverge,
    reconvergences,
)
from cubecore.machine.group.recorder import Asked, Issued, RecordedPart, Recorder
from cubecore.machine.group.running import Halt, Running
from cubecore.machine.group.sanitize.aliasing import Addresses, Snapshots, require_apart
from cubecore.machine.group.sanitize.byte_order import ByteOrder
from cubecore.machine.group.sanitize.deferred_log import DeferredLog
from cubecore.machine.group.sanitize.divergence import (
    DivergedGroupError,
    EachError,
    HaltedError,
    UnevenError,
    UnorderedError,
)
from cubecore.machine.group.sanitize.group_watch import GroupWatch, Watching
from cubecore.machine.group.sanitize.per_core_replay import LoggedCore, judge_each
from cubecore.machine.group.sanitize.shared_memory import SharedMemory
from cubecore.machine.group.speculative_reads import SpeculativeReads
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.core_schedule import CoreSchedule, Found, IssuedSyncs
from cubecore.machine.sanitize.finding_log import FindingLog, key_of
from cubecore.machine.sanitize.racecheck import Sanitizer

_MOST_DIVERGENCES = 4
"""Times that cores of a group part, and start again in groups, before each is one of its own."""
_MOST_AHEAD = 8
"""Times that cores which do not do the same record on before they execute."""


def run_together(
    chip: Chip,
    gm: GlobalMemory,
    tasks: Sequence[Task],
    checks: frozenset[str],
    ended: Callable[[Core], None] | None = None,
    known: KnownLaunches | None = None,
) -> RunOutcome:
    """Run every task to its end; return the findings.

    `ended` is called with each core at its end. `known` are earlier launches of the same kernel.

    Raises
    ------
    DeadlockError
        If every core that has not ended waits for another; it carries the findings.

    Notes
    -----
    1. `machine.group.recorder.Recorder.go_on` lets each core's kernel issue until it reads a value,
       signals, waits or ends; what it issues is recorded.
    2. `machine.group.lockstep_group.LockstepGroup.issue` executes what equal cores recorded, on
       stacked memories (`machine.execute.instruction.perform`), in calls of NumPy for all of them.
    3. `machine.sanitize.racecheck.CoreWatch.follower` looks accesses up in shadow memory, once for
       the group.

    Cores that diverge replay their records in smaller groups, and join again
    (`machine.group.reconvergence.reconverge`); accesses in no order are judged core by core
    (`machine.group.sanitize.per_core_replay.judge_each`).
    """
    keep_freed_memory()
    with one_thread(task.id for task in tasks), collecting_seldom():
        launch = _Launch(chip, gm, tasks, checks, known or KnownLaunches())
        return launch.run(ended)


class _Launch:
    """The groups of a launch."""

    def __init__(
        self,
        chip: Chip,
        gm: GlobalMemory,
        tasks: Sequence[Task],
        checks: frozenset[str],
        known: KnownLaunches,
    ) -> None:
        self._chip, self._gm, self._snapshots = chip, gm, Snapshots()
        gm.windows.begin([task.id for task in tasks])
        self._windowed: frozenset[Mem] = frozenset()
        """Memories whose windows were known in the beginning: copies to other parts of AI Cores."""
        self._checks, self._log, self._known = checks, FindingLog(checks), known
        if USECHECK in checks:
            gm.follow_fillings()
        self._signalled = self._uneven = False
        self._watching: Watching = GroupWatch
        self._shared: SharedMemory | None = None
        self._groups: list[LockstepGroup] = []
        self._found_by_each: list[Found] = []
        in_order = sorted(tasks, key=lambda task: task.id)
        self._recorders = [Recorder(task, chip, gm, known.names) for task in in_order]
        self._early = SpeculativeReads(self._recorders, gm, known.names)
        self._order: ByteOrder | None = None
        """The order in which cores touch bytes, where each core is judged."""
        self._levels: Sequence[int] | None = None
        """Levels of the cores: the lower ones go first, and none together; None: in groups."""
        self._halt: Halt | None = None
        """The end of a launch that does not end well."""

    def run(self, ended: Callable[[Core], None] | None) -> RunOutcome:
        """Let the cores record, and execute what they recorded, until all have ended."""
        self._begin()
        divergences = 0
        # Lockstep bets that equal programs go alike. Where a bet is lost all is undone and tried
        # again with less of it: smaller groups, watched bytes, or each core judged; what is
        # recorded stays, so that kernels do not run again.
        while True:
            try:
                self._execute(ended)
            except DivergedGroupError:
                divergences += 1
                # Groups that part again and again cost more than cores one by one.
                if divergences == _MOST_DIVERGENCES:
                    self._levels = self._alone
            except UnevenError:
                self._uneven = True
            except EachError as reason:
                self._judge_each(reason)
            except HaltedError:
                pass
            else:
                break
            self._snapshots.restore()
            self._release()
        self._release()
        if self._halt is not None:
            self._halt.end(self._log)
        issued = sum(len(recorder.trace) for recorder in self._recorders)
        return RunOutcome(tuple(self._log), issued)

    def _release(self) -> None:
        """Take nothing as executed, and drop the groups: they refer back, and would outlive it."""
        for group in self._groups:
            group.release()
        for recorder in self._recorders:
            recorder.rewind()

    def _begin(self) -> None:
        """Let each core record for the first time; one that fails at once keeps others from it."""
        for number, recorder in enumerate(self._recorders):
            self._go_on(recorder)
            # A kernel that fails before anybody waits would have ended the launch in its first
            # core's turn.
            if recorder.failed is not None and not recorder.records_any(self._known.waits()):
                for other in self._recorders[number + 1 :]:
                    other.halt(-1)
                return

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
            self._record_on()
            # Values that steer must be those of the reference engine's order; cores that have
            # ended, or read no global memory, are not steered.
            reads = self._signalled or isinstance(reason, UnorderedError)
            if not all(core.over for core in self._recorders):
                reads |= any(core.reads_globally for core in self._recorders)
                self._levels = self._alone if reads else self._levels
        # Second try: cores that only follow others go after these, all others together. Third: one
        # by one.
        elif self._levels is None and (levels := self._order.levels()) is not None:
            self._levels = levels
        else:
            assert self._levels != self._alone, reason
            self._levels = self._alone
        self._order = ByteOrder(self._gm, len(self._recorders))

    def _execute(self, ended: Callable[[Core], None] | None) -> None:
        """Execute what the cores recorded from the start on, and let them go on to their ends.

        `ended` may report what a core leaves behind; a core that executes again ends again.
        """
        self._log, self._groups = FindingLog(self._checks), []
        self._gm.windows.drop()
        self._windowed = self._gm.windows.memories
        sanitizer = self._sanitizer()
        alike = self._alike()
        met: Sequence[Reconvergence] = ()
        # Cores that part for some issues and then do the same are split groups at first and joined
        # where their tails begin; recording further shows where that is.
        if may_reconverge(alike):
            self._record_on()
            alike = self._alike()
            if self._levels is None:
                met = reconvergences(alike, self._gm, evenly=self._shared is None)
        issued = self._known_as()
        self._watching = OrderedWatch if issued in self._known.ordered else GroupWatch
        if self._order is not None:
            self._watching = partial(DeferredLog, count())
        groups = [Running(self._group(cores, sanitizer), cores, self._next) for cores in alike]
        for running in groups:
            asked = [core.asked.copy() for core in running.cores]
            # Reads ahead of the first execution were answered while recording.
            for recorder in running.cores:
                recorder.take_ahead()  # which is among those
            running.take(self._again(running, asked, self._recorded(running)))
        reconverge(groups, met, partial(self._joined, sanitizer))
        self._require_ended(groups)
        for running in groups:
            if not running.cuts_short:
                running.group.finish()
                if ended is not None:
                    for core in running.group.rows():
                        ended(core)
        if self._order is not None:
            sanitizer = self._judged(self._order)
        elif self._shared is None:
            require_apart(group.aliasing for group in self._groups)
        if self._order is None and self._watching is GroupWatch:
            self._require_own_lines()
        self._tell_in_turn()
        if self._halt is None:
            sanitizer.finish()
            if issued is not None and not len(self._log):
                self._known.ordered[issued] = None

    def _known_as(self) -> Hashable:
        """Return what tells a launch with signals from others; None for one of another kind."""
        if self._shared is None or self._order is not None:
            return None
        return self._known.issued(self._recorders, self._gm, self._checks)

    def _require_ended(self, groups: Sequence[Running]) -> None:
        """Require that each core has ended, or stands where it does in the end.

        Raises
        ------
        DivergedGroupError
            If a group waits of which some cores need not.
        HaltedError
            If a kernel has failed, or cores wait for ever, and nobody knew.
        """
        if self._halt is not None:
            return
        waiting = [running for running in groups if not running.ended]
        failed = any(recorder.failed is not None for recorder in self._recorders)
        if not (waiting or failed):
            return
        issued = self._issued()
        # Not each core of a waiting group need wait at the same place: they part, and the rest goes
        # on.
        turns = CoreSchedule(issued, failing=False)
        for running in waiting:
            at = [turns[core.id].waits for core in running.cores]
            if [wait and wait[1] for wait in at] != running.waits_at:
                running.part("cores of a group of which some wait", at)
        self._halt = Halt(CoreSchedule(issued), self._recorders)
        raise HaltedError("a launch that does not end")

    def _sanitizer(self) -> Sanitizer:
        """Return what follows the signals and global memory of all cores, from the start on."""
        ids, joined = [recorder.id for recorder in self._recorders], self._chip.joins_vector
        return Sanitizer(self._gm, self._log, ids, joined=joined)

    def _judged(self, order: ByteOrder) -> Sanitizer:
        """Judge each core; return what has seen their signals.

        Raises
        ------
        EachError
            If cores touched bytes that they share in another order than in their own turns.
        """
        sanitizer = self._sanitizer()
        watches = [watch for g in self._groups if isinstance(watch := g.watch, DeferredLog)]

        def noted(core: Recorder) -> LoggedCore:
            notes = chain.from_iterable(watch.notes_of(core.id) for watch in watches)
            return LoggedCore(core.id, core.where, notes)

        self._found_by_each = judge_each(sanitizer, map(noted, self._recorders), order)
        if not order.kept:
            raise UnorderedError("bytes that lockstep touches in another order")
        return sanitizer

    def _require_own_lines(self) -> None:
        """Require that no line of the data cache is that of several cores.

        Raises
        ------
        EachError
            If one may be.
        """
        if RACECHECK in self._checks and self._known.lines.any_among(self._recorders):
            raise EachError("a line of the data cache that cores share")

    def _issued(self) -> list[IssuedSyncs]:
        """Return the signals, waits and reads of each core."""
        return [core.syncs_and_reads(self._known.signals()) for core in self._recorders]

    def _tell_in_turn(self) -> None:
        """Log what kernels have reported, and what was found in groups and by each core."""
        # Findings are made in the order of lockstep, and logged in that of the cores' turns, as the
        # reference engine does; what is capped by count would differ otherwise.
        found = [one for group in self._groups for one in group.found()] + self._found_by_each
        for core in self._recorders:
            for number, (issue, finding, operand) in enumerate(core.findings):
                if finding.check in self._checks:
                    key, at = key_of(finding, operand), (issue, number)
                    found.append(Found(key, finding, 1, [core.id], at, said=True))
        if found:
            turns = CoreSchedule(self._issued()) if self._halt is None else self._halt.turns
            if not turns.log(self._log, found):
                raise EachError("a finding that is another core's first")

    def _record_on(self) -> None:
        """Let cores that do not do the same record more, so that it shows where they do again."""
        for _ in range(_MOST_AHEAD):
            paused = [recorder for recorder in self._recorders if recorder.only_paused]
            if not paused:
                return
            for recorder in paused:
                recorder.record_more()
                self._go_on(recorder)

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
        first = cores[0].segment(self._gm)
        apart = (first.apart(core.segment(self._gm, [first])) for core in cores)
        # None cannot be: `meetings` found that they go alike.
        far = [distances for distances in apart if distances is not None]  # they go alike
        cores = self._in_order(cores, far)
        group = self._group(cores, sanitizer)
        group.take_over([places[core.id] for core in cores])
        group.clock.start({core.id: len(core.trace) - left for core in cores})
        running = Running(group, cores, self._next)
        asked = [core.asked_from(left) for core in cores]
        running.take(self._again(running, asked, self._recorded(running)))
        return running

    def _again(
        self, running: Running, asked: Sequence[Sequence[Asked]], steps: Iterator[Issued]
    ) -> Iterator[Issued]:
        """Return the first issues of a group, that ask again in between what was asked there."""
        return asking_again(running, asked, steps, alone=self._levels == self._alone)

    def _go_on(self, recorder: Recorder) -> None:
        """Let a core record; see whether it signals others, or waits for them."""
        recorder.go_on()
        if not self._signalled:
            self._signalled = recorder.records_any(self._known.signals())

    def _next(self, running: Running) -> None:
        """Answer what a group's cores ask, and let them record what they execute next."""
        alive = [core for core in running.cores if not core.over]
        if not alive:
            running.ended = True
            return
        answered = answers(running)
        for number, core in enumerate(alive):
            if core.asks is not None:
                load, _, address = core.asks
                # A value decides the kernel's way: it must not be one that a core writes which goes
                # first in turns but has not come there in lockstep.
                if load is not None and self._is_early(core, load, address):
                    raise UnorderedError("a value that other cores write")
                core.answer, core.asks = answered[number], None
            self._go_on(core)
        if self._shared is None and self._signalled:
            raise DivergedGroupError("signals after a long way without")
        if self._gm.windows.memories != self._windowed:
            raise DivergedGroupError("copies to other parts after a long way without")
        follow_reads(running)
        ahead = values_ahead(running)
        running.take(self._again(running, ahead, self._recorded(running)))

    def _is_early(self, core: Recorder, load: LoadScalar, address: int) -> bool:
        """Return whether cores that go first write what a core is about to read."""
        if load.mem is not Mem.GM or self._signalled or self._levels == self._alone:
            return False
        high = address + load.element.size_bytes
        groups = [group.aliasing for group in self._groups]
        early = self._early
        return early.recorded(core, address, high) or early.executed(groups, core, address, high)

    def _group(self, cores: Sequence[Recorder], sanitizer: Sanitizer) -> LockstepGroup:
        positions = [(core.id, core.registers.position) for core in cores]
        group = LockstepGroup(
            self._chip, sanitizer, self._snapshots, positions, self._shared, self._watching
        )
        self._groups.append(group)
        for row, core in zip(group.cores, cores, strict=True):
            core.row, core.is_early = row, partial(self._is_early, core)
        return group

    def _alike(self) -> list[list[Recorder]]:
        """Return the cores in groups of those that recorded alike, and may go together.

        Where they lie unevenly in a tensor, its bytes are followed as in a launch with signals.
        """
        recorders = self._recorders
        groups: list[tuple[RecordedPart, list[Recorder], list[Addresses]]] = []
        levels = {
            recorder.id: level
            for recorder, level in zip(recorders, self._levels or [0] * len(recorders), strict=True)
        }
        for recorder in recorders:
            segment = recorder.segment(self._gm, [first for first, _, _ in groups])
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
        together = self._signalled or self._uneven or bool(self._windowed)
        self._shared = SharedMemory() if together else None
        groups.sort(key=lambda group: levels[group[1][0].id])
        return [self._in_order(cores, distances) for _, cores, distances in groups]

    def _in_order(self, cores: list[Recorder], far: Sequence[Addresses]) -> list[Recorder]:
        """Return a group's cores, perhaps the first of each AI Core first if so they lie evenly.

        Where each core is judged they stay in the order of their turns.
        """
        if self._order is not None:
            return cores
        # Second differences of the distances: 0 where cores lie evenly.
        given = np.array(far)
        by_part = sorted(range(len(cores)), key=lambda number: cores[number].id.sub)
        # Even distances (a multiple of the core's number) make rows of a strided array, read and
        # written without gathering.
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
        first = cores[0].segment(self._gm)
        rows: list[Addresses] = [np.zeros(first.in_gm.size, np.int64)]
        for core in cores[1:]:
            segment = core.segment(self._gm, [first])
            far = first.apart(segment)
            if far is None:
                raise DivergedGroupError("cores of a group that go different ways")
            if not first.aligned_like(segment):
                group.issue_apart(partial(_where_of, running))
            rows.append(far)
        for core in cores:
            core.forget()
        return first.issues(np.array(rows), group.aliasing)


def _where_of(running: Running, row: int, _where: Location) -> Location:
    """Return the place from which a core of a group issues what the group is at."""
    core, clock = running.cores[row], running.group.clock
    return core.where(clock.issue + clock.ahead.get(core.id, 0))
