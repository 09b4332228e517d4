"""Functions of Ascend 950 that move elements of tensors in UB, and its control register: values."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
CPP = {"int8": "int8_t", "float16": "half", "float32": "float", "int64": "int64_t"}
COUNT = 300  # elements: not whole registers, and half of them no whole blocks
FRAME = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 65536);
  GlobalTensor<{T}> xg, zg;
  GlobalTensor<uint32_t> og;
  xg.SetGlobalBuffer((__gm__ {T}*)x);
  og.SetGlobalBuffer((__gm__ uint32_t*)o);
  zg.SetGlobalBuffer((__gm__ {T}*)z);
  auto a = memory.Get<{T}>();
  auto b = a[512];
  auto d = a[2048];
  auto e = a[2560];
  auto at = memory.Get<uint32_t>()[12288];
  DataCopy(a, xg, 1024);
  DataCopy(d, xg, 1024);
  DataCopy(at, og, 512);
  PipeBarrier<PIPE_ALL>();
  {call}
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, d, 1024);
"""
CALLS = {
    "scatter": "Scatter(d, a, at, (uint32_t)sizeof({T}), 300u);",
    "interleave": "Interleave(d, e, a, b, 300);",
    "even_halves": "Interleave(d, e, a, b, 384);",
    "deinterleave": "DeInterleave(d, e, a, 300);",
    "of_two": "DeInterleave(d, e, a, b, 256);",
}


RESET = """
  GlobalTensor<int64_t> zg;
  zg.SetGlobalBuffer((__gm__ int64_t*)z);
  SetCtrlSpr<48, 48>(1);
  SetCtrlSpr<59, 60>(3);
  zg.SetValue(0, GetCtrlSpr<48, 60>());
  ResetCtrlSpr<48, 48>();
  zg.SetValue(1, GetCtrlSpr<48, 60>());
  ResetCtrlSpr<59, 60>();
  zg.SetValue(2, GetCtrlSpr<48, 60>());
"""


@pytest.fixture(scope="module")
def made():
    bodies = {
        f"{name}_{kind}": FRAME.format(T=word, call=call.format(T=word))
        for name, call in CALLS.items()
        for kind, word in CPP.items()
    }
    bodies["reset"] = RESET
    return kernels(bodies, "GM_ADDR x, GM_ADDR o, GM_ADDR z", chip=CHIP)


def moved(name, x, order):
    """Return both results, which lie 512 elements apart, and what they leave of x."""
    a, b, left = x[:512], x[512:], x.copy()
    if name == "scatter":
        left[order[:COUNT] + 1] = a[:COUNT]
        return left
    count = {"interleave": 300, "even_halves": 384, "deinterleave": 150, "of_two": 256}[name]
    if name in {"interleave", "even_halves"}:
        whole = np.stack([a[:count], b[:count]], axis=1).ravel()
        first, second = whole[:count], whole[count:]
    else:
        whole = a[:300] if name == "deinterleave" else np.concatenate([a[:256], b[:256]])
        first, second = whole[::2], whole[1::2]
    left[:count], left[512 : 512 + count] = first, second
    return left


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", CPP)
def test_elements_are_where_numpy_puts_them(made, name, kind):
    rng = np.random.default_rng(3)
    x = rng.integers(-100, 100, 1024).astype(kind)
    order, z = rng.permutation(512), np.zeros(1024, kind)
    offsets = (order * x.itemsize).astype(np.uint32)
    ran = getattr(made, f"{name}_{kind}")[1](x, offsets, z)
    assert [f.message for f in ran.findings] == []
    np.testing.assert_array_equal(z, moved(name, x, order))


def test_bits_of_the_control_register_are_reset(made):
    x, z = np.zeros(1, np.int64), np.zeros(3, np.int64)
    assert made.reset[1](x, x, z).findings == ()
    assert z.tolist() == [1 | 3 << 11, 3 << 11, 1 << 12]
