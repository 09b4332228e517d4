"""The space of tilings that the solver searches: core splits, base blocks, and how they nest.

A tiling is chosen in four steps, each a level of the search: the cores' shares of M, N (and K), a
base block of C, its baseK with the buffers of L0, and what stays in L1 (`l1_residency`).
Every legal tiling belongs to it but those that do the same work as another with more:

- a share that is larger than its number of cores along the axis needs; where rows that begin off
  256 B take longer, one that is no multiple of that, though its number of cores has room for it;
- a base block that is larger than its number of tiles (steps of K) needs, to the fractal of 16 and
  to C0 where a stored row is padded to it;
- one buffer in L0 or L0C where two fit, or one of two buffers in L0A and L0B, since only both
  overlap; two buffers of what is loaded once;
- steps in L1 that are larger than their number of chunks needs.

Candidates are a struct of arrays with TCubeTiling's field names, so that the rules and the cost
work on all of them at once. The solver's are whole floats: NumPy divides integers ten times slower.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cubecore.aliases import Column
from cubecore.arrays import Array
from cubecore.chips.costs import LINE_BYTES
from cubecore.tiling.model.field_limits import NO_LIMITS, FieldLimits
from cubecore.tiling.model.tcubetiling import Tilings
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div, distinct

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BUFFER_FIELDS = ("dbL0A", "dbL0B", "dbL0C")
"""The numbers of buffers in L0A, L0B and L0C."""
LARGEST_BLOCK = 4080
"""The largest multiple of 16 that one Mmad takes along an axis (Mmad, table 3: 4095)."""
MOST_PAIRS = 4096
"""Pairs of baseM and baseN that are looked at; chips have room for some 640."""


class TilingColumns:
    """A struct of arrays with TCubeTiling's field names; a constant may be a plain integer.

    Rows that are taken of another one are copied column by column, once they are looked at.
    """

    def __init__(
        self,
        fields: dict[str, Column],
        parent: "TilingColumns | None" = None,
        rows: Array | None = None,
    ) -> None:
        self._columns, self._parent, self._rows = fields, parent, rows

    def __getattr__(self, name: str) -> Column:
        """Return the column `name`."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._columns:
            if self._parent is None:
                raise AttributeError(name)
            value, rows = getattr(self._parent, name), self._rows
            constant = rows is None or not isinstance(value, np.ndarray)
            self._columns[name] = value if constant else value.take(rows)
        column = self._columns[name]
        self.__dict__[name] = column  # found without this method from here on
        return column

    def __len__(self) -> int:
        if self._rows is not None:
            return len(self._rows)
        if self._parent is not None:
            return len(self._parent)
        return max(len(x) for x in self._columns.values() if isinstance(x, np.ndarray))

    @property
    def fields(self) -> dict[str, Column]:
        """Every column by name."""
        return {name: getattr(self, name) for name in self.names}

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        inherited = [] if self._parent is None else self._parent.names
        return list(dict.fromkeys([*inherited, *self._columns]))

    def take(self, index: Array) -> "TilingColumns":
        """Return the rows that `index` (positions or a mask) selects."""
        rows = np.flatnonzero(index) if index.dtype == bool else index
        return TilingColumns({}, self, rows)

    def with_fields(self, **fields: Column) -> "TilingColumns":
        """Return these columns with some replaced or added."""
        return TilingColumns(self._columns | fields, self._parent, self._rows)


class _Concatenated(TilingColumns):
    """The rows of several columns, put together once they are looked at."""

    def __init__(self, parts: list[TilingColumns]) -> None:
        super().__init__({})
        self._parts = parts

    def __getattr__(self, name: str) -> Column:
        """Return the column `name`."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._columns:
            values = [getattr(part, name) for part in self._parts]
            constant = not isinstance(values[0], np.ndarray)
            self._columns[name] = values[0] if constant else np.concatenate(values)
        column = self._columns[name]
        self.__dict__[name] = column
        return column

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(dict.fromkeys([*self._parts[0].names, *self._columns]))

    def with_fields(self, **fields: Column) -> TilingColumns:
        """Return these columns with some replaced or added."""
        return TilingColumns(fields, self, None)


def concatenate(parts: list[TilingColumns]) -> TilingColumns:
    """Return the rows of all `parts`, which have the same constants."""
    return parts[0] if len(parts) == 1 else _Concatenated(parts)


def core_splits(case: RuleCase, cores: int, wanted: FieldLimits = NO_LIMITS) -> TilingColumns:
    """Return every grid of at most `cores` shares of M and N (and K, if it may be split).

    For every number of cores along an axis the smallest share, rounded up to what the rules ask
    of a share, so that the last core may be ragged, and to where rows begin well, or as well as can
    be, if that takes as many cores; or what is asked for. The two clients of a core that share its
    rows may take whole fractals as well: the core then pads those of one of them alone.
    """
    p = case.problem
    m_unit, n_unit = _share_unit(case, "M"), _share_unit(case, "N")
    m_line, n_line = _line_unit(case, "a"), _line_unit(case, "b")
    rows = _shares(p.m, cores, m_unit, m_line)
    if p.launch == "mix":
        rows = np.union1d(rows, _shares(p.m, cores, max(m_unit, FRACTAL_ROWS)))
    m = wanted.shares("singleCoreM", p.m, rows)
    n = wanted.shares("singleCoreN", p.n, _shares(p.n, cores, n_unit, n_line))
    k_unit = _share_unit(case, "K")
    k = wanted.shares("singleCoreK", p.k, _shares(p.k, cores if p.split_k else 1, k_unit))
    blocks = [ceil_div(extent, share) for extent, share in ((p.m, m), (p.n, n), (p.k, k))]
    grid = blocks[0][:, None, None] * blocks[1][:, None] * blocks[2]
    # [shares of M, of N, of K] -> cores used: the splits are the triples that the chip has room
    # for.
    i, j, h = np.nonzero(grid <= cores)
    m, n, k, grid = (x.astype(float) for x in (m, n, k, grid))
    return TilingColumns(
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
            "baseM": np.full(len(i), float(FRACTAL_ROWS)),
        }
    )


def _share_unit(case: RuleCase, axis: str) -> int:
    """Return what the rules hold a core's share of an axis to a multiple of."""
    p, unit = case.problem, 1
    for operand, operand_axis, kind in (("a", "M", case.a), ("b", "N", case.b)):
        if axis not in {operand_axis, "K"}:
            continue
        inner = case.k_is_inner(operand) == (axis == "K")
        if getattr(p, f"format_{operand}") == "NZ":
            least = kind.c0 * kind.nz_fractals if axis == "K" else FRACTAL_ROWS
            unit = max(unit, least, kind.c0 if inner else FRACTAL_ROWS)
        if kind.bits < 8 and inner:  # two elements of a stored row share a byte
            unit = max(unit, 2)
    if axis == "N" and p.format_c == "NZ":
        unit = max(unit, p.c_fractal_columns)
    return max(unit, case.base_k_multiple) if axis == "K" and p.mx else unit


def _line_unit(case: RuleCase, operand: str) -> int:
    """Return the elements after which stored rows begin well again, where shares cut them; or 1.

    Where none do, those of a square that a transposing load takes; a power of 2.
    """
    kind = case.a if operand == "a" else case.b
    extent = case.problem.m if operand == "a" else case.problem.n
    cut = not case.k_is_inner(operand) and getattr(case.problem, f"format_{operand}") != "NZ"
    alike = extent * kind.bits % (8 * LINE_BYTES) == 0
    costly = bool(case.chip.gm_to_l1_misaligned_block_cycles)
    if not cut:
        return 1
    return 8 * LINE_BYTES // kind.bits if alike and costly else kind.c0


def _shares(extent: int, cores: int, unit: int, line: int = 1) -> Ints:
    # For each number of cores the shortest share. Then a longer one that begins on a line, or on
    # half a line, a quarter, ..., as long as it needs the same number of cores; the loop ends with
    # the largest such unit, as that is tried last.
    counts = np.arange(1, min(cores, extent) + 1, dtype=np.int64)
    least = shares = align_up(ceil_div(extent, counts), unit)
    for halvings in reversed(range(line.bit_length())):
        longer = align_up(least, line >> halvings)
        kept = ceil_div(extent, longer) == ceil_div(extent, least)
        shares = np.where(kept, longer, shares)
    return distinct(np.minimum(shares, extent))


@dataclass(frozen=True)
class Pairs:
    """Base blocks of C: `columns` have baseM and baseN, `tiles` count them along each axis.

    `complete` says that no pair was left out.
    """

    columns: TilingColumns
    tiles: tuple[Floats, Floats]
    complete: bool

    def take(self, index: Array) -> "Pairs":
        """Return the pairs that `index` (positions or a mask) selects."""
        rows = np.flatnonzero(index) if index.dtype == bool else index
        m_tiles, n_tiles = self.tiles
        return Pairs(
            self.columns.take(rows), (m_tiles.take(rows), n_tiles.take(rows)), self.complete
        )


def block_pairs(case: RuleCase, splits: TilingColumns, wanted: FieldLimits = NO_LIMITS) -> Pairs:
    """Return baseM and baseN for every split: what L0C holds, the smallest of their tile counts."""
    p = case.problem
    most = max(case.chip.l0c_bytes // case.accumulator.size_bytes, FRACTAL_ROWS**2)
    n_units = {FRACTAL_ROWS, case.column_align}
    if p.format_c == "NZ":
        n_units.add(p.c_fractal_columns)
    m = _Axis(splits.singleCoreM, {FRACTAL_ROWS, case.row_align}, most, wanted, "baseM")
    n = _Axis(splits.singleCoreN, n_units, most, wanted, "baseN")
    i, j, complete = _template(tuple(m.sizes.tolist()), tuple(n.sizes.tolist()), most)
    if wanted.fields and not len(i):  # for L0C's rule to say
        i, j = (x.reshape(-1) for x in np.indices((len(m.sizes), len(n.sizes))))
    split, pair = np.nonzero(m.useful[:, i] & n.useful[:, j])
    i, j = i[pair], j[pair]
    columns = splits.take(split).with_fields(baseM=m.sizes[i], baseN=n.sizes[j])
    return Pairs(columns, (m.tiles[split, i], n.tiles[split, j]), complete)


class _Axis:
    """The sizes of blocks along an axis, and which are of use for each share of it.

    A size is if no smaller one that is a multiple of the same unit needs as few tiles.
    """

    def __init__(
        self, shares: Floats, units: set[int], most: int, wanted: FieldLimits, name: str
    ) -> None:
        longest = min(int(shares.max()), LARGEST_BLOCK, most // FRACTAL_ROWS)
        units = {wanted.unit(name, unit) for unit in units}
        top = min(align_up(longest, max(units)), LARGEST_BLOCK)
        plain = np.arange(FRACTAL_ROWS, top + 1, FRACTAL_ROWS)
        self.sizes = wanted.blocks(name, plain).astype(float)
        self.tiles = ceil_div(shares[:, None], self.sizes)
        # Of sizes that need as many tiles the least is of use: larger ones take more of L0 and L1
        # for the same work.
        even = ceil_div(shares[:, None], self.tiles)
        smallest = [align_up(even, unit) == self.sizes for unit in units]
        self.useful = np.logical_or.reduce(smallest)
        if name in wanted.fields and len(self.sizes):
            self.useful |= self.sizes == self.sizes.min()


@cache
def _template(m: tuple[float, ...], n: tuple[float, ...], most: int) -> tuple[Ints, Ints, bool]:
    """Return the pairs of sizes that L0C holds, by their indexes, and whether these are all."""
    i, j = np.nonzero(np.array(m)[:, None] * np.array(n) <= most)
    if len(i) <= MOST_PAIRS:
        return i, j, True
    # Evenly thinned, so that large and small blocks stay; `complete` says so.
    stride = ceil_div(len(i), MOST_PAIRS)
    return i[::stride], j[::stride], False


def base_k_limits(case: RuleCase, columns: Tilings) -> tuple[Floats, Floats]:
    """Return the longest baseK for baseM and baseN with one buffer of L0A and L0B, and with two."""
    one, two = (
        np.minimum(*(base_k_limit(case, columns, operand, count) for operand in "ab"))
        for count in (1, 2)
    )
    return one, two


def base_k_limit(case: RuleCase, columns: Tilings, operand: str, buffers: int) -> Floats:
    """Return the longest baseK for so many buffers of an operand's L0."""
    # L0A holds rows of A, L0B columns of B.
    if operand == "a":
        lanes = case.a.bytes_of(align_up(columns.baseM, case.row_align))
        room = case.chip.l0a_bytes
    else:
        lanes = case.b.bytes_of(align_up(columns.baseN, case.column_align))
        room = case.chip.l0b_bytes
    # Blocks lie there in whole C0: the last pieces of a block must fit as well.
    longest: Floats = np.floor(room / (buffers * lanes) / case.k_align) * case.k_align
    return longest


def base_k_sizes(case: RuleCase, k: int, wanted: FieldLimits = NO_LIMITS) -> Ints:
    """Return the values of baseK for a core's K: the smallest of each number of steps, or asked."""
    unit = case.k_align if case.k_is_inner("a") and case.k_is_inner("b") else FRACTAL_ROWS
    if case.problem.mx:
        unit = case.base_k_multiple
    units = {wanted.unit("baseK", multiple) for multiple in (unit, case.k_align)}
    longest = min(align_up(k, max(units)), LARGEST_BLOCK)
    values = wanted.blocks("baseK", np.arange(unit, longest + 1, unit), unit)
    even = ceil_div(k, ceil_div(k, values))
    useful = [align_up(even, multiple) == values for multiple in units]
    if "baseK" in wanted.fields:
        useful.append(values == values.min(initial=LARGEST_BLOCK))
    return np.asarray(values[np.logical_or.reduce(useful)])


def base_blocks(
    case: RuleCase, pairs: Pairs, wanted: FieldLimits = NO_LIMITS, *, misfits: bool = False
) -> tuple[TilingColumns, Ints]:
    """Return the base blocks of the pairs, and their pairs: every baseK that L0A and L0B hold.

    Two buffers where they fit; both numbers where one of them is asked for. With `misfits` the
    smallest baseK is there even if it is too large, for the rules to say.
    """
    t = pairs.columns
    one, two = base_k_limits(case, t)
    parts = []
    for k in sorted(set(t.singleCoreK.tolist())):
        sizes = base_k_sizes(case, int(k), wanted).astype(float)
        fits = sizes <= one[:, None]
        if misfits or "baseK" in wanted.fields:  # what is asked for and does not fit as well
            fits |= sizes == sizes[:1]
        row, size = np.nonzero(fits & (t.singleCoreK == k)[:, None])
        parts.append((row, sizes[size]))
    row, base_k = parts[0]
    if len(parts) > 1:
        row, base_k = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    l0 = np.where(base_k <= two[row], 2.0, 1.0)
    accumulators = case.accumulator.bytes_of(2 * t.baseM * t.baseN)
    l0c = np.where(accumulators <= case.chip.l0c_bytes, 2.0, 1.0)[row]
    blocks = t.take(row).with_fields(baseK=base_k, dbL0A=l0, dbL0B=l0, dbL0C=l0c)
    if wanted.of(BUFFER_FIELDS).fields:
        return _with_buffers(blocks), np.tile(row, 8)
    return blocks, row


def _with_buffers(blocks: TilingColumns) -> TilingColumns:
    """Return the blocks with every number of buffers."""
    ones = np.ones_like(blocks.baseK)
    return concatenate(
        [
            blocks.with_fields(dbL0A=a * ones, dbL0B=b * ones, dbL0C=c * ones)
            for a in (1, 2)
            for b in (1, 2)
            for c in (1, 2)
        ]
    )
