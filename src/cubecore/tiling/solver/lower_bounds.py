"""Lower bounds of the closed form, for the solver to exclude candidates without looking at them.

Each level of the search has one: no tiling over these splits, pairs or base blocks is predicted to
take fewer cycles. Where the closed form's parts do not depend on what is still open they are taken
from it; the others are replaced by the least that they can be:

- an operand's loads by the fewest passes that L1 allows, in the fewest transfers, with as little
  touched between two passes as can be;
- the first loads by one base block of each operand;
- waits for chunks that come late, and for L0C, by nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cubecore.aliases import Column, Columns
from cubecore.arrays import column
from cubecore.chips import costs
from cubecore.tiling.cost.closed_form import (
    clients_per_core,
    inner_pipes,
    start_cycles,
    written_back,
)
from cubecore.tiling.cost.pipe_overlap import Inner, first_loads, scalar_cycles
from cubecore.tiling.cost.tile_counts import tile_counts
from cubecore.tiling.cost.traffic import (
    Pass,
    Stored,
    hidden_cycles,
    longest_row_bytes,
    miss_share,
    row_starts,
)
from cubecore.tiling.model.tcubetiling import Tilings
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.rules.ub import converts_in_ub
from cubecore.tiling.solver.candidates import Floats, Ints, Pairs, TilingColumns, base_k_limits
from cubecore.tiling.solver.l1_residency import (
    BLOCK_RULES,
    LEAST_RESIDENCY,
    keeps_rules,
    l1_used_bytes,
    with_derived_fields,
)
from cubecore.units import align_up, ceil_div

SAFE = 1 - 1e-9
"""Bounds are lowered by this much, more than rounding may add."""
WEIGHT = 0.05
"""The weight of a core's own cycles beside a bound in the order of the search."""
STEP = 20
"""And a base-K step, whatever the chip file knows of its cost; cycles."""


@dataclass(frozen=True)
class LoadPasses:
    """Passes over A and B that load a base block, where they `fit`, and how often each is made."""

    fits: Column
    a: Pass
    b: Pass
    passes: tuple[Column, Column]


@dataclass(frozen=True)
class LowerBounds:
    """A lower bound for each row, and by what to look at the rows: least first.

    Many are equal where device memory is the limit; then the cores' work decides.
    """

    cycles: Floats
    score: Floats

    def take(self, rows: Ints) -> "LowerBounds":
        """Return some rows."""
        return LowerBounds(self.cycles[rows], self.score[rows])


def launch_bound(case: RuleCase, t: Tilings, busy: Column, memory: Column, tail: Column) -> Column:
    """Return a launch's bound: `busy` on the fullest core; device memory's for a matrix.

    `tail` is what a core does after its last load.
    """
    served = case.problem.batch * memory + _written(case)
    served = served + (case.chip.hbm_latency_cycles or 0) + tail
    busy = clients_per_core(t, case.problem, case.chip) * busy
    return SAFE * (start_cycles(case.chip) + np.maximum(busy, served))


def _least(
    case: RuleCase,
    t: Columns,
    schedules: Iterable[LoadPasses],
    missing: Column,
    *,
    beside: Column,
    on_top: Column = 0,
    tail: Column = 0,
    steps: Column,
) -> tuple[Column, Column]:
    """Return the least cycles of a launch over some load schedules, and the score to order them.

    There are cycles `beside` the loads, some `on_top` of them, and a `tail` after the last one.
    """
    clients = clients_per_core(t, case.problem, case.chip)
    # Minimum over the schedules, each bounded from below: any tiling follows one of them.
    least: Column = np.inf
    loading: Column = np.inf
    likely: Column = np.inf
    for passes in schedules:
        a, a_memory = passes.a.least(passes.passes[0], missing)
        b, b_memory = passes.b.least(passes.passes[1], missing)
        memory = case.problem.batch * (a_memory + b_memory) + _written(case)
        loads = a + b + on_top
        if passes.fits is not True:
            loads = np.where(passes.fits, loads, np.inf)
        starting = loads + passes.passes[0] * passes.a.starts + passes.passes[1] * passes.b.starts
        # Where rows start is no bound, since residencies may change it; it orders what is looked at
        # first.
        loading = np.minimum(loading, starting)
        likely = np.minimum(likely, np.maximum(clients * starting, memory))
        least = np.minimum(least, np.maximum(clients * loads, memory))
    least, likely = (
        SAFE * (start_cycles(case.chip) + np.maximum(x + tail, clients * beside))
        for x in (least, likely)
    )
    return least, likely + clients * (WEIGHT * (loading + beside) + STEP * steps)


def _memory(case: RuleCase, t: Tilings, operand: str) -> Column:
    """Return device memory's cycles for an operand, in rows as long as a core's share."""
    p = case.problem
    stored = Stored.of(p, operand)
    whole, share = (p.m, t.singleCoreM) if operand == "a" else (p.n, t.singleCoreN)
    size = stored.kind.bits / 8
    row = (t.singleCoreK if stored.k_inner else np.minimum(share, whole)) * size
    if stored.nz:
        row = longest_row_bytes(p, operand)
    else:  # whole rows follow without a gap
        row = np.where(row < stored.pitch * size, row, longest_row_bytes(p, operand))
    k = t.singleCoreK * ceil_div(t.Ka, t.singleCoreK)
    return costs.hbm_cycles(case.chip, size * whole * k, row)


def _written(case: RuleCase) -> Column:
    """Return device memory's least cycles for C: beside one read of A and B, in long rows."""
    p = case.problem
    read = p.batch * (case.a.bytes_of(p.m * p.shared_k) + case.b.bytes_of(p.shared_k * p.n))
    return written_back(case, read, p.c_type.bytes_of(p.m * p.n))


def _missing(case: RuleCase, t: Tilings) -> Column:
    """Return the least share of a later pass over A or B that L2 has no more."""
    # Between two passes each core touches at least one block row of A and one block column of B,
    # over all of K; what L2 cannot hold of that much is missing however the rest is ordered.
    k = t.singleCoreK * ceil_div(t.Ka, t.singleCoreK)
    a = ceil_div(t.M, t.singleCoreM) * np.minimum(t.baseM, t.singleCoreM) * (case.a.bits / 8)
    b = ceil_div(t.N, t.singleCoreN) * np.minimum(t.baseN, t.singleCoreN) * (case.b.bits / 8)
    a, b = np.minimum(a, t.M * (case.a.bits / 8)), np.minimum(b, t.N * (case.b.bits / 8))
    return miss_share(case.chip, (a + b) * k)


def split_bound(case: RuleCase, splits: TilingColumns) -> LowerBounds:
    """Return a bound for each core split: the Cube's, MTE2's or fixpipe's work on the share."""
    return LowerBounds(*_split_bound(case, splits))


def _split_bound(case: RuleCase, splits: Columns) -> tuple[Column, Column]:
    problem, chip = case.problem, case.chip
    m, n, k = splits.singleCoreM, splits.singleCoreN, splits.singleCoreK
    cube = costs.mad_cycles(chip, case.a, m, n, k, hf32=problem.hf32)
    written = costs.l0c_to_gm_cycles(chip, m, problem.c_type.bytes_of(m * n))
    a, b = _whole_passes(case, splits, m, n, k)
    passes = LoadPasses(True, a, b, (1, 1))
    return _least(case, splits, [passes], 0, beside=np.maximum(cube, written), steps=0)


def _whole_passes(
    case: RuleCase,
    t: Tilings,
    m: Column,
    n: Column,
    k: Column,
    m_tiles: Column | None = None,
    n_tiles: Column | None = None,
) -> tuple[Pass, Pass]:
    """Return passes over A and B in one transfer each.

    Where their tiles are known, rows start at best as in one chunk or in one for each tile.
    """
    return (
        _whole_pass(case, t, "a", m, k, m_tiles),
        _whole_pass(case, t, "b", n, k, n_tiles),
    )


def _whole_pass(
    case: RuleCase,
    t: Tilings,
    operand: str,
    extent: Column,
    k: Column,
    tiles: Column | None,
) -> Pass:
    chip, stored = case.chip, Stored.of(case.problem, operand)
    whole = stored.transfer(chip, extent, k)
    starts = _starts(case, t, operand, extent, k, along=1, along_k=1, step=extent)
    if tiles is not None and not stored.k_inner:
        base = t.baseM if operand == "a" else t.baseN
        more = tiles * stored.transfer(chip, extent / tiles, k).busy_cycles - whole.busy_cycles
        by_tile = _starts(case, t, operand, extent, k, along=tiles, along_k=1, step=base)
        starts = np.minimum(starts, tiles * by_tile + more)
    size = stored.kind.bytes_of(extent * k)
    return Pass.of(chip, 1.0, whole, _memory(case, t, operand), size, starts)


def _starts(
    case: RuleCase,
    t: Tilings,
    operand: str,
    extent: Column,
    k: Column,
    *,
    along: Column,
    along_k: Column,
    step: Column,
) -> Column:
    """Return how much longer a chunk takes for where its rows start; about, and no bound.

    A core's share is `extent` x `k`, in `along` x `along_k` chunks, with `step` elements from one
    to the next along the operand's own axis. Rows along K count nothing: most steps of those put
    them on a line.
    """
    stored = Stored.of(case.problem, operand)
    if stored.k_inner:
        return 0.0
    whole, share = (t.M, t.singleCoreM) if operand == "a" else (t.N, t.singleCoreN)
    rows, cores = k / along_k, ceil_div(whole, share)
    return row_starts(
        case.chip, stored, rows, extent, step=step, chunks=along, share=share, cores=cores
    )


def pair_bound(case: RuleCase, pairs: Pairs) -> LowerBounds:
    """Return a bound for each baseM and baseN: with the longest baseK that L0 holds."""
    m_tiles, n_tiles = pairs.tiles
    return LowerBounds(
        *_pair_bound(case, pairs.columns.with_fields(m_tiles=m_tiles, n_tiles=n_tiles))
    )


def _pair_bound(case: RuleCase, t: Columns) -> tuple[Column, Column]:
    # Work of each pipe on the core's whole share, with the longest baseK (fewest steps, thus fewest
    # heads and issues). Loads from L1 to L0A are made for each tile of N, to L0B for each of M.
    problem, chip, m_tiles, n_tiles = case.problem, case.chip, t.m_tiles, t.n_tiles
    m, n, k = t.singleCoreM, t.singleCoreN, t.singleCoreK
    longest = base_k_limits(case, t)[0]
    tiles = m_tiles * n_tiles
    steps = tiles * ceil_div(k, np.maximum(longest, 1.0))
    cube = costs.mad_cycles(chip, case.a, m, n, k, hf32=problem.hf32)
    a, b = case.a.bytes_of(m * k) * n_tiles, case.b.bytes_of(n * k) * m_tiles
    heads = (chip.l1_to_l0_head_cycles or 0) + (chip.l1_to_l0_queued_cycles or 0)
    mte1 = costs.l1_to_l0a_cycles(chip, a) + costs.l1_to_l0b_cycles(chip, b) + steps * heads
    out = problem.c_type.bytes_of(m * n) / tiles
    fix = tiles * costs.l0c_to_gm_cycles(chip, m / m_tiles, out)
    most = np.maximum(cube + steps * (chip.mad_queued_cycles or 0), mte1)
    scalar = scalar_cycles(problem, chip)
    most = np.maximum(np.maximum(most, fix), steps * scalar.step + tiles * scalar.tile)
    size, k = chip.l1_bytes, align_up(t.singleCoreK, case.k_align)
    # A panel is a block's rows times all of K: an operand that is held whole is loaded once, else
    # for each tile of the other.
    a_panel = case.a.bytes_of(align_up(t.baseM, case.row_align) * k)
    b_panel = case.b.bytes_of(align_up(t.baseN, case.column_align) * k)
    a_fits = case.a.bytes_of(t.baseM * t.singleCoreK) <= _ub_bytes(case, "a")
    b_fits = case.b.bytes_of(t.baseN * t.singleCoreK) <= _ub_bytes(case, "b")
    a_pass, b_pass = _whole_passes(case, t, m, n, t.singleCoreK, m_tiles, n_tiles)
    schedules = (
        LoadPasses((a_panel + b_panel <= size) & a_fits & b_fits, a_pass, b_pass, (1, 1)),
        LoadPasses(a_fits & (a_panel < size), a_pass, b_pass, (1, m_tiles)),
        LoadPasses(b_fits & (b_panel < size), a_pass, b_pass, (n_tiles, 1)),
        LoadPasses(True, a_pass, b_pass, (n_tiles, m_tiles)),
    )
    return _least(case, t, schedules, _missing(case, t), beside=most, steps=steps)


@dataclass(frozen=True)
class BlockBounds:
    """Bounds of base blocks before their L1 residency is chosen; cycles.

    `order_matters` says that M first and N first differ, `chain` is from the first L1 block to the
    last write, `other` MTE2's cycles besides A and B. `least_bytes` is what one block of A and one
    of B take of L1, and `fits` that all rules about them hold. `cycles` and `score` are the
    bound's.
    """

    order_matters: Column
    chain: Column
    other: Column
    least_bytes: Column
    fits: Column
    cycles: Column
    score: Column

    @property
    def total(self) -> LowerBounds:
        """The bound of each."""
        return LowerBounds(self.cycles, self.score)

    def take(self, rows: Ints) -> "BlockBounds":
        """Return some rows."""
        return BlockBounds(*(x.take(rows) for x in self.__dict__.values()))

    @staticmethod
    def joined(parts: list["BlockBounds"]) -> "BlockBounds":
        """Return the rows of all of them, which are one problem's."""
        columns = zip(*(part.__dict__.values() for part in parts), strict=True)
        return BlockBounds(*(np.concatenate(values) for values in columns))


def block_bounds(case: RuleCase, blocks: TilingColumns) -> BlockBounds:
    """Return the bounds of base blocks."""
    bounds = _block_bounds(case, blocks)
    return BlockBounds(*(column(x, len(blocks)) for x in bounds))


def _block_bounds(case: RuleCase, t: Columns) -> tuple[Column, ...]:
    chip = case.chip
    m_tiles, n_tiles = ceil_div(t.singleCoreM, t.baseM), ceil_div(t.singleCoreN, t.baseN)
    k_steps = ceil_div(t.singleCoreK, t.baseK)
    # The pipes' work does not depend on residencies: taken for all of the operands in L1.
    held = t.with_fields(
        stepM=m_tiles, stepN=n_tiles, stepKa=k_steps, stepKb=k_steps, iterateOrder=0
    )
    judged = replace(case, tiling=held)
    w = tile_counts(held)
    pipes, _ = inner_pipes(judged, w, fewest=True)
    inner = Inner(judged, w, pipes)
    a, b = (Stored.of(case.problem, x) for x in "ab")
    first_k = np.minimum(t.baseK, w.k)
    first_a = a.transfer(chip, np.minimum(t.baseM, w.m), first_k)
    first_b = b.transfer(chip, np.minimum(t.baseN, w.n), first_k)
    fill = first_loads(
        chip, first_a.busy_cycles + first_b.busy_cycles, first_a.count + first_b.count
    )
    rest = inner.chain / w.steps
    hidden = hidden_cycles(chip)
    beside = np.maximum(fill + inner.chain, inner.scalar(fill) + inner.last)
    schedules = _loads_of_blocks(judged)
    on_top = pipes["MTE2"] + hidden
    missing = _missing(case, t)
    total, score = _least(
        case, t, schedules, missing, beside=beside, on_top=on_top, tail=rest, steps=w.steps
    )
    least = with_derived_fields(replace(case, tiling=t.with_fields(**LEAST_RESIDENCY)))
    fits = keeps_rules(least, BLOCK_RULES)
    order_matters = np.logical_and(w.m_tiles > 1, w.n_tiles > 1)
    return (order_matters, inner.chain, pipes["MTE2"], l1_used_bytes(least), fits, total, score)


@dataclass(frozen=True)
class _Operand:
    """One operand of base blocks: its size, tiles, bytes in L1 of a block of `base` rows."""

    case: RuleCase
    name: str
    extent: Column
    base: Column
    tiles: Column
    block_bytes: Column
    k: Column
    k_steps: Column

    @property
    def by_block(self) -> bool:
        """True if it is loaded block by block, whatever the steps."""
        return self.case.problem.template != "MDL"

    @cached_property
    def memory(self) -> Column:
        """Device memory's cycles for one pass."""
        return _memory(self.case, self.case.tiling, self.name)

    @cached_property
    def most_blocks(self) -> Column:
        """The most blocks of a step."""
        kind = self.case.a if self.name == "a" else self.case.b
        block = kind.bytes_of(self.base * self.case.tiling.baseK)
        return np.floor(_ub_bytes(self.case, self.name) / block)

    def panels(self, other: "_Operand") -> Pass:
        """Return a pass in chunks of all of K, as many blocks at once as fit beside one other."""
        if self.by_block:
            return self._in_chunks(self.tiles, self.k_steps)
        # A panel is one base block's rows over all of K. As many of them as fit beside one block of
        # the other operand make a chunk; `np.clip` keeps the count sane where not even one fits,
        # since `fits` of the schedule excludes that row anyway.
        panel = self.block_bytes * self.k_steps
        held = np.floor((self.case.chip.l1_bytes - other.block_bytes) / panel)
        held = np.minimum(held, np.floor(self.most_blocks / self.k_steps))
        return self._in_chunks(ceil_div(self.tiles, np.clip(held, 1, self.tiles)), 1)

    def parts(self, other: "_Operand") -> Pass:
        """Return a pass in the longest chunks along K that fit beside one block of the other."""
        if self.by_block:
            return self._in_chunks(self.tiles, self.k_steps)
        held = np.floor((self.case.chip.l1_bytes - other.block_bytes) / self.block_bytes)
        held = np.minimum(held, self.most_blocks)
        return self._in_chunks(self.tiles, ceil_div(self.k_steps, np.clip(held, 1, self.k_steps)))

    def _in_chunks(self, along: Column, along_k: Column) -> Pass:
        case, name, chip = self.case, self.name, self.case.chip
        stored, count = Stored.of(case.problem, name), along * along_k
        chunk = stored.transfer(chip, self.extent / along, self.k / along_k)
        size = self.extent * self.k * (stored.kind.bits / 8)
        step = ceil_div(self.tiles, along) * self.base
        starts = _starts(
            case, case.tiling, name, self.extent, self.k, along=along, along_k=along_k, step=step
        )
        return Pass.of(chip, count, chunk, self.memory, size, starts)


def _ub_bytes(case: RuleCase, operand: str) -> float:
    """Return how many bytes of an operand one step may be on its path through UB, if it has one."""
    through = converts_in_ub(case) and getattr(case.problem, f"format_{operand}") != "NZ"
    return case.chip.ub_user_bytes if through else np.inf


def _loads_of_blocks(case: RuleCase) -> list[LoadPasses]:
    """Return the load schedules: one operand in panels of all of K, or both, or neither."""
    t, size, w = case.tiling, case.chip.l1_bytes, tile_counts(case.tiling)
    k = align_up(t.baseK, case.k_align)
    a_block = case.a.bytes_of(align_up(t.baseM, case.row_align) * k)
    b_block = case.b.bytes_of(align_up(t.baseN, case.column_align) * k)

    a = _Operand(case, "a", w.m, t.baseM, w.m_tiles, a_block, w.k, w.k_steps)
    b = _Operand(case, "b", w.n, t.baseN, w.n_tiles, b_block, w.k, w.k_steps)
    a_whole, b_whole = a.panels(b), b.panels(a)
    a_parts, b_parts = a.parts(b), b.parts(a)
    a_panel, b_panel = a_block * w.k_steps, b_block * w.k_steps
    a_fits, b_fits = w.k_steps <= a.most_blocks, w.k_steps <= b.most_blocks
    # Both are loaded once where all of one fits beside a panel of the other.
    once = (a_panel * w.m_tiles + b_panel <= size) | (b_panel * w.n_tiles + a_panel <= size)
    a_beside = np.clip(np.floor((size - b_panel) / a_panel), 1, w.m_tiles)
    b_beside = np.clip(np.floor((size - a_panel) / b_panel), 1, w.n_tiles)
    b_again = np.where(once, 1, ceil_div(w.m_tiles, a_beside))
    a_again = np.where(once, 1, ceil_div(w.n_tiles, b_beside))
    both = (a_panel + b_panel <= size) & a_fits & b_fits
    return [
        LoadPasses(both, a_whole, b_whole, (a_again, 1)),
        LoadPasses(both, a_whole, b_whole, (1, b_again)),
        LoadPasses(a_fits & (a_panel + b_block <= size), a_whole, b_parts, (1, w.m_tiles)),
        LoadPasses(b_fits & (b_panel + a_block <= size), a_parts, b_whole, (w.n_tiles, 1)),
        LoadPasses(True, a_parts, b_parts, (w.n_tiles, w.m_tiles)),
    ]
