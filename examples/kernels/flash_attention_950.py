"""Flash attention on Ascend 950: scores go from L0C to AIVs, probabilities from them to L1.

O = softmax(Q K^T / sqrt(D)) V for one head, without a mask. Every AI Core takes ROWS rows of Q and
goes over the keys, KEYS at a time. Nothing that its parts hand over leaves the core:

    AIC   S_j = Q K_j^T                             L0C to UB, half of the rows to each AIV
    AIV   P_j = exp(S_j / sqrt(D) - top_j)          registers; half, UB to L1, as the Cube reads it
          sum = sum * fade_j + rows of P_j, with fade_j = exp(top_(j-1) - top_j)
    AIC   O_j = P_j V_j                             L0C to UB again
    AIV   O = O * fade_j + O_j; at the end O / sum

The AIC multiplies Q K_(j+1)^T before it waits for P_j, and the AIVs compute P_(j+1) before they
wait for O_j. Flags of mode 4 between the AIC and each AIV count blocks of keys. Two slots of each
suffice: who writes a slot again has waited for what was made of it.

Shapes: q, k, v and o are [n, D], half; n is a multiple of KEYS, and ROWS times the blocks.
"""

import math

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel, vector_function

CHIP = "Ascend950PR_9589"
D = 64
ROWS, KEYS = 64, 128
SHARE = ROWS // 2  # rows of an AIV
EDGE = 16  # rows and columns of a fractal of halves
LANES = 64  # floats of a register
STAT = 8  # floats from one row's number to the next: a load of one reads 32 B
SLOTS = (0, 1)
AIVS = (0, 16)  # what an AIC adds to a flag of mode 4
SCORES, CHANCES, VALUES = 0, 1, 2
LOWEST = -(2.0**100)
Half = NDArray[np.float16]


class Products:
    """The AIC's part."""

    def __init__(self, core: CoreHandle, k: Pointer, v: Pointer) -> None:
        self.core, self.k, self.v = core, k, v
        self.q_l1 = core.cbuf.at("half", CHANCES_L1_END)
        at = CHANCES_L1_END + 2 * ROWS * D
        self.k_l1 = [core.cbuf.at("half", at + 2 * KEYS * D * slot) for slot in SLOTS]
        self.v_l1 = [core.cbuf.at("half", at + 2 * KEYS * D * (2 + slot)) for slot in SLOTS]
        self.a_l0, self.b_l0 = core.ca("half", ROWS * KEYS), core.cb("half", KEYS * D)
        self.s_l0, self.o_l0 = core.cc("float", ROWS * KEYS), core.cc("float", ROWS * D)

    def run(self, q: Pointer, blocks: int) -> None:
        """Multiply with every block of keys."""
        core = self.core
        for slot in SLOTS:
            core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_M", "PIPE_MTE1", 0)
        for event in SLOTS:
            core.asc_sync_notify("PIPE_FIX", "PIPE_M", event)
        self.fetch(self.q_l1, q, ROWS)
        self.scores(0)
        for block in range(blocks):
            if block + 1 < blocks:
                self.scores(block + 1)
            self.values(block)
        for slot in SLOTS:
            core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_M", "PIPE_MTE1", 0)
        for event in SLOTS:
            core.asc_sync_wait("PIPE_FIX", "PIPE_M", event)

    def scores(self, block: int) -> None:
        """Load K_j and V_j; multiply Q by K_j^T, and give each AIV half of the rows."""
        core, slot = self.core, block % 2
        core.asc_sync_wait("PIPE_MTE1", "PIPE_MTE2", slot)
        self.fetch(self.k_l1[slot], self.k + block * KEYS * D, KEYS)
        self.fetch(self.v_l1[slot], self.v + block * KEYS * D, KEYS)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE1", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE1", slot)
        core.asc_sync_wait("PIPE_M", "PIPE_MTE1", 0)
        self.load_left(self.q_l1, D)
        rows, columns = KEYS // EDGE, D // EDGE
        core.asc_copy_l12l0b(self.b_l0, self.k_l1[slot], 0, 0, rows, columns, rows, rows)
        self.multiply(self.s_l0, D, KEYS, 0)
        self.hand_over(core.ubuf.at("float", SCORES_UB[slot]), self.s_l0, KEYS, SCORES)

    def values(self, block: int) -> None:
        """Multiply P_j, which the AIVs have put into L1, by V_j."""
        core, slot = self.core, block % 2
        for part in AIVS:
            core.asc_sync_intra_wait("PIPE_MTE1", CHANCES + part)
        core.asc_sync_wait("PIPE_M", "PIPE_MTE1", 0)
        self.load_left(core.cbuf.at("half", CHANCES_L1[slot]), KEYS)
        rows, columns = KEYS // EDGE, D // EDGE
        core.asc_copy_l12l0b_transpose(
            self.b_l0, self.v_l1[slot], 0, 0, rows, columns, rows, columns
        )
        core.asc_sync_notify("PIPE_MTE1", "PIPE_MTE2", slot)
        self.multiply(self.o_l0, KEYS, D, 1)
        self.hand_over(core.ubuf.at("float", VALUES_UB[slot]), self.o_l0, D, VALUES)

    def fetch(self, dst: Pointer, matrix: Pointer, rows: int) -> None:
        """Load rows of D halves into L1 in NZ."""
        core = self.core
        core.asc_set_gm2l1_nz_para(1 | 1 << 16 | rows << 32)
        core.asc_copy_gm2l1_nd2nz(dst, matrix, 2 * D, 0, rows, D, 0, False)

    def load_left(self, matrix: Pointer, depth: int) -> None:
        """Move ROWS x depth from L1 to L0A."""
        rows = ROWS // EDGE
        self.core.asc_copy_l12l0a(self.a_l0, matrix, 0, 0, rows, depth // EDGE, rows, rows)

    def multiply(self, total: Pointer, depth: int, columns: int, event: int) -> None:
        """Multiply what is in L0A and L0B, once the tile before has left L0C."""
        core = self.core
        core.asc_sync_notify("PIPE_MTE1", "PIPE_M", 0)
        core.asc_sync_wait("PIPE_MTE1", "PIPE_M", 0)
        core.asc_sync_wait("PIPE_FIX", "PIPE_M", event)
        core.asc_mmad(total, self.a_l0, self.b_l0, ROWS, depth, columns, 0, False, False, True)
        core.asc_sync_notify("PIPE_M", "PIPE_MTE1", 0)
        core.asc_sync_notify("PIPE_M", "PIPE_FIX", event)
        core.asc_sync_wait("PIPE_M", "PIPE_FIX", event)

    def hand_over(self, dst: Pointer, tile: Pointer, columns: int, flag: int) -> None:
        """Write half of a tile's rows to each AIV's Unified Buffer, and tell both."""
        core = self.core
        core.asc_copy_l0c2ub(
            dst,
            tile,
            n_size=columns,
            m_size=ROWS,
            dst_stride=columns,
            src_stride=ROWS,
            dual_dst_ctl=1,
            nz2nd_en=True,
        )
        core.asc_sync_notify("PIPE_FIX", "PIPE_M", 0 if flag == SCORES else 1)
        for part in AIVS:
            core.asc_sync_intra_arrive("PIPE_FIX", flag + part)


@vector_function
def begin_rows(core: CoreHandle, top: Pointer, total: Pointer, o: Pointer) -> None:
    """Set what is kept of each row, and O's sum, to those of no keys."""
    every = core.asc_create_mask_b32("PAT_ALL")
    lowest, zero = core.vector_float(), core.vector_float()
    core.asc_duplicate_scalar(lowest, LOWEST, every)
    core.asc_duplicate_scalar(zero, 0.0, every)
    for at in range(0, SHARE * STAT, LANES):
        core.asc_storealign(top + at, lowest, every)
        core.asc_storealign(total + at, zero, every)
    for row in range(SHARE):
        core.asc_storealign(o + row * D, zero, every)


@vector_function
def chances_of(
    core: CoreHandle, s: Pointer, p: Pointer, top: Pointer, fade: Pointer, total: Pointer
) -> None:
    """Make P_j of S_j, in NZ; what is kept of each row grows."""
    every, halves = core.asc_create_mask_b32("PAT_ALL"), core.asc_create_mask_b16("PAT_ALL")
    a, b, largest, before, faded, summed = (core.vector_float() for _ in range(6))
    left, right, packed, rest = (core.vector_half() for _ in range(4))
    for row in range(SHARE):
        core.asc_loadalign(a, s + row * KEYS)
        core.asc_loadalign(b, s + (row * KEYS + LANES))
        core.asc_mul_scalar(a, a, SCALE, every)
        core.asc_mul_scalar(b, b, SCALE, every)
        core.asc_max(largest, a, b, every)
        core.asc_reduce_max(largest, largest, every)
        core.asc_duplicate(largest, largest, every)
        core.asc_loadalign_brc_elem(before, top + row * STAT)
        core.asc_max(largest, largest, before, every)
        core.asc_exp_sub(a, a, largest, every)
        core.asc_exp_sub(b, b, largest, every)
        core.asc_exp_sub(faded, before, largest, every)
        core.asc_storealign_1st(top + row * STAT, largest)
        core.asc_storealign_1st(fade + row * STAT, faded)

        core.asc_add(summed, a, b, every)
        core.asc_reduce_sum(summed, summed, every)
        core.asc_loadalign_brc_elem(before, total + row * STAT)
        core.asc_mul(before, before, faded, every)
        core.asc_add(summed, summed, before, every)
        core.asc_storealign_1st(total + row * STAT, summed)

        # Halves stand in every second lane; a row's pieces of 32 B lie SHARE rows apart in NZ.
        core.asc_float2half_rn(left, a, every)
        core.asc_float2half_rn(right, b, every)
        core.asc_deintlv(packed, rest, left, right)
        core.asc_storealign(p + row * EDGE, packed, SHARE, 0, halves)


@vector_function
def add_rows(core: CoreHandle, o: Pointer, made: Pointer, fade: Pointer) -> None:
    """Add O_j to O, which fades."""
    every = core.asc_create_mask_b32("PAT_ALL")
    total, more, factor = (core.vector_float() for _ in range(3))
    for row in range(SHARE):
        core.asc_loadalign(total, o + row * D)
        core.asc_loadalign(more, made + row * D)
        core.asc_loadalign_brc_elem(factor, fade + row * STAT)
        core.asc_mul(total, total, factor, every)
        core.asc_add(total, total, more, every)
        core.asc_storealign(o + row * D, total, every)


@vector_function
def divide_rows(core: CoreHandle, o: Pointer, total: Pointer, out: Pointer) -> None:
    """Divide O by the sums, as halves."""
    every, evens = core.asc_create_mask_b32("PAT_ALL"), core.asc_create_mask_b32("PAT_ALL")
    row_o, divisor, half = core.vector_float(), core.vector_float(), core.vector_half()
    for row in range(SHARE):
        core.asc_loadalign(row_o, o + row * D)
        core.asc_loadalign_brc_elem(divisor, total + row * STAT)
        core.asc_div(row_o, row_o, divisor, every)
        core.asc_float2half_rn(half, row_o, every)
        core.asc_storealign_pack(out.cast("uint32") + row * D // 2, half.cast("uint32"), evens)


SCALE = 1 / math.sqrt(D)
SCORES_UB = [4 * SHARE * KEYS * slot for slot in SLOTS]
VALUES_UB = [SCORES_UB[1] + 4 * SHARE * KEYS + 4 * SHARE * D * slot for slot in SLOTS]
CHANCES_UB = [VALUES_UB[1] + 4 * SHARE * D + 2 * SHARE * KEYS * slot for slot in SLOTS]
KEPT_UB = CHANCES_UB[1] + 2 * SHARE * KEYS
CHANCES_L1 = [2 * ROWS * KEYS * slot for slot in SLOTS]
CHANCES_L1_END = 2 * 2 * ROWS * KEYS
"""Addresses of what the parts hand over, which both know; what a part keeps comes behind."""


class Softmax:
    """An AIV's part."""

    def __init__(self, core: CoreHandle) -> None:
        self.core, self.part = core, core.asc_get_sub_block_id()
        at, size = KEPT_UB, 4 * SHARE * STAT
        self.top, self.total = core.ubuf.at("float", at), core.ubuf.at("float", at + size)
        self.fade = [core.ubuf.at("float", at + (2 + slot) * size) for slot in SLOTS]
        self.o = core.ubuf.at("float", at + 4 * size)
        self.out = core.ubuf.at("half", at + 4 * size + 4 * SHARE * D)

    def run(self, o: Pointer, blocks: int) -> None:
        """Follow the products with every block of keys, and write O."""
        core = self.core
        begin_rows(core, self.top, self.total, self.o)
        for slot in SLOTS:
            core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
        self.chances(0)
        for block in range(blocks):
            if block + 1 < blocks:
                self.chances(block + 1)
            self.add_values(block)
        divide_rows(core, self.o, self.total, self.out)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(o + self.part * SHARE * D, self.out, 2 * SHARE * D)
        for slot in SLOTS:
            core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)

    def chances(self, block: int) -> None:
        """Make P_j of S_j, and put this AIV's rows of it into L1."""
        core, slot = self.core, block % 2
        s, p = core.ubuf.at("float", SCORES_UB[slot]), core.ubuf.at("half", CHANCES_UB[slot])
        core.asc_sync_intra_wait("PIPE_V", SCORES)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        chances_of(core, s, p, self.top, self.fade[slot], self.total)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        own = core.cbuf.at("half", CHANCES_L1[slot]) + self.part * SHARE * EDGE
        core.asc_copy_ub2l1(own, p, KEYS // EDGE, SHARE, 0, ROWS - SHARE)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
        core.asc_sync_intra_arrive("PIPE_MTE3", CHANCES)

    def add_values(self, block: int) -> None:
        """Add O_j to O."""
        core, slot = self.core, block % 2
        core.asc_sync_intra_wait("PIPE_V", VALUES)
        add_rows(core, self.o, core.ubuf.at("float", VALUES_UB[slot]), self.fade[slot])


@kernel(kind="mix", outputs="o", types=dict.fromkeys("qkvo", "half"), chip=CHIP)
def flash_attention_950(
    core: CoreHandle, q: Pointer, k: Pointer, v: Pointer, o: Pointer, n: int
) -> None:
    """Compute ROWS rows of O on each AI Core."""
    if core.is_aic:
        Products(core, k, v).run(q + core.block_idx * ROWS * D, n // KEYS)
    else:
        ai_core = core.block_idx // core.asc_get_sub_block_num()
        Softmax(core).run(o + ai_core * ROWS * D, n // KEYS)


KERNELS = (flash_attention_950,)


def inputs(n: int, seed: int = 1) -> tuple[Half, Half, Half]:
    """Return q, k and v, [n, D]; scores grow towards the last keys, so that sums fade."""
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal((n, D)) for _ in range(3))
    k *= np.linspace(0.5, 2, n)[:, None]
    return q.astype(np.float16), k.astype(np.float16), v.astype(np.float16)


def small() -> tuple[Half, Half, Half]:
    """Return inputs that are quick to try: two AI Cores' rows over three blocks of keys."""
    q, k, v = inputs(3 * KEYS)
    return np.ascontiguousarray(q[: 2 * ROWS]), k, v


def launch(q: Half, k: Half, v: Half) -> Half:
    """Return the attention of q to k and v."""
    o = np.empty_like(q)
    flash_attention_950[len(q) // ROWS](q, k, v, o, len(k))
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
