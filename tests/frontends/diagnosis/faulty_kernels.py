"""Small kernels with one fault each, by the kind of finding, in every dialect that can have it."""

import re

from frontends.cpp.register_faults import ALL_PAIRS, FRAME

LOAD = "asc_copy_gm2ub(a, x, 256);"
LOADED = f"""{LOAD}
asc_sync_notify(PIPE_MTE2, PIPE_V, 0);
asc_sync_wait(PIPE_MTE2, PIPE_V, 0);"""
CALLS = {
    "out-of-bounds": "asc_copy_gm2ub(a, x + 224, 256);",
    "misaligned": "asc_copy_gm2ub(a + 3, x, 224);",
    "overlap": f"{LOADED}\nasc_add_scalar(a + 8, a, 1, 128);",
    "parameter": "asc_copy_gm2ub(a, x, 250);",
    "stale-mask": f"{LOADED}\nasc_add(b, a, a, 64);\nasc_add(c, a, a, 1, 1, 1, 1, 8, 8, 8);",
    "stale-count": f"{LOADED}\nasc_set_mask_count();\nasc_set_vector_mask(0, 64);\n"
    "asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8);\nasc_add(b, a, a, 2, 1, 1, 1, 8, 8, 8);\n"
    "asc_set_mask_norm();",
    "uninitialised": "asc_add(b, a, a, 64);",
    "race-raw": f"{LOAD}\nasc_add(b, a, a, 64);",
    "race-war": f"{LOADED}\nasc_add(b, a, a, 64);\n{LOAD}",
    "race-waw": f"{LOADED}\nasc_duplicate(b, 1, 64);\nasc_copy_gm2ub(b, x, 256);",
    "flag-unmet": "asc_sync_wait(PIPE_V, PIPE_MTE3, 1);",
    "flag-doubled": "asc_sync_notify(PIPE_V, PIPE_MTE3, 1);\n" * 2
    + "asc_sync_wait(PIPE_V, PIPE_MTE3, 1);",
    "flag-leaked": "asc_sync_notify(PIPE_V, PIPE_MTE3, 1);",
    "flag-late": "asc_sync_wait(PIPE_V, PIPE_MTE3, 1);\nasc_sync_notify(PIPE_V, PIPE_MTE3, 1);",
    "flag-pair": "asc_sync_notify(PIPE_M, PIPE_FIX, 1);",
    "flag-parameter": "asc_sync_notify(PIPE_V, PIPE_MTE3, 9);",
    "deadlock": "asc_sync_wait(PIPE_V, PIPE_MTE3, 1);\nasc_sync_notify(PIPE_MTE3, PIPE_V, 1);\n"
    "asc_sync_wait(PIPE_MTE3, PIPE_V, 1);\nasc_sync_notify(PIPE_V, PIPE_MTE3, 1);",
    "mode-left": "asc_set_atomic_add_float();",
    "unread": f"{LOADED}\nasc_add(b, a, a, 64);\nasc_add(b, a, a, 64);",
}
"""Lines of the C API on arrays a, b and c of 192 floats in UB, x of 256 in global memory and z."""

ARRAYS = ("a", "b", "c")
_POINTER = re.compile(r"__ubuf__ float\* (\w+) = \(__ubuf__ float\*\)(\d+);")
_PIPE = re.compile(r"\bPIPE_\w+")


def c_kernel(name: str, lines: str) -> str:
    """Return an entry of the C API that runs lines."""
    arrays = "\n".join(f"__ubuf__ float {array}[192];" for array in ARRAYS)
    arrays = "" if "(__ubuf__" in lines else arrays
    return (
        'extern "C" __vector__ __global__ __aicore__ void '
        f"{name}(__gm__ float* x, __gm__ float* z) {{\n{arrays}\n{lines}\n}}\n"
    )


def python_kernel(name: str, lines: str) -> str:
    """Return a function of the C API in Python that runs the same lines."""
    body = [f'{array} = core.ubuf("float", 192)' for array in ARRAYS if "(__ubuf__" not in lines]
    calls = _POINTER.sub(r'\1 = core.ubuf.at("float", \2)', lines)
    calls = re.sub(r"\b(asc_|store\b)", r"core.\1", calls).replace(";", "")
    body += _PIPE.sub(lambda pipe: f'"{pipe.group()}"', calls).splitlines()
    return f"def {name}(core, x, z):\n" + "".join(f"    {line}\n" for line in body)


QUEUED = """TPipe pipe; TQue<TPosition::VECIN, 2> queue; pipe.InitBuffer(queue, 1, 256);
"""
TENSORS = """GlobalTensor<float> xGm, zGm; xGm.SetGlobalBuffer((__gm__ float*)x);
zGm.SetGlobalBuffer((__gm__ float*)z);
LocalTensor<float> a(TPosition::VECIN, 0, 192), b(TPosition::VECIN, 1024, 192);
LocalTensor<float> c(TPosition::VECIN, 2048, 192);
"""
BUFFERS = """TPipe pipe; TBuf<TPosition::VECCALC> buffer; pipe.InitBuffer(buffer, 256);
"""
READY = """DataCopy(a, xGm, 64);
SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
"""
CLASSES = {
    "out-of-bounds": TENSORS + "DataCopy(a, xGm[224], 64);",
    "misaligned": TENSORS + "DataCopy(a[3], xGm, 56);",
    "capacity": BUFFERS + "TBuf<TPosition::VECCALC> more; pipe.InitBuffer(more, 300 * 1024);",
    "overlap": TENSORS + READY + "Adds(a[8], a, 1.0f, 128);",
    "parameter": TENSORS + "DataCopy(a, xGm, 62);",
    "uninitialised": TENSORS + "Add(b, a, a, 64);",
    "array-overwritten": TENSORS
    + """LocalTensor<float> d(TPosition::VECIN, 4096, 64), e(TPosition::VECIN, 4224, 64);
DataCopy(d, xGm, 64);
DataCopy(e, xGm[64], 64);
SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
Add(b, d, e, 64);""",
    "race-raw": TENSORS + "DataCopy(a, xGm, 64);\nAdd(b, a, a, 64);",
    "race-war": TENSORS + READY + "Add(b, a, a, 64);\nDataCopy(a, xGm, 64);",
    "race-waw": TENSORS + "Duplicate(b, 1.0f, 64);\nDataCopy(b, xGm, 64);",
    "stale-cache": TENSORS + "zGm.SetValue(0, 1.0f);\nDataCopy(a, zGm, 64);",
    "flag-unmet": "WaitFlag<HardEvent::V_MTE3>(1);",
    "flag-doubled": "SetFlag<HardEvent::V_MTE3>(1);\nSetFlag<HardEvent::V_MTE3>(1);\n"
    "WaitFlag<HardEvent::V_MTE3>(1);",
    "flag-leaked": "SetFlag<HardEvent::V_MTE3>(1);",
    "flag-late": "WaitFlag<HardEvent::V_MTE3>(1);\nSetFlag<HardEvent::V_MTE3>(1);",
    "flag-pair": "SetFlag<HardEvent::M_FIX>(1);",
    "flag-parameter": "SetFlag<HardEvent::V_MTE3>(9);",
    "deadlock": "WaitFlag<HardEvent::V_MTE3>(1);\nSetFlag<HardEvent::MTE3_V>(1);\n"
    "WaitFlag<HardEvent::MTE3_V>(1);\nSetFlag<HardEvent::V_MTE3>(1);",
    "queue-empty": QUEUED + "queue.DeQue<float>();",
    "queue-full": QUEUED + "queue.AllocTensor<float>();\nqueue.AllocTensor<float>();",
    "queue-order": QUEUED + "LocalTensor<float> t(TPosition::VECIN, 1024, 64);\nqueue.EnQue(t);",
    "tensor-freed": QUEUED
    + "auto t = queue.AllocTensor<float>();\nqueue.FreeTensor(t);\nqueue.FreeTensor(t);",
    "events-used-up": "TPipe pipe; TQue<TPosition::VECIN, 9> queue;\n"
    "pipe.InitBuffer(queue, 9, 32);\n"
    "LocalTensor<float> t[9];\nfor (auto& each : t) each = queue.AllocTensor<float>();\n"
    "for (auto& each : t) queue.EnQue(each);\nfor (auto& each : t) each = queue.DeQue<float>();\n"
    "for (auto& each : t) queue.FreeTensor(each);",
    "mode-left": "SetAtomicAdd<float>();",
    "event-reserved": "SetFlag<HardEvent::V_MTE3>(6);\nWaitFlag<HardEvent::V_MTE3>(6);",
    "unread": TENSORS + READY + "Add(b, a, a, 64);\nPipeBarrier<PIPE_V>();\nAdd(b, a, a, 64);",
    "filling-read": TENSORS
    + """DataCopyPad(a, xGm, {1, 20, 0, 0}, {false, 0, 0, 0});
SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
Adds(b, a, 1.0f, 8);
SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
DataCopy(zGm, b, 8);""",
    "no-repeat": TENSORS + READY + "Add(b, a, a, 64, 0, {1, 1, 1, 8, 8, 8});",
    "rows-overlap": TENSORS + READY + "Add(b, a, a, 32, 2, {1, 1, 1, 2, 4, 4});",
    "atomic-type": TENSORS
    + READY
    + """SetAtomicAdd<half>();
SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
DataCopy(zGm, a, 64);
SetAtomicNone();""",
    "long-tensor": BUFFERS + "TBuf<TPosition::VECCALC> more; pipe.InitBuffer(more, 256);\n"
    "Duplicate(buffer.Get<float>(72), 1.0f, 8);",
    "unlisted-type": """LocalTensor<int8_t> p(TPosition::VECIN, 0, 64), q(TPosition::VECIN, 64, 64);
Duplicate(p.ReinterpretCast<int16_t>(), int16_t(3), 32);
PipeBarrier<PIPE_V>();
And(q, p, p, 64);""",
}
"""Lines of the class API on global memory of 256 floats at x and z."""
MORE_CLASSES = {
    "checked-access": TENSORS
    + """CheckLocalMemoryIA({0, 0, 8, false, false, false, false, false, true, true});
DataCopy(a, xGm, 64);
CheckLocalMemoryIA({0});""",
    "stale-mask": TENSORS + READY + "Add(b, a, a, 64);\nasc_add((__ubuf__ float*)2048, "
    "(__ubuf__ float*)0, (__ubuf__ float*)0, 1, 1, 1, 1, 8, 8, 8);",
    "flag-overflow": "for (int turn = 0; turn < 16; ++turn) CrossCoreSetFlag<0x0, PIPE_V>(3);\n"
    "for (int turn = 0; turn < 16; ++turn) CrossCoreWaitFlag(3);",
}
"""Further ones, of what only some of the class API's calls do."""
CALLS |= {
    "capacity": "__ubuf__ float* e = (__ubuf__ float*)196352;\nasc_copy_gm2ub(e, x, 256);",
    "flag-overflow": "asc_sync_inter_arrive(PIPE_V, 3);\n" * 16
    + "asc_sync_inter_wait(PIPE_V, 3);\n" * 16,
    "event-reserved": "asc_sync_notify(PIPE_V, PIPE_MTE3, 6);\n"
    "asc_sync_wait(PIPE_V, PIPE_MTE3, 6);",
}
OF_C = {
    "mixed-allocation": "__ubuf__ float d[64];\n"
    "__ubuf__ float* e = (__ubuf__ float*)asc_get_phy_buf_addr(1024);",
}
"""Lines that Python writes in another way."""
OF_PYTHON = {
    "stale-cache": "store(z, 1);\nasc_copy_gm2ub(a, z, 256);",
    "mixed-allocation": 'core.ubuf("float", 64)\ncore.ubuf.at("float", 1024)',
}
"""Lines that C writes in another way, or of which it has no finding: its pointers store there."""
MUTEX = """auto mutex = AllocMutexID();
Mutex::Lock<PIPE_V>(mutex);
ReleaseMutexID(mutex);"""
OF_REGISTERS = (
    *("mask-merge", "unalign-protocol", "cast-form", "shift-amount", "register-uninitialised"),
    *("lanes-stale", "vf-race", "vf-store-order", "mask-width", "registers-spilled"),
)
"""Kinds of findings inside vector functions, whose faults `register_faults` has."""
MORE_REGISTERS = {
    "scatter-duplicate": """Reg::RegTensor<uint32_t> i;
    Reg::Duplicate(i, 3u, all); Reg::LoadAlign(a, xu);
    Reg::Scatter(zu, a, i, all);""",
    "vf-loop": """for (int32_t i = 0; i < 4; ++i) {
      Reg::LoadAlign(a, xu + 64 * i);
      Reg::StoreAlign(zu + 64 * i, a, all);
    }""",
    "squeeze-order": """Reg::UnalignReg u;
    __ubuf__ float* p = zu;
    Reg::LoadAlign(a, xu);
    Reg::Squeeze<float, Reg::GatherMaskMode::STORE_REG>(b, a, all);
    Reg::StoreUnAlign(p, b, u);
    Reg::StoreUnAlignPost(p, u);""",
}
"""Further vector functions, in the frame of `register_faults`."""


def register_kernels() -> dict[str, str]:
    """Return the body of the first faulty vector function of each kind."""
    first: dict[str, str] = {}
    for kind, _, wrong in ALL_PAIRS.values():
        if kind in OF_REGISTERS:
            first.setdefault(kind, FRAME.format(body=wrong.replace("//!", "")))
    return first | {kind: FRAME.format(body=body) for kind, body in MORE_REGISTERS.items()}


OBJECTS = """#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void call_order(GM_ADDR x, GM_ADDR z) {
  using Operand = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  TPipe pipe;
  TBuf<TPosition::VECCALC> early;
  pipe.InitBuffer(early, 256);
  TCubeTiling tiling = {};
  Matmul<Operand, Operand, Operand> product;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), product, &tiling);
}
extern "C" __global__ __aicore__ void other_sign(__gm__ int32_t* x, GM_ADDR z) {}
"""
"""Kernels about the order of objects, and about a launch's arguments."""
BEGIN = """\
x = t.Tensor("float16", (256,), name="x", scope="global")
z = t.Tensor("float16", (256,), name="z", scope="global")
"""
TILES = """\
x_ub = t.Tensor("float16", (256,), name="x_ub", scope="local.UB")
z_ub = t.Tensor("float16", (256,), name="z_ub", scope="local.UB")
"""
END = """\
t.BuildCCE("k", [x], [z])
"""
STORE = "t.data_move(z, z_ub, 0, 1, 16, 0, 0)\n"
FILLED = "t.data_move(x_ub, x, 0, 1, 16, 0, 0)\n"
ABS = "t.vec_abs(128, z_ub, x_ub, 2, 8, 8)\n"
TIK = {
    "uninitialised": BEGIN + TILES + ABS + STORE + END,
    "out-of-bounds": BEGIN + TILES + FILLED + ABS.replace("2, 8, 8", "3, 8, 8") + STORE + END,
    "overlap": BEGIN
    + TILES
    + FILLED
    + "t.vec_adds(128, x_ub[16], x_ub, 1.0, 2, 8, 8)\nt.data_move(z, x_ub, 0, 1, 16, 0, 0)\n"
    + END,
    "race-waw": BEGIN
    + "with t.for_range(0, 2, block_num=2) as block:\n"
    + "".join(f"    {line}\n" for line in (TILES + FILLED + ABS + STORE).splitlines())
    + END,
    "unread": BEGIN + TILES + FILLED + ABS + ABS + STORE + END,
    "mode-left": BEGIN + TILES + FILLED + ABS + "t.set_atomic_add(1)\n" + STORE + END,
}
"""Programs of TIK."""


WITH_FILLING = """asc_copy_gm2ub_align(a, x, 1, 20, 0, 0, 0, 0);
asc_sync_notify(PIPE_MTE2, PIPE_V, 0);
asc_sync_wait(PIPE_MTE2, PIPE_V, 0);
asc_add_scalar(b, a, 1, 8);
asc_sync_notify(PIPE_V, PIPE_MTE3, 0);
asc_sync_wait(PIPE_V, PIPE_MTE3, 0);
asc_copy_ub2gm(z, b, 32);"""
CALLS["filling-read"] = WITH_FILLING
C_FRAME = """__simd_vf__ inline void work_{name}(__ubuf__ float* xu, __ubuf__ float* yu,
                                    __ubuf__ float* zu, __ubuf__ float* tu) {{
  vector_float a, b, c, d;
  vector_int32_t s;
  vector_bool all = asc_create_mask_b32(PAT_ALL), few = asc_create_mask_b32(PAT_VL8);
  vector_bool few16 = asc_create_mask_b16(PAT_VL8);
  {body}
}}
extern "C" __vector__ __global__ __aicore__ void {name}(__gm__ float* x, __gm__ float* y,
                                                       __gm__ float* z, uint32_t n) {{
  __ubuf__ float xu[1024];
  __ubuf__ float yu[1024];
  __ubuf__ float zu[1024];
  __ubuf__ float tu[1024];
  asc_copy_gm2ub(xu, x, 2048);
  asc_copy_gm2ub(yu, y, 2048);
  asc_copy_gm2ub(zu, x, 2048);
  asc_sync_notify(PIPE_MTE2, PIPE_V, 0);
  asc_sync_wait(PIPE_MTE2, PIPE_V, 0);
  asc_vf_call<work_{name}>(xu, yu, zu, tu);
  asc_sync_notify(PIPE_V, PIPE_MTE3, 0);
  asc_sync_wait(PIPE_V, PIPE_MTE3, 0);
  asc_copy_ub2gm(z, zu, 2048);
}}
"""
_LOADED = "asc_loadalign(a, xu);\n  "
_STORED = "\n  asc_storealign(zu, {}, all);"
_MANY = [f"v{number}" for number in range(40)]
_SPILLED = "\n  ".join(
    (
        f"vector_float {', '.join(_MANY)};",
        *(f"asc_loadalign({name}, xu + {8 * at});" for at, name in enumerate(_MANY)),
        "asc_duplicate_scalar(a, 0.0f, all);",
        *(f"asc_add(a, a, {name}, all);" for name in _MANY),
        "asc_storealign(zu, a, all);",
    )
)
REGISTERS_IN_C = {
    "vf-race": f"{_LOADED}asc_storealign(tu, a, all);\n  asc_loadalign(b, tu);"
    + _STORED.format("b"),
    "vf-store-order": f"{_LOADED}asc_loadalign(b, yu);{_STORED.format('a')}\n"
    "  asc_storealign(zu + 8, b, all);",
    "register-uninitialised": f"{_LOADED}asc_add(c, a, d, all);{_STORED.format('c')}",
    "mask-width": f"{_LOADED}asc_add(c, a, a, few16);{_STORED.format('c')}",
    "lanes-stale": f"{_LOADED}asc_copy(b, a, few);{_STORED.format('b')}",
    "unalign-protocol": "vector_load_unalign u;\n  __ubuf__ float* p = xu + 3;\n"
    f"  asc_loadunalign_postupdate(a, u, p, 64);{_STORED.format('a')}",
    "scatter-duplicate": "vector_uint32_t i;\n  asc_duplicate_scalar(i, 3u, all);\n"
    f"  {_LOADED}asc_scatter(zu, a, i, all);",
    "shift-amount": "asc_loadalign(s, (__ubuf__ int32_t*)xu);\n"
    "  asc_shiftleft_scalar(s, s, (int16_t)-3, all);\n"
    "  asc_storealign((__ubuf__ int32_t*)zu, s, all);",
    "squeeze-order": f"vector_store_unalign u;\n  {_LOADED}asc_squeeze_v2(b, a, all);\n"
    "  asc_storeunalign_postupdate(zu, u, b);\n  asc_storeunalign_post(zu, u);",
    "registers-spilled": _SPILLED,
    "vf-loop": f"for (int32_t i = 0; i < 4; ++i) {{\n    {_LOADED}{_STORED.format('a')}\n  }}",
}
"""Vector functions of the C API, on 512 floats each at xu, yu and zu."""
VF_TOO_EARLY = C_FRAME.format(name="race_raw", body=f"{_LOADED}{_STORED.format('a')}").replace(
    "  asc_sync_notify(PIPE_MTE2, PIPE_V, 0);\n  asc_sync_wait(PIPE_MTE2, PIPE_V, 0);\n", ""
)
"""A vector function that is called before its loads have ended."""
