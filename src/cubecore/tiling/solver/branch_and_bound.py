"""The solver's search: branch and bound over splits, base blocks and what stays in L1.

The best by their bounds are looked at first. What they come to is a limit: whatever is bounded
from below by it is excluded without a look, level by level, until nothing is left that might be
faster, which proves that nothing is; or until the work that one problem may cost is done.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.cost.tracing import NO_LINES, Lines
from cubecore.tiling.model.field_limits import SHARED_AXES, Wanted
from cubecore.tiling.rules.batches import fits_together
from cubecore.tiling.rules.checker import legal_mask
from cubecore.tiling.rules.model import Case
from cubecore.tiling.solver.candidates import (
    Columns,
    Ints,
    Pairs,
    base_blocks,
    block_pairs,
    concatenate,
    core_splits,
)
from cubecore.tiling.solver.l1_residency import (
    LEAST_STAY,
    MOST_STEPS,
    STAY_FIELDS,
    Ways,
    derived,
    joined,
    ways,
)
from cubecore.tiling.solver.l1_residency_cost import (
    least_by,
    least_of,
    pair_bounds,
    stay_cycles,
    way_bounds,
)
from cubecore.tiling.solver.lower_bounds import (
    BlockBounds,
    Bound,
    block_bounds,
    pair_bound,
    split_bound,
)
from cubecore.units import FRACTAL_BYTES

FIRST_PAIRS, FIRST_BLOCKS = 96, 4
"""How many of each are looked at before there is a limit."""
GUESS = 1.25
"""Times the least bound: what is above it is not looked at before there is a limit."""
FIRST_WAYS = 12
"""Tilings of each base block that are costed before there is a limit."""
SPLITS_AT_ONCE, PAIRS_AT_ONCE, BLOCKS_AT_ONCE = 48, 512, 256
JOINED_AT_ONCE, JOINED_AT_MOST = 1 << 13, 1 << 16
BLOCKS_LOOKED_AT, STAYS_LOOKED_AT = 50_000, 30_000
"""Base blocks, and rows of what may stay in L1, that are bounded for one problem; what is left then
is not excluded. The work is counted so that an answer does not depend on the machine."""
FINELY_LOOKED_AT, COARSE = 10_000, 1e-3
"""Rows after which only what is faster by so much is looked at: where device memory is the limit,
there are thousands of tilings of which each saves a cycle of the last tile."""
FUTILE_LOOKED_AT = 10_000
"""Base blocks that are looked at before the first that is legal: far more than problems with a
tiling ever needed."""
MISFITS = 16
"""Base blocks seen at once to be too large that count as one that is looked at."""
GROUP_FIELDS = ("singleCoreM", "singleCoreN", "baseM", "baseN")
"""What alternatives differ in."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """Legal tilings with their cycles, rounded up, and what the search proved.

    No tiling of the space takes fewer cycles than `bound`; `complete` says that the space was
    searched as it is defined. `judged` counts complete tilings that were found legal or not and
    bounded.
    """

    tilings: Columns
    cycles: Floats
    bound: float
    complete: bool
    judged: int


@dataclass(frozen=True)
class _Pool:
    """Base blocks that may still be looked at, and their bounds."""

    blocks: Columns
    bounds: BlockBounds

    def take(self, rows: Ints) -> "_Pool":
        """Return some of them."""
        return _Pool(self.blocks.take(rows), self.bounds.take(rows))

    @staticmethod
    def joined(pools: list["_Pool"]) -> "_Pool":
        """Return the blocks of all of them."""
        if len(pools) == 1:
            return pools[0]
        blocks = concatenate([pool.blocks for pool in pools])
        return _Pool(blocks, BlockBounds.joined([pool.bounds for pool in pools]))


@dataclass(frozen=True)
class _Stays:
    """The fastest tilings of some base blocks: rows of A's and of B's ways, and the order."""

    blocks: Columns
    a: Ways
    b: Ways
    rows_a: Ints
    rows_b: Ints
    n_first: Ints
    cycles: Floats

    def take(self, rows: Ints) -> "_Stays":
        """Return some of them."""
        ways = self.rows_a[rows], self.rows_b[rows], self.n_first[rows]
        return _Stays(self.blocks, self.a, self.b, *ways, self.cycles[rows])

    def tilings(self, case: Case) -> Columns:
        """Return them as tilings."""
        found = self.blocks.take(self.a.block[self.rows_a])
        for way, rows in ((self.a, self.rows_a), (self.b, self.rows_b)):
            names = STAY_FIELDS[way.operand]
            found = found.with_fields(**{n: getattr(way.own, n)[rows] for n in names})
        found = found.with_fields(iterateOrder=self.n_first)
        tilings: Columns = derived(replace(case, tiling=found)).tiling
        return tilings


class Search:
    """One problem's search.

    Every rule is applied to every base block if `strict`, and `excluded` counts what they exclude;
    else those that base blocks of the space may break, and the caller looks at what is found.
    """

    def __init__(
        self,
        case: Case,
        count: int,
        wanted: Wanted,
        *,
        strict: bool,
        lines: Lines = NO_LINES,
    ) -> None:
        self.case, self.wanted, self.strict = case, wanted, strict
        self.first_blocks = FIRST_BLOCKS + count
        self.excluded: Counter[str] = Counter()
        self.lines = lines
        self.found: list[_Stays] = []
        self.held: list[_Pool] = []
        self.limit = np.inf
        self.left = np.inf
        self.blocks_left, self.stays_left = BLOCKS_LOOKED_AT, STAYS_LOOKED_AT
        self.judged = self.seen = 0
        self.each = 1.0
        self.complete = not wanted.fields and case.chip.l1_bytes <= MOST_STEPS * FRACTAL_BYTES

    @property
    def bar(self) -> float:
        """The cycles that a candidate must be able to keep to for a look to be worth it."""
        fine = self.stays_left > STAYS_LOOKED_AT - FINELY_LOOKED_AT or self.limit == np.inf
        return self.limit - 1 if fine else (1 - COARSE) * self.limit - 1

    def run(self) -> Found | None:
        """Return what was found; None if nothing is legal, of what was looked at."""
        case, wanted = self.case, self.wanted
        splits = core_splits(case, case.problem.core_count(case.chip), wanted)
        if wanted.fields:
            splits = splits.take(wanted.of((*SHARED_AXES, "usedCoreNum")).mask(splits))
        if case.problem.layout not in {None, "NORMAL"}:
            splits = splits.take(fits_together(splits, case.problem, case.chip))
        if len(splits) == 0:
            return None
        bound = split_bound(case, splits, self.lines)
        rest = self._open(bound, self.blocks_left)
        while len(rest):
            part, rest = rest[:SPLITS_AT_ONCE], rest[SPLITS_AT_ONCE:]
            self._splits(splits.take(self._still(bound, part, self.blocks_left)))
        while self.held:
            self._search_held()
        if not self.found:
            return None
        return Found(
            concatenate([stays.tilings(case) for stays in self.found]),
            np.concatenate([stays.cycles for stays in self.found]),
            float(min(self.left, self.bar + 1)),
            self.complete,
            self.judged,
        )

    def _open(self, bound: Bound, left: int) -> Ints:
        """Return the rows that might be faster than the best found, in the order to look at them.

        Once nothing is `left` of what may be looked at, or too much was for nothing, there
        are none.
        """
        rows = np.flatnonzero(bound.cycles <= self.bar)
        futile = self.seen >= FUTILE_LOOKED_AT
        if len(rows) and (left <= 0 if self.found else futile):
            self.left = min(self.left, float(bound.cycles[rows].min()))
            return rows[:0]
        return rows[np.argsort(bound.score[rows], kind="stable")]

    def _still(self, bound: Bound, rows: Ints, left: int) -> Ints:
        """Return which of some rows are still worth a look, in their order."""
        if len(rows) == 0 or (left > 0 and bound.cycles[rows].max() <= self.bar):
            return rows
        held = np.sort(rows)
        return held[self._open(bound.take(held), left)]

    def _splits(self, splits: Columns) -> None:
        """Search the base blocks of some splits."""
        if len(splits) == 0:
            return
        pairs = block_pairs(self.case, splits, self.wanted)
        self.complete &= pairs.complete
        bound = pair_bound(self.case, pairs, self.lines)
        self.blocks_left -= len(pairs.columns) // 8
        rest = self._open(bound, self.blocks_left)
        size = PAIRS_AT_ONCE if self.found else FIRST_PAIRS
        while len(rest):
            part, rest = rest[:size], rest[size:]
            part = self._still(bound, part, self.blocks_left)
            if len(part):
                self._blocks(pairs.take(part))
            size = PAIRS_AT_ONCE

    def _blocks(self, pairs: Pairs) -> None:
        """Search the base blocks of some pairs."""
        blocks, pair = base_blocks(self.case, pairs, self.wanted, misfits=self.strict)
        if self.wanted.fields:
            kept = np.flatnonzero(self.wanted.mask(blocks))
            blocks, pair = blocks.take(kept), pair[kept]
        if len(blocks) == 0:
            return
        bounds = block_bounds(self.case, blocks, self.lines)
        self.blocks_left -= len(blocks)
        pool = _Pool(blocks, bounds)
        if not self.strict and not bounds.fits.all():
            fitting = np.flatnonzero(bounds.fits)
            pool, pair = pool.take(fitting), pair[fitting]
            bounds = pool.bounds
        self.seen += (len(blocks) - len(pool.blocks)) // MISFITS
        rest = self._open(bounds.total, self.stays_left)
        if not self.found:
            rest = _mixed(pair[rest], rest, self.first_blocks)
        size = 4 * self.first_blocks
        while len(rest) and not self.found and self.seen < FUTILE_LOOKED_AT:
            part, rest = rest[:size], rest[size:]
            self._first_stays(pool.take(part))
            self.seen += len(part)
            size = min(2 * size, FUTILE_LOOKED_AT // 4)
        rest = rest[bounds.total.cycles[rest] <= self.bar]
        if len(rest):
            self.held.append(pool.take(rest))
        if sum(len(held.blocks) for held in self.held) >= BLOCKS_AT_ONCE:
            self._search_held()

    def _first_stays(self, pool: _Pool) -> None:
        """Search what may stay in L1 while nothing is found yet: what is near the bounds first."""
        guess = GUESS * float(pool.bounds.total.cycles.min())
        looked_at = self._stays(pool, guess)
        if not self.found:
            self._stays(looked_at)
        elif self.bar > guess:  # what was left out may be faster than what was found
            self.held.append(looked_at)

    def _search_held(self) -> None:
        """Search the base blocks that were put aside, so that few calls look at many."""
        held, self.held = self.held, []
        if not held:
            return
        pool = _Pool.joined(held)
        rest, size = self._open(pool.bounds.total, self.stays_left), self.first_blocks
        while len(rest := self._still(pool.bounds.total, rest, self.stays_left)):
            size = int(min(max(JOINED_AT_ONCE / self.each, 8), 4 * size, BLOCKS_AT_ONCE))
            part, rest = rest[:size], rest[size:]
            self._stays(pool.take(part))

    def _stays(self, pool: _Pool, limit: float = np.inf) -> _Pool:
        """Search what may stay in L1 for some base blocks, below a limit; return these.

        The others are illegal, or put aside.
        """
        if self.strict:
            least = derived(replace(self.case, tiling=pool.blocks.with_fields(**LEAST_STAY)))
            fits, by_rule = legal_mask(least.tiling, self.case.problem, self.case.chip)
            self.excluded.update(by_rule)
            pool = pool.take(np.flatnonzero(fits))
        if len(pool.blocks) == 0:
            return pool
        case, blocks, wanted = self.case, pool.blocks, self.wanted
        a, b = (ways(case, blocks, operand, wanted, self.lines) for operand in "ab")
        self.stays_left -= (len(a.block) + len(b.block)) // 2
        limit = min(limit, self.bar)
        if limit < np.inf:
            a, b = self._promising(pool, (a, b), limit)
        pool, a, b = self._few(pool, a, b)
        rows_a, rows_b = joined(pool.bounds.least_bytes, a, b, case.chip.l1_bytes)
        self.stays_left -= len(rows_a) // 16
        blocks, self.each = pool.blocks, max(len(rows_a) / len(pool.blocks), 1.0)
        self.judged += len(rows_a) + int(self._turns(pool, a.block[rows_a]).sum())
        bound = pair_bounds(case, blocks, pool.bounds, (a, b), (rows_a, rows_b), self.lines)
        if not self.found:
            head = _first_of_each(a.block[rows_a], bound, FIRST_WAYS)
            self._judge(pool, a, b, (rows_a[head], rows_b[head]))
            bound[head] = np.inf
        rest = np.flatnonzero(bound <= min(limit, self.bar))
        if len(rest):
            self._judge(pool, a, b, (rows_a[rest], rows_b[rest]))
        return pool

    def _few(self, pool: _Pool, a: Ways, b: Ways) -> tuple[_Pool, Ways, Ways]:
        """Return the first base blocks of which the ways make not too many pairs, with their ways.

        The others are put aside. Long K in short steps has hundreds of ways for each operand.
        """
        count = len(pool.blocks)
        each = np.bincount(a.block, minlength=count) * np.bincount(b.block, minlength=count)
        few = max(int(np.searchsorted(each.cumsum(), JOINED_AT_MOST, side="right")), 1)
        if few >= count:
            return pool, a, b
        self.held.append(pool.take(np.arange(few, count)))
        kept = [own.take(np.flatnonzero(own.block < few)) for own in (a, b)]
        return pool.take(np.arange(few)), kept[0], kept[1]

    def _turns(self, pool: _Pool, block: Ints) -> NDArray[np.bool_]:
        """Return for which base blocks it is worth to let N go first too."""
        turns: NDArray[np.bool_] = pool.bounds.turns[block]
        return np.ones_like(turns) if "iterateOrder" in self.wanted.fields else turns

    def _promising(
        self, pool: _Pool, operands: tuple[Ways, Ways], limit: float
    ) -> tuple[Ways, Ways]:
        """Return the ways that with the least of the other operand might be faster."""
        least = [least_of(own, len(pool.blocks)) for own in operands]
        found = []
        for own, other in zip(operands, reversed(least), strict=True):
            cycles = way_bounds(self.case, pool.blocks, pool.bounds, own, other, self.lines)
            found.append(own.take(np.flatnonzero(cycles <= limit)))
        return found[0], found[1]

    def _judge(self, pool: _Pool, a: Ways, b: Ways, rows: tuple[Ints, Ints]) -> None:
        """Cost complete tilings, and keep the fastest of each base block."""
        block = a.block[rows[0]]
        turns = self._turns(pool, block)
        orders = stay_cycles(
            self.case, pool.blocks, a, b, rows, turns=bool(turns.any()), lines=self.lines
        )
        if len(orders) > 1:
            turned = np.flatnonzero(turns)
            orders[1] = orders[1][turned]
            rows = (
                np.concatenate([rows[0], rows[0][turned]]),
                np.concatenate([rows[1], rows[1][turned]]),
            )
            block = np.concatenate([block, block[turned]])
        cycles = np.concatenate(orders)
        self.stays_left -= len(cycles)
        n_first = np.repeat(np.arange(len(orders)), [len(x) for x in orders])
        stays = _Stays(pool.blocks, a, b, *rows, n_first, cycles)
        if self.wanted.fields:
            cycles = np.where(self.wanted.mask(stays.tilings(self.case)), cycles, np.inf)
        least = least_by(block, len(pool.blocks), cycles)
        best = np.flatnonzero((cycles == least[block]) & (cycles < np.inf))
        if len(best):
            self.found.append(stays.take(best))
            self.limit = min(self.limit, float(least.min()))


def _mixed(pair: Ints, order: Ints, count: int) -> Ints:
    """Return `order` with the best and the best of each pair, `count` of both, at its front."""
    _, heads = np.unique(pair, return_index=True)
    front = np.union1d(np.sort(heads)[:count], np.arange(min(count, len(order))))
    return np.concatenate([order[front], np.delete(order, front)])


def _first_of_each(groups: Ints, bound: Floats, count: int) -> Ints:
    """Return the positions of the first `count` of each group, by their bounds."""
    small = groups.astype(np.min_scalar_type(groups.max(initial=0)))  # sorted by digits
    by_group = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(groups))
    kept = []
    for own in np.split(by_group, ends[:-1]):
        last = np.partition(bound[own], count - 1)[count - 1] if len(own) > count else np.inf
        low = own[bound[own] <= last]
        kept.append(low[np.argsort(bound[low], kind="stable")][:count])
    return np.concatenate(kept)
