"""Signals between cores on their way: counters of flags, and the vector clocks that they carry."""

from collections import deque
from collections.abc import Iterator

import numpy as np

from cubecore.isa.program.topology import CoreId, Topology
from cubecore.machine.sanitizer.happens_before import Foreign


class _Peers:
    """Cores that must all signal on a flag before its receivers are told."""

    def __init__(self, members: list[CoreId], receivers: list[CoreId]) -> None:
        self.receivers = receivers
        self._sent: dict[CoreId, deque[Foreign]] = {member: deque() for member in members}
        self._missing = len(members)

    def signal(self, core: CoreId, carried: Foreign) -> Foreign | None:
        """Take a signal; return all that the peers know if it was the last one missing."""
        queue = self._sent[core]
        queue.append(carried)
        self._missing -= len(queue) == 1
        if self._missing:
            return None
        taken = [sent.popleft() for sent in self._sent.values()]
        self._missing = sum(not sent for sent in self._sent.values())
        return taken[0] if len(taken) == 1 else np.maximum.reduce(taken)


class Signals:
    """The clocks of signals on their way: the n-th wait hears what raised the counter n times."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._peers: dict[tuple[CoreId, int, int], _Peers] = {}
        self._raised: dict[tuple[CoreId, int], deque[Foreign]] = {}

    def signal(self, core: CoreId, mode: int, flag: int, carried: Foreign) -> list[CoreId]:
        """Send what a core knows, heard once every peer has signalled; return who is told now."""
        peers = self._peers.get((core, mode, flag))
        if peers is None:
            members = self._topology.peers(core, mode)
            peers = _Peers(members, self._topology.receivers(core, mode))
            self._peers |= {(member, mode, flag): peers for member in members}
        joined = peers.signal(core, carried)
        if joined is None:
            return []
        for receiver in peers.receivers:
            queue = self._raised.get((receiver, flag))
            if queue is None:
                queue = self._raised[receiver, flag] = deque()
            queue.append(joined)
        return peers.receivers

    def count(self, core: CoreId, flag: int) -> int:
        """Return how high the counter of a core's flag stands."""
        return len(self._raised.get((core, flag), ()))

    def heard(self, core: CoreId, flag: int) -> Foreign:
        """Return what the wait that a core has just ended has heard."""
        return self._raised[core, flag].popleft()

    def left(self) -> Iterator[tuple[CoreId, int, int]]:
        """Yield (core, flag, count) of the counters that stand above 0."""
        for (core, flag), queue in sorted(self._raised.items()):
            if queue:
                yield core, flag, len(queue)
