"""Host programs: their own main, acl calls, launches by <<<>>>."""

import pytest

from frontends.cpp.cpp_kernels import SQUARED, cli, demo, needs_compiler
from frontends.cpp.test_launch import ADD

pytestmark = needs_compiler

MAIN = """
#include "acl/acl.h"
#include "acl/acl_base.h"
#include "acl/acl_base_rt.h"
#include "acl/acl_prof.h"
#include <cstdio>
#include <vector>

int32_t main(int32_t argc, char* argv[]) {
  constexpr uint32_t n = 8 * 4096;
  std::vector<float> x(n), y(n), z(n);
  for (uint32_t i = 0; i < n; ++i) {
    x[i] = i;
    y[i] = 0.5f;
  }
  if (aclInit(nullptr) == ACL_ERROR_REPEAT_INITIALIZE) return 4;
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  uint8_t *a, *b, *c;
  aclrtMalloc((void**)&a, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&b, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&c, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(a, n * 4, x.data(), n * 4, ACL_MEMCPY_HOST_TO_DEVICE);
  COPY_Y
  aclrtEvent begin, end;
  aclrtCreateEvent(&begin);
  aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE);
  float ms = -1;
  int wrong = aclrtEventElapsedTime(&ms, begin, end) == ACL_SUCCESS || ms != -1;
  aclrtRecordEvent(begin, stream);
  aclprofTensor shown[] = {{0, ACL_FORMAT_ND, ACL_FLOAT, 1, {n}}};
  aclprofTensorInfo call = {aclprofStr2Id("add"), aclprofStr2Id("Add"), 0, 1, 0, 8, stream, shown};
  aclprofEventAttributes range = {ACL_PROF_EVENT_ATTR_VERSION,
      sizeof(aclprofEventAttributes::message), ACL_PROF_MESSAGE_TYPE_TENSOR_INFO, &call};
  wrong += call.opNameId == call.opTypeId || aclprofRangePushEx(&range) != ACL_SUCCESS;
  for (int times = 0; times < 2; ++times) add_queued<<<8, nullptr, stream>>>(a, b, c, n / 8);
  wrong += aclprofRangePop() != ACL_SUCCESS;
  aclrtRecordEvent(end, stream);
  aclrtRunMode mode;
  wrong += aclrtGetRunMode(&mode) != ACL_SUCCESS || mode != ACL_HOST;
  aclrtSynchronizeStreamWithTimeout(stream, 5000);
  wrong += aclrtEventElapsedTime(&ms, begin, end) != ACL_SUCCESS || !(ms > 0);
  aclrtDestroyEvent(begin);
  aclrtDestroyEvent(end);
  aclrtMemcpy(z.data(), n * 4, c, n * 4, ACL_MEMCPY_DEVICE_TO_HOST);
  for (uint32_t i = 0; i < n; ++i) wrong += z[i] != x[i] + y[i];
  printf("wrong: %d, words: %d\\n", wrong, argc);
  aclrtFree(a);
  void* host;
  aclrtMallocHost(&host, 64);
  wrong += aclrtFreeHost(host) + (aclrtFreeHost(x.data()) == ACL_SUCCESS);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
  return wrong == 0 ? 0 : 3;
}
"""
COPY = "aclrtMemcpy(b, n * 4, y.data(), n * 4, ACL_MEMCPY_HOST_TO_DEVICE);"


def test_a_program_runs_from_its_own_main(tmp_path):
    (tmp_path / "add.asc").write_text(ADD.read_text() + MAIN.replace("COPY_Y", COPY))
    code, out, err = cli(tmp_path, "run", "add.asc", "more")
    assert (code, err) == (0, "")
    assert "wrong: 0, words: 2\n" in out
    assert out.count("add_queued[8] on Ascend910B3") == 2
    assert out.count("findings none") == 2
    code, out, _ = cli(tmp_path, "time", "add.asc")
    assert (code, out.count("add_queued[8] on Ascend910B3")) == (0, 2)


def test_memory_that_the_program_never_filled_is_a_finding(tmp_path):
    (tmp_path / "add.asc").write_text(ADD.read_text() + MAIN.replace("COPY_Y", ""))
    code, out, _ = cli(tmp_path, "run", "add.asc")
    assert code == 1
    assert "uninitialised: Add (vadd) at add.asc:55 reads y (UB[" in out
    assert "add.asc exited with code 3" in out
    assert "add.asc: FAILED: 2 findings, its own check" in out.splitlines()
    assert "verified" not in out


TWIN = """
#include "tikicpulib.h"
#include <cstdio>
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x);
  to.SetValue(16 * AscendC::GetBlockIdx(), to.GetValue(1) + (TILING_KEY_IS(3) ? 3 : 1));
}
int main() {
  float* x = (float*)AscendC::GmAlloc(128);
  x[1] = 0.5f;
  AscendC::SetKernelMode(KernelMode::AIV_MODE);
  ICPU_SET_TILING_KEY(3);
  ICPU_RUN_KF(k, 2, (uint8_t*)x);
  printf("%g %g\\n", x[0], x[16]);
  AscendC::GmFree(x);
}
"""


HELD = """#include "acl/acl.h"
#include "kernel_operator.h"
#include <cstdio>
static float* held = [] {
  void* memory = nullptr;
  aclrtMalloc(&memory, 1024, ACL_MEM_MALLOC_HUGE_FIRST);
  return static_cast<float*>(memory);
}();
__global__ __aicore__ void first(__gm__ float* x) {
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer(x);
  to.SetValue(1, to.GetValue(0) * 2);
}
"""


def test_a_variable_of_the_host_is_initialised_with_memory_of_the_device(tmp_path):
    main = """
int main() {
  float x[2] = {3, 0};
  aclrtMemcpy(held, 8, x, 8, ACL_MEMCPY_HOST_TO_DEVICE);
  first<<<1, nullptr, nullptr>>>(held);
  aclrtMemcpy(x, 8, held, 8, ACL_MEMCPY_DEVICE_TO_HOST);
  printf("%g\\n", x[1]);
}
"""
    (tmp_path / "demo.cpp").write_text(HELD + main)
    code, out, error = cli(tmp_path, "run", "demo.cpp")
    assert (code, out.splitlines()[0], error) == (0, "6", "")


def test_a_kernel_beside_such_a_variable_is_refused(tmp_path):
    (tmp_path / "k.cpp").write_text(HELD)
    code, out, error = cli(
        tmp_path, "run", "k.cpp", "--entry", "first", "--blocks", "1", "--out-arg", "x=float32:2"
    )
    assert (code, out) == (1, "")
    sentence = "the kernel, or a variable's initialiser, calls a host function"
    assert error == f"k.cpp:9 (first): {sentence}\n"


@pytest.mark.sweep
def test_a_program_may_call_kernels_as_the_cpu_twin_does(tmp_path):
    (tmp_path / "twin.cpp").write_text(TWIN)
    code, out, err = cli(tmp_path, "run", "twin.cpp")
    assert (code, err) == (0, "")
    assert out.startswith("3.5 3.5\n")
    assert out.count("k[2] on Ascend910B3") == 1


MIX = """
#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t EDGE = 32, COUNT = EDGE * EDGE;
static uint8_t* workspace = nullptr;

__global__ __mix__(1, 2) void squared(GM_ADDR a, GM_ADDR w, GM_ADDR c, uint32_t n) {
  GlobalTensor<float> wg, cg;
  wg.SetGlobalBuffer((__gm__ float*)w);
  cg.SetGlobalBuffer((__gm__ float*)c);
  if ASCEND_IS_AIC {
    GlobalTensor<half> ag;
    ag.SetGlobalBuffer((__gm__ half*)a);
    SQUARED
    Fixpipe(wg, co, FixpipeParamsV220(EDGE, EDGE, EDGE, EDGE, false));
    SIGNAL
  }
  if ASCEND_IS_AIV {
    LocalTensor<float> x(TPosition::VECIN, 0, n);
    CrossCoreWaitFlag(0);
    DataCopy(x, wg[GetSubBlockIdx() * n], n);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    Muls(x, x, 2.0f, n);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(cg[GetSubBlockIdx() * n], x, n);
  }
}

int main() {
  aclInit(nullptr);
  half given[COUNT];
  float made[COUNT];
  for (uint32_t n = 0; n < COUNT; ++n) given[n] = half(float(n % 7) - 3);
  uint8_t *a, *c;
  aclrtMalloc((void**)&a, sizeof given, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&workspace, sizeof made, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&c, sizeof made, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(a, sizeof given, given, sizeof given, ACL_MEMCPY_HOST_TO_DEVICE);
  squared<<<1, nullptr, nullptr>>>(a, workspace, c, COUNT / 2);
  aclrtMemcpy(made, sizeof made, c, sizeof made, ACL_MEMCPY_DEVICE_TO_HOST);
  int wrong = 0;
  for (uint32_t row = 0; row < EDGE; ++row)
    for (uint32_t column = 0; column < EDGE; ++column) {
      float sum = 0;
      for (uint32_t k = 0; k < EDGE; ++k)
        sum += 2 * float(given[row * EDGE + k]) * float(given[column * EDGE + k]);
      wrong += made[row * EDGE + column] != sum;
    }
  printf("wrong: %d\\n", wrong);
  return wrong;
}
""".replace("    SQUARED\n", SQUARED)
SIGNAL = "CrossCoreSetFlag<2, PIPE_FIX>(0);"


@pytest.mark.sweep
def test_a_programs_mix_kernel_runs_as_both_of_its_parts(tmp_path):
    (tmp_path / "mix.asc").write_text(MIX.replace("SIGNAL", SIGNAL))
    assert cli(tmp_path, "c++", "-c", "mix.asc", "-o", "mix.o") == (0, "", "")
    assert cli(tmp_path, "c++", "mix.o", "-o", "demo") == (0, "", "")
    code, out, err = demo(tmp_path)
    assert (code, out, err) == (0, "wrong: 0\n", "")


@pytest.mark.sweep
def test_a_mix_kernel_whose_aic_sends_nothing_is_stopped(tmp_path):
    (tmp_path / "mix.asc").write_text(MIX.replace("SIGNAL", ""))
    code, _, err = cli(tmp_path, "run", "mix.asc")
    waits = [
        f"core 0 AIV{n} waits for flag 0 at mix.asc:35 (squared), which no core has sent"
        for n in (0, 1)
    ]
    assert (code, err) == (1, f"deadlock, no core sends a signal: {'; '.join(waits)}\n")


@pytest.mark.sweep
def test_kernels_of_other_files_by_aclrt_launch_kernel(tmp_path):
    launch = "add_queued<<<8, nullptr, stream>>>(a"
    main = MAIN.replace("COPY_Y", COPY).replace(
        launch, "ACLRT_LAUNCH_KERNEL(add_queued)(8, stream, a"
    )
    (tmp_path / "main.cpp").write_text('#include "aclrtlaunch_add_queued.h"\n' + main)
    (tmp_path / "kernel.cpp").write_text(ADD.read_text())
    assert cli(tmp_path, "c++", "main.cpp", "kernel.cpp", "-o", "demo") == (0, "", "")
    code, out, err = cli(tmp_path, "run", "demo")
    assert (code, err, out.count("add_queued[8] on Ascend910B3")) == (0, "", 2)
    assert "wrong: 0, words: 1\n" in out
    code, _, err = cli(tmp_path, "c++", "main.cpp", "-o", "other")
    assert (code, "includes aclrtlaunch_add_queued.h, which is neither" in err) == (2, True)


STRUCT = """#include "kernel_operator.h"
#include "acl/acl.h"
struct Facts { int32_t n; float scale; };
__global__ __vector__ void k(GM_ADDR x, Facts facts, GM_ADDR more) {
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x, 16);
  to.SetValue(0, facts.n * facts.scale);
  if (more == nullptr) to.SetValue(1, 1.0f);
}
void k_do(uint32_t blocks, void* stream, void* x, uint8_t* facts) {
  k<<<blocks, nullptr, stream>>>(x, reinterpret_cast<Facts*>(facts), 0);
}
int main() {
  uint8_t* x = nullptr;
  aclrtMalloc((void**)&x, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(x, 64, 0, 64);
  Facts facts{3, 0.5f};
  float got[4];
  k<<<1, nullptr, nullptr>>>(x, facts, nullptr);
  aclrtMemcpy(got, 8, x, 8, ACL_MEMCPY_DEVICE_TO_HOST);
  facts.n = 5;
  k_do(1, nullptr, x, reinterpret_cast<uint8_t*>(&facts));
  aclrtMemcpy(got + 2, 8, x, 8, ACL_MEMCPY_DEVICE_TO_HOST);
  return !(got[0] == 1.5f && got[1] == 1 && got[2] == 2.5f);
}
"""


def test_a_struct_is_passed_itself_or_by_a_pointer(tmp_path):
    """Kernel-launch projects give a kernel's struct by its address."""
    (tmp_path / "k.asc").write_text(STRUCT)
    code, out, err = cli(tmp_path, "run", "k.asc")
    assert (code, err) == (0, "")
    assert out.count("findings none") == 2
