"""Global memory of launches: pages of one before are used again, and nothing is seen of it."""

import os
import sys

import numpy as np
import pytest

from cubecore.frontends.cpp.launch.device_memory import DeviceMemory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are shared on Linux alone")


def filled(value, sizes):
    gm = DeviceMemory(sizes)
    return gm, [gm.allocate_from("x", np.full(n, value, np.uint8)) for n in sizes]


def all_bytes(gm, tensors):
    """Return what lies before the first tensor, and in each and its guard."""
    return bytes(gm._pages[:512]) + b"".join(t.wide.data.tobytes() for t in tensors)


def test_memory_looks_as_if_it_were_new():
    sizes = (1000, 3, 513)
    new = all_bytes(*filled(7, sizes))
    filled(255, (60_000,))  # its pages are free at once
    again, tensors = filled(7, sizes)
    assert all_bytes(again, tensors) == new
    assert [t.buffer.data.tobytes() for t in tensors] == [bytes([7] * n) for n in sizes]


def test_memory_that_is_seen_is_not_used_again():
    gm, (kept,) = filled(1, (5000,))
    data = kept.buffer.data
    del gm, kept
    others = [filled(value, (5000,)) for value in (2, 3)]
    assert set(data) == {1}
    assert [set(tensors[0].buffer.data) for _, tensors in others] == [{2}, {3}]


def test_a_process_that_was_forked_has_pages_of_its_own():
    filled(1, (5000,))
    (begun, begin), (gone_on, go_on) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        _, (own,) = filled(2, (5000,))
        os.write(begin, b"x")
        os.read(gone_on, 1)
        os._exit(int(set(own.buffer.data) != {2}))
    os.read(begun, 1)
    _, (own,) = filled(3, (5000,))
    os.write(go_on, b"x")
    assert os.waitpid(child, 0)[1] == 0
    assert set(own.buffer.data) == {3}
