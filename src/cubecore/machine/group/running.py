"""Groups on their way: what their cores recorded, where they stop, and how a launch is ended."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NoReturn

from cubecore.errors import CubecoreError, DeadlockError
from cubecore.isa.scalar.sync import WaitFlagDev
from cubecore.machine.group.lockstep_group import LockstepGroup
from cubecore.machine.group.recorder import Issued, Recorder
from cubecore.machine.group.sanitize.divergence import DivergedGroupError, UnlikeError
from cubecore.machine.memory.partner_windows import Unlike
from cubecore.machine.sanitize.core_schedule import CoreSchedule
from cubecore.machine.sanitize.deadlocks import deadlock, log_deadlocks
from cubecore.machine.sanitize.finding_log import FindingLog


class Running:
    """A group on its way: its cores, and what it has still to issue of what they recorded.

    `record` lets the cores record more, or end, once nothing is left. A group that `stopped` goes
    on when it is told to pass.
    """

    def __init__(
        self,
        group: LockstepGroup,
        cores: Sequence[Recorder],
        record: Callable[["Running"], None],
    ) -> None:
        self.group, self.cores = group, cores
        self._left, self._record = cores[0].pending_count, record
        self._steps: Iterator[Issued] = iter(())
        self._until: Iterator[Issued] = self._steps
        self._stops: deque[int] = deque()
        self._held: WaitFlagDev | None = None
        self.stopped = self.ended = False

    def take(self, steps: Iterator[Issued]) -> None:
        """Take what is to be issued next."""
        self._steps = self._until = steps

    # --- stops

    def stop_at(self, left: Sequence[int]) -> None:
        """Stop where so many issues are left, one place after another."""
        self._stops = deque(left)
        self._aim()

    @property
    def stop(self) -> int:
        """The number of issues that are left at the next stop; -1 if there is none any more."""
        return self._stops[0] if self._stops else -1

    def go_past(self) -> None:
        """Pass the stop at which the group is."""
        self._left = self._stops.popleft()
        self.stopped = False
        self._aim()

    def _aim(self) -> None:
        steps = self._steps
        self._until = islice(steps, self._left - self._stops[0]) if self._stops else steps

    # --- turns

    @property
    def cuts_short(self) -> bool:
        """True if its cores have not come to their ends."""
        return self.cores[0].halted or self.cores[0].failed is not None

    @property
    def waits_at(self) -> Sequence[int]:
        """The issues at which the cores wait for others."""
        clock = self.group.clock
        return [clock.issue + clock.ahead.get(core.id, 0) for core in self.cores]

    @property
    def ready(self) -> bool:
        """True if nothing, or nothing any more, keeps the group from going on."""
        met = self._held is None or self.group.may_hear(self._held)
        return met and not (self.ended or self.stopped)

    def go_on(self) -> None:
        """Issue until the group waits or stops, or its cores have ended."""
        while not self._issue():
            if self._stops:
                self.stopped = True
                return
            self._record(self)
            if self.ended:
                return

    def _issue(self) -> bool:
        """Issue until the group waits for others, or nothing is left; return whether it waits."""
        group, clock = self.group, self.group.clock
        if self._held is not None:
            self._hear(self._held)
            self._held = None
        for template, addresses, where in self._until:
            clock.issue += 1
            if isinstance(template, WaitFlagDev):
                if not group.allows(template, where):
                    continue
                if group.may_hear(template):
                    self._hear(template)
                    continue
                self._held = template
                return True
            try:
                group.issue(template, addresses, where)
            except UnlikeError as unlike:
                self.part(str(unlike), unlike.kinds)
        return False

    def _hear(self, wait: WaitFlagDev) -> None:
        """End a wait; what other parts have sent to the cores' memories arrives."""
        self.group.hear(wait)
        try:
            self.group.gm.windows.arrive(self.group.ids, self.group.memory)
        except Unlike as unlike:
            self.part(str(unlike), unlike.kinds)

    def part(self, why: str, kinds: Sequence[object]) -> NoReturn:
        """Tell the cores apart, which are no more alike.

        Raises
        ------
        DivergedGroupError
            Always.
        """
        for core, kind in zip(self.cores, kinds, strict=True):
            core.kinds.append(kind)
        raise DivergedGroupError(why)


class Halt:
    """The end of a launch that does not end well, by the turns that each core takes alone.

    The cores make no more than what they come to in these.
    """

    def __init__(self, turns: CoreSchedule, recorders: Sequence[Recorder]) -> None:
        self.turns = turns
        self._standings = [turns.standing(core.id, core.where) for core in recorders]
        failed = [core.failed for core in recorders if core.id == turns.failed]
        error = failed[0] if failed else deadlock(self._standings)
        assert error is not None
        self._error: Exception = error
        for core in recorders:
            reached = turns[core.id].reached
            if reached is not None:
                core.halt(reached)

    def end(self, log: FindingLog) -> NoReturn:
        """Raise what ends the launch, with the findings."""
        error = self._error
        log_deadlocks(log, self._standings, waits=isinstance(error, DeadlockError))
        if isinstance(error, CubecoreError):
            error.findings = tuple(log)
        raise error
