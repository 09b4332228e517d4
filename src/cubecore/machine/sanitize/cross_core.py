"""Signals between cores on their way: counters of flags, and the vector clocks that they carry."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cubecore.isa.declare.registers import (
    CROSS_CORE_FLAGS,
    FIRST_OF_PARTS,
    TO_ALL,
    TO_PARTNER,
)
from cubecore.isa.program.topology import CoreId, Topology
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import (
    CROSS_CORE_LIMIT,
    FftsCrossCoreSync,
    signal_name,
)
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.machine.sanitize.flags import Foreign

NOTHING: Foreign = np.zeros((0, 0), np.int64)
"""The clocks that a signal carries where no order is judged."""


class _Peers:
    """Cores that must all signal on a flag before its receivers may go on."""

    def __init__(self, members: list[CoreId], counters: list[tuple[CoreId, int]]) -> None:
        self.counters = counters
        self._sent: dict[CoreId, deque[Foreign]] = {member: deque() for member in members}
        self._missing = len(members)

    @property
    def unsent(self) -> list[CoreId]:
        """The cores whose signal is missing where others have sent theirs."""
        missing = [core for core, sent in self._sent.items() if not sent]
        return missing if len(missing) < len(self._sent) else []

    def signal(self, core: CoreId, carried: Foreign) -> Foreign | None:
        """Take a signal; return all that the peers know if it was the last one missing."""
        # A barrier in the making: each member has a queue of the clocks that it sent. Only the
        # first in a queue changes how many are missing; a member may be several signals ahead of
        # the others.
        queue = self._sent[core]
        queue.append(carried)
        self._missing -= len(queue) == 1
        if self._missing:
            return None
        taken = [sent.popleft() for sent in self._sent.values()]
        self._missing = sum(not sent for sent in self._sent.values())
        # A join of vector clocks is their maximum, component by component: whoever hears the
        # barrier knows all that any member knew when it signalled.
        return taken[0] if len(taken) == 1 or not taken[0].size else np.maximum.reduce(taken)


class Signals:
    """The signals of a launch on their way: the n-th wait hears what raised the counter n times."""

    def __init__(self, cores: Sequence[CoreId]) -> None:
        self._topology = Topology(cores)
        self._peers: dict[tuple[CoreId, int, int], _Peers] = {}
        self._raised: dict[tuple[CoreId, int], deque[Foreign]] = {}

    def signal(
        self, core: CoreId, mode: int, flag: int, carried: Foreign
    ) -> list[tuple[CoreId, int]]:
        """Send what a core knows, heard once every peer has signalled; return who is told now.

        Each has the number of its counter.
        """
        peers = self._peers.get((core, mode, flag))
        if peers is None:
            members = self._topology.peers(core, mode)
            peers = _Peers(members, self._topology.counters(core, mode, flag))
            self._peers |= {(member, mode, flag): peers for member in members}
        joined = peers.signal(core, carried)
        if joined is None:
            return []
        for counter in peers.counters:
            queue = self._raised.get(counter)
            if queue is None:
                queue = self._raised[counter] = deque()
            queue.append(joined)
        return peers.counters

    def send(
        self, cores: Sequence[CoreId], sync: FftsCrossCoreSync, carried: Iterable[Foreign]
    ) -> list[tuple[CoreId, CoreId]]:
        """Send what each core knows; return who passed the hardware's limit, and of whose counter.

        Some modes are kept in global memory, not in a counter.
        """
        passed = []
        for core, known in zip(cores, carried, strict=True):
            counters = self.signal(core, sync.mode, sync.counter, known)
            if sync.mode not in {TO_ALL, TO_PARTNER}:
                over = (
                    receiver
                    for receiver, flag in counters
                    if self.count(receiver, flag) > CROSS_CORE_LIMIT
                )
                passed += [(core, receiver) for receiver in over]
        return passed

    def missing(self, receiver: CoreId, flag: int) -> list[CoreId]:
        """Return the cores whose signal a receiver lacks where others have sent theirs."""
        peers = {id(p): p for p in self._peers.values() if (receiver, flag) in p.counters}
        lacks = [p.unsent for p in peers.values()]
        return sorted({core for unsent in lacks for core in unsent})

    def count(self, core: CoreId, flag: int) -> int:
        """Return how high the counter of a core's flag stands."""
        return len(self._raised.get((core, flag), ()))

    def was_raised(self, core: CoreId, flag: int) -> bool:
        """Return whether a core's flag was signalled at any time."""
        return (core, flag) in self._raised

    def met(self, cores: Iterable[CoreId], flag: int) -> bool:
        """Return whether the wait of every core is met."""
        return all(self._raised.get((core, flag)) for core in cores)

    def heard(self, cores: Iterable[CoreId], flag: int) -> list[Foreign]:
        """Return what the waits have heard that cores have just ended."""
        return [self._raised[core, flag].popleft() for core in cores]

    def left(self) -> Iterator[tuple[CoreId, int, int]]:
        """Yield (core, flag, count) of the counters that stand above 0."""
        for (core, flag), queue in sorted(self._raised.items()):
            of_mode_4 = 0 <= flag - FIRST_OF_PARTS < 2 * CROSS_CORE_FLAGS
            if queue and (flag < CROSS_CORE_FLAGS or of_mode_4):
                yield core, flag, len(queue)


def send_judged(
    signals: Signals,
    log: FindingLog,
    core: CoreId,
    sync: FftsCrossCoreSync,
    where: Location,
    carried: Iterable[Foreign],
) -> None:
    """Send what a core knows, from a place, and log the counters that pass the hardware's limit."""
    for sender, receiver in signals.send([core], sync, carried):
        log.add(_overflow(sync, where, sender, receiver))


def _overflow(
    sync: FftsCrossCoreSync, where: Location, sender: CoreId, receiver: CoreId
) -> SanitizerFinding:
    """Return the finding of a counter that passes the hardware's limit."""
    message = (
        f"{signal_name(sync.counter)} of {receiver} must stand at {CROSS_CORE_LIMIT} at most, "
        f"got {CROSS_CORE_LIMIT + 1}; wait for it in between"
    )
    return SanitizerFinding("flag-overflow", message, sync.name, where, str(sender))
