"""Launches that do not end: deadlocks and kernels that fail, told in lockstep as core by core."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError, DeadlockError
from cubecore.frontends.source_locations import KernelError
from machine.group.test_kernels import FULL, both

LANES = 64
TILE = 4 * LANES


def ends(kernel, blocks, *numbers, **options):
    """Run on both engines, which must end by the same error with the same findings; return it."""
    errors = []
    for engine in ("fast", "reference"):
        x = np.arange(2 * blocks * LANES, dtype=np.float32)
        z = np.zeros_like(x)
        with pytest.raises(CubecoreError) as raised:
            kernel.using(engine=engine, **options)[blocks](x, z, *numbers)
        assert not z.any()
        errors.append(raised.value)
    fast, slow = errors
    assert type(fast) is type(slow)
    assert str(fast) == str(slow)
    assert fast.findings == slow.findings
    return fast


def tile_of(core, x, mine):
    """Load a tile and add it to itself, racing with the load where the kernel wants it."""
    a = core.ubuf("float", LANES)
    core.asc_set_vector_mask(0, FULL)
    core.asc_copy_gm2ub(a, x + mine, TILE)
    core.asc_sync()
    core.asc_add(a, a, a, 1, 1, 1, 1, 8, 8, 8)
    return a


@cubecore.kernel()
def waits_in_vain(core, x, z, late):
    """Race, wait for a flag that only cores from `late` on set, and race again."""
    mine = core.block_idx * LANES
    a = tile_of(core, x, mine)
    core.asc_copy_ub2gm(z + mine, a, TILE)
    if int(core.block_idx) >= late:
        core.asc_sync_inter_arrive("PIPE_MTE3", 0)
    core.asc_sync_inter_wait("PIPE_S", 0)
    core.asc_add(a, a, a, 1, 1, 1, 1, 8, 8, 8)
    core.asc_copy_ub2gm(z + mine, a, TILE)


@pytest.mark.parametrize(("blocks", "late"), [(1, 1), (2, 1), (5, 5), (5, 2), (40, 39)])
def test_a_deadlock_says_who_waits_and_what_was_found_before(blocks, late):
    error = ends(waits_in_vain, blocks, late)
    assert isinstance(error, DeadlockError)
    assert [finding.id for finding in error.findings].count("deadlock") == blocks
    races = [finding for finding in error.findings if finding.id == "race-raw"]
    assert [finding.count for finding in races] == [blocks]


@cubecore.kernel(kind="mix")
def crossed(core, _x, _z, meets):
    """AIC 0 hears from its AIVs first, AIC 1 needs what AIC 0's AIVs do behind its answer."""
    if core.is_aic:
        core.asc_sync_block_wait("PIPE_S", 0)
        core.asc_sync_block_arrive("PIPE_FIX", 1)
        return
    if int(core.block_idx) < 2:
        core.asc_sync_block_arrive("PIPE_MTE3", 0)
        core.asc_sync_block_wait("PIPE_S", 1)
        core.asc_sync_inter_arrive("PIPE_MTE3", 3)
        core.asc_sync_inter_wait("PIPE_S", 3)
        return
    if meets:
        core.asc_sync_inter_arrive("PIPE_MTE3", 3)
    core.asc_sync_inter_wait("PIPE_S", 3)
    core.asc_sync_block_arrive("PIPE_MTE3", 0)
    core.asc_sync_block_wait("PIPE_S", 1)


def test_cores_of_a_group_need_not_wait_for_each_other():
    x = np.zeros(256, np.float32)
    done, _ = both(crossed, 2, (x, np.zeros_like(x)), 1)
    assert done.clean


def test_a_deadlock_of_some_cores_of_a_group():
    error = ends(crossed, 2, 0)
    assert "core 1 AIC waits for flag 0" in str(error)
    assert "core 0 AIC waits" not in str(error)


@cubecore.kernel()
def fails(core, x, z, who, signals):
    """Race, and fail on one core and behind it, perhaps behind a wait."""
    mine = core.block_idx * LANES
    a = tile_of(core, x, mine)
    core.asc_copy_ub2gm(z + mine, a, TILE)
    core.asc_sync()
    if signals:
        core.asc_sync_inter_arrive("PIPE_MTE3", 0)
        core.asc_sync_inter_wait("PIPE_S", 0)
        core.asc_copy_ub2gm(z + mine, a, TILE)
        core.asc_add(a, a, a, 1, 1, 1, 1, 8, 8, 8)
    if int(core.block_idx) >= who:
        raise ValueError(f"core {core.block_idx}")
    core.asc_copy_ub2gm(z + mine, a, TILE)


@pytest.mark.parametrize("signals", [0, 1])
@pytest.mark.parametrize(("blocks", "who"), [(1, 0), (3, 0), (3, 1), (5, 4)])
def test_a_kernel_that_fails_takes_the_findings_of_those_before(blocks, who, signals):
    error = ends(fails, blocks, who, signals)
    assert isinstance(error, KernelError)
    (race, *_) = error.findings
    assert (race.id, race.count) == ("race-raw", blocks if signals else who + 1)


@cubecore.kernel()
def fails_by_a_value(core, x, z, who, signals):
    """Fail as a value says, behind a race."""
    mine = core.block_idx * LANES
    a = tile_of(core, x, mine)
    core.asc_copy_ub2gm(z + mine, a, TILE)
    core.asc_sync()
    if signals:
        core.asc_sync_inter_arrive("PIPE_MTE3", 0)
        core.asc_sync_inter_wait("PIPE_S", 0)
    if float(core.load(a)) >= 2 * LANES * who:
        raise ValueError(f"no more than {who}")


@pytest.mark.parametrize("signals", [0, 1])
@pytest.mark.parametrize("who", [0, 2])
def test_a_kernel_that_a_value_makes_fail(who, signals):
    error = ends(fails_by_a_value, 4, who, signals)
    assert "no more than" in str(error)


@cubecore.kernel(outputs="z")
def shown(core, x, z, who):
    """Dump a tile on some cores, twice."""
    mine = core.block_idx * LANES
    a = tile_of(core, x, mine)
    core.asc_sync()
    if int(core.block_idx) >= who:
        core.asc_dump_ubuf(a, 0, 8)
    core.asc_add(a, a, a, 1, 1, 1, 1, 8, 8, 8)
    core.asc_sync()
    if int(core.block_idx) >= who:
        core.asc_dump_ubuf(a, 1, 8)
    core.asc_copy_ub2gm(z + mine, a, TILE)


@pytest.mark.parametrize("who", [0, 2])
def test_a_look_at_memory_stays_in_lockstep(capsys, who):
    x = np.arange(4 * LANES, dtype=np.float32)
    both(shown, 4, (x, np.zeros_like(x)), who)
    lines = capsys.readouterr().out.splitlines()
    half = len(lines) // 2
    assert half > 0
    assert sorted(lines[:half]) == sorted(lines[half:])
