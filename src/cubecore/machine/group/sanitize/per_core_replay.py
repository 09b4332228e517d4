"""Replay core by core: each core's own watch follows what its groups have noted.

The cores take the turns that they would take alone, so that what each finds, first and how often,
is what the reference engine finds. Values are not computed again; that lockstep touched bytes
which cores share in the same order is checked on the way.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, Sync, WaitFlagDev
from cubecore.machine.group.sanitize.byte_order import ByteOrder
from cubecore.machine.group.sanitize.deferred_log import NoteOfCore
from cubecore.machine.group.sanitize.group_watch import Clock, GroupLog
from cubecore.machine.memory.footprint import Footprint, Outside
from cubecore.machine.sanitize.core_schedule import Found, take_turns
from cubecore.machine.sanitize.cross_core import send_judged
from cubecore.machine.sanitize.racecheck import CoreWatch, Sanitizer
from cubecore.machine.sanitize.shadow_memory import MemoryAccess


class LoggedCore(NamedTuple):
    """A core, the place of each of its issues by its number, and its notes one after another."""

    core: CoreId
    where: Callable[[int], Location]
    notes: Iterable[NoteOfCore]


class EachCore:
    """A core on its way through the notes of its groups."""

    def __init__(self, sanitizer: Sanitizer, noted: LoggedCore, order: ByteOrder) -> None:
        core, self._where_of, notes = noted
        self.clock, self.ended = Clock(), False
        self.log = GroupLog(sanitizer.log.checks, [core], self.clock)
        self._watch = CoreWatch(sanitizer, [core], self.log)
        self._number = sanitizer.cores.index(core)
        self._cores, self._signals, self._order = [core], sanitizer.signals, order
        self._syncers: dict[tuple[int, int], Callable[[], None]] = {}
        self._waits: WaitFlagDev | None = None
        self._notes = iter(notes)
        self._next = next(self._notes, None)

    # --- turns

    @property
    def ready(self) -> bool:
        """True if the core has not ended, and waits for none or was told to go on."""
        return not self.ended and (
            self._waits is None or self._signals.met(self._cores, self._waits.counter)
        )

    def go_on(self) -> None:
        """Go on until the core waits or ends."""
        self._waits = None
        while self._next is not None:
            (issue, self.clock.found, order, follow), row, ahead = self._next
            self.clock.issue = issue + ahead
            follow(self, row, order)
            if self._waits is not None:
                return
            self._next = next(self._notes, None)
        self.ended = True

    # --- notes

    def _where(self) -> Location:
        """Return the place from which the core issued what it does now."""
        return self._where_of(self.clock.issue)

    def sync(self, template: Sync) -> None:
        """Follow a flag or a barrier of the core itself."""
        where = self._where()
        syncer = self._syncers.get((id(template), id(where)))  # both live as long as the trace
        if syncer is None:
            syncer = self._syncers[id(template), id(where)] = self._watch.syncer(template, where)
        syncer()

    def signal(self, template: FftsCrossCoreSync) -> None:
        """Follow a signal to others."""
        where = self._where()
        carried = self._watch.signal(template, where)
        send_judged(self._signals, self.log, self._cores[0], template, where, carried)

    def wait(self, template: WaitFlagDev) -> None:
        """Follow a wait for others, or stay there."""
        if self._signals.met(self._cores, template.counter):
            self._watch.hear(self._signals.heard(self._cores, template.counter))
        else:
            self._waits = template

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        registers: Registers,
        touched: Outside,
        order: int,
    ) -> None:
        """Follow an instruction, so many-th in lockstep, at its operands' addresses."""
        for operand, footprint, writes in touched:
            self._order.touch(order, self._number, footprint, addresses[operand], writes=writes)
        self._watch.touch(template, addresses, self._where(), registers)

    def scalar_read(self, touch: MemoryAccess, low: int, high: int, order: int) -> None:
        """Follow the scalar unit's own read of bytes [low, high)."""
        if touch.mem is Mem.GM:
            run = Footprint.run(low, high)
            self._order.touch(order, self._number, run, 0, writes=False)
        self._watch.scalar_read(touch, low, high)

    def finish(self) -> None:
        """Judge what is left behind."""
        self._watch.finish()

    def found(self) -> Iterator[Found]:
        """Return the findings, and drop the shadows that refer back."""
        self._watch.release()
        return self.log.found()


def judge_each(sanitizer: Sanitizer, noted: Iterable[LoggedCore], order: ByteOrder) -> list[Found]:
    """Return what each core finds in what the groups have noted, in the order of their making."""
    cores = [EachCore(sanitizer, of_core, order) for of_core in noted]
    take_turns(cores)
    return [found for core in cores for found in core.found()]
