"""The Matmul object by a B of which half is left out, against NumPy on the whole B."""

from dataclasses import replace

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from cubecore.tiling.model.tcubetiling import TCubeTiling
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler

TEXT = """
{macro}
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
using AT = MatmulType<TPosition::GM, CubeFormat::ND, int8_t, false>;
using BT = SparseMatmulType<TPosition::GM, TPosition::GM, CubeFormat::{format}, int8_t, true>;
using CT = MatmulType<TPosition::GM, CubeFormat::ND, int32_t>;
extern "C" __global__ __aicore__ void k(GM_ADDR a, GM_ADDR b, GM_ADDR index, GM_ADDR bias,
                                        GM_ADDR c, GM_ADDR w, GM_ADDR tiling) {{
  TPipe pipe;
  TCubeTiling t;
  for (size_t n = 0; n < sizeof(t) / 4; ++n)
    reinterpret_cast<int32_t*>(&t)[n] = reinterpret_cast<int32_t*>(tiling)[n];
  Matmul<AT, BT, CT, CT, {config}> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  int along = (t.M + t.singleCoreM - 1) / t.singleCoreM;
  int m0 = GetBlockIdx() % along * t.singleCoreM, n0 = GetBlockIdx() / along * t.singleCoreN;
  if (n0 >= t.N) return;
  GlobalTensor<int8_t> ga, gb;
  GlobalTensor<int32_t> gc, gbias;
  GlobalTensor<uint8_t> gindex;
  ga.SetGlobalBuffer(reinterpret_cast<__gm__ int8_t*>(a) + m0 * t.Ka);
  gb.SetGlobalBuffer(reinterpret_cast<__gm__ int8_t*>(b) + {b_offset});
  gc.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(c) + m0 * t.N + n0);
  gbias.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(bias) + n0);
  gindex.SetGlobalBuffer(reinterpret_cast<__gm__ uint8_t*>(index) + n0 * 8);
  mm.SetTail(min(t.singleCoreM, t.M - m0), min(t.singleCoreN, t.N - n0));
  mm.SetTensorA(ga, {trans_a});
  mm.SetTensorB(gb, true);
  {set_index}
  if (t.isBias) mm.SetBias(gbias);
  {body}
  mm.End();
}}
"""
WORDS = {
    "macro": "#define ASCENDC_CUBE_ONLY",
    "format": "ND",
    "config": "CFG_MDL",
    "b_offset": "n0 * t.Kb / 2",
    "trans_a": "false",
    "set_index": "mm.SetSparseIndex(gindex);",
    "body": "mm.IterateAll(gc);",
}


def compiled(**words):
    return cubecore.inline(TEXT.format(**(WORDS | words)), chip="Ascend910B3").k


def whole(rng, n, k):
    """A matrix [n, k] with at most two values in each four of K."""
    b = rng.integers(-9, 10, (n, k // 4, 4))
    kept = rng.permuted(np.broadcast_to(np.arange(4), b.shape), axis=2) < 2
    return (b * kept).reshape(n, k)


def compacted(b):
    """The kept values [n, k / 2] and the index, by the page's table, in blocks of 16 x 8 bytes."""
    n, k = b.shape
    dense, codes = np.zeros((n, k // 2), np.int8), np.zeros((n, k // 2), int)
    for row in range(n):
        for group in range(k // 4):
            values = b[row, 4 * group : 4 * group + 4]
            places = [place for place in range(4) if values[place]]
            dense[row, 2 * group : 2 * group + len(places)] = values[places]
            if len(places) == 2:
                first, second = places[0], places[1] - 1
            elif places == [3]:
                first, second = 0, 2
                dense[row, 2 * group : 2 * group + 2] = 0, values[3]
            else:
                first, second = (places or [0])[0], 0
            codes[row, 2 * group : 2 * group + 2] = first, second
    wide = np.zeros((-(-n // 16) * 16, -(-k // 64) * 32), int)
    wide[:n, : k // 2] = codes
    packed = (wide.reshape(len(wide), -1, 4) << np.array([0, 2, 4, 6])).sum(axis=2)
    blocks = packed.astype(np.uint8).reshape(len(wide) // 16, 16, -1, 8).transpose(2, 0, 1, 3)
    return dense, blocks.copy()


def in_nz(dense):
    """Columns of fractals of 16 x 32."""
    n, k = dense.shape
    wide = np.zeros((-(-n // 16) * 16, -(-k // 32) * 32), np.int8)
    wide[:n, :k] = dense
    return wide.reshape(len(wide), -1, 32).transpose(1, 0, 2).copy()


def tiling(m, n, k, bias, cores, **fields):
    found = cubecore.plan(
        m=m, n=n, k=k, a="int8", b="int8", c="int32", trans_b=True, template="MDL", cores=cores,
        bias="int32" if bias else None, chip="Ascend910B3",
    ).tiling  # fmt: skip
    return replace(found, **fields)


def words_of(given: TCubeTiling):
    return np.frombuffer(given.to_bytes(), np.uint8).copy()


SMALL = {"baseM": 32, "baseN": 48, "baseK": 64, "singleCoreM": 64, "singleCoreN": 96}
CASES = [
    ((128, 256, 64), {}, {}, False, 4),
    ((70, 200, 328), SMALL, {}, True, 6),
    ((70, 200, 328), SMALL | {"baseK": 96}, {"format": "NZ", "b_offset": "n0 * 32"}, False, 6),
    ((64, 96, 256), SMALL, {"body": "while (mm.Iterate()) mm.GetTensorC(gc);"}, True, 1),
    ((16, 32, 512), {}, {"body": "mm.IterateAll(gc, 1); mm.IterateAll(gc, 1);"}, False, 1),
]


@pytest.mark.thinned(5)
@pytest.mark.parametrize(("shape", "fields", "words", "bias", "cores"), CASES)
def test_products(shape, fields, words, bias, cores):
    m, n, k = shape
    rng = np.random.default_rng(k)
    a, b = rng.integers(-9, 10, (m, k)).astype(np.int8), whole(rng, n, k)
    dense, index = compacted(b)
    row, c = rng.integers(-999, 999, n).astype(np.int32), np.zeros((m, n), np.int32)
    given = tiling(m, n, k, bias, cores, **fields)
    stored = in_nz(dense) if words.get("format") == "NZ" else dense
    blocks = -(-m // given.singleCoreM) * -(-n // given.singleCoreN)
    work = np.zeros(1 << 20, np.uint8)
    ran = compiled(**words)[blocks](a, stored, index, row, c, work, words_of(given))
    expected = a.astype(int) @ b.T + (row if bias else 0)
    assert [f.message for f in ran.findings] == []
    times = max(words.get("body", "").count("IterateAll"), 1)
    assert np.array_equal(c, expected * times)


REFUSED = {
    "a Matmul object with a sparse B must have an index by SetSparseIndex, got none": {
        "set_index": ""
    },
    "a Matmul object with a sparse B must have A as it is and B transposed, got another order": {
        "trans_a": "true"
    },
    "Matmul by a SparseMatmulType must be with the template MDL, got another": {
        "config": "CFG_NORM"
    },
    "a Matmul object with a sparse B must run with ASCENDC_CUBE_ONLY, got AIVs": {"macro": ""},
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("said", REFUSED)
def test_a_use_that_is_refused(said):
    given = tiling(64, 64, 64, bias=False, cores=1)
    a, b = np.zeros((64, 64), np.int8), np.zeros((64, 32), np.int8)
    index, row = np.zeros((64, 8), np.uint8), np.zeros(64, np.int32)
    with pytest.raises(CubecoreError) as refused:
        compiled(**REFUSED[said])[1](
            a,
            b,
            index,
            row,
            np.zeros((64, 64), np.int32),
            np.zeros(1 << 20, np.uint8),
            words_of(given),
        )
    assert said in str(refused.value)
