"""Kernels in the C API of architecture 3510: its own moves, products and conversions."""

import ml_dtypes
import numpy as np
import pytest

from cubecore import kernel

A5 = "Ascend950PR_9599"
M, N, K = 32, 16, 64
E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)


def ordered(core, first, then):
    core.asc_sync_notify(first, then, 0)
    core.asc_sync_wait(first, then, 0)


def to_l1(core, dst, src, rows, row_bytes):
    """Rows of `row_bytes`, row-major, to NZ."""
    core.asc_set_gm2l1_nz_para(1 | 1 << 16 | rows << 32)
    size = 8 * row_bytes // src.dtype.bits
    core.asc_copy_gm2l1_nd2nz(dst, src, row_bytes, 0, rows, size, 0, False)


@kernel(kind="cube", outputs="c", chip=A5)
def product(core, a, b, c):
    """c = a b^T in half; fixpipe makes float8 of it with a factor."""
    l1a, l1b = core.cbuf.at("half", 0), core.cbuf.at("half", 65536)
    l0a, l0b, l0c = core.ca.at("half", 0), core.cb.at("half", 0), core.cc.at("float", 0)
    to_l1(core, l1a, a, M, 2 * K)
    to_l1(core, l1b, b, N, 2 * K)
    ordered(core, "PIPE_MTE2", "PIPE_MTE1")
    core.asc_copy_l12l0a(l0a, l1a, 0, 0, M // 16, K // 16, M // 16, M // 16)
    core.asc_copy_l12l0b(l0b, l1b, 0, 0, N // 16, K // 16, N // 16, N // 16)
    ordered(core, "PIPE_MTE1", "PIPE_M")
    core.asc_mmad(l0c, l0a, l0b, M, K, N, 0, False, False, True)
    ordered(core, "PIPE_M", "PIPE_FIX")
    core.asc_set_l0c_copy_prequant(int(np.float32(0.25).view(np.uint32)))
    later = ("NoConv", 0, 0, 0, 0, 0, 0, 0)
    core.asc_copy_l0c2gm(c, l0c, N, M, N, M, 0, 0, 0, "QF322FP8_PRE", 0, False, True, *later)


def test_a_product_in_its_own_words():
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (M, K)).astype(np.float16)
    b = rng.integers(-3, 4, (N, K)).astype(np.float16)
    c = np.zeros((M, N), ml_dtypes.float8_e4m3fn)
    run = product[1](a, b, c)
    assert [f.message for f in run.findings] == []
    exact = np.clip((a.astype(np.float32) @ b.astype(np.float32).T) * 0.25, -448, 448)
    assert np.array_equal(c, exact.astype(ml_dtypes.float8_e4m3fn))


@kernel(kind="cube", outputs="c", chip=A5)
def scaled(core, a, sa, b, sb, c):
    """c = (sa a) (sb b)^T: float8 with a scale for each 32 of K, scales stored [rows, K / 32]."""
    l1a, l1b = core.cbuf.at("float8_e5m2", 0), core.cbuf.at("float8_e5m2", 65536)
    l1sa, l1sb = (core.cbuf.at("float8_e8m0fnu", at) for at in (131072, 196608))
    l0a, l0b = core.ca.at("float8_e5m2", 1024), core.cb.at("float8_e5m2", 2048)
    l0c = core.cc.at("float", 0)
    to_l1(core, l1a, a, M, K)
    to_l1(core, l1b, b, N, K)
    pairs = K // 64
    core.asc_set_gm2l1_nz_para(1 | 1 << 16 | pairs << 32)
    for to, of, rows in ((l1sa, sa, M), (l1sb, sb, N)):
        words = to.cast("int16"), of.cast("int16")
        core.asc_copy_gm2l1_dn2nz(*words, 2 * pairs, 0, pairs, rows, 0, False)
    ordered(core, "PIPE_MTE2", "PIPE_MTE1")
    core.asc_copy_l12l0a(l0a, l1a, 0, 0, M // 16, K // 32, M // 16, M // 16)
    core.asc_copy_l12l0b(l0b, l1b, 0, 0, N // 16, K // 32, N // 16, N // 16)
    core.asc_copy_l12l0a_mx(l0a.address // 16, l1sa, 0, 0, M // 16, pairs, pairs, pairs)
    core.asc_copy_l12l0b_mx(l0b.address // 16, l1sb, 0, 0, N // 16, pairs, pairs, pairs)
    ordered(core, "PIPE_MTE1", "PIPE_M")
    core.asc_mmad_mx(l0c, l0a, l0b, M, K, N, 0, False, False, True)
    ordered(core, "PIPE_M", "PIPE_FIX")
    later = ("NoConv", 0, 0, 0, 0, 0, 0, 0)
    core.asc_copy_l0c2gm(c, l0c, N, M, N, M, 0, 0, 0, "NoQuant", 0, False, True, *later)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_scaled_product_in_its_own_words(engine):
    rng = np.random.default_rng(1)
    kind = ml_dtypes.float8_e5m2
    a, b = (rng.integers(-3, 4, (rows, K)).astype(kind) for rows in (M, N))
    codes = [rng.integers(125, 130, (rows, K // 32)).astype(np.uint8) for rows in (M, N)]
    c = np.zeros((M, N), np.float32)
    run = scaled.using(engine=engine)[1](a, codes[0].view(E8M0), b, codes[1].view(E8M0), c)
    assert [f.message for f in run.findings] == []
    wide = [
        x.astype(float) * np.repeat(2.0 ** (s.astype(int) - 127), 32, axis=1)
        for x, s in zip((a, b), codes, strict=True)
    ]
    assert np.array_equal(c, (wide[0] @ wide[1].T).astype(np.float32))


ROWS, COLUMNS = 3, 37


@kernel(outputs=("sorted_rows", "turned"), chip=A5)
def vector_work(core, x, places, square, sorted_rows, turned):
    """Each row of x from the largest down, with its places; and the transpose of a square."""
    rows, groups, merged = (core.ubuf.at("float", at) for at in (0, 4096, 8192))
    place = core.ubuf.at("uint32", 12288)
    tile, other, again = (core.ubuf.at("int16", at) for at in (16384, 20480, 24576))
    core.asc_copy_gm2ub(place, places, 256)
    core.asc_set_copy_pad_val(int(np.float32(-np.inf).view(np.uint32)))
    for row in range(ROWS):  # 37 scores, 8 more in two loads, the rest of 64 by a third
        core.asc_set_gm2ub_loop_size(1, 1)
        at = rows + 64 * row
        width = 4 * COLUMNS
        core.asc_copy_gm2ub_align(at, x + COLUMNS * row, 1, width, 0, 3, True, 0, width, 0)
        core.asc_copy_gm2ub_align(at + 40, x, 1, 64, 8, 0, True, 0, 0, 0)
        core.asc_sync()
        core.asc_copy_ub2ub(at + 48, at + 40, 1, 1, 0, 0)
        core.asc_sync()
        core.asc_copy_ub2ub(at + 56, at + 40, 1, 1, 0, 0)
        core.asc_sync()
        core.asc_bitsort(groups + 128 * row, at, place, 2)
        core.asc_sync()
        two = [groups + 128 * row + 64 * i for i in (0, 1, 1, 1)]
        core.asc_mrgsort4(merged + 128 * row, two, 1, 32, 32, 0, 0, False, 3)
    core.asc_copy_gm2ub(tile, square, 512)
    core.asc_sync()
    core.asc_transpose(other, tile)
    for half in (0, 1):
        core.asc_set_va_reg(half, [again + 16 * (8 * half + i) for i in range(8)])
        core.asc_set_va_reg(2 + half, [other + 16 * (8 * half + i) for i in range(8)])
    core.asc_sync()
    core.asc_transto5hd_b16(0, 2, 1, 0, 0)
    core.asc_sync()
    core.asc_set_ub2gm_loop_size(ROWS, 1)
    core.asc_set_ub2gm_loop1_stride(512, 8 * COLUMNS)
    core.asc_copy_ub2gm_align(sorted_rows, merged, 1, 8 * COLUMNS, 0, 0, 0)
    core.asc_set_ub2gm_loop_size(1, 1)
    core.asc_copy_ub2gm(turned, other, 512)
    core.asc_copy_ub2gm(turned + 256, again, 512)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_vector_work_that_is_no_register_code(engine):
    rng = np.random.default_rng(2)
    x = rng.permutation(ROWS * COLUMNS).astype(np.float32).reshape(ROWS, COLUMNS)
    square = rng.integers(-999, 999, (16, 16)).astype(np.int16)
    pairs, turned = np.zeros((ROWS, COLUMNS, 2), np.float32), np.zeros((2, 16, 16), np.int16)
    args = (x, np.arange(64, dtype=np.uint32), square, pairs, turned)
    run = vector_work.using(engine=engine)[1](*args)
    assert [f.message for f in run.findings] == []
    order = np.argsort(-x, axis=1)
    assert np.array_equal(pairs[:, :, 0], np.take_along_axis(x, order, axis=1))
    assert np.array_equal(pairs[:, :, 1].view(np.uint32), order)
    assert np.array_equal(turned, [square.T, square])


@kernel(kind="mix", outputs="z", chip=A5)
def handed_over(core, x, z):
    """The AIC stores a product of x by one through L0C; its AIVs each copy a half of it on."""
    if core.is_aic:
        l1, l0a, l0b = core.cbuf.at("half", 0), core.ca.at("half", 0), core.cb.at("half", 0)
        core.asc_copy_gm2l1(l1, x, 1, 16, 0, 0, 0)
        ordered(core, "PIPE_MTE2", "PIPE_MTE1")
        core.asc_copy_l12l0a(l0a, l1, 0, 0, 1, 1, 1, 1)
        core.asc_copy_l12l0b(l0b, l1, 0, 0, 1, 1, 1, 1)
        ordered(core, "PIPE_MTE1", "PIPE_M")
        core.asc_mmad(core.cc.at("float", 0), l0a, l0b, 16, 16, 16, 0, False, False, True)
        ordered(core, "PIPE_M", "PIPE_FIX")
        later = ("NoConv", 0, 0, 0, 0, 0, 0, 0)
        tile = core.cc.at("float", 0)
        core.asc_copy_l0c2gm(z, tile, 16, 16, 16, 16, 0, 0, 0, "NoQuant", 0, False, True, *later)
        core.asc_sync_block_arrive("PIPE_FIX", 3)
        return
    core.asc_sync_block_wait("PIPE_S", 3)
    part, at = core.ubuf.at("float", 0), 128 * core.asc_get_sub_block_id()
    core.asc_copy_gm2ub(part, z + at, 512)
    core.asc_sync()
    core.asc_copy_ub2gm(z + 256 + at, part, 512)


def test_cores_signal_each_other():
    x = np.random.default_rng(3).integers(-3, 4, (16, 16)).astype(np.float16)
    z = np.zeros((2, 16, 16), np.float32)
    run = handed_over[1](x, z)
    assert [f.message for f in run.findings] == []
    product_of = x.astype(np.float32) @ x.astype(np.float32).T
    assert np.array_equal(z, [product_of, product_of])
