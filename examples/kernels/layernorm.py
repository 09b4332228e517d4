"""Layer normalisation over rows of 512 halves, computed in float32.

y = (x - mean) / sqrt(variance + EPSILON) * gamma + beta, mean and variance of each row, gamma and
beta of each column. The variance is that of the differences from the mean: the difference of the
mean of squares and the square of the mean would lose what large rows have in common.

Every block (an AIV) takes an equal share of the rows, ROWS of them at a time, two buffers taking
turns; gamma and beta stay in UB. A row's sums are found by three reductions of blocks, since
512 = 8^3, and broadcast to a block each.

Shapes: x and y are [rows, 512], rows a multiple of ROWS times the blocks; gamma and beta are [512].
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

COLUMNS = 512
ROWS = 16
EPSILON = 1e-5
LANES = 64  # floats of a repeat
PITCH = COLUMNS // 8  # blocks of 8 floats from row to row
TILE = ROWS * COLUMNS
REPEATS = TILE // LANES
SPREAD = ROWS * 8 // LANES  # repeats of one block for each row
SLOTS = (0, 1)
ALL = 2**64 - 1
Half = NDArray[np.float16]
Vector = NDArray[np.float32]
TYPES = {"x": "half", "gamma": "float", "beta": "float", "y": "half"}


def row_sums(core: CoreHandle, one: Pointer, few: Pointer, eighth: Pointer, wide: Pointer) -> None:
    """Sum every row of `wide` into `one`."""
    core.asc_sync_pipe("PIPE_V")
    core.asc_datablock_reduce_sum(eighth, wide, REPEATS, 1, 1, 8)
    core.asc_sync_pipe("PIPE_V")
    core.asc_datablock_reduce_sum(few, eighth, REPEATS // 8, 1, 1, 8)
    core.asc_sync_pipe("PIPE_V")
    core.asc_datablock_reduce_sum(one, few, REPEATS // 64, 1, 1, 8)
    core.asc_sync_pipe("PIPE_V")


def spread_means(core: CoreHandle, spread: Pointer, sums: Pointer) -> None:
    """Divide each row's sum by the columns, and write it eight times."""
    core.asc_brcb(spread.cast("uint32"), sums.cast("uint32"), 1, 8, ROWS // 8)
    core.asc_sync_pipe("PIPE_V")
    core.asc_mul_scalar(spread, spread, 1 / COLUMNS, SPREAD, 1, 1, 8, 8)
    core.asc_sync_pipe("PIPE_V")


@kernel(outputs="y", types=TYPES)
def layernorm(
    core: CoreHandle, x: Pointer, gamma: Pointer, beta: Pointer, y: Pointer, rows: int
) -> None:
    """Normalise `rows` rows."""
    given, made = ([core.ubuf("half", TILE) for _ in SLOTS] for _ in range(2))
    wide, square, eighth = (core.ubuf("float", n) for n in (TILE, TILE, TILE // 8))
    few, one, spread = (core.ubuf("float", n) for n in (TILE // 64, ROWS, ROWS * 8))
    scale, shift = core.ubuf("float", COLUMNS), core.ubuf("float", COLUMNS)
    begin = core.block_idx * rows * COLUMNS
    core.asc_set_vector_mask(ALL, ALL)
    core.asc_copy_gm2ub(scale, gamma, 4 * COLUMNS)
    core.asc_copy_gm2ub(shift, beta, 4 * COLUMNS)
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
        # subtract each row's mean
        row_sums(core, one, few, eighth, wide)
        spread_means(core, spread, one)
        for part in range(0, COLUMNS, LANES):
            core.asc_sub(wide + part, wide + part, spread, ROWS, 1, 1, 0, PITCH, PITCH, 1)
        # divide by each row's standard deviation
        core.asc_sync_pipe("PIPE_V")
        core.asc_mul(square, wide, wide, REPEATS, 1, 1, 1, 8, 8, 8)
        row_sums(core, one, few, eighth, square)
        spread_means(core, spread, one)
        core.asc_add_scalar(spread, spread, EPSILON, SPREAD, 1, 1, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_sqrt(spread, spread, SPREAD, 1, 1, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, COLUMNS, LANES):
            core.asc_div(wide + part, wide + part, spread, ROWS, 1, 1, 0, PITCH, PITCH, 1)
        # scale and shift each column
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, COLUMNS, LANES):
            core.asc_mul(wide + part, wide + part, scale + part, ROWS, 1, 1, 1, PITCH, PITCH, 0)
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, COLUMNS, LANES):
            core.asc_add(wide + part, wide + part, shift + part, ROWS, 1, 1, 1, PITCH, PITCH, 0)
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


KERNELS = (layernorm,)


def inputs(rows: int, seed: int = 1) -> tuple[Half, Vector, Vector]:
    """Return x, gamma and beta; the rows' means are far from 0, and the first row is constant."""
    rng = np.random.default_rng(seed)
    x = (rng.normal(0, 2, (rows, COLUMNS)) + rng.normal(0, 20, (rows, 1))).astype(np.float16)
    x[0] = 7
    gamma, beta = rng.normal(1, 0.2, COLUMNS), rng.normal(0, 0.2, COLUMNS)
    return x, gamma.astype(np.float32), beta.astype(np.float32)


def small() -> tuple[Half, Vector, Vector]:
    """Return inputs that are quick to try: three tiles a block."""
    return inputs(2 * 3 * ROWS)


def launch(x: Half, gamma: Vector, beta: Vector, blocks: int = 2) -> Half:
    """Return every row normalised, scaled and shifted."""
    y = np.empty_like(x)
    layernorm[blocks](x, gamma, beta, y, len(x) // blocks)
    return y


def _normal(x: Half) -> NDArray[np.float64]:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)


def reference(x: Half, gamma: Vector, beta: Vector) -> NDArray[np.float64]:
    """Return the same in float64."""
    return _normal(x) * gamma + beta


def tolerance(x: Half, gamma: Vector, beta: Vector) -> NDArray[np.float64]:
    """Return a bound: the rounding to float16, and in float32 that of the mean and what follows.

    The mean is off by at most 10 * 2^-24 of the row's largest value, which the deviation divides;
    the two sums, the root, the quotient, the product and the sum round by 25 * 2^-24 at most.
    """
    wide = np.abs(x.astype(np.float64))
    normal, deviation = _normal(x), np.sqrt(wide.var(axis=1, keepdims=True) + EPSILON)
    off = 10 * 2.0**-24 * wide.max(axis=1, keepdims=True) / deviation
    exact = (off + 25 * 2.0**-24 * np.abs(normal)) * np.abs(gamma) + 2.0**-24 * np.abs(beta)
    return exact + np.maximum(np.abs(reference(x, gamma, beta)) * 2.0**-11, 2.0**-25)


def main() -> None:
    """Normalise 5120 rows on 40 blocks."""
    given = inputs(40 * 8 * ROWS)
    error = np.abs(launch(*given, 40) - reference(*given)) / tolerance(*given)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    rows = len(given[0])
    print(f"layernorm of {rows:,} rows: the worst is off by {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
