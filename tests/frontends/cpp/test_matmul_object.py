"""The Matmul object in C++: the instructions of our kernel, NumPy's products, and what is wrong."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import cubecore
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.timing.launch import time_launch
from cubecore.workflows.scripts.script import times_of
from frontends.cpp.cpp_kernels import EXAMPLES, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend910B3"
both_chips = pytest.mark.parametrize("chip", [CHIP, "Ascend950PR_9589"])
TEXT = """
{macro}
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
using namespace matmul;
using AT = MatmulType<TPosition::{a}, CubeFormat::ND, half, {trans_a}>;
using BT = MatmulType<TPosition::GM, CubeFormat::ND, half, {trans_b}>;
using CT = MatmulType<TPosition::{c}, CubeFormat::{format_c}, float>;
using Bias = MatmulType<TPosition::GM, CubeFormat::ND, float>;
constexpr MatmulConfig Split() {{
  MatmulConfig made = GetNormalConfig();
  made.isEnableChannelSplit = true;
  return made;
}}
constexpr MatmulConfig SPLIT = Split();
struct Product {{
  TPipe pipe;
  TCubeTiling t;
  Matmul<AT, BT, CT, Bias, {config}> mm;
  GlobalTensor<half> a, b;
  GlobalTensor<float> bias, c;
  int rows, columns;
  Product(GM_ADDR ga, GM_ADDR gb, GM_ADDR gbias, GM_ADDR gc, GM_ADDR tiling) {{
    for (size_t n = 0; n < sizeof(t) / 4; ++n)
      reinterpret_cast<int32_t*>(&t)[n] = reinterpret_cast<int32_t*>(tiling)[n];
    int along = (t.M + t.singleCoreM - 1) / t.singleCoreM;
    int m0 = GetBlockIdx() % along * t.singleCoreM, n0 = GetBlockIdx() / along * t.singleCoreN;
    rows = std::min(t.singleCoreM, t.M - m0);
    columns = std::min(t.singleCoreN, t.N - n0);
    a.SetGlobalBuffer(reinterpret_cast<half*>(ga) + ({trans_a} ? m0 : m0 * t.Ka));
    b.SetGlobalBuffer(reinterpret_cast<half*>(gb) + ({trans_b} ? n0 * t.Kb : n0));
    bias.SetGlobalBuffer(reinterpret_cast<float*>(gbias) + n0);
    c.SetGlobalBuffer(reinterpret_cast<float*>(gc) + m0 * t.N + n0);
  }}
  bool Begin() {{
    if (columns <= 0) return false;
    mm.SetTail(rows, columns, t.singleCoreK);
    mm.SetTensorA(a, {trans_a});
    mm.SetTensorB(b, {trans_b});
    if (t.isBias) mm.SetBias(bias);
    return true;
  }}
}};
extern "C" __global__ {kind} void k(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR w,
                                    GM_ADDR tiling) {{
  Product p(a, b, bias, c, tiling);
  REGIST_MATMUL_OBJ(&p.pipe, GetSysWorkSpacePtr(), p.mm, &p.t);
  auto& mm = p.mm;
{body}
}}
"""
ALL = "if (p.Begin()) mm.IterateAll(p.c);\nmm.End();"
TILES = "if (p.Begin()) while (mm.Iterate()) mm.GetTensorC(p.c);"
TO_UB = """
TQue<QuePosition::VECIN, 1> in;
TQue<QuePosition::VECOUT, 1> out;
p.pipe.InitBuffer(in, 1, 32768);
p.pipe.InitBuffer(out, 1, 32768);
auto take = [&](int number) {
  LocalTensor<float> x = in.DeQue<float>(), y = out.AllocTensor<float>();
  Muls(y, x, 2.0f, p.t.baseM * p.t.baseN);
  out.EnQue(y);
  in.FreeTensor(x);
  y = out.DeQue<float>();
  int along = p.rows / p.t.baseM, m0 = number % along * p.t.baseM;
  int n0 = number / along * p.t.baseN;
  DataCopyExtParams runs(p.t.baseM, p.t.baseN * 4, 0, (p.t.N - p.t.baseN) * 4, 0);
  DataCopyPad(p.c[m0 * p.t.N + n0], y, runs);
  out.FreeTensor(y);
};
int tiles = p.rows / p.t.baseM * (p.columns / p.t.baseN);
p.Begin();
"""
AT_ONCE = """for (int n = 0; mm.Iterate(); ++n) {
  LocalTensor<float> x = in.AllocTensor<float>();
  mm.GetTensorC(x, 0, true);
  in.EnQue(x);
  take(n);
}"""
AHEAD = """mm.template Iterate<false>();
for (int n = 0; n < tiles; ++n) {
  LocalTensor<float> x = in.AllocTensor<float>();
  mm.template GetTensorC<false>(x, 0, true);
  in.EnQue(x);
  take(n);
}"""


def module(body: str, chip: str = CHIP, **given: Any) -> Any:
    """Return the kernel `k` of a text in which a block computes its share."""
    words = {"a": "GM", "c": "GM", "trans_a": "false", "trans_b": "false", "macro": ""}
    words |= {"config": "CFG_NORM", "kind": "__aicore__", "format_c": "ND"} | given
    if words["kind"] == "__cube__":
        words["macro"] = "#define ASCENDC_CUBE_ONLY"
    options = {name: words.pop(name) for name in ("order", "trace") if name in words}
    return cubecore.inline(TEXT.format(body=body, **words), chip=chip, **options).k


def data(m: int, n: int, k: int) -> dict[str, Any]:
    """Return the arrays of a product."""
    rng = np.random.default_rng(m * n + k)
    a, b = (rng.integers(-8, 9, shape).astype("f2") for shape in ((m, k), (k, n)))
    bias = rng.integers(-8, 9, n).astype("f4")
    return {"a": a, "b": b, "bias": bias, "c": np.full((m, n), np.nan, "f4")}


def run(kernel: Any, tiling: TCubeTiling, blocks: int, arrays: dict[str, Any]) -> Any:
    """Launch a kernel; return what it leaves."""
    raw = np.frombuffer(tiling.to_bytes(), np.uint8).copy()
    given = [arrays[name] for name in ("a", "b", "bias", "c")]
    return kernel[blocks](*given, np.zeros(1, np.uint8), raw)


@cache
def planned(template: str = "NORM", *, mix: bool = False, chip: str = CHIP) -> Any:
    """Return a plan with tails along both axes, and tiles in each share."""
    launch = {"launch": "mix"} if mix else {}
    fields = {"baseM": 32, "baseN": 48, "singleCoreM": 64, "singleCoreN": 144}
    return cubecore.plan(
        m=120, n=272, k=200, bias="float32", cores=4, chip=chip, template=template, fix=fields,
        **launch,
    )  # fmt: skip


def local(template: Any, addresses: tuple[int, ...]) -> tuple[Any, ...]:
    """Return an instruction with its addresses but for those in global memory."""
    mems = [operand.mem for operand in template.operands()]
    kept = (a for mem, a in zip(mems, addresses, strict=True) if mem is not Mem.GM)
    return template, *kept


@pytest.mark.thinned(4)
@both_chips
@pytest.mark.parametrize("template", ["NORM", "MDL"])
def test_object_issues_what_our_kernel_issues(template: str, chip: str) -> None:
    plan = planned(template, chip=chip)
    arrays = data(120, 272, 200)
    kernel = module(ALL, chip, config=f"CFG_{template}", kind="__cube__", trace=True)
    left = run(kernel, plan.tiling, plan.tiling.usedCoreNum, arrays)
    assert left.findings == ()
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8") + arrays["bias"]
    np.testing.assert_array_equal(arrays["c"], exact)
    launch = matmul_launch(plan.problem, plan.tiling, left.chip, preload=False)
    assert len(launch.cores) == len(left.traces)
    for core, trace in zip(launch.cores, left.traces.values(), strict=True):
        bases = dict.fromkeys(("a", "b", "bias", "c"), 0)
        listed = core.program.listing(core.addresses(bases))
        ours = [local(t, addresses) for t, addresses in listed]
        issued = [local(t, addresses) for t, addresses, _ in trace]
        assert issued == [*ours, (PipeBarrier(on="ALL"),)]  # the pipe's end


@both_chips
@pytest.mark.parametrize("order", ["program", "late", "random:3"])
@pytest.mark.parametrize("body", [ALL, TILES])
@pytest.mark.thinned(12)
def test_clients_on_aivs(body: str, order: str, chip: str) -> None:
    plan = planned(mix=True, chip=chip)
    arrays = data(120, 272, 200)
    left = run(module(body, chip, order=order), plan.tiling, 2, arrays)
    assert left.findings == ()
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8") + arrays["bias"]
    np.testing.assert_array_equal(arrays["c"], exact)


@pytest.mark.sweep
@pytest.mark.parametrize("iterate_order", [0, 1])
@both_chips
@pytest.mark.parametrize("template", ["NORM", "MDL"])
def test_clients_take_turns_with_a_bias(template: str, iterate_order: int, chip: str) -> None:
    plan = planned(template, mix=True, chip=chip)
    tiling = replace(plan.tiling, iterateOrder=iterate_order)
    arrays = data(120, 272, 200)
    left = run(module(TILES, chip, config=f"CFG_{template}"), tiling, 2, arrays)
    assert left.findings == ()
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8") + arrays["bias"]
    np.testing.assert_array_equal(arrays["c"], exact)


def test_a_mix_launch_takes_as_long_as_our_kernel() -> None:
    plan = planned(mix=True)
    kernel = module(ALL, trace=True)
    left = run(kernel, plan.tiling, 2, data(120, 272, 200))
    ours = time_launch(matmul_launch(plan.problem, plan.tiling, left.chip), left.chip)
    made = times_of(left.kernel, (left,), 0).longest.timeline
    assert made.cycles == pytest.approx(ours.cycles, rel=0.01)


@pytest.mark.parametrize(
    ("policy", "body", "kind"),
    [
        ("TrianUpper", TILES, "__cube__"),
        ("TrianLower", ALL, "__aicore__"),
        ("NBuffer33", ALL, "__cube__"),
    ],
)
@pytest.mark.thinned(4)
def test_policies_leave_out_tiles_on_one_side(policy: str, body: str, kind: str) -> None:
    mix = kind == "__aicore__"
    plan = planned("MDL" if policy == "NBuffer33" else "NORM", mix=mix)
    config = f"CFG_NORM, MatmulCallBackFunc<>, Impl::Detail::{policy}MatmulPolicy"
    arrays = data(120, 272, 200)
    tiling = replace(plan.tiling, iterateOrder=int(policy == "TrianUpper"))
    blocks = 2 if mix else plan.tiling.usedCoreNum
    left = run(module(body, kind=kind, config=config), tiling, blocks, arrays)
    assert left.findings == ()
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8") + arrays["bias"]
    down, across = np.arange(120)[:, None] % 64 // 32, np.arange(272) % 144 // 48
    kept = {"TrianUpper": down <= across, "TrianLower": down >= across}.get(policy, down >= 0)
    np.testing.assert_array_equal(arrays["c"], np.where(kept, exact, np.nan))


@pytest.mark.sweep
def test_an_aiv_that_ends_before_the_registration_is_refused() -> None:
    leave = "  if ASCEND_IS_AIV {{ if (GetBlockIdx() == 3) return; }}\n  REGIST_MATMUL_OBJ("
    text = TEXT.replace("  REGIST_MATMUL_OBJ(", leave).format(
        a="GM", c="GM", trans_a="false", trans_b="false", macro="", config="CFG_NORM",
        kind="__aicore__", format_c="ND", body=ALL,
    )  # fmt: skip
    kernel, plan, arrays = (
        cubecore.inline(text, chip=CHIP).k,
        planned(mix=True),
        data(120, 272, 200),
    )
    assert run(kernel, plan.tiling, 1, arrays).findings == ()
    with pytest.raises(cubecore.CubecoreError) as caught:
        run(kernel, plan.tiling, 2, arrays)
    assert str(caught.value).endswith(
        "REGIST_MATMUL_OBJ must be reached by every AIV of a block, got AIV1 that ended before it; "
        "the block's AIC waits for its calls without end"
    )


@pytest.mark.parametrize("tiles", [AT_ONCE, AHEAD])
@pytest.mark.thinned(2)
def test_tiles_come_to_the_unified_buffer(tiles: str) -> None:
    plan = planned(mix=True)
    tiling = replace(plan.tiling, M=128, N=288, singleCoreM=64, singleCoreN=144)
    arrays = data(128, 288, 200)
    left = run(module(TO_UB + tiles, c="VECIN"), tiling, 2, arrays)
    assert left.findings == ()
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8") + arrays["bias"]
    np.testing.assert_array_equal(arrays["c"], 2 * exact)


@pytest.mark.sweep
def test_a_comes_from_the_unified_buffer() -> None:
    plan = cubecore.plan(m=32, n=64, k=48, cores=1, chip=CHIP, template="NORM")
    arrays = data(32, 64, 48)
    body = """
TQue<QuePosition::VECIN, 1> in;
TQue<QuePosition::VECOUT, 1> out;
p.pipe.InitBuffer(in, 1, 4096);
p.pipe.InitBuffer(out, 1, 4096);
if (GetBlockIdx() != 0) return;
LocalTensor<half> x = in.AllocTensor<half>(), y = out.AllocTensor<half>();
DataCopy(x, p.a, 32 * 48);
in.EnQue(x);
x = in.DeQue<half>();
Adds(y, x, half(1), 32 * 48);
out.EnQue(y);
y = out.DeQue<half>();
mm.SetTensorA(y);
mm.SetTensorB(p.b);
mm.IterateAll(p.c);
"""
    left = run(module(body, a="VECOUT"), plan.tiling, 1, arrays)
    assert left.findings == ()
    exact = (arrays["a"].astype("f8") + 1) @ arrays["b"].astype("f8")
    np.testing.assert_array_equal(arrays["c"], exact)


@pytest.mark.parametrize(("wait", "found"), [("mm.WaitIterateAll();", 0), ("", 1)])
@pytest.mark.thinned(2)
def test_async_results_are_there_after_the_wait(wait: str, found: int) -> None:
    plan = planned(mix=True)
    arrays = data(120, 272, 200)
    body = f"""
TBuf<TPosition::VECCALC> held;
p.pipe.InitBuffer(held, 1024);
if (!p.Begin()) return;
mm.template IterateAll<false>(p.c, 0, false, true);
{wait}
DataCopy(held.Get<float>(), p.c, 16);
"""
    left = run(module(body), plan.tiling, 2, arrays)
    assert {finding.id for finding in left.findings} == ({"race-war"} if found else set())


@pytest.mark.sweep
def test_channels_split_into_fractals_of_eight() -> None:
    m, n, k = 64, 256, 64
    plan = cubecore.plan(m=m, n=n, k=k, bias="float32", cores=1, chip=CHIP, template="NORM")
    arrays = data(m, n, k)
    kernel = module(ALL, config="SPLIT", kind="__cube__", format_c="NZ")
    assert run(kernel, plan.tiling, 1, arrays).findings == ()
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8") + arrays["bias"]
    fractals = exact.reshape(m // 16, 16, n // 8, 8).transpose(2, 0, 1, 3)
    np.testing.assert_array_equal(arrays["c"].reshape(-1), fractals.reshape(-1))


def test_illegal_tiling_is_refused_with_the_rule() -> None:
    plan = planned()
    tiling = replace(plan.tiling, baseK=8192)
    with pytest.raises(cubecore.CubecoreError) as caught:
        run(module(ALL, kind="__cube__"), tiling, 1, data(120, 272, 200))
    assert "the tiling of a Matmul object must be legal, got " in str(caught.value)
    assert "MMAD-K-EXTENT" in str(caught.value) or "L0A-CAPACITY" in str(caught.value)


def test_object_needs_aics() -> None:
    with pytest.raises(cubecore.CubecoreError) as caught:
        run(module(ALL, kind="__vector__"), planned().tiling, 1, data(120, 272, 200))
    assert str(caught.value).endswith(
        "a Matmul object must be in a kernel with AICs (mix or cube), got a vector kernel"
    )


@cache
def example() -> Any:
    """Return the example's kernel."""
    return cubecore.load(EXAMPLES / "matmul_object.cpp", chip=CHIP, trace=True).leaky_product


@pytest.mark.sweep
def test_example_takes_tiles_ahead() -> None:
    fields = {"singleCoreM": 128, "singleCoreN": 256, "baseM": 64, "baseN": 128}
    tiling = cubecore.plan(
        m=256, n=512, k=96, bias="float32", launch="mix", template="NORM", cores=4, chip=CHIP,
        fix=fields,
    ).tiling  # fmt: skip
    arrays = data(256, 512, 96)
    raw = np.frombuffer(tiling.to_bytes(), np.uint8).copy()
    left = example()[2](*(arrays[name] for name in ("a", "b", "bias", "c")), raw)
    assert left.findings == ()
    sums = arrays["a"].astype("f8") @ arrays["b"].astype("f8") + arrays["bias"]
    np.testing.assert_allclose(arrays["c"], np.where(sums > 0, sums, 0.01 * sums), rtol=1e-6)
    products = [
        sum(isinstance(t, Mad) for t, _, _ in trace)
        for core, trace in left.traces.items()
        if core.is_aic
    ]
    steps = -(-tiling.singleCoreK // tiling.baseK)
    assert products == [2 * 4 * steps] * 2  # two AIVs, four tiles each
