"""Products and their way out on Ascend 950 by the class API, against NumPy."""

from functools import cache

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn

import cubecore
from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
M, K, N = 32, 64, 48
BEFORE = """
constexpr uint32_t M = 32, K = 64, N = 48;
#define PASS(FROM, TO)                     \\
  SetFlag<HardEvent::FROM##_##TO>(0);      \\
  WaitFlag<HardEvent::FROM##_##TO>(0);
template <typename C>
struct Tiles {
  GlobalTensor<half> ag, bg;
  GlobalTensor<C> cg;
  GlobalTensor<float> biasg;
  GlobalTensor<uint64_t> scaleg;
  LocalTensor<half> a1{TPosition::A1, 0, M * K}, b1{TPosition::B1, 65536, N * K};
  LocalTensor<half> a2{TPosition::A2, 0, M * K}, b2{TPosition::B2, 0, N * K};
  LocalTensor<float> bias1{TPosition::C1, 131072, N}, bias2{TPosition::C2, 0, N};
  LocalTensor<uint64_t> scale1{TPosition::C1, 262144, N};
  LocalTensor<float> co{TPosition::CO1, 0, M * N};
  Tiles(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR scale, GM_ADDR c) {
    ag.SetGlobalBuffer((__gm__ half*)a);
    bg.SetGlobalBuffer((__gm__ half*)b);
    biasg.SetGlobalBuffer((__gm__ float*)bias);
    scaleg.SetGlobalBuffer((__gm__ uint64_t*)scale);
    cg.SetGlobalBuffer((__gm__ C*)c);
    DataCopy(a1, ag, Nd2NzParams(1, M, K, 0, K, M, 1, 0));
    DataCopy(b1, bg, Nd2NzParams(1, N, K, 0, K, N, 1, 0));
    DataCopy(bias1, biasg, N);
    DataCopy(scale1, scaleg, N);
    PASS(MTE2, MTE1);
    LoadData(a2, a1, LoadData2DParams(0, M * K / 256, 1, 0, 0, false, 0));
    LoadData(b2, b1, LoadData2DParams(0, N * K / 256, 1, 0, 0, false, 0));
    DataCopy(bias2, bias1, N);
    PASS(MTE1, M);
  }
};
"""
START = (
    "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY); Tiles<{0}> t(a, b, bias, scale, c);"
    "Mmad(t.co, t.a2, t.b2, MmadParams(M, N, K)); PASS(M, FIX);"
)
BIASED = START.replace("t.b2, ", "t.b2, t.bias2, ")
ARCH = "FixpipeParamsArch3510<CO2Layout::{}> p(N, M, M, {});"
OUT = "Fixpipe<{0}, float, {1}>(t.cg, t.co, p);"
ROWS = ARCH.format("ROW_MAJOR", "N")
PACKED = (
    "SetFmatrix(SetFMatrixBitModeParams({2}), FmatrixMode::FMATRIX_LEFT);"
    "LoadData<TPosition::{0}2, TPosition::{0}1, half>(t.{1}2, t.{1}1, Load3DBitModeParam({2}))"
)
BODIES = {
    "rows": (np.float32, START.format("float") + ROWS + OUT.format("float", "CFG_ROW_MAJOR")),
    "by_default": (np.float32, START.format("float") + ROWS + "Fixpipe(t.cg, t.co, p);"),
    "bias": (np.float32, BIASED.format("float") + ROWS + "Fixpipe(t.cg, t.co, p);"),
    "relu": (np.float32, START.format("float") + ROWS + "p.reluEn = true; Fixpipe(t.cg, t.co, p);"),
    "halves": (
        np.float16,
        START.format("half") + ROWS + "p.quantPre = F322F16; Fixpipe(t.cg, t.co, p);",
    ),
    "one_scale": (
        bfloat16,
        START.format("bfloat16_t")
        + ROWS
        + "p.quantPre = QF322BF16_PRE; p.deqScalar = 0x3F000000; Fixpipe(t.cg, t.co, p);",
    ),
    "scales": (
        np.float16,
        START.format("half")
        + ROWS
        + "p.quantPre = VQF322F16_PRE; Fixpipe(t.cg, t.co, t.scale1, p);",
    ),
    "columns": (
        np.float32,
        START.format("float")
        + ARCH.format("COLUMN_MAJOR", "M")
        + "p.params.srcNzC0Stride = 1;"
        + OUT.format("float", "CFG_COLUMN_MAJOR"),
    ),
    "fractals": (
        np.float32,
        START.format("float") + ARCH.format("NZ", "M * 16") + OUT.format("float", "CFG_NZ"),
    ),
    "two": (
        np.float32,
        START.format("float")
        + "FixpipeParamsC310<> p(16, M, M, 16); p.params = {2, M, M * 16};"
        + "Fixpipe(t.cg, t.co, p);",
    ),
    "older_rows": (
        np.float32,
        START.format("float") + "Fixpipe(t.cg, t.co, FixpipeParamsV220(N, M, M, N, false));",
    ),
    "older_fractals": (
        np.float32,
        START.format("float")
        + "Fixpipe<float, float, CFG_NZ>(t.cg, t.co, FixpipeParamsV220(N, M, M, M * 2, false));",
    ),
    "copied_rows": (
        np.float32,
        START.format("float")
        + "SetFixpipeNz2ndFlag(1, 0, 0);"
        + "DataCopy(t.cg, t.co, DataCopyCO12DstParams(N, M, N, M, NoQuant, 0, false, true));",
    ),
    "copied_fractals": (
        np.float32,
        START.format("float")
        + "DataCopy(t.cg, t.co, DataCopyCO12DstParams(N, M, M * 2, M, NoQuant, 0, false, false));",
    ),
    **{
        name: (
            np.float32,
            START.partition("Mmad")[0].format("float")
            + f"PASS(M, MTE1) {loads} PASS(MTE1, M)"
            + f"Mmad(t.co, t.a2, t.b2, MmadParams(M, N, {depth})); PASS(M, FIX);"
            + ROWS
            + "Fixpipe(t.cg, t.co, p);",
        )
        for name, depth, loads in (
            (
                "window",
                "K - 16",
                "LoadData(t.a2, t.a1, LoadData2DParamsV2(0, 1, 2, 3, 2, 2, false, 0));"
                "LoadData(t.b2, t.b1, LoadData2DParamsV2(0, 1, 3, 3, 3, 3, false, 0));",
            ),
            (
                "turned",
                "K",
                "LoadData(t.a2, t.a1, LoadData2DParamsV2(0, 0, 4, 2, 4, 2, true, 0));",
            ),
            (
                "packed_window",
                "K - 16",
                "Load2DBitModeParam left(LoadData2DParamsV2(0, 1, 2, 3, 2, 2, false, 0)), right;"
                "right.SetKStartPosition(1); right.SetMStep(3); right.config0 |= uint64_t{3} << 40;"
                "right.SetSrcStride(3); right.SetDstStride(right.GetSrcStride());"
                "LoadData<TPosition::A2, TPosition::A1, half>(t.a2, t.a1, left);"
                "LoadData<TPosition::B2, TPosition::B1, half>(t.b2, t.b1, right);",
            ),
            (
                "stored_fractals",  # those of A from the second 16 of K on, as they lie in GM
                "K - 16",
                "PASS(MTE1, MTE2) LoadData(t.a1, t.ag, LoadData2DParamsV2(0, 1, 2, 3, 2, 3, false,"
                "0)); PASS(MTE2, MTE1)"
                "LoadData(t.a2, t.a1, LoadData2DParamsV2(0, 0, 2, 3, 3, 2, false, 0));"
                "LoadData(t.b2, t.b1, LoadData2DParamsV2(0, 1, 3, 3, 3, 3, false, 0));",
            ),
            *(
                (
                    name,
                    "K",
                    "PASS(MTE1, MTE2) DataCopy(t.b1, t.bg, Nd2NzParams(1, K, N, 0, N, K, 1, 0));"
                    "PASS(MTE2, MTE1) LoadData3DParamsV2<half> left, right;"
                    "left.l1H = right.l1H = 1; left.l1W = left.mExtension = M;"
                    "left.channelSize = left.kExtension = K; right.l1W = right.mExtension = K;"
                    "right.channelSize = right.kExtension = N;"
                    f"{repeat} every; every.dstStride = M / 16; Set{setter}(every);"
                    f"{left}; every.dstStride = N / 16; Set{setter}(every); {right};",
                )
                for name, left, right, setter, repeat in (
                    (
                        "expanded",
                        "LoadData(t.a2, t.a1, left)",
                        "LoadData(t.b2, t.b1, right)",
                        "LoadDataRepeat",
                        "LoadDataRepeatParam",
                    ),
                    (
                        "with_stride",
                        "LoadDataWithStride(t.a2, t.a1, left)",
                        "LoadDataWithStride(t.b2, t.b1, right)",
                        "LoadDataRepeatWithStride",
                        "LoadDataRepeatParamWithStride",
                    ),
                    (
                        "packed",
                        PACKED.format("A", "a", "left"),
                        PACKED.format("B", "b", "right"),
                        "LoadDataRepeat",
                        "LoadDataRepeatParam",
                    ),
                )
            ),
        )
    },
    "nothing": (
        np.float32,
        START.format("float") + ROWS + "p.params.ndNum = 0; Fixpipe(t.cg, t.co, p);",
    ),
    "to_ub": (
        np.float32,
        START.format("float")
        + ROWS
        + "LocalTensor<float> ub(TPosition::VECIN, 0, M * N); Fixpipe(ub, t.co, p);",
    ),
}


@cache
def module():
    bodies = {name: body for name, (_, body) in BODIES.items()}
    parameters = "GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR scale, GM_ADDR c"
    return kernels(bodies, parameters, BEFORE, chip="Ascend950PR_9599")


def launched(name):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (N, K)))
    bias, factors = rng.integers(-9, 9, N).astype(np.float32), 2.0 ** rng.integers(-3, 3, N)
    words = factors.astype(np.float32).view(np.uint32).astype(np.uint64)
    c = np.zeros((M, N), BODIES[name][0])
    run = module()[name][1](a, b, bias, words, c)
    assert run.findings == ()
    product = a.astype(np.float64) @ b.T.astype(np.float64)
    return product, bias, factors, c.astype(np.float64)


def test_rows_with_bias_relu_and_conversions():
    for name in ("rows", "by_default", "halves", "older_rows", "copied_rows"):
        product, *_, c = launched(name)
        assert np.array_equal(c, product), name
    product, bias, _, c = launched("bias")
    assert np.array_equal(c, product + bias)
    product, *_, c = launched("relu")
    assert np.array_equal(c, np.maximum(product, 0))


def test_windows_of_fractals_are_loaded_as_they_are_or_turned():
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (N, K)))
    rest = np.zeros(N, np.float32), np.zeros(N, np.uint64)
    c = np.zeros((M, N), np.float32)
    want = a[:, 16:].astype(np.float32) @ b[:, 16:].T.astype(np.float32)
    stored = np.ascontiguousarray(a.reshape(M, K // 16, 16).transpose(1, 0, 2)).reshape(M, K)
    for name, left in (("window", a), ("packed_window", a), ("stored_fractals", stored)):
        c[:] = 0
        assert getattr(module(), name)[1](left, b, *rest, c).findings == (), name
        assert np.array_equal(c, want), name
    turned = np.ascontiguousarray(a.T).reshape(K, M)
    fractals = turned.reshape(K, M // 16, 16).transpose(1, 0, 2)  # as L1 has K rows of M
    given = fractals.reshape(K // 16, M, 16).transpose(1, 0, 2).reshape(M, K)  # by the load's way
    assert module().turned[1](np.ascontiguousarray(given), b, *rest, c).findings == ()
    assert np.array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))


@pytest.mark.parametrize("name", ["expanded", "with_stride", "packed"])
def test_operands_are_loaded_as_maps_of_one_row(name):
    """Parts of K lie as far apart in L0 as the repetition's dstStride says; B comes as K x N."""
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    rest = np.zeros(N, np.float32), np.zeros(N, np.uint64)
    c = np.zeros((M, N), np.float32)
    assert module()[name][1](a, b.reshape(N, K), *rest, c).findings == ()
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


SQUARES = """
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  GlobalTensor<int8_t> ag, bg;
  GlobalTensor<int32_t> cg;
  ag.SetGlobalBuffer((__gm__ int8_t*)a);
  bg.SetGlobalBuffer((__gm__ int8_t*)b);
  cg.SetGlobalBuffer((__gm__ int32_t*)c);
  LocalTensor<int8_t> a1(TPosition::A1, 0, 32 * 64), b1(TPosition::B1, 65536, 64 * 64);
  LocalTensor<int8_t> a2(TPosition::A2, 0, 32 * 64), b2(TPosition::B2, 0, 64 * 64);
  LocalTensor<int32_t> co(TPosition::CO1, 0, 32 * 64);
  DataCopy(a1, ag, Nd2NzParams(1, 32, 64, 0, 64, 32, 1, 0));
  DataCopy(b1, bg, Nd2NzParams(1, 64, 64, 0, 64, 64, 1, 0));
  PASS(MTE2, MTE1);
  LoadData(a2, a1, LoadData2DParams(0, 4, 1, 0, 0, false, 0));
  for (int i = 0; i < 2; ++i) { TURN }
  PASS(MTE1, M);
  Mmad(co, a2, b2, MmadParams(32, 64, 64));
  PASS(M, FIX);
  Fixpipe(cg, co, FixpipeParamsV220(64, 32, 32, 64, false));
"""
TURNS = {
    "squares": "LoadDataWithTranspose(b2[i * 2048], b1[i * 1024], "
    "LoadData2dTransposeParams(0, 2, 2, 1, 0));",
    "fractals": "LoadDataWithTranspose(b2[i * 2048], b1, "
    "LoadData2dTransposeParamsV2(i * 2, 2, 4, 1, 0, 0));",
    "far_fractals": "LoadDataWithTranspose(b2[i * 2048], b1[i * 1024], "
    "LoadData2dTransposeParamsV2(0, 2, 4, 0, 1, 0));",
    "c": "asc_copy_l12l0b_trans((__cb__ int8_t*)b2[i * 2048].GetPhyAddr(), "
    "(__cbuf__ int8_t*)b1.GetPhyAddr(), i * 2, 2, 4, 1, 0, 0);",
}


def test_squares_of_bytes_are_turned_by_squares_or_by_fractals():
    """Steps of the older form and of 2201 count squares, those of 3510's C API fractals."""
    bodies = {name: SQUARES.replace("TURN", turn) for name, turn in TURNS.items()}
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-9, 9, shape).astype(np.int8) for shape in ((32, 64), (64, 64)))
    built = kernels(bodies, "GM_ADDR a, GM_ADDR b, GM_ADDR c", BEFORE, chip="Ascend950PR_9599")
    given = np.ascontiguousarray(a.reshape(2, 16, 64).reshape(32, 64))
    want = a.astype(np.int32) @ b.astype(np.int32)
    columns = [0, 2, 1, 3]  # with a gap between a square's fractals, those of two squares alternate
    for name in TURNS:
        c = np.zeros((32, 64), np.int32)
        assert getattr(built, name)[1](given, b, c).findings == (), name
        if name == "far_fractals":
            c = c.reshape(32, 4, 16)[:, columns].reshape(32, 64)
        assert np.array_equal(c, want), name


def test_scales_of_all_and_of_each_column():
    product, *_, c = launched("one_scale")
    assert np.array_equal(c, (product * 0.5).astype(bfloat16).astype(np.float64))
    product, _, factors, c = launched("scales")
    assert np.array_equal(c, product * factors)


def test_columns_fractals_and_several_matrices():
    product, *_, c = launched("columns")
    assert np.array_equal(c.reshape(N, M), product.T)
    fractals = product.reshape(M, N // 16, 16).transpose(1, 0, 2)
    for name in ("fractals", "older_fractals", "copied_fractals"):
        assert np.array_equal(launched(name)[-1].reshape(fractals.shape), fractals), name
    two = launched("two")[-1].reshape(-1)[: 2 * M * 16]
    assert np.array_equal(two.reshape(2, M, 16), fractals[:2])


def test_no_matrix_is_nothing_and_the_way_to_ub_is_named():
    assert not launched("nothing")[-1].any()
    with pytest.raises(CubecoreError) as caught:
        launched("to_ub")
    assert str(caught.value).partition("): ")[2] == (
        "Fixpipe.config must have isToUB for a dst in UB, got false"
    )


SHARED = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __mix__(1, 2) void shared(GM_ADDR x, GM_ADDR z) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GlobalTensor<uint32_t> xg, zg;
  xg.SetGlobalBuffer((__gm__ uint32_t*)x);
  zg.SetGlobalBuffer((__gm__ uint32_t*)z);
  if ASCEND_IS_AIV {
    auto to = reinterpret_cast<__ssbuf__ uint32_t*>(32 * GetSubBlockIdx());
    *to = xg.GetValue(GetBlockIdx()) + 1;
    CrossCoreSetFlag<2, PIPE_S>(3);
  }
  if ASCEND_IS_AIC {
    CrossCoreWaitFlag(3);
    auto from = (__ssbuf__ uint32_t*)GetSsbufBaseAddr();
    zg.SetValue(16 * GetBlockIdx(), from[0] * 100 + from[8]);
    DataCacheCleanAndInvalid<uint32_t, CacheLine::ENTIRE_DATA_CACHE>(zg);
  }
}
"""


def test_a_buffer_that_the_parts_of_a_core_share():
    """Each AIV leaves a number for its AIC; the buffer begins at address 0."""
    called = cubecore.inline(SHARED, chip="Ascend950PR_9589").shared
    x, z = np.arange(8, dtype=np.uint32), np.zeros(64, np.uint32)
    assert [f.message for f in called[2](x, z).findings] == []
    assert z[::16].tolist() == [102, 304, 0, 0]


MX = """#include "kernel_operator.h"
using namespace AscendC;
constexpr uint16_t M = 32, K = 128, N = 48, SCALES = K / 64;
template <typename T>
__aicore__ LocalTensor<T> at(TPosition position, uint32_t address) {
  return LocalTensor<T>(position, address, 16384);
}
extern "C" __global__ __cube__ void mx(GM_ADDR a, GM_ADDR sa, GM_ADDR b, GM_ADDR sb, GM_ADDR bias,
                                       GM_ADDR c) {
  using T = fp8_e4m3fn_t;
  GlobalTensor<T> ag, bg;
  GlobalTensor<half> sag, sbg;  // pairs of scales
  GlobalTensor<float> cg, biasg;
  ag.SetGlobalBuffer((__gm__ T*)a);
  bg.SetGlobalBuffer((__gm__ T*)b);
  sag.SetGlobalBuffer((__gm__ half*)sa);
  sbg.SetGlobalBuffer((__gm__ half*)sb);
  cg.SetGlobalBuffer((__gm__ float*)c);
  biasg.SetGlobalBuffer((__gm__ float*)bias);
  auto a1 = at<T>(TPosition::A1, 0), b1 = at<T>(TPosition::B1, 65536);
  auto sa1 = at<fp8_e8m0_t>(TPosition::A1, 131072), sb1 = at<fp8_e8m0_t>(TPosition::B1, 196608);
  auto bias1 = at<float>(TPosition::C1, 262144), bias2 = at<float>(TPosition::C2, 0);
  auto a2 = at<T>(TPosition::A2, 0), b2 = at<T>(TPosition::B2, 0);
  auto co1 = at<float>(TPosition::CO1, 0);
  DataCopy(a1, ag, Nd2NzParams(1, M, K, 0, K, M, 1, 0));
  DataCopy(b1, bg, Nd2NzParams(1, N, K, 0, K, N, 1, 0));
  DataCopy(sa1.ReinterpretCast<half>(), sag, Dn2NzParams(1, SCALES, M, 0, SCALES, SCALES, 1, 0));
  DataCopy(sb1.ReinterpretCast<half>(), sbg, Dn2NzParams(1, SCALES, N, 0, SCALES, SCALES, 1, 0));
  DataCopy(bias1, biasg, N);
  SetFlag<HardEvent::MTE2_MTE1>(0);
  WaitFlag<HardEvent::MTE2_MTE1>(0);
  LoadData2DParamsV2 left, right;
  left.mStep = left.srcStride = left.dstStride = M / 16;
  right.mStep = right.srcStride = right.dstStride = N / 16;
  left.kStep = right.kStep = K / 32;
  LoadData(a2, a1, sa1, left, LoadData2DMxParams(0, 0, M / 16, SCALES, SCALES, SCALES));
  LoadData(b2, b1, sb1, right, LoadData2DMxParams(0, 0, N / 16, SCALES, SCALES, SCALES));
  DataCopy(bias2, bias1, DataCopyParams(1, N * 4 / 64, 0, 0));
  SetFlag<HardEvent::MTE1_M>(0);
  WaitFlag<HardEvent::MTE1_M>(0);
  MmadMx(co1, a2, b2, bias2, MmadParams(M, N, K));
  MmadParams more(M, N, K);
  more.cmatrixInitVal = false;
  PipeBarrier<PIPE_M>();
  MmadMx(co1, a2, b2, more);
  SetFlag<HardEvent::M_FIX>(0);
  WaitFlag<HardEvent::M_FIX>(0);
  FixpipeParamsArch3510<CO2Layout::ROW_MAJOR> out(N, M, M, N);
  Fixpipe<float, float, CFG_ROW_MAJOR>(cg, co1, out);
}
"""


def test_a_product_of_scaled_operands():
    """Twice the product, and the bias."""
    rng = np.random.default_rng(5)
    m, k, n = 32, 128, 48
    a, b = (rng.integers(-8, 9, (rows, k)).astype(float8_e4m3fn) for rows in (m, n))
    sa, sb = (rng.integers(124, 131, (rows, k // 32), np.uint8) for rows in (m, n))
    bias, c = rng.integers(-9, 9, n).astype(np.float32), np.zeros((m, n), np.float32)
    run = cubecore.inline(MX, chip="Ascend950PR_9589").mx[1](a, sa, b, sb, bias, c)
    assert [f.message for f in run.findings] == []
    left, right = (
        of.astype(float) * np.exp2(scales.astype(float) - 127).repeat(32, axis=1)
        for of, scales in ((a, sa), (b, sb))
    )
    np.testing.assert_array_equal(c, 2 * (left @ right.T) + bias)
