"""L1 residency: the last level of the solver's candidates.

A residency of an operand is its step along its own axis, its step along K, and one or two such
steps in L1. Residencies are listed per base block, one array for all; those of A and of B are then
joined.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from cubecore.aliases import Column, Columns
from cubecore.arrays import column
from cubecore.chips import costs
from cubecore.tiling.cost.tile_counts import tile_counts
from cubecore.tiling.cost.traffic import Pass, chunks, hidden_cycles
from cubecore.tiling.model.field_limits import FieldLimits
from cubecore.tiling.rules.blocks import mdl_k_step_multiple, mdl_step_m, mdl_step_n
from cubecore.tiling.rules.checker import rule_named
from cubecore.tiling.rules.l1 import l1_capacity
from cubecore.tiling.rules.model import Measurer, RuleCase
from cubecore.tiling.rules.ub import derived_fields, ub_capacity
from cubecore.tiling.solver.candidates import Floats, Ints, TilingColumns
from cubecore.units import align_up, ceil_div

LEAST_RESIDENCY = {
    "stepM": 1,
    "stepN": 1,
    "stepKa": 1,
    "stepKb": 1,
    "depthA1": 1,
    "depthB1": 1,
    "iterateOrder": 0,
}
"""A base block that breaks a rule with one block of A and of B in L1 breaks it with more."""
RESIDENCY_FIELDS = {"a": ("stepM", "stepKa", "depthA1"), "b": ("stepN", "stepKb", "depthB1")}
MOST_STEPS = 4096
"""Steps of an operand that are looked at."""
RESIDENCY_RULES = (l1_capacity, mdl_step_m, mdl_step_n, mdl_k_step_multiple, ub_capacity)
"""The rules that a tiling may break and its base block does not."""
BLOCK_RULES = tuple(
    rule_named(name).measure
    for name in (
        "A-NZ-BASE",
        "B-NZ-BASE",
        "C-NZ-BASE-N",
        "BIAS-TABLE-CAPACITY",
        "FB-CAPACITY",
        "L1-CAPACITY",
        "UB-CAPACITY",
    )
)
"""The rules that base blocks of the space may break."""


def with_derived_fields(case: RuleCase) -> RuleCase:
    """Return the case with the fields of its tilings that follow from the others."""
    return replace(case, tiling=case.tiling.with_fields(**derived_fields(case)))


def keeps_rules(case: RuleCase, rules: tuple[Measurer, ...]) -> Column:
    """Return which tilings break none of some rules."""
    mask: Column = True
    for rule in rules:
        measure = rule(case)
        if measure is not None:
            mask = np.logical_and(mask, measure.holds())
    return mask


def l1_used_bytes(case: RuleCase) -> Column:
    """Return what each tiling takes of L1, as the rule counts it."""
    measure = l1_capacity(case)
    assert measure is not None
    return measure.used


@dataclass(frozen=True)
class Residencies:
    """Residencies of one operand: how much of it L1 holds beside one block of the other.

    `columns` are the operand's fields and what `_residency_columns` says of each; `block` is each
    row's base block.
    """

    operand: str
    columns: TilingColumns
    block: Ints

    def take(self, rows: Ints) -> "Residencies":
        """Return some rows."""
        return Residencies(self.operand, self.columns.take(rows), self.block[rows])


def residencies(
    case: RuleCase,
    blocks: TilingColumns,
    operand: str,
    wanted: FieldLimits,
) -> Residencies:
    """Return the residencies of an operand that fit L1 beside one block of the other."""
    # Per base block: how many tiles of the operand's axis and steps along K a core has, and how
    # many base blocks of it L1 holds at `most` beside nothing else. A residency is step * step_k of
    # them, loaded into one buffer or, where twice as much fits, into two.
    t, is_a = blocks, operand == "a"
    share, base = (t.singleCoreM, t.baseM) if is_a else (t.singleCoreN, t.baseN)
    tiles, k_steps = ceil_div(share, base), ceil_div(t.singleCoreK, t.baseK)
    most = np.maximum(np.floor(case.chip.l1_bytes / block_bytes(case, blocks, operand)), 1.0)
    names = RESIDENCY_FIELDS[operand]
    asked = wanted.of(names).fields
    every = bool(asked)
    if names[1] in asked:  # a step of more than there is, where it is asked for
        k_steps = np.maximum(k_steps, asked[names[1]].low)
    block, step, step_k = _steps(case, tiles, k_steps, most, every=every)
    size, room = step * step_k, most[block]
    again = 2 * size <= room
    # Two buffers of what is loaded once only take room; they are listed only where the request asks
    # for a field, as it may ask for just that.
    if not every:
        again &= (step < tiles[block]) | (step_k < k_steps[block])
        if case.problem.template != "MDL":  # two blocks are two buffers
            again &= size == 1
    one, two = np.flatnonzero(size <= room), np.flatnonzero(again)
    # Rows with one buffer, then the same with two. From here on everything is a column over
    # residencies; `block` leads from a residency to its base block.
    rows = np.concatenate((one, two))
    block, depth = block[rows], np.concatenate((size[one], 2 * size[two]))
    columns = TilingColumns(dict(zip(names, (step[rows], step_k[rows], depth), strict=True)))
    measures = _residency_columns(operand, case, blocks.take(block), columns)
    measured = dict(zip(RESIDENCY_COLUMNS, [column(x, len(rows)) for x in measures], strict=True))
    columns = columns.with_fields(**measured)
    mask = measured["fits"] & (measured["used_bytes"] <= case.chip.l1_bytes)
    if every:
        mask &= wanted.of(names).mask(columns)
    held = np.flatnonzero(mask)
    return Residencies(operand, columns.take(held), block[held])


RESIDENCY_COLUMNS = (
    *("fits", "used_bytes", "cycles", "memory", "first", "transfers", "waits"),
    *("count", "along", "passes"),
)
"""Columns of a residency: whether the rules about it hold, what it takes of L1 beside the least of
the other operand, and the least that it costs: MTE2's cycles, device memory's, those of the first
chunk and its transfers, and those that are waited for because there is one buffer. `count` are the
chunks of a pass, `along` those along the operand's own axis, `passes` how many passes there are
where no chunk stays for the other axis; where one may, passes are 1 and `along` is more than 1."""


def _residency_columns(
    operand: str, case: RuleCase, blocks: Columns, steps: Columns
) -> tuple[Column, ...]:
    # The rest of the tiling is the least one (`LEAST_RESIDENCY`), so that what does not fit beside
    # one block of the other operand fits beside no residency of it.
    fields = {name: getattr(steps, name) for name in RESIDENCY_FIELDS[operand]}
    t = blocks.with_fields(**LEAST_RESIDENCY | fields)
    judged = with_derived_fields(replace(case, tiling=t))
    is_a, chip, w = operand == "a", case.chip, tile_counts(t)
    fits = keeps_rules(judged, (mdl_step_m if is_a else mdl_step_n, ub_capacity))
    # If K is cut, each tile of the other axis loads the operand anew (`passes`); if all of K is in
    # L1, a chunk may stay while the other axis runs, and one pass is the least. The rest is a lower
    # bound of the loads at these passes, none of which L2 misses.
    cut = chunks(judged, w, operand)
    step, step_k, depth = fields.values()
    walk, other = (w.a, w.b) if is_a else (w.b, w.a)
    whole = walk.k_chunks == 1
    size = (t.M if is_a else t.N) * w.k * w.k_blocks * ((case.a if is_a else case.b).bits / 8)
    memory = costs.hbm_cycles(chip, size, cut.mean.row_bytes)
    passes = np.where(whole, 1.0, other.tiles)
    reading = Pass.of(chip, cut.count, cut.mean, memory, cut.size_bytes)
    cycles, memory = reading.least(passes, 0)
    along = np.where(whole, walk.chunks, 1)
    count = passes * cut.count
    alone = depth <= (step * step_k if case.problem.template == "MDL" else 1)
    # With one buffer every load but the first waits until the chunk before it has been read.
    waits = np.where(alone, (1 - 1 / count) * (cycles + count * hidden_cycles(chip)), 0)
    first = cut.first_cycles(chip)
    loads = cycles, memory, first, cut.first.count, waits
    return fits, l1_used_bytes(judged), *loads, cut.count, along, passes


def block_bytes(case: RuleCase, t: TilingColumns, operand: str) -> Floats:
    """Return what a base block of an operand takes of L1."""
    if operand == "a":
        kind, width = case.a, align_up(t.baseM, case.row_align)
    else:
        kind, width = case.b, align_up(t.baseN, case.column_align)
    return np.asarray(kind.bytes_of(width * align_up(t.baseK, case.k_align)))


def _steps(
    case: RuleCase, tiles: Floats, k_steps: Floats, most: Floats, *, every: bool
) -> tuple[Ints, Floats, Floats]:
    """Return base block, step along the operand's axis and along K.

    All of K with each number of chunks along the axis; or a part of K, one block at a time. MDL
    asks for that, and elsewhere more of the axis would make no difference.
    """
    along_k = _Smallest(k_steps, most, every=every)
    block, step_k = along_k.row, along_k.step
    if case.problem.template != "MDL" and not every:  # parts of K are loaded block by block
        keeps_rules = (step_k == 1) | (step_k == k_steps[block])
        block, step_k = block[keeps_rules], step_k[keeps_rules]
    whole = np.flatnonzero(k_steps <= most)
    along = _Smallest(tiles[whole], np.floor(most[whole] / k_steps[whole]), every=every)
    more = along.step > 1
    whole_block = whole[along.row[more]]
    return (
        np.concatenate([block, whole_block]),
        np.concatenate([np.ones_like(step_k), along.step[more]]),
        np.concatenate([step_k, k_steps[whole_block]]),
    )


class _Smallest:
    """The smallest step for each number of chunks of each count, up to a bound; `row` is whose."""

    def __init__(self, totals: Floats, most: Floats, *, every: bool) -> None:
        if len(totals) == 0:
            self.row, self.step = np.zeros(0, dtype=np.int64), np.zeros(0)
            return
        # Rows of ragged lists without a loop: `table` holds the lists one after another, `first`
        # and `size` say where each row's begins and how long it is.
        bound = np.minimum(np.minimum(totals, most), MOST_STEPS)
        counts = totals.astype(np.int64)
        if every:
            size = bound.astype(np.int64)
            table, first = np.arange(1.0, int(size.max()) + 1), np.zeros_like(size)
        elif int(counts.max()) <= _TABLED:
            table, ends = _table()
            first, size = ends[counts - 1], ends[counts] - ends[counts - 1]
        else:
            distinct, which = np.unique(counts, return_inverse=True)
            lists = [smallest_steps(int(n)) for n in distinct]
            table = np.concatenate([np.array(steps, dtype=float) for steps in lists])
            lengths = np.array([len(steps) for steps in lists])
            first, size = (np.cumsum(lengths) - lengths)[which], lengths[which]
        self.row = np.repeat(np.arange(len(counts)), size)
        # np.arange counts through all rows at once; minus the sizes before a row it counts within
        # the row, plus `first` it is a place in `table`.
        index = np.arange(len(self.row)) + (first - np.cumsum(size) + size)[self.row]
        step = table[index]
        keeps_rules = step <= bound[self.row]
        self.row, self.step = self.row[keeps_rules], step[keeps_rules]


_TABLED = 512


@cache
def _table() -> tuple[Floats, Ints]:
    """Return `smallest_steps` of 1, 2, ... one after the other, and where each ends."""
    count = np.arange(1, _TABLED + 1)[:, np.newaxis]
    step = np.arange(1, min(_TABLED, MOST_STEPS) + 1)
    chunks = ceil_div(count, step)
    smallest = step <= count
    smallest[:, 1:] &= chunks[:, 1:] != chunks[:, :-1]
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(smallest, axis=1))])
    return step[np.nonzero(smallest)[1]].astype(float), ends


@cache
def smallest_steps(count: int) -> tuple[int, ...]:
    """Return the smallest step for each number of chunks of `count` blocks, up to `MOST_STEPS`."""
    # From one step to the next: the smallest step that needs one chunk less. For 10 blocks 1, 2, 3,
    # 4, 5, 10 (10, 5, 4, 3, 2 and 1 chunks): at most 2 * sqrt(count) of them.
    steps = []
    step = 1
    while step <= min(count, MOST_STEPS):
        steps.append(step)
        chunks = ceil_div(count, step)
        step = ceil_div(count, chunks - 1) if chunks > 1 else count + 1
    return tuple(steps)


@dataclass(frozen=True)
class ResidencyPairs:
    """Complete tilings but for the order: rows of A's and of B's residencies of one base block."""

    a: Residencies
    b: Residencies
    rows_a: Ints
    rows_b: Ints

    def __len__(self) -> int:
        return len(self.rows_a)

    @property
    def block(self) -> Ints:
        """The base block of each."""
        return self.a.block[self.rows_a]

    def take(self, rows: Ints) -> "ResidencyPairs":
        """Return some of them."""
        return ResidencyPairs(self.a, self.b, self.rows_a[rows], self.rows_b[rows])


def joined_residencies(
    blocks: Floats, a: Residencies, b: Residencies, l1_bytes: int
) -> ResidencyPairs:
    """Return every pair of rows of `a` and `b` that have one base block and together fit L1.

    `blocks` say what one base block of A and one of B take of it.
    """
    # A join on the base block: rows of `b` are sorted by block, so that each row of `a` is repeated
    # once for each row of its block's stretch. Each `used_bytes` counts one block of the other
    # operand, hence `room` adds those blocks once.
    b_order = np.argsort(b.block, kind="stable")
    counts = np.bincount(b.block, minlength=len(blocks))
    first = np.cumsum(counts) - counts
    size = counts[a.block]
    rows_a = np.repeat(np.arange(len(a.block)), size)
    index = np.arange(len(rows_a)) - np.repeat(np.cumsum(size) - size, size)
    rows_b = b_order[first[a.block[rows_a]] + index]
    room = l1_bytes + blocks[a.block] - a.columns.used_bytes
    fits = np.flatnonzero(b.columns.used_bytes[rows_b] <= room[rows_a])
    return ResidencyPairs(a, b, rows_a[fits], rows_b[fits])
