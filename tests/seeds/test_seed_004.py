"""TIK's matmul (seed 004): the example's calls, over the instructions that they stand for."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import CopyGmToCbuf, LoadCbufToCa, LoadCbufToCb
from cubecore.isa.program.expr import Expr
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.kernels.build.builder import Builder
from harness import run_core, whole_numbers

N0 = M0 = 16


def ceiling(value, divisor):
    return -(-value // divisor)


def after(builder, src, dst):
    """Let `dst` go on only when `src` is done."""
    builder.issue(SetFlag(src=src, dst=dst, event_id=0))
    builder.issue(WaitFlag(src=src, dst=dst, event_id=0))


def tik_calls(a_shape, b_shape, m, k, n, dtype="int8", *, relu=True):
    """Return the program: two data_moves, matmul, fixpipe; one tile, so one mad."""
    kind = element_type(dtype)
    (k1, tall, k0), b_blocks = a_shape, int(np.prod(b_shape)) * kind.size_bytes // 32
    a_blocks = k1 * tall * k0 * kind.size_bytes // 32
    result = element_type("int32" if kind.kind == "int" else "float32")

    def build(builder, gm):
        a_l1, b_l1 = 0, a_blocks * 32
        builder.issue(CopyGmToCbuf(n_burst=1, len_burst=a_blocks), a_l1, gm["a"])
        builder.issue(CopyGmToCbuf(n_burst=1, len_burst=b_blocks), b_l1, gm["b"])
        after(builder, "MTE2", "MTE1")
        rows = tall // M0
        with builder.loop("row_of_fractals", rows) as row:
            load = LoadCbufToCa(repeat=k1, src_stride=rows)
            builder.issue(load, row * (k1 * 512), a_l1 + row * 512)
        builder.issue(LoadCbufToCb(repeat=k1 * ceiling(n, N0)), 0, b_l1)
        after(builder, "MTE1", "M")
        builder.issue(Mad(a_type=kind, b_type=kind, c_type=result, m=m, k=k, n=n), 0, 0, 0)
        after(builder, "M", "FIX")
        bursts, burst_len = ceiling(n, N0), m * N0 * 4 // 32
        store = CopyMatrixCcToGm(
            src_type=result,
            n_size=bursts * N0,
            m_size=m,
            dst_stride=burst_len,
            src_stride=tall,
            relu_pre=relu,
        )
        builder.issue(store, gm["dst"], 0)

    return build


def templates(build, kind, names=("a", "b", "dst")):
    """Return the templates of one kind that a program issues."""
    builder = Builder("listing")
    slots = {name: builder.slot(name) for name in names}
    build(builder, {name: Expr.of(slot) for name, slot in slots.items()})
    listed = builder.finish().listing(dict.fromkeys(slots.values(), 0))
    return [template for template, _ in listed if isinstance(template, kind)]


# --- the int8 example

A_GM, B_GM, DST_GM = (2, 32, 32), (2, 160, 32), (10, 30, 16)
EXAMPLE = tik_calls(A_GM, B_GM, 30, 64, 160)


def run_example(a, b, build=EXAMPLE):
    return run_core(build, inputs={"a": a, "b": b}, outputs={"dst": (DST_GM, "int32")})


def example_product(a, b):
    """Return A @ B, [32, 160], straight from a's [K1, M, K0] and b's [K1, N, K0]."""
    return np.einsum("kmx,knx->mn", a.astype(np.int64), b.astype(np.int64))


def example_oracle(a, b):
    """Return relu(A @ B) without the two rows of padding, as [N1, 30, N0]."""
    return np.maximum(example_product(a, b)[:30], 0).reshape(30, 10, N0).transpose(1, 0, 2)


def assert_printed_calls(build):
    """data_move of 64 and 320 blocks, matmul of 30, 64, 160, fixpipe of 10 x 60 blocks."""
    bursts = [
        (t.n_burst, t.len_burst, t.src_gap, t.dst_gap) for t in templates(build, CopyGmToCbuf)
    ]
    assert bursts == [(1, 64, 0, 0), (1, 320, 0, 0)]
    (product,) = templates(build, Mad)
    assert (product.m, product.k, product.n) == (30, 64, 160)
    (fixpipe,) = templates(build, CopyMatrixCcToGm)
    assert fixpipe.n_size // N0 == 10
    assert fixpipe.m_size * N0 * 4 // 32 == fixpipe.dst_stride == 60
    assert fixpipe.relu_pre


def test_the_int8_relu_example():
    assert_printed_calls(EXAMPLE)
    a, b = np.full(A_GM, -1, np.int8), np.full(B_GM, 1, np.int8)
    printed = run_example(a, b)
    assert printed.findings == ()
    assert printed.written["dst"].all()
    assert printed.tensors["dst"].tolist() == np.zeros(DST_GM, int).tolist()
    dst_l1out = printed.at(Mem.L0C, "int32", 10 * 32 * 16).reshape(10, 32, 16)
    assert (dst_l1out[:, :30] == -64).all()

    rng = np.random.default_rng(4)
    a = rng.integers(-128, 128, A_GM).astype(np.int8)
    b = rng.integers(-128, 128, B_GM).astype(np.int8)
    ran = run_example(a, b)
    assert ran.findings == ()
    assert np.array_equal(ran.tensors["dst"], example_oracle(a, b))
    assert 0 < (ran.tensors["dst"] == 0).mean() < 1


def test_without_relu_the_example_is_minus_64():
    a, b = np.full(A_GM, -1, np.int8), np.full(B_GM, 1, np.int8)
    build = tik_calls(A_GM, B_GM, 30, 64, 160, relu=False)
    assert (run_example(a, b, build).tensors["dst"] == -64).all()


def test_fixpipe_drops_the_padding_of_m():
    a, b = np.full(A_GM, 1, np.int8), np.full(B_GM, 1, np.int8)
    a[:, 30:] = 127
    ran = run_example(a, b)
    assert ran.findings == ()
    assert (ran.tensors["dst"] == 64).all()
    # Into a tensor of 30 rows there is no room for the two others.
    greedy = tik_calls(A_GM, B_GM, 32, 64, 160)
    assert run_example(a, b, greedy).ids == ["out-of-bounds"]


# --- the tensors' layouts

SHAPES = [(30, 64, 160, "int8"), (30, 40, 150, "int8"), (16, 96, 16, "int8"), (45, 70, 33, "half")]


@pytest.mark.parametrize(("m", "k", "n", "dtype"), SHAPES)
def test_tensor_layouts_of_the_example(m, k, n, dtype):
    k0 = {"int8": 32, "half": 16}[dtype]
    k1, tall, n1 = ceiling(k, k0), ceiling(m, M0) * M0, ceiling(n, N0)
    rng = np.random.default_rng(m)
    a, b = whole_numbers(rng, (m, k), dtype), whole_numbers(rng, (k, n), dtype)
    # Padding is poison: m, n and k need not be rounded up, the tensors are.
    poison = 127 if dtype == "int8" else np.nan
    a_nd, b_nd = (
        np.full((tall, k1 * k0), poison, a.dtype),
        np.full((k1 * k0, n1 * N0), poison, a.dtype),
    )
    a_nd[:m, :k], b_nd[:k, :n] = a, b
    a_l1 = a_nd.reshape(tall, k1, k0).transpose(1, 0, 2)
    b_l1 = b_nd.reshape(k1, k0, n1 * N0).transpose(0, 2, 1)
    assert a_l1.shape == (k1, tall, k0)
    assert b_l1.shape == (k1, n1 * N0, k0)
    build = tik_calls(a_l1.shape, b_l1.shape, m, k, n, dtype, relu=False)
    inputs = {"a": a_l1, "b": b_l1}
    result = "int32" if dtype == "int8" else "float32"
    ran = run_core(build, inputs=inputs, outputs={"dst": ((n1, m, N0), result)})
    assert ran.findings == ()
    wide = a.astype(np.float64) @ b.astype(np.float64)
    dst_l1out = ran.at(Mem.L0C, result, n1 * tall * N0).reshape(n1, tall, N0)
    for j in range(n):
        assert np.array_equal(dst_l1out[j // N0, :m, j % N0], wide[:, j])
    whole = ran.tensors["dst"].transpose(1, 0, 2).reshape(m, n1 * N0)
    assert np.array_equal(whole[:, :n], wide)


def test_a_tensor_of_another_layout_is_another_product():
    rng = np.random.default_rng(5)
    a = rng.integers(-8, 9, A_GM).astype(np.int8)
    b = rng.integers(-8, 9, B_GM).astype(np.int8)
    right = example_oracle(a, b)
    row_major = np.ascontiguousarray(a.transpose(1, 0, 2)).reshape(A_GM)
    assert np.array_equal(run_example(a, b).tensors["dst"], right)
    assert not np.array_equal(run_example(row_major, b).tensors["dst"], right)
