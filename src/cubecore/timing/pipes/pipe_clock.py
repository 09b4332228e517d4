"""A pipe in time: what every clock of a core knows of it."""

from collections import deque
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class PipeClock:
    """A pipe that does one thing after another.

    `queue` holds when the last instructions left it, as many as it has places. It is taken until
    `free`, its last data are there at `done`, and flags hold it up to `gate`. `drained` behind a
    barrier or a gap: the next instruction pays its head.
    """

    queue: deque[int]
    free: int = 0
    done: int = 0
    gate: int = 0
    busy: int = 0
    drained: bool = True

    def move(self, shift: int) -> None:
        """Let everything be so many cycles later."""
        self.free += shift
        self.done += shift
        self.gate += shift
        self.queue.extend([at + shift for at in self.queue])
