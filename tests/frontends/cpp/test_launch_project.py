"""Kernel-launch projects: ascendc_library of a toolkit, built by a script of the project's own."""

import re
import shutil

import pytest

from frontends.cpp.cpp_kernels import cli, needs_compiler, write_files

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake is here"),
]
CMAKE = """cmake_minimum_required(VERSION 3.16)
project(kernels)
set(RUN_MODE "npu" CACHE STRING "")
set(ASCEND_CANN_PACKAGE_PATH "/nowhere" CACHE STRING "")
include(${ASCEND_CANN_PACKAGE_PATH}/tools/tikcpp/ascendc_kernel_cmake/ascendc.cmake)
ascendc_library(kernels_${RUN_MODE} SHARED pair.cpp)
ascendc_compile_definitions(kernels_${RUN_MODE} PRIVATE -DADDED=2)
ascendc_include_directories(kernels_${RUN_MODE} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/own)
add_executable(program main.cpp)
target_compile_options(program PRIVATE -O2 -std=c++17 -D_GLIBCXX_USE_CXX11_ABI=0 -Wall -Werror)
target_link_libraries(program PRIVATE
  $<BUILD_INTERFACE:$<$<STREQUAL:${RUN_MODE},npu>:host_intf_pub>>
  kernels_${RUN_MODE} tiling_api register platform dl)
install(TARGETS program RUNTIME DESTINATION bin)
"""
RUN = """RUN_MODE=$2
set -e
rm -rf out output
mkdir -p output
cmake -B build -DRUN_MODE=$RUN_MODE -DCMAKE_INSTALL_PREFIX=out \\
  -DASCEND_CANN_PACKAGE_PATH=${ASCEND_INSTALL_PATH:-$ASCEND_HOME_PATH}
cmake --build build
cmake --install build
./out/bin/program
cmp output/sum.bin golden.bin && echo test pass
"""
KERNEL = """#include "kernel_operator.h"
#include "value.h"
#include "facts.h"
using namespace AscendC;
extern "C" __global__ __mix__(1, 2) void pair(GM_ADDR x, Facts facts) {
  if ASCEND_IS_AIC {
    CrossCoreSetFlag<2, PIPE_FIX>(3);
  } else {
    CrossCoreWaitFlag(3);
    GlobalTensor<int32_t> to;
    to.SetGlobalBuffer((__gm__ int32_t*)x, 64);
    BODY
    if (GetSubBlockIdx() == 0) to.SetValue(0, facts.n + ADDED + VALUE);
  }
}
"""
FACTS = "#pragma once\nstruct Facts { int n; };\n"
MAIN = """#include <cstdio>
#include "acl/acl.h"
#include "facts.h"
#include "aclrtlaunch_pair.h"
#include "kernel_tiling/kernel_tiling.h"
#include "tiling/tiling_api.h"
int shared = 5;
int main() {
  uint8_t* x = nullptr;
  TCubeTiling tiling{};
  tiling.baseM = 3;
  aclrtMalloc((void**)&x, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(x, 256, 0, 256);
  Facts facts{shared};
  ACLRT_LAUNCH_KERNEL(pair)(1, nullptr, x, &facts);
  int32_t sum = 0;
  aclrtMemcpy(&sum, 4, x, 4, ACL_MEMCPY_DEVICE_TO_HOST);
  FILE* out = fopen("output/sum.bin", "wb");
  fputc(sum + tiling.baseM, out);
  fclose(out);
  return 0;
}
"""


def project(folder, body="", golden=5 + 2 + 7 + 3):
    files = {
        "CMakeLists.txt": CMAKE,
        "run.sh": RUN,
        "pair.cpp": KERNEL.replace("BODY", body),
        "main.cpp": MAIN,
        "facts.h": FACTS,
        "own/value.h": "constexpr int VALUE = 7;\n",
    }
    write_files(folder, files)
    (folder / "golden.bin").write_bytes(bytes([golden]))


def test_a_kernel_launch_project_is_built_run_and_verified_by_its_own_script(tmp_path):
    """Both parts of its mix kernel run: the host's objects lie in the library of each."""
    project(tmp_path / "sample")
    code, out, err = cli(tmp_path, "sample", "sample")
    assert (code, out.startswith("sample: verified in "), err) == (0, True, "")
    (tmp_path / "sample" / "golden.bin").write_bytes(b"\0")
    code, out, _ = cli(tmp_path, "sample", "sample")
    assert (code, out.startswith("sample: run.sh failed: ")) == (1, True)


@pytest.mark.sweep
def test_findings_do_not_keep_a_script_from_its_verification(tmp_path):
    project(tmp_path / "sample", "WaitFlag<HardEvent::MTE2_V>(0); SetFlag<HardEvent::MTE2_V>(0);")
    code, out, err = cli(tmp_path, "sample", "sample")
    assert (code, err) == (1, "")
    first, *_, last = out.splitlines()
    assert first == "pair[1] on Ascend910B3"
    assert "Findings: 1" in out
    assert re.fullmatch(r"sample: FAILED: 1 finding; verified by itself in \d+ s", last)
    code, out, err = cli(tmp_path, "sample", "sample", "--lang", "zh")
    assert (code, err, out.splitlines()[1]) == (1, "", "检查结果：1")
    assert out.splitlines()[-1].startswith("sample：失败：1 项检查结果；其自身验证通过，用时 ")


def test_what_a_launch_header_needs_is_written_for_any_host_compiler(tmp_path):
    (tmp_path / "pair.cpp").write_text(KERNEL.replace("BODY", "").replace("ADDED + VALUE", "0"))
    assert cli(tmp_path, "c++", "--launch-headers=made", "pair.cpp") == (0, "", "")
    made = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "made").rglob("*.h"))
    assert made == [
        "made/aclrtlaunch_pair.h",
        "made/cubecore_launch.h",
        "made/cubecore_tcubetiling.h",
        "made/kernel_tiling/kernel_tiling.h",
    ]
    said = "cannot write pair.cpp/made: not a directory\n"
    assert cli(tmp_path, "c++", "--launch-headers=pair.cpp/made", "pair.cpp") == (2, "", said)
