"""Python kernels that do what C++ examples do, where `examples/kernels` has none."""

import numpy as np

from cubecore import CoreHandle, Pointer, kernel

TILE = 4096
M, N, STEP = 128, 128, 128
CHUNK = 256
EDGE = 16
FRACTAL = EDGE * EDGE
DEPENDENT = 10
"""Fractals of a sum that the Cube needs a barrier below."""
LANES = 64
BINS = 16
ALL = 2**64 - 1
ALL_AIVS = 11
"""The flag that the class API keeps for SyncAll on the AIVs."""


@kernel(outputs=("partial", "total"), types={"x": "float", "partial": "float", "total": "float"})
def add_up_together(core: CoreHandle, x: Pointer, partial: Pointer, total: Pointer, share: int):
    """Add up a share, wait for all, and add up the shares on the first block."""
    tiles = [core.ubuf("float", TILE) for _ in range(2)]
    sums, lanes, one, every = (core.ubuf("float", n) for n in (TILE, LANES, 8, 8 * 64))
    core.asc_duplicate(sums, 0.0, TILE)
    core.asc_duplicate(one, 0.0, 8)
    for slot in range(2):
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
    for tile in range(share // TILE):
        slot = tile % 2
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_copy_gm2ub(tiles[slot], x + (core.block_idx * share + tile * TILE), 4 * TILE)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_pipe("PIPE_V")
        core.asc_add(sums, sums, tiles[slot], TILE)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
    for slot in range(2):
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
    core.asc_sync_pipe("PIPE_V")
    core.asc_set_vector_mask(0, ALL)
    core.asc_repeat_reduce_sum(lanes, sums, TILE // LANES, 1, 1, 8)
    core.asc_sync_pipe("PIPE_V")
    core.asc_repeat_reduce_sum(one, lanes, 1, 1, 1, 8)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(partial + 8 * core.block_idx, one, 32)
    core.asc_sync_pipe("PIPE_ALL")
    core.asc_sync_inter_arrive("PIPE_MTE3", ALL_AIVS)
    core.asc_sync_inter_wait("PIPE_S", ALL_AIVS)
    if core.block_idx:
        return
    core.asc_copy_gm2ub(every, partial, 32 * core.block_num)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    for block in range(1, core.block_num):
        core.asc_sync_pipe("PIPE_V")
        core.asc_add(every, every, every + 8 * block, 8)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(total, every, 32)


@kernel(types={"x": "int32_t", "counts": "int32_t"})
def histogram(core: CoreHandle, x: Pointer, counts: Pointer, share: int):
    """Count every number that is a bin's."""
    given, bins = core.ubuf("int32_t", TILE), core.ubuf("int32_t", 8 * BINS)
    core.asc_copy_gm2ub(given, x + core.block_idx * share, 4 * share)
    core.asc_duplicate(bins, 0, 8 * BINS)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_S", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_S", 0)
    for at in range(share):
        number = given[at]
        if 0 <= number < BINS:
            core.asc_sync_pipe("PIPE_V")
            core.asc_add_scalar(bins + 8 * number, bins + 8 * number, 1, 8)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_set_atomic_add_int()
    core.asc_copy_ub2gm(counts, bins, 32 * BINS)
    core.asc_set_atomic_none()


def numbers(n: int) -> np.ndarray:
    """Return numbers of which some are no bin's."""
    return np.random.default_rng(3).integers(-3, BINS + 3, n).astype(np.int32)


class Queue:
    """The buffers between two pipes, with the flags that EnQue, DeQue and their kin use."""

    def __init__(self, core: CoreHandle, pipes: tuple[str, str], first: int, *buffers: Pointer):
        self.core, self.pipes, self.first, self.buffers = core, pipes, first, buffers
        self.turn, self.freed = 0, set()

    def fill(self) -> tuple[int, Pointer]:
        """Return the buffer whose turn it is, once it is free."""
        slot, self.turn = self.turn % len(self.buffers), self.turn + 1
        if slot in self.freed:
            self._wait(slot, *self.pipes[::-1])
            self.freed.remove(slot)
        return slot, self.buffers[slot]

    def hand_over(self, slot: int) -> None:
        """Say that a buffer is full, and wait until it is."""
        self.core.asc_sync_notify(*self.pipes, self.first + slot)
        self._wait(slot, *self.pipes)

    def free(self, slot: int) -> None:
        """Say that a buffer is empty."""
        self.core.asc_sync_notify(*self.pipes[::-1], self.first + slot)
        self.freed.add(slot)

    def drain(self) -> None:
        """Wait for the buffers that are empty."""
        for slot in sorted(self.freed):
            self._wait(slot, *self.pipes[::-1])

    def _wait(self, slot: int, before: str, behind: str) -> None:
        self.core.asc_sync_wait(before, behind, self.first + slot)


def fetch(
    core: CoreHandle, to: Pointer, at: Pointer, rows: int, columns: int, pitch: int, down: int = 0
) -> None:
    """Bring a piece of a matrix to L1 as NZ."""
    core.asc_copy_gm2l1_nd2nz(
        to, at, 1, rows, columns, 0, pitch, down or fractals(rows) * EDGE, 1, 0
    )


def fractals(extent: int) -> int:
    """Return how many fractals hold an extent."""
    return -(-extent // EDGE)


class Ragged:
    """The queues of a product with ragged tiles, and what goes through them."""

    def __init__(self, core: CoreHandle, n: int, k: int) -> None:
        two = range(2)
        self.core, self.n, self.k = core, n, k
        self.to_l1, self.to_l0 = ("PIPE_MTE2", "PIPE_MTE1"), ("PIPE_MTE1", "PIPE_M")
        self.a1 = Queue(core, self.to_l1, 0, *(core.cbuf("half", M * STEP) for _ in two))
        self.b1 = Queue(core, self.to_l1, 2, *(core.cbuf("half", STEP * N) for _ in two))
        self.c1 = Queue(core, self.to_l1, 4, core.cbuf("float", N))
        self.a2 = Queue(core, self.to_l0, 0, *(core.ca("half", M * STEP) for _ in two))
        self.b2 = Queue(core, self.to_l0, 2, *(core.cb("half", STEP * N) for _ in two))
        self.c2 = Queue(core, self.to_l0, 4, core.biasbuf("float", N))
        self.co1 = Queue(core, ("PIPE_M", "PIPE_FIX"), 0, *(core.cc("float", M * N) for _ in two))

    def bias(self, at: Pointer, columns: int) -> None:
        """Bring a tile's bias to the BiasTable."""
        slot, table = self.c1.fill()
        fetch(self.core, table, at, 1, columns, self.n, 1)
        self.c1.hand_over(slot)
        _, entry = self.c2.fill()
        self.core.asc_copy_l12bt(entry, table, 0, 1, 2 * fractals(columns), 0, 0)
        self.core.asc_sync_notify(*self.to_l0, 4)
        self.c1.free(slot)

    def load(self, a: Pointer, b: Pointer, extents: tuple[int, int, int]) -> tuple[int, ...]:
        """Bring a step of A and B to L0; return the slots there."""
        core, (rows, columns, depth) = self.core, extents
        down, wide, deep = map(fractals, extents)
        a1_slot, a1 = self.a1.fill()
        fetch(core, a1, a, rows, depth, self.k)
        core.asc_sync_notify(*self.to_l1, a1_slot)
        b1_slot, b1 = self.b1.fill()
        fetch(core, b1, b, depth, columns, self.n)
        core.asc_sync_notify(*self.to_l1, 2 + b1_slot)
        core.asc_sync_wait(*self.to_l1, a1_slot)
        a2_slot, a2 = self.a2.fill()
        for each in range(down):
            to, at = a2 + each * deep * FRACTAL, a1 + each * FRACTAL
            core.asc_copy_l12l0a(to, at, 0, deep, down, 0)
        core.asc_sync_notify(*self.to_l0, a2_slot)
        self.a1.free(a1_slot)
        core.asc_sync_wait(*self.to_l1, 2 + b1_slot)
        b2_slot, b2 = self.b2.fill()
        for each in range(deep):
            to, at = b2 + each * wide * FRACTAL, b1 + each * FRACTAL
            core.asc_copy_l12l0b_trans(to, at, 0, wide, deep, 0, False, 0)
        core.asc_sync_notify(*self.to_l0, 2 + b2_slot)
        self.b1.free(b1_slot)
        return a2_slot, b2_slot

    def multiply(
        self, total: Pointer, slots: tuple[int, ...], extents: tuple[int, ...], *, first: bool
    ) -> None:
        """Add a step's product to a tile, or to the bias."""
        core, (a2, b2), (rows, columns, depth) = self.core, slots, extents
        core.asc_sync_wait(*self.to_l0, a2)
        core.asc_sync_wait(*self.to_l0, 2 + b2)
        if first:
            core.asc_sync_wait(*self.to_l0, 4)
        elif fractals(rows) * fractals(columns) < DEPENDENT:
            core.asc_sync_pipe("PIPE_M")
        operands = total, self.a2.buffers[a2], self.b2.buffers[b2]
        core.asc_mmad(*operands, rows, depth, columns, 0, False, first, False)
        if first:
            self.c2.free(0)
        self.a2.free(a2)
        self.b2.free(b2)

    def end(self) -> None:
        """Wait for all that is left."""
        for queue in (self.a1, self.b1, self.c1, self.a2, self.b2, self.c2, self.co1):
            queue.drain()
        self.core.asc_sync()


@kernel(kind="cube", types={"a": "half", "b": "half", "bias": "float", "c": "float"})
def matmul(
    core: CoreHandle,
    a: Pointer,
    b: Pointer,
    bias: Pointer,
    c: Pointer,
    m: int,
    n: int,
    k: int,
):
    """Compute C = A B + bias, with ragged tiles at the ends."""
    queues, across = Ragged(core, n, k), -(-n // N)
    for tile in range(core.block_idx, -(-m // M) * across, core.block_num):
        row, column = tile // across * M, tile % across * N
        rows, columns = min(M, m - row), min(N, n - column)
        queues.bias(bias + column, columns)
        slot, total = queues.co1.fill()
        for step in range(0, k, STEP):
            extents = rows, columns, min(STEP, k - step)
            slots = queues.load(a + (row * k + step), b + (step * n + column), extents)
            queues.multiply(total, slots, extents, first=step == 0)
        queues.co1.hand_over(slot)
        to, down = c + (row * n + column), fractals(rows) * EDGE
        core.asc_copy_l0c2gm(to, total, columns, rows, n, down, 0, "NoQuant", False, False, True)
        queues.co1.free(slot)
    queues.end()


@kernel(kind="cube", types={"a": "half", "b": "half", "c": "float"})
def split_k(core: CoreHandle, a: Pointer, b: Pointer, c: Pointer, n: int, k: int, shares: int):
    """Add a part of K's products to a tile, beside the blocks with the other parts."""
    two = range(2)
    a1, b1 = ([core.cbuf("half", e * CHUNK) for _ in two] for e in (M, N))
    a2, b2 = [core.ca("half", M * STEP) for _ in two], [core.cb("half", STEP * N) for _ in two]
    total = core.cc("float", M * N)
    tile, share = divmod(core.block_idx, shares)
    row, column = tile // (n // N) * M, tile % (n // N) * N
    for slot in two:
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_M", "PIPE_MTE1", slot)
        core.asc_sync_notify("PIPE_FIX", "PIPE_M", slot)
    core.asc_sync_wait("PIPE_FIX", "PIPE_M", 0)
    begin = k // shares * share
    for chunk in range(begin, begin + k // shares, CHUNK):
        l1 = (chunk - begin) // CHUNK % 2
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", l1)
        fetch(core, a1[l1], a + (row * k + chunk), M, CHUNK, k)
        fetch(core, b1[l1], b + (chunk * n + column), CHUNK, N, n)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", l1)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", l1)
        for l0 in two:
            core.asc_sync_wait("PIPE_M", "PIPE_MTE1", l0)
            for each in range(M // EDGE):
                first = l0 * STEP // EDGE * (M // EDGE) + each
                to = a2[l0] + each * (STEP // EDGE) * FRACTAL
                core.asc_copy_l12l0a(to, a1[l1], first, STEP // EDGE, M // EDGE, 0)
            for each in range(STEP // EDGE):
                to, first = b2[l0] + each * (N // EDGE) * FRACTAL, l0 * STEP // EDGE + each
                core.asc_copy_l12l0b_trans(to, b1[l1], first, N // EDGE, CHUNK // EDGE, 0, False, 0)
            core.asc_sync_notify("PIPE_MTE1", "PIPE_M", l0)
            core.asc_sync_wait("PIPE_MTE1", "PIPE_M", l0)
            first = chunk == begin and l0 == 0
            core.asc_mmad(total, a2[l0], b2[l0], M, STEP, N, 0, False, False, first)
            core.asc_sync_notify("PIPE_M", "PIPE_MTE1", l0)
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", l1)
    core.asc_sync_notify("PIPE_M", "PIPE_FIX", 0)
    core.asc_sync_wait("PIPE_M", "PIPE_FIX", 0)
    core.asc_set_atomic_add_float()
    to = c + (row * n + column)
    core.asc_copy_l0c2gm(to, total, N, M, n, M, 0, "NoQuant", False, False, True)
    core.asc_set_atomic_none()
    core.asc_sync_notify("PIPE_FIX", "PIPE_M", 0)
    for slot in two:
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_M", "PIPE_MTE1", slot)
        core.asc_sync_wait("PIPE_FIX", "PIPE_M", slot)


def halves(*shape: int) -> np.ndarray:
    """Return halves around 0."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)
