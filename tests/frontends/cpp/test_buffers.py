"""Accesses of C++ kernels to the buffers that a pipe gives: inside of one, and beyond its end."""

import functools
import re

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
GIVEN = """TPipe pipe; TBuf<TPosition::VECCALC> a, b; TQue<QuePosition::VECIN, 1> q;
pipe.InitBuffer(a, 256); pipe.InitBuffer(q, 2, 512); pipe.InitBuffer(b, 128);
GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)x, 4096);
LocalTensor<float> t = a.Get<float>(), u = b.Get<float>();
"""
QUEUED = """LocalTensor<float> l = q.AllocTensor<float>(); DataCopy(l, g, {});
q.EnQue(l); l = q.DeQue<float>(); q.FreeTensor(l);"""
PLACED = "LocalTensor<float> l(TPosition::VECCALC, 4096, 64);"
ALLOCATED = "LocalMemAllocator m; LocalTensor<float> l = m.Alloc<float, 64>();"
INSIDE = {
    "whole": "Duplicate(t, 1.0f, 64);",
    "masked": "Duplicate(u, 1.0f, uint64_t(32), 1, 1, 8);",
    "counted": "SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(32);"
    "Duplicate<float, false>(u, 1.0f, MASK_PLACEHOLDER, 1, 1, 8); SetMaskNorm(); ResetMask();",
    "queue": QUEUED.format(128),
    "other type": "LocalTensor<half> h = t.ReinterpretCast<half>(); Duplicate(h, half(1), 128);",
    "two views": "Duplicate(t[32], 1.0f, 32); Duplicate(t, 1.0f, 32);",
    "longer on purpose": "LocalTensor<float> l = a.Get<float>(128); Duplicate(l, 1.0f, 128);",
    "given anew": "pipe.Reset(); pipe.InitBuffer(a, 1024);"
    "LocalTensor<float> l = a.Get<float>(); Duplicate(l, 1.0f, 256);",
    "of its length": "Duplicate(t[56], 1.0f, 8); t.SetValue(63, 1.0f); t(62) = t.GetValue(63);",
    "address of its own": "t.address_.bufferAddr = 1280; Duplicate(t, 1.0f, 32);",
    "part": "LocalTensor<float> l = b.GetWithOffset<float>(8, 32); Duplicate(l[16], 1.0f, 8);",
    "nothing beyond": "Duplicate(t[64], 1.0f, 0);",
    "placed": PLACED + "Duplicate(l[48], 1.0f, 16); Adds(l, l, 1.0f, 4, 2, {1, 1, 7, 7});"
    "l.SetValue(63, 1.0f); Duplicate(l.ReinterpretCast<half>()[64], half(1), 64);",
    "placed, the rest of its block": "LocalTensor<float> l(TPosition::VECCALC, 4096, 60);"
    "Duplicate(l, 1.0f, 64);",
    "placed, lengthened": PLACED + "l.SetSize(128); Duplicate(l, 1.0f, 128);",
    "placed, moved": PLACED + "l.address_.bufferAddr = 8192; Duplicate(l, 1.0f, 128);",
    "placed without a length": "LocalTensor<float> l(TPosition::VECCALC, 4096, 0);"
    "Duplicate(l, 1.0f, 64);",
    "placed at one address": PLACED + "LocalTensor<half> m(TPosition::VECCALC, 4096, 512);"
    "Duplicate(m, half(1), 512);",
    "placed at one address, together": PLACED
    + "LocalTensor<float> m(TPosition::VECCALC, 4096, 128);"
    "Duplicate(m, 1.0f, 128); Adds(m, l, 1.0f, 64); Adds(l, m, 1.0f, 64); Muls(m, m, 2.0f, 128);",
}
BEYOND = {
    "whole": ("Duplicate(t, 1.0f, 65);", "vector_dup", (0, 256), (0, 260)),
    "view": ("Duplicate(t[32], 1.0f, 33);", "vector_dup", (0, 256), (128, 260)),
    "masked": (
        "Duplicate(u, 1.0f, uint64_t(33), 1, 1, 8);", "vector_dup", (1280, 1408), (1280, 1412),
    ),
    "queue": (QUEUED.format(136), "copy_gm_to_ubuf", (256, 768), (256, 800)),
    "other type": (
        "LocalTensor<half> h = t.ReinterpretCast<half>(); Duplicate(h, half(1), 129);",
        "vector_dup", (0, 256), (0, 258),
    ),
    "placed": (PLACED + "Duplicate(l, 1.0f, 65);", "vector_dup", (4096, 4352), (4096, 4356)),
    "placed, view": (
        PLACED + "Duplicate(l[32], 1.0f, 64);", "vector_dup", (4096, 4352), (4224, 4480),
    ),
    "placed, masked": (
        PLACED + "Duplicate(l, 1.0f, uint64_t(8), 2, 1, 8);", "vector_dup", (4096, 4352),
        (4096, 4384),
    ),
    "placed, other type": (
        PLACED + "Duplicate(l.ReinterpretCast<half>(), half(1), 129);", "vector_dup", (4096, 4352),
        (4096, 4354),
    ),
    "placed, begins behind": (
        PLACED + "Duplicate(l[64], 1.0f, 8);", "vector_dup", (4096, 4352), (4352, 4384),
    ),
    "placed by an allocator": (
        ALLOCATED + "DataCopy(l, g, 128);", "copy_gm_to_ubuf", (0, 256), (0, 512),
    ),
    "begins behind": ("Duplicate(t[64], 1.0f, 32);", "vector_dup", (0, 256), (256, 384)),
    "begins far behind": ("Duplicate(t[320][8], 1.0f, 8);", "vector_dup", (0, 256), (1312, 1344)),
    "stride": ("Duplicate(t, 1.0f, uint64_t(8), 2, 1, 16);", "vector_dup", (0, 256), (0, 544)),
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    """Return the messages of memcheck, by kernel."""
    bodies = {f"in{n}": GIVEN + body for n, body in enumerate(INSIDE.values())}
    bodies |= {f"out{n}": GIVEN + body for n, (body, *_) in enumerate(BEYOND.values())}
    module = kernels(bodies, checks="memcheck")
    runs = {name: module[name][1](np.ones(4096, np.float32)) for name in bodies}
    return {name: [f"{f.id}: {f.message}" for f in run.findings] for name, run in runs.items()}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("case", INSIDE)
def test_an_access_inside_of_its_buffer_has_no_finding(found, case):
    notes = [each for each in found[f"in{[*INSIDE].index(case)}"] if "long-tensor: " in each]
    assert found[f"in{[*INSIDE].index(case)}"] == notes
    assert len(notes) == (case == "longer on purpose")


@pytest.mark.parametrize("case", BEYOND)
def test_an_access_beyond_its_buffer_is_found_with_both_extents(found, case):
    _, name, (low, high), (first, last) = BEYOND[case]
    assert found[f"out{[*BEYOND].index(case)}"] == [
        f"out-of-bounds: {name}.dst must stay inside its buffer of {high - low} B, bytes "
        f"[{low}, {high}) of UB, got bytes [{first}, {last})"
    ]


SCALARS = {
    "GetValue": "t.SetValue(0, t.GetValue(64));",
    "SetValue": "t.SetValue(64, 1.0f);",
    "operator()": "t(64) = 1.0f;",
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("call", SCALARS)
def test_a_scalar_access_behind_its_buffer_is_found(call):
    """The element is the first one of the next buffer."""
    body = GIVEN + "Duplicate(t, 1.0f, 64); PipeBarrier<PIPE_ALL>();" + SCALARS[call]
    run = kernels({"k": body}, checks="memcheck").k[1](np.ones(4096, np.float32))
    assert [f"{f.id}: {f.message}" for f in run.findings] == [
        f"out-of-bounds: {call}: an element must lie inside its buffer of 256 B, bytes [0, 256) of "
        "UB, got bytes [256, 260)"
    ]


CUBE = """
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  TPipe pipe;
  TBuf<TPosition::A1> l1, next;
  TBuf<TPosition::A2> l0a;
  TBuf<TPosition::B2> l0b;
  TBuf<TPosition::CO1> l0c, other;
  pipe.InitBuffer(l1, 1024); pipe.InitBuffer(next, 1024);
  pipe.InitBuffer(l0a, 512); pipe.InitBuffer(l0b, 512);
  pipe.InitBuffer(l0c, 1024); pipe.InitBuffer(other, 1024);
  LocalTensor<half> a = l1.Get<half>(), left = l0a.Get<half>(), right = l0b.Get<half>();
  LocalTensor<float> c = l0c.Get<float>();
  GlobalTensor<half> g;
  g.SetGlobalBuffer((__gm__ half*)x, 4096);
  DataCopy(a, g, @copied);
  SetFlag<HardEvent::MTE2_MTE1>(0); WaitFlag<HardEvent::MTE2_MTE1>(0);
  LoadData2DParams p;
  p.repeatTimes = 1; p.srcStride = 1;
  LoadData(left, a[@from], p);
  p.ifTranspose = true;
  LoadData(right, a, p);
  SetFlag<HardEvent::MTE1_M>(0); WaitFlag<HardEvent::MTE1_M>(0);
  Mmad(c[@to], left, right, {16, @n, 16, false, 0, false, false, false});
"""
PRODUCTS = {
    "inside": ((512, 0, 0, 16), []),
    "l1 beyond": ((528, 0, 0, 16), [("copy_gm_to_cbuf.dst", 1024, "L1", (0, 1056))]),
    "l1 behind": ((512, 512, 0, 16), [("load_cbuf_to_ca.src", 1024, "L1", (1024, 1536))]),
    "l0 beyond": (
        (512, 0, 0, 32),
        [("mad.b", 512, "L0B", (0, 1024)), ("mad.c", 1024, "L0C", (0, 2048))],
    ),
    "l0c behind": ((512, 0, 256, 16), [("mad.c", 1024, "L0C", (1024, 2048))]),
}
PLACED_CUBE = re.sub(
    r"TPipe pipe;.*(?=GlobalTensor)",
    "LocalTensor<half> a(TPosition::A1, 0, 512), left(TPosition::A2, 0, 256);"
    "LocalTensor<half> right(TPosition::B2, 0, 256); LocalTensor<float> c(TPosition::CO1, 0, 256);",
    CUBE,
    flags=re.DOTALL,
)
"""The same of tensors that begin at one address, each of another memory."""


@pytest.fixture(scope="module")
def products():
    """Return the run of each product, by its case and its text."""
    bodies = {
        (case, text): functools.reduce(
            lambda body, pair: body.replace(f"@{pair[0]}", str(pair[1])),
            zip(("copied", "from", "to", "n"), given, strict=True),
            text,
        )
        for case, (given, _) in PRODUCTS.items()
        for text in (CUBE, PLACED_CUBE)
    }
    module = kernels({f"k{n}": body for n, body in enumerate(bodies.values())}, checks="memcheck")
    return {key: module[f"k{n}"][1](np.ones(4096, np.float32)) for n, key in enumerate(bodies)}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", [CUBE, PLACED_CUBE], ids=["given", "placed"])
@pytest.mark.parametrize("case", PRODUCTS)
def test_buffers_of_the_cube_have_ends(products, case, text):
    _, wanted = PRODUCTS[case]
    run = products[case, text]
    assert {f"{f.id}: {f.message}" for f in run.findings} == {
        f"out-of-bounds: {name} must stay inside its buffer of {size} B, bytes [0, {size}) of "
        f"{memory}, got bytes [{first}, {last})"
        for name, size, memory, (first, last) in wanted
    }


ARRAYS = """#include "c_api/asc_simd.h"
extern "C" __global__ __aicore__ void k(__gm__ float* x) {
  __ubuf__ float a[64];
  __ubuf__ float last[64];
  asc_duplicate(a, 1.0f, 64);
  asc_duplicate(BODY);
}
"""


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("body", "extent"),
    [
        ("last + 8, 2.0f, 56", None),
        ("last + 8, 2.0f, 57", (256, 512, 288, 516)),
        ("a + 32, 2.0f, 64", (0, 256, 128, 384)),
    ],
)
def test_an_access_of_the_c_api_stays_inside_its_array(body, extent):
    run = cubecore.inline(ARRAYS.replace("BODY", body), checks="memcheck").k[1](np.ones(8, "f4"))
    said = (
        "vector_dup.dst must stay inside its buffer of 256 B, bytes [{}, {}) of UB, "
        "got bytes [{}, {})"
    )
    assert [f.message for f in run.findings] == ([] if extent is None else [said.format(*extent)])


def test_arrays_beside_addresses_of_ones_own_are_not_judged():
    """Both begin at 0: which of the two an access is of is not known."""
    text = ARRAYS.replace("BODY", "last + 8, 2.0f, 57").replace(
        "  asc_duplicate(a, 1.0f, 64);",
        "  AscendC::LocalTensor<float> t(AscendC::TPosition::VECCALC, 0, 256);\n"
        "  AscendC::Duplicate(t, 1.0f, 256);",
    )
    text = text.replace('#include "c_api', '#include "kernel_operator.h"\n#include "c_api', 1)
    assert cubecore.inline(text, checks="memcheck").k[1](np.ones(8, "f4")).findings == ()
