"""Flags between the pipes of a core: records of them, and why pipes stand still."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Pipe
from cubecore.isa.program.tree import Location

PIPE_NAMES = tuple(p.value for p in Pipe if p is not Pipe.ALL)
INDEX: Mapping[str, int] = {name: number for number, name in enumerate(PIPE_NAMES)}
SCALAR = INDEX["S"]
PIPES = (*PIPE_NAMES, "S")
"""Pipes by number, the last one for the scalar unit's stores to local memory."""
Clock = list[int]
Foreign = NDArray[np.int64]
"""The clocks of all cores as known to one, shape [cores, pipes], or to several, one more axis."""
Act = Callable[[], object]


class Flag(NamedTuple):
    """A flag between two pipes, by their numbers."""

    src: int
    dst: int
    event: int

    @property
    def pipes(self) -> tuple[str, str]:
        """The names of its pipes."""
        return PIPES[self.src], PIPES[self.dst]

    def __str__(self) -> str:
        """Return ``MTE2 -> V 0``."""
        return f"{' -> '.join(self.pipes)} {self.event}"


class SetEvent(NamedTuple):
    """An event of a flag that is set, and the call that set it."""

    event: int
    where: Location


@dataclass(eq=False, slots=True)
class Held:
    """An instruction behind a wait that nothing has met yet, and what was known at its issue.

    `awaits` and `raises` say that it is itself a wait, or a set.
    """

    act: Act
    where: Location
    scalar: Clock
    foreign: Foreign
    awaits: Flag | None = None
    raises: Flag | None = None


@dataclass(frozen=True, slots=True)
class FlagFault:
    """Something wrong with a flag: a stable id, the expected state, the actual one, and where.

    `flag` is the one between pipes; None for unit flags. `other` is one of the same pipes that is
    set and that nothing waits for: most often the one that was meant.
    """

    id: str
    instruction: str
    message: str
    where: Location
    flag: Flag | None = None
    other: SetEvent | None = None


def stalled(
    held: Mapping[int, Sequence[Held]], up: Mapping[Flag, Location], unraised: Flag | None = None
) -> list[FlagFault]:
    """Return why pipes stand still: circles of waits, and waits that nothing meets.

    `held` gives for each pipe that stands the wait that it stands at and what is behind it, `up`
    the flags that are set, and where.
    `unraised` is the flag of the first of these waits, if nothing has set it before: a loop that
    begins with it needs the flag set once before its first round.
    """
    heads = {pipe: queue[0] for pipe, queue in held.items()}
    behind: dict[Flag, Held] = {}
    for queue in held.values():
        for entry in queue:
            if entry.raises is not None:
                behind.setdefault(entry.raises, entry)
    faults: list[FlagFault] = []
    reported: set[int] = set()
    for start in heads:
        path = _path(start, heads, behind)
        if reported.isdisjoint(path):
            faults.append(_cause(path, heads, behind, up, unraised))
        reported.update(path)
    return faults


def _path(start: int, heads: Mapping[int, Held], behind: Mapping[Flag, Held]) -> list[int]:
    """Return the pipes from `start` on, each waiting for the next; a circle ends where it began."""
    path, pipe = [start], start
    while (flag := heads[pipe].awaits) in behind:
        assert flag is not None
        pipe = flag.src
        path.append(pipe)
        if pipe in path[:-1]:
            break
    return path


def _cause(
    path: list[int],
    heads: Mapping[int, Held],
    behind: Mapping[Flag, Held],
    up: Mapping[Flag, Location],
    unraised: Flag | None,
) -> FlagFault:
    last = heads[path[-1]]
    if path.count(path[-1]) == 1:
        message = (
            f"{PIPES[path[-1]]} waits at {last.where} for flag {last.awaits}, which no set_flag "
            "sets"
        )
        flag = last.awaits
        assert flag is not None
        alike = (SetEvent(f.event, where) for f, where in up.items() if f.pipes == flag.pipes)
        return FlagFault("flag-unmet", "wait_flag", message, last.where, flag, next(alike, None))
    circle = path[path.index(path[-1]) : -1]
    steps = ", ".join(_step(heads[pipe], behind) for pipe in circle)
    message = f"the waits form a cycle: {steps}"
    first = next((heads[pipe] for pipe in circle if heads[pipe].awaits == unraised), None)
    if first is not None:
        message += (
            f"; flag {unraised} was never set before the wait at {first.where}: set it once before "
            "that wait, or before the loop around it"
        )
    return FlagFault("deadlock", "wait_flag", message, last.where)


def _step(held: Held, behind: Mapping[Flag, Held]) -> str:
    assert held.awaits is not None
    flag = held.awaits
    return (
        f"{PIPES[flag.dst]} waits at {held.where} for flag {flag}, which {PIPES[flag.src]} sets "
        f"after its own wait, at {behind[flag].where}"
    )
