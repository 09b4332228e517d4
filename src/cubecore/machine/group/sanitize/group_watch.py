"""racecheck, synccheck and usecheck of cores in lockstep: once for all of them, in program order.

Their local memories are touched alike. In global memory the first core stands for all: what a core
meets there of its own it meets as the others do, at another distance; what it might meet of another
core's is left to `aliasing` and `shared_memory`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, Sync, WaitFlagDev
from cubecore.machine.finding_kinds import SYNCCHECK, USECHECK
from cubecore.machine.group.sanitize.aliasing import GroupAliasing
from cubecore.machine.group.sanitize.divergence import EachError, UnlikeError
from cubecore.machine.group.sanitize.shared_memory import SharedMemory
from cubecore.machine.memory.buffers import GlobalTensor
from cubecore.machine.memory.footprint import Footprint, outside
from cubecore.machine.sanitize.core_schedule import Found
from cubecore.machine.sanitize.cross_core import NOTHING
from cubecore.machine.sanitize.finding_log import CountedFinding, FindingLog, Key, key_of
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.machine.sanitize.flags import FlagFault, Foreign
from cubecore.machine.sanitize.racecheck import (
    CoreWatch,
    FollowAt,
    Sanitizer,
    clocked_as,
    touches,
)
from cubecore.machine.sanitize.shadow_memory import Clash, MemoryAccess, Region, Touched


class Clock:
    """The number of the issue that a group's first core is at, and how much was found so far.

    `ahead`: by how much the numbers of other cores' issues, which had parted, are greater.
    """

    def __init__(self) -> None:
        self.issue, self.found = -1, 0
        self.ahead: Mapping[CoreId, int] = {}

    def start(self, issues: Mapping[CoreId, int]) -> None:
        """Go on where each core has made so many issues, the first core first."""
        first = next(iter(issues.values()))
        self.issue = first - 1
        self.ahead = {core: issue - first for core, issue in issues.items()}


class GroupLog(FindingLog):
    """The findings that some cores of a group make alike, by the number of their issue.

    `strict`: a finding might not be every core's, or not at this place: each core is judged.
    `own_bytes`: what is found now is in global memory, where each core has bytes of its own.
    """

    strict = own_bytes = False

    def __init__(self, checks: frozenset[str], cores: Sequence[CoreId], clock: Clock) -> None:
        super().__init__(checks, len(cores))
        self._cores, self._clock = cores, clock
        self._first: dict[Key, tuple[tuple[int, int], bool]] = {}

    def add(self, finding: SanitizerFinding, operand: str = "") -> None:
        """Count a finding."""
        if finding.check in self.checks:
            if self.strict:
                raise EachError(finding.message)
            # Findings of all groups are sorted in the end by (issue, number within the issue),
            # shifted for each core by how far its numbering had parted.
            clock = self._clock
            clock.found += 1
            own_bytes = self.own_bytes and len(self._cores) > 1
            at = (clock.issue, clock.found), own_bytes
            self._first.setdefault(key_of(finding, operand), at)
        super().add(finding, operand)

    def again(self, key: Key) -> CountedFinding | None:
        """Count a finding that is already there."""
        return None if self.strict else super().again(key)

    def found(self) -> Iterator[Found]:
        """Yield the findings."""
        for key, (at, own_bytes) in self._first.items():
            counted = self._tallies[key]
            times, ahead = counted.count, self._clock.ahead
            yield Found(key, counted.first, times, self._cores, at, ahead, own_bytes=own_bytes)


class GroupWatch(CoreWatch):
    """Watches a group's first core.

    `shared` orders its accesses of global memory among those of others, in a launch with signals.
    """

    log: GroupLog
    follows_lines = False  # where cores share some, each is judged (`lockstep.shared_lines`)
    notes_each = False
    """True if nothing is judged, and what each core does is noted."""

    def __init__(
        self,
        sanitizer: Sanitizer,
        cores: Sequence[CoreId],
        aliasing: GroupAliasing,
        shared: SharedMemory | None,
        clock: Clock,
    ) -> None:
        super().__init__(sanitizer, cores, GroupLog(sanitizer.log.checks, cores, clock))
        self._aliasing, self._gm, self._shared = aliasing, sanitizer.gm, shared
        self._some: dict[int, MemoryAccess] = {}
        """Accesses that stand for those of several cores, which touch other bytes each."""

    @property
    def tells_cores_apart(self) -> bool:
        """True if what each core touches counts: with unread results the reader of each byte."""
        return self.notes_each or USECHECK in self.log.checks

    def again(self, kind: str, earlier: MemoryAccess, later: MemoryAccess) -> bool:
        """Count a clash of two touches that were reported before; False if they were not."""
        return not self.log.strict and super().again(kind, earlier, later)

    def report(self, clash: Clash) -> None:
        """Log a race of every core.

        Raises
        ------
        EachError
            If it may be some cores' only.
        """
        reader = clash.earlier if clash.reader is None else clash.reader[1]
        if any(id(touch) in self._some for touch in (clash.earlier, clash.later, reader)):
            raise EachError("a race of some cores")
        self.log.own_bytes = Mem.GM in (clash.earlier.mem, clash.later.mem)
        super().report(clash)
        self.log.own_bytes = False

    def release(self) -> None:
        """Drop what refers back, and would keep global memory."""
        super().release()
        del self.order, self._units

    def hear(self, carried: Sequence[Foreign]) -> bool:
        """Follow the end of a wait; a finding behind it may be that of some cores."""
        alike = super().hear(carried)
        self.log.strict |= not alike
        return alike

    def overflowed(self) -> None:
        """Take that a counter passes its limit: which core's signal did it first is to be judged.

        Raises
        ------
        EachError
            If that is checked.
        """
        if SYNCCHECK in self.log.checks:
            raise EachError("a counter between cores that passes its limit")

    def wait(self, template: WaitFlagDev) -> None:
        """Begin to wait for others; the end of it counts."""

    def row_by_row(self, *, steered: bool, followed: bool) -> "RowByRow":
        """Return what watches an instruction that the cores make one after another.

        `steered`: by values, so that they may touch other bytes each. `followed`: it was seen.
        """
        if steered:
            return Collecting(None if followed else self.together)
        return Sharing(None if followed else self)

    def follow_up(self, places: Sequence[tuple["GroupWatch", int]]) -> None:
        """Go on with cores of watches that rest; each has a row in one of them.

        A result that only some of them left unread is kept as that of some cores.
        """
        self.order.follow_up([(watch.order, row) for watch, row in places])
        # Results that nobody has read yet live on in the joined watch. `copy` by `_replace` gives a
        # touch of its own identity, so that a later finding about it is known to concern some cores
        # only.
        left = [watch.unread() for watch in {id(watch): watch for watch, _ in places}.values()]
        for place, (pipe, touch) in {k: fresh for one in left for k, fresh in one.items()}.items():
            if any(one.get(place) != (pipe, touch) for one in left):
                touch = touch._replace()  # noqa: PLW2901 - a touch of its own, known by identity
                self._some[id(touch)] = touch
            mem, touched, address = place
            self.shadow(mem).region(touched, address, writes=True).fresh = pipe, touch

    def _fault(self, fault: FlagFault) -> None:
        """Log a fault; behind a deadlock nothing is followed, not even the order between cores."""
        if self.order.stuck and self._shared is not None:
            raise EachError(fault.message)
        super()._fault(fault)

    def followers(self, template: Instruction, registers: Registers) -> FollowAt:
        """Return what follows a resolved template at addresses, from wherever it is issued."""
        follow = super().followers(template, registers)
        if self._shared is not None:
            return follow
        noted = outside(template)
        if not noted:
            return follow

        def noting(addresses: Sequence[int], where: Location) -> None:
            for number, touched, writes in noted:
                self._note(touched, addresses[number], writes=writes)
            follow(addresses, where)

        return noting

    def submit(self, pipe: int, accesses: Sequence[Touched], where: Location) -> None:
        """Follow accesses of an instruction of a pipe."""
        self._note_all(accesses)
        super().submit(pipe, accesses, where)

    def enter(self, pipe: int, accesses: list[Touched], where: Location) -> None:
        """Follow an instruction that touches all that some core does."""
        self._some.update({id(touch): touch for _, _, touch in accesses})
        self.submit(pipe, accesses, where)

    def together(self, pipe: int, accesses: list[Touched], where: Location) -> None:
        """Follow an instruction that touches other bytes in each core, as one that touches all."""
        # The union of what all cores touch, judged once: no race in the union means no race on any
        # core. A race in it may be nobody's, hence `_some`: where one is found, each core is
        # judged. Reads come before writes, as within one instruction.
        distinct: dict[tuple[str, Footprint, int], Touched] = {}
        for entry in accesses:
            touched, address, touch = entry
            distinct.setdefault((touch.operand, touched, address), entry)
        kept = sorted(distinct.values(), key=lambda entry: entry[2].writes)
        if len(accesses) != len(kept) * len(self.order.cores):
            self._some.update({id(touch): touch for _, _, touch in kept})

        def enter() -> None:
            self._require_alike(kept)
            self._enter(pipe, kept)

        self._note_all(kept)
        self.order.submit(pipe, enter, where)

    def _require_alike(self, accesses: list[Touched]) -> None:
        """Require all cores to read the same of the results that are still unread."""
        reads: dict[str, set[Region]] = {}
        for touched, address, touch in accesses:
            # usecheck would take a result as read on all cores as soon as one core's bytes meet it.
            # If the reads differ by core, the union cannot tell who has read what.
            if touch.reads and touch.mem is not Mem.GM:
                region = self.shadow(touch.mem).region(touched, address, writes=False)
                fresh = {other for other, _ in region.near if other.fresh is not None}
                if reads.setdefault(touch.operand, fresh) != fresh:
                    raise EachError("results that some cores read")

    def _global(
        self, touched: Footprint, address: int, touch: MemoryAccess, pipe: int, number: int
    ) -> None:
        """Follow an access of the first core to global memory."""
        if self._shared is not None:
            tensor = self._tensor(touched, address)
            self._shared.touch(
                self.order,
                tensor.address,
                self._aliasing.distances(tensor),
                touched,
                address,
                pipe,
                number,
                writes=touch.writes,
            )
        super()._global(touched, address, touch, pipe, number)

    def _note_all(self, accesses: Sequence[Touched]) -> None:
        """Remember accesses, where cores do not signal: whatever order they have, or never get."""
        for touched, address, touch in accesses if self._shared is None else ():
            if touch.mem is Mem.GM:
                self._note(touched, address, writes=touch.writes)

    def _note(self, touched: Footprint, address: int, *, writes: bool) -> None:
        self._aliasing.note(self._tensor(touched, address), touched, address, writes=writes)

    def _tensor(self, touched: Footprint, address: int) -> GlobalTensor:
        tensor = self._gm.at(address + touched.low)
        if tensor is None or tensor is not self._gm.near(address):
            raise EachError("a core that leaves its tensor altogether")
        return tensor


class ClocklessWatch(GroupWatch):
    """A watch for groups between which no order is judged."""

    def signal(self, _template: FftsCrossCoreSync, _where: Location) -> Foreign:
        """Let signals carry no clocks."""
        return NOTHING[None].repeat(len(self.order.cores), axis=0)

    def hear(self, _carried: Sequence[Foreign]) -> bool:
        """Take no clocks."""
        return True


class RowByRow(Protocol):
    """Watches cores of a group that make an instruction one after another."""

    def next_core(self) -> "RowByRow":
        """Return what stands where the next core expects its watch."""
        ...

    def scalar_read(self, touch: MemoryAccess, low: int, high: int) -> None:
        """Follow the scalar unit's own read of bytes [low, high)."""
        ...

    def touched_by_core(self) -> Sequence[Touched]:
        """Return what the core has touched, in local memories at least."""
        ...

    def settle(self, template: Instruction | None, where: Location) -> None:
        """Follow what the cores have made: an instruction, or a read of the scalar unit."""
        ...


class Collecting:
    """Collects the accesses of each core, which may be others on each, to follow all at once."""

    def __init__(self, together: Callable[[int, list[Touched], Location], None] | None) -> None:
        self._together = together
        self._touched: list[Touched] = []
        self._before = 0

    def next_core(self) -> "Collecting":
        """Go on with the next core."""
        self._before = len(self._touched)
        return self

    def touched_by_core(self) -> Sequence[Touched]:
        """Return what the core has touched."""
        return self._touched[self._before :]

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        where: Location,
        registers: Registers,
    ) -> None:
        """Keep an instruction's touches: `addresses` are those of its operands."""
        self._touched.extend(touches(template, addresses, where, registers))

    def scalar_read(self, touch: MemoryAccess, low: int, high: int) -> None:
        """Keep a read of the scalar unit."""
        self._touched.append((Footprint.run(low, high), 0, touch))

    def settle(self, template: Instruction | None, where: Location) -> None:
        """Follow what all cores touched."""
        if self._touched and self._together is not None:
            assert template is not None
            self._together(clocked_as(template), self._touched, where)


class Sharing:
    """Stands where an engine expects a watch: the first core's is notified, the others must agree.

    None: it was told before.
    """

    def __init__(self, watch: CoreWatch | None) -> None:
        self._watch = watch
        self._reported: list[int] = []
        self._touched: list[Touched] = []
        """Touches of the first core; in local memories the others' are the same."""

    def next_core(self) -> "Sharing":
        """Go on with the next core."""
        self._reported.append(0)
        return self

    def touched_by_core(self) -> Sequence[Touched]:
        """Return what the core has touched in local memories: what the first one has."""
        return self._touched

    def _is_first(self) -> bool:
        # Counts what the current core has reported; the list is one long only during the first
        # core. Equal counts at the end mean that all cores made the instruction.
        self._reported[-1] += 1
        return len(self._reported) == 1

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        where: Location,
        registers: Registers,
    ) -> None:
        """Follow an instruction, if it is the first core's."""
        if self._is_first():
            self._touched.extend(touches(template, addresses, where, registers))
            if self._watch is not None:
                self._watch.touch(template, addresses, where, registers)

    def sync(self, template: Sync, where: Location) -> None:
        """Follow a flag or a barrier, if it is the first core's."""
        if self._is_first() and self._watch is not None:
            self._watch.sync(template, where)

    def scalar_read(self, touch: MemoryAccess, low: int, high: int) -> None:
        """Follow a read of the scalar unit, if it is the first core's."""
        if self._is_first() and self._watch is not None:
            self._watch.scalar_read(touch, low, high)

    def settle(self, _template: Instruction | None, _where: Location) -> None:
        """Require that every core made the instruction, or none did.

        Raises
        ------
        UnlikeError
            If some did and some did not.
        """
        if any(count != self._reported[0] for count in self._reported):
            raise UnlikeError("an instruction that some cores make", self._reported)


Watching = Callable[
    [Sanitizer, Sequence[CoreId], GroupAliasing, SharedMemory | None, Clock], GroupWatch
]
"""Makes the watch of a group."""
