"""Vector functions of several steps on values, NumPy the oracle: sums, products, interpolation."""

from functools import cache

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernel, kernels, needs_compiler

pytestmark = needs_compiler

TWO = """
template <typename D, typename S> __global__ __vector__ void k(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  GlobalTensor<S> gx, gy; GlobalTensor<D> gz;
  gx.SetGlobalBuffer((__gm__ S*)x, 512);
  gy.SetGlobalBuffer((__gm__ S*)y, 512);
  gz.SetGlobalBuffer((__gm__ D*)z, 512);
  LocalTensor<S> a(TPosition::VECIN, 0, 512), b(TPosition::VECIN, 4096, 512);
  LocalTensor<D> c(TPosition::VECOUT, 8192, 512);
  DataCopy(a, gx, 512);
  DataCopy(b, gy, 512);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  constexpr int lanes = 256 / sizeof(S), stride = lanes * sizeof(D) / 32;
  BinaryRepeatParams p(1, 1, 1, stride, 8, 8);
  uint64_t bits[2] = {~0ull, lanes > 64 ? ~0ull : 0};
  NAME(c, a, b, 128);
  NAME<D, S>(c[128], a[128], b[128], uint64_t(lanes), 128 / lanes, p);
  NAME<D, S>(c[256], a[256], b[256], bits, 128 / lanes, p);
  SetVectorMask<S>(lanes);
  NAME<D, S, false>(c[384], a[384], b[384], MASK_PLACEHOLDER, 128 / lanes, p);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(gz, c, 512);
}
"""
PAIRS = [("int8_t", "half", "i1", "f2"), ("int8_t", "int16_t", "i1", "i2")]
PAIRS += [("half", "float", "f2", "f4")]
TWO_CASES = [
    *(("AddReluCast", lambda x, y: np.maximum(x + y, 0), *pair) for pair in PAIRS),
    *(("SubReluCast", lambda x, y: np.maximum(x - y, 0), *pair) for pair in PAIRS),
    ("MulCast", np.multiply, "int8_t", "half", "i1", "f2"),
    ("MulCast", np.multiply, "uint8_t", "half", "u1", "f2"),
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "oracle", "to", "of", "result", "source"), TWO_CASES)
def test_two_vectors_are_joined_and_converted(name, oracle, to, of, result, source):
    rng = np.random.default_rng(1)
    scale = 12 if name == "MulCast" else 60
    x, y = ((rng.standard_normal(512) * scale).astype(source) for _ in range(2))
    z = np.zeros(512, result)
    run = kernels({}, before=TWO.replace("NAME", name))[f"k<{to},{of}>"][1](x, y, z)
    want = oracle(x, y).astype(np.float64)
    if result != "f2":
        limits = np.iinfo(result)
        want = np.clip(np.rint(want), limits.min, limits.max)
    assert run.findings == ()
    assert np.array_equal(z, want.astype(result))


SUM = """
TPipe pipe;
TBuf<TPosition::VECCALC> all;
pipe.InitBuffer(all, 160 * 1024);
LocalTensor<int32_t> a = all.GetWithOffset<int32_t>(8192, 0);
LocalTensor<int32_t> b = all.GetWithOffset<int32_t>(8192, 65536);
LocalTensor<half> c = all.GetWithOffset<half>(8192, 131072);
GlobalTensor<int32_t> gx, gy;
GlobalTensor<half> gz;
gx.SetGlobalBuffer((__gm__ int32_t*)x, 8192);
gy.SetGlobalBuffer((__gm__ int32_t*)y, 8192);
gz.SetGlobalBuffer((__gm__ half*)z, 8192);
DataCopy(a, gx, 8192);
DataCopy(b, gy, 8192);
DataCopy(c, gz, 8192);
PipeBarrier<PIPE_ALL>();
SetDeqScale(half(0.125f));
{call}
PipeBarrier<PIPE_ALL>();
DataCopy(gz, c, 8192);
"""
STRIDED = "{2, 2, 1, 8, 16, 8}"
DEQUANTISED = {
    "AddDeqRelu(c, a, b, 5000);": (5000, None),
    "AddDeqRelu(c, a, b, 40);": (40, None),
    "AddDeqRelu(c, a, b, 0);": (0, None),
    "AddDeqRelu<half, int32_t>(c, a, b, 64, 100, {1, 1, 1, 4, 8, 8});": (6400, None),
    f"AddDeqRelu<half, int32_t>(c, a, b, 20, 50, {STRIDED});": (0, 20),
    f"uint64_t m[2] = {{0xFFFFF, 0}}; AddDeqRelu<half, int32_t>(c, a, b, m, 50, {STRIDED});": (
        0,
        20,
    ),
    f"SetVectorMask<int32_t>(20); AddDeqRelu<half, int32_t, false>(c, a, b, MASK_PLACEHOLDER, 50,"
    f" {STRIDED});": (0, 20),
}


THREE = "GM_ADDR x, GM_ADDR y, GM_ADDR z"


@cache
def together(text, parameters, calls):
    """Return kernels of one body with each of the calls, compiled at once."""
    bodies = {f"k{n}": text.replace("{call}", call) for n, call in enumerate(calls)}
    made = kernels(bodies, parameters)
    return {call: made[f"k{n}"][1] for n, call in enumerate(calls)}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("call", DEQUANTISED)
def test_sums_of_int32_are_scaled_and_cut_off(call):
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-2000, 2000, 8192, np.int32) for _ in range(2))
    z = np.full(8192, 7, np.float16)
    plain, lanes = DEQUANTISED[call]
    run = together(SUM, THREE, tuple(DEQUANTISED))[call](x, y, z)
    want = np.full(8192, 7, np.float16)
    want[:plain] = np.maximum((x + y)[:plain] * 0.125, 0)
    if lanes is not None:  # 50 repeats; every second block of the first source and of dst
        first = x.reshape(-1, 8, 2, 8)[:50, :, 0].reshape(50, 64)[:, :lanes]
        total = first + y.reshape(-1, 64)[:50, :lanes]
        blocks = want.reshape(-1, 4, 2, 16)[:50, :, 0]
        part = blocks.reshape(50, 64)
        part[:, :lanes] = np.maximum(total * 0.125, 0)
        want.reshape(-1, 4, 2, 16)[:50, :, 0] = part.reshape(50, 4, 16)
    assert run.findings == ()
    assert np.array_equal(z, want)


@pytest.mark.sweep
def test_sums_without_free_memory_are_refused():
    body = SUM.replace("{call}", "AddDeqRelu(c, a, b, 3000);").replace("160 * 1024", "191 * 1024")
    with pytest.raises(CubecoreError) as caught:
        kernel(body, THREE)[1](
            np.zeros(8192, np.int32), np.zeros(8192, np.int32), np.zeros(8192, np.float16)
        )
    assert str(caught.value) == (
        "inline.cpp:22 (k): AddDeqRelu must have 8192 B of UB behind the buffers of a TPipe, got "
        "less"
    )


SCALED = """
LocalTensor<int16_t> a(TPosition::VECIN, 0, 256);
LocalTensor<int8_t> c(TPosition::VECOUT, 4096, 512);
LocalTensor<uint64_t> words(TPosition::VECCALC, 8192, 16);
GlobalTensor<int16_t> gx;
GlobalTensor<int8_t> gz;
gx.SetGlobalBuffer((__gm__ int16_t*)x, 256);
gz.SetGlobalBuffer((__gm__ int8_t*)y, 512);
DataCopy(a, gx, 256);
DataCopy(c, gz, 512);
PipeBarrier<PIPE_ALL>();
{call}
PipeBarrier<PIPE_ALL>();
DataCopy(gz, c, 512);
"""
BY_LANE = """
float scales[16]; int16_t offsets[16]; bool signs[16];
for (int n = 0; n < 16; ++n) { scales[n] = 0.25f * n; offsets[n] = n - 8; signs[n] = true; }
SetDeqScale(words, VdeqInfo(scales, offsets, signs));
"""
ONE = "SetDeqScale(0.5f, -3, true);"
SCALED_CASES = {
    ONE + "CastDequant<int8_t, int16_t, false, false>(c, a, 256);": (False, 0, 128),
    ONE + "CastDequant<int8_t, int16_t, true, false>(c, a, 100, 2, {1, 1, 8, 8});": (False, 1, 100),
    ONE + "uint64_t m[2] = {~0ull, 0}; CastDequant<int8_t, int16_t, true, false, false>"
    "(c, a, m, 2, {1, 1, 8, 8});": (False, 0, 64),
    ONE + "uint64_t m[2] = {~0ull, 0}; CastDeq<int8_t, int16_t, true, false>"
    "(c, a, m, 2, {1, 1, 8, 8});": (False, 1, 64),
    BY_LANE + "CastDequant<int8_t, int16_t>(c, a, 256);": (True, 1, 128),
    BY_LANE + "SetVectorMask<int16_t>(40); CastDequant<int8_t, int16_t, false, true, false>"
    "(c, a, MASK_PLACEHOLDER, 2, {1, 1, 8, 8});": (True, 0, 40),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("call", SCALED_CASES)
def test_int16_is_scaled_to_bytes_in_one_half_of_each_block(call):
    by_lane, upper, lanes = SCALED_CASES[call]
    x = np.random.default_rng(3).integers(-300, 300, 256).astype(np.int16)
    z = np.full(512, 99, np.int8)
    run = together(SCALED, "GM_ADDR x, GM_ADDR y", tuple(SCALED_CASES))[call](x, z)
    lane = np.arange(256) % 16
    scale = 0.25 * lane if by_lane else 0.5
    offset = lane - 8 if by_lane else -3
    bytes_ = np.clip(np.rint(x * scale + offset), -128, 127).astype(np.int8)
    want = np.full((2, 8, 2, 16), 99, np.int8)  # repeats, blocks, halves, bytes
    kept = (np.arange(128) < lanes).reshape(8, 16)
    want[:, :, upper] = np.where(kept, bytes_.reshape(2, 8, 16), 99)
    assert run.findings == ()
    assert np.array_equal(z, want.reshape(-1))


@pytest.mark.sweep
def test_int32_is_scaled_to_half_under_a_mask():
    body = SUM.replace("{call}", "CastDequant<half, int32_t>(c, a, 30, 3, {1, 1, 4, 8});")
    x = np.random.default_rng(4).integers(-2000, 2000, 8192, np.int32)
    z = np.zeros(8192, np.float16)
    run = kernel(body, THREE)[1](x, x.copy(), z)
    want = np.zeros((128, 64), np.float16)
    want[:3, :30] = (x * 0.125).reshape(128, 64)[:3, :30]
    assert run.findings == ()
    assert np.array_equal(z, want.reshape(-1))


POINTS = """
TPipe pipe;
TBuf<TPosition::VECCALC> all;
pipe.InitBuffer(all, 191 * 1024);
LocalTensor<half> a = all.GetWithOffset<half>(2048, 0);
LocalTensor<uint32_t> offsets = all.GetWithOffset<uint32_t>(128, 4096);
LocalTensor<half> weights = all.GetWithOffset<half>(128, 8192);
LocalTensor<half> c = all.GetWithOffset<half>(2048, 12288);
LocalTensor<uint8_t> work = all.GetWithOffset<uint8_t>(16384, 16384);
GlobalTensor<half> gx, gw, gz;
GlobalTensor<uint32_t> go;
gx.SetGlobalBuffer((__gm__ half*)x, 2048);
go.SetGlobalBuffer((__gm__ uint32_t*)o, 128);
gw.SetGlobalBuffer((__gm__ half*)w, 128);
gz.SetGlobalBuffer((__gm__ half*)z, 2048);
DataCopy(a, gx, 2048);
DataCopy(offsets, go, 128);
DataCopy(weights, gw, 128);
DataCopy(c, gz, 2048);
PipeBarrier<PIPE_ALL>();
{call}
PipeBarrier<PIPE_ALL>();
DataCopy(gz, c, 2048);
"""
FOUR = "GM_ADDR x, GM_ADDR o, GM_ADDR w, GM_ADDR z"


CALL = "BilinearInterpolation(c, a, offsets, weights, {}, work);"
BITS = "uint64_t m[2] = {~0ull, (1ull << 36) - 1};\n"
RIGHT = {
    (across, down, each, bits): (BITS if bits else "")
    + CALL.format(f"{'m' if bits else 100}, {across}, {str(each).lower()}, 1, 160, {down}")
    for across, down in ((2, 2), (1, 3), (5, 3))
    for each in (False, True)
    for bits in (False, True)
}
WRONG = {
    "0, false, 1, 160, 3": "BilinearInterpolation: hRepeat must be in [1, 255], got 0",
    "2, false, 1, 160, 0": "BilinearInterpolation: vRepeat must be in [1, 255], got 0",
    "2, false, 1, 64, 3": "BilinearInterpolation: vROffset must be in [128, 65534], got 64",
    "2, false, 300, 160, 3": "BilinearInterpolation: dstBlkStride must be in [0, 255], got 300",
}
FULL = CALL.format("128, 4, true, 1, 128, 4").replace("work)", "work[12288])")
CALLS = (*RIGHT.values(), *(CALL.format(f"128, {given}") for given in WRONG), FULL)


def points(call):
    """Run a call; return its findings, what it took, and what it left."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal(2048).astype(np.float16)
    o = (rng.integers(0, 128, 128) * 32).astype(np.uint32)
    w = rng.standard_normal(128).astype(np.float16)
    z = np.full(2048, 9, np.float16)
    run = together(POINTS, FOUR, CALLS)[call](x, o, w, z)
    return run.findings, (x, o, w), z


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("across", "down", "each", "bits"), RIGHT)
def test_gathered_blocks_are_weighed_and_added_up(across, down, each, bits):
    findings, (x, o, w), z = points(RIGHT[across, down, each, bits])
    count = across * down
    blocks = x.reshape(-1, 16)[o[: 8 * count] // 32].reshape(count, 8, 16)
    by = w[: 8 * count].reshape(count, 8, 1) if each else w[:count].reshape(count, 1, 1)
    products = (blocks * by).reshape(down, across, 128)
    want = np.full(2048, 9, np.float16)
    for row in range(down):
        total = products[row, 0]
        for column in range(1, across):
            total = total + products[row, column]
        want[row * 160 : row * 160 + 100] = total[:100]
    assert findings == ()
    assert np.array_equal(z, want)


@pytest.mark.parametrize("given", WRONG)
def test_a_parameter_of_an_interpolation_out_of_its_range_is_a_finding(given):
    findings, _, z = points(CALL.format(f"128, {given}"))
    assert [f.message for f in findings] == [WRONG[given]]
    assert (z == 9).all()


def test_an_interpolation_without_memory_is_refused():
    with pytest.raises(CubecoreError) as caught:
        points(FULL)
    assert str(caught.value).partition("): ")[2] == (
        "BilinearInterpolation.sharedTmpBuffer must have 8192 B or more, got 4096 B"
    )


CONFIG = """
__gm__ uint16_t* said = (__gm__ uint16_t*)x;
uint16_t type = 9, op = 9;
auto keep = [&](int n) {
  GetStoreAtomicConfig(type, op);
  said[2 * n] = type; said[2 * n + 1] = op;
};
keep(0);
SetStoreAtomicConfig<AtomicDtype::ATOMIC_S16, AtomicOp::ATOMIC_SUM>(); keep(1);
SetAtomicMax<bfloat16_t>(); keep(2);
set_atomic_add(); keep(3);
SetAtomicNone(); keep(4);
SetAtomicAdd<float>(); keep(5);
SetAtomicType<int32_t>(); keep(6);
SetStoreAtomicConfig<AtomicDtype::ATOMIC_NONE, AtomicOp::ATOMIC_SUM>(); keep(7);
"""


def test_the_type_and_operation_of_atomic_stores_are_told():
    x = np.full(32, 9, np.uint16)
    assert kernel(CONFIG)[1](x).findings == ()
    told = [tuple(int(n) for n in pair) for pair in x[:16].reshape(8, 2)]
    assert told == [(0, 0), (3, 0), (6, 1), (6, 0), (0, 0), (1, 0), (4, 0), (0, 0)]
