"""Vector clocks carried by cross-core signals."""

from collections import deque
from collections.abc import Iterator

import numpy as np

from cubecore.isa.program.topology import CoreId, Topology
from cubecore.machine.sanitizer.happens_before import Foreign


class Signals:
    """The clocks of signals on their way: the n-th wait hears what raised the counter n times."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._sent: dict[tuple[CoreId, int, int], deque[Foreign]] = {}
        self._raised: dict[tuple[CoreId, int], deque[Foreign]] = {}

    def signal(self, core: CoreId, mode: int, flag: int, carried: Foreign) -> None:
        """Send what a core knows; receivers hear it once every peer has signalled."""
        self._sent.setdefault((core, mode, flag), deque()).append(carried)
        queues = [self._sent.get((peer, mode, flag)) for peer in self._topology.peers(core, mode)]
        if not all(queues):
            return
        joined = np.maximum.reduce([queue.popleft() for queue in queues if queue])
        for receiver in self._topology.receivers(core, mode):
            self._raised.setdefault((receiver, flag), deque()).append(joined)

    def heard(self, core: CoreId, flag: int) -> Foreign:
        """Return what the wait that a core has just ended has heard."""
        return self._raised[core, flag].popleft()

    def left(self) -> Iterator[tuple[CoreId, int, int]]:
        """Yield (core, flag, count) of the counters that stand above 0."""
        for (core, flag), queue in sorted(self._raised.items()):
            if queue:
                yield core, flag, len(queue)
