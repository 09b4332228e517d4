"""Transpose a matrix of halves.

Blocks (AIVs) take tiles of 128 x 128 in turn. A tile is loaded row by row into UB, two buffers
taking turns. There it is transposed in squares of 16 x 16: one instruction takes sixteen rows and
walks along them, 16 columns a step, writing down the columns of the transposed tile. Its addresses
stand in the VA registers: VA0 and VA1 those of dst's blocks, VA2 and VA3 those of src's.

Shapes: x is [rows, columns], y is [columns, rows], both multiples of 128.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

EDGE = 128
SQUARE = 16
BLOCK = 16  # halves of 32 bytes
STEPS = EDGE // SQUARE
SLOTS = (0, 1)
Half = NDArray[np.float16]


@kernel(outputs="y", types={"x": "half", "y": "half"})
def transpose(core: CoreHandle, x: Pointer, y: Pointer, rows: int, columns: int) -> None:
    """Transpose every block_num-th tile."""
    given, made = ([core.ubuf("half", EDGE * EDGE) for _ in SLOTS] for _ in range(2))
    across = columns // EDGE
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for turn, tile in enumerate(range(core.block_idx, rows // EDGE * across, core.block_num)):
        slot, top, left = turn % 2, tile // across * EDGE, tile % across * EDGE
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        gap = (columns - EDGE) // BLOCK
        core.asc_copy_gm2ub(given[slot], x + (top * columns + left), EDGE, STEPS, gap, 0)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        for step in range(STEPS):
            src = [given[slot] + (step * SQUARE + i) * EDGE for i in range(SQUARE)]
            dst = [made[slot] + i * EDGE + step * SQUARE for i in range(SQUARE)]
            for register, half in enumerate((dst[:8], dst[8:], src[:8], src[8:])):
                core.asc_set_va_reg(register, half)
            core.asc_transto5hd_b16(0, 2, STEPS, SQUARE * EDGE // BLOCK, SQUARE // BLOCK)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        gap = (rows - EDGE) // BLOCK
        core.asc_copy_ub2gm(y + (left * rows + top), made[slot], EDGE, STEPS, 0, gap)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)


KERNELS = (transpose,)


def inputs(rows: int, columns: int, seed: int = 1) -> tuple[Half]:
    """Return x, [rows, columns]."""
    return (np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float16),)


def small() -> tuple[Half]:
    """Return an input that is quick to try: six tiles for two blocks."""
    return inputs(2 * EDGE, 3 * EDGE)


def launch(x: Half, blocks: int = 2) -> Half:
    """Return x transposed."""
    rows, columns = x.shape
    y = np.empty((columns, rows), x.dtype)
    transpose[blocks](x, y, rows, columns)
    return y


def reference(x: Half) -> NDArray[np.float64]:
    """Return x transposed, in float64."""
    return x.T.astype(np.float64)


def tolerance(x: Half) -> NDArray[np.float64]:
    """Return no tolerance: nothing is computed."""
    return np.zeros(x.T.shape)


def main() -> None:
    """Transpose 1280 x 1024 on 40 blocks."""
    (x,) = inputs(10 * EDGE, 8 * EDGE)
    assert (launch(x, 40) == x.T).all(), "y is not x transposed"
    print(f"{len(x):,} rows of {x.shape[1]:,} transposed")


if __name__ == "__main__":
    main()
