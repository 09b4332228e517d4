"""The end of a launch in which a kernel fails, or cores wait for ever."""

from collections.abc import Sequence
from typing import NoReturn

from cubecore.errors import CubecoreError, DeadlockError
from cubecore.machine.lockstep.recorder import Recorder
from cubecore.machine.sanitizer.deadlocks import deadlock, log_deadlocks
from cubecore.machine.sanitizer.findings import FindingLog
from cubecore.machine.sanitizer.turns import Turns


class Halt:
    """The end of a launch that does not end well, by the turns that each core takes alone.

    The cores make no more than what they come to in these.
    """

    def __init__(self, turns: Turns, recorders: Sequence[Recorder]) -> None:
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
