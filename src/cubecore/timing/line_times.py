"""Time by source line: what each line's instructions take, out of the logs of the walks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cubecore.isa.program.tree import Location
from cubecore.timing.pipes.core_clock import CoreClock
from cubecore.timing.pipes.issue_log import BUSY, BYTES
from cubecore.timing.pipes.queues import NAMES, SCALAR
from cubecore.timing.records import LineTime, Stall

_Reason = tuple[str, str, str]
"""The kind of core, the pipe, and what for: `BUSY`, or the reason of a stall."""


@dataclass(eq=False, slots=True)
class _Line:
    """The sums of a line, over all cores."""

    location: Location | None
    instructions: int = 0
    bytes: int = 0
    cycles: dict[_Reason, int] = field(default_factory=dict)

    def add(self, reason: _Reason, cycles: int) -> None:
        self.cycles[reason] = self.cycles.get(reason, 0) + cycles

    @property
    def busy(self) -> int:
        return sum(cycles for (_, _, what), cycles in self.cycles.items() if what == BUSY)


def line_times(
    clocks: Sequence[CoreClock], counts: Sequence[int], kinds: Sequence[str], start: int
) -> tuple[LineTime, ...]:
    """Return the source lines of groups of so many cores, the busiest first.

    `kinds` stand before the names of the groups' pipes, `start` is what a kernel spends before its
    first instruction. Locations are told apart by identity: equal ones may have other callers.
    """
    lines: dict[int, _Line] = {}
    for clock, count, kind in zip(clocks, counts, kinds, strict=True):
        if clock.log is None:
            return ()
        _add(lines, clock, count, kind, start)
    cores: dict[str, int] = {}
    for count, kind in zip(counts, kinds, strict=True):
        cores[kind] = cores.get(kind, 0) + count
    sums = [line for line in lines.values() if line.instructions or line.cycles]
    sums.sort(key=lambda line: (line.location is None, -line.busy, -sum(line.cycles.values())))
    return tuple(_averaged(sums, cores))


def _add(lines: dict[int, _Line], clock: CoreClock, count: int, kind: str, start: int) -> None:
    """Add what a group of `count` cores did."""
    assert clock.log is not None
    issued, amounts = clock.log.sums()
    of_leaf = [_line(lines, leaf.location) for leaf in clock.log.leaves]
    for line, times in zip(of_leaf, issued.tolist(), strict=True):
        line.instructions += times * count
    for amount, total in amounts.items():
        line = of_leaf[amount.leaf]
        if amount.kind == BYTES:
            line.bytes += total  # which are of all cores already
        elif total:
            line.add((kind, amount.pipe, amount.kind), total * count)
    if start:
        _line(lines, None).add((kind, NAMES[SCALAR], BUSY), start * count)


def _line(lines: dict[int, _Line], location: Location | None) -> _Line:
    line = lines.get(id(location))
    if line is None:
        line = lines[id(location)] = _Line(location)
    return line


def _averaged(sums: Sequence[_Line], cores: Mapping[str, int]) -> Iterator[LineTime]:
    """Yield lines with averages over the cores; rounded so that they add up to the launch's.

    A line has what the rounded sum of all lines up to it has more than that of those before it.
    """
    until: dict[_Reason, int] = {}
    for line in sums:
        busy: dict[str, int] = {}
        stalls: list[Stall] = []
        for reason, cycles in line.cycles.items():
            kind, pipe, what = reason
            # Differences of rounded running sums: averages that were rounded each by itself would
            # not add up to the launch's.
            before = until.get(reason, 0)
            after = until[reason] = before + cycles
            average = after // cores[kind] - before // cores[kind]
            if what == BUSY:
                busy[kind + pipe] = average
            elif average:
                stalls.append(Stall(kind + pipe, what, average))
        stalls.sort(key=lambda stall: (-stall.cycles, stall.pipe, stall.reason))
        yield LineTime(line.location, busy, tuple(stalls), line.instructions, line.bytes)
