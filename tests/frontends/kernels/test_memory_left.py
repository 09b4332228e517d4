"""Launches leave no memory behind: what refers back is dropped when they end."""

import gc

import numpy as np

import cubecore
from cubecore.machine.group.lockstep_group import LockstepGroup
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.places import MemoryStack


@cubecore.kernel
def doubled(core, x, y):
    tile = core.ubuf("float", 64)
    core.asc_copy_gm2ub_sync(tile, x, 256)
    core.asc_add_sync(tile, tile, tile, 64)
    core.asc_copy_ub2gm_sync(y, tile, 256)


@cubecore.kernel
def parted(core, x, y):
    tile = core.ubuf("float", 64)
    core.asc_copy_gm2ub_sync(tile, x + 64 * core.block_idx, 256)
    if tile[0] > 1:
        core.asc_add_sync(tile, tile, tile, 64)
    core.asc_copy_ub2gm_sync(y + 64 * core.block_idx, tile, 256)


def _held(*kinds):
    return sum(isinstance(held, kinds) for held in gc.get_objects())


def test_global_memory_goes_with_its_launch():
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    gc.collect()
    before = _held(GlobalMemory)
    gc.disable()
    try:
        doubled[1](x, y)
        assert _held(GlobalMemory) == before
    finally:
        gc.enable()
    assert set(y) == {2}


def test_groups_that_part_go_with_their_launch():
    x, y = np.repeat(np.float32([1, 2]), 64), np.zeros(128, np.float32)
    gc.collect()
    before = _held(LockstepGroup, MemoryStack)
    gc.disable()
    try:
        parted[2](x, y)
        assert _held(LockstepGroup, MemoryStack) == before
    finally:
        gc.enable()
    assert y.tolist() == [1] * 64 + [4] * 64
