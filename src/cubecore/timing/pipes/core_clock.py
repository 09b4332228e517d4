"""One core's pipes: in-order queues fed by the scalar unit, ordered by flags.

The clock walks the program once, in program order. Every pipe keeps when it is free and when its
last result is complete; an instruction starts when it is issued, its pipe is free, and the flags
before it are up. A wait whose flag is raised later in the program blocks its pipe, not the walk.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from cubecore.errors import refuse
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.product import CubeProduct
from cubecore.isa.declare.instruction import GlobalTraffic, Instruction, InstructionCost, Mem, Pipe
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.tree import Issue, LoadScalar
from cubecore.isa.scalar.sync import (
    FftsCrossCoreSync,
    Lock,
    PipeBarrier,
    SetFlag,
    Unlock,
    WaitFlag,
    WaitFlagDev,
    joined_pipes,
)
from cubecore.timing.memory.global_accesses import cost_of, inner_calls
from cubecore.timing.memory.l2_reuse import MemoryShare
from cubecore.timing.memory.memory_port import MemoryPort, MemoryRequest
from cubecore.timing.memory.reuse_marks import ReuseMark
from cubecore.timing.pipes.bank_conflicts import conflict_factor
from cubecore.timing.pipes.cross_core import Outbox
from cubecore.timing.pipes.flags import PipeOrder
from cubecore.timing.pipes.issue_log import BUSY, BYTES, Amount
from cubecore.timing.pipes.operands import moved_operand
from cubecore.timing.pipes.queues import (
    DEVICE_MEMORY,
    INDEX,
    ISSUE,
    NAMES,
    SCALAR,
    UNIT_FLAG,
    PipeState,
    deciding,
    unit_part,
)
from cubecore.timing.pipes.repeated_loads import LEAST, EqualLoads
from cubecore.timing.records import Segment

_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_plain(issue: Issue) -> bool:
    """True if a leaf takes the same time again and again, on a pipe."""
    template = issue.template
    plain = not deciding(issue) and template.pipe is not Pipe.S
    return plain and not template.takes_registers


@dataclass(eq=False, kw_only=True)
class CoreClock(PipeOrder):
    """The clock of a group of cores that run one tree in step.

    `core` is one of the group. `shares` gives each leaf's part in the shared memory, which `memory`
    serves. `units` has for each address in L0C that the unit flag guards the pipe that was there
    last, and from when to when; `unit_span` is how long that can matter.
    """

    memory: MemoryPort
    shares: Mapping[Issue, MemoryShare]
    skipped: int = 0
    level: int = 0
    registers: Registers = field(default_factory=Registers)
    units: dict[int, tuple[PipeState, int, int]] = field(default_factory=dict)
    unit_span: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        overlap: float = self.chip.require("gm_latency_overlap", "timing")
        self._exposed = 1.0 - overlap
        self._contention: float = self.chip.require("l1_to_l0_contention", "timing")
        self._feeder, self._filler = self.pipes[INDEX["MTE1"]], self.pipes[INDEX["MTE2"]]

    # --- the sink protocol of programs

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that takes the leaf's `deciding` values, or all its addresses."""
        handler = self.unlogged(issue)
        log = self.log
        if log is None or isinstance(issue.template, ReuseMark):
            return handler
        block = log.number(issue)

        def begun(*values: int) -> None:
            log.begin(block, self.issued)
            handler(*values)

        return begun

    def unlogged(self, issue: Issue) -> Callable[..., None]:
        """Return the same for a walk that tells the log itself which leaves it issues."""
        template = issue.template
        if isinstance(template, ReuseMark):
            return self._touch_handler(template.level)
        if isinstance(template, (SetFlag, WaitFlag)):
            return self._flag_handler(issue, template)
        if isinstance(template, (Lock, Unlock)):
            return self._mutex_handler(template)
        if joined := joined_pipes(template):
            return self._join_handler([self.pipes[INDEX[name]] for name in joined])
        if isinstance(template, PipeBarrier):
            pipe = self.pipes[INDEX[template.on]]
            return self._issuing(pipe, self._drain, pipe)
        if isinstance(template, FftsCrossCoreSync):
            src, idle = INDEX[template.on], self.pipes[SCALAR]
            outbox = Outbox(self.crossing, self.core, template)
            return self._issuing(self.pipes[src], self._raise, src, idle, outbox)
        if isinstance(template, WaitFlagDev):
            return self._hearing(template)
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

        Raises
        ------
        DeadlockError
            If a pipe still waits for a flag that is never set.
        """
        self._require_unblocked(self.pipes)
        return max(self.scalar, *(pipe.done for pipe in self.pipes))

    # --- what is issued several times

    def repeated(self, issue: Issue) -> Callable[[int], None]:
        """Return the function that issues a plain leaf several times, with nothing between."""
        template = issue.template
        cost = cost_of(template, self.chip)
        if cost.traffic is not None:
            return self._transfers(issue, cost)
        pipe, head = self.pipes[INDEX[template.pipe.value]], cost.idle_head
        busy = self._busy(issue, template, cost)
        slowed = self._slowed(busy) if pipe is self._feeder else busy
        once = self.unlogged(issue)

        def follow(times: int) -> None:
            self._follow(pipe, times, busy, slowed, head)

        follow = self._logged(issue, pipe, follow)

        def run(times: int) -> None:
            done = 0
            while done < times and (pipe.blocked or not done):
                once()
                done += 1
            if done < times:
                follow(times - done)

        return run

    def _transfers(self, issue: Issue, cost: InstructionCost) -> Callable[[int], None]:
        """Return the function that moves data from or to global memory several times."""
        once, traffic = self.unlogged(issue), cost.traffic
        assert traffic is not None
        asking = self._asking(issue, traffic)
        pipe = self.pipes[INDEX[issue.template.pipe.value]]

        def several(times: int) -> int | None:
            loads = EqualLoads(pipe, self.memory, asking(), *self._until(cost, asking()))
            return loads.issue(times, self.scalar, self._issue_cycles)

        several = self._logged(issue, pipe, several, moves=True)

        def run(times: int) -> None:
            alone = times if traffic.writes else 1
            while times > 0:
                for _ in range(min(alone, times)):
                    once()
                times, alone = times - alone, 2 * alone
                if times < LEAST:
                    alone = LEAST
                    continue
                left = several(times)
                if left is not None:
                    full = left - self.scalar - times * self._issue_cycles
                    if full:
                        self._stall(NAMES[SCALAR], pipe.when_full, full, left)
                    self.scalar, self.issued = left, self.issued + times
                    return

        return run

    def _follow(self, pipe: PipeState, times: int, alone: int, slowed: int, head: int) -> None:
        """Issue what comes right behind another of its kind: no flag can hold it.

        A move takes so many cycles `alone`, and `slowed` beside MTE2.
        """
        queue, free, depth = pipe.queue, pipe.free, self._depth
        time, full, idle, heads, busy, filled = self.scalar, 0, 0, 0, 0, self._filler.free
        for _ in range(times):
            time += self._issue_cycles
            if len(queue) == depth and queue[0] > time:
                full += queue[0] - time
                time = queue[0]
            start = free
            if time > free:
                idle += time - free
                heads += head
                start, free = time, time + head
            queue.append(start)
            cycles_taken = slowed if filled > start else alone
            busy += cycles_taken
            free += cycles_taken
        if full:
            self._stall(NAMES[SCALAR], pipe.when_full, full, time)
        if idle:
            self._stall(pipe.name, ISSUE, idle, free)
        self.scalar, self.issued = time, self.issued + times
        pipe.free = pipe.done = free
        pipe.busy += busy + heads
        pipe.uses += times

    # --- instructions of a pipe

    def _pipe_handler(self, issue: Issue) -> Callable[..., None]:
        late = len(issue.late)
        if not late and not issue.template.takes_registers:
            return self._handler_of(issue, issue.template)
        handlers: dict[Instruction, Callable[..., None]] = {}

        def run(*values: int) -> None:
            template = issue.bound(values[:late]).resolved(self.registers)
            if template not in handlers:
                handlers[template] = self._handler_of(issue, template)
            handlers[template](*values[late:])

        return run

    def _handler_of(self, issue: Issue, template: Instruction) -> Callable[..., None]:
        """Return the function for a template that nothing changes any more."""
        cost = cost_of(template, self.chip)
        if cost.traffic is not None:
            return self._traffic_handler(issue, template, cost)
        pipe, head = self.pipes[INDEX[template.pipe.value]], cost.idle_head
        busy = self._busy(issue, template, cost)
        if isinstance(template, CubeProduct) and template.unit_flag:
            chase = self._recorded(issue, template, self._logged(issue, pipe, self._chase))
            part = unit_part(template.m, template.n, busy)
            return lambda c, *_: self._enqueue(pipe, chase, pipe, busy, head, c, part)
        if pipe is self._feeder:
            feed = self._recorded(issue, template, self._logged(issue, pipe, self._feed))
            return self._issuing(pipe, feed, pipe, busy, head, self._slowed(busy))
        start = self._recorded(issue, template, self._logged(issue, pipe, self._start))
        return self._issuing(pipe, start, pipe, busy, head)

    def _busy(self, issue: Issue, template: Instruction, cost: InstructionCost) -> int:
        """Return the cycles on the pipe; Vector's repeats longer by the conflicts of UB's banks."""
        if template.pipe is not Pipe.V:
            return cost.busy
        factor = conflict_factor(issue, template, self.chip.ub_bank_groups)
        return cost.busy + (factor - 1) * max(cost.busy - (self.chip.vector_head_cycles or 0), 0)

    def _slowed(self, busy: int) -> int:
        """Return the cycles of a move out of L1 while MTE2 fills it."""
        return busy + round(busy * self._contention)

    def _feed(self, time: int, pipe: PipeState, busy: int, head: int, slowed: int) -> bool:
        start = max(time, pipe.gate, pipe.free)
        return self._start(time, pipe, slowed if self._filler.free > start else busy, head)

    def _logged(
        self, issue: Issue, pipe: PipeState, action: Callable[_P, _R], *, moves: bool = False
    ) -> Callable[_P, _R]:
        """Return `action`, with the log of what it takes; `moves`: data from or to global memory.

        Without a log, it is `action` itself.
        """
        log, memory = self.log, self.memory
        if log is None:
            return action
        leaf = log.number(issue)
        busy, moved = log.kind(Amount(leaf, BUSY, pipe.name)), log.kind(Amount(leaf, BYTES))
        add_kind, add_amount = log.kinds.append, log.amounts.append

        def logged(*arguments: _P.args, **words: _P.kwargs) -> _R:
            log.leaf, before = leaf, pipe.busy
            result = action(*arguments, **words)
            add_kind(busy)
            add_amount(pipe.busy - before)
            return result

        def logged_move(*arguments: _P.args, **words: _P.kwargs) -> _R:
            before = memory.read_bytes + memory.written_bytes
            result = logged(*arguments, **words)
            add_kind(moved)
            add_amount(memory.read_bytes + memory.written_bytes - before)
            return result

        return logged_move if moves else logged

    def _recorded(
        self, issue: Issue, template: Instruction, action: Callable[..., bool]
    ) -> Callable[..., bool]:
        """Return `action`, noting when it ran while fewer than `record` segments are noted."""
        if not self.record:
            return action
        name, operand = template.name, moved_operand(issue, template)
        line = None if self.log is None else issue.location
        parts = inner_calls(template, self.chip)

        def note(time: int, pipe: PipeState, *arguments: object) -> bool:
            free, started = pipe.free, action(time, pipe, *arguments)
            if started and len(self.segments) < self.record:
                start, cause = pipe.queue[-1], ""
                if start > free:
                    late = UNIT_FLAG if pipe.name in {"M", "FIX"} else DEVICE_MEMORY
                    cause = ISSUE if start == time else pipe.reason if start == pipe.gate else late
                times = start, pipe.free, pipe.done
                self.segments.append(Segment(pipe.name, name, *times, cause, operand, line, parts))
            return started

        return note

    def _chase(
        self, time: int, pipe: PipeState, busy: int, head: int, address: int, part: int
    ) -> bool:
        """Run a step that shares a place in L0C by the unit flag: `part` behind the other pipe."""
        other, began, ended = self.units.get(address, (pipe, 0, 0))
        if other is pipe:
            self._start(time, pipe, busy, head)
        else:
            self._start(time, pipe, busy, head, begin=began + part, end=ended + part)
        self.units[address] = (pipe, pipe.queue[-1], pipe.free)
        self.unit_span = max(self.unit_span, part)
        return True

    def _start(
        self, time: int, pipe: PipeState, busy: int, head: int, begin: int = 0, end: int = 0
    ) -> bool:
        """Start when issued, free, let through by flags and not before `begin`; end after `end`."""
        free, gate = pipe.free, pipe.gate
        start = max(gate, time, begin)
        if start > free:
            waited = start - free
            if pipe.name == "FIX" and start == begin:  # at work, as profilers count
                waited = max(gate, time, free) - free
                pipe.busy += start - free - waited
            if waited:
                reason = ISSUE if start == time else pipe.reason if start == gate else UNIT_FLAG
                self._stall(pipe.name, reason, waited, free + waited)
            busy += head
        else:
            start = free
            if pipe.drained:
                busy += head
        busy = max(busy, end - start)
        pipe.drained = False
        pipe.free = pipe.done = start + busy
        pipe.busy += busy
        pipe.uses += 1
        pipe.queue.append(start)
        return True

    def _traffic_handler(
        self, issue: Issue, template: Instruction, cost: InstructionCost
    ) -> Callable[..., None]:
        pipe, traffic = self.pipes[INDEX[template.pipe.value]], cost.traffic
        assert traffic is not None
        moving = self._store if traffic.writes else self._load
        action = self._recorded(issue, template, self._logged(issue, pipe, moving, moves=True))
        asking = self._asking(issue, traffic)

        unit: tuple[int, ...] = ()
        l0c_index = 0
        if isinstance(template, CopyMatrixCcToGm) and template.unit_flag:
            unit = (unit_part(template.m_size, template.n_size, cost.busy),)
            l0c_index = [operand.mem for operand in template.operands()].index(Mem.L0C)

        def run(*values: int) -> None:
            # Either all addresses or the one that decides.
            guarded = (values[l0c_index if len(values) > 1 else 0], *unit) if unit else ()
            self._enqueue(pipe, action, pipe, cost, asking(), *guarded)

        return run

    def _asking(self, issue: Issue, traffic: GlobalTraffic) -> Callable[[], MemoryRequest]:
        """Return the function that says what the leaf asks for when its blocks are where they are.

        Its `ReuseMark` level says that.
        """
        share, requests = self.shares[issue], dict[int, MemoryRequest]()
        marked = len(set(share.gone)) > 1 and not traffic.writes

        def ask() -> MemoryRequest:
            level = self.level if marked else 0
            if level not in requests:
                requests[level] = self.memory.request(traffic, share, level)
            return requests[level]

        return ask

    def _until(self, cost: InstructionCost, request: MemoryRequest) -> tuple[int, int]:
        """Return in what time a load has been asked for, and in what time its data are there."""
        asked = cost.busy + request.more_cycles
        latency = request.latency_cycles
        return asked + int(self._exposed * latency), asked + latency

    def _load(
        self, time: int, pipe: PipeState, cost: InstructionCost, request: MemoryRequest
    ) -> bool:
        """Ask for data: the pipe is free for the next load when this one has been asked for.

        It is busy, as profilers count, while any data is on its way.
        """
        free, done, gate = pipe.free, pipe.done, pipe.gate
        ready = max(time, gate, free)
        start, data_at = self.memory.load(ready, request)
        idle_from = max(free, done)
        if ready > idle_from:
            reason = pipe.reason if gate > time else ISSUE
            self._stall(pipe.name, reason, ready - idle_from, ready)
        self.memory.waited += max(start - max(ready, done), 0)
        asked, arrive = self._until(cost, request)
        pipe.free, arrived = start + asked, start + arrive
        if start > ready or data_at > arrived:
            self.memory.delays += 1
        pipe.done = max(done, arrived, data_at)
        pipe.busy += max(pipe.done, pipe.free) - max(idle_from, ready)
        pipe.uses += 1
        pipe.queue.append(start)
        return True

    def _store(
        self,
        time: int,
        pipe: PipeState,
        cost: InstructionCost,
        request: MemoryRequest,
        *guarded: int,
    ) -> bool:
        if guarded:
            self._chase(time, pipe, cost.busy, cost.idle_head, *guarded)
        else:
            self._start(time, pipe, cost.busy, cost.idle_head)
        self.memory.store(pipe.queue[-1], request)
        return True

    # --- the scalar unit

    def _touch_handler(self, level: int) -> Callable[..., None]:
        def touch() -> None:
            self.level = level

        return touch

    def _scalar_handler(self, issue: Issue) -> Callable[..., None]:
        late, unit, step = len(issue.late), self.pipes[SCALAR], self._issue_cycles
        log = self.log
        kind = 0 if log is None else log.kind(Amount(log.number(issue), BUSY, unit.name))
        if not late and type(issue.template).apply is Instruction.apply:
            work = step + cost_of(issue.template, self.chip).busy
            name = issue.template.name

            def pass_time(*_: int) -> None:
                if self.record:
                    self._note(Segment(unit.name, name, self.scalar, self.scalar + work))
                self.issued += 1
                self.scalar += work
                unit.busy += work
                unit.uses += 1
                if log is not None:
                    log.add(kind, work)

            return pass_time

        def run(*values: int) -> None:
            template = issue.bound(values[:late])
            cycles = self._issue_cycles + cost_of(template, self.chip).busy
            self.registers = template.apply(self.registers)
            self.issued += 1
            self.scalar += cycles
            unit.busy += cycles
            unit.uses += 1
            if log is not None:
                log.add(kind, cycles)

        return run
