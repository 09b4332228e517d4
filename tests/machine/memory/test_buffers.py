"""Memories: bytes, poison, and for each byte whether anything was ever written there."""

from itertools import pairwise

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer

BYTE, HALF, WORD, LONG = map(element_type, ("uint8", "float16", "int32", "int64"))


def at(*places):
    return np.array(places, np.intp)


def test_new_memory_is_poison_and_unwritten():
    buffer = MemoryBuffer(64)
    assert buffer.data.tolist() == [255] * 64
    assert buffer.valid.tolist() == [0] * 64


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_poison_is_nan_in_every_float(name):
    kind = element_type(name)
    assert np.isnan(MemoryBuffer(64).read(0, at(0, 1, 5), kind).astype(np.float64)).all()


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_poison_is_minus_one_in_every_integer(name):
    assert MemoryBuffer(64).read(0, at(0, 1, 5), element_type(name)).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("address", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("kind", [BYTE, HALF, WORD, LONG], ids=str)
def test_writing_marks_exactly_the_bytes_written(kind, address):
    buffer = MemoryBuffer(100)
    size, places = kind.size_bytes, (0, 3, 5)
    values = np.array([1, 2, 3]).astype(kind.numpy)
    buffer.write(address, at(*places), kind, values)
    assert not buffer.valid.any()  # writing says nothing of the map
    buffer.mark(address, at(*places), kind, None)
    wanted = [address + p * size + b for p in places for b in range(size)]
    assert np.flatnonzero(buffer.valid).tolist() == wanted
    assert np.flatnonzero(buffer.data != 255).size <= len(wanted)
    for place, value in zip(places, values, strict=True):
        first = address + place * size
        assert buffer.data[first : first + size].tobytes() == value.tobytes()
    assert buffer.read(address, at(*places), kind).tolist() == values.tolist()


@pytest.mark.parametrize("kind", [HALF, WORD, LONG], ids=str)
def test_one_missing_byte_makes_an_element_unwritten(kind):
    for missing in range(kind.size_bytes):
        buffer = MemoryBuffer(64)
        buffer.valid[:] = 1
        buffer.valid[3 + kind.size_bytes + missing] = 0
        got = buffer.initialised(3, at(0, 1, 2), kind)
        assert got.tolist() == [True, False, True]


def test_marking_can_take_the_mark_away():
    buffer = MemoryBuffer(32)
    buffer.valid[:] = 1
    buffer.mark(4, at(0, 1, 3), WORD, np.array([True, False, False]))
    assert np.flatnonzero(buffer.valid == 0).tolist() == [8, 9, 10, 11, 16, 17, 18, 19]


def test_the_last_element_of_a_buffer_may_be_used():
    buffer = MemoryBuffer(35)
    buffer.write(3, at(7), WORD, np.array([9], np.int32))
    buffer.mark(3, at(7), WORD, None)
    assert np.flatnonzero(buffer.valid).tolist() == [31, 32, 33, 34]
    assert buffer.initialised(3, at(7), WORD).tolist() == [True]


def test_moving_carries_bytes_and_marks_one_by_one():
    source, target = MemoryBuffer(40), MemoryBuffer(40)
    source.data[:] = np.arange(40)
    source.valid[::3] = 1
    target.valid[:] = 1
    source.move_to(target, (1, 2), (at(0, 2), at(3, 1)), WORD)
    for there, here in ((1, 14), (9, 6)):
        assert target.data[here : here + 4].tolist() == list(range(there, there + 4))
        assert target.valid[here : here + 4].tolist() == source.valid[there : there + 4].tolist()
    rest = [i for i in range(40) if i not in {6, 7, 8, 9, 14, 15, 16, 17}]
    assert (target.data[rest] == 255).all()
    assert target.valid[rest].all()


def test_moving_from_a_negative_place_writes_zeros():
    source, target = MemoryBuffer(16), MemoryBuffer(16)
    source.move_to(target, (0, 0), (at(-1, 0), at(0, 2)), WORD)
    assert target.data[:4].tolist() == [0] * 4
    assert target.valid.tolist() == [1] * 4 + [0] * 12


# --- 4-bit elements

NIBBLE = element_type("int4")


def test_the_first_of_two_nibbles_is_the_low_half():
    """asc-devkit: 6 and 7 make 118."""
    buffer = MemoryBuffer(4)
    buffer.write(1, at(0, 1), NIBBLE, np.array([6, 7]).astype(NIBBLE.numpy))
    assert buffer.data.tolist() == [255, 118, 255, 255]
    assert buffer.read(1, at(0, 1), NIBBLE).astype(int).tolist() == [6, 7]


def test_every_pair_of_nibbles_is_read_and_written_as_twos_complement():
    buffer = MemoryBuffer(256)
    values = [(low, high) for high in range(16) for low in range(16)]
    signed = [v - 16 if v > 7 else v for pair in values for v in pair]
    places = np.arange(512, dtype=np.intp)
    buffer.write(0, places, NIBBLE, np.array(signed).astype(NIBBLE.numpy))
    assert buffer.data.tolist() == list(range(256))
    assert buffer.read(0, places, NIBBLE).astype(int).tolist() == signed


@pytest.mark.parametrize("place", [2, 3])
def test_writing_a_nibble_leaves_its_neighbour(place):
    buffer = MemoryBuffer(4)
    buffer.data[:] = 0x35
    buffer.write(0, at(place), NIBBLE, np.array([-1]).astype(NIBBLE.numpy))
    assert buffer.data.tolist() == [0x35, 0x3F if place == 2 else 0xF5, 0x35, 0x35]


def test_a_byte_is_written_where_both_nibbles_are():
    buffer = MemoryBuffer(6)
    buffer.valid[5] = 1
    both = np.array([True, True, True, False, False, True])
    buffer.mark(1, at(0, 1, 2, 3, 4, 5), NIBBLE, both)
    assert buffer.valid.tolist() == [0, 1, 0, 0, 0, 1]
    got = buffer.initialised(1, at(0, 1, 2, 8, 9), NIBBLE)
    assert got.tolist() == [True, True, False, True, True]
    buffer.mark(0, at(8, 9), NIBBLE, None)
    assert buffer.valid.tolist() == [0, 1, 0, 0, 1, 1]


def test_nibbles_move_with_what_is_known_of_them():
    source, target = MemoryBuffer(4), MemoryBuffer(4)
    source.data[:] = [0x21, 0x43, 0x65, 0x87]
    source.valid[:] = [1, 0, 1, 1]
    # turned round: the last comes first; one fill
    source.move_to(target, (0, 1), (at(7, 6, 2, 1, 0, -1), at(0, 1, 2, 3, 4, 5)), NIBBLE)
    assert target.data.tolist() == [255, 0x78, 0x23, 0x01]
    assert target.valid.tolist() == [0, 1, 0, 1]


# --- global memory


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
