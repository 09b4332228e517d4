"""Softmax over rows of 256 floats in the registers of Ascend 950's vector unit.

Every block (an AIV) takes an equal share of the rows. A row is four registers: its maximum and its
sum are reduced over them first, then over the lanes of one, and lane 0 goes to all lanes. No value
leaves the registers between the load of a row and its store.

Shapes: x and y are [rows, 256], rows a multiple of the blocks, at most MOST_ROWS a block.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel, vector_function

CHIP = "Ascend950PR_9589"
COLUMNS = 256
MOST_ROWS = 64
LANES = 64
PARTS = range(0, COLUMNS, LANES)
Matrix = NDArray[np.float32]


@vector_function
def softmax_rows(core: CoreHandle, x: Pointer, y: Pointer, rows: int) -> None:
    """Compute `rows` rows in UB."""
    every = core.asc_create_mask_b32("PAT_ALL")
    row = a, b, c, d = [core.vector_float() for _ in PARTS]
    left, right, whole = (core.vector_float() for _ in range(3))
    for begin in range(0, rows * COLUMNS, COLUMNS):
        for part, at in zip(row, PARTS, strict=True):
            core.asc_loadalign(part, x + (begin + at))

        core.asc_max(left, a, b, every)
        core.asc_max(right, c, d, every)
        core.asc_max(left, left, right, every)
        core.asc_reduce_max(whole, left, every)
        core.asc_duplicate(whole, whole, every)
        for part in row:
            core.asc_exp_sub(part, part, whole, every)

        core.asc_add(left, a, b, every)
        core.asc_add(right, c, d, every)
        core.asc_add(left, left, right, every)
        core.asc_reduce_sum(whole, left, every)
        core.asc_duplicate(whole, whole, every)
        for part in row:
            core.asc_div(part, part, whole, every)

        for part, at in zip(row, PARTS, strict=True):
            core.asc_storealign(y + (begin + at), part, every)


@kernel(outputs="y", types={"x": "float", "y": "float"}, chip=CHIP)
def reg_softmax(core: CoreHandle, x: Pointer, y: Pointer, rows: int) -> None:
    """Compute `rows` rows on each block."""
    given, made = (core.ubuf("float", MOST_ROWS * COLUMNS) for _ in range(2))
    begin, size = core.block_idx * rows * COLUMNS, 4 * rows * COLUMNS
    core.asc_copy_gm2ub(given, x + begin, size)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    softmax_rows(core, given, made, rows)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(y + begin, made, size)


KERNELS = (reg_softmax,)


def inputs(rows: int, seed: int = 1) -> tuple[Matrix]:
    """Return x, [rows, 256]; the first row is all one value."""
    x = np.random.default_rng(seed).normal(0, 3, (rows, COLUMNS)).astype(np.float32)
    x[0] = 7
    return (x,)


def small() -> tuple[Matrix]:
    """Return an input that is quick to try."""
    return inputs(2 * 24)


def launch(x: Matrix, blocks: int = 2) -> Matrix:
    """Return the softmax of every row."""
    y = np.empty_like(x)
    reg_softmax[blocks](x, y, len(x) // blocks)
    return y


def reference(x: Matrix) -> NDArray[np.float64]:
    """Return the softmax of every row in float64."""
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def tolerance(x: Matrix) -> NDArray[np.float64]:
    """Return a bound in float32: a difference, whose error the exponential keeps, and 12 roundings.

    The exponential, eight levels of sums and the quotient round, and values below 2^-126 are 0.
    """
    error = (np.abs(x - x.max(axis=1, keepdims=True)) + 12) * 2.0**-24
    return reference(x) * error + 2.0**-126


def main() -> None:
    """Compute 2048 rows on 32 blocks."""
    (x,) = inputs(32 * MOST_ROWS)
    error = np.abs(launch(x, 32) - reference(x)) / tolerance(x)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"softmax of {len(x):,} rows: the worst is off by {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
