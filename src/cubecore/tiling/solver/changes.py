"""The legal tilings that differ from one in one or two fields, the likeliest to be faster first.

What follows from a changed field changes with it: the number of cores from shares, depths from
steps, and the buffers of L0 from base blocks (two where they fit). All of them are judged and
bounded at once; the walk of chunks ranks those whose busiest pipe leaves them a chance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import column
from cubecore.tiling.cost.chunk_columns import least_cycles
from cubecore.tiling.cost.chunk_walk import walked_cycles
from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.model.field_limits import FieldLimits
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import (
    BUFFER_FIELDS,
    Floats,
    Ints,
    TilingColumns,
    base_k_limit,
    base_k_limits,
    base_k_sizes,
    core_splits,
)
from cubecore.tiling.solver.l1_residency import block_bytes, smallest_steps, with_derived_fields
from cubecore.tiling.solver.refinement import measured
from cubecore.tiling.solver.solver import legal as legal_tilings
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div, distinct

SKETCHED_CHUNKS, WALKED_CHUNKS = 8, 96
"""Chunks that are walked of all changes that a bound leaves a chance, and of those still near."""
SKETCHED_NEAR, WALKED_NEAR = 1.1, 1.015
"""Times the tiling's own walk: changes whose walk is above it are not followed."""
SHORT_SKETCHED_NEAR, SHORT_WALKED_NEAR = 1.25, 1.2
"""The same of walks that are too short."""
MOST_SKETCHED, MOST_WALKED = 1500, 400
FAR = ((256, 100), (1024, 20))
"""Chunks that are walked of changes whose walks so far are too short, and of how many at most."""
FEW_CHUNKS, FEW_NEAR = 4, 1.03
"""Up to so many chunks of a core the walk is further off, by how the scalar unit begins: changes up
to so many times the tiling's own are followed, by the walk or the closed form, whichever is less.
"""
SAME_FIELDS = 0.004
"""Times the own walk: a change is put back by it for each likelier one of the same fields."""
EVEN_K = 16
"""Every multiple of it is tried as baseK: rows begin well, and last steps differ."""
EVERY_SHARE = 256
"""Up to this size every share of whole fractals is tried."""
EVERY_STEP = 16
"""Up to so many steps along K each is tried; beyond, the least of each number of chunks."""
_BUFFERS = ("buffersA", "buffersB")
_CHOSEN = (
    *("singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN", "baseK"),
    *("stepM", "stepN", "stepKa", "stepKb", *_BUFFERS, "iterateOrder", *BUFFER_FIELDS),
)
"""The fields that a change sets; depths follow from steps and buffers."""
_AT = {name: index for index, name in enumerate(_CHOSEN)}
_BOTH_SHARES = 2
"""The number of changes of singleCoreM and singleCoreN, the first two groups of `_options`."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Legal changes of a tiling, the likeliest first: `likely` times its own cycles each.

    `rough` is how far `likely` may be off: those up to so many times the least are worth a timing.
    """

    tilings: tuple[TCubeTiling, ...]
    likely: tuple[float, ...]
    judged: int
    rough: float = 1.0


def changes(case: RuleCase, tiling: TCubeTiling, cycles: int, wanted: FieldLimits) -> Changes:
    """Return the changes of one or two fields that may be faster than the tiling's `cycles`."""
    # Rows of `_CHOSEN`, NaN where a change leaves a field. A pair of changes of different groups
    # (group < group: each pair once) takes from the second what it sets, else from the first. Row 0
    # is the tiling itself. `fields` numbers the pair of groups that a row changes.
    options, group = _options(case, tiling, wanted)
    own = np.array([_own(tiling)])
    first, second = np.nonzero(group[:, None] < group)
    values = np.where(np.isnan(options), own, options)
    pairs = np.where(np.isnan(options[second]), values[first], options[second])
    columns = _columns(case, tiling, np.concatenate([own, values, pairs]), wanted)
    of_pairs = 100 * group[first] + group[second] + 1  # of one field a multiple of 100
    fields = np.concatenate([[0], 100 * group, of_pairs])
    rows = _likely_legal(case, columns, wanted)
    kept = columns.take(rows)
    legal = np.flatnonzero(column(legal_tilings(case, kept), len(kept)))
    kept, fields = kept.take(legal), fields[rows[legal]]
    if len(kept) == 0:
        return Changes((), (), 0)
    own_row = _columns(case, tiling, own, wanted)
    surely = (fields % 100 == 0) | (fields == _BOTH_SHARES)
    rough = _rough(tiling)
    ranked = _ranked(case, own_row, kept, cycles, surely, rough)
    rows, likely = _spread(*ranked, fields)
    table = {n: np.broadcast_to(kept.take(rows).fields[n], len(rows)) for n in kept.names}
    listed = {n: np.asarray(x).astype(np.int64).tolist() for n, x in table.items()}
    same = {n: getattr(tiling, n) for n in FIELDS}
    tilings = [TCubeTiling(**same | {n: x[i] for n, x in listed.items()}) for i in range(len(rows))]
    neighbours = [(one, near) for one, near in zip(tilings, likely, strict=True) if one != tiling]
    return Changes(
        tuple(one for one, _ in neighbours), tuple(near for _, near in neighbours), len(kept), rough
    )


def _rough(t: TCubeTiling) -> float:
    """Return how far the walk of a tiling's changes may be off beside its own."""
    tiles = ceil_div(t.singleCoreM, t.baseM) * ceil_div(t.singleCoreN, t.baseN)
    chunks = tiles * ceil_div(t.singleCoreK, t.baseK * min(t.stepKa, t.stepKb))
    return FEW_NEAR if chunks <= FEW_CHUNKS else 1.0


def _own(t: TCubeTiling) -> list[float]:
    """Return what the tiling itself has of `_CHOSEN`."""
    steps = {
        "buffersA": (t.depthA1, t.stepM * t.stepKa),
        "buffersB": (t.depthB1, t.stepN * t.stepKb),
    }
    return [
        float(max(steps[n][0] // steps[n][1], 1) if n in steps else getattr(t, n)) for n in _CHOSEN
    ]


def _options(case: RuleCase, t: TCubeTiling, wanted: FieldLimits) -> tuple[Floats, Ints]:
    """Return changes as rows of `_CHOSEN`, NaN for what they leave, and which field each is of."""
    splits = core_splits(case, case.problem.core_count(case.chip), wanted)
    # One list a group: changes within a group exclude each other, those of two groups combine.
    given: list[list[dict[str, float]]] = []
    for name, base in (("singleCoreM", t.baseM), ("singleCoreN", t.baseN), ("singleCoreK", 0)):
        given.append([{name: share} for share in _shares(t, name, getattr(splits, name), base)])
    given += [_blocks(case, t, "baseM", wanted), _blocks(case, t, "baseN", wanted)]
    given.append(_base_k(case, t, wanted))
    given += [_residencies(case, t, name, wanted) for name in "ab"]
    given.append([{"iterateOrder": 1 - t.iterateOrder}])
    given.append([{"dbL0A": 2}, {"dbL0B": 2}])
    given.append([{"dbL0C": buffers} for buffers in (1, 2)])
    own = dict(zip(_CHOSEN, _own(t), strict=True))
    rows, group = [], []
    for number, options in enumerate(given):
        for whole in options:
            option = {n: x for n, x in whole.items() if not _is_fixed(n, wanted)}
            if any(own[name] != value for name, value in option.items()):
                row = [np.nan] * len(_CHOSEN)
                for name, value in option.items():
                    row[_AT[name]] = float(value)
                rows.append(row)
                group.append(number)
    return np.array(rows).reshape(-1, len(_CHOSEN)), np.array(group, dtype=np.int64)


def _is_fixed(name: str, wanted: FieldLimits) -> bool:
    """True if one value of a field is asked for."""
    return name in wanted.fields and wanted.fields[name].only is not None


def _shares(t: TCubeTiling, name: str, planned: Floats, base: int) -> list[int]:
    """Return a core's shares of an axis: the planner's, the shortest, and whole base blocks."""
    extent = t.Ka if base == 0 else int(getattr(t, name[-1]))
    shares = set(np.ravel(planned).astype(np.int64).tolist())
    if base:
        shortest = {int(ceil_div(extent, ceil_div(extent, share))) for share in shares}
        shares |= shortest | {int(align_up(share, FRACTAL_ROWS)) for share in shortest}
        shares |= {int(align_up(getattr(t, name), unit)) for unit in (FRACTAL_ROWS, base)}
        if extent <= EVERY_SHARE:
            shares |= set(range(FRACTAL_ROWS, extent, FRACTAL_ROWS))
    return sorted(share for share in shares if share <= extent)


def _blocks(
    case: RuleCase, t: TCubeTiling, name: str, wanted: FieldLimits
) -> list[dict[str, float]]:
    """Return other lengths of a base block along an axis, with as many steps or as much of L1."""
    axis, step, step_k = name[-1], f"step{name[-1]}", "stepKa" if name == "baseM" else "stepKb"
    share, own = getattr(t, f"singleCore{axis}"), getattr(t, name)
    other = t.baseN if name == "baseM" else t.baseM
    most = case.chip.l0c_bytes // (case.accumulator.size_bytes * min(other, 64))
    plain = np.arange(FRACTAL_ROWS, max(min(most, 4080), FRACTAL_ROWS) + 1, FRACTAL_ROWS)
    plain = plain[plain <= align_up(2 * share, FRACTAL_ROWS)]  # for a longer share as well
    k_steps = ceil_div(t.singleCoreK, t.baseK)
    found: list[dict[str, float]] = []
    for size in wanted.blocks(name, plain).tolist():
        steps = min(getattr(t, step), ceil_div(share, size))
        found.append({name: size, step: steps})
        if wanted.fields and steps < getattr(t, step):
            found.append({name: size})
        scaled = min(max(int(getattr(t, step_k) * own / size), 1), k_steps)
        if steps == 1 and getattr(t, step_k) not in {scaled, k_steps}:
            found.append({name: size, step: steps, step_k: scaled})
    return found


def _base_k(case: RuleCase, t: TCubeTiling, wanted: FieldLimits) -> list[dict[str, float]]:
    """Return other lengths of a base block along K, with as many steps, or steps as long."""
    found: list[dict[str, float]] = []
    sizes = base_k_sizes(case, t.singleCoreK, wanted)
    longest = min(8 * t.baseK, align_up(t.singleCoreK, case.base_k_multiple))
    even = np.arange(EVEN_K, longest + 1, EVEN_K)
    even = even[(even % case.base_k_multiple == 0)] if not _is_fixed("baseK", wanted) else even[:0]
    for size in distinct(np.append(sizes[sizes <= longest], even).astype(np.int64)).tolist():
        k_steps = ceil_div(t.singleCoreK, size)
        steps = {"stepKa": t.stepKa, "stepKb": t.stepKb}
        kept = {n: min(step, k_steps) for n, step in steps.items()}
        length = {n: ceil_div(step * t.baseK, size) for n, step in steps.items()}
        found += [{"baseK": size, **some} for some in (kept, length)]
        if wanted.fields:  # depths that are asked for go with steps that are longer than K
            found.append({"baseK": size})
    return found


def _residencies(
    case: RuleCase, t: TCubeTiling, operand: str, wanted: FieldLimits
) -> list[dict[str, float]]:
    """Return other steps in L1 of an operand, in one and two buffers."""
    axis, base, step, step_k, buffers = (
        ("M", t.baseM, "stepM", "stepKa", "buffersA")
        if operand == "a"
        else ("N", t.baseN, "stepN", "stepKb", "buffersB")
    )
    # Steps along K: all short ones, those that divide or are divided by the other operand's (chunks
    # then begin together), and the least of each number of chunks. Along the axis only where all of
    # K is in L1: else a longer step only shortens the other's.
    k_steps, tiles = (
        ceil_div(t.singleCoreK, t.baseK),
        ceil_div(getattr(t, f"singleCore{axis}"), base),
    )
    one = TilingColumns({n: np.array([float(getattr(t, n))]) for n in ("baseM", "baseN", "baseK")})
    room = int(case.chip.l1_bytes // block_bytes(case, one, operand)[0])
    other = t.stepKb if operand == "a" else t.stepKa
    near = [x for x in range(1, k_steps + 1) if x <= EVERY_STEP or not (x % other and other % x)]
    along_k = [x for x in {*smallest_steps(k_steps), *near, k_steps} if x <= room]
    depth = wanted.fields.get(f"depth{operand.upper()}1")
    if depth is not None and depth.only is not None:  # with steps that are longer than K, too
        along_k = [x for x in range(1, depth.only + 1) if depth.only % x == 0]
    found = [{step: 1, step_k: x, buffers: n} for x in along_k for n in (1, 2)]
    if k_steps <= room:
        whole = [x for x in smallest_steps(tiles) if x * k_steps <= room]
        found += [{step: x, step_k: k_steps, buffers: n} for x in whole for n in (1, 2)]
    return found


def _columns(
    case: RuleCase, tiling: TCubeTiling, values: Floats, wanted: FieldLimits
) -> TilingColumns:
    """Return rows of `_CHOSEN` as tilings, with what follows from them."""
    v = {name: values[:, index] for name, index in _AT.items()}
    p = case.problem
    grid = ((p.m, "singleCoreM"), (p.n, "singleCoreN"), (p.shared_k, "singleCoreK"))
    v["usedCoreNum"] = np.prod([ceil_div(extent, v[name]) for extent, name in grid], axis=0)
    v["depthA1"] = v["stepM"] * v["stepKa"] * v.pop("buffersA")
    v["depthB1"] = v["stepN"] * v["stepKb"] * v.pop("buffersB")
    for name in ("depthA1", "depthB1"):  # steps go with the depth that is asked for
        if _is_fixed(name, wanted):
            v[name] = np.full(len(values), float(getattr(tiling, name)))
    same = {n: getattr(tiling, n) for n in ("M", "N", "Ka", "Kb", "isBias")}
    columns = TilingColumns({**same, **v})
    changed = (v["baseM"] != tiling.baseM) | (v["baseN"] != tiling.baseN)
    roomier = case.accumulator.size_bytes * 2 * v["baseM"] * v["baseN"] <= case.chip.l0c_bytes
    other_steps = changed | (v["baseK"] != tiling.baseK)
    buffers = {}
    for name, operand in (("dbL0A", "a"), ("dbL0B", "b")):
        fits = v["baseK"] <= base_k_limit(case, columns, operand, 2)
        buffers[name] = np.where(other_steps, np.where(fits, 2.0, 1.0), v[name])
    buffers["dbL0C"] = np.where(changed, np.where(roomier, 2.0, 1.0), v["dbL0C"])
    free = {n: x for n, x in buffers.items() if not _is_fixed(n, wanted)}
    columns = columns.with_fields(**free)
    return with_derived_fields(RuleCase(columns, case.problem, case.chip)).tiling  # type: ignore[no-any-return]


def _likely_legal(case: RuleCase, t: TilingColumns, wanted: FieldLimits) -> Ints:
    """Return the rows that fit the chip's cores, L0 and L1 and are as asked: the cheap rules."""
    chip = case.chip
    one, _ = base_k_limits(case, t)
    fits = (t.usedCoreNum <= case.problem.core_count(chip)) & (t.baseK <= one)
    accumulators = case.accumulator.size_bytes * t.baseM * t.baseN
    fits &= accumulators * t.dbL0C <= chip.l0c_bytes
    held = t.depthA1 * block_bytes(case, t, "a") + t.depthB1 * block_bytes(case, t, "b")
    fits &= held <= chip.l1_bytes
    if wanted.fields:
        fits &= wanted.mask(t)
    return np.flatnonzero(fits)


def _ranked(
    case: RuleCase,
    own: TilingColumns,
    t: TilingColumns,
    cycles: int,
    surely: NDArray[np.bool_],
    rough: float,
) -> tuple[Ints, Floats]:
    """Return the rows that may be faster, the likeliest first, and how likely: times the own walk.

    `surely` changes are walked far whatever the first chunks say: of one field, as another order,
    or of both shares, whose first row of tiles says little of the others.
    Of rows with the same walk to the last bit, the same work, one is told; where the walk is
    `rough`, of those with the same chunks.
    """
    if case.problem.template != "MDL":
        return _by_closed_form(case, own, t)
    least = least_cycles(case, values := measured(case, t))
    own_values = measured(case, own)
    # The walk and its bound are some per cent off: they are held against the tiling's own walk.
    limit = max(cycles, float(walked_cycles(case, own_values, WALKED_CHUNKS)[0]))
    rows = np.flatnonzero(least <= limit)
    rows = rows[np.lexsort((least[rows], ~surely[rows]))][:MOST_SKETCHED]
    # Three walks, each of what the one before leaves near: eight chunks of all, 96, and as many as
    # it takes to see two rows of tiles, of the tiling and of its change, since a shorter walk has
    # not seen what later rows find in L2.
    likely = _over_own(case, own_values, values, rows, SKETCHED_CHUNKS)
    near = SHORT_SKETCHED_NEAR if _is_short(own_values, WALKED_CHUNKS)[0] else SKETCHED_NEAR
    kept = _least(likely, likely <= near, MOST_WALKED)
    kept |= surely[rows]
    rows = rows[kept]
    likely = _over_own(case, own_values, values, rows, WALKED_CHUNKS)
    if rough > 1:
        # The walk begins each chunk when the scalar unit has issued it; with two or three chunks
        # that is most of the time, and the closed form, which takes their sum, is often nearer.
        likely = np.minimum(likely, _closed_over_own(case, own, t.take(rows)))
    before = WALKED_CHUNKS
    for chunks, most in FAR:
        short = _is_short(values, before)[rows] | _is_short(own_values, before)[0]
        far = _least(likely, short & (likely <= SHORT_WALKED_NEAR), most)
        if far.any():
            likely[far] = _over_own(case, own_values, values, rows[far], chunks)
        rows, likely, before = rows[far | ~short], likely[far | ~short], chunks
    kept = likely <= max(WALKED_NEAR, rough)
    rows, likely = rows[kept], likely[kept]
    # Buffers in L0 overlap more in time than in the walk; few chunks wait for others than in it.
    work = [likely, sum(getattr(t, n)[rows] for n in BUFFER_FIELDS)]
    if rough > 1:
        work += [t.stepKa[rows], t.stepKb[rows]]
    _, first = np.unique(np.stack(work), axis=1, return_index=True)
    return rows[first], likely[first]


def _is_short(values: dict[str, Floats], chunks: int) -> NDArray[np.bool_]:
    """Return where so many chunks say little: they end within a tile or the first two rows of it.

    The first row of tiles brings what later ones find in L2.
    """
    row_of_tiles = values["inner_tiles"] * values["parts"]
    several = values["tiles"] > values["inner_tiles"]
    return np.asarray((1 + several) * row_of_tiles > chunks)


def _over_own(
    case: RuleCase, own: dict[str, Floats], values: dict[str, Floats], rows: Ints, chunks: int
) -> Floats:
    """Return the walks of some rows over the tiling's own."""
    times = walked_cycles(case, {n: np.append(own[n], x[rows]) for n, x in values.items()}, chunks)
    return np.asarray(times[1:] / times[0])


def _least(likely: Floats, wanted: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Return where the least of those that are wanted are, so many at most."""
    first = np.argsort(np.where(wanted, likely, np.inf), kind="stable")[:most]
    chosen = np.zeros(len(likely), dtype=bool)
    chosen[first] = wanted[first]
    return chosen


def _spread(rows: Ints, likely: Floats, fields: Ints) -> tuple[Ints, list[float]]:
    """Return ranked rows with those first that change other fields than likelier ones.

    Changes of the same fields are wrong in the walk by about as much.
    """
    seen: dict[int, int] = {}
    ranks = []
    for of in fields[rows].tolist():
        ranks.append(seen.get(of, 0))
        seen[of] = ranks[-1] + 1
    order = np.argsort(likely + SAME_FIELDS * np.array(ranks), kind="stable")
    return rows[order], likely[order].tolist()


def _by_closed_form(case: RuleCase, own: TilingColumns, t: TilingColumns) -> tuple[Ints, Floats]:
    """Return the same of templates that the walk does not know."""
    likely, rows = np.unique(_closed_over_own(case, own, t), return_index=True)
    near = int(np.count_nonzero(likely <= SKETCHED_NEAR))
    return rows[:near], likely[:near]


def _closed_over_own(case: RuleCase, own: TilingColumns, t: TilingColumns) -> Floats:
    """Return the closed form of tilings over that of the tiling itself."""
    total = np.broadcast_to(cost(t, case.problem, case.chip).total, len(t))
    itself = np.broadcast_to(cost(own, case.problem, case.chip).total, 1)[0]
    return np.asarray(total / itself)
