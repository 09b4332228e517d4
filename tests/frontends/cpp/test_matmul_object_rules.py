"""Rules of the Matmul object's pages, in pairs: a call that keeps one, and one that breaks it."""

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import cubecore
from cubecore.chips.catalog import chip
from cubecore.frontends.cpp.launch.recording.matmul_object.call import ObjectCall
from cubecore.tiling.model.tcubetiling import TCubeTiling
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend910B3"
M, N, K = 64, 64, 64
FILE = """#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <typename A, typename C, bool trans, const auto& config = CFG_NORM>
struct Product {
  using Bias = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, A, trans>,
         MatmulType<TPosition::GM, CubeFormat::ND, A, trans>,
         MatmulType<TPosition::GM, CubeFormat::ND, C>, Bias, config> mm;
  TPipe pipe;
  TCubeTiling t;
  GlobalTensor<A> a, b;
  GlobalTensor<C> c;
  GlobalTensor<float> bias;
  GlobalTensor<uint64_t> scales;
  Product(GM_ADDR ga, GM_ADDR gb, GM_ADDR gc, GM_ADDR tiling) {
    for (size_t n = 0; n < sizeof(t) / 4; ++n)
      reinterpret_cast<int32_t*>(&t)[n] = reinterpret_cast<int32_t*>(tiling)[n];
    a.SetGlobalBuffer((__gm__ A*)ga);
    b.SetGlobalBuffer((__gm__ A*)gb);
    c.SetGlobalBuffer((__gm__ C*)gc);
    bias.SetGlobalBuffer((__gm__ float*)gb);
    scales.SetGlobalBuffer((__gm__ uint64_t*)gb);
  }
};
constexpr MatmulConfig Bare() {
  MatmulConfig made = GetNormalConfig();
  made.enableSetTail = made.enableSetBias = made.enableSetOrgShape = false;
  made.iterateMode = ITERATE_MODE_ALL;
  return made;
}
constexpr MatmulConfig BARE = Bare();
"""
KERNEL = """
extern "C" __global__ __aicore__ void {name}(GM_ADDR ga, GM_ADDR gb, GM_ADDR gc, GM_ADDR w,
                                             GM_ADDR tiling) {{
  Product<{types}> p(ga, gb, gc, tiling);
{before}  REGIST_MATMUL_OBJ(&p.pipe, GetSysWorkSpacePtr(), p.mm, &p.t);
  if (GetBlockIdx() != 0) return;
  auto& mm = p.mm;
  GlobalTensor<float> none;
{body}
}}
"""
SET = "mm.SetTensorA(p.a); mm.SetTensorB(p.b);"
ALL = f"{SET} mm.IterateAll(p.c);"
HALF, TURNED, BYTES = "half, float, false", "half, float, true", "int8_t, half, false"
ROOM = """TBuf<TPosition::VECCALC> held; p.pipe.InitBuffer(held, 64 * 64 * 4);
LocalTensor<float> room = held.Get<float>();
"""
RULES = {
    "transposed A": (
        TURNED, "mm.SetTensorA(p.a, true); mm.SetTensorB(p.b); mm.IterateAll(p.c);",
        HALF, "mm.SetTensorA(p.a, true); mm.SetTensorB(p.b); mm.IterateAll(p.c);",
        "SetTensorA: isTransposeA must be false for a MatmulType with ISTRANS false, got true; "
        "pass false, or give its MatmulType true as ISTRANS",
    ),
    "transposed B": (
        TURNED, "mm.SetTensorA(p.a); mm.SetTensorB(p.b, true); mm.IterateAll(p.c);",
        HALF, "mm.SetTensorA(p.a); mm.SetTensorB(p.b, true); mm.IterateAll(p.c);",
        "SetTensorB: isTransposeB must be false for a MatmulType with ISTRANS false, got true; "
        "pass false, or give its MatmulType true as ISTRANS",
    ),
    "transposition of bytes": (
        "int8_t, int32_t, true",
        "mm.SetTensorA(p.a, true); mm.SetTensorB(p.b, true); mm.IterateAll(p.c);",
        "int8_t, int32_t, true",
        "mm.SetTensorA(p.a, true); mm.SetTensorB(p.b); mm.IterateAll(p.c);",
        "SetTensorB: isTransposeB must be true for int8_t with ISTRANS true, got false",
    ),
    "no buffer of A": (
        HALF, ALL,
        HALF, f"GlobalTensor<half> a; mm.SetTensorA(a); {ALL}",
        "SetTensorA: gm must have a buffer of SetGlobalBuffer, got none",
    ),
    "a tail": (
        HALF, f"mm.SetTail(16, 32, 64); {ALL}",
        HALF, f"mm.SetTail(16, 65, 64); mm.SetTail(16, 64, 64); {ALL}",
        "SetTail: tailN must be at most the tiling's singleCoreN, 64, got 65",
    ),
    "a tail of nothing": (
        HALF, f"mm.SetTail(-1, 32); {ALL}",
        HALF, f"mm.SetTail(0, 32); mm.SetTail(64, 32); {ALL}",
        "SetTail: tailM must be at least 1, or -1 to stay, got 0",
    ),
    "a single shape": (
        HALF, f"mm.SetOrgShape(128, 64, 64); mm.SetSingleShape(64, 64, 64); {ALL}",
        HALF, f"mm.SetSingleShape(64, 64, 128); mm.SetSingleShape(64, 64, 64); {ALL}",
        "SetSingleShape: singleK must be at most the tiling's singleCoreK, 64, got 128",
    ),
    "an original shape": (
        HALF, f"mm.SetOrgShape(64, 64, 64); {ALL}",
        HALF, f"mm.SetOrgShape(64, 0, 64); mm.SetOrgShape(64, 64, 64); {ALL}",
        "SetOrgShape: orgN must be at least 1, got 0",
    ),
    "an original shape too late": (
        HALF, f"{ALL} mm.SetOrgShape(64, 64, 64); {ALL}",
        HALF, f"{SET} mm.SetOrgShape(64, 64, 64); mm.IterateAll(p.c);",
        "SetOrgShape: it must be called before SetTensorA, SetTensorB, SetBias and SetSingleShape, "
        "got a call behind one of them",
    ),
    "a bias": (
        HALF, f"p.t.isBias = 1; mm.Init(&p.t); mm.SetBias(p.bias); mm.DisableBias(); {ALL}",
        HALF, f"mm.SetBias(p.bias); mm.ClearBias(); {ALL}",
        "SetBias: isBias of the tiling must be 1, got 0",
    ),
    "no bias": (
        HALF,
        f"p.t.isBias = 1; mm.Init(&p.t); mm.DisableBias(); {ALL} mm.SetBias(p.bias); {ALL} {ALL}",
        HALF, f"p.t.isBias = 1; mm.Init(&p.t); {ALL}",
        "IterateAll: SetBias must be called before it for isBias 1 of the tiling, got no call; "
        "DisableBias leaves the bias out",
    ),
    "a scale": (
        BYTES, f"mm.SetQuantScalar(0x40003F800000); {ALL}",
        HALF, f"mm.SetQuantScalar(0x40003F800000); {ALL}",
        "SetQuantScalar: A and C must be int8_t or int4b_t and half or int8_t, or half and int8_t, "
        "got half and float",
    ),
    "scales": (
        BYTES, f"mm.SetQuantScalar(0x40003F800000); {ALL}",
        "float, float, false", f"mm.SetQuantVector(p.scales); {ALL}",
        "SetQuantVector: A and C must be int8_t or int4b_t and half or int8_t, or half and int8_t, "
        "got float and float",
    ),
    "no scale": (
        BYTES, f"mm.SetQuantScalar(0x40003F800000); {ALL}",
        BYTES, ALL,
        "IterateAll: SetQuantScalar or SetQuantVector must be called before it for C of half, got "
        "neither",
    ),
    "no A": (
        HALF, ALL,
        HALF, "mm.SetTensorB(p.b); mm.IterateAll(p.c);",
        "IterateAll: SetTensorA must be called before it, got no call",
    ),
    "no B": (
        HALF, f"{SET} while (mm.Iterate()) mm.GetTensorC(p.c);",
        HALF, "mm.SetTensorA(p.a); if (mm.Iterate()) mm.GetTensorC(p.c);",
        "Iterate: SetTensorB must be called before it, got no call",
    ),
    "a tile before it is computed": (
        HALF, f"{SET} mm.Iterate(); mm.GetTensorC(p.c);",
        HALF, f"{SET} mm.GetTensorC(p.c); mm.Iterate(); mm.GetTensorC(p.c);",
        "GetTensorC: it must follow an Iterate that returned true, got none",
    ),
    "a tile twice": (
        HALF, f"{SET} if (mm.Iterate()) mm.GetTensorC(p.c);",
        HALF, f"{SET} if (mm.Iterate()) mm.GetTensorC(p.c); mm.GetTensorC(p.c);",
        "GetTensorC: it must be called once for each Iterate, got a second call",
    ),
    "a tile ahead": (
        HALF, f"{ROOM} {SET} mm.template Iterate<false>(); mm.template GetTensorC<false>(room);",
        HALF, f"{ROOM} {SET} mm.template Iterate<false>(); mm.template GetTensorC<false>(room);"
        "mm.template GetTensorC<false>(room);",
        "GetTensorC<false>: it must be called once for each tile of Iterate<false>, got one more "
        "than 1",
    ),
    "sums of several tiles": (
        HALF, f"{SET} mm.Iterate(false); mm.GetTensorC(p.c);",
        "half, float, false /*small*/",
        f"{SET} while (mm.Iterate(mm.GetNumber() == 0)) mm.GetTensorC(p.c);",
        "Iterate: enPartialSum must be false for more than one tile, got true for 4 tiles",
    ),
    "an atomic store": (
        HALF, f"{SET} mm.IterateAll(p.c, 1);",
        HALF, f"{SET} mm.IterateAll(p.c, 4);",
        "IterateAll: enAtomic must be in [0, 3], got 4",
    ),
    "hf32": (
        HALF, ALL,
        HALF, f"mm.SetHF32(true); {ALL}",
        "SetHF32: it must be called with ASCENDC_CUBE_ONLY, got an object of AIVs",
    ),
    "a number of batches": (
        HALF, ALL,
        HALF, f"mm.SetBatchNum(1, 1); {ALL}",
        "SetBatchNum: it must be called with ASCENDC_CUBE_ONLY, got an object of AIVs",
    ),
    "batches": (
        HALF, f"{SET} mm.IterateBatch(p.c, 1, 1, false);",
        HALF, f"{SET} mm.IterateBatch(p.c, 2, 3, false);",
        "IterateBatch: batchA and batchB must be positive and one a multiple of the other, got 2 "
        "and 3",
    ),
    "what the configuration leaves out": (
        "half, float, false, BARE", ALL,
        "half, float, false, BARE", f"mm.SetTail(64, 64, 64); {ALL}",
        "SetTail: enableSetTail of MatmulConfig must be true, got false",
    ),
    "data of callbacks": (
        HALF, f"mm.SetSelfDefineData(1); {ALL}",
        HALF, f"{SET} mm.SetSelfDefineData(1); mm.IterateAll(p.c);",
        "SetSelfDefineData: it must be called before SetTensorA and SetTensorB, got a call behind "
        "one of them",
    ),
}  # fmt: skip
BEFORE = (
    "TBuf<TPosition::VECCALC> early; p.pipe.InitBuffer(early, 256);\n",
    "REGIST_MATMUL_OBJ: it must be called before InitBuffer, got a call behind one",
)


@cache
def tiling(types: str) -> TCubeTiling:
    """Return a tiling of one core for the types of a kernel."""
    a = {"half": "float16", "float": "float32", "int8_t": "int8"}[types.split(",", maxsplit=1)[0]]
    c = "int32" if a == "int8" else "float32"
    made = cubecore.plan(m=M, n=N, k=K, a=a, b=a, c=c, cores=1, chip=CHIP, template="NORM")
    edge = 32 if "small" in types else M
    return replace(made.tiling, baseM=edge, baseN=edge)


@pytest.fixture(scope="module")
def runs() -> dict[Any, Any]:
    """Return the findings of each kernel, by its rule and by whether it keeps that."""
    texts, names, kinds = [FILE], {}, {}
    cases: list[tuple[Any, str, str, str]] = [
        ("early", HALF, BEFORE[0], ALL),
    ]
    for rule, (types, right, wrong_types, wrong, _) in RULES.items():
        cases += [((rule, True), types, "", right), ((rule, False), wrong_types, "", wrong)]
    for key, types, before, body in cases:
        names[key], kinds[key] = f"k{len(names)}", types
        texts.append(KERNEL.format(name=names[key], types=types, before=before, body=body))
    module = cubecore.inline("".join(texts), chip=CHIP)
    found = {}
    for key, name in names.items():
        a = np.ones(3 * M * K, "f4")
        raw = np.frombuffer(tiling(kinds[key]).to_bytes(), np.uint8).copy()
        left = module[name][1](a, a.copy(), np.zeros(3 * M * N, "f4"), np.zeros(8, "f4"), raw)
        found[key] = [(f.id, f.message) for f in left.findings]
    return found


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_of_a_call_is_held(runs: dict[Any, Any], rule: str) -> None:
    assert runs[rule, True] == []
    broken = [found for found in runs[rule, False] if found[0] == "parameter"]
    assert broken == [("parameter", RULES[rule][-1])]


def test_objects_are_registered_before_buffers(runs: dict[Any, Any]) -> None:
    assert runs["early"] == [("call-order", BEFORE[1])]


@pytest.mark.sweep
def test_an_object_is_registered_before_its_calls() -> None:
    """Without it nobody answers: the kernel is one of AIVs alone."""
    text = FILE + KERNEL.format(name="k", types=HALF, before="", body=ALL)
    begin = text.index("  REGIST_MATMUL_OBJ(&p.pipe")
    wrong = text[:begin] + text[text.index("\n", begin) + 1 :]
    raw = np.frombuffer(tiling(HALF).to_bytes(), np.uint8).copy()

    def messages(source: str) -> list[str]:
        a, c = np.ones(3 * M * K, "f4"), np.zeros(3 * M * N, "f4")
        run = cubecore.inline(source, chip=CHIP).k[1](a, a.copy(), c, np.zeros(8, "f4"), raw)
        return [finding.message for finding in run.findings]

    assert messages(text) == []
    assert messages(wrong) == [
        "IterateAll: REGIST_MATMUL_OBJ must be called before it, got no call"
    ]


def test_a_shape_is_the_tilings_or_given_by_a_call() -> None:
    call = ObjectCall(
        types=("float16", "float16", "float32", ""),
        tiling=TCubeTiling(*[0] * len(fields(TCubeTiling))),
        org=(0, 0, 0, 0, 0),
        trans=(False, False),
        formats=(0, 0, 0, 0),
        template="NORM",
        unit_flag=False,
        preload=False,
        quantises=0,
        channel_split=False,
        stepped=False,
        own_moves=False,
    )
    with pytest.raises(cubecore.RequestError) as refused:
        call.require_legal(chip(CHIP))
    assert str(refused.value) == (
        "the shape of a Matmul object must be in its tiling or given by SetOrgShape, got M = 0, "
        "N = 0, Ka = 0, Kb = 0; call SetOrgShape before SetTensorA"
    )
