"""The execution protocol: every core on its own greenlet, switching only where it must.

A core runs until it waits for another core or ends; then another one has its turn
(`sanitizer.turns`), in the order of (core, sub-core). When none is ready, the run is a deadlock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from greenlet import getcurrent, greenlet

from cubecore.arrays import keep_freed_memory
from cubecore.chips.model import Chip
from cubecore.errors import CubecoreError, DeadlockError
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId, Topology
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.machine.blas.threads import one_thread
from cubecore.machine.execute import one_core
from cubecore.machine.execute.core import Core, Recorded
from cubecore.machine.execute.one_core import follow_issue
from cubecore.machine.execute.queue_order import Queues, schedule_of
from cubecore.machine.finding_kinds import USECHECK, USUAL, WATCHES
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.data_cache import DataCaches
from cubecore.machine.sanitize.core_schedule import take_turns
from cubecore.machine.sanitize.cross_core import NOTHING, Signals, send_judged
from cubecore.machine.sanitize.deadlocks import Standing, Wait, deadlock, log_deadlocks
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.machine.sanitize.racecheck import Sanitizer

Body = Callable[[Core], None]


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
    execute: Callable[[Core, Recorded], None] = one_core.execute,
    checks: frozenset[str] | None = None,
    order: str = "program",
    ended: Callable[[Core], None] | None = None,
) -> RunOutcome:
    """Run every task to its end and return what the `checks` found.

    None: those that need no order. A piece of a program has no flags, so that racecheck and
    synccheck would find every step of it. `order` is program, late, early or random:SEED
    (`cubecore.machine.execute.queue_order`); racecheck and synccheck judge program order in each
    of them, where values locate no operands.
    `ended` is called with each core at its end.

    Raises
    ------
    DeadlockError
        If every core that has not ended waits for another; it carries the findings.
    """
    log = FindingLog(USUAL if checks is None else checks)
    if checks is not None and USECHECK in checks:
        gm.follow_fillings()
    sanitizer = None
    schedule = schedule_of(order)
    ids = [task.id for task in tasks]
    gm.windows.begin(ids)
    if checks is not None and checks & WATCHES:
        sanitizer = Sanitizer(gm, log, ids, joined=chip.joins_vector)
    flags = Signals(ids) if sanitizer is None else sanitizer.signals
    topology, threads, caches = Topology(ids), list[_Thread](), DataCaches(gm)
    for task in sorted(tasks, key=lambda t: t.id):
        handshake = _Handshake(log, flags)
        watch = None if sanitizer is None else sanitizer.watch(task.id)
        registers = Registers(position=topology.position(task.id))
        signal, wait = handshake.signal, handshake.wait
        core = Core(task.id, chip, gm, log, execute, signal, wait, watch, registers)
        if schedule is not None:
            follow = None if watch is None else partial(follow_issue, core, watch)
            core.queues = Queues(schedule, core, partial(handshake.issued, core), follow)
            core.data_cache = caches.of_core() if schedule.holds_lines else None
        threads.append(_Thread(core, handshake, _running(task.body, core, ended)))
    keep_freed_memory()
    with one_thread(ids):
        try:
            take_turns(threads) if schedule is None else take_turns(threads, schedule.core)
            never = deadlock([thread.standing for thread in threads], log)
            if never is not None:
                raise never
        except CubecoreError as error:
            waits = isinstance(error, DeadlockError)
            log_deadlocks(log, [thread.standing for thread in threads], waits=waits)
            error.findings = tuple(log)
            raise
    caches.end()
    if sanitizer is not None:
        sanitizer.finish()
    return RunOutcome(tuple(log), sum(thread.core.issued for thread in threads))


class _Handshake:
    """Signals of a core to others, and its waits for them: `waits` is for which flag, and where.

    It knows no core: who has ended is freed at once.
    """

    def __init__(self, log: FindingLog, flags: Signals) -> None:
        self._log, self.flags, self._hub = log, flags, getcurrent()
        self.waits: Wait | None = None

    def signal(self, core: Core, sync: FftsCrossCoreSync, where: Location) -> None:
        """Signal to other cores."""
        self.issued(core, sync, where)()

    def issued(self, core: Core, sync: FftsCrossCoreSync, where: Location) -> Callable[[], None]:
        """Return what sends a signal that a core issues, with what is known of it now."""
        carried = [NOTHING] if core.watch is None else core.watch.signal(sync, where)
        return partial(send_judged, self.flags, self._log, core.id, sync, where, carried)

    def wait(self, core: Core, sync: WaitFlagDev, where: Location) -> None:
        """Wait for other cores: hand the turn to the caller's thread."""
        while not self.flags.met([core.id], sync.counter):
            self.waits = sync.counter, where
            self._hub.switch()
        carried = self.flags.heard([core.id], sync.counter)
        core.gm.windows.arrive([core.id], core.memory)
        if core.watch is not None:
            core.watch.hear(carried)


class _Thread:
    """A core on its greenlet; `stuck` is the deadlock of its own pipes, at which it ends."""

    def __init__(self, core: Core, handshake: _Handshake, run_body: Callable[[], None]) -> None:
        self.core, self._handshake = core, handshake
        self._greenlet = greenlet(run_body)
        self.stuck: DeadlockError | None = None
        self._judged = False

    @property
    def ready(self) -> bool:
        """True if the core has not ended, and waits for none or was told to go on."""
        waits, flags = self._handshake.waits, self._handshake.flags
        met = waits is None or flags.met([self.core.id], waits[0])
        return met and not self._greenlet.dead

    def go_on(self) -> None:
        """Go on until the core waits or ends; others are told of its own pipes' deadlock later."""
        self._handshake.waits = None
        try:
            self._greenlet.switch()
        except DeadlockError as error:
            self.stuck = error
            self._judged = self.core.watch is not None and self.core.watch.give_up()
        if self._greenlet.dead:
            self.core.memories.clear()

    @property
    def standing(self) -> Standing:
        """The place at which the core stands."""
        core, waits, queues = self.core.id, self._handshake.waits, self.core.queues
        flags = self._handshake.flags
        missing = [] if waits is None else flags.missing(core, waits[0])
        unsent = waits is not None and not (missing or flags.was_raised(core, waits[0]))
        stuck_at = None if queues is None else queues.stuck_at
        return Standing(core, waits, missing, self.stuck, stuck_at, self._judged, unsent)


def _running(body: Body, core: Core, ended: Callable[[Core], None] | None) -> Callable[[], None]:
    """Return what runs a core's work to its end; what it issues before it fails is executed."""

    def run_body() -> None:
        try:
            body(core)
        except Exception:
            core.flush()
            raise
        core.flush()
        if core.queues is not None:
            core.queues.drain()
        if core.watch is not None:
            core.watch.finish()
        if ended is not None:
            ended(core)

    return run_body
