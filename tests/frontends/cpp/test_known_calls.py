"""Calls of vector functions in C++ that were met before: equal arguments, and what else counts."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
LANES = 64
FUNCTIONS = """
using F = __ubuf__ float*;
#define FILL(value)                             \\
  Reg::RegTensor<float> a;                      \\
  Reg::MaskReg all = Reg::CreateMask<float>();  \\
  Reg::Duplicate(a, (float)(value), all);       \\
  Reg::StoreAlign(z, a, all)
__simd_vf__ inline void Plain(F z, float value) { FILL(value); }
__simd_vf__ inline void Doubled(F z) {
  Reg::RegTensor<float> a;
  Reg::MaskReg all = Reg::CreateMask<float>();
  Reg::LoadAlign(a, z);
  Reg::Add(a, a, a, all);
  Reg::StoreAlign(z, a, all);
}
__simd_vf__ inline void OfUb(F z) {
  float value = z[0];
  FILL(value + 1);
}
__simd_vf__ inline void OfReference(F z, int& left) { FILL(left); --left; }
struct Filler {
  int value;
  __simd_vf__ inline void Fill(F z) { FILL(value); }
  static __simd_vf__ inline void Fixed(F z, int given) { FILL(given); }
  __simd_vf__ inline void Outside(F z);
};
inline __simd_vf__ void Filler::Outside(F z) { FILL(value); }
template <int value>
__simd_vf__ inline void Templated(F z) { FILL(value); }
"""
PUT = """
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm((__gm__ void*)(z + 256 * n++), (__ubuf__ void*)zu, 256);
  SetFlag<HardEvent::MTE3_V>(0); WaitFlag<HardEvent::MTE3_V>(0);
"""
CASES = {
    "plain": (["Plain(zu, 2);", "Plain(zu, 3);", "Plain(zu, 2);"], [2, 3, 2]),
    "zeros": (["Plain(zu, 0.0f);", "Plain(zu, -0.0f);"], [0, -0.0]),
    "doubled": (["Plain(zu, 1);", "Doubled(zu);", "Doubled(zu);"], [1, 2, 4]),
    "called": (["asc_vf_call<Plain>(zu, 2.f);", "Plain(zu, 3);", "asc_vf_call<Plain>(zu, 2.f);"],
               [2, 3, 2]),
    "of_ub": (["Plain(zu, 1);", "OfUb(zu);", "OfUb(zu);", "OfUb(zu);"], [1, 2, 3, 4]),
    "of_reference": (["int left = 5; OfReference(zu, left);", "OfReference(zu, left);"], [5, 4]),
    "of_object": (["Filler f{1}; f.Fill(zu);", "f.value = 2; f.Fill(zu);"], [1, 2]),
    "outside": (["Filler f{1}; f.Outside(zu);", "f.value = 2; f.Outside(zu);"], [1, 2]),
    "static_member": (["Filler::Fixed(zu, 1);", "Filler::Fixed(zu, 2);", "Filler::Fixed(zu, 1);"],
               [1, 2, 1]),
    "templated": (["Templated<1>(zu);", "Templated<2>(zu);", "Templated<1>(zu);"], [1, 2, 1]),
    "together": (["__VEC_SCOPE__ { Plain(zu, 2); Plain(zu + 64, 3); }", "Plain(zu, 2);"], [2, 2]),
}  # fmt: skip


@pytest.fixture(scope="module")
def built():
    start = "F zu = (F)4096; uint32_t n = 0;"
    bodies = {
        name: start + "".join(f"{line}{PUT}" for line in case) for name, (case, _) in CASES.items()
    }
    return kernels(bodies, "GM_ADDR z", before=FUNCTIONS, chip=CHIP, auto_sync=False)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("blocks", [1, 3])
def test_each_call_stores_what_its_body_says(built, name, blocks):
    expected = np.array(CASES[name][1], np.float32)
    z = np.zeros((expected.size, LANES), np.float32)
    built[name][blocks](z)  # blocks store the same bytes, and a scalar read waits for no flag
    assert np.array_equal(z[:, 0], expected)
    assert np.signbit(z[:, -1]).tolist() == np.signbit(expected).tolist()
