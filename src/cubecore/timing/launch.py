"""Timing a launch: groups of equal cores, each with its part of the shared memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from cubecore.chips.model import Chip
from cubecore.errors import RequestError
from cubecore.isa.program.check import program_violations
from cubecore.isa.program.expr import Var
from cubecore.isa.program.launch import CoreGroup, Launch
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Program
from cubecore.timing.critical_path import critical_path
from cubecore.timing.line_times import line_times
from cubecore.timing.memory.l2_reuse import Traffic
from cubecore.timing.memory.launch_traffic import launch_start, launch_traffic, memory_parts
from cubecore.timing.memory.memory_port import MemoryPort
from cubecore.timing.memory.reuse_marks import ReuseMark, marked
from cubecore.timing.pipes.core_clock import CoreClock
from cubecore.timing.pipes.cross_core import Crossing, crosses
from cubecore.timing.pipes.issue_log import IssueLog
from cubecore.timing.pipes.operands import moved_operand
from cubecore.timing.pipes.queues import CROSS_CORE, DEVICE_MEMORY, NAMES, SCALAR
from cubecore.timing.records import CoreTime, Link, OperandReads, Stall, Timeline
from cubecore.timing.steady_state.compiled_walk import walk


def time_launch(
    launch: Launch,
    chip: Chip,
    *,
    operations: int = 0,
    peak: int | None = None,
    record: int = 0,
    full: bool = False,
    stand_in: bool = False,
    lines: bool = False,
) -> Timeline:
    """Return when a launch ends on `chip`.

    `operations` counts the useful multiply and add operations, `peak` those that the chip can do in
    a cycle; with both, the answer has TFLOPS and utilisation. `record` instructions of each group
    are kept as segments. `full` walks every instruction; otherwise periods in which the whole state
    recurs are skipped, with the same answer. `stand_in` lets instructions of another architecture
    stand for this chip's own; what they cost is still the chip's. With `lines` the answer tells
    the program's source lines apart.

    Raises
    ------
    RequestError
        If no source gives a cost of the chip that is needed, or the program's time depends on data.
    DeadlockError
        If a pipe waits for a flag that is never set.

    Notes
    -----
    1. `isa.program.check.program_violations` refuses instructions that the chip does not have.
    2. `timing.memory.launch_traffic.launch_traffic` makes groups of equal cores, and works out from
       the loops around each access (`timing.memory.global_accesses.accesses`) what L2 holds.
    3. `timing.memory.launch_traffic.memory_parts` gives each group its part of device memory.
    4. `timing.steady_state.compiled_walk.walk` walks each group's tree once, written as Python;
       groups that signal each other take turns.
    5. `timing.pipes.core_clock.CoreClock.finish` ends a clock that has issued, queued, waited for
       flags and taken each instruction's cycles; on the way
       `timing.steady_state.recurrence.Recurrence.skip` left out what recurs.
    6. `timing.critical_path.critical_path` follows the causes back from the last instruction, and
       `timing.line_times.line_times` adds up by source line.
    """
    broken = [v for program in launch.programs for v in program_violations(program, chip)]
    if broken and not stand_in:
        raise RequestError(broken)
    for name in chip.unknown_costs:
        chip.require(name, "timing")
    crossing = any(crosses(program) for program in launch.programs)
    traffic = launch_traffic(launch, chip, crossing=crossing)
    groups, start = traffic.groups, launch_start(launch.kind, chip)
    latency = chip.require("cross_core_cycles", "timing") if crossing else None
    clocks = _walked(traffic, latency, start, record, full=full, lines=lines)
    line = _timeline(groups, clocks, chip, start, operations, peak)
    return replace(line, operands=_operands(traffic))


def _timeline(
    groups: Sequence[CoreGroup],
    clocks: list[CoreClock],
    chip: Chip,
    start: int,
    operations: int,
    peak: int | None,
) -> Timeline:
    """Return what the groups' clocks say together."""
    ends = [clock.finish() for clock in clocks]
    launch_cycles: int = chip.require("launch_cycles", "timing")
    cycles = max(ends) + launch_cycles
    us = cycles * 1e6 / chip.require("frequency_hz", "timing")
    counts = [len(group.cores) for group in groups]
    parts = _parts(groups)
    kinds = _kinds(parts)
    issued = sum(clock.issued * count for clock, count in zip(clocks, counts, strict=True))
    skipped = sum(clock.skipped * count for clock, count in zip(clocks, counts, strict=True))
    slowest = max(range(len(ends)), key=ends.__getitem__)
    return Timeline(
        cycles=cycles,
        us=us,
        limited_by=_limit(clocks[slowest], kinds[slowest], cycles, start),
        pipes=_pipes(clocks, counts, kinds),
        stalls=_stalls(clocks, counts, kinds),
        groups=tuple(
            _core_time(group, clock, end, part)
            for group, clock, end, part in zip(groups, clocks, ends, parts, strict=True)
        ),
        issued=issued,
        read_bytes=sum(clock.memory.read_bytes for clock in clocks),
        hbm_read_bytes=sum(clock.memory.hbm_read_bytes for clock in clocks),
        written_bytes=sum(clock.memory.written_bytes for clock in clocks),
        tflops=operations / us / 1e6 if operations else None,
        utilisation=operations / (peak * cycles) if operations and peak else None,
        simulated_fraction=1 - skipped / issued if issued else 1.0,
        links=_links(groups, clocks, chip),
        lines=line_times(clocks, counts, kinds, start),
    )


def _core_time(group: CoreGroup, clock: CoreClock, end: int, part: str) -> CoreTime:
    started = {pipe.name: pipe.uses for pipe in clock.pipes}
    return CoreTime(
        group.program.name,
        tuple(core.core for core in group.cores),
        end,
        {pipe.name: pipe.busy for pipe in clock.pipes},
        tuple(clock.segments),
        part,
        started,
        tuple(clock.aside),
        critical_path(clock.segments, clock.aside, started),
    )


def _operands(traffic: Traffic) -> tuple[OperandReads, ...]:
    """Return what is read of global memory by operand, the most first; what has no name is left."""
    read: dict[str, float] = {}
    missed: dict[str, float] = {}
    for number in range(len(traffic.groups)):
        for issue, size, missing in traffic.reads(number):
            if name := moved_operand(issue, issue.template):
                read[name] = read.get(name, 0.0) + size
                missed[name] = missed.get(name, 0.0) + missing
    names = sorted(read, key=lambda name: (-read[name], name))
    return tuple(OperandReads(name, round(read[name]), round(missed[name])) for name in names)


def _links(groups: Sequence[CoreGroup], clocks: list[CoreClock], chip: Chip) -> tuple[Link, ...]:
    """Return what went over the links between cores, L2 and device memory, by kind of core."""
    hertz: int = chip.require("frequency_hz", "timing")
    seconds = max(clock.finish() for clock in clocks) / hertz
    links = [
        Link(
            "device memory to L2",
            missed := sum(clock.memory.hbm_read_bytes for clock in clocks),
            missed / seconds,
            chip.hbm_bytes_per_second,
        )
    ]
    on_vector = [group.cores[0].sub > 0 for group in groups]
    for vector, into, out, rates in (
        (False, "L2 to L1", "L0C to L2", ("l2_read", "l0c_to_gm")),
        (True, "L2 to UB", "UB to L2", ("gm_to_ub", "ub_to_gm")),
    ):
        of_kind = [c for c, on in zip(clocks, on_vector, strict=True) if on == vector]
        cores = sum(len(g.cores) for g, on in zip(groups, on_vector, strict=True) if on == vector)
        read = sum(clock.memory.read_bytes for clock in of_kind)
        wrote = sum(clock.memory.written_bytes for clock in of_kind)
        for name, size, rate in ((into, read, rates[0]), (out, wrote, rates[1])):
            each = getattr(chip, f"{rate}_bytes_per_cycle")
            peak = None if each is None else each * cores * hertz
            links.append(Link(name, size, size / seconds, peak))
    return tuple(link for link in links if link.bytes)


def _walked(
    traffic: Traffic, latency: int | None, start: int, record: int, *, full: bool, lines: bool
) -> list[CoreClock]:
    """Return the clock of each group after its tree.

    `latency` is that of a core's signals, None where cores send none: each is walked to its end.
    `record` is the number of instructions that each records, and `lines` says that it logs its
    leaves.
    """
    groups, chip = traffic.groups, traffic.chip
    cores = [CoreId(group.cores[0].core, group.cores[0].sub) for group in groups]
    crossing = Crossing(cores, latency or 0)
    clocks, walks = [], []
    for number, (group, part) in enumerate(zip(groups, memory_parts(traffic), strict=True)):
        shares = traffic.shares(number)
        clock = CoreClock(
            chip=chip,
            memory=MemoryPort(chip, part, traffic.written_back, start),
            shares=shares,
            scalar=start,
            record=record,
            log=IssueLog() if lines else None,
            core=cores[number],
            crossing=crossing,
        )
        accesses, slots = traffic.accesses[number], group.slots[0]
        # Marks tell the clock which level of reuse a load has just then, thus how much of it misses
        # L2.
        program = marked(accesses, [shares[leaf.issue].gone for leaf in accesses.leaves])
        walks.append(partial(_walk_fully if full else walk, program, clock, slots))
        clocks.append(clock)
    if latency is None:
        for walk_to_end in walks:
            walk_to_end()
    else:
        crossing.walk(walks)
    return clocks


def _walk_fully(program: Program, clock: CoreClock, slots: Mapping[Var, int]) -> None:
    """Walk every instruction of a program."""
    if clock.log is not None:
        leaves = [leaf for leaf in program.issues if not isinstance(leaf.template, ReuseMark)]
        clock.log.take(leaves, [(number, 1) for number in range(len(leaves))])
    program.run(clock, slots)


def _parts(groups: Sequence[CoreGroup]) -> list[str]:
    """Return what each group's cores are: whole cores; AIVs; or AIC, AIV0 and AIV1."""
    subs = {core.sub for group in groups for core in group.cores}
    if not any(subs):
        return ["core"] * len(groups)
    if 0 not in subs:
        return ["AIV"] * len(groups)
    firsts = [group.cores[0].sub for group in groups]
    return [f"AIV{sub - 1}" if sub else "AIC" for sub in firsts]


def _kinds(parts: Sequence[str]) -> list[str]:
    """Return what stands before the names of each group's pipes: ``AIC`` or ``AIV`` of a mix."""
    return [f"{part[:3]} " if "AIC" in parts else "" for part in parts]


def _pipes(clocks: list[CoreClock], counts: list[int], kinds: list[str]) -> dict[str, int]:
    """Return each pipe's busy cycles, averaged; of two kinds of cores, the pipes that are used."""
    busy = {}
    for kind in dict.fromkeys(kinds):
        of_kind = [number for number, other in enumerate(kinds) if other == kind]
        cores = sum(counts[number] for number in of_kind)
        for index, name in enumerate(NAMES):
            total = sum(clocks[number].pipes[index].busy * counts[number] for number in of_kind)
            if total or not kind:
                busy[kind + name] = total // cores
    return busy


def _stalls(clocks: list[CoreClock], counts: list[int], kinds: list[str]) -> tuple[Stall, ...]:
    total: dict[tuple[str, str, str], int] = {}
    cores: dict[str, int] = {}
    for clock, count, kind in zip(clocks, counts, kinds, strict=True):
        cores[kind] = cores.get(kind, 0) + count
        for (pipe, reason), cycles in clock.stalls.items():
            total[kind, pipe, reason] = total.get((kind, pipe, reason), 0) + cycles * count
    stalls = [
        Stall(kind + pipe, reason, cycles // cores[kind])
        for (kind, pipe, reason), cycles in total.items()
    ]
    return tuple(
        sorted((s for s in stalls if s.cycles), key=lambda s: (-s.cycles, s.pipe, s.reason))
    )


def _limit(clock: CoreClock, kind: str, cycles: int, start: int) -> str:
    """Name what the slowest core spends most on: start-up, its busiest pipe, or a wait of it.

    `start` is when the core's first instruction may be issued, without the launch.
    """
    launch: int = clock.chip.require("launch_cycles", "timing")
    if 2 * (start + launch) >= cycles:
        return "start-up"
    # What outweighs what, in this order: waiting for other cores, a wait of the busiest pipe,
    # device memory behind MTE2, and at last the pipe's own work. The scalar pipe is busy from the
    # start on with what is start-up.
    busy = {pipe.name: pipe.busy for pipe in clock.pipes}
    busy[NAMES[SCALAR]] -= start
    busiest = max(busy, key=lambda name: busy[name])
    waits = {reason: c for (name, reason), c in clock.stalls.items() if name == busiest}
    reason = max(waits, key=lambda r: (waits[r], r), default="")
    others = {r: c for (_, r), c in clock.stalls.items() if r.startswith(CROSS_CORE)}
    signal = max(others, key=lambda r: (others[r], r), default="")
    if signal and others[signal] > max(busy[busiest], waits.get(reason, 0)):
        return f"{kind}S waiting for {signal}"
    if reason and waits[reason] > busy[busiest]:
        return f"{kind}{busiest} waiting for {reason}"
    if busiest == "MTE2" and 2 * clock.memory.waited > busy[busiest]:
        return DEVICE_MEMORY
    return kind + busiest
