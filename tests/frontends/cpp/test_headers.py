"""Kernels whose code lies in headers: their kinds, headers of the kit, names of Python's."""

from pathlib import Path

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import cli, needs_compiler, write_files

pytestmark = needs_compiler
TOOLS = """#include "kernel_operator.h"
#include "adv_api/math/xor.h"
using namespace AscendC;
__aicore__ inline void product(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  GlobalTensor<half> gx, gy;
  GlobalTensor<float> gz;
  gx.SetGlobalBuffer((__gm__ half*)x);
  gy.SetGlobalBuffer((__gm__ half*)y);
  gz.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<half> a1(TPosition::A1, 0, 256), b1(TPosition::B1, 512, 256);
  LocalTensor<half> a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256);
  LocalTensor<float> c(TPosition::CO1, 0, 256);
  DataCopy(a1, gx, 256);
  DataCopy(b1, gy, 256);
  PipeBarrier<PIPE_ALL>();
  LoadData(a2, a1, LoadData2DParams(0, 1, 0, 0, 0, false, 0));
  LoadData(b2, b1, LoadData2DParams(0, 1, 0, 0, 0, false, 0));
  PipeBarrier<PIPE_ALL>();
  MmadParams p;
  p.m = p.n = p.k = 16;
  Mmad(c, a2, b2, p);
  PipeBarrier<PIPE_ALL>();
  FixpipeParamsV220 out;
  out.nSize = out.mSize = out.srcStride = out.dstStride = 16;
  Fixpipe<float, float, CFG_ROW_MAJOR>(gz, c, out);
}
__aicore__ inline void doubled(GM_ADDR x, GM_ADDR z) {
  GlobalTensor<half> gx, gz;
  gx.SetGlobalBuffer((__gm__ half*)x);
  gz.SetGlobalBuffer((__gm__ half*)z);
  LocalTensor<half> t(TPosition::VECCALC, 0, 256);
  DataCopy(t, gx, 256);
  PipeBarrier<PIPE_ALL>();
  Add(t, t, t, 256);
  PipeBarrier<PIPE_ALL>();
  DataCopy(gz, t, 256);
}
"""
KERNELS = {
    "tools.h": TOOLS,
    "mixed.cpp": """#include "tools.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR twice) {
  if ASCEND_IS_AIC { product(x, y, z); }
  if ASCEND_IS_AIV { if (GetSubBlockIdx() == 0) doubled(x, twice); }
}
""",
    "vector.cpp": """#include "tools.h"
extern "C" __global__ __aicore__ void k(GM_ADDR in, GM_ADDR core) { doubled(in, core); }
""",
    "part.h": """#ifndef PART
#define PART
__aicore__ inline int sixteen() { __ubuf__ half spare[16]; return 16; }
#endif
""",
    "other/part.h": '#include "../part.h"\n',
    "conditions.cpp": """#include "tools.h"
#if __NPU_ARCH__ == 3510
#include "other/part.h"
#else
#include "part.h"
#endif
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z) {
  if (sixteen() == 16) doubled(x, z);
}
""",
    "said.cpp": """#include "tools.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  if ASCEND_IS_AIC { product(x, y, z); }
}
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("headers")
    write_files(folder, KERNELS)
    return folder


@pytest.mark.sweep
def test_the_kind_of_a_kernel_follows_what_it_uses_of_its_headers(folder: Path) -> None:
    rng = np.random.default_rng(7)
    x, y = rng.integers(-8, 9, (2, 16, 16)).astype(np.float16)
    z, twice = np.zeros((16, 16), np.float32), np.zeros_like(x)
    mixed = cubecore.load(folder / "mixed.cpp").k
    assert mixed.kind == "mix"
    assert mixed[1](x, y, z, twice).findings == ()
    np.testing.assert_array_equal(z, x.astype(np.float64) @ y.astype(np.float64).T)
    np.testing.assert_array_equal(twice, x + x)
    assert cubecore.load(folder / "vector.cpp").k.kind == "vector"
    assert cubecore.load(folder / "said.cpp").k.kind == "vector"


def test_parameters_that_python_has_words_for_end_in_an_underscore(folder: Path) -> None:
    x, z = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    kernel = cubecore.load(folder / "vector.cpp").k
    kernel[1](in_=x, core_=z)
    np.testing.assert_array_equal(z, x + x)
    np.save(folder / "x.npy", x)
    words = ("--blocks", "1", "--arg", "in=x.npy", "--out-arg", "core=float16:256:z.npy")
    code, _, err = cli(folder, "run", "vector.cpp", *words)
    assert (code, err) == (0, "")
    np.testing.assert_array_equal(np.load(folder / "z.npy"), x + x)


@pytest.mark.sweep
def test_a_header_of_the_same_name_may_include_another(folder: Path) -> None:
    x, z = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    assert cubecore.load(folder / "conditions.cpp").k[1](x, z).findings == ()
    np.testing.assert_array_equal(z, x + x)


KIT = """#include "ascendc/basic_api/kernel_operator.h"
#include "kernel_tpipe_impl.h"
constexpr float TWICE = 2;
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z) {
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)z);
  constexpr int32_t count = ONE_REPEAT_FLOAT_SIZE + B32_DATA_NUM_PER_BLOCK;
  AscendC::LocalTensor<float> t(AscendC::TPosition::VECCALC, 0, count);
  AscendC::DataCopyParams whole(1, count / 8, 0, 0);
  DataCopy(t, from, whole, {});
  AscendC::PipeBarrier<PIPE_ALL>();
  AscendC::SetVectorMask<float>(FULL_MASK, FULL_MASK);
  Muls<float, false>(t, t, PI, AscendC::MASK_PLACEHOLDER, 1, {1, 1, 8, 8});
  Adds<float>(t, t, float(AscendC::AscendCUtils::GetBitSize(sizeof(half))), count);
  AscendC::PipeBarrier<PIPE_ALL>();
  DataCopy(to, t, count);
}
"""


@pytest.mark.sweep
def test_names_of_the_kit_that_no_page_has(tmp_path: Path) -> None:
    """Its headers, its constants, and calls that clang finds by their arguments."""
    write_files(tmp_path, {"kit.cpp": KIT})
    x, z = np.arange(72, dtype=np.float32), np.zeros(72, np.float32)
    assert cubecore.load(tmp_path / "kit.cpp").k[1](x, z).findings == ()
    want = x * np.float32(np.pi)
    want[64:] = x[64:]  # a repeat has 64 elements
    np.testing.assert_array_equal(z, want + 16)


@pytest.mark.sweep
def test_a_kernels_own_constant_comes_before_the_kits(tmp_path: Path) -> None:
    own = KIT.replace("constexpr float TWICE", "constexpr float PI")
    write_files(tmp_path, {"kit.cpp": own})
    x, z = np.arange(72, dtype=np.float32), np.zeros(72, np.float32)
    cubecore.load(tmp_path / "kit.cpp").k[1](x, z)
    np.testing.assert_array_equal(z[:64], x[:64] * 2 + 16)


OWN = """#include "kernel_operator.h"
{header}
{own}
static_assert(static_cast<int>(CubeFormat::VECTOR) == {value});
extern "C" __global__ __aicore__ void k(GM_ADDR x) {{}}
"""


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("header", "own", "value"),
    [
        ("", "enum class CubeFormat { ND, NZ, VECTOR };", 2),
        ('#include "graph/tensor.h"', "using AscendC::CubeFormat;", 5),
        ('#include "lib/matmul_intf.h"', "", 5),
    ],
)
def test_names_of_matmul_are_global_with_its_headers(
    header: str, own: str, value: int, tmp_path: Path
) -> None:
    """Page "Matmul使用说明": ND, NZ, ZN, ZZ, NN, VECTOR, ..."""
    text = OWN.format(header=header, own=own, value=value)
    write_files(tmp_path, {"own.cpp": text})
    assert cubecore.load(tmp_path / "own.cpp").k.kind == "vector"


OF_KIT = (
    *("kernel_tpipe_impl.h", "kernel_tensor_impl.h", "kernel_operator_vec_binary_impl.h"),
    *("kernel_operator_data_copy_impl.h", "kernel_operator_vec_reduce_impl.h"),
    *("kernel_operator_softmax_intf.h", "kernel_operator_mm_impl.h", "kernel_struct_fixpipe.h"),
    *("adv_api/activation/gelu.h", "lib/activation/softmaxflashv2.h", "lib/sort/topk/topk.h"),
    *("lib/math/kernel_operator_xor_intf.h", "adv_api/math/axpy_tiling_intf.h"),
    *("lib/reduce/reduce_common.h", "lib/matmul/matmul_client.h", "adv_api/hccl/hccl.h"),
    *("basic_api/kernel_operator_vec_binary_impl.h", "basic_api/kernel_cube_intf.h"),
    *("basic_api/reg_compute/kernel_reg_compute_vec_vconv_intf.h", "adv_api/kernel_api.h"),
)
BESIDE = "put it beside the file"
OTHERS = {
    "kernel_operator_nowhere.h": BESIDE,
    "kernel_operator_nowhere_intf.h": "did you mean kernel_operator_cache_intf.h?",
    "kernel_operator_.h": "did you mean kernel_operator.h?",
    "kernel_tensor_typo.h": "did you mean kernel_tensor.h?",
    "kernel_struct_unray.h": "did you mean kernel_struct_unary.h?",
    "kernel_operator_vec_binray_impl.h": "did you mean kernel_operator_vec_binary_intf.h?",
    "adv_api/math/no_page_names_it.h": BESIDE,
    "adv_api/math/snh.h": "did you mean adv_api/math/sinh.h?",
    "adv_api/math/softmax.h": "did you mean adv_api/activation/softmax.h?",
    "adv_api/nowhere/nothing.h": BESIDE,
    "basic_api/kernel_nothing.h": BESIDE,
    "basic_api/kernel_tpip.h": "did you mean basic_api/kernel_tpipe.h?",
    "basic_api/binary.h": "did you mean basic_api/kernel_operator_vec_binary_intf.h?",
    "lib/math/nothing.h": BESIDE,
    "lib/activation/gelo.h": "did you mean lib/activation/gelu.h?",
    "lib/matmul_inft.h": "did you mean lib/matmul_intf.h?",
    "tiling/tiling_ap.h": "did you mean tiling/tiling_api.h?",
    "tiling_api.h": "did you mean tiling/tiling_api.h?",
    "tiling.h": BESIDE,
}


def run_with(folder: Path, header: str) -> tuple[int, str, str]:
    text = f'#include "kernel_operator.h"\n#include "{header}"\n'
    text += 'extern "C" __global__ __aicore__ void nothing(GM_ADDR x) {}\n'
    (folder / "k.cpp").write_text(text)
    np.save(folder / "x.npy", np.zeros(8, np.float32))
    return cli(folder, "run", "k.cpp", "--blocks", "1", "--arg", "x=x.npy")


def test_headers_of_the_kit_are_known_by_what_the_api_has(tmp_path: Path) -> None:
    text = "".join(f'#include "{name}"\n' for name in OF_KIT[1:])
    (tmp_path / "all.h").write_text(text)
    for header in (OF_KIT[0], "all.h"):
        assert run_with(tmp_path, header)[0] == 0


@pytest.mark.parametrize(("header", "remedy"), OTHERS.items())
def test_a_name_that_is_only_like_the_kits_is_no_header(
    tmp_path: Path, header: str, remedy: str
) -> None:
    code, out, err = run_with(tmp_path, header)
    assert (code, out) == (2, "")
    assert err == (
        f"k.cpp:2 includes {header}, which is neither beside it nor among cubecore's headers; "
        f"{remedy}\n"
    )


def test_host_code_does_not_include_a_kernels_header(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text('#include "lib/matmul_intf.h"\nint main() {}\n')
    code, out, err = cli(tmp_path, "c++", "main.cpp", "-c", "-o", "main.o")
    assert (code, out) == (2, "")
    assert err == (
        "main.cpp:1 includes lib/matmul_intf.h, which is neither beside it nor among cubecore's "
        "headers; kernels include it, host code tiling/tiling_api.h\n"
    )
