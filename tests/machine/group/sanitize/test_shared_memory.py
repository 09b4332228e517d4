"""Global memory under signals: the first access that nothing orders, against bytes one by one."""

import numpy as np
import pytest

from cubecore.machine.group.sanitize.aliasing import Distances
from cubecore.machine.group.sanitize.divergence import UnorderedError
from cubecore.machine.group.sanitize.shared_memory import SharedMemory
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitize.flags import PIPES
from cubecore.machine.sanitize.happens_before import CoreOrder

FOOTPRINTS = (
    Footprint.run(0, 8),
    Footprint.run(4, 20),
    Footprint.of(np.array([0, 12]), np.array([4, 16])),
    Footprint.of(np.array([4, 20]), np.array([8, 24])),
)


def bytes_of(touched, address):
    return {
        address + byte
        for start, end in zip(touched.starts, touched.ends, strict=True)
        for byte in range(int(start), int(end))
    }


class Cores:
    """A group of cores, and the distances that it may lie at."""

    def __init__(self, rng, cores, total):
        self.order = CoreOrder(lambda _: None, cores, total)
        n = len(cores)
        spread = [32 * np.arange(n), 32 * rng.permutation(n)] + [np.zeros(n)] * (rng.random() < 0.2)
        self.far = [Distances.of(np.array(values, np.int64)) for values in spread]

    def hear(self, rng, groups):
        """Know more of all cores' pipes, at most what they did; of one's own pipes all."""
        done = np.zeros_like(self.order.foreign)
        for other in groups:
            done[:, other.order.cores] = other.order.counts
        heard = np.where(rng.random(done.shape) < 0.7, done, rng.integers(0, done + 1))
        self.order.foreign = np.maximum(self.order.foreign, heard)

    def enter(self, pipe):
        number = self.order.enter(pipe)
        for known in self.order.done:
            known[:] = self.order.counts
        return number


class Bytes:
    """Every byte's accesses: by which core and pipe, its number there, and whether it wrote."""

    def __init__(self):
        self.seen = {}

    def conflicts(self, cores, far, access, pipe, number, *, writes):
        touched, address = access
        found, entered = False, []
        for row, core in enumerate(cores.order.cores.tolist()):
            for byte in bytes_of(touched, address + int(far.values[row])):
                for other, by, when, wrote in self.seen.get(byte, ()):
                    known = cores.order.foreign[row, other, by]
                    found |= other != core and (writes or wrote) and when > known
                found |= writes and any(b == byte for _, b in entered if _ != core)
                entered.append((core, byte))
        for core, byte in entered:
            self.seen.setdefault(byte, []).append((core, pipe, number, writes))
        return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(150))
def test_the_first_access_in_no_order_is_found(seed):
    rng = np.random.default_rng(seed)
    groups = [Cores(rng, [0, 2, 4], 5), Cores(rng, [1, 3], 5)]
    shared, oracle = SharedMemory(), Bytes()
    writing, hearing = rng.random(2) ** 2
    for _ in range(40):
        cores = groups[rng.integers(2)]
        if rng.random() < 0.2 + hearing:
            cores.hear(rng, groups)
        pipe, writes = int(rng.integers(len(PIPES))), bool(rng.random() < writing)
        far = cores.far[rng.integers(len(cores.far))]
        access = FOOTPRINTS[rng.integers(4)], 8 * int(rng.integers(6))
        number = cores.enter(pipe)
        wanted = oracle.conflicts(cores, far, access, pipe, number, writes=writes)
        place = cores.order, 0, far, *access, pipe, number
        if wanted:
            with pytest.raises(UnorderedError):
                shared.touch(*place, writes=writes)
            return
        shared.touch(*place, writes=writes)


def test_what_another_tensor_holds_is_no_conflict():
    rng = np.random.default_rng(0)
    groups = [Cores(rng, [0, 2], 4), Cores(rng, [1, 3], 4)]
    shared = SharedMemory()
    for tensor, cores in enumerate(groups):
        far, number = cores.far[0], cores.enter(0)
        shared.touch(cores.order, 4096 * tensor, far, FOOTPRINTS[0], 0, 0, number, writes=True)
