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
static constexpr Reg::ExpSpecificMode exp_kept = {Reg::MaskMergeMode::ZEROING,
                                               ExpAlgo::PRECISION_1ULP_FTZ_FALSE};
static constexpr Reg::LnSpecificMode ln_kept = {Reg::MaskMergeMode::ZEROING,
                                             LnAlgo::PRECISION_1ULP_FTZ_FALSE};
__simd_vf__ inline void Grown(__ubuf__ half* x, __ubuf__ half* z) {
  Reg::RegTensor<half> a, power, log;
  Reg::MaskReg mask = Reg::CreateMask<half>();
  Reg::LoadAlign(a, x);
  Reg::Exp(power, a, mask);
  Reg::StoreAlign(z, power, mask);
  Reg::Exp<half, &exp_kept>(power, a, mask);
  Reg::StoreAlign(z + 128, power, mask);
  Reg::Ln(log, a, mask);
  Reg::StoreAlign(z + 256, log, mask);
  Reg::Ln<half, &ln_kept>(log, a, mask);
  Reg::StoreAlign(z + 384, log, mask);
}
"""
BODY = """
  __ubuf__ half* xu = (__ubuf__ half*)0;
  __ubuf__ half* zu = (__ubuf__ half*)4096;
  asc_copy_gm2ub((__ubuf__ void*)xu, (__gm__ void*)x, 256);
  {}
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)zu, 256);
"""
GROWN = BODY.replace("zu, 256", "zu, 1024").format("Grown(xu, zu);")
BODIES = {
    "plain": BODY.format("AddHalves(xu, zu);"),
    "clamped": BODY.format("SetCtrlSpr<60, 60>(1); SetCtrlSpr<48, 48>(0); AddHalves(xu, zu);"),
    "unclamped": BODY.format("SetCtrlSpr<60, 60>(1); SetCtrlSpr<48, 48>(1); AddHalves(xu, zu);"),
    "flushed": BODY.format("Flushed(xu, zu);"),
    "kept": BODY.format("Kept(xu, zu);"),
    "scaled": BODY.format("Scaled((__ubuf__ bfloat16_t*)xu, (__ubuf__ bfloat16_t*)zu);"),
    "grown": GROWN,
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


def test_exp_and_ln_keep_subnormal_numbers_where_their_algorithm_does(built):
    """The page's own example of Exp; the logarithm of a number that counts as 0, or does not."""
    x = np.array([-16.640625, 2.0**-20, 1.0, 0.0] * 32, np.float16)
    z = np.zeros(4 * LANES, np.float16)
    built["grown"][1](x, z)
    flushed, kept, of_zero, of_small = (part[:4].astype(float) for part in z.reshape(4, LANES))
    e = np.float16(np.e)
    np.testing.assert_array_equal(flushed, [0, 1, e, 1])
    np.testing.assert_array_equal(kept, [2.0**-24, 1, e, 1])
    np.testing.assert_array_equal(of_zero, [np.nan, -np.inf, 0, -np.inf])
    small = np.float16(-20 * np.log(2))
    np.testing.assert_array_equal(of_small, [np.nan, small, 0, -np.inf])


def test_a_type_that_the_page_lacks_is_refused_with_its_line(built):
    with pytest.raises(CubecoreError) as caught:
        result(built["scaled"], np.zeros(LANES, np.float16))
    assert str(caught.value) == (
        "inline.cpp:97 (scaled): inline.cpp:31 (Scaled): Muls must take one of int16, uint16, "
        "int32, uint32, int64, uint64, float16, float32, got bfloat16"
    )
