"""The tilings that rank first by the closed form, and their neighbours, ranked by the chunk walk.

The closed form chooses among millions of tilings and is some per cent off; the walk
(`tiling.cost.chunk_walk`) is closer and costs more. What the search found within `NEAR` of its best
is walked, the first base blocks in all their likely L1 residencies too.
"""

from typing import NamedTuple

import numpy as np

from cubecore.aliases import Column
from cubecore.arrays import column
from cubecore.tiling.cost.chunk_columns import COLUMNS, chunk_columns, least_cycles
from cubecore.tiling.cost.chunk_walk import walked_cycles
from cubecore.tiling.model.field_limits import FieldLimits
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.branch_and_bound import GROUP_FIELDS, SearchResult
from cubecore.tiling.solver.candidates import (
    Floats,
    Ints,
    TilingColumns,
    base_k_limits,
    base_k_sizes,
    concatenate,
)
from cubecore.tiling.solver.l1_residency import (
    BLOCK_RULES,
    RESIDENCY_RULES,
    block_bytes,
    keeps_rules,
    with_derived_fields,
)
from cubecore.units import FRACTAL_ROWS, ceil_div

NEAR = 1.08
"""Times the closed form's best: what is above it is not walked."""
MOST_WALKED = 160
"""Tilings of the search that are walked."""
FEWEST_WALKED = 4
"""Times the tilings asked for: so many are, however far behind they are."""
MOST_VARIED = 20
"""Base blocks of which other residencies are walked as well."""
FIRST_CHUNKS, SKETCHED_CHUNKS, ALL_CHUNKS = 28, 8, 96
"""Chunks that are walked of each tiling before its residencies are varied, of all variants, and of
those that such a short walk leaves near."""
MOST_FOLLOWED, FOLLOWED_CHUNKS = 20, 256
"""The best of each base block, so many, are walked further where that ends within two of several
rows of tiles, and how many chunks at most."""
VARIANTS = 1
"""Other residencies of each tiling that is answered, the next best of its base block: with two of
them 300 random matmuls were 0.015 % faster, one by 0.7 %, and plans took 4 % longer."""
SKETCHED_NEAR = 1.02
"""Times the limit: a variant whose short walk is above it is not walked further."""
MARGIN = 1.01
"""Times the walked cycles of the last tiling asked for: what must be above it is not walked."""
CLASS_NEAR = 1.02
"""Times the best walk: the best of a class that is above it does not come along."""
MOST_REBASED = 8
"""Base blocks of C that are walked with other values of baseK."""
_BASE_FACTORS = (0.5, 0.67, 0.75, 1.25, 1.34, 1.5, 2)
CHOSEN = (*GROUP_FIELDS, "baseK", "stepKa", "stepKb", "depthA1", "depthB1", "iterateOrder")
_FACTORS, _CHUNKS = (0.5, 0.75, 1, 1.33), (1, 2)
"""Steps along K that are looked at: these times a tiling's own, rounded away from it, and all of K
in so many chunks."""


class Shortlist(NamedTuple):
    """The tilings that rank first, best first: `number` of them, and variants of these."""

    tilings: TilingColumns
    number: int


def refined(
    case: RuleCase,
    result: SearchResult,
    count: int,
    wanted: FieldLimits,
    classes: int = 0,
) -> Shortlist:
    """Return the best tiling of each base block and number of tiles: `count` of them at most.

    So many more of each class of base blocks (`_classes`) come along, where they are near.
    Behind the first, the last of them is the closed form's best, should the walk be wrong. Variants
    are other residencies of the same shares and base blocks, the next best, and the closed form's
    best where it is one.
    """
    mix = case.problem.launch == "mix"
    order = np.argsort(result.cycles, kind="stable")
    # The closed form is some per cent off, so that the best by the walk is among what it has near
    # its best.
    near = np.count_nonzero(result.cycles <= NEAR * result.cycles[order[0]])
    most = max(min(near, MOST_WALKED), FEWEST_WALKED * count)
    first_rows = order[:most]
    if classes:
        of = _classes(result.tilings)
        first_rows = np.append(first_rows, _of_each(of, order, 2 * classes, first_rows))
    shortlist = _plain(result.tilings.take(first_rows))
    values = measured(case, shortlist)
    cycles = walked_cycles(case, values, FIRST_CHUNKS)
    # A short walk of all, then other residencies of the best base blocks, then a long walk of what
    # is left.
    rows = _best_of_each(shortlist, cycles, max(MOST_VARIED, count), mix=mix)
    rows = _filled(shortlist, cycles, rows, count + 1)
    limit = MARGIN * cycles[rows[:count][-1]]
    if classes:
        others = _near_classes(shortlist, cycles, rows, classes)
        rows = np.append(rows, others)
    # Row 0, the closed form's best, goes along whatever its walk says.
    first = shortlist.take(rows if 0 in rows else np.append(rows, 0))
    every, values = _variants(case, first, limit, wanted)
    cycles = walked_cycles(case, values, ALL_CHUNKS)
    rows = _best_of_each(every, cycles, max(MOST_FOLLOWED, count), mix=mix)
    rows = _filled(every, cycles, _followed(case, values, rows), count)
    rows = rows[:count]
    if classes:
        others = _near_classes(every, cycles, rows, classes)
        rows, count = np.append(rows, others), count + len(others)
    best, closed = every.take(rows), shortlist.take(np.arange(1))
    variants = every.take(_next_best(every, cycles, rows))
    if _among(closed, best, CHOSEN):
        return Shortlist(concatenate([best, variants]), len(best))
    if _among(closed, best, GROUP_FIELDS):
        return Shortlist(concatenate([best, variants, closed]), len(best))
    best = every.take(rows[: max(count - 1, 1)])
    return Shortlist(concatenate([best, closed, variants]), len(best) + 1)


def _classes(t: TilingColumns) -> Ints:
    """Return the class of each tiling: upright, near square or flat base blocks, and how they fit.

    In one or two buffers of L0C; trimmed to the share, or whole with a shorter last one.
    """
    # A mixed-radix number: shape (0, 1, 2), then one bit for two buffers of L0C, then one bit an
    # axis for base blocks no longer than an even cut of the share needs.
    shape = np.where(t.baseM >= 2 * t.baseN, 0, np.where(t.baseN >= 2 * t.baseM, 2, 1))
    of = 2 * shape + (t.dbL0C == 2)
    for share, base in ((t.singleCoreM, t.baseM), (t.singleCoreN, t.baseN)):
        even = ceil_div(share, ceil_div(share, base))
        of = 2 * of + (base < even + FRACTAL_ROWS)
    return np.asarray(of, dtype=np.int64)


def _of_each(of: Ints, order: Ints, count: int, taken: Ints) -> Ints:
    """Return the first `count` rows of each class in an order, those not taken already."""
    held = set(taken.tolist())
    seen: dict[int, int] = {}
    rows = []
    for row, name in zip(order.tolist(), of[order].tolist(), strict=True):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= count and row not in held:
            rows.append(row)
    return np.array(rows, dtype=np.int64)


def _near_classes(tilings: TilingColumns, cycles: Floats, rows: Ints, count: int) -> Ints:
    """Return the best of each class whose walk is near the best one, those not taken already."""
    order = np.array(_best_first(cycles), dtype=np.int64)
    order = order[cycles[order] <= CLASS_NEAR * cycles[order[0]]]
    return _of_each(_classes(tilings), order, count, rows)


def _variants(
    case: RuleCase, first: TilingColumns, limit: float, wanted: FieldLimits
) -> tuple[TilingColumns, dict[str, Floats]]:
    """Return tilings and their legal variants that may take at most `limit` cycles, measured."""
    others = _other_base_k(case, first.take(np.arange(min(MOST_REBASED, len(first)))), wanted)
    varied = _varied(case, concatenate([first, others]))
    if wanted.fields:
        varied = varied.take(np.flatnonzero(wanted.mask(varied)))
    every = concatenate([first, varied])
    legal = column(_legal(case, every), len(every))
    every = _plain(every.take(np.flatnonzero(legal)))
    values = measured(case, every)
    # Busiest pipes bound a walk from below at a tenth of its cost.
    likely = least_cycles(case, values) <= limit
    firsts = int(np.count_nonzero(legal[: len(first)]))
    likely[:firsts] = True
    kept = np.flatnonzero(likely)
    every, values = every.take(kept), {n: x[kept] for n, x in values.items()}
    near = walked_cycles(case, values, SKETCHED_CHUNKS) <= SKETCHED_NEAR * limit
    kept = np.flatnonzero(near | (kept < firsts))
    return every.take(kept), {n: x[kept] for n, x in values.items()}


def _followed(case: RuleCase, values: dict[str, Floats], rows: Ints) -> Ints:
    """Return some rows in the order of longer walks, if shorter ones end within two rows of tiles.

    The first row of several brings what the others find in L2.
    """
    v = {n: x[rows] for n, x in values.items()}
    row_of_tiles = v["inner_tiles"] * v["parts"]
    several = v["tiles"] > v["inner_tiles"]
    if not np.any(several & (2 * row_of_tiles > ALL_CHUNKS)):
        return rows
    followed = walked_cycles(case, v, FOLLOWED_CHUNKS)
    return rows[np.argsort(followed, kind="stable")]


def _among(one: TilingColumns, others: TilingColumns, names: tuple[str, ...]) -> bool:
    """Return whether fields of a tiling are those of one of some others."""
    equal = [getattr(others, n) == getattr(one, n) for n in names]
    return bool(np.logical_and.reduce(equal).any())


def _keys(tilings: TilingColumns, names: tuple[str, ...]) -> list[tuple[float, ...]]:
    """Return fields of each tiling, by which it is told from others."""
    return list(zip(*(getattr(tilings, n).tolist() for n in names), strict=True))


def _best_first(cycles: Floats) -> list[int]:
    """Return the rows whose cycles are known, the fewest first."""
    # Infinite cycles are illegal tilings: they are never chosen, however few the others are.
    order = np.argsort(cycles, kind="stable")
    rows: list[int] = order[np.isfinite(cycles[order])].tolist()
    return rows


def _plain(tilings: TilingColumns) -> TilingColumns:
    """Return the tilings with every column written out."""
    count = len(tilings)
    return TilingColumns({n: column(x, count) for n, x in tilings.fields.items()})


def _legal(case: RuleCase, tilings: TilingColumns) -> Column:
    judged = with_derived_fields(RuleCase(tilings, case.problem, case.chip))
    return keeps_rules(judged, (*RESIDENCY_RULES, *BLOCK_RULES))


def _columns(case: RuleCase, tilings: TilingColumns) -> tuple[Column, ...]:
    return chunk_columns(with_derived_fields(RuleCase(tilings, case.problem, case.chip)))


def measured(case: RuleCase, tilings: TilingColumns) -> dict[str, Floats]:
    """Return what walks need of tilings."""
    count = len(tilings)
    values = (column(x, count) for x in _columns(case, tilings))
    return dict(zip(COLUMNS, values, strict=True))


def _best_of_each(tilings: TilingColumns, cycles: Floats, count: int, *, mix: bool) -> Ints:
    """Return the rows of the best of each base block and number of tiles of a core, best first.

    Shares that differ in their last tile alone are one; of a `mix` launch they give AI Cores other
    numbers of clients, or shorter second ones.
    """
    t = tilings
    tiles = ceil_div(t.singleCoreM, t.baseM), ceil_div(t.singleCoreN, t.baseN)
    of_clients = (t.usedCoreNum, t.singleCoreM) if mix else ()
    told_apart = (*tiles, t.baseM, t.baseN, t.singleCoreK, *of_clients)
    keys = list(zip(*(x.tolist() for x in told_apart), strict=True))
    first: dict[tuple[float, ...], int] = {}
    for row in _best_first(cycles):
        first.setdefault(keys[row], row)
        if len(first) == count:
            break
    return np.array(list(first.values()), dtype=np.int64)


def _next_best(tilings: TilingColumns, cycles: Floats, rows: Ints) -> Ints:
    """Return `VARIANTS` more rows for each of some, of its core split and base block."""
    groups, chosen = _keys(tilings, GROUP_FIELDS), _keys(tilings, CHOSEN)
    taken = {chosen[row] for row in rows.tolist()}
    left = dict.fromkeys((groups[row] for row in rows.tolist()), VARIANTS)
    more = []
    for row in _best_first(cycles):
        if left.get(groups[row]) and chosen[row] not in taken:
            left[groups[row]] -= 1
            taken.add(chosen[row])
            more.append(row)
    return np.array(more, dtype=np.int64)


def _filled(tilings: TilingColumns, cycles: Floats, rows: Ints, count: int) -> Ints:
    """Return these rows, up to `count` with the next best where they are fewer.

    Those of other core splits and base blocks come first.
    """
    filled = rows.tolist()
    for names in (GROUP_FIELDS, CHOSEN):
        if len(filled) >= count:
            break
        keys = _keys(tilings, names)
        taken = {keys[row] for row in filled}
        for row in _best_first(cycles):
            if keys[row] not in taken:
                taken.add(keys[row])
                filled.append(row)
    return np.array(filled, dtype=np.int64)


def _other_base_k(case: RuleCase, tilings: TilingColumns, wanted: FieldLimits) -> TilingColumns:
    """Return the tilings with other values of baseK, the steps in L1 about as long."""
    # baseK changes by the factors, to the next useful size; steps along K keep their length in
    # elements, so that L1 holds about as much as before.
    t, rows, sizes = tilings, [], []
    for k in sorted(set(t.singleCoreK.tolist())):
        useful = base_k_sizes(case, int(k), wanted).astype(float)
        with_k = np.flatnonzero(t.singleCoreK == k)
        for factor in _BASE_FACTORS:
            near = np.searchsorted(useful, factor * t.baseK[with_k])
            rows.append(with_k)
            sizes.append(useful[np.minimum(near, len(useful) - 1)])
    row, base_k = np.concatenate(rows), np.concatenate(sizes)
    one, two = base_k_limits(case, t)
    fits = np.flatnonzero((base_k <= one[row]) & (base_k != t.baseK[row]))
    row, base_k = row[fits], base_k[fits]
    taken = t.take(row)
    buffers = np.where(base_k <= two[row], 2.0, 1.0)
    steps = {n: np.ceil(getattr(taken, n) * taken.baseK / base_k) for n in ("stepKa", "stepKb")}
    return taken.with_fields(baseK=base_k, dbL0A=buffers, dbL0B=buffers, **steps)


def _varied(case: RuleCase, tilings: TilingColumns) -> TilingColumns:
    """Return the tilings with other steps along K, in one and two buffers.

    Beside each step of one operand stand the same and the longest of the other that L1 has room
    for, and the longest that both may have. A chunk never begins within one of the other operand:
    in one buffer it would wait for the next one of that, and a walk, which has them begin together,
    would be up to 6 % too short.
    """
    t = tilings
    k_steps = ceil_div(t.singleCoreK, t.baseK)
    ka, kb = (
        np.array(
            [
                np.clip((np.floor if x < 1 else np.ceil)(x * getattr(t, name)), 1, k_steps)
                for x in _FACTORS
            ]
            + [ceil_div(k_steps, chunks) for chunks in _CHUNKS]
        )
        for name in ("stepKa", "stepKb")
    )
    one_two = np.array([1.0, 2.0])
    a, b = one_two[:, None, None], one_two[:, None]
    of_a, of_b = (block_bytes(case, t, x) * step for x, step in (("a", t.stepM), ("b", t.stepN)))
    ka, kb = ka[:, None, None], kb[:, None, None]
    room = case.chip.l1_bytes

    def longest(each: Floats, taken: Floats) -> Floats:
        """Return the longest even steps of an operand in what the other one leaves of L1."""
        step = np.clip(np.floor((room - taken) / each), 1, k_steps)
        return np.asarray(ceil_div(k_steps, ceil_div(k_steps, step)))

    # Axes [ka, kb, buffers of A, of B, tiling]: broadcasting makes all combinations at once. Each
    # way fixes the steps of one operand and takes the longest of the other, or the same for both.
    ways = [
        np.broadcast_arrays(ka[:, None], kb, a, b),
        np.broadcast_arrays(longest(of_a * a, of_b * kb * b), kb, a, b),
        np.broadcast_arrays(ka, longest(of_b * b, of_a * ka * a), a, b),
        np.broadcast_arrays(*[longest(of_a * a + of_b * b, np.zeros(len(t)))] * 2, a, b),
        np.broadcast_arrays(ka, ka, a, b),
        np.broadcast_arrays(kb, kb, a, b),
    ]
    count = len(t)
    ka, kb, a, b = (
        np.concatenate([way[i].reshape(-1, count) for way in ways]).reshape(-1) for i in range(4)
    )
    row = np.tile(np.arange(count), len(ka) // count)
    # See the docstring: a chunk must not begin within one of the other operand, unless that is all
    # of K.
    uneven = np.maximum(ka, kb) % np.minimum(ka, kb) != 0
    uneven &= np.maximum(ka, kb) < k_steps[row]
    row, ka, kb, a, b = (x[~uneven] for x in (row, ka, kb, a, b))
    # One integer a variant, to drop those that several ways have made; sorting the first indices
    # restores their order.
    numbers = ((row * 4096 + ka) * 4096 + kb) * 4 + 2 * a + b
    _, first = np.unique(numbers, return_index=True)
    first.sort()
    row, ka, kb, a, b = (x[first] for x in (row, ka, kb, a, b))
    depth_a, depth_b = t.stepM[row] * ka * a, t.stepN[row] * kb * b
    return t.take(row).with_fields(stepKa=ka, stepKb=kb, depthA1=depth_a, depthB1=depth_b)
