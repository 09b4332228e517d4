"""Accesses of C++ kernels to the buffers that a pipe gives: inside of one, and beyond its end."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
GIVEN = """TPipe pipe; TBuf<TPosition::VECCALC> a, b; TQue<QuePosition::VECIN, 1> q;
pipe.InitBuffer(a, 256); pipe.InitBuffer(q, 2, 512); pipe.InitBuffer(b, 128);
GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)x, 4096);
LocalTensor<float> t = a.Get<float>(), u = b.Get<float>();
"""
QUEUED = """LocalTensor<float> l = q.AllocTensor<float>(); DataCopy(l, g, {});
q.EnQue(l); l = q.DeQue<float>(); q.FreeTensor(l);"""
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
    "no pipe's": "LocalTensor<float> l(TPosition::VECCALC, 4096, 64); Duplicate(l, 1.0f, 128);",
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


@pytest.mark.parametrize("case", INSIDE)
def test_an_access_inside_of_its_buffer_has_no_finding(found, case):
    assert found[f"in{[*INSIDE].index(case)}"] == []


@pytest.mark.parametrize("case", BEYOND)
def test_an_access_beyond_its_buffer_is_found_with_both_extents(found, case):
    _, name, (low, high), (first, last) = BEYOND[case]
    assert found[f"out{[*BEYOND].index(case)}"] == [
        f"out-of-bounds: {name}.dst must stay inside its buffer of {high - low} B, bytes "
        f"[{low}, {high}) of UB, got bytes [{first}, {last})"
    ]
