"""Floats to mxfp8 in the registers of Ascend 950: float8_e4m3fn, a scale for 32.

The 32 floats of a column that lie in successive rows share a scale, as B of an MX product has them
along K. A scale is a power of two, of which float8_e8m0fnu keeps the exponent: that of the largest
magnitude less 8, which is that of 448, the largest float8_e4m3fn. Every block (an AIV) takes an
equal share of the groups of rows.

Shapes: x and codes are [rows, 256], scales [rows / 32, 256]; rows a multiple of 32 times the
blocks, at most 32 * MOST_GROUPS a block.
"""

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel, vector_function

CHIP = "Ascend950PR_9589"
COLUMNS = 256
GROUP = 32
MOST_GROUPS = 4
LANES = 64
LARGEST_EXPONENT = 8
"""That of 448."""
OF_ONE = 127
"""The exponent of 1 in float32 and in float8_e8m0fnu."""
FRACTION = 23
"""Bits of a float32 below its exponent."""
Matrix = NDArray[np.float32]
Codes = NDArray[np.uint8]


@vector_function
def quantise(core: CoreHandle, x: Pointer, codes: Pointer, scales: Pointer, groups: int) -> None:
    """Convert `groups` times 32 rows in UB."""
    every = core.asc_create_mask_b32("PAT_ALL")
    largest, number, code = core.vector_float(), core.vector_float(), core.vector_fp8_e4m3fn_t()
    exponent = largest.cast("int32")
    for group in range(groups):
        for strip in range(0, COLUMNS, LANES):
            begin = group * GROUP * COLUMNS + strip
            core.asc_duplicate_scalar(largest, 0.0, every)
            for row in range(0, GROUP * COLUMNS, COLUMNS):
                core.asc_loadalign(number, x + (begin + row))
                core.asc_abs(number, number, every)
                core.asc_max(largest, largest, number, every)
            # Magnitudes have no sign: what is above the fraction is the exponent. Of the scale it
            # is 8 less; that of its inverse has the other sign.
            core.asc_shiftright_scalar(exponent, exponent, FRACTION, every)
            core.asc_max_scalar(exponent, exponent, LARGEST_EXPONENT, every)
            core.asc_add_scalar(exponent, exponent, -LARGEST_EXPONENT, every)
            of_strip = scales + (group * COLUMNS + strip)
            core.asc_storealign_pack_quarter(of_strip, largest.cast("uint8"), every)
            core.asc_mul_scalar(exponent, exponent, -1, every)
            core.asc_add_scalar(exponent, exponent, 2 * OF_ONE, every)
            core.asc_shiftleft_scalar(exponent, exponent, FRACTION, every)
            for row in range(0, GROUP * COLUMNS, COLUMNS):
                core.asc_loadalign(number, x + (begin + row))
                core.asc_mul(number, number, largest, every)
                core.asc_float2e4m3_rn_sat(code, number, every)
                to = codes + (begin + row)
                core.asc_storealign_pack_quarter(to, code.cast("uint8"), every)


@kernel(
    outputs=("codes", "scales"),
    types={"x": "float", "codes": "uint8_t", "scales": "uint8_t"},
    chip=CHIP,
)
def reg_mx_quantise(
    core: CoreHandle, x: Pointer, codes: Pointer, scales: Pointer, groups: int
) -> None:
    """Convert `groups` times 32 rows on each block."""
    most = MOST_GROUPS * GROUP * COLUMNS
    given, made = core.ubuf("float", most), core.ubuf("uint8_t", most)
    shared = core.ubuf("uint8_t", MOST_GROUPS * COLUMNS)
    few = groups * COLUMNS
    many = few * GROUP
    core.asc_copy_gm2ub(given, x + core.block_idx * many, 4 * many)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    quantise(core, given, made, shared, groups)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(codes + core.block_idx * many, made, many)
    core.asc_copy_ub2gm(scales + core.block_idx * few, shared, few)


KERNELS = (reg_mx_quantise,)


def inputs(rows: int, seed: int = 1) -> tuple[Matrix]:
    """Return x, [rows, 256]: groups of very different sizes, one of zeros."""
    rng = np.random.default_rng(seed)
    size = 2.0 ** rng.integers(-40, 40, (rows // GROUP, 1, COLUMNS))
    x = rng.normal(0, 1, (rows // GROUP, GROUP, COLUMNS)) * size
    x[0, :, 0] = 0
    return (x.reshape(rows, COLUMNS).astype(np.float32),)


def small() -> tuple[Matrix]:
    """Return an input that is quick to try."""
    return inputs(2 * GROUP)


def launch(x: Matrix, blocks: int = 2) -> tuple[Codes, Codes]:
    """Return the codes and the scales."""
    codes = np.empty(x.shape, np.uint8)
    scales = np.empty((len(x) // GROUP, COLUMNS), np.uint8)
    reg_mx_quantise[blocks](x, codes, scales, len(x) // GROUP // blocks)
    return codes, scales


def reference(x: Matrix) -> tuple[Codes, Codes]:
    """Return the codes and the scales, by NumPy's exponents and ml_dtypes' conversion."""
    groups = x.reshape(-1, GROUP, COLUMNS).astype(np.float64)
    largest = np.abs(groups).max(axis=1, keepdims=True)
    power = np.frexp(np.where(largest == 0, 1, largest))[1] - 1 - LARGEST_EXPONENT
    power = np.where(largest == 0, -OF_ONE, np.maximum(power, -OF_ONE))
    scaled = np.clip(groups / 2.0**power, -448, 448)
    codes = scaled.astype(ml_dtypes.float8_e4m3fn).view(np.uint8).reshape(x.shape)
    return codes, (power[:, 0] + OF_ONE).astype(np.uint8)


def tolerance(x: Matrix) -> tuple[Codes, Codes]:
    """Return zeros: codes and scales are exact."""
    codes, scales = reference(x)
    return np.zeros_like(codes), np.zeros_like(scales)


def main() -> None:
    """Convert 4096 rows on 32 blocks."""
    (x,) = inputs(32 * MOST_GROUPS * GROUP)
    for made, wanted in zip(launch(x, 32), reference(x), strict=True):
        np.testing.assert_array_equal(made, wanted)
    print(f"{x.size:,} floats are {x.size:,} codes and {x.size // GROUP:,} scales")


if __name__ == "__main__":
    main()
