"""The faster tilings near a legal one: few fields changed, the others kept, by the closed form."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.model.field_limits import PLANNED_FIELDS
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.repair.feasibility import Explorer
from cubecore.tiling.repair.neighbourhood import Fields, Neighbourhood, Table, WorkBudget
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import TilingColumns

SET_UNITS = 400_000
"""Work on one set of fields, about 4 ms."""
_ROWS = 1 << 12
"""Combinations of one set that are ranked; beyond, an even sample."""
_OF_A_SET = 2
"""Combinations of one set that are offered."""
_WIDENED = 12
"""Sets that are widened by one more field."""


@dataclass(frozen=True, slots=True)
class Nearby:
    """A legal tiling that differs in few fields, and the cycles that the closed form predicts."""

    tiling: TCubeTiling
    fields: Fields
    cycles: float


def nearby(case: RuleCase, most_fields: int) -> Iterator[tuple[Nearby, ...]]:
    """Yield legal tilings that differ from the case's in one field, in two, up to `most_fields`.

    The likeliest first; beyond two, only the likeliest sets of fields are widened. The same request
    gives the same answer.
    """
    space = Neighbourhood(case, frozenset(PLANNED_FIELDS), wanted=case.problem.fix)
    names = sorted(PLANNED_FIELDS)
    sets: list[Fields] = [frozenset({name}) for name in names]
    for size in range(1, most_fields + 1):
        found = [one for fields in sets for one in _of(space, fields)]
        found.sort(key=lambda one: (one.cycles, sorted(one.fields), one.tiling.to_bytes()))
        yield tuple(found)
        if size == 1:
            sets = [frozenset(pair) for pair in combinations(names, 2)]
            continue
        widened = list(dict.fromkeys(one.fields for one in found))[:_WIDENED]
        sets = list(
            dict.fromkeys(
                fields | {name} for fields in widened for name in names if name not in fields
            )
        )


def _of(space: Neighbourhood, fields: Fields) -> list[Nearby]:
    """Return the fastest combinations of values of some fields, each of them changed."""
    legal = Explorer(space, fields, WorkBudget(SET_UNITS)).run().legal
    if not legal:
        return []
    case = space.case
    changed = np.logical_and.reduce([legal[name] != getattr(case.tiling, name) for name in fields])
    table: Table = {name: values[changed] for name, values in legal.items()}
    rows = int(changed.sum())
    if not rows:
        return []
    stride = -(-rows // _ROWS)
    table = {name: values[::stride] for name, values in table.items()}
    rows = len(next(iter(table.values())))
    columns = TilingColumns({**space.base, **table})
    cycles = np.broadcast_to(cost(columns, case.problem, case.chip).total, rows)
    first = np.argsort(cycles, kind="stable")[:_OF_A_SET]
    return [
        Nearby(
            case.with_tiling({name: int(values[row]) for name, values in table.items()}).tiling,
            fields,
            float(cycles[row]),
        )
        for row in first.tolist()
    ]
