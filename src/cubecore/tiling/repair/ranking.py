"""The fastest of many legal combinations of values, ties by nearness to the given ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.errors import CubecoreError
from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.repair.feasibility import Explored, Explorer
from cubecore.tiling.repair.field_domains import wanted_values
from cubecore.tiling.repair.neighbourhood import Fields, Neighbourhood, Table, WorkBudget
from cubecore.tiling.solver.candidates import TilingColumns

RANKED_ROWS = 1 << 16
"""Combinations whose predicted time is computed for one set of fields; beyond, a sample."""
PART_ROWS = 1 << 13
"""Values of one part that are ranked while the others are held."""
COST_RULES = 100
"""A predicted time costs as much as measuring this many rules."""
GOLDEN = 0.6180339887498949
"""Multiples of it spread evenly over the unit interval."""


@dataclass(frozen=True, order=True)
class Best:
    """The first of the legal combinations: least cycles, then nearest, then smallest values.

    `values` are pairs of field and value in the order of the names.
    """

    cycles: float
    moved: int
    values: tuple[tuple[str, int], ...]


class Ranker:
    """Ranks combinations of fields of `space` by predicted time."""

    def __init__(self, space: Neighbourhood, given: Any, budget: WorkBudget) -> None:
        self.space, self.given, self.budget = space, given, budget

    def best(self, parts: Sequence[Explored]) -> tuple[Best, bool]:
        """Return the best combination of parts, and whether it is proven that none is better."""
        # Parts are independent, so that legal combinations are their product. A small product is
        # ranked whole; of a large one a spread sample, and then coordinate descent, one part at a
        # time.
        sizes = [part.rows for part in parts]
        count = prod(sizes)
        if count <= RANKED_ROWS:
            every = np.unravel_index(np.arange(count), sizes) if parts else ()
            return self._first(_pick(parts, every)), all(part.whole for part in parts)
        spread = (np.arange(1, RANKED_ROWS // 4 + 1) * GOLDEN) % 1.0
        rows = [_spread_over(size, spread, index) for index, size in enumerate(sizes)]
        best = self._first(_pick(parts, rows))
        for _ in range(2):
            for part in parts:
                best = min(best, self._vary(part, best))
        return best, False

    def rank(self, values: Mapping[str, int]) -> Best:
        """Return one combination, ranked."""
        return self._first({name: np.array([value]) for name, value in values.items()})

    def _vary(self, part: Explored, best: Best) -> Best:
        """Return the best with other values of one part."""
        stride = -(-part.rows // PART_ROWS)
        table = {name: np.array([value]) for name, value in best.values}
        return self._first(table | {name: x[::stride] for name, x in part.legal.items()})

    def _first(self, table: Table) -> Best:
        rows = max((len(x) for x in table.values()), default=1)
        self.budget.spend(rows, COST_RULES)
        cycles = self._cycles(table, rows)
        # Ties: the fewest units moved from the given values, then the smallest values. np.lexsort
        # takes its keys from the last to the first.
        near = np.nonzero(cycles == cycles.min())[0]
        names = sorted(table)
        columns = [np.broadcast_to(table[name], rows)[near] for name in names]
        moved = np.zeros(len(near), dtype=np.int64)
        for name, column in zip(names, columns, strict=True):
            moved += np.abs(column - getattr(self.given, name))
        row = np.lexsort([*reversed(columns), moved])[0]
        values = tuple((name, int(x[row])) for name, x in zip(names, columns, strict=True))
        return Best(float(cycles[near[row]]), int(moved[row]), values)

    def _cycles(self, table: Table, rows: int) -> Array:
        """Return predicted cycles, rounded up; zeros where the chip's Cube rate is unknown."""
        case = self.space.case
        try:
            total = cost(TilingColumns({**self.space.base, **table}), case.problem, case.chip).total
        except CubecoreError:
            return np.zeros(rows)
        return np.asarray(np.ceil(np.broadcast_to(total, rows)))

    def improved(self, best: Best) -> Best:
        """Return a better combination near `best`, two fields and what follows them at a time."""
        fields = frozenset(name for name, _ in best.values)
        pairs = [frozenset(pair) for pair in combinations(sorted(fields), 2)] or [fields]
        started = None
        while started != best:
            started = best
            for pair in pairs:
                if self.budget.spent:
                    return best
                best = min(best, self._around(best, pair, fields))
        return best

    def _around(self, best: Best, pair: Fields, fields: Fields) -> Best:
        here = self.space.moved(dict(best.values))
        explored = Explorer(here, _with_followers(here, pair, fields), self.budget).run()
        if not explored.rows:
            return best
        stride = -(-explored.rows // PART_ROWS)
        table = {name: np.array([value]) for name, value in best.values}
        return self._first(table | {name: x[::stride] for name, x in explored.legal.items()})


def _spread_over(size: int, spread: Array, number: int) -> Array:
    """Return rows of a part of `size` rows, spread independently of the other parts'."""
    # An additive recurrence with the golden ratio is evenly spread; each part winds it differently,
    # so that rows of two parts do not move together.
    turned = (spread * (2 * number + 1) + number * GOLDEN**2) % 1.0
    return np.asarray((turned * size).astype(np.int64))


def _pick(parts: Sequence[Explored], rows: Sequence[Array]) -> Table:
    return {
        name: column[index]
        for part, index in zip(parts, rows, strict=True)
        for name, column in part.legal.items()
    }


def _with_followers(space: Neighbourhood, pair: Fields, fields: Fields) -> Fields:
    """Return a pair of fields and those of `fields` that rules hold to values that follow it."""
    followers = {
        name
        for reader in space.readers
        if reader.reads & pair
        for name in reader.reads & fields - pair
        if wanted_values(reader, name, space.base, space.case) is not None
    }
    return pair | followers
