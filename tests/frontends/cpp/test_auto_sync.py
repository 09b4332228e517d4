"""Automatic synchronisation: what the compiler orders is ordered, and nothing else."""

from functools import cache

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import cli, kernels, needs_compiler
from frontends.cpp.test_launch import ADD, SHARE, N

pytestmark = needs_compiler
FRAME = """
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> a(TPosition::VECCALC, 0, 192), b(TPosition::VECCALC, 256, 64);
  LocalTensor<float> c(TPosition::VECCALC, 512, 576);
  DataCopy(a, from, 64);
  {loaded}
  {body}
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  {stored}
  DataCopy(to, b, 64);
"""
LOADED = "SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);"


def kernel_of(body, loaded=LOADED, stored=""):
    """Return the name of a kernel; all of this file are compiled together."""
    text = FRAME.format(body=body, loaded=loaded, stored=stored)
    return BODIES.setdefault(text, f"k{len(BODIES)}")


@cache
def compiled():
    return kernels({name: text for text, name in BODIES.items()}, "GM_ADDR x, GM_ADDR z")


def run(name, auto_sync):
    """Return a launch's result, its findings' ids, and the number of its instructions."""
    x, z = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    done = compiled()[name].changed(auto_sync=auto_sync)[1](x, z)
    return z, [finding.id for finding in done.findings], done.issued


BODIES = {}
X = np.arange(64, dtype=np.float32)
CASES = {
    "V writes, V reads": ("Adds(c, a, 1.0f, 64); Muls(b, c, 2.0f, 64);", 2 * (X + 1), 1),
    "V reads, V writes": ("Adds(b, a, 1.0f, 64); Muls(a, a, 2.0f, 64);", X + 1, 1),
    "V writes, V writes": ("Adds(b, a, 1.0f, 64); Muls(b, a, 2.0f, 64);", 2 * X, 1),
    "V writes, S reads": ("Adds(b, a, 1.0f, 64); ascendc_assert(b.GetValue(5) == 6);", X + 1, 2),
    "V writes more than a repeat, V reads": (
        "Duplicate(a, 1.0f, 192); Muls(b, c, 2.0f, 64);", 2 + 0 * X, 1,
    ),
    "MTE2 writes, S reads": (
        "ascendc_assert(a.GetValue(7) == 7); Adds(b, a, 1.0f, 64);", X + 1, 2,
    ),
    "V writes by a count, V reads": (
        "SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(192);\n"
        "Duplicate<float, false>(a, 1.0f, MASK_PLACEHOLDER, 1, 1, 8); SetMaskNorm(); ResetMask();\n"
        "Muls(b, c, 2.0f, 64);", 2 + 0 * X, 1,
    ),
    "V writes less by a count than it repeats, V reads": (
        "SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(60);\n"
        "Duplicate<float, false>(c[64], 1.0f, MASK_PLACEHOLDER, 8, 1, 8); SetMaskNorm();\n"
        "ResetMask(); Muls(b, a, 2.0f, 64);", 2 * X, 0,
    ),
    "S writes, V reads": (
        "a.SetValue(0, 9.0f); Adds(b, a, 1.0f, 64);", np.r_[10, X[1:] + 1], 4,
    ),
    "V reads by offsets, V writes": (
        "LocalTensor<uint32_t> at(TPosition::VECCALC, 1024, 64);\n"
        "LocalTensor<float> far(TPosition::VECCALC, 768, 8);\n"
        "Duplicate(at.ReinterpretCast<int32_t>(), 768, 64); Duplicate(far, 1.0f, 8);\n"
        "PipeBarrier<PIPE_V>(); Gather(b, a, at, 0u, 64u); Duplicate(far, 2.0f, 8);",
        0 * X + 1, 1,
    ),
    "V reads bits, V writes": (
        "LocalTensor<uint8_t> bits(TPosition::VECCALC, 512, 32);\n"
        "LocalTensor<float> other(TPosition::VECCALC, 1024, 64);\n"
        "Duplicate(other, -1.0f, 64); CompareScalar(bits, a, 31.0f, CMPMODE::GT, 64);\n"
        "PipeBarrier<PIPE_V>(); Select(b, bits, a, other, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64u);\n"
        "Duplicate(c, 5.0f, 64);", np.where(X > 31, X, -1), 1,
    ),
}  # fmt: skip


AGAIN = kernel_of(
    "LocalTensor<float> many(TPosition::VECCALC, 4096, 192);"
    "Duplicate(many, 0.0f, 192); PipeBarrier<PIPE_ALL>();"
    "for (int n = 0; n < 192; n += 8) {"
    "  many.SetValue(n, float(n)); PipeBarrier<PIPE_V>(); Adds(b[n % 64], many[n], 1.0f, 8); }"
)
KERNELS = {name: kernel_of(body) for name, (body, *_) in CASES.items()}
ORDERED = kernel_of("Adds(c, a, 1.0f, 64); PipeBarrier<PIPE_V>(); Muls(b, c, 2.0f, 64);")
UNORDERED = {
    "loaded": kernel_of("Adds(b, a, 1.0f, 64);", loaded=""),
    "stored": kernel_of(
        "Adds(b, a, 1.0f, 64);", stored="PipeBarrier<PIPE_ALL>(); Adds(b, a, 2.0f, 64);"
    ),
}
RAW = kernel_of("""
      __ubuf__ float* p = (__ubuf__ float*)512;
      asc_add_scalar(p, (__ubuf__ float*)0, 1.0f, 64);
      asc_mul_scalar((__ubuf__ float*)256, p, 2.0f, 64);
""")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned(2)
def test_a_dependence_is_ordered_where_the_compiler_orders_it(name):
    _, exact, inserted = CASES[name]
    value, found, issued = run(KERNELS[name], auto_sync=True)
    assert found == []
    assert np.array_equal(value, exact)
    _, races, plain = run(KERNELS[name], auto_sync=False)
    assert issued - plain == inserted
    assert bool(races) is bool(inserted)
    assert all(race.startswith("race-") for race in races)


def test_a_flag_is_set_again_only_behind_its_wait():
    """The scalar unit goes on without waiting for V, three times as often as there are events."""
    value, found, _ = run(AGAIN, auto_sync=True)
    assert found == []
    assert np.array_equal(value, np.where(X % 8 == 0, X + 129, 1))


def test_what_other_flags_order_needs_nothing():
    assert run(ORDERED, auto_sync=True)[2] == run(ORDERED, auto_sync=False)[2]
    x, y, z = np.ones((3, N), np.float32)
    issued = {
        cubecore.load(ADD, auto_sync=given).add_queued[8](x, y, z, SHARE).issued
        for given in (True, False)
    }
    assert len(issued) == 1


def test_copies_and_vector_instructions_are_never_ordered():
    assert run(UNORDERED["loaded"], auto_sync=True)[1] == ["race-raw"]
    assert "race-raw" in run(UNORDERED["stored"], auto_sync=True)[1]


def test_the_c_api_is_never_ordered():
    assert run(RAW, auto_sync=True)[1] == ["race-raw"]


def test_the_command_line_says_which(tmp_path):
    body = FRAME.format(body=CASES["V writes, V reads"][0], loaded=LOADED, stored="")
    text = f"""#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR z) {{ {body} }}
"""
    (tmp_path / "k.cpp").write_text(text)
    np.save(tmp_path / "x.npy", X)
    words = ("run", "k.cpp", "--blocks", "1", "--arg", "x=x.npy", "--out-arg", "z=float32:64:z.npy")
    assert cli(tmp_path, *words)[0] == 0
    assert cli(tmp_path, *words, "--auto-sync", "on")[0] == 0
    code, out, _ = cli(tmp_path, *words, "--auto-sync", "off")
    assert (code, out.count("race-raw")) == (1, 1)
    code, _, err = cli(tmp_path, *words, "--auto-sync", "no")
    assert (code, err.startswith("--auto-sync must be ")) == (2, True)


PROGRAM = """#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;
__global__ __vector__ void k(GM_ADDR x, GM_ADDR z) {{ {body} }}
int main() {{
  uint8_t *x, *z;
  aclrtMalloc((void**)&x, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&z, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(x, 256, 0, 256);
  k<<<1, nullptr, nullptr>>>(x, z);
  return 0;
}}
"""


@pytest.mark.sweep
def test_a_program_says_it_when_it_is_compiled(tmp_path):
    body = FRAME.format(body=CASES["V writes, V reads"][0], loaded=LOADED, stored="")
    (tmp_path / "p.asc").write_text(PROGRAM.format(body=body))
    for given, code in (("--cce-auto-sync=on", 0), ("--cce-auto-sync=off", 1)):
        assert cli(tmp_path, "c++", given, "p.asc", "-o", "demo") == (0, "", "")
        found, out, _ = cli(tmp_path, "run", "demo")
        assert (found, out.count("race-raw")) == (code, code)
        assert cli(tmp_path, "run", "demo", "--auto-sync", "off")[0] == 1
    said = "--cce-auto-sync must be on or off, got no\n"
    assert cli(tmp_path, "c++", "--cce-auto-sync=no", "p.asc") == (2, "", said)
