"""What cuts the solver's search: cycles that a core split or a base block cannot do without.

Optimistic where the cost is exact: no transfer has a head or a latency, and L1 holds the most that
it could. Functions return positions or rows to keep, in an order that depends on nothing else.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import costs
from cubecore.tiling.candidates import Columns
from cubecore.tiling.cost import lower_bound
from cubecore.tiling.rule_model import Case
from cubecore.units import ceil_div

SPLITS_KEPT, BLOCKS_KEPT = 40, 128


def smallest(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the positions of the `count` smallest values, in ascending order; ties by position."""
    if len(values) > count:
        near = np.nonzero(values <= np.partition(values, count)[count])[0]
    else:
        near = np.arange(len(values))
    return np.asarray(near[np.argsort(values[near], kind="stable")[:count]])


def best_splits(case: Case, splits: Columns) -> Columns:
    """Keep the splits with the least bound: Cube, bytes into L1, bytes out, on the fullest core."""
    if len(splits) <= SPLITS_KEPT:
        return splits
    problem, chip = case.problem, case.chip
    m, n, k = splits.singleCoreM.astype(float), splits.singleCoreN.astype(float), problem.k
    cube = costs.mad_cycles(chip, case.a, m, n, k)
    rate = chip.gm_to_l1_bytes_per_cycle or chip.l2_read_bytes_per_cycle or 1
    loaded = (case.a.bytes_of(m * k) + case.b.bytes_of(n * k)) / rate
    written = costs.l0c_to_gm_cycles(chip, m, problem.c_type.bytes_of(m * n))
    bound = np.maximum(np.maximum(cube, loaded), written)
    return splits.take(smallest(bound + 1e-3 * (cube + loaded + written), SPLITS_KEPT))


def _block_bound(case: Case, blocks: Columns) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return cycles of a base block with the least conceivable traffic into L1, and of its edges.

    An operand is read once if it, or panels of it beside panels of the other, can stay in L1. The
    edges are the first block's load and the last tile.
    """
    t, chip, problem = blocks, case.chip, case.problem
    m = np.minimum(t.singleCoreM, t.M).astype(float)
    n, k = np.minimum(t.singleCoreN, t.N).astype(float), float(problem.k)
    m_tiles, n_tiles, k_steps = ceil_div(m, t.baseM), ceil_div(n, t.baseN), ceil_div(k, t.baseK)
    tiles = m_tiles * n_tiles
    steps = tiles * k_steps
    a, b = case.a.bytes_of(m * k), case.b.bytes_of(n * k)
    size = chip.l1_user_bytes
    a_panel, b_panel = case.a.bytes_of(t.baseM * k), case.b.bytes_of(t.baseN * k)
    both = a_panel + b_panel <= size
    b_again = np.where(a <= size, 1, np.where(both, ceil_div(a, size), m_tiles))
    a_again = np.where(b <= size, 1, np.where(both, ceil_div(b, size), n_tiles))
    loaded = np.minimum(
        np.where(a_panel <= size, a + b * b_again, a * n_tiles + b * m_tiles),
        np.where(b_panel <= size, b + a * a_again, a * n_tiles + b * m_tiles),
    )
    rate = chip.gm_to_l1_bytes_per_cycle or chip.l2_read_bytes_per_cycle or 1
    mte2 = loaded / rate
    cube = costs.mad_cycles(chip, case.a, m, n, k) + steps * (chip.mad_queued_cycles or 0)
    heads = (chip.l1_to_l0_head_cycles or 0) + (chip.l1_to_l0_queued_cycles or 0)
    mte1 = costs.l1_to_l0a_cycles(chip, a * n_tiles) + costs.l1_to_l0b_cycles(chip, b * m_tiles)
    mte1 = mte1 + steps * heads
    stage = np.where(t.dbL0A == 2, np.maximum(mte1 + cube / steps, cube), mte1 + cube)
    fix = tiles * costs.l0c_to_gm_cycles(chip, m / m_tiles, problem.c_type.bytes_of(m * n) / tiles)
    chain = np.where(t.dbL0C == 2, np.maximum(stage + fix / tiles, fix), stage + fix)
    scalar = steps * (chip.scalar_step_cycles or {}).get("MDL", 0)
    first = case.a.bytes_of(np.minimum(t.baseM, m)) + case.b.bytes_of(np.minimum(t.baseN, n))
    edges = first * np.minimum(t.baseK, k) / rate
    return np.maximum(np.maximum(chain, scalar), mte2) + edges, edges + chain / tiles


def promising_blocks(case: Case, blocks: Columns) -> NDArray[Any]:
    """Return the positions of the blocks worth a look: least bound, or least edges.

    Where device memory is busy longer than any core, all blocks within its time are equal but for
    the first load and the last tile.
    """
    bound, edges = _block_bound(case, blocks)
    start = (case.chip.launch_cycles or 0) + (case.chip.start_cycles or 0)
    floor = lower_bound(case.problem, case.chip) - start
    hidden = np.maximum(bound, floor) + edges
    both = np.concatenate([smallest(bound, BLOCKS_KEPT), smallest(hidden, BLOCKS_KEPT // 4)])
    return np.unique(both)
