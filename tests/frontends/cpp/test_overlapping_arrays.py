"""Tensors and arrays of C++ kernels that share bytes, where one destroys what the other holds.

A finding names both writes, the read and the shared bytes; with or without a barrier between the
writes. Moved apart, and where memory is used again on purpose, nothing is found.
"""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
BARRIERS = {"": "", "barrier": "PipeBarrier<PIPE_MTE2>();"}
OVERLAPS = (32, 96, 256, 512)
APART = 0
GIVEN = {
    "addresses": "LocalTensor<float> a(TPosition::VECIN, 0, 256), b(TPosition::VECIN, {at}, 256),"
    " c(TPosition::VECOUT, 8192, 256);",
    "one buffer": "TPipe pipe; TBuf<TPosition::VECCALC> all; pipe.InitBuffer(all, 16384);"
    " auto a = all.GetWithOffset<float>(256, 0), b = all.GetWithOffset<float>(256, {at}),"
    " c = all.GetWithOffset<float>(256, 8192);",
    "a queue and an address": "TPipe pipe; TQue<QuePosition::VECIN, 1> q; TBuf<> out;"
    " pipe.InitBuffer(q, 1, 1024); pipe.InitBuffer(out, 8192);"
    " auto a = q.AllocTensor<float>(), c = out.Get<float>()[1024];"
    " LocalTensor<float> b(TPosition::VECCALC, {at}, 256);",
    "other types": "LocalTensor<half> h(TPosition::VECIN, 0, 512);"
    " auto a = h.ReinterpretCast<float>(); LocalTensor<int32_t> n(TPosition::VECIN, {at}, 256);"
    " auto b = n.ReinterpretCast<float>(); LocalTensor<float> c(TPosition::VECOUT, 8192, 256);",
    "too short a tensor": "LocalTensor<float> a(TPosition::VECIN, 0, {at} / 4),"
    " b(TPosition::VECIN, {at}, 256), c(TPosition::VECOUT, 8192, 256);",
    "too short an allocation": "LocalMemAllocator<Hardware::UB> ub;"
    " auto a = ub.Alloc<float>({at} / 4), b = ub.Alloc<float>(256);"
    " LocalTensor<float> c(TPosition::VECOUT, 8192, 256);",
}
"""Three tensors of 256 floats, the second from byte `at` on; one line each."""
SUM = """GlobalTensor<float> gx, gy, gz; gx.SetGlobalBuffer((__gm__ float*)x);
gy.SetGlobalBuffer((__gm__ float*)y); gz.SetGlobalBuffer((__gm__ float*)z + 256 * GetBlockIdx());
{given}
DataCopy(a, gx, 256);
{between}
DataCopy(b, gy, 256);
SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
Add(c, a, b, 256);
SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
DataCopy(gz, c, 256);"""
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR z"


def destroyed(lost: str, over: str, read: str, mem: str, arrays: tuple[int, ...]) -> list[str]:
    """Return the only line: `arrays` are the ends of the bytes of both, which are shared last."""
    a, b, c, d = arrays
    return [
        f"array-overwritten: {over} must not overwrite bytes [{c}, {b}) of {mem} before {read} has "
        f"read the result of {lost} there, got arrays in bytes [{a}, {b}) and [{c}, {d}) that "
        f"share [{c}, {b}); move one of them, as no barrier fixes it"
    ]


def told(run) -> list[str]:
    return [f"{finding.id}: {finding.message}" for finding in run.findings]


def launched(bodies, **options):
    """Return what is found in each kernel, by its name."""
    named = {f"k{n}": body for n, body in enumerate(bodies.values())}
    module = kernels(named, PARAMETERS, **options)
    given = [np.full(16384, n + 1, np.float32) for n in range(3)]
    runs = [module[name][2](*given) for name in named]
    return {name: told(run) for name, run in zip(bodies, runs, strict=True)}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("engine", ["lockstep", "reference"])
def test_two_tensors_in_ub(engine):
    bodies = {
        (given, between, overlap): SUM.format(
            given=text.format(at=1024 - overlap), between=BARRIERS[between]
        )
        for given, text in GIVEN.items()
        for between in BARRIERS
        for overlap in (*OVERLAPS, APART)
    }
    found = launched(bodies, engine=engine)
    for number, ((given, between, overlap), messages) in enumerate(found.items()):
        at, name = 1024 - overlap, f"(k{number})"
        line = 3 + 12 * number  # of the function
        expected = destroyed(
            f"copy_gm_to_ubuf.dst (MTE2, inline.cpp:{line + 5} {name})",
            f"copy_gm_to_ubuf.dst (MTE2, inline.cpp:{line + 7} {name})",
            f"vadd.src0 (V, inline.cpp:{line + 9} {name})",
            "UB",
            (0, 1024, at, at + 1024),
        )
        kept = [text for text in messages if not text.startswith("out-of-bounds")]  # of a buffer
        assert kept == (expected if overlap else []), (given, between, overlap)


ROW = "for (int n = 0; n < 16; ++n) DataCopy({0}[16 * n], {1}[16 * n], 16);"
BY_ROWS = {
    "both": (ROW.format("a", "gx"), ROW.format("b", "gy")),
    "the first": (ROW.format("a", "gx"), "DataCopy(b, gy, 256);"),
    "the second": ("DataCopy(a, gx, 256);", ROW.format("b", "gy")),
}
BY_ONE_LINE = {
    "a loop": ("LocalTensor<float> all[] = {a, b}; GlobalTensor<float> of[] = {gx, gy};",
               "for (int n = 0; n < 2; ++n) DataCopy(all[n], of[n], 256);"),
    "a function": ("auto load = [](auto to, auto from) { DataCopy(to, from, 256); };",
                   "load(a, gx); load(b, gy);"),
}  # fmt: skip
LINES_OF_SUM = SUM.replace("DataCopy(a, gx, 256);", "{a}").replace("DataCopy(b, gy, 256);", "{b}")


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["lockstep", "reference"])
def test_rows_of_which_some_lie_in_both_tensors(engine):
    bodies = {
        (case, overlap): LINES_OF_SUM.format(
            given=GIVEN["addresses"].format(at=1024 - overlap), between="", a=one, b=other
        )
        for case, (one, other) in BY_ROWS.items()
        for overlap in (32, 64, 512, APART)
    }
    found = launched(bodies, engine=engine)
    for number, ((case, overlap), messages) in enumerate(found.items()):
        kinds = [text.partition(":")[0] for text in messages]
        assert kinds == (["array-overwritten"] if overlap else []), (case, overlap, messages)
        line, name = 3 + 12 * number, f"(k{number})"
        for text in messages:
            assert f"(MTE2, inline.cpp:{line + 7} {name}) must not overwrite bytes [" in text
            assert f"the result of copy_gm_to_ubuf.dst (MTE2, inline.cpp:{line + 5} " in text
            assert f"[0, 1024) and [{1024 - overlap}, {2048 - overlap})" in text


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["lockstep", "reference"])
def test_both_tensors_are_written_by_one_line(engine):
    bodies = {
        (case, overlap): LINES_OF_SUM.format(
            given=GIVEN["addresses"].format(at=1024 - overlap), between="", a=one, b=other
        )
        for case, (one, other) in BY_ONE_LINE.items()
        for overlap in (32, 512, APART)
    }
    for (case, overlap), messages in launched(bodies, engine=engine).items():
        kinds = [text.partition(":")[0] for text in messages]
        assert kinds == (["array-overwritten"] if overlap else []), (case, overlap, messages)


NEAR = """GlobalTensor<float> g, gz; g.SetGlobalBuffer((__gm__ float*)x);
gz.SetGlobalBuffer((__gm__ float*)z + 256 * GetBlockIdx());
LocalTensor<float> a(TPosition::VECIN, 0, 256), b(TPosition::VECIN, {at}, 256);
LocalTensor<float> c(TPosition::VECOUT, 8192, 256);
"""
FILLED = "Duplicate(a, 1.0f, 256); Duplicate(b, 2.0f, 256);"
MANY = {
    "the first after the second": "DataCopy(b, g, 256); DataCopy(a, g, 256); {ready}"
    "Add(c, a, b, 256);",
    "rows that are read one by one": f"{ROW.format('b', 'g')} DataCopy(a, g, 256); {{ready}}"
    "for (int n = 0; n < 16; ++n) Adds(c[16 * n], b[16 * n], 1.0f, 16);",
    "results": f"{FILLED} PipeBarrier<PIPE_V>(); Add(c, a, b, 256);",
    "results without a barrier": f"{FILLED} Add(c, a, b, 256);",
    "elements": f"{FILLED} SetFlag<HardEvent::V_S>(1); WaitFlag<HardEvent::V_S>(1); float sum = 0;"
    "for (int n = 0; n < 256; ++n) sum += a.GetValue(n); PipeBarrier<PIPE_ALL>();"
    "Adds(c, b, sum, 256);",
    "fewer in some blocks": "DataCopy(a, g, 256); DataCopy(b, g, GetBlockIdx() == 0 ? 256 : 192);"
    "{ready} Adds(c, a, 1.0f, 256);",
    "in turn": "LocalTensor<float> t[2] = {{a, b}}; DataCopy(a, g, 256);"
    "SetFlag<HardEvent::MTE2_V>(0); for (int n = 0; n < 4; ++n) {{ const int m = (n + 1) % 2;"
    "if (n > 0 && n < 3) WaitFlag<HardEvent::V_MTE2>(m);"
    "if (n < 3) {{ DataCopy(t[m], g[256], 256); SetFlag<HardEvent::MTE2_V>(m); }}"
    "WaitFlag<HardEvent::MTE2_V>(n % 2); PipeBarrier<PIPE_V>(); Adds(c, t[n % 2], 1.0f, 256);"
    "if (n < 2) SetFlag<HardEvent::V_MTE2>(n % 2); }}",
}


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["lockstep", "reference"])
def test_what_is_destroyed_in_other_ways(engine):
    ready = "SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);"
    store = "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0); DataCopy(gz, c, 256);"
    bodies = {
        (case, overlap): NEAR.format(at=1024 - overlap) + body.format(ready=ready) + store
        for case, body in MANY.items()
        for overlap in (32, 256, APART)
    }
    for (case, overlap), messages in launched(bodies, engine=engine).items():
        kinds = {text.partition(":")[0] for text in messages}
        assert kinds == ({"array-overwritten"} if overlap else set()), (case, overlap, messages)


CUBE = """GlobalTensor<half> ga, gb; GlobalTensor<float> gc; ga.SetGlobalBuffer((__gm__ half*)x);
gb.SetGlobalBuffer((__gm__ half*)y); gc.SetGlobalBuffer((__gm__ float*)z + 256 * GetBlockIdx());
LocalTensor<half> a(TPosition::A1, 0, 256), b(TPosition::B1, {at}, 256);
LocalTensor<half> a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256);
LocalTensor<float> c(TPosition::CO1, 0, 256);
DataCopy(a, ga, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
{between}
DataCopy(b, gb, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
SetFlag<HardEvent::MTE2_MTE1>(0); WaitFlag<HardEvent::MTE2_MTE1>(0);
LoadData(a2, a, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
LoadData(b2, b, LoadData2DParams(0, 1, 1, 0, 0, true, 0));
SetFlag<HardEvent::MTE1_M>(0); WaitFlag<HardEvent::MTE1_M>(0);
Mmad(c, a2, b2, MmadParams(16, 16, 16));
SetFlag<HardEvent::M_FIX>(0); WaitFlag<HardEvent::M_FIX>(0);
Fixpipe(gc, c, FixpipeParamsV220(16, 16, 16, 16, false));"""


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["lockstep", "reference"])
def test_two_tensors_in_l1(engine):
    bodies = {
        (between, overlap): CUBE.format(at=512 - overlap, between=BARRIERS[between])
        for between in BARRIERS
        for overlap in (32, 224, 480, APART)
    }
    found = launched(bodies, engine=engine)
    for number, ((between, overlap), messages) in enumerate(found.items()):
        line, name = 3 + 17 * number, f"(k{number})"
        expected = destroyed(
            f"copy_gm_to_cbuf_multi_nd2nz.dst (MTE2, inline.cpp:{line + 7} {name})",
            f"copy_gm_to_cbuf_multi_nd2nz.dst (MTE2, inline.cpp:{line + 9} {name})",
            f"load_cbuf_to_ca.src (MTE1, inline.cpp:{line + 11} {name})",
            "L1",
            (0, 512, 512 - overlap, 1024 - overlap),
        )
        assert messages == (expected if overlap else []), (between, overlap)


POINTERS = """__ubuf__ float* a = (__ubuf__ float*)asc_get_phy_buf_addr(0);
__ubuf__ float* b = (__ubuf__ float*)asc_get_phy_buf_addr({at});
__ubuf__ float* c = (__ubuf__ float*)asc_get_phy_buf_addr(8192);
asc_copy_gm2ub(a, (__gm__ float*)x, 1024);
{between}
asc_copy_gm2ub(b, (__gm__ float*)y, 1024);
asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID1); asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID1);
asc_add(c, a, b, 256);
asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID1); asc_sync_wait(PIPE_V, PIPE_MTE3, EVENT_ID1);
asc_copy_ub2gm((__gm__ float*)z + 256 * asc_get_block_idx(), c, 1024);"""


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["lockstep", "reference"])
def test_two_pointers_of_the_c_api(engine):
    waits = {"": "", "barrier": "asc_sync_pipe(PIPE_MTE2);"}
    bodies = {
        (between, overlap): POINTERS.format(at=1024 - overlap, between=waits[between])
        for between in waits
        for overlap in (*OVERLAPS, APART)
    }
    found = launched(bodies, before='#include "c_api/asc_simd.h"', engine=engine)
    for number, ((between, overlap), messages) in enumerate(found.items()):
        line, name = 3 + 12 * number, f"(k{number})"
        expected = destroyed(
            f"copy_gm_to_ubuf.dst (MTE2, inline.cpp:{line + 5} {name})",
            f"copy_gm_to_ubuf.dst (MTE2, inline.cpp:{line + 7} {name})",
            f"vadd.src0 (V, inline.cpp:{line + 9} {name})",
            "UB",
            (0, 1024, 1024 - overlap, 2048 - overlap),
        )
        assert messages == (expected if overlap else []), (between, overlap)


DECLARED = """GlobalTensor<float> g, gz; g.SetGlobalBuffer((__gm__ float*)x);
gz.SetGlobalBuffer((__gm__ float*)z + 1024 * GetBlockIdx());
LocalTensor<float> a(TPosition::VECIN, 0, 256), b(TPosition::VECIN, 512, 256);
LocalTensor<float> c(TPosition::VECOUT, 8192, 1024);
"""
LOADED = "SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);"
STORED = "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0); DataCopy(gz, c, 256);"
AGAIN = "SetFlag<HardEvent::V_MTE2>(1); WaitFlag<HardEvent::V_MTE2>(1);"
WRITTEN = f"DataCopy(a, g, 256); {LOADED} Adds(c, a, 1.0f, 256); {AGAIN}"
REUSED = {
    "one behind the other": f"{WRITTEN} DataCopy(b, g, 256); {LOADED} Adds(c[256], b, 1.0f, 256);",
    "in turn": f"for (int n = 0; n < 3; ++n) {{ {WRITTEN} DataCopy(b, g, 256); {LOADED}"
    f"Adds(c[256], b, 1.0f, 256); {AGAIN} }}",
    "the rest of the first": f"DataCopy(a, g, 256); PipeBarrier<PIPE_MTE2>();"
    f"DataCopy(b, g, 256); {LOADED} Adds(c, a, 1.0f, 128); Adds(c[128], b, 1.0f, 256);",
    "written again": f"{WRITTEN} DataCopy(b, g, 256); {LOADED} Adds(c, b, 1.0f, 256); {AGAIN}"
    f"DataCopy(a, g, 256); {LOADED} Adds(c, a, 1.0f, 256);",
    "less written again": f"{WRITTEN} DataCopy(b, g, 256); {LOADED} Adds(c, b, 1.0f, 256); {AGAIN}"
    f"DataCopy(a, g, 64); {LOADED} Adds(c, a, 1.0f, 64);",
    "part of its own": f"DataCopy(a, g, 256); {LOADED} Duplicate(a[128], 0.0f, 128);"
    "PipeBarrier<PIPE_V>(); Adds(c, a, 1.0f, 256);",
    "pieces": "DataCopy(a, g, 128); PipeBarrier<PIPE_MTE2>(); DataCopy(a[96], g, 160);"
    f"{LOADED} Adds(c, a, 1.0f, 256);",
    "an element": "DataCopy(a, g, 256); SetFlag<HardEvent::MTE2_S>(0);"
    "WaitFlag<HardEvent::MTE2_S>(0); a.SetValue(200, 1.0f); SetFlag<HardEvent::S_V>(0);"
    "WaitFlag<HardEvent::S_V>(0); Adds(c, a, 1.0f, 256);",
    "pieces with addresses of their own": "LocalTensor<float> whole(TPosition::VECIN, 0, 512);"
    f"DataCopy(a, g, 256); DataCopy(whole[256], g, 256); {AGAIN} PipeBarrier<PIPE_MTE2>();"
    f"DataCopy(b, g, 256); {LOADED} Adds(c, whole, 1.0f, 512);",
    "another type": f"auto h = a.ReinterpretCast<half>(); DataCopy(a, g, 256); {LOADED}"
    "Duplicate(h[256], half(1), 128); PipeBarrier<PIPE_V>(); Adds(c, a, 1.0f, 256);",
}
BUFFERS = """TPipe pipe; TBuf<> all; pipe.InitBuffer(all, 4096); auto t = all.Get<float>();
GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)x); LocalTensor<float> c = t[640];
DataCopy(t, g, 256); PipeBarrier<PIPE_MTE2>(); DataCopy(t[128], g, 256);"""
REUSED_BUFFERS = {
    "one buffer": f"{BUFFERS} {LOADED} Adds(c, t, 1.0f, 256);",
    "views of the one buffer": f"{BUFFERS} auto u = all.GetWithOffset<float>(256, 512); {LOADED}"
    "PipeBarrier<PIPE_V>(); Duplicate(u, 0.0f, 256); PipeBarrier<PIPE_V>(); Adds(c, t, 1.0f, 256);",
    "given anew": f"{BUFFERS} {LOADED} Adds(c, t, 1.0f, 384); pipe.Reset(); TBuf<> one, two;"
    "pipe.InitBuffer(one, 1536); pipe.InitBuffer(two, 1536); auto v = two.Get<float>();"
    "DataCopy(v, g, 384); SetFlag<HardEvent::MTE2_V>(1); WaitFlag<HardEvent::MTE2_V>(1);"
    "Adds(v, v, 1.0f, 384);",
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("engine", ["lockstep", "reference"])
def test_memory_that_is_used_again(engine):
    bodies = {case: f"{DECLARED}{body} {STORED}" for case, body in REUSED.items()}
    bodies |= REUSED_BUFFERS
    assert launched(bodies, engine=engine) == {case: [] for case in bodies}


POINTED = """__ubuf__ float* a = (__ubuf__ float*)asc_get_phy_buf_addr(0);
__ubuf__ float* b = (__ubuf__ float*)asc_get_phy_buf_addr(512);
__ubuf__ float* c = (__ubuf__ float*)asc_get_phy_buf_addr(8192); __gm__ float* g = (__gm__ float*)x;
"""
COPIED = (
    "asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID1); asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID1);"
)
FREED = (
    "asc_sync_notify(PIPE_V, PIPE_MTE2, EVENT_ID1); asc_sync_wait(PIPE_V, PIPE_MTE2, EVENT_ID1);"
)
REUSED_POINTERS = {
    "one behind the other": f"""asc_copy_gm2ub(a, g, 1024); {COPIED} asc_add(c, a, a, 256); {FREED}
asc_copy_gm2ub(b, g, 1024); {COPIED} asc_sync_pipe(PIPE_V); asc_add(c, b, b, 256);""",
    "assembled": f"""asc_copy_gm2ub(a, g, 1024); asc_sync_pipe(PIPE_MTE2);
asc_copy_gm2ub(b, g + 128, 1024); {COPIED} asc_add(c, a, a, 384);""",
    "one line": f"""for (int n = 0; n < 2; ++n)
  asc_copy_gm2ub(a + 128 * n, g + 128 * n, 1024), asc_sync_pipe(PIPE_MTE2);
{COPIED} asc_add(c, a, a, 256); asc_add(c + 256, a + 256, a + 256, 128);""",
    "another from there on": f"""asc_copy_gm2ub(a, g, 1024); {COPIED} asc_add(c, a, a, 256); {FREED}
asc_copy_gm2ub(b, g, 1024); asc_sync_pipe(PIPE_MTE2);
asc_copy_gm2ub(a, g, 512); {COPIED} asc_sync_pipe(PIPE_V); asc_add(c, a, a, 256);""",
}


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["lockstep", "reference"])
def test_pointers_whose_memory_is_used_again(engine):
    bodies = {case: POINTED + body for case, body in REUSED_POINTERS.items()}
    found = launched(bodies, before='#include "c_api/asc_simd.h"', engine=engine)
    assert found == {case: [] for case in bodies}
