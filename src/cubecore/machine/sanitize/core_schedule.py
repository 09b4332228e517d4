"""Core schedule: who goes on next, and in which order cores that go together would find things.

A core, or a group, goes on until it waits for others or ends; the next one is the first that is
ready. Of cores in a group, each would have turns of its own: findings are told as in those.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple, Protocol, TypeVar

from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.machine.sanitize.cross_core import NOTHING, Signals
from cubecore.machine.sanitize.deadlocks import Standing
from cubecore.machine.sanitize.finding_log import FindingLog, Key
from cubecore.machine.sanitize.findings import SanitizerFinding


class IssuedSyncs(NamedTuple):
    """A core's signals and waits, by the number of their issue, and the issues that it read before.

    At all of these it executes what it has issued so far. `fails`: it ends by an exception.
    """

    core: CoreId
    syncs: Sequence[tuple[int, FftsCrossCoreSync | WaitFlagDev]] = ()
    reads: Sequence[int] = ()
    fails: bool = False


class Unit(Protocol):
    """A core, or cores that go together."""

    @property
    def ready(self) -> bool:
        """True if it has not ended, and nothing, or nothing any more, keeps it from going on."""
        ...

    def go_on(self) -> None:
        """Go on until it waits for others, pauses or ends."""
        ...


AUnit = TypeVar("AUnit", bound=Unit)


def first_ready(units: Iterable[AUnit]) -> AUnit | None:
    """Return whose turn it is; None if none is ready."""
    return next((unit for unit in units if unit.ready), None)


def take_turns(units: Sequence[Unit], choose: Callable[[int], int] | None = None) -> None:
    """Let the first ready unit go on, until none is ready; `choose` may pick another of so many."""
    if choose is None:
        while (first := first_ready(units)) is not None:
            first.go_on()
        return
    while able := [unit for unit in units if unit.ready]:
        able[choose(len(able))].go_on()


class ScheduledCore:
    """The turns of a core that signals and waits: their numbers in the launch, and their issues."""

    def __init__(self, issued: IssuedSyncs, signals: Signals, numbers: Iterator[int]) -> None:
        self.core, self._left, self._signals = issued.core, deque(issued.syncs), signals
        # A core's executions: at each of these issues it executes all that it has recorded until
        # there. Findings appear then, which decides the order in which two cores' findings come.
        self._executes = sorted([*(issue for issue, _ in issued.syncs), *issued.reads])
        self._numbers, self._at, self._waits, self.fails = numbers, 0, False, issued.fails
        self._begins: list[int] = []
        self._turns: list[int] = []
        self.ended = False

    @property
    def ready(self) -> bool:
        """True if the core has not ended, and waits for none or was told to go on."""
        met = not self._waits or self._signals.met([self.core], self._left[0][1].counter)
        return met and not self.ended

    def go_on(self) -> None:
        """Go on until the core waits or ends."""
        self._begins.append(self._at)
        self._turns.append(next(self._numbers))
        self._waits = False
        # The same protocol as that of the scheduler with single cores, with empty clocks: only the
        # order of turns is wanted here.
        while self._left:
            self._at, sync = self._left[0]
            if isinstance(sync, FftsCrossCoreSync):
                self._signals.send([self.core], sync, [NOTHING])
            elif self._signals.met([self.core], sync.counter):
                self._signals.heard([self.core], sync.counter)
            else:
                self._waits = True
                return
            self._left.popleft()
        self.ended = True

    @property
    def waits(self) -> tuple[int, int] | None:
        """The flag that it waits for, and the issue at which it does."""
        return (self._left[0][1].counter, self._at) if self._waits else None

    @property
    def reached(self) -> int | None:
        """The issues that it makes before it waits; -1 if it has no turn, None if it ends."""
        if self.ended:
            return None
        return self._at if self._turns else -1

    def place(self, issue: int, *, said: bool) -> tuple[int, int, bool]:
        """Return in which turn the core has a finding, and behind how many of its executions.

        What it says itself comes before what it has issued since the last one.
        """
        # A finding at an issue belongs to the last turn that began at it or before; what the kernel
        # says while it records belongs to the turn before, as the issue itself was not executed by
        # then.
        side = bisect_left if said else bisect_right
        turn = self._turns[max(side(self._begins, issue) - 1, 0)]
        return turn, side(self._executes, issue), not said


class Found(NamedTuple):
    """A finding of some cores, for each first at the same issue, and how often it was made.

    `at` is that issue, and a number that counts what was found there; `ahead` says by how much the
    issue's number is greater on cores where it is another. `said`: the kernel itself
    reported it, before the issue. `own_bytes`: each core has bytes of its own, and the finding
    names those of the first one.
    """

    key: Key
    finding: SanitizerFinding
    times: int
    cores: Sequence[CoreId]
    at: tuple[int, int]
    ahead: Mapping[CoreId, int] = {}
    said: bool = False
    own_bytes: bool = False

    def first_in(self, turns: Mapping[CoreId, ScheduledCore]) -> tuple["Place", CoreId]:
        """Return where which core has it first."""
        issue, number = self.at

        def place(core: CoreId) -> "Place":
            own = issue + self.ahead.get(core, 0)
            return turns[core].place(own, said=self.said), own, number

        return min((place(core), core) for core in self.cores)


Place = tuple[tuple[int, int, bool], int, int]
"""A core's turn and execution, the issue there, and what was found there before."""


class CoreSchedule:
    """The turns of cores that go alone, until none goes on, or one fails."""

    def __init__(self, cores: Sequence[IssuedSyncs], *, failing: bool = True) -> None:
        self._signals, numbers = Signals([issued.core for issued in cores]), count()
        in_order = [ScheduledCore(issued, self._signals, numbers) for issued in cores]
        self._of_core = {turns.core: turns for turns in in_order}
        self.failed: CoreId | None = None
        while (first := first_ready(in_order)) is not None:
            first.go_on()
            if failing and first.fails and first.ended:
                self.failed = first.core
                return

    def __getitem__(self, core: CoreId) -> ScheduledCore:
        """Return the turns of a core."""
        return self._of_core[core]

    def standing(self, core: CoreId, where: Callable[[int], Location]) -> Standing:
        """Return where a core stands, which issues from there."""
        waits = self[core].waits
        if waits is None:
            return Standing(core)
        flag, issue = waits
        missing = self._signals.missing(core, flag)
        unsent = not (missing or self._signals.was_raised(core, flag))
        return Standing(core, (flag, where(issue)), missing, unsent=unsent)

    def log(self, log: FindingLog, found: Iterable[Found]) -> bool:
        """Log what cores found as if each went alone.

        False: another one than the first has its own bytes in a finding.
        """
        ordered = []
        for one in found:
            place, core = one.first_in(self._of_core)
            if one.own_bytes and core != one.cores[0]:
                return False
            ordered.append((place, core, one))
        for _, core, one in sorted(ordered, key=lambda placed: placed[0]):
            finding = one.finding if len(one.cores) == 1 else _of(core, one.finding)
            log.merge(one.key, finding, one.times)
        return True


def _of(core: CoreId, finding: SanitizerFinding) -> SanitizerFinding:
    """Return a finding as another core of a group has it, which did the same in its memories."""
    name = str(core)
    if finding.core == name:
        return finding
    accesses = tuple(replace(access, core=name) for access in finding.accesses)
    return replace(finding, core=name, accesses=accesses)
