"""Names of register code: older spellings, the C API's addresses and casts, what is refused."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
ROWS, COLUMNS = 3, 256
FUNCTIONS = """
__simd_vf__ inline void InNewNames(__ubuf__ float* x, __ubuf__ float* z) {
  Reg::RegTensor<float> a;
  Reg::MaskReg all = Reg::CreateMask<float>();
  for (uint16_t i = 0; i < 12; ++i) {
    Reg::LoadAlign<float, Reg::PostLiteral::POST_MODE_UPDATE>(a, x, 64);
    Reg::Muls<float, float, Reg::MaskMergeMode::ZEROING>(a, a, 2.0f, all);
    Reg::StoreAlign<float, Reg::PostLiteral::POST_MODE_UPDATE, Reg::StoreDist::DIST_NORM_B32>(
        z, a, 64, all);
  }
}
__simd_vf__ inline void InOlderNames(__local_mem__ float* x, __local_mem__ float* z) {
  MicroAPI::RegTensor<float> a;
  MicroAPI::MaskReg all = MicroAPI::CreateMask<float>();
  for (uint16_t i = 0; i < 12; ++i) {
    MicroAPI::AddrReg at = MicroAPI::CreateAddrReg<float>(i, 64);
    MicroAPI::DataCopy<float, MicroAPI::LoadDist::DIST_NORM>(a, x, at);
    MicroAPI::Muls(a, a, 2.0f, all);
    MicroAPI::DataCopy<float, MicroAPI::StoreDist::DIST_NORM_B32>(z, a, at, all);
  }
}
__simd_vf__ inline void ByCounters(__ubuf__ float* x, __ubuf__ float* z) {
  vector_float a;
  vector_bool all = asc_create_mask_b32(PAT_ALL);
  for (uint16_t row = 0; row < 3; ++row)
    for (uint16_t part = 0; part < 4; ++part) {
      addr_reg at = asc_update_addr_reg_b32(64, 256);
      asc_loadalign(a, x, at);
      asc_mul_scalar(a, a, 2.0f, all);
      asc_storealign(z, a, at, all);
    }
}
__simd_vf__ inline void InViews(__ubuf__ float* x, __ubuf__ float* z) {
  vector_float a;
  vector_bool all = asc_create_mask_b32(PAT_ALL);
  for (uint16_t i = 0; i < 12; ++i) {
    asc_loadalign(a, x + i * 64);
    asc_add(a, a, a, all);
    asc_storealign((__ubuf__ int32_t*)z + i * 64, (vector_int32_t)a, all);
  }
}
__simd_vf__ inline void WithoutLoops(__ubuf__ float* x, __ubuf__ float* z) {
  addr_reg at = asc_update_addr_reg_b32(64);
}
"""
BODY = """
  __ubuf__ float xu[768];
  __ubuf__ float zu[768];
  asc_copy_gm2ub_align((__ubuf__ float*)xu, (__gm__ float*)x, 3072);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  {name}((__ubuf__ float*)xu, (__ubuf__ float*)zu);
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm_align((__gm__ float*)z, (__ubuf__ float*)zu, 1, 3072,
                       asc_store_l2_cache_mode::NORMAL_FIRST_VICTIM, 0, 0);
"""
RIGHT = ("InNewNames", "InOlderNames", "ByCounters", "InViews")
REFUSED = ("WithoutLoops",)


@pytest.fixture(scope="module")
def built():
    bodies = {f"k{name}": BODY.replace("{name}", name) for name in (*RIGHT, *REFUSED)}
    parameters = "GM_ADDR x, GM_ADDR z"
    return kernels(bodies, parameters, before=FUNCTIONS, chip=CHIP, auto_sync=False, checks="all")


@pytest.mark.parametrize("name", RIGHT)
def test_rows_are_doubled_by_any_spelling(built, name):
    x = np.random.default_rng(3).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    z = np.zeros_like(x)
    run = built[f"k{name}"][1](x, z)
    assert np.array_equal(z, 2 * x)
    assert run.findings == ()


REFUSALS = {
    "WithoutLoops": "the strides of an address register must have a loop each, got 1; its counters"
    " are those of loops in the same function",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_is_refused_in_a_sentence(built, name):
    x = np.zeros((ROWS, COLUMNS), np.float32)
    with pytest.raises(CubecoreError) as caught:
        built[f"k{name}"][1](x, x)
    assert REFUSALS[name] in str(caught.value)


@pytest.mark.parametrize("a", ["(__ubuf__ float*)a", "a"])
def test_a_call_of_2201_on_addresses_is_refused_with_what_replaces_it(a):
    text = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  __ubuf__ float a[64];
  asc_add(OPERAND, OPERAND, OPERAND, 64);
}
""".replace("OPERAND", a)
    with pytest.raises(CubecoreError) as caught:
        cubecore.inline(text, chip=CHIP).k[1](np.zeros(64, np.float32))
    assert str(caught.value).splitlines()[0] == (
        "inline.cpp:4: asc_add takes registers on architecture 3510, got addresses in UB; "
        "load them by asc_loadalign in a function with __simd_vf__"
    )


def test_a_conversion_that_the_table_lacks_is_refused_with_those_that_it_has():
    text = """#include "kernel_operator.h"
__simd_vf__ inline void f(__ubuf__ float* a) {
  vector_float x;
  vector_uint32_t y;
  asc_float2uint32_rz_sat(y, x, asc_create_mask_b32(PAT_ALL));
}
extern "C" __global__ __aicore__ void k(GM_ADDR x) { f((__ubuf__ float*)0); }
"""
    with pytest.raises(CubecoreError) as caught:
        cubecore.inline(text, chip=CHIP).k[1](np.zeros(64, np.float32))
    assert str(caught.value).splitlines() == [
        "inline.cpp:5: asc_float2uint32_rz_sat must convert float to bfloat16, e4m3, e5m2, half, "
        "hif8, int16, int32, int64, got uint32"
    ]
