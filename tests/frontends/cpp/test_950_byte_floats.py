"""Products of floats of 8 bits on Ascend 950 by the class API, from row-major matrices."""

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore.dtypes import element_type
from cubecore.numerics.codes import numbers
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
M, K, N = 32, 64, 48
TYPES = {
    "hifloat8_t": "hifloat8",
    "fp8_e4m3fn_t": "float8_e4m3fn",
    "fp8_e5m2_t": "float8_e5m2",
}
BODY = """
KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
constexpr uint32_t M = 32, K = 64, N = 48;
GlobalTensor<{0}> ag, bg;
GlobalTensor<float> cg;
ag.SetGlobalBuffer((__gm__ {0}*)a);
bg.SetGlobalBuffer((__gm__ {0}*)b);
cg.SetGlobalBuffer((__gm__ float*)c);
LocalTensor<{0}> a1(TPosition::A1, 0, M * K), b1(TPosition::B1, 65536, N * K);
LocalTensor<{0}> a2(TPosition::A2, 0, M * K), b2(TPosition::B2, 0, N * K);
LocalTensor<float> co(TPosition::CO1, 0, M * N);
DataCopy(a1, ag, Nd2NzParams(1, M, K, 0, K, M, 1, 0));
DataCopy(b1, bg, Nd2NzParams(1, N, K, 0, K, N, 1, 0));
SetFlag<HardEvent::MTE2_MTE1>(0);
WaitFlag<HardEvent::MTE2_MTE1>(0);
LoadData(a2, a1, LoadData2DParamsV2(0, 0, M / 16, K / 32, M / 16, M / 16, false, 0));
LoadData(b2, b1, LoadData2DParamsV2(0, 0, N / 16, K / 32, N / 16, N / 16, false, 0));
SetFlag<HardEvent::MTE1_M>(0);
WaitFlag<HardEvent::MTE1_M>(0);
Mmad(co, a2, b2, MmadParams(M, N, K));
SetFlag<HardEvent::M_FIX>(0);
WaitFlag<HardEvent::M_FIX>(0);
FixpipeParamsArch3510<CO2Layout::ROW_MAJOR> p(N, M, M, N);
Fixpipe(cg, co, p);
"""
BODIES = {f"of_{name}": BODY.format(name) for name in TYPES}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", TYPES)
def test_matrices_of_byte_floats_are_brought_as_rows(name):
    """A copy to NZ takes them; small codes of both signs keep the sums exact in float32."""
    kind = element_type(TYPES[name])
    codes = np.arange(256, dtype=np.uint8)
    every = numbers(codes if kind.library == "codes" else codes.view(kind.numpy), kind)
    every = every.astype(np.float32)
    exact = np.isfinite(every) & (np.abs(every) <= 4) & (every * 8 == np.round(every * 8))
    codes = np.flatnonzero(exact).astype(np.uint8)
    rng = np.random.default_rng(3)
    a, b = rng.choice(codes, (M, K)), rng.choice(codes, (N, K))
    c = np.zeros((M, N), np.float32)
    module = kernels(BODIES, "GM_ADDR a, GM_ADDR b, GM_ADDR c", chip="Ascend950PR_9599")
    assert module[f"of_{name}"][1](a, b, c).findings == ()
    np.testing.assert_array_equal(c, every[a] @ every[b].T)


SCALARS = """#include "kernel_operator.h"
#ifdef __NPU_DEVICE__
namespace deep {
template <typename T>
__aicore__ inline void nobody(AscendC::LocalTensor<T>& x) {
  NoSuchFunction<T>(x);  // a template that is not used
}
__aicore__ inline void narrowed(AscendC::LocalTensor<half>& y, AscendC::LocalTensor<float>& x) {
  Cast<half, float>(y, x, AscendC::RoundMode::CAST_RINT, 64);  // found by its arguments
}
}  // namespace deep
#endif
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR narrow) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  AscendC::GlobalTensor<fp8_e4m3fn_t> xg;
  AscendC::GlobalTensor<fp8_e5m2_t> yg;
  AscendC::GlobalTensor<float> zg;
  AscendC::GlobalTensor<half> ng;
  xg.SetGlobalBuffer((__gm__ fp8_e4m3fn_t*)x);
  yg.SetGlobalBuffer((__gm__ fp8_e5m2_t*)y);
  zg.SetGlobalBuffer((__gm__ float*)z);
  ng.SetGlobalBuffer((__gm__ half*)narrow);
  AscendC::LocalTensor<float> local(AscendC::TPosition::VECIN, 0, 512);
  AscendC::LocalTensor<half> less(AscendC::TPosition::VECIN, 2048, 64);
  for (int i = 0; i < 256; ++i) {
    local.SetValue(i, AscendC::ToFloat(xg.GetValue(i)));
    local.SetValue(256 + i, AscendC::ToFloat(yg.GetValue(i)));
  }
  AscendC::PipeBarrier<PIPE_ALL>();
  deep::narrowed(less, local);
  AscendC::DataCopy(zg, local, 512);
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::DataCopy(ng, less, 64);
}
"""


def test_scalars_of_8_bits_are_numbers_and_calls_are_found_by_their_arguments():
    """The compiler has to read the file as C++20 does."""
    codes = np.arange(256, dtype=np.uint8)
    floats = codes.view(ml_dtypes.float8_e4m3fn), codes.view(ml_dtypes.float8_e5m2)
    got, less = np.zeros(512, np.float32), np.zeros(64, np.float16)
    assert cubecore.inline(SCALARS, chip="Ascend950PR_9589").k[1](*floats, got, less).findings == ()
    expected = np.concatenate([each.astype(np.float32) for each in floats])
    assert np.array_equal(got, expected, equal_nan=True)
    assert np.array_equal(less, expected[:64].astype(np.float16))
