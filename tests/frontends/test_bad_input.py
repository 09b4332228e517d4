"""One mistake in every front end: a finding, or one sentence.

Overlaps that no page describes, slices off their alignment and lengths of the run. Reserved fields
of MmadParams and of tilings, and arrays in C++, have tests beside their subjects.
"""

import numpy as np
import pytest

import cubecore
from cubecore import KernelError, RequestError, kernel
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile
from frontends.cpp.cpp_kernels import needs_compiler

GM, UB = "global", "local.UB"
WHOLE = np.ones(512, np.float16)
OVERLAP = (
    "overlap: vabs.dst must coincide with src, or keep apart from it, within a repeat, got repeat 0"
)
FEWER = (
    "overlap: vcgmax.dst must coincide with src, or keep apart from it, within a repeat, got "
    "repeat 0"
)
MISALIGNED = "misaligned: vabs.dst must start at a multiple of 32 B in UB, got 528"

CPP = """#include "c_api/asc_simd.h"
#define KERNEL(NAME, CALL)                                                                    \\
  extern "C" __global__ __aicore__ void NAME(__gm__ half* x, __gm__ half* y, uint32_t n) {    \\
    __ubuf__ half u[512];                                                                     \\
    asc_copy_gm2ub_sync(u, x, 1024);                                                          \\
    CALL;                                                                                     \\
    asc_copy_ub2gm_sync(y, u, 1024);                                                          \\
  }
KERNEL(meeting, asc_abs_sync(u + 16, u, 128))
KERNEL(fewer, asc_datablock_reduce_max_sync(u + 64, u, 512))
KERNEL(slice, asc_abs_sync(u + 256 + n, u, 128))
"""
CALLS = {
    "meeting": lambda core, u, _: core.asc_abs(u + 16, u, 128),
    "fewer": lambda core, u, _: core.asc_datablock_reduce_max(u + 64, u, 512),
    "slice": lambda core, u, n: core.asc_abs(u + 256 + n, u, 128),
}
LINES = {"meeting": OVERLAP, "fewer": FEWER, "slice": MISALIGNED}


def said(findings):
    return [f"{finding.id}: {finding.message}" for finding in findings]


def in_python(call):
    @kernel(outputs="y")
    def made(core, x, y, n):
        u = core.ubuf("half", 512)
        core.asc_copy_gm2ub(u, x, 1024)
        core.asc_sync()
        CALLS[call](core, u, n)
        core.asc_sync()
        core.asc_copy_ub2gm(y, u, 1024)

    return made[1](WHOLE, np.zeros(512, np.float16), 8).findings


@pytest.mark.parametrize("call", CALLS)
def test_in_python(call):
    assert said(in_python(call)) == [LINES[call]]


@needs_compiler
@pytest.mark.parametrize("call", CALLS)
def test_in_cpp(call):
    launched = getattr(cubecore.inline(CPP), call)[1]
    assert said(launched(WHOLE, np.zeros(512, np.float16), 8).findings) == [LINES[call]]


def in_tik(body):
    t = Tik(Dprofile("v100", "cloud"))
    x, y = (t.Tensor("float16", (512,), GM, name) for name in ("x", "y"))
    u = t.Tensor("float16", (512,), UB, "u")
    t.data_move(u, x, 0, 1, 32, 0, 0)
    body(t, u)
    t.data_move(y, u, 0, 1, 32, 0, 0)
    t.BuildCCE("k", [x], [y])
    return t.launch({"x": WHOLE}).findings


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (lambda t, u: t.vec_abs(128, u[16:], u, 1, 8, 8), OVERLAP),
        (lambda t, u: t.vcgmax(128, u[64:], u, 4, 1, 1, 8), FEWER),
        (
            lambda t, u: t.vec_abs(128, u[256 + t.Scalar("int32", init_value=8)], u, 1, 8, 8),
            MISALIGNED,
        ),
    ],
    ids=CALLS,
)
def test_in_tik(body, line):
    assert said(in_tik(body)) == [line]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (
            lambda t, u: t.vec_abs(128, u[264:], u, 1, 8, 8),
            "vec_abs.dst must start at a multiple of 32 B in UB, got 528 B into u",
        ),
        (
            lambda t, u: t.vec_abs(128, u, u, 1, 8, 8, 1),
            "vec_abs.stride_unit must be 0, got 1",
        ),
    ],
)
def test_what_tik_knows_while_it_builds_is_refused(body, line):
    with pytest.raises(RequestError) as caught:
        in_tik(body)
    assert str(caught.value).partition(": ")[2] == line


def test_a_length_of_the_run_is_an_array_in_tik_alone():
    """Its shapes may be Scalars; what reaches beyond the memory is refused."""

    def body(length):
        def declare(t, u):
            late = t.Tensor("float16", (t.Scalar("int32", init_value=length),), UB, "late")
            t.vec_abs(128, late[length - 128 :], u, 1, 8, 8)

        return declare

    assert in_tik(body(128)) == ()
    with pytest.raises(RequestError) as caught:
        in_tik(body(131_072))
    assert str(caught.value).partition(": ")[2] == (
        "vec_abs.dst must stay inside late (0 to 261120 B), got bytes [261888, 262144)"
    )

    @kernel
    def dynamic(core, n):
        core.ubuf("half", n)

    with pytest.raises(KernelError, match="an array's length must be known when the kernel is"):
        dynamic[1](128)
