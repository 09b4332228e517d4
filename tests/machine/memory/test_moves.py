"""Moves between two spots: bytes with their marks, fills, 4-bit elements, many cores."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer, Spot
from cubecore.machine.memory.moves import Move
from cubecore.machine.memory.places import MemoryStack

WORD, NIBBLE = element_type("int32"), element_type("int4")


def at(*places):
    return np.array(places, np.intp)


def test_moving_carries_bytes_and_marks_one_by_one():
    source, target = MemoryBuffer(40), MemoryBuffer(40)
    source.data[:] = np.arange(40)
    source.valid[::3] = 1
    target.valid[:] = 1
    Move(at(0, 2), at(3, 1), WORD)(source.spot(1), target.spot(2))
    for there, here in ((1, 14), (9, 6)):
        assert target.data[here : here + 4].tolist() == list(range(there, there + 4))
        assert target.valid[here : here + 4].tolist() == source.valid[there : there + 4].tolist()
    rest = [i for i in range(40) if i not in {6, 7, 8, 9, 14, 15, 16, 17}]
    assert (target.data[rest] == 255).all()
    assert target.valid[rest].all()


def test_moving_from_a_negative_place_writes_zeros():
    source, target = MemoryBuffer(16), MemoryBuffer(16)
    Move(at(-1, 0), at(0, 2), WORD)(source.spot(0), target.spot(0))
    assert target.data[:4].tolist() == [0] * 4
    assert target.valid.tolist() == [1] * 4 + [0] * 12


@pytest.mark.parametrize(
    ("fill", "left", "marks"),
    [
        (b"\1\0\0\0\2\0\0\0", [1, 2], [1] * 8),
        (None, [-1, -1], [0] * 8),
    ],
)
def test_a_fill_has_elements_or_leaves_nothing_written(fill, left, marks):
    source, target = MemoryBuffer(16), MemoryBuffer(16)
    Move(at(-1, -2), at(0, 1), WORD, fill)(source.spot(0), target.spot(0))
    assert target.data[:8].view(np.int32).tolist() == left
    assert target.valid.tolist() == marks + [0] * 8


def test_nibbles_move_with_what_is_known_of_them():
    source, target = MemoryBuffer(4), MemoryBuffer(4)
    source.data[:] = [0x21, 0x43, 0x65, 0x87]
    source.valid[:] = [1, 0, 1, 1]
    # turned round: the last comes first; one fill
    move = Move(at(7, 6, 2, 1, 0, -1), at(0, 1, 2, 3, 4, 5), NIBBLE)
    move(source.spot(0), target.spot(1))
    assert target.data.tolist() == [255, 0x78, 0x23, 0x01]
    assert target.valid.tolist() == [0, 1, 0, 1]


def test_operands_that_overlap_move_as_if_all_was_read_before():
    memory = MemoryBuffer(32)
    memory.data[:], memory.valid[:] = np.arange(32), 1
    Move(at(0, 1, 2), at(1, 2, 3), WORD)(memory.spot(0), memory.spot(0))
    assert memory.data[:16].tolist() == [*range(4), *range(12)]


@pytest.mark.parametrize("fill", [b"", None, b"\7\0\0\0\5\0\0\0"])
def test_many_cores_move_what_each_does(fill):
    """From stacks to tensors at even and uneven distances, and back; fills; targets met twice."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        to = rng.permutation(12)[:8] if rng.random() < 0.7 else rng.integers(0, 12, 8)
        from_ = np.arange(3, 11) if rng.random() < 0.5 else rng.integers(-2, 12, 8)
        move = Move(from_, to, WORD, fill)
        starts, rows = (
            ([64, 0, 192], [(1, 0, 64), (1, 0, 0), (1, 0, 192)]),
            ([0, 64, 128], [(3, 64, 0)]),
            ([0, 128, 64], [(2, 128, 0), (1, 0, 64)]),
        )[rng.integers(3)]
        results = []
        data, marks = rng.integers(0, 99, (2, 3, 64), np.uint8)
        for together in (True, False):
            stack, buffer = MemoryStack(3, 64), MemoryBuffer(256)
            stack.data[:], stack.valid[:] = data, marks[0] < 50
            tensor = Spot(buffer.data, buffer.valid, rows, rows)
            if together:
                move(stack.spot(4), tensor)
                kept = buffer.data.copy(), buffer.valid.copy()
                move(tensor, stack.spot(8))
            else:
                for row, start in zip(stack.rows, starts, strict=True):
                    move(row.spot(4), buffer.spot(start))
                kept = buffer.data.copy(), buffer.valid.copy()
                for row, start in zip(stack.rows, starts, strict=True):
                    move(buffer.spot(start), row.spot(8))
            results.append((*kept, stack.data, stack.valid))
        for one, other in zip(*results, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("fill", "places"), [(b"", (0, 1, 2)), (b"", (0, -1, 2)), (None, (0, -1, 2))]
)
@pytest.mark.parametrize("missing", [None, 0, 9])
def test_marks_of_a_placed_tensor_follow_what_is_moved_there(fill, places, missing):
    """What was written leaves all marked; a byte that was not, or is left out, loses its mark."""
    stack = MemoryStack(2, 32)
    stack.valid[:12] = 1
    if missing is not None:
        stack.valid[missing] = 0
    buffer = GlobalMemory().allocate_from("x", np.zeros(64, np.uint8)).buffer
    rows = ((2, 32, 4),)
    move = Move(at(*places), at(0, 1, 2), WORD, fill)
    move(stack.spot(0), Spot(buffer.data, buffer.valid, rows, rows, marks=buffer.marks))
    copied = [stack.valid[4 * n : 4 * n + 4] if n >= 0 else [fill is not None] * 4 for n in places]
    wanted = np.ones((2, 32), np.uint8)
    wanted[:, 4:16] = np.concatenate(copied)
    assert np.array_equal(buffer.valid.reshape(2, 32), wanted)
    whole = Move(at(0, 1, 2), at(0, 1, 2), WORD)
    stack.valid[:12] = 1
    whole(stack.spot(0), Spot(buffer.data, buffer.valid, rows, rows, marks=buffer.marks))
    assert buffer.valid.all()
