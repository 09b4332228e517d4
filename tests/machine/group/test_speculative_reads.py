"""Values of global memory that cores which go first write, in launches without signals.

Each kernel races: the reference engine says which value a core is given.
"""

import numpy as np
import pytest

import cubecore
from machine.group.test_kernels import both

LANES = 16
"""Values of a core: 64 B, a line of the data cache."""
BLOCKS = 6


@cubecore.kernel()
def running_sum(core, x, turns, own):
    """Read a neighbour's sum, perhaps behind one's own store, and store one's own."""
    mine, before = int(core.block_idx), max(int(core.block_idx) - 1, 0)
    for turn in range(turns):
        at = turn * core.block_num * LANES
        if own:
            core.store(x + at + mine * LANES, mine + 1)
        total = core.load(x + at + before * LANES)
        core.store(x + at + mine * LANES, int(total) + mine)


@cubecore.kernel()
def steered(core, x, turns, own):
    """Go another way where the neighbour has been there, and leave a mark."""
    tile, mine = core.ubuf("int32", LANES), int(core.block_idx)
    core.asc_duplicate(tile, 7, LANES)
    core.asc_sync()
    for turn in range(turns):
        at = turn * core.block_num * LANES
        if own:
            core.asc_copy_ub2gm(x + at + mine * LANES, tile, 4 * LANES)
            core.asc_sync()
        if int(core.load(x + at + max(mine - 1, 0) * LANES)) == 7:
            core.asc_add_scalar(tile, tile, 1, LANES)
            core.asc_sync()
        core.asc_copy_ub2gm(x + at + mine * LANES, tile, 4 * LANES)


@cubecore.kernel()
def by_the_last(core, x, turns, own):
    """Read what only the first core writes, behind values of one's own."""
    tile, mine = core.ubuf("int32", LANES), int(core.block_idx)
    core.asc_duplicate(tile, mine + own, LANES)
    core.asc_sync()
    for turn in range(turns):
        core.load(tile)
        if mine == 0:
            core.store(x + turn * LANES, 5)
        if int(core.load(x + turn * LANES)) == 5:
            core.store(x + (mine + turn) * LANES + 1, 9)


@cubecore.kernel()
def own_share(core, x, turns, own):
    """Read and write one's own share alone, which is no race."""
    mine = int(core.block_idx) * turns * LANES
    for turn in range(turns):
        value = int(core.load(x + mine + turn * LANES))
        core.store(x + mine + (turn + own) % turns * LANES, value + 1)


@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("kernel", [running_sum, steered, by_the_last, own_share])
def test_a_value_is_that_of_each_cores_turn(kernel, turns, own):
    x = np.arange(BLOCKS * turns * LANES, dtype=np.int32) % 5
    done, _ = both(kernel, BLOCKS, (x,), turns, own)
    assert done.clean == (kernel is own_share)


@cubecore.kernel()
def late(core, x, turns):
    """Read what the first core writes long after that, behind values of its own."""
    tile, mine = core.ubuf("int32", LANES), int(core.block_idx)
    core.asc_duplicate(tile, 1, LANES)
    core.asc_sync()
    first = int(core.load(x))
    for _ in range(turns):
        core.asc_add_scalar(tile, tile, first, LANES)
        core.asc_sync()
        core.load(tile)
    core.asc_copy_ub2gm(x + mine * LANES, tile, 4 * LANES)


def test_a_value_that_was_given_before_anything_showed_is_kept():
    """A race that nothing has shown has one of its outcomes, and lockstep itself finds it."""
    x = np.full(BLOCKS * LANES, 2, np.int32)
    done = late.using(engine="lockstep")[BLOCKS](x, 3)
    assert done.engine == "lockstep"
    assert {finding.id for finding in done.findings} == {"race-raw"}
    sums = [1 + 3 * first for first in (2, 1 + 3 * 2)]
    assert all(np.isin(row, sums).all() for row in x.reshape(BLOCKS, LANES))
    assert np.all(x[:LANES] == sums[0])
