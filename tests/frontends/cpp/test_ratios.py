"""The cores of a block, by the ratio of AICs to AIVs that a kernel says: values, signals, times."""

import numpy as np
import pytest

import cubecore
from cubecore.workflows.scripts.script import times_of
from frontends.cpp.cpp_kernels import SQUARED, cli, needs_compiler
from frontends.cpp.test_matmul_object import ALL, data, module, planned, run

pytestmark = needs_compiler
FACTS = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ {kind} void k(GM_ADDR x) {{
  {task}
  GlobalTensor<int32_t> to;
  to.SetGlobalBuffer((__gm__ int32_t*)x + (g_coreType == AIC ? 0 : 128));
  int64_t facts[] = {{1, GetBlockNum(), GetSubBlockIdx(), GetSubBlockNum(), GetTaskRation()}};
  for (int n = 0; n < 5; ++n) to.SetValue(16 * GetBlockIdx() + n, facts[n]);
}}
"""
RATIOS = [  # pages GetBlockIdx, GetBlockNum, GetSubBlockNum(ISASI), GetTaskRatio
    ("__mix__(1, 2)", "", True, 2),
    ("__mix__(1, 1)", "", True, 1),
    ("__mix__(1, 0)", "", True, 0),
    ("__mix__(0, 1)", "", False, 1),
    ("__cube__", "", True, 0),
    ("__vector__", "", False, 1),
    ("__aicore__", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);", True, 1),
    ("__aicore__", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);", True, 2),
    ("__aicore__", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_0);", True, 0),
    ("__aicore__", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);", False, 1),
]


def facts(left: np.ndarray) -> list[list[tuple[int, ...]]]:
    """Return what AICs, and what AIVs, have written of themselves: a row for each index."""
    parts = left.reshape(2, -1, 16)[:, :, :5]
    return [[tuple(row) for row in part if row[0]] for part in parts.tolist()]


def wanted(aic: bool, aivs: int, blocks: int) -> list[list[tuple[int, ...]]]:
    each = [(1, blocks, part, aivs, aivs) for _ in range(blocks) for part in range(aivs)]
    return [[(1, blocks, 0, 1, 1)] * blocks * aic, each]


@pytest.mark.thinned(5)
@pytest.mark.parametrize(("kind", "task", "aic", "aivs"), RATIOS)
def test_cores_know_the_ratio_that_their_kernel_says(kind, task, aic, aivs):
    x = np.zeros(256, np.int32)
    kernel = cubecore.inline(FACTS.format(kind=kind, task=task), checks="racecheck").k
    kernel[3](x)
    assert facts(x) == wanted(aic, aivs, 3)


NAMES = """
#define FIRST 1UL
#define TYPE(KEY, OWN) KERNEL_TASK_TYPE(KEY, OWN)
namespace keys {
constexpr uint64_t SECOND = FIRST + 1;
enum : uint64_t { THIRD = 3 };
}
template <uint64_t part> constexpr uint64_t ofPart() { return 10 * part + 4; }
"""


NUMBERED = """
  KERNEL_TASK_TYPE(1, KERNEL_TYPE_MIX_AIC_1_1);
  KERNEL_TASK_TYPE(0x2, KERNEL_TYPE_MIX_AIC_1_2);
  KERNEL_TASK_TYPE(3, KERNEL_TYPE_AIV_ONLY);
  KERNEL_TASK_TYPE(34UL, KERNEL_TYPE_MIX_AIC_1_1);
"""
NAMED = """
  using namespace keys;
  if (TILING_KEY_IS(FIRST)) { KERNEL_TASK_TYPE(FIRST, KERNEL_TYPE_MIX_AIC_1_1); }
  TYPE(keys::SECOND, KERNEL_TYPE_MIX_AIC_1_2);
  KERNEL_TASK_TYPE(THIRD, KERNEL_TYPE_AIV_ONLY);
  TYPE(ofPart<3>(), KERNEL_TYPE_MIX_AIC_1_1);
"""


@pytest.mark.thinned(4)
@pytest.mark.parametrize("task", [NUMBERED, NAMED], ids=["numbers", "names"])
@pytest.mark.parametrize("default", ["", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);"])
def test_a_tiling_key_has_the_ratio_of_its_own_type(task, default):
    """Page "设置Kernel类型"; a kernel of the same keys beside it has types of its own."""
    other = "__aicore__ void other(GM_ADDR x) { KERNEL_TASK_TYPE(2, KERNEL_TYPE_AIV_ONLY); }"
    text = FACTS.format(kind="__aicore__", task=default + task)
    text = text.replace("extern", f'{NAMES}extern "C" __global__ {other}\nextern', 1)
    kernel = cubecore.inline(text, checks="racecheck").k
    keys = {1: (True, 1), 2: (True, 2), 3: (False, 1), 34: (True, 1)}
    for key, (aic, aivs) in (keys | ({7: (True, 0)} if default else {})).items():
        x = np.zeros(256, np.int32)
        kernel.changed(tiling_key=key)[2](x)
        assert facts(x) == wanted(aic, aivs, 2)


MAIN = """#include <cstdio>
#include "acl/acl.h"
int main() {
  int32_t left[256] = {}, *x = nullptr;
  aclrtMalloc((void**)&x, sizeof(left), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, sizeof(left), left, sizeof(left), ACL_MEMCPY_HOST_TO_DEVICE);
  k<<<3, nullptr, nullptr>>>((uint8_t*)x);
  aclrtMemcpy(left, sizeof(left), x, sizeof(left), ACL_MEMCPY_DEVICE_TO_HOST);
  for (int32_t each : left) std::printf("%d ", each);
}
"""


def test_a_program_launches_a_block_of_the_ratio(tmp_path):
    (tmp_path / "main.cpp").write_text(FACTS.format(kind="__mix__(1, 1)", task="") + MAIN)
    code, out, err = cli(tmp_path, "run", "main.cpp", "--checks", "racecheck")
    assert (code, err) == (0, "")
    left = np.array(out.splitlines()[0].split()[:256], np.int32)
    assert facts(left) == wanted(aic=True, aivs=1, blocks=3)


PRODUCT = """#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t EDGE = 32, COUNT = EDGE * EDGE;
extern "C" __global__ __mix__(1, {aivs}) void k(GM_ADDR a, GM_ADDR w, GM_ADDR c) {{
  GlobalTensor<float> wg, cg;
  wg.SetGlobalBuffer((__gm__ float*)w);
  cg.SetGlobalBuffer((__gm__ float*)c);
  if ASCEND_IS_AIC {{
    GlobalTensor<half> ag;
    ag.SetGlobalBuffer((__gm__ half*)a + GetBlockIdx() * COUNT);
{squared}
    Fixpipe(wg[GetBlockIdx() * COUNT], co, FixpipeParamsV220(EDGE, EDGE, EDGE, EDGE, false));
    CrossCoreSetFlag<2, PIPE_FIX>(0);
    CrossCoreWaitFlag(1);
  }}
  if ASCEND_IS_AIV {{
    uint32_t n = COUNT / {share};
    LocalTensor<float> x(TPosition::VECIN, 0, n);
    CrossCoreWaitFlag(0);
    DataCopy(x, wg[GetBlockIdx() * n], n);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(cg[GetBlockIdx() * n], x, n);
    CrossCoreSetFlag<1, PIPE_MTE3>(3);
    CrossCoreWaitFlag(3);
    CrossCoreSetFlag<0, PIPE_MTE3>(2);
    CrossCoreWaitFlag(2);
    uint32_t other = (GetBlockIdx() + 1) % (GetBlockNum() * GetSubBlockNum());
    DataCopy(x, cg[other * n], n);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(wg[GetBlockIdx() * n], x, n);
    CrossCoreSetFlag<2, PIPE_MTE3>(1);
  }}
}}
"""
BLOCKS = 3


def products(aivs: int, share: str, order: str = "program"):
    """Return the launch of a kernel for 1:`aivs`, its arrays, and the squares of its blocks."""
    rng = np.random.default_rng(5)
    a = rng.integers(-4, 5, (BLOCKS, 32, 32)).astype(np.float16)
    w, c = (np.full(BLOCKS * 1024, np.nan, np.float32) for _ in range(2))
    text = PRODUCT.format(aivs=aivs, share=share, squared=SQUARED)
    kernel = cubecore.inline(text, order=order, trace=True).k
    kernel = kernel.changed(outputs=("c",), scratch=("w",))
    square = np.stack([each.astype(np.float64) @ each.T for each in a]).reshape(-1)
    return kernel[BLOCKS](a, w, c), w, c, square


@pytest.mark.thinned(6)
@pytest.mark.parametrize("order", ["program", "late", "early"])
@pytest.mark.parametrize("aivs", [1, 2])
def test_signals_of_all_modes_go_to_the_aivs_that_a_block_has(aivs, order):
    ran, w, c, square = products(aivs, "GetSubBlockNum()", order)
    assert ran.findings == ()
    assert {core.sub for core in ran.traces} == {*range(aivs + 1)}
    assert np.array_equal(c, square)
    assert np.array_equal(w, np.roll(square, -1024 // aivs))


@pytest.mark.sweep
def test_a_kernel_for_two_aivs_with_one_leaves_half_of_its_result_unwritten():
    ran, _, c, square = products(1, "2")
    half = BLOCKS * 512
    assert np.array_equal(c[:half], square[:half])
    assert f"c must be written whole, got {4 * half} of {8 * half} B never written" in " ".join(
        finding.message for finding in ran.findings
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize("aivs", [1, 2])
def test_a_timeline_has_the_aivs_of_the_ratio(aivs):
    ran, *_ = products(aivs, "GetSubBlockNum()")
    lanes = {group.part for group in times_of("k", (ran,)).longest.timeline.groups}
    assert lanes == {"AIC", *(f"AIV{n}" for n in range(aivs))}


@pytest.mark.sweep
def test_a_matmul_object_serves_the_one_aiv_of_its_block():
    plan = planned(mix=True)
    arrays = data(120, 272, 200)
    left = run(module(ALL, kind="__mix__(1, 1)", trace=True), plan.tiling, 4, arrays)
    assert left.findings == ()
    assert {core.sub for core in left.traces} == {0, 1}
    exact = arrays["a"].astype("f8") @ arrays["b"].astype("f8") + arrays["bias"]
    np.testing.assert_array_equal(arrays["c"], exact)
