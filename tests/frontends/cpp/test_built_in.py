"""Built-in functions over raw pointers, and functions of bits, against NumPy."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR z"
BEFORE = """
__aicore__ inline void load(void* to, GM_ADDR x, int bytes) {
  set_mask_norm();
  set_vector_mask(-1, -1);
  copy_gm_to_ubuf_align_b32((__ubuf__ float*)to, (__gm__ float*)x, 0, 1, bytes, 0, 0, 0, 0);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
}
template <typename T>
__aicore__ inline void store(GM_ADDR z, T* from, int bytes) {
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  copy_ubuf_to_gm_align_b8((__gm__ T*)z, from, 0, 1, bytes, 0, 0, 0, 0);
}
"""
LOADED = """
  __ubuf__ float *a = (__ubuf__ float*)0, *to = (__ubuf__ float*)1024;
  load(a, x, 256);
"""
WHOLE = """
  GlobalTensor<float> gx, gy;
  gx.SetGlobalBuffer((__gm__ float*)x);
  gy.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> a(TPosition::VECCALC, 0, 128), b(TPosition::VECCALC, 512, 128);
  DataCopy(a, gx, 128);
  DataCopy(b, gy, 128);
  PipeBarrier<PIPE_ALL>();
"""
ONE_BY_ONE = ("vabs", "vexp", "vln", "vrelu", "vsqrt")
ROUNDED = {"r": np.rint, "f": np.floor, "c": np.ceil, "z": np.trunc}


def _calls(names, form, bytes_of_each=256):
    calls = [form.format(name=name, to=64 * n) for n, name in enumerate(names)]
    return f"{LOADED}  {' '.join(calls)}\n  store(z, to, {bytes_of_each * len(calls)});"


BODIES = {
    "unary": _calls(ONE_BY_ONE, "{name}(to + {to}, a, 1, 1, 1, 8, 8);"),
    "scalar": _calls(
        ("vadds", "vmuls", "vmaxs", "vmins"), "{name}(to + {to}, a, 2, 1, 1, 1, 8, 8);"
    ),
    "rounded": _calls(
        ROUNDED, "vconv_f322s32{name}((__ubuf__ int32_t*)to + {to}, a, 1, 1, 1, 8, 8);"
    ),
    "blocks": _calls(
        ("vcgadd", "BlockReduceMaxIntrinsicsImpl", "vcgmin"),
        "{name}(to + {to} / 8, a, 1, 1, 1, 8);",
        32,
    ),
    "extremes": LOADED
    + """
  vcmax(to, a, 1, 1, 1, 8, Order_t::ONLY_VALUE);
  vcmin(to + 8, a, 1, 1, 1, 8, Order_t::ONLY_VALUE);
  vcmax((__ubuf__ uint32_t*)to + 16, a, 1, 1, 1, 8, Order_t::ONLY_INDEX);
  store(z, to, 96);
""",
    "halves": LOADED + """
  __ubuf__ half* h = (__ubuf__ half*)2048;
  vconv_f322f16(h, a, 1, 1, 1, 4, 8);
  pipe_barrier(PIPE_V);
  vconv_f162f32(to, h, 1, 1, 1, 8, 4);
  vbrcb((__ubuf__ uint32_t*)to + 64, (__ubuf__ uint32_t*)a, 1, 8, 1);
  store(z, to, 512);
""",
    "counted": """
  __gm__ int64_t* out = (__gm__ int64_t*)z;
  dcci(x, ENTIRE_DATA_CACHE);
  out[0] = clz(1);
  out[1] = clz(0);
  out[2] = clz(*(__gm__ uint64_t*)x);
""",
    "wide": """
  __ubuf__ int32_t* to = (__ubuf__ int32_t*)256;
  DataCopyPadGm2UBImpl(to, (__gm__ int32_t*)x, DataCopyExtParams{1, 64, 0, 0, 0},
                       DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
  PipeBarrier<PIPE_ALL>();
  DataCopyPadUB2GMImpl((__gm__ int32_t*)z, to, DataCopyExtParams{1, 64, 0, 0, 0});
""",
    "fused": WHOLE + """
  uint64_t mask = 64;
  SetMaskNorm();
  SetVectorMask<float, MaskMode::NORMAL>(64);
  MulAddDst<float, float, false>(a, b, b, mask, 2, BinaryRepeatParams(1, 1, 1, 8, 8, 8));
  PipeBarrier<PIPE_ALL>();
  GlobalTensor<float> gz;
  gz.SetGlobalBuffer((__gm__ float*)z);
  DataCopy(gz, a, 128);
""",
}  # fmt: skip


@pytest.fixture(scope="module")
def built_in():
    return kernels(BODIES, PARAMETERS, BEFORE)


def _run(built_in, name, out, x, y=None):
    left = built_in[name][1](x, np.zeros(8, np.float32) if y is None else y, out)
    return left.findings


def numbers(count, seed=0):
    made = np.random.default_rng(seed).standard_normal(count) * 4
    return made.astype(np.float32)


def test_functions_of_one_source(built_in):
    x, z = np.abs(numbers(64)), np.zeros((len(ONE_BY_ONE), 64), np.float32)
    assert _run(built_in, "unary", z, x) == ()
    expected = [x, np.exp(x), np.log(x), x, np.sqrt(x)]
    np.testing.assert_allclose(z, expected, rtol=1e-6)


def test_functions_of_a_number(built_in):
    x, z = numbers(64), np.zeros((4, 64), np.float32)
    assert _run(built_in, "scalar", z, x) == ()
    assert np.array_equal(z, [x + 2, x * 2, np.maximum(x, 2), np.minimum(x, 2)])


def test_conversions_round_as_their_names_say(built_in):
    x, z = numbers(64), np.zeros((4, 64), np.int32)
    assert _run(built_in, "rounded", z, x) == ()
    assert np.array_equal(z, [rounded(x) for rounded in ROUNDED.values()])


def test_sums_and_extremes_of_blocks(built_in):
    x, z = np.rint(numbers(64)), np.zeros((3, 8), np.float32)
    assert _run(built_in, "blocks", z, x) == ()
    blocks = x.reshape(8, 8)
    assert np.array_equal(z, [blocks.sum(axis=1), blocks.max(axis=1), blocks.min(axis=1)])


def test_extremes_of_a_repeat(built_in):
    x, z = numbers(64), np.zeros(24, np.float32)
    assert _run(built_in, "extremes", z, x) != ()  # the rest of each block was never written
    assert z[[0, 8]].tolist() == [x.max(), x.min()]
    assert z.view(np.uint32)[16] == x.argmax()


def test_halves_there_and_back_and_a_block_for_each_element(built_in):
    x, z = numbers(64), np.zeros(128, np.float32)
    assert _run(built_in, "halves", z, x) == ()
    assert np.array_equal(z[:64], x.astype(np.float16).astype(np.float32))
    assert np.array_equal(z[64:], np.repeat(x[:8], 8))


def test_leading_zeros(built_in):
    x, z = np.array([1 << 40, 0, 0, 0], np.uint64), np.zeros(4, np.int64)
    assert _run(built_in, "counted", z, x) == ()
    assert z.tolist() == [63, 64, 23, 0]


def test_pointers_are_copied_as_tensors_are(built_in):
    x, z = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    assert _run(built_in, "wide", z, x) == ()
    assert np.array_equal(z, x)


def test_a_fused_product_keeps_a_mask_that_was_set(built_in):
    x, y, z = numbers(128), numbers(128, seed=1), np.zeros(128, np.float32)
    assert _run(built_in, "fused", z, x, y) == ()
    exact = x.astype(np.float64) + y.astype(np.float64) ** 2
    np.testing.assert_allclose(z, exact, rtol=1e-6, atol=1e-6)


CONTROL = """
  __gm__ int64_t* out = (__gm__ int64_t*)z;
  const uint64_t word = 0x0100000000000020ULL;
  out[0] = CountLeadingZero(word);
  out[1] = CountBitsCntSameAsSignBit(word);
  out[2] = GetSFFValue<1>(0x1000000000000100ULL);
  out[3] = GetBitCount<1>(word) * 100 + GetBitCount<0>(word);
  out[4] = GetSFFValue<0>(~0ULL) * 100 + CountBitsCntSameAsSignBit(-1);
  const int64_t before = GetCtrlSpr<48, 48>();
  SetCtrlSpr<59, 60>(1);
  out[5] = before * 100 + GetCtrlSpr<59, 60>() * 10 + GetCtrlSpr<59, 59>();
  SetSaturationFlag<SaturationMode::FLOAT>(false);
  out[6] = GetCtrlSpr<48, 48>() * 10 + GetSaturationFlag<SaturationMode::FLOAT>();
  SetStoreAtomicConfig<AtomicDtype::ATOMIC_F32, AtomicOp::ATOMIC_SUM>();
  SetStoreAtomicConfig<AtomicDtype::ATOMIC_NONE, AtomicOp::ATOMIC_SUM>();
  Async<EngineType::AIV, given>(out + 7, 70);
  Async<EngineType::AIC, given>(out + 7, 7);
"""
GIVEN = "__aicore__ inline void given(__gm__ int64_t* to, int64_t value) { *to = value; }\n"


def test_bits_of_numbers_and_of_the_control_register():
    z = np.zeros(8, np.int64)
    made = kernels({"k": CONTROL}, PARAMETERS, GIVEN).k
    assert made[1](np.zeros(8, np.float32), np.zeros(8, np.float32), z).findings == ()
    assert z.tolist() == [7, 6, 8, 262, -101, 11, 10, 70]


PRODUCT = """
  __cbuf__ half *a1 = (__cbuf__ half*)0, *b1 = (__cbuf__ half*)4096;
  __ca__ half* a2 = (__ca__ half*)0;
  __cb__ half* b2 = (__cb__ half*)0;
  __cc__ float* c = (__cc__ float*)0;
  copy_gm_to_cbuf_multi_nd2nz_b16(a1, (__gm__ half*)x, 0, 1, 16, 32, 0, 32, 16, 1, 0);
  copy_gm_to_cbuf_multi_nd2nz_b16(b1, (__gm__ half*)y, 0, 1, 32, 16, 0, 16, 32, 1, 0);
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  load_cbuf_to_ca(a2, a1, 0, 2, 1, 0, 0, false, inc);
  load_cbuf_to_cb_transpose(b2, b1, 0, 2, 1, 0, inc, 0);
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  mad(c, a2, b2, 16, 32, 16, 0, false, false, true);
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  set_nd_para(0x1);
  copy_matrix_cc_to_gm((__gm__ float*)z, c, 0, 16, 16, 16, 16, 0, NoQuant, 0, false, true);
"""


def test_a_product_by_built_in_functions():
    a, b = (np.rint(numbers(512, seed=n)).astype(np.float16) for n in range(2))
    z = np.zeros((16, 16), np.float32)
    made = kernels({"k": PRODUCT}, PARAMETERS).k
    assert made[1](a, b, z).findings == ()
    assert np.array_equal(z, a.reshape(16, 32).astype(np.float32) @ b.reshape(32, 16))
