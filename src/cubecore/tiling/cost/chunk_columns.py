"""Columns of tilings that the chunk walk reads: loads of the operands, work of the pipes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.aliases import Column
from cubecore.chips import costs
from cubecore.tiling.cost.closed_form import (
    clients_per_core,
    inner_pipes,
    matrices_per_core,
    start_cycles,
    stored_bytes,
    written_back,
)
from cubecore.tiling.cost.pipe_overlap import head_waits, scalar_cycles
from cubecore.tiling.cost.tile_counts import TileCounts, tile_counts
from cubecore.tiling.cost.traffic import first_and_later_loads, loads_behind
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import FRACTAL_ROWS, ceil_div

Floats = NDArray[np.float64]

TURNS = 2
"""Blocks of C that are walked where a core computes several in turn."""
OPERAND = (
    *("count", "passes", "single", "transfers", "first_cycles", "first_arrival", "first_served"),
    *("later_cycles", "later_arrival", "later_served"),
    *("next_cycles", "next_arrival", "next_served", "next_size", "next_tile"),
    *("tiles", "tile", "chunks", "chunk", "k_chunks", "k_chunk"),
)
"""Of an operand; `tile`, `chunk` and `k_chunk` are the sizes of all but the last over the mean.

`first` is the first pass over it, `next` the first one of a block of C behind another, which is as
long as that but for a factor `size`, and `tile` in whole fractals.
"""
_SHARED = (
    *("swapped", "inner_tiles", "n_first", "tiles", "k_steps", "parts"),
    *("mte1", "to_l0a", "to_l0b", "m", "fix"),
    *("written", "double", "waits", "pause", "fetched", "clients", "turns", "evenly", "hbm"),
)
COLUMNS = (*(f"{x}_{name}" for x in "ab" for name in OPERAND), *_SHARED)
"""Values of a tiling that its walk needs."""


def chunk_columns(case: RuleCase) -> tuple[Column, ...]:
    """Return of tilings what a walk needs of them: `COLUMNS`, one after the other."""
    t, problem, chip = case.tiling, case.problem, case.chip
    w = tile_counts(t)
    pipes, carried = inner_pipes(case, w)
    clients = clients_per_core(t, problem, chip)
    values, hbm, read = _operand_columns(case, w, clients)
    out = written_back(case, problem.batch * read, stored_bytes(problem, w), w.k_blocks)
    n_first = np.equal(t.iterateOrder, 1)
    whole_a, whole_b = w.a.k_chunks == 1, w.b.k_chunks == 1
    # B is asked for first where its chunk stays longer: it holds all of K and A's does not, or N is
    # the outer axis.
    swapped = whole_b & np.logical_not(whole_a & n_first)
    beside = np.equal(t.dbL0C, 2) | problem.shares_unit_flag
    double = np.equal(t.dbL0A, 2) & np.equal(t.dbL0B, 2)
    values += (swapped, np.where(n_first, w.n_tiles, w.m_tiles), n_first, w.tiles, w.k_steps)
    values += (np.maximum(w.a.k_chunks, w.b.k_chunks), pipes["MTE1"] / w.steps)
    values.append(costs.l1_to_l0a_cycles(chip, carried["L1->L0A"]) / w.steps)
    values.append(costs.l1_to_l0b_cycles(chip, carried["L1->L0B"]) / w.steps)
    values += (pipes["M"] / w.steps, pipes["FIX"] / w.tiles)
    values += (out / (w.tiles * clients), double)
    # A part of the bias is fetched for each tile (N first), or for each column of tiles of a chunk
    # (M first).
    rows = np.where(n_first, w.m_tiles, w.a.chunks) * w.n_tiles
    fetched = np.equal(rows, w.tiles) if problem.bias_type is not None else False
    values += (head_waits(case, w), np.logical_not(beside), fetched, clients)
    values += (np.minimum(clients, TURNS), np.not_equal(w.m_blocks, 2))
    return (*values, problem.batch * hbm + out)


def _operand_columns(
    case: RuleCase, w: TileCounts, clients: Column
) -> tuple[list[Column], Column, Column]:
    """Return `OPERAND` of A and of B, the cycles that device memory serves, and the bytes."""
    t, problem, chip = case.tiling, case.problem, case.chip
    values: list[Column] = []
    hbm: Column = 0.0
    read: Column = 0.0
    single = t.depthA1 <= t.stepM * t.stepKa, t.depthB1 <= t.stepN * t.stepKb
    a_axis = _Cut(w.m, t.baseM, w.m_tiles), _Cut(w.m, t.stepM * t.baseM, w.a.chunks)
    b_axis = _Cut(w.n, t.baseN, w.n_tiles), _Cut(w.n, t.stepN * t.baseN, w.b.chunks)
    sizes = (
        _sizes(*a_axis, _Cut(w.k, t.stepKa * t.baseK, w.a.k_chunks)),
        _sizes(*b_axis, _Cut(w.k, t.stepKb * t.baseK, w.b.k_chunks)),
    )
    matrices, tails = matrices_per_core(t, problem, chip), _tails(case, w)
    of_passes = first_and_later_loads(case, w)
    (_, first_of_a, _), (_, first_of_b, _) = of_passes
    behind = loads_behind(case, w, first_of_a, first_of_b, matrices)
    for (passes, first, later), (following, parts), tail, alone, of_operand in zip(
        of_passes, behind, tails, single, sizes, strict=True
    ):
        values += (passes * first.count, passes, alone, first.first_transfers)
        once = np.where(parts, clients, matrices)
        served = [
            costs.hbm_cycles(chip, one.hbm_bytes, one.row_bytes)
            for one in (first, later, following)
        ]
        for one, cycles, cores in zip(
            (first, later, following), served, (once, clients, once), strict=True
        ):
            values += (one.mean_cycles, one.arrival_cycles)
            values.append(problem.batch * cycles / (one.count * cores))
        hbm = hbm + served[0] + (passes - 1) * served[1]
        read = read + first.hbm_bytes + (passes - 1) * later.hbm_bytes
        values += (*tail, *of_operand)
    return values, hbm, read


def _tails(case: RuleCase, w: TileCounts) -> tuple[tuple[Column, Column], ...]:
    """Return how long the last block along M, and along N, is that a client's core computes second.

    Over the others', in elements and in fractals; 1 where the second one is as long as the first.
    """
    if case.problem.launch == "cube":
        return ((1.0, 1.0),) * 2
    t, alone = case.tiling, np.equal(w.m_blocks, 1)
    paired = alone & np.equal(w.n_blocks % 2, 0)
    of_axes = (
        (np.logical_not(alone), t.M, w.m_blocks, t.singleCoreM),
        (paired, t.N, w.n_blocks, t.singleCoreN),
    )
    tails: list[tuple[Column, Column]] = []
    for differs, whole, blocks, share in of_axes:
        last = whole - (blocks - 1) * share
        fractals = ceil_div(last, FRACTAL_ROWS) / ceil_div(share, FRACTAL_ROWS)
        tails.append((np.where(differs, last / share, 1.0), np.where(differs, fractals, 1.0)))
    return tuple(tails)


class _Cut(NamedTuple):
    """An size in blocks: of how many elements each is but the last, and how many there are."""

    extent: Column
    block: Column
    count: Column

    def values(self) -> tuple[Column, Column]:
        """Return how many blocks there are, and the size of all but the last over the mean."""
        return self.count, np.minimum(self.block / self.extent * self.count, self.count)


def _sizes(tiles: _Cut, chunks: _Cut, along_k: _Cut) -> tuple[Column, ...]:
    """Return of an operand's tiles, chunks and chunks along K how many, and how large they are."""
    # A chunk of one tile has a tile's length, whatever the steps say.
    chunks = chunks._replace(block=np.where(chunks.count == tiles.count, tiles.block, chunks.block))
    tiles = tiles._replace(extent=FRACTAL_ROWS * ceil_div(tiles.extent, FRACTAL_ROWS))
    return (*tiles.values(), *chunks.values(), *along_k.values())


def least_cycles(case: RuleCase, columns: dict[str, Floats]) -> Floats:
    """Return cycles that no walk of the tilings falls below: those of their busiest pipe."""
    v, behind = columns, columns["clients"] - 1
    steps = v["clients"] * v["tiles"] * v["k_steps"]
    mte2: Column = 0.0
    scalar: Column = 0.0
    one = scalar_cycles(case.problem, case.chip)
    for x in "ab":
        cycles = mean(v, "cycles", f"{x}_") + behind * mean(v, "cycles", f"{x}_", "next")
        mte2 = mte2 + v[f"{x}_count"] * cycles
        scalar = scalar + v["clients"] * v[f"{x}_count"] * one.load
    scalar = scalar + steps * one.step + v["clients"] * v["tiles"] * one.tile
    busiest = np.maximum(np.maximum(mte2, scalar), steps * np.maximum(v["m"], v["mte1"]))
    return np.asarray(start_cycles(case.chip) + busiest)


def mean(v: dict[str, Floats], name: str, of: str, block: str = "first") -> Floats:
    """Return the mean of an operand's first and later passes, for the first block or a `next`."""
    first, later = v[f"{of}{block}_{name}"], v[f"{of}later_{name}"]
    return np.asarray(later + (first - later) / v[f"{of}passes"])
