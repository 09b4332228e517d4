"""Memories: bytes, poison, marks of what was written; tensors in global memory."""

from itertools import pairwise

import numpy as np

from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer


def test_new_memory_is_poison_and_unwritten():
    buffer = MemoryBuffer(64)
    assert buffer.data.tolist() == [255] * 64
    assert buffer.valid.tolist() == [0] * 64


def test_written_looks_at_every_byte():
    buffer = MemoryBuffer(64)
    buffer.valid[8:16] = 1
    assert buffer.written(8, 16)
    assert buffer.written(8, 16)
    assert not buffer.written(7, 16)
    assert not buffer.written(8, 17)


def test_tensors_are_apart_and_aligned():
    gm = GlobalMemory()
    tensors = [gm.allocate(f"t{size}", size) for size in (1, 511, 512, 513, 4096)]
    for before, after in pairwise(tensors):
        assert after.address % 512 == 0
        assert after.address - before.end >= 4096
    assert tensors[0].address == 512


def test_addresses_find_their_tensor():
    gm = GlobalMemory()
    first, second = gm.allocate("first", 10), gm.allocate("second", 20)
    assert gm.at(0) is gm.at(511) is None
    assert gm.near(511) is None
    for tensor in (first, second):
        assert gm.at(tensor.address - 1) is None
        assert gm.at(tensor.address) is tensor
        assert gm.at(tensor.end - 1) is tensor
        assert gm.at(tensor.end) is None
        assert gm.near(tensor.end + 100) is tensor


def test_placed_tensors_are_written_and_allocated_ones_are_not():
    gm = GlobalMemory()
    matrix = np.arange(6, dtype=np.int16).reshape(2, 3)
    placed = gm.allocate_from("a", matrix.T)
    assert placed.buffer.data.tobytes() == np.ascontiguousarray(matrix.T).tobytes()
    assert placed.buffer.valid.all()
    room = gm.allocate("b", 6)
    assert not room.buffer.valid.any()
    assert (room.buffer.data == 255).all()
