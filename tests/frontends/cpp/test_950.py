"""C++ for architecture 3510: the tensor API, functions of whole tensors, mutexes, rows in bytes."""

import ml_dtypes
import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.cpp.documented import of_2201, replaced
from frontends.cpp.cpp_kernels import kernel, kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"

TENSORS = """
#include "tensor_api/tensor.h"
using namespace AscendC::Te;
using namespace AscendC::Std;
template <typename T, typename A, typename B, typename GA, typename GB>
inline void product(GA gmA, GB gmB, __gm__ float* c, int m, int n, int k) {
  __cbuf__ T l1A[64 * 128];
  __cbuf__ T l1B[128 * 64];
  __ca__ T l0A[64 * 128];
  __cb__ T l0B[128 * 64];
  __cc__ float l0C[64 * 64];
  auto gmC = MakeTensor(MakeMemPtr(c), MakeFrameLayout<NDExtLayoutPtn>(m, n));
  auto tA = MakeTensor(MakeMemPtr(l1A), MakeFrameLayout<A, Int<32 / sizeof(T)>>(m, k));
  auto tB = MakeTensor(MakeMemPtr(l1B), MakeFrameLayout<B, Int<32 / sizeof(T)>>(k, n));
  auto uA = MakeTensor(MakeMemPtr(l0A), MakeFrameLayout<NZLayoutPtn, Int<32 / sizeof(T)>>(m, k));
  auto uB = MakeTensor(MakeMemPtr(l0B), MakeFrameLayout<ZNLayoutPtn, Int<32 / sizeof(T)>>(k, n));
  auto tC = MakeTensor(MakeMemPtr(l0C), MakeFrameLayout<NZLayoutPtn>(m, n));
  Copy(MakeCopy(CopyGM2L1{}), tA, gmA);
  Copy(MakeCopy(CopyGM2L1{}), tB, gmB);
  PipeBarrier<PIPE_ALL>();
  Copy(MakeCopy(CopyL12L0A{}), uA, tA);
  Copy(MakeCopy(CopyL12L0B{}), uB, tB);
  PipeBarrier<PIPE_ALL>();
  Mmad(MakeMmad(MmadOperation{}).with(AscendC::Te::MmadParams(m, n, k, 0, true)), tC, uA, uB);
  PipeBarrier<PIPE_ALL>();
  Copy(MakeCopy(CopyL0C2GM{}), gmC, tC);
}
"""
PARAMETERS = "__gm__ half* a, __gm__ half* b, __gm__ float* c, int m, int n, int k"
ROWS = "MakeTensor(MakeMemPtr({0}), MakeFrameLayout<NDExtLayoutPtn>({1}, {2}))"
COLUMNS = "MakeTensor(MakeMemPtr({0}), MakeFrameLayout<DNExtLayoutPtn>({1}, {2}))"


def of(left, right, a="NZLayoutPtn", b="NZLayoutPtn"):
    tensors = f"{left.format('a', 'm', 'k')}, {right.format('b', 'k', 'n')}"
    return f"if ASCEND_IS_AIC product<half, {a}, {b}>({tensors}, c, m, n, k);"


@pytest.fixture(scope="module")
def products():
    bodies = {
        "plain": of(ROWS, ROWS),
        "turned": of(COLUMNS, COLUMNS, "ZNLayoutPtn", "ZNLayoutPtn"),
    }
    return kernels(bodies, PARAMETERS, TENSORS, chip=CHIP)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 128), (33, 50, 70), (1, 17, 16)])
@pytest.mark.parametrize("name", ["plain", "turned"])
def test_a_product_of_tensors(products, name, m, n, k):
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    given = (a, b) if name == "plain" else (a.T.copy(), b.T.copy())
    run = getattr(products, name)[1](*given, c, m, n, k)
    assert [f.message for f in run.findings] == []
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


SCALED = """
#include "tensor_api/tensor.h"
using namespace AscendC::Te;
using namespace AscendC::Std;
struct Mx {
  using TraitType = MmadTrait;
  static constexpr const TraitType value{0, false, false, true, MmadType::MX};
};
template <typename P, typename T, typename Pointer>
auto scales(Pointer p, int rows, int columns) {
  return MakeTensor(p, MakeFrameLayout<P, Int<2>>(rows, columns));
}
"""
SCALED_BODY = """
  if ASCEND_IS_AIV return;
  int s = k / 32;
  using E = fp8_e8m0_t;
  auto gA = MakeTensor(MakeMemPtr(a), MakeFrameLayout<NDExtLayoutPtn>(m, k));
  auto gB = MakeTensor(MakeMemPtr(b), MakeFrameLayout<DNExtLayoutPtn>(k, n));
  auto gC = MakeTensor(MakeMemPtr(c), MakeFrameLayout<NDExtLayoutPtn>(m, n));
  auto gSA = scales<ScaleANDLayoutPtn, E>(MakeMemPtr(sa), m, s);
  auto gSB = scales<ScaleBDNLayoutPtn, E>(MakeMemPtr(sb), s, n);
  auto tA = MakeTensor(MakeMemPtr<Location::L1, fp8_e4m3fn_t>(0),
                       MakeFrameLayout<NZLayoutPtn, Int<32>>(m, k));
  auto tB = MakeTensor(MakeMemPtr<Location::L1, fp8_e4m3fn_t>(65536),
                       MakeFrameLayout<ZNLayoutPtn, Int<32>>(k, n));
  auto tSA = scales<ZZLayoutPtn, E>(MakeMemPtr<Location::L1, E>(131072), m, s);
  auto tSB = scales<NNLayoutPtn, E>(MakeMemPtr<Location::L1, E>(196608), s, n);
  auto uA = MakeTensor(MakeMemPtr<Location::L0A, fp8_e4m3fn_t>(0),
                       MakeFrameLayout<NZLayoutPtn, Int<32>>(m, k));
  auto uB = MakeTensor(MakeMemPtr<Location::L0B, fp8_e4m3fn_t>(0),
                       MakeFrameLayout<ZNLayoutPtn, Int<32>>(k, n));
  auto uSA = scales<ZZLayoutPtn, E>(MakeMemPtr<Location::L0ScaleA, E>(0), m, s);
  auto uSB = scales<NNLayoutPtn, E>(MakeMemPtr<Location::L0ScaleB, E>(0), s, n);
  auto tC = MakeTensor(MakeMemPtr<Location::L0C, float>(0), MakeFrameLayout<NZLayoutPtn>(m, n));
  Copy(MakeCopy(CopyGM2L1{}), tA, gA);
  Copy(MakeCopy(CopyGM2L1{}), tB, gB);
  Copy(MakeCopy(CopyGM2L1{}), tSA, gSA);
  Copy(MakeCopy(CopyGM2L1{}), tSB, gSB);
  PipeBarrier<PIPE_ALL>();
  Copy(MakeCopy(CopyL12L0A{}), uA, tA);
  Copy(MakeCopy(CopyL12L0B{}), uB, tB);
  Copy(MakeCopy(CopyL12L0ScaleA{}), uSA, tSA);
  Copy(MakeCopy(CopyL12L0ScaleB{}), uSB, tSB);
  PipeBarrier<PIPE_ALL>();
  using Atom = MmadAtom<MmadTraits<MmadOperation, Mx>>;
  Mmad(Atom{}.with(AscendC::Te::MmadParams(m, n, k, 0, true)), tC, uA, uB);
  PipeBarrier<PIPE_ALL>();
  Copy(MakeCopy(CopyL0C2GM{}), gC, tC);
"""


def test_a_product_with_scales():
    m, n, k = 32, 48, 128
    rng = np.random.default_rng(3)
    kind, e8m0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
    a, b = (rng.integers(-3, 4, (rows, k)).astype(kind) for rows in (m, n))
    sa, sb = (rng.integers(125, 130, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    text = "fp8_e4m3fn_t* a, __gm__ fp8_e4m3fn_t* b, __gm__ fp8_e8m0_t* sa, __gm__ fp8_e8m0_t* sb"
    made = kernel(
        SCALED_BODY, f"__gm__ {text}, __gm__ float* c, int m, int n, int k", SCALED, chip=CHIP
    )
    run = made[1](a, b, sa.view(e8m0), sb.view(e8m0), c, m, n, k)
    assert [f.message for f in run.findings] == []
    wide = [
        v.astype(np.float32) * np.repeat(2.0 ** (s.astype(np.float32) - 127), 32, axis=1)
        for v, s in ((a, sa), (b, sb))
    ]
    assert np.array_equal(c, (wide[0] @ wide[1].T).astype(np.float32))


WHOLE = """
  TPipe pipe;
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  pipe.InitBuffer(in, 1, 4096);
  pipe.InitBuffer(out, 1, 8192);
  GlobalTensor<int16_t> xg, zg;
  GlobalTensor<float> fg;
  xg.SetGlobalBuffer((__gm__ int16_t*)x);
  zg.SetGlobalBuffer((__gm__ int16_t*)z);
  auto xs = in.AllocTensor<int16_t>();
  DataCopy(xs, xg, 1024);
  in.EnQue(xs);
  xs = in.DeQue<int16_t>();
  auto zs = out.AllocTensor<int16_t>();
  Duplicate(zs, (int16_t)0, 2560);
  BitwiseXor(zs, xs, xs[512], 512);
  Clamp(zs[512], xs, (int16_t)-7, (int16_t)9, 512);
  auto truth = zs[1024].ReinterpretCast<bool>();
  LogicalNot(truth, xs, 512);
  Where(zs[2048], xs, xs[512], truth, 512);
  out.EnQue(zs);
  zs = out.DeQue<int16_t>();
  DataCopy(zg, zs, 2560);
  in.FreeTensor(xs);
  out.FreeTensor(zs);
"""


def test_functions_of_whole_tensors():
    rng = np.random.default_rng(4)
    x, z = rng.integers(-20, 20, 1024).astype(np.int16), np.zeros(2560, np.int16)
    run = kernel(WHOLE, "GM_ADDR x, GM_ADDR z", chip=CHIP)[1](x, z)
    assert [f.message for f in run.findings] == []
    first, second = x[:512], x[512:]
    assert np.array_equal(z[:512], first ^ second)
    assert np.array_equal(z[512:1024], np.clip(first, -7, 9))
    assert np.array_equal(z[1024:1280].view(np.uint8), first == 0)
    assert np.array_equal(z[2048:], np.where(first == 0, first, second))


def test_they_are_refused_on_2201():
    with pytest.raises(RequestError) as caught:
        kernel(WHOLE, "GM_ADDR x, GM_ADDR z")
    assert str(caught.value) == (
        "inline.cpp:21: AscendC::BitwiseXor is of architecture 3510; "
        "run it with --chip Ascend950PR_9589"
    )


OF_2201 = {
    "CheckLocalMemoryIA": "CheckLocalMemoryIA({0, 0, 0, 0, 0, 0, 0, 0, 0, 0});",
    "FixpipeParams": "FixpipeParams<float> p;",
    "GetReduceRepeatMaxMinSpr": "float a, b; GetReduceRepeatMaxMinSpr<float>(a, b);",
    "GetSaturationFlag": "GetSaturationFlag<SaturationMode::FLOAT>();",
    "LoadDataWithSparse": "LocalTensor<int8_t> a, b; LocalTensor<uint8_t> i; "
    "LoadDataWithSparse(a, b, i, LoadData2dParams());",
    "MmadWithSparse": "LocalTensor<int8_t> a; LocalTensor<int32_t> c; "
    "MmadWithSparse(c, a, a, MmadParams());",
    "SetLoadDataBoundary": "SetLoadDataBoundary(0u);",
    "SetSaturationFlag": "SetSaturationFlag<SaturationMode::FLOAT>(true);",
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", sorted(of_2201()))
def test_functions_of_2201_are_refused_with_what_replaces_them(name):
    """Each compiles for 2201, and for 3510 it is one sentence."""
    kernel(OF_2201[name])
    with pytest.raises(RequestError) as caught:
        kernel(OF_2201[name], chip=CHIP)
    expected = f"inline.cpp:5: AscendC::{name} is of architecture 2201; {of_2201()[name]}"
    assert str(caught.value) == expected


IN_REGISTERS = "use registers in a function with __simd_vf__"
OF_3510 = {
    "AscendC::LoadDataRepeatParamWithStride": "LoadDataRepeatParamWithStride p;",
    "AscendC::SetLoadDataRepeatWithStride": "SetLoadDataRepeatWithStride({});",
    "AscendC::Te::MakeTensor": "auto a = Te::MakeTensor(1, 2);",
    "AscendC::Quantize": "Quantize(1, 2, 3);",
}
INDEXED = """
  using Type = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using Sum = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  Matmul<Type, Type, Sum> mm;
  GlobalTensor<uint8_t> index;
  mm.SetSparseIndex(index);
"""


@pytest.mark.parametrize("name", OF_3510)
def test_names_of_3510_in_headers_of_both_are_refused_on_2201(name):
    with pytest.raises(RequestError) as caught:
        kernel(OF_3510[name])
    assert str(caught.value) == (
        f"inline.cpp:5: {name} is of architecture 3510; run it with --chip {CHIP}"
    )


def test_an_index_of_a_sparse_matrix_is_of_2201():
    before = '#include "lib/matmul_intf.h"'
    kernel(INDEXED, before=before)
    with pytest.raises(RequestError) as caught:
        kernel(INDEXED, before=before, chip=CHIP)
    assert str(caught.value) == (
        "inline.cpp:10: Matmul.SetSparseIndex is of architecture 2201; use a dense B"
    )


ENDINGS = {
    "asc_float2int32": "asc_float2int32_rd, asc_float2int32_rn, asc_float2int32_rna, "
    "asc_float2int32_ru or asc_float2int32_rz",
    "asc_set_atomic_max": "asc_set_atomic_max_bfloat, asc_set_atomic_max_float, "
    "asc_set_atomic_max_float16, asc_set_atomic_max_int, asc_set_atomic_max_int16 or "
    "asc_set_atomic_max_int8",
    "asc_float2e4m3": "asc_float2e4m3_rn",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_name_of_the_c_api_without_its_ending_is_refused_with_those_there_are(name):
    with pytest.raises(RequestError) as caught:
        kernel(f"auto y = {name}(1.5f);", chip=CHIP)
    assert str(caught.value) == f"inline.cpp:5: {name} needs an ending; use {ENDINGS[name]}"


OF_NO_CHIP = {
    "LoadData3DParamsV1": "LoadData3DParamsV1<half> p;",
    "MrgSort4": "MrgSort4(a, MrgSortSrcList<half>(a, a, a, a), MrgSort4Info());",
    "ProposalConcat": "ProposalConcat(a, a, 1, 4);",
    "ProposalExtract": "AscendC::ProposalExtract<half>(a, a, 1, 4);",
    "RpSort16": "RpSort16(a, a, 1);",
}


@pytest.mark.thinned(8)
@pytest.mark.parametrize("chip", ["Ascend910B3", CHIP])
@pytest.mark.parametrize("name", OF_NO_CHIP)
def test_functions_of_older_products_are_refused_with_what_replaces_them(name, chip):
    with pytest.raises(RequestError) as caught:
        kernel("LocalTensor<half> a; " + OF_NO_CHIP[name], chip=chip)
    assert (
        str(caught.value) == f"inline.cpp:5: AscendC::{name} is not supported; {replaced()[name]}"
    )


C_API_OF_2201 = {
    "asc_brcb": ("__ubuf__ float a[64]; asc_brcb(a, a, 1, 1, 8);", IN_REGISTERS),
    "asc_rsqrt_sync": ("__ubuf__ float a[64]; asc_rsqrt_sync(a, a, 64);", IN_REGISTERS),
    "asc_set_vector_mask": ("asc_set_vector_mask(0, 1);", IN_REGISTERS),
    "asc_set_ffts_base_addr": (
        "asc_set_ffts_base_addr(1);",
        "run it with --chip Ascend910B3",
    ),
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", C_API_OF_2201)
def test_calls_of_the_c_api_of_2201_alone_are_refused_with_what_replaces_them(name):
    body, remedy = C_API_OF_2201[name]
    with pytest.raises(RequestError) as caught:
        kernel(body, chip=CHIP)
    assert str(caught.value) == f"inline.cpp:5: {name} is of architecture 2201; {remedy}"


HELD = """
  GlobalTensor<float> xg, zg;
  xg.SetGlobalBuffer((__gm__ float*)x);
  zg.SetGlobalBuffer((__gm__ float*)z);
  auto mutex = AllocMutexID();
  LocalTensor<float> tile(TPosition::VECIN, 0, 64);
  for (int turn = 0; turn < 4; ++turn) {
    Mutex::Lock<PIPE_MTE2>(mutex);
    DataCopyPad(tile, xg[turn * 7], {1, 28, 0, 0, 0}, {true, 0, 1, 5.0f});
    Mutex::Unlock<PIPE_MTE2>(mutex);
    HOLD(Mutex::Lock<PIPE_V>(mutex);)
    Adds(tile, tile, 1.0f, 8);
    HOLD(Mutex::Unlock<PIPE_V>(mutex);)
    Mutex::Lock<PIPE_MTE3>(mutex);
    DataCopyPad(zg[turn * 7], tile, {1, 28, 0, 0, 0});
    Mutex::Unlock<PIPE_MTE3>(mutex);
  }
  ReleaseMutexID(mutex);
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("order", ["program", "late"])
def test_a_mutex_hands_a_tile_on(held, order):
    x, z = np.arange(28, dtype=np.float32), np.zeros(28, np.float32)
    hold = f"#define HOLD(...) {'__VA_ARGS__' if held else ''}"
    made = kernel(HELD, "GM_ADDR x, GM_ADDR z", hold, chip=CHIP)
    run = made.using(order=order)[1](x, z)
    assert bool(run.findings) != held
    assert np.array_equal(z, x + 1) or not held


def test_mutexes_are_refused_on_2201():
    with pytest.raises(RequestError, match="AllocMutexID is of architecture 3510"):
        kernel(HELD, "GM_ADDR x, GM_ADDR z", "#define HOLD(...) __VA_ARGS__")


STRIDED = """
  GlobalTensor<half> xg, zg;
  xg.SetGlobalBuffer((__gm__ half*)x);
  zg.SetGlobalBuffer((__gm__ half*)z);
  LocalTensor<half> tile(TPosition::VECIN, 0, 256);
  DataCopyPadExtParams<half> pad{true, 0, 0, (half)0};
  DataCopyExtParams rows{4, 6, 10, 0, 0};
  DataCopyPad<half, PaddingMode::Compact>(tile, xg, rows, pad);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(zg, tile, {1, 24, 0, 0, 0});
"""


def test_rows_one_behind_another():
    x, z = np.arange(32, dtype=np.float16).reshape(4, 8), np.zeros(12, np.float16)
    run = kernel(STRIDED, "GM_ADDR x, GM_ADDR z", chip=CHIP)[1](x, z)
    assert [f.message for f in run.findings] == []
    assert np.array_equal(z.reshape(4, 3), x[:, :3])


FILL = """
  LocalTensor<{kind}> zu(TPosition::VECCALC, 0, 1024);
  DataCopy(zu, zg, 1024);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Duplicate(zu, ({kind})-3, 301);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(zg, zu, 1024);"""


@pytest.mark.thinned(3)
@needs_compiler
@pytest.mark.parametrize("kind", ["int8_t", "uint8_t", "int64_t"])
def test_duplicate_fills_bytes_and_long_integers_up_to_the_count(kind):
    head = f"  GlobalTensor<{kind}> zg; zg.SetGlobalBuffer((__gm__ {kind}*)z);"
    body = head + FILL.format(kind=kind)
    filled = kernel(body, "GM_ADDR z", chip="Ascend950PR_9589", auto_sync=False, checks="all")
    z = np.arange(1024).astype(kind.removesuffix("_t"))
    wanted = z.copy()
    wanted[:301] = np.array(-3).astype(z.dtype)
    assert filled[1](z).findings == ()
    assert np.array_equal(z, wanted)


ADDED = """
  GlobalTensor<TYPE> xg, zg;
  xg.SetGlobalBuffer((__gm__ TYPE*)x);
  zg.SetGlobalBuffer((__gm__ TYPE*)z);
  LocalTensor<TYPE> tile(TPosition::VECIN, 0, 128);
  DataCopy(tile, xg, 64);
  PipeBarrier<PIPE_ALL>();
  SetAtomicAdd<TYPE>();
  STORE
  SetAtomicNone();
  PipeBarrier<PIPE_ALL>();
"""
STORES = {
    "count": "DataCopy(zg, tile, 64);",
    "runs": "DataCopy(zg, tile, {2, 1, 1, 1});",
    "padded": "DataCopyPad(zg, tile, {1, 64, 0, 0, 0});",
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("chip", [CHIP, "Ascend910B3"])
@pytest.mark.parametrize(("kind", "word"), [("float32", "float"), ("float16", "half")])
def test_atomic_stores_add(chip, kind, word):
    bodies = {
        name: ADDED.replace("TYPE", word).replace("STORE", store) for name, store in STORES.items()
    }
    made = kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=chip)
    block = 32 // np.dtype(kind).itemsize
    lanes = {
        "count": np.arange(64),
        "runs": np.r_[0:block, 2 * block : 3 * block],
        "padded": np.arange(2 * block),
    }
    for name, at in lanes.items():
        x, z = np.arange(64).astype(kind), np.full(64, 3, kind)
        run = getattr(made, name)[1](x, z)
        assert [f.message for f in run.findings] == []
        expected = np.full(64, 3, kind)
        expected[at] += x[at]
        assert np.array_equal(z, expected), name
