"""The solver's search: branch and bound over splits, base blocks and what stays in L1.

The best by their bounds are looked at first. What they come to is a limit: whatever is bounded
from below by it is excluded without a look, level by level, until nothing is left that might be
faster, which proves that nothing is; or until the work that one problem may cost is done.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.bounds import BlockBounds, Bound, block_bounds, pair_bound, split_bound
from cubecore.tiling.candidates import (
    Columns,
    Ints,
    Pairs,
    base_blocks,
    block_pairs,
    concatenate,
    core_splits,
)
from cubecore.tiling.cost import cost
from cubecore.tiling.rule_model import Case
from cubecore.tiling.rules import legal_mask
from cubecore.tiling.stay_bounds import Cut, stay_bounds, way_bounds
from cubecore.tiling.stays import (
    BLOCK_RULES,
    LEAST_STAY,
    MOST_STEPS,
    STAY_RULES,
    Ways,
    allowed,
    derived,
    joined,
    ways,
)
from cubecore.tiling.wanted import SHARED_AXES, Wanted
from cubecore.units import FRACTAL_BYTES

FIRST_PAIRS, FIRST_BLOCKS = 96, 4
"""How many of each are looked at before there is a limit."""
GUESS = 1.25
"""Times the least bound: what is above it is not looked at before there is a limit."""
FIRST_WAYS = 12
"""Tilings of each base block that are costed before there is a limit."""
SPLITS_AT_ONCE, PAIRS_AT_ONCE, BLOCKS_AT_ONCE, ROWS_AT_ONCE = 48, 512, 256, 1 << 11
JOINED_AT_ONCE = 1 << 13
BLOCKS_LOOKED_AT, STAYS_LOOKED_AT = 50_000, 60_000
"""Base blocks, and rows of what may stay in L1, that are bounded for one problem; what is left then
is not excluded. The work is counted so that an answer does not depend on the machine."""
FUTILE_LOOKED_AT = 20_000
"""Base blocks that are looked at before the first that is legal: far more than problems with a
tiling ever needed."""
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
    """Complete tilings of some base blocks: rows of A's and of B's ways, and the order."""

    blocks: Columns
    a: Ways
    b: Ways
    rows_a: Ints
    rows_b: Ints
    n_first: Ints

    def tilings(self, rows: Ints) -> Columns:
        """Return some of them as tilings."""
        a, b = self.rows_a[rows], self.rows_b[rows]
        fields = self.a.of(a) | self.b.of(b) | {"iterateOrder": self.n_first[rows]}
        return self.blocks.take(self.a.block[a]).with_fields(**fields)


class Search:
    """One problem's search.

    Every rule is applied to every base block if `strict`, and `excluded` counts what they exclude;
    else those that base blocks of the space may break, and the caller looks at what is found.
    """

    def __init__(self, case: Case, count: int, wanted: Wanted, *, strict: bool) -> None:
        self.case, self.wanted, self.strict = case, wanted, strict
        self.first_blocks = FIRST_BLOCKS + count
        self.excluded: Counter[str] = Counter()
        self.tilings: list[Columns] = []
        self.cycles: list[Floats] = []
        self.held: list[_Pool] = []
        self.limit = np.inf
        self.left = np.inf
        self.blocks_left, self.stays_left = BLOCKS_LOOKED_AT, STAYS_LOOKED_AT
        self.judged = self.seen = 0
        self.complete = not wanted.fields and case.chip.l1_bytes <= MOST_STEPS * FRACTAL_BYTES

    def run(self) -> Found | None:
        """Return what was found; None if nothing is legal, of what was looked at."""
        case, wanted = self.case, self.wanted
        splits = core_splits(case, case.problem.core_count(case.chip), wanted)
        if wanted.fields:
            splits = splits.take(wanted.of((*SHARED_AXES, "usedCoreNum")).mask(splits))
        if len(splits) == 0:
            return None
        bound = split_bound(case, splits)
        rest = self._open(bound, self.blocks_left)
        while len(rest):
            part, rest = rest[:SPLITS_AT_ONCE], rest[SPLITS_AT_ONCE:]
            self._splits(splits.take(part[self._open(bound.take(part), self.blocks_left)]))
        self._search_held()
        if not self.cycles:
            return None
        return Found(
            concatenate(self.tilings),
            np.concatenate(self.cycles),
            float(min(self.left, self.limit)),
            self.complete,
            self.judged,
        )

    def _open(self, bound: Bound, left: int) -> Ints:
        """Return the rows that might be faster than the best found, in the order to look at them.

        Once nothing is `left` of what may be looked at, or too much was for nothing, there
        are none.
        """
        rows = np.flatnonzero(bound.cycles <= self.limit - 1)
        futile = self.seen >= FUTILE_LOOKED_AT
        if len(rows) and (left <= 0 if self.cycles else futile):
            self.left = min(self.left, float(bound.cycles[rows].min()))
            return rows[:0]
        return rows[np.argsort(bound.score[rows], kind="stable")]

    def _splits(self, splits: Columns) -> None:
        """Search the base blocks of some splits."""
        if len(splits) == 0:
            return
        pairs = block_pairs(self.case, splits, self.wanted)
        self.complete &= pairs.complete
        bound = pair_bound(self.case, pairs)
        self.blocks_left -= len(pairs.columns) // 8
        rest = self._open(bound, self.blocks_left)
        size = PAIRS_AT_ONCE if self.cycles else FIRST_PAIRS
        while len(rest):
            part, rest = rest[:size], rest[size:]
            part = part[self._open(bound.take(part), self.blocks_left)]
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
        bounds = block_bounds(self.case, blocks)
        self.blocks_left -= len(blocks)
        self.seen += len(blocks)
        pool = _Pool(blocks, bounds)
        rest = self._open(bounds.total, self.stays_left)
        if not self.cycles:
            rest = _mixed(pair[rest], rest, self.first_blocks)
        size = 2 * self.first_blocks
        while len(rest) and not self.cycles:
            part, rest = rest[:size], rest[size:]
            self._first_stays(pool.take(part))
            size *= 2
        rest = rest[bounds.total.cycles[rest] <= self.limit - 1]
        if len(rest):
            self.held.append(pool.take(rest))
        if sum(len(held.blocks) for held in self.held) >= BLOCKS_AT_ONCE:
            self._search_held()

    def _first_stays(self, pool: _Pool) -> None:
        """Search what may stay in L1 while nothing is found yet: what is near the bounds first."""
        guess = GUESS * float(pool.bounds.total.cycles.min())
        self._stays(pool, guess)
        if not self.cycles:
            self._stays(pool)
        elif self.limit - 1 > guess:  # what was left out may be faster than what was found
            self.held.append(pool)

    def _search_held(self) -> None:
        """Search the base blocks that were put aside, so that few calls look at many."""
        held, self.held = self.held, []
        if not held:
            return
        pool = _Pool.joined(held)
        rest = self._open(pool.bounds.total, self.stays_left)
        size = max(BLOCKS_AT_ONCE // 4, 1)
        while len(rest):
            part, rest = rest[:size], rest[size:]
            part = part[self._open(pool.bounds.total.take(part), self.stays_left)]
            if len(part):
                before = self.judged
                self._stays(pool.take(part))
                each = (self.judged - before) / len(part)  # as many as are some rows at once
                size = int(min(max(JOINED_AT_ONCE / max(each, 1), 8), BLOCKS_AT_ONCE))

    def _stays(self, pool: _Pool, limit: float = np.inf) -> None:
        """Search what may stay in L1 for some base blocks, below a limit."""
        least = derived(self.case, pool.blocks.with_fields(**LEAST_STAY))
        if self.strict:
            fits, by_rule = legal_mask(least, self.case.problem, self.case.chip)
            self.excluded.update(by_rule)
        else:
            fits = allowed(self.case, least, BLOCK_RULES)
        if not fits.all():
            pool = pool.take(np.flatnonzero(fits))
        if len(pool.blocks) == 0:
            return
        stays, bound = self._bounded(pool, min(limit, self.limit - 1))
        ranked = self._open(bound, 1)
        if not self.cycles:
            head = _first_of_each(stays.a.block[stays.rows_a[ranked]], FIRST_WAYS)
            self._cost(stays.tilings(ranked[head]))
            ranked = np.delete(ranked, head)
        while len(ranked):
            part, ranked = ranked[:ROWS_AT_ONCE], ranked[ROWS_AT_ONCE:]
            part = part[self._open(bound.take(part), 1)]
            if len(part):
                self._cost(stays.tilings(part))

    def _bounded(self, pool: _Pool, limit: float) -> tuple[_Stays, Bound]:
        """Return the complete tilings of base blocks that L1 holds, and their bounds.

        Without ways that take longer than `limit` whatever the other operand's.
        """
        case, blocks, bounds = self.case, pool.blocks, pool.bounds
        a, b = (ways(case, blocks, operand, self.wanted) for operand in "ab")
        cuts = [Cut.of(case, a), Cut.of(case, b)]
        self.stays_left -= 2 * (len(a.block) + len(b.block))
        if limit < np.inf:
            (a, b), cuts = self._promising(pool, (a, b), cuts, limit)
        rows_a, rows_b = joined(case, blocks, a, b)
        block = a.block[rows_a]
        both = stay_bounds(
            case, bounds.take(block), blocks.take(block), cuts[0].take(rows_a), cuts[1].take(rows_b)
        )
        turns = np.flatnonzero(((bounds.m_tiles > 1) & (bounds.n_tiles > 1))[block])
        if "iterateOrder" in self.wanted.fields:
            turns = np.arange(len(block))
        rows = np.concatenate([np.arange(len(block)), turns])
        n_first = np.repeat([0, 1], [len(block), len(turns)])
        self.judged += len(rows)
        self.stays_left -= len(rows)
        stays = _Stays(blocks, a, b, rows_a[rows], rows_b[rows], n_first)
        return stays, both[0].beside(both[1].take(turns))

    def _promising(
        self, pool: _Pool, operands: tuple[Ways, Ways], cuts: list[Cut], limit: float
    ) -> tuple[tuple[Ways, Ways], list[Cut]]:
        """Return the ways that with the least of the other operand might be faster."""
        case = self.case
        least = [_least_of(cut, own.block, pool) for cut, own in zip(cuts, operands, strict=True)]
        kept_ways, kept_cuts = [], []
        for own, cut, other in zip(operands, cuts, reversed(least), strict=True):
            cycles, first, memory = (x[own.block] for x in other)
            bounds = pool.bounds.take(own.block)
            found = way_bounds(case, bounds, own.columns, cut, (cycles, first, memory))
            rows = np.flatnonzero(found.cycles <= limit)
            kept_ways.append(own.take(rows))
            kept_cuts.append(cut.take(rows))
        return (kept_ways[0], kept_ways[1]), kept_cuts

    def _cost(self, tilings: Columns) -> None:
        """Cost some complete tilings and keep those that are legal."""
        case = self.case
        tilings = derived(case, tilings)
        held = allowed(case, tilings, STAY_RULES)
        if self.wanted.fields:
            held &= self.wanted.mask(tilings)
        if not held.all():
            tilings = tilings.take(held)
        if len(tilings) == 0:
            return
        cycles = np.ceil(cost(tilings, case.problem, case.chip).total)
        self.stays_left -= 4 * len(tilings)
        self.tilings.append(tilings)
        self.cycles.append(cycles)
        self.limit = min(self.limit, float(cycles.min()))


def _least_of(cut: Cut, block: Ints, pool: _Pool) -> tuple[Floats, Floats, Floats]:
    """Return for each base block the least of an operand: MTE2, first chunk, device memory."""
    cycles, memory = cut.least()
    found = []
    for values in (cycles, cut.first, memory):
        least = np.full(len(pool.blocks), np.inf)
        np.minimum.at(least, block, values)
        found.append(least)
    return found[0], found[1], found[2]


def _mixed(pair: Ints, order: Ints, count: int) -> Ints:
    """Return `order` with the best and the best of each pair, `count` of both, at its front."""
    _, heads = np.unique(pair, return_index=True)
    front = np.union1d(np.sort(heads)[:count], np.arange(min(count, len(order))))
    return np.concatenate([order[front], np.delete(order, front)])


def _first_of_each(groups: Ints, count: int) -> Ints:
    """Return the positions of the first `count` of each group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(starts, append=len(ordered)))
    return np.sort(order[rank < count])
