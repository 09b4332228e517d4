"""Structs of tiling data by pointers, and headers that operators of a repository share."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import needs_compiler, write_files

pytestmark = needs_compiler
STRUCTS = """#include "kernel_operator.h"
using namespace AscendC;
struct Part { int32_t a, b; };
struct All { int64_t first; Part of_vector, of_cube; };
inline int32_t plain(Part* part) { return part->b; }
inline int32_t constant(const Part& part) { return part.a; }
extern "C" __global__ __aicore__ void k(GM_ADDR z, GM_ADDR tiling) {
  ENABLE_PRINTF();
  GlobalTensor<int32_t> to;
  to.SetGlobalBuffer((__gm__ int32_t*)z, 8);
  GET_TILING_DATA_PTR_WITH_STRUCT(All, all, tiling);
  COPY_TILING_WITH_STRUCT(Part, all->of_vector, member);
  COPY_TILING_WITH_STRUCT(Part, &all->of_cube, pointer);
  COPY_TILING_WITH_STRUCT(All, tiling, whole);
  const All* same = all;
  to.SetValue(0, all->first);
  to.SetValue(1, constant(*member));
  to.SetValue(2, plain(member));
  to.SetValue(3, constant(*pointer));
  to.SetValue(4, plain(pointer));
  to.SetValue(5, whole->of_cube.b + same->first);
}
"""


def test_structs_by_their_pointers_and_by_themselves():
    """Page COPY_TILING_WITH_STRUCT, whose example gives a member."""
    tiling = np.array([70, 0, 1, 2, 3, 4], np.int32)
    z = np.zeros(6, np.int32)
    assert cubecore.inline(STRUCTS).k.changed(outputs=("z",))[1](z, tiling).findings == ()
    assert z.tolist() == [70, 1, 2, 3, 4, 74]


KERNEL = """#include "kernel_operator.h"
#include "../inc/shared.h"
#include "../other/near.h"
extern "C" __global__ __aicore__ void k(GM_ADDR z) {
  AscendC::GlobalTensor<int32_t> to;
  to.SetGlobalBuffer((__gm__ int32_t*)z, 8);
  to.SetValue(0, SHARED + near());
}
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("above", ["", "math/"])
def test_an_operator_includes_what_the_repository_shares(tmp_path, above):
    """The build puts `common/inc/op_kernel` beside the operators' kernels, as `inc`."""
    write_files(
        tmp_path,
        {
            "common/inc/op_kernel/shared.h": "#define SHARED 30\n",
            f"{above}other/op_kernel/near.h": "[aicore] inline int near() { return 4; }\n",
            f"{above}mine/op_kernel/k.cpp": KERNEL,
        },
    )
    z = np.zeros(8, np.int32)
    path = tmp_path / above / "mine" / "op_kernel" / "k.cpp"
    cubecore.load(path).k.changed(outputs=("z",))[1](z)
    assert z[0] == 34


INSIDE = """#pragma once
#include "{shared}/inc/shared.h"
#include "../../other/arch35/near.h"
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("shared", ["..", "../.."])
def test_a_folder_of_the_kernels_includes_from_beside_the_operator(tmp_path, shared):
    """Files of op_kernel/arch35 lie one folder below what the build puts side by side."""
    kernel = KERNEL.replace("../inc/shared.h", "arch35/all.h").replace("../other/near.h", "k.h")
    write_files(
        tmp_path,
        {
            "common/inc/op_kernel/shared.h": "#define SHARED 30\n",
            "math/other/op_kernel/arch35/near.h": "[aicore] inline int near() { return 4; }\n",
            "math/mine/op_kernel/arch35/all.h": INSIDE.format(shared=shared),
            "math/mine/op_kernel/k.h": "",
            "math/mine/op_kernel/k.cpp": kernel,
        },
    )
    z = np.zeros(8, np.int32)
    path = tmp_path / "math" / "mine" / "op_kernel" / "k.cpp"
    cubecore.load(path).k.changed(outputs=("z",))[1](z)
    assert z[0] == 34
