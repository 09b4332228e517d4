"""Functions of rows of the high-level API on hostile data, in units in the last place.

A unit is that of the float64 result rounded to the type or, where a result is a sum whose terms
cancel, of its largest term. The squares of a norm are floats: what is beyond their range is
infinite, on the chip and here.
"""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
ROWS = 8
COLUMNS = (64, 528)
WIDTH = COLUMNS[-1]
BEFORE = """
template <typename T>
struct Frame {
  TPipe pipe;
  TBuf<TPosition::VECCALC> held;
  LocalTensor<T> x, y, z, row;
  LocalTensor<float> sum, most;
  LocalTensor<uint8_t> work;
  GlobalTensor<T> from, other, to;
  Frame(GM_ADDR ax, GM_ADDR ay, GM_ADDR az) {
    pipe.InitBuffer(held, 180 * 1024);
    LocalTensor<uint8_t> all = held.Get<uint8_t>();
    x = all.template ReinterpretCast<T>();
    y = all[20480].template ReinterpretCast<T>();
    z = all[40960].template ReinterpretCast<T>();
    row = all[61440].template ReinterpretCast<T>();
    sum = all[65536].template ReinterpretCast<float>();
    most = all[66560].template ReinterpretCast<float>();
    work = all[67584];
    const uint32_t first = GetBlockIdx() * 8 * 528;
    from.SetGlobalBuffer((__gm__ T*)ax + first);
    other.SetGlobalBuffer((__gm__ T*)ay + first);
    to.SetGlobalBuffer((__gm__ T*)az + first);
    DataCopy(x, from, 8 * 528);
    DataCopy(y, other, 8 * 528);
    Duplicate(z, T(0.0f), 8 * 528);
    Duplicate(sum, 1.5f, 64);
    Duplicate(most, -1.0f, 64);
    Duplicate(row, T(0.0f), 528);
    PipeBarrier<PIPE_ALL>();
  }
  ~Frame() {
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, z, 8 * 528);
    PipeBarrier<PIPE_ALL>();
  }
};
template <typename S>
S rows_of(uint32_t columns) {
  S tiling;
  tiling.bLength = 1, tiling.sLength = 8;
  tiling.hLength = tiling.originalHLength = columns;
  return tiling;
}
using namespace AscendC::Pattern::Reduce;
"""
EPSILON = 1e-3


def softmax(x, _):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True), 0


def log_softmax(x, _):
    left = x - x.max(axis=1, keepdims=True)
    result = (left - np.log(np.exp(left).sum(axis=1, keepdims=True))) / np.log(10)
    return result, 1.0  # the sum is 1 at least


def flash(x, _):
    return np.exp(x - np.maximum(x.max(axis=1, keepdims=True), -1)), 0


def gradient(x, y):
    products = x * y
    terms = np.abs(x) + np.abs(products).sum(axis=1, keepdims=True)
    return (x - products.sum(axis=1, keepdims=True)) * y, terms * np.abs(y)


def gradient_front(x, y):
    products = x * y
    sums, terms = products.sum(axis=1), np.abs(products).sum(axis=1)
    return np.repeat(sums, 8), np.repeat(terms, 8)  # a block of float each


def layer_norm(x, y):
    left = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((left**2).mean(axis=1, keepdims=True) + EPSILON)
    scaled = left / deviation * y[0]
    return scaled + y[0], np.maximum(np.abs(scaled), np.abs(y[0]))


def rms_norm(x, y):
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * y[0], 0


def reduced(function, axis):
    def exact(x, _):
        sums = function in (np.sum, np.mean)
        return function(x, axis=axis), function(np.abs(x), axis=axis) if sums else 0

    return exact


SHAPE = "SoftMaxShapeInfo shape{{8, {n}, 8, {n}}};\nSoftMaxTiling tiling;\n"
EXTENTS = "uint32_t shape[] = {{8, {n}}};\n"
FUNCTIONS = {
    "SoftMax": (SHAPE + "SoftMax<T>(f.z, f.sum, f.most, f.x, f.work, tiling, shape);", softmax, 2),
    "LogSoftMax": (
        SHAPE + "LogSoftMax<T>(f.z, f.sum, f.most, f.x, f.work, tiling, shape);", log_softmax, 2,
    ),
    "SoftmaxFlashV2": (
        SHAPE + "SoftmaxFlashV2<T, true>(f.z, f.sum, f.most, f.x, f.row, f.sum, f.most, f.work, "
        "tiling, shape);",
        flash, 2,
    ),
    "SoftmaxGrad": (
        SHAPE + "SoftmaxGrad<T>(f.z, f.x, f.y, f.work, tiling, false, shape);", gradient, 2,
    ),
    "LayerNorm": (
        "LayerNorm(f.z, f.row, f.row[64], f.x, f.y, f.y, f.work, T(1e-3f), "
        "rows_of<LayerNormTiling>({n}));",
        layer_norm, 2,
    ),
    "RmsNorm": (
        "auto tiling = rows_of<RmsNormTiling>({n});\ntiling.reciprocalOfHLength = 1.0f / {n};\n"
        "RmsNorm(f.z, f.x, f.y, f.work, T(1e-3f), tiling);",
        rms_norm, 2,
    ),
    "Sum": ("Sum(f.z, f.x, f.work, SumParams{{8, {n}, {n}}});", reduced(np.sum, 1), 2),
    "Mean": (
        "Mean<T, float>(f.z, f.x, f.work, MeanParams{{8, {n}, {n}}});", reduced(np.mean, 1), 2,
    ),
}  # fmt: skip
KINDS = {"float32": "float", "float16": "half"}
OF_FLOAT = {
    f"Reduce{name}_{pattern}": (
        EXTENTS + f"Reduce{name}<T, {pattern}>(f.z, f.x, f.work, shape, true);",
        reduced(function, axis),
        2,
    )
    for name, function in {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Min": np.min}.items()
    for pattern, axis in (("AR", 1), ("RA", 0))
} | {
    "SoftmaxGradFront": (
        SHAPE + "SoftmaxGradFront<T>(f.z, f.x, f.y, f.work, tiling, shape);", gradient_front, 2,
    ),
}  # fmt: skip
CASES = [
    *((name, kind, n) for name in FUNCTIONS for kind in KINDS for n in COLUMNS),
    *((name, "float32", n) for name in OF_FLOAT for n in COLUMNS),
]
ALL = FUNCTIONS | OF_FLOAT


def bodies(cases):
    """Yield the kernels by their names."""
    for name, kind, n in cases:
        head = f"using T = {KINDS[kind]};\nFrame<T> f(x, y, z);\n"
        yield f"{name}_{kind}_{n}", head + ALL[name][0].format(n=n)


@pytest.fixture(scope="module")
def module(chosen):
    of_test = chosen("test_a_function_of_rows_is_close")
    cases = [(case["name"], case["kind"], case["n"]) for case in of_test]
    return kernels(dict(bodies(cases)), "GM_ADDR x, GM_ADDR y, GM_ADDR z", BEFORE)


def hostile(kind, n):
    """Yield rows that are hard to sum, by what makes them so."""
    rng = np.random.default_rng(5)
    normal = rng.normal(0, 1, (ROWS, n))
    yield "ordinary", normal
    yield "wide", normal * 20
    yield "large offsets", normal + (1e6 if kind == "float32" else 200)
    yield "small offsets", normal - 100
    yield "cancellation", np.concatenate([normal[:, ::2] * 1e4, normal[:, ::2] * -1e4 + 1], axis=1)
    huge = normal.copy()
    huge[:, 7] = 1e15 if kind == "float32" else 6e4
    yield "one huge element", huge
    yield "tiny", normal * (1e-20 if kind == "float32" else 1e-4)
    yield "subnormal", normal * (1e-40 if kind == "float32" else 1e-6)
    yield "equal", np.full((ROWS, n), 0.1)
    yield "of many sizes", normal * np.exp(rng.normal(0, 2, (ROWS, n)))
    for name, value in (("infinite", np.inf), ("infinite below", -np.inf), ("no number", np.nan)):
        special = normal.copy()
        special[::2, 3] = value
        yield name, special


def units(got, exact, terms):
    """Return how many units in the last place results lie from the nearest numbers of their type.

    Half saturates, and has 0 for what is no number, as its instructions do.
    """
    if got.dtype == np.float16:
        exact, terms = (np.nan_to_num(np.clip(each, -65504, 65504)) for each in (exact, terms))
    nearest = exact.astype(got.dtype)
    largest = np.maximum(np.abs(nearest), np.asarray(terms).astype(got.dtype))
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    off = np.abs(got.astype(float) - nearest.astype(float)) / np.spacing(largest).astype(float)
    return np.where(same, 0, np.where(np.isnan(off), np.inf, off))


@pytest.mark.thinned(12)
@pytest.mark.parametrize(("name", "kind", "n"), CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_of_rows_is_close(module, name, kind, n):
    _, function, most = ALL[name]
    y = np.random.default_rng(6).normal(0, 1, (ROWS, n)).astype(kind)
    data = {what: rows.astype(kind) for what, rows in hostile(kind, n)}
    if name == "Sum" and kind == "float16":
        del data["no number"]  # each step has 0 for it
    given = np.zeros((3, len(data), ROWS * WIDTH), kind)
    for block, x in enumerate(data.values()):
        given[:2, block, : x.size] = x.ravel(), y.ravel()
    left = module[f"{name}_{kind}_{n}"][len(data)](*given)
    assert left.findings == ()
    for (what, x), z in zip(data.items(), given[2], strict=True):
        exact, terms = function(x.astype(float), y.astype(float))
        off = units(z[: exact.size].reshape(exact.shape), exact, terms)
        assert off.max() <= most, (what, np.unravel_index(off.argmax(), off.shape))
