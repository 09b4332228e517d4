"""Y = leaky_relu(A B + bias), the product on the AIC and the activation on its two AIVs.

AI Cores take tiles of M x N in turn. The AIC sums a tile over K, starting from the bias in the
BiasTable, and writes it in float32 to a workspace in global memory, which is two tiles deep for
each AI Core. Its AIVs take the upper and the lower half of the rows, compute the activation, and
write Y in half. Two flags between the cores count tiles: READY when the AIC has written one, FREE
when both AIVs have read one.

Shapes: a is [m, k], b is [k, n], y is [m, n], all half; bias is [n] in float32; the workspace holds
2 * M * N floats for each AI Core. m, n and k are multiples of M, N and CHUNK.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

M, N, STEP = 128, 128, 128
CHUNK = 256
EDGE = 16  # rows and columns of a fractal of halves
FRACTAL = EDGE * EDGE
HALF_TILE = M // 2 * N  # what an AIV takes
SLOPE = 0.01
SLOTS = (0, 1)
READY, FREE = 0, 1
Half = NDArray[np.float16]
Vector = NDArray[np.float32]
TYPES = {"a": "half", "b": "half", "bias": "float", "y": "half", "workspace": "float"}


def load_a(core: CoreHandle, dst: Pointer, chunk: Pointer, step: int) -> None:
    """Move a step of A from a chunk in L1 to L0A, row of fractals by row."""
    for row in range(M // EDGE):
        first = step // EDGE * (M // EDGE) + row
        to = dst + row * (STEP // EDGE) * FRACTAL
        core.asc_copy_l12l0a(to, chunk, first, STEP // EDGE, M // EDGE, 0)


def load_b(core: CoreHandle, dst: Pointer, chunk: Pointer, step: int) -> None:
    """Move a step of B from a chunk in L1 to L0B, transposing every fractal."""
    for row in range(STEP // EDGE):
        to = dst + row * (N // EDGE) * FRACTAL
        first = step // EDGE + row
        core.asc_copy_l12l0b_trans(to, chunk, first, N // EDGE, CHUNK // EDGE, 0, False, 0)


def for_all_halves(signal: Callable[[str, str, int], None]) -> None:
    """Signal, or wait, that both halves of L1, of L0A and L0B, and of L0C are free."""
    for slot in SLOTS:
        signal("PIPE_MTE1", "PIPE_MTE2", slot)
        signal("PIPE_M", "PIPE_MTE1", slot)
        signal("PIPE_FIX", "PIPE_M", slot)


def products(
    core: CoreHandle,
    a: Pointer,
    b: Pointer,
    bias: Pointer,
    workspace: Pointer,
    shape: tuple[int, ...],
) -> None:
    """Compute tiles of A B + bias: the AIC's part."""
    m, n, k = shape
    a_l1, b_l1 = ([core.cbuf("half", e * CHUNK) for _ in SLOTS] for e in (M, N))
    bias_l1, bias_bt = [core.cbuf("float", N) for _ in SLOTS], core.biasbuf("float", N)
    a_l0, b_l0 = (
        [core.ca("half", M * STEP) for _ in SLOTS],
        [core.cb("half", N * STEP) for _ in SLOTS],
    )
    c_l0 = [core.cc("float", M * N) for _ in SLOTS]
    for_all_halves(core.asc_sync_notify)
    core.asc_sync_notify("PIPE_M", "PIPE_MTE1", 2)  # the BiasTable is free
    chunks = steps = 0
    for turn, tile in enumerate(range(core.block_idx, m // M * (n // N), core.block_num)):
        row, column, out = tile // (n // N) * M, tile % (n // N) * N, turn % 2
        core.asc_sync_wait("PIPE_FIX", "PIPE_M", out)
        for chunk in range(0, k, CHUNK):
            l1, chunks = chunks % 2, chunks + 1
            core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", l1)
            core.asc_copy_gm2l1_nd2nz(a_l1[l1], a + (row * k + chunk), 1, M, CHUNK, 0, k, M, 1, 1)
            at = b + (chunk * n + column)
            core.asc_copy_gm2l1_nd2nz(b_l1[l1], at, 1, CHUNK, N, 0, n, CHUNK, 1, 1)
            if chunk == 0:
                core.asc_copy_gm2l1(bias_l1[l1], bias + column, 4 * N)
            core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", l1)
            core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", l1)
            if chunk == 0:
                core.asc_sync_wait("PIPE_M", "PIPE_MTE1", 2)
                core.asc_copy_l12bt(bias_bt, bias_l1[l1], 4 * N)
            for step in range(0, CHUNK, STEP):
                l0, steps = steps % 2, steps + 1
                core.asc_sync_wait("PIPE_M", "PIPE_MTE1", l0)
                load_a(core, a_l0[l0], a_l1[l1], step)
                load_b(core, b_l0[l0], b_l1[l1], step)
                core.asc_sync_notify("PIPE_MTE1", "PIPE_M", l0)
                core.asc_sync_wait("PIPE_MTE1", "PIPE_M", l0)
                biased = chunk + step == 0
                core.asc_mmad(c_l0[out], a_l0[l0], b_l0[l0], M, STEP, N, 0, False, biased, False)
                core.asc_sync_notify("PIPE_M", "PIPE_MTE1", l0)
                if biased:
                    core.asc_sync_notify("PIPE_M", "PIPE_MTE1", 2)
            core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", l1)
        core.asc_sync_notify("PIPE_M", "PIPE_FIX", out)
        core.asc_sync_wait("PIPE_M", "PIPE_FIX", out)
        core.asc_sync_block_wait("PIPE_FIX", FREE)
        to = workspace + (2 * core.block_idx + out) * M * N
        core.asc_copy_l0c2gm(to, c_l0[out], N, M, N, M, 0, "NoQuant", False, False, True)
        core.asc_sync_block_arrive("PIPE_FIX", READY)
        core.asc_sync_notify("PIPE_FIX", "PIPE_M", out)
    for_all_halves(core.asc_sync_wait)
    for _ in SLOTS:
        core.asc_sync_block_wait("PIPE_FIX", FREE)
    core.asc_sync_wait("PIPE_M", "PIPE_MTE1", 2)


def activation(core: CoreHandle, workspace: Pointer, y: Pointer, shape: tuple[int, ...]) -> None:
    """Compute half the rows of each tile: an AIV's part."""
    m, n, _ = shape
    half, ai_core = core.asc_get_sub_block_id(), core.block_idx // core.asc_get_sub_block_num()
    given, made = (
        [core.ubuf("float", HALF_TILE) for _ in SLOTS],
        [core.ubuf("half", HALF_TILE) for _ in SLOTS],
    )
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
        core.asc_sync_block_arrive("PIPE_MTE2", FREE)
    for turn, tile in enumerate(range(ai_core, m // M * (n // N), core.block_num)):
        row, column, slot = tile // (n // N) * M + half * M // 2, tile % (n // N) * N, turn % 2
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_block_wait("PIPE_MTE2", READY)
        at = workspace + ((2 * ai_core + slot) * M * N + half * HALF_TILE)
        core.asc_copy_gm2ub(given[slot], at, 4 * HALF_TILE)
        core.asc_sync_block_arrive("PIPE_MTE2", FREE)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_leakyrelu(given[slot], given[slot], SLOPE, HALF_TILE)
        core.asc_sync_pipe("PIPE_V")
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        core.asc_float2half_rn(made[slot], given[slot], HALF_TILE)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        gap = (n - N) // EDGE
        core.asc_copy_ub2gm(y + (row * n + column), made[slot], M // 2, N // EDGE, 0, gap)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)


@kernel(kind="mix", outputs="y", scratch="workspace", types=TYPES)
def matmul_leaky_relu(
    core: CoreHandle,
    a: Pointer,
    b: Pointer,
    bias: Pointer,
    y: Pointer,
    workspace: Pointer,
    m: int,
    n: int,
    k: int,
) -> None:
    """Compute every block_num-th tile."""
    if core.is_aic:
        products(core, a, b, bias, workspace, (m, n, k))
    else:
        activation(core, workspace, y, (m, n, k))


KERNELS = (matmul_leaky_relu,)


def inputs(m: int, n: int, k: int, seed: int = 1) -> tuple[Half, Half, Vector]:
    """Return a, [m, k], b, [k, n], and the bias, [n]."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    bias = rng.normal(0, 20, n).astype(np.float32)
    return a.astype(np.float16), b.astype(np.float16), bias


def small() -> tuple[Half, Half, Vector]:
    """Return inputs that are quick to try: four tiles of two chunks for each of two AI Cores."""
    return inputs(2 * M, 4 * N, 2 * CHUNK)


def launch(a: Half, b: Half, bias: Vector, blocks: int = 2) -> Half:
    """Return leaky_relu(a b + bias)."""
    (m, k), n = a.shape, b.shape[1]
    y, workspace = np.empty((m, n), np.float16), np.empty(blocks * 2 * M * N, np.float32)
    matmul_leaky_relu[blocks](a, b, bias, y, workspace, m, n, k)
    return y


def reference(a: Half, b: Half, bias: Vector) -> NDArray[np.float64]:
    """Return the same in float64."""
    total = a.astype(np.float64) @ b.astype(np.float64) + bias
    return np.where(total > 0, total, SLOPE * total)


def tolerance(a: Half, b: Half, bias: Vector) -> NDArray[np.float64]:
    """Return a bound: that of the float32 sum (as in matmul.py), and the rounding to float16."""
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64) + np.abs(bias)
    total = (a.shape[1] // STEP + np.sqrt(STEP)) * 2.0**-24 * size
    return total + np.maximum(np.abs(reference(a, b, bias)) * 2.0**-11, 2.0**-25)


def main() -> None:
    """Compute 1024 x 1280 results over K = 512 on 20 AI Cores."""
    given = inputs(1024, 1280, 512)
    error = np.abs(launch(*given, 20) - reference(*given)) / tolerance(*given)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"matmul, bias and leaky relu: off by at most {error.max():.2g} of the tolerance")


if __name__ == "__main__":
    main()
