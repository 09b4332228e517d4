"""The execution protocol: every core on its own greenlet, switching only where it must.

A core runs until it waits for another core or ends. The next core is the first ready one in the
order of (core, sub-core). When none is ready, the run is a deadlock.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from greenlet import getcurrent, greenlet

from cubecore.chips.model import Chip
from cubecore.errors import CubecoreError, DeadlockError, Violation
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId, Topology
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.blas.threads import one_thread
from cubecore.machine.memory.allocator import keep_freed_memory
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.reference import execute
from cubecore.machine.reference.core import Core, Recorded
from cubecore.machine.reference.queue_order import Queues, schedule_of
from cubecore.machine.sanitizer.cross_core import NOTHING, Signals, overflow
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
    `ended` is called with each core at its end.

    Raises
    ------
    DeadlockError
        If every core that has not ended waits for another; it carries the findings.
    """
    log = FindingLog(USUAL if checks is None else checks)
    sanitizer = None
    schedule = schedule_of(order)
    ids = [task.id for task in tasks]
    if schedule is None and checks is not None and checks & WATCHES:
        sanitizer = Sanitizer(gm, log, ids, joined=chip.joins_vector)
    flags = Signals(ids) if sanitizer is None else sanitizer.signals
    topology = Topology(ids)
    stuck: dict[CoreId, DeadlockError] = {}
    waiting: dict[CoreId, Wait] = {}
    signal, wait = _handshake(log, flags, waiting)
    cores: dict[CoreId, Core] = {}
    threads: dict[CoreId, greenlet] = {}
    for task in sorted(tasks, key=lambda t: t.id):
        watch = None if sanitizer is None else sanitizer.watch(task.id)
        registers = Registers(position=topology.position(task.id))
        core = Core(task.id, chip, gm, log, execute, signal, wait, watch, registers)
        if schedule is not None:
            core.queues = Queues(schedule, core, partial(signal, core))
        cores[task.id] = core
        threads[task.id] = greenlet(_thread(task.body, core, ended))
    keep_freed_memory()
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
                _log_waiting(log, waiting, flags, stuck)
            error.findings = tuple(log)
            raise
    if sanitizer is not None:
        sanitizer.finish()
    return RunOutcome(tuple(log), sum(core.issued for core in cores.values()))


def _handshake(
    log: FindingLog, flags: Signals, waiting: dict[CoreId, Wait]
) -> tuple[
    Callable[[Core, FftsCrossCoreSync, Location], None],
    Callable[[Core, WaitFlagDev, Location], None],
]:
    """Return how a core signals and how it waits; a wait hands the turn to the caller's thread."""
    hub = getcurrent()

    def signal(core: Core, sync: FftsCrossCoreSync, where: Location) -> None:
        (carried,) = (NOTHING,) if core.watch is None else core.watch.signal(sync, where)
        for receiver in flags.send(core.id, sync, carried):
            log.add(overflow(sync, where, core.id, receiver))

    def wait(core: Core, sync: WaitFlagDev, where: Location) -> None:
        while not flags.count(core.id, sync.flag_id):
            waiting[core.id] = sync.flag_id, where
            hub.switch()
        carried = flags.heard(core.id, sync.flag_id)
        if core.watch is not None:
            core.watch.hear([carried])

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


def _log_waiting(
    log: FindingLog,
    waiting: Mapping[CoreId, Wait],
    flags: Signals,
    stuck: Mapping[CoreId, DeadlockError],
) -> None:
    """Log each core that waits for another one."""
    for ident, (_, where) in sorted(waiting.items()):
        message = _waits(ident, waiting, flags, stuck)
        _log_deadlock(log, ident, (message, WaitFlagDev.name, where))


def _run_threads(
    threads: dict[CoreId, greenlet],
    waiting: dict[CoreId, Wait],
    flags: Signals,
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


def _is_ready(core: CoreId, waiting: dict[CoreId, Wait], flags: Signals) -> bool:
    wait = waiting.get(core)
    return wait is None or flags.count(core, wait[0]) > 0


def _log_deadlock(log: FindingLog, core: CoreId, report: tuple[str, str, Location]) -> None:
    """Log a deadlock of one core: its sentence, the instruction and where it waits."""
    message, instruction, where = report
    log.add(SanitizerFinding("deadlock", message, instruction, where, str(core)), str(core))


def _deadlock(
    stuck: dict[CoreId, DeadlockError], waiting: dict[CoreId, Wait], flags: Signals
) -> DeadlockError:
    sentences = [str(error) for _, error in sorted(stuck.items())]
    sentences += [_waits(core, waiting, flags, stuck) for core in waiting]
    head = "deadlock" if stuck else "deadlock, no core sends a signal"
    sentence = f"{head}: {'; '.join(sentences)}"
    return DeadlockError([Violation("every wait", "", "; ".join(sentences), sentence=sentence)])


def _waits(
    core: CoreId,
    waiting: Mapping[CoreId, Wait],
    flags: Signals,
    stuck: Mapping[CoreId, DeadlockError],
) -> str:
    """Return what a core waits for, from whom, and where those stand."""

    def standing(sender: CoreId) -> str:
        if sender in waiting:
            return f"{sender} (waiting at {waiting[sender][1]})"
        return f"{sender} ({'held by its own pipes' if sender in stuck else 'at its end'})"

    flag, where = waiting[core]
    missing = [standing(sender) for sender in flags.missing(core, flag)]
    if len(missing) > _SHOWN_CORES:
        missing[_SHOWN_CORES:] = [f"{len(missing) - _SHOWN_CORES} more cores"]
    verb = "has" if len(missing) == 1 else "have"
    unsent = f"{', '.join(missing)} {verb} not sent" if missing else "no core has sent"
    return f"{core} waits for flag {flag} at {where}, which {unsent}"
