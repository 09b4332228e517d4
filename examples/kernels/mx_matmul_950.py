"""C = A B^T on Ascend 950 in MX: the AIVs quantise floats to float8 and make their scales.

Every AI Core multiplies TILE rows of A by all TILE rows of B. AIV0 takes A's rows and AIV1 those of
B: in registers each 32 values of a row get one power of two as their scale, and become
float8_e4m3fn in units of it. Values and scales go from UB to L1 in the layouts that the Cube reads,
and never leave the AI Core.

    AIV   e = floor(log2(largest of 32)) - 8; scale 2^e as float8_e8m0, values x 2^-e as float8
    AIC   C = sum over K of (scale values) (scale values)^T

Shapes: a is [TILE times the blocks, K], b is [TILE, K], float; c is [TILE times the blocks, TILE],
float.
"""

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel, vector_function

CHIP = "Ascend950PR_9589"
TILE, K = 64, 256
SHARED = 32  # values of a row with one scale
PAIR = 2 * SHARED  # values of a register of floats: those of two scales
PAIRS = K // PAIR
EDGE = 16  # rows of a fractal
LARGEST = 8  # the exponent of the largest numbers of float8_e4m3fn
SIGN_AND_FRACTION = 23  # bits of a float behind its exponent
VALUES, SCALES = 0, TILE * K
"""Addresses in L1 of what an AIV hands over: a matrix's values and, behind them, its scales."""
MATRIX = SCALES + TILE * K // SHARED
QUANTISED, SCALED = 4 * TILE * K, 5 * TILE * K
"""Addresses in UB of values and scales; the floats come first."""
Matrix = NDArray[np.float32]


@vector_function
def quantise_rows(core: CoreHandle, x: Pointer, values: Pointer, scales: Pointer) -> None:
    """Quantise TILE rows; the scales of two neighbours of a row stand together."""
    every, one = core.asc_create_mask_b32("PAT_ALL"), core.asc_create_mask_b32("PAT_VL32")
    other = core.vector_bool()
    core.asc_not(other, one, every)
    row, size, scaled = (core.vector_float() for _ in range(3))
    code, factor = ([core.vector_uint32_t() for _ in range(2)] for _ in range(2))
    small = core.vector_fp8_e4m3fn_t()
    for number in range(TILE):
        for pair in range(PAIRS):
            core.asc_loadalign(row, x + (number * K + pair * PAIR))
            core.asc_abs(size, row, every)
            for half, mask in enumerate((one, other)):
                # The exponent of the largest one, less that of the largest float8, at least 0; the
                # factor is the power of two that undoes it. Lane 0 has it, and gives it to all.
                core.asc_reduce_max(scaled, size, mask)
                core.asc_duplicate(scaled, scaled, every)
                core.asc_shiftright_scalar(
                    code[half], scaled.cast("uint32"), SIGN_AND_FRACTION, every
                )
                core.asc_max_scalar(code[half], code[half], LARGEST, every)
                core.asc_add_scalar(code[half], code[half], 2**32 - LARGEST, every)
                core.asc_mul_scalar(factor[half], code[half], 2**32 - 1, every)
                core.asc_add_scalar(factor[half], factor[half], 254, every)
                core.asc_shiftleft_scalar(factor[half], factor[half], SIGN_AND_FRACTION, every)
            core.asc_select(factor[0], factor[0], factor[1], one)
            core.asc_mul(scaled, row, factor[0].cast("float"), every)
            core.asc_float2e4m3_rn_sat(small, scaled, every)
            at = number * K + pair * PAIR
            core.asc_storealign_pack_quarter(
                values.cast("uint32") + at // 4, small.cast("uint32"), every
            )
            core.asc_shiftleft_scalar(code[1], code[1], 8, every)
            core.asc_or(code[0], code[0], code[1], every)
            core.asc_storealign_1st(
                scales.cast("uint16") + (pair * TILE + number), code[0].cast("uint16")
            )


def quantise(core: CoreHandle, matrix: Pointer, to: int) -> None:
    """Quantise a matrix of floats, and put it into L1."""
    x, values = core.ubuf.at("float", 0), core.ubuf.at("float8_e4m3fn", QUANTISED)
    scales = core.ubuf.at("float8_e8m0fnu", SCALED)
    core.asc_copy_gm2ub(x, matrix, 4 * TILE * K)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    quantise_rows(core, x, values, scales)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    # NZ: pieces of 32 values, each column of them row by row. Of scales a fractal is two of 16
    # rows, and those of 16 rows follow each other.
    l1 = core.cbuf.at("float8_e4m3fn", to + VALUES)
    for column in range(K // SHARED):
        piece = column * TILE * SHARED
        core.asc_copy_ub2l1(l1 + piece, values + column * SHARED, TILE, 1, K // SHARED - 1, 0)
    l1 = core.cbuf.at("float8_e8m0fnu", to + SCALES)
    for pair in range(PAIRS):
        core.asc_copy_ub2l1(
            l1 + pair * 2 * EDGE, scales + pair * 2 * TILE, TILE // EDGE, 1, 0, PAIRS - 1
        )
    core.asc_sync_intra_arrive("PIPE_MTE3", 0)


def multiply(core: CoreHandle, c: Pointer) -> None:
    """Multiply what both AIVs have put into L1."""
    left, right = core.ca("float8_e4m3fn", TILE * K), core.cb("float8_e4m3fn", TILE * K)
    total, rows = core.cc("float", TILE * TILE), TILE // EDGE
    core.asc_sync_intra_wait("PIPE_MTE1", 0)
    core.asc_sync_intra_wait("PIPE_MTE1", 16)
    window = (0, 0, rows, K // SHARED, rows, rows)
    core.asc_copy_l12l0a(left, core.cbuf.at("float8_e4m3fn", VALUES), *window)
    core.asc_copy_l12l0b(right, core.cbuf.at("float8_e4m3fn", MATRIX + VALUES), *window)
    window = (0, 0, rows, PAIRS, PAIRS, PAIRS)
    core.asc_copy_l12l0a_mx(left.address // 16, core.cbuf.at("float8_e8m0fnu", SCALES), *window)
    core.asc_copy_l12l0b_mx(
        right.address // 16, core.cbuf.at("float8_e8m0fnu", MATRIX + SCALES), *window
    )
    core.asc_sync_notify("PIPE_MTE1", "PIPE_M", 0)
    core.asc_sync_wait("PIPE_MTE1", "PIPE_M", 0)
    core.asc_mmad_mx(total, left, right, TILE, K, TILE, 0, False, False, True)
    core.asc_sync_notify("PIPE_M", "PIPE_FIX", 0)
    core.asc_sync_wait("PIPE_M", "PIPE_FIX", 0)
    core.asc_copy_l0c2gm(
        c, total, n_size=TILE, m_size=TILE, dst_stride=TILE, src_stride=TILE, nz2nd_en=True
    )


@kernel(kind="mix", outputs="c", types=dict.fromkeys("abc", "float"), chip=CHIP)
def mx_matmul_950(core: CoreHandle, a: Pointer, b: Pointer, c: Pointer) -> None:
    """Multiply TILE rows of A by B^T on each AI Core."""
    if core.is_aic:
        multiply(core, c + core.block_idx * TILE * TILE)
        return
    ai_core = core.block_idx // core.asc_get_sub_block_num()
    if core.asc_get_sub_block_id():
        quantise(core, b, MATRIX)
    else:
        quantise(core, a + ai_core * TILE * K, 0)


KERNELS = (mx_matmul_950,)


def inputs(rows: int, seed: int = 1) -> tuple[Matrix, Matrix]:
    """Return a and b; the sizes of their values change along K, and one group is all 0."""
    rng = np.random.default_rng(seed)
    sizes = 2.0 ** rng.integers(-6, 7, K // SHARED).repeat(SHARED)
    a, b = (rng.standard_normal((count, K)) * sizes for count in (rows, TILE))
    a[0, :SHARED] = 0
    return a.astype(np.float32), b.astype(np.float32)


def small() -> tuple[Matrix, Matrix]:
    """Return inputs that are quick to try: two AI Cores' rows."""
    return inputs(2 * TILE)


def launch(a: Matrix, b: Matrix) -> Matrix:
    """Return the product of a and b's transpose, both quantised."""
    c = np.empty((len(a), TILE), np.float32)
    mx_matmul_950[len(a) // TILE](a, b, c)
    return c


def quantised(x: Matrix) -> NDArray[np.float64]:
    """Return the values that a matrix has in MX."""
    groups = x.astype(np.float64).reshape(len(x), -1, SHARED)
    largest = np.abs(groups).max(axis=-1, keepdims=True)
    _, exponents = np.frexp(largest)  # largest = m 2^e with m in [0.5, 1)
    scales = 2.0 ** np.maximum(exponents - 1 - LARGEST, -127)
    limit = float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).max)
    units = np.clip(groups / scales, -limit, limit).astype(ml_dtypes.float8_e4m3fn)
    return (units.astype(np.float64) * scales).reshape(x.shape)


def reference(a: Matrix, b: Matrix) -> NDArray[np.float64]:
    """Return the product of the quantised matrices in float64."""
    return quantised(a) @ quantised(b).T


def tolerance(a: Matrix, b: Matrix) -> NDArray[np.float64]:
    """Return a bound of sums in float32, in any order."""
    return K * 2.0**-24 * (np.abs(quantised(a)) @ np.abs(quantised(b)).T)


def main() -> None:
    """Multiply 1024 rows on 16 AI Cores."""
    given = inputs(1024)
    error = np.abs(launch(*given) - reference(*given)) / tolerance(*given)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"product of {len(given[0])} rows in MX: {error.max():.2g} of its tolerance at most")


if __name__ == "__main__":
    main()
