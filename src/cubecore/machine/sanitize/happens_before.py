"""Happens-before order: a vector clock for each pipe, joined by flags and barriers.

Every pipe numbers what it is given. The clock of pipe p says, for each pipe q, up to which number
everything on q is complete before p's next instruction starts. A pipe's own clock does not advance
with its instructions: they start in order, and may still overlap, until a barrier or a round of
flags says otherwise. The scalar unit issues everything, so what it knows every later instruction
knows, but for its own stores to local memory: they may land late, and are known to a pipe behind a
flag of S or a barrier of all pipes alone. In clocks they count as a pipe of their own.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import EVENT_IDS, LOCK_MODES
from cubecore.machine.sanitize.flags import (
    PIPE_NAMES,
    PIPES,
    SCALAR,
    Act,
    Clock,
    Flag,
    FlagFault,
    Foreign,
    Held,
    stalled,
)

STORES = len(PIPES) - 1


@dataclass(eq=False, slots=True)
class _State:
    """A flag's life: the clock that it carries while it is up, and the last wait's number."""

    clock: Clock | None = None
    raised: Location | None = None
    taken: int = 0


@dataclass(eq=False, slots=True)
class _Unlock:
    """An unlock: its pipe, its clock once it has run, and what is done then."""

    pipe: int = -1
    clock: Clock | None = None
    then: list[Callable[[], None]] = field(default_factory=list)

    def run(self, clock: Clock) -> None:
        """Have run at a clock."""
        self.clock = clock
        for act in self.then:
            act()


@dataclass(eq=False, slots=True)
class _Mutex:
    """A mutex's life: its last unlock, and since when and in which mode it is locked."""

    last: _Unlock = field(default_factory=_Unlock)
    locked: Location | None = None
    mode: int = 0


class CoreOrder:
    """The clocks, flags and held instructions of a core, in program order.

    Cores that issue alike share one order. `numbers` are theirs in a launch of `cores`; `foreign`
    is what each of them knows of all. `fault` is called with what is wrong. After a deadlock
    everything later is ignored (`stuck`).
    """

    def __init__(
        self, fault: Callable[[FlagFault], None], numbers: Sequence[int] = (0,), cores: int = 1
    ) -> None:
        self.counts: Clock = [0] * len(PIPES)
        self.done = _rows_of([0] * len(PIPES))
        self.cores = np.array(numbers, np.int64)
        self._rows = np.arange(len(numbers))
        self.foreign: Foreign = np.zeros((len(numbers), cores, len(PIPES)), np.int64)
        self.held: list[deque[Held]] = [deque() for _ in PIPES]
        self.stuck = False
        self._fault = fault
        self._flags: dict[Flag, _State] = {}
        self._mutexes: dict[int, _Mutex] = {}
        self._unraised: Flag | None = None
        """The flag of the first wait that holds a pipe, if it was never set before."""
        self._at_hand: Clock = [0] * len(PIPES)
        """The order that the next instruction knows when it is issued."""
        self._version = 0
        self._seen = [0] * len(PIPES)

    @property
    def rests(self) -> bool:
        """True if all that comes later starts behind all that came before, with no flag up."""
        known, counts = self._at_hand, self.counts
        return not (
            self.stuck
            or any(self.held)
            or any(state.clock is not None for state in self._flags.values())
            or any(mutex.locked is not None for mutex in self._mutexes.values())
            or any(known[pipe] < counts[pipe] for pipe in range(len(PIPES)) if pipe != SCALAR)
        )

    def follow_up(self, places: Sequence[tuple["CoreOrder", int]]) -> None:
        """Start behind all that orders counted which rest; each core has a row in one of them."""
        counts = {id(order): order.counts for order, _ in places}.values()
        self.counts = [max(of_pipe) for of_pipe in zip(*counts, strict=True)]
        self.done, self._at_hand = _rows_of(self.counts), list(self.counts)
        self.foreign = np.stack([order.foreign[row] for order, row in places])

    # --- instructions

    def enter(self, pipe: int) -> int:
        """Return the number of a pipe's next instruction; its clock knows what the scalar does."""
        # A pipe takes over what the scalar unit knows only when that has changed: most instructions
        # come between two waits of S.
        if self._seen[pipe] != self._version:
            self._seen[pipe] = self._version
            _join(self.done[pipe], self._at_hand)
        number = self.counts[pipe] + 1
        self.counts[pipe] = number
        if pipe == SCALAR:
            self.done[SCALAR][SCALAR] = self._at_hand[SCALAR] = number
            self._version += 1
            self._seen[SCALAR] = self._version  # it has it already
        # The scalar unit knows its own stores in order; other pipes only behind a flag of S or a
        # barrier.
        elif pipe == STORES:
            self.done[SCALAR][STORES] = number
        return number

    def submit(
        self,
        pipe: int,
        act: Act,
        where: Location,
        *,
        awaits: Flag | None = None,
        raises: Flag | None = None,
    ) -> None:
        """Do `act` now, or when the pipe's wait before it is met."""
        if self.stuck:
            return
        if self.held[pipe]:
            scalar = list(self._at_hand)
            self.held[pipe].append(Held(act, where, scalar, self.foreign, awaits, raises))
        else:
            act()

    # --- flags

    def set_flag(self, flag: Flag, where: Location) -> None:
        """Raise a flag when everything before it on its source pipe is complete."""
        if self.stuck or self.held[flag.src]:
            self.submit(flag.src, lambda: self._raise(flag, where), where, raises=flag)
        else:
            self._raise(flag, where)

    def wait_flag(self, flag: Flag, where: Location) -> None:
        """Hold the destination pipe until the flag is up, and take it."""
        if self.stuck or self.held[flag.dst]:
            self.submit(flag.dst, lambda: None, where, awaits=flag)
        elif not self._take(flag):
            self._hold(flag, where)

    def _hold(self, flag: Flag, where: Location) -> None:
        if not any(self.held):
            self._unraised = None if flag in self._flags else flag
        wait = Held(lambda: None, where, list(self._at_hand), self.foreign, awaits=flag)
        self.held[flag.dst].append(wait)
        # The unit that would issue the set stands still: nothing can come.
        if flag.dst == SCALAR:
            self.give_up()

    def _raise(self, flag: Flag, where: Location) -> None:
        state = self._flags.get(flag)
        if state is None:
            state = self._flags[flag] = _State()
        number = self.enter(flag.src)
        clock = self.done[flag.src]
        if state.clock is not None:
            self._doubled(flag, where, f"set again at {where} while set since {state.raised}")
        # Set again before the last wait is known to have ended: on the chip the new flag may meet
        # the old wait.
        elif clock[flag.dst] < state.taken:
            self._doubled(flag, where, f"set at {where} before {PIPES[flag.dst]}'s last wait")
        state.clock = list(clock)
        state.clock[flag.src] = number
        state.raised = where
        if self.held[flag.dst]:
            self._resume(flag.dst)

    def _doubled(self, flag: Flag, where: Location, got: str) -> None:
        message = (
            f"flag {flag} needs a wait between two set_flags: it is {got}; make "
            f"{PIPES[flag.src]} wait for {PIPES[flag.dst]} first, or take another event"
        )
        self._fault(FlagFault("flag-doubled", "set_flag", message, where, flag))

    def _take(self, flag: Flag) -> bool:
        state = self._flags.get(flag)
        if state is None or state.clock is None:
            return False
        state.taken, state.clock = self._learn(flag.dst, state.clock), None
        return True

    def _learn(self, pipe: int, clock: Clock) -> int:
        """Let all that a pipe does from its next instruction on know a clock; return its number."""
        number = self.enter(pipe)
        _join(self.done[pipe], clock)
        if pipe == SCALAR:
            _join(self._at_hand, clock)
            self._version += 1
        return number

    def _resume(self, pipe: int) -> None:
        """Go on with a pipe whose wait may be met now."""
        # Held instructions know what was known when they were issued, which is put back behind
        # them.
        queue, version, foreign = self.held[pipe], self._seen[pipe], self.foreign
        while queue:
            head = queue[0]
            if head.awaits is not None:
                if not self._take_late(pipe, head):
                    break
                queue.popleft()
                # Values are computed in program order: a wait before its set has read what the chip
                # has not made yet.
                if head.awaits.event < EVENT_IDS:  # of a mutex the unlock is before the lock
                    self._late(head.awaits, head.where)
                continue
            queue.popleft()
            self._at_issue(pipe, head)
            head.act()
        self._seen[pipe], self.foreign = version, foreign

    def _at_issue(self, pipe: int, held: Held) -> None:
        """Let the pipe know what the scalar unit knew when it issued `held`, and no more."""
        _join(self.done[pipe], held.scalar)
        self._seen[pipe], self.foreign = self._version, held.foreign

    def _take_late(self, pipe: int, held: Held) -> bool:
        assert held.awaits is not None
        self._at_issue(pipe, held)
        return self._take(held.awaits)

    def _late(self, flag: Flag, where: Location) -> None:
        message = (
            f"flag {flag} is set after the wait for it, at {where}, in program order; values are "
            "computed in that order, and the chip's order is another"
        )
        self._fault(FlagFault("flag-late", "wait_flag", message, where, flag))

    # --- mutexes

    def lock(self, pipe: int, number: int, where: Location, mode: int = 0) -> None:
        """Hold a pipe until the last unlock of a mutex, if another pipe's, has run.

        In mode 1 nothing is held.
        """
        mutex = self._mutexes.setdefault(number, _Mutex())
        if self.stuck:
            return
        if mutex.locked is not None:
            self._unpaired(number, where, f"locked again at {where} while locked", mutex.locked)
        mutex.locked, mutex.mode = where, mode
        last = mutex.last
        # Free, or of the same pipe, whose instructions come in order.
        if mode or last.pipe in {-1, pipe}:
            return
        if last.clock is not None:
            self.submit(pipe, partial(self._learn, pipe, last.clock), where)
            return
        flag = Flag(last.pipe, pipe, EVENT_IDS + number)
        last.then.append(partial(self._unlocked, flag, last, where))
        self.wait_flag(flag, where)

    def unlock(self, pipe: int, number: int, where: Location, mode: int = 0) -> None:
        """Give a mutex back when everything before it on the pipe is complete.

        In mode 1 not before its last unlock has run, for which the pipe does not wait.
        """
        mutex = self._mutexes.setdefault(number, _Mutex())
        if mutex.locked is None and not self.stuck:
            self._unpaired(number, where, f"unlocked at {where} without a lock", None)
        elif mutex.mode != mode and not self.stuck:
            words = [LOCK_MODES[mode], LOCK_MODES[mutex.mode]]
            got = f"unlocked at {where} in {words[0]} and locked in {words[1]}"
            self._unpaired(number, where, got, None)
        before, mutex.last, mutex.locked = mutex.last, _Unlock(pipe), None
        self.submit(pipe, partial(self._unlock, mutex.last, before if mode else _Unlock()), where)

    def _unlock(self, unlock: _Unlock, before: _Unlock) -> None:
        number = self.enter(unlock.pipe)
        clock = list(self.done[unlock.pipe])
        clock[unlock.pipe] = number
        if before.pipe == -1:
            unlock.run(clock)
        elif before.clock is not None:
            self._unlock_behind(unlock, before, clock)
        else:
            before.then.append(partial(self._unlock_behind, unlock, before, clock))

    def _unlock_behind(self, unlock: _Unlock, before: _Unlock, clock: Clock) -> None:
        assert before.clock is not None
        _join(clock, before.clock)
        unlock.run(clock)

    def _unlocked(self, flag: Flag, unlock: _Unlock, where: Location) -> None:
        assert unlock.clock is not None
        self._flags[flag] = _State(list(unlock.clock), where)
        self._resume(flag.dst)

    def _unpaired(self, number: int, where: Location, got: str, since: Location | None) -> None:
        message = (
            f"mutex {number} needs lock and unlock by turns: it is {got}"
            f"{'' if since is None else f' since {since}'}"
        )
        self._fault(FlagFault("mutex-unpaired", "lock", message, where))

    # --- barriers, signals, the end

    def barrier(self, pipe: int, where: Location) -> None:
        """Start a pipe's later instructions after its earlier ones are complete."""

        def join() -> None:
            self.done[pipe][pipe] = self.enter(pipe)

        if self.stuck or self.held[pipe]:
            self.submit(pipe, join, where)
        else:
            join()

    def barrier_all(self, pipes: Sequence[int]) -> None:
        """Let everything later start after everything earlier on `pipes` and the scalar unit.

        One of them that is held is a deadlock.
        """
        if self.stuck:
            return
        if any(self.held[pipe] for pipe in pipes):
            self.give_up()
            return
        # A barrier of all pipes is an instruction of the scalar unit.
        self.counts[SCALAR] += 1
        for pipe in (*pipes, STORES):
            self.done[SCALAR][pipe] = self._at_hand[pipe] = self.counts[pipe]
        self._version += 1

    def signal(self, pipe: int) -> Foreign:
        """Return what a signal of each core carries when `pipe` gets to it."""
        number = self.enter(pipe)
        carried = self.foreign.copy()
        # A signal carries what the core knows of all others, and of itself what the signalling pipe
        # has done.
        of_core = np.maximum(carried[self._rows, self.cores], self.done[pipe])
        of_core[:, pipe] = number
        carried[self._rows, self.cores] = of_core
        return carried

    def hear(self, carried: Sequence[Foreign]) -> bool:
        """Know from here on what signals carried to each core; return whether all hear as much.

        Of itself no core hears less than is taken here; False if some hear more.
        """
        heard = np.stack(carried)
        self.foreign = np.maximum(self.foreign, heard)
        of_cores = np.maximum(heard[self._rows, self.cores], self._at_hand)
        # Cores in lockstep share one clock: the least that any of them hears of itself.
        of_core: Clock = of_cores.min(axis=0).tolist()
        self._learn(SCALAR, of_core)
        return bool((of_cores == of_core).all())

    def finish(self) -> None:
        """Judge what is left: pipes that still wait, and flags that are still up."""
        self.give_up()
        if self.stuck:
            return
        for number, mutex in self._mutexes.items():
            if mutex.locked is not None:
                self._unpaired(number, mutex.locked, "still locked at the end,", mutex.locked)
        for flag, state in self._flags.items():
            if state.clock is not None and state.raised is not None:
                message = (
                    f"flag {flag} is still set at the end, since {state.raised}; wait for it, or "
                    "do not set it: it would leak into the next kernel"
                )
                where = state.raised
                self._fault(FlagFault("flag-leaked", "set_flag", message, where, flag))

    def give_up(self) -> bool:
        """Report the waits that hold pipes, and follow nothing from here on; False if none do."""
        if self.stuck or not any(self.held):
            return False
        self.stuck = True
        held = {pipe: queue for pipe, queue in enumerate(self.held) if queue}
        up = {flag: s.raised for flag, s in self._flags.items() if s.clock is not None and s.raised}
        for fault in stalled(held, up, self._unraised):
            self._fault(fault)
        return True


def _rows_of(counts: Sequence[int]) -> list[Clock]:
    """Return the pipes' clocks, all alike; the scalar unit's stores go by its own."""
    rows = [list(counts) for _ in PIPE_NAMES]
    return [*rows, rows[SCALAR]]


def _join(clock: Clock, other: Clock) -> None:
    clock[:] = map(max, clock, other)
