"""Conversions of floats of 8 bits by threads, against the numerics of registers and ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore.dtypes import element_type
from cubecore.numerics.codes import HIFLOAT8, codes_of, hybrid, numbers
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = [needs_compiler, pytest.mark.sweep]
NAMES = ("rna", "rna_sat", "rh", "rh_sat")
TEXT = (
    '#include "simt_api/asc_simt.h"\n'
    + "".join(
        f"__global__ void {source}_{name}({pair}* x, hifloat8x2_t* z) {{\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  z[i] = __{source}2hif82_{name}(x[i]);\n}}\n"
        for source, pair in (("float2", "float2"), ("half2", "half2"))
        for name in NAMES
    )
    + "".join(
        f"__global__ void {kind}({pair}* x, float2* z) {{\n"
        f"  z[threadIdx.x] = __{kind}2float2(x[threadIdx.x]);\n}}\n"
        for kind, pair in (
            ("hif82", "hifloat8x2_t"), ("e4m3x2", "float8_e4m3x2_t"), ("e5m2x2", "float8_e5m2x2_t")
        )
    )
    + """
__global__ void fp8(float2* x, unsigned short* z, int e5m2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = __asc_cvt_float2_to_fp8x2(x[i], __ASC_NOSAT, e5m2 ? __ASC_E5M2 : __ASC_E4M3);
}
__global__ void older(float* x, half* h, bfloat16_t* b, int32_t* n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  h[i] = AscendC::Simt::Cast<half, float, AscendC::RoundMode::CAST_EVEN>(x[i]);
  b[i] = AscendC::Simt::Cast<bfloat16_t, float, AscendC::RoundMode::CAST_EVEN>(x[i]);
  n[i] = AscendC::Simt::CastSat<int32_t, float, AscendC::RoundMode::CAST_RINT>(x[i]);
}
"""
)  # fmt: skip
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 480, 61440, 57344, 32768, 40960, 40961]


@pytest.fixture(scope="module")
def module():
    return cubecore.inline(TEXT, chip="Ascend950PR_9589")


def floats(dtype="f4"):
    random = np.random.default_rng(8)
    some = random.choice([-1, 1], 4082) * 2.0 ** random.uniform(-26, 17, 4082)
    with np.errstate(over="ignore"):
        return np.concatenate([EDGES, some]).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("source", "dtype"), [("float2", "f4"), ("half2", "f2")])
def test_hifloat8_of_pairs(module, source, dtype, name):
    x, z = floats(dtype), np.zeros(4096, "u1")
    # Kernels of threads cannot turn saturation on: the functions that saturate do not.
    assert getattr(module, f"{source}_{name}")[64, 32](x, z.view("u1")).clean
    kind = element_type("float32" if dtype == "f4" else "float16")
    exact = x.astype("f8") if name.startswith("rna") else hybrid(x.astype("f8"), kind)
    assert (z == codes_of(exact, HIFLOAT8)).all()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("e4m3x2", ml_dtypes.float8_e4m3fn), ("e5m2x2", ml_dtypes.float8_e5m2), ("hif82", None)],
)
def test_each_code_is_its_number(module, name, dtype):
    codes, z = np.arange(256, dtype="u1"), np.zeros(256, "f4")
    assert getattr(module, name)[1, 128](codes, z).clean
    exact = numbers(codes, HIFLOAT8) if dtype is None else codes.view(dtype).astype("f4")
    np.testing.assert_array_equal(z, exact)


@pytest.mark.parametrize(
    ("e5m2", "dtype"), [(0, ml_dtypes.float8_e4m3fn), (1, ml_dtypes.float8_e5m2)]
)
def test_floats_of_8_bits_round_to_even(module, e5m2, dtype):
    x, z = floats(), np.zeros(2048, "u2")
    assert module.fp8[64, 32](x, z, e5m2).clean
    made, exact = z.view("u1").view(dtype).astype("f4"), x.astype(dtype).astype("f4")
    np.testing.assert_array_equal(made, exact)
    assert (np.signbit(made) == np.signbit(exact))[~np.isnan(exact)].all()


def test_the_older_cast(module):
    x = floats()
    h, b, n = np.zeros(4096, "f2"), np.zeros(4096, ml_dtypes.bfloat16), np.zeros(4096, "i4")
    assert module.older[128, 32](x, h, b, n).clean
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(h, x.astype("f2"))
        np.testing.assert_array_equal(b.astype("f4"), x.astype(ml_dtypes.bfloat16).astype("f4"))
        whole = np.nan_to_num(np.rint(x.astype("f8")), nan=0, posinf=2**31, neginf=-(2**31))
    assert (n == np.clip(whole, -(2**31), 2**31 - 1)).all()
