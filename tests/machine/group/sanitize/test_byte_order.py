"""The order of accesses that cores share, against every byte's accesses one by one."""

import numpy as np
import pytest

from cubecore.machine.group.sanitize.byte_order import ByteOrder
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.footprint import Footprint

BLOCK = 32
CORES = 4
FOOTPRINTS = (
    Footprint.run(0, BLOCK),
    Footprint.run(BLOCK, 3 * BLOCK),
    Footprint.of(np.array([0, 4 * BLOCK]), np.array([4, 4 * BLOCK + 4])),
)


def blocks_of(touched, address):
    return {
        byte // BLOCK
        for start, end in zip(touched.starts, touched.ends, strict=True)
        for byte in range(address + int(start), address + int(end))
    }


@pytest.mark.parametrize("seed", range(40))
def test_accesses_in_another_order_are_told(seed):
    """Cores go one after another; lockstep had numbers of its own for what they do."""
    rng = np.random.default_rng(seed)
    gm = GlobalMemory()
    start = gm.allocate("z", 40 * BLOCK).address
    order, seen, wrong = ByteOrder(gm, CORES), [], set()
    alike = rng.random() < 0.3
    for core in range(CORES):
        drawn = sorted(rng.integers(0, 12, 6).tolist())
        for number in range(6 * core, 6 * core + 6) if alike else drawn:
            touched, writes = FOOTPRINTS[rng.integers(3)], bool(rng.random() < 0.3)
            at = int(rng.integers(30)) * BLOCK
            own = blocks_of(touched, at)
            for other, when, wrote, blocks in seen:
                if other != core and (writes or wrote) and blocks & own and when > number:
                    wrong.add((other, core))
            seen.append((core, number, writes, own))
            order.touch(number, core, touched, start + at, writes=writes)
    assert order.kept == (not wrong)
    assert not (alike and wrong)
    levels = order.levels()
    assert all(
        levels[second] >= levels[first] + late for (first, second), late in order.met.items()
    )


def test_cores_that_follow_each_other_have_no_levels():
    gm = GlobalMemory()
    start = gm.allocate("z", BLOCK).address
    order = ByteOrder(gm, 2)
    for number, core in ((1, 1), (0, 0), (2, 1)):
        order.touch(number, core, FOOTPRINTS[0], start, writes=True)
    assert not order.kept
    assert order.levels() is None
