"""Whether cores in lockstep keep apart, against a count of bytes one by one."""

import numpy as np
import pytest

from cubecore.machine.group.sanitize.aliasing import (
    Distances,
    GroupAliasing,
    Snapshots,
    require_apart,
)
from cubecore.machine.group.sanitize.divergence import DivergenceError, UnorderedError
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.footprint import Footprint

SIZE = 400


def footprint(rng):
    """A few runs of bytes."""
    ends = np.cumsum(rng.integers(1, 6, 2 * int(rng.integers(1, 4))))
    return Footprint.of(ends[::2].astype(np.int64), (ends[1::2]).astype(np.int64))


def bytes_of(touched, address):
    return {
        address + byte
        for start, end in zip(touched.starts, touched.ends, strict=True)
        for byte in range(start, end)
    }


def apart(groups):
    try:
        require_apart(groups)
    except UnorderedError:
        return False
    return True


def test_cores_meet_where_a_byte_is_written_and_touched_by_another():
    seed = 11
    rng = np.random.default_rng(seed)
    verdicts = []
    for step in range(400):
        gm = GlobalMemory()
        tensors = [gm.allocate(name, SIZE) for name in "xz"]
        touches = []
        groups = []
        for _ in range(int(rng.integers(1, 3))):
            cores = int(rng.integers(1, 4))
            reach = GroupAliasing(cores)
            own = [[set(), set()] for _ in range(cores)]
            for tensor in tensors:
                far = np.concatenate([[0], rng.integers(0, 200, cores - 1)]).astype(np.int64)
                assert reach.agree(tensor.address, far)
                for _ in range(int(rng.integers(0, 3))):
                    touched, writes = footprint(rng), bool(rng.random() < 0.4)
                    at = tensor.address + int(rng.integers(0, 150))
                    reach.note(tensor, touched, at, writes=writes)
                    for core in range(cores):
                        own[core][writes] |= bytes_of(touched, at + int(far[core]))
            groups.append(reach)
            touches += own
        meets = any(
            one[1] & (other[0] | other[1])
            for n, one in enumerate(touches)
            for m, other in enumerate(touches)
            if n != m
        )
        assert apart(groups) is not meets, f"seed {seed}, step {step}"
        verdicts.append(meets)
    assert 40 < sum(verdicts) < 360


def test_many_accesses_are_joined():
    gm = GlobalMemory()
    tensor = gm.allocate("x", 1 << 20)
    reach = GroupAliasing(2)
    assert reach.agree(tensor.address, np.array([0, 1 << 19]))
    touched = Footprint.of(np.array([0]), np.array([32]))
    for number in range(5000):
        reach.note(tensor, touched, tensor.address + 32 * number, writes=True)
    assert apart([reach])
    reach.note(tensor, touched, tensor.address + (1 << 19) - 16, writes=False)
    assert not apart([reach])


def test_distances_are_kept_and_asked_for():
    gm = GlobalMemory()
    first, second = gm.allocate("x", 4096), gm.allocate("y", 4096)
    reach = GroupAliasing(3)
    assert reach.agree(first.address, np.array([0, 64, 128]))
    assert reach.agree(first.address, np.array([0, 64, 128]))
    assert not reach.agree(first.address, np.array([0, 64, 192]))
    assert (reach.distances(first).rows, reach.distances(first).unit) == (((3, 64, 0),), 64)
    start = first.address
    assert reach.visible(first, start, start + 32) is first
    for tensor, low in (
        (first, start + 4096 - 128),
        (first, start - 1),
        (second, start),
        (None, 0),
    ):
        with pytest.raises(DivergenceError):
            reach.visible(tensor, low, low + 32)


def test_what_was_written_is_put_back():
    gm = GlobalMemory()
    placed = gm.allocate_from("x", np.arange(64, dtype=np.uint8))
    stays = gm.allocate_from("y", np.arange(64, dtype=np.uint8), stays=True)
    fresh, marked = gm.allocate("z", 64), gm.allocate("marked", 64)
    marked.buffer.data[5] = 3  # by who launches, and counts as unwritten
    tensors = placed, stays, fresh, marked
    before = [(t.wide.data.copy(), t.wide.valid.copy()) for t in tensors]
    snapshots = Snapshots()
    for tensor in tensors:
        snapshots.keep(tensor)
        tensor.wide.data[:], tensor.wide.valid[:] = 7, 1
        snapshots.keep(tensor)
    snapshots.restore()
    for tensor, (data, valid) in zip(tensors, before, strict=True):
        assert np.array_equal(tensor.wide.data, data)
        assert np.array_equal(tensor.wide.valid, valid)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ([0], [(1, 0, 0)]),
        ([0, 0, 0], [(3, 0, 0)]),
        ([0, 64, 128, 32, 96, 160], [(3, 64, 0), (3, 64, 32)]),
        ([0, 64, 32, -32], [(2, 64, 0), (1, 0, 32), (1, 0, -32)]),
    ],
)
def test_distances_are_rows_of_cores_that_lie_evenly(values, rows):
    assert list(Distances.of(np.array(values, np.int64)).rows) == rows
