"""Mmad (seed 002, table 3): unitFlag between Mmad and Fixpipe, by values, findings and order."""

from itertools import product

import numpy as np
import pytest

import cubecore
from cubecore import capi, kernel
from harness import lay_out

M, N, PART, PARTS = 32, 48, 16, 3
RNG = np.random.default_rng(5)
A = RNG.integers(-4, 5, (M, PART * PARTS)).astype(np.float16)
B = RNG.integers(-4, 5, (PART * PARTS, N)).astype(np.float16)
AB = A.astype(np.float32) @ B.astype(np.float32)
OPERANDS = [
    np.concatenate([lay_out(x[s], order, (16, 16)) for s in slices])
    for x, order, slices in (
        (A, "ZZ", [np.s_[:, p * PART : (p + 1) * PART] for p in range(PARTS)]),
        (B, "ZN", [np.s_[p * PART : (p + 1) * PART] for p in range(PARTS)]),
    )
]
A_BYTES, B_BYTES = M * PART * 2, PART * N * 2


def sum_over_k(flags, store_flag, order="program", check=True):
    """Sum three parts of K into one tile and store it; no set_flag between Mmad and Fixpipe.

    Return C and the ids of the findings.
    """

    @kernel(kind="cube", outputs="c")
    def launch(core, a, b, c):
        l1a, l1b = core.cbuf.at("half", 0), core.cbuf.at("half", 65536)
        left, right, tile = core.ca.at("half", 0), core.cb.at("half", 0), core.cc.at("float", 0)
        core.asc_copy_gm2l1(l1a, a, PARTS * A_BYTES)
        core.asc_copy_gm2l1(l1b, b, PARTS * B_BYTES)
        core.asc_sync_notify("MTE2", "MTE1", 0)
        core.asc_sync_wait("MTE2", "MTE1", 0)
        core.asc_copy_l12l0a(left, l1a, 0, PARTS * A_BYTES // 512, 1, 0)
        core.asc_copy_l12l0b(right, l1b, 0, PARTS * B_BYTES // 512, 1, 0)
        core.asc_sync_notify("MTE1", "M", 0)
        core.asc_sync_wait("MTE1", "M", 0)
        for part, flag in enumerate(flags):
            params = capi.MmadParams(m=M, n=N, k=PART, unitFlag=flag)
            params.cmatrixInitVal = part == 0
            core.Mmad(tile, left + part * A_BYTES // 2, right + part * B_BYTES // 2, params)
            core.asc_sync_pipe("PIPE_M")
        core.asc_copy_l0c2gm(c, tile, N, M, N, M, store_flag, "NoQuant", 0, False, True)

    c = np.full((M, N), -1, np.float32)
    options = {"order": order} | ({} if check else {"checks": "none"})
    ran = launch.using(**options)[1](*OPERANDS, c)
    return c, sorted({finding.id for finding in ran.findings})


@pytest.mark.parametrize("flags", list(product((2, 3), repeat=PARTS + 1)), ids=str)
def test_the_last_mmad_of_a_sum_carries_3_and_those_before_it_2(flags):
    """3 turns the flag off after an instruction and 2 leaves it on: one order is right."""
    *sums, store = flags
    c, found = sum_over_k(sums, store)
    if flags == (2, 2, 3, 3):
        assert found == []
        assert np.array_equal(c, AB)
    else:
        assert found


@pytest.mark.parametrize("order", ["program", "late", "random:3"])
def test_the_flag_alone_makes_fixpipe_wait(order):
    c, _ = sum_over_k((2, 2, 3), 3, order, check=False)
    assert np.array_equal(c, AB)


def test_without_the_flag_nothing_makes_fixpipe_wait():
    assert sum_over_k((0, 0, 0), 0)[1] == ["race-raw"]
    for flags in (((0, 0, 0), 3), ((2, 2, 3), 0)):
        assert "race-raw" in sum_over_k(*flags)[1]


def test_a_result_that_was_handed_over_is_not_accumulated_on():
    """Not for accumulation in L0C: between two results of a tile stands the Fixpipe of the first.

    A sum's Mmads before the last one hand nothing over, and are no accumulation in this sense.
    """
    assert "flag-doubled" in sum_over_k((3, 3, 3), 3)[1]
    assert "flag-doubled" in sum_over_k((2, 3, 3), 3)[1]


@pytest.mark.parametrize("shared", [True, False])
def test_finished_fractals_leave_while_mmad_goes_on(shared):
    """Fixpipe begins before the Mmad of its tile has ended, and without the flag behind it."""
    product = {"m": 128, "n": 128, "k": 64, "unit_flag": shared, "cores": 1}
    block = {"baseM": 128, "baseN": 128, "baseK": 64}
    tiling = cubecore.plan(**product, fix=block).tiling
    groups = cubecore.time(**product, tiling=tiling, record=10**4).timeline.groups
    for group in groups:
        (sums,) = (s for s in group.segments if s.pipe == "M")
        (store,) = (s for s in group.segments if s.pipe == "FIX")
        assert sums.start < store.start < store.end
        assert sums.end < store.end
        assert (store.start < sums.end) is shared
