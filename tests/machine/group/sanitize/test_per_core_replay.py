"""Findings that some cores have, or that depend on their turns: each core is judged, in lockstep.

Every case is wrong in one way, on one core or on all, and the reference engine says how.
"""

import numpy as np
import pytest

import cubecore
from machine.group.test_kernels import FULL, both

LANES = 64
TILE = 4 * LANES


def signalled(core, flag):
    core.asc_sync_inter_arrive("PIPE_MTE3", flag)
    core.asc_sync_inter_wait("PIPE_S", flag)


def kernel_of(fault, *, every, signals):
    """Return a kernel that adds, signals if it is to, and has a fault on every core or on one."""

    @cubecore.kernel(outputs="z", types={"at": "uint32"}, scratch="w")
    def kernel(core, x, at, w, z, who):
        a, b, c = (core.ubuf("float", LANES) for _ in range(3))
        picks, mine = core.ubuf("uint32", LANES), core.block_idx * LANES
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(a, x + mine, TILE)
        core.asc_copy_gm2ub(picks, at + mine, TILE)
        core.asc_sync()
        core.asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync()
        if signals:
            signalled(core, 0)
        if every or int(core.block_idx) == who:
            fault(core, (a, b, c, picks), (x, w, z), mine)
        core.asc_sync()
        if signals:
            signalled(core, 1)
        core.asc_add(a, a, b, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync()
        core.asc_copy_ub2gm(z + mine, a, TILE)

    return kernel


def gathered(core, tiles, *_):
    """Gather what some cores have just written, and others not."""
    _, _, c, picks = tiles
    core.asc_duplicate(c, 2.0, 1, 1, 8)
    core.asc_gather(tiles[1], c, picks, LANES)
    core.asc_set_vector_mask(0, FULL)


def unordered_store(core, tiles, tensors, _):
    """Store where all cores do."""
    core.asc_copy_ub2gm(tensors[1], tiles[1], TILE)


def unordered_exchange(core, tiles, tensors, mine):
    """Store a share, and read the neighbour's, with no signal in between."""
    following = (core.block_idx + 1) % core.block_num * LANES
    core.asc_copy_ub2gm(tensors[1] + mine, tiles[1], TILE)
    core.asc_sync()
    core.asc_copy_gm2ub(tiles[1], tensors[1] + following, TILE)


def taken_from_before(core, tiles, tensors, mine):
    """The same, of the neighbour that goes before."""
    before = (core.block_idx + core.block_num - 1) % core.block_num * LANES
    core.asc_copy_gm2ub(tiles[1], tensors[1] + before, TILE)
    core.asc_sync()
    core.asc_copy_ub2gm(tensors[1] + mine, tiles[0], TILE)


def read_by_the_scalar_unit(core, tiles, tensors, _):
    """Let the values of a race steer."""
    core.asc_copy_ub2gm(tensors[1], tiles[1], TILE)
    core.asc_sync()
    if float((tensors[1] + 1)[0]) > 300:
        core.asc_add(tiles[1], tiles[1], tiles[0], 1, 1, 1, 1, 8, 8, 8)


def own_race(core, tiles, tensors, mine):
    """Race with oneself in global memory."""
    core.asc_copy_ub2gm(tensors[1] + mine, tiles[1], TILE)
    core.asc_copy_gm2ub(tiles[2], tensors[1] + mine, TILE)


def atomic(core, tiles, tensors, _):
    """Add up in no order, twice, which is no finding."""
    core.asc_set_atomic_add_float()
    for _ in range(2):
        core.asc_copy_ub2gm(tensors[2], tiles[1], TILE)
    core.asc_set_atomic_none()


def stored_over_sums(core, tiles, tensors, _):
    """Add up further and further on in a loop, and store plainly to the first bytes alone."""
    core.asc_set_atomic_add_float()
    for at in (4, 8, 8):
        core.asc_copy_ub2gm(tensors[2] + at, tiles[1], 32)
    core.asc_set_atomic_none()
    core.asc_copy_ub2gm(tensors[2], tiles[1], 32)


def overflowing(core, *_):
    """Signal more often than a counter counts."""
    for _ in range(18):
        core.asc_sync_subblock_arrive("PIPE_MTE3", 5)


def stuck(core, tiles, *_):
    """Wait in vain on a pipe, and go on behind that."""
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 3)
    core.asc_add(tiles[1], tiles[0], tiles[0], 1, 1, 1, 1, 8, 8, 8)


def late(core, tiles, *_):
    """Wait before the flag is set, in the order of the program."""
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 3)
    core.asc_add(tiles[2], tiles[0], tiles[0], 1, 1, 1, 1, 8, 8, 8)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 3)


def from_elsewhere(core, tiles, *_):
    """Race, from one place or another."""
    if int(core.block_idx) % 2:
        core.asc_add(tiles[2], tiles[0], tiles[0], 1, 1, 1, 1, 8, 8, 8)
    else:
        core.asc_add(tiles[2], tiles[0], tiles[0], 1, 1, 1, 1, 8, 8, 8)
    core.asc_add(tiles[1], tiles[2], tiles[0], 1, 1, 1, 1, 8, 8, 8)


def misaligned_from_elsewhere(core, tiles, *_):
    """Break a rule, from one place or another."""
    if int(core.block_idx) % 2:
        core.asc_add(tiles[2], tiles[0] + 1, tiles[0], 1, 1, 1, 1, 8, 8, 8)
    else:
        core.asc_add(tiles[2], tiles[0] + 1, tiles[0], 1, 1, 1, 1, 8, 8, 8)


def unwritten_value(core, tiles, *_):
    """Read what nobody wrote by the scalar unit."""
    core.load(tiles[2] + 1)


def value_beyond(core, _, tensors, mine):
    """Read behind a tensor."""
    core.load(tensors[0] + mine + core.block_num * LANES)


FAULTS = {
    gathered: {"race-raw"},
    unordered_store: {"race-waw"},
    unordered_exchange: {"race-raw", "race-war"},
    taken_from_before: {"race-raw", "race-war"},
    own_race: {"race-raw"},
    atomic: set(),
    stored_over_sums: {"race-waw"},
    overflowing: {"flag-overflow", "flag-leaked"},
    stuck: {"flag-unmet"},
    late: {"flag-late"},
    from_elsewhere: {"race-raw"},
    misaligned_from_elsewhere: {"misaligned"},
    unwritten_value: {"uninitialised"},
    value_beyond: {"out-of-bounds"},
}
NEED_OTHERS = {unordered_store, unordered_exchange, taken_from_before, overflowing}
"""Faults that are none on one core alone."""


def launched(kernel, blocks, who, **options):
    """Run on both engines, which must agree, in lockstep; return the run."""
    rng = np.random.default_rng(blocks + who)
    x = rng.integers(0, 9, blocks * LANES).astype(np.float32) * 0.3
    at = rng.integers(0, LANES, blocks * LANES).astype(np.uint32) * 4
    done, _ = both(kernel, blocks, (x, at, np.zeros_like(x), np.zeros_like(x)), who, **options)
    return done


@pytest.mark.thinned(8)
@pytest.mark.parametrize("signals", [True, False])
@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_every_cores_own(fault, every, signals):
    for blocks, who in ((2, 1), (5, 3)):
        done = launched(kernel_of(fault, every=every, signals=signals), blocks, who)
        found = {finding.id for finding in done.findings}
        assert found >= FAULTS[fault] or (not every and fault in NEED_OTHERS)


@pytest.mark.parametrize("signals", [True, False])
@pytest.mark.parametrize("blocks", [3, 8])
def test_values_of_a_race_that_steer_are_those_of_each_cores_turn(blocks, signals):
    launched(kernel_of(read_by_the_scalar_unit, every=True, signals=signals), blocks, 0)
