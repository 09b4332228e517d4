"""Groups of cores that part and meet again: the reference engine's results, at one group's cost."""

import random

import numpy as np
import pytest

import cubecore
from cubecore.machine.group.lockstep_group import LockstepGroup
from machine.group.test_kernels import FULL, both
from parts import part

TURNS = 40
"""Turns of what all cores have in common: two instructions each."""


@pytest.fixture
def joined(monkeypatch):
    """The sizes of the groups that have met, as they did."""
    sizes, take_over = [], LockstepGroup.take_over

    def noted(group, places):
        sizes.append(len(places))
        take_over(group, places)

    monkeypatch.setattr(LockstepGroup, "take_over", noted)
    return sizes


def steered(before, rest, turns=TURNS):
    """Return a kernel that does `before` of its block's own, and then `rest` as all others do."""

    @cubecore.kernel(outputs="z")
    def kernel(core, x, z):
        tiles = [core.ubuf("int32", 64) for _ in range(3)]
        at = core.block_idx * 64
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(tiles[0], x + at, 256)
        core.asc_sync()
        before(core, tiles)
        for _ in range(turns):
            core.asc_add_scalar(tiles[0], tiles[0], 1, 1, 1, 1, 8, 8)
            core.asc_sync_pipe("PIPE_V")
        rest(core, tiles)
        core.asc_sync()
        core.asc_copy_ub2gm(z + at, tiles[0], 256)

    return kernel


def nothing(core, tiles):
    pass


def added(core, tile, times):
    for _ in range(times):
        core.asc_add_scalar(tile, tile, 1, 1, 1, 1, 8, 8)
        core.asc_sync_pipe("PIPE_V")


def run(kernel, blocks, engine="lockstep"):
    x = np.arange(64 * blocks, dtype=np.int32)
    done, (_, z) = both(kernel, blocks, (x, np.zeros_like(x)), engine=engine)
    return done, z - x


@pytest.mark.parametrize("classes", [2, 5])
def test_cores_that_meet_behind_a_barrier_are_one_group(joined, classes):
    def before(core, tiles):
        added(core, tiles[0], int(core.block_idx) % classes)
        core.asc_sync()

    done, more = run(steered(before, nothing), 10)
    assert done.clean
    assert np.array_equal(more[::64], TURNS + np.arange(10) % classes)
    assert joined == [10]


def test_cores_meet_before_what_is_recorded_later(joined):
    def before(core, tiles):
        added(core, tiles[0], int(core.block_idx))
        core.asc_sync()

    x, z = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    done = steered(before, nothing, 4200)[2](x, z)  # a core pauses after 8192 issues
    assert (done.clean, done.engine, joined) == (True, "lockstep", [2])
    assert np.array_equal(z - x, np.repeat([4200, 4201], 64))


def test_cores_that_a_value_steered_meet(joined):
    def before(core, tiles):
        added(core, tiles[0], 1 + 2 * (int(tiles[0][0]) >= 192))
        core.asc_sync()

    done, more = run(steered(before, nothing), 6)
    assert done.clean
    assert np.array_equal(more[::64], [TURNS + 1] * 3 + [TURNS + 3] * 3)
    assert joined == [6]


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_cores_meet_behind_a_finding(joined, wrong):
    def before(core, tiles):
        added(core, tiles[0], int(core.block_idx) % 2)
        if int(core.block_idx) % 2 == wrong or wrong == 2:
            core.asc_add(tiles[0], tiles[0], tiles[0] + 1, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync()

    def rest(core, tiles):
        core.asc_add(tiles[2], tiles[0], tiles[0], 1, 1, 1, 1, 8, 8, 8)
        core.asc_add(tiles[2], tiles[2], tiles[0], 1, 1, 1, 1, 8, 8, 8)

    done, _ = run(steered(before, rest), 6)
    told = [(finding.id, finding.core, finding.count) for finding in done.findings]
    assert ("misaligned", f"core 0 AIV{wrong % 2}", 6 if wrong == 2 else 3) in told
    assert ("race-raw", "core 0 AIV0", 6) in told
    assert joined == [6]


def test_cores_are_told_apart_by_what_they_have_written(joined):
    def before(core, tiles):
        if int(core.block_idx) % 2:
            core.asc_duplicate(tiles[1], 7, 1, 1, 8)
        core.asc_sync()

    def rest(core, tiles):
        core.asc_add(tiles[0], tiles[0], tiles[1], 1, 1, 1, 1, 8, 8, 8)

    done, _ = run(steered(before, rest), 4)
    assert [(finding.id, finding.count) for finding in done.findings] == [("uninitialised", 2)]
    assert joined == []


@pytest.mark.parametrize("late", ["flag", "barrier"])
def test_cores_do_not_meet_where_something_is_pending(joined, late):
    def before(core, tiles):
        odd = int(core.block_idx) % 2
        added(core, tiles[0], odd)
        if late == "flag":
            core.asc_sync_notify("PIPE_V", "PIPE_MTE3", odd)
            core.asc_sync()
        else:
            core.asc_add_scalar(tiles[0], tiles[0], 1, 1, 1, 1, 8, 8)  # in no order with the next

    def rest(core, _):
        if late == "flag":
            core.asc_sync_wait("PIPE_V", "PIPE_MTE3", int(core.block_idx) % 2)

    done, _ = run(steered(before, rest), 4)
    found = {finding.id for finding in done.findings}
    assert found == (set() if late == "flag" else {"race-raw", "race-waw"})
    assert joined == []


def test_cores_that_write_what_others_read_before_they_met_are_found():
    @cubecore.kernel(outputs="z")
    def crossing(core, x, z):
        tile = core.ubuf("int32", 64)
        own, next_ = core.block_idx * 64, (core.block_idx + 1) % 4 * 64
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(tile, x + own, 256)
        core.asc_sync()
        if int(core.block_idx) % 2:
            core.asc_copy_gm2ub(tile, z + next_, 256)
        core.asc_sync()
        added(core, tile, TURNS)
        core.asc_sync()
        core.asc_copy_ub2gm(z + own, tile, 256)

    x = np.arange(256, dtype=np.int32)
    done, _ = both(crossing, 4, (x, np.zeros_like(x)))
    assert {finding.id for finding in done.findings} >= {"race-raw", "uninitialised"}


def drawn(seed):
    """Return a kernel of random steps before and behind a barrier; few lack their barriers."""

    def steps(draw, care, count):
        return [
            (draw.choice(["add", "fill", "copy", "flag"]), draw.randrange(3), draw.random() < care)
            for _ in range(count)
        ]

    def issue(core, tiles, todo):
        for name, place, careful in todo:
            tile = tiles[place]
            if name == "add":
                core.asc_add_scalar(tile, tile, 1, 1, 1, 1, 8, 8)
            elif name == "fill":
                core.asc_duplicate(tiles[1 + place % 2], place, 1, 1, 8)
            elif name == "copy":
                core.asc_add(tiles[0], tiles[0], tile, 1, 1, 1, 1, 8, 8, 8)
            elif careful:
                core.asc_sync_notify("PIPE_V", "PIPE_MTE3", place)
                core.asc_sync_wait("PIPE_V", "PIPE_MTE3", place)
            if careful:
                core.asc_sync_pipe("PIPE_V")

    draw = random.Random(seed)
    care, classes = draw.choice([1.0, 1.0, 0.9]), draw.choice([2, 3])
    ways = [steps(draw, care, draw.randrange(5)) for _ in range(classes)]
    common, meets = steps(draw, care, 10), draw.random() < 0.8

    def before(core, tiles):
        for tile in tiles[1:]:
            core.asc_duplicate(tile, 2, 1, 1, 8)
        core.asc_sync()
        issue(core, tiles, ways[int(core.block_idx) % classes])
        if meets:
            core.asc_sync()

    def rest(core, tiles):
        issue(core, tiles, common)

    return steered(before, rest)


def test_random_kernels_leave_what_the_reference_engine_leaves(joined):
    for seed in range(part(200, 20)):
        run(drawn(seed), 4)
    assert len(joined) > 3
