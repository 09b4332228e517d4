"""Host programs: their own main, acl calls, launches by <<<>>>."""

import numpy as np

from frontends.cpp.cpp_kernels import cli, needs_compiler
from frontends.cpp.test_cpp_launch import ADD

pytestmark = needs_compiler

MAIN = """
#include "acl/acl.h"
#include <cstdio>
#include <vector>

int32_t main(int32_t argc, char* argv[]) {
  constexpr uint32_t n = 8 * 4096;
  std::vector<float> x(n), y(n), z(n);
  for (uint32_t i = 0; i < n; ++i) {
    x[i] = i;
    y[i] = 0.5f;
  }
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  uint8_t *a, *b, *c;
  aclrtMalloc((void**)&a, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&b, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&c, n * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(a, n * 4, x.data(), n * 4, ACL_MEMCPY_HOST_TO_DEVICE);
  COPY_Y
  for (int times = 0; times < 2; ++times) add_queued<<<8, nullptr, stream>>>(a, b, c, n / 8);
  aclrtSynchronizeStream(stream);
  aclrtMemcpy(z.data(), n * 4, c, n * 4, ACL_MEMCPY_DEVICE_TO_HOST);
  int wrong = 0;
  for (uint32_t i = 0; i < n; ++i) wrong += z[i] != x[i] + y[i];
  printf("wrong: %d, words: %d\\n", wrong, argc);
  aclrtFree(a);
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
    assert "uninitialised: vadd.src1 must be initialised" in out
    assert "add.asc exited with code 3" in out
    assert np.count_nonzero(["verified" in line for line in out.splitlines()]) == 1


TWIN = """
#include "tikicpulib.h"
#include <cstdio>
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  AscendC::GlobalTensor<float> to;
  to.SetGlobalBuffer((__gm__ float*)x);
  to.SetValue(8 * AscendC::GetBlockIdx(), to.GetValue(1) + (TILING_KEY_IS(3) ? 3 : 1));
}
int main() {
  float* x = (float*)AscendC::GmAlloc(64);
  x[1] = 0.5f;
  AscendC::SetKernelMode(KernelMode::AIV_MODE);
  ICPU_SET_TILING_KEY(3);
  ICPU_RUN_KF(k, 2, (uint8_t*)x);
  printf("%g %g\\n", x[0], x[8]);
  AscendC::GmFree(x);
}
"""


def test_a_program_may_call_kernels_as_the_cpu_twin_does(tmp_path):
    (tmp_path / "twin.cpp").write_text(TWIN)
    code, out, err = cli(tmp_path, "run", "twin.cpp")
    assert (code, err) == (0, "")
    assert out.startswith("3.5 3.5\n")
    assert out.count("k[2] on Ascend910B3") == 1
