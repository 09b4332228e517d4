"""Forms that public kernels for 950 write: they compile, and compute what they say."""

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernel, kernels, needs_compiler

pytestmark = needs_compiler
CHIP, A2 = "Ascend950PR_9589", "Ascend910B3"
WIDTHS = {
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "int64": "int64_t",
    "uint64": "uint64_t",
}
FILLED = """
  GlobalTensor<{type}> to;
  to.SetGlobalBuffer((__gm__ {type}*)z);
  Fill(to, 300, ({type})77);
"""


def test_global_memory_is_filled_with_every_width():
    made = kernels(
        {f"of_{name}": FILLED.format(type=cpp) for name, cpp in WIDTHS.items()},
        "GM_ADDR z",
        chip=CHIP,
    )
    for name in WIDTHS:
        z = np.zeros(304, ml_dtypes.bfloat16 if name == "bfloat16" else name)
        assert getattr(made, f"of_{name}")[1](z).findings == ()
        assert (z[:300] == 77).all(), name
        assert not z[300:].any(), name


def test_a_byte_is_no_width_of_a2():
    with pytest.raises(CubecoreError) as caught:
        kernel(FILLED.format(type="int8_t"), "GM_ADDR z", chip=A2)
    assert str(caught.value) == (
        "inline.cpp:8: Fill must take elements of 16 or 32 bits on 2201, got others"
    )


QUEUED = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 1024);
  LocalTensor<float> a = buffer.Get<float>();
  if (which == 1) buffer.EnQue(a);
  if (which == 2) a = buffer.DeQue<float>();
"""


@pytest.mark.parametrize(("which", "line", "call"), [(1, 10, "EnQue"), (2, 11, "DeQue")])
def test_a_buffer_is_no_queue(which, line, call):
    made = kernel(QUEUED, "GM_ADDR z, uint32_t which", chip=CHIP)
    z = np.zeros(8, np.float32)
    assert made[1](z, 0).findings == ()  # what never runs is not refused
    with pytest.raises(CubecoreError) as caught:
        made[1](z, which)
    assert str(caught.value) == (
        f"inline.cpp:{line} (k): TBuf.{call} must be called of a TQue, "
        "got a TBuf; SetFlag and WaitFlag order its uses"
    )


SORTED = """
static constexpr SortConfig ANY{SortType::RADIX_SORT, false};
inline __aicore__ void Least(const LocalTensor<uint16_t>& to, const LocalTensor<uint16_t>& from,
                             const LocalTensor<uint8_t>& work) {
  Sort<uint16_t, false, ANY>(to, from, work, 64);
}
struct Base {};
template <typename Derived, typename T>
struct Sorter : public Base {
  static constexpr SortConfig DOWN{SortType::RADIX_SORT, true};
  LocalTensor<uint16_t> from{TPosition::VECIN, 0, 64}, to{TPosition::VECIN, 512, 64};
  LocalTensor<uint32_t> at{TPosition::VECIN, 1024, 64};
  LocalTensor<uint8_t> work{TPosition::VECIN, 2048, 4096};
  __aicore__ inline void Up();
  __aicore__ inline void Run(bool down) {
    if (down)
      Sort<uint16_t, false, DOWN>(to, at, from, work, 64);
    else
      Up();
  }
};
template <typename Derived, typename T>
__aicore__ inline void Sorter<Derived, T>::Up() {
  static constexpr SortConfig LOCAL{SortType::RADIX_SORT, false};
  Sort<uint16_t, false, LOCAL>(to, at,
                               from, work, 64);
}
"""
SORT = """
  Sorter<int, float> sorter;
  GlobalTensor<uint16_t> xg, zg;
  xg.SetGlobalBuffer((__gm__ uint16_t*)x);
  zg.SetGlobalBuffer((__gm__ uint16_t*)z);
  DataCopy(sorter.from, xg, 64);
  PipeBarrier<PIPE_ALL>();
  sorter.Run(down != 0);
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, sorter.to, 64);
"""


def test_a_constant_of_a_class_template_configures_a_call():
    made = kernel(SORT, "GM_ADDR x, GM_ADDR z, uint32_t down", SORTED, chip=CHIP)
    x = np.random.default_rng(2).integers(0, 65536, 64).astype(np.uint16)
    z = np.zeros_like(x)
    assert made[1](x, z, 0).findings == ()
    assert np.array_equal(z, np.sort(x))
    assert made[1](x, z, 1).findings == ()
    assert np.array_equal(z, np.sort(x)[::-1])


THREADS = """#include "kernel_operator.h"
#include "simt_api/asc_simt.h"
#include "matmul/tiling.h"
#include "matmul/matmul_config.h"
#include "platform/platform_info.h"
#include "utils/init_global_memory.h"
using namespace AscendC;
namespace Own { constexpr int FOUR = 40; inline __aicore__ int four() { return FOUR; } }
__simt_vf__ LAUNCH_BOUND(32) inline void threads(__gm__ volatile half* x, __gm__ int32_t* z) {
  if (threadIdx.x == 0) __builtin_cce_dcci(nullptr, 1, 0);
  const bool odd = asc_shfl(threadIdx.x == 3, 3);
  const int8_t small = asc_shfl(static_cast<int8_t>(-5 - threadIdx.x), 2);
  const half two = TWO;
  x[threadIdx.x] = two;
  z[threadIdx.x] = odd * 1000 + small * 10 + TWO * Own::four();
  if (threadIdx.x == 1)
    z[1] = Simt::Cast<int32_t, float, RoundMode::CAST_RINT, Simt::SatMode::SAT>(3e9f);
}
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z) {
  static_assert(Std::IsSame<AscendC::fp8_e8m0_t, ::fp8_e8m0_t>::value, "one type");
  static_assert(VECTOR_REG_WIDTH_2XVL == 2 * VECTOR_REG_WIDTH, "two registers");
  static_assert(std::is_same_v<Reg::ReduceType, AscendC::ReduceType>, "one enumeration");
  asc_vf_call<threads>(cce::dim3{32}, (__gm__ volatile half*)x, (__gm__ int32_t*)z);
}
"""


def test_threads_and_names_of_the_kit():
    made = cubecore.inline(THREADS, chip=CHIP).k
    x, z = np.zeros(32, np.float16), np.zeros(32, np.int32)
    assert made[1](x, z).findings == ()
    assert (x == 2).all()
    assert (np.delete(z, 1) == 1000 - 70 + 80).all()
    assert z[1] == 2**31 - 1


LATE = """#include "kernel_operator.h"
struct Tiling { uint32_t total; };
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  if (data.total > 1) {
    REGISTER_TILING_DEFAULT(Tiling);
  }
  REGISTER_TILING_DEFAULT(Tiling);
  *((__gm__ uint32_t*)x) = data.total + __LINE__;
  float seen = AscendC::ToFloat<bfloat16_t>(bfloat16_t(2.5f));
  *((__gm__ float*)x + 1) = seen;
}
"""


def test_a_struct_may_be_registered_behind_its_data():
    made = cubecore.inline(LATE, chip=CHIP).k
    x, tiling = np.zeros(8, np.uint32), np.array([7], np.uint32)
    made[1](x, x.copy(), tiling)
    assert x[0] == 7 + 9
    assert x[1:2].view(np.float32)[0] == 2.5
