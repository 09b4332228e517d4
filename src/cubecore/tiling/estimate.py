"""What cuts the solver's search: estimates of what a core split or a base block can come to.

They are quick where the cost is exact: K steps of one plausible length, and the fewest passes over
the operands that L1 could allow. Functions return what to keep, ties in the order given.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import Chip, costs
from cubecore.tiling.candidates import Blocks, Columns
from cubecore.tiling.cost import clients_per_core, lower_bound
from cubecore.tiling.overlap import scalar_step_cycles
from cubecore.tiling.rule_model import Case
from cubecore.tiling.traffic import Stored
from cubecore.units import align_up, ceil_div

SPLITS_KEPT, BLOCKS_KEPT = 24, 128


def smallest(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the positions of the `count` smallest values, in ascending order; ties by position."""
    if len(values) > count:
        near = np.nonzero(values <= np.partition(values, count)[count])[0]
    else:
        near = np.arange(len(values))
    return np.asarray(near[np.argsort(values[near], kind="stable")[:count]])


def best_splits(case: Case, splits: Columns) -> Columns:
    """Keep the splits with the least estimate: Cube, bytes into L1, bytes out, the fullest core."""
    if len(splits) <= SPLITS_KEPT:
        return splits
    problem, chip = case.problem, case.chip
    m, n, k = (getattr(splits, f"singleCore{x}") * 1.0 for x in "MNK")
    cube = costs.mad_cycles(chip, case.a, m, n, k, hf32=problem.hf32)
    rate = chip.gm_to_l1_bytes_per_cycle or chip.l2_read_bytes_per_cycle or 1
    loaded = (case.a.bytes_of(m * k) + case.b.bytes_of(n * k)) / rate
    written = costs.l0c_to_gm_cycles(chip, m, problem.c_type.bytes_of(m * n))
    most = np.maximum(np.maximum(cube, loaded), written)
    clients = clients_per_core(splits, problem, chip)
    return splits.take(smallest(clients * (most + 1e-3 * (cube + loaded)), SPLITS_KEPT))


def _estimate(case: Case, blocks: Blocks) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return cycles on the fullest core for each base block, and of its edges.

    The edges are the first block's load and the last tile.
    """
    t, chip, problem = blocks.columns, case.chip, case.problem
    m = np.minimum(t.singleCoreM, t.M).astype(float)
    n, k = np.minimum(t.singleCoreN, t.N).astype(float), t.singleCoreK * 1.0
    m_tiles, n_tiles, k_steps = ceil_div(m, t.baseM), ceil_div(n, t.baseN), ceil_div(k, t.baseK)
    tiles = m_tiles * n_tiles
    steps = tiles * k_steps
    mte2 = _least_loads(case, blocks)
    a, b = case.a.bytes_of(m * k), case.b.bytes_of(n * k)
    cube = costs.mad_cycles(chip, case.a, m, n, k, hf32=problem.hf32)
    cube = cube + steps * (chip.mad_queued_cycles or 0)
    heads = (chip.l1_to_l0_head_cycles or 0) + (chip.l1_to_l0_queued_cycles or 0)
    mte1 = costs.l1_to_l0a_cycles(chip, a * n_tiles) + costs.l1_to_l0b_cycles(chip, b * m_tiles)
    mte1 = mte1 + steps * heads
    stage = np.where(t.dbL0A == 2, np.maximum(mte1 + cube / steps, cube), mte1 + cube)
    fix = tiles * costs.l0c_to_gm_cycles(chip, m / m_tiles, problem.c_type.bytes_of(m * n) / tiles)
    chain = np.where(t.dbL0C == 2, np.maximum(stage + fix / tiles, fix), stage + fix)
    scalar = steps * scalar_step_cycles(problem, chip)
    first = case.a.bytes_of(np.minimum(t.baseM, m)) + case.b.bytes_of(np.minimum(t.baseN, n))
    rate = chip.gm_to_l1_bytes_per_cycle or chip.l2_read_bytes_per_cycle or 1
    edges = first * np.minimum(t.baseK, k) / rate
    clients = clients_per_core(t, problem, chip)
    busy = np.maximum(np.maximum(chain, scalar), mte2) + edges
    return clients * busy, edges + chain / tiles


def _least_loads(case: Case, blocks: Blocks) -> Any:
    """Return MTE2's cycles with the fewest passes over A and B that L1 could allow.

    One is read once, by itself or in panels of all K; the other once for each panel or part of the
    first that L1 holds; or each is read again for every tile of the other axis. Only whether a
    panel fits beside two blocks of the other operand depends on baseK.
    """
    t, size = blocks.pairs, case.chip.l1_user_bytes
    m = np.minimum(t.singleCoreM, t.M).astype(float)
    n, k = np.minimum(t.singleCoreN, t.N).astype(float), t.singleCoreK * 1.0
    m_tiles, n_tiles = ceil_div(m, t.baseM), ceil_div(n, t.baseN)
    a, b = case.a.bytes_of(m * k), case.b.bytes_of(n * k)
    rows, columns = align_up(t.baseM, case.row_align), align_up(t.baseN, case.column_align)
    a_panel, b_panel = case.a.bytes_of(rows * k), case.b.bytes_of(columns * k)
    both = a_panel + b_panel <= size
    b_again = np.where(a <= size, 1, np.where(both, ceil_div(a, size), m_tiles))
    a_again = np.where(b <= size, 1, np.where(both, ceil_div(b, size), n_tiles))
    latencies = _latencies(case.chip, t, a_panel, b_panel)
    first_a, again_a = _pass_cycles(case, "a", (t.baseM, m, m_tiles), k, latencies)
    first_b, again_b = _pass_cycles(case, "b", (t.baseN, n, n_tiles), k, latencies)
    most = again_a * (n_tiles - 1) + again_b * (m_tiles - 1)
    a_stays, b_stays = again_b * (b_again - 1), again_a * (a_again - 1)
    pair, base_k = blocks.pair, blocks.columns.baseK
    a_fits = a_panel[pair] + 2 * case.b.bytes_of(columns[pair] * base_k) <= size
    b_fits = b_panel[pair] + 2 * case.a.bytes_of(rows[pair] * base_k) <= size
    more = np.minimum(
        np.where(a_fits, a_stays[pair], most[pair]), np.where(b_fits, b_stays[pair], most[pair])
    )
    return (first_a + first_b)[pair] + more


def _latencies(chip: Chip, t: Columns, a_panel: Any, b_panel: Any) -> tuple[Any, Any]:
    """Return the latency of an operand's first pass and of a later one, which L2 may serve."""
    near, far = chip.l2_latency_cycles or 0, chip.hbm_latency_cycles or 0
    touched = a_panel * ceil_div(t.M, t.singleCoreM) + b_panel * ceil_div(t.N, t.singleCoreN)
    missing = 1 - np.exp(-touched / chip.l2_bytes) if chip.l2_bytes else 1.0
    return far, near + missing * (far - near)


def _pass_cycles(
    case: Case, operand: str, axis: tuple[Any, Any, Any], k: Any, latencies: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Return MTE2's cycles to read an operand in chunks that fill a quarter of L1.

    One result for each of the latencies. `axis` is (base block, extent, tiles) along M or N.
    """
    base, extent, tiles = axis
    chip, problem = case.chip, case.problem
    kind = case.a if operand == "a" else case.b
    most = chip.l1_user_bytes * 8 // (4 * kind.bits * base)
    chunks = ceil_div(k, np.maximum(most, 1))
    stored = Stored.of(problem, operand)
    chunk = stored.transfer(chip, extent / tiles, k / chunks)
    shown = 1 - (chip.gm_latency_overlap or 0)
    first, again = (chunk.busy_cycles + chunk.count * shown * latency for latency in latencies)
    return chunks * tiles * first, chunks * tiles * again


def promising_blocks(case: Case, blocks: Blocks) -> NDArray[Any]:
    """Return the positions of the blocks worth a look: least estimate, overall and of each split.

    Where device memory is busy longer than any core, all blocks within its time are equal but for
    the first load and the last tile: those with the least of it are kept too.
    """
    cycles, edges = _estimate(case, blocks)
    start = (case.chip.launch_cycles or 0) + (case.chip.start_cycles or 0)
    floor = lower_bound(case.problem, case.chip) - start
    hidden = np.maximum(cycles, floor) + edges
    kept = [smallest(cycles, BLOCKS_KEPT), smallest(hidden, BLOCKS_KEPT // 4)]
    return np.unique(np.concatenate([*kept, _best_of_each_split(blocks.columns, cycles)]))


def _best_of_each_split(blocks: Columns, cycles: NDArray[Any]) -> NDArray[Any]:
    """Return the positions of every core split's best block, for what the estimate cannot see."""
    single_m, single_n = blocks.singleCoreM, blocks.singleCoreN
    split = single_m * (int(single_n.max()) + 1) + single_n
    heads = split[np.flatnonzero(np.diff(split, prepend=-1))]  # blocks of a split come together
    group = np.searchsorted(np.unique(heads), split)
    least = np.full(int(group.max()) + 1, np.inf)
    np.minimum.at(least, group, cycles)
    best = np.nonzero(cycles == least[group])[0]
    return np.asarray(best[np.unique(group[best], return_index=True)[1]])
