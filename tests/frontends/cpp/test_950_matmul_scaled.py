"""Matmul objects of MxMatmul on Ascend 950: operands and their scales, against NumPy."""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError
from cubecore.numerics.codes import numbers
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
TEXT = """
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <typename A, typename B, typename C, bool transA, bool transB, int mode>
struct Product {
  using AT = MatmulTypeWithScale<TPosition::GM, TPosition::GM, CubeFormat::ND, A, transA>;
  using BT = MatmulTypeWithScale<TPosition::GM, TPosition::GM, CubeFormat::ND, B, transB>;
  using CT = MatmulType<TPosition::GM, CubeFormat::ND, C>;
  using BiasT = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  TPipe pipe;
  TCubeTiling t;
  Matmul<AT, BT, CT, BiasT, CFG_MDL, MatmulCallBackFunc<nullptr, nullptr, nullptr>,
         Impl::Detail::MatmulWithScalePolicy> mm;
  void Run(GM_ADDR a, GM_ADDR b, GM_ADDR sa, GM_ADDR sb, GM_ADDR bias, GM_ADDR c, GM_ADDR tiling) {
    for (size_t n = 0; n < sizeof(t) / 4; ++n)
      reinterpret_cast<int32_t*>(&t)[n] = reinterpret_cast<int32_t*>(tiling)[n];
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    GlobalTensor<A> ag;
    GlobalTensor<B> bg;
    GlobalTensor<fp8_e8m0_t> sag, sbg;
    GlobalTensor<float> biasg;
    GlobalTensor<C> cg;
    ag.SetGlobalBuffer(reinterpret_cast<__gm__ A*>(a));
    bg.SetGlobalBuffer(reinterpret_cast<__gm__ B*>(b));
    sag.SetGlobalBuffer(reinterpret_cast<__gm__ fp8_e8m0_t*>(sa));
    sbg.SetGlobalBuffer(reinterpret_cast<__gm__ fp8_e8m0_t*>(sb));
    biasg.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(bias));
    cg.SetGlobalBuffer(reinterpret_cast<__gm__ C*>(c));
    mm.SetTensorA(ag, transA);
    mm.SetTensorB(bg, transB);
    if (mode != 2) mm.SetTensorScaleA(sag, transA);
    mm.SetTensorScaleB(sbg, mode == 3 ? !transB : transB);
    if (t.isBias) mm.SetBias(biasg);
    if (mode == 1) {
      while (mm.Iterate()) mm.GetTensorC(cg);
    } else {
      mm.IterateAll(cg);
    }
    mm.End();
  }
};
"""
KERNEL = """
extern "C" __global__ __cube__ void {name}(GM_ADDR a, GM_ADDR b, GM_ADDR sa, GM_ADDR sb,
                                           GM_ADDR bias, GM_ADDR c, GM_ADDR tiling) {{
  Product<{a}, {b}, {c}, {trans_a}, {trans_b}, {mode}> product;
  product.Run(a, b, sa, sb, bias, c, tiling);
}}
"""
WORDS = {
    "float8_e5m2": "fp8_e5m2_t",
    "float8_e4m3fn": "fp8_e4m3fn_t",
    "float4_e2m1fn": "fp4x2_e2m1_t",
    "float4_e1m2": "fp4x2_e1m2_t",
    "float32": "float",
    "bfloat16": "bfloat16_t",
}
KINDS = {
    "plain": ("float8_e5m2", "float8_e5m2", "float32", False, False, 0),
    "turned": ("float8_e4m3fn", "float8_e5m2", "float32", True, True, 0),
    "nibbles": ("float4_e2m1fn", "float4_e1m2", "float32", False, True, 0),
    "tiles": ("float8_e4m3fn", "float8_e4m3fn", "bfloat16", False, True, 1),
    "no_scales": ("float8_e5m2", "float8_e5m2", "float32", False, False, 2),
    "other_scales": ("float8_e5m2", "float8_e5m2", "float32", False, False, 3),
}


@cache
def module() -> Any:
    """Return one kernel for each kind of operands."""
    keys = ("a", "b", "c", "trans_a", "trans_b", "mode")
    text = TEXT
    for name, kind in KINDS.items():
        given = dict(zip(keys, (WORDS.get(k, str(k).lower()) for k in kind), strict=True))
        text += KERNEL.format(name=name, **given)
    return cubecore.inline(text, chip=CHIP)


def stored(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return codes as bytes, two of 4 bits in each."""
    flat = codes.reshape(-1)
    return flat if bits == 8 else (flat[0::2] | flat[1::2] << 4).astype(np.uint8)


def operand(
    rng: Any, kind: str, rows: int, k: int, *, k_inner: tuple[bool, bool]
) -> tuple[Any, Any, Any]:
    """Return an operand of rows x K and its scales as stored, and the scaled values.

    `k_inner` says it of the operand and of its scales.
    """
    type_ = element_type(kind)
    every = np.arange(2**type_.bits, dtype=np.uint8)
    coded = every if type_.library == "codes" else every.view(type_.numpy)
    values = numbers(coded, type_).astype(np.float64)
    small = np.flatnonzero((np.abs(values) <= 2) & (values * 2 == np.floor(values * 2)))
    codes = small[rng.integers(0, len(small), (rows, k))].astype(np.uint8)
    pairs = -(-k // 64)
    scales = rng.integers(126, 129, (rows, 2 * pairs)).astype(np.uint8)
    factors = np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, axis=1)[:, :k]
    laid = scales if k_inner[1] else scales.reshape(rows, pairs, 2).transpose(1, 0, 2)
    given = stored(np.ascontiguousarray(codes if k_inner[0] else codes.T), type_.bits)
    return given, np.ascontiguousarray(laid).reshape(-1), values[codes] * factors


def launched(name: str, m: int, n: int, k: int, *, bias: bool = False) -> Any:
    """Return the findings, the result and the expected one of a product."""
    a, b, c, trans_a, trans_b, mode = KINDS[name]
    rng = np.random.default_rng(m * n + k)
    options = {"bias": "float32"} if bias else {}
    plan = cubecore.plan(
        m=m, n=n, k=k, a=a, b=b, c=c, trans_a=trans_a, trans_b=trans_b, scale_a="float8_e8m0fnu",
        cores=1, chip=CHIP, **options,
    )  # fmt: skip
    left, left_scales, x = operand(rng, a, m, k, k_inner=(not trans_a, not trans_a))
    right, right_scales, y = operand(rng, b, n, k, k_inner=(trans_b, trans_b != (mode == 3)))
    given = rng.integers(-9, 9, n).astype(np.float32)
    tiling = np.frombuffer(plan.tiling.to_bytes(), np.uint8).copy()
    got = np.zeros((m, n), np.float32 if c == "float32" else ml_dtypes.bfloat16)
    arrays = left, right, left_scales, right_scales, given
    run = getattr(module(), name)[1](*arrays, got, tiling)
    expected = x @ y.T + (given if bias else 0)
    return run.findings, got, expected.astype(got.dtype)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ["plain", "turned", "nibbles", "tiles", "other_scales"])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 128, 256), (33, 50, 130), (300, 270, 640)])
def test_products_of_scaled_values(name: str, m: int, n: int, k: int) -> None:
    even = (m + m % 2, n + n % 2, k) if name == "nibbles" else (m, n, k)
    findings, got, expected = launched(name, *even)
    assert [found.message for found in findings] == []
    np.testing.assert_array_equal(got, expected)


@pytest.mark.sweep
def test_a_bias_is_added_to_a_scaled_product() -> None:
    findings, got, expected = launched("plain", 64, 48, 192, bias=True)
    assert findings == ()
    np.testing.assert_array_equal(got, expected)


def test_a_product_without_one_of_its_scales_is_refused() -> None:
    with pytest.raises(CubecoreError) as caught:
        launched("no_scales", 32, 32, 64)
    assert str(caught.value) == (
        "inline.cpp:39 (Run): a Matmul object with MatmulWithScalePolicy must have the scales of "
        "SetTensorScaleA and SetTensorScaleB, got none of A"
    )
