"""An independent look at the order of a core's instructions: six in-order queues and their flags.

Nothing of `cubecore.timing` is used. `HappensBefore` walks a listing once and proves, or refutes,
that every pair of conflicting accesses is ordered; `interleave` draws one order that the queues
allow.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Instruction, Mem, Pipe
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from harness import Issued

PIPES = ("V", "M", "MTE1", "MTE2", "MTE3", "FIX")
GRANULE_BYTES = 32
_LOCAL_BYTES = 1 << 20

Flag = tuple[str, str, int]


class OrderError(AssertionError):
    """The flags do not keep the order that the program needs."""


def flag_of(template: Instruction) -> Flag:
    """Return (src, dst, event) of a set or a wait."""
    return template.src, template.dst, template.event_id


def queue_of(template: Instruction) -> str:
    """Return the queue that an instruction stands in; a set's is its src, a wait's its dst."""
    if isinstance(template, SetFlag):
        return template.src
    if isinstance(template, WaitFlag):
        return template.dst
    if isinstance(template, PipeBarrier):
        return template.on
    return template.pipe.value


def scalar_only(template: Instruction) -> bool:
    return template.pipe is Pipe.S and not isinstance(template, SetFlag | WaitFlag | PipeBarrier)


@lru_cache(maxsize=4096)
def granules(template: Instruction, operand: str) -> np.ndarray:
    """Return the 32-byte pieces that an operand touches, from its address on."""
    bits = next(template.element(o).bits for o in template.operands() if o.name == operand)
    offsets = template.offsets(operand).reshape(-1)
    start = offsets[offsets >= 0].astype(np.int64) * bits // 8
    last = start + max(bits // 8, 1) - 1
    return np.unique(np.concatenate([start // GRANULE_BYTES, last // GRANULE_BYTES]))


def accesses(issued: Issued) -> Iterator[tuple[Mem, np.ndarray, bool, bool]]:
    """Yield (memory, granules, reads, writes) of the local operands of an instruction."""
    template, addresses = issued
    for operand, address in zip(template.operands(), addresses, strict=True):
        if operand.mem is not Mem.GM:
            assert address % GRANULE_BYTES == 0
            where = granules(template, operand.name) + address // GRANULE_BYTES
            yield operand.mem, where, operand.access.reads, operand.access.writes


@dataclass
class _Memory:
    """Who touched each granule last: the writer, and the last reader of every pipe."""

    writer: np.ndarray = field(
        default_factory=lambda: np.full(_LOCAL_BYTES // GRANULE_BYTES, -1, np.int8)
    )
    written: np.ndarray = field(
        default_factory=lambda: np.zeros(_LOCAL_BYTES // GRANULE_BYTES, np.int64)
    )
    read: np.ndarray = field(
        default_factory=lambda: np.zeros((len(PIPES), _LOCAL_BYTES // GRANULE_BYTES), np.int64)
    )


class HappensBefore:
    """Vector clocks over the queues, joined by flags; raises at the first thing out of order."""

    def __init__(self, listing: Sequence[Issued]) -> None:
        self.clock = {pipe: np.zeros(len(PIPES), np.int64) for pipe in PIPES}
        self.up: dict[Flag, np.ndarray] = {}
        self.last_wait: dict[Flag, tuple[int, int]] = {}
        self.raised: dict[Flag, int] = defaultdict(int)
        self.memories: dict[Mem, _Memory] = defaultdict(_Memory)
        self.races: list[str] = []
        self.shared: dict[int, tuple[str, np.ndarray]] = {}
        for number, issued in enumerate(listing):
            if not scalar_only(issued[0]):
                self._step(number, issued)

    def _step(self, number: int, issued: Issued) -> None:
        template = issued[0]
        pipe = queue_of(template)
        assert pipe != "ALL", "this checker does not know a barrier over all pipes"
        at = PIPES.index(pipe)
        now = self.clock[pipe]
        now[at] += 1
        if isinstance(template, SetFlag):
            self._set(number, flag_of(template), now)
        elif isinstance(template, WaitFlag):
            self._wait(number, flag_of(template), now, at)
        elif not isinstance(template, PipeBarrier):
            self._unit_flag(number, issued, pipe, now)
            for mem, where, reads, writes in accesses(issued):
                self._access(f"{number} {template.name}", at, mem, where, (reads, writes))

    def _unit_flag(self, number: int, issued: Issued, pipe: str, now: np.ndarray) -> None:
        """M and FIX take turns at a place of L0C; each turn begins behind the end of the other."""
        shared = unit_of(issued)
        if shared is None:
            return
        place, hands_over = shared
        turn, when = self.shared.pop(place, ("M", np.zeros(len(PIPES), np.int64)))
        if turn != pipe:
            raise OrderError(f"{number}: {pipe} takes L0C {place} in the turn of {turn}")
        np.maximum(now, when, out=now)
        other = "FIX" if pipe == "M" else "M"
        self.shared[place] = (other, now.copy()) if hands_over else (pipe, when)

    def _set(self, number: int, flag: Flag, now: np.ndarray) -> None:
        if flag in self.up:
            raise OrderError(f"{number}: {flag} is raised twice without a wait in program order")
        waiter, when = self.last_wait.get(flag, (0, 0))
        if now[waiter] < when:
            raise OrderError(f"{number}: {flag} may be raised before its last wait has run")
        self.up[flag] = now.copy()
        self.raised[flag] += 1

    def _wait(self, number: int, flag: Flag, now: np.ndarray, at: int) -> None:
        if flag not in self.up:
            raise OrderError(f"{number}: {flag} is waited for before anything raises it")
        np.maximum(now, self.up.pop(flag), out=now)
        self.last_wait[flag] = (at, int(now[at]))

    def _access(
        self, who: str, at: int, mem: Mem, where: np.ndarray, how: tuple[bool, bool]
    ) -> None:
        memory, now = self.memories[mem], self.clock[PIPES[at]]
        reads, writes = how
        writer = memory.writer[where]
        late = (writer >= 0) & (memory.written[where] > now[np.maximum(writer, 0)])
        if late.any():
            other = PIPES[writer[late][0]]
            kind = "reads" if reads else "overwrites"
            self.races.append(f"{who} {kind} {mem.label} before {other} has written it")
        if writes:
            for pipe in np.flatnonzero(memory.read[:, where].max(axis=1) > now):
                self.races.append(f"{who} overwrites {mem.label} before {PIPES[pipe]} has read it")
            memory.writer[where], memory.written[where] = at, now[at]
        if reads:
            memory.read[at][where] = now[at]

    def require_order(self) -> None:
        """Raise unless nothing raced and every flag is down again at the end."""
        if self.races:
            raise OrderError(f"{len(self.races)} races, the first: {self.races[0]}")
        if self.up:
            raise OrderError(f"still up at the end: {sorted(self.up)}")
        if any(turn != "M" for turn, _ in self.shared.values()):
            raise OrderError("a unit flag is up at the end")


def unit_of(issued: Issued) -> tuple[int, bool] | None:
    """Return (place in L0C, whether it is handed over) of what uses the unit flag."""
    template, addresses = issued
    if isinstance(template, Mad) and template.unit_flag:
        return addresses[0], template.unit_flag == 3
    if isinstance(template, CopyMatrixCcToGm) and template.unit_flag:
        return addresses[1], template.unit_flag == 3
    return None


def interleave(listing: Sequence[Issued], rng: np.random.Generator) -> list[Issued]:
    """Return the instructions that touch memory in one order that the queues allow.

    Pipes are drawn with weights that differ by orders of magnitude, so that some run far ahead.
    Raises `OrderError` at a deadlock, or where a flag that is up is raised again.
    """
    queues: dict[str, list[Issued]] = {pipe: [] for pipe in PIPES}
    for issued in listing:
        if not scalar_only(issued[0]):
            queues[queue_of(issued[0])].append(issued)
    heads = dict.fromkeys(PIPES, 0)
    weights = dict(zip(PIPES, 10.0 ** rng.uniform(-4, 4, len(PIPES)), strict=True))
    up: set[Flag] = set()
    turns: dict[int, str] = {}
    order: list[Issued] = []

    def runnable(pipe: str) -> bool:
        if heads[pipe] == len(queues[pipe]):
            return False
        shared = unit_of(queues[pipe][heads[pipe]])
        if shared is not None and turns.get(shared[0], "M") != pipe:
            return False
        template = queues[pipe][heads[pipe]][0]
        return not isinstance(template, WaitFlag) or flag_of(template) in up

    while True:
        ready = [pipe for pipe in PIPES if runnable(pipe)]
        if not ready:
            break
        chance = np.array([weights[pipe] for pipe in ready])
        pipe = ready[rng.choice(len(ready), p=chance / chance.sum())]
        for _ in range(int(rng.integers(1, 8))):
            if not runnable(pipe):
                break
            issued = queues[pipe][heads[pipe]]
            heads[pipe] += 1
            if isinstance(issued[0], SetFlag):
                if flag_of(issued[0]) in up:
                    raise OrderError(f"{flag_of(issued[0])} is raised while it is up")
                up.add(flag_of(issued[0]))
            elif isinstance(issued[0], WaitFlag):
                up.discard(flag_of(issued[0]))
            elif not isinstance(issued[0], PipeBarrier):
                order.append(issued)
                shared = unit_of(issued)
                if shared is not None and shared[1]:
                    turns[shared[0]] = "FIX" if pipe == "M" else "M"
    stuck = [pipe for pipe in PIPES if heads[pipe] < len(queues[pipe])]
    if stuck:
        raise OrderError(f"deadlock: {', '.join(stuck)} wait")
    if up:
        raise OrderError(f"still up at the end: {sorted(up)}")
    return order
