"""Feasible values of some fields, the others held: all of them, or a proof of none.

The fields' domains are joined one field at a time, and every rule is applied as soon as all that it
reads is known. What excludes a combination is remembered: if none is left, the fields that those
rules read besides are the reason, and one of them must change too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from math import prod

import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.repair.field_domains import LENGTHS, Cover, Ints, wanted_values
from cubecore.tiling.repair.neighbourhood import Fields, Neighbourhood, Table, WorkBudget, row_count
from cubecore.tiling.repair.representative_values import likely, sufficient
from cubecore.tiling.rules.field_dependencies import RuleReads, measured
from cubecore.units import INT32_MAX, INT32_MIN, distinct

ROWS_AT_ONCE = 1 << 16
"""Combinations that are judged in one call."""
FIRST_ROWS = 1 << 10
"""Combinations of likely values that are judged first: most often one of them is legal."""
ROWS_KEPT = 1 << 18
"""Combinations that are kept; beyond, an even sample."""
MANY_ROWS = 1 << 13
"""Beyond this many rows rules are applied one after the other."""
THIN_VALUES = 14


class ExplorationScope(Enum):
    """The values and rules of an exploration.

    ALL: all of both. THIN: some values of each field only, evenly in proportion. LIKELY: the few
    that may do, up to the first legal combination. INSIDE: up to there too, and only rules that
    read nothing else, or grow with what else they read, which the starting point must have at its
    smallest (`Neighbourhood.lowered`): what they exclude, no other change can help.
    """

    ALL = "all"
    THIN = "thin"
    LIKELY = "likely"
    INSIDE = "inside"


@dataclass(frozen=True)
class Explored:
    """The outcomes reachable by changing some fields.

    `legal` are combinations that break no rule which reads one of the fields. `whole` says that
    they are all there are, `complete` that the rules exclude the others or a value like each of the
    others was tried. If there are none: `core` are fields, not among those tried, of which one must
    change as well, and `charged` the rules that say so.
    """

    fields: Fields
    legal: Table
    complete: bool
    whole: bool
    core: Fields
    charged: frozenset[str]

    @property
    def rows(self) -> int:
        """Return the number of legal combinations."""
        return row_count(self.legal) if self.legal else 0


class _SpentError(Exception):
    """The budget is spent."""


class Explorer:
    """One exploration of the values of `free`, the other fields as at the starting point."""

    def __init__(
        self,
        space: Neighbourhood,
        free: Fields,
        budget: WorkBudget,
        how: ExplorationScope = ExplorationScope.ALL,
    ) -> None:
        self.space, self.free, self.budget, self.how = space, free, budget, how
        self.inside, self.to_first = (
            how is ExplorationScope.INSIDE,
            how in {ExplorationScope.INSIDE, ExplorationScope.LIKELY},
        )
        # INSIDE is a proof about some fields alone: rules that read others must only get stricter
        # as these grow, and these are at their smallest.
        self.relevant = confined(space, free) if self.inside else _about(space, free)
        self.charged: dict[str, RuleReads] = {}
        self.applied: set[str] = set()
        self.legal: list[Table] = []
        self.turns: dict[tuple[str, ...], tuple[str, RuleReads | None]] = {}
        covers = {space.domain(name).cover for name in free}
        self.complete = Cover.SAMPLE not in covers and how is not ExplorationScope.LIKELY
        self.whole = covers == {Cover.ALL}

    def run(self) -> Explored:
        """Run the exploration and return its result."""
        try:
            values = self._values()
            if values is not None:
                self._join(values, [Table()], sorted(self.free))
        except _SpentError:
            self.complete = False
        # If nothing is legal one of the other fields that the charged rules read must change: that
        # is the demand the search goes on with.
        core = frozenset[str]().union(*(r.reads for r in self.charged.values())) - self.free
        tables, cut = _limited(self.legal)
        legal = {name: np.concatenate([t[name] for t in tables]) for name in self.free if tables}
        whole = self.whole and self.complete and not cut
        # A domain holds only what the rules about its field alone allow: the proof rests on them.
        read = frozenset[str]().union(*(r.reads for r in self.relevant))
        near = self.relevant if not self.inside else self.space.readers
        alone = {r.id for r in near if len(r.reads) == 1 and r.reads <= read}
        charged = self.charged.keys() | alone
        return Explored(self.free, legal, self.complete, whole, core, frozenset(charged))

    def _values(self) -> Table | None:
        """Return every field's values that held fields allow; None, and why, if there are none."""
        values: Table = {}
        self.applied = {r.id for r in self.relevant if len(r.reads & self.free) == 1}
        for name in sorted(self.free):
            # Rules of one free field first: they need no combination.
            about = [r for r in self.relevant if r.reads & self.free == {name}]
            candidates, given = self._candidates(name, about)
            if len(candidates):
                earlier = set(self.charged)
                candidates = candidates[self._sieve({name: candidates}, about)]
                about = [r for i, r in self.charged.items() if i not in earlier]
            if not len(candidates):  # this field alone is the reason
                self.charged = {r.id: r for r in (*about, *given)}
                return None
            self.charged |= {r.id: r for r in given}
            if self.inside:
                candidates = sufficient(self.space, name, candidates, self.relevant)
            values[name] = (
                likely(self.space, name, candidates)
                if self.how is ExplorationScope.LIKELY
                else candidates
            )
        return values

    def _candidates(self, name: str, about: list[RuleReads]) -> tuple[Ints, list[RuleReads]]:
        """Return the values of a field to try, and the rule that gives them, if one does."""
        for reader in about:
            wanted = wanted_values(reader, name, self.space.base, self.space.case)
            if wanted is not None:
                values = distinct(np.concatenate([np.atleast_1d(x) for x in wanted]))
                return values[(values >= INT32_MIN) & (values <= INT32_MAX)], [reader]
        return self.space.domain(name).values, []

    def _join(self, values: Table, tables: list[Table], pending: list[str]) -> None:
        name, wanted = self.turns.get(tuple(pending)) or self._next(values, pending, tables)
        self.turns[tuple(pending)] = name, wanted
        pending = [other for other in pending if other != name]
        joined = self.free.difference(pending)
        # Each rule is applied as soon as all it reads is joined, which keeps tables small.
        ready = [
            r for r in self.relevant if r.id not in self.applied and r.reads & self.free <= joined
        ]
        self.applied |= {r.id for r in ready}
        if wanted is not None:
            self.charged.setdefault(wanted.id, wanted)
            ready += [r for r in self.relevant if r.reads & self.free == {name}]
        extended = self._extend(tables, name, values[name], wanted, ready)
        if self.to_first:
            self._each(values, extended, pending)
        elif not pending:
            self.legal += extended
        else:
            tables, cut = _limited(list(extended))
            self.complete = self.complete and not cut
            if tables:
                self._join(values, tables, pending)

    def _each(self, values: Table, extended: Iterator[Table], pending: list[str]) -> None:
        """Go on with one table after the other, none left out, until one has a legal row."""
        applied = frozenset(self.applied)
        for table in extended:
            if not pending:
                self.legal.append({name: x[:1] for name, x in table.items()})
            else:
                self.applied = set(applied)
                self._join(values, [table], pending)
            if self.legal:
                return

    def _next(
        self, values: Table, pending: list[str], tables: list[Table]
    ) -> tuple[str, RuleReads | None]:
        """Return the field to join next: one that a rule gives, or the one that costs the least."""
        joined = self.free.difference(pending)
        columns = self.space.base | {n: x[:1] for n, x in tables[0].items()}
        for name in pending:
            for reader in self.relevant:
                computable = name in reader.reads and (reader.reads & self.free) - {name} <= joined
                if computable and wanted_values(reader, name, columns, self.space.case) is not None:
                    return name, reader
        return self._cheapest(values, pending), None

    def _cheapest(self, values: Table, pending: list[str]) -> str:
        """Return a field of the rule that leaves the fewest combinations, broken rules first."""
        broken = {reader.id for reader in self.space.broken}
        scopes = []
        for index, reader in enumerate(self.relevant):
            missing = reader.reads.intersection(pending)
            if missing and reader.id not in self.applied:
                sizes = [float(len(values[name])) for name in missing]
                # An equality leaves about one value of one of its fields for each combination of
                # the others.
                left = prod(sizes) / (max(sizes) if reader.id in self.space.equalities else 1)
                scopes.append((left, reader.id not in broken, index, missing))
        missing = min(scopes, key=lambda scope: scope[:3])[3] if scopes else frozenset(pending)
        return min(missing, key=lambda name: (self._is_given(name), len(values[name]), name))

    def _is_given(self, name: str) -> bool:
        """True if it is better to wait until a rule gives the field's value.

        A length must: it has no values of its own that could stand for all.
        """
        may = self.to_first or name in LENGTHS
        return may and any(
            wanted_values(reader, name, self.space.base, self.space.case) is not None
            for reader in self.relevant
            if {name} < reader.reads
        )

    def _extend(
        self,
        tables: Iterable[Table],
        name: str,
        values: Ints,
        wanted: RuleReads | None,
        ready: list[RuleReads],
    ) -> Iterator[Table]:
        """Yield the tables with another field, rows that break a rule in `ready` left out."""
        for table in tables:
            for grown in self._grown(table, name, values, wanted):
                kept = self._sieve(grown, ready)
                if kept.all():
                    yield grown
                elif kept.any():
                    yield {n: x[kept] for n, x in grown.items()}

    def _grown(
        self, table: Table, name: str, values: Ints, wanted: RuleReads | None
    ) -> Iterator[Table]:
        """Yield every row of `table` with every value of another field, or those that it must have.

        At most `ROWS_AT_ONCE` rows each time.
        """
        rows = row_count(table)
        if wanted is not None:
            self.budget.spend(2 * rows, 1)
            choices = wanted_values(wanted, name, self.space.base | table, self.space.case)
            if choices is not None:
                each = len(choices)
                grown = {n: np.tile(x, each) if each > 1 else x for n, x in table.items()}
                grown[name] = np.concatenate([np.broadcast_to(x, rows) for x in choices])
                held = (grown[name] >= INT32_MIN) & (grown[name] <= INT32_MAX)
                if held.any():
                    yield grown if held.all() else {n: x[held] for n, x in grown.items()}
                return
        if self.how is ExplorationScope.THIN and len(values) > THIN_VALUES:
            self.complete = False
            indices = np.geomspace(1, len(values), THIN_VALUES).round().astype(np.int64) - 1
            values = values[distinct(indices)]
        if len(values) == 1:
            yield {**table, name: np.full(rows, values[0])}
            return
        start, most = 0, FIRST_ROWS if self.how is ExplorationScope.LIKELY else ROWS_AT_ONCE
        while start < rows:
            at_once = max(1, most // len(values))
            part = {n: x[start : start + at_once] for n, x in table.items()}
            grown = {n: np.repeat(x, len(values)) for n, x in part.items()}
            grown[name] = np.tile(values, min(at_once, rows - start))
            yield grown
            start, most = start + at_once, ROWS_AT_ONCE

    def _sieve(self, table: Table, about: list[RuleReads]) -> NDArray[np.bool_]:
        """Return which rows keep every rule in `about`; charge rules that explain the others."""
        rows = row_count(table)
        alive = np.ones(rows, dtype=bool)
        if rows > MANY_ROWS:  # the rules that leave the fewest rows first, the others on those
            # Equalities exclude the most: the other rules are judged on what they leave.
            for reader in sorted(about, key=lambda r: r.id not in self.space.equalities):
                indices = np.nonzero(alive)[0]
                read = {n: x[indices] for n, x in table.items() if n in reader.reads}
                held = np.broadcast_to(self._holds(read, [reader])[reader.id], len(indices))
                if not held.all():
                    self.charged.setdefault(reader.id, reader)
                    alive[indices[~held]] = False
            return alive
        masks = self._holds(table, about)
        left = list(about)
        while True:  # few rules, and few fields that they read
            read_by_charged = self.free.union(*(r.reads for r in self.charged.values()))
            kills = {r.id: int(np.count_nonzero(alive & ~masks[r.id])) for r in left}
            left = [r for r in left if kills[r.id]]
            if not left:
                return alive
            # The fewest rules, and fields, that explain all exclusions make the smallest core,
            # which is the strongest demand.
            best = min(left, key=lambda r: (len(r.reads - read_by_charged), -kills[r.id]))
            self.charged.setdefault(best.id, best)
            alive &= masks[best.id]
            left.remove(best)

    def _holds(self, table: Table, about: list[RuleReads]) -> dict[str, NDArray[np.bool_]]:
        """Return where each rule holds; the budget pays."""
        rows = row_count(table)
        self.budget.spend(rows, max(len(about), 1))
        if self.budget.spent:
            raise _SpentError
        judged = self.space.judge(table)
        return {r.id: np.broadcast_to(measured(r, judged).holds(), rows) for r in about}


def confined(space: Neighbourhood, free: Fields) -> list[RuleReads]:
    """Return the rules that read some of `free` and nothing else, or grow with what else."""
    return [r for r in _about(space, free) if r.reads <= free or r.id in space.growing]


def _about(space: Neighbourhood, free: Fields) -> list[RuleReads]:
    return [r for r in space.readers if r.reads & free]


def _limited(tables: list[Table]) -> tuple[list[Table], bool]:
    """Return the tables, an even sample of their rows if they are too many, and whether it is."""
    rows = sum(row_count(table) for table in tables)
    if rows <= ROWS_KEPT:
        return tables, False
    stride = -(-rows // ROWS_KEPT)
    return [{name: x[::stride] for name, x in table.items()} for table in tables], True
