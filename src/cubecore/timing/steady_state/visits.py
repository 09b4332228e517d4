"""Visits: what both clocks ask of a state that they meet again.

`recurrence` looks at the heads of loops of a tree, `timing.tiles.recurrence` at those of rows,
tiles and base-K steps. Each says for itself what its state is and how it moves on. What both have
in common is here: which earlier visits of a state are looked at, and how long device memory goes on
alike.
"""

from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from cubecore.timing.memory.memory_port import MemoryPort

_V = TypeVar("_V")
NO_LIMIT = 1 << 62


class Visits(Generic[_V]):
    """The latest visits of each state, up to `most`: a short stretch may recur within a longer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._visits: dict[Hashable, list[_V]] = {}

    def earlier(self, state: Hashable, visit: _V) -> Sequence[_V]:
        """Return the earlier visits of a state, the latest last, and remember this one."""
        visits = self._visits.get(state)
        if visits is None:
            self._visits[state] = [visit]
            return ()
        latest = visits[-self._most :]
        self._visits[state] = [*latest, visit]
        return latest

    def clear(self) -> None:
        """Forget all."""
        self._visits.clear()


class MemoryState(NamedTuple):
    """Device memory at a visit: the scalar unit's time, what was served, and how far it is behind.

    `lag` is no less than what device memory can use of the past.
    """

    time: int
    served: int
    lag: int

    @staticmethod
    def of(memory: MemoryPort, time: int) -> "MemoryState":
        """Return that of a port at a time."""
        return MemoryState(time, memory.served, max(memory.busy_until - time, -memory.slack))

    def periods(self, now: "MemoryState", room: int) -> int:
        """Return how many periods like that from here to `now` device memory serves alike.

        Where it holds up no transfer, it may fall behind by as many cycles as it has `room` for;
        negative where it held one up.
        """
        served, later = now.served - self.served, now.lag - self.lag
        # A lag that stands still changes nothing. One that grows would hold up a load sooner or
        # later; one that shrinks never does if none was held up yet.
        if served == 0 or later == 0:
            return NO_LIMIT
        if later > room or room < 0:
            return 0
        growth = served - (now.time - self.time)
        return NO_LIMIT if later < 0 or growth <= 0 else 1 + (room - later) // growth
