"""Quantisation of the high-level API in C++, against NumPy: bit by bit, as the pages say."""

import ml_dtypes
import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
BEFORE = """
template <typename X, typename S, typename Y>
struct Frame {
  TPipe pipe;
  TBuf<TPosition::VECCALC> held;
  LocalTensor<X> x;
  LocalTensor<S> scale, offset;
  LocalTensor<Y> y;
  LocalTensor<uint8_t> work, out;
  GlobalTensor<uint8_t> to;
  Frame(GM_ADDR ax, GM_ADDR as, GM_ADDR ay) {
    pipe.InitBuffer(held, 128 * 1024);
    LocalTensor<uint8_t> all = held.Get<uint8_t>();
    x = all.template ReinterpretCast<X>();
    scale = all[16384].template ReinterpretCast<S>();
    offset = all[20480].template ReinterpretCast<S>();
    out = all[32768];
    y = out.template ReinterpretCast<Y>();
    work = all[65536];
    x.SetSize(1024);
    work.SetSize(3072);
    GlobalTensor<uint8_t> from, factors;
    from.SetGlobalBuffer((__gm__ uint8_t*)ax);
    factors.SetGlobalBuffer((__gm__ uint8_t*)as);
    to.SetGlobalBuffer((__gm__ uint8_t*)ay);
    DataCopy(all, from, 4096);
    DataCopy(all[16384], factors, 4096);
    DataCopy(all[20480], factors[4096], 4096);
    Duplicate(out.ReinterpretCast<int32_t>(), 0, 1024);
    PipeBarrier<PIPE_ALL>();
  }
  ~Frame() {
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, out, 4096);
    PipeBarrier<PIPE_ALL>();
  }
};
"""
PARAMETERS = "GM_ADDR x, GM_ADDR s, GM_ADDR y"


def frame(x, s, y):
    return f"using X = {x};\nusing S = {s};\nusing Y = {y};\nFrame<X, S, Y> f(x, s, y);\n"


ANTI = "AscendAntiQuant<X, Y, {}>(f.y, f.x, {}, f.work, {}, {});"
BODIES = {
    "tensor_half": frame("half", "half", "int8_t")
    + "AscendQuant(f.y, f.x, f.work, 0.75f, 3.25f, 1000);",
    "tensor_float": frame("float", "float", "int8_t") + "AscendQuant<X>(f.y, f.x, 0.75f, 3.25f);",
    "channels_half": frame("half", "half", "int8_t")
    + "AscendQuant(f.y, f.x, f.work, f.scale, f.offset, 160, 160, 960);",
    "channels_float": frame("float", "float", "int8_t")
    + "AscendQuant(f.y, f.x, f.scale, X(-1.5f), 160, 960);",
    "rows_half": frame("int32_t", "uint64_t", "half")
    + "AscendDequant(f.y, f.x, f.scale, f.work, {8, 24, 21});",
    "rows_float": frame("int32_t", "bfloat16_t", "float")
    + "AscendDequant(f.y, f.x, f.scale, {8, 24, 21});",
    "rows_bfloat": frame("int32_t", "float", "bfloat16_t")
    + "AscendDequant(f.y, f.x, f.scale, f.work, {8, 24, 21});",
    "single_row": frame("int32_t", "float", "float")
    + "AscendDequant(f.y, f.x, f.scale, f.work, {1, 960, 320});",
    "one_row": frame("int32_t", "float", "float")
    + "AscendDequant<Y, S, DeQuantMode::DEQUANT_WITH_MULTI_ROW>"
    "(f.y, f.x, f.scale, {1, 960, 320});",
    "scalar": frame("int32_t", "float", "bfloat16_t")
    + "AscendDequant(f.y, f.x, S(0.3f), f.work, {8, 24, 21});",
    "anti_rows": frame("int8_t", "half", "half")
    + ANTI.format("false", "f.offset, f.scale", 8, "{2, 128, 2, 128}"),
    "anti_bfloat": frame("int8_t", "bfloat16_t", "bfloat16_t")
    + ANTI.format("false", "f.offset, f.scale", 8, "{2, 128, 2, 128}"),
    "anti_scales": frame("int8_t", "half", "half")
    + ANTI.format("false", "f.scale", 8, "{0, 0, 2, 128}"),
    "anti_columns": frame("int8_t", "half", "half")
    + ANTI.format("true", "f.offset, f.scale", 64, "{16, 2, 16, 2}"),
    "anti_columns_bfloat": frame("int8_t", "bfloat16_t", "bfloat16_t")
    + ANTI.format("true", "f.offset, f.scale", 64, "{16, 2, 16, 2}"),
    "anti_nibbles": frame("int4b_t", "half", "half")
    + ANTI.format("false", "f.offset, f.scale", 8, "{2, 128, 2, 128}"),
    "anti_tensor": frame("int8_t", "bfloat16_t", "bfloat16_t")
    + "AscendAntiQuant<X, Y, false>(f.y, f.x, Y(2.5f), Y(0.3f), 8);",
}
TYPES = {"half": np.float16, "float": np.float32, "bfloat": ml_dtypes.bfloat16}
rng = np.random.default_rng(11)


@pytest.fixture(
    scope="module",
    params=["Ascend910B3", pytest.param("Ascend950PR_9589", marks=pytest.mark.sweep)],
)
def module(request):
    return kernels(BODIES, PARAMETERS, BEFORE, chip=request.param)


def run(kernel, x, scale, offset=None):
    given = np.zeros((3, 4096), np.uint8)
    for row, each in zip(given, (x, scale, x if offset is None else offset), strict=True):
        row[: each.nbytes] = each.reshape(-1).view(np.uint8)[:4096]
    y = np.zeros(4096, np.uint8)
    assert kernel[1](given[0], given[1:], y).findings == ()
    return y


def factors(kind, *shape):
    return rng.uniform(0.2, 2, shape).astype(kind)


def rounded(x, kind):
    """Return what an instruction leaves: half saturates, and has 0 for what is no number."""
    x = np.nan_to_num(np.clip(x, -65504, 65504)) if kind is np.float16 else x
    return x.astype(kind)


def to_int8(x):
    return np.clip(np.rint(x.astype("f8")), -128, 127).astype("i1")


def hostile(kind):
    """Return numbers of every size, halves between integers, infinities and what is no number."""
    special = [0, -0.0, 0.5, 1.5, -2.5, 127.5, -128.5, 65504, 1e-7, np.inf, -np.inf, np.nan]
    sizes = rng.choice([-1, 1], 1012) * np.exp2(rng.uniform(-24, 16, 1012))
    return np.concatenate([special, sizes]).astype(kind)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("word", ["half", "float"])
@pytest.mark.parametrize("data", ["ordinary", "hostile"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_quantisation_of_a_tensor(module, word, data):
    kind = TYPES[word]
    x = hostile(kind) if data == "hostile" else rng.normal(0, 90, 1024).astype(kind)
    got = run(module[f"tensor_{word}"], x, x).view("i1")
    half = np.float16
    exact = to_int8(rounded(rounded(x.astype(half) * half(0.75), half) + half(3.25), half))
    used = 1000 if word == "half" else 1024
    np.testing.assert_array_equal(got[:used], exact[:used])
    assert not got[used:].any()


@pytest.mark.parametrize("word", ["half", "float"])
def test_quantisation_of_channels(module, word):
    kind, half = TYPES[word], np.float16
    x = rng.normal(0, 90, 1024).astype(kind)
    scale, offset = factors(kind, 160), factors(kind, 160) * 8
    got = run(module[f"channels_{word}"], x, scale, offset).view("i1")
    shift = offset.astype(half) if word == "half" else half(-1.5)
    rows = x[:960].reshape(6, 160).astype(half)
    exact = to_int8(rows * scale.astype(half) + shift)
    np.testing.assert_array_equal(got[:960], exact.reshape(-1))


def exact_rows(x, scale, kind, used=21, shape=(8, 24)):
    rows = x[: shape[0] * shape[1]].reshape(shape)[:, :used]
    return (rows.astype("f4") * scale[:used].astype("f4")).astype(kind)


def padded(y, kind, shape):
    width = -(-shape[1] * np.dtype(kind).itemsize // 32) * 32 // np.dtype(kind).itemsize
    return y.view(kind)[: shape[0] * width].reshape(shape[0], width)


@pytest.mark.parametrize("word", ["half", "float", "bfloat"])
def test_dequantisation_of_rows(module, word):
    kind = TYPES[word]
    x = rng.integers(-(2**10), 2**10, 1024, dtype=np.int32)
    scale = factors({"half": "f4", "float": ml_dtypes.bfloat16, "bfloat": "f4"}[word], 32)
    given = scale if word != "half" else scale.view("u4") + (np.uint64(7) << np.uint64(40))
    got = padded(run(module[f"rows_{word}"], x, given), kind, (8, 24))
    exact = exact_rows(x, scale, kind)
    np.testing.assert_array_equal(got[:, :21].view("V"), exact.view("V"))


def test_one_row_is_several_where_its_numbers_repeat(module):
    x = rng.integers(-(2**20), 2**20, 1024, dtype=np.int32)
    scale = factors("f4", 320)
    exact = exact_rows(x, scale, "f4", 320, (3, 320))
    got = run(module.single_row, x, scale).view("f4")
    np.testing.assert_array_equal(got[:960], exact.reshape(-1))
    got = run(module.one_row, x, scale).view("f4")
    np.testing.assert_array_equal(got[:320], exact[0])
    assert not got[320:].any()


def test_dequantisation_by_a_number(module):
    x = rng.integers(-(2**10), 2**10, 1024, dtype=np.int32)
    got = padded(run(module.scalar, x, x), ml_dtypes.bfloat16, (8, 24))[:, :21]
    exact = exact_rows(x, np.full(24, 0.3, "f4"), ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got.view("V"), exact.view("V"))


def anti(x, offset, scale, kind):
    wide = np.float16 if kind is np.float16 else np.float32
    x, offset, scale = (each.astype(wide) for each in (x, offset, scale))
    return ((x + offset) * scale).astype(kind)


@pytest.mark.parametrize(("name", "kind"), [("rows", "half"), ("bfloat", "bfloat")])
def test_antiquantisation_of_rows(module, name, kind):
    kind = TYPES[kind]
    x = rng.integers(-128, 128, 1024, dtype=np.int8)
    scale, offset = factors(kind, 2, 128), factors(kind, 2, 128)
    got = run(module[f"anti_{name}"], x, scale, offset).view(kind)[:1024]
    by = [np.repeat(each, 4, axis=0) for each in (offset, scale)]
    np.testing.assert_array_equal(
        got.view("V"), anti(x.reshape(8, 128), *by, kind).ravel().view("V")
    )


def test_antiquantisation_without_offset_and_of_nibbles(module):
    kind = np.float16
    x = rng.integers(-128, 128, 1024, dtype=np.int8)
    scale, offset = factors(kind, 2, 128), factors(kind, 2, 128)
    by = [np.repeat(each, 4, axis=0) for each in (offset, scale)]
    got = run(module.anti_scales, x, scale).view(kind)[:1024]
    np.testing.assert_array_equal(got, anti(x.reshape(8, 128), 0 * by[0], by[1], kind).ravel())
    nibbles = rng.integers(-8, 8, 1024, dtype=np.int8)
    packed = (nibbles[::2] & 15 | nibbles[1::2] << 4).astype(np.uint8)
    got = run(module.anti_nibbles, packed, scale, offset).view(kind)[:1024]
    np.testing.assert_array_equal(got, anti(nibbles.reshape(8, 128), *by, kind).ravel())


@pytest.mark.parametrize(("name", "kind"), [("columns", "half"), ("columns_bfloat", "bfloat")])
def test_antiquantisation_of_groups_of_a_row(module, name, kind):
    kind = TYPES[kind]
    x = rng.integers(-128, 128, 1024, dtype=np.int8)
    scale, offset = factors(kind, 16, 2), factors(kind, 16, 2)
    got = run(module[f"anti_{name}"], x, scale, offset).view(kind)[:1024]
    by = [np.repeat(each, 32, axis=1) for each in (offset, scale)]
    np.testing.assert_array_equal(
        got.view("V"), anti(x.reshape(16, 64), *by, kind).ravel().view("V")
    )


def test_antiquantisation_of_a_tensor(module):
    kind = ml_dtypes.bfloat16
    x = rng.integers(-128, 128, 1024, dtype=np.int8)
    got = run(module.anti_tensor, x, x).view(kind)[:1024]
    np.testing.assert_array_equal(got.view("V"), anti(x, kind(2.5), kind(0.3), kind).view("V"))


@pytest.mark.sweep
def test_what_the_pages_forbid_is_refused():
    bodies = {
        "zero": BODIES["channels_half"].replace("160, 160", "0, 0"),
        "uneven": BODIES["rows_float"].replace("{8, 24, 21}", "{8, 21, 21}"),
        "many": BODIES["rows_float"].replace("21}", "25}"),
        "small": BODIES["rows_half"]
        .replace("f.work, ", "f.work[3000], ")
        .replace(
            "AscendD", "TBuf<TPosition::VECCALC> rest;\nf.pipe.InitBuffer(rest, 65024);\nAscendD"
        ),
    }
    module, x = kernels(bodies, PARAMETERS, BEFORE), np.zeros(1024, np.int32)
    for name, sentence in {
        "zero": "AscendQuant.scaleCount must be above 0, got 0",
        "uneven": "AscendDequant.params must have a multiple of 32 B in a row of srcTensor, got 21",
        "many": "AscendDequant.params must have calCount between 1 and n, got 25",
        "small": "sharedTmpBuffer must have 1024 B or more, got 72 B",
    }.items():
        with pytest.raises(cubecore.CubecoreError) as caught:
            run(module[name], x, x)
        assert str(caught.value).endswith(sentence)
