"""Reductions along axes and the largest of rows in C++, against NumPy."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
SIZE = 16384
BEFORE = """
template <typename T>
struct Frame {
  TPipe pipe;
  TBuf<TPosition::VECCALC> held;
  LocalTensor<T> x, y;
  LocalTensor<int32_t> index, given;
  LocalTensor<bool> done;
  LocalTensor<uint8_t> all, work;
  GlobalTensor<uint8_t> to;
  Frame(GM_ADDR ax, GM_ADDR ay) {
    pipe.InitBuffer(held, 160 * 1024);
    all = held.Get<uint8_t>();
    x = all.template ReinterpretCast<T>();
    given = all[8192].template ReinterpretCast<int32_t>();
    done = all[15360].template ReinterpretCast<bool>();
    y = all[16384].template ReinterpretCast<T>();
    index = all[24576].template ReinterpretCast<int32_t>();
    work = all[65536];
    GlobalTensor<uint8_t> from;
    from.SetGlobalBuffer((__gm__ uint8_t*)ax);
    to.SetGlobalBuffer((__gm__ uint8_t*)ay);
    DataCopy(all, from, 16384);
    Duplicate(all[16384].ReinterpretCast<int32_t>(), 0, 4096);
    PipeBarrier<PIPE_ALL>();
  }
  ~Frame() {
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, all[16384], 16384);
    PipeBarrier<PIPE_ALL>();
  }
};
using namespace AscendC::Pattern::Reduce;
"""
REDUCTIONS = {
    "Sum": np.sum,
    "Mean": np.mean,
    "Max": np.max,
    "Min": np.min,
    "Prod": np.prod,
    "All": np.min,
    "Any": np.max,
}
SHAPES = {"small": (9, 13), "large": (5, 150)}
KINDS = {"float": "f4", "half": "f2", "uint8_t": "u1"}
CASES = [
    (name, kind, pattern, shape)
    for name in REDUCTIONS
    for kind in KINDS
    for pattern in ("AR", "RA")
    for shape in SHAPES
    if (kind == "uint8_t") <= (name in {"All", "Any"})
    and (kind == "half") <= (name in {"Max", "Min"})
]
TOP = {
    "plain": ("false, false", "{k}, t, TopKInfo{{3, 96, 96}}"),
    "given": ("true, true", "{k}, t, TopKInfo{{3, 96, 90}}, false"),
    "small": ("false, false, false, TopKMode::TOPK_NSMALL", "{k}, t, TopKInfo{{21, 32, 32}}"),
    "small_given": (
        "true, false, false, TopKMode::TOPK_NSMALL",
        "{k}, t, TopKInfo{{21, 32, 32}}, false",
    ),
}
K = 7


def bodies():
    """Yield the kernels by their names."""
    for name, kind, pattern, shape in CASES:
        rows, columns = SHAPES[shape]
        work = "f.work, " if pattern == "AR" else ""
        yield (
            f"{name}_{kind}_{pattern}_{shape}",
            (
                f"Frame<{kind}> f(x, y);\nuint32_t s[] = {{{rows}, {columns}}};\n"
                f"Reduce{name}<{kind}, {pattern}>(f.y, f.x, {work}s, true);"
            ),
        )
    yield "mean_half", "Frame<half> f(x, y);\nMean<half, float>(f.y, f.x, MeanParams{70, 48, 40});"
    yield "mean_float", "Frame<float> f(x, y);\nMean(f.y, f.x, f.work, MeanParams{5, 152, 150});"
    yield "exclusive", "Frame<int16_t> f(x, y);\nReduceXorSum(f.y, f.x, f.x[2048], f.work, 1000);"
    yield (
        "apart",
        (
            "Frame<float> f(x, y);\nLocalTensor<float> work = f.y[64];\nwork.SetSize(8);\n"
            "ReduceSum(f.y, f.x, work, 2000);"
        ),
    )
    yield (
        "turns",
        (
            "Frame<float> f(x, y);\nLocalTensor<float> work = f.work.ReinterpretCast<float>();\n"
            "ReduceSum(f.y[2000], f.x, work, 5000);"
        ),
    )
    for kind in ("float", "half"):
        for name, (template, rest) in TOP.items():
            yield (
                f"top_{name}_{kind}",
                (
                    f"Frame<{kind}> f(x, y);\nTopkTiling t;\nTopK<{kind}, {template}>(f.y, f.index,"
                    f" f.x, f.given, f.done, {'f.work, ' if name == 'given' else ''}"
                    f"{rest.format(k=K)});"
                ),
            )


@pytest.fixture(scope="module")
def module():
    return kernels(dict(bodies()), "GM_ADDR x, GM_ADDR y", BEFORE)


def run(kernel, x, at=0, **more):
    given = np.zeros(SIZE, np.uint8)
    for start, each in {at: x, **{int(key[1:]): value for key, value in more.items()}}.items():
        raw = np.ascontiguousarray(each).reshape(-1).view(np.uint8)
        given[start : start + raw.size] = raw
    left = np.zeros(SIZE, np.uint8)
    assert kernel[1](given, left).findings == ()
    return left


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("name", "kind", "pattern", "shape"), CASES)
def test_reduction(module, name, kind, pattern, shape):
    rng = np.random.default_rng(3)
    rows, columns = SHAPES[shape]
    dtype = np.dtype(KINDS[kind])
    unit = 32 // dtype.itemsize
    x = rng.uniform(0.9, 1.2, (rows, -(-columns // unit) * unit))
    x = (x > 0.93 if name in {"All", "Any"} else x - 2 * (name in {"Max", "Min"})).astype(dtype)
    if kind == "uint8_t" and pattern == "RA":
        x[:, ::3] = 0  # columns of which none is true
    left = run(module[f"{name}_{kind}_{pattern}_{shape}"], x)
    exact = REDUCTIONS[name](x[:, :columns].astype("f8"), axis=1 if pattern == "AR" else 0)
    got = left[:8192].view(dtype).astype("f8")
    np.testing.assert_allclose(got[: exact.size], exact, rtol=2e-6)
    assert not got[exact.size :].any()


def test_mean_of_rows(module):
    rng = np.random.default_rng(4)
    x = rng.uniform(100, 2000, (70, 48)).astype("f2")
    got = run(module.mean_half, x)[:8192].view("f2")
    np.testing.assert_allclose(got[:70], x[:, :40].astype("f8").mean(axis=1), rtol=6e-4)
    assert not got[70:].any()
    x = rng.normal(3, 1, (5, 152)).astype("f4")
    got = run(module.mean_float, x)[:8192].view("f4")
    np.testing.assert_allclose(got[:5], x[:, :150].astype("f8").mean(axis=1), rtol=2e-6)


@pytest.mark.parametrize("low", [0, -(2**15)])
def test_sum_of_exclusive_or(module, low):
    rng = np.random.default_rng(6)
    both = rng.integers(low, 2**5, (2, 2048), dtype=np.int16)
    got = run(module.exclusive, both[0], _4096=both[1]).view("i2")
    exact = np.clip((both[0, :1000] ^ both[1, :1000]).astype(int).sum(), -(2**15), 2**15 - 1)
    assert (got[0], got[1:4096].any()) == (exact, False)


def test_sum_leaves_a_small_workspace_alone(module):
    x = np.random.default_rng(8).uniform(1, 2, 2048).astype("f4")
    got = run(module.apart, x)[:8192].view("f4")
    np.testing.assert_allclose(got[0], x[:2000].astype("f8").sum(), rtol=1e-6)
    assert not got[1:].any()
    got = run(module.turns, x)[:8192].view("f4")  # sums of repeats are those of a second turn
    np.testing.assert_allclose(got[2000], x[:4096].astype("f8").sum(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["float", "half"])
def test_largest_of_rows(module, kind):
    rng = np.random.default_rng(9)
    dtype = np.dtype(KINDS[kind])
    x = rng.permutation(3 * 96).reshape(3, 96).astype(dtype) - 100
    index = np.arange(96, dtype=np.int32) * 3
    done = np.array([0, 1, 0], np.uint8)
    pad = 16 if kind == "half" else 8
    for name, sign in (("plain", -1), ("given", 1)):
        left = run(module[f"top_{name}_{kind}"], x, _8192=index, _15360=done)
        values = left[:8192].view(dtype)[: 3 * pad].reshape(3, pad)[:, :K]
        places = left[8192:].view("i4")[:24].reshape(3, 8)[:, :K]
        order = np.argsort(sign * x, axis=1, kind="stable")[:, :K]
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=1))
        exact = order if name == "plain" else np.where(done[:, None] != 0, 90, index[order])
        np.testing.assert_array_equal(places, exact)


@pytest.mark.parametrize("kind", ["float", "half"])
def test_largest_of_short_rows(module, kind):
    rng = np.random.default_rng(10)
    dtype = np.dtype(KINDS[kind])
    x = rng.integers(-9, 9, (21, 32)).astype(dtype)
    index = rng.permutation(21 * 32).astype(np.int32)
    for name, sign in (("small", -1), ("small_given", 1)):
        left = run(module[f"top_{name}_{kind}"], x, _8192=index)
        order = np.argsort(sign * x, axis=1, kind="stable")[:, :K]
        values = left[:8192].view(dtype)[: 21 * K].reshape(21, K)
        places = left[8192:].view("i4")[: 21 * K].reshape(21, K)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=1))
        by = np.tile(np.arange(32), (21, 1)) if name == "small" else index.reshape(21, 32)
        np.testing.assert_array_equal(places, np.take_along_axis(by, order, axis=1))


def test_what_cannot_be_done_is_refused():
    top = "Frame<float> f(x, y);\nTopkTiling t;\nTopK(f.y, f.index, f.x, f.given, f.done, "
    sums = "Frame<float> f(x, y);\nuint32_t s[] = {9, 13};\nReduceSum<float, AR>(f.y, f.x, f.work"
    bodies = {
        "k": (
            top + "9, t, TopKInfo{1, 32, 8});",
            "TopK.k must be between 1 and n, and n at most inner, got 9",
        ),
        "inner": (
            top + "9, t, TopKInfo{1, 48, 40});",
            "TopKInfo.inner must be a multiple of 32 up to 4096, got 48",
        ),
        "pad": (sums + ", s, false);", "ReduceSum.srcInnerPad must be true, got false"),
        "work": (
            sums.replace(
                "uint32_t", "TBuf<TPosition::VECCALC> r;\nf.pipe.InitBuffer(r, 32256);\nuint32_t"
            )
            + "[98000], s, true);",
            "ReduceSum must have a workspace as its tiling function answers, got 304 B",
        ),
    }
    module = kernels(
        {name: body for name, (body, _) in bodies.items()}, "GM_ADDR x, GM_ADDR y", BEFORE
    )
    for name, (_, sentence) in bodies.items():
        with pytest.raises(cubecore.CubecoreError) as caught:
            run(module[name], np.zeros(64, np.uint8))
        assert str(caught.value).endswith(sentence)
