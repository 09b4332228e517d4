"""Values of registers in C++ kernels: CTRL, subnormal numbers, and types that a page lacks."""

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
LANES = 128
FUNCTIONS = """
__simd_vf__ inline void AddHalves(__ubuf__ half* x, __ubuf__ half* z) {
  Reg::RegTensor<half> a, sum;
  Reg::MaskReg mask = Reg::CreateMask<half>();
  Reg::LoadAlign(a, x);
  Reg::Add(sum, a, a, mask);
  Reg::StoreAlign(z, sum, mask);
}
static constexpr Reg::SqrtSpecificMode precise = {Reg::MaskMergeMode::ZEROING, true,
                                               SqrtAlgo::PRECISION_0ULP_FTZ_FALSE};
__simd_vf__ inline void Flushed(__ubuf__ half* x, __ubuf__ half* z) {
  Reg::RegTensor<half> a, root;
  Reg::MaskReg mask = Reg::CreateMask<half>();
  Reg::LoadAlign(a, x);
  Reg::Sqrt(root, a, mask);
  Reg::StoreAlign(z, root, mask);
}
__simd_vf__ inline void Kept(__ubuf__ half* x, __ubuf__ half* z) {
  Reg::RegTensor<half> a, root;
  Reg::MaskReg mask = Reg::CreateMask<half>();
  Reg::LoadAlign(a, x);
  Reg::Sqrt<half, &precise>(root, a, mask);
  Reg::StoreAlign(z, root, mask);
}
__simd_vf__ inline void Scaled(__ubuf__ bfloat16_t* x, __ubuf__ bfloat16_t* z) {
  Reg::RegTensor<bfloat16_t> a;
  Reg::MaskReg mask = Reg::CreateMask<bfloat16_t>();
  Reg::LoadAlign(a, x);
  Reg::Muls(a, a, (bfloat16_t)2.0f, mask);
  Reg::StoreAlign(z, a, mask);
}
"""
BODY = """
  __ubuf__ half* xu = (__ubuf__ half*)0;
  __ubuf__ half* zu = (__ubuf__ half*)4096;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, 256);
  {}
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)zu, 256);
"""
BODIES = {
    "plain": BODY.format("AddHalves(xu, zu);"),
    "clamped": BODY.format("SetCtrlSpr<60, 60>(1); SetCtrlSpr<48, 48>(0); AddHalves(xu, zu);"),
    "unclamped": BODY.format("SetCtrlSpr<60, 60>(1); SetCtrlSpr<48, 48>(1); AddHalves(xu, zu);"),
    "flushed": BODY.format("Flushed(xu, zu);"),
    "kept": BODY.format("Kept(xu, zu);"),
    "scaled": BODY.format("Scaled((__ubuf__ bfloat16_t*)xu, (__ubuf__ bfloat16_t*)zu);"),
}


@pytest.fixture(scope="module")
def built():
    return kernels(BODIES, "GM_ADDR x, GM_ADDR z", before=FUNCTIONS, chip=CHIP, auto_sync=True)


def result(kernel, x):
    z = np.zeros(LANES, np.float16)
    kernel[1](x, z)
    return z


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("name", "large"), [("plain", np.inf), ("unclamped", np.inf), ("clamped", 65504.0)]
)
def test_ctrl_says_whether_halves_stay_finite(built, name, large):
    x = np.array([60000.0, -60000.0, np.nan, 1.5] * 32, np.float16)
    got = result(built[name], x)
    wanted = [large, -large, 0.0 if name == "clamped" else np.nan, 3.0]
    np.testing.assert_array_equal(got[:4], np.array(wanted, np.float16))


@pytest.mark.parametrize(("name", "small"), [("flushed", 0.0), ("kept", 2.0**-10)])
def test_an_algorithm_says_whether_subnormal_numbers_count(built, name, small):
    x = np.array([2.0**-20, 4.0] * 64, np.float16)
    np.testing.assert_array_equal(result(built[name], x)[:2], np.array([small, 2.0], np.float16))


def test_a_type_that_the_page_lacks_is_refused_with_its_line(built):
    with pytest.raises(CubecoreError) as caught:
        result(built["scaled"], np.zeros(LANES, np.float16))
    assert str(caught.value) == (
        "inline.cpp:80 (scaled): inline.cpp:31 (Scaled): Muls must take one of int16, uint16, "
        "int32, uint32, int64, uint64, float16, float32, got bfloat16"
    )
