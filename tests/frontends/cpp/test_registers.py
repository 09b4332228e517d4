"""Vector functions in C++: registers, the ways to begin one, and their order toward other pipes."""

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
LANES = 64
COUNT = 8 * LANES

FUNCTIONS = """
template <typename T>
__simd_vf__ inline void AddRows(__ubuf__ T* x, __ubuf__ T* y, __ubuf__ T* z, uint32_t count) {
  constexpr uint32_t lanes = GetVecLen() / sizeof(T);
  Reg::RegTensor<T> a, b, sum;
  for (uint16_t i = 0; i < (count + lanes - 1) / lanes; ++i) {
    uint32_t left = count - i * lanes;
    Reg::MaskReg mask = Reg::UpdateMask<T>(left);
    Reg::LoadAlign(a, x + i * lanes);
    Reg::LoadAlign(b, y + i * lanes);
    Reg::Add(sum, a, b, mask);
    Reg::StoreAlign(z + i * lanes, sum, mask);
  }
}
__simd_vf__ inline void AddInC(__ubuf__ float* x, __ubuf__ float* y, __ubuf__ float* z,
                               uint32_t count) {
  vector_float a, b, sum;
  uint32_t left = count;
  for (uint16_t i = 0; i < (count + 63) / 64; ++i) {
    vector_bool mask = asc_update_mask_b32(left);
    asc_loadalign(a, x + i * 64);
    asc_loadalign(b, y + i * 64);
    asc_add(sum, a, b, mask);
    asc_storealign(z + i * 64, sum, mask);
  }
}
"""
COPY_IN = """
  __ubuf__ float* xu = (__ubuf__ float*)0;
  __ubuf__ float* yu = (__ubuf__ float*)4096;
  __ubuf__ float* zu = (__ubuf__ float*)8192;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, n * 4);
  asc_copy_gm2ub((__ubuf__ void*)yu, (__gm__ void*)y, n * 4);
  {first}
"""
COPY_OUT = """
  {last}
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)zu, n * 4);
"""
IN = "SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);"
OUT = "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
SCOPE = """__VEC_SCOPE__ {
    Reg::MaskReg mask = Reg::CreateMask<float>();
    for (uint16_t i = 0; i < n / 64; ++i) {
      MicroAPI::RegTensor<float> a, b, sum;
      MicroAPI::LoadAlign(a, xu + i * 64);
      MicroAPI::LoadAlign(b, yu + i * 64);
      MicroAPI::Add(sum, a, b, mask);
      MicroAPI::StoreAlign(zu + i * 64, sum, mask);
    }
  }"""


def body(middle, first=IN, last=OUT):
    return COPY_IN.format(first=first) + middle + COPY_OUT.format(last=last)


BODIES = {
    "direct": body("AddRows<float>(xu, yu, zu, n);"),
    "called": body("asc_vf_call<AddRows<float>>(xu, yu, zu, n);"),
    "older": body("VF_CALL<AddRows<float>>(xu, yu, zu, n);"),
    "scope": body(SCOPE),
    "in_c": body("AddInC(xu, yu, zu, n);"),
    "early": body("AddRows<float>(xu, yu, zu, n);", first=""),
    "late": body("AddRows<float>(xu, yu, zu, n);", last=""),
    "again": body("AddRows<float>(xu, yu, zu, n); AddRows<float>(zu, yu, zu, n);"),
    "outside": "Reg::RegTensor<float> a; Reg::LoadAlign(a, (__ubuf__ float*)0);",
    "rows": body(
        "for (uint32_t r = 0; r < n; r += 64) AddRows<float>(xu + r, yu + r, zu + r, 64);"
    ),
}


@pytest.fixture(scope="module")
def built():
    parameters = "GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t n"
    return kernels(BODIES, parameters, before=FUNCTIONS, chip=CHIP, auto_sync=False, checks="all")


def added(kernel, count=COUNT):
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=count).astype(np.float32) for _ in range(2))
    z = np.zeros_like(x)
    run = kernel[1](x, y, z, count)
    return z, x + y, run.findings


@pytest.mark.parametrize("name", ["direct", "called", "older", "scope", "in_c", "rows"])
def test_a_sum_of_rows_is_right_and_clean_however_it_begins(built, name):
    z, expected, findings = added(built[name])
    assert np.array_equal(z, expected)
    assert findings == ()


def test_vector_functions_follow_each_other_without_a_barrier(built):
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=COUNT).astype(np.float32) for _ in range(2))
    z = np.zeros_like(x)
    assert built["again"][1](x, y, z, COUNT).findings == ()
    assert np.array_equal(z, x + y + y)


@pytest.mark.parametrize("count", [8, 64, 72, 500])
def test_a_mask_of_a_count_cuts_the_last_row(built, count):
    z, expected, findings = added(built["direct"], count)
    assert np.array_equal(z, expected)
    assert findings == ()


def test_a_vector_function_behind_a_copy_without_a_flag_races(built):
    _, _, findings = added(built["early"])
    said = [(finding.id, finding.message) for finding in findings]
    assert said == [
        (
            "race-raw",
            f"vector_function.src{n} must read bytes [{start}, {start + 2048}) of UB after "
            f"copy_gm_to_ubuf_v2.dst wrote them, got no order between MTE2 (inline.cpp:{line} "
            "(early)) and V (inline.cpp:5 (AddRows<float>)); set_flag(MTE2, V) after the write and "
            "wait_flag(MTE2, V) before the read",
        )
        for n, start, line in [(0, 0, 109), (1, 4096, 110)]
    ]


def test_a_copy_behind_a_vector_function_without_a_flag_races(built):
    _, _, (finding,) = added(built["late"])
    assert finding.id == "race-raw"
    assert [access.instruction for access in finding.accesses] == [
        "vector_function",
        "copy_ubuf_to_gm_v2",
    ]
    assert finding.accesses[0].location.callers[0].line == 125


def test_a_call_on_registers_stands_in_a_vector_function(built):
    with pytest.raises(CubecoreError) as caught:
        added(built["outside"])
    assert str(caught.value) == (
        "inline.cpp:144 (outside): a call on registers must stand in a vector function, got one "
        "outside of any; call a function with __simd_vf__, or put it in __VEC_SCOPE__"
    )
