"""Memory of a process that has just begun: the same bytes, in pages of their own."""

import os
import sys

import numpy as np
import pytest

from cubecore.machine.memory import allocator
from cubecore.machine.memory.places import MemoryStack


@pytest.mark.parametrize("size", [0, 1, 4096, (2 << 20) - 1, (2 << 20) + 1])
def test_untouched_bytes_are_zeros_that_may_be_written(size):
    made, other = allocator.untouched_bytes(size), allocator.untouched_bytes(size)
    assert made.size == size
    assert not made.any()
    made[:] = 7
    assert not other.any()


@pytest.mark.skipif(sys.platform == "win32", reason="a process is not forked there")
def test_memories_are_the_same_in_a_forked_process():
    here = MemoryStack(40, 64 << 10)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        allocator.begin_process()
        there = MemoryStack(40, 64 << 10)
        same = np.array_equal(there.data, here.data) and not there.valid.any()
        os.write(write, bytes([same]))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == bytes([True])
