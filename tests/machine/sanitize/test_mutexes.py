"""Mutexes between pipes: what they order, in each order of the pipes and in time, and misuse."""

import numpy as np
import pytest

from cubecore import capi, kernel
from cubecore.isa.program.launch import TensorSpec
from cubecore.kernels.build.recorded_launch import RecordedTensor, Recording, recorded_launch
from cubecore.timing.launch import time_launch

CHIP = "Ascend950PR_9589"
N = 256
TILES = 4


@kernel(kind="vector", chip=CHIP, outputs="z")
def copied(core, x, z, held, buffers):
    """Copy tiles of x by way of some buffers; the mutex of each goes from pipe to pipe."""
    for turn in range(TILES):
        mutex = turn % buffers
        tile, other = (core.ubuf.at("float", (2 * mutex + i) * N * 4) for i in (0, 1))
        core.asc_lock("PIPE_MTE2", mutex)
        core.asc_copy_gm2ub(tile, x + turn * N, N * 4)
        core.asc_unlock("PIPE_MTE2", mutex)
        if held:
            core.asc_lock("PIPE_V", mutex)
        core.asc_copy_ub2ub(other, tile, 1, N * 4 // 32, 0, 0)
        if held:
            core.asc_unlock("PIPE_V", mutex)
        core.asc_lock("PIPE_MTE3", mutex)
        core.asc_copy_ub2gm(z + turn * N, other, N * 4)
        core.asc_unlock("PIPE_MTE3", mutex)


def run_of(held=True, buffers=2, **options):
    x, z = np.arange(TILES * N, dtype=np.float32), np.zeros(TILES * N, np.float32)
    run = copied.using(**options)[1](x, z, held, buffers)
    return run, np.array_equal(z, x)


@pytest.mark.parametrize("order", ["program", "late", "early", "random:1"])
def test_a_mutex_orders_its_holders(order):
    run, right = run_of(order=order)
    assert [f.message for f in run.findings] == []
    assert right


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_pipe_without_the_mutex_races(engine):
    run, _ = run_of(held=False, engine=engine)
    assert {f.id for f in run.findings} >= {"race-raw"}
    _, right = run_of(held=False, order="late")
    assert not right


def cycles_of(**words):
    return timed(run_of(trace=True, **words)[0])


def timed(run):
    placed = [
        RecordedTensor(TensorSpec(t.name, t.buffer.size_bytes), t.address) for _, t in run.tensors
    ]
    traces = [Recording(core.core, core.sub, trace) for core, trace in run.traces.items()]
    return time_launch(recorded_launch(run.kernel, placed, traces), run.chip).cycles


def test_two_buffers_overlap():
    """Pipes wait for the mutexes that others hold, and for those alone."""
    alone, two, free = (cycles_of(buffers=n) for n in (1, 2, 4))
    assert free <= two < alone
    assert cycles_of(held=False, buffers=1) < alone


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (["lock", "unlock"] * 2, None),
        (["lock", "lock", "unlock"], "locked again at"),
        (["unlock"], "without a lock"),
        (["lock"], "still locked"),
        (["lock:1", "unlock:1"], None),
        (["lock:1", "unlock:0"], "in ASC_LOCK_BLOCK and locked in ASC_LOCK_NON_BLOCK"),
    ],
)
def test_locks_and_unlocks_by_turns(steps, said):
    @kernel(kind="vector", chip=CHIP)
    def turns(core):
        for step in steps:
            name, *mode = step.split(":")
            getattr(core, f"asc_{name}")("PIPE_V", 3, *map(int, mode))

    run = turns[1]()
    assert [f.id for f in run.findings] == ["mutex-unpaired"] * (said is not None)
    assert all("mutex 3" in f.message and said in f.message for f in run.findings)


@kernel(kind="vector", chip=CHIP, outputs="z")
def passed_on(core, x, z, mode, reads):
    """Copy x by way of UB; V has the mutex between MTE2 and MTE3, and `reads` or does not."""
    tile, other = (core.ubuf.at("float", i * N * 4) for i in (0, 1))
    core.asc_lock("PIPE_MTE2", 0)
    core.asc_copy_gm2ub(tile, x, N * 4)
    core.asc_unlock("PIPE_MTE2", 0)
    core.asc_lock("PIPE_V", 0, mode)
    if reads:
        core.asc_copy_ub2ub(other, tile, 1, N * 4 // 32, 0, 0)
    core.asc_unlock("PIPE_V", 0, mode)
    core.asc_lock("PIPE_MTE3", 0)
    core.asc_copy_ub2gm(z, other if reads else tile, N * 4)
    core.asc_unlock("PIPE_MTE3", 0)


@pytest.mark.parametrize("order", ["program", "late", "early", "random:1"])
@pytest.mark.parametrize(
    ("mode", "reads", "ordered"),
    [
        (capi.ASC_LOCK_BLOCK, True, True),
        (capi.ASC_LOCK_NON_BLOCK, True, False),  # V does not wait for MTE2
        (capi.ASC_LOCK_NON_BLOCK, False, True),  # its unlock does, and so MTE3
    ],
)
def test_a_lock_that_does_not_block_leaves_waiting_to_its_unlock(order, mode, reads, ordered):
    x, z = np.arange(N, dtype=np.float32) + 1, np.zeros(N, np.float32)
    run = passed_on.using(order=order)[1](x, z, mode, reads)
    assert ("race-raw" in {f.id for f in run.findings}) != ordered
    if ordered or order == "late":
        assert np.array_equal(z, x) == ordered


def test_a_pipe_that_does_not_wait_is_done_earlier():
    block, free = (
        timed(passed_on.using(trace=True)[1](np.ones(N, np.float32), np.ones(N, np.float32), *how))
        for how in ((capi.ASC_LOCK_BLOCK, True), (capi.ASC_LOCK_NON_BLOCK, True))
    )
    assert free < block
