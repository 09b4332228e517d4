"""Matrices turned round by the high-level Transpose with a tiling, against NumPy."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
SHAPES = [(16, 16), (48, 32), (16, 128), (1024, 16)]
BODY = """
  using T = {kind};
  GlobalTensor<T> from, to;
  from.SetGlobalBuffer((__gm__ T*)x);
  to.SetGlobalBuffer((__gm__ T*)z);
  TPipe pipe;
  TBuf<TPosition::VECCALC> held;
  pipe.InitBuffer(held, 2 * h * w * sizeof(T));
  LocalTensor<T> a = held.Get<T>(), b = a[h * w];
  DataCopy(a, from, h * w);
  PipeBarrier<PIPE_ALL>();
  ConfusionTransposeTiling tiling;
  {fill}
  {call}
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, b, h * w);
"""
FILL = "GetTransposeTilingInfo(TensorShape({h, w}), 0, sizeof(T), 7, tiling);"
ONLY_FILL = "GetConfusionTransposeOnlyTilingInfo(TensorShape({h, w}), 0, sizeof(T), tiling);"
ONLY = "TransposeType::TRANSPOSE_ND2ND_ONLY"
BODIES = {
    "halves": BODY.format(kind="half", fill=FILL, call=f"Transpose(b, a, {ONLY}, tiling);"),
    "floats": BODY.format(
        kind="float",
        fill=ONLY_FILL,
        call=f"ConfusionTranspose(b, a, {ONLY}, tiling);",
    ),
    "other": BODY.format(
        kind="half", fill="", call="Transpose(b, a, TransposeType::TRANSPOSE_NZ2ND_0213, tiling);"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def module():
    return kernels(BODIES, "GM_ADDR x, GM_ADDR z, uint32_t h, uint32_t w")


@pytest.mark.thinned(4)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "kind"), [("halves", "f2"), ("floats", "f4")])
def test_a_matrix_is_turned_round(module, name, kind, shape):
    x = np.random.default_rng(2).integers(0, 2000, shape).astype(kind)
    z = np.zeros(shape[::-1], kind)
    assert module[name][1](x, z, *shape).findings == ()
    np.testing.assert_array_equal(z, x.T)


@pytest.mark.parametrize(
    ("name", "height", "sentence"),
    [
        ("halves", 24, "Transpose's height and width must be multiples of 16, got 24"),
        ("other", 16, "Transpose.transposeType must be TRANSPOSE_ND2ND_ONLY with a tiling"),
    ],
)
def test_other_forms_are_refused(module, name, height, sentence):
    x = np.zeros((height, 16), "f2")
    with pytest.raises(cubecore.CubecoreError) as caught:
        module[name][1](x, x.T.copy(), height, 16)
    assert f"): {sentence}" in str(caught.value)


SQUARE_IN_C = """#include "c_api/asc_simd.h"
extern "C" __global__ __vector__ void turned(__gm__ half* x, __gm__ half* z) {
  __ubuf__ half a[256], b[256];
  asc_copy_gm2ub_sync(a, x, 512);
  __ubuf__ half *from[16], *to[16];
  for (int n = 0; n < 16; ++n) {
    from[n] = (__ubuf__ half*)(a + 16 * n);
    to[n] = (__ubuf__ half*)(b + 16 * n);
  }
  asc_set_va_reg(VA0, to);
  asc_set_va_reg(VA1, to + 8);
  asc_set_va_reg(VA2, from);
  asc_set_va_reg(VA3, from + 8);
  asc_transto5hd_b16_sync(VA0, VA2, 1, 0, 0);
  asc_copy_ub2gm_sync(z, b, 512);
}
"""


@pytest.mark.parametrize("chip", ["Ascend910B3", "Ascend950PR_9589"])
def test_a_square_in_c_that_waits_for_itself(chip):
    x, z = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    assert cubecore.inline(SQUARE_IN_C, chip=chip).turned[1](x, z).findings == ()
    assert np.array_equal(z.reshape(16, 16), x.reshape(16, 16).T)
