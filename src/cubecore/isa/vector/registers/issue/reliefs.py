"""Limits of a vector function: its cycles again, with one limit of the unit left out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum

from cubecore.isa.vector.registers.issue.schedule import VectorUnit
from cubecore.isa.vector.registers.issue.work import Port, UnitWork

_UNLIMITED = 1 << 30
_ACCUMULATORS = 4
"""Chains that a chain of accumulations is taken as: what hides the latency of most."""


class Relief(Enum):
    """A limit that is left out."""

    LOADS = "one load a cycle"
    STORES = "one store a cycle"
    COMPUTE = "two instructions that compute, and two results, a cycle"
    SLOW = "several cycles a register"
    BANKS = "one access of a bank of UB a cycle"
    WINDOW = "room for instructions that are not done"
    LOOPS = "cycles of a loop's start"
    CHAIN = "an accumulation that waits for the one before"


def relieved(
    work: Sequence[UnitWork], places: Sequence[int], unit: VectorUnit, relief: Relief
) -> tuple[Sequence[UnitWork], VectorUnit]:
    """Return work and a unit without a limit; `places` are the numbers of the work's lines."""
    if relief is Relief.COMPUTE:
        return [each._replace(writes=0) for each in work], replace(unit, slots=_UNLIMITED)
    if relief is Relief.WINDOW:
        return work, replace(unit, window=_UNLIMITED, queue=_UNLIMITED)
    if relief is Relief.CHAIN:
        return _with_accumulators(work, places), unit
    change = _CHANGES[relief]
    return [change(each) for each in work], unit


def chains(work: Sequence[UnitWork], places: Sequence[int]) -> list[int]:
    """Return for each instruction the one of its own line that it needs the result of, -1: none."""
    return [
        next((need for need in each.needs if places[need] == places[number]), -1)
        for number, each in enumerate(work)
    ]


def _with_accumulators(work: Sequence[UnitWork], places: Sequence[int]) -> list[UnitWork]:
    """Return work whose accumulations wait for the fourth one before them, not for the last."""
    before = chains(work, places)
    changed = list(work)
    for number, last in enumerate(before):
        if last < 0:
            continue
        other = last
        for _ in range(_ACCUMULATORS - 1):
            other = before[other] if other >= 0 else other
        needs = tuple(need for need in work[number].needs if need != last)
        changed[number] = work[number]._replace(needs=needs if other < 0 else (*needs, other))
    return changed


def _free(port: Port) -> Callable[[UnitWork], UnitWork]:
    return lambda each: each._replace(cycles=0, banks=0) if each.port is port else each


_CHANGES: dict[Relief, Callable[[UnitWork], UnitWork]] = {
    Relief.LOADS: _free(Port.LOAD),
    Relief.STORES: _free(Port.STORE),
    Relief.SLOW: lambda each: each._replace(cycles=1) if each.port is Port.COMPUTE else each,
    Relief.BANKS: lambda each: each._replace(banks=0),
    Relief.LOOPS: lambda each: each._replace(loops=0),
}
