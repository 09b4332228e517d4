"""racecheck and synccheck: races between accesses, and flags that are set or waited for wrongly.

A `Sanitizer` watches a launch, a `CoreWatch` one core of it, in program order. Values play no part:
each instruction is judged by the bytes that it touches and by what its pipe's clock knows.
"""

from collections.abc import Callable, Sequence
from functools import partial

from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.topology import CoreId, Topology
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import Dcci
from cubecore.isa.scalar.store import stores_locally
from cubecore.isa.scalar.sync import (
    JOINED_PAIRS,
    FftsCrossCoreSync,
    Lock,
    PipeBarrier,
    SetFlag,
    Sync,
    Unlock,
    WaitFlag,
    joined_pipes,
    pairs,
    signal_name,
)
from cubecore.machine.finding_kinds import RACECHECK, USECHECK
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.footprint import Footprint, footprints
from cubecore.machine.memory.operation import combines
from cubecore.machine.sanitize.cross_core import Signals
from cubecore.machine.sanitize.data_caches import CoreCache, DataCacheOrder
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.findings import SanitizerFinding
from cubecore.machine.sanitize.flags import INDEX, SCALAR, Flag, FlagFault, Foreign
from cubecore.machine.sanitize.global_shadow import GlobalShadow
from cubecore.machine.sanitize.happens_before import STORES, CoreOrder
from cubecore.machine.sanitize.overwritten_arrays import OverwrittenArrays
from cubecore.machine.sanitize.race_findings import WatchFindings
from cubecore.machine.sanitize.shadow_memory import (
    Clash,
    LocalShadow,
    MemoryAccess,
    Numbered,
    Region,
    Special,
    Touched,
    register_touch,
)
from cubecore.machine.sanitize.unit_flags import UnitFlags

Follow = Callable[[Sequence[int]], None]
"""Follows an instruction of one location at its operands' addresses."""
FollowAt = Callable[[Sequence[int], Location], None]
_Planned = tuple[int | None, Footprint, LocalShadow | None, dict[int, Region], MemoryAccess]
"""An operand by its number, its bytes, their shadow if they are local, and their regions there."""


class Sanitizer:
    """Watches the cores of one launch; findings go to its log."""

    def __init__(
        self, gm: GlobalMemory, log: FindingLog, cores: Sequence[CoreId], *, joined: bool = False
    ) -> None:
        self.gm, self.log, self.joined = gm, log, joined
        self.cores = tuple(cores)
        self.signals = Signals(self.cores)
        self.memory = GlobalShadow()
        self.caches = DataCacheOrder(self.cores, self.memory)
        self._topology = Topology(self.cores)
        self._counters: dict[tuple[CoreId, int, int], list[tuple[CoreId, int]]] = {}
        self._last: dict[tuple[CoreId, int], tuple[str, Location]] = {}

    def watch(self, core: CoreId, stands_for: int = 1) -> "CoreWatch":
        """Return the watch of one core, which stands for so many that touch the same."""
        return CoreWatch(self, (core,), self.log.counting(stands_for))

    def signalled(self, core: CoreId, sync: FftsCrossCoreSync, where: Location) -> None:
        """Remember the last signal on a core's flags, to name it if no wait follows."""
        key = core, sync.mode, sync.counter
        counters = self._counters.get(key)
        if counters is None:
            counters = self._counters[key] = self._topology.counters(*key)
        for counter in counters:
            self._last[counter] = sync.name, where

    def finish(self) -> None:
        """Judge what the launch leaves behind: counters between cores that stand above 0."""
        for core, flag, count in self.signals.left():
            name, where = self._last[core, flag]
            message = (
                f"{signal_name(flag)} of {core} counts {count} at the end, since {where}; "
                "wait for it as often as it is signalled"
            )
            self.log.add(
                SanitizerFinding("flag-leaked", message, name, where, str(core)), f"{core} {flag}"
            )


class CoreWatch:
    """Watches what a core issues, or cores that issue alike: the first stands for all.

    `log` counts each finding for as many cores as it stands for. `follows_lines`: lines of the data
    cache that it shares with other cores are followed.
    """

    follows_lines = True

    def __init__(self, sanitizer: Sanitizer, cores: Sequence[CoreId], log: FindingLog) -> None:
        self._launch, self.log = sanitizer, log
        self._findings = WatchFindings(sanitizer.gm, sanitizer.cores, cores[0], log)
        numbers = [sanitizer.cores.index(core) for core in cores]
        self._number = numbers[0]
        self.order = CoreOrder(self._fault, numbers, len(sanitizer.cores))
        self._local: dict[Mem | Special, LocalShadow] = {}
        self._followers = BoundedCache[tuple[Instruction, str, str, bool], FollowAt]()
        self._units = UnitFlags(self._fault)
        self._cache: CoreCache | None = None
        if self.follows_lines and len(sanitizer.cores) > 1 and RACECHECK in self.log.checks:
            self._cache = sanitizer.caches.of_core(self._number, self.order, self._findings.of_line)
        self._pairs = JOINED_PAIRS if sanitizer.joined else pairs(aic=cores[0].is_aic)

    # --- what the core issues

    def syncer(self, template: Sync, where: Location) -> Callable[[], None]:
        """Return what follows a flag or a barrier of this core."""
        if isinstance(template, (SetFlag, WaitFlag)):
            if (template.src, template.dst) not in self._pairs:
                return partial(self._findings.no_such_pair, template, where)
            flag = Flag(INDEX[template.src], INDEX[template.dst], template.event_id)
            of_flag = self.order.set_flag if isinstance(template, SetFlag) else self.order.wait_flag
            return partial(of_flag, flag, where)
        if isinstance(template, (Lock, Unlock)):
            of_mutex = self.order.lock if isinstance(template, Lock) else self.order.unlock
            return partial(of_mutex, INDEX[template.on], template.mutex_id, where, template.mode)
        if joined := joined_pipes(template):
            return partial(self.order.barrier_all, [INDEX[pipe] for pipe in joined])
        if isinstance(template, PipeBarrier):
            return partial(self.order.barrier, INDEX[template.on], where)
        return _nothing

    def sync(self, template: Sync, where: Location) -> None:
        """Follow a flag or a barrier of this core."""
        self.syncer(template, where)()

    def signal(self, template: FftsCrossCoreSync, where: Location) -> Foreign:
        """Follow a signal to other cores; return what each core's carries."""
        for number in self.order.cores.tolist():
            self._launch.signalled(self._launch.cores[number], template, where)
        return self.order.signal(INDEX[template.on])

    def hear(self, carried: Sequence[Foreign]) -> bool:
        """Follow the end of a wait for other cores; each core has heard what a signal carried.

        False if some cores know more of themselves than is followed.
        """
        return self.order.hear(carried)

    def touch(
        self,
        template: Instruction,
        addresses: Sequence[int],
        where: Location,
        registers: Registers,
    ) -> None:
        """Follow an instruction that touches memory: `addresses` are those of its operands."""
        if template.steering:  # what values have steered is seldom the same again
            accesses = touches(template, addresses, where, registers)
            self.submit(clocked_as(template), accesses, where)
            return
        key = template, registers.atomic, registers.atomic_type, registers.resets_units
        follow = self._followers.get(key)
        if follow is None:
            follow = self._followers[key] = self.followers(template, registers)
        follow(addresses, where)

    def followers(self, template: Instruction, registers: Registers) -> FollowAt:
        """Return what follows a resolved template at addresses, from wherever it is issued."""
        followers_at: dict[int, tuple[Follow, Location]] = {}
        if isinstance(template, Dcci):
            return partial(self._clean, template)

        def follow(addresses: Sequence[int], where: Location) -> None:
            follower = followers_at.get(id(where))
            if follower is None:
                of_place = self.follower(template, where, registers)
                follower = followers_at[id(where)] = of_place, where
            follower[0](addresses)

        return follow

    def _clean(self, template: Dcci, _: Sequence[int], where: Location) -> None:
        """Follow a dcci."""
        if self._cache is not None:
            self.order.submit(SCALAR, partial(self._cache.clean, template), where)

    def follower(
        self, template: Instruction, where: Location, registers: Registers, *, globally: bool = True
    ) -> Follow:
        """Return what follows a resolved template at addresses, its footprints looked up once.

        Not `globally`: what it touches in global memory is left out.
        """
        # All look-ups that do not depend on addresses are made here, once per template and
        # location. The plan's `memo` maps an address to its region, so that a loop's accesses cost
        # a dictionary look-up.
        order, pipe = self.order, clocked_as(template)
        held, plan = order.held[pipe], list[_Planned]()
        index_of = {operand.name: index for index, operand in enumerate(template.operands())}
        for touched, _, touch in _known_touches(template, where, registers):
            if globally or touch.mem is not Mem.GM:
                shadow = None if touch.mem is Mem.GM else self.shadow(touch.mem)
                memo = {} if shadow is None else shadow.memo()
                plan.append((index_of.get(touch.operand), touched, shadow, memo, touch))

        def follow(addresses: Sequence[int]) -> None:
            if held or order.stuck:
                order.submit(pipe, lambda: self._enter_planned(pipe, plan, addresses), where)
            else:
                self._enter_planned(pipe, plan, addresses)

        if not plan:
            return lambda _: None
        return self._with_units(template, where, registers, follow)

    def _with_units(
        self, template: Instruction, where: Location, registers: Registers, follow: Follow
    ) -> Follow:
        """Return `follow`, and the unit flags for what shares them.

        They are not judged where some are reset, nor behind a deadlock.
        """
        if not template.shares_units or registers.resets_units:
            return follow
        names = [operand.name for operand in template.operands()]
        touched = _known_touches(template, where, registers)
        tile = next(used for used in reversed(touched) if used[2].mem is Mem.L0C)
        index, share = names.index(tile[2].operand), self._units.follower(template, tile, where)

        def both(addresses: Sequence[int]) -> None:
            if not self.order.stuck:
                share(addresses[index])
            follow(addresses)

        return both

    def scalar_read(self, touch: MemoryAccess, low: int, high: int) -> None:
        """Follow the scalar unit's own read of bytes [low, high)."""
        touched = Footprint.run(low, high)
        self.submit(SCALAR, [(touched, 0, touch)], touch.where)

    def submit(self, pipe: int, accesses: Sequence[Touched], where: Location) -> None:
        """Follow accesses of an instruction of a pipe."""
        self.order.submit(pipe, lambda: self._enter(pipe, accesses), where)

    def unread(self) -> dict[tuple[Mem | Special, Footprint, int], Numbered]:
        """Return the results that nobody has read, and what left them, by their places."""
        return {
            (mem, touched, address): fresh
            for mem, shadow in self._local.items()
            for touched, address, fresh in shadow.unread()
        }

    @property
    def rests(self) -> bool:
        """True if nothing that comes later can meet anything that came before."""
        return self.order.rests and self._units.rest

    def give_up(self) -> bool:
        """Judge the waits that hold pipes: the core does not go on. False if none do."""
        return self.order.give_up()

    def finish(self) -> None:
        """Judge what the core leaves behind."""
        for shadow in self._local.values():
            shadow.finish()
        if not self.order.stuck:
            self._units.finish()
        self.order.finish()
        self._followers.clear()

    def release(self) -> None:
        """Drop the shadows, whose regions refer to each other."""
        for shadow in self._local.values():
            shadow.release()
        self._local.clear()

    # --- accesses

    def _enter(self, pipe: int, accesses: Sequence[Touched]) -> None:
        """Follow accesses at their addresses."""
        plan: list[_Planned] = [
            (number, touched, None if touch.mem is Mem.GM else self.shadow(touch.mem), {}, touch)
            for number, (touched, _, touch) in enumerate(accesses)
        ]
        self._enter_planned(pipe, plan, [address for _, address, _ in accesses])

    def _enter_planned(
        self, pipe: int, plan: Sequence["_Planned"], addresses: Sequence[int]
    ) -> None:
        # All operands are judged before any is entered: an instruction must not race with itself,
        # as where it reads and writes the same bytes.
        number = self.order.enter(pipe)
        entered = []
        for index, touched, shadow, memo, touch in plan:
            at = 0 if index is None else addresses[index]
            if shadow is None:
                self._global(touched, at, touch, pipe, number)
                continue
            region = memo.get(at)
            if region is None:
                region = memo[at] = shadow.region(touched, at, writes=touch.writes)
            shadow.judge(region, pipe, touch)
            entered.append((shadow, region, touch))
        if pipe == STORES:  # what the scalar unit reads it has read before it goes on
            entered = [each for each in entered if each[2].writes]
        for shadow, region, touch in entered:
            shadow.enter(region, pipe, number, touch)
        if self._launch.gm.windows.are_used:
            self._in_windows(pipe, number, plan, addresses)

    def _in_windows(
        self, pipe: int, number: int, plan: Sequence["_Planned"], addresses: Sequence[int]
    ) -> None:
        """Follow accesses of a memory that other parts write to, too: as of their window."""
        starts = self._launch.gm.windows.windows_of(self._launch.cores[self._number])
        for index, touched, _, _, touch in plan:
            start = starts.get(touch.mem) if isinstance(touch.mem, Mem) else None
            if start is not None and (touch.writes or pipe != STORES):
                at = 0 if index is None else addresses[index]
                self._global(touched, start + at, touch, pipe, number)

    def _global(
        self, touched: Footprint, address: int, touch: MemoryAccess, pipe: int, number: int
    ) -> None:
        if self._cache is not None:
            self._cache.touch(touched, address, touch, number)
        report = self.report, self.again
        self._launch.memory.touch(
            self._number, self.order, report, touched, address, pipe, number, touch
        )

    def shadow(self, mem: Mem | Special) -> LocalShadow:
        """Return the shadow of a local memory, or of the registers."""
        shadow = self._local.get(mem)
        if shadow is None:
            uses, arrays = USECHECK in self.log.checks, None
            if isinstance(mem, Mem):
                arrays = OverwrittenArrays(mem, self._launch.gm, self.report)
            shadow = self._local[mem] = LocalShadow(
                self.order, (self.report, self.again), uses=uses, arrays=arrays
            )
        return shadow

    # --- findings

    def _fault(self, fault: FlagFault) -> None:
        """Log a flag that is set or waited for wrongly."""
        self._findings.fault(fault)

    def again(self, kind: str, earlier: MemoryAccess, later: MemoryAccess) -> bool:
        """Count a clash of two touches that were reported before; False if they were not."""
        return self._findings.again(kind, earlier, later)

    def report(self, clash: Clash) -> None:
        """Log a race, or a result that is lost; one that is known only counts."""
        self._findings.report(clash)


def touches(
    template: Instruction, addresses: Sequence[int], where: Location, registers: Registers
) -> list[Touched]:
    """Return what an instruction touches, what it reads first, as it reads it first."""
    accesses, operands = [], template.operands()
    # `makes` is for unread results: only what is computed from memory counts as one, as copies and
    # fills are often larger than what is used of them.
    computes = not (template.copies or _sets_register(template)) and any(
        o.access.reads for o in operands
    )
    given = zip(operands, addresses, footprints(template), strict=True)
    for operand, address, touched in given:
        if touched is None or operand.idle:
            continue
        access, mem = operand.access, operand.mem
        atomic = template.atomically
        if mem is Mem.GM and access.writes and combines(template, registers):
            atomic = f"{registers.atomic} {registers.atomic_type}"
        makes = computes and access.writes
        touch = MemoryAccess(
            template, operand.name, mem, access.reads, access.writes, where, atomic, makes
        )
        accesses.append((touched, address, touch))
    if (used := register_touch(template, where)) is not None:
        accesses.append(used)
    # Reads before writes (False sorts first); the sort is stable, so that operands keep their
    # order.
    accesses.sort(key=lambda entry: entry[2].writes)
    return accesses


def clocked_as(template: Instruction) -> int:
    """Return the number of the pipe that an instruction counts on in clocks."""
    return STORES if stores_locally(template) else INDEX[template.pipe.value]


_Touching = tuple[Sequence[Touched], Location]
_KNOWN: BoundedCache[tuple[Instruction, int, str, str], _Touching] = BoundedCache()


def _known_touches(
    template: Instruction, where: Location, registers: Registers
) -> Sequence[Touched]:
    """Return what an instruction touches, its operands at 0: the same in the next launch.

    Locations are told apart by identity: equal ones may have other callers. What values have
    steered is large, and seldom met again.
    """
    addresses = [0] * len(template.operands())
    if template.steering:
        return touches(template, addresses, where, registers)
    key = template, id(where), registers.atomic, registers.atomic_type
    known = _KNOWN.get(key)
    if known is None:
        known = _KNOWN[key] = touches(template, addresses, where, registers), where
    return known[0]


def _sets_register(template: Instruction) -> bool:
    """True if it leaves a register, which may be its only use."""
    return type(template).leaves is not Instruction.leaves


def _nothing() -> None:
    """Follow an instruction that orders nothing inside a core."""
