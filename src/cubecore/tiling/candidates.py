"""What the solver looks at: core splits, base blocks, and what of each operand stays in L1.

Candidates are a struct of arrays with TCubeTiling's field names, so that the rules and the cost
work on all of them at once.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.rule_model import Case
from cubecore.tiling.wanted import NOTHING, Wanted
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

Ints = NDArray[np.int64]

COARSE_BLOCKS = np.array(
    (*range(16, 129, 16), *range(144, 257, 16), *range(288, 513, 32), 640, 768, 1024, 2048)
)
"""Block sizes that a long axis is tried with, before they are balanced over its tiles."""
LONG_AXIS = 512
"""Beyond this many elements block sizes are coarse; with two such axes small blocks are left out:
those that fill less than an eighth of L0C."""
SHORT_K = 64
"""Up to this many pieces of K (16 elements, or C0) shorter steps than the longest are tried."""


class Columns:
    """A struct of arrays with TCubeTiling's field names; a constant may be a plain integer."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        """Return the column `name`."""
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return len(self.fields["baseM"])

    def take(self, index: NDArray[Any]) -> "Columns":
        """Return the rows that `index` (positions or a mask) selects."""
        rows = np.flatnonzero(index) if index.dtype == bool else index
        return Columns(
            {n: x.take(rows) if isinstance(x, np.ndarray) else x for n, x in self.fields.items()}
        )

    def with_fields(self, **fields: Any) -> "Columns":
        """Return these columns with some replaced or added."""
        return Columns(self.fields | fields)


def concatenate(parts: list[Columns]) -> Columns:
    """Return the rows of all `parts`, which have the same constants."""
    first = parts[0].fields
    return Columns(
        {
            name: np.concatenate([part.fields[name] for part in parts])
            if isinstance(value, np.ndarray)
            else value
            for name, value in first.items()
        }
    )


def core_splits(case: Case, cores: int, wanted: Wanted = NOTHING) -> Columns:
    """Return every grid of at most `cores` equal shares of M and N (and K, if it may be split).

    A share is the axis divided by a count, rounded up to the fractal and never beyond the axis, so
    the last cores of an axis may be ragged; or what is asked for.
    """
    p = case.problem
    m = _shares(p.m, cores, _alignments(case.row_align, nz=p.format_a == "NZ"))
    n = _shares(p.n, cores, _alignments(case.column_align, nz=p.format_b == "NZ"))
    k = _shares(p.k, cores if p.split_k else 1, {case.k_align * case.a.nz_fractals, FRACTAL_ROWS})
    m = wanted.shares("singleCoreM", p.m, m)
    n = wanted.shares("singleCoreN", p.n, n)
    k = wanted.shares("singleCoreK", p.k, k)
    blocks = [ceil_div(extent, share) for extent, share in ((p.m, m), (p.n, n), (p.k, k))]
    grid = blocks[0][:, None, None] * blocks[1][:, None] * blocks[2]
    i, j, h = np.nonzero(grid <= cores)
    return Columns(
        {
            "M": p.m,
            "N": p.n,
            "Ka": p.k,
            "Kb": p.k,
            "singleCoreK": k[h],
            "isBias": int(p.bias is not None),
            "singleCoreM": m[i],
            "singleCoreN": n[j],
            "usedCoreNum": grid[i, j, h],
            "baseM": np.full(len(i), FRACTAL_ROWS),
        }
    )


def _alignments(align: int, *, nz: bool) -> set[int]:
    """Return what shares of an axis are rounded up to: an NZ matrix is cut at fractals alone."""
    return {align} if nz else {align, FRACTAL_ROWS}


def _shares(extent: int, cores: int, aligns: set[int]) -> Ints:
    counts = np.arange(1, min(cores, ceil_div(extent, FRACTAL_ROWS)) + 1, dtype=np.int64)
    shares = [align_up(ceil_div(extent, counts), a) for a in aligns]
    return np.unique(np.minimum(np.concatenate(shares), extent))


def block_sizes(extent: int) -> Ints:
    """Return sizes of base blocks along an axis of `extent` elements: fractals, balanced.

    Every size is the smallest multiple of 16 for its number of tiles. Short axes get every number
    of tiles that makes a difference, long ones a coarse choice.
    """
    if extent <= LONG_AXIS:
        sizes = np.arange(FRACTAL_ROWS, align_up(extent, FRACTAL_ROWS) + 1, FRACTAL_ROWS)
    else:
        sizes = COARSE_BLOCKS[extent >= COARSE_BLOCKS]
    tiles = ceil_div(extent, sizes)
    return np.unique(align_up(ceil_div(extent, tiles), FRACTAL_ROWS))


@dataclass(frozen=True)
class Blocks:
    """Base blocks, and the pairs of baseM and baseN that they are made of: `pair` is its row."""

    columns: Columns
    pairs: Columns
    pair: Ints

    def take(self, index: NDArray[Any]) -> "Blocks":
        """Return the blocks that `index` (positions or a mask) selects."""
        return Blocks(self.columns.take(index), self.pairs, self.pair[index])


def base_blocks(case: Case, splits: Columns, wanted: Wanted = NOTHING) -> Blocks:
    """Return the base blocks of every split: baseM, baseN, baseK and the L0 double buffers.

    baseK is the largest that L0A and L0B hold with one or two buffers, balanced over its steps.
    With two, also the largest power of two times its alignment and, where K is short enough for the
    first step to matter, two, four or eight times as many steps. What is asked for comes first.
    """
    pairs = _pairs(case, splits, wanted)
    once = twice = np.arange(len(pairs))
    if not wanted.fields:
        # Two blocks in L0C never take longer than one: whoever asks for nothing gets two, if
        # they fit, and the solver takes back what saves nothing.
        fits_twice = 2 * pairs.baseM * pairs.baseN <= _largest_area(case)
        once, twice = np.flatnonzero(~fits_twice), np.flatnonzero(fits_twice)
    parts = [
        part
        for db_l0c, fitting in ((1, once), (2, twice))
        for db_l0 in (2, 1)
        for part in _with_base_k(case, pairs.take(fitting), fitting, (db_l0c, db_l0), wanted)
    ]
    columns = concatenate([columns for columns, _ in parts])
    return Blocks(columns, pairs, np.concatenate([pair for _, pair in parts]))


def _largest_area(case: Case) -> int:
    """Return the most elements of C that a block may have; a smaller L0C is for its rule."""
    return max(case.chip.l0c_bytes // case.accumulator.size_bytes, FRACTAL_ROWS**2)


def _pairs(case: Case, splits: Columns, wanted: Wanted) -> Columns:
    """Return baseM and baseN for every split."""
    m_sizes, n_sizes = (
        {int(x): wanted.blocks(f"base{axis}", block_sizes(int(x))) for x in np.unique(shares)}
        for axis, shares in (("M", splits.singleCoreM), ("N", splits.singleCoreN))
    )
    limit = _largest_area(case)
    split, base_m, base_n = [], [], []
    for row, (m, n) in enumerate(zip(splits.singleCoreM, splits.singleCoreN, strict=True)):
        rows, columns = m_sizes[int(m)], n_sizes[int(n)]
        area = rows[:, None] * columns[None, :]
        least = limit // 8 if min(m, n) > LONG_AXIS and not wanted.fields else 0
        fits = (area <= limit) & (area >= least)
        i, j = np.nonzero(fits if fits.any() or not wanted.fields else area > 0)
        split.append(np.full(len(i), row))
        base_m.append(rows[i])
        base_n.append(columns[j])
    index = np.concatenate(split)
    return splits.take(index).with_fields(
        baseM=np.concatenate(base_m), baseN=np.concatenate(base_n)
    )


def _with_base_k(
    case: Case, pairs: Columns, places: Ints, buffers: tuple[int, int], wanted: Wanted
) -> list[tuple[Columns, Ints]]:
    """Return the pairs with each of their baseK, and their places.

    `buffers` are those of L0C and of L0A and L0B.
    """
    db_l0c, db_l0 = buffers
    step = case.base_k_multiple
    k = pairs.singleCoreK
    rows = case.a.bytes_of(align_up(pairs.baseM, case.row_align) * db_l0 * step)
    columns = case.b.bytes_of(align_up(pairs.baseN, case.column_align) * db_l0 * step)
    largest = np.minimum(case.chip.l0a_bytes // rows, case.chip.l0b_bytes // columns)
    largest = np.minimum(np.minimum(largest, 4095 // step), ceil_div(k, step))
    largest = np.maximum(largest, 1)
    pieces = ceil_div(k, step)
    fewest = ceil_div(pieces, largest)
    lengths = [ceil_div(pieces, fewest)]
    if db_l0 == 2:
        lengths.append(2 ** np.floor(np.log2(largest)).astype(np.int64))
    if db_l0 == 2 and len(pairs) and pieces.min() <= SHORT_K:
        lengths += [ceil_div(pieces, np.minimum(fewest * more, pieces)) for more in (2, 4, 8)]
    full = np.full(len(pairs), 1)
    shared = pairs.with_fields(dbL0A=full * db_l0, dbL0B=full * db_l0, dbL0C=full * db_l0c)
    made: list[tuple[Columns, Ints]] = []
    values = [wanted.clipped("baseK", length * step, step) for length in lengths]
    for index, value in enumerate(values):
        new = np.logical_and.reduce([value != earlier for earlier in values[:index]])
        with_k = shared.with_fields(baseK=value)
        if index:
            rows = np.flatnonzero(new)
            made.append((with_k.take(rows), places[rows]))
        else:
            made.append((with_k, places))
    return made


@dataclass(frozen=True)
class Stay:
    """Ways for one operand to stay in L1; arrays of [rows, ways].

    `step` counts base blocks along M or N, `step_k` along K, `buffers` is 1 or 2. `useful` is False
    for a way that repeats another of its row, or doubles a buffer that is filled only once.
    """

    step: Ints
    step_k: Ints
    buffers: Ints
    useful: NDArray[np.bool_]


def stays(case: Case, rows: Columns, *, thorough: bool) -> tuple[Stay, Stay]:
    """Return the ways that A and B may stay in L1 for every base block of `rows`.

    All of K with one, two, half of the or all tiles; or as many base-K blocks as a share of L1
    holds, or L1 beside all of the other's K, balanced or a divisor of K's blocks. `thorough` tries
    more shares and single buffers.
    """
    t = rows
    k_steps = ceil_div(t.singleCoreK, t.baseK)
    k = align_up(t.baseK, case.k_align)
    a_block = case.a.bytes_of(align_up(t.baseM, case.row_align) * k)
    b_block = case.b.bytes_of(align_up(t.baseN, case.column_align) * k)
    size = case.chip.l1_user_bytes
    joint = [size // (2 * (a_block + b_block))]
    if thorough:
        joint += [joint[0] * 2, joint[0] * 4, np.maximum(joint[0] // 2, 1)]
    divisors = _Divisors(k_steps)
    m_tiles = ceil_div(np.minimum(t.singleCoreM, t.M), t.baseM)
    n_tiles = ceil_div(np.minimum(t.singleCoreN, t.N), t.baseN)
    ways = _thorough_ways if thorough else _quick_ways
    beside_b = np.maximum(size - k_steps * b_block, 0) // (2 * a_block)
    beside_a = np.maximum(size - k_steps * a_block, 0) // (2 * b_block)
    a = ways(k_steps, m_tiles, size // a_block, [*joint, beside_b], divisors)
    b = ways(k_steps, n_tiles, size // b_block, [*joint, beside_a], divisors)
    return (
        _stay(a, k_steps, m_tiles, size // a_block + 1),
        _stay(b, k_steps, n_tiles, size // b_block + 1),
    )


Way = tuple[Ints, Ints, int]


def _quick_ways(
    k_steps: Ints, tiles: Ints, blocks: Ints, joint: list[Ints], divisors: "_Divisors"
) -> list[Way]:
    one = np.ones_like(k_steps)
    parts = [divisors.at_most(blocks * part // 8) for part in (3, 2, 1)]
    parts += [_balanced(k_steps, count) for count in joint]
    whole: list[Way] = [(one, k_steps, 1), (one, k_steps, 2), (tiles, k_steps, 1), (one, one, 1)]
    return whole + [(one, part, 2) for part in parts]


def _thorough_ways(
    k_steps: Ints, tiles: Ints, blocks: Ints, joint: list[Ints], divisors: "_Divisors"
) -> list[Way]:
    one = np.ones_like(k_steps)
    half, two = ceil_div(tiles, 2), np.minimum(tiles, 2)
    whole: list[Way] = [(tiles, k_steps, 1), (one, one, 1), (one, one, 2)]
    whole += [(step, k_steps, buffers) for step in (one, two, half) for buffers in (1, 2)]
    shares = [blocks * part // 16 for part in (7, 6, 4, 2, 1)]
    parts = [divisors.at_most(share) for share in shares]
    parts += [_balanced(k_steps, share) for share in shares]
    together = [_balanced(k_steps, count) for count in joint]
    doubled: list[Way] = [(one, part, 2) for part in parts + together]
    return whole + doubled + [(one, part, 1) for part in together]


def _stay(ways: list[Way], k_steps: Ints, tiles: Ints, too_many: Ints) -> Stay:
    """Return the ways as arrays; steps beyond what L1 holds are cut to `too_many`, still too many.

    Without the cut, products over extents near 2**31 would overflow.
    """
    step = np.minimum(np.stack([way[0] for way in ways], axis=1), too_many[:, None])
    step_k = np.minimum(np.stack([way[1] for way in ways], axis=1), too_many[:, None])
    buffers = np.array([way[2] for way in ways])[None, :]
    filled_once = (step >= tiles[:, None]) & (step_k >= k_steps[:, None])
    key = (step * (int(step_k.max()) + 1) + step_k) * 2 + buffers
    order = np.argsort(key, axis=1, kind="stable")
    ordered = np.take_along_axis(key, order, axis=1)
    repeats = np.zeros(key.shape, dtype=bool)
    np.put_along_axis(repeats, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return Stay(step, step_k, buffers, ~repeats & ~(filled_once & (buffers == 2)))


def _balanced(k_steps: Ints, most: Ints) -> Ints:
    """Return the smallest step for the number of K iterations that steps of `most` blocks need."""
    step = np.clip(most, 1, k_steps)
    return np.asarray(ceil_div(k_steps, ceil_div(k_steps, step)))


class _Divisors:
    """For each row, the largest divisor of its count of K blocks up to a bound."""

    LIMIT = 1024

    def __init__(self, k_steps: Ints) -> None:
        distinct, self.row = np.unique(k_steps, return_inverse=True)
        numbers = np.arange(1, min(self.LIMIT, int(distinct[-1])) + 1)
        divides = distinct[:, None] % numbers[None, :] == 0
        self.table = np.maximum.accumulate(np.where(divides, numbers, 1), axis=1)

    def at_most(self, bound: Ints) -> Ints:
        """Return the largest divisor that is at most `bound` (at least 1, at most 1024)."""
        column = np.clip(bound, 1, self.table.shape[1]) - 1
        return np.asarray(self.table[self.row, column])
