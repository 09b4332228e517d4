"""The start of each instruction of a vector function, and what it waited for.

The unit takes instructions in order into a window, issues those whose operands are there out of
order, the oldest first, and forgets them in order. What it may hold and the cycles of a loop's
start are the chip's; latencies are the instructions' own, of which readers do not wait for the
last cycles: results are forwarded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heappush, heapreplace
from typing import NamedTuple

from cubecore.chips.model import Chip
from cubecore.isa.vector.registers.issue.work import Port, UnitWork

_AT_ONCE = 2
"""Instructions that compute, and registers that are written, in a cycle; and the units for what
takes several cycles a register (*Reg*, issue of two instructions)."""
_ENTER_AT_ONCE = 8
"""Instructions that enter the window in a cycle: more than the ports can issue."""


class Wait(Enum):
    """The reason why an instruction did not start earlier."""

    ORDER = "the instructions before it"
    OPERAND = "an operand"
    PORT = "a port that is busy"
    BANK = "a bank of UB that is busy"
    WINDOW = "room in the window"
    QUEUE = "room among those that compute"
    LOOP = "the start of a loop"
    BARRIER = "a barrier"


class Started(NamedTuple):
    """One instruction's start: its cycle, when its result is there, and what it waited for.

    `by` is the number of the other instruction that it waited for, -1 of none.
    """

    start: int
    done: int
    wait: Wait
    by: int


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """The room of a chip's vector unit, and its own cycles (the chip's facts `vf_*`).

    `slots` are the instructions that compute of a cycle.
    """

    window: int
    queue: int
    forward_cycles: int
    loop_cycles: int
    slots: int = _AT_ONCE

    @staticmethod
    def of(chip: Chip) -> "VectorUnit":
        """Return a chip's unit.

        Raises
        ------
        RequestError
            If a fact of it is unknown.
        """
        names = ("window", "queue", "forward_cycles", "loop_cycles")
        return VectorUnit(*(int(chip.require(f"vf_{name}", "timing")) for name in names))


def schedule(work: Sequence[UnitWork], unit: VectorUnit) -> list[Started]:
    """Return the start of each instruction, in cycles from the first one's entry on."""
    run = _Run(unit)
    for each in work:
        run.start(each)
    return run.started


class _Run:
    """The unit while it runs: each instruction, in their order, gets the first cycle that fits.

    That is the same as issuing in each cycle the oldest one that is ready: an older instruction
    never waits for a younger one, so that its cycle does not hang on what comes behind it.
    """

    def __init__(self, unit: VectorUnit) -> None:
        self.started: list[Started] = []
        self._unit = unit
        # The window: the cycle in which the next instruction enters, how many have entered in it,
        # why not earlier; and for each one when all up to it are done, and which was the last.
        self._enters, self._entered, self._why = 0, 0, (Wait.ORDER, -1)
        self._retired: list[tuple[int, int]] = []
        # The latest starts of instructions that compute, as many as the queue holds: the next one
        # enters behind the earliest of these.
        self._queued: list[tuple[int, int]] = []
        # What is taken in a cycle: slots to compute, units for what takes several cycles, registers
        # written, banks of loads and stores; with the number of what took it last.
        self._slots: dict[int, tuple[int, int]] = {}
        self._writes: dict[int, int] = {}
        self._loads: dict[int, tuple[int, int]] = {}
        self._stores: dict[int, tuple[int, int]] = {}
        self._slow: dict[int, tuple[int, int]] = {}

    def start(self, work: UnitWork) -> None:
        """Give the next instruction its cycle."""
        # Three waits, one behind the other: for room in the window, for operands, and for a cycle
        # in which the port is free. The last that moved the start is the reason that is kept.
        number = len(self.started)
        start, (wait, by) = self._enter(number, work)
        for need in work.needs:
            done = self.started[need].done
            if done > start:
                start, wait, by = done, Wait.OPERAND, need
        ready = start
        if work.port is Port.COMPUTE:
            start, taken = self._compute(ready, work, number)
        elif work.port is not Port.BARRIER:
            start, taken = self._access(ready, work, number)
        if start > ready:
            wait, by = taken
        done = start + max(work.latency - self._unit.forward_cycles, 1)
        if work.writes:
            done = self._written(done, work.writes)
        self._retired.append(max(self._retired[-1], (done, number)) if number else (done, number))
        self.started.append(Started(start, done, wait, by))

    def _enter(self, number: int, work: UnitWork) -> tuple[int, tuple[Wait, int]]:
        """Let an instruction into the window behind those before it, when there is room."""
        oldest = number - self._unit.window
        if oldest >= 0:
            self._wait(*self._retired[oldest], Wait.WINDOW)
        if work.port is Port.BARRIER and number:
            self._wait(*self._retired[-1], Wait.BARRIER)
        if work.port is Port.COMPUTE and len(self._queued) == self._unit.queue:
            start, by = self._queued[0]
            self._wait(start + 1, by, Wait.QUEUE)
        if self._entered == _ENTER_AT_ONCE or (work.loops and self._entered):
            self._wait(self._enters + 1, number - 1, Wait.ORDER)
        entered = self._enters, self._why
        self._entered += 1
        if work.loops:  # what follows enters when the loop is set up
            self._wait(self._enters + 1 + self._unit.loop_cycles, number, Wait.LOOP)
        return entered

    def _wait(self, cycle: int, by: int, wait: Wait) -> None:
        """Let no instruction enter before a cycle."""
        if cycle > self._enters:
            self._enters, self._entered, self._why = cycle, 0, (wait, by)

    def _compute(self, ready: int, work: UnitWork, number: int) -> tuple[int, tuple[Wait, int]]:
        """Return the first cycle with a free slot, and who held the last that was not free."""
        # What takes several cycles needs a slot in its first one, and one of two units in all of
        # them: behind a unit that is busy the next cycle that may do is the one after it.
        slots, slow = self._slots, self._slow
        most, by = 0 if work.alone else self._unit.slots - 1, -1
        long = range(work.cycles) if work.cycles > 1 else range(0)
        start = ready
        while True:
            held = slots.get(start, _FREE)
            if held[0] > most:
                start, by = start + 1, held[1]
                continue
            busy = [n for n in long if slow.get(start + n, _FREE)[0] == _AT_ONCE]
            if not busy:
                break
            by = slow[start + busy[-1]][1]
            start += busy[-1] + 1
        slots[start] = (self._unit.slots if work.alone else held[0] + 1, number)
        for n in long:
            slow[start + n] = (slow.get(start + n, _FREE)[0] + 1, number)
        # The heap holds the latest starts only: its least one is when a place in the queue is free.
        if len(self._queued) < self._unit.queue:
            heappush(self._queued, (start, number))
        elif start > self._queued[0][0]:
            heapreplace(self._queued, (start, number))
        return start, (Wait.PORT, by)

    def _access(self, ready: int, work: UnitWork, number: int) -> tuple[int, tuple[Wait, int]]:
        """Return the first cycle in which a port and the banks are free, and who held them last.

        One load and one store share a cycle where they touch no bank both.
        """
        own, others = self._loads, self._stores
        if work.port is Port.STORE:
            own, others = others, own
        start, taken = ready, (Wait.PORT, -1)
        while True:
            if (held := own.get(start)) is not None:
                taken = (Wait.PORT, held[1])
            elif (held := others.get(start, _FREE))[0] & work.banks:
                taken = (Wait.BANK, held[1])
            else:
                break
            start += 1
        for cycle in range(start, start + work.cycles):
            own[cycle] = (work.banks, number)
        return start, taken

    def _written(self, done: int, writes: int) -> int:
        """Return the first cycle from one on in which results can be written."""
        taken = self._writes
        while taken.get(done, 0) + writes > _AT_ONCE:
            done += 1
        taken[done] = taken.get(done, 0) + writes
        return done


_FREE = (0, -1)
