"""A bar for each core: how long its busiest pipe works, how long it waits, and when it ends."""

from cubecore.aliases import Json
from cubecore.timing.records import CoreTime, Timeline

MOST_BARS = 64
"""Cores that are drawn each for itself; of more, equal ones are one bar."""


def core_bars(line: Timeline, start: int) -> Json:
    """Return the bars in the order of the cores; equal cores are one where there are many.

    A core's `busy` cycles are those of its busiest pipe, the scalar unit's left out: its cycles
    hold start-up and waits. `start` are cycles before any instruction.
    """
    groups = line.groups
    each = sum(len(group.cores) for group in groups) <= MOST_BARS
    rows = []
    for group in groups:
        sets = [(core,) for core in group.cores] if each else [group.cores]
        rows += [_bar(group, cores) for cores in sets]
    rows.sort(key=lambda row: (row["cores"], row["part"]))
    end = max((group.end_cycles for group in groups), default=0)
    return {"rows": rows, "end": end, "start": start, "each": each}


def _bar(group: CoreTime, cores: tuple[int, ...]) -> Json:
    pipes = {pipe: busy for pipe, busy in group.busy_cycles.items() if pipe != "S"}
    busiest = max(pipes, key=lambda pipe: pipes[pipe], default="")
    return {
        "cores": list(cores),
        "part": group.part,
        "end": group.end_cycles,
        "pipe": busiest,
        "busy": pipes.get(busiest, 0),
    }
