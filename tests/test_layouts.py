"""Layouts: every small shape, against the element formulas of spec/isa_semantics.md 3.1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cubecore.layouts import (
    L0C_FRACTAL,
    NZ,
    ZN,
    ZZ,
    Fractal,
    Layout,
    ascending,
    l0a_fractal,
    l0b_fractal,
    offsets,
    pack,
    padded_elements,
    unpack,
)
from parts import examples

FRACTALS = [Fractal(*f) for f in ((16, 16), (16, 8), (8, 16), (16, 32), (32, 16), (3, 5))]
SMALL = [Fractal(*f) for f in ((1, 1), (2, 2), (2, 3), (3, 2), (4, 1))]
LAYOUTS = {"ZZ": ZZ, "ZN": ZN, "NZ": NZ}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def place(layout: Layout, rows: int, cols: int, fractal: Fractal, i: int, j: int) -> int:
    """Walk the order, fractal by fractal and element by element, until (i, j) comes by."""
    high, wide = fractal
    down, across = -(-rows // high), -(-cols // wide)
    if layout is NZ:
        cuts = [(r, c) for c in range(across) for r in range(down)]
    else:
        cuts = [(r, c) for r in range(down) for c in range(across)]
    inside = [(r, c) for r in range(high) for c in range(wide)]
    if layout is ZN:
        inside = [(r, c) for c in range(wide) for r in range(high)]
    position = cuts.index((i // high, j // wide)) * high * wide
    return position + inside.index((i % high, j % wide))


@every_layout
@pytest.mark.parametrize("fractal", SMALL, ids=lambda f: f"{f.rows}x{f.cols}")
def test_every_element_of_every_small_shape(layout, fractal):
    for rows in range(1, 8):
        for cols in range(1, 8):
            got = offsets(layout, rows, cols, fractal)
            for i in range(rows):
                for j in range(cols):
                    assert got[i, j] == place(layout, rows, cols, fractal, i, j)


@pytest.mark.parametrize("c0", [8, 16, 32, 64])
def test_the_formulas_of_the_digest(c0):
    """3.1: ZZ is (M1, K1, 16, C0); ZN [k/C0][n/16][n%16][k%C0]; NZ (N1, M1, 16, C0)."""
    rows, cols = 50, 70
    zz, nz = (offsets(layout, rows, cols, l0a_fractal(c0)) for layout in (ZZ, NZ))
    zn, l0c = offsets(ZN, rows, cols, l0b_fractal(c0)), offsets(NZ, rows, cols, L0C_FRACTAL)
    across, down, across16 = -(-cols // c0), -(-rows // 16), -(-cols // 16)
    for i in range(rows):
        for j in range(cols):
            inside = (i % 16) * c0 + j % c0
            assert zz[i, j] == ((i // 16) * across + j // c0) * 16 * c0 + inside
            assert nz[i, j] == ((j // c0) * down + i // 16) * 16 * c0 + inside
            assert zn[i, j] == ((i // c0) * across16 + j // 16) * 16 * c0 + (j % 16) * c0 + i % c0
            assert l0c[i, j] == ((j // 16) * down + i // 16) * 256 + (i % 16) * 16 + j % 16


def test_fractals_have_16_rows_and_512_bytes():
    assert [l0a_fractal(c0) for c0 in (8, 16, 32, 64)] == [(16, 8), (16, 16), (16, 32), (16, 64)]
    assert [l0b_fractal(c0) for c0 in (8, 16, 32, 64)] == [(8, 16), (16, 16), (32, 16), (64, 16)]
    assert L0C_FRACTAL == (16, 16)


@every_layout
@examples(60, 4)
@given(
    rows=st.integers(1, 40),
    cols=st.integers(1, 40),
    fractal=st.sampled_from(FRACTALS),
)
def test_pack_and_unpack_are_inverse_and_pad_with_zeros(layout, rows, cols, fractal):
    matrix = np.arange(1, rows * cols + 1).reshape(rows, cols)
    flat = pack(matrix, layout, fractal)
    assert flat.shape == (padded_elements(rows, cols, fractal),)
    assert flat.size == -(-rows // fractal[0]) * fractal[0] * -(-cols // fractal[1]) * fractal[1]
    assert np.array_equal(unpack(flat, layout, rows, cols, fractal), matrix)
    assert np.array_equal(np.sort(flat[flat > 0]), matrix.reshape(-1))
    assert np.count_nonzero(flat) == rows * cols


@every_layout
def test_a_whole_matrix_fills_its_room_exactly(layout):
    got = np.sort(offsets(layout, 32, 48, L0C_FRACTAL), axis=None)
    assert np.array_equal(got, np.arange(32 * 48))


@pytest.mark.parametrize("column_rows", [16, 17, 31, 32, 100])
def test_nz_columns_may_lie_any_number_of_rows_apart(column_rows):
    got = offsets(NZ, 16, 40, L0C_FRACTAL, column_rows)
    for i in range(16):
        for j in range(40):
            assert got[i, j] == (j // 16) * column_rows * 16 + i * 16 + j % 16


def test_no_column_rows_means_whole_fractals():
    assert np.array_equal(offsets(NZ, 17, 40, L0C_FRACTAL), offsets(NZ, 17, 40, L0C_FRACTAL, 32))


@every_layout
def test_offsets_cannot_be_changed(layout):
    with pytest.raises(ValueError, match="read-only"):
        offsets(layout, 4, 4, Fractal(2, 2))[0, 0] = 1


def test_ascending_is_a_sorted_set():
    rng = np.random.default_rng(5)
    for size in range(9):
        for _ in range(40):
            values = rng.integers(-4, 5, size)
            assert ascending(values).tolist() == sorted(set(values.tolist()))
    assert ascending(np.array([[3, 1], [1, 3]])).tolist() == [1, 3]
