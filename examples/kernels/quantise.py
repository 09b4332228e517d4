"""Quantise rows of 512 halves to int8, a scale for each row, and back.

q = round(x / scale), ties to even, with scale = max|x| / 127 of the row (at least LEAST, so that a
row of zeros has a scale, too); x' = q * scale. Between float32 and int8 lie int32 and float16,
since the vector unit converts no other way; both steps are exact.

Every block (an AIV) takes an equal share of the rows, ROWS of them at a time, two buffers taking
turns. Shapes: x and x' are [rows, 512], q is [rows, 512], scales are [rows]; rows is a multiple of
ROWS times the blocks.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

COLUMNS = 512
ROWS = 16
LEAST = 2.0**-14
LANES = 64  # floats of a repeat
PITCH = COLUMNS // 8  # blocks of 8 floats from row to row
TILE = ROWS * COLUMNS
REPEATS = TILE // LANES
SLOTS = (0, 1)
ALL = 2**64 - 1
HALF_ONE = 0x3C00
Half = NDArray[np.float16]
Bytes = NDArray[np.int8]
Vector = NDArray[np.float32]
TYPES = {"x": "half", "q": "int8", "scales": "float"}


@kernel(outputs=("q", "scales"), types=TYPES)
def quantise(core: CoreHandle, x: Pointer, q: Pointer, scales: Pointer, rows: int) -> None:
    """Quantise `rows` rows."""
    given = [core.ubuf("half", TILE) for _ in SLOTS]
    made = [core.ubuf("int8", TILE) for _ in SLOTS]
    scale = [core.ubuf("float", ROWS) for _ in SLOTS]
    wide, size, near = core.ubuf("float", TILE), core.ubuf("float", TILE), core.ubuf("half", TILE)
    eighth, few, spread = (core.ubuf("float", n) for n in (TILE // 8, TILE // 64, ROWS * 8))
    begin = core.block_idx * rows
    core.asc_set_deq_scale(HALF_ONE)
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for tile in range(rows // ROWS):
        slot, row = tile % 2, begin + tile * ROWS
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_copy_gm2ub(given[slot], x + row * COLUMNS, 2 * TILE)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        core.asc_set_vector_mask(ALL, ALL)
        core.asc_sync_pipe("PIPE_V")
        core.asc_half2float(wide, given[slot], REPEATS, 1, 1, 8, 4)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        # the scale of each row
        core.asc_sync_pipe("PIPE_V")
        core.asc_abs(size, wide, REPEATS, 1, 1, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_max(eighth, size, REPEATS, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_max(few, eighth, REPEATS // 8, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_datablock_reduce_max(scale[slot], few, REPEATS // 64, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_mul_scalar(scale[slot], scale[slot], 1 / 127, ROWS)
        core.asc_sync_pipe("PIPE_V")
        core.asc_max_scalar(scale[slot], scale[slot], LEAST, ROWS)
        core.asc_sync_pipe("PIPE_V")
        core.asc_brcb(spread.cast("uint32"), scale[slot].cast("uint32"), 1, 8, ROWS // 8)
        # divide, and convert
        core.asc_set_vector_mask(ALL, ALL)
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, COLUMNS, LANES):
            core.asc_div(wide + part, wide + part, spread, ROWS, 1, 1, 0, PITCH, PITCH, 1)
        core.asc_sync_pipe("PIPE_V")
        core.asc_float2int32_rn(size.cast("int32"), wide, REPEATS, 1, 1, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_deq_int322half(near, size.cast("int32"), REPEATS, 1, 1, 4, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_half2int8_rn(made[slot], near, REPEATS // 2, 1, 1, 4, 8)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        core.asc_copy_ub2gm(q + row * COLUMNS, made[slot], TILE)
        core.asc_copy_ub2gm(scales + row, scale[slot], 4 * ROWS)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)


@kernel(outputs="x", types=TYPES)
def dequantise(core: CoreHandle, q: Pointer, scales: Pointer, x: Pointer, rows: int) -> None:
    """Multiply `rows` rows by their scales."""
    given = [core.ubuf("int8", TILE) for _ in SLOTS]
    scale = [core.ubuf("float", ROWS) for _ in SLOTS]
    made = [core.ubuf("half", TILE) for _ in SLOTS]
    wide, near, spread = (
        core.ubuf("float", TILE),
        core.ubuf("half", TILE),
        core.ubuf("float", ROWS * 8),
    )
    begin = core.block_idx * rows
    core.asc_set_vector_mask(ALL, ALL)
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for tile in range(rows // ROWS):
        slot, row = tile % 2, begin + tile * ROWS
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_copy_gm2ub(given[slot], q + row * COLUMNS, TILE)
        core.asc_copy_gm2ub(scale[slot], scales + row, 4 * ROWS)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_pipe("PIPE_V")
        core.asc_int82half(near, given[slot], REPEATS // 2, 1, 1, 8, 4)
        core.asc_brcb(spread.cast("uint32"), scale[slot].cast("uint32"), 1, 8, ROWS // 8)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_pipe("PIPE_V")
        core.asc_half2float(wide, near, REPEATS, 1, 1, 8, 4)
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, COLUMNS, LANES):
            core.asc_mul(wide + part, wide + part, spread, ROWS, 1, 1, 0, PITCH, PITCH, 1)
        core.asc_sync_pipe("PIPE_V")
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        core.asc_float2half_rn(made[slot], wide, REPEATS, 1, 1, 4, 8)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        core.asc_copy_ub2gm(x + row * COLUMNS, made[slot], 2 * TILE)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)


KERNELS = (quantise, dequantise)


def inputs(rows: int, seed: int = 1) -> tuple[Half]:
    """Return x, [rows, 512]: rows of different sizes, the first of zeros."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, COLUMNS)) * 2.0 ** rng.integers(-8, 9, (rows, 1))
    x[0] = 0
    return (x.astype(np.float16),)


def small() -> tuple[Half]:
    """Return an input that is quick to try: three tiles a block."""
    return inputs(2 * 3 * ROWS)


def launch(x: Half, blocks: int = 2) -> tuple[Bytes, Vector, Half]:
    """Return q, the scales, and what both give back."""
    q, scales, back = np.empty(x.shape, np.int8), np.empty(len(x), np.float32), np.empty_like(x)
    quantise[blocks](x, q, scales, len(x) // blocks)
    dequantise[blocks](q, scales, back, len(x) // blocks)
    return q, scales, back


def reference(x: Half) -> tuple[NDArray[np.float64], ...]:
    """Return the quotients that are rounded, the scales, and x."""
    wide = x.astype(np.float64)
    scales = np.maximum(np.abs(wide).max(axis=1) / 127, LEAST)
    return wide / scales[:, None], scales, wide


def tolerance(x: Half) -> tuple[NDArray[np.float64], ...]:
    """Return bounds: half a step of q, and what float32 and float16 round.

    The scale is a product of two rounded numbers, and the quotient rounds again: 3 * 2^-24 of 127.
    """
    _, scales, wide = reference(x)
    step = 0.5 + 127 * 3 * 2.0**-24
    back = step * scales[:, None] + np.maximum(np.abs(wide) * 1.01 * 2.0**-11, 2.0**-25)
    return np.full(x.shape, step), scales * 2.0**-23, back


def main() -> None:
    """Quantise 5120 rows on 40 blocks, and back."""
    given = inputs(40 * 8 * ROWS)
    found = zip(launch(*given, 40), reference(*given), tolerance(*given), strict=True)
    for name, (got, want, limit) in zip(("quantise", "scales", "dequantise"), found, strict=True):
        error = np.abs(got - want) / limit
        assert (error <= 1).all(), f"{name}: off by up to {error.max():.3g} times the tolerance"
        if name != "scales":
            print(f"{name}: {len(got):,} rows, the worst off by {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
