"""Functions of the class API on values, NumPy the oracle: each family in each of its forms."""

import numpy as np
import pytest
from ml_dtypes import bfloat16

import cubecore
from frontends.cpp.cpp_kernels import kernel, needs_compiler
from frontends.cpp.vector_cases import Cases, N, same

pytestmark = needs_compiler
CASES = Cases()
Case = CASES.case

BINARY = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Max": np.maximum,
    "Min": np.minimum,
}


BINARY_CASES = {
    name: Case(
        f"{name}(z, a, b, 300); PipeBarrier<PIPE_V>();\n"
        f"{name}(z[320], a[320], b[320], 64, 3, {{1, 1, 1, 8, 8, 8}});"
    )
    for name in BINARY
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.thinned(6)
def test_binary_functions(name):
    a, b, _, z = BINARY_CASES[name].run()
    same(z[:300], BINARY[name](a, b)[:300])
    same(z[320:], BINARY[name](a, b)[320:])


MASKS = [
    Case("Add(z, a, b, 20, 4, BinaryRepeatParams(1, 1, 1, 8, 8, 8));"),
    Case("uint64_t mask[2] = {(1ull << 20) - 1, 0}; Add(z, a, b, mask, 4, {1, 1, 1, 8, 8, 8});"),
    Case(
        "SetVectorMask<float>(20); Add<float, false>(z, a, b, MASK_PLACEHOLDER, 4, {1,1,1,8,8,8});"
    ),
]
HALVES = Case("Add(z, a, b, 100, 4, {1, 1, 1, 8, 8, 8});", np.float16)


def test_a_mask_of_lanes_and_one_of_bits_choose_the_same():
    a, b, before, z = MASKS[0].run()
    want = before.reshape(-1, 64).copy()
    want[:4, :20] = (a + b).reshape(-1, 64)[:4, :20]
    same(z, want.reshape(-1))
    same(MASKS[1].run()[3], z)
    same(MASKS[2].run()[3], z)


def test_halves_have_128_lanes():
    a, b, before, z = HALVES.run()
    want = before.reshape(-1, 128).copy()
    want[:, :100] = (a + b).reshape(-1, 128)[:, :100]
    same(z, want.reshape(-1))


BETWEEN = {
    "+": (np.add, np.float32),
    "-": (np.subtract, np.float16),
    "*": (np.multiply, np.int32),
    "/": (np.divide, np.float32),
    "&": (np.bitwise_and, np.int16),
    "|": (np.bitwise_or, np.uint16),
}
SUMMED = {sign: Case(f"z[64] = a {sign} b;", kind) for sign, (_, kind) in BETWEEN.items()}
BITS = {
    sign: Case(
        "b.SetValue(3, a.GetValue(3)); auto c = z.ReinterpretCast<uint8_t>();"
        f"PipeBarrier<PIPE_ALL>(); c = a {sign} b;"
    )
    for sign in ("<", ">", "<=", ">=", "==", "!=")
}


@pytest.mark.parametrize("sign", BETWEEN)
def test_operators_take_whole_tensors(sign):
    a, b, before, z = SUMMED[sign].run()
    with np.errstate(divide="ignore", invalid="ignore"):
        want = BETWEEN[sign][0](a, b)[: N - 64]
    same(z, np.concatenate([before[:64], want]))


@pytest.mark.parametrize("sign", BITS)
def test_comparisons_of_whole_tensors_leave_bits(sign):
    a, b, _, z = BITS[sign].run()
    b = np.where(np.arange(N) == 3, a, b)
    names = {"<": "less", ">": "greater", "<=": "less_equal", ">=": "greater_equal"}
    want = getattr(np, (names | {"==": "equal", "!=": "not_equal"})[sign])(a, b)
    same(z.view(np.uint8)[: N // 8], np.packbits(want, bitorder="little"))


COPIES = {
    kind: Case("Copy(z, a, 16, 4, {1, 1, 8, 8});", kind)
    for kind in (np.float32, np.float16, bfloat16, np.int16, np.uint32)
}


@pytest.mark.parametrize("kind", COPIES)
def test_lanes_are_copied_whatever_their_type(kind):
    a, _, before, z = COPIES[kind].run()
    want = before.reshape(-1, 256 // before.itemsize).copy()
    want[:4, :16] = a.reshape(want.shape)[:4, :16]
    same(z, want.reshape(-1))


UNARY = {
    "Abs": (np.abs, np.float32),
    "Exp": (np.exp, np.float32),
    "Relu": (lambda a: np.maximum(a, 0), np.float32),
    "Sqrt": (np.sqrt, np.float32),
    "Not": (np.invert, np.int16),
}


UNARY_CASES = {name: Case(f"{name}(z, a, 256);", kind) for name, (_, kind) in UNARY.items()}


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name):
    oracle, _ = UNARY[name]
    with np.errstate(invalid="ignore"):
        a, _, before, z = UNARY_CASES[name].run()
        want = np.concatenate([oracle(a)[:256], before[256:]])
    assert np.allclose(z, want, rtol=1e-6, equal_nan=True)


SCALED = {
    "Adds(z, a, 3.5f, N);": lambda a: a + np.float32(3.5),
    "Muls(z, a, -2.0f, N);": lambda a: a * np.float32(-2),
    "Maxs(z, a, 0.5f, N);": lambda a: np.maximum(a, np.float32(0.5)),
    "Mins(z, a, 0.5f, 64, 8, {1, 1, 8, 8});": lambda a: np.minimum(a, np.float32(0.5)),
    "LeakyRelu(z, a, 0.125f, N);": lambda a: np.where(a < 0, a * np.float32(0.125), a),
    "Duplicate(z, 1.5f, N);": lambda _: np.full(N, 1.5, np.float32),
    "Duplicate<float>(z, 2.5f, 64, 8, 1, 8);": lambda _: np.full(N, 2.5, np.float32),
    "Adds(z, a, (float)a.GetSize(), N);": lambda a: a + np.float32(N),
}


SCALED_CASES = {body: Case(body.replace("N)", f"{N})")) for body in SCALED}
AXPY = Case(f"Axpy(z, a, 2.0f, {N});")


@pytest.mark.parametrize("body", SCALED)
def test_functions_of_a_scalar(body):
    a, _, _, z = SCALED_CASES[body].run()
    same(z, SCALED[body](a))


def test_axpy_adds_to_what_is_there():
    a, _, before, z = AXPY.run()
    same(z, before + a * np.float32(2))


SHIFTS = {
    Case(body.replace("N)", f"{N})"), np.int32): oracle
    for body, oracle in {
        "ShiftRight(z, a, 2, N);": lambda a: a >> 2,
        "ShiftRight(z, a, 2u, 64, 8, {1, 1, 8, 8});": lambda a: a >> 2,
        "uint64_t m[2] = {~0ull, 0}; ShiftRight(z, a, 2, m, 8, {1, 1, 8, 8}, true);": lambda a: (
            (a + 2) >> 2
        ),
        "uint64_t m[2] = {~0ull, 0}; ShiftLeft(z, a, 3, m, 8, {1, 1, 8, 8});": lambda a: a << 3,
    }.items()
}


@pytest.mark.parametrize("case", SHIFTS, ids=lambda case: case.name)
def test_shifts(case):
    a, _, _, z = case.run()
    same(z, SHIFTS[case](a))


CASTS = {
    Case(f"Cast(z, a, RoundMode::{mode}, {N});", kind, out): oracle
    for kind, out, mode, oracle in (
        (np.float32, np.float16, "CAST_RINT", lambda a: a.astype(np.float16)),
        (np.float32, np.float16, "CAST_NONE", lambda a: a.astype(np.float16)),
        (np.float16, np.float32, "CAST_NONE", lambda a: a.astype(np.float32)),
        (np.float32, np.int32, "CAST_TRUNC", lambda a: np.trunc(a).astype(np.int32)),
        (np.float32, np.int32, "CAST_FLOOR", lambda a: np.floor(a).astype(np.int32)),
        (np.float32, np.int32, "CAST_CEIL", lambda a: np.ceil(a).astype(np.int32)),
        (np.float32, np.int32, "CAST_RINT", lambda a: np.rint(a).astype(np.int32)),
        (np.int32, np.float32, "CAST_RINT", lambda a: a.astype(np.float32)),
        (np.float32, bfloat16, "CAST_RINT", lambda a: a.astype(bfloat16)),
        (bfloat16, np.float32, "CAST_NONE", lambda a: a.astype(np.float32)),
        (np.float16, np.int8, "CAST_RINT", lambda a: np.rint(a).astype(np.int8)),
        (np.int8, np.float16, "CAST_NONE", lambda a: a.astype(np.float16)),
        (
            np.float16,
            np.int32,
            "CAST_ROUND",
            lambda a: (np.sign(a) * np.floor(np.abs(a) + 0.5)).astype(np.int32),
        ),
        (np.int16, np.float32, "CAST_NONE", lambda a: a.astype(np.float32)),
        (np.int32, np.int16, "CAST_NONE", lambda a: a.astype(np.int16)),
    )
}


@pytest.mark.parametrize("case", CASTS, ids=lambda case: case.name)
@pytest.mark.thinned(3)
def test_conversions(case):
    a, _, _, z = case.run()
    same(z, CASTS[case](a))


SUM = Case(f"ReduceSum(z, a, work, {N});")
LARGEST, SMALLEST = (Case(f"Reduce{name}(z, a, work, {N}, true);") for name in ("Max", "Min"))


def test_reductions_of_everything():
    a, _, _, z = SUM.run()
    assert np.isclose(z[0], a.sum(), rtol=1e-5)
    for case, oracle, place in ((LARGEST, np.max, np.argmax), (SMALLEST, np.min, np.argmin)):
        a, _, _, z = case.run()
        assert (z[0], z[1:2].view(np.uint32)[0]) == (oracle(a), place(a))


WHOLE = Case("WholeReduceMax(z, a, 64, 8, 1, 1, 8);")
BLOCK = Case("BlockReduceMax(z, a, 8, 64, 1, 1, 8);")
DATA_BLOCK = Case("ReduceDataBlock<ReduceType::MAX>(z, a, 64, 8, 1, 1, 8);")
WHOLE_SUM = Case("WholeReduceSum(z, a, 64, 8, 1, 1, 8);")
PAIRS = Case("PairReduceSum(z, a, 8, 64, 1, 1, 8);")
EACH_SECOND = Case(
    "uint64_t odd[2] = {0xAAAAAAAAAAAAAAAA, 0}; PairReduceSum<float>(z, a, 8, odd, 1, 1, 8);"
    "ReducePairElem<ReduceType::SUM, float, float>(z[256], a, odd, 8, 1, 1, 8);"
)
UNSATURATED = Case(
    "AscendCUtils::SetOverflow(1); Add(z, a, b, 256);"
    "AscendCUtils::SetOverflow(0); Add(z[256], a[256], b[256], 256);",
    np.float16,
)


def test_pairs_by_the_bits_of_a_mask():
    a, _, _, z = EACH_SECOND.run()
    same(z[:256], a[1::2])
    same(z[256:], a[1::2])


def test_half_keeps_infinities_as_set_overflow_says():
    large = np.full(512, 60000, np.float16)
    _, _, _, z = UNSATURATED.run(large, large)
    assert np.isinf(z[:256]).all()
    same(z[256:], np.full(256, 65504, np.float16))


def test_reductions_of_repeats_and_blocks():
    a, _, _, z = WHOLE.run()
    same(z[:16:2], a.reshape(8, 64).max(axis=1))
    same(z[1:16:2].view(np.uint32), a.reshape(8, 64).argmax(axis=1))
    a, _, _, z = BLOCK.run()
    same(z[:64], a.reshape(64, 8).max(axis=1))
    same(DATA_BLOCK.run()[3][:64], z[:64])
    a, _, _, z = WHOLE_SUM.run()
    assert np.allclose(z[:8], a.reshape(8, 64).sum(axis=1), rtol=1e-5)
    a, _, _, z = PAIRS.run()
    same(z[:256], a[::2] + a[1::2])


SELECTED = Case(
    f"Compare(bits, a, b, CMPMODE::LT, {N}); PipeBarrier<PIPE_V>();\n"
    f"Select(z, bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, {N});"
)
SELECTED_SCALAR = Case(
    f"CompareScalar(bits, a, 1.0f, CMPMODE::GE, {N}); PipeBarrier<PIPE_V>();\n"
    f"Select(z, bits, a, 7.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, {N});"
)
SELECTED_MASK = Case(
    "Compare(bits, a, b, CMPMODE::GT, 128); PipeBarrier<PIPE_V>();\n"
    "Select(z, bits, a, b, SELMODE::VSEL_CMPMASK_SPR, 64, 8, {1,1,1,8,8,8});"
)


def test_comparing_and_selecting():
    a, b, _, z = SELECTED.run()
    same(z, np.where(a < b, a, b))
    a, _, _, z = SELECTED_SCALAR.run()
    same(z, np.where(a >= 1, a, np.float32(7)))
    a, b, _, z = SELECTED_MASK.run()
    want = np.where((a > b)[:64], a.reshape(8, 64), b.reshape(8, 64)).reshape(-1)
    same(z, want)


GATHER = Case(f"Gather(z, a, b.ReinterpretCast<uint32_t>(), 0, {N});")
GATHER_MASK = Case(
    "uint64_t count = 0;\n"
    f"GatherMask(z, a, 1, false, 0, {{1, {N // 64}, 8, 0}}, count);\n"
    "Duplicate(z[496], (float)count, 8);"
)
BRCB = Case("Brcb(z, a, 1, {1, 8});")
INDEX = Case("CreateVecIndex(z, 5, 100);", np.int32)


def test_gathering():
    rng = np.random.default_rng(5)
    order = rng.permutation(N)
    a, _, _, z = GATHER.run(y=(order * 4).astype(np.uint32).view(np.float32))
    same(z, a[order])
    a, _, _, z = GATHER_MASK.run()
    same(z[:256], a[::2])
    assert z[496] == 256
    a, _, _, z = BRCB.run()
    same(z[:64], np.repeat(a[:8], 8))
    _, _, _, z = INDEX.run()
    same(z[:100], np.arange(5, 105, dtype=np.int32))


SCALARS = Case("""
    float total = 0;
    for (int i = 0; i < 10; ++i) total += a.GetValue(i);
    z.SetValue(0, total);
    z(1) = a(3);
    gz.SetValue(511, 2.5f);
    DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(gz[511]);
""")


def test_the_scalar_unit_reads_and_writes():
    a, _, _, z = SCALARS.run()
    total = np.float32(0)
    for value in a[:10]:
        total += value
    assert (z[0], z[1]) == (total, a[3])


PADS = {
    Case(params + "DataCopyPad(z, ga, p, q);"): (count, fill)
    for params, count, fill in (
        (
            "DataCopyExtParams p{1, 100, 0, 0, 0}; DataCopyPadExtParams<float> q{false, 0, 0, 0};",
            25,
            None,
        ),
        (
            "DataCopyExtParams p{1, 100, 0, 0, 0}; "
            "DataCopyPadExtParams<float> q{true, 0, 7, 9.0f};",
            25,
            9.0,
        ),
    )
}


@pytest.mark.parametrize("case", PADS, ids=lambda case: case.name)
def test_unaligned_moves(case):
    (a, _, _, z), (count, fill) = case.run(), PADS[case]
    same(z[:count], a[:count])
    if fill is not None:
        same(z[count : count + 7], np.full(7, fill, np.float32))


ROWS = Case("""
    DataCopyExtParams p{4, 20, 0, 12, 0};
    DataCopyPad(gz, a, p);
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, gz, 512);
""")


def test_unaligned_moves_of_rows_back():
    a, _, before, z = ROWS.run()
    want = before.copy()
    for row in range(4):
        want[8 * row : 8 * row + 5] = a[8 * row : 8 * row + 5]
    same(z, want)


ROUNDED = Case(
    """
    half h = 2048; h = h + half(1); h = h + half(1);
    z.SetValue(0, h);
    z.SetValue(1, half(0.1f) * half(3));
    z.SetValue(2, (half)1e6f);
    z.SetValue(3, half(1.0f) / half(3));
    z.SetValue(4, -half(2.5f));
""",
    np.float16,
)


def test_half_rounds_after_each_operation():
    *_, z = ROUNDED.run()
    want = [2048, np.float16(0.1) * np.float16(3), np.inf, np.float16(1) / np.float16(3), -2.5]
    same(z[:5], np.array(want, np.float16))


CONSTANT_HALVES = """
    constexpr half third = half(1.0f) / half(3);
    constexpr half sum = third + half(2), less = -sum;
    static_assert(static_cast<float>(less) < -2.3f && half(2048) + half(1) == 2048.0f);
    static_assert(static_cast<float>(bfloat16_t(third)) > 0.33f);
    ASCENDC_ASSERT(nowhere_declared > 0, { KERNEL_LOG(KERNEL_ERROR, "not %d", nowhere_declared); });
"""
HALF_ELEMENTS = Case(
    CONSTANT_HALVES
    + """
    float first = a(0);
    z(0) = first + static_cast<float>(a(1));
    z(1) = a(2);
    z(1) /= half(3);
    z(1) -= a(3);
    z(2) = less;
    z(3) = a(4) < a(5) ? 1 : 2;
""",
    np.float16,
)
WHOLE_ELEMENTS = Case(
    """
    z(0) = a(0); z(0) %= 7; z(0) <<= 3; z(0) |= 1;
    z(1) = a(1); z(1) >>= 1; z(1) ^= 5; z(1) &= 30;
    z(2) = a(2); z(2) /= 3;
    z(3) = z(2)++;
    z(4) = --z(3);
    z(5) = a(5); ++z(5); z(5)--;
""",
    np.uint32,
)


def test_elements_are_used_as_references_to_them():
    a, *_, z = HALF_ELEMENTS.run()
    sums = np.float16(np.float32(a[0]) + np.float32(a[1])), a[2] / np.float16(3) - a[3]
    less = -(np.float16(1) / np.float16(3) + np.float16(2))
    same(z[:4], np.array([*sums, less, 1 if a[4] < a[5] else 2], np.float16))
    a, *_, z = WHOLE_ELEMENTS.run()
    third = a[2] // 3
    want = [(a[0] % 7 << 3) | 1, ((a[1] >> 1) ^ 5) & 30, third + 1, third - 1, third - 1, a[5]]
    same(z[:6], np.array(want, np.uint32))


@pytest.mark.sweep
def test_cores_that_wait_for_each_other():
    body = """
    GlobalTensor<int32_t> g;
    g.SetGlobalBuffer((__gm__ int32_t*)x, 8 * 16);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, 1024);
    LocalTensor<int32_t> t = buf.Get<int32_t>();
    Duplicate(t, (int32_t)GetBlockIdx() + 1, 8);
    PipeBarrier<PIPE_ALL>();
    DataCopy(g[GetBlockIdx() * 8], t, 8);
    SyncAll();
    DataCopy(t, g[(GetBlockIdx() + 1) % GetBlockNum() * 8], 8);
    PipeBarrier<PIPE_ALL>();
    DataCopy(g[64 + GetBlockIdx() * 8], t, 8);
    """
    x = np.zeros(128, np.int32)
    run = kernel(body)[8](x)
    assert run.findings == ()
    same(x[64::8], np.roll(np.arange(1, 9, dtype=np.int32), -1))


def test_atomic_addition():
    body = """
    GlobalTensor<float> g;
    g.SetGlobalBuffer((__gm__ float*)x, 8);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buf;
    pipe.InitBuffer(buf, 32);
    LocalTensor<float> t = buf.Get<float>();
    Duplicate(t, 1.5f, 8);
    PipeBarrier<PIPE_ALL>();
    SetAtomicAdd<float>();
    DataCopy(g, t, 8);
    SetAtomicNone();
    """
    x = np.ones(8, np.float32)
    kernel(body)[4](x)
    same(x, np.full(8, 7, np.float32))


SUMS = """
extern "C" __global__ __aicore__ void sums(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TBuf<> from, to;
  pipe.InitBuffer(from, 4096);
  pipe.InitBuffer(to, 64);
  LocalTensor<float> held = from.Get<float>(), made = to.Get<float>();
  __ubuf__ float* start = (__ubuf__ float*)held.GetPhyAddr();
  GlobalTensor<float> source, target;
  source.SetGlobalBuffer((__gm__ float*)x);
  target.SetGlobalBuffer((__gm__ float*)y);
  DataCopy(held, source, 1024);
  PipeBarrier<PIPE_ALL>();
  SetVectorMask<float, MaskMode::NORMAL>(0, (1ull << 40) - 1);
  vcadd((__ubuf__ float*)made.GetPhyAddr(), start, 12, 1, 1, 8, false);
  vcadd(nullptr, start, 16, 1, 1, 8, true);
  set_flag(PIPE_V, PIPE_S, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_S, EVENT_ID0);
  uint64_t total = get_acc_val();
  made.SetValue(12, *reinterpret_cast<float*>(&total));
  set_mask_count();
  set_vector_mask(0, 1000);
  vcadd(nullptr, start, 1, 1, 1, 8, true);
  set_mask_norm();
  made.SetValue(13, GetAccVal<float>());
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(target, made, {1, 56, 0, 0});
}
"""


def test_built_in_sums_go_to_memory_or_to_a_register():
    x = np.arange(1024, dtype=np.float32) % 37
    y = np.zeros(14, np.float32)
    text = f'#include "kernel_operator.h"\nusing namespace AscendC;\n{SUMS}'
    assert cubecore.inline(text).sums[1](x, y).findings == ()
    rows = x.reshape(16, 64)[:, :40]
    np.testing.assert_array_equal(y, [*rows.sum(axis=1)[:12], rows.sum(), x[:1000].sum()])


STEPS = """
extern "C" __global__ __aicore__ void steps(GM_ADDR x, GM_ADDR y) {
  __ubuf__ float *from = (__ubuf__ float*)0, *to = (__ubuf__ float*)2048;
  DataCopyPadGm2UBImpl(from, (__gm__ float*)x, DataCopyParams{1, 2000, 0, 0}, DataCopyPadParams());
  DuplicateImpl<float>(to, 5.0f, 72);
  PipeBarrier<PIPE_ALL>();
  SetVectorMask<float>(64);
  BlockReduceMaxIntrinsicsImpl(to, from, 7, 1, 1, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopyPadUB2GMImpl((__gm__ float*)y, to, DataCopyExtParams{1, 272, 0, 0, 0});
  DataCopyUB2GMImpl((__gm__ float*)y + 72, to, DataCopyParams{1, 1, 0, 0});
}
"""


def test_steps_of_the_library_take_raw_pointers():
    x = np.random.default_rng(4).standard_normal(512).astype(np.float32)
    y = np.zeros(80, np.float32)
    text = f'#include "kernel_operator.h"\nusing namespace AscendC;\n{STEPS}'
    assert cubecore.inline(text).steps[1](x, y).findings == ()
    largest = x[:448].reshape(56, 8).max(axis=1)
    want = np.full(68, 5, np.float32)
    want[:56] = largest
    same(y[:68], want)
    same(y[68:], np.concatenate([np.zeros(4, np.float32), want[:8]]))
