"""Add two vectors of floats in the registers of Ascend 950's vector unit.

Every block (an AIV) takes an equal share. The mask of the last trip lets the elements through that
are left, so that a share may be any number up to MOST.

Shapes: x, y and z are [n], n a multiple of the blocks.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel, vector_function

CHIP = "Ascend950PR_9589"
MOST = 16384
LANES = 64
Vector = NDArray[np.float32]


@vector_function
def add_rows(core: CoreHandle, x: Pointer, y: Pointer, z: Pointer, count: int) -> None:
    """Add `count` elements in UB."""
    a, b, total = (core.vector_float() for _ in range(3))
    left = count
    for at in range(0, count, LANES):
        mask, left = core.asc_update_mask_b32(left)  # left is less by a register's lanes
        core.asc_loadalign(a, x + at)
        core.asc_loadalign(b, y + at)
        core.asc_add(total, a, b, mask)
        core.asc_storealign(z + at, total, mask)


@kernel(outputs="z", types={"x": "float", "y": "float", "z": "float"}, chip=CHIP)
def reg_add(core: CoreHandle, x: Pointer, y: Pointer, z: Pointer, share: int) -> None:
    """Add a share of the elements on each block."""
    a, b, total = (core.ubuf("float", MOST) for _ in range(3))
    begin, size = core.block_idx * share, 4 * share
    core.asc_copy_gm2ub_align(a, x + begin, 1, size, 0, 0, False, 0, 0, 0)
    core.asc_copy_gm2ub_align(b, y + begin, 1, size, 0, 0, False, 0, 0, 0)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    add_rows(core, a, b, total, share)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm_align(z + begin, total, 1, size, 0, 0, 0)


KERNELS = (reg_add,)


def inputs(n: int, seed: int = 1) -> tuple[Vector, Vector]:
    """Return x and y, [n]."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)


def small() -> tuple[Vector, Vector]:
    """Return inputs that are quick to try: the last register of a block is not full."""
    return inputs(2 * 1000)


def launch(x: Vector, y: Vector, blocks: int = 2) -> Vector:
    """Return x + y."""
    z = np.empty_like(x)
    reg_add[blocks](x, y, z, x.size // blocks)
    return z


def reference(x: Vector, y: Vector) -> NDArray[np.float64]:
    """Return x + y in float64."""
    return x.astype(np.float64) + y


def tolerance(x: Vector, y: Vector) -> NDArray[np.float64]:
    """One rounding to float32: half a unit in the last place."""
    return np.abs(reference(x, y)) * 2.0**-24


def main() -> None:
    """Add 524,288 elements on 32 blocks."""
    x, y = inputs(32 * MOST)
    error = np.abs(launch(x, y, 32) - reference(x, y))
    assert (error <= tolerance(x, y)).all(), f"off by up to {error.max():.3g}"
    print(f"reg_add: {x.size:,} sums, off by at most {error.max():.3g}")


if __name__ == "__main__":
    main()
