"""Blocks, targets and their values, against plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.machine.blas.block_products import Block, IrregularError, ProductSum
from cubecore.machine.blas.operand_cache import OperandCache, require_matrix
from cubecore.machine.blas.stores import Target
from cubecore.machine.memory.buffers import GlobalMemory

HALF, INT8, INT4, BRAIN = (element_type(n) for n in ("float16", "int8", "int4", "bfloat16"))


def tensor_of(values):
    return GlobalMemory().allocate_from("a", values)


def nd(tensor, kind, columns, start, r, k, *, k_inner=True, distances=(0,)):
    """Return a block of a row-major matrix from (row, column) `start` on."""
    offset = start[0] * columns + start[1]
    return Block(tensor, kind, offset, distances, r, k, columns, kind.c0, k_inner)


def nz(tensor, kind, rows, start, r, k, *, k_inner=True, distances=(0,)):
    """Return a block of an NZ matrix from (row, column) `start` on."""
    piece, lane = divmod(start[1], kind.c0)
    offset = piece * rows * kind.c0 + start[0] * kind.c0 + lane
    step = rows * kind.c0
    return Block(tensor, kind, offset, distances, r, k, kind.c0, step, k_inner)


def values_of(block, core=0):
    shadows = OperandCache()
    for convert in shadows.prepare(block):
        convert()
    return shadows.values(block, core)


MATRIX = np.arange(48 * 96).reshape(48, 96) % 251 - 125


def in_nz(matrix, c0):
    rows, columns = matrix.shape
    return np.array(
        [[matrix[i, p : p + c0] for i in range(rows)] for p in range(0, columns, c0)]
    ).reshape(-1)


@pytest.mark.parametrize("k_inner", [True, False])
@pytest.mark.parametrize("kind", [HALF, BRAIN, INT8], ids=str)
def test_a_block_of_nd_is_a_part_of_the_matrix(kind, k_inner):
    tensor = tensor_of(MATRIX.astype(kind.numpy))
    block = nd(tensor, kind, 96, (3, 5), *((7, 20) if k_inner else (20, 7)), k_inner=k_inner)
    want = MATRIX[3:10, 5:25]
    assert (values_of(block) == (want if k_inner else want.T)).all()


@pytest.mark.parametrize("k_inner", [True, False])
@pytest.mark.parametrize("kind", [HALF, BRAIN, INT8], ids=str)
def test_a_block_of_nz_is_the_same_part(kind, k_inner):
    tensor = tensor_of(in_nz(MATRIX, kind.c0).astype(kind.numpy))
    extents = (7, kind.c0 + 3) if k_inner else (kind.c0 + 3, 7)
    block = nz(tensor, kind, 48, (3, kind.c0), *extents, k_inner=k_inner)
    require_matrix(block)
    want = MATRIX[3:10, kind.c0 : 2 * kind.c0 + 3]
    assert (values_of(block) == (want if k_inner else want.T)).all()


def test_elements_of_4_bits_are_two_to_a_byte():
    codes = np.arange(128, dtype=np.uint8) * 7 % 16
    tensor = tensor_of(codes[0::2] | codes[1::2] << 4)
    block = Block(tensor, INT4, 2, (0, 32), 2, 30, 32, INT4.c0, True)
    want = np.where(codes < 8, codes.astype(int), codes.astype(int) - 16)
    for core, first in ((0, 2), (1, 66)):
        rows = [want[first + 32 * i : first + 32 * i + 30] for i in range(2)]
        assert (values_of(block, core) == rows).all()


def test_each_core_reads_its_own_part():
    tensor = tensor_of(MATRIX.astype(np.float16))
    block = nd(tensor, HALF, 96, (0, 0), 4, 4, distances=(0, 2 * 96 * 8, -2))
    assert (values_of(replace(block, offset=1), 1) == MATRIX[8:12, 1:5]).all()
    assert (values_of(replace(block, offset=1), 2) == MATRIX[0:4, 0:4]).all()


def cuts(total):
    return [(a, b) for a in range(16, total, 16) for b in range(16, total - a + 1, 16)]


@pytest.mark.parametrize("form", [nd, nz], ids=["ND", "NZ"])
@pytest.mark.parametrize("k_inner", [True, False])
@pytest.mark.parametrize("axis", ["r", "k"])
def test_two_blocks_that_follow_each_other_are_one(form, k_inner, axis):
    stored = MATRIX if form is nd else in_nz(MATRIX, 16)
    tensor = tensor_of(stored.astype(np.float16))
    across = 96 if form is nd else 48
    inner = (axis == "k") is k_inner
    for first, second in cuts(96 if inner else 48):
        ends = [(0, 0), (0, first) if inner else (first, 0)]
        sizes = [(32, n) if inner else (n, 32) for n in (first, second)]
        extents = [size if k_inner else size[::-1] for size in sizes]
        a, b = (
            form(tensor, HALF, across, end, *extent, k_inner=k_inner)
            for end, extent in zip(ends, extents, strict=True)
        )
        both = a.joined(b, axis)
        assert both is not None
        require_matrix(both)
        along = 0 if axis == "r" else 1
        assert (values_of(both) == np.concatenate([values_of(a), values_of(b)], along)).all()


APART = {
    "a gap": {"offset": 17},
    "an overlap": {"offset": 15},
    "another extent": {"r": 3},
    "another pitch": {"pitch": 32},
    "another direction": {"k_inner": False},
    "another rounding": {"hf32": "nearest_even"},
    "other distances": {"distances": (2,)},
    "another type": {"kind": BRAIN},
    "pieces elsewhere": {"k": 32, "step": 160},
}


@pytest.mark.parametrize("change", APART)
def test_blocks_that_do_not_follow_each_other_stay_two(change):
    tensor = tensor_of(MATRIX.astype(np.float16))
    first = nd(tensor, HALF, 96, (0, 0), 4, 16)
    second = replace(first, offset=16)
    assert first.joined(second, "k") is not None
    assert first.joined(replace(second, **APART[change]), "k") is None


def test_blocks_of_two_tensors_stay_two():
    first = nd(tensor_of(MATRIX.astype(np.float16)), HALF, 96, (0, 0), 4, 16)
    second = nd(tensor_of(MATRIX.astype(np.float16)), HALF, 96, (0, 16), 4, 16)
    assert first.joined(second, "k") is None


@pytest.mark.parametrize("form", [nd, nz], ids=["ND", "NZ"])
@pytest.mark.parametrize("k_inner", [True, False])
def test_columns_of_a_tile_are_parts_of_b(form, k_inner):
    stored = MATRIX if form is nd else in_nz(MATRIX, 16)
    tensor = tensor_of(stored.astype(np.float16))
    b = form(tensor, HALF, 96 if form is nd else 48, (0, 0), 40, 16, k_inner=k_inner)
    whole = values_of(b)
    tile = ProductSum(16, 40, element_type("float32"), None, ((b, b),))
    for first, count in ((0, 16), (16, 16), (32, 8)):
        part = tile.columns(first)
        assert (part.m, part.n) == (16, count)
        assert (values_of(part.terms[0][1]) == whole[first : first + count]).all()


NO_MATRIX = {
    "rows beyond the matrix": {"offset": 16 * 40},
    "a start inside a piece": {"offset": 3},
    "another distance of rows": {"pitch": 32},
    "pieces that the tensor does not hold evenly": {"step": 16 * 47},
    "another core's rows beyond": {"distances": (0, 32 * 40)},
}


@pytest.mark.parametrize("change", NO_MATRIX)
def test_pieces_that_make_no_nz_matrix_are_irregular(change):
    tensor = tensor_of(in_nz(MATRIX, 16).astype(np.float16))
    block = nz(tensor, HALF, 48, (0, 0), 16, 48)
    require_matrix(block)
    with pytest.raises(IrregularError):
        require_matrix(replace(block, **NO_MATRIX[change]))


# --- where a store goes


def places_by_loop(target, m, n):
    """Return where each element goes: fixpipe's description, one element at a time."""
    found = np.empty((m, n), int)
    for i in range(m):
        for j in range(n):
            if not target.wide:
                found[i, j] = i * target.pitch + j
            else:
                group, lane = divmod(j, target.wide)
                whole = (group + 1) * target.wide <= n
                found[i, j] = group * target.step + i * (target.wide if whole else 16) + lane
    return found


TARGETS = {
    "ND": Target(HALF, 70),
    "NZ": Target(HALF, 16, 16, 16 * 9),
    "NZ of int8": Target(INT8, 32, 32, 32 * 9),
    "split by channel": Target(element_type("float32"), 8, 8, 8 * 9),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_panels_of_a_store_are_its_places(name):
    target = TARGETS[name]
    flat = np.arange(2000)
    for m, n in ((1, 16), (9, 48), (5, 64), (9, 32), (3, 16)):
        got = np.empty((m, n), int)
        for columns, panel in target.panels(flat, m, n):
            groups, rows, wide = panel.shape
            got[:, columns] = panel.transpose(1, 0, 2).reshape(rows, groups * wide)
        want = places_by_loop(target, m, n)
        assert (got == want).all()
        assert target.meets_itself(m, n) is (np.unique(want).size < want.size)
        below, beside = target.below(m, n), target.beside(n)
        if below is not None:
            assert (places_by_loop(target, 2 * m, n)[m:] == want + below).all()
        if beside is not None:
            assert (places_by_loop(target, m, 2 * n)[:, n:] == want + beside).all()


@pytest.mark.parametrize(
    ("target", "m", "n"),
    [(Target(HALF, 30), 2, 31), (Target(HALF, 16, 16, 16 * 4), 5, 32)],
    ids=["ND", "NZ"],
)
def test_a_store_whose_rows_are_too_close_meets_itself(target, m, n):
    assert target.meets_itself(m, n)
    assert np.unique(places_by_loop(target, m, n)).size < m * n
