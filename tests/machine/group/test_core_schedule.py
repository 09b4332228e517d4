"""Findings of cores that signal each other: in lockstep they are the ones of each core's turns."""

import random

import numpy as np
import pytest

import cubecore
from machine.group.test_kernels import FULL, both
from parts import part

LANES = 64


def found(kernel, blocks, *numbers, engine="lockstep", checks="usual"):
    """Run on both engines, and return the findings: kind, core and count of each."""
    x = np.arange(blocks * LANES, dtype=np.float32)
    run, _ = both(kernel, blocks, (x, np.zeros_like(x)), *numbers, engine=engine, checks=checks)
    return [(finding.id, finding.core, finding.count) for finding in run.findings]


def chained(fault, *, every=True):
    """Return a kernel in which all cores wait for all, and have a fault behind that."""

    @cubecore.kernel(outputs="z")
    def kernel(core, x, z, who):
        a, b, c = (core.ubuf("float", LANES) for _ in range(3))
        mine = core.block_idx * LANES
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(a, x + mine, 4 * LANES)
        core.asc_sync()
        core.asc_sync_inter_arrive("PIPE_V", 0)
        core.asc_sync_inter_wait("PIPE_S", 0)
        if every or core.block_idx == who:
            fault(core, a, b, c)
        core.asc_sync()
        core.asc_copy_ub2gm(z + mine, a, 4 * LANES)

    return kernel


def race(core, a, b, _):
    core.asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8)
    core.asc_add(b, b, a, 1, 1, 1, 1, 8, 8, 8)


def unwritten(core, a, b, c):
    core.asc_add(b, a, c, 1, 1, 1, 1, 8, 8, 8)


def beyond(core, a, _b, _c):
    core.asc_duplicate(a + 8, 1.0, 1, 1, 8)
    core.asc_sync()


def misaligned(core, a, b, _):
    core.asc_add(b, a + 1, a, 1, 1, 1, 1, 8, 8, 8)


def flag(core, *_):
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        (race, {"race-raw", "race-waw"}),
        (unwritten, {"uninitialised"}),
        (beyond, {"out-of-bounds"}),
        (misaligned, {"misaligned", "out-of-bounds", "overlap", "uninitialised"}),
        (flag, {"flag-leaked"}),
    ],
)
def test_the_last_core_to_signal_has_what_all_have_behind_their_wait(fault, kinds):
    told = found(chained(fault), 4, 0)
    assert {kind for kind, _, _ in told} == kinds
    assert {(core, times) for _, core, times in told} == {("core 1 AIV1", 4)}


@pytest.mark.parametrize("who", range(3))
def test_what_one_core_reports_is_that_cores(who):
    cores = "core 0 AIV0", "core 0 AIV1", "core 1 AIV0"
    assert found(chained(beyond, every=False), 3, who)[0][1] == (cores[who])


def drawn(seed):
    """Return a kernel of random faults before and behind signals in a ring, or of all to all."""
    draw = random.Random(seed)
    faults = [race, unwritten, beyond, misaligned, flag]
    rounds = [
        (draw.choice(["all", "pair"]), draw.choice(faults) if draw.random() < 0.5 else None)
        for _ in range(4)
    ]

    @cubecore.kernel(kind="mix", outputs="z")
    def kernel(core, x, z):
        if core.is_aic:
            for kind, _ in rounds:
                if kind == "pair":
                    core.asc_sync_block_wait("PIPE_S", 0)
                    core.asc_sync_block_arrive("PIPE_FIX", 1)
            return
        a, b, c = (core.ubuf("float", LANES) for _ in range(3))
        mine = core.block_idx * LANES
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(a, x + mine, 4 * LANES)
        core.asc_sync()
        for turn, (kind, fault) in enumerate(rounds):
            if fault is not None:
                fault(core, a, b, c)
                core.asc_sync()
            if kind == "all":
                core.asc_sync_inter_arrive("PIPE_V", 2 + turn)
                core.asc_sync_inter_wait("PIPE_S", 2 + turn)
            else:
                core.asc_sync_block_arrive("PIPE_MTE3", 0)
                core.asc_sync_block_wait("PIPE_S", 1)
        core.asc_copy_ub2gm(z + mine, a, 4 * LANES)

    return kernel


def test_random_faults_are_found_as_one_after_another():
    for seed in range(part(60, 12)):
        blocks = 1 + seed % 3
        x = np.arange(2 * blocks * LANES, dtype=np.float32)
        both(drawn(seed), blocks, (x, np.zeros_like(x)))
