"""Rules of the class API's pages, in pairs: a kernel that keeps one, and one that breaks it."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import cli, kernels, needs_compiler

pytestmark = needs_compiler
GIVEN = """TPipe pipe; TBuf<TPosition::VECCALC> all, small;
pipe.InitBuffer(all, 16384); pipe.InitBuffer(small, 32);
LocalTensor<float> a = all.Get<float>(), c = a[2048], w = small.Get<float>();
LocalTensor<half> h = a.ReinterpretCast<half>();
LocalTensor<uint8_t> bits = c[1024].ReinterpretCast<uint8_t>();
GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)x, 256);
Duplicate(a, 1.0f, 4096);
"""
QUEUE = """TPipe pipe; TQue<TPosition::VECIN, {depth}> q; pipe.InitBuffer(q, 3, 256);
GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)x, 256);
for (int n = 0; n < {count}; ++n) {{
  LocalTensor<float> t = q.AllocTensor<float>(); DataCopy(t, g, 64);
  q.EnQue(t);
}}
for (int n = 0; n < {count}; ++n) {{ LocalTensor<float> t = q.DeQue<float>(); q.FreeTensor(t); }}
"""
BOUND = QUEUE.replace("TQue<TPosition::VECIN", "TQueBind<TPosition::GM, TPosition::VECIN")
COUNTS = "count must be a multiple of {} for {} (256 B), got {}; only {} are compared"
RULES = {
    "compare": (
        "Compare(bits, a, c, CMPMODE::GE, 128);",
        "Compare(bits, a, c, CMPMODE::GE, 100);",
        ("parameter", "Compare: " + COUNTS.format(64, "float", 100, 64)),
    ),
    "compare halves": (
        "Compare(bits, h, h[128], CMPMODE::GE, 256);",
        "Compare(bits, h, h[128], CMPMODE::GE, 192);",
        ("parameter", "Compare: " + COUNTS.format(128, "half", 192, 128)),
    ),
    "compare with a scalar": (
        "Compares(bits, a, 1.0f, CMPMODE::EQ, 64);",
        "Compares(bits, a, 1.0f, CMPMODE::EQ, 1);",
        ("parameter", "Compares: " + COUNTS.format(64, "float", 1, 0)),
    ),
    "compare with a scalar by its former name": (
        "CompareScalar(bits, a, 1.0f, CMPMODE::EQ, 64);",
        "CompareScalar(bits, a, 1.0f, CMPMODE::EQ, 65);",
        ("parameter", "CompareScalar: " + COUNTS.format(64, "float", 65, 64)),
    ),
    "mask of lanes": (
        "Add(c, a, a, 64, 2, {1, 1, 1, 8, 8, 8});",
        "Add(c, a, a, 128, 2, {1, 1, 1, 8, 8, 8});",
        ("parameter", "Add: mask must be at most 64 for float, got 128"),
    ),
    "mask of bits": (
        "uint64_t m[2] = {~0ull, 0}; Muls(c, a, 2.0f, m, 1, {1, 1, 8, 8});",
        "uint64_t m[2] = {~0ull, 3}; Muls(c, a, 2.0f, m, 1, {1, 1, 8, 8});",
        ("parameter", "Muls: mask must have at most 64 bits for float, got 0x3 in mask[1]"),
    ),
    "mask of halves": (
        "Adds(h[4096], h, half(1), 128, 1, {1, 1, 8, 8});",
        "Adds(h[4096], h, half(1), 129, 1, {1, 1, 8, 8});",
        ("parameter", "Adds: mask must be at most 128 for half, got 129"),
    ),
    "mask of the wider type": (
        "Cast(h[4096], a, RoundMode::CAST_NONE, 64, 1, {1, 1, 4, 8});",
        "Cast(h[4096], a, RoundMode::CAST_NONE, 128, 1, {1, 1, 4, 8});",
        ("parameter", "Cast: mask must be at most 64 for float, got 128"),
    ),
    "mask of a reduction": (
        "WholeReduceSum(c, a, 64, 1, 1, 1, 8);",
        "WholeReduceSum(c, a, -1, 1, 1, 1, 8);",
        ("parameter", "WholeReduceSum: mask must be in 0 to 64 for float, got -1"),
    ),
    "mask set apart": (
        "SetVectorMask<float>(64); ResetMask();",
        "SetVectorMask<float>(100); ResetMask();",
        ("parameter", "SetVectorMask: mask must be at most 64 for float, got 100"),
    ),
    "mask in counter mode": (
        "SetMaskCount(); Add(c, a, a, 128, 1, {1, 1, 1, 8, 8, 8}); SetMaskNorm(); ResetMask();",
        "SetMaskNorm(); Add(c, a, a, 128, 1, {1, 1, 1, 8, 8, 8});",
        ("parameter", "Add: mask must be at most 64 for float, got 128"),
    ),
    "mask of a copy": (
        "Copy(c, a, 64, 1, {1, 1, 8, 8}); Copy(h[6144], h, 128, 1, {1, 1, 8, 8});",
        "Copy(c, a, 65, 1, {1, 1, 8, 8}); Copy(h[6144], h, 128, 1, {1, 1, 8, 8});",
        ("parameter", "Copy: mask must be at most 64 for float, got 65"),
    ),
    "blocks of a result": (
        "Add(c, a, a, 8, 1, {0, 1, 1, 8, 8, 8});",
        "Add(c, a, a, 64, 1, {0, 1, 1, 8, 8, 8});",
        (
            "parameter",
            "Add: dstBlkStride must be at least 1 for repeats of several blocks, got 0",
        ),
    ),
    "blocks of a broadcast": (
        "Brcb(c, a, 1, {1, 8});",
        "Brcb(c, a, 1, {0, 8});",
        (
            "parameter",
            "Brcb: dstBlkStride must be at least 1 for repeats of several blocks, got 0",
        ),
    ),
    "buffers": (
        "TBuf<TPosition::VECCALC> more[62]; for (auto& each : more) pipe.InitBuffer(each, 32);",
        "TBuf<TPosition::VECCALC> more[64]; for (auto& each : more) pipe.InitBuffer(each, 32);",
        ("capacity", "InitBuffer: a kernel must have at most 64 buffers, got 65"),
    ),
    "a copy inside UB": (
        "DataCopy(c, a, 64);",
        "DataCopy(c, a, 61);",
        (
            "parameter",
            "DataCopy: count must be a multiple of 8 for float (32 B), got 61: the last 20 B are "
            "not copied",
        ),
    ),
    "a store of less than a block": (
        "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0); DataCopy(g, a, 8);",
        "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0); DataCopy(g, a, 7);",
        (
            "parameter",
            "DataCopy: count must be a multiple of 8 for float (32 B), got 7: the last 28 B are "
            "not copied; DataCopyPad copies them",
        ),
    ),
    "a tensor past all buffers": (
        "Duplicate(small.Get<float>(8), 1.0f, 8);",
        "Duplicate(small.Get<float>(32), 1.0f, 8);",
        (
            "out-of-bounds",
            "Get: len must be at most 8 for float in a buffer of 32 B, got 32",
        ),
    ),
    "a part of a buffer": (
        "Duplicate(all.GetWithOffset<half>(16, 16352), half(1), 16);",
        "Duplicate(all.GetWithOffset<half>(17, 16352), half(1), 16);",
        (
            "out-of-bounds",
            "GetWithOffset: size must be at most 16 for half in a buffer of 16384 B from byte "
            "16352, got 17: it reaches into the buffers behind",
        ),
    ),
    "workspace of a sum": (
        "ReduceSum(c, a, w, 64, 8, 8);",
        "ReduceSum(c, a, w, 64, 16, 8);",
        (
            "out-of-bounds",
            "ReduceSum: sharedTmpBuffer must hold 64 B for 16 repeats, got 32 B",
        ),
    ),
    "workspace of a largest with its index": (
        "ReduceMax(c, a, w, 64, 1, 8, true);",
        "ReduceMax(c, a, w, 64, 16, 8, true);",
        (
            "out-of-bounds",
            "ReduceMax: sharedTmpBuffer must hold 160 B for 16 repeats, got 32 B",
        ),
    ),
    "workspace of a smallest": (
        "ReduceMin(c, a, w, 256);",
        "ReduceMin(c, a, w, 320);",
        (
            "out-of-bounds",
            "ReduceMin: sharedTmpBuffer must hold 64 B for 5 repeats, got 32 B",
        ),
    ),
}
NOTES = {
    "repeats": (
        "Add(c, a, a, 64, uint8_t(255 - 247), {1, 1, 1, 8, 8, 8});",
        "Add(c, a, a, 64, uint8_t(256), {1, 1, 1, 8, 8, 8});",
        (
            "no-repeat",
            "Add: repeatTime must be at least 1 to compute something, got 0 (a uint8_t holds 256 "
            "as 0)",
        ),
    ),
    "repeats of a reduction": (
        "WholeReduceMax(c, a, 64, 1, 1, 1, 8);",
        "WholeReduceMax(c, a, 64, 0, 1, 1, 8);",
        (
            "no-repeat",
            "WholeReduceMax: repeatTime must be at least 1 to compute something, got 0 (a uint8_t "
            "holds 256 as 0)",
        ),
    ),
    "results of a reduction": (
        "WholeReduceSum(c, a, 64, 2, 1, 1, 8); WholeReduceSum(c, a, 64, 1, 0, 1, 8);",
        "WholeReduceSum(c, a, 64, 2, 0, 1, 8);",
        (
            "rows-overlap",
            "WholeReduceSum: dstRepStride must be at least 1 for the results of several repeats, "
            "got 0: they overlap",
        ),
    ),
    "a long tensor": (
        "Duplicate(all.Get<float>(4096), 1.0f, 8);",
        "Duplicate(all.Get<float>(4104), 1.0f, 8);",
        (
            "long-tensor",
            "Get: len must be at most 4096 for float in a buffer of 16384 B, got 4104: it reaches "
            "into the buffers behind",
        ),
    ),
    "rows": (
        "Add(c, a, a, 32, 4, {1, 1, 1, 4, 8, 8}); Muls(c, a, 2.0f, 64, 2, {2, 1, 1, 8});"
        "PipeBarrier<PIPE_ALL>(); Add(c, a, c, 64, 4, {1, 1, 1, 0, 8, 0});",
        "Add(c, a, a, 64, 4, {1, 1, 1, 4, 8, 8});",
        (
            "rows-overlap",
            "Add: dstRepStride must be at least 8 for repeats that write 8 blocks, got 4: they "
            "overlap",
        ),
    ),
    "atomic": (
        "SetAtomicAdd<float>(); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
        "DataCopy(g, a, 64); SetAtomicNone();",
        "SetAtomicAdd<half>(); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
        "DataCopy(g, a, 64); SetAtomicNone();",
        ("atomic-type", "DataCopy: an atomic store of float must be set for float, got half"),
    ),
    "atomic with padding": (
        "SetAtomicAdd<int32_t>(); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
        "DataCopyPad(g.ReinterpretCast<uint32_t>(), a.ReinterpretCast<uint32_t>(), {1, 4, 0, 0});"
        "SetAtomicNone();",
        "SetAtomicAdd<int32_t>(); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
        "DataCopyPad(g, a, {1, 4, 0, 0}); SetAtomicNone();",
        ("atomic-type", "DataCopyPad: an atomic store of float must be set for float, got int32_t"),
    ),
}  # fmt: skip
CUBE = """if ASCEND_IS_AIV return;
GlobalTensor<half> g; GlobalTensor<float> to; g.SetGlobalBuffer((__gm__ half*)x);
to.SetGlobalBuffer((__gm__ float*)x);
LocalTensor<half> l1(TPosition::A1, 0, 8192); LocalTensor<float> co(TPosition::CO1, 0, 4096);
"""
STRIDES = {
    "rows of Fixpipe": (
        "Fixpipe(to, co, FixpipeParamsV220(64, 16, 16, {}, false));", (64, 80), 63,
        "Fixpipe: dstStride must be at least 64 for rows of nSize elements, got 63: they overlap",
    ),
    "a row of Fixpipe": (
        "Fixpipe(to, co, FixpipeParamsV220(64, 1, 16, {}, false));", (64, 1), 0, "",
    ),
    "columns of Fixpipe": (
        "Fixpipe<float, float, CFG_NZ>(to, co, FixpipeParamsV220(32, 16, 16, {}, false));",
        (32, 40), 16,
        "Fixpipe: dstStride must be at least 32 for columns of mSize rows, got 16: they overlap",
    ),
    "columns of Nd2Nz": (
        "DataCopy(l1, g, Nd2NzParams(1, 32, 64, 0, 64, {}, 1, 0));", (32, 64), 16,
        "DataCopy: dstNzC0Stride must be at least 32 for columns of nValue rows, got 16: they "
        "overlap",
    ),
    "columns of Nd2Nz side by side": (
        "DataCopy(l1, g, Nd2NzParams(1, 32, 64, 0, 64, {}, 4, 0));", (1, 128), 4,
        "DataCopy: dstNzC0Stride must be at least 125 for columns of nValue rows, got 4: they "
        "overlap",
    ),
}  # fmt: skip
"""A call, strides of its result that keep parts apart, one that does not, and the note on it."""
DEPTHS = {
    (QUEUE, 1): "depth 1 holds one tensor, got one more before DeQue; declare depth 2, as in "
    "TQue<..., 2>",
    (QUEUE, 2): "depth 2 holds 2 tensors, got one more before DeQue; declare depth 3, as in "
    "TQue<..., 3>",
    (QUEUE, 0): "depth 0 holds one tensor, got one more before DeQue; declare depth 2, as in "
    "TQue<..., 2>",
    (BOUND, 1): "depth 1 holds one tensor, got one more before DeQue; declare depth 2, as in "
    "TQue<..., 2>",
}


@pytest.fixture(scope="module")
def runs():
    """Return the run of each kernel, by its rule and by whether it keeps that."""
    bodies, names = {}, {}
    for rule, (right, wrong, _) in (RULES | NOTES).items():
        for kept, body in ((True, right), (False, wrong)):
            names[rule, kept] = f"k{len(names)}"
            bodies[names[rule, kept]] = GIVEN + body
    for text, depth in DEPTHS:
        for kept in (True, False):
            names[text, depth, kept] = f"k{len(names)}"
            count = max(depth, 1) + (not kept)
            bodies[names[text, depth, kept]] = text.format(depth=depth, count=count)
    module = kernels(bodies)
    return {key: module[name][1](np.zeros(256, np.float32)) for key, name in names.items()}


@pytest.fixture(scope="module")
def strided_runs():
    """Return the run of each kernel of STRIDES, by its rule and its stride."""
    bodies = {
        (rule, stride): CUBE + call.format(stride)
        for rule, (call, right, wrong, _) in STRIDES.items()
        for stride in (*right, wrong)
    }
    module = kernels({f"k{n}": body for n, body in enumerate(bodies.values())})
    runs = (module[f"k{n}"][1](np.zeros(4096, np.float32)) for n in range(len(bodies)))
    return dict(zip(bodies, runs, strict=True))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_held(runs, rule):
    *_, expected = RULES[rule]
    assert runs[rule, True].findings == ()
    broken = runs[rule, False]
    assert [(f.id, f.message) for f in broken.findings] == [expected]
    assert not broken.clean


@pytest.mark.parametrize("rule", NOTES)
def test_a_note_fails_no_run(runs, rule):
    *_, expected = NOTES[rule]
    assert runs[rule, True].findings == ()
    noted = runs[rule, False]
    assert [(f.id, f.message) for f in noted.findings] == [expected]
    assert noted.clean
    assert [f["note"] for f in noted.to_json()["findings"]] == [True]


@pytest.mark.parametrize("rule", STRIDES)
def test_parts_of_a_result_that_overlap_are_noted(strided_runs, rule):
    _, right, wrong, said = STRIDES[rule]
    for stride in (*right, wrong):
        notes = [f.message for f in strided_runs[rule, stride].findings if f.id == "rows-overlap"]
        assert notes == ([said] if said and stride == wrong else [])


@pytest.mark.parametrize(("text", "depth"), DEPTHS)
def test_a_queue_holds_as_many_tensors_as_it_is_deep(runs, text, depth):
    assert runs[text, depth, True].findings == ()
    found = [(f.id, f.message) for f in runs[text, depth, False].findings]
    assert found == [("queue-full", f"EnQue: {DEPTHS[text, depth]}")]


def test_what_is_not_compared_stays_as_it_was():
    body = GIVEN + (
        "Duplicate(bits.ReinterpretCast<int32_t>(), 0, 8); Compare(bits, a, c, CMPMODE::GE, 100);"
        "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
        "DataCopy(g, bits.ReinterpretCast<float>(), 8);"
    )
    y = np.full(256, 5, np.float32)
    kernels({"k": body}).k[1](y)
    assert list(y[:8].view(np.uint8)) == [255] * 8 + [0] * 24


def test_notes_are_shown_by_themselves(tmp_path):
    text = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void k(GM_ADDR x) {
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  Duplicate(a, 1.0f, 64, 0, 1, 8);
}
"""
    (tmp_path / "k.cpp").write_text(text)
    code, out, err = cli(
        tmp_path,
        "run",
        "k.cpp",
        "--blocks",
        "1",
        "--out-arg",
        "x=float32:8",
        "--checks",
        "memcheck",
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    at = lines.index("Notes: 1")
    assert lines[at - 1] == "  findings none"
    assert lines[at + 1] == (
        "  no-repeat: Duplicate at k.cpp:5: repeatTime must be at least 1 to compute something, "
        "got 0 (a uint8_t holds 256 as 0) (1 time; block 0 (core 0 AIV0))"
    )
