"""The sum of a float32 vector.

Every block (an AIV) sums an equal share: tiles of TILE elements are added lane by lane onto one
accumulating tile, two buffers taking turns; in the end the accumulator is summed in two steps (64
lanes to one, and the 64 results to one). The blocks add what they have to one word of global memory
by atomic stores, in no particular order.

Shapes: x is [n], n a multiple of TILE times the blocks; the sum is [8], in its first element, since
a copy moves 32 bytes.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

TILE = 4096
LANES = 64
SLOTS = (0, 1)
ALL = 2**64 - 1
Vector = NDArray[np.float32]


@kernel(types={"x": "float", "total": "float"})
def add_up(core: CoreHandle, x: Pointer, total: Pointer, share: int) -> None:
    """Add the sum of a share to the total."""
    tiles = [core.ubuf("float", TILE) for _ in SLOTS]
    sums, partial, result = (
        core.ubuf("float", TILE),
        core.ubuf("float", LANES),
        core.ubuf("float", 8),
    )
    core.asc_duplicate(sums, 0.0, TILE)
    for slot in SLOTS:
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
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
    core.asc_duplicate(result, 0.0, 8)
    core.asc_set_vector_mask(ALL, ALL)
    core.asc_sync_pipe("PIPE_V")
    core.asc_repeat_reduce_sum(partial, sums, TILE // LANES, 1, 1, 8)
    core.asc_sync_pipe("PIPE_V")
    core.asc_repeat_reduce_sum(result, partial, 1, 1, 1, 8)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_set_atomic_add_float()
    core.asc_copy_ub2gm(total, result, 32)
    core.asc_set_atomic_none()


KERNELS = (add_up,)


def inputs(n: int, seed: int = 1) -> tuple[Vector]:
    """Return x, [n]: whole numbers, whose sums are exact in float32 while they stay under 2^24."""
    return (np.random.default_rng(seed).integers(-99, 100, n).astype(np.float32),)


def small() -> tuple[Vector]:
    """Return an input that is quick to try: three tiles a block."""
    return inputs(2 * 3 * TILE)


def launch(x: Vector, blocks: int = 2) -> Vector:
    """Return the sum of x in the first of eight elements."""
    total = np.zeros(8, np.float32)
    add_up[blocks](x, total, x.size // blocks)
    return total


def reference(x: Vector) -> NDArray[np.float64]:
    """Return the sum in float64, and seven zeros."""
    return np.array([x.sum(dtype=np.float64), *[0.0] * 7])


def tolerance(_x: Vector) -> NDArray[np.float64]:
    """Return no tolerance: sums of whole numbers are exact, in whatever order."""
    return np.zeros(8)


def main() -> None:
    """Sum 5.2 million elements on 40 blocks."""
    (x,) = inputs(40 * 32 * TILE)
    got, want = launch(x, 40), reference(x)
    assert (got == want).all(), f"the sum must be {want[0]:.0f}, got {got[0]:.0f}"
    print(f"the sum of {x.size:,} elements is {got[0]:.0f}")


if __name__ == "__main__":
    main()
