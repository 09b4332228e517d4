"""A launch that issues what an earlier one did: its order is not judged again, all else is."""

import numpy as np
import pytest

import cubecore
from cubecore.chips.catalog import chip
from cubecore.frontends.capi.calls.call_sites import known_calls

FULL = 2**64 - 1
LANES = 64
CORES = 3
CHIP = "Ascend910B3"


def made():
    """Return a new kernel, of which nothing is known."""

    @cubecore.kernel(outputs="z", types={"at": "uint32"})
    def neighbours(core, x, at, parts, z, fault):
        """Double a part, and add what a neighbour made, with one fault."""
        a, b, c = (core.ubuf("float", LANES) for _ in range(3))
        where, mine = core.ubuf("uint32", LANES), core.block_idx * LANES
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(a, x + mine, 4 * LANES)
        core.asc_copy_gm2ub(where, at + mine, 4 * LANES)
        if fault != "flag":
            core.asc_sync()
        core.asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync()
        core.asc_copy_ub2gm(parts + mine, b, 4 * LANES)
        core.asc_sync_inter_arrive("PIPE_MTE3", 0)
        if fault != "signal":
            core.asc_sync_inter_wait("PIPE_S", 0)
        following = (core.block_idx + 1) % core.block_num * LANES
        core.asc_copy_gm2ub(c, parts + following, 4 * LANES)
        core.asc_sync_pipe("PIPE_V" if fault == "barrier" else "PIPE_ALL")
        if fault == "gather":
            core.asc_gather(b, a, where, LANES)
            core.asc_set_vector_mask(0, FULL)
            core.asc_sync()
        core.asc_add(a, a, c, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync()
        if fault == "store":
            core.asc_copy_ub2gm(parts + mine, a, 4 * LANES)
        core.asc_copy_ub2gm((parts if fault == "address" else z) + mine, a, 4 * LANES)

    return neighbours


def launched(kernel, fault, seed=0, **options):
    """Launch on both engines; require equal bytes and findings; return the fast one's run."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(CORES * LANES).astype(np.float32)
    at = np.tile(np.arange(LANES, dtype=np.uint32) * 4, CORES)
    runs, left = [], []
    for engine in ("fast", "reference"):
        arrays = x, at, np.zeros_like(x), np.zeros_like(x)
        launch = kernel.using(chip=CHIP, engine=engine, **options)[CORES]
        runs.append(launch(*arrays, fault))
        left.append([array.tobytes() for array in arrays])
    fast, slow = runs
    assert left[0] == left[1]
    assert fast.findings == slow.findings
    return fast


def ordered(kernel):
    """Return of how many launches of a kernel it is known that they are in order."""
    return len(known_calls(kernel.function, chip(CHIP)).launches.ordered)


def test_a_launch_in_order_is_known_and_computes_anew():
    kernel = made()
    for seed in range(3):
        run = launched(kernel, "", seed)
        assert run.clean
        assert run.engine == "lockstep"
        assert ordered(kernel) == 1


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("flag", {"race-raw"}),
        ("signal", {"race-raw", "race-war", "flag-leaked"}),
        ("store", {"race-war"}),
        ("address", {"race-war", "uninitialised"}),
        ("barrier", {"race-raw"}),
    ],
)
def test_what_another_launch_does_wrong_is_found_each_time(fault, kinds):
    kernel = made()
    assert launched(kernel, "").clean
    for seed in range(2):
        assert {finding.id for finding in launched(kernel, fault, seed).findings} == kinds
        assert launched(kernel, "", seed).clean
    assert ordered(kernel) == 1


def test_other_checks_judge_anew():
    kernel = made()
    assert launched(kernel, "flag", checks="none").clean
    assert {finding.id for finding in launched(kernel, "flag").findings} == {"race-raw"}


def test_a_launch_that_values_steer_is_never_known():
    kernel = made()
    assert launched(kernel, "gather").clean
    assert ordered(kernel) == 0


def test_a_launch_without_signals_or_with_values_that_are_read_is_never_known():
    @cubecore.kernel()
    def alone(core, x, reads):
        a = core.ubuf("float", LANES)
        core.asc_copy_gm2ub(a, x, 4 * LANES)
        core.asc_sync()
        if reads:
            core.asc_sync_inter_arrive("PIPE_MTE3", 0)
            core.asc_sync_inter_wait("PIPE_S", 0)
            core.load(a)

    for reads in (0, 1):
        assert alone.using(chip=CHIP)[2](np.ones(LANES, np.float32), reads).clean
        assert ordered(alone) == 0
