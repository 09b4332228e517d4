"""Offsets as lattices: what a strided view finds is what the offsets name, element by element."""

import numpy as np
import pytest

from cubecore import layouts
from cubecore.machine.memory.strided import gathered, lattices, scatter, whole

STEPS = (-3, 0, 1, 2, 5, 16)


def along(shape, steps, first):
    """Every offset, by plain loops."""
    places = [first]
    for count, step in zip(shape, steps, strict=True):
        places = [place + step * i for place in places for i in range(count)]
    return np.array(places, np.intp)


def read(data, rows, lattice, size):
    view = lattice.view(data.reshape(-1), rows, f"u{size}", size)
    return view.reshape(rows[0], -1)


@pytest.mark.parametrize("seed", range(40))
def test_a_lattice_is_found_and_read_as_the_offsets_say(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 5, rng.integers(0, 4)).tolist()
    steps = [rng.choice(STEPS, len(shape)).tolist() for _ in range(2)]
    pair = [along(shape, own, 64) for own in steps]
    found = lattices(*pair)
    assert found is not None, (shape, steps)
    data = rng.integers(0, 256, 4096).astype(np.uint8)
    for lattice, offsets in zip(found, pair, strict=True):
        assert lattice.shape == found[0].shape
        assert lattice.last == offsets.max()
        for size in (1, 2, 4):
            own = read(data, (3, 512, 32), lattice, size)
            for core in range(3):
                starts = 32 + 512 * core + offsets * size
                wanted = [int.from_bytes(data[at : at + size].tobytes(), "little") for at in starts]
                assert own[core].tolist() == wanted


@pytest.mark.parametrize("seed", range(40))
def test_distinct_elements_are_apart(seed):
    rng = np.random.default_rng(100 + seed)
    shape = rng.integers(1, 5, 3).tolist()
    offsets = along(shape, rng.choice(STEPS, 3).tolist(), 64)
    (found,) = lattices(offsets)
    if found.distinct:
        assert len(set(offsets.tolist())) == offsets.size


def test_fractals_are_distinct_and_their_rows_are_runs():
    nz = layouts.offsets(layouts.NZ, 32, 48, layouts.L0C_FRACTAL, 32)
    (found,) = lattices(nz)
    assert found.distinct
    assert (found.shape, found.steps, found.run) == ((32, 3, 16), (16, 512, 1), 16)
    assert found.of_runs.shape == (32, 3)


@pytest.mark.parametrize(
    "offsets", [[0, 1, 3, 4, 5, 7], [0, 1, 2, 3, 9], [4, 2, 7, 1], [0, 1, 4, 5, 8, 11]]
)
def test_what_is_uneven_is_no_lattice(offsets):
    assert lattices(np.array(offsets)) is None


def test_two_that_are_even_apart_from_each_other_may_share_no_shape():
    assert lattices(np.arange(6), np.array([0, 1, 2, 10, 11, 12])) is not None
    assert lattices(np.array([0, 1, 5, 6, 10, 11]), np.array([0, 1, 2, 10, 11, 12])) is None


def test_nothing_is_no_lattice():
    assert lattices(np.zeros((0, 4), np.intp)) is None


def test_the_whole_of_a_core_ends_where_the_last_core_ends():
    data = np.arange(100, dtype=np.uint8)
    found = whole(data, (2, 50, 8), "u4", 4)
    assert found.shape == (2, 10)
    assert found[1, 0] == int.from_bytes(bytes([58, 59, 60, 61]), "little")


@pytest.mark.parametrize("count", [1, 7, 255, 256, 600])
@pytest.mark.parametrize("rows", [1, 3])
def test_places_are_gathered_and_scattered_row_by_row_or_at_once(count, rows):
    rng = np.random.default_rng(count + rows)
    held = rng.integers(0, 2**16, (rows, 2000)).astype(np.uint16)
    window, places = held[:, 100:1900], rng.integers(0, 1800, count)
    found = gathered(window, places)
    assert found.tolist() == [[int(row[100 + at]) for at in places] for row in held]
    wanted = held.copy()
    values = rng.integers(0, 2**16, (rows, count)).astype(np.uint16)
    for row, own in zip(wanted, values, strict=True):
        for at, value in zip(places, own, strict=True):
            row[100 + at] = value
    scatter(window, places, values)
    assert held.tolist() == wanted.tolist()
    scatter(window, places, values[:1])
    assert all(int(row[100 + places[-1]]) == int(values[0, -1]) for row in held)
