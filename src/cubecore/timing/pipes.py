"""One core's pipes: in-order queues fed by the scalar unit, ordered by flags.

The clock walks the program once, in program order. Every pipe keeps when it is free and when its
last result is complete; an instruction starts when it is issued, its pipe is free, and the flags
before it are up. A wait whose flag is raised later in the program blocks its pipe, not the walk.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cubecore.chips.model import Chip
from cubecore.errors import DeadlockError, Violation, refuse
from cubecore.isa.cube import Mad
from cubecore.isa.fixpipe import CopyMatrixCcToGm
from cubecore.isa.program import Issue, LoadScalar
from cubecore.isa.registers import Registers
from cubecore.isa.spec import Cost, Instruction, Pipe
from cubecore.isa.sync import FftsCrossCoreSync, PipeBarrier, SetFlag, WaitFlag, WaitFlagDev
from cubecore.timing.memory_system import Demand, MemorySystem
from cubecore.timing.timeline import Segment
from cubecore.units import FRACTAL_ROWS, ceil_div

PIPES = tuple(p for p in Pipe if p is not Pipe.ALL)
_INDEX = {p.value: i for i, p in enumerate(PIPES)}
_SCALAR = _INDEX["S"]
_ISSUE = "scalar issue"
_UNIT_FLAG = "unit flag"
MEMORY_STALL = "device memory"
"""The reason of a load that device memory could not serve yet."""

Pause = Callable[[int], None]
Queued = tuple[Callable[..., bool], tuple[Any, ...], int]


@dataclass(eq=False)
class CoreClock:
    """The clock of a group of cores that run one tree in step.

    `pause(time)` is called before each request to the shared memory, so that the groups are served
    in the order of time. `demand(issue)` gives a leaf's addresses over the group. The first
    `record` instructions are kept as segments.
    """

    chip: Chip
    memory: MemorySystem
    demand: Callable[[Issue], Demand]
    pause: Pause
    scalar: int = 0
    record: int = 0
    issued: int = 0
    free: list[int] = field(default_factory=lambda: [0] * len(PIPES))
    done: list[int] = field(default_factory=lambda: [0] * len(PIPES))
    busy: list[int] = field(default_factory=lambda: [0] * len(PIPES))
    stalls: dict[tuple[str, str], int] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)

    def __post_init__(self) -> None:
        chip = self.chip
        self._issue_cycles: int = chip.require("scalar_issue_cycles", "timing")
        self._depth: int = chip.require("pipe_queue_depth", "timing")
        overlap: float = chip.require("gm_latency_overlap", "timing")
        self._exposed = 1.0 - overlap
        self._registers = Registers()
        self._gate = [0] * len(PIPES)
        self._reason = [_ISSUE] * len(PIPES)
        self._drained = [True] * len(PIPES)
        self._flags: dict[tuple[int, int, int], deque[int]] = {}
        self._units: dict[int, tuple[int, int, int]] = {}
        self._queues: list[deque[int]] = [deque(maxlen=self._depth) for _ in PIPES]
        self._blocked: list[deque[Queued]] = [deque() for _ in PIPES]

    # --- the sink protocol of programs

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that takes the leaf's late values and addresses."""
        template = issue.template
        if isinstance(template, (SetFlag, WaitFlag)):
            return self._flag_handler(issue, template)
        if isinstance(template, PipeBarrier):
            return self._barrier_handler(template)
        if isinstance(template, (FftsCrossCoreSync, WaitFlagDev)):
            raise refuse(
                template.name,
                "not be in a program that is timed",
                "a cross-core flag",
                "run it without timing",
            )
        if template.pipe is Pipe.S:
            return self._scalar_handler(issue)
        return self._pipe_handler(issue)

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Refuse: a time that depends on data needs the data."""
        raise refuse(
            str(load.location),
            "not read memory in a program that is timed alone",
            f"{load.target.name} from {load.mem.label} {address}",
        )

    def finish(self) -> int:
        """Return when the last pipe is done.

        Raises:
            DeadlockError: a pipe still waits for a flag that nobody raises.
        """
        self._require_unblocked()
        return max(self.scalar, *self.done)

    def _require_unblocked(self) -> None:
        stuck = [PIPES[i].value for i, queue in enumerate(self._blocked) if queue]
        if stuck:
            raise _unmet(", ".join(stuck))

    # --- issuing

    def _take(self, pipe: int) -> int:
        """Spend the scalar's issue cycles; return when the instruction enters the pipe's queue."""
        self.issued += 1
        time = self.scalar + self._issue_cycles
        queue = self._queues[pipe]
        behind_a_wait = len(self._blocked[pipe])
        if behind_a_wait >= self._depth:
            raise DeadlockError(
                [
                    Violation(
                        f"pipe {PIPES[pipe].value}",
                        "find its flag raised before its queue fills",
                        f"{self._depth} instructions waiting",
                    )
                ]
            )
        if len(queue) == self._depth and queue[behind_a_wait] > time:
            room_at = queue[behind_a_wait]
            self._stall(_SCALAR, f"queue of {PIPES[pipe].value} full", room_at - time)
            time = room_at
        self.scalar = time
        return time

    def _stall(self, pipe: int, reason: str, cycles: int) -> None:
        key = (PIPES[pipe].value, reason)
        self.stalls[key] = self.stalls.get(key, 0) + cycles

    def _enqueue(self, pipe: int, action: Callable[..., bool], *arguments: Any) -> None:
        time = self._take(pipe)
        blocked = self._blocked[pipe]
        if blocked or not action(time, *arguments):
            blocked.append((action, arguments, time))

    def _resume(self, pipe: int) -> None:
        blocked = self._blocked[pipe]
        while blocked:
            action, arguments, time = blocked[0]
            if not action(time, *arguments):
                return
            blocked.popleft()

    # --- instructions of a pipe

    def _pipe_handler(self, issue: Issue) -> Callable[..., None]:
        pipe = _INDEX[issue.template.pipe.value]
        late = len(issue.late)
        if late or issue.template.takes_registers:
            return lambda *values: self._run_one(issue, issue.bound(values[:late]), values[late:])
        cost = _cost(issue.template, self.chip)
        if cost.traffic is not None:
            return self._traffic_handler(issue, issue.template, cost)
        busy, head = cost.busy, cost.idle_head
        if isinstance(issue.template, Mad) and issue.template.unit_flag:
            chase = self._recorded(issue.template.name, self._chase)
            part = _unit_part(issue.template.m, issue.template.n, busy)
            return lambda c, *_: self._enqueue(pipe, chase, pipe, busy, head, c, part)
        start = self._recorded(issue.template.name, self._start)

        def run(*_: int) -> None:
            self._enqueue(pipe, start, pipe, busy, head)

        return run

    def _recorded(self, name: str, action: Callable[..., bool]) -> Callable[..., bool]:
        """Return `action`, noting when it ran while fewer than `record` segments are noted."""
        if not self.record:
            return action

        def note(time: int, pipe: int, *arguments: Any) -> bool:
            started = action(time, pipe, *arguments)
            if started and len(self.segments) < self.record:
                start, end = self._queues[pipe][-1], self.free[pipe]
                self.segments.append(Segment(PIPES[pipe].value, name, start, end))
            return started

        return note

    def _run_one(self, issue: Issue, template: Instruction, addresses: tuple[int, ...]) -> None:
        """Run an instruction that depends on late parameters or on registers."""
        template = template.resolved(self._registers)
        pipe, cost = _INDEX[template.pipe.value], _cost(template, self.chip)
        if cost.traffic is None:
            action = self._recorded(template.name, self._start)
            self._enqueue(pipe, action, pipe, cost.busy, cost.idle_head)
        else:
            self._traffic_handler(issue, template, cost)(*addresses)

    def _chase(self, time: int, pipe: int, busy: int, head: int, c: int, part: int) -> bool:
        """Run a step that shares L0C at `c` by the unit flag: `part` behind the other pipe."""
        other, began, ended = self._units.get(c, (pipe, 0, 0))
        if other != pipe:
            self._start(time, pipe, busy, head, begin=began + part, end=ended + part)
        else:
            self._start(time, pipe, busy, head)
        self._units[c] = (pipe, self._queues[pipe][-1], self.free[pipe])
        return True

    def _start(
        self, time: int, pipe: int, busy: int, head: int, begin: int = 0, end: int = 0
    ) -> bool:
        """Start when issued, free, let through by flags and not before `begin`; end after `end`."""
        free, gate = self.free[pipe], self._gate[pipe]
        if begin > gate:
            gate, self._reason[pipe] = begin, _UNIT_FLAG
        start = max(gate, time)
        if start > free:
            self._stall(pipe, self._reason[pipe] if gate > time else _ISSUE, start - free)
            busy += head
        else:
            start = free
            if self._drained[pipe]:
                busy += head
        self._drained[pipe] = False
        busy = max(busy, end - start)
        self.free[pipe] = self.done[pipe] = start + busy
        self.busy[pipe] += busy
        self._queues[pipe].append(start)
        return True

    def _traffic_handler(
        self, issue: Issue, template: Instruction, cost: Cost
    ) -> Callable[..., None]:
        pipe = _INDEX[template.pipe.value]
        names = [operand.mem.name for operand in template.operands()]
        place = names.index("GM")
        demand = self.demand(issue)
        act = self._recorded(
            template.name,
            self._store if cost.traffic is not None and cost.traffic.writes else self._load,
        )

        def run(*addresses: int) -> None:
            self._enqueue(pipe, act, pipe, cost, addresses[place], demand)

        if not isinstance(template, CopyMatrixCcToGm) or not template.unit_flag:
            return run
        part, l0c = _unit_part(template.m_size, template.n_size, cost.busy), names.index("L0C")

        def share(*addresses: int) -> None:
            unit = (addresses[l0c], part)
            self._enqueue(pipe, act, pipe, cost, addresses[place], demand, unit)

        return share

    def _load(self, time: int, pipe: int, cost: Cost, address: int, demand: Demand) -> bool:
        traffic = cost.traffic
        assert traffic is not None
        ready = max(time, self._gate[pipe], self.free[pipe])
        self.pause(ready)
        service = self.memory.load(ready, traffic.size_bytes, traffic.row_bytes, address, demand)
        free = self.free[pipe]
        if ready > free:
            reason = self._reason[pipe] if self._gate[pipe] > time else _ISSUE
            self._stall(pipe, reason, ready - free)
        if service.start > ready:
            self._stall(pipe, MEMORY_STALL, service.start - ready)
        exposed = int(self._exposed * service.latency)
        self.free[pipe] = service.start + cost.busy + exposed
        ready_at = max(service.start + cost.busy + service.latency, service.data_at)
        self.done[pipe] = max(self.done[pipe], ready_at)
        self.busy[pipe] += cost.busy + exposed
        self._queues[pipe].append(service.start)
        return True

    def _store(
        self,
        time: int,
        pipe: int,
        cost: Cost,
        address: int,
        demand: Demand,
        unit: tuple[int, int] | None = None,
    ) -> bool:
        traffic = cost.traffic
        assert traffic is not None
        if unit is None:
            self._start(time, pipe, cost.busy, cost.idle_head)
        else:
            self._chase(time, pipe, cost.busy, cost.idle_head, *unit)
        start = self._queues[pipe][-1]
        self.pause(start)
        self.memory.store(start, traffic.size_bytes, traffic.row_bytes, address, demand)
        return True

    # --- scalar unit, flags, barriers

    def _scalar_handler(self, issue: Issue) -> Callable[..., None]:
        late = len(issue.late)

        def run(*values: int) -> None:
            template = issue.bound(values[:late])
            cycles = _cost(template, self.chip).busy
            self._registers = template.apply(self._registers)
            self.issued += 1
            self.scalar += self._issue_cycles + cycles
            self.busy[_SCALAR] += self._issue_cycles + cycles

        return run

    def _flag_handler(self, issue: Issue, template: SetFlag | WaitFlag) -> Callable[..., None]:
        src, dst = _INDEX[template.src], _INDEX[template.dst]
        raises = isinstance(template, SetFlag)
        pipe, action = (src, self._raise) if raises else (dst, self._await)
        for event in range(8):
            self._flags.setdefault((src, dst, event), deque())
        if issue.late:
            return lambda event: self._enqueue(pipe, action, src, dst, event)
        event = template.event_id
        return lambda: self._enqueue(pipe, action, src, dst, event)

    def _raise(self, time: int, src: int, dst: int, event: int) -> bool:
        if src == _SCALAR:
            at = self.scalar
        else:
            at = max(time, self.done[src], self._gate[src])
            self._queues[src].append(at)
        self._flags[src, dst, event].append(at)
        if self._blocked[dst]:
            self._resume(dst)
        return True

    def _await(self, time: int, src: int, dst: int, event: int) -> bool:
        flags = self._flags[src, dst, event]
        if not flags:
            if dst == _SCALAR:  # the unit that issues the flag's own instructions stands still
                raise _unmet("S")
            return False
        at = flags.popleft()
        if dst == _SCALAR:
            if at > self.scalar:
                self._stall(_SCALAR, _flag_name(src, dst, event), at - self.scalar)
                self.scalar = at
            return True
        if at > self._gate[dst]:
            self._gate[dst] = at
            self._reason[dst] = _flag_name(src, dst, event)
        self._queues[dst].append(max(time, self._gate[dst], self.free[dst]))
        return True

    def _barrier_handler(self, template: PipeBarrier) -> Callable[..., None]:
        if template.on == Pipe.ALL.value:

            def join() -> None:
                self.issued += 1
                self._require_unblocked()
                self.scalar = max(self.scalar + self._issue_cycles, *self.done)
                self._drained = [True] * len(PIPES)

            return join
        pipe = _INDEX[template.on]
        return lambda: self._enqueue(pipe, self._drain, pipe)

    def _drain(self, time: int, pipe: int) -> bool:
        self._drained[pipe] = True
        self.free[pipe] = max(self.free[pipe], self.done[pipe])
        self._queues[pipe].append(max(time, self.free[pipe]))
        return True


def _unmet(pipes: str) -> DeadlockError:
    return DeadlockError([Violation("every wait_flag", "be met by a set_flag", f"none on {pipes}")])


@lru_cache(maxsize=65536)
def _cost(template: Instruction, chip: Chip) -> Cost:
    return template.cost(chip)


def _unit_part(m: int, n: int, busy: int) -> int:
    """Return the cycles of one fractal of L0C: how far the unit flag lets pipes follow each other.

    The flag is kept for each 512 B (seed 002, table 3); all fractals take equal time.
    """
    fractals: int = ceil_div(m, FRACTAL_ROWS) * ceil_div(n, FRACTAL_ROWS)
    return -(-busy // max(fractals, 1))


def _flag_name(src: int, dst: int, event: int) -> str:
    return f"flag {PIPES[src].value} -> {PIPES[dst].value} {event}"
