"""Flash attention, forward: O = softmax(Q K^T / sqrt(D)) V for one head, without a mask.

Every AI Core takes ROWS rows of Q and goes over the keys, KEYS at a time. Its AIC multiplies, its
two AIVs, each with half the rows, keep the softmax as it grows: the largest score so far, the sum
of the exponentials, and O's sum, which is scaled down whenever a larger score turns up.

    AIC   S_j = Q K_j^T                               scores, float32, to the workspace
    AIV   P_j = exp(S_j / sqrt(D) - top_j)            probabilities, half, to the workspace
          sum = sum * fade_j + rows of P_j, with fade_j = exp(top_(j-1) - top_j)
    AIC   O_j = P_j V_j                               float32, to the workspace
    AIV   O = O * fade_j + O_j; at the end O / sum

The AIC multiplies Q K_(j+1)^T before it waits for P_j, and the AIVs compute P_(j+1) before they
wait for O_j, so that both sides work. Three flags between them count blocks of keys: SCORES,
CHANCES and VALUES are in the workspace. They suffice for two slots of each: who writes a slot again
has waited for what was made of it.

Shapes: q, k, v and o are [n, D], half; the workspace of an AI Core is two slots each of
[ROWS, KEYS] floats, [ROWS, KEYS] halves and [ROWS, D] floats. n is a multiple of KEYS, and ROWS
times the blocks.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

D = 128
ROWS, KEYS = 64, 256
SHARE = ROWS // 2  # rows of an AIV
PART = 128  # keys that L0B takes at a time
PARTS = range(KEYS // PART)
EDGE = 16  # rows and columns of a fractal of halves
FRACTAL = EDGE * EDGE
LANES = 64  # floats of a repeat
STATS = SHARE * 8 // LANES  # repeats of one block for each row
SLOTS = (0, 1)
SCORES, CHANCES, VALUES = 0, 1, 2
SUM = 2  # the event of what O_j is summed in; 0 and 1 are those of S_j's two parts
LOWEST = -(2.0**100)
Half = NDArray[np.float16]


class Workspace(NamedTuple):
    """What AIC and AIVs hand over, in global memory: an AI Core's two slots of each."""

    scores: Pointer
    chances: Pointer
    values: Pointer

    def of(self, ai_core: int, slot: int, row: int = 0) -> "Workspace":
        """Return a slot's places, from a row on."""
        first = (2 * ai_core + slot) * ROWS + row
        return Workspace(
            self.scores + first * KEYS, self.chances + first * KEYS, self.values + first * D
        )


class Products:
    """The AIC's part."""

    def __init__(self, core: CoreHandle, k: Pointer, v: Pointer, workspace: Workspace) -> None:
        self.core, self.k, self.v, self.workspace = core, k, v, workspace
        self.q_l1 = core.cbuf("half", ROWS * D)
        self.k_l1, self.v_l1 = ([core.cbuf("half", KEYS * D) for _ in SLOTS] for _ in range(2))
        self.p_l1 = [core.cbuf("half", ROWS * KEYS) for _ in SLOTS]
        self.q_l0 = core.ca("half", ROWS * D)
        self.p_l0 = [core.ca("half", ROWS * PART) for _ in SLOTS]
        self.b_l0 = [core.cb("half", PART * D) for _ in SLOTS]
        self.s_l0 = [core.cc("float", ROWS * PART) for _ in PARTS]
        self.o_l0 = core.cc("float", ROWS * D)
        self.turn = 0

    def run(self, q: Pointer, blocks: int) -> None:
        """Multiply with every block of keys."""
        core = self.core
        for slot in SLOTS:
            core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", slot)  # K
            core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", 2 + slot)  # V and P
            core.asc_sync_notify("PIPE_M", "PIPE_MTE1", slot)
        for event in (*PARTS, SUM):
            core.asc_sync_notify("PIPE_FIX", "PIPE_M", event)
        core.asc_copy_gm2l1_nd2nz(self.q_l1, q, 1, ROWS, D, 0, D, ROWS, 1, 1)
        self.scores(0)
        for block in range(blocks):
            if block + 1 < blocks:
                self.scores(block + 1)
            self.values(block)
        for slot in SLOTS:
            core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", slot)
            core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", 2 + slot)
            core.asc_sync_wait("PIPE_M", "PIPE_MTE1", slot)
        for event in (*PARTS, SUM):
            core.asc_sync_wait("PIPE_FIX", "PIPE_M", event)

    def scores(self, block: int) -> None:
        """Load K_j and V_j; multiply Q by K_j^T, which does not wait for V_j."""
        core, slot = self.core, block % 2
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", slot)
        self.fetch(self.k_l1[slot], self.k, block)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", slot)
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", 2 + slot)
        self.fetch(self.v_l1[slot], self.v, block)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", slot)
        if block == 0:
            self.load_left(self.q_l0, self.q_l1, 0)
        made = self.workspace.of(core.block_idx, slot).scores
        for part in PARTS:
            l0 = self.next_slot()
            fractals = PART // EDGE * D // EDGE
            core.asc_copy_l12l0b(
                self.b_l0[l0], self.k_l1[slot] + part * PART * D, 0, fractals, 1, 0
            )
            core.asc_sync_notify("PIPE_MTE1", "PIPE_M", l0)
            core.asc_sync_wait("PIPE_MTE1", "PIPE_M", l0)
            core.asc_sync_wait("PIPE_FIX", "PIPE_M", part)
            core.asc_mmad(
                self.s_l0[part], self.q_l0, self.b_l0[l0], ROWS, D, PART, 0, False, False, True
            )
            core.asc_sync_notify("PIPE_M", "PIPE_MTE1", l0)
            self.store(made + part * PART, self.s_l0[part], KEYS, part)
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_block_arrive("PIPE_FIX", SCORES)

    def values(self, block: int) -> None:
        """Multiply P_j by V_j."""
        core, slot = self.core, block % 2
        made = self.workspace.of(core.block_idx, slot)
        core.asc_sync_block_wait("PIPE_MTE2", CHANCES)
        core.asc_copy_gm2l1_nd2nz(self.p_l1[slot], made.chances, 1, ROWS, KEYS, 0, KEYS, ROWS, 1, 1)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", 2 + slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", 2 + slot)
        core.asc_sync_wait("PIPE_FIX", "PIPE_M", SUM)
        for part in PARTS:
            l0 = self.next_slot()
            self.load_left(self.p_l0[l0], self.p_l1[slot], part * PART)
            self.load_v(self.b_l0[l0], self.v_l1[slot] + part * PART * D)
            core.asc_sync_notify("PIPE_MTE1", "PIPE_M", l0)
            core.asc_sync_wait("PIPE_MTE1", "PIPE_M", l0)
            operands = self.o_l0, self.p_l0[l0], self.b_l0[l0]
            core.asc_mmad(*operands, ROWS, PART, D, 0, False, False, part == 0)
            core.asc_sync_notify("PIPE_M", "PIPE_MTE1", l0)
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", 2 + slot)
        self.store(made.values, self.o_l0, D, SUM)
        core.asc_sync_block_arrive("PIPE_FIX", VALUES)

    def fetch(self, dst: Pointer, matrix: Pointer, block: int) -> None:
        """Load a block of K or V into L1, in parts that are matrices of their own."""
        for part in PARTS:
            at = matrix + (block * KEYS + part * PART) * D
            to = dst + part * PART * D
            self.core.asc_copy_gm2l1_nd2nz(to, at, 1, PART, D, 0, D, PART, 1, 1)

    def next_slot(self) -> int:
        """Return the slot of L0 whose turn it is, once the Cube is done with it."""
        l0, self.turn = self.turn % 2, self.turn + 1
        self.core.asc_sync_wait("PIPE_M", "PIPE_MTE1", l0)
        return l0

    def load_left(self, dst: Pointer, matrix: Pointer, column: int) -> None:
        """Move ROWS x D from L1 to L0A, from a column on, row of fractals by row."""
        for row in range(ROWS // EDGE):
            first = column // EDGE * (ROWS // EDGE) + row
            to = dst + row * (D // EDGE) * FRACTAL
            self.core.asc_copy_l12l0a(to, matrix, first, D // EDGE, ROWS // EDGE, 0)

    def load_v(self, dst: Pointer, matrix: Pointer) -> None:
        """Move PART x D from L1 to L0B, transposing every fractal."""
        for row in range(PART // EDGE):
            to = dst + row * (D // EDGE) * FRACTAL
            self.core.asc_copy_l12l0b_trans(to, matrix, row, D // EDGE, PART // EDGE, 0, False, 0)

    def store(self, dst: Pointer, tile: Pointer, pitch: int, event: int) -> None:
        """Write a tile of ROWS x 128 row by row once it is summed."""
        core = self.core
        core.asc_sync_notify("PIPE_M", "PIPE_FIX", event)
        core.asc_sync_wait("PIPE_M", "PIPE_FIX", event)
        core.asc_copy_l0c2gm(dst, tile, 128, ROWS, pitch, ROWS, 0, "NoQuant", False, False, True)
        core.asc_sync_notify("PIPE_FIX", "PIPE_M", event)


class Softmax:
    """An AIV's part. What it keeps of each row fills a block, so that it meets rows by stride 0."""

    def __init__(self, core: CoreHandle, workspace: Workspace) -> None:
        self.core, self.workspace = core, workspace
        self.ai_core = core.block_idx // core.asc_get_sub_block_num()
        self.row = core.asc_get_sub_block_id() * SHARE
        self.s = [core.ubuf("float", SHARE * KEYS) for _ in SLOTS]
        self.p = [core.ubuf("half", SHARE * KEYS) for _ in SLOTS]
        self.o_j = [core.ubuf("float", SHARE * D) for _ in SLOTS]
        self.o, self.out = core.ubuf("float", SHARE * D), core.ubuf("half", SHARE * D)
        self.folded = [core.ubuf("float", SHARE * LANES) for _ in SLOTS]
        self.eighth, self.one = core.ubuf("float", SHARE * 8), core.ubuf("float", SHARE)
        self.top, self.fade = ([core.ubuf("float", SHARE * 8) for _ in SLOTS] for _ in range(2))
        self.sum, self.new = core.ubuf("float", SHARE * 8), core.ubuf("float", SHARE * 8)

    def run(self, o: Pointer, blocks: int) -> None:
        """Follow the products with every block of keys, and write O."""
        core = self.core
        core.asc_set_vector_mask(2**64 - 1, 2**64 - 1)
        core.asc_duplicate(self.top[1], LOWEST, STATS, 1, 8)
        core.asc_duplicate(self.sum, 0.0, STATS, 1, 8)
        core.asc_duplicate(self.o, 0.0, SHARE * D // LANES, 1, 8)
        for slot in SLOTS:
            core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)  # S
            core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 2 + slot)  # O
            core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
        self.chances(0)
        for block in range(blocks):
            if block + 1 < blocks:
                self.chances(block + 1)
            self.add_values(block)
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, D, LANES):
            self.by_row(core.asc_div, self.o + part, self.sum, D)
        core.asc_sync_pipe("PIPE_V")
        core.asc_float2half_rn(self.out, self.o, SHARE * D // LANES, 1, 1, 4, 8)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(o + self.row * D, self.out, 2 * SHARE * D)
        for slot in SLOTS:
            core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
            core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 2 + slot)
            core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)

    def chances(self, block: int) -> None:
        """Make P_j of S_j."""
        core, slot = self.core, block % 2
        s, p, made = self.s[slot], self.p[slot], self.workspace.of(self.ai_core, slot, self.row)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_block_wait("PIPE_MTE2", SCORES)
        core.asc_copy_gm2ub(s, made.scores, 4 * SHARE * KEYS)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_mul_scalar(s, s, 1 / math.sqrt(D), SHARE * KEYS // LANES, 1, 1, 8, 8)
        self.grow(s, slot)
        for part in range(0, KEYS, LANES):
            self.by_row(core.asc_sub, s + part, self.top[slot], KEYS)
        core.asc_sync_pipe("PIPE_V")
        core.asc_exp(s, s, SHARE * KEYS // LANES, 1, 1, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        core.asc_float2half_rn(p, s, SHARE * KEYS // LANES, 1, 1, 4, 8)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        core.asc_copy_ub2gm(made.chances, p, 2 * SHARE * KEYS)
        core.asc_sync_block_arrive("PIPE_MTE3", CHANCES)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
        self.reduce(core.asc_add, core.asc_datablock_reduce_sum, s)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_mul(self.sum, self.sum, self.fade[slot], STATS, 1, 1, 1, 8, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_add(self.sum, self.sum, self.new, STATS, 1, 1, 1, 8, 8, 8)

    def grow(self, s: Pointer, slot: int) -> None:
        """Take the largest scores into `top`, and how much that fades what was summed before."""
        core, before = self.core, self.top[1 - slot]
        self.reduce(core.asc_max, core.asc_datablock_reduce_max, s)
        core.asc_max(self.top[slot], before, self.new, STATS, 1, 1, 1, 8, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_sub(self.fade[slot], before, self.top[slot], STATS, 1, 1, 1, 8, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_exp(self.fade[slot], self.fade[slot], STATS, 1, 1, 8, 8)

    def add_values(self, block: int) -> None:
        """Add O_j to O."""
        core, slot = self.core, block % 2
        values = self.workspace.of(self.ai_core, slot, self.row).values
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 2 + slot)
        core.asc_sync_block_wait("PIPE_MTE2", VALUES)
        core.asc_copy_gm2ub(self.o_j[slot], values, 4 * SHARE * D)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 2 + slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 2 + slot)
        core.asc_sync_pipe("PIPE_V")
        for part in range(0, D, LANES):
            self.by_row(core.asc_mul, self.o + part, self.fade[slot], D)
        core.asc_sync_pipe("PIPE_V")
        core.asc_add(self.o, self.o, self.o_j[slot], SHARE * D // LANES, 1, 1, 1, 8, 8, 8)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 2 + slot)

    def by_row(self, compute, rows: Pointer, stats: Pointer, width: int) -> None:  # noqa: ANN001
        """Compute 64 columns of all rows with what is kept of each row."""
        pitch = width // 8
        compute(rows, rows, stats, SHARE, 1, 1, 0, pitch, pitch, 1)

    def reduce(self, fold, across, s: Pointer) -> None:  # noqa: ANN001
        """Reduce every row of S or P to one number, and fill a block of `new` with it."""
        core, (one, other), pitch = self.core, self.folded, KEYS // 8
        core.asc_sync_pipe("PIPE_V")
        fold(one, s, s + LANES, SHARE, 1, 1, 1, 8, pitch, pitch)
        fold(other, s + 2 * LANES, s + 3 * LANES, SHARE, 1, 1, 1, 8, pitch, pitch)
        core.asc_sync_pipe("PIPE_V")
        fold(one, one, other, SHARE, 1, 1, 1, 8, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        across(self.eighth, one, SHARE, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        across(self.one, self.eighth, STATS, 1, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_brcb(self.new.cast("uint32"), self.one.cast("uint32"), 1, 8, SHARE // 8)
        core.asc_sync_pipe("PIPE_V")


@kernel(kind="mix", outputs="o", scratch=Workspace._fields, types=dict.fromkeys("qkvo", "half"))
def flash_attention(
    core: CoreHandle,
    q: Pointer,
    k: Pointer,
    v: Pointer,
    o: Pointer,
    scores: Pointer,
    chances: Pointer,
    values: Pointer,
    n: int,
) -> None:
    """Compute ROWS rows of O on each AI Core."""
    workspace = Workspace(scores, chances, values)
    if core.is_aic:
        Products(core, k, v, workspace).run(q + core.block_idx * ROWS * D, n // KEYS)
    else:
        softmax = Softmax(core, workspace)
        softmax.run(o + softmax.ai_core * ROWS * D, n // KEYS)


KERNELS = (flash_attention,)


def inputs(n: int, seed: int = 1) -> tuple[Half, Half, Half]:
    """Return q, k and v, [n, D]; scores grow towards the last keys, so that sums fade."""
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal((n, D)) for _ in range(3))
    k *= np.linspace(0.5, 2, n)[:, None]
    return q.astype(np.float16), k.astype(np.float16), v.astype(np.float16)


def small() -> tuple[Half, Half, Half]:
    """Return inputs that are quick to try: two rows of blocks over three blocks of keys."""
    q, k, v = inputs(3 * KEYS)
    return np.ascontiguousarray(q[: 2 * ROWS]), k, v


def launch(q: Half, k: Half, v: Half) -> Half:
    """Return the attention of q to k and v."""
    blocks = len(q) // ROWS
    o = np.empty_like(q)
    shapes = ((KEYS, np.float32), (KEYS, np.float16), (D, np.float32))
    workspace = [np.empty((blocks, 2, ROWS, width), kind) for width, kind in shapes]
    flash_attention[blocks](q, k, v, o, *workspace, len(k))
    return o


def _chances(q: Half, k: Half) -> NDArray[np.float64]:
    scores = q.astype(np.float64) @ k.T.astype(np.float64) / np.sqrt(D)
    power = np.exp(scores - scores.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def reference(q: Half, k: Half, v: Half) -> NDArray[np.float64]:
    """Return the same in float64, all keys at once."""
    return _chances(q, k) @ v.astype(np.float64)


def tolerance(q: Half, k: Half, v: Half) -> NDArray[np.float64]:
    """Return a bound: P is rounded to half, and O; all else is float32.

    P rounds each term by 2^-11 of itself, or by 2^-25 where it is tiny against the row's largest;
    float32 rounds a score of up to 64 by 2^-19, and its exponential follows.
    """
    size = _chances(q, k) @ np.abs(v).astype(np.float64)
    tiny = 2.0**-25 * np.abs(v).astype(np.float64).sum(axis=0)
    return (2.0**-11 + 2.0**-17) * size + tiny + np.abs(reference(q, k, v)) * 2.0**-11


def main() -> None:
    """Attend with 1024 queries to 1024 keys on 16 AI Cores."""
    given = inputs(1024)
    error = np.abs(launch(*given) - reference(*given)) / tolerance(*given)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"attention of {len(given[0])} rows: off by at most {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
