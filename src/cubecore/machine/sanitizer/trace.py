"""racecheck and synccheck of a recorded trace, without any values."""

from collections.abc import Callable

from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import FftsCrossCoreSync, Sync, WaitFlagDev
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitizer.findings import FindingLog, SanitizerFinding
from cubecore.machine.sanitizer.racecheck import CoreWatch, Sanitizer

Follow = Callable[[tuple[int, ...]], object]


def trace_findings(
    trace: InstructionTrace,
    core: CoreId,
    gm: GlobalMemory,
    checks: frozenset[str],
    *,
    joined: bool = False,
) -> tuple[SanitizerFinding, ...]:
    """Return what racecheck and synccheck find in what one core issued.

    The trace stands for itself: what registers held before, what other cores do and their flags are
    not in it. Operands that values would decide are left out. `joined` says that Cube and Vector
    share a core.
    """
    log = FindingLog(checks)
    watch = Sanitizer(gm, log, [core], joined=joined).watch(core)
    follower = _Follower(watch)
    for template, addresses, where in trace:
        follower.issue(template, addresses, where)
    watch.finish()
    return tuple(log)


class _Follower:
    """Follows a core; what an instruction does at a place is found out once for equal registers."""

    def __init__(self, watch: CoreWatch) -> None:
        self._watch = watch
        self._states: dict[Registers, dict[tuple[int, int], Follow]] = {}
        self._enter(Registers())

    def _enter(self, registers: Registers) -> None:
        self._registers = registers
        self._known = self._states.setdefault(registers, {})

    def issue(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Follow an instruction."""
        key = id(template), id(where)  # a trace holds both as long as this lives
        follow = self._known.get(key)
        if follow is None:
            follow = self._known[key] = self._follow(template, where)
        follow(addresses)

    def _follow(self, template: Instruction, where: Location) -> Follow:
        if isinstance(template, (FftsCrossCoreSync, WaitFlagDev)):
            return lambda _: None
        if isinstance(template, Sync):
            follow_sync = self._watch.syncer(template, where)
            return lambda _: follow_sync()
        resolved = template.resolved(self._registers)
        after = resolved.apply(self._registers)
        if after != self._registers:
            return lambda _: self._enter(after)
        if resolved.steering or not (resolved.operands() or resolved.register):
            return lambda _: None
        if type(resolved).rebased is not Instruction.rebased:
            return lambda addresses: self._rebased(resolved, addresses, where)
        follow = self._watch.follower(resolved, where, self._registers)
        return lambda addresses: follow(resolved.places(addresses))

    def _rebased(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        found, own = template.rebased(addresses)
        self._watch.touch(found, found.places(own), where, self._registers)
