"""LayerNorm over rows of 256 floats in the registers of Ascend 950's vector unit.

Every block (an AIV) takes an equal share of the rows. A row is four registers, gamma and beta four
each, which stay while the rows go by. The mean is subtracted before the squares are added up, so
that a mean far from 0 costs no digits.

Shapes: x and y are [rows, 256], gamma and beta [256]; rows a multiple of the blocks, at most
MOST_ROWS a block.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel, vector_function

CHIP = "Ascend950PR_9589"
COLUMNS = 256
MOST_ROWS = 64
LANES = 64
PARTS = range(0, COLUMNS, LANES)
EPSILON = 1e-5
Matrix = NDArray[np.float32]


@vector_function
def normalise(
    core: CoreHandle, x: Pointer, gamma: Pointer, beta: Pointer, y: Pointer, rows: int
) -> None:
    """Compute `rows` rows in UB."""
    every = core.asc_create_mask_b32("PAT_ALL")
    row, squares, scale, shift = ([core.vector_float() for _ in PARTS] for _ in range(4))
    mean, deviation, left, right = (core.vector_float() for _ in range(4))

    def mean_of(whole: Any, parts: list[Any]) -> None:
        """Leave the sum of a row over its length, in all lanes."""
        a, b, c, d = parts
        core.asc_add(left, a, b, every)
        core.asc_add(right, c, d, every)
        core.asc_add(left, left, right, every)
        core.asc_reduce_sum(whole, left, every)
        core.asc_mul_scalar(whole, whole, 1 / COLUMNS, every)
        core.asc_duplicate(whole, whole, every)

    for part, at in enumerate(PARTS):
        core.asc_loadalign(scale[part], gamma + at)
        core.asc_loadalign(shift[part], beta + at)
    for begin in range(0, rows * COLUMNS, COLUMNS):
        for part, at in zip(row, PARTS, strict=True):
            core.asc_loadalign(part, x + (begin + at))
        mean_of(mean, row)
        for part, square in zip(row, squares, strict=True):
            core.asc_sub(part, part, mean, every)
            core.asc_mul(square, part, part, every)
        mean_of(deviation, squares)
        core.asc_add_scalar(deviation, deviation, EPSILON, every)
        core.asc_sqrt(deviation, deviation, every)
        for index, at in enumerate(PARTS):
            core.asc_div(row[index], row[index], deviation, every)
            core.asc_mul(row[index], row[index], scale[index], every)
            core.asc_add(row[index], row[index], shift[index], every)
            core.asc_storealign(y + (begin + at), row[index], every)


@kernel(outputs="y", types=dict.fromkeys(("x", "gamma", "beta", "y"), "float"), chip=CHIP)
def reg_layernorm(
    core: CoreHandle, x: Pointer, gamma: Pointer, beta: Pointer, y: Pointer, rows: int
) -> None:
    """Compute `rows` rows on each block."""
    given, made = (core.ubuf("float", MOST_ROWS * COLUMNS) for _ in range(2))
    scale, shift = (core.ubuf("float", COLUMNS) for _ in range(2))
    begin, size = core.block_idx * rows * COLUMNS, 4 * rows * COLUMNS
    core.asc_copy_gm2ub(given, x + begin, size)
    core.asc_copy_gm2ub(scale, gamma, 4 * COLUMNS)
    core.asc_copy_gm2ub(shift, beta, 4 * COLUMNS)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    normalise(core, given, scale, shift, made, rows)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(y + begin, made, size)


KERNELS = (reg_layernorm,)


def inputs(rows: int, seed: int = 1) -> tuple[Matrix, Matrix, Matrix]:
    """Return x, [rows, 256], gamma and beta; the first row of x is far from 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 3, (rows, COLUMNS)).astype(np.float32)
    x[0] += 1000
    gamma, beta = rng.normal(1, 0.2, (2, COLUMNS)).astype(np.float32)
    return x, gamma, beta


def small() -> tuple[Matrix, Matrix, Matrix]:
    """Return inputs that are quick to try."""
    return inputs(2 * 24)


def launch(x: Matrix, gamma: Matrix, beta: Matrix, blocks: int = 2) -> Matrix:
    """Return every row normalised."""
    y = np.empty_like(x)
    reg_layernorm[blocks](x, gamma, beta, y, len(x) // blocks)
    return y


def reference(x: Matrix, gamma: Matrix, beta: Matrix) -> NDArray[np.float64]:
    """Return every row normalised in float64."""
    wide = x.astype(np.float64)
    apart = wide - wide.mean(axis=1, keepdims=True)
    deviation = np.sqrt((apart**2).mean(axis=1, keepdims=True) + EPSILON)
    return apart / deviation * gamma + beta


def tolerance(x: Matrix, gamma: Matrix, beta: Matrix) -> NDArray[np.float64]:
    """Return a bound in float32: 12 roundings of the mean, and 16 of what is made of differences.

    An error of the mean is as large as the rounding of the largest numbers that it adds up.
    """
    wide = x.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True)
    deviation = np.sqrt(wide.var(axis=1, keepdims=True) + EPSILON)
    exact = reference(x, gamma, beta)
    of_mean = 12 * largest / deviation * np.abs(gamma)
    return (of_mean + 16 * (np.abs(exact) + np.abs(beta))) * 2.0**-24


def main() -> None:
    """Compute 2048 rows on 32 blocks."""
    given = inputs(32 * MOST_ROWS)
    error = np.abs(launch(*given, blocks=32) - reference(*given)) / tolerance(*given)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"{len(given[0]):,} rows: the worst is off by {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
