"""Elements left out, rows padded and cut, bytes broadcast: C++ against NumPy."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
BEFORE = """
template <typename T>
struct Frame {
  TPipe pipe;
  TBuf<TPosition::VECCALC> held;
  LocalTensor<T> x, y;
  LocalTensor<uint8_t> all, mask, work;
  GlobalTensor<uint8_t> to;
  DropOutShapeInfo info;
  PadTiling pad;
  UnPadTiling unpad;
  Frame(GM_ADDR ax, GM_ADDR ay) {
    pipe.InitBuffer(held, 64 * 1024);
    all = held.Get<uint8_t>();
    x = all.template ReinterpretCast<T>();
    mask = all[8192];
    y = all[16384].template ReinterpretCast<T>();
    work = all[32768];
    GlobalTensor<uint8_t> from;
    from.SetGlobalBuffer((__gm__ uint8_t*)ax);
    to.SetGlobalBuffer((__gm__ uint8_t*)ay);
    DataCopy(all, from, 16384);
    Duplicate(all[16384].ReinterpretCast<int32_t>(), 0, 2048);
    PipeBarrier<PIPE_ALL>();
  }
  ~Frame() {
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, all[16384], 8192);
    PipeBarrier<PIPE_ALL>();
  }
};
"""
ROWS, WIDTH, KEEP = 5, 48, 0.8
MASKS = {"bytes": 48, "padded_bytes": 64, "bits": 6, "padded_bits": 32}
KINDS = {"float": "f4", "half": "f2"}
PARAMETERS = "GM_ADDR x, GM_ADDR y"


def bodies():
    """Yield the kernels by their names."""
    for word in KINDS:
        for name, length in MASKS.items():
            yield (
                f"{name}_{word}",
                (
                    f"Frame<{word}> f(x, y);\nf.info.firstAxis = {ROWS};\n"
                    f"f.info.srcLastAxis = {WIDTH}, f.info.maskLastAxis = {length};\n"
                    "DropOut(f.y, f.x, f.mask, f.work, 0.8f, f.info);"
                ),
            )
        yield (
            f"pad_{word}",
            (
                f"Frame<{word}> f(x, y);\nf.pad.srcHeight = 6;\n"
                "f.pad.srcWidth = f.pad.srcOriWidth = 43;\n"
                "PadParams p{2, 1, -7};\nPad(f.y, f.x, p, f.work, f.pad);"
            ),
        )
        yield (
            f"cut_{word}",
            (
                f"Frame<{word}> f(x, y);\nf.unpad.srcHeight = 6, f.unpad.srcWidth = 48;\n"
                "UnPadParams p{0, 3};\nUnPad(f.y, f.x, p, f.unpad);"
            ),
        )
    yield (
        "last",
        (
            "Frame<float> f(x, y);\nf.pad.srcHeight = 6;\n"
            "f.pad.srcWidth = 48, f.pad.srcOriWidth = 45;\n"
            "PadParams p{0, 3, 9};\nPad(f.y, f.x, p, f.pad);"
        ),
    )
    for axis, source in ((1, "{9, 1}"), (0, "{1, 64}")):
        yield (
            f"spread_{axis}",
            (
                "Frame<uint8_t> f(x, y);\nuint32_t to[] = {9, 64}, from[] = " + source + ";\n"
                f"Broadcast<uint8_t, 2, {axis}>(f.y, f.x, to, from, f.work);"
            ),
        )


@pytest.fixture(scope="module")
def module():
    return kernels(dict(bodies()), PARAMETERS, BEFORE)


def run(kernel, x, mask=()):
    given, left = np.zeros(16384, np.uint8), np.zeros(8192, np.uint8)
    raw, bits = np.ravel(x).view(np.uint8), np.ravel(np.array(mask, np.uint8))
    given[: raw.size], given[8192 : 8192 + bits.size] = raw, bits
    assert kernel[1](given, left).findings == ()
    return left


@pytest.mark.thinned(4)
@pytest.mark.parametrize("word", KINDS)
@pytest.mark.parametrize("name", MASKS)
def test_elements_are_left_out_by_masks(module, name, word):
    rng = np.random.default_rng(2)
    x = rng.normal(0, 3, (ROWS, WIDTH)).astype(KINDS[word])
    kept = rng.integers(0, 2, (ROWS, WIDTH), dtype=np.uint8)
    x[0, 1], kept[0, 1] = np.inf, 0
    mask = np.full((ROWS, MASKS[name]), 0xA5, np.uint8)
    held = kept if "bytes" in name else np.packbits(kept, axis=1, bitorder="little")
    mask[:, : held.shape[1]] = held
    got = run(module[f"{name}_{word}"], x, mask).view(x.dtype)[: x.size].reshape(x.shape)
    exact = np.where(kept, x, 0).astype("f8") / KEEP
    np.testing.assert_allclose(got, exact, rtol=1e-6 if word == "float" else 1e-3)


@pytest.mark.parametrize("word", KINDS)
def test_rows_are_padded_and_cut(module, word):
    rng = np.random.default_rng(3)
    x = rng.normal(0, 3, (6, 43)).astype(KINDS[word])
    whole = np.full((6, 48), -7, x.dtype)
    whole[:, 2:45] = x
    got = run(module[f"pad_{word}"], x).view(x.dtype)[:288].reshape(6, 48)
    np.testing.assert_array_equal(got, whole)
    got = run(module[f"cut_{word}"], whole).view(x.dtype)
    np.testing.assert_array_equal(got[:270].reshape(6, 45), whole[:, :45])
    assert not got[270:].any()
    if word == "float":
        got = run(module.last, whole).view(x.dtype)[:288].reshape(6, 48)
        np.testing.assert_array_equal(got, np.where(np.arange(48) < 45, whole, 9))


def test_bytes_are_broadcast(module):
    x = np.random.default_rng(4).integers(0, 256, 64, dtype=np.uint8)
    for axis, column in ((1, x[:9, None]), (0, x[None])):
        got = run(module[f"spread_{axis}"], x)[: 9 * 64].reshape(9, 64)
        np.testing.assert_array_equal(got, np.broadcast_to(column, (9, 64)))


@pytest.mark.sweep
def test_what_does_not_fit_is_refused():
    made = dict(bodies())
    sentences = {
        "pad_float": "Pad.padParams must fit into the width up to 32 B, on the right alone where"
        " that is aligned, got 51",
        "cut_half": "UnPad.rightPad must be above 0 and below 32 B, of rows of whole blocks,"
        " got 16",
    }
    given = {
        "pad_float": made["pad_float"].replace("{2, 1,", "{2, 6,"),
        "cut_half": made["cut_half"].replace("{0, 3}", "{0, 16}"),
    }
    refused = kernels(given, PARAMETERS, BEFORE)
    for name, sentence in sentences.items():
        with pytest.raises(cubecore.CubecoreError) as caught:
            run(refused[name], np.zeros(64, np.uint8))
        assert str(caught.value).endswith(sentence)
