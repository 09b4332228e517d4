"""The order of a core's instructions: queues that the scalar unit fills, flags and barriers.

A wait whose flag is raised later in the program blocks its pipe, not the walk: what comes behind it
stays in the queue with the time at which it was issued, and starts once the flag is up.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cubecore.chips.model import Chip
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Issue
from cubecore.isa.scalar.sync import EVENT_IDS, Lock, SetFlag, Unlock, WaitFlag, WaitFlagDev
from cubecore.timing.pipes.cross_core import Crossing, Outbox
from cubecore.timing.pipes.issue_log import IssueLog
from cubecore.timing.pipes.queues import (
    CROSS_CORE,
    INDEX,
    NAMES,
    SCALAR,
    PipeState,
    overfull,
    unmet,
)
from cubecore.timing.records import Segment


class FlagKey(NamedTuple):
    """A flag from a pipe to another; a mutex is one of the scalar unit's, behind its events."""

    src: int
    dst: int
    event: int


class _Flags(dict[FlagKey, deque[int]]):
    """Times at which flags were raised, until they are taken; a mutex is up at first."""

    def __missing__(self, key: FlagKey) -> deque[int]:
        counters = self[key] = deque([0] if key.src == key.dst else [])
        return counters


def mutex_key(template: Lock | Unlock) -> FlagKey:
    """Return the key of a mutex among the flags."""
    return FlagKey(SCALAR, SCALAR, EVENT_IDS + template.mutex_id)


def has_late_event(issue: Issue) -> bool:
    """True if a leaf is a flag whose event is known late."""
    return bool(issue.late) and isinstance(issue.template, (SetFlag, WaitFlag))


@dataclass(eq=False, kw_only=True)
class PipeOrder:
    """Order in which pipes of a core may start: queues that the scalar unit fills, flags, barriers.

    The first `record` instructions are kept as segments. `core` signals others through `crossing`.
    `log`, where it is asked for, tells leaves of the program apart.
    """

    chip: Chip
    scalar: int = 0
    record: int = 0
    log: IssueLog | None = None
    core: CoreId = CoreId(0)
    crossing: Crossing = field(default_factory=lambda: Crossing([CoreId(0)], 0))
    issued: int = 0
    stalls: dict[tuple[str, str], int] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    aside: list[Segment] = field(default_factory=list)
    flags: dict[FlagKey, deque[int]] = field(default_factory=_Flags)
    pipes: tuple[PipeState, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._issue_cycles: int = self.chip.require("scalar_issue_cycles", "timing")
        self._depth: int = self.chip.require("pipe_queue_depth", "timing")
        self._by_event: dict[tuple[int, int, bool], list[Callable[..., None]]] = {}
        self._holders: dict[int, int] = {}
        self.pipes = tuple(
            PipeState(deque(maxlen=self._depth), name=name, when_full=f"queue of {name} full")
            for name in NAMES
        )
        self.pipes[SCALAR].busy = self.scalar  # what a kernel does before its first instruction

    # --- issuing

    def _enqueue(self, pipe: PipeState, action: Callable[..., bool], *arguments: object) -> None:
        """Spend the scalar unit's cycles; start the instruction, or leave it behind a wait."""
        # The queue holds start times; blocked instructions have none yet but take places. With b of
        # them, the oldest entry that must have left for a new one is number b.
        self.issued += 1
        time = self.scalar + self._issue_cycles
        queue, blocked = pipe.queue, pipe.blocked
        if blocked and len(blocked) >= self._depth:
            raise overfull(pipe, self._depth)
        # The scalar unit stands still until the pipe has started that instruction.
        if len(queue) == self._depth and queue[len(blocked)] > time:
            room_at = queue[len(blocked)]
            self._stall(NAMES[SCALAR], pipe.when_full, room_at - time, room_at)
            time = room_at
        self.scalar = time
        if blocked or not action(time, *arguments):
            blocked.append((action, arguments, time))

    def _issuing(
        self, pipe: PipeState, action: Callable[..., bool], *arguments: object
    ) -> Callable[..., None]:
        """Return `_enqueue` of these, with the common case written out."""
        queue, blocked, enqueue = pipe.queue, pipe.blocked, self._enqueue
        step, depth = self._issue_cycles, self._depth

        def run(*_: int) -> None:
            time = self.scalar + step
            if blocked or (len(queue) == depth and queue[0] > time):
                enqueue(pipe, action, *arguments)
                return
            self.issued += 1
            self.scalar = time
            if not action(time, *arguments):
                blocked.append((action, arguments, time))

        return run

    def _resume(self, pipe: PipeState) -> None:
        blocked = pipe.blocked
        while blocked:
            action, arguments, time = blocked[0]
            if not action(time, *arguments):
                return
            blocked.popleft()

    def _stall(self, pipe: str, reason: str, cycles: int, until: int) -> None:
        self.stalls[pipe, reason] = self.stalls.get((pipe, reason), 0) + cycles
        if self.log is not None:
            self.log.stall(pipe, reason, cycles, self.issued)
        if self.record:
            self._note(Segment(pipe, reason, until - cycles, until))

    def _note(self, segment: Segment) -> None:
        """Keep what happened beside instructions, for as long as these are kept."""
        if len(self.segments) < self.record:
            self.aside.append(segment)

    def _hold_scalar(self, until: int, reason: str) -> None:
        """Let the scalar unit, which issues to all others, wait."""
        if until > self.scalar:
            self._stall(NAMES[SCALAR], reason, until - self.scalar, until)
            self.scalar = until

    def _require_unblocked(self, pipes: Sequence[PipeState]) -> None:
        stuck = [pipe.name for pipe in pipes if pipe.blocked]
        if stuck:
            raise unmet(", ".join(stuck))

    # --- flags and barriers

    def by_event(self, issue: Issue) -> list[Callable[..., None]]:
        """Return the function for each event of a flag whose event is known late."""
        template = issue.template
        assert isinstance(template, (SetFlag, WaitFlag)), template
        return self._flag_handlers(template)

    def _flag_handler(self, issue: Issue, template: SetFlag | WaitFlag) -> Callable[..., None]:
        handlers = self._flag_handlers(template)
        if not issue.late:
            return handlers[template.event_id]
        return lambda event, *_: handlers[event]()

    def _flag_handlers(self, template: SetFlag | WaitFlag) -> list[Callable[..., None]]:
        src, dst = INDEX[template.src], INDEX[template.dst]
        raises = isinstance(template, SetFlag)
        make = self._setter if raises else self._waiter
        if (src, dst, raises) not in self._by_event:
            handlers = [make(src, dst, event) for event in range(EVENT_IDS)]
            self._by_event[src, dst, raises] = handlers
        return self._by_event[src, dst, raises]

    def _setter(self, src: int, dst: int, event: int) -> Callable[..., None]:
        # A flag is a queue of times: a set appends, a wait takes the oldest. A wait without one
        # blocks its pipe, and the set that comes later in the walk resumes it.
        flag = self.flags[FlagKey(src, dst, event)]
        pipe, target = self.pipes[src], self.pipes[dst]
        if src == SCALAR:
            return self._issuing(pipe, self._raise, src, target, flag)
        queue, blocked, step, depth = pipe.queue, pipe.blocked, self._issue_cycles, self._depth

        def run(*_: int) -> None:
            """Do what `_raise` does, written out: flags are half of what is walked."""
            time = self.scalar + step
            if blocked or (len(queue) == depth and queue[0] > time):
                self._enqueue(pipe, self._raise, src, target, flag)
                return
            self.issued += 1
            self.scalar = time
            at = max(time, pipe.done, pipe.gate)
            queue.append(at)
            flag.append(at)
            if target.blocked:
                self._resume(target)

        return run

    def _waiter(self, src: int, dst: int, event: int) -> Callable[..., None]:
        name = f"flag {NAMES[src]} -> {NAMES[dst]} {event}"
        flag, pipe = self.flags[FlagKey(src, dst, event)], self.pipes[dst]
        if dst == SCALAR:
            return self._issuing(pipe, self._await, dst, flag, name)
        queue, blocked, step, depth = pipe.queue, pipe.blocked, self._issue_cycles, self._depth

        def run(*_: int) -> None:
            """Do what `_await` does, written out."""
            time = self.scalar + step
            if blocked or (len(queue) == depth and queue[0] > time):
                self._enqueue(pipe, self._await, dst, flag, name)
                return
            self.issued += 1
            self.scalar = time
            if not flag:
                blocked.append((self._await, (dst, flag, name), time))
                return
            at = flag.popleft()
            if at > pipe.gate:
                pipe.gate, pipe.reason = at, name
            queue.append(max(time, pipe.gate, pipe.free))

        return run

    def _mutex_handler(self, template: Lock | Unlock) -> Callable[..., None]:
        flag, on, number = self.flags[mutex_key(template)], INDEX[template.on], template.mutex_id
        pipe = self.pipes[on]
        if isinstance(template, Lock):
            if template.mode:
                return self._issuing(pipe, self._pass, on)
            return self._issuing(pipe, self._lock, on, number, flag, f"mutex {number}")
        unlock = self._unlock_behind if template.mode else self._unlock
        return self._issuing(pipe, unlock, on, number, flag)

    def _pass(self, time: int, dst: int) -> bool:
        """Take an entry of a queue, and hold nothing."""
        pipe = self.pipes[dst]
        if dst != SCALAR:
            pipe.queue.append(max(time, pipe.gate, pipe.free))
        return True

    def _lock(self, time: int, dst: int, number: int, flag: deque[int], name: str) -> bool:
        if flag and self._holders.get(number) == dst:  # of one pipe the second does not hold
            flag[0] = min(flag[0], time)
        return self._await(time, dst, flag, name)

    def _unlock(self, time: int, src: int, number: int, flag: deque[int], before: int = 0) -> bool:
        """Raise a mutex; whoever waits for it stands at the head of its queue."""
        # Only the last unlocking pipe is remembered: a lock by the same pipe need not wait, as that
        # pipe is in order anyway.
        self._holders[number] = src
        at = self.scalar
        if src != SCALAR:
            at = max(time, self.pipes[src].done, self.pipes[src].gate)
            self.pipes[src].queue.append(at)
        flag.append(max(at, before))
        for pipe in self.pipes:
            if pipe.blocked and pipe is not self.pipes[src]:
                self._resume(pipe)
        return True

    def _unlock_behind(self, time: int, src: int, number: int, flag: deque[int]) -> bool:
        """Raise a mutex not before its last unlock, which is still to come where none is up."""
        if not flag:
            if src == SCALAR:
                raise unmet(NAMES[SCALAR])
            return False
        return self._unlock(time, src, number, flag, flag.popleft())

    def _raise(self, time: int, src: int, target: PipeState, flag: deque[int] | Outbox) -> bool:
        if src == SCALAR:
            at = self.scalar
        else:
            pipe = self.pipes[src]
            at = max(time, pipe.done, pipe.gate)
            pipe.queue.append(at)
        flag.append(at)
        if target.blocked:
            self._resume(target)
        return True

    def _await(self, time: int, dst: int, flag: deque[int], name: str) -> bool:
        if not flag:
            if dst == SCALAR:  # the unit that issues the flag's own instructions stands still
                raise unmet(NAMES[SCALAR])
            return False
        at = flag.popleft()
        if dst == SCALAR:
            self._hold_scalar(at, name)
            return True
        pipe = self.pipes[dst]
        if at > pipe.gate:
            pipe.gate = at
            pipe.reason = name
        pipe.queue.append(max(time, pipe.gate, pipe.free))
        return True

    def _hearing(self, template: WaitFlagDev) -> Callable[..., None]:
        name = f"{CROSS_CORE} {template.signal}"

        def hear(*_: int) -> None:
            self.issued += 1
            self.scalar += self._issue_cycles
            self._hold_scalar(self.crossing.heard(self.core, template.counter), name)

        return hear

    def _join_handler(self, pipes: Sequence[PipeState]) -> Callable[..., None]:
        def join(*_: int) -> None:
            self.issued += 1
            self._require_unblocked(pipes)
            self.scalar = max(self.scalar + self._issue_cycles, *(pipe.done for pipe in pipes))
            for pipe in pipes:
                pipe.drained = True

        return join

    def _drain(self, time: int, pipe: PipeState) -> bool:
        pipe.drained = True
        pipe.free = max(pipe.free, pipe.done)
        pipe.queue.append(max(time, pipe.free))
        return True
