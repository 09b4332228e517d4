"""Groups of cores that signal others, part and meet again, with and without a check of uses."""

import random

import numpy as np
import pytest

import cubecore
from machine.group.test_kernels import FULL, both
from machine.group.test_reconvergence import TURNS, added, joined, nothing, steered
from parts import part

__all__ = ["joined"]
LANES = 64


def arrive_and_wait(core, flag):
    """Wait until every vector core is here."""
    core.asc_sync_inter_arrive("PIPE_MTE3", flag)
    core.asc_sync_inter_wait("PIPE_S", flag)


def run(kernel, blocks, parts=1, **options):
    x = np.arange(LANES * parts * blocks, dtype=np.int32)
    done, (_, z) = both(kernel, blocks, (x, np.zeros_like(x)), **options)
    return done, z - x


@pytest.mark.parametrize("blocks", [3, 40])
def test_cores_that_part_between_two_signals_meet(joined, blocks):
    def before(core, tiles):
        arrive_and_wait(core, 0)
        added(core, tiles[0], int(core.block_idx) % 3)
        core.asc_sync()

    def rest(core, _):
        arrive_and_wait(core, 1)

    done, more = run(steered(before, rest), blocks)
    assert done.clean
    assert np.array_equal(more[::LANES], TURNS + np.arange(blocks) % 3)
    assert joined == [blocks]


def test_a_group_waits_in_vain_for_one_that_needs_its_signal(joined):
    """The first barrier behind which both go alike is before a signal of one of them alone."""

    def before(core, tiles):
        odd = int(core.block_idx) % 2
        core.asc_sync()
        if odd:
            core.asc_sync_subblock_arrive("PIPE_MTE3", 8)
            core.asc_sync_subblock_wait("PIPE_S", 8)
        else:
            added(core, tiles[0], 1)
            core.asc_sync_subblock_arrive("PIPE_MTE3", 8)
            added(core, tiles[0], 1)
            core.asc_sync_subblock_wait("PIPE_S", 8)
        core.asc_sync()

    done, more = run(steered(before, nothing), 4)
    assert done.clean
    assert np.array_equal(more[::LANES], TURNS + 2 * (1 - np.arange(4) % 2))
    assert joined == [4]


@pytest.mark.parametrize("blocks", [1, 4])
def test_vector_cores_of_a_mix_kernel_meet_and_the_cube_goes_on(joined, blocks):
    turns = 30

    @cubecore.kernel(kind="mix", outputs="z")
    def mixed(core, x, z):
        if core.is_aic:
            for _ in range(turns):
                core.asc_sync_block_wait("PIPE_S", 0)
                core.asc_sync_block_arrive("PIPE_FIX", 1)
            return
        tile, at = core.ubuf("int32", LANES), core.block_idx * LANES
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(tile, x + at, 4 * LANES)
        core.asc_sync()
        added(core, tile, int(core.block_idx) % 2)
        core.asc_sync()
        for _ in range(turns):
            core.asc_sync_block_arrive("PIPE_MTE3", 0)
            core.asc_sync_block_wait("PIPE_S", 1)
            added(core, tile, 1)
        core.asc_sync()
        core.asc_copy_ub2gm(z + at, tile, 4 * LANES)

    done, more = run(mixed, blocks, parts=2)
    assert done.clean
    assert np.array_equal(more[::LANES], turns + np.arange(2 * blocks) % 2)
    assert joined == [2 * blocks]


@pytest.mark.parametrize("unread", ["none", "all", "one", "each"])
def test_cores_meet_with_a_check_of_uses(joined, unread):
    """A result of some cores that others do not have is found as theirs."""

    def before(core, tiles):
        odd = int(core.block_idx) % 2
        added(core, tiles[0], odd)
        if unread == "all" or (unread == "one" and odd) or (unread == "each" and not odd):
            core.asc_add(tiles[1], tiles[0], tiles[0], 1, 1, 1, 1, 8, 8, 8)
        elif unread == "each":
            core.asc_mul(tiles[1], tiles[0], tiles[0], 1, 1, 1, 1, 8, 8, 8)
        else:
            core.asc_duplicate(tiles[1], 3, 1, 1, 8)
        core.asc_sync()

    def rest(core, tiles):
        core.asc_add(tiles[1], tiles[0], tiles[0], 1, 1, 1, 1, 8, 8, 8)  # over what is unread
        core.asc_sync()
        core.asc_add(tiles[2], tiles[1], tiles[0], 1, 1, 1, 1, 8, 8, 8)

    done, _ = run(steered(before, rest), 4, checks="all")
    told = [(finding.id, finding.count) for finding in done.findings]
    counts = {"none": [], "all": [4], "one": [2], "each": [2, 2]}[unread]
    assert told == [("unread", count) for count in counts]
    assert set(joined) == {4}


def drawn(seed, *, care):
    """Return a kernel whose cores part by what they read, between signals, and meet again.

    Each round, and the rest, a core hands its tile on to a neighbour through global memory.
    Some flags, barriers or signals are left out where `care` is below 1.
    """
    draw = random.Random(seed)
    classes, rounds, by_data = draw.choice([2, 3]), draw.randrange(1, 4), draw.random() < 0.6
    ways = [[(draw.randrange(4), draw.random()) for _ in range(classes)] for _ in range(rounds)]
    lacks = [draw.random() >= care for _ in range(6 * rounds + 6)]
    far, pairs = draw.randrange(1, 4), draw.random() < 0.3

    @cubecore.kernel(outputs="z", scratch="w")
    def kernel(core, x, w, z):
        tiles = [core.ubuf("int32", LANES) for _ in range(3)]
        at, left = core.block_idx * LANES, iter(lacks)

        def unless(step, *given):
            if not next(left, False):
                step(*given)

        def exchange(turn):
            """Give the neighbour a tile, and take one."""
            following = (core.block_idx + far) % core.block_num * LANES
            core.asc_copy_ub2gm(w + at, tiles[0], 4 * LANES)
            core.asc_sync_inter_arrive("PIPE_MTE3", turn % 4)
            unless(core.asc_sync_inter_wait, "PIPE_S", turn % 4)
            core.asc_copy_gm2ub(tiles[1], w + following, 4 * LANES)
            unless(core.asc_sync)
            core.asc_sync_inter_arrive("PIPE_MTE2", 4 + turn % 4)
            unless(core.asc_sync_inter_wait, "PIPE_S", 4 + turn % 4)
            core.asc_add(tiles[0], tiles[0], tiles[1], 1, 1, 1, 1, 8, 8, 8)
            unless(core.asc_sync)

        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(tiles[0], x + at, 4 * LANES)
        core.asc_sync()
        steers = int(tiles[0][0]) if by_data else int(core.block_idx)
        for turn in range(rounds):
            times, odds = ways[turn][steers % classes]
            added(core, tiles[0], times)
            if odds < 0.5:
                core.asc_duplicate(tiles[2], times, 1, 1, 8)
            core.asc_sync()
            exchange(turn)
            if pairs:
                core.asc_sync_subblock_arrive("PIPE_MTE3", 8)
                core.asc_sync_subblock_wait("PIPE_S", 8)
        core.asc_duplicate(tiles[2], 5, 1, 1, 8)
        core.asc_sync()
        added(core, tiles[0], 36)
        core.asc_sync()
        exchange(rounds)
        unless(core.asc_sync_pipe, "PIPE_V")
        core.asc_add(tiles[0], tiles[0], tiles[2], 1, 1, 1, 1, 8, 8, 8)
        unless(core.asc_sync)
        core.asc_copy_ub2gm(z + at, tiles[0], 4 * LANES)

    return kernel


def launched(seed, care):
    draw = random.Random(-1 - seed)
    blocks = draw.choice([2, 4, 6, 12, 40])
    x = np.array([draw.randrange(9) for _ in range(LANES * blocks)], np.int32)
    checks = draw.choice(["usual", "all"])
    arrays = x, np.zeros_like(x), np.zeros_like(x)
    done, _ = both(drawn(seed, care=care), blocks, arrays, checks=checks)
    return done


def test_random_right_kernels_meet_in_lockstep(joined):
    seeds = range(part(60, 12))
    for seed in seeds:
        assert launched(seed, 1.0).clean
    assert len(joined) > len(seeds) // 2


def test_random_wrong_kernels_have_each_cores_findings(joined):
    found = 0
    for seed in range(part(120, 30)):
        found += not launched(seed, 0.93).clean
    assert found > part(120, 30) // 3
    assert joined
