"""Row alignment: the cost of rows that start off a boundary, and the cores that have them.

Rows of a transfer are equally far apart. Where that distance keeps them on a boundary or off it,
all of them start as the first one does; so it matters where a core's share begins and how far its
blocks lie apart. Blocks of one leaf are taken to start anywhere that its loops can lead to, equally
often; cores whose shares begin otherwise are groups of their own.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import GlobalTraffic
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreGroup
from cubecore.isa.program.tree import Program


def off_cycles(traffic: GlobalTraffic, address: Expr, slots: Mapping[Var, int], chip: Chip) -> int:
    """Return the cycles that a transfer from `address` takes more for where its rows start."""
    if not _matters(traffic):
        return 0
    steps = (factor for atom, factor in address.terms if atom not in slots)
    # Loops lead to every start in a line that is a multiple of `step` behind the first: the mean of
    # these counts.
    step, line = math.gcd(costs.LINE_BYTES, *steps), costs.LINE_BYTES
    fixed = ((factor, a) for a, factor in address.terms if isinstance(a, Var) and a in slots)
    start = sum(factor * slots[a] for factor, a in fixed)
    total = _cycles_of_starts(chip, (address.const + start) % step, step, traffic.row_bytes)
    rows = traffic.size_bytes // traffic.row_bytes
    return round(rows * total / (line // step))


@lru_cache(maxsize=16384)
def _cycles_of_starts(chip: Chip, first: int, step: int, row_bytes: int) -> float:
    """Return what rows take more in all that start in a line, at `first` and every `step` bytes."""
    starts = range(first, costs.LINE_BYTES, step)
    return math.fsum(costs.row_start_cycles(chip, at, row_bytes) for at in starts)


def _matters(traffic: GlobalTraffic) -> bool:
    """True if all rows start alike; the cost of others looks at how far they are apart."""
    return bool(traffic.pitch_bytes) and traffic.pitch_bytes % costs.LINE_BYTES == 0


Loads = Sequence[tuple[GlobalTraffic, Expr]]
"""The bytes and the address of each load of a program."""


def apart(
    groups: Sequence[CoreGroup], loads: Mapping[Program, Loads], chip: Chip
) -> tuple[CoreGroup, ...]:
    """Return the groups, each cut into those cores whose rows cost alike."""
    separate: list[CoreGroup] = []
    for group in groups:
        mattering = [
            (traffic, address) for traffic, address in loads[group.program] if _matters(traffic)
        ]
        used = {a for _, address in mattering for a in address.variables() if a in group.slots[0]}
        parts: dict[tuple[int, ...], list[int]] = {}
        cost_of_begins: dict[tuple[int, ...], tuple[int, ...]] = {}
        for core, slots in enumerate(group.slots):
            begins = tuple(slots[var] % costs.LINE_BYTES for var in used)
            if begins not in cost_of_begins:
                cost_of_begins[begins] = tuple(off_cycles(*load, slots, chip) for load in mattering)
            parts.setdefault(cost_of_begins[begins], []).append(core)
        separate += [
            CoreGroup(
                group.program,
                tuple(group.cores[core] for core in part),
                tuple(group.slots[core] for core in part),
            )
            for part in parts.values()
        ]
    return tuple(separate)
