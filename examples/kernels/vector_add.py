"""z = x + y in float32, synchronised in three ways.

Every block (an AIV) adds an equal share of the vectors in tiles that fit UB; the last tile of a
share may be shorter. Shapes: x, y, z are [n], n a multiple of 8 times the blocks.

* `add_joined` lets every step wait for all pipes, as the ``_sync`` forms do: one line per step.
* `add_flagged` raises a flag between pipes where bytes change hands. One buffer: loading the next
  tile waits until this one is added.
* `add_doubled` has two buffers, so that a tile is loaded while the one before is added and the one
  before that is stored. Flags go both ways: data is ready, and a buffer is free again.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Kernel, Pointer, kernel

TILE = 4096
SLOTS = (0, 1)
Vector = NDArray[np.float32]


@kernel(outputs="z", types={"x": "float", "y": "float", "z": "float"})
def add_joined(core: CoreHandle, x: Pointer, y: Pointer, z: Pointer, share: int) -> None:
    """Wait for everything after each step."""
    a, b = core.ubuf("float", TILE), core.ubuf("float", TILE)
    begin = core.block_idx * share
    for first in range(0, share, TILE):
        at, count = begin + first, min(TILE, share - first)
        core.asc_copy_gm2ub(a, x + at, 4 * count)
        core.asc_copy_gm2ub_sync(b, y + at, 4 * count)
        core.asc_add_sync(a, a, b, count)
        core.asc_copy_ub2gm_sync(z + at, a, 4 * count)


@kernel(outputs="z", types={"x": "float", "y": "float", "z": "float"})
def add_flagged(core: CoreHandle, x: Pointer, y: Pointer, z: Pointer, share: int) -> None:
    """Order the pipes by flags, on one set of buffers."""
    a, b, c = (core.ubuf("float", TILE) for _ in range(3))
    begin = core.block_idx * share
    core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)  # a and b are free
    core.asc_sync_notify("PIPE_MTE3", "PIPE_V", 0)  # c is free
    for first in range(0, share, TILE):
        at, count = begin + first, min(TILE, share - first)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)
        core.asc_copy_gm2ub(a, x + at, 4 * count)
        core.asc_copy_gm2ub(b, y + at, 4 * count)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", 0)
        core.asc_add(c, a, b, count)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(z + at, c, 4 * count)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)
    core.asc_sync_wait("PIPE_MTE3", "PIPE_V", 0)


@kernel(outputs="z", types={"x": "float", "y": "float", "z": "float"})
def add_doubled(core: CoreHandle, x: Pointer, y: Pointer, z: Pointer, share: int) -> None:
    """Order the pipes by flags, on two sets of buffers in turn."""
    a, b, c = ([core.ubuf("float", TILE) for _ in SLOTS] for _ in range(3))
    begin = core.block_idx * share
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for tile, first in enumerate(range(0, share, TILE)):
        slot, at, count = tile % 2, begin + first, min(TILE, share - first)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_copy_gm2ub(a[slot], x + at, 4 * count)
        core.asc_copy_gm2ub(b[slot], y + at, 4 * count)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        core.asc_add(c[slot], a[slot], b[slot], count)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        core.asc_copy_ub2gm(z + at, c[slot], 4 * count)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)


KERNELS = (add_joined, add_flagged, add_doubled)


def inputs(n: int, seed: int = 1) -> tuple[Vector, Vector]:
    """Return x and y, [n]."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)


def small() -> tuple[Vector, Vector]:
    """Return inputs that are quick to try: three tiles a block, the last a short one."""
    return inputs(2 * (2 * TILE + 64))


def launch(x: Vector, y: Vector, blocks: int = 2, add: Kernel = add_doubled) -> Vector:
    """Return x + y."""
    z = np.empty_like(x)
    add[blocks](x, y, z, x.size // blocks)
    return z


def reference(x: Vector, y: Vector) -> NDArray[np.float64]:
    """Return x + y in float64."""
    return x.astype(np.float64) + y


def tolerance(x: Vector, y: Vector) -> NDArray[np.float64]:
    """One rounding to float32: half a unit in the last place."""
    return np.abs(reference(x, y)) * 2.0**-24


def main() -> None:
    """Add 2.6 million elements on 40 blocks, in each way."""
    x, y = inputs(40 * 16 * TILE)
    for add in KERNELS:
        error = np.abs(launch(x, y, 40, add) - reference(x, y))
        assert (error <= tolerance(x, y)).all(), f"{add.name}: off by up to {error.max():.3g}"
        print(f"{add.name}: {x.size:,} sums, off by at most {error.max():.3g}")


if __name__ == "__main__":
    main()
