"""Deferred log of what a group issues, so that each core can be followed on its own later.

Nothing is judged while the group executes; `per_core_replay` goes through the notes.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, Sync, WaitFlagDev
from cubecore.machine.group.sanitize.aliasing import GroupAliasing
from cubecore.machine.group.sanitize.group_watch import Clock, ClocklessWatch, GroupWatch
from cubecore.machine.group.sanitize.shared_memory import SharedMemory
from cubecore.machine.memory.footprint import Outside, outside
from cubecore.machine.sanitize.flags import Foreign
from cubecore.machine.sanitize.racecheck import FollowAt, Sanitizer, touches
from cubecore.machine.sanitize.shadow_memory import MemoryAccess, Touched

_ROOM = 1 << 16
"""Findings that one note may lead to: their numbers are kept for them."""


class Follower(Protocol):
    """A core that is followed on its own; its clock numbers what it finds."""

    clock: Clock

    def sync(self, template: Sync) -> None:
        """Follow a flag or a barrier of the core itself."""
        ...

    def signal(self, template: FftsCrossCoreSync) -> None:
        """Follow a signal to others."""
        ...

    def wait(self, template: WaitFlagDev) -> None:
        """Follow a wait for others, or stay there."""
        ...

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        registers: Registers,
        touched: Outside,
        order: int,
    ) -> None:
        """Follow an instruction, so many-th in lockstep, at its operands' addresses."""
        ...

    def scalar_read(self, touch: MemoryAccess, low: int, high: int, order: int) -> None:
        """Follow the scalar unit's own read of bytes [low, high)."""
        ...

    def finish(self) -> None:
        """Judge what is left behind."""
        ...


class Note(NamedTuple):
    """One thing that cores of a group did: at which issue of the first, its number, and what.

    `order` is its number among those of the launch. `follow` takes a core, its row, and `order`.
    """

    issue: int
    number: int
    order: int
    follow: Callable[[Follower, int, int], None]


NoteOfCore = tuple[Note, int, int]
"""A note, the row of a core in its group, and by how much the number of its issue is greater."""
_Call = tuple[int, Callable[[Follower, int], None]]


class DeferredRows:
    """Stands where the reference engine expects the watches of cores: each one's calls, numbered.

    `each` takes them in the end; None: they were seen before.
    """

    def __init__(
        self, clock: Clock, each: Callable[[Sequence[Sequence[_Call]]], None] | None
    ) -> None:
        self._clock, self._each = clock, each
        self._calls: list[list[_Call]] = []
        self._touched: list[Touched] = []

    def next_core(self) -> "DeferredRows":
        """Go on with the next core."""
        self._calls.append([])
        self._touched = []
        return self

    def touched_by_core(self) -> Sequence[Touched]:
        """Return what the core has touched."""
        return self._touched

    def settle(self, _template: Instruction | None, _where: Location) -> None:
        """Hand the calls on."""
        if self._each is not None and any(self._calls):
            self._each(self._calls)

    def _take(self, call: Callable[[Follower, int], None]) -> None:
        self._calls[-1].append((self._clock.found, call))
        self._clock.found += _ROOM

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        where: Location,
        registers: Registers,
    ) -> None:
        """Note an instruction."""
        self._touched += touches(template, addresses, where, registers)
        # The addresses are copied: the caller reuses the list it hands over.
        at, touched = tuple(addresses), outside(template) if addresses else ()
        self._take(lambda core, order: core.touch(template, at, registers, touched, order))

    def sync(self, template: Sync, _where: Location) -> None:
        """Note a flag or a barrier."""
        self._take(lambda core, _: core.sync(template))

    def scalar_read(self, touch: MemoryAccess, low: int, high: int) -> None:
        """Note a read of the scalar unit."""
        self._take(lambda core, order: core.scalar_read(touch, low, high, order))


class DeferredLog(ClocklessWatch):
    """Stands for the watch of a group whose cores are judged one by one."""

    notes_each = True

    def __init__(
        self,
        order: Iterator[int],
        sanitizer: Sanitizer,
        cores: Sequence[CoreId],
        aliasing: GroupAliasing,
        shared: SharedMemory | None,
        clock: Clock,
    ) -> None:
        super().__init__(sanitizer, cores, aliasing, shared, clock)
        self._clock, self._order, self._ids = clock, order, cores
        self._notes: list[Note] = []

    def notes_of(self, core: CoreId) -> Iterator[NoteOfCore]:
        """Yield the notes, if the core is one of the group's."""
        if core in self._ids:
            row, ahead = self._ids.index(core), self._clock.ahead.get(core, 0)
            for note in self._notes:
                yield note, row, ahead

    def _take(self, follow: Callable[[Follower, int, int], None]) -> None:
        # The numbers [found, found + _ROOM) belong to this note: what a replay finds here gets a
        # number between those of its neighbours, whenever it is judged.
        clock = self._clock
        self._notes.append(Note(clock.issue, clock.found, next(self._order), follow))
        clock.found += _ROOM

    # --- what all cores do alike

    def syncer(self, template: Sync, _where: Location) -> Callable[[], None]:
        """Note a flag or a barrier."""
        return partial(self._take, lambda core, _row, _order: core.sync(template))

    def followers(self, template: Instruction, registers: Registers) -> FollowAt:
        """Return what notes a resolved template, wherever it is issued."""
        touched = outside(template)

        def follow(addresses: Sequence[int], _where: Location) -> None:
            # The distances are those of now and may change before the replay; they are taken by
            # value, a global operand's for each core.
            at = tuple(addresses)
            far = [(number, self._aliasing.far_at(self._gm, at[number])) for number, *_ in touched]

            def of_core(core: Follower, row: int, order: int) -> None:
                own = list(at)
                for number, distances in far:
                    own[number] += int(distances[row])
                core.touch(template, own, registers, touched, order)

            self._take(of_core)

        return follow

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        where: Location,
        registers: Registers,
    ) -> None:
        """Note an instruction."""
        self.followers(template, registers)(addresses, where)

    def finish(self) -> None:
        """Note the end."""
        self._take(lambda core, _row, _order: core.finish())

    def follow_up(self, _places: Sequence[tuple[GroupWatch, int]]) -> None:
        """Go on with cores of other watches: each core's notes are one after another."""

    def release(self) -> None:
        """Drop the notes, which refer to templates and registers."""
        super().release()
        self._notes.clear()

    # --- what each does by itself

    def row_by_row(self, *, steered: bool, followed: bool) -> DeferredRows:
        """Return what notes an instruction that the cores make one after another."""
        return DeferredRows(self._clock, None if followed else self._take_each)

    def _take_each(self, calls: Sequence[Sequence[_Call]]) -> None:
        def of_core(core: Follower, row: int, order: int) -> None:
            for number, call in calls[row]:
                core.clock.found = number
                call(core, order)

        self._take(of_core)

    # --- signals

    def signal(self, template: FftsCrossCoreSync, where: Location) -> Foreign:
        """Note a signal."""
        self._take(lambda core, _row, _order: core.signal(template))
        return super().signal(template, where)

    def wait(self, template: WaitFlagDev) -> None:
        """Note a wait for others."""
        self._take(lambda core, _row, _order: core.wait(template))

    def overflowed(self) -> None:
        """Take that a counter passes its limit: each core's signals show it."""
