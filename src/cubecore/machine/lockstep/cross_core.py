"""Cross-core state of a launch in lockstep: signals on their way, accesses that they order."""

from collections.abc import Sequence

from cubecore.isa.program.topology import CoreId, Topology
from cubecore.isa.scalar.sync import CROSS_CORE_LIMIT, FftsCrossCoreSync
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.group_order import GroupOrder
from cubecore.machine.lockstep.shared_memory import SharedMemory
from cubecore.machine.sanitizer.cross_core import Signals
from cubecore.machine.sanitizer.findings import SYNCCHECK, FindingLog


class CrossCore:
    """The signals on their way, and whose accesses of global memory they order."""

    def __init__(self, cores: Sequence[CoreId], log: FindingLog) -> None:
        self.numbers = {core: number for number, core in enumerate(cores)}
        self.shared = SharedMemory()
        self._signals, self._log = Signals(Topology(cores)), log
        self._groups = 0

    def next_group(self) -> int:
        """Return the number of one more group."""
        self._groups += 1
        return self._groups

    def signal(
        self, cores: Sequence[CoreId], order: GroupOrder, pipe: int, sync: FftsCrossCoreSync
    ) -> None:
        """Follow a signal of every core of a group.

        Raises
        ------
        IrregularError
            If it is none that these cores send, or a counter passes its limit.
        """
        if sync.mode == 1 and cores[0].is_aic:
            raise IrregularError("a signal that an AIC does not send")
        carried, signals = order.signal_all(pipe), self._signals
        for core, known in zip(cores, carried, strict=True):
            for receiver in signals.signal(core, sync.mode, sync.flag_id, known):
                if signals.count(receiver, sync.flag_id) > CROSS_CORE_LIMIT:
                    self._irregular("a counter between cores that passes its limit")

    def may_hear(self, cores: Sequence[CoreId], flag: int) -> bool:
        """Return whether the wait of every core of a group is met."""
        return all(self._signals.count(core, flag) for core in cores)

    def hear(self, cores: Sequence[CoreId], order: GroupOrder, flag: int) -> None:
        """Follow the end of a wait of every core of a group."""
        order.hear_all([self._signals.heard(core, flag) for core in cores])

    def finish(self) -> None:
        """Require that no counter stands above 0 at the end."""
        if any(self._signals.left()):
            self._irregular("a counter between cores that is left above 0")

    def _irregular(self, why: str) -> None:
        if SYNCCHECK in self._log.checks:
            raise IrregularError(why)
