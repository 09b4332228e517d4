"""Masks of bits in every family, sorting, transposing, and values made: NumPy the oracle."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernel, needs_compiler
from frontends.cpp.vector_cases import Cases, N, drawn, same

pytestmark = needs_compiler
POINTED = """
template <typename T> using One = void(const LocalTensor<T>&, const LocalTensor<T>&,
                                       const int32_t&);
template <typename T> using Two = void(const LocalTensor<T>&, const LocalTensor<T>&,
                                       const LocalTensor<T>&, const int32_t&);
template <typename T> using Scaled = void(const LocalTensor<T>&, const LocalTensor<T>&, const T&,
                                          const int32_t&);
template <typename T> using Masked = void(const LocalTensor<T>&, const LocalTensor<T>&,
                                          const LocalTensor<T>&, uint64_t, const uint8_t,
                                          const BinaryRepeatParams&);
template <typename T, Masked<T>* masked>
inline void masked_through(const LocalTensor<T>& z, const LocalTensor<T>& a) {
  masked(z, a, a, 20, 2, BinaryRepeatParams(1, 1, 1, 8, 8, 8));
}
template <typename T, One<T>* one, Two<T>* two, Scaled<T>* scaled>
inline void through_pointers(const LocalTensor<T>& z, const LocalTensor<T>& a, T value, int32_t n) {
  one(z, a, n);
  PipeBarrier<PIPE_V>();
  two(z, z, a, n);
  PipeBarrier<PIPE_V>();
  scaled(z, z, value, n);
}
"""
CASES = Cases(POINTED)
Case = CASES.case
EVEN = "uint64_t mask[2] = {0x5555555555555555ull, 0};\n"
EVEN_HALVES = EVEN.replace("0}", "0x5555555555555555ull}")
FREE = "PipeBarrier<PIPE_V>();\n"

THROUGH_POINTERS = Case("through_pointers<float, Abs, Add, Muls>(z, a, 3.0f, 100);")


MASK_THROUGH_POINTERS = Case("masked_through<float, Add>(z, a);")


@pytest.mark.sweep
def test_functions_through_pointers():
    a, _, before, z = THROUGH_POINTERS.run()
    same(z[:100], ((np.abs(a) + a) * np.float32(3))[:100])
    same(z[100:], before[100:])
    a, _, before, z = MASK_THROUGH_POINTERS.run()
    lanes = (np.arange(N) % 64 < 20) & (np.arange(N) < 128)
    same(z, np.where(lanes, a + a, before))


COMPARED_LANES = Case(
    f"Compare(bits, a, b, CMPMODE::LT, 64, 8, {{1, 1, 1, 8, 8, 8}}); {FREE}"
    f"{EVEN}Select(z, bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, mask, 8, {{1, 1, 1, 8, 8, 8}});"
)
COMPARED_BITS = Case(
    f"{EVEN}Compare(a, b, CMPMODE::GE, mask, {{1, 1, 1, 8, 8, 8}});\n"
    f"{FREE}GetCmpMask(bits); {FREE}"
    "Select(z, bits, a, 9.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, mask, 1, {1, 1, 1, 8, 8, 8});"
)
BY_REGISTER = Case(
    f"Compare(a, b, CMPMODE::GT, 64, {{1, 1, 1, 8, 8, 8}}); {FREE}"
    "Select<float, SELMODE::VSEL_CMPMASK_SPR>(z, a, b, 2, {1, 1, 1, 8, 8, 8});"
)
SCALED_BITS = Case(
    f"{EVEN}Duplicate(bits.ReinterpretCast<uint16_t>(), (uint16_t)0, 32); {FREE}"
    f"Compares(bits, a, 0.5f, CMPMODE::GT, mask, 8, {{1, 1, 8, 8}}); {FREE}"
    f"Select(z, bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, {N});"
)


def test_comparing_and_selecting_under_bits():
    even = np.arange(N) % 2 == 0
    a, b, before, z = COMPARED_LANES.run()
    same(z, np.where(even, np.where(a < b, a, b), before))
    a, b, before, z = COMPARED_BITS.run()
    first = np.arange(N) < 64
    same(z, np.where(first & even, np.where(a >= b, a, np.float32(9)), before))
    a, b, before, z = BY_REGISTER.run()
    bits = np.tile((a > b)[:64], 8)
    same(z, np.where(np.arange(N) < 128, np.where(bits, a, b), before))
    a, b, _, z = SCALED_BITS.run()
    same(z[even], np.where(a > 0.5, a, b)[even])


GATHERED = Case(f"{EVEN}Gather(z, a, b.ReinterpretCast<uint32_t>(), 4, mask, 8, 8);")
INDEXED = Case(f"{EVEN}CreateVecIndex(z, 5, mask, 2, 1, 8);", np.int32)
SUMMED = Case(f"{EVEN_HALVES}ReduceSum(z, a, work, mask, 4, 8);", np.float16)
LARGEST = Case(f"{EVEN}ReduceMax(z, a, work, mask, 8, 8, true);")
ACCUMULATED = Case(
    "ReduceSum(work, a, work[64], 96);\n"
    "float sum = GetAccVal<float>(); Duplicate(z, sum, 8);\n"
    "uint64_t bits_of_sum = GetAccVal(); Duplicate(z[24], *(float*)&bits_of_sum, 8);\n"
    "ReduceMax(work, a, work[64], 100, true);\n"
    "float most = 0, where = 0; GetReduceMaxMinCount<float>(most, where);\n"
    "Duplicate(z[8], most, 8); Duplicate(z[16], (float)*(uint32_t*)&where, 8);"
)


def test_gathering_and_reducing_under_bits():
    order = np.random.default_rng(5).permutation(N) % (N - 1)
    even = np.arange(N) % 2 == 0
    a, _, before, z = GATHERED.run(y=(order * 4).astype(np.uint32).view(np.float32))
    same(z, np.where(even, a[order + 1], before))  # a base address of one element
    _, _, before, z = INDEXED.run()
    index = np.arange(5, 5 + N, dtype=np.int32)
    same(z, np.where(even & (np.arange(N) < 128), index, before))
    a = np.arange(N, dtype=np.float16) % 3
    _, _, _, z = SUMMED.run(x=a)
    assert z[0] == a[even].sum()
    a, _, _, z = LARGEST.run()
    assert z[0] == a[even].max()
    assert z[1:2].view(np.uint32)[0] < N


def test_what_reductions_leave_for_the_scalar_unit():
    a = (np.arange(N) * 7 % 31).astype(np.float32)
    _, _, _, z = ACCUMULATED.run(x=a)
    assert (z[0], z[8], z[16]) == (a[:96].sum(), a[:100].max(), a[:100].argmax())
    assert z[24] == z[0]


FULL = Case(
    "LocalTensor<float> tmp = work; LocalTensor<float> list;\n"
    "Concat(list, a, tmp, 6);\n"
    f"Sort<float, true>(z, list, b.ReinterpretCast<uint32_t>(), tmp, 6); {FREE}"
    "Extract(work, work[256].ReinterpretCast<uint32_t>(), z, 6); PipeBarrier<PIPE_V>();\n"
    "DataCopy(z, work, 448);"
)
RUNS = Case(
    "LocalTensor<float> tmp = work;\n"
    "Sort<float, false>(z, a, b.ReinterpretCast<uint32_t>(), tmp, 4);"
)
MERGED = Case(
    f"Sort32(work, a, b.ReinterpretCast<uint32_t>(), 2); {FREE}"
    "uint16_t lengths[4] = {32, 32, 0, 0}; uint32_t sorted[4];\n"
    "MrgSortSrcList<float> lists(work, work[GetSortOffset<float>(32)], work, work);\n"
    "MrgSort<float, true>(z, lists, lengths, sorted, 0b11, 1);\n"
    "uint16_t n[4]; GetMrgSortResult(n[0], n[1], n[2], n[3]);\n"
    "Duplicate(z[256], (float)sorted[0], 8); Duplicate(z[264], (float)sorted[1], 8);\n"
    "Duplicate(z[272], (float)(n[0] + n[1]), 8);"
)


def test_sorting():
    index = np.arange(N, dtype=np.uint32)
    for seed in (1, 2):
        a = np.random.default_rng(seed).permutation(N).astype(np.float32)
        _, _, _, z = FULL.run(x=a, y=index.view(np.float32))
        order = np.argsort(-a[:192], kind="stable")
        same(z[:192], a[order])
        same(z[256:448].view(np.uint32), order.astype(np.uint32))
    _, _, _, z = RUNS.run(x=a, y=index.view(np.float32))
    for run in range(4):
        part = a[32 * run : 32 * run + 32]
        same(z[64 * run : 64 * run + 64 : 2], np.sort(part)[::-1])


def test_a_merge_that_stops_says_how_far_it_came():
    a = np.concatenate([np.arange(100, 132), np.arange(32), np.zeros(N - 64)]).astype(np.float32)
    _, _, _, z = MERGED.run(x=a, y=np.arange(N, dtype=np.uint32).view(np.float32))
    same(z[:64:2], np.arange(131, 99, -1).astype(np.float32))
    assert (z[256], z[264], z[272]) == (32, 0, 32)


HD = """
  TransDataTo5HDParams p;
  p.repeatTimes = 1;
  {CALL}
"""
LISTS = """
  uint64_t to[16], from[16];
  for (int n = 0; n < 16; ++n) {
    to[n] = (uint64_t)z[%d * n].GetPhyAddr();
    from[n] = (uint64_t)a[%d * n].GetPhyAddr();
  }
"""
HALVES = Case(
    HD.replace("{CALL}", LISTS % (16, 16) + "TransDataTo5HD<half>(to, from, p);"), np.float16
)
WORDS = Case(HD.replace("{CALL}", LISTS % (8, 8) + "TransDataTo5HD<float>(to, from, p);"))
BYTES = Case(
    "TransDataTo5HDParams p(true, false, 1, 0, 0);\n"
    + LISTS % (32, 32)
    + "TransDataTo5HD<int8_t>(to, from, p);",
    np.int8,
)
TENSORS = Case(
    "LocalTensor<half> to[16], from[16];\n"
    "for (int n = 0; n < 16; ++n) { to[n] = z[16 * n]; from[n] = a[16 * n]; }\n"
    "TransDataTo5HD<half>(to, from, TransDataTo5HDParams(false, false, 1, 0, 0));",
    np.float16,
)


def test_transposing_blocks():
    for case in (HALVES, TENSORS):
        a, _, before, z = case.run()
        same(z[:256].reshape(16, 16), a[:256].reshape(16, 16).T)
        same(z[256:], before[256:])
    a, _, _, z = WORDS.run()
    rows = a[:128].reshape(16, 8).T
    same(z[:128].reshape(8, 16), rows)
    a, _, before, z = BYTES.run()
    got, source = z.reshape(16, 32), a.reshape(16, 32)
    same(got[:, 16:], source[:, :16].T)
    same(got[:, :16], before.reshape(16, 32)[:, :16])


SERIES = {
    kind: Case(f"Arange(z, ({name})3, ({name})2, 300);", kind)
    for kind, name in ((np.float32, "float"), (np.int32, "int32_t"), (np.float16, "half"))
}


@pytest.mark.parametrize("kind", SERIES)
def test_series(kind):
    _, _, before, z = SERIES[kind].run()
    same(z[:300], (3 + 2 * np.arange(300)).astype(kind))
    same(z[300:], before[300:])


def spread(rows, columns, axis, dim=2):
    shapes = (
        f"uint32_t to[] = {{{rows}, {columns}}}, from[] = {{{rows}, 1}};"
        if axis
        else f"uint32_t to[] = {{{rows}, {columns}}}, from[] = {{1, {columns}}};"
    )
    return Case(f"{shapes} Broadcast<float, {dim}, {axis}>(z, a, to, from);")


SPREADS = {
    (rows, columns, axis): spread(rows, columns, axis)
    for rows, columns, axis in ((8, 64, 1), (24, 16, 1), (40, 12, 1), (5, 72, 0), (1, 300, 1))
}
LITTLE = Case(
    "uint32_t to[] = {32, 9}, from[] = {32, 1};\n"
    "LocalTensor<uint8_t> tmp = bits[0]; tmp.SetSize(32 * 3 * 8);\n"
    "BroadCast<float, 2, 1>(z, a, to, from, tmp);"
)


@pytest.mark.parametrize("shape", SPREADS)
def test_broadcasting(shape):
    rows, columns, axis = shape
    a, _, before, z = SPREADS[shape].run()
    want = np.broadcast_to(a[:rows, None] if axis else a[:columns], (rows, columns))
    same(z[: rows * columns].reshape(rows, columns), want)
    same(z[rows * columns :], before[rows * columns :])


def test_broadcasting_in_turns():
    a, _, _, z = LITTLE.run()
    same(z[: 32 * 9].reshape(32, 9), np.broadcast_to(a[:32, None], (32, 9)))


CHOSEN = {
    name: Case(
        "SelectWithBytesMaskShapeInfo info; info.firstAxis = 4; info.srcLastAxis = 48;\n"
        f"info.maskLastAxis = 64; auto m = b.ReinterpretCast<{name}>();\n"
        f"Select(z, {sources}, m, bits, info);"
    )
    for name, sources in (
        ("uint8_t", "a, 5.0f"),
        ("uint32_t", "a, 5.0f"),
        ("int16_t", "5.0f, a"),
        ("int32_t", "5.0f, a"),
    )
}


@pytest.mark.parametrize("name", CHOSEN)
def test_choosing_by_elements(name):
    kind = np.dtype(name.removesuffix("_t"))
    mask = np.random.default_rng(3).integers(0, 2, (4, 64)) * np.array([1, 3, 100, 7])[:, None]
    held = np.zeros(N * 4, np.uint8)
    held[: mask.size * kind.itemsize] = mask.astype(kind).reshape(-1).view(np.uint8)
    a, _, _, z = CHOSEN[name].run(y=held.view(np.float32))
    unset, rows = mask[:, :48] == 0, a[:192].reshape(4, 48)
    tensor = unset if name.startswith("u") else ~unset
    same(z[:192].reshape(4, 48), np.where(tensor, rows, np.float32(5)))


SUMS = {
    (rows, n): Case(
        f"SumParams p; p.outter = {rows}; p.n = {n}; p.inner = {(n + 7) // 8 * 8};\n"
        "Sum(z, a, bits, p); Duplicate(work, 0.0f, 64);"
    )
    for rows, n in ((1, 500), (3, 100), (8, 61), (20, 24))
}


@pytest.mark.parametrize("shape", SUMS)
def test_sums_of_rows(shape):
    rows, n = shape
    inner = (n + 7) // 8 * 8
    x = (np.arange(N) * 5 % 17).astype(np.float32)
    _, _, before, z = SUMS[shape].run(x=x)
    same(z[:rows], x[: rows * inner].reshape(rows, inner)[:, :n].sum(axis=1))
    same(z[rows:], before[rows:])


NORMS = {
    kind: Case(
        f"RmsNormTiling t; t.bLength = 1; t.sLength = {rows}; t.hLength = {length};\n"
        f"t.originalHLength = {whole}; t.reciprocalOfHLength = 1.0f / {whole};\n"
        f"LocalTensor<{name}> gamma = b; RmsNorm(z, a, gamma, ({name})0.01f, t);",
        kind,
        m=rows * length,
    )
    for kind, name, rows, length, whole in (
        (np.float32, "float", 3, 72, 72),
        (np.float16, "half", 2, 144, 140),
    )
}


@pytest.mark.parametrize("kind", NORMS)
def test_norms_of_rows(kind):
    rows, length, whole = (3, 72, 72) if kind is np.float32 else (2, 144, 140)
    x = drawn(kind, 1)
    x[: rows * length].reshape(rows, length)[:, whole:] = 0
    x, gamma, _, z = NORMS[kind].run(x=x)
    exact = x[: rows * length].reshape(rows, length).astype(np.float64)
    mean = (exact[:, :whole] ** 2).mean(axis=1, keepdims=True)
    exact = exact / np.sqrt(mean + float(kind(0.01))) * gamma[:length]
    assert np.allclose(z.reshape(rows, length), exact, rtol=1e-3 if kind is np.float16 else 1e-5)


def test_filling_global_memory():
    body = """
    GlobalTensor<half> g;
    g.SetGlobalBuffer((__gm__ half*)x + 1000 * GetBlockIdx(), 1000);
    Fill(g, 1000, (half)(GetBlockIdx() + 1));
    PipeBarrier<PIPE_ALL>();
    if (GetBlockIdx() == 0) InitOutput<half>(g[10], 3, (half)7);
    """
    x = drawn(np.float16, 1, 3000)
    assert kernel(body)[3](x).findings == ()
    want = np.repeat(np.arange(1, 4, dtype=np.float16), 1000)
    want[10:13] = 7
    same(x, want)
