"""racecheck and synccheck of cores in lockstep: once for all of them, in program order.

Their local memories are touched alike. In global memory the first core stands for all: what a core
meets there of its own it meets as the others do, at another distance; what it might meet of another
core's is left to `cubecore.machine.reach`. Nothing is reported: lockstep ends where something would
be (`StrictLog`).
"""

from collections.abc import Callable, Sequence

from cubecore.isa.program import Location
from cubecore.isa.registers import Registers
from cubecore.isa.spec import Instruction, Mem
from cubecore.isa.topology import CoreId
from cubecore.machine.findings import Finding, FindingLog
from cubecore.machine.footprint import Footprint, footprints
from cubecore.machine.memory import GlobalMemory
from cubecore.machine.order import INDEX
from cubecore.machine.products import IrregularError
from cubecore.machine.races import CoreWatch, Sanitizer, touches
from cubecore.machine.reach import Reach
from cubecore.machine.touched import REGISTERS, LocalShadow, Touch, Touched, register_touch

NOWHERE = Location("", 0, "")
"""The place of what no finding will name."""


class StrictLog(FindingLog):
    """A log that takes no finding."""

    def add(self, finding: Finding, operand: str = "") -> None:
        """Give up, if the finding's check is on; what went wrong in memory always ends lockstep."""
        if finding.check in self.checks or finding.check in {"memcheck", "initcheck"}:
            raise IrregularError(finding.message)


class GroupWatch(CoreWatch):
    """Watches a group's first core."""

    def __init__(
        self,
        gm: GlobalMemory,
        log: FindingLog,
        cores: tuple[CoreId, Reach],
        *,
        joined: bool,
    ) -> None:
        first, self._reach = cores
        super().__init__(Sanitizer(gm, log, [first], joined=joined), first)
        self._gm = gm

    def _enter(self, pipe: int, found: Sequence[Touched]) -> None:
        for touched, address, touch in found:
            if touch.mem is Mem.GM:
                low, high = address + touched.low, address + touched.high
                tensor = self._reach.place(self._gm.at(low), low, high)
                self._reach.note(tensor, touched, address, writes=touch.writes)
        super()._enter(pipe, found)

    def together(self, pipe: int, found: list[Touched]) -> None:
        """Follow an instruction that touches other bytes in each core, as one that touches all."""
        distinct: dict[tuple[str, bytes, bytes, int], Touched] = {}
        for entry in found:
            touched, address, touch = entry
            bytes_of = touched.starts.tobytes(), touched.ends.tobytes()
            distinct.setdefault((touch.operand, *bytes_of, address), entry)
        kept = sorted(distinct.values(), key=lambda entry: entry[2].writes)
        self.order.submit(pipe, lambda: self._enter(pipe, kept), NOWHERE)

    def follower(self, template: Instruction) -> Callable[[tuple[int, ...]], None]:
        """Return the follower of a resolved template, which stores as it says (no atomic)."""
        order, pipe, plan = self.order, INDEX[template.pipe.value], []
        held = order.held[pipe]
        for place, (operand, touched) in enumerate(
            zip(template.operands(), footprints(template), strict=True)
        ):
            if touched is not None:
                access = operand.access
                touch = Touch(
                    *(template, operand.name, operand.mem, access.reads, access.writes, NOWHERE)
                )
                shadow = None if operand.mem is Mem.GM else self.shadow(operand.mem)
                plan.append((place, touched, shadow, touch))
        plan.sort(key=lambda entry: entry[3].writes)  # what it reads, it reads first

        def enter(addresses: tuple[int, ...]) -> None:
            number = order.enter(pipe)
            entered = []
            for place, touched, shadow, touch in plan:
                if shadow is None:
                    self._global(touched, addresses[place], touch, pipe, number)
                    continue
                region = shadow.region(touched, addresses[place])
                shadow.judge(region, pipe, touch)
                entered.append((region, touch))
            for region, shadow, touch in special:
                shadow.judge(region, pipe, touch)
                entered.append((region, touch))
            for region, touch in entered:
                LocalShadow.enter(region, pipe, number, touch)

        def follow(addresses: tuple[int, ...]) -> None:
            if held or order.stuck:
                order.submit(pipe, lambda: enter(addresses), NOWHERE)
            else:
                enter(addresses)

        return follow

    def _global(
        self, touched: Footprint, address: int, touch: Touch, pipe: int, number: int
    ) -> None:
        """Follow an access of the first core to global memory."""
        low, high = address + touched.low, address + touched.high
        tensor = self._reach.place(self._gm.at(low), low, high)
        self._reach.note(tensor, touched, address, writes=touch.writes)
        core = self._own, self.order, self.report
        self._launch.memory.touch(core, touched.at(address), pipe, number, touch)


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
