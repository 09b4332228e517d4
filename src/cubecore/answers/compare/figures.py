"""Figures of two launches side by side: which is faster, by how much, and what of it differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecore.presented.text import duration, number
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cubecore.timing.records import Timeline

_SAME = 0.005
"""Times that differ by less are called the same."""
_MOVED = 0.05
"""Bytes and instructions that differ by less are no cause."""
_EXPLAINS = 0.25
"""The share of the difference that a cause takes at least."""
_SHOWN_STALLS = 4


@dataclass(frozen=True, slots=True)
class LaunchFigures:
    """The figures of a timed launch that two can be compared by.

    `pipes` are busy cycles and `stalls` cycles that a pipe waits for a reason, averages over the
    cores; `links` the bytes that moved over each link of the chip.
    """

    chip: str
    us: float
    cycles: int
    limited_by: str
    issued: int
    pipes: Mapping[str, int]
    stalls: Mapping[tuple[str, str], int]
    links: Mapping[str, int]
    cores: int


def figures_of(line: Timeline, chip: str) -> LaunchFigures:
    """Return the figures of a timeline."""
    return LaunchFigures(
        chip,
        line.us,
        line.cycles,
        line.limited_by,
        line.issued,
        line.pipes,
        {(stall.pipe, stall.reason): stall.cycles for stall in line.stalls},
        {link.name: link.bytes for link in line.links},
        len({core for group in line.groups for core in group.cores}),
    )


def verdict(names: Sequence[str], pair: Sequence[LaunchFigures]) -> str:
    """Return which of two launches is faster and why, in a sentence."""
    fast, slow = sorted(range(2), key=lambda number: pair[number].us)
    cause = difference(pair[fast], pair[slow])
    return faster(names, [one.us for one in pair], cause)


def faster(names: Sequence[str], times_us: Sequence[float], cause: str) -> str:
    """Return which of two times is shorter, and the cause that is known, in a sentence."""
    fast, slow = sorted(range(2), key=lambda number: times_us[number])
    if times_us[slow] <= times_us[fast] * (1 + _SAME):
        return f"{names[0]} and {names[1]} take the same time ({duration(times_us[0])})"
    ratio = times_us[slow] / times_us[fast]
    times = f"{duration(times_us[fast])} against {duration(times_us[slow])}"
    sentence = f"{names[fast]} is {ratio:.2f}x faster than {names[slow]} ({times})"
    return f"{sentence}: {cause}" if cause else sentence


def difference(fast: LaunchFigures, slow: LaunchFigures) -> str:
    """Return what the faster launch does less of, as a clause; empty where no figure says."""
    if fast.chip != slow.chip:
        return f"it runs on {fast.chip}, the other on {slow.chip}"
    least = max(_EXPLAINS * (slow.cycles - fast.cycles), 1)
    saved = {pipe: busy - fast.pipes.get(pipe, 0) for pipe, busy in slow.pipes.items()}
    # The pipe that limits the slower launch tells what is done less of, else the one that works
    # least longer; the scalar unit's own cycles hold start-up and waits. Where no pipe works
    # longer, one waits longer.
    saved = {pipe: cycles for pipe, cycles in saved.items() if _unit(pipe) != "S"}
    pipe = slow.limited_by
    if saved.get(pipe, 0) < least:
        pipe = max(saved, key=lambda name: saved[name], default="")
    if saved.get(pipe, 0) >= least:
        return _less_work(pipe, fast, slow)
    waits = {key: cycles - fast.stalls.get(key, 0) for key, cycles in slow.stalls.items()}
    stall = max(waits, key=lambda key: waits[key], default=None)
    if stall is not None and waits[stall] >= least:
        return f"its {stall[0]} waits {waits[stall]:,} cycles less for {stall[1]}"
    if fast.cores > slow.cores:
        return _on_cores(fast, slow)
    if fast.issued < slow.issued * (1 - _MOVED):
        return f"it issues {_share(fast.issued, slow.issued)} the instructions"
    return ""


def _unit(pipe: str) -> str:
    """Return a pipe without the kind of core that stands before it."""
    return pipe.rpartition(" ")[2]


_DIRECTIONS = {
    "MTE2": (("device memory to L2", "reads", "from device memory"), ("L2 to", "reads", "from L2")),
    "MTE3": (("UB to L2", "writes", "from UB"),),
    "FIX": (("L0C to L2", "writes", "from L0C"),),
}
"""By pipe: beginnings of the links that it feeds, and the words for bytes over them."""


def _less_work(pipe: str, fast: LaunchFigures, slow: LaunchFigures) -> str:
    """Return what a pipe that is busy for fewer cycles does less of.

    A pipe's time is an average over the cores: it falls with the bytes that all of them move, and
    with more cores that share these.
    """
    best, most = "", 1 + _MOVED
    if slow.cores and fast.cores / slow.cores > most:
        best, most = _on_cores(fast, slow), fast.cores / slow.cores
    for link, verb, where in _DIRECTIONS.get(_unit(pipe), ()):
        names = [name for name in slow.links if name.startswith(link)]
        more, less = (sum(one.links.get(name, 0) for name in names) for one in (slow, fast))
        if less and more / less > most:
            best, most = f"it {verb} {_share(less, more)} as much {where}", more / less
    busy = f"{fast.pipes.get(pipe, 0):,} against {slow.pipes[pipe]:,} cycles"
    return best or f"its {pipe} is busy for {busy}"


def _on_cores(fast: LaunchFigures, slow: LaunchFigures) -> str:
    return f"it runs on {plural(fast.cores, 'core')}, the other on {slow.cores}"


def _share(less: float, more: float) -> str:
    """Return a share in words: half, or so many times."""
    share = less / more
    return "half" if 0.45 <= share <= 0.55 else f"{number(share, 2)} times"


def figure_rows(first: LaunchFigures, second: LaunchFigures) -> Iterator[tuple[str, ...]]:
    """Yield the figures of both, and by how much the second's differ."""
    pair = (first, second)
    times = [one.us for one in pair]
    yield ("time", *map(duration, times), difference_of(*times))
    yield ("limited by", *(one.limited_by for one in pair), "")
    if first.chip != second.chip:
        yield ("chip", *(one.chip for one in pair), "")
    if first.cores != second.cores:
        yield ("cores", *(str(one.cores) for one in pair), "")
    issued = [one.issued for one in pair]
    yield ("instructions", *(f"{count:,}" for count in issued), difference_of(*issued))
    for pipe in dict.fromkeys([*first.pipes, *second.pipes]):
        busy = [one.pipes.get(pipe, 0) for one in pair]
        if any(busy):
            cycles = (f"{count:,}" for count in busy)
            yield (f"{pipe} busy, cycles", *cycles, difference_of(*busy))
    for link in dict.fromkeys([*first.links, *second.links]):
        moved = [one.links.get(link, 0) for one in pair]
        if any(moved):
            sizes = (f"{size / 1e6:,.2f} MB" for size in moved)
            yield (link, *sizes, difference_of(*moved))
    keys = dict.fromkeys([*first.stalls, *second.stalls])
    waits = {key: tuple(one.stalls.get(key, 0) for one in pair) for key in keys}
    longest = sorted(waits, key=lambda key: -abs(waits[key][1] - waits[key][0]))
    for key in longest[:_SHOWN_STALLS]:
        if waits[key][0] != waits[key][1]:
            cycles = (f"{count:,}" for count in waits[key])
            yield (f"{key[0]} waits for {key[1]}", *cycles, difference_of(*waits[key]))


def difference_of(first: float | None, second: float | None) -> str:
    """Return how much more or less the second is than the first; empty where there is no ratio."""
    if not first or second is None:
        return ""
    return f"{second / first - 1:+z.1%}"
