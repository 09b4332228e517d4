"""y = W x on the Cube: a vector of halves by a matrix that is stored row by row.

Every block (an AIC) takes an equal share of W's rows, N of them at a time. The vector stays in L0A
as it is: `mad` with m = 1 reads it as plain consecutive elements. W is read once, in chunks of
N x CHUNK that are two deep in L1, and from there in steps of N x STEP, two deep in L0B: its rows
are y's elements, so that the fractals of W in NZ are those of the transposed W in ZN, and no load
transposes. The time is that of reading W.

Shapes: w is [n, k], x is [k], y is [n] in float32; n is a multiple of N times the blocks, k of
CHUNK and at most MOST, what L0A holds.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

N = 64
CHUNK = 1024
MOST = 32768
STEP = 256  # 512 bytes, the unit of L0A
FRACTALS = N // 16 * STEP // 16
SLOTS = (0, 1)
Half = NDArray[np.float16]
Vector = NDArray[np.float32]


@kernel(kind="cube", outputs="y", types={"w": "half", "x": "half", "y": "float"})
def gemv(core: CoreHandle, w: Pointer, x: Pointer, y: Pointer, rows: int, k: int) -> None:
    """Compute `rows` elements of y."""
    x_l1, w_l1 = core.cbuf("half", MOST), [core.cbuf("half", N * CHUNK) for _ in SLOTS]
    x_l0, w_l0 = core.ca("half", MOST), [core.cb("half", N * STEP) for _ in SLOTS]
    sums = core.cc("float", N * 16)
    begin = core.block_idx * rows
    core.asc_copy_gm2l1(x_l1, x, 2 * k)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", 2)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", 2)
    core.asc_copy_l12l0a(x_l0, x_l1, 0, k // STEP, 1, 0)
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_M", "PIPE_MTE1", slot)
    core.asc_sync_notify("PIPE_FIX", "PIPE_M", 0)
    chunks = turns = 0
    for row in range(0, rows, N):
        core.asc_sync_wait("PIPE_FIX", "PIPE_M", 0)
        for chunk in range(0, k, CHUNK):
            l1, chunks = chunks % 2, chunks + 1
            core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", l1)
            at = w + ((begin + row) * k + chunk)
            core.asc_copy_gm2l1_nd2nz(w_l1[l1], at, 1, N, CHUNK, 0, k, N, 1, 1)
            core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", l1)
            core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", l1)
            for step in range(0, CHUNK, STEP):
                l0, turns = turns % 2, turns + 1
                core.asc_sync_wait("PIPE_M", "PIPE_MTE1", l0)
                core.asc_copy_l12l0b(w_l0[l0], w_l1[l1] + N * step, 0, FRACTALS, 1, 0)
                core.asc_sync_notify("PIPE_MTE1", "PIPE_M", l0)
                core.asc_sync_wait("PIPE_MTE1", "PIPE_M", l0)
                core.asc_sync_pipe("PIPE_M")
                first = chunk + step == 0
                part = x_l0 + (chunk + step)
                core.asc_mmad(sums, part, w_l0[l0], 1, STEP, N, 0, False, False, first)
                core.asc_sync_notify("PIPE_M", "PIPE_MTE1", l0)
            core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", l1)
        core.asc_sync_notify("PIPE_M", "PIPE_FIX", 0)
        core.asc_sync_wait("PIPE_M", "PIPE_FIX", 0)
        out = y + (begin + row)
        core.asc_copy_l0c2gm(out, sums, N, 1, N, 16, 0, "NoQuant", False, False, True)
        core.asc_sync_notify("PIPE_FIX", "PIPE_M", 0)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_M", "PIPE_MTE1", slot)
    core.asc_sync_wait("PIPE_FIX", "PIPE_M", 0)


KERNELS = (gemv,)


def inputs(n: int, k: int, seed: int = 1) -> tuple[Half, Half]:
    """Return w, [n, k], and x, [k]."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((n, k), np.float32).astype(np.float16)
    return w, rng.standard_normal(k, np.float32).astype(np.float16)


def small() -> tuple[Half, Half]:
    """Return inputs that are quick to try: two tiles of rows for each of two blocks."""
    return inputs(2 * 2 * N, 2 * CHUNK)


def launch(w: Half, x: Half, blocks: int = 2) -> Vector:
    """Return w x."""
    n, k = w.shape
    y = np.empty(n, np.float32)
    gemv[blocks](w, x, y, n // blocks, k)
    return y


def reference(w: Half, x: Half) -> NDArray[np.float64]:
    """Return w x in float64."""
    return w.astype(np.float64) @ x.astype(np.float64)


def tolerance(w: Half, x: Half) -> NDArray[np.float64]:
    """Return a bound: one rounding to float32 for each step of K, of what has been summed so far.

    Products of halves are exact in float32; how the Cube rounds within a step is not documented, so
    each of the STEP sums counts, too.
    """
    size = np.abs(w).astype(np.float64) @ np.abs(x).astype(np.float64)
    return (x.size // STEP + np.sqrt(STEP)) * 2.0**-24 * size


def main() -> None:
    """Multiply a matrix of 2560 x 4096 on 20 blocks."""
    w, x = inputs(20 * 2 * N, 4096)
    error = np.abs(launch(w, x, 20) - reference(w, x)) / tolerance(w, x)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"gemv of {w.shape[0]:,} x {x.size:,}: off by at most {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
