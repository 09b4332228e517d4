"""Macros of -D have any name but the API's, and cubecore's headers do not see them."""

import string

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.frontends.cpp.toolchain.api_names import of_api
from frontends.cpp.cpp_kernels import EXAMPLES, cli, needs_compiler

pytestmark = needs_compiler
ADD = EXAMPLES / "vector_add.cpp"
LETTERS = tuple(string.ascii_uppercase)
NAMES = (
    *("MODE", "TILE_SIZE", "BLOCK", "SIZE", "DTYPE", "N_TILE", "COUNT", "TYPE", "KIND", "NAME"),
    *("SHAPE", "ROWS", "COLS", "DEPTH", "LEN", "OFFSET", "BATCH", "HEAD", "DIM", "NUMBER", "words"),
)
ALL = (*LETTERS, *NAMES)


def added(defines):
    x = np.arange(64, dtype=np.float32)
    z = np.zeros_like(x)
    cubecore.load(ADD, defines).add_queued[1](x, x, z, 64)
    return bool((z == 2 * x).all())


@pytest.mark.sweep
def test_macros_called_like_parameters_of_our_headers_compile():
    assert added(dict.fromkeys(ALL, "123"))


@pytest.mark.sweep
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", ["float", None])
def test_a_macro_of_any_name_compiles(name, value):
    assert added({name: value})


USED = """#include "kernel_operator.h"
#include "acl/acl.h"
#include "lib/matmul_intf.h"
#include "tiling/tiling_api.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  AscendC::GlobalTensor<T> g;
  g.SetGlobalBuffer((__gm__ T*)x);
  g.SetValue(0, (T)(TWICE N));
}
"""


def test_macros_are_the_kernels_whatever_headers_it_includes(tmp_path):
    """A macro may stand for a type, be empty, and be a piece of an expression."""
    (tmp_path / "k.cpp").write_text(USED)
    words = ("-D", "T=int16_t", "-D", "N=21", "-D", "A=", "-D", "TWICE=2 *")
    launch = ("--out-arg", "x=int16:1:y.npy", "--blocks", "1")
    code, _, err = cli(tmp_path, "run", "k.cpp", *words, *launch)
    assert (code, err) == (0, "")
    assert np.load(tmp_path / "y.npy")[0] == 42


OWN = """#define T float
#define N 21
#define MODE 2
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x) { ((__gm__ T*)x)[0] = N * MODE; }
"""


@pytest.mark.sweep
def test_a_kernel_may_define_such_macros_before_it_includes_the_headers():
    x = np.zeros(8, np.float32)
    cubecore.inline(OWN).k[1](x)
    assert x[0] == 42


@pytest.mark.parametrize(
    "name",
    [
        *("DataCopy", "half", "bfloat16_t", "int4b_t", "LocalTensor", "TQue", "EnQue", "Matmul"),
        *("IterateAll", "GM_ADDR", "TILING_KEY_IS", "GetBlockIdx", "asc_mmad", "TPosition"),
    ],
)
def test_a_macro_called_like_a_name_of_the_api_is_refused(tmp_path, name):
    need = f"be named unlike the AscendC API's own names, got {name}; rename the macro"
    words = ("run", ADD, "--entry", "add_queued", "--blocks", "1", "-D", f"{name}=1")
    assert cli(tmp_path, *words) == (2, "", f"the macro of -D {name}=1 must {need}\n")


def test_no_name_that_kernels_have_for_macros_is_of_the_api():
    assert of_api().isdisjoint(ALL)
    assert len(of_api()) > 900


@pytest.mark.parametrize("name", ["1N", "", "N M"])
def test_a_macro_without_a_name_is_refused(name):
    with pytest.raises(RequestError) as caught:
        added({name: "1"})
    assert str(caught.value) == f"-D must be NAME or NAME=VALUE, got '{name}=1'"


HOST = """#include <cstdio>
#include "acl/acl.h"
int main() { printf("%d\\n", N * int(sizeof(T))); }
"""


def test_macros_of_host_code_compile(tmp_path):
    (tmp_path / "main.cpp").write_text(HOST)
    words = ("-DT=float", "-DN=21", "-DM=9", "-U", "M", "-c", "-o", "main.o")
    assert cli(tmp_path, "c++", "main.cpp", *words) == (0, "", "")


ABOVE = "".join(f"#define {name} 123\n" for name in ALL) + "#undef T\n#define T float\n"
OF_HOST = (
    *("acl/acl.h", "tiling/tiling_api.h", "tiling/platform/platform_ascendc.h", "securec.h"),
    *("kernel_tiling/kernel_tiling.h", "lib/matmul/bmm_tiling.h", "adv_api/math/power_tiling.h"),
    *("platform/platform_ascendc.h", "register/tilingdata_base.h"),
)
ASKING = """
int main() {
  matmul_tiling::MultiCoreMatmulTiling tiling;
  return N * int(sizeof(T)) == 492 ? 0 : 1;
}
"""


def test_macros_above_the_includes_of_host_code_compile(tmp_path):
    for number, header in enumerate(OF_HOST):
        includes = f'#include "{header}"\n#include "tiling/tiling_api.h"\n'
        (tmp_path / f"main{number}.cpp").write_text(ABOVE + includes + ASKING)
        words = (f"main{number}.cpp", "-c", "-o", "main.o")
        assert cli(tmp_path, "c++", *words) == (0, "", ""), header


def test_a_header_of_the_users_is_read_where_it_is_included(tmp_path):
    """It has the name of one of cubecore's, and asks for the macro above."""
    (tmp_path / "securec.h").write_text("inline int size() { return N; }\n")
    text = '#define N 21\n#include "securec.h"\nint main() { return size() - 21; }\n'
    (tmp_path / "main.cpp").write_text(text)
    assert cli(tmp_path, "c++", "main.cpp", "-c", "-o", "main.o") == (0, "", "")


@pytest.mark.sweep
def test_macros_above_the_includes_of_a_program_with_kernels_compile(tmp_path):
    text = (
        ABOVE
        + """#include "tiling/tiling_api.h"
#include "acl/acl.h"
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void k(GM_ADDR x) { ((__gm__ T*)x)[0] = N; }
int main() {
  matmul_tiling::MultiCoreMatmulTiling tiling;
  void* x;
  aclrtMalloc(&x, 32, ACL_MEM_MALLOC_HUGE_FIRST);
  k<<<1, nullptr, nullptr>>>((uint8_t*)x);
  float read = 0;
  aclrtMemcpy(&read, 4, x, 4, ACL_MEMCPY_DEVICE_TO_HOST);
  return read == 123 ? 0 : 1;
}
"""
    )
    (tmp_path / "k.cpp").write_text(text)
    assert cli(tmp_path, "run", "k.cpp")[::2] == (0, "")


def test_a_macro_with_a_wrong_value_is_told_at_the_line_that_uses_it(tmp_path):
    (tmp_path / "k.cpp").write_text(OWN.replace("#define N 21\n", ""))
    code, out, err = cli(tmp_path, "run", "k.cpp", "--blocks", "1", "-D", "N=wrong")
    assert (code, out) == (2, "")
    assert err.startswith("k.cpp:4 does not compile: 'wrong' was not declared in this scope; ")
