"""Softmax over rows of 512 halves, computed in float32.

Every block (an AIV) takes an equal share of the rows, ROWS of them at a time, two buffers taking
turns. A row's extreme and its sum are found by three reductions of blocks, since 512 = 8^3; the
results, one for each row, are broadcast to a block each, which a stride of 0 then lets meet the
whole row.

Shapes: x and y are [rows, 512], rows a multiple of ROWS times the blocks.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

COLUMNS = 512
ROWS = 16
LANES = 64  # floats of a repeat
PITCH = COLUMNS // 8  # blocks of 8 floats from row to row
TILE = ROWS * COLUMNS
REPEATS = TILE // LANES
SLOTS = (0, 1)
ALL = 2**64 - 1
Half = NDArray[np.float16]


@kernel(outputs="y", types={"x": "half", "y": "half"})
def softmax(core: CoreHandle, x: Pointer, y: Pointer, rows: int) -> None:
    """Compute `rows` rows."""
    given, made = ([core.ubuf("half", TILE) for _ in SLOTS] for _ in range(2))
    wide, eighth = core.ubuf("float", TILE), core.ubuf("float", TILE // 8)
    few, one, spread = (core.ubuf("float", n) for n in (TILE // 64, ROWS, ROWS * 8))
    begin = core.block_idx * rows * COLUMNS
    core.asc_set_vector_mask(ALL, ALL)
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for tile in range(rows // ROWS):
        slot, at = tile % 2, begin + tile * TILE
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_copy_gm2ub(given[slot], x + at, 2 * TILE)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_pipe("PIPE_V")
        core.asc_half2float(wide, given[slot], REPEATS, 1, 1, 8, 4)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        # subtract each row's largest
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_max(eighth, wide, REPEATS, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_max(few, eighth, REPEATS // 8, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_max(one, few, REPEATS // 64, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_brcb(spread.cast("uint32"), one.cast("uint32"), 1, 8, ROWS // 8)
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, COLUMNS, LANES):
            core.asc_sub(wide + part, wide + part, spread, ROWS, 1, 1, 0, PITCH, PITCH, 1)
        core.asc_sync_pipe("PIPE_V")
        core.asc_exp(wide, wide, REPEATS, 1, 1, 8, 8)
        # divide by each row's sum
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_sum(eighth, wide, REPEATS, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_sum(few, eighth, REPEATS // 8, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_sum(one, few, REPEATS // 64, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_brcb(spread.cast("uint32"), one.cast("uint32"), 1, 8, ROWS // 8)
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, COLUMNS, LANES):
            core.asc_div(wide + part, wide + part, spread, ROWS, 1, 1, 0, PITCH, PITCH, 1)
        core.asc_sync_pipe("PIPE_V")
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        core.asc_float2half_rn(made[slot], wide, REPEATS, 1, 1, 4, 8)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        core.asc_copy_ub2gm(y + at, made[slot], 2 * TILE)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)


KERNELS = (softmax,)


def inputs(rows: int, seed: int = 1) -> tuple[Half]:
    """Return x, [rows, 512]; the first row is all one value, the second far from the others."""
    x = np.random.default_rng(seed).normal(0, 4, (rows, COLUMNS)).astype(np.float16)
    x[0], x[1] = 7, x[1] - 60000
    return (x,)


def small() -> tuple[Half]:
    """Return an input that is quick to try: three tiles a block."""
    return inputs(2 * 3 * ROWS)


def launch(x: Half, blocks: int = 2) -> Half:
    """Return the softmax of every row."""
    y = np.empty_like(x)
    softmax[blocks](x, y, len(x) // blocks)
    return y


def reference(x: Half) -> NDArray[np.float64]:
    """Return the softmax of every row in float64."""
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def tolerance(x: Half) -> NDArray[np.float64]:
    """Return a bound: half a unit in the last place of float16, or of its smallest number.

    In float32 the exponential, nine levels of sums and the quotient round: 11 * 2^-24 of a value at
    most, less than a hundredth of the rounding to float16.
    """
    return np.maximum(reference(x) * 2.0**-11, 2.0**-25) * 1.01


def main() -> None:
    """Compute 5120 rows on 40 blocks."""
    (x,) = inputs(40 * 8 * ROWS)
    error = np.abs(launch(x, 40) - reference(x)) / tolerance(x)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"softmax of {len(x):,} rows: the worst is off by {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
