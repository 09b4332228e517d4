"""Python kernels that do what C++ examples do, where `examples/kernels` has none."""

import numpy as np

from cubecore import CoreHandle, Pointer, kernel

TILE = 4096
LANES = 64
BINS = 16
ALL = 2**64 - 1
ALL_AIVS = 11
"""The flag that the class API keeps for SyncAll on the AIVs."""


@kernel(outputs=("partial", "total"), types={"x": "float", "partial": "float", "total": "float"})
def add_up_together(core: CoreHandle, x: Pointer, partial: Pointer, total: Pointer, share: int):
    """Add up a share, wait for all, and add up the shares on the first block."""
    tiles = [core.ubuf("float", TILE) for _ in range(2)]
    sums, lanes, one, every = (core.ubuf("float", n) for n in (TILE, LANES, 8, 8 * 64))
    core.asc_duplicate(sums, 0.0, TILE)
    core.asc_duplicate(one, 0.0, 8)
    for slot in range(2):
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
    for tile in range(share // TILE):
        slot = tile % 2
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_copy_gm2ub(tiles[slot], x + (core.block_idx * share + tile * TILE), 4 * TILE)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_pipe("PIPE_V")
        core.asc_add(sums, sums, tiles[slot], TILE)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
    for slot in range(2):
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
    core.asc_sync_pipe("PIPE_V")
    core.asc_set_vector_mask(0, ALL)
    core.asc_repeat_reduce_sum(lanes, sums, TILE // LANES, 1, 1, 8)
    core.asc_sync_pipe("PIPE_V")
    core.asc_repeat_reduce_sum(one, lanes, 1, 1, 1, 8)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(partial + 8 * core.block_idx, one, 32)
    core.asc_sync_pipe("PIPE_ALL")
    core.asc_sync_inter_arrive("PIPE_MTE3", ALL_AIVS)
    core.asc_sync_inter_wait("PIPE_S", ALL_AIVS)
    if core.block_idx:
        return
    core.asc_copy_gm2ub(every, partial, 32 * core.block_num)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    for block in range(1, core.block_num):
        core.asc_sync_pipe("PIPE_V")
        core.asc_add(every, every, every + 8 * block, 8)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(total, every, 32)


@kernel(types={"x": "int32_t", "counts": "int32_t"})
def histogram(core: CoreHandle, x: Pointer, counts: Pointer, share: int):
    """Count every number that is a bin's."""
    given, bins = core.ubuf("int32_t", TILE), core.ubuf("int32_t", 8 * BINS)
    core.asc_copy_gm2ub(given, x + core.block_idx * share, 4 * share)
    core.asc_duplicate(bins, 0, 8 * BINS)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_S", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_S", 0)
    for at in range(share):
        number = given[at]
        if 0 <= number < BINS:
            core.asc_sync_pipe("PIPE_V")
            core.asc_add_scalar(bins + 8 * number, bins + 8 * number, 1, 8)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_set_atomic_add_int()
    core.asc_copy_ub2gm(counts, bins, 32 * BINS)
    core.asc_set_atomic_none()


def numbers(n: int) -> np.ndarray:
    """Return numbers of which some are no bin's."""
    return np.random.default_rng(3).integers(-3, BINS + 3, n).astype(np.int32)
