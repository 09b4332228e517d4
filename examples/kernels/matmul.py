"""C = A B on the Cube, by hand: the flags of a double-buffered matrix product.

Every block (an AIC) computes a rectangle of C, tile by tile of M x N. A tile is summed over K in
chunks, which lie two deep in L1, and a chunk in steps, which lie two deep in L0A and L0B; two tiles
find room in L0C, so that one is written while the next is summed. Each pair of neighbouring pipes
has a flag forwards (the data is there) and one backwards (the place is free) for each slot.

A becomes NZ on its way to L1 (columns of fractals) and ZZ on its way to L0A: one load for each row
of fractals. B becomes NZ and then ZN, its fractals transposed: one load for each row of them.

Shapes: a is [m, k], b is [k, n], both half; c is [m, n] in float32. m and n are multiples of M and
N times the blocks' grid, k of CHUNK.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

M, N, STEP = 128, 128, 128
CHUNK = 256
EDGE = 16  # rows and columns of a fractal of halves
FRACTAL = EDGE * EDGE
SLOTS = (0, 1)
Half = NDArray[np.float16]
Matrix = NDArray[np.float32]


def load_a(core: CoreHandle, dst: Pointer, chunk: Pointer, step: int) -> None:
    """Move a step of A from a chunk in L1 to L0A, row of fractals by row."""
    for row in range(M // EDGE):
        first = step // EDGE * (M // EDGE) + row
        to = dst + row * (STEP // EDGE) * FRACTAL
        core.asc_copy_l12l0a(to, chunk, first, STEP // EDGE, M // EDGE, 0)


def load_b(core: CoreHandle, dst: Pointer, chunk: Pointer, step: int) -> None:
    """Move a step of B from a chunk in L1 to L0B, transposing every fractal."""
    for row in range(STEP // EDGE):
        first = step // EDGE + row
        to = dst + row * (N // EDGE) * FRACTAL
        core.asc_copy_l12l0b_trans(to, chunk, first, N // EDGE, CHUNK // EDGE, 0, False, 0)


@kernel(kind="cube", outputs="c", types={"a": "half", "b": "half", "c": "float"})
def matmul(
    core: CoreHandle, a: Pointer, b: Pointer, c: Pointer, n: int, k: int, rows: int, columns: int
) -> None:
    """Compute a rectangle of rows x columns; blocks lie row by row over C."""
    a_l1, b_l1 = ([core.cbuf("half", e * CHUNK) for _ in SLOTS] for e in (M, N))
    a_l0, b_l0 = (
        [core.ca("half", M * STEP) for _ in SLOTS],
        [core.cb("half", N * STEP) for _ in SLOTS],
    )
    c_l0 = [core.cc("float", M * N) for _ in SLOTS]
    top, left = core.block_idx // (n // columns) * rows, core.block_idx % (n // columns) * columns
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_M", "PIPE_MTE1", slot)
        core.asc_sync_notify("PIPE_FIX", "PIPE_M", slot)
    chunks = steps = tiles = 0
    for row in range(top, top + rows, M):
        for column in range(left, left + columns, N):
            out, tiles = tiles % 2, tiles + 1
            core.asc_sync_wait("PIPE_FIX", "PIPE_M", out)
            for chunk in range(0, k, CHUNK):
                l1, chunks = chunks % 2, chunks + 1
                core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", l1)
                core.asc_copy_gm2l1_nd2nz(
                    a_l1[l1], a + (row * k + chunk), 1, M, CHUNK, 0, k, M, 1, 1
                )
                at = b + (chunk * n + column)
                core.asc_copy_gm2l1_nd2nz(b_l1[l1], at, 1, CHUNK, N, 0, n, CHUNK, 1, 1)
                core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", l1)
                core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", l1)
                for step in range(0, CHUNK, STEP):
                    l0, steps = steps % 2, steps + 1
                    core.asc_sync_wait("PIPE_M", "PIPE_MTE1", l0)
                    load_a(core, a_l0[l0], a_l1[l1], step)
                    load_b(core, b_l0[l0], b_l1[l1], step)
                    core.asc_sync_notify("PIPE_MTE1", "PIPE_M", l0)
                    core.asc_sync_wait("PIPE_MTE1", "PIPE_M", l0)
                    first = chunk + step == 0
                    core.asc_mmad(c_l0[out], a_l0[l0], b_l0[l0], M, STEP, N, 0, False, False, first)
                    core.asc_sync_notify("PIPE_M", "PIPE_MTE1", l0)
                core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", l1)
            core.asc_sync_notify("PIPE_M", "PIPE_FIX", out)
            core.asc_sync_wait("PIPE_M", "PIPE_FIX", out)
            to = c + (row * n + column)
            core.asc_copy_l0c2gm(to, c_l0[out], N, M, n, M, 0, "NoQuant", False, False, True)
            core.asc_sync_notify("PIPE_FIX", "PIPE_M", out)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_M", "PIPE_MTE1", slot)
        core.asc_sync_wait("PIPE_FIX", "PIPE_M", slot)


KERNELS = (matmul,)


def inputs(m: int, n: int, k: int, seed: int = 1) -> tuple[Half, Half]:
    """Return a, [m, k], and b, [k, n]."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    return a.astype(np.float16), b.astype(np.float16)


def small() -> tuple[Half, Half]:
    """Return inputs that are quick to try: three tiles of two chunks for each of two blocks."""
    return inputs(M, 6 * N, 2 * CHUNK)


def launch(a: Half, b: Half, grid: tuple[int, int] = (1, 2)) -> Matrix:
    """Return a b; `grid` is how many blocks share the rows, and how many the columns."""
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), np.float32)
    matmul[grid[0] * grid[1]](a, b, c, n, k, m // grid[0], n // grid[1])
    return c


def reference(a: Half, b: Half) -> NDArray[np.float64]:
    """Return a b in float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def tolerance(a: Half, b: Half) -> NDArray[np.float64]:
    """Return a bound: one rounding to float32 for each step of K, of what has been summed so far.

    Products of halves are exact in float32; how the Cube rounds within a step is not documented:
    as a random walk over its sums.
    """
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    return (a.shape[1] // STEP + np.sqrt(STEP)) * 2.0**-24 * size


def main() -> None:
    """Multiply 1024 x 1024 by 1024 x 1280 on 4 x 5 blocks."""
    a, b = inputs(1024, 1280, 1024)
    error = np.abs(launch(a, b, (4, 5)) - reference(a, b)) / tolerance(a, b)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"matmul of {a.shape} by {b.shape}: off by at most {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
