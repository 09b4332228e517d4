"""Random tilings through the Matmul object: our kernel's instructions and bytes, or the rule."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.rules.checker import check_tiling
from frontends.cpp.cpp_kernels import needs_compiler
from frontends.cpp.test_matmul_object import CHIP, local

pytestmark = needs_compiler
COUNT = 300
TEXT = """
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <typename T, typename R, const auto& CONFIG, bool transA, bool transB>
inline void share(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR tiling) {
  using AT = MatmulType<TPosition::GM, CubeFormat::ND, T, transA>;
  using BT = MatmulType<TPosition::GM, CubeFormat::ND, T, transB>;
  using CT = MatmulType<TPosition::GM, CubeFormat::ND, R>;
  TPipe pipe;
  TCubeTiling t = *reinterpret_cast<TCubeTiling*>(tiling);
  Matmul<AT, BT, CT, CT, CONFIG> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  int along = (t.M + t.singleCoreM - 1) / t.singleCoreM;
  int m0 = GetBlockIdx() % along * t.singleCoreM, n0 = GetBlockIdx() / along * t.singleCoreN;
  GlobalTensor<T> ga, gb;
  GlobalTensor<R> gc;
  ga.SetGlobalBuffer(reinterpret_cast<T*>(a) + (transA ? m0 : m0 * t.Ka));
  gb.SetGlobalBuffer(reinterpret_cast<T*>(b) + (transB ? n0 * t.Kb : n0));
  gc.SetGlobalBuffer(reinterpret_cast<R*>(c) + m0 * t.N + n0);
  mm.SetTail(std::min(t.singleCoreM, t.M - m0), std::min(t.singleCoreN, t.N - n0));
  mm.SetTensorA(ga, transA);
  mm.SetTensorB(gb, transB);
  mm.IterateAll(gc);
  mm.End();
}
#define KERNEL(NAME, T, R, CONFIG)                                                         \\
  extern "C" __global__ __cube__ void NAME(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR tiling, \\
                                           int transA, int transB) {                        \\
    if (transA && transB)                                                                   \\
      share<T, R, CONFIG, true, true>(a, b, c, tiling);                                     \\
    else if (transA)                                                                        \\
      share<T, R, CONFIG, true, false>(a, b, c, tiling);                                    \\
    else if (transB)                                                                        \\
      share<T, R, CONFIG, false, true>(a, b, c, tiling);                                    \\
    else                                                                                    \\
      share<T, R, CONFIG, false, false>(a, b, c, tiling);                                   \\
  }
KERNEL(float16_NORM, half, float, CFG_NORM)
KERNEL(float16_MDL, half, float, CFG_MDL)
KERNEL(int8_NORM, int8_t, int32_t, CFG_NORM)
KERNEL(int8_MDL, int8_t, int32_t, CFG_MDL)
"""


@cache
def module():
    return cubecore.inline(TEXT, chip=CHIP, trace=True)


def drawn(rng):
    """Return a problem and a tiling, most often a legal one."""
    m, n, k = (int(rng.integers(1, 400)) for _ in range(3))
    problem = cubecore.Problem(
        chip=CHIP,
        m=m,
        n=n,
        k=k,
        a=str(rng.choice(["float16", "int8"])),
        trans_a=bool(rng.integers(2)),
        trans_b=bool(rng.integers(2)),
        template=str(rng.choice(["NORM", "MDL"])),
        cores=int(rng.integers(1, 5)),
    )
    tiling = cubecore.plan(problem).tiling
    if rng.integers(2):
        name = str(rng.choice(["baseM", "baseN", "baseK"]))
        tiling = replace(tiling, **{name: 16 * int(rng.integers(1, 40))})
    if rng.integers(2):
        tiling = replace(tiling, iterateOrder=1 - tiling.iterateOrder)
    return problem, tiling


@pytest.mark.parametrize("seed", range(COUNT))
@pytest.mark.thinned(300)
def test_random_tiling(seed):
    rng = np.random.default_rng(seed)
    problem, tiling = drawn(rng)
    kind = "f2" if problem.a == "float16" else "i1"
    a = rng.integers(-8, 9, (problem.m, problem.k)).astype(kind)
    b = rng.integers(-8, 9, (problem.k, problem.n)).astype(kind)
    c = np.zeros((problem.m, problem.n), "f4" if kind == "f2" else "i4")
    stored = [np.ascontiguousarray(x.T if t else x) for x, t in
              ((a, problem.trans_a), (b, problem.trans_b))]  # fmt: skip
    raw = np.frombuffer(tiling.to_bytes(), np.uint8).copy()
    kernel = module()[f"{problem.a}_{problem.template}"][tiling.usedCoreNum]
    words = (*stored, c, raw, int(problem.trans_a), int(problem.trans_b))
    found = check_tiling(tiling, problem, problem.chip_record)
    if not found.legal:
        with pytest.raises(CubecoreError) as caught:
            kernel(*words)
        assert found.findings[0].message in str(caught.value)
        return
    left = kernel(*words)
    assert left.findings == ()
    np.testing.assert_array_equal(c, a.astype("i8") @ b.astype("i8"))
    launch = matmul_launch(problem, tiling, left.chip, preload=False)
    for core, trace in zip(launch.cores, left.traces.values(), strict=True):
        bases = dict.fromkeys(("a", "b", "c"), 0)
        ours = [local(*step) for step in core.program.listing(core.addresses(bases))]
        assert [local(t, at) for t, at, _ in trace][: len(ours)] == ours
