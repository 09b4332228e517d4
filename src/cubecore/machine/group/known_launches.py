"""Launches of a kernel that issue what an earlier one did: their order need not be judged again.

Races, flags and what cores share depend on what is issued and on where it lies. Where values decide
neither, a launch that issues what one without findings did has none of these, either.
"""

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b

from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, Sync, WaitFlagDev
from cubecore.machine.group.recorder import Recorder
from cubecore.machine.group.sanitize.group_watch import ClocklessWatch
from cubecore.machine.group.shared_lines import SharedLines
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.racecheck import FollowAt

_MOST_LAUNCHES = 256


class KnownLaunches:
    """The numbers that a kernel's launches on a chip share, and which launches are in order."""

    def __init__(self) -> None:
        self.names = Names()
        self.lines = SharedLines(self.names)
        self.ordered: BoundedCache[Hashable, None] = BoundedCache(_MOST_LAUNCHES)
        self._signals: list[bool] = []
        self._steered: list[bool] = []

    def signals(self) -> Sequence[bool]:
        """Return which templates signal to other cores, or wait for them."""
        kinds = FftsCrossCoreSync, WaitFlagDev
        new = self.names.templates[len(self._signals) :]
        self._signals += [isinstance(template, kinds) for template in new]
        return self._signals

    def waits(self) -> Sequence[bool]:
        """Return which templates wait for other cores."""
        return [isinstance(template, WaitFlagDev) for template in self.names.templates]

    def issued(
        self, recorders: Sequence[Recorder], gm: GlobalMemory, checks: frozenset[str]
    ) -> Hashable:
        """Return what tells launches apart whose cores have ended; None where values decide."""
        # All that could make two launches differ in their order must be in the key, or forbid one:
        # values that a kernel asked for may change what it issues, values that steer an instruction
        # change what it touches. Neither is in the trace, so that such launches are judged every
        # time.
        new = self.names.templates[len(self._steered) :]
        self._steered += [_by_values(template) for template in new]
        digest = blake2b(digest_size=32)
        for core in recorders:
            if not core.thread.dead or core.asked or core.findings or core.kinds or core.failed:
                return None
            if core.records_any(self._steered):
                return None
            # The length separates one core's numbers from the next one's. Kinds are numbers of
            # `names`, which all launches of the kernel share.
            digest.update(len(core.trace).to_bytes(8))
            digest.update(core.trace.kinds)
            digest.update(core.trace.addresses)
        tensors = tuple((tensor.address, tensor.end, tensor.placed) for tensor in gm.tensors)
        return checks, tuple(core.id for core in recorders), tensors, digest.digest()


def _by_values(template: Instruction) -> bool:
    """Return whether values, or what they leave in registers, decide what a template touches."""
    return bool(template.steering) or template.reads_left or template.resolved_by_left


class OrderedWatch(ClocklessWatch):
    """Stands for the watch of a group in a launch that is known to be in order."""

    def syncer(self, _template: Sync, _where: Location) -> Callable[[], None]:
        """Follow no flag and no barrier."""
        return _nothing

    def followers(self, _template: Instruction, _registers: Registers) -> FollowAt:
        """Follow no instruction."""
        return _nothing

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        where: Location,
        registers: Registers,
    ) -> None:
        """Follow no instruction."""

    def finish(self) -> None:
        """Find nothing left behind."""


def _nothing(*_: object) -> None:
    """Follow nothing."""
