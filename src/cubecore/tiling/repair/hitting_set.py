"""The fewest fields whose change makes a tiling legal, found from below.

Every broken rule demands that one of the fields it reads changes. A smallest set of fields that
meets all demands is tried: if some values make the tiling legal, no smaller set can. If none do,
the rules that excluded them demand that one more of certain fields changes, and so on. A demand
that no field can meet proves that no tiling is legal.

A set falls into parts such that no rule reads fields of two. A part is explored once, and what it
demands holds for every set.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.repair.feasibility import ExplorationScope, Explored, Explorer, confined
from cubecore.tiling.repair.neighbourhood import Fields, Neighbourhood, WorkBudget
from cubecore.tiling.repair.representative_values import sufficient
from cubecore.tiling.rules.field_dependencies import RuleReads, measured

SEARCH_UNITS = 20_000_000
"""Work that one search may do, about 0.3 s."""
LARGE = 2.0**26
"""Beyond this many combinations of a part the seeds' values are tried first."""
FEW = 2.0**24
"""Up to this many combinations a broken rule is first looked at alone."""
DEMAND_UNITS = 50
"""The cost of looking at one demand, for each set that is tried."""


@dataclass(frozen=True)
class SearchOutcome:
    """The way in which a search ended.

    `forced` are fields that can have one value only, and have another. `smallest_sets` are the
    smallest sets of further fields with which the tiling becomes legal, each as its explored parts.
    `fewest` says that no smaller set does, `every` that no other set of that size does. If
    `impossible`, no tiling satisfies the rules in `charged` together.
    """

    forced: Mapping[str, int]
    smallest_sets: tuple[tuple[Explored, ...], ...]
    fewest: bool
    every: bool
    impossible: bool
    charged: frozenset[str]


class HittingSetSearch:
    """The search in `space`; with `first` it ends at the first set of fields that will do.

    `seeds` gives tilings whose values may be legal where many fields change.
    """

    def __init__(
        self,
        space: Neighbourhood,
        budget: WorkBudget,
        seeds: Callable[[], Sequence[TCubeTiling]],
        *,
        first: bool = False,
    ) -> None:
        self.budget, self.seeds, self.first = budget, seeds, first
        self.forced: dict[str, int] = {}
        self.charged: set[str] = set()
        self.space = space
        self.demands: list[Fields] = []
        self.parts: dict[Fields, Explored] = {}
        self.sure = True

    def run(self) -> SearchOutcome:
        """Return the outcome."""
        # What can have one value only is no choice: it is set before sets of changes are compared.
        self._force()
        if fixed := [reader.id for reader in self.space.broken if not reader.reads]:
            self.charged = set(fixed[:1])
            return self._outcome([], every=False, impossible=True)
        self.charged |= {reader.id for reader in self.space.broken}
        self.demands = [reader.reads for reader in self.space.broken]
        fields = frozenset[str]().union(*(r.reads for r in self.space.readers))
        if self.first and self.space.broken:
            if (likely := self._likely(fields)) is not None:
                return self._outcome([(likely,)], every=False)
            if (proof := self._hopeless()) is not None:
                self.charged = set(proof.charged)
                return self._outcome([], every=False, impossible=True)
        # Sizes from below: the first size with a legal set is the fewest changes. Demands found on
        # the way cut off most larger sets.
        for size in range(len(fields) + 1):
            smallest_sets: list[tuple[Explored, ...]] = []
            for chosen in hitting_sets(tuple(self.demands), size):
                if len(chosen) < size or not all(chosen & d for d in self.demands):
                    continue
                self.budget.spend(DEMAND_UNITS * len(self.demands), 1)
                if self.budget.spent:
                    return self._outcome(smallest_sets, every=False)
                parts = self._explore(chosen, fields)
                if parts is not None:
                    smallest_sets.append(parts)
                    if self.first:
                        return self._outcome(smallest_sets, every=False)
            if not all(self.demands):
                break
            if smallest_sets:
                return self._outcome(smallest_sets, every=True)
        return self._outcome([], every=False, impossible=self.sure)

    def _outcome(
        self, smallest_sets: list[tuple[Explored, ...]], *, every: bool, impossible: bool = False
    ) -> SearchOutcome:
        return SearchOutcome(
            self.forced, tuple(smallest_sets), self.sure, every, impossible, frozenset(self.charged)
        )

    def _force(self) -> None:
        """Give fields that can have one value that value."""
        while True:
            single = {name for r in self.space.broken if len(r.reads) == 1 for name in r.reads}
            values = {name: self.space.domain(name).values for name in sorted(single)}
            new = {name: int(x[0]) for name, x in values.items() if len(x) == 1}
            new = {name: x for name, x in new.items() if name not in self.forced}
            if not new:
                return
            self.charged |= {r.id for r in self.space.readers if r.reads <= new.keys()}
            self.forced |= new
            self.space = self.space.moved(new)

    def _likely(self, fields: Fields) -> Explored | None:
        """Return a legal tiling that is found by trying the likeliest values of all fields."""
        if not fields:
            return None
        explored = Explorer(self.space, fields, self.budget, ExplorationScope.LIKELY).run()
        return explored if explored.rows else None

    def _hopeless(self) -> Explored | None:
        """Return the proof that one rule cannot hold whatever changes, if that is short.

        Broken rules are looked at, rules that grow, and those that read a field which these read.
        Fields that a look leaves out have their smallest values in the rules that grow.
        """
        space = self.space.lowered
        looked_at = [r for r in space.readers if r.id in space.growing]
        near = frozenset[str]().union(*(r.reads for r in (*self.space.broken, *looked_at)))
        size_of = {frozenset({name}): 1.0 for r in looked_at for name in r.reads}
        for reader in space.readers:
            if reader.reads & near:
                size = _combinations(space, reader)
                size_of[reader.reads] = min(size, size_of.get(reader.reads, size))
        scopes = [reads for reads, size in size_of.items() if size <= FEW]
        short = sorted(scopes, key=lambda reads: (size_of[reads], sorted(reads)))
        for reads in short:
            share = WorkBudget(max(self.budget.left, 0) * 3 // 4)
            before = share.left
            explored = Explorer(space, reads, share, ExplorationScope.INSIDE).run()
            self.budget.left -= before - share.left
            if explored.complete and not explored.rows:
                return explored
        return None

    def _explore(self, chosen: Fields, fields: Fields) -> tuple[Explored, ...] | None:
        """Return the explored parts of a set of fields; None if one has no legal values."""
        parts = []
        for part in sorted(self.space.parts(chosen), key=lambda p: (len(p), sorted(p))):
            # Sets share parts: what a part demands holds for all of them.
            if part not in self.parts:
                self.parts[part] = self._part(part)
            explored = self.parts[part]
            if not explored.rows:
                if explored.complete:
                    self.charged |= explored.charged
                    self.demands.append(explored.core)
                else:  # not tried to the end: go on with other sets, and own up to it
                    self.sure = False
                    self.demands.append(fields - chosen)
                return None
            parts.append(explored)
        return tuple(parts)

    def _part(self, part: Fields) -> Explored:
        many = prod(float(len(self.space.domain(name).values)) for name in part) > LARGE
        # Too many combinations to try: a legal tiling that is known may have values that do.
        if many and (seeded := self._seeded(part)) is not None:
            return seeded
        explored = self._attempt(part, ExplorationScope.ALL)
        if explored.rows or explored.complete:
            return explored
        thin = self._attempt(part, ExplorationScope.THIN)
        return thin if thin.rows else self._seeded(part) or thin

    def _attempt(self, part: Fields, how: ExplorationScope) -> Explored:
        share = WorkBudget(max(self.budget.left, 0) // 3)
        before = share.left
        explored = Explorer(self.space, part, share, how).run()
        self.budget.left -= before - share.left
        return explored

    def _seeded(self, part: Fields) -> Explored | None:
        """Return the seeds' values of some fields that break no rule which reads one of them."""
        about = [r for r in self.space.readers if r.reads & part]
        for seed in self.seeds():
            table = {name: np.array([getattr(seed, name)]) for name in part}
            self.budget.spend(1, len(about))
            judged = self.space.judge(table)
            if all(np.all(measured(r, judged).holds()) for r in about):
                return Explored(part, table, False, False, frozenset(), frozenset())
        return None


def _combinations(space: Neighbourhood, reader: RuleReads) -> float:
    """Return how many values of its fields a rule leaves to be tried in a proof."""
    about = confined(space, reader.reads)
    sizes = [
        float(len(sufficient(space, name, space.domain(name).values, about)))
        for name in reader.reads
    ]
    return prod(sizes) / (max(1, *sizes) if reader.id in space.equalities else 1)


def hitting_sets(demands: Sequence[Fields], size: int) -> Iterator[Fields]:
    """Yield sets of at most `size` fields that share one with each demand, each set once.

    A set with a field that it does not need is left out.
    """
    yield from _hitting(tuple(demands), size, frozenset(), frozenset())


def _hitting(
    demands: tuple[Fields, ...], size: int, chosen: Fields, barred: Fields
) -> Iterator[Fields]:
    still_open = [d - barred for d in demands if not d & chosen]
    if not still_open:
        yield chosen
        return
    if _disjoint(still_open) > size:
        return
    # The demand with the fewest fields branches least; `barred` keeps a set from coming twice, in
    # another order.
    first = min((len(d), sorted(d)) for d in still_open)[1]
    for index, name in enumerate(first):
        yield from _hitting(demands, size - 1, chosen | {name}, barred.union(first[:index]))


def _disjoint(demands: Sequence[Fields]) -> float:
    """Return how many demands have no field in common, found greedily; no set can be smaller."""
    if not all(demands):
        return inf
    count, used = 0, frozenset[str]()
    for _, demand in sorted((len(d), sorted(d)) for d in demands):
        if not used.intersection(demand):
            count, used = count + 1, used.union(demand)
    return count
