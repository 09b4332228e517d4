"""The solver's search: branch and bound over splits, base blocks and L1 residency.

Candidates with the least bounds are costed first. Their least cost is the limit: a candidate whose
lower bound reaches it is excluded without being costed, level by level, until none is left that
might be faster (then the best is proven), or until the work allowed for one problem is done.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.model.field_limits import SHARED_AXES, FieldLimits
from cubecore.tiling.rules.batches import fits_together
from cubecore.tiling.rules.checker import legal_mask
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import (
    Ints,
    Pairs,
    TilingColumns,
    base_blocks,
    block_pairs,
    concatenate,
    core_splits,
)
from cubecore.tiling.solver.l1_residency import (
    LEAST_RESIDENCY,
    MOST_STEPS,
    RESIDENCY_FIELDS,
    Residencies,
    ResidencyPairs,
    joined_residencies,
    residencies,
    with_derived_fields,
)
from cubecore.tiling.solver.l1_residency_cost import (
    least_by,
    least_of,
    pair_bounds,
    residency_bounds,
    residency_cycles,
)
from cubecore.tiling.solver.lower_bounds import (
    BlockBounds,
    LowerBounds,
    block_bounds,
    pair_bound,
    split_bound,
)
from cubecore.units import FRACTAL_BYTES, distinct

FIRST_PAIRS, FIRST_BLOCKS = 96, 4
"""The number of each that is looked at before there is a limit."""
GUESS = 1.25
"""Times the least bound: what is above it is not looked at before there is a limit."""
FIRST_RESIDENCIES = 12
"""Tilings of each base block that are costed before there is a limit."""
SPLITS_AT_ONCE, PAIRS_AT_ONCE, BLOCKS_AT_ONCE = 48, 512, 256
JOINED_AT_ONCE, JOINED_AT_MOST = 1 << 13, 1 << 16
MAX_BLOCKS, MAX_RESIDENCIES = 50_000, 30_000
"""Base blocks and L1 residencies that are bounded for one problem; the rest is not excluded.
 The work is counted so that an answer does not depend on the machine."""
FINE_RESIDENCIES, COARSE = 10_000, 1e-3
"""Rows after which only what is faster by so much is looked at: where device memory is the limit,
there are thousands of tilings of which each saves a cycle of the last tile."""
SHORTLIST_RESIDENCIES, SHORTLIST_COARSE = 8_000, -5e-3
"""The same of a search whose best tilings are told apart by a closer look than the closed form's:
that is further off, so that what is slower by so much is looked at as well."""
MAX_ILLEGAL_BLOCKS = 10_000
"""Base blocks that are looked at before the first that is legal: far more than problems with a
tiling ever needed."""
MISFITS_PER_BLOCK = 16
"""Base blocks seen at once to be too large that count as one that is looked at."""
GROUP_FIELDS = ("singleCoreM", "singleCoreN", "baseM", "baseN")
"""The fields in which alternatives differ."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SearchResult:
    """Legal tilings with their cycles, rounded up, and what the search proved.

    No tiling of the space takes fewer cycles than `bound`; `complete` says that the space was
    searched as it is defined. `judged` counts complete tilings that were found legal or not and
    bounded.
    """

    tilings: TilingColumns
    cycles: Floats
    bound: float
    complete: bool
    judged: int


@dataclass(frozen=True)
class _Pool:
    """Base blocks that may still be looked at, and their bounds."""

    blocks: TilingColumns
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
class _ResidentTilings:
    """The fastest tilings of some base blocks: A's and B's residencies, and the order."""

    blocks: TilingColumns
    pairs: ResidencyPairs
    n_first: Ints
    cycles: Floats

    def take(self, rows: Ints) -> "_ResidentTilings":
        """Return some of them."""
        pairs = self.pairs.take(rows)
        return _ResidentTilings(self.blocks, pairs, self.n_first[rows], self.cycles[rows])

    def tilings(self, case: RuleCase) -> TilingColumns:
        """Return them as tilings."""
        pairs = self.pairs
        tilings = self.blocks.take(pairs.block)
        for operand, rows in ((pairs.a, pairs.rows_a), (pairs.b, pairs.rows_b)):
            names = RESIDENCY_FIELDS[operand.operand]
            tilings = tilings.with_fields(**{n: getattr(operand.columns, n)[rows] for n in names})
        tilings = tilings.with_fields(iterateOrder=self.n_first)
        complete: TilingColumns = with_derived_fields(replace(case, tiling=tilings)).tiling
        return complete


class TilingSearch:
    """One problem's search.

    Every rule is applied to every base block if `strict`, and `excluded` counts what they exclude;
    else those that base blocks of the space may break, and the caller looks at what is found.
    `shortlist`: the caller ranks anew what is found, so that the closed form's best need not be.
    """

    def __init__(
        self,
        case: RuleCase,
        count: int,
        wanted: FieldLimits,
        *,
        strict: bool,
        shortlist: bool = False,
    ) -> None:
        self.case, self.wanted, self.strict = case, wanted, strict
        self.first_blocks = FIRST_BLOCKS + count
        self.excluded: Counter[str] = Counter()
        self.incumbents: list[_ResidentTilings] = []
        self.deferred: list[_Pool] = []
        self.limit = np.inf
        self.unexplored_bound = np.inf
        self.blocks_left = MAX_BLOCKS
        self.residencies_left = SHORTLIST_RESIDENCIES if shortlist else MAX_RESIDENCIES
        self.fine_until = MAX_RESIDENCIES - FINE_RESIDENCIES
        self.coarse = SHORTLIST_COARSE if shortlist else COARSE
        self.judged = self.illegal_blocks = 0
        self.pairs_per_block = 1.0
        self.complete = not wanted.fields and case.chip.l1_bytes <= MOST_STEPS * FRACTAL_BYTES

    @property
    def cutoff(self) -> float:
        """The most cycles that a candidate's lower bound may be for it to be costed."""
        # Once much has been looked at, only what may gain a few per cent is still costed; the bound
        # that is proven is lower by as much.
        fine = self.residencies_left > self.fine_until or self.limit == np.inf
        return self.limit - 1 if fine else (1 - self.coarse) * self.limit - 1

    def run(self) -> SearchResult | None:
        """Return the result; None if no candidate that was costed is legal."""
        case, wanted = self.case, self.wanted
        splits = core_splits(case, case.problem.core_count(case.chip), wanted)
        if wanted.fields:
            splits = splits.take(wanted.of((*SHARED_AXES, "usedCoreNum")).mask(splits))
        if case.problem.layout not in {None, "NORMAL"}:
            splits = splits.take(fits_together(splits, case.problem, case.chip))
        if len(splits) == 0:
            return None
        # Depth first in parts: each part of the splits goes down through pairs and base blocks
        # before the next one is looked at, so that the limit falls early. Rows of a bound are
        # ascending by score; a part is judged again right before it is searched, as the limit may
        # have fallen since.
        bound = split_bound(case, splits)
        rest = self._worth_exploring(bound, self.blocks_left)
        while len(rest):
            part, rest = rest[:SPLITS_AT_ONCE], rest[SPLITS_AT_ONCE:]
            self._search_splits(
                splits.take(self._still_worth_exploring(bound, part, self.blocks_left))
            )
        while self.deferred:
            self._search_deferred()
        if not self.incumbents:
            return None
        return SearchResult(
            concatenate([resident.tilings(case) for resident in self.incumbents]),
            np.concatenate([resident.cycles for resident in self.incumbents]),
            float(min(self.unexplored_bound, self.cutoff + 1, self.limit)),
            self.complete,
            self.judged,
        )

    def _worth_exploring(self, bound: LowerBounds, left: int) -> Ints:
        """Return the rows that might be faster than the best found, in the order to look at them.

        There are none once the work allowed for a problem is done (nothing is `left`), or too
        many blocks were illegal.
        """
        rows = np.flatnonzero(bound.cycles <= self.cutoff)
        given_up = self.illegal_blocks >= MAX_ILLEGAL_BLOCKS
        # What is left unexplored limits what may be proven.
        if len(rows) and (left <= 0 if self.incumbents else given_up):
            self.unexplored_bound = min(self.unexplored_bound, float(bound.cycles[rows].min()))
            return rows[:0]
        return rows[np.argsort(bound.score[rows], kind="stable")]

    def _still_worth_exploring(self, bound: LowerBounds, rows: Ints, left: int) -> Ints:
        """Return which of some rows are still worth a look, in their order."""
        if len(rows) == 0 or (left > 0 and bound.cycles[rows].max() <= self.cutoff):
            return rows
        # The incumbent may have got better since: rows are judged anew, in the order of the
        # columns, so that ties come out as before.
        held = np.sort(rows)
        return held[self._worth_exploring(bound.take(held), left)]

    def _search_splits(self, splits: TilingColumns) -> None:
        """Search the base blocks of some splits."""
        if len(splits) == 0:
            return
        pairs = block_pairs(self.case, splits, self.wanted)
        self.complete &= pairs.complete
        bound = pair_bound(self.case, pairs)
        self.blocks_left -= len(pairs.columns) // 8
        rest = self._worth_exploring(bound, self.blocks_left)
        size = PAIRS_AT_ONCE if self.incumbents else FIRST_PAIRS
        while len(rest):
            part, rest = rest[:size], rest[size:]
            part = self._still_worth_exploring(bound, part, self.blocks_left)
            if len(part):
                self._search_blocks(pairs.take(part))
            size = PAIRS_AT_ONCE

    def _search_blocks(self, pairs: Pairs) -> None:
        """Search the base blocks of some pairs."""
        blocks, pair = base_blocks(self.case, pairs, self.wanted, misfits=self.strict)
        if self.wanted.fields:
            kept = np.flatnonzero(self.wanted.mask(blocks))
            blocks, pair = blocks.take(kept), pair[kept]
        if len(blocks) == 0:
            return
        bounds = block_bounds(self.case, blocks)
        self.blocks_left -= len(blocks)
        pool = _Pool(blocks, bounds)
        if not self.strict and not bounds.fits.all():
            fitting = np.flatnonzero(bounds.fits)
            pool, pair = pool.take(fitting), pair[fitting]
            bounds = pool.bounds
        # A block that breaks a rule by itself costs less than one whose residencies are looked at.
        self.illegal_blocks += (len(blocks) - len(pool.blocks)) // MISFITS_PER_BLOCK
        rest = self._worth_exploring(bounds.total, self.residencies_left)
        if not self.incumbents:
            # Without an incumbent some of every pair are looked at: the blocks with the least
            # bounds may all be illegal for one reason.
            rest = _mixed(pair[rest], rest, self.first_blocks)
        size = 4 * self.first_blocks
        # Parts double: where few fit, many have to be tried.
        while len(rest) and not self.incumbents and self.illegal_blocks < MAX_ILLEGAL_BLOCKS:
            part, rest = rest[:size], rest[size:]
            self._search_first_residencies(pool.take(part))
            self.illegal_blocks += len(part)
            size = min(2 * size, MAX_ILLEGAL_BLOCKS // 4)
        rest = rest[bounds.total.cycles[rest] <= self.cutoff]
        if len(rest):
            self.deferred.append(pool.take(rest))
        # Blocks of many pairs are joined, as a call of NumPy on few rows costs as much as one on
        # many.
        if sum(len(held.blocks) for held in self.deferred) >= BLOCKS_AT_ONCE:
            self._search_deferred()

    def _search_first_residencies(self, pool: _Pool) -> None:
        """Search L1 residencies before there is an incumbent: those near the bounds first."""
        guess = GUESS * float(pool.bounds.total.cycles.min())
        looked_at = self._search_residencies(pool, guess)
        if not self.incumbents:
            self._search_residencies(looked_at)
        elif self.cutoff > guess:  # what was left out may be faster than what was found
            self.deferred.append(looked_at)

    def _search_deferred(self) -> None:
        """Search the deferred base blocks, so that few calls handle many."""
        held, self.deferred = self.deferred, []
        if not held:
            return
        pool = _Pool.joined(held)
        rest, size = (
            self._worth_exploring(pool.bounds.total, self.residencies_left),
            self.first_blocks,
        )
        while len(
            rest := self._still_worth_exploring(pool.bounds.total, rest, self.residencies_left)
        ):
            size = int(min(max(JOINED_AT_ONCE / self.pairs_per_block, 8), 4 * size, BLOCKS_AT_ONCE))
            part, rest = rest[:size], rest[size:]
            self._search_residencies(pool.take(part))

    def _search_residencies(self, pool: _Pool, limit: float = np.inf) -> _Pool:
        """Search the L1 residencies of base blocks, below a limit; return these blocks.

        The others are illegal or deferred.
        """
        if self.strict:
            least = with_derived_fields(
                replace(self.case, tiling=pool.blocks.with_fields(**LEAST_RESIDENCY))
            )
            fits, by_rule = legal_mask(least.tiling, self.case.problem, self.case.chip)
            self.excluded.update(by_rule)
            pool = pool.take(np.flatnonzero(fits))
        if len(pool.blocks) == 0:
            return pool
        case, blocks, wanted = self.case, pool.blocks, self.wanted
        # From cheap to dear: residencies of A and of B apart are excluded first, each with the
        # least of the other; only what is left is joined to pairs, bounded as pairs, and costed at
        # last.
        a, b = (residencies(case, blocks, operand, wanted) for operand in "ab")
        self.residencies_left -= (len(a.block) + len(b.block)) // 2
        limit = min(limit, self.cutoff)
        if limit < np.inf:
            a, b = self._promising(pool, a, b, limit)
        pool, a, b = self._few(pool, a, b)
        pairs = joined_residencies(pool.bounds.least_bytes, a, b, case.chip.l1_bytes)
        self.residencies_left -= len(pairs) // 16
        blocks, self.pairs_per_block = pool.blocks, max(len(pairs) / len(pool.blocks), 1.0)
        self.judged += len(pairs) + int(self._both_orders(pool, pairs.block).sum())
        bound = pair_bounds(case, blocks, pool.bounds, pairs)
        if not self.incumbents:
            # The first incumbent cuts off most pairs: a few of each block are judged for it.
            head = _first_of_each(pairs.block, bound, FIRST_RESIDENCIES)
            self._judge(pool, pairs.take(head))
            bound[head] = np.inf
        rest = np.flatnonzero(bound <= min(limit, self.cutoff))
        if len(rest):
            self._judge(pool, pairs.take(rest))
        return pool

    def _few(
        self, pool: _Pool, a: Residencies, b: Residencies
    ) -> tuple[_Pool, Residencies, Residencies]:
        """Return the first base blocks whose residencies make not too many pairs, with these.

        The others are deferred. Long K in short steps has hundreds of residencies an operand.
        """
        count = len(pool.blocks)
        # Pairs of residencies by base block, before any of them is made.
        each = np.bincount(a.block, minlength=count) * np.bincount(b.block, minlength=count)
        few = max(int(np.searchsorted(each.cumsum(), JOINED_AT_MOST, side="right")), 1)
        if few >= count:
            return pool, a, b
        self.deferred.append(pool.take(np.arange(few, count)))
        kept = [operand.take(np.flatnonzero(operand.block < few)) for operand in (a, b)]
        return pool.take(np.arange(few)), kept[0], kept[1]

    def _both_orders(self, pool: _Pool, block: Ints) -> NDArray[np.bool_]:
        """Return the base blocks for which N first is worth costing too."""
        both_orders: NDArray[np.bool_] = pool.bounds.order_matters[block]
        return np.ones_like(both_orders) if "iterateOrder" in self.wanted.fields else both_orders

    def _promising(
        self, pool: _Pool, a: Residencies, b: Residencies, limit: float
    ) -> tuple[Residencies, Residencies]:
        """Return the residencies that, with the least of the other operand, might be faster."""
        promising = []
        for operand, other in ((a, b), (b, a)):
            least = least_of(other, len(pool.blocks))
            cycles = residency_bounds(self.case, pool.blocks, pool.bounds, operand, least)
            promising.append(operand.take(np.flatnonzero(cycles <= limit)))
        return promising[0], promising[1]

    def _judge(self, pool: _Pool, pairs: ResidencyPairs) -> None:
        """Cost complete tilings, and keep the fastest of each base block."""
        both_orders = self._both_orders(pool, pairs.block)
        orders = residency_cycles(
            self.case,
            pool.blocks,
            pairs,
            both_orders=bool(both_orders.any()),
        )
        # N first is costed only where it differs: its rows follow those of M first.
        if len(orders) > 1:
            n_first_rows = np.flatnonzero(both_orders)
            orders[1] = orders[1][n_first_rows]
            pairs = pairs.take(np.concatenate([np.arange(len(pairs)), n_first_rows]))
        cycles = np.concatenate(orders)
        self.residencies_left -= len(cycles)
        n_first = np.repeat(np.arange(len(orders)), [len(x) for x in orders])
        resident = _ResidentTilings(pool.blocks, pairs, n_first, cycles)
        if self.wanted.fields:
            cycles = np.where(self.wanted.mask(resident.tilings(self.case)), cycles, np.inf)
        block = pairs.block
        least = least_by(block, len(pool.blocks), cycles)
        best = np.flatnonzero((cycles == least[block]) & (cycles < np.inf))
        if len(best):
            self.incumbents.append(resident.take(best))
            self.limit = min(self.limit, float(least.min()))


def _mixed(pair: Ints, order: Ints, count: int) -> Ints:
    """Return `order` with the best and the best of each pair, `count` of both, at its front."""
    _, heads = np.unique(pair, return_index=True)
    front = distinct(np.append(np.sort(heads)[:count], np.arange(min(count, len(order)))))
    return np.concatenate([order[front], np.delete(order, front)])


def _first_of_each(groups: Ints, bound: Floats, count: int) -> Ints:
    """Return the positions of the first `count` of each group, by their bounds."""
    small = groups.astype(np.min_scalar_type(groups.max(initial=0)))  # sorted by digits
    by_group = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(groups))
    kept = []
    for members in np.split(by_group, ends[:-1]):
        last = (
            np.partition(bound[members], count - 1)[count - 1] if len(members) > count else np.inf
        )
        low = members[bound[members] <= last]
        kept.append(low[np.argsort(bound[low], kind="stable")][:count])
    return np.concatenate(kept)
