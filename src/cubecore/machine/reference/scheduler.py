"""The execution protocol: every core on its own greenlet, switching only where it must.

A core runs until it waits for another core or ends. The next core is the first ready one in the
order of (core, sub-core). When none is ready, the run is a deadlock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial

from greenlet import getcurrent, greenlet

from cubecore.chips.model import Chip
from cubecore.errors import CubecoreError, DeadlockError, Violation
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId, Topology
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import CROSS_CORE_LIMIT, FftsCrossCoreSync, WaitFlagDev
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.blas.threads import one_thread
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.reference import execute
from cubecore.machine.reference.core import Core, Recorded
from cubecore.machine.reference.queue_order import Queues, schedule_of
from cubecore.machine.sanitizer.findings import USUAL, WATCHES, FindingLog, SanitizerFinding
from cubecore.machine.sanitizer.racecheck import Sanitizer

Body = Callable[[Core], None]
Wait = tuple[int, Location]
"""The flag that a core waits for, and where."""
_SHOWN_CORES = 4


@dataclass(frozen=True, slots=True)
class Task:
    """The work of one core."""

    id: CoreId
    body: Body


@dataclass(eq=False)
class _CrossFlags:
    """The counters of every core's flags, and the signals that are not complete yet."""

    topology: Topology
    counters: dict[tuple[CoreId, int], int] = field(default_factory=dict)
    arrivals: dict[tuple[CoreId, int, int], int] = field(default_factory=dict)

    def signal(self, core: CoreId, mode: int, flag: int) -> list[CoreId]:
        """Count a signal; return the cores whose counter passed the hardware's limit."""
        key = (core, mode, flag)
        self.arrivals[key] = self.arrivals.get(key, 0) + 1
        peers = self.topology.peers(core, mode)
        if not all(self.arrivals.get((peer, mode, flag), 0) for peer in peers):
            return []
        for peer in peers:
            self.arrivals[peer, mode, flag] -= 1
        over = []
        for receiver in self.topology.receivers(core, mode):
            value = self.counters.get((receiver, flag), 0) + 1
            self.counters[receiver, flag] = value
            if value > CROSS_CORE_LIMIT:
                over.append(receiver)
        return over

    def missing(self, receiver: CoreId, flag: int) -> list[CoreId]:
        """Return the cores whose signal a receiver lacks where others have sent theirs."""
        found: set[CoreId] = set()
        for (sender, mode, number), count in self.arrivals.items():
            if count and number == flag and receiver in self.topology.receivers(sender, mode):
                peers = self.topology.peers(sender, mode)
                found |= {peer for peer in peers if not self.arrivals.get((peer, mode, flag), 0)}
        return sorted(found)

    def take(self, core: CoreId, flag: int) -> bool:
        """Take one from a counter; False while it stands at 0."""
        if not self.counters.get((core, flag), 0):
            return False
        self.counters[core, flag] -= 1
        return True


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of a run: its findings, and the number of instructions issued."""

    findings: tuple[SanitizerFinding, ...]
    issued: int


def run(
    chip: Chip,
    gm: GlobalMemory,
    tasks: Sequence[Task],
    execute: Callable[[Core, Recorded], None] = execute.execute,
    checks: frozenset[str] | None = None,
    order: str = "program",
    ended: Callable[[Core], None] | None = None,
) -> RunOutcome:
    """Run every task to its end and return what the `checks` found.

    None: those that need no order. A piece of a program has no flags, so that racecheck and
    synccheck would find every step of it. `order` is program, late, early or random:SEED
    (`cubecore.machine.reference.queue_order`); racecheck and synccheck judge program order alone.
    `ended` is told of each core at its end.

    Raises
    ------
    DeadlockError
        If every core that has not ended waits for another; it carries the findings.
    """
    log = FindingLog(USUAL if checks is None else checks)
    flags = _CrossFlags(Topology([task.id for task in tasks]))
    stuck: dict[CoreId, DeadlockError] = {}
    waiting: dict[CoreId, Wait] = {}
    signal, wait = _handshake(log, flags, waiting)
    cores: dict[CoreId, Core] = {}
    threads: dict[CoreId, greenlet] = {}
    sanitizer = None
    schedule = schedule_of(order)
    if schedule is None and checks is not None and checks & WATCHES:
        sanitizer = Sanitizer(gm, log, [task.id for task in tasks], joined=chip.joins_vector)
    for task in sorted(tasks, key=lambda t: t.id):
        watch = None if sanitizer is None else sanitizer.watch(task.id)
        registers = Registers(position=flags.topology.position(task.id))
        core = Core(task.id, chip, gm, log, execute, signal, wait, watch, registers)
        if schedule is not None:
            core.queues = Queues(schedule, core, partial(signal, core))
        cores[task.id] = core
        threads[task.id] = greenlet(_thread(task.body, core, ended))
    with one_thread(task.id for task in tasks):
        choose = (lambda _: 0) if schedule is None else schedule.core
        try:
            _run_threads(
                threads, waiting, flags, stuck, lambda core: cores[core].memories.clear(), choose
            )
            if stuck or waiting:
                raise _deadlock(stuck, waiting, flags)
        except CubecoreError as error:
            _log_stuck(log, stuck, cores)
            if isinstance(error, DeadlockError):
                _log_waiting(log, waiting, flags)
            error.findings = tuple(log)
            raise
    if sanitizer is not None:
        sanitizer.finish()
    return RunOutcome(tuple(log), sum(core.issued for core in cores.values()))


def _handshake(
    log: FindingLog, flags: _CrossFlags, waiting: dict[CoreId, Wait]
) -> tuple[
    Callable[[Core, FftsCrossCoreSync, Location], None],
    Callable[[Core, WaitFlagDev, Location], None],
]:
    """Return how a core signals and how it waits; a wait hands the turn to the caller's thread."""
    hub = getcurrent()

    def signal(core: Core, sync: FftsCrossCoreSync, where: Location) -> None:
        for receiver in flags.signal(core.id, sync.mode, sync.flag_id):
            log.add(_overflow(sync, where, core.id, receiver))

    def wait(core: Core, sync: WaitFlagDev, where: Location) -> None:
        while not flags.take(core.id, sync.flag_id):
            waiting[core.id] = sync.flag_id, where
            hub.switch()

    return signal, wait


def _log_stuck(
    log: FindingLog, stuck: Mapping[CoreId, DeadlockError], cores: Mapping[CoreId, Core]
) -> None:
    """Log each core whose own pipes wait for each other."""
    for ident, stopped in sorted(stuck.items()):
        queues = cores[ident].queues
        assert queues is not None
        assert queues.stuck_at is not None
        _log_deadlock(log, ident, (str(stopped), "wait_flag", queues.stuck_at))


def _log_waiting(log: FindingLog, waiting: Mapping[CoreId, Wait], flags: _CrossFlags) -> None:
    """Log each core that waits for another one."""
    for ident, (flag, where) in sorted(waiting.items()):
        message = _waits(ident, flag, where, flags)
        _log_deadlock(log, ident, (message, WaitFlagDev.name, where))


def _overflow(
    sync: FftsCrossCoreSync, where: Location, sender: CoreId, receiver: CoreId
) -> SanitizerFinding:
    message = (
        f"flag {sync.flag_id} of {receiver} must stand at {CROSS_CORE_LIMIT} at most, "
        f"got {CROSS_CORE_LIMIT + 1}; wait for it in between"
    )
    return SanitizerFinding("flag-overflow", message, sync.name, where, str(sender))


def _run_threads(
    threads: dict[CoreId, greenlet],
    waiting: dict[CoreId, Wait],
    flags: _CrossFlags,
    stuck: dict[CoreId, DeadlockError],
    done: Callable[[CoreId], None],
    choose: Callable[[int], int],
) -> None:
    """Run a ready core until it waits or ends, until none is; `choose` says which.

    A core whose pipes are `stuck` ends there; the others go on, so that all of them are told.
    """
    while able := [core for core in threads if _is_ready(core, waiting, flags)]:
        ready = able[choose(len(able))]
        waiting.pop(ready, None)
        try:
            threads[ready].switch()
        except DeadlockError as error:
            stuck[ready] = error
        if threads[ready].dead:
            del threads[ready]
            done(ready)


def _thread(body: Body, core: Core, ended: Callable[[Core], None] | None) -> Callable[[], None]:
    def run_body() -> None:
        body(core)
        core.flush()
        if core.queues is not None:
            core.queues.drain()
        if core.watch is not None:
            core.watch.finish()
        if ended is not None:
            ended(core)

    return run_body


def _is_ready(core: CoreId, waiting: dict[CoreId, Wait], flags: _CrossFlags) -> bool:
    wait = waiting.get(core)
    return wait is None or flags.counters.get((core, wait[0]), 0) > 0


def _log_deadlock(log: FindingLog, core: CoreId, told: tuple[str, str, Location]) -> None:
    """Log a deadlock of one core: its sentence, the instruction and where it waits."""
    message, instruction, where = told
    log.add(SanitizerFinding("deadlock", message, instruction, where, str(core)), str(core))


def _deadlock(
    stuck: dict[CoreId, DeadlockError], waiting: dict[CoreId, Wait], flags: _CrossFlags
) -> DeadlockError:
    told = [str(error) for _, error in sorted(stuck.items())]
    told += [_waits(core, *wait, flags) for core, wait in waiting.items()]
    head = "deadlock" if stuck else "deadlock, no core sends a signal"
    sentence = f"{head}: {'; '.join(told)}"
    return DeadlockError([Violation("every wait", "", "; ".join(told), sentence=sentence)])


def _waits(core: CoreId, flag: int, where: Location, flags: _CrossFlags) -> str:
    missing = [str(sender) for sender in flags.missing(core, flag)]
    if len(missing) > _SHOWN_CORES:
        missing[_SHOWN_CORES:] = [f"{len(missing) - _SHOWN_CORES} more cores"]
    verb = "has" if len(missing) == 1 else "have"
    unsent = f"{', '.join(missing)} {verb} not sent" if missing else "no core has sent"
    return f"{core} waits for flag {flag} at {where}, which {unsent}"
