"""Slow kernels in Python that no rule was written by; with the argument `better`, without it."""

import sys

import numpy as np

from cubecore import kernel

CORES = 40
NAME, BETTER = sys.argv[1], "better" in sys.argv[2:]


class Pair:
    """Two arrays of each kind that take turns, or one, and the flags between the pipes."""

    def __init__(self, core, dtype, size, count):
        self.core, self.count = core, count
        self.given = [core.ubuf(dtype, size) for _ in range(count)]
        self.made = [core.ubuf(dtype, size) for _ in range(count)]
        for slot in range(count):
            self.done("V", "MTE2", slot)
            self.done("MTE3", "V", slot)

    def done(self, src, dst, slot):
        self.core.asc_sync_notify(f"PIPE_{src}", f"PIPE_{dst}", slot)

    def after(self, src, dst, slot):
        self.core.asc_sync_wait(f"PIPE_{src}", f"PIPE_{dst}", slot)  # slow: turns

    def load(self, turn, x, size):
        slot = turn % self.count
        self.after("V", "MTE2", slot)
        self.core.asc_copy_gm2ub(self.given[slot], x, size)  # slow: crumbs
        self.done("MTE2", "V", slot)
        self.after("MTE2", "V", slot)
        self.after("MTE3", "V", slot)
        return self.given[slot], self.made[slot]

    def store(self, turn, y, size):
        slot = turn % self.count
        self.done("V", "MTE2", slot)
        self.done("V", "MTE3", slot)
        self.after("V", "MTE3", slot)
        self.core.asc_copy_ub2gm(y, self.made[slot], size)
        self.done("MTE3", "V", slot)

    def end(self):
        for slot in range(self.count):
            self.after("V", "MTE2", slot)
            self.after("MTE3", "V", slot)


@kernel(outputs="y", types={"x": "half", "y": "half"})
def crumbs(core, x, y, share):
    """Takes 128 halves at a time; better: 8192."""
    tile = 8192 if BETTER else 128
    pair = Pair(core, "half", tile, 2)
    for turn, at in enumerate(range(0, share, tile)):
        begin = core.block_idx * share + at
        given, made = pair.load(turn, x + begin, 2 * tile)
        core.asc_relu(made, given, tile)
        pair.store(turn, y + begin, 2 * tile)
    pair.end()


@kernel(outputs="y", types={"x": "half", "y": "half"})
def idle(core, x, y, share):
    """Runs on four cores; better: on forty."""
    pair = Pair(core, "half", 8192, 2)
    for turn, at in enumerate(range(0, share, 8192)):
        begin = core.block_idx * share + at
        given, made = pair.load(turn, x + begin, 16384)
        core.asc_exp(made, given, 8192)
        pair.store(turn, y + begin, 16384)
    pair.end()


@kernel(outputs="y", types={"x": "float", "y": "float"})
def turns(core, x, y, share):
    """Has one array of each kind; better: two."""
    pair = Pair(core, "float", 4096, 2 if BETTER else 1)
    for turn, at in enumerate(range(0, share, 4096)):
        begin = core.block_idx * share + at
        given, made = pair.load(turn, x + begin, 16384)
        core.asc_sqrt(made, given, 4096)
        core.asc_sync_pipe("PIPE_V")
        core.asc_abs(made, made, 4096)
        pair.store(turn, y + begin, 16384)
    pair.end()


@kernel(outputs="y", types={"x": "float", "y": "float"})
def fences(core, x, y, share):
    """Has barriers of all pipes; better: flags and two arrays of each kind."""
    if BETTER:
        pair = Pair(core, "float", 4096, 2)
        for turn, at in enumerate(range(0, share, 4096)):
            begin = core.block_idx * share + at
            given, made = pair.load(turn, x + begin, 16384)
            core.asc_exp(made, given, 4096)
            pair.store(turn, y + begin, 16384)
        pair.end()
        return
    given, made = core.ubuf("float", 4096), core.ubuf("float", 4096)
    for at in range(0, share, 4096):
        begin = core.block_idx * share + at
        core.asc_copy_gm2ub(given, x + begin, 16384)
        core.asc_sync_pipe("PIPE_ALL")  # slow: fences
        core.asc_exp(made, given, 4096)
        core.asc_sync_pipe("PIPE_ALL")  # slow: fences
        core.asc_copy_ub2gm(y + begin, made, 16384)
        core.asc_sync_pipe("PIPE_ALL")  # slow: fences


@kernel(outputs="y", types={"x": "float", "y": "float"})
def slices(core, x, y, share):
    """Computes 64 floats at a time; better: a tile."""
    pair = Pair(core, "float", 4096, 2)
    for turn, at in enumerate(range(0, share, 4096)):
        begin = core.block_idx * share + at
        given, made = pair.load(turn, x + begin, 16384)
        if BETTER:
            core.asc_abs(made, given, 4096)
        else:
            for part in range(0, 4096, 64):
                core.asc_abs(made + part, given + part, 64)  # slow: slices
        pair.store(turn, y + begin, 16384)
    pair.end()


@kernel(outputs="y", types={"x": "float", "w": "float", "y": "float"})
def table(core, x, y, share, w):
    """Loads its table of 32 KiB for each tile; better: once."""
    weights = core.ubuf("float", 8192)
    pair = Pair(core, "float", 2048, 2)
    for turn, at in enumerate(range(0, share, 2048)):
        begin = core.block_idx * share + at
        if not (BETTER and turn):
            if turn:
                core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 5)
            core.asc_copy_gm2ub(weights, w, 32768)  # slow: table
        given, made = pair.load(turn, x + begin, 8192)
        core.asc_add(made, given, weights, 2048)
        for part in range(2048, 8192, 2048):
            core.asc_sync_pipe("PIPE_V")
            core.asc_add(made, made, weights + part, 2048)
        if not BETTER and at + 2048 < share:
            core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 5)
        pair.store(turn, y + begin, 8192)
    pair.end()


if __name__ == "__main__":
    half = NAME in {"crumbs", "idle"}
    x = (np.arange(CORES * 6 * 8192) % 7 / 8 + 1).astype(np.float16 if half else np.float32)
    y, blocks = np.zeros_like(x), 4 if NAME == "idle" and not BETTER else CORES
    more = (np.ones(8192, np.float32),) if NAME == "table" else ()
    globals()[NAME][blocks](x, y, x.size // blocks, *more)
