"""Launches of threads that no chip runs: one sentence, exit code 2; objects and libraries."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import cli, demo, needs_compiler, write_files

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
KERNELS = """#include "simt_api/asc_simt.h"
__global__ __launch_bounds__(64) void bounded(int* x) { x[threadIdx.x] = 1; }
__global__ __maxnreg__(64) void registers(int* x) { x[threadIdx.x] = 1; }
__global__ void plain(int* x) { x[threadIdx.x] = 1; }
__global__ void fixed(int* x) {
  __ubuf__ int tile[60000];
  tile[threadIdx.x] = 1;
  x[threadIdx.x] = tile[threadIdx.x];
}
"""
RAISE = "raise __launch_bounds__, up to 2048: above 1024 a thread has 16 registers"
PARTS = "(256 KB without 8 KB of the system and 32 KB of the data cache)"
SENTENCES = {
    "bounded --block 65": "k.cpp:2 (bounded): the threads of a block must be at most 64, as its "
    f"launch bounds say, got 65; {RAISE}",
    "registers --block 513": "k.cpp:3 (registers): the threads of a block must be at most 512, as "
    "each has 64 registers, got 513; lower __maxnreg__: 2048 threads have 16 registers each, 1024 "
    "have 32, 512 have 64",
    "plain --block 1025": "k.cpp:4 (plain): the threads of a block must be at most 1024, as it has "
    f"no __launch_bounds__, got 1025; {RAISE}",
    "plain --block 2049": "a block must have 1 to 2048 threads, got 2049 (2049 x 1 x 1)",
    "plain --grid 65536": "the grid must have 1 to 65535 blocks, got 65536 (65536 x 1 x 1)",
    "plain --grid 256x256": "the grid must have 1 to 65535 blocks, got 65536 (256 x 256 x 1)",
    "plain --dynamic-ub 230000": "the dynamic UB of a block must be at most 221184 B "
    f"{PARTS}, got 230000 B",
    "fixed": "k.cpp:5 (fixed): the static and dynamic memory of a block must be at most 221184 B "
    f"{PARTS}, got 240000 B",
    "plain --chip Ascend910B3": "architecture 3510 runs kernels of threads (SIMT), as plain is "
    "one; Ascend910B3 is 2201",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("threads")
    write_files(folder, {"k.cpp": KERNELS})
    np.save(folder / "x.npy", np.zeros(4096, "i4"))
    return folder


@pytest.mark.parametrize("words", SENTENCES)
def test_a_launch_beyond_a_limit_is_refused_in_one_sentence(files, words):
    given = ("--chip", CHIP, "--grid", 1, "--block", 64, "--arg", "x=x.npy", "--entry")
    answer = cli(files, "run", "k.cpp", *given, *words.split())
    assert answer == (2, "", f"{SENTENCES[words]}\n")


RUN_NEITHER = "threads run neither virtual functions nor recursive ones"
REFUSED = {
    "__simt_callee__ int f(int n) { return n ? f(n - 1) : 0; }": "1: f calls itself",
    "__simt_callee__ int g(int n);\n__simt_callee__ int f(int n) { return g(n); }\n"
    "__simt_callee__ int g(int n) { return n ? f(n - 1) : 0; }": "2: f calls itself through g",
    "struct S { __simt_callee__ virtual int g() { return 1; } };": "1: g is virtual",
}


@pytest.mark.parametrize("text", REFUSED)
def test_functions_that_threads_cannot_run_are_refused(files, text):
    kernel = "__global__ void k(int* x) { x[threadIdx.x] = 1; }"
    write_files(files, {"f.cpp": f"{text}\n{kernel}"})
    answer = cli(files, "run", "f.cpp", "--chip", CHIP, "--block", 64, "--arg", "x=x.npy")
    assert answer == (2, "", f"f.cpp:{REFUSED[text]}; {RUN_NEITHER}\n")


OBJECTS = {
    "put.asc": "__aicore__ void put(int* x, int at) { x[at] = 5; }\n",
    "kernel.asc": """extern __aicore__ void put(int* x, int at);
__global__ void k(int* x, int from) { put(x, int(threadIdx.x) + from); }
void start(void* x, int from) { k<<<1, 64, 0, nullptr>>>((int*)x, from); }
void start_cores(void* x) { k<<<1, 64>>>((int*)x, 0); }
""",
    "main.cpp": """#include "acl/acl.h"
void start(void* x, int from);
void start_cores(void* x);
int main(int count, char** words) {
  void* x;
  aclrtMalloc(&x, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  count == 1 ? start(x, 0) : words[1][0] == 'c' ? start_cores(x) : start(x, 4000);
}
""",
}


def test_objects_with_code_of_threads_end_in_libraries(tmp_path):
    write_files(tmp_path, OBJECTS)
    arch = ("--npu-arch=dav-3510", "--enable-simt")
    for name in ("put", "kernel"):
        assert cli(tmp_path, "c++", "-dc", f"{name}.asc", "-o", f"{name}.o", *arch) == (0, "", "")
    objects, program = ("put.o", "kernel.o"), ("main.cpp", "-L.", "-lk", "-o")
    assert cli(tmp_path, "c++", "-lib", *objects, "-o", "libk.a") == (0, "", "")
    assert cli(tmp_path, "c++", *program, "static") == (0, "", "")
    assert demo(tmp_path, program="static") == (0, "", "")
    code, _, err = demo(tmp_path, "behind", program="static")
    assert (code, "out-of-bounds: put.asc:1: thread 0 of block 0 must" in err) == (1, True)
    assert demo(tmp_path, "cores", program="static") == (
        2,
        "",
        "kernel.asc:2 (k): a function of threads must be started by <<<grid, block, bytes, "
        "stream>>> or asc_vf_call, got a launch or call without a number of threads\n",
    )
    (tmp_path / "libk.a").unlink()
    assert cli(tmp_path, "c++", "-shared", *objects, "-o", "libk.so") == (0, "", "")
    words = (*program, "shared", f"-Wl,-rpath,{tmp_path}")
    assert cli(tmp_path, "c++", *words) == (0, "", "")
    assert demo(tmp_path, program="shared") == (0, "", "")


def test_a_library_of_both_kinds_of_cores_is_refused(tmp_path):
    write_files(tmp_path, OBJECTS)
    mark = b"cubecore's other part"
    (tmp_path / "both.so").write_bytes(b"first" + b"other" + (5).to_bytes(8, "little") + mark)
    assert cli(tmp_path, "c++", "main.cpp", "both.so") == (
        2,
        "",
        "both.so has kernels of AICs and AIVs, and libraries are linked for one kind; link their "
        "object files into the program\n",
    )
