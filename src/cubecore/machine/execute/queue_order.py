"""Orders of a core's queues: program, late, early or random, within what the flags allow.

Program order is one of the orders that a core may take. A `Queues` takes another: each pipe has a
queue, the scalar unit fills them, and a schedule says whose turn it is. Flags hold a pipe, and the
unit flags of L0C hold products and fixpipe. `Late` lets consumers run
before the producers that flags do not hold them behind, `Early` lets producers overtake consumers,
so that a missing flag changes the answer of one of them; `Drawn` draws. Two instructions of a pipe
without a barrier between them may change places, unless the hardware keeps them in order. Stores of
the scalar unit to local memory have a queue, too, in which they are in order, and land last in
`Late` and `Early`; in `Early` before an instruction that nothing keeps ahead of them, if they meet
its bytes. The scalar unit itself sees them at once.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from cubecore.cache import BoundedCache
from cubecore.errors import CubecoreError, DeadlockError, Violation
from cubecore.isa.declare.instruction import Instruction, Mem, Pipe
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.store import stores_locally
from cubecore.isa.scalar.sync import (
    FftsCrossCoreSync,
    Lock,
    PipeBarrier,
    SetFlag,
    Sync,
    Unlock,
    WaitFlag,
    joined_pipes,
)
from cubecore.machine.execute.unit_flag_gate import UnitGate
from cubecore.machine.memory.buffers import MemoryBuffer
from cubecore.machine.memory.footprint import footprints
from cubecore.machine.options import require_order

Recorded = tuple[Instruction, tuple[int, ...], Location]
_LATE = ("S", "MTE3", "FIX", "V", "M", "MTE1", "MTE2")
"""Pipes as data leaves the core, last first."""
_LEFT_BY_VECTORS = ("cmp_mask", "kept", "stored_by_ar", "extreme", "merged")
"""Registers that instructions of V leave for others, when they run."""


class Schedule(Protocol):
    """Chooses among what may run next, and how long lines stay in the data cache."""

    @property
    def holds_lines(self) -> bool:
        """True if lines stay until they are cleaned; else each is written back at once."""
        ...

    def pipe(self, ready: Sequence[str]) -> str:
        """Return the pipe whose turn it is."""
        ...

    def place(self, count: int) -> int:
        """Return which of `count` instructions of a pipe that may change places runs."""
        ...

    @property
    def overtakes(self) -> bool:
        """True if a store of the scalar unit lands at once where queues hold what it meets."""
        ...

    def core(self, count: int) -> int:
        """Return which of `count` ready cores runs."""
        ...


class Late:
    """Consumers first, producers last; of a pipe the last instruction first; the last core."""

    holds_lines = True
    overtakes = False

    def pipe(self, ready: Sequence[str]) -> str:
        """Return the pipe nearest to the way out; stores of the scalar unit are the last."""
        return min(_stores_last(ready), key=_LATE.index)

    def place(self, count: int) -> int:
        """Return the last."""
        return count - 1

    def core(self, count: int) -> int:
        """Return the last."""
        return count - 1


class Early(Late):
    """Producers first: they overwrite what consumers have not read yet."""

    holds_lines = False
    overtakes = True

    def pipe(self, ready: Sequence[str]) -> str:
        """Return the pipe furthest from the way out; stores of the scalar unit are the last."""
        return max(_stores_last(ready), key=_LATE.index)


def _stores_last(ready: Sequence[str]) -> Sequence[str]:
    return [pipe for pipe in ready if pipe != "S"] or ready


class Drawn:
    """Draws; pipes have weights that differ by orders of magnitude, so that some run far ahead."""

    holds_lines = True
    overtakes = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._weights = dict(zip(_LATE, 10.0 ** self._rng.uniform(-3, 3, len(_LATE)), strict=True))

    def pipe(self, ready: Sequence[str]) -> str:
        """Return one by its weight."""
        chance = np.array([self._weights[pipe] for pipe in ready])
        return ready[int(self._rng.choice(len(ready), p=chance / chance.sum()))]

    def place(self, count: int) -> int:
        """Return any."""
        return int(self._rng.integers(count)) if count > 1 else 0

    def core(self, count: int) -> int:
        """Return any."""
        return int(self._rng.integers(count)) if count > 1 else 0


_FIXED: dict[str, type[Late]] = {"late": Late, "early": Early}


def schedule_of(order: str) -> Schedule | None:
    """Return the schedule called ``late``, ``early`` or ``random:SEED``; None for ``program``.

    Raises
    ------
    RequestError
        If no order has that name.
    """
    require_order(order)
    if order == "program":
        return None
    if order in _FIXED:
        return _FIXED[order]()
    return Drawn(int(order.removeprefix("random:")))


@dataclass(eq=False, slots=True)
class _Entry:
    """An entry of a queue: an instruction and the registers at its issue, or a flag."""

    recorded: Recorded
    registers: Registers
    unlocks: int = 0
    """Unlocks of its mutex that a lock, or an unlock that does not block, waits for."""
    send: Callable[[], None] | None = None
    """Sends a signal to other cores, with what is known at its issue."""

    @property
    def template(self) -> Instruction:
        return self.recorded[0]

    @property
    def orders(self) -> bool:
        """True if nothing of its pipe changes places with it."""
        return isinstance(self.template, Sync)


class Machine(Protocol):
    """The protocol of an executor of instructions: a core."""

    registers: Registers

    @property
    def id(self) -> CoreId:
        """The core."""
        ...

    def perform(self, recorded: Recorded) -> None:
        """Run an instruction now."""
        ...


@dataclass(eq=False)
class Queues:
    """The queues of one core; `stuck_at` is where its first pipe stands in a deadlock."""

    schedule: Schedule
    core: Machine
    signal: Callable[[FftsCrossCoreSync, Location], Callable[[], None]]
    """Takes the issue of a signal to other cores; returns what sends it."""
    follow: Callable[[Recorded], None] | None = None
    """Told what is issued, in program order."""
    up: set[tuple[str, str, int]] = field(default_factory=set)
    stuck_at: Location | None = None

    def __post_init__(self) -> None:
        self._queues: dict[str, deque[_Entry]] = {pipe: deque() for pipe in _LATE}
        self._units = UnitGate()
        self._unlocks, self._unlocked = Counter[int](), Counter[int]()
        self._unlocking: list[tuple[int, int]] = []
        self._reordered = BoundedCache[Instruction, Instruction]()

    # Three kinds of issues: joined pipes are drained on the spot; the scalar unit's own
    # instructions run at once, waiting by letting other queues run; all else is appended to its
    # pipe's queue.
    def issue(self, recorded: Recorded) -> None:
        """Take what the scalar unit issues; it stands still where it waits itself."""
        template = recorded[0]
        if self.follow is not None:
            self.follow(recorded)
        if joined := joined_pipes(template):
            self.drain(joined)
            return
        if isinstance(template, SetFlag):
            pipe = template.src
        elif isinstance(template, WaitFlag):
            pipe = template.dst
        elif isinstance(template, (FftsCrossCoreSync, PipeBarrier, Lock, Unlock)):
            pipe = template.on
        else:
            pipe = template.pipe.value
        if pipe == "S" and self._is_queued(template):
            self._queue(pipe, recorded)
            if self.schedule.overtakes and self._meets(recorded):
                while self._queues["S"]:
                    self._run(self._queues["S"])
        elif pipe == "S" or type(template).apply is not Instruction.apply:
            self._scalar(recorded)  # registers that are set are those of every later issue
        else:
            self._queue(pipe, recorded)
        if isinstance(template, Unlock):
            self._unlocks[template.mutex_id] += 1

    def _queue(self, pipe: str, recorded: Recorded) -> None:
        """Append what is issued to a pipe's queue, with what is known of it now."""
        template, send = recorded[0], None
        unlocks = self._earlier_unlocks(template)
        if isinstance(template, FftsCrossCoreSync):
            send = self.signal(template, recorded[2])
        performed = self._in_its_order(template), *recorded[1:]
        self._queues[pipe].append(_Entry(performed, self.core.registers, unlocks, send))

    def _earlier_unlocks(self, template: Instruction) -> int:
        """Return how many unlocks of its mutex a lock or an unlock waits for."""
        if isinstance(template, (Lock, Unlock)) and isinstance(template, Lock) != bool(
            template.mode
        ):
            return self._unlocks[template.mutex_id]
        return 0

    def _unlock(self, mutex: int, earlier: int) -> None:
        """Give a mutex back once so many earlier unlocks have run, and others that wait for it."""
        self._unlocking.append((mutex, earlier))
        while True:
            free = [each for each in self._unlocking if self._unlocked[each[0]] >= each[1]]
            if not free:
                return
            self._unlocking.remove(free[0])
            self._unlocked[free[0][0]] += 1

    def _in_its_order(self, template: Instruction) -> Instruction:
        """Return an instruction with its own accesses in an order of the schedule."""
        if type(template).reordered is Instruction.reordered:
            return template
        performed = self._reordered.get(template)
        if performed is None:
            performed = self._reordered[template] = template.reordered(self.schedule.place)
        return performed

    def _is_queued(self, template: Instruction) -> bool:
        """Return whether it is a store of the scalar unit that may land late, or is behind one."""
        behind = isinstance(template, (SetFlag, Unlock, FftsCrossCoreSync))
        return stores_locally(template) or (behind and bool(self._queues["S"]))

    def _meets(self, recorded: Recorded) -> bool:
        """Return whether a store of the scalar unit meets bytes of an instruction in a queue."""
        runs = _runs_of(*recorded[:2], self.core.registers)
        queued = [entry for pipe, queue in self._queues.items() if pipe != "S" for entry in queue]
        return any(
            mem is other and low < end and start < high
            for entry in queued
            for other, start, end in _runs_of(*entry.recorded[:2], entry.registers)
            for mem, low, high in runs
        )

    def forwarded(self, mem: Mem, memory: MemoryBuffer) -> MemoryBuffer:
        """Return a local memory as the scalar unit sees it: its own stores have landed."""
        # Store-to-load forwarding: in a copy of the memory all queued stores land, in their order.
        stores = [entry for entry in self._queues["S"] if not entry.orders]
        if not stores:
            return memory
        seen = MemoryBuffer.over(memory.data.copy(), memory.valid.copy())
        for store in stores:
            template, addresses, _ = store.recorded
            values = template.compute({}, store.registers)
            for operand, at in zip(template.operands(), addresses, strict=True):
                raw = np.frombuffer(values[operand.name].tobytes(), np.uint8)
                if operand.mem is mem and 0 <= at <= memory.size_bytes - raw.size:
                    seen.data[at : at + raw.size] = raw
                    seen.valid[at : at + raw.size] = 1
        return seen

    def _scalar(self, recorded: Recorded) -> None:
        template, _, where = recorded
        if isinstance(template, SetFlag):
            self.up.add(_flag(template))
        elif isinstance(template, WaitFlag):
            while _flag(template) not in self.up:
                self._step(recorded)
            self.up.discard(_flag(template))
        elif isinstance(template, Lock):
            while self._unlocked[template.mutex_id] < self._earlier_unlocks(template):
                self._step(recorded)
        elif isinstance(template, Unlock):
            self._unlock(template.mutex_id, self._earlier_unlocks(template))
        elif isinstance(template, FftsCrossCoreSync):
            self.signal(template, where)()
        else:
            self.core.perform(recorded)

    def drain(self, pipes: Sequence[str] = _LATE) -> None:
        """Run everything that some pipes were given, and of the others what is chosen before.

        Raises
        ------
        DeadlockError
            If no signal meets a wait.
        """
        while any(self._queues[pipe] for pipe in pipes):
            self._step(None)

    def _step(self, waiting: Recorded | None) -> None:
        # Only heads count: a pipe whose head waits for a flag is held, whatever stands behind it.
        ready = [pipe for pipe, queue in self._queues.items() if queue and self._runs(queue[0])]
        if not ready:
            raise self._stuck(waiting)
        self._run(self._queues[self.schedule.pipe(ready)])

    def _stuck(self, waiting: Recorded | None) -> DeadlockError:
        """Return what no pipe gets past; the scalar unit itself may be `waiting`."""
        heads = {pipe: queue[0].recorded for pipe, queue in self._queues.items() if queue}
        if waiting is not None:
            heads = {"S": waiting, **heads}
        self.stuck_at = next(iter(heads.values()))[2]
        stuck = ", ".join(f"{pipe} {_waits(*recorded)}" for pipe, recorded in heads.items())
        sentence = f"{self.core.id}: {stuck}"
        return DeadlockError([Violation("every wait", "", stuck, sentence=sentence)])

    def _runs(self, entry: _Entry) -> bool:
        template, addresses, _ = entry.recorded
        if isinstance(template, WaitFlag):
            return _flag(template) in self.up
        if isinstance(template, Lock):
            return self._unlocked[template.mutex_id] >= entry.unlocks
        return self._units.lets(template, addresses, entry.registers)

    def _run(self, queue: deque[_Entry]) -> None:
        head = queue[0]
        if head.orders:
            queue.popleft()
            self._order(head)
            return
        # Within a pipe the schedule may take a later instruction first, as without a barrier
        # nothing says that the earlier one has completed.
        free = [index for index in _exchangeable(queue) if self._runs(queue[index])]
        index = free[self.schedule.place(len(free))]
        entry = queue[index]
        del queue[index]
        self._perform(entry)

    def _order(self, entry: _Entry) -> None:
        template = entry.template
        if isinstance(template, SetFlag):
            self.up.add(_flag(template))
        elif isinstance(template, WaitFlag):
            self.up.discard(_flag(template))
        elif isinstance(template, Unlock):
            self._unlock(template.mutex_id, entry.unlocks)
        elif entry.send is not None:
            entry.send()

    def _perform(self, entry: _Entry) -> None:
        """Run an instruction under the registers of its issue, and keep what it leaves in them."""
        # An instruction runs under the registers of its issue, though the scalar unit may have set
        # others since. Those that vector instructions leave (CMPMASK and its like) are the
        # exception: they flow in execution order, from the last instruction that ran.
        issued = self.core.registers
        if entry.template.pipe is Pipe.S:  # a store has the values of its issue
            self.core.registers = entry.registers
            self.core.perform(entry.recorded)
            self.core.registers = issued
            return
        left = {name: getattr(issued, name) for name in _LEFT_BY_VECTORS}
        self.core.registers = replace(entry.registers, **left)
        self.core.perform(entry.recorded)
        self._units.turn(*entry.recorded[:2], entry.registers)
        left = {name: getattr(self.core.registers, name) for name in _LEFT_BY_VECTORS}
        self.core.registers = replace(issued, **left)


def _runs_of(
    template: Instruction, addresses: tuple[int, ...], registers: Registers
) -> list[tuple[Mem, int, int]]:
    """Return the local bytes that an instruction touches, as runs; none where it is not legal."""
    try:
        resolved, at_operands = template.resolved(registers).rebased(addresses)
        touched_by = footprints(resolved)
    except (CubecoreError, ValueError):
        return []
    starts = resolved.operand_addresses(at_operands)
    operands = zip(resolved.operands(), starts, touched_by, strict=True)
    return [
        (operand.mem, at + touched.low, at + touched.high)
        for operand, at, touched in operands
        if touched is not None and operand.mem is not Mem.GM
    ]


def _waits(template: Instruction, _: tuple[int, ...], where: Location) -> str:
    if isinstance(template, WaitFlag):
        src, dst, event = _flag(template)
        return f"waits at {where} for flag {src} -> {dst} {event}"
    if isinstance(template, Lock):
        return f"waits at {where} for an unlock of mutex {template.mutex_id}"
    return f"waits at {where} for the unit flags of {template.name}"


def _flag(template: SetFlag | WaitFlag) -> tuple[str, str, int]:
    return template.src, template.dst, template.event_id


_MOST_EXCHANGED = 8
"""Instructions of a pipe that are looked at for a change of places."""


def _exchangeable(queue: deque[_Entry]) -> list[int]:
    """Return the places of the instructions that may be the pipe's next."""
    free: list[int] = []
    # An instruction is free if the hardware keeps it behind none of those before it, in any memory
    # that it touches. A flag or a barrier ends the search: nothing overtakes it.
    for index in range(min(len(queue), _MOST_EXCHANGED)):
        entry = queue[index]
        if entry.orders:
            break
        mems = {operand.mem for operand in entry.template.operands()}
        earlier = [queue[before].template for before in range(index)]
        if not any(entry.template.keeps_behind(e, mem) for e in earlier for mem in mems):
            free.append(index)
    return free
