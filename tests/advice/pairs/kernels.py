"""Kernels in Python, each slow for one reason; with the argument `better`, without it."""

import sys

import numpy as np

from cubecore import kernel

CORES = 40
NAME, BETTER = sys.argv[1], "better" in sys.argv[2:]
TILE = 2048
if NAME == "small_copies":
    TILE = 4096 if BETTER else 64
SLOTS = range(1 if NAME == "one_buffer" and not BETTER else 2)
WIDTH = TILE if BETTER else 64


def flags(core, src, dst, slots=(0,)):
    for slot in slots:
        core.asc_sync_notify(f"PIPE_{src}", f"PIPE_{dst}", slot)


def waits(core, src, dst, slots=(0,)):
    for slot in slots:
        core.asc_sync_wait(f"PIPE_{src}", f"PIPE_{dst}", slot)


@kernel(outputs="y", types={"x": "float", "y": "float"})
def small_copies(core, x, y, share):
    """Square in tiles of 64 floats; better: of 4096."""
    given, made = ([core.ubuf("float", TILE) for _ in SLOTS] for _ in range(2))
    flags(core, "V", "MTE2", SLOTS)
    flags(core, "MTE3", "V", SLOTS)
    for number in range(share // TILE):
        slot, at = number % len(SLOTS), core.block_idx * share + number * TILE
        waits(core, "V", "MTE2", [slot])
        core.asc_copy_gm2ub(given[slot], x + at, 4 * TILE)  # slow: small_copies
        flags(core, "MTE2", "V", [slot])
        waits(core, "MTE2", "V", [slot])
        waits(core, "MTE3", "V", [slot])
        core.asc_mul(made[slot], given[slot], given[slot], TILE)
        flags(core, "V", "MTE2", [slot])
        flags(core, "V", "MTE3", [slot])
        waits(core, "V", "MTE3", [slot])
        core.asc_copy_ub2gm(y + at, made[slot], 4 * TILE)
        flags(core, "MTE3", "V", [slot])
    waits(core, "V", "MTE2", SLOTS)
    waits(core, "MTE3", "V", SLOTS)


@kernel(outputs="y", types={"x": "float", "y": "float"})
def one_buffer(core, x, y, share):
    """Compute in one buffer; better: in two that take turns."""
    given, made = ([core.ubuf("float", TILE) for _ in SLOTS] for _ in range(2))
    flags(core, "V", "MTE2", SLOTS)
    flags(core, "MTE3", "V", SLOTS)
    for number in range(share // TILE):
        slot, at = number % len(SLOTS), core.block_idx * share + number * TILE
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)  # slow: one_buffer
        core.asc_copy_gm2ub(given[slot], x + at, 4 * TILE)
        flags(core, "MTE2", "V", [slot])
        waits(core, "MTE2", "V", [slot])
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)  # slow: one_buffer
        core.asc_exp(made[slot], given[slot], TILE)
        for _ in range(2):
            core.asc_sync_pipe("PIPE_V")
            core.asc_sqrt(made[slot], made[slot], TILE)
            core.asc_sync_pipe("PIPE_V")
            core.asc_exp(made[slot], made[slot], TILE)
        flags(core, "V", "MTE2", [slot])
        flags(core, "V", "MTE3", [slot])
        waits(core, "V", "MTE3", [slot])
        core.asc_copy_ub2gm(y + at, made[slot], 4 * TILE)
        flags(core, "MTE3", "V", [slot])
    waits(core, "V", "MTE2", SLOTS)
    waits(core, "MTE3", "V", SLOTS)


@kernel(outputs="y", types={"x": "float", "y": "float"})
def barrier(core, x, y, share):
    """Wait for all pipes behind each step; better: for a flag, with two buffers."""
    given, made = core.ubuf("float", TILE), core.ubuf("float", TILE)
    for number in range(share // TILE):
        at = core.block_idx * share + number * TILE
        core.asc_copy_gm2ub(given, x + at, 4 * TILE)
        core.asc_sync_pipe("PIPE_ALL")  # slow: barrier
        core.asc_mul(made, given, given, TILE)
        core.asc_sync_pipe("PIPE_ALL")  # slow: barrier
        core.asc_copy_ub2gm(y + at, made, 4 * TILE)
        core.asc_sync_pipe("PIPE_ALL")  # slow: barrier


@kernel(outputs="y", types={"x": "float", "y": "float"})
def short_vectors(core, x, y, share):
    """Square each row of a tile; better: the whole tile."""
    given, made = core.ubuf("float", TILE), core.ubuf("float", TILE)
    for number in range(share // TILE):
        at = core.block_idx * share + number * TILE
        core.asc_copy_gm2ub(given, x + at, 4 * TILE)
        flags(core, "MTE2", "V")
        waits(core, "MTE2", "V")
        for row in range(0, TILE, WIDTH):
            core.asc_mul(made + row, given + row, given + row, WIDTH)  # slow: short_vectors
        flags(core, "V", "MTE3")
        waits(core, "V", "MTE3")
        core.asc_copy_ub2gm(y + at, made, 4 * TILE)
        flags(core, "MTE3", "MTE2")
        waits(core, "MTE3", "MTE2")


@kernel(outputs="y", types={"x": "float", "w": "float", "y": "float"})
def loaded_again(core, x, w, y, share):
    """Load the weights for each tile; better: once."""
    given, weights = core.ubuf("float", TILE), core.ubuf("float", 4 * TILE)
    made = core.ubuf("float", TILE)
    for number in range(share // TILE):
        at = core.block_idx * share + number * TILE
        if not (BETTER and number):
            core.asc_copy_gm2ub(weights, w, 16 * TILE)  # slow: loaded_again
        core.asc_copy_gm2ub(given, x + at, 4 * TILE)
        flags(core, "MTE2", "V")
        waits(core, "MTE2", "V")
        core.asc_mul(made, given, weights, TILE)
        for part in range(1, 4):
            core.asc_sync_pipe("PIPE_V")
            core.asc_mul(made, made, weights + part * TILE, TILE)
        flags(core, "V", "MTE3")
        waits(core, "V", "MTE3")
        core.asc_copy_ub2gm(y + at, made, 4 * TILE)
        flags(core, "MTE3", "MTE2")
        waits(core, "MTE3", "MTE2")


def launch():
    """Launch a kernel in its slow or its better form."""
    x = (np.arange(CORES * 16 * 2048) % 7 / 8 + 1).astype(np.float32)
    y, blocks = np.zeros_like(x), 5 if NAME == "few_blocks" and not BETTER else CORES
    called = NAME if NAME in globals() else "small_copies"
    if NAME == "barrier" and BETTER:
        called = "small_copies"
    given = (x, np.ones(8192, np.float32)) if NAME == "loaded_again" else (x,)
    globals()[called][blocks](*given, y, x.size // blocks)


if __name__ == "__main__":
    launch()
