"""Calls that are expected of a core, as the first one made them, and what it makes instead."""

import numpy as np
import pytest

import cubecore
from cubecore.frontends.source_locations import KernelError

LANES = 64
AIVS = ("core 0 AIV0", "core 0 AIV1", "core 1 AIV0")


def traced(kernel, blocks, *numbers, turns=3):
    """Launch several times; require what each core issued, and findings, of both engines alike."""
    x = np.ones(LANES * blocks, np.float32)
    for _ in range(turns):
        fast, slow = (
            kernel.using(engine=engine, trace=True)[blocks](x.copy(), *numbers)
            for engine in ("lockstep", "reference")
        )
        assert fast.findings == slow.findings
        assert fast.traces.keys() == slow.traces.keys()
        for core, trace in fast.traces.items():
            assert list(trace) == list(slow.traces[core])
    return fast


@pytest.mark.thinned(4)
@pytest.mark.parametrize("odd", range(4))
def test_a_core_that_calls_more_or_less_than_the_others(odd):
    @cubecore.kernel()
    def unlike(core, x, odd):
        a, b = core.ubuf("float", 4 * LANES), core.ubuf("float", 4 * LANES)
        core.asc_set_vector_mask(0, 2**64 - 1)
        core.asc_duplicate(a, 1.0 + core.block_idx // 2, 4, 1, 8)
        core.asc_sync_pipe("PIPE_ALL")
        for turn in range(3 + (core.block_idx == odd)):
            core.asc_add(b, a, a, 4, 1, 1, 1, 8, 8, 8)
            if core.block_idx == odd and turn == 1:
                core.asc_mul(b, a, a, 4, 1, 1, 1, 8, 8, 8)
            core.asc_sync_pipe("PIPE_V")
            if core.block_idx != odd:
                core.asc_sub(b, a, a, 4, 1, 1, 1, 8, 8, 8)
            core.asc_add(b + LANES * turn, a, a, LANES)
        core.asc_copy_ub2gm(x + core.block_idx * LANES, b, 4 * LANES)

    traced(unlike, 4, odd)


def test_launches_of_other_lengths_in_turns():
    @cubecore.kernel()
    def repeated(core, _x, turns):
        a = core.ubuf("float", LANES)
        core.asc_set_vector_mask(0, 2**64 - 1)
        for turn in range(turns):
            core.asc_duplicate(a, 1.0 + turn % 2, 1, 1, 8)
            core.asc_sync_pipe("PIPE_V")

    for turns in (2, 7, 3, 7, 0):
        traced(repeated, 3, turns, turns=1)


def test_a_pause_in_the_middle_of_what_is_expected():
    @cubecore.kernel()
    def long(core, _x, turns):
        a = core.ubuf("float", LANES)
        core.asc_set_vector_mask(0, 2**64 - 1)
        for _ in range(turns):
            core.asc_duplicate(a, 1.0, LANES)
            core.asc_sync_pipe("PIPE_V")
        assert core.load(a) == 1

    run = traced(long, 2, 2100, turns=2)
    assert run.engine == "lockstep"
    assert run.issued > 2 * 10_000


def test_equal_numbers_of_another_type_are_another_call():
    @cubecore.kernel()
    def repeats(core, _x, strange):
        a = core.ubuf("float", LANES)
        core.asc_set_vector_mask(0, 2**64 - 1)
        core.asc_duplicate(a, 1.0, float(1) if core.block_idx == strange else 1, 1, 8)

    traced(repeats, 3, 5)
    for _ in range(2):
        with pytest.raises(KernelError, match=r"asc_duplicate.repeat.* got 1\.0"):
            repeats[3](np.ones(LANES * 3, np.float32), 2)


def test_a_call_that_lacks_a_pointer_is_another_call():
    @cubecore.kernel()
    def starred(core, _x, short):
        a = core.ubuf("uint8", LANES)
        for turn in range(2):
            core.asc_get_cmp_mask(*[a][turn * (core.block_idx == short) :])
            core.asc_sync_pipe("PIPE_V")

    traced(starred, 3, 5)
    with pytest.raises(KernelError, match="asc_get_cmp_mask"):
        starred[3](np.ones(LANES * 3, np.float32), 2)


def test_the_mask_that_a_count_left_is_told_of_each_core():
    @cubecore.kernel()
    def counted(core, _x, which):
        a, b = core.ubuf("float", LANES), core.ubuf("float", LANES)
        core.asc_duplicate(a, 1.0, LANES)
        core.asc_sync_pipe("PIPE_V")
        if core.block_idx != which:
            core.asc_set_vector_mask(mask_high=0, mask_low=LANES)
        core.asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8)

    for which in range(3):
        run = traced(counted, 3, which)
        assert [(f.id, f.core) for f in run.findings] == [("stale-mask", AIVS[which])]


def test_an_array_that_one_core_leaves():
    @cubecore.kernel()
    def leaving(core, _x, which):
        a, _behind = core.ubuf("float", LANES), core.ubuf("float", LANES)
        core.asc_set_vector_mask(0, 2**64 - 1)
        for _ in range(2):
            core.asc_duplicate(a + 8 * (core.block_idx == which), 1.0, 1, 1, 8)
            core.asc_sync_pipe("PIPE_V")

    for which in range(3):
        run = traced(leaving, 3, which)
        told = [(f.id, f.core, f.count) for f in run.findings]
        assert told == [("out-of-bounds", AIVS[which], 2)]


def test_the_limit_ends_the_core_that_passes_it():
    @cubecore.kernel()
    def endless(core, _x, turns):
        a = core.ubuf("float", LANES)
        core.asc_set_vector_mask(0, 2**64 - 1)
        for _ in range(turns):
            core.asc_duplicate(a, 1.0, 1, 1, 8)

    x = np.ones(LANES, np.float32)
    assert endless.using(limit=33)[3](x, 10).issued == 33
    for _ in range(2):
        with pytest.raises(KernelError, match="more than 32 instructions"):
            endless.using(limit=32)[3](x, 10)


@pytest.mark.parametrize("other", range(5))
@pytest.mark.parametrize("who", [0, 2])
def test_a_core_that_gives_another_pointer_where_the_first_gives_the_same(other, who):
    """Another array, a place behind, one that leaves its array, another type, another memory."""

    @cubecore.kernel()
    def steady(core, x, who):
        a, b, c = (core.ubuf("float", 2 * LANES) for _ in range(3))
        others = b, a + LANES, b + 2 * LANES, core.ubuf("half", 4 * LANES), x
        core.asc_set_vector_mask(0, 2**64 - 1)
        core.asc_duplicate(a, 1.0, 2, 1, 8)
        core.asc_duplicate(b, 2.0, 2, 1, 8)
        core.asc_sync_pipe("PIPE_V")
        for turn in range(5):
            second = others[other] if core.block_idx == who and turn == 3 else a
            core.asc_add(c, a, second, 1, 1, 1, 1, 8, 8, 8)
            core.asc_sync_pipe("PIPE_ALL")
            core.asc_copy_ub2gm(x + core.block_idx * LANES, c, 4 * LANES)
            core.asc_sync_pipe("PIPE_ALL")

    if other >= 3:  # types that no add takes
        with pytest.raises(KernelError):
            traced(steady, 3, who)
        return
    found = {finding.id for finding in traced(steady, 3, who).findings}
    assert found == ({"out-of-bounds"} if other == 2 else set())
