"""The last level of the solver's candidates: what of each operand stays in L1.

A way of an operand is its step along its own axis, its step along K, and one or two such steps in
L1. Ways are listed per base block, one array for all; those of A and of B are then joined.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.candidates import Columns, Floats, Ints
from cubecore.tiling.rule_model import Case, Measurer
from cubecore.tiling.rules import rule_named
from cubecore.tiling.rules_blocks import mdl_k_step_multiple, mdl_step_m, mdl_step_n
from cubecore.tiling.rules_l1 import l1_capacity
from cubecore.tiling.rules_ub import derived_fields, ub_capacity
from cubecore.tiling.wanted import Wanted
from cubecore.units import align_up, ceil_div

LEAST_STAY = {
    "stepM": 1,
    "stepN": 1,
    "stepKa": 1,
    "stepKb": 1,
    "depthA1": 1,
    "depthB1": 1,
    "iterateOrder": 0,
}
"""A base block that breaks a rule with one block of A and of B in L1 breaks it with more."""
STAY_FIELDS = {"a": ("stepM", "stepKa", "depthA1"), "b": ("stepN", "stepKb", "depthB1")}
MOST_STEPS = 4096
"""Steps of an operand that are looked at."""
STAY_RULES = (l1_capacity, mdl_step_m, mdl_step_n, mdl_k_step_multiple, ub_capacity)
"""What a tiling may break that its base block does not."""
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
"""What base blocks of the space may break."""


def derived(case: Case, columns: Columns) -> Columns:
    """Return `columns` with the fields that follow from the others."""
    return columns.with_fields(**derived_fields(Case(columns, case.problem, case.chip)))


def allowed(case: Case, columns: Columns, rules: tuple[Measurer, ...]) -> NDArray[np.bool_]:
    """Return which rows break none of some rules."""
    mask = np.ones(len(columns), dtype=bool)
    judged = Case(columns, case.problem, case.chip)
    for rule in rules:
        measure = rule(judged)
        if measure is not None:
            mask &= measure.holds()
    return mask


@dataclass(frozen=True)
class Ways:
    """Ways of one operand: complete tilings with the least of the other, and their base block.

    `columns` are the base blocks' fields row by row; `block` is each row's base block, and
    `used_bytes` what it takes of L1 beside the least of the other.
    """

    columns: Columns
    block: Ints
    operand: str
    used_bytes: Floats

    def take(self, rows: Ints) -> "Ways":
        """Return some ways."""
        used = self.used_bytes[rows]
        return Ways(self.columns.take(rows), self.block[rows], self.operand, used)

    def of(self, rows: Ints) -> dict[str, Any]:
        """Return the operand's own fields of some rows."""
        return {name: getattr(self.columns, name)[rows] for name in STAY_FIELDS[self.operand]}


def ways(case: Case, blocks: Columns, operand: str, wanted: Wanted) -> Ways:
    """Return the ways of an operand that L1 holds beside one block of the other."""
    t, is_a = blocks, operand == "a"
    share, base = (t.singleCoreM, t.baseM) if is_a else (t.singleCoreN, t.baseN)
    tiles, k_steps = ceil_div(share, base), ceil_div(t.singleCoreK, t.baseK)
    most = _most_blocks(case, blocks, operand)
    names = STAY_FIELDS[operand]
    every = bool(wanted.of(names).fields)
    block, step, step_k = _steps(case, tiles, k_steps, most, every=every)
    buffers = np.repeat([1.0, 2.0], len(block))
    block, step, step_k = np.tile(block, 2), np.tile(step, 2), np.tile(step_k, 2)
    depth = step * step_k * buffers
    filled_once = (step >= tiles[block]) & (step_k >= k_steps[block])
    of_use = (buffers == 1) | ~filled_once
    if case.problem.template != "MDL":  # two blocks are two buffers
        of_use &= (buffers == 1) | (step * step_k == 1)
    if every:
        of_use[:] = True
    rows = np.flatnonzero((depth <= most[block]) & of_use)
    block = block[rows]
    fields = LEAST_STAY | dict(zip(names, (x[rows] for x in (step, step_k, depth)), strict=True))
    columns = blocks.take(block).with_fields(**fields)
    columns = derived(case, columns)
    rule = mdl_step_m if is_a else mdl_step_n
    mask = allowed(case, columns, (rule, ub_capacity) if every else (ub_capacity,))
    used = used_bytes(case, columns)
    mask &= used <= case.chip.l1_bytes
    held = np.flatnonzero(mask & wanted.of(names).mask(columns) if every else mask)
    return Ways(columns.take(held), block[held], operand, used[held])


def used_bytes(case: Case, columns: Columns) -> Floats:
    """Return what each row takes of L1, as the rule counts it."""
    measure = l1_capacity(Case(columns, case.problem, case.chip))
    assert measure is not None
    used: Floats = measure.used
    return used


def _most_blocks(case: Case, t: Columns, operand: str) -> Floats:
    """Return how many base blocks of an operand L1 could hold."""
    if operand == "a":
        kind, own = case.a, align_up(t.baseM, case.row_align)
    else:
        kind, own = case.b, align_up(t.baseN, case.column_align)
    size = kind.bytes_of(own * align_up(t.baseK, case.k_align))
    return np.asarray(np.maximum(np.floor(case.chip.l1_bytes / size), 1.0))


def _steps(
    case: Case, tiles: Floats, k_steps: Floats, most: Floats, *, every: bool
) -> tuple[Ints, Floats, Floats]:
    """Return base block, step along the operand's axis and along K.

    All of K with each number of chunks along the axis; or a part of K, one block at a time. MDL
    asks for that, and elsewhere more of the axis would make no difference.
    """
    along_k = _Smallest(k_steps, most, every=every)
    block, step_k = along_k.row, along_k.step
    if case.problem.template != "MDL" and not every:  # parts of K are loaded block by block
        kept = (step_k == 1) | (step_k == k_steps[block])
        block, step_k = block[kept], step_k[kept]
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
        place = np.arange(len(self.row)) + (first - np.cumsum(size) + size)[self.row]
        step = table[place]
        kept = step <= bound[self.row]
        self.row, self.step = self.row[kept], step[kept]


_TABLED = 512


@cache
def _table() -> tuple[Floats, Ints]:
    """Return `smallest_steps` of 1, 2, ... one after the other, and where each ends."""
    lists = [smallest_steps(count) for count in range(1, _TABLED + 1)]
    ends = np.cumsum([0, *(len(steps) for steps in lists)])
    return np.concatenate([np.array(steps, dtype=float) for steps in lists]), ends


@cache
def smallest_steps(count: int) -> tuple[int, ...]:
    """Return the smallest step for each number of chunks of `count` blocks, up to `MOST_STEPS`."""
    found = []
    step = 1
    while step <= min(count, MOST_STEPS):
        found.append(step)
        chunks = ceil_div(count, step)
        step = ceil_div(count, chunks - 1) if chunks > 1 else count + 1
    return tuple(found)


def joined(case: Case, blocks: Columns, a: Ways, b: Ways) -> tuple[Ints, Ints]:
    """Return every pair of rows of `a` and `b` that have one base block and together fit L1."""
    most = int(max(a.block.max(initial=-1), b.block.max(initial=-1))) + 1
    b_order = np.argsort(b.block, kind="stable")
    counts = np.bincount(b.block, minlength=most)
    first = np.cumsum(counts) - counts
    size = counts[a.block]
    rows_a = np.repeat(np.arange(len(a.block)), size)
    place = np.arange(len(rows_a)) - np.repeat(np.cumsum(size) - size, size)
    rows_b = b_order[first[a.block[rows_a]] + place]
    least = used_bytes(case, derived(case, blocks.with_fields(**LEAST_STAY)))
    room = case.chip.l1_bytes + least[a.block] - a.used_bytes
    fits = np.flatnonzero(b.used_bytes[rows_b] <= room[rows_a])
    return rows_a[fits], rows_b[fits]
