"""An int8 layer on the Cube: x W^T + bias, requantised to int8 with a scale for each column.

The product is int32, and starts from the bias, which stands in the BiasTable. Fixpipe multiplies it
by its column's scale, rounds to the nearest even integer, adds the offset and clamps to int8, on
its way from L0C to global memory; scales and offsets stand in the Fixpipe buffer, a word each.

Every block (an AIC) computes whole columns of tiles of M x N, for all rows; a column's bias and
scales are loaded once. W is stored row by row, [n, k], as frameworks keep weights, so that nothing
is transposed: the fractals of W in NZ are those of W^T in ZN. Chunks of K lie two deep in L1, steps
two deep in L0, tiles two deep in L0C.

Shapes: x is [m, k], w is [n, k], y is [m, n], all int8; bias is [n] in int32, scales is [n] in
words of 64 bits. m and n are multiples of M and N times the blocks, k of CHUNK.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

M, N, STEP = 128, 128, 256
CHUNK = 512
ROWS, C0 = 16, 32  # of a fractal of int8
FRACTAL = ROWS * C0
SLOTS = (0, 1)
OFFSET = -3
KEPT = np.uint32(0xFFFFE000)  # the bits of a float32 that a scale keeps
Bytes = NDArray[np.int8]
Bias = NDArray[np.int32]
Scales = NDArray[np.float32]
TYPES = {"x": "int8", "w": "int8", "bias": "int32", "scales": "uint64", "y": "int8"}


def load_x(core: CoreHandle, dst: Pointer, chunk: Pointer, step: int) -> None:
    """Move a step of x from a chunk in L1 to L0A, row of fractals by row."""
    for row in range(M // ROWS):
        first = step // C0 * (M // ROWS) + row
        to = dst + row * (STEP // C0) * FRACTAL
        core.asc_copy_l12l0a(to, chunk, first, STEP // C0, M // ROWS, 0)


def load_column(
    core: CoreHandle, buffers: tuple[Pointer, ...], bias: Pointer, scales: Pointer
) -> None:
    """Bring a column's bias to the BiasTable, and its scales to the Fixpipe buffer, through L1."""
    bias_l1, scales_l1, bias_bt, scales_fb = buffers
    core.asc_copy_gm2l1(bias_l1, bias, 4 * N)
    core.asc_copy_gm2l1(scales_l1, scales, 8 * N)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", 2)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", 2)
    core.asc_copy_l12bt(bias_bt, bias_l1, 4 * N)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_FIX", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_FIX", 0)
    core.asc_copy_l12fb(scales_fb, scales_l1, 8 * N)
    core.asc_sync_pipe("PIPE_FIX")
    core.asc_set_l0c2gm_config(0, scales_fb, False)


def for_all_halves(signal: Callable[[str, str, int], None]) -> None:
    """Signal, or wait, that both halves of L1, of L0A and L0B, and of L0C are free."""
    for slot in SLOTS:
        signal("PIPE_MTE1", "PIPE_MTE2", slot)
        signal("PIPE_M", "PIPE_MTE1", slot)
        signal("PIPE_FIX", "PIPE_M", slot)


@kernel(kind="cube", outputs="y", types=TYPES)
def layer(
    core: CoreHandle,
    x: Pointer,
    w: Pointer,
    bias: Pointer,
    scales: Pointer,
    y: Pointer,
    m: int,
    n: int,
    k: int,
) -> None:
    """Compute every block_num-th column of tiles."""
    x_l1, w_l1 = ([core.cbuf("int8", e * CHUNK) for _ in SLOTS] for e in (M, N))
    x_l0, w_l0 = (
        [core.ca("int8", M * STEP) for _ in SLOTS],
        [core.cb("int8", N * STEP) for _ in SLOTS],
    )
    sums = [core.cc("int32", M * N) for _ in SLOTS]
    buffers = (
        *(core.cbuf("int32", N), core.cbuf("uint64", N)),
        *(core.biasbuf("int32", N), core.fbuf("uint64", N)),
    )
    for_all_halves(core.asc_sync_notify)
    chunks = steps = tiles = 0
    for column in range(core.block_idx * N, n, core.block_num * N):
        core.asc_sync()  # the column before is done with its bias and scales
        load_column(core, buffers, bias + column, scales + column)
        for row in range(0, m, M):
            out, tiles = tiles % 2, tiles + 1
            core.asc_sync_wait("PIPE_FIX", "PIPE_M", out)
            for chunk in range(0, k, CHUNK):
                l1, chunks = chunks % 2, chunks + 1
                core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", l1)
                core.asc_copy_gm2l1_nd2nz(
                    x_l1[l1], x + (row * k + chunk), 1, M, CHUNK, 0, k, M, 1, 1
                )
                at = w + (column * k + chunk)
                core.asc_copy_gm2l1_nd2nz(w_l1[l1], at, 1, N, CHUNK, 0, k, N, 1, 1)
                core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", l1)
                core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", l1)
                for step in range(0, CHUNK, STEP):
                    l0, steps = steps % 2, steps + 1
                    core.asc_sync_wait("PIPE_M", "PIPE_MTE1", l0)
                    load_x(core, x_l0[l0], x_l1[l1], step)
                    fractals = N // ROWS * STEP // C0
                    core.asc_copy_l12l0b(w_l0[l0], w_l1[l1] + N * step, 0, fractals, 1, 0)
                    core.asc_sync_notify("PIPE_MTE1", "PIPE_M", l0)
                    core.asc_sync_wait("PIPE_MTE1", "PIPE_M", l0)
                    biased = chunk + step == 0  # a bias is read from the BiasTable's start on
                    core.asc_mmad(
                        *(sums[out], x_l0[l0], w_l0[l0]), M, STEP, N, 0, False, biased, False
                    )
                    core.asc_sync_notify("PIPE_M", "PIPE_MTE1", l0)
                core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", l1)
            core.asc_sync_notify("PIPE_M", "PIPE_FIX", out)
            core.asc_sync_wait("PIPE_M", "PIPE_FIX", out)
            to = y + (row * n + column)
            core.asc_copy_l0c2gm(to, sums[out], N, M, n, M, 0, "VREQ8", False, False, True)
            core.asc_sync_notify("PIPE_FIX", "PIPE_M", out)
    for_all_halves(core.asc_sync_wait)


KERNELS = (layer,)


def inputs(m: int, n: int, k: int, seed: int = 1) -> tuple[Bytes, Bytes, Bias, Scales]:
    """Return x, w, the bias and a scale for each column, such that some results are clamped."""
    rng = np.random.default_rng(seed)
    x, w = (rng.integers(-128, 128, (rows, k)).astype(np.int8) for rows in (m, n))
    bias = rng.integers(-(2**17), 2**17, n).astype(np.int32)
    return x, w, bias, (rng.uniform(20, 80, n) / (74**2 * k**0.5)).astype(np.float32)


def small() -> tuple[Bytes, Bytes, Bias, Scales]:
    """Return inputs that are quick to try: two columns of two tiles for each of two blocks."""
    return inputs(2 * M, 4 * N, 2 * CHUNK)


def words(scales: Scales) -> NDArray[np.uint64]:
    """Return what the Fixpipe buffer takes: the scale's bits, OFFSET in 9 bits, and int8's sign."""
    fields = (OFFSET & 0x1FF) << 37 | 1 << 46
    return scales.view(np.uint32).astype(np.uint64) | np.uint64(fields)


def launch(x: Bytes, w: Bytes, bias: Bias, scales: Scales, blocks: int = 2) -> Bytes:
    """Return the layer's int8 results."""
    (m, k), n = x.shape, len(w)
    y = np.empty((m, n), np.int8)
    layer[blocks](x, w, bias, words(scales), y, m, n, k)
    return y


def reference(x: Bytes, w: Bytes, bias: Bias, scales: Scales) -> NDArray[np.float64]:
    """Return what is rounded: the scaled product with the offset, clamped as int8 is."""
    product = x.astype(np.float64) @ w.T.astype(np.float64) + bias
    kept = (scales.view(np.uint32) & KEPT).view(np.float32)
    return np.clip(product * kept + OFFSET, -128, 127)


def tolerance(x: Bytes, w: Bytes, _bias: Bias, _scales: Scales) -> NDArray[np.float64]:
    """Return half a step, and the rounding of a float32 product of up to 256."""
    return np.full((len(x), len(w)), 0.5 + 256 * 2.0**-24)


def main() -> None:
    """Compute 256 rows of 2560 columns over K = 1024 on 20 blocks."""
    given = inputs(256, 2560, 1024)
    got, real = launch(*given, 20), reference(*given)
    error = np.abs(got - real)
    assert (error <= tolerance(*given)).all(), f"off by up to {error.max():.3g} of a step"
    clamped = (np.abs(real - -0.5) == 127.5).mean()
    print(
        f"int8 layer: {got.size:,} results, {clamped:.1%} clamped, off by {error.max():.3g} at most"
    )


if __name__ == "__main__":
    main()
