"""Launches leave no memory behind: what refers back is dropped when they end."""

import gc

import numpy as np

import cubecore
from cubecore.machine.memory.buffers import GlobalMemory


@cubecore.kernel
def doubled(core, x, y):
    tile = core.ubuf("float", 64)
    core.asc_copy_gm2ub_sync(tile, x, 256)
    core.asc_add_sync(tile, tile, tile, 64)
    core.asc_copy_ub2gm_sync(y, tile, 256)


def _memories():
    return sum(isinstance(held, GlobalMemory) for held in gc.get_objects())


def test_global_memory_goes_with_its_launch():
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    gc.collect()
    before = _memories()
    gc.disable()
    try:
        doubled[1](x, y)
        assert _memories() == before
    finally:
        gc.enable()
    assert set(y) == {2}
