"""Names and forms that public kernels use beside the class API's: built-in functions, events."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
PARAMETERS = "GM_ADDR x, GM_ADDR z"
BEFORE = """
#define IN(T, n) GlobalTensor<T> gx; gx.SetGlobalBuffer((__gm__ T*)x, n)
#define OUT(T, n) GlobalTensor<T> gz; gz.SetGlobalBuffer((__gm__ T*)z, n)
template <HardEvent event> __aicore__ inline void order() { SetFlag<event>(0); WaitFlag<event>(0); }
__aicore__ inline void load(int16_t* to, GM_ADDR x) {
  set_mask_norm();
  set_vector_mask(-1, -1);
  copy_gm_to_ubuf(to, (__gm__ int16_t*)x, 0, 1, 16, 0, 0);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
}
__aicore__ inline void store(GM_ADDR z, int16_t* from, int blocks) {
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  copy_ubuf_to_gm((__gm__ int16_t*)z, from, 0, 1, blocks, 0, 0);
}
"""
BODIES = {
    "moved": """
  __ubuf__ int16_t *a = (__ubuf__ int16_t*)0, *b = (__ubuf__ int16_t*)1024;
  load(a, x);
  vtranspose((__ubuf__ uint16_t*)b, (__ubuf__ uint16_t*)a);
  pipe_barrier(PIPE_V);
  vector_dup(a, (int16_t)77, 1, 1, 0, 8, 0);
  pipe_barrier(PIPE_V);
  copy_ubuf_to_ubuf(a, b, 0, 2, 4, 4, 0);
  store(z, a, 16);
""",
    "joined": """
  __ubuf__ int16_t *a = (__ubuf__ int16_t*)0, *b = (__ubuf__ int16_t*)256;
  __ubuf__ int16_t* to = (__ubuf__ int16_t*)512;
  load(a, x);
  vadd(to, a, b, 1, 1, 1, 1, 8, 8, 8);
  vsub(to + 128, a, b, 1, 1, 1, 1, 8, 8, 8);
  vmul(to + 256, a, b, 1, 1, 1, 1, 8, 8, 8);
  vmax(to + 384, a, b, 1, 1, 1, 1, 8, 8, 8);
  vmin(to + 512, a, b, 1, 1, 1, 1, 8, 8, 8);
  vand(to + 640, a, b, 1, 1, 1, 1, 8, 8, 8);
  vor(to + 768, a, b, 1, 1, 1, 0, 8, 8, 0);
  vdiv((__ubuf__ half*)to + 896, (__ubuf__ half*)a, (__ubuf__ half*)b, 1, 1, 1, 1, 8, 8, 8);
  store(z, to, 64);
""",
    "wide": """
  IN(int64_t, 8);
  OUT(int64_t, 8);
  LocalTensor<int64_t> a(TPosition::VECIN, 0, 8);
  DataCopyPad(a, gx, DataCopyExtParams{2, 24, 16, 0, 0},
              DataCopyPadExtParams<int64_t>{true, 0, 1, 0});
  order<HardEvent::MTE2_MTE3>();
  DataCopyPad(gz, a, DataCopyExtParams{1, 64, 0, 0, 0});
""",
    "placed": """
  IN(float, 16);
  OUT(float, 16);
  LocalTensor<float> a, b;
  a.InitBuffer(64, 32);
  a.address_.logicPos = static_cast<uint8_t>(TPosition::VECIN);
  DataCopy(a, gx, 16);
  b.address_ = a.address_;
  b.address_.bufferAddr += 32;
  order<HardEvent::MTE2_MTE3>();
  DataCopy(gz, b, DataCopyParams(1, 1, 0, 0),
           DataCopyEnhancedParams(BlockMode::BLOCK_MODE_MATRIX, DeqScale::DEQ_NONE, 0, 0, true,
                                  pad_t::PAD_NONE, 0));
  const bool in = b.GetPosition() == static_cast<int32_t>(TPosition::VECIN);
  gz.SetValue(8, b.GetSize() * 100 + b.address_.dataLen + in);
  gz.SetValue(9, block_num * 10 + block_idx);
""",
    "atomics": """
  IN(int32_t, 8);
  OUT(int32_t, 24);
  LocalTensor<int32_t> a(TPosition::VECIN, 0, 8);
  DataCopy(a, gx, 8);
  order<HardEvent::MTE2_MTE3>();
  SetAtomicType<int32_t>();
  DataCopy(gz, a, 8);
  SetAtomicMax<float>();
  SetAtomicNone();
  SetAtomicType<int32_t>();
  DataCopy(gz[8], a, 8);
  SetAtomicNone();
  DataCopy(gz[16], a, 8);
""",
    "queued": """
  TPipe pipe;
  TQue<TPosition::VECOUT, 1> queue;
  pipe.InitBuffer(queue, 1, 8192);
  OUT(float, 8192);
  for (int n = 0; n < 4; ++n) {
    LocalTensor<float> a = queue.AllocTensor<float>();
    Duplicate(a, (float)n, 2048);
    queue.EnQue(a);
    a = queue.DeQue<float>();
    event_t event = static_cast<event_t>(pipe.FetchEventID(HardEvent::V_MTE3));
    SetFlag<HardEvent::V_MTE3>(event);
    WaitFlag<HardEvent::V_MTE3>(event);
    DataCopy(gz[n * 2048], a, 2048);
    queue.FreeTensor(a);
  }
""",
    "filled": """
  TPipe pipe;
  OUT(float, 192);
  Fill(gz, 64, 1.0f);
  GlobalTensor<float> second = gz[64], third = gz[128];
  Fill(second, 64, 1.0f);
  if (*(__gm__ float*)x != 0) order<HardEvent::MTE3_V>();
  Fill(third, 64, 2.0f);
""",
    "fetched": """
  TPipe pipe;
  OUT(float, 4096);
  LocalTensor<float> a(TPosition::VECOUT, 0, 4096);
  for (int n = 0; n < 2; ++n) {
    Duplicate(a[n * 2048], (float)n, 2048);
    event_t event = static_cast<event_t>(pipe.FetchEventID(HardEvent::V_MTE3));
    SetFlag<HardEvent::V_MTE3>(event);
    WaitFlag<HardEvent::V_MTE3>(event);
    DataCopy(gz[n * 2048], a[n * 2048], 2048);
  }
""",
}


@pytest.fixture(scope="module")
def public():
    return kernels(BODIES, PARAMETERS, BEFORE)


def ran(kernel, x, z):
    """Return z and the kinds of what was found."""
    return z, [finding.id for finding in kernel[1](x, z).findings]


@pytest.mark.sweep
def test_built_in_functions_move_within_ub(public):
    x = np.arange(256, dtype=np.int16).reshape(16, 16)
    z, found = ran(public.moved, x, np.zeros(256, np.int16))
    turned = x.T.reshape(-1)
    assert found == []
    assert np.array_equal(z[:128], np.concatenate([turned[:64], turned[128:192]]))


def test_built_in_functions_join_two_sources(public):
    rng = np.random.default_rng(5)
    halves = rng.uniform(1, 8, 256).astype(np.float16)
    x = halves.view(np.int16)
    a, b = x[:128], x[128:]
    z, found = ran(public.joined, x, np.zeros(1024, np.int16))
    assert found == []
    first = np.tile(b[:16], 8)
    exact = [a + b, a - b, a * b, np.maximum(a, b), np.minimum(a, b), a & b, a | first]
    assert np.array_equal(z[:896].reshape(7, 128), exact)
    assert np.array_equal(z[896:].view(np.float16), halves[:128] / halves[128:])


def test_elements_of_64_bits_are_padded_with_zeros(public):
    """Page DataCopyPad: int64_t, uint64_t and double on A2, paddingValue 0."""
    x = np.arange(1, 9, dtype=np.int64) << 40
    z, found = ran(public.wide, x, np.full(8, -1, np.int64))
    assert (found, (z >> 40).tolist()) == ([], [1, 2, 3, 0, 6, 7, 8, 0])


def test_a_tensor_lies_where_its_address_says(public):
    x = np.arange(16, dtype=np.float32)
    z, found = ran(public.placed, x, np.zeros(16, np.float32))
    assert (found, z[:8].tolist()) == ([], list(range(8, 16)))
    assert z[8:10].tolist() == [32 * 100 + 128 + 1, 10]


def test_atomics_of_a_type_keep_the_operation(public):
    """Addition before any other; page SetAtomicType."""
    x, z = np.arange(8, dtype=np.int32), np.full(24, 3, np.int32)
    z, found = ran(public.atomics, x, z)
    assert found == []
    assert np.array_equal(z.reshape(3, 8), [x + 3, np.maximum(x, 3), x])


def test_an_event_of_fetcheventid_is_not_one_that_a_queue_has_just_used(public):
    z, found = ran(public.queued, np.zeros(8, np.float32), np.zeros(8192, np.float32))
    assert (found, z[::2048].tolist()) == ([], [0, 1, 2, 3])


@pytest.mark.parametrize(("waits", "kinds"), [(1, []), (0, ["race-war", "flag-doubled"])])
def test_fills_with_one_value_need_no_order(public, waits, kinds):
    """Page Fill (global memory): MTE3_V between calls with different values, only there."""
    z, found = ran(public.filled, np.full(8, waits, np.float32), np.zeros(192, np.float32))
    assert (found, z.reshape(3, 64)[:, 0].tolist()) == (kinds, [1, 1, 2])


@pytest.mark.sweep
def test_the_aics_of_a_mix_leave_a_fill_to_its_aivs():
    """The page goes by way of UB, which an AIC does not have."""
    body = """
      KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
      OUT(int32_t, 64);
      if (g_coreType == AIC || GetSubBlockIdx() == 0) Fill(gz, 64, 7);
    """
    z = np.zeros(64, np.int32)
    run = kernels({"k": body}, PARAMETERS, BEFORE).k[1](np.zeros(8, np.int32), z)
    assert (run.findings, z.tolist()) == ((), [7] * 64)


def test_two_fetched_events_are_the_same(public):
    """Page FetchEventID: calls one after the other have one ID, and may hang."""
    z, found = ran(public.fetched, np.zeros(8, np.float32), np.zeros(4096, np.float32))
    assert (found, z[::2048].tolist()) == (["flag-doubled"], [0, 1])


PARTS = """
#include "kernel_operator.h"
using namespace AscendC;
template <int PART> __aicore__ void run(GM_ADDR z);
template <> __aicore__ void run<AIC>(GM_ADDR z) {
  LocalTensor<float> a(TPosition::VECIN, 0, 8);
  LocalTensor<float> l0c(TPosition::CO1, 0, 256);
  GlobalTensor<float> gz;
  gz.SetGlobalBuffer((__gm__ float*)z);
  gz.SetValue(0, 5.0f);
}
extern "C" __global__ __aicore__ void parts(GM_ADDR z) { run<g_coreType>(z); }
"""


def test_a_kernel_without_one_part_runs_on_the_other():
    """Nothing in the file says that it is for AICs alone, but the AIVs' function is not there."""
    z = np.zeros(1, np.float32)
    kernel = cubecore.inline(PARTS).parts
    assert (kernel.kind, kernel[1](z).findings, z.tolist()) == ("cube", (), [5])


def test_a_function_without_a_definition_is_named():
    text = PARTS.replace("run<AIC>", "run<7>")
    line = len(text.splitlines())
    with pytest.raises(RequestError) as caught:
        cubecore.inline(text).parts[1](np.zeros(1, np.float32))
    said = "does not link: no void run<1>(unsigned char*)"
    assert str(caught.value) == f"inline.cpp:{line} {said}"


ROUNDINGS = ("CeilDiv", "ConstCeil", "DivCeil", "CeilAlign", "AlignUp", "Ceil", "Align")


@pytest.mark.sweep
def test_roundings_that_a_file_defines_for_itself_come_first():
    own = "template <typename A, typename B> A {name}(A a, B) {{ return a + 1; }}\n"
    plain = "inline int64_t Align(int64_t a, int64_t) { return a + 1; }\n"
    calls = "".join(
        f"to.SetValue({n}, {name}(int64_t({10 * n}), 3u));\n" for n, name in enumerate(ROUNDINGS)
    )
    written = "to; to.SetGlobalBuffer((__gm__ int64_t*)x, 8);\n"
    module = kernels(
        {"k": f"GlobalTensor<int64_t> {written}{calls}"},
        "GM_ADDR x",
        "".join(own.format(name=name) for name in ROUNDINGS[:-1]) + plain,
    )
    z = np.zeros(8, np.int64)
    module.k[1](z)
    assert z[:7].tolist() == [10 * n + 1 for n in range(7)]


def test_roundings_of_the_class_api():
    calls = "".join(
        f"to.SetValue({n}, {name}(int64_t(10), 4u));\n" for n, name in enumerate(ROUNDINGS)
    )
    body = "GlobalTensor<int64_t> to; to.SetGlobalBuffer((__gm__ int64_t*)x, 8);\n" + calls
    z = np.zeros(8, np.int64)
    kernels({"k": body}, "GM_ADDR x").k[1](z)
    assert z[:7].tolist() == [3, 3, 3, 12, 12, 3, 12]


STEPS = """
  OUT(int32_t, 64);
  int32_t to[4], from[4] = {1, 2, 3, 4};
  copy_data_align64((uint8_t*)to, (uint8_t*)from, sizeof(to));
  for (int32_t n = 0; n < 4; ++n) gz.SetValue(n, to[n]);
  gz.SetValue(4, std::min(MAX_REPEAT_TIMES, to[3] + 300));
  gz.SetValue(5, DEFAULT_DATA_COPY_NBURST);
  LocalTensor<int32_t> a(TPosition::VECCALC, 0, 64);
  SetVectorMask<int32_t>(0, 255);
  DuplicateIntrinsicsImpl((__ubuf__ int32_t*)a.GetPhyAddr(), 7, 1, 1, 8);
  order<HardEvent::V_MTE3>();
  DataCopy(gz[16], a, 8);
"""
NOTIFIED = """
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  OUT(int32_t, 8);
  if ASCEND_IS_AIC {
    gz.SetValue(0, 5);
    DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE>(gz);
    NotifyEvent<PIPE_S>(3);
  } else {
    WAIT
    Barrier();
    if (GetSubBlockIdx() == 0) gz.SetValue(1, gz.GetValue(0) + 1);
  }
"""


def test_steps_of_the_library_that_no_page_has():
    z = np.zeros(64, np.int32)
    found = kernels({"k": STEPS}, PARAMETERS, BEFORE).k[1](np.zeros(8, np.int32), z).findings
    assert (found, z[:6].tolist(), z[16:24].tolist()) == ((), [1, 2, 3, 4, 255, 1], [7] * 8)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("waits", [True, False])
def test_an_aic_notifies_its_aivs(waits):
    """Guide "AIV核上的ND2NZ格式转换"; Barrier by itself orders nothing."""
    body = NOTIFIED.replace("WAIT", "WaitEvent(3);" if waits else "")
    z = np.zeros(8, np.int32)
    run = kernels({"k": body}, PARAMETERS, BEFORE).k[1](np.zeros(8, np.int32), z)
    assert z[1] == 6  # cores run in turns, the AIC first
    assert {finding.id for finding in run.findings} == (
        set() if waits else {"race-raw", "stale-cache", "flag-leaked"}
    )
