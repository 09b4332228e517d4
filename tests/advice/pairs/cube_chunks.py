"""A product whose chunks of K are 64 wide; with the argument `better` 128, which is best."""

import sys

import numpy as np

from cubecore import kernel

BETTER = "better" in sys.argv
M = N = 128
CHUNK = STEP = 128 if BETTER else 64
EDGE, K, COLUMNS = 16, 2048, 20 * 128
SLOTS = (0, 1)


@kernel(kind="cube", outputs="c", types={"a": "half", "b": "half", "c": "float"})
def matmul(core, a, b, c):
    """Multiply M rows by N columns for each block."""
    a_l1, b_l1 = ([core.cbuf("half", e * CHUNK) for _ in SLOTS] for e in (M, N))
    a_l0 = [core.ca("half", M * STEP) for _ in SLOTS]
    b_l0 = [core.cb("half", N * STEP) for _ in SLOTS]
    c_l0 = core.cc("float", M * N)
    left = core.block_idx * N
    for s in SLOTS:
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", s)
        core.asc_sync_notify("PIPE_M", "PIPE_MTE1", s)
    steps = 0
    for i, chunk in enumerate(range(0, K, CHUNK)):
        l1 = i % 2
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", l1)
        core.asc_copy_gm2l1_nd2nz(a_l1[l1], a + chunk, 1, M, CHUNK, 0, K, M, 1, 1)  # slow
        at = b + (chunk * COLUMNS + left)
        core.asc_copy_gm2l1_nd2nz(b_l1[l1], at, 1, CHUNK, N, 0, COLUMNS, CHUNK, 1, 1)  # slow
        core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", l1)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", l1)
        for step in range(0, CHUNK, STEP):
            l0, steps = steps % 2, steps + 1
            core.asc_sync_wait("PIPE_M", "PIPE_MTE1", l0)
            for r in range(M // EDGE):
                to, first = a_l0[l0] + r * STEP * EDGE, step // EDGE * (M // EDGE) + r
                core.asc_copy_l12l0a(to, a_l1[l1], first, STEP // EDGE, M // EDGE, 0)
            for r in range(STEP // EDGE):
                to, first = b_l0[l0] + r * N * EDGE, step // EDGE + r
                core.asc_copy_l12l0b_trans(to, b_l1[l1], first, N // EDGE, CHUNK // EDGE, 0)
            core.asc_sync_notify("PIPE_MTE1", "PIPE_M", l0)
            core.asc_sync_wait("PIPE_MTE1", "PIPE_M", l0)
            core.asc_mmad(c_l0, a_l0[l0], b_l0[l0], M, STEP, N, 0, False, False, chunk + step == 0)
            core.asc_sync_notify("PIPE_M", "PIPE_MTE1", l0)
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", l1)
    core.asc_sync_notify("PIPE_M", "PIPE_FIX", 0)
    core.asc_sync_wait("PIPE_M", "PIPE_FIX", 0)
    core.asc_copy_l0c2gm(c + left, c_l0, N, M, COLUMNS, M, 0, "NoQuant", False, False, True)
    for s in SLOTS:
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", s)
        core.asc_sync_wait("PIPE_M", "PIPE_MTE1", s)


if __name__ == "__main__":
    made = np.zeros((M, COLUMNS), np.float32)
    matmul[20](np.ones((M, K), np.float16), np.ones((K, COLUMNS), np.float16), made)
