"""The tilings that rank first by the closed form, and their neighbours, ranked by the chunk walk.

The closed form chooses among millions of tilings and is some per cent off; the walk
(`tiling.cost.chunk_walk`) is closer and costs more. What the search found within `NEAR` of its best
is walked, the first base blocks in all their likely L1 residencies too.
"""

import numpy as np

from cubecore.aliases import Column
from cubecore.tiling.cost.chunk_walk import (
    COLUMNS,
    chunk_columns,
    least_cycles,
    walked_cycles,
)
from cubecore.tiling.cost.tracing import TraceCache, TracedFunction, column
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
    keeps_rules,
    with_derived_fields,
)
from cubecore.units import ceil_div

NEAR = 1.08
"""Times the closed form's best: what is above it is not walked."""
MOST_WALKED = 160
"""Tilings of the search that are walked."""
FEWEST_WALKED = 4
"""Times the tilings asked for: so many are, however far behind they are."""
MOST_VARIED = 20
"""Base blocks of which other residencies are walked as well."""
FIRST_CHUNKS, SKETCHED_CHUNKS, ALL_CHUNKS = 28, 8, 48
"""Chunks that are walked of each tiling before its residencies are varied, of all variants, and of
those that such a short walk leaves near."""
SKETCHED_NEAR = 1.02
"""Times the limit: a variant whose short walk is above it is not walked further."""
MARGIN = 1.01
"""Times the walked cycles of the last tiling asked for: what must be above it is not walked."""
MOST_REBASED = 8
"""Base blocks of C that are walked with other values of baseK."""
_BASE_FACTORS = (0.5, 0.67, 0.75, 1.25, 1.34, 1.5, 2)
CHOSEN = (*GROUP_FIELDS, "baseK", "stepKa", "stepKb", "depthA1", "depthB1", "iterateOrder")
_FACTORS, _CHUNKS = (0.5, 0.75, 1, 1.33), (1, 2)
"""Steps along K that are looked at: these times a tiling's own, rounded away from it, and all of K
in so many chunks."""


def refined(
    case: RuleCase, result: SearchResult, count: int, wanted: FieldLimits, traces: TraceCache
) -> TilingColumns:
    """Return the best tiling of each core split and base block, at most `count`, best first.

    The closed form's best comes behind them, should the walk be wrong.
    """
    order = np.argsort(result.cycles, kind="stable")
    near = np.count_nonzero(result.cycles <= NEAR * result.cycles[order[0]])
    most = max(min(near, MOST_WALKED), FEWEST_WALKED * count)
    shortlist = _plain(result.tilings.take(order[:most]))
    values = _measured(case, shortlist, traces)
    cycles = walked_cycles(case, values, FIRST_CHUNKS)
    rows = _best_of_each(shortlist, cycles, max(MOST_VARIED, count))
    first = shortlist.take(rows)
    limit = MARGIN * cycles[rows[:count][-1]]
    others = _other_base_k(case, first.take(np.arange(min(MOST_REBASED, len(first)))), wanted)
    varied = _varied(concatenate([first, others]))
    if wanted.fields:
        varied = varied.take(np.flatnonzero(wanted.mask(varied)))
    every = concatenate([first, varied])
    legal = column(_LEGAL(traces, case, every)[0], len(every))
    every = _plain(every.take(np.flatnonzero(legal)))
    values = _measured(case, every, traces)
    likely = least_cycles(case, values) <= limit
    firsts = int(np.count_nonzero(legal[: len(first)]))
    likely[:firsts] = True
    kept = np.flatnonzero(likely)
    every, values = every.take(kept), {n: x[kept] for n, x in values.items()}
    near = walked_cycles(case, values, SKETCHED_CHUNKS) <= SKETCHED_NEAR * limit
    kept = np.flatnonzero(near | (kept < firsts))
    every, values = every.take(kept), {n: x[kept] for n, x in values.items()}
    cycles = walked_cycles(case, values, ALL_CHUNKS)
    best = every.take(_filled(every, cycles, _best_of_each(every, cycles, count), count))
    closed = shortlist.take(np.arange(1))
    is_closed = np.logical_and.reduce([getattr(best, n) == getattr(closed, n) for n in CHOSEN])
    return best if is_closed.any() else _plain(concatenate([best, closed]))


def _plain(tilings: TilingColumns) -> TilingColumns:
    """Return the tilings with every column written out."""
    count = len(tilings)
    return TilingColumns({n: column(x, count) for n, x in tilings.fields.items()})


def _legal(case: RuleCase, tilings: TilingColumns) -> tuple[Column]:
    judged = with_derived_fields(RuleCase(tilings, case.problem, case.chip))
    return (keeps_rules(judged, (*RESIDENCY_RULES, *BLOCK_RULES)),)


def _columns(case: RuleCase, tilings: TilingColumns) -> tuple[Column, ...]:
    return chunk_columns(with_derived_fields(RuleCase(tilings, case.problem, case.chip)))


_LEGAL, _COLUMNS = TracedFunction(_legal), TracedFunction(_columns)


def _measured(case: RuleCase, tilings: TilingColumns, traces: TraceCache) -> dict[str, Floats]:
    """Return what walks need of tilings."""
    count = len(tilings)
    measured = (column(x, count) for x in _COLUMNS(traces, case, tilings))
    return dict(zip(COLUMNS, measured, strict=True))


def _best_of_each(tilings: TilingColumns, cycles: Floats, count: int) -> Ints:
    """Return the rows of the best of each core split and base block, best first."""
    order = np.argsort(cycles, kind="stable")
    order = order[np.isfinite(cycles[order])]
    keys = zip(*(getattr(tilings, n)[order].tolist() for n in GROUP_FIELDS), strict=True)
    first: dict[tuple[float, ...], int] = {}
    for key, row in zip(keys, order.tolist(), strict=True):
        first.setdefault(key, row)
        if len(first) == count:
            break
    return np.array(list(first.values()), dtype=np.int64)


def _filled(tilings: TilingColumns, cycles: Floats, rows: Ints, count: int) -> Ints:
    """Return `count` rows: these, and the next best of any base block where they are fewer."""
    if len(rows) >= count:
        return rows
    order = np.argsort(cycles, kind="stable")
    order = order[np.isfinite(cycles[order])]
    keys = zip(*(getattr(tilings, n)[order].tolist() for n in CHOSEN), strict=True)
    first: dict[tuple[float, ...], int] = {}
    for key, row in zip(keys, order.tolist(), strict=True):
        first.setdefault(key, row)
    others = [row for row in first.values() if row not in set(rows.tolist())]
    return np.append(rows, np.array(others[: count - len(rows)], dtype=np.int64))


def _other_base_k(case: RuleCase, tilings: TilingColumns, wanted: FieldLimits) -> TilingColumns:
    """Return the tilings with other values of baseK, the steps in L1 about as long."""
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


def _varied(tilings: TilingColumns) -> TilingColumns:
    """Return the tilings with other steps along K, in one and two buffers."""
    t = tilings
    k_steps = ceil_div(t.singleCoreK, t.baseK)
    steps = {
        name: [
            np.clip((np.floor if x < 1 else np.ceil)(x * getattr(t, name)), 1, k_steps)
            for x in _FACTORS
        ]
        + [ceil_div(k_steps, chunks) for chunks in _CHUNKS]
        for name in ("stepKa", "stepKb")
    }
    shape = (len(_FACTORS) + len(_CHUNKS),) * 2 + (2, 2, len(t))
    ka = np.array(steps["stepKa"])[:, None, None, None]
    kb = np.array(steps["stepKb"])[None, :, None, None]
    a, b = np.array([1.0, 2.0])[:, None, None], np.array([1.0, 2.0])[:, None]
    row = np.arange(len(t))
    numbers = ((row * 4096 + ka) * 4096 + kb) * 4 + 2 * a + b
    _, first = np.unique(numbers.reshape(-1), return_index=True)
    first.sort()
    fields = {"stepKa": ka, "stepKb": kb}
    fields |= {"depthA1": t.stepM * ka * a, "depthB1": t.stepN * kb * b}
    chosen = {n: np.broadcast_to(x, shape).reshape(-1)[first] for n, x in fields.items()}
    return t.take(first % len(t)).with_fields(**chosen)
