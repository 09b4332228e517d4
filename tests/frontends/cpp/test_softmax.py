"""Softmax of rows and activations of the high-level API in C++, against NumPy in float64."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
M, K, USED = 5, 80, 72
BEFORE = """
template <typename T>
struct Frame {
  TPipe pipe;
  TBuf<TPosition::VECCALC> held;
  LocalTensor<T> x, y, z;
  LocalTensor<float> sum, most, before, work;
  SoftMaxTiling tiling = {};
  SoftMaxShapeInfo shape{5, 80, 5, 72};
  GlobalTensor<T> gx, gy, gz;
  GlobalTensor<float> gs;
  Frame(GM_ADDR ax, GM_ADDR ay, GM_ADDR az, GM_ADDR as) {
    pipe.InitBuffer(held, 96 * 1024);
    LocalTensor<uint8_t> all = held.Get<uint8_t>();
    x = all[0].template ReinterpretCast<T>();
    y = all[8192].template ReinterpretCast<T>();
    z = all[16384].template ReinterpretCast<T>();
    sum = all[24576].template ReinterpretCast<float>();
    most = all[28672].template ReinterpretCast<float>();
    before = all[32768].template ReinterpretCast<float>();
    gx.SetGlobalBuffer((__gm__ T*)ax);
    gy.SetGlobalBuffer((__gm__ T*)ay);
    gz.SetGlobalBuffer((__gm__ T*)az);
    gs.SetGlobalBuffer((__gm__ float*)as);
    DataCopy(x, gx, 400);
    DataCopy(y, gy, 400);
    DataCopy(sum, gs, 40);
    DataCopy(most, gs[40], 40);
    Duplicate(z, T(0.0f), 400);
    PipeBarrier<PIPE_ALL>();
  }
  ~Frame() {
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, z, 400);
    DataCopy(gs, sum, 40);
    DataCopy(gs[40], most, 40);
    DataCopy(gs[80], before, 40);
    PipeBarrier<PIPE_ALL>();
  }
};
"""
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR s"
FLOAT, HALF = "Frame<float> f(x, y, z, s);\n", "Frame<half> f(x, y, z, s);\n"
FILL = "Duplicate(f.before, 0.0f, 40);\nPipeBarrier<PIPE_V>();\n"
ONE = {
    "Gelu": "Gelu(f.z, f.x, 400);",
    "FasterGelu": "FasterGelu(f.z, f.x, 400);",
    "FasterGeluV2": "FasterGeluV2(f.z, f.x, 400);",
    "Silu": "Silu(f.z, f.x, 400);",
    "Swish": "Swish(f.z, f.x, 400, T(1.5));",
    "SwiGLU": "SwiGLU(f.z, f.x, f.y, 1.5f, 400u);",
    "GeGLU": "GeGLU(f.z, f.x, f.y, 400u);",
    "ReGlu": "ReGlu(f.z, f.x, f.y, 400u);",
}
FLASH = "SoftmaxFlashV2<{t}, {update}>(f.z, f.sum, f.most, f.x, {most}, f.sum, f.most, f.tiling, f.shape);"  # noqa: E501

NZ = "SoftMax<{0}, false, false, true>(f.z, f.sum, f.most, f.x, f.tiling, f.shape);"
GRAD = "Softmax{0}<{1}>(f.z, f.x, f.y, f.tiling, {2}f.shape);"
OLD_FLASH = (
    "SoftmaxFlash<float>(f.z, f.sum, f.most, f.x, f.before, f.sum, f.most, f.tiling, {0}, f.shape);"
)
SHIFTED = """TPipe pipe;
TBuf<TPosition::VECCALC> held;
pipe.InitBuffer(held, 32 * 1024);
LocalTensor<half> rows = held.Get<half>(), shrinks = rows[4096];
LocalTensor<float> s0 = rows[8192].ReinterpretCast<float>(), s1 = s0[16], s2 = s0[32];
GlobalTensor<half> gx, gz;
GlobalTensor<float> gs;
gx.SetGlobalBuffer((__gm__ half*)x);
gz.SetGlobalBuffer((__gm__ half*)z);
gs.SetGlobalBuffer((__gm__ float*)s);
DataCopy(rows, gx, 1280);
DataCopy(s0, gs, 48);
PipeBarrier<PIPE_ALL>();
SoftMaxParams params{{2, 640, 2, 640, 3, 8, 0.9375f}};
SoftmaxFlashV3<half, float, {0}>(rows, s0, s1, s2, rows, shrinks, s0, s1, s2, SoftMaxTiling(),
                                 params);
PipeBarrier<PIPE_ALL>();
DataCopy(gz, rows, 1280);
DataCopy(gs, s0, 48);
PipeBarrier<PIPE_ALL>();"""
ADJUSTED = """bool hit = AdjustSoftMaxRes<float, float>(f.x, f.most, 0x3FC00000, 7.5f, f.shape);
bool none = AdjustSoftMaxRes<float, float>(f.x, f.most, 1, 8.5f, f.shape);
Adds(f.z, f.x, 0.0f, 400);
Adds(f.before, f.before, hit && !none ? 1.0f : 2.0f, 40);"""


def bodies():
    """Yield the kernels by their names."""
    for kind, head in (("float", FLOAT), ("half", HALF)):
        using = f"using T = {kind};\n"
        for name, call in ONE.items():
            yield f"{name}_{kind}", head + using + FILL + call
        for name in ("SoftMax", "LogSoftMax", "SimpleSoftMax"):
            given = "" if name == "SoftMax" else "<T>"  # which may be left out
            call = f"{name}{given}(f.z, f.sum, f.most, f.x, f.tiling, f.shape);"
            yield f"{name}_{kind}", head + using + FILL + call
    yield "plain_float", FLOAT + FILL + "SoftMax<float>(f.z, f.x, f.tiling, f.shape);"
    yield "nz_float", FLOAT + FILL + NZ.format("float")
    yield "nz_half", HALF + FILL + NZ.format("half")
    for kind, head in (("float", FLOAT), ("half", HALF)):
        yield f"grad_{kind}", head + FILL + GRAD.format("Grad", kind, "false, ")
        yield (
            f"grad_nz_{kind}",
            head + FILL + GRAD.format("Grad", f"{kind}, false, true", "false, "),
        )
        yield f"front_{kind}", head + FILL + GRAD.format("GradFront", kind, "")
    yield "flash_first", FLOAT + FILL + OLD_FLASH.format("false")
    yield "flash_later", FLOAT + FILL + OLD_FLASH.format("true")
    yield "shifted_first", SHIFTED.format("false")
    yield "shifted_later", SHIFTED.format("true")
    yield "adjusted", FLOAT + FILL + ADJUSTED
    first = FLASH.format(t="float", update="false", most="f.before")
    later = FLASH.format(t="float", update="true", most="f.before")
    yield "first_float", FLOAT + FILL + first
    yield "later_float", FLOAT + FILL + later


@pytest.fixture(
    scope="module",
    params=["Ascend910B3", pytest.param("Ascend950PR_9589", marks=pytest.mark.sweep)],
)
def module(request):
    return kernels(dict(bodies()), PARAMETERS, BEFORE, chip=request.param)


def run(kernel, kind, start=None):
    rng = np.random.default_rng(7)
    x, y = (rng.normal(0, 2, (M, K)).astype(kind) for _ in range(2))
    z = np.zeros((M, K), kind)
    s = np.zeros((3, M, 8), "f4") if start is None else start
    left = kernel[1](x, y, z, s)
    assert left.findings == ()
    return x.astype("f8"), y.astype("f8"), z.astype("f8"), s.astype("f8")


def near(got, exact, kind):
    tolerance = 5e-7 if kind == "f4" else 1e-3
    np.testing.assert_allclose(got, exact, rtol=tolerance, atol=tolerance)


def gelu(x):
    return x / (1 + np.exp(-1.5957691216057308 * (x + 0.044715 * x**3)))


def quadratic(x):
    far = np.minimum(np.abs(x) / np.sqrt(2), 1.769) - 1.769
    return x * (np.sign(x) * (0.5 - 0.1444 * far**2) + 0.5)


def swish(x, scale=1.5):
    return x / (1 + np.exp(-scale * x))


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("word", "kind"), [("float", "f4"), ("half", "f2")])
@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("Gelu", lambda x, _: gelu(x)),
        ("FasterGelu", lambda x, _: swish(x, 1.702)),
        ("FasterGeluV2", lambda x, _: quadratic(x)),
        ("Silu", lambda x, _: swish(x, 1)),
        ("Swish", lambda x, _: swish(x)),
        ("SwiGLU", lambda x, y: x * swish(y)),
        ("GeGLU", lambda x, y: x * gelu(y)),
        ("ReGlu", lambda x, y: x * np.maximum(y, 0)),
    ],
)
def test_activation(module, name, exact, word, kind):
    x, y, z, _ = run(module[f"{name}_{word}"], kind)
    near(z, exact(x, y), kind)


def exact_softmax(x):
    most = x[:, :USED].max(axis=1, keepdims=True)
    powers = np.exp(x - most)
    return most, powers, powers[:, :USED].sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("word", "kind"), [("float", "f4"), ("half", "f2")])
def test_softmax_with_its_sums(module, word, kind):
    x, _, z, s = run(module[f"SoftMax_{word}"], kind)
    most, powers, total = exact_softmax(x)
    near(z[:, :USED], (powers / total)[:, :USED], kind)
    near(s[0], np.repeat(total, 8, axis=1), "f4")
    near(s[1], np.repeat(most, 8, axis=1), "f4")
    x, _, z, _ = run(module[f"LogSoftMax_{word}"], kind)
    near(z[:, :USED], ((x - most - np.log(total)) / np.log(10))[:, :USED], kind)


@pytest.mark.parametrize(("word", "kind"), [("float", "f4"), ("half", "f2")])
def test_softmax_from_given_sums(module, word, kind):
    rng = np.random.default_rng(9)
    start = np.zeros((3, M, 8), "f4")
    start[0], start[1] = (np.repeat(rng.uniform(1, 3, (M, 1)), 8, axis=1) for _ in range(2))
    given = start.astype("f8")
    x, _, z, _ = run(module[f"SimpleSoftMax_{word}"], kind, start)
    near(z, np.exp(x - given[1][:, :1]) / given[0][:, :1], kind)


def test_softmax_without_sums(module):
    x, _, z, _ = run(module.plain_float, "f4")
    _, powers, total = exact_softmax(x)
    near(z[:, :USED], (powers / total)[:, :USED], "f4")


def fractals(x):
    return x.reshape(M, -1, 16).transpose(1, 0, 2).reshape(M, K)


def from_fractals(x):
    return x.reshape(-1, M, 16).transpose(1, 0, 2).reshape(M, K)


@pytest.mark.parametrize(("word", "kind"), [("float", "f4"), ("half", "f2")])
def test_softmax_of_fractals(module, word, kind):
    x, _, z, s = run(module[f"nz_{word}"], kind)
    _, powers, total = exact_softmax(from_fractals(x))
    near(from_fractals(z)[:, :USED], (powers / total)[:, :USED], kind)
    near(s[0], np.repeat(total, 8, axis=1), "f4")


@pytest.mark.parametrize(("word", "kind"), [("float", "f4"), ("half", "f2")])
def test_gradient_of_softmax(module, word, kind):
    x, y, z, _ = run(module[f"grad_{word}"], kind)
    total = (x * y)[:, :USED].sum(axis=1, keepdims=True)
    close = {"rtol": 3e-3 if kind == "f2" else 4e-6, "atol": 0.1 if kind == "f2" else 2e-4}
    np.testing.assert_allclose(z, (x - total) * y, **close)
    _, _, z, _ = run(module[f"front_{word}"], kind)
    width = 16 if kind == "f2" else 8
    got = z.reshape(-1)[: M * width].reshape(M, width)
    np.testing.assert_allclose(got, np.repeat(total, width, axis=1), **close)
    x, y, z, _ = run(module[f"grad_nz_{word}"], kind)
    x, y, z = map(from_fractals, (x, y, z))
    total = (x * y)[:, :USED].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(z, (x - total) * y, **close)


def started(*values):
    start = np.zeros((3, M, 8), "f4")
    start.reshape(3, -1)[:2, :] = np.array(values[:2])[:, None]
    if len(values) > 2:
        start[0].reshape(-1)[24:] = values[2]
    return start


def test_first_flash_is_a_softmax_that_goes_on(module):
    x, _, z, s = run(module.flash_first, "f4", started(2.5, 3))
    most, powers, total = exact_softmax(x)
    near(z[:, :USED], (powers / total)[:, :USED], "f4")
    near(s[:2, :, 0], np.stack([total[:, 0], most[:, 0]]), "f4")
    x, _, z, s = run(module.flash_later, "f4", started(2.5, 3))
    now = np.maximum(most, 3)
    powers, before = np.exp(x - now), 2.5 * np.exp(3 - now)
    total = powers[:, :USED].sum(axis=1, keepdims=True) + before
    near(z[:, :USED], (powers / total)[:, :USED], "f4")
    near(s[:, :, 5], np.stack([total, now, before / total])[:, :, 0], "f4")


@pytest.mark.parametrize("update", [False, True])
def test_flash_with_shifted_means(module, update):
    start = np.repeat(np.array([0.5, 2.5, 3], "f4"), 16)
    given = np.random.default_rng(12).normal(0, 0.3, (2, 640)).astype("f2")
    left, got = np.zeros_like(given), start.copy()
    kernel = module.shifted_later if update else module.shifted_first
    assert kernel[1](given, given, left, got).findings == ()
    x, scalar = given.astype("f8"), 0.9375 / 0.0625
    mean = x.mean(axis=1, keepdims=True)
    parts = x[:, :512].reshape(2, 8, 64).sum(axis=2)
    parts = (parts + x[:, 512:].reshape(2, 2, 8, 8).sum(axis=(1, 3))) / 80
    x = x - np.repeat(mean - parts, 80, axis=1) * scalar
    all_mean = (mean + 0.5 * 2) / 3 if update else mean
    shift, before = (mean - all_mean) * scalar, (0.5 - all_mean) * scalar
    most = x.max(axis=1, keepdims=True) + shift
    if update:
        most = np.maximum(most, 3 + before)
    powers = np.exp(x - most + shift)
    total = powers.sum(axis=1, keepdims=True)
    if update:
        total += 2.5 * np.exp(3 - most + before)
    near(left.astype("f8"), powers, "f2")
    exact = np.repeat(np.stack([all_mean, total, most]), 8, axis=2)
    np.testing.assert_allclose(got.reshape(3, 2, 8), exact, rtol=1e-4, atol=1e-5)


def test_rows_whose_largest_is_a_value_are_set(module):
    start = started(0, 0)
    start[1, [1, 3]] = 1.5
    x, _, z, s = run(module.adjusted, "f4", start)
    exact = x.copy()
    exact[[1, 3]] = 7.5
    near(z, exact, "f4")
    assert (s[2] == 1).all()


def test_flash_goes_on_from_what_was(module):
    x, _, z, s = run(module.first_float, "f4")
    most, powers, total = exact_softmax(x)
    near(z[:, :USED], powers[:, :USED], "f4")
    near(s[:2, :, 0], np.stack([total[:, 0], most[:, 0]]), "f4")
    start = np.zeros((3, M, 8), "f4")
    start[0], start[1] = 2.5, 3.0
    x, _, z, s = run(module.later_float, "f4", start)
    now = np.maximum(most, 3)
    shrinks = np.exp(3 - now)
    powers = np.exp(x - now)
    near(z[:, :USED], powers[:, :USED], "f4")
    near(s[2], np.repeat(shrinks, 8, axis=1), "f4")
    total = powers[:, :USED].sum(axis=1, keepdims=True) + 2.5 * shrinks
    near(s[:2, :, 0], np.stack([total[:, 0], now[:, 0]]), "f4")


@pytest.mark.sweep
def test_small_workspace_is_refused():
    body = """Frame<float> f(x, y, z, s);
TBuf<TPosition::VECCALC> rest;
f.pipe.InitBuffer(rest, 95 * 1024);
LocalTensor<uint8_t> work = f.held.Get<uint8_t>()[65536];
work.SetSize(256);
SoftMax<float>(f.z, f.x, work, f.tiling, f.shape);"""
    kernel = kernels({"k": body}, PARAMETERS, BEFORE).k
    with pytest.raises(cubecore.CubecoreError) as caught:
        run(kernel, "f4")
    assert str(caught.value).endswith(
        "SoftMax must have a workspace as its tiling function answers, got 256 B"
    )
