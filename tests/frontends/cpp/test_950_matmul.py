"""Matmul objects on Ascend 950 whose matrices lie in UB, against NumPy over odd shapes."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
TEXT = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <typename T, bool transA, bool transB>
struct Product {
  using AT = MatmulType<TPosition::VECOUT, CubeFormat::ND, T, transA>;
  using BT = MatmulType<TPosition::VECOUT, CubeFormat::ND, T, transB>;
  using CT = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  TPipe pipe;
  TCubeTiling t;
  Matmul<AT, BT, CT, CT, CFG_NORM> mm;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> left, right;
  // Rows of `columns` elements, each of which begins at a block of 32 B in UB.
  LocalTensor<T> Brought(TQue<TPosition::VECOUT, 1>& out, GM_ADDR from, int rows, int columns) {
    GlobalTensor<T> source;
    source.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(from));
    LocalTensor<T> x = in.AllocTensor<T>(), y = out.AllocTensor<T>();
    DataCopyExtParams runs(rows, columns * sizeof(T), 0, 0, 0);
    DataCopyPad(x, source, runs, DataCopyPadExtParams<T>(true, 0, 0, 0));
    in.EnQue(x);
    x = in.DeQue<T>();
    constexpr int block = 32 / sizeof(T);
    DataCopy(y, x, rows * ((columns + block - 1) / block * block));
    out.EnQue(y);
    in.FreeTensor(x);
    return out.DeQue<T>();
  }
  void Run(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR tiling) {
    for (size_t n = 0; n < sizeof(t) / 4; ++n)
      reinterpret_cast<int32_t*>(&t)[n] = reinterpret_cast<int32_t*>(tiling)[n];
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    if (GetBlockIdx() != 0) return;
    pipe.InitBuffer(in, 1, 16384);
    pipe.InitBuffer(left, 1, 16384);
    pipe.InitBuffer(right, 1, 16384);
    GlobalTensor<float> cg;
    cg.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(c));
    auto x = Brought(left, a, transA ? t.Ka : t.M, transA ? t.M : t.Ka);
    auto y = Brought(right, b, transB ? t.N : t.Kb, transB ? t.Kb : t.N);
    mm.SetTensorA(x, transA);
    mm.SetTensorB(y, transB);
    mm.IterateAll(cg);
    left.FreeTensor(x);
    right.FreeTensor(y);
    mm.End();
  }
};
"""
KERNEL = """
extern "C" __global__ __mix__(1, 2) void {name}(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR w,
                                                GM_ADDR tiling) {{
  Product<{type}, {trans_a}, {trans_b}> product;
  product.Run(a, b, c, tiling);
}}
"""
KINDS = {
    "plain": (np.float16, False, False),
    "turned": (np.float16, True, True),
    "floats": (np.float32, False, True),
}


@cache
def module() -> Any:
    """Return one kernel for each kind of operands."""
    words = {np.float16: "half", np.float32: "float"}
    return cubecore.inline(
        TEXT
        + "".join(
            KERNEL.format(
                name=name, type=words[kind], trans_a=str(a).lower(), trans_b=str(b).lower()
            )
            for name, (kind, a, b) in KINDS.items()
        ),
        chip=CHIP,
    )


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("m", "n", "k"), [(31, 31, 31), (17, 9, 33), (5, 47, 16), (32, 16, 1)])
def test_rows_of_matrices_in_ub_begin_at_blocks(name: str, m: int, n: int, k: int) -> None:
    kind, trans_a, trans_b = KINDS[name]
    plan = cubecore.plan(
        m=m, n=n, k=k, trans_a=trans_a, trans_b=trans_b, cores=1, chip=CHIP, template="NORM"
    )
    rng = np.random.default_rng(m * n + k)
    a, b = (rng.integers(-8, 9, shape).astype(kind) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    tiling = np.frombuffer(plan.tiling.to_bytes(), np.uint8).copy()
    given = (a.T if trans_a else a, b.T if trans_b else b)
    arrays = [np.ascontiguousarray(each) for each in given]
    left = getattr(module(), name)[1](*arrays, c, np.zeros(1, np.uint8), tiling)
    assert [found.message for found in left.findings] == []
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))
