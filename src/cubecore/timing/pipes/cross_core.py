"""Signals between cores, in time: each core's walk goes on until it waits for another's signal.

Walks take turns. A wait whose counter is at 0 lets the other walks go on; the
n-th wait of a core on a flag is over when the n-th signal has come, whatever the order of walking.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cubecore.errors import DeadlockError, Violation
from cubecore.isa.program.topology import CoreId, Topology
from cubecore.isa.program.tree import Program
from cubecore.isa.scalar.sync import FftsCrossCoreSync, SendMessage, WaitFlagDev
from cubecore.timing.pipes.switching import Hub, turns


def crosses(program: Program) -> bool:
    """True if a program signals other cores, or waits for their signals."""
    return any(isinstance(i.template, (FftsCrossCoreSync, WaitFlagDev)) for i in program.issues)


class Crossing:
    """The counters of all cores, and the walks that raise them.

    `cores` are one of each group of equal cores; a signal takes `latency` cycles. A message of a
    Matmul object takes none: the measured launches with such objects agree with their loads and
    matmuls alone, by constants that were fitted with them.
    """

    def __init__(self, cores: Sequence[CoreId], latency: int) -> None:
        self._topology = Topology(cores)
        self._latency = latency
        self._sent: dict[tuple[CoreId, int, int], deque[int]] = {}
        self._raised: dict[tuple[CoreId, int], deque[int]] = {}
        self._waiting: dict[CoreId, int] = {}
        self._moves = 0
        self._hub: Hub | None = None

    def signal(self, core: CoreId, template: FftsCrossCoreSync, at: int) -> None:
        """Send a signal at a cycle; it is heard once every peer has sent its own."""
        # The n-th signals of all peers make one: it is heard `latency` after the last of them.
        self._moves += 1
        key = template.mode, template.counter
        self._sent.setdefault((core, *key), deque()).append(at)
        queues = [self._sent.get((peer, *key)) for peer in self._topology.peers(core, key[0])]
        if not all(queues):
            return
        latency = 0 if isinstance(template, SendMessage) else self._latency
        heard = max(queue.popleft() for queue in queues if queue) + latency
        for counter in self._topology.counters(core, *key):
            self._raised.setdefault(counter, deque()).append(heard)

    def heard(self, core: CoreId, flag: int) -> int:
        """Return the cycle of the signal that a wait takes; the other walks go on until it is sent.

        Raises
        ------
        DeadlockError
            If all cores wait.
        """
        while not self._raised.get((core, flag)):
            self._waiting[core] = flag
            if self._hub is None:
                raise self._never()
            self._hub.switch()
        self._waiting.pop(core, None)
        self._moves += 1
        return self._raised[core, flag].popleft()

    def walk(self, walks: Sequence[Callable[[], None]]) -> None:
        """Walk every core to its end, in order, each as far as it gets.

        Raises
        ------
        DeadlockError
            If all cores that are left wait for signals.
        """
        self._hub, threads = turns(list(walks))
        # Rounds: each walk goes as far as it can. A round in which nobody ended and no signal was
        # sent or taken can never be followed by another one: a deadlock.
        while threads:
            moves = self._moves
            for thread in threads:
                thread.switch()
            left = [thread for thread in threads if not thread.dead]
            if left == threads and moves == self._moves:
                raise self._never()
            threads = left

    def _never(self) -> DeadlockError:
        stuck = ", ".join(f"{core} waits for flag {flag}" for core, flag in self._waiting.items())
        sentence = f"deadlock, no core sends a signal: {stuck}"
        return DeadlockError([Violation("every wait_flag_dev", "", stuck, sentence=sentence)])


@dataclass(frozen=True, eq=False, slots=True)
class Outbox:
    """The targets of an instruction's signals; as a flag, it takes the cycles of its signals."""

    crossing: Crossing
    core: CoreId
    template: FftsCrossCoreSync

    def append(self, at: int) -> None:
        """Send a signal at a cycle."""
        self.crossing.signal(self.core, self.template, at)
