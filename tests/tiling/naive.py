"""Every tiling of a tiny problem, written out: no bound, no order, nothing left out for its time.

Legality is `legal_mask`'s, the rules of `check`, and time the closed form's; what may be fastest is
nobody's guess: every field takes every value, within what could make a difference at all.
"""

import itertools

import numpy as np

from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.rules.checker import legal_mask
from cubecore.tiling.solver.candidates import TilingColumns

FIELDS = (
    *("usedCoreNum", "singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN", "baseK"),
    *("stepM", "stepKa", "depthA1", "stepN", "stepKb", "depthB1"),
    *("dbL0A", "dbL0B", "dbL0C", "iterateOrder"),
)
FLAGS = list(itertools.product((1, 2), (1, 2), (1, 2), (0, 1)))


def up(value, multiple):
    return -(-value // multiple) * multiple


def shares(extent, cores, *, every, cut=False):
    """Give a core's shares of an axis: all integers, or the even ones and whole fractals.

    Where they `cut` stored rows, of those for as many cores only the ones that cut them best.
    """
    if every:
        return list(range(1, extent + 1))
    even = {-(-extent // c) for c in range(1, cores + 1)}
    units = {u * -(-e // u) for e in even for u in (2, 4, 8, 16, 32)}
    found = sorted({min(share, extent) for share in even | units})
    if not cut:
        return found
    best = {}
    for share in found:
        parts = -(-extent // share)
        best[parts] = max(best.get(parts, 0), share & -share)
    return [share for share in found if share & -share == best[-(-extent // share)]]


def ways(tiles, k_steps, chunked):
    """Give (step, step along K, depth): beyond all of the axis nothing changes."""
    for step_k in range(1, k_steps + 1):
        most = tiles if chunked or step_k == k_steps else 1
        for step, buffers in itertools.product(range(1, most + 1), (1, 2)):
            yield step, step_k, buffers * step * step_k


def rows(p, soc, *, every):
    """Give every row of the fields, legal or not."""
    cores = p.core_count(soc)
    ks = shares(p.k, cores, every=False) if p.split_k else [p.k]
    ms = shares(p.m, cores, every=every, cut=p.trans_a and p.format_a == "ND")
    ns = shares(p.n, cores, every=every, cut=not p.trans_b and p.format_b == "ND")
    for m, n, k in itertools.product(ms, ns, ks):
        used = -(-p.m // m) * -(-p.n // n) * -(-p.k // k)
        if used > cores:
            continue
        bases = itertools.product(
            range(16, up(m, 32) + 1, 16), range(16, up(n, 32) + 1, 16), range(8, up(k, 64) + 1, 8)
        )
        for base_m, base_n, base_k in bases:
            m_tiles, n_tiles, k_steps = -(-m // base_m), -(-n // base_n), -(-k // base_k)
            a = np.array(list(ways(m_tiles, k_steps, p.template != "MDL")))
            b = np.array(list(ways(n_tiles, k_steps, p.template != "MDL")))
            i, j, f = (x.reshape(-1) for x in np.indices((len(a), len(b), len(FLAGS))))
            fixed = np.full((len(i), 7), (used, m, n, k, base_m, base_n, base_k))
            yield np.concatenate([fixed, a[i], b[j], np.array(FLAGS)[f]], axis=1)


def count(p, soc, *, every):
    """Return how many rows there would be, roughly, without making them."""
    cores = p.core_count(soc)
    grids = len(shares(p.m, cores, every=every)) * len(shares(p.n, cores, every=every))
    steps = sum(
        (-(-p.k // base_k) * (up(p.m, 32) // 16 + up(p.n, 32) // 16)) ** 2
        for base_k in range(16, up(p.k, 64) + 1, 16)
    )
    return grids * up(p.m, 32) * up(p.n, 32) // 256 * steps * 16


def fastest(p, soc, *, every, asked=None):
    """Return the least predicted cycles of all legal tilings, and how many of them there are.

    Of those only that are as `asked`: values by field, of which any will do.
    """
    best, legal_count = np.inf, 0
    fixed = {"M": p.m, "N": p.n, "Ka": p.k, "Kb": p.k, "isBias": int(p.bias is not None)}
    fixed |= {"mxTypePara": 0x01010101 if p.mx else 0}
    for part in batches(rows(p, soc, every=every), 1 << 16):
        fields = {name: part[:, place] for place, name in enumerate(FIELDS)}
        # More transLength than needed is legal; whether UB holds what is needed is another rule.
        columns = TilingColumns(fields | fixed | {"transLength": 2**30})
        allowed = legal_mask(columns, p, soc)[0]
        for name, values in (asked or {}).items():
            allowed = allowed & np.isin(fields[name], list(values))
        legal = columns.take(allowed)
        if len(legal):
            legal_count += len(legal)
            best = min(best, float(np.ceil(cost(legal, p, soc).total.min())))
    return best, legal_count


def batches(parts, size):
    """Give the parts joined to at least so many rows."""
    held = []
    for part in parts:
        held.append(part)
        if sum(map(len, held)) >= size:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)
