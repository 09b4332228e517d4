"""Timing a launch: groups of equal cores, served by the shared memory in the order of time."""

from collections.abc import Mapping, Sequence
from functools import partial

from greenlet import getcurrent, greenlet

from cubecore.chips.model import Chip
from cubecore.errors import RequestError
from cubecore.isa.check import program_violations
from cubecore.isa.launch import CoreGroup, Launch
from cubecore.isa.program import Issue
from cubecore.timing.memory_system import Demand, MemorySystem
from cubecore.timing.pipes import MEMORY_STALL, PIPES, CoreClock
from cubecore.timing.timeline import CoreTime, Stall, Timeline
from cubecore.units import align_up

_TENSOR_SPACING = 4096


def _demand(group: CoreGroup, issue: Issue) -> Demand:
    """Return the distinct addresses of a leaf's global operand, and how many cores ask for each."""
    cores_each: dict[int, int] = {}
    for distance in group.distances(issue):
        cores_each[distance] = cores_each.get(distance, 0) + 1
    return Demand(tuple(cores_each), tuple(cores_each.values()))


def time_launch(
    launch: Launch,
    chip: Chip,
    *,
    operations: int = 0,
    peak: int | None = None,
    record: int = 0,
) -> Timeline:
    """Return when a launch ends on `chip`.

    `operations` counts the useful multiply and add operations, `peak` those that the chip can do in
    a cycle; with both, the answer has TFLOPS and utilisation. `record` instructions of each group
    are kept as segments.

    Raises:
        RequestError: a cost constant of the chip that no source gives, or a program whose time
            depends on data.
        DeadlockError: a flag that nobody raises.
    """
    if broken := [v for program in launch.programs for v in program_violations(program, chip)]:
        raise RequestError(broken)
    for name in chip.unknown_costs:
        chip.require(name, "timing")
    memory = MemorySystem(chip)
    groups = launch.groups(_bases(launch))
    start: int = chip.require("start_cycles", "timing")
    clocks = _run_groups(chip, memory, groups, start, record)
    ends = [clock.finish() for clock in clocks]
    launch_cycles: int = chip.require("launch_cycles", "timing")
    cycles = max(ends) + launch_cycles
    us = cycles * 1e6 / chip.require("frequency_hz", "timing")
    counts = [len(group.cores) for group in groups]
    pipes = {
        pipe.value: _mean([clock.busy[i] for clock in clocks], counts)
        for i, pipe in enumerate(PIPES)
    }
    slowest = max(range(len(ends)), key=ends.__getitem__)
    return Timeline(
        cycles=cycles,
        us=us,
        limited_by=_limit(clocks[slowest], cycles, start + launch_cycles),
        pipes=pipes,
        stalls=_stalls(clocks, counts),
        groups=tuple(
            CoreTime(
                group.program.name,
                tuple(core.core for core in group.cores),
                end,
                {pipe.value: clock.busy[i] for i, pipe in enumerate(PIPES)},
                tuple(clock.segments),
            )
            for group, clock, end in zip(groups, clocks, ends, strict=True)
        ),
        issued=sum(clock.issued * count for clock, count in zip(clocks, counts, strict=True)),
        read_bytes=memory.read_bytes,
        hbm_read_bytes=memory.hbm_read_bytes,
        written_bytes=memory.written_bytes,
        tflops=operations / us / 1e6 if operations else None,
        utilisation=operations / (peak * cycles) if operations and peak else None,
    )


def _bases(launch: Launch) -> Mapping[str, int]:
    """Return where each tensor starts, all apart from each other."""
    bases, address = {}, _TENSOR_SPACING
    for tensor in launch.tensors:
        bases[tensor.name] = address
        address += align_up(tensor.size_bytes, _TENSOR_SPACING) + _TENSOR_SPACING
    return bases


def _run_groups(
    chip: Chip, memory: MemorySystem, groups: Sequence[CoreGroup], start: int, record: int
) -> list[CoreClock]:
    """Walk every group's tree; whoever asks the memory at the earliest time goes first."""
    hub = getcurrent()

    def pause(time: int) -> None:
        if len(waiting) > 1:
            hub.switch(time)

    clocks = [
        CoreClock(chip, memory, partial(_demand, group), pause, start, record) for group in groups
    ]
    waiting: dict[int, int] = dict.fromkeys(range(len(groups)), start)
    threads = [
        greenlet(lambda g=group, c=clock: g.program.run(c, g.slots[0]))
        for group, clock in zip(groups, clocks, strict=True)
    ]
    while waiting:
        number = min(waiting, key=lambda n: (waiting[n], n))
        time = threads[number].switch()
        if threads[number].dead:
            del waiting[number]
        else:
            waiting[number] = time
    return clocks


def _mean(values: list[int], counts: list[int]) -> int:
    return sum(v * c for v, c in zip(values, counts, strict=True)) // sum(counts)


def _stalls(clocks: list[CoreClock], counts: list[int]) -> tuple[Stall, ...]:
    total: dict[tuple[str, str], int] = {}
    for clock, count in zip(clocks, counts, strict=True):
        for key, cycles in clock.stalls.items():
            total[key] = total.get(key, 0) + cycles * count
    cores = sum(counts)
    found = [Stall(pipe, reason, cycles // cores) for (pipe, reason), cycles in total.items()]
    return tuple(
        sorted((s for s in found if s.cycles), key=lambda s: (-s.cycles, s.pipe, s.reason))
    )


def _limit(clock: CoreClock, cycles: int, start_up: int) -> str:
    """Name what the slowest core spends most on: start-up, its busiest pipe, or a wait of it."""
    if 2 * start_up >= cycles:
        return "start-up"
    busiest = max(range(len(PIPES)), key=lambda i: clock.busy[i])
    pipe: str = PIPES[busiest].value
    waits = {reason: c for (name, reason), c in clock.stalls.items() if name == pipe}
    reason = max(waits, key=lambda r: (waits[r], r), default="")
    if reason and waits[reason] > clock.busy[busiest]:
        return reason if reason == MEMORY_STALL else f"{pipe} waiting for {reason}"
    return pipe
