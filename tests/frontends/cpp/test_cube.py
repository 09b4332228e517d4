"""The Cube in C++: loads, products and fixpipe against NumPy; what is wrong with them."""

from functools import cache

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
M, K, N = 32, 64, 48
BEFORE = """
constexpr uint32_t M = 32, K = 64, N = 48;
#define PASS(FROM, TO)                       \\
  do {                                       \\
    SetFlag<HardEvent::FROM##_##TO>(0);      \\
    WaitFlag<HardEvent::FROM##_##TO>(0);     \\
  } while (false)
template <typename T, typename C>
struct Tiles {
  static constexpr uint32_t C0 = 32 / sizeof(T);
  GlobalTensor<T> ag, bg;
  GlobalTensor<C> cg, biasg;
  LocalTensor<T> a1{TPosition::A1, 0, M * K}, b1{TPosition::B1, 65536, N * K};
  LocalTensor<T> a2{TPosition::A2, 0, M * K}, b2{TPosition::B2, 0, N * K};
  LocalTensor<C> bias1{TPosition::C1, 131072, N}, bias2{TPosition::C2, 0, N};
  LocalTensor<C> co{TPosition::CO1, 0, M * N}, start{TPosition::CO1, 65536, M * N};
  Tiles(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c) {
    ag.SetGlobalBuffer((__gm__ T*)a);
    bg.SetGlobalBuffer((__gm__ T*)b);
    biasg.SetGlobalBuffer((__gm__ C*)bias);
    cg.SetGlobalBuffer((__gm__ C*)c);
  }
  // A is [M, K] and B is [N, K]: both NZ in L1, ZZ and ZN in L0.
  void Load() {
    DataCopy(a1, ag, Nd2NzParams(1, M, K, 0, K, M, 1, 0));
    DataCopy(b1, bg, Nd2NzParams(1, N, K, 0, K, N, 1, 0));
    DataCopy(bias1, biasg, N);
    PASS(MTE2, MTE1);
    for (uint32_t row = 0; row < M / 16; ++row)
      LoadData(a2[row * K * 16], a1[row * 16 * C0], {0, K / C0, M / 16, 0, 0, false, 0});
    LoadData(b2, b1, LoadData2DParams(0, N * K / (16 * C0), 1, 0, 0, false, 0));
    DataCopy(bias2, bias1, N);
    PASS(MTE1, M);
  }
  void Out(FixpipeParamsV220 p = {N, M, M, N, false}) {
    PASS(M, FIX);
    Fixpipe(cg, co, p);
  }
};
"""
PARAMETERS = "GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c"
HALF = "Tiles<half, float> t(a, b, bias, c);\nt.Load();\n"
FLOAT = "Tiles<float, float> t(a, b, bias, c);\nt.Load();\n"
INT = "Tiles<int8_t, int32_t> t(a, b, bias, c);\nt.Load();\n"
PLAIN = "Mmad(t.co, t.a2, t.b2, MmadParams(M, N, K));\n"
OUT = "t.Out();"

RAW = """__cbuf__ half a1[512], b1[512];
__ca__ half a2[512];
__cb__ half b2[512];
__cc__ float co[256];
asc_copy_gm2l1_nd2nz(a1, (__gm__ half*)a, 1, 16, 32, 0, K, 16, 1, 1);
asc_copy_gm2l1_nd2nz(b1, (__gm__ half*)b, 1, 16, 32, 0, K, 16, 1, 1);
set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
load_cbuf_to_ca(a2, a1, 0, 2, 1, 0, 0, false, inc);
load_cbuf_to_cb(b2, b1, 0, 2, 1, 0, 0, false, inc);
set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
asc_mmad(co, a2, b2, 16, 32, 16, 0, false, false, true);
set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
asc_copy_l0c2gm((__gm__ float*)c, co, 16, 16, N, 16, 0, QuantMode_t::NoQuant, 0, false, true);
ffts_cross_core_sync(PIPE_FIX, 1 | (0 << 4) | (3 << 8));
wait_flag_dev(3);
"""
BODIES = {
    "raw": RAW,
    "half_plain": HALF + PLAIN + OUT,
    "float_plain": FLOAT + PLAIN + OUT,
    "int8_plain": INT + PLAIN + OUT,
    "bias_in_c2": HALF + "Mmad(t.co, t.a2, t.b2, t.bias2, MmadParams(M, N, K));" + OUT,
    "bias_from_source": HALF + "Mmad(t.co, t.a2, t.b2, MmadParams(M, N, K, 0, true, false));" + OUT,
    "bias_in_co1": HALF
    + "Mmad(t.start, t.a2, t.b2, MmadParams(M, N, K));\nPipeBarrier<PIPE_M>();"
    + "Mmad(t.co, t.a2, t.b2, t.start, MmadParams(M, N, K));"
    + OUT,
    "accumulated": HALF
    + PLAIN
    + "PipeBarrier<PIPE_M>();MmadParams p(M, N, K);p.cmatrixInitVal = false;"
    + "Mmad(t.co, t.a2, t.b2, p);"
    + OUT,
    "is_bias": HALF
    + PLAIN
    + "PipeBarrier<PIPE_M>();Mmad(t.co, t.a2, t.b2, {M, N, K, true, 0, false, false, false});"
    + OUT,
    "unit_flag": HALF
    + "Mmad(t.co, t.a2, t.b2, MmadParams(M, N, K, 3, false, true));"
    + "Fixpipe(t.cg, t.co, FixpipeParamsV220(N, M, M, N, false, NoQuant, 0, 1, 0, 0, 3));",
    "rounded": FLOAT
    + "SetHF32Mode(HF32Mode::ENABLE);SetHF32TransMode(HF32TransMode::NEAREST_ZERO);"
    + PLAIN
    + OUT
    + "SetHF32Mode(false);",
    "relu": HALF + PLAIN + "t.Out({N, M, M, N, true});",
    "part_of_a_tile": HALF + PLAIN + "t.Out({N - 16, M - 3, M, N, false});",
    "nothing": HALF + PLAIN + "t.Out({0, M, M, N, false});t.Out();",
    "older_rows": HALF
    + PLAIN
    + "PASS(M, FIX);FixpipeParams<float> p(N / 16, M * 16 * 4 / 32, 0, N);"
    + "p.nz2ndParams = {true, 1, 0, 0, N};Fixpipe(t.cg, t.co, p);",
    "filled": HALF
    + "Fill(t.a2, InitConstValueParams<half>(1, M * K * 2 / 512, 0, half(2.0f)));PASS(MTE1, M);"
    + PLAIN
    + OUT,
    "packed_windows": HALF
    + "Fill(t.a2, InitConstValueParams<half>(1, M * K * 2 / 512, 0, half(2.0f)));"
    + "constexpr uint8_t none[4] = {}; Load3DSetFMatrixCal(1, M, none);"
    + "LoadData3DParamsV2Pro p; p.channelSize = K; p.extConfig = uint64_t(M) << 16 | K;"
    + "LoadData(t.a2, t.a1, p); PASS(MTE1, M);"
    + PLAIN
    + OUT,
    "one_column": HALF + PLAIN + "t.Out({N, M, 0, N, false});",
}
ROWS = "LoadData2DParams p(0, 4, 1, 0, 0, false, 0); p.{} = {}; LoadData({}, p);"
SQUARES = (
    "LoadData2dTransposeParams p(0, 4, 1, 0, 0); p.{} = {}; LoadDataWithTranspose(t.a2, t.a1, p);"
)
WINDOWS = (
    "LoadData3DParamsV2<half> p; p.l1H = 1; p.l1W = M; p.channelSize = K; p.kExtension = K;"
    "p.mExtension = M; p.{} = {}; LoadData(t.a2, t.a1, p);"
)
FILLED = "InitConstValueParams<half> p(1, 4, 0, half(0.0f)); p.{} = 0; Fill(t.a1, p);"
OLDER = (
    "PASS(M, FIX);FixpipeParams<float> p(N / 16, M * 16 * 4 / 32, 0, 0); p.{} = {};"
    "Fixpipe(t.cg, t.co, p);"
)
TILE = (
    "PASS(M, FIX);DataCopyCO12DstParams p(N, M, N, M, NoQuant, 0, false, true); p.{} = {};"
    "DataCopy(t.cg, t.co, p);"
)
NOTHING = [
    ROWS.format("repeatTimes", 0, "t.a2, t.a1"),
    ROWS.format("repeatTimes", 0, "t.a1, t.ag"),
    SQUARES.format("repeatTimes", 0),
    *(
        WINDOWS.format(field, 0)
        for field in ("l1H", "l1W", "channelSize", "kExtension", "mExtension", "filterW", "filterH")
    ),
    *(FILLED.format(field) for field in ("repeatTimes", "blockNum")),
    "MmadParams p(M, N, K); p.k = 0; Mmad(t.start, t.a2, t.b2, p);",
    "DataCopy(t.bias2, t.bias1, DataCopyParams(0, 1, 0, 0));",
]
"""Calls between the loads and the product that do nothing, as their pages say."""


FIXED = (
    "PASS(M, FIX);GlobalTensor<{kind}> to;to.SetGlobalBuffer((__gm__ {kind}*)c);"
    "Fixpipe(to, t.co, FixpipeParamsV220(N, M, M, N, false, QuantMode_t::{mode}, 0, 1, 0, 0, 0));"
)
WRONG = {
    "another_walk": (
        HALF + ROWS.format("addrMode", 2, "t.a2, t.a1"),
        "LoadData: addrMode must be in [0, 1], got 2",
    ),
    "another_walk_to_l1": (
        HALF + ROWS.format("addrMode", 3, "t.a1, t.ag"),
        "LoadData: addrMode must be in [0, 1], got 3",
    ),
    "another_walk_of_squares": (
        HALF + SQUARES.format("addrMode", 7),
        "LoadDataWithTranspose: addrMode must be in [0, 1], got 7",
    ),
    "late_rows": (
        HALF + WINDOWS.format("mStartPt", 32768),
        "LoadData: mStartPt must be in [0, 32767], got 32768",
    ),
    "another_conversion": (
        HALF + PLAIN + "t.Out({N, M, M, N, false, static_cast<QuantMode_t>(77), 0, 1, 0, 0, 0});",
        "Fixpipe: quantPre must be NoQuant for float to float, got another",
    ),
    "no_conversion": (
        HALF + PLAIN + FIXED.format(kind="half", mode="NoQuant"),
        "Fixpipe: quantPre must be F322F16 for float to half, got NoQuant",
    ),
    "conversion_to_another": (
        HALF + PLAIN + FIXED.format(kind="bfloat16_t", mode="F322F16"),
        "Fixpipe: quantPre must be F322BF16 for float to bfloat16_t, got F322F16",
    ),
    "conversion_to_none": (
        HALF + PLAIN + FIXED.format(kind="int16_t", mode="NoQuant"),
        "Fixpipe: dst must be of a type that fixpipe makes of float, got int16_t",
    ),
    "older_bursts": (
        HALF + PLAIN + OLDER.format("cburstNum", 5000),
        "Fixpipe: cburstNum must be in [0, 4095], got 5000",
    ),
    "older_source": (
        HALF + PLAIN + OLDER.format("srcStride", 65535),
        "Fixpipe: srcStride from head to head must be in [0, 65535], got 1048592",
    ),
    "older_target": (
        HALF + PLAIN + OLDER.format("dstStride", "4294967295u"),
        "Fixpipe: dstStride from head to head must be in [0, 4294967295], got 4294967359",
    ),
    "of_another_chip": (
        HALF + PLAIN + TILE.format("clipReluPre", 1),
        "DataCopy: clipReluPre must be 0, got 1",
    ),
    "of_another_chip_too": (
        HALF + PLAIN + TILE.format("eltWiseOp", 2),
        "DataCopy: eltWiseOp must be 0, got 2",
    ),
    "too_many_rows": (
        HALF + "Mmad(t.co, t.a2, t.b2, MmadParams(5000, N, K));",
        "mad.m must be in [0, 4095], got 5000",
    ),
    "unaligned": (
        HALF + "Mmad(t.co[128], t.a2, t.b2, MmadParams(16, 16, K));",
        "mad.c must start at a multiple of 1024 B in L0C, got 512",
    ),
    "past_l0a": (
        HALF + "LocalTensor<half> far(TPosition::A2, 65536 - 512, 512);"
        "LoadData(far, t.a1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));",
        "load_cbuf_to_ca.dst must stay inside L0A (0 to 65536 B), got bytes [65024, 66048)",
    ),
    "out_too_soon": (
        HALF + PLAIN + "Fixpipe(t.cg, t.co, FixpipeParamsV220(N, M, M, N, false));",
        "copy_matrix_cc_to_gm.src must read bytes [0, 6144) of L0C after mad.c wrote them",
    ),
    "bias_not_there": (
        HALF
        + "LocalTensor<float> none(TPosition::C2, 512, N);"
        + "Mmad(t.co, t.a2, t.b2, none, MmadParams(M, N, K));",
        "mad.bias must be initialised in BiasTable, got 48 of 48 elements never written, first n 0",
    ),
}


@cache
def module():
    bodies = BODIES | {name: body for name, (body, _) in WRONG.items()}
    for number, call in enumerate(NOTHING):
        bodies[f"nothing{number}"] = HALF + call + PLAIN + OUT
    bodies["halves"] = HALF + PLAIN + FIXED.format(kind="half", mode="F322F16")
    return kernels(bodies, PARAMETERS, BEFORE, auto_sync=False)


def numbers(kind, seed=1):
    rng = np.random.default_rng(seed)
    if kind == "int8":
        drawn = (rng.integers(-128, 128, shape) for shape in ((M, K), (N, K), (N,)))
        a, b, bias = drawn
        return a.astype(np.int8), b.astype(np.int8), bias.astype(np.int32), np.int32
    a, b, bias = (rng.standard_normal(shape) for shape in ((M, K), (N, K), (N,)))
    typed = np.float16 if kind == "half" else np.float32
    return a.astype(typed), b.astype(typed), bias.astype(np.float32), np.float32


def launched(name, kind="half"):
    a, b, bias, typed = numbers(kind)
    c = np.zeros((M, N), typed)
    getattr(module(), name)[1](a, b, bias, c)
    return a.astype(np.float64), b.astype(np.float64), bias.astype(np.float64), c


PRODUCTS = {
    "half_plain": ("half", 0, 1),
    "float_plain": ("float", 0, 1),
    "int8_plain": ("int8", 0, 1),
    "bias_in_c2": ("half", 1, 1),
    "bias_from_source": ("half", 1, 1),
    "bias_in_co1": ("half", 0, 2),
    "accumulated": ("half", 0, 2),
    "is_bias": ("half", 0, 2),
    "unit_flag": ("half", 0, 1),
    "nothing": ("half", 0, 1),
    "older_rows": ("half", 0, 1),
    "packed_windows": ("half", 0, 1),
}
"""By kernel: the inputs' type, how often the bias counts, and how often the product."""


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.thinned(4)
def test_a_product_is_numpys(name):
    kind, biases, products = PRODUCTS[name]
    a, b, bias, c = launched(name, kind)
    assert np.allclose(c, products * (a @ b.T) + biases * bias, rtol=1e-5, atol=1e-4)


def test_relu_and_a_filled_operand():
    a, b, _, c = launched("relu")
    assert np.allclose(c, np.maximum(a @ b.T, 0), rtol=1e-5, atol=1e-4)
    c = launched("filled")[3]
    assert np.allclose(c, np.full_like(a, 2) @ b.T, rtol=1e-5, atol=1e-4)


def test_hf32_cuts_a_float_to_11_bits():
    a, b, _, c = launched("rounded", "float")
    cut_a, cut_b = ((x.astype(np.float32).view(np.uint32) & ~np.uint32(0xFFF)) for x in (a, b))
    exact = cut_a.view(np.float32).astype(np.float64) @ cut_b.view(np.float32).astype(np.float64).T
    assert np.allclose(c, exact, rtol=1e-5, atol=1e-5)
    assert not np.allclose(c, a @ b.T, rtol=1e-5, atol=1e-5)


def test_fixpipe_writes_the_rows_and_columns_of_its_struct():
    a, b, _, c = launched("part_of_a_tile")
    assert np.allclose(c[: M - 3, : N - 16], (a @ b.T)[: M - 3, : N - 16], rtol=1e-5, atol=1e-4)
    assert not c[M - 3 :].any()
    assert not c[:, N - 16 :].any()


@pytest.mark.parametrize("number", range(len(NOTHING)))
@pytest.mark.thinned(3)
def test_calls_that_do_nothing_as_their_pages_say(number):
    a, b, bias, typed = numbers("half")
    c = np.zeros((M, N), typed)
    assert getattr(module(), f"nothing{number}")[1](a, b, bias, c).findings == ()
    assert np.allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), rtol=1e-5, atol=1e-4)


def test_a_stride_of_0_takes_the_first_column_of_fractals_again():
    a, b, _, c = launched("one_column")
    assert np.allclose(c, np.tile((a @ b.T)[:, :16], (1, 3)), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_finding(name):
    a, b, bias, typed = numbers("half")
    run = getattr(module(), name)[1](a, b, bias, np.zeros((M, N), typed))
    (finding,) = run.findings
    assert finding.message.partition(", got no order")[0] == WRONG[name][1]


def test_a_move_in_another_mode_is_made_in_its_own():
    a, b, bias, typed = numbers("half")
    runs = []
    for name in ("no_conversion", "halves"):
        c = np.zeros((M, N), typed)
        runs.append((getattr(module(), name)[1](a, b, bias, c), c.view(np.float16).copy()))
    (wrong, left), (right, wanted) = runs
    assert [f.id for f in wrong.findings] == ["parameter"]
    assert right.findings == ()
    assert np.array_equal(left, wanted)


def test_arrays_intrinsics_and_the_c_api():
    a, b, bias, typed = numbers("half")
    c = np.zeros((M, N), typed)
    assert module().raw[1](a, b, bias, c).findings == ()
    exact = a[:16, :32].astype(np.float64) @ b[:16, :32].astype(np.float64).T
    assert np.allclose(c[:16, :16], exact, rtol=1e-5, atol=1e-5)
