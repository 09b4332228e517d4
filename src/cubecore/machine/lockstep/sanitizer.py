"""racecheck, synccheck and usecheck of cores in lockstep: once for all of them, in program order.

Their local memories are touched alike. In global memory the first core stands for all: what a core
meets there of its own it meets as the others do, at another distance; what it might meet of another
core's is left to `aliasing`. Nothing is reported: lockstep ends where something would
be (`StrictLog`).
"""

from collections.abc import Sequence

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.aliasing import GroupAliasing
from cubecore.machine.lockstep.cross_core import CrossCore
from cubecore.machine.lockstep.group_order import GroupOrder
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitizer.findings import USECHECK, FindingLog, SanitizerFinding
from cubecore.machine.sanitizer.happens_before import INDEX
from cubecore.machine.sanitizer.racecheck import CoreWatch, Sanitizer, touches
from cubecore.machine.sanitizer.shadow_memory import MemoryAccess, Region, Touched

NOWHERE = Location("", 0, "")
"""The place of what no finding will name."""


class StrictLog(FindingLog):
    """A log that takes no finding."""

    def add(self, finding: SanitizerFinding, operand: str = "") -> None:
        """Give up, if the finding's check is on; what went wrong in memory always ends lockstep."""
        if finding.check in self.checks or finding.check in {"memcheck", "initcheck"}:
            raise IrregularError(finding.message)


class GroupWatch(CoreWatch):
    """Watches a group's first core."""

    def __init__(
        self,
        gm: GlobalMemory,
        log: FindingLog,
        cores: tuple[Sequence[CoreId], GroupAliasing],
        cross: CrossCore | None = None,
        *,
        joined: bool,
    ) -> None:
        self._cores, self._reach = cores
        super().__init__(Sanitizer(gm, log, self._cores[:1], joined=joined), self._cores[0])
        self._gm, self._cross = gm, cross
        self._own: GroupOrder | None = None
        if cross is not None:
            numbers = [cross.numbers[core] for core in self._cores]
            count = len(cross.numbers)
            self._own = GroupOrder(self._fault, cross.next_group(), numbers, count)
            self.order = self._own

    @property
    def uses(self) -> bool:
        """True if unread results are looked for: then the reader of each byte counts."""
        return USECHECK in self._launch.log.checks

    def enter(self, pipe: int, found: list[Touched]) -> None:
        """Follow an instruction that touches the same on every core, or of which that counts."""
        self.order.submit(pipe, lambda: self._enter(pipe, found), NOWHERE)

    def together(self, pipe: int, found: list[Touched]) -> None:
        """Follow an instruction that touches other bytes in each core, as one that touches all."""
        distinct: dict[tuple[str, Footprint, int], Touched] = {}
        for entry in found:
            touched, address, touch = entry
            distinct.setdefault((touch.operand, touched, address), entry)
        kept = sorted(distinct.values(), key=lambda entry: entry[2].writes)

        def enter() -> None:
            self._require_alike(kept)
            self._enter(pipe, kept)

        self.order.submit(pipe, enter, NOWHERE)

    def signal_all(self, sync: FftsCrossCoreSync) -> None:
        """Follow a signal of every core to others."""
        if self._cross is None or self._own is None:
            raise IrregularError("cores that signal others")
        self._cross.signal(self._cores, self._own, INDEX[sync.on], sync)

    def may_hear(self, flag: int) -> bool:
        """Return whether every core's wait for others is met."""
        return self._cross is not None and self._cross.may_hear(self._cores, flag)

    def hear_all(self, flag: int) -> None:
        """Follow the end of every core's wait for others."""
        if self._cross is None or self._own is None:
            raise IrregularError("cores that wait for each other")
        self._cross.hear(self._cores, self._own, flag)

    def _require_alike(self, found: list[Touched]) -> None:
        """Require all cores to read the same of the results that are still unread."""
        reads: dict[str, set[Region]] = {}
        for touched, address, touch in found:
            if touch.reads and touch.mem is not Mem.GM:
                region = self.shadow(touch.mem).region(touched, address, writes=False)
                fresh = {other for other, _ in region.near if other.fresh is not None}
                if reads.setdefault(touch.operand, fresh) != fresh:
                    raise IrregularError("results that some cores read")

    def _global(
        self, touched: Footprint, address: int, touch: MemoryAccess, pipe: int, number: int
    ) -> None:
        """Follow an access of the first core to global memory."""
        low, high = address + touched.low, address + touched.high
        tensor = self._reach.visible(self._gm.at(low), low, high)
        if self._cross is None or self._own is None:
            self._reach.note(tensor, touched, address, writes=touch.writes)
        else:
            place = tensor.address, self._reach.distances(tensor)
            by, writes = (pipe, number), touch.writes
            self._cross.shared.touch(self._own, place, (touched, address), by, writes=writes)
        super()._global(touched, address, touch, pipe, number)


class Collecting:
    """Stands where an engine expects a watch, and keeps what it is told for `together`."""

    def __init__(self) -> None:
        self.found: list[Touched] = []

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        where: Location,
        registers: Registers,
    ) -> None:
        """Keep an instruction's touches: `addresses` are those of its operands."""
        self.found.extend(touches(template, addresses, where, registers))
