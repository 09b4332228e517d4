"""Host code that loads kernels from a binary file."""

from frontends.cpp.cpp_kernels import cli, needs_compiler

pytestmark = needs_compiler

PROGRAM = """#include "acl/acl.h"
int main() {
  aclrtBinHandle binary = nullptr;
  aclrtFuncHandle function = nullptr;
  aclrtArgsHandle arguments = nullptr;
  aclrtParamHandle parameter = nullptr;
  void* device = nullptr;
  aclInit(nullptr);
  aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  if (aclrtBinaryLoadFromFile("kernel.o", nullptr, &binary) != ACL_SUCCESS) return 1;
  aclrtBinaryGetFunction(binary, "add_custom", &function);
  aclrtKernelArgsInit(function, &arguments);
  aclrtKernelArgsAppend(arguments, (void**)&device, sizeof(uintptr_t), &parameter);
  aclrtKernelArgsFinalize(arguments);
  aclrtLaunchKernelWithConfig(function, 8, nullptr, nullptr, arguments, nullptr);
  aclrtBinaryUnLoad(binary);
}
"""
SAID = (
    "the program: aclrtBinaryLoadFromFile needs a kernel's binary for the NPU, which cubecore "
    "cannot run; compile the kernel's file with the program (cubecore c++ main.cpp kernel.cpp), "
    "and launch it by ACLRT_LAUNCH_KERNEL(name) of aclrtlaunch_name.h"
)


def test_a_binary_is_refused_where_it_is_loaded(tmp_path):
    (tmp_path / "main.cpp").write_text(PROGRAM)
    assert cli(tmp_path, "c++", "main.cpp", "-o", "demo")[0] == 0
    code, _, error = cli(tmp_path, "run", "demo")
    assert (code, error.strip()) == (2, SAID)
