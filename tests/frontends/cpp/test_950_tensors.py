"""Functions on tensors that 950 alone has as vector functions, and its ways to compute: values."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
COUNT, SECOND = 300, 512  # elements: not whole registers
CPP = {"float32": "float", "float16": "half", "int16": "int16_t", "int32": "int32_t"}
FRAME = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 32768);
  GlobalTensor<{T}> xg;
  GlobalTensor<{U}> zg;
  xg.SetGlobalBuffer((__gm__ {T}*)x);
  zg.SetGlobalBuffer((__gm__ {U}*)z);
  auto a = memory.Get<{T}>();
  auto b = a[512];
  auto d = memory.Get<{U}>()[4096 / sizeof({U})];
  DataCopy(a, xg, 1024);
  PipeBarrier<PIPE_ALL>();
  {call}
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(zg, d, {{1, 300 * sizeof({U}), 0, 0}});
"""
FIRST = "static constexpr BinaryConfig first = {0}; "


def long_product(a, b, part):
    product = a.astype(np.int64) * b.astype(np.int64)
    return (product >> 32 if part else product).astype(np.int32)


BITS = "auto m = memory.Get<uint8_t>()[24576]; "
COUNTED = """
  __ubuf__ float* from = (__ubuf__ float*)a.GetPhyAddr();
  __ubuf__ float* to = (__ubuf__ float*)d.GetPhyAddr();
  uint32_t left = 300;
  __VEC_SCOPE__ {
    for (uint16_t n = 0; n < 5; ++n) {
      Reg::MaskReg mask = plt_b32(left, POST_UPDATE);
      Reg::RegTensor<float> lanes;
      Reg::LoadAlign(lanes, from + 64 * n);
      Reg::StoreAlign(to + 64 * n, lanes, mask);
    }
  }
"""
AS_SCALAR = "SELMODE::VSEL_TENSOR_SCALAR_MODE, 300);"
OF_CONFIG = "BinaryDefaultType, BinaryDefaultType, true, first"
OTHER = BITS + "Compares(m, a, (half)1, CMPMODE::GE, 300);"
PLACES = {
    # Comparisons with the scalar in either place, as the elements of a where they hold, and 0.
    "number_left": ("Compares(m, (half)1, a, CMPMODE::LT, 300);", lambda a, _: a > 1),
    "number_at_most": ("Compares(m, (half)1, a, CMPMODE::GE, 300);", lambda a, _: a <= 1),
    "element_right": ("Compares(m, a, b[16], CMPMODE::LE, 300);", lambda a, b: a <= b[16]),
    "element_left": (
        f"{FIRST}Compares<{OF_CONFIG}>(m, b[16], a, CMPMODE::GT, 300);",
        lambda a, b: a < b[16],
    ),
    "type_named": ("CompareScalar<uint8_t>(m, a, (half)1, CMPMODE::NE, 300);", lambda a, _: a != 1),
}
CASES = {
    **{
        name: (
            "float16",
            "float16",
            f"{BITS}{call} Select(d, m, a, (half)0, {AS_SCALAR}",
            lambda a, b, of=of: np.where(of(a, b), a, 0),
        )
        for name, (call, of) in PLACES.items()
    },
    "select_number_left": (
        "float16",
        "float16",
        f"{OTHER} Select(d, m, (half)7, a, {AS_SCALAR}",
        lambda a, _: np.where(a >= 1, 7, a),
    ),
    "select_element": (
        "float16",
        "float16",
        f"static constexpr BinaryConfig second = {{1}}; {OTHER}"
        f"Select<BinaryDefaultType, uint8_t, second>(d, m, a, b[16], {AS_SCALAR}",
        lambda a, b: np.where(a >= 1, a, b[16]),
    ),
    "select_element_left": (
        "float16",
        "float16",
        f"{FIRST}{OTHER}Select<BinaryDefaultType, uint8_t, first>(d, m, b[16], a, {AS_SCALAR}",
        lambda a, b: np.where(a >= 1, b[16], a),
    ),
    # name: (T, U, call, of a and b)
    "neg": ("float32", "float32", "Neg(d, a, 300);", lambda a, _: -a),
    "neg_half": ("float16", "float16", "Neg(d, a, 300);", lambda a, _: -a),
    "copy_half": ("float16", "float16", "Copy(d, a, 300);", lambda a, _: a),
    "counted_mask": ("float32", "float32", COUNTED, lambda a, _: a),
    "select_less": (  # 300 elements of 4 B are no whole number of 256 B
        "int32",
        "int32",
        BITS + "Compare(m, a, b, CMPMODE::LT, 300);"
        "Select(d, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 300);",
        np.minimum,
    ),
    "select_number": (
        "float16",
        "float16",
        BITS + "Compares(m, a, (half)1, CMPMODE::GE, 300);"
        "Select(d, m, a, (half)1, SELMODE::VSEL_TENSOR_SCALAR_MODE, 300);",
        lambda a, _: np.maximum(a, 1),
    ),
    "prelu": ("float32", "float32", "Prelu(d, a, b, 300);", lambda a, b: np.where(a < 0, a * b, a)),
    "abs_sub": ("float16", "float16", "AbsSub(d, a, b, 300);", lambda a, b: abs(a - b)),
    "exp_sub": ("float32", "float32", "ExpSub(d, a, b, 300);", lambda a, b: np.exp(a - b)),
    "exp_sub_wide": (
        "float16",
        "float32",
        "ExpSub(d, a, b, 300);",
        lambda a, b: np.exp(a.astype(float) - b.astype(float)),
    ),
    "exp_sub_half": (
        "float16",
        "float16",
        "ExpSub(d, a, b, 300);",
        lambda a, b: np.exp(a.astype(np.float64) - b),
    ),
    "muls_cast": ("float32", "float16", "MulsCast(d, a, 0.5f, 300);", lambda a, _: a * 0.5),
    "muls_cast_two": ("float32", "float16", "MulsCast(d, a, b, 300);", lambda a, b: a * b[0]),
    "mull_low": (
        "int32",
        "int32",
        "Mull(d, d[512], a, b, 300);",
        lambda a, b: long_product(a, b, 0),
    ),
    "mull_high": (
        "int32",
        "int32",
        "Mull(d[512], d, a, b, 300);",
        lambda a, b: long_product(a, b, 1),
    ),
    "ands": ("int16", "int16", "Ands(d, a, (int16_t)12, 300);", lambda a, _: a & np.int16(12)),
    "ors_first": ("int16", "int16", "Ors(d, (int16_t)3, a, 300);", lambda a, _: a | np.int16(3)),
    "ors_two": ("int16", "int16", "Ors(d, a, b, 300);", lambda a, b: a | b[0]),
    "subs": ("float32", "float32", "Subs(d, a, 1.5f, 300);", lambda a, _: a - np.float32(1.5)),
    "subs_first": ("float32", "float32", "Subs(d, 1.5f, a, 300);", lambda a, _: 1.5 - a),
    "subs_two": ("float32", "float32", "Subs(d, a, b, 300);", lambda a, b: a - b[0]),
    "subs_two_first": (
        "float32",
        "float32",
        FIRST + "Subs<BinaryDefaultType, true, first>(d, a, b, 300);",
        lambda a, b: a[0] - b,
    ),
    "divs": ("float32", "float32", "Divs(d, a, 3.0f, 300);", lambda a, _: a / np.float32(3)),
    "divs_first": ("float32", "float32", "Divs(d, 3.0f, a, 300);", lambda a, _: np.float32(3) / a),
    "adds_first": ("float16", "float16", "Adds(d, (half)2.0, a, 300);", lambda a, _: a + 2),
    "muls_two": ("float32", "float32", "Muls(d, a, b, 300);", lambda a, b: a * b[0]),
    "maxs_two": ("int32", "int32", "Maxs(d, a, b, 300);", lambda a, b: np.maximum(a, b[0])),
    "mins_first": ("int32", "int32", "Mins(d, 7, a, 300);", lambda a, _: np.minimum(a, 7)),
    "truncate": (
        "float32",
        "float32",
        "Truncate<float, RoundMode::CAST_FLOOR>(d, a, 300);",
        lambda a, _: np.floor(a),
    ),
    "div_way": (
        "float32",
        "float32",
        "static constexpr DivConfig way = {DivAlgo::DIFF_COMPENSATION};"
        "Div<float, way>(d, a, b, 300);",
        lambda a, b: a / b,
    ),
    "sqrt_way": (
        "float32",
        "float32",
        "static constexpr SqrtConfig way = {SqrtAlgo::FAST_INVERSE};"
        "Abs(a, a, 300); PipeBarrier<PIPE_V>(); Sqrt<float, way>(d, a, 300);",
        lambda a, _: np.sqrt(abs(a)),
    ),
    "sin_way": (
        "float32",
        "float32",
        "static constexpr SinConfig way = {SinAlgo::RADIAN_REDUCTION};"
        "Sin<float, false, way>(d, a, 300);",
        lambda a, _: np.sin(a.astype(np.float64)),
    ),
}
ROUNDED = {"exp_sub", "exp_sub_wide", "exp_sub_half", "sin_way"}
"""Compared within two units of the last place; the others bit for bit."""


def operands(kind):
    rng = np.random.default_rng(11)
    if kind.startswith("int"):
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, 1024, kind, endpoint=True)
    return (rng.integers(1, 40, 1024) / 8 * rng.choice([-1, 1], 1024)).astype(kind)


@pytest.fixture(scope="module")
def made():
    bodies = {
        name: FRAME.format(T=CPP[taken], U=CPP[given], call=call)
        for name, (taken, given, call, _) in CASES.items()
    }
    return kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=CHIP)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("name", CASES)
def test_values(made, name):
    taken, given, _, of = CASES[name]
    x, z = operands(taken), np.zeros(COUNT, given)
    ran = getattr(made, name)[1](x, z)
    assert [f.message for f in ran.findings] == []
    expected = np.asarray(of(x[:COUNT], x[SECOND : SECOND + COUNT])).astype(given)
    if name in ROUNDED:
        np.testing.assert_array_max_ulp(z, expected, maxulp=2)
    else:
        np.testing.assert_array_equal(z, expected)


LOOPS = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 8192);
  GlobalTensor<int8_t> xg, zg;
  xg.SetGlobalBuffer((__gm__ int8_t*)x);
  zg.SetGlobalBuffer((__gm__ int8_t*)z);
  auto a = memory.Get<int8_t>();
  Duplicate(a, (int8_t)0, 4096);
  PipeBarrier<PIPE_ALL>();
  SetLoopModePara({{2, 2, 96, 128, 192, {outer}}}, DataCopyMVType::OUT_TO_UB);
  DataCopyPad<int8_t, PaddingMode::Compact>(a, xg, {{2, 48, 0, 0, 0}}, {{false, 0, 0, 0}});
  ResetLoopModePara(DataCopyMVType::OUT_TO_UB);
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, a, 512);
"""


def test_loops_around_a_copy():
    """The page's example: two turns of two turns, 96 and 192 B apart, to 128 and 288 B apart."""
    bodies = {"right": LOOPS.format(outer=288), "wrong": LOOPS.format(outer=280)}
    made = kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=CHIP)
    x = np.arange(1, 385, dtype=np.int64).astype(np.int8)
    z, expected = np.zeros(512, np.int8), np.zeros(512, np.int8)
    for outer in range(2):
        for inner in range(2):
            run = x[192 * outer + 96 * inner :][:96]
            expected[288 * outer + 128 * inner :][:96] = run
    assert [f.message for f in made.right[1](x, z).findings] == []
    np.testing.assert_array_equal(z, expected)
    need = "set_loop2_stride_outtoub.loop2_dst_stride must be a multiple of 32"
    assert made.wrong[1](x, z).findings[0].message.startswith(need)


DIMENSIONS = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 8192);
  GlobalTensor<half> xg, zg;
  xg.SetGlobalBuffer((__gm__ half*)x);
  zg.SetGlobalBuffer((__gm__ half*)z);
  auto a = memory.Get<half>();
  {call}
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, a, 2048);
"""
PADDED = """
  {name}LoopInfo<2> loops{{{{1, 32}}, {{1, {row}}}, {{32, 16}}, {{15, 13}}, {{17, 3}}}};
  {name}Params<half, 2> params{{loops, (half)7.0}};
  static constexpr {name}Config config = {{{nearest}}};
  NdDmaDci();
  DataCopy<half, 2, config>(a, xg, params);
"""


def test_copies_of_two_dimensions():
    """The page's first example, its padding once constant and once the nearest element."""
    calls = {
        "constant": PADDED.format(name="NdDma", row=64, nearest="false"),
        "nearest": PADDED.format(name="NdDma", row=64, nearest="true"),
        "older": PADDED.format(name="MultiCopy", row=64, nearest="false"),
        "wrong": PADDED.format(name="NdDma", row=60, nearest="false"),
    }
    bodies = {name: DIMENSIONS.format(call=call) for name, call in calls.items()}
    made = kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=CHIP)
    x = np.arange(512, dtype=np.float16)
    around = ((13, 3), (15, 17))
    constant = np.pad(x.reshape(16, 32), around, constant_values=7)
    nearest = np.pad(x.reshape(16, 32), around, mode="edge")
    for name, expected in (("constant", constant), ("older", constant), ("nearest", nearest)):
        z = np.zeros(2048, np.float16)
        assert [f.message for f in getattr(made, name)[1](x, z).findings] == []
        np.testing.assert_array_equal(z.reshape(32, 64), expected)
    said = made.wrong[1](x, np.zeros(2048, np.float16)).findings[0].message
    need = "be 64 or more, what the loops of smaller strides write"
    assert said == f"copy_gm_to_ubuf_nd.dst_stride1 must {need}, got 60"


C_PADDED = """#include "c_api/asc_simd.h"
extern "C" __global__ __vector__ void padded(__gm__ half* x, __gm__ half* z, uint64_t row) {
  __ubuf__ half a[2048];
  asc_set_ndim_loop0_stride(1, 1);
  asc_set_ndim_loop1_stride(row, 32);
  asc_set_ndim_pad_value((half)7.0);
  asc_ndim_pad_count_config counts;
  counts.loop1_lp_count = 13;
  counts.loop1_rp_count = 3;
  asc_set_ndim_pad_count(counts);
  asc_ndim_copy_gm2ub(a, x, 32, 16, 1, 1, 1, 15, 17, true,
                      asc_load_l2_cache_mode::NORMAL_FIRST_VICTIM);
  asc_sync();
  asc_copy_ub2gm_sync(z, a, 4096);
}
"""


@cubecore.kernel(chip=CHIP)
def padded(core, x, z, row):
    """Pad in Python as C_PADDED does."""
    a = core.ubuf.at("half", 0)
    core.asc_set_ndim_loop0_stride(1, 1)
    core.asc_set_ndim_loop1_stride(row, 32)
    core.asc_set_ndim_pad_value(np.float16(7))
    core.asc_set_ndim_pad_count(loop1_lp_count=13, loop1_rp_count=3)
    core.asc_ndim_copy_gm2ub(a, x, 32, 16, 1, 1, 1, 15, 17, 1, 0)
    core.asc_sync()
    core.asc_copy_ub2gm_sync(z, a, 4096)


@pytest.mark.parametrize("language", ["c", "python"])
def test_copies_of_two_dimensions_by_registers(language):
    """The C API's calls make what the class API's call does, in both languages."""
    called = padded if language == "python" else cubecore.inline(C_PADDED, chip=CHIP).padded
    x, z = np.arange(512, dtype=np.float16), np.zeros(2048, np.float16)
    assert [f.message for f in called[1](x, z, 64).findings] == []
    constant = np.pad(x.reshape(16, 32), ((13, 3), (15, 17)), constant_values=7)
    np.testing.assert_array_equal(z.reshape(32, 64), constant)
    said = called[1](x, z, 60).findings[0].message
    need = "be 64 or more, what the loops of smaller strides write"
    assert said == f"copy_gm_to_ubuf_ndim.loop1_dst_stride must {need}, got 60"


SPREAD = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 16384);
  GlobalTensor<float> xg, zg;
  xg.SetGlobalBuffer((__gm__ float*)x);
  zg.SetGlobalBuffer((__gm__ float*)z);
  auto a = memory.Get<float>(), b = a[1024];
  DataCopy(a, xg, 64);
  PipeBarrier<PIPE_ALL>();
  uint32_t to[] = {4, 2, 8}, from[] = {4, 1, 8};
  BroadcastTiling tiling;
  GetBroadcastTilingInfo<float>(3, to, from, false, tiling);
  Broadcast(b, a, to, from, &tiling);
  NumericLimits<float>::NegativeInfinity(b[64], 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, b, 128);
"""


def test_a_broadcast_and_numbers_of_a_type():
    made = kernels({"spread": SPREAD}, "GM_ADDR x, GM_ADDR z", chip=CHIP)
    x, z = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
    assert [f.message for f in made.spread[1](x, z).findings] == []
    expected = np.broadcast_to(x[:32].reshape(4, 1, 8), (4, 2, 8)).ravel()
    np.testing.assert_array_equal(z[:64], expected)
    assert np.isneginf(z[64:]).all()
