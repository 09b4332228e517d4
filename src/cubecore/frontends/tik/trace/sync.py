"""Flags and barriers between what a trace issues: the compiler's part of TIK.

The policy is simple and sound. Before an instruction that meets an earlier one's bytes (a write of
either) on another pipe a flag is raised and awaited, on its own pipe a barrier stands. Every pair
of pipes has eight events; when they are used up, and at the edges of loops and branches, a barrier
joins all pipes. Tensors meet as wholes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cubecore.isa.declare.instruction import Instruction, Pipe
from cubecore.isa.scalar.sync import EVENT_IDS, PipeBarrier, SetFlag, WaitFlag

Resource = tuple[str, int, int]
"""A memory's or a tensor's name, and the bytes [start, end) of it."""
Touch = tuple[Resource, bool]
"""The bytes touched, and True if they are written."""


@dataclass(slots=True)
class State:
    """The accesses under way: the last of equal touches, and each pipe's clock of the others."""

    touches: dict[tuple[str, Resource, bool], int] = field(default_factory=dict)
    waited: dict[tuple[str, str], int] = field(default_factory=dict)
    events: dict[tuple[str, str], int] = field(default_factory=dict)
    count: int = 0

    def copy(self) -> "State":
        """Return a state of its own."""
        return State(dict(self.touches), dict(self.waited), dict(self.events), self.count)


class Synchroniser:
    """Decides what to insert before each instruction; `insert` puts it into the program."""

    def __init__(
        self, insert: Callable[[Instruction], None], pairs: Callable[[], frozenset[tuple[str, str]]]
    ) -> None:
        self._insert, self._pairs = insert, pairs
        self.state = State()
        self.enabled = True

    def before(self, pipe: str, touches: Sequence[Touch]) -> None:
        """Insert what an instruction on `pipe` needs, and remember what it touches."""
        if not self.enabled:
            return
        if pipe == Pipe.S.value and not touches:
            return
        # `waited[source, pipe]` is the last access number of `source` that `pipe` is known to be
        # behind: anything up to it is ordered. A fresh flag or barrier brings it to the present
        # count.
        sources = dict.fromkeys(self._hazards(pipe, touches))
        if pipe == Pipe.S.value:
            sources.pop(pipe, None)  # its own accesses are in order
        for source in sources:
            self._order(source, pipe)
        state = self.state
        state.count += 1
        if pipe == Pipe.S.value:  # what the scalar unit read, everything issued later knows
            touches = [(resource, writes) for resource, writes in touches if writes]
        state.touches |= {(pipe, *touch): state.count for touch in touches}

    def _hazards(self, pipe: str, touches: Sequence[Touch]) -> Iterator[str]:
        waited = self.state.waited
        for (source, resource, wrote), number in self.state.touches.items():
            if number <= waited.get((source, pipe), 0):
                continue
            for mine, writes in touches:
                if (wrote or writes) and _meet(resource, mine):
                    yield source
                    break

    def _order(self, source: str, pipe: str) -> None:
        state = self.state
        if source == pipe:
            self._insert(_barrier(pipe))
            state.waited[source, pipe] = state.count
            return
        # Events are used up in order and never reused between two joins, so that no wait can take
        # the flag of another set.
        event = state.events.get((source, pipe), 0)
        if event == EVENT_IDS or (source, pipe) not in self._pairs():
            self.barrier()
            return
        state.events[source, pipe] = event + 1
        for flag in _flags(source, pipe, event):
            self._insert(flag)
        state.waited[source, pipe] = state.count

    def forget(self) -> None:
        """Start anew: everything before has been joined."""
        self.state = State()

    def barrier(self) -> None:
        """Join all pipes, if anything is under way."""
        if self.enabled and (self.state.touches or self.state.events):
            self._insert(_barrier(Pipe.ALL.value))
        self.state = State()


@lru_cache(maxsize=64)
def _barrier(pipe: str) -> Instruction:
    return PipeBarrier(on=pipe)


@lru_cache(maxsize=1024)
def _flags(source: str, pipe: str, event: int) -> tuple[Instruction, Instruction]:
    """Return what raises a flag and what awaits it."""
    raised = SetFlag(src=source, dst=pipe, event_id=event)
    return raised, WaitFlag(src=source, dst=pipe, event_id=event)


def _meet(one: Resource, other: Resource) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
