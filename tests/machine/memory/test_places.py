"""Places of operands: elements of one core or of many, read, written and marked byte for byte."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer, Spot
from cubecore.machine.memory.elements import Elements
from cubecore.machine.memory.places import MemoryStack, Place

BYTE, HALF, WORD, LONG = map(element_type, ("uint8", "float16", "int32", "int64"))
NIBBLE = element_type("int4")
KINDS = [BYTE, HALF, WORD, LONG]


def place(buffer, address, kind, *offsets, active=None):
    """Return elements in one core's memory."""
    here = Elements.of(np.array(offsets, np.intp), active, kind)
    return Place(buffer.spot(address), here, kind)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_poison_is_nan_in_every_float(name):
    kind = element_type(name)
    assert np.isnan(place(MemoryBuffer(64), 0, kind, 0, 1, 5).read().astype(np.float64)).all()


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_poison_is_minus_one_in_every_integer(name):
    found = place(MemoryBuffer(64), 0, element_type(name), 0, 1, 5).read()
    assert found.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("address", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_writing_marks_exactly_the_bytes_written(kind, address):
    buffer = MemoryBuffer(100)
    size, places = kind.size_bytes, (0, 3, 5)
    values = np.array([1, 2, 3]).astype(kind.numpy)
    own = place(buffer, address, kind, *places)
    own.write(values)
    wanted = [address + p * size + b for p in places for b in range(size)]
    assert np.flatnonzero(buffer.valid).tolist() == wanted
    assert np.flatnonzero(buffer.data != 255).size <= len(wanted)
    for number, value in zip(places, values, strict=True):
        first = address + number * size
        assert buffer.data[first : first + size].tobytes() == value.tobytes()
    assert own.read().tolist() == values.tolist()


@pytest.mark.parametrize("kind", KINDS[1:], ids=str)
def test_one_missing_byte_makes_an_element_unwritten(kind):
    for missing in range(kind.size_bytes):
        buffer = MemoryBuffer(64)
        buffer.valid[:] = 1
        buffer.valid[3 + kind.size_bytes + missing] = 0
        own = place(buffer, 3, kind, 0, 1, 2)
        assert own.ready().tolist() == [True, False, True]
        assert not own.written()


def test_what_is_not_known_loses_its_mark():
    buffer = MemoryBuffer(32)
    buffer.valid[:] = 1
    own = place(buffer, 4, WORD, 0, 1, 3)
    own.write(np.zeros(3, np.int32), np.array([True, False, False]))
    assert np.flatnonzero(buffer.valid == 0).tolist() == [8, 9, 10, 11, 16, 17, 18, 19]


def test_the_last_element_of_a_buffer_may_be_used():
    buffer = MemoryBuffer(35)
    own = place(buffer, 3, WORD, 7)
    own.write(np.array([9], np.int32))
    assert np.flatnonzero(buffer.valid).tolist() == [31, 32, 33, 34]
    assert own.ready().tolist() == [True]


def test_what_one_core_reads_is_its_own():
    buffer = MemoryBuffer(64)
    own = place(buffer, 3, HALF, 0, 1, 2)
    own.write(np.array([1, 2, 3], np.float16))
    own.read()[:] = 0
    assert own.read().tolist() == [1, 2, 3]


# --- 4-bit elements


def test_the_first_of_two_nibbles_is_the_low_half():
    """asc-devkit: 6 and 7 make 118."""
    buffer = MemoryBuffer(4)
    own = place(buffer, 1, NIBBLE, 0, 1)
    own.write(np.array([6, 7]).astype(NIBBLE.numpy))
    assert buffer.data.tolist() == [255, 118, 255, 255]
    assert own.read().astype(int).tolist() == [6, 7]


def test_every_pair_of_nibbles_is_read_and_written_as_twos_complement():
    buffer = MemoryBuffer(256)
    values = [(low, high) for high in range(16) for low in range(16)]
    signed = [v - 16 if v > 7 else v for pair in values for v in pair]
    own = place(buffer, 0, NIBBLE, *range(512))
    own.write(np.array(signed).astype(NIBBLE.numpy))
    assert buffer.data.tolist() == list(range(256))
    assert own.read().astype(int).tolist() == signed


@pytest.mark.parametrize("number", [2, 3])
def test_writing_a_nibble_leaves_its_neighbour(number):
    buffer = MemoryBuffer(4)
    buffer.data[:] = 0x35
    place(buffer, 0, NIBBLE, number).write(np.array([-1]).astype(NIBBLE.numpy))
    assert buffer.data.tolist() == [0x35, 0x3F if number == 2 else 0xF5, 0x35, 0x35]


def test_a_byte_is_written_where_both_nibbles_are():
    buffer = MemoryBuffer(6)
    buffer.valid[5] = 1
    both = np.array([True, True, True, False, False, True])
    place(buffer, 1, NIBBLE, 0, 1, 2, 3, 4, 5).write(np.zeros(6, NIBBLE.numpy), both)
    assert buffer.valid.tolist() == [0, 1, 0, 0, 0, 1]
    got = place(buffer, 1, NIBBLE, 0, 1, 2, 8, 9).ready()
    assert got.tolist() == [True, True, False, True, True]
    place(buffer, 0, NIBBLE, 8, 9).write(np.zeros(2, NIBBLE.numpy))
    assert buffer.valid.tolist() == [0, 1, 0, 0, 1, 1]


# --- many cores


def shapes():
    """Yield offsets and masks: runs, rows, blocks, anything, each with and without a mask."""
    rng = np.random.default_rng(3)
    run = np.arange(4, 28).reshape(4, 6)
    offsets = run, run * 2, rng.permutation(40)[:24].reshape(4, 6), rng.integers(0, 9, (4, 6))
    for own in offsets:
        yield own, None
        yield own, rng.random(own.shape) < 0.5
        yield own, (np.arange(24).reshape(4, 6) >= 7) & (np.arange(24).reshape(4, 6) < 19)


def spots(cores, size):
    """Yield a spot of many cores and those of each: rows of a stack, an even tensor, an odd one."""
    stack = MemoryStack(cores, size)
    yield stack.spot(6), [row.spot(6) for row in stack.rows]
    for starts in ([6 + 96 * n for n in range(cores)], [200, 6, 100, 500][:cores]):
        buffer = MemoryBuffer(800)
        rows = [(1, 0, at) for at in starts]
        if starts[0] == 6:
            rows = [(cores, 96, 6)]
        spot = Spot(buffer.data, buffer.valid, rows, rows)
        yield spot, [buffer.spot(at) for at in starts]


@pytest.mark.parametrize("kind", [BYTE, HALF], ids=str)
def test_many_cores_do_what_each_does(kind):
    """Values of each core's own and alike, wholly known and in part."""
    rng = np.random.default_rng(5)
    for offsets, active in shapes():
        here = Elements.of(offsets, active, kind)
        for known in (None, rng.random(offsets.shape) < 0.5):
            for number in range(3):
                for values in (rng.integers(0, 99, (4, 4, 6)), rng.integers(0, 99, (4, 6))):
                    own = values.astype(kind.numpy)
                    both = [list(spots(4, 120))[number] for _ in range(2)]
                    (together, _), (other, each) = both
                    Place(together, here, kind).write(own, known)
                    for core, spot in enumerate(each):
                        alone = Place(spot, here, kind)
                        alone.write(own[core] if own.ndim == 3 else own, known)
                    assert np.array_equal(together.data, other.data)
                    assert np.array_equal(together.valid, other.valid)
                    many = Place(together, here, kind)
                    rows = [Place(spot, here, kind).read() for spot in each]
                    for _ in range(2):  # prepared by the first
                        assert many.read().tobytes() == np.stack(rows).tobytes()
                    written = [Place(spot, here, kind).written() for spot in each]
                    assert many.written() == all(written)


@pytest.mark.parametrize("rows", [6, 7], ids=["words", "bytes"])
@pytest.mark.parametrize("other", [None, 0, 5, -1])
def test_cores_with_the_same_bytes_read_what_each_has(rows, other):
    """Columns of a matrix, as all cores have them, or but for a byte of one core."""
    stack = MemoryStack(4, 200)
    here = Elements.of(np.arange(rows * 12).reshape(rows, 12).T, None, BYTE)
    matrices = np.repeat(np.arange(rows * 12, dtype=np.uint8).reshape(1, rows, 12), 4, axis=0)
    many = Place(stack.spot(8), here, BYTE)
    for _ in range(3):
        if other is not None:
            matrices[2].reshape(-1)[other] ^= 100
        stack.data[:, 8 : 8 + rows * 12] = matrices.reshape(4, -1)
        assert np.array_equal(many.read(), matrices.transpose(0, 2, 1))
        matrices += 1


def test_a_tensor_that_the_host_placed_keeps_its_marks_until_something_unknown_is_stored():
    """Two cores store into shares of it; then half of what they store is unknown, then nothing."""
    gm = GlobalMemory()
    buffer = gm.allocate_from("x", np.zeros(64, np.uint8)).buffer
    rows = ((2, 32, 4),)
    spot = Spot(buffer.data, buffer.valid, rows, rows, marks=buffer.marks)
    own = Place(spot, Elements.of(np.arange(8), None, BYTE), BYTE)
    half = np.arange(8) < 4
    own.write(np.arange(16, dtype=np.uint8).reshape(2, 8))
    assert buffer.data.reshape(2, 32)[:, 4:12].tolist() == np.arange(16).reshape(2, 8).tolist()
    assert buffer.valid.all()
    own.write(np.zeros((2, 8), np.uint8), half)
    assert np.flatnonzero(buffer.valid == 0).tolist() == [8, 9, 10, 11, 40, 41, 42, 43]
    own.write(np.ones((2, 8), np.uint8))
    assert buffer.valid.all()


def test_one_core_that_stores_something_unknown_ends_that_a_tensor_is_whole():
    gm = GlobalMemory()
    tensor = gm.allocate("x", 64, zeroed=True)
    for buffer in (tensor.buffer, tensor.wide):
        place(buffer, 0, BYTE, 1, 2).write(np.zeros(2, np.uint8), np.array([True, False]))
        assert np.flatnonzero(tensor.buffer.valid == 0).tolist() == [2]
        rows = ((1, 0, 0),)
        spot = Spot(tensor.buffer.data, tensor.buffer.valid, rows, rows, marks=tensor.buffer.marks)
        Place(spot, Elements.of(np.arange(4), None, BYTE), BYTE).write(np.zeros((1, 4), np.uint8))
        assert tensor.buffer.valid.all()
        tensor.buffer.marks.whole = True


def test_what_lies_behind_a_whole_tensor_is_marked_when_it_is_written():
    tensor = GlobalMemory().allocate_from("x", np.zeros(8, np.uint8))
    place(tensor.wide, 0, BYTE, 6, 7, 8, 9).write(np.zeros(4, np.uint8))
    assert np.flatnonzero(tensor.wide.valid).tolist() == list(range(10))
