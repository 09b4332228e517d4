"""Constants of a kernel's file that are read as global memory."""

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import cli, kernel, kernels, needs_compiler

pytestmark = needs_compiler

TABLES = """
const static __gm__ half HALVES[32] = {0.5, 1.5, 2.5, -3.5, 4, 5, 6, 7};
namespace own { __gm__ const float TABLE[3][8] = {{1, 2}, {3, 4, 5, 6, 7, 8, 9, 10}, {-1}}; }
struct Of { static constexpr uint32_t WORDS[4] = {10, 20, 30, 40}; };
static __gm__ float CHANGED[8] = {1};
static int calls = 0;
"""
COPY = """
  GlobalTensor<{type}> from, to;
  from.SetGlobalBuffer({from_});
  to.SetGlobalBuffer((__gm__ {type}*)x);
  LocalTensor<{type}> held(TPosition::VECCALC, 0, 64);
  DataCopy(held, from, {count});
  PipeBarrier<PIPE_ALL>();
  DataCopy(to[{to}], held, {count});
"""
BODIES = {
    "halves": COPY.format(type="half", from_="(__gm__ half*)HALVES, 32", to=0, count=32),
    "rows": COPY.format(
        type="float",
        from_="(__gm__ float*)own::TABLE[GetBlockIdx()], 8",
        to="GetBlockIdx() * 8",
        count=8,
    ),
    "read": """
      GlobalTensor<uint32_t> words, to;
      words.SetGlobalBuffer((__gm__ uint32_t*)Of::WORDS, 4);
      to.SetGlobalBuffer((__gm__ uint32_t*)x, 4);
      for (int n = 0; n < 3; ++n) to.SetValue(n, words.GetValue(n + 1) + Of::WORDS[n]);
    """,
    "beyond": COPY.format(type="float", from_="(__gm__ float*)own::TABLE + 16", to=0, count=16),
    "changed": COPY.format(type="float", from_="CHANGED", to=0, count=8),
}


@pytest.fixture(scope="module", params=["", "++calls;"], ids=["once", "a library a core"])
def module(request):
    """Kernels that read tables of their file; with a variable each core has its own library."""
    bodies = {name: request.param + body for name, body in BODIES.items()}
    return kernels(bodies, "GM_ADDR x", TABLES)


@pytest.mark.thinned(2)
def test_tables_are_copied(module):
    x = np.zeros(32, np.float16)
    assert module.halves[1](x).findings == ()
    assert x.tolist() == [0.5, 1.5, 2.5, -3.5, 4, 5, 6, 7] + [0] * 24
    y = np.zeros((3, 8), np.float32)
    assert module.rows[3](y).findings == ()
    assert y.tolist() == [[1, 2] + [0] * 6, [3, 4, 5, 6, 7, 8, 9, 10], [-1] + [0] * 7]


def test_elements_are_read(module):
    """The kernel is called like a function of C's library, which it must not call instead."""
    x = np.zeros(4, np.uint32)
    assert module.read[1](x).findings == ()
    assert x.tolist() == [30, 50, 70, 0]


def test_a_copy_that_leaves_its_table_is_found(module):
    found = [f.message for f in module.beyond[1](np.zeros(16, np.float32)).findings]
    assert found[0].startswith("copy_gm_to_ubuf.src must stay inside ")
    assert "TABLE" in found[0]
    assert "(0 to 96 B), got bytes [64, 128)" in found[0]


def test_a_variable_is_refused(module):
    with pytest.raises(CubecoreError) as refused:
        module.changed[1](np.zeros(8, np.float32))
    said = "must be a constant to be read as global memory, got a variable of the kernel's"
    assert said in str(refused.value)


def test_an_aic_reads_tables_of_its_file():
    body = """
      GlobalTensor<half> from;
      from.SetGlobalBuffer((__gm__ half*)HALVES, 32);
      LocalTensor<half> a1(TPosition::A1, 0, 32);
      DataCopy(a1, from, 32);
      PipeBarrier<PIPE_ALL>();
      asc_copy_l12gm((__gm__ half*)x, (__cbuf__ half*)a1.GetPhyAddr(), 1, 2, 0, 0);
    """
    x = np.zeros(32, np.float16)
    before = TABLES + "void other() { LocalTensor<float> c; Mmad(c, c, c, MmadParams()); }"
    assert kernel(body, before=before)[1](x).findings == ()
    assert x[:4].tolist() == [0.5, 1.5, 2.5, -3.5]


PROGRAM = """
#include "acl/acl.h"
#include "kernel_operator.h"
#include <cstdio>
using namespace AscendC;
const static __gm__ float TABLE[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__global__ __vector__ void twice(GM_ADDR x) {
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)TABLE, 8);
  to.SetGlobalBuffer((__gm__ float*)x);
  LocalTensor<float> a(TPosition::VECCALC, 0, 8);
  DataCopy(a, from, 8);
  PipeBarrier<PIPE_ALL>();
  SetAtomicAdd<float>();
  DataCopy(to, a, 8);
  SetAtomicNone();
}
int main() {
  float host[8] = {};
  void *device, *more;
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtMalloc(&device, sizeof(host), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(device, sizeof(host), host, sizeof(host), ACL_MEMCPY_HOST_TO_DEVICE);
  twice<<<1, nullptr, nullptr>>>((GM_ADDR)device);
  aclrtMalloc(&more, sizeof(host), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(more, sizeof(host), 0, sizeof(host));
  twice<<<1, nullptr, nullptr>>>((GM_ADDR)device);
  twice<<<1, nullptr, nullptr>>>((GM_ADDR)more);
  aclrtSynchronizeDevice();
  float sum = 0;
  for (void* each : {device, more}) {
    aclrtMemcpy(host, sizeof(host), each, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST);
    for (float value : host) sum += value;
  }
  std::printf("sum %g\\n", sum);
}
"""


def test_launches_of_a_program_read_a_table(tmp_path):
    (tmp_path / "twice.asc").write_text(PROGRAM)
    code, out, _ = cli(tmp_path, "run", "twice.asc")
    assert (code, "sum 108" in out) == (0, True)
