"""Normalisation of the high-level API in C++, against NumPy in float64."""

import numpy as np
import pytest

import cubecore
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
M, H, USED, EPSILON = 5, 48, 40, 1e-3
SIZE = 512
BEFORE = """
template <typename T>
struct Frame {
  TPipe pipe;
  TBuf<TPosition::VECCALC> held;
  LocalTensor<T> x, y, gamma, beta, some, other, out, first, second;
  GlobalTensor<T> from, to;
  LayerNormTiling tiling;
  LayerNormSeparateTiling separate;
  Frame(GM_ADDR ax, GM_ADDR ay) {
    pipe.InitBuffer(held, 64 * 1024);
    LocalTensor<T> all = held.Get<T>();
    LocalTensor<T>* parts[] = {&x, &y, &gamma, &beta, &some, &other, &out, &first, &second};
    for (int n = 0; n < 9; ++n) *parts[n] = all[n * 512];
    from.SetGlobalBuffer((__gm__ T*)ax);
    to.SetGlobalBuffer((__gm__ T*)ay);
    DataCopy(all, from, 6 * 512);
    Duplicate(out, T(0.0f), 3 * 512);
    tiling.bLength = 1, tiling.sLength = 5, tiling.hLength = 48, tiling.originalHLength = 40;
    PipeBarrier<PIPE_ALL>();
  }
  ~Frame() {
    PipeBarrier<PIPE_ALL>();
    DataCopy(to, out, 3 * 512);
    PipeBarrier<PIPE_ALL>();
  }
};
template <typename S>
S rows_of_48() {
  S tiling;
  tiling.bLength = 1, tiling.sLength = 5, tiling.hLength = 48, tiling.originalHLength = 40;
  return tiling;
}
constexpr LayerNormConfig PLAIN = {true, true, false, true};
constexpr WelfordUpdateConfig WHOLE{true};
constexpr WelfordFinalizeConfig CORRECTED{__NPU_ARCH__ == 3510};
"""
CALLS = {
    "layer": "LayerNorm(f.out, f.first, f.second, f.x, f.gamma, f.beta, T(1e-3f), f.tiling);",
    "deep": "auto t = rows_of_48<DeepNormTiling>();\n"
    "DeepNorm(f.out, f.first, f.second, f.x, f.y, f.beta, f.gamma, T(2.0f), T(1e-3f), t);",
    "gradient": "auto t = rows_of_48<LayerNormGradTiling>();\n"
    "LayerNormGrad(f.out, f.first, f.y, f.x, f.other, f.some, f.gamma, T(1e-3f), t);",
    "summed": "auto t = rows_of_48<LayerNormGradBetaTiling>();\n"
    "LayerNormGradBeta(f.first, f.second, f.x, f.y, t);",
    "batch": "BatchNormTiling t;\nt.originalBLength = 5, t.meanVarSize = 48;\n"
    "BatchNorm(f.out, f.first, f.second, f.x, f.gamma, f.beta, T(1e-3f), t);",
    "group": "GroupNormTiling t;\nt.n = 2, t.c = 8, t.hw = 12, t.g = 2, t.d = 4;\n"
    "GroupNorm(f.out, f.first, f.second, f.x, f.gamma, f.beta, T(1e-3f), t);",
}
FLOATS = {
    "inverse": "LayerNorm<float, float>(f.out, f.first, f.second, f.x, f.gamma, f.beta, 1e-3f,\n"
    "                        LayerNormPara{5, 40, 48}, f.separate);",
    "plain": "LayerNorm<float, float, false, PLAIN>(f.out, f.first, f.second, f.x, f.gamma,\n"
    "    f.beta, 1e-3f, LayerNormPara{5, 40, 48}, f.separate);",
    "given": "Normalize<float, float>(f.out, f.second, f.some, f.other, f.x, f.gamma, f.beta,\n"
    "                        1e-3f, NormalizePara{5, 40, 48});",
    "update": "WelfordUpdateParam p{1, 48, 40, 0.25f};\n"
    "WelfordUpdate<float, float, false, WHOLE>(f.first, f.second, f.some, f.other, f.x, p);",
    "final": "WelfordFinalizePara p{3, 48, 0, 48, 0, 0, 1 / 48.0f, 1 / 144.0f};\n"
    "WelfordFinalize(f.first, f.second, f.some, f.other, p);",
    "tail": "WelfordFinalizePara p{3, 48, 3, 40, 2, 8, 1 / 48.0f, 1 / 136.0f};\n"
    "WelfordFinalize(f.first, f.second, f.some, f.other, p);",
    "corrected": "WelfordFinalizePara p{3, 48, 3, 40, 2, 8, 1 / 48.0f, 1 / 136.0f, 1 / 135.0f};\n"
    "WelfordFinalize<false, CORRECTED>(f.first, f.second, f.some, f.other, p);",
    "counts": "LocalTensor<int32_t> counts = f.y.ReinterpretCast<int32_t>();\n"
    "WelfordFinalizePara p{3, 48, 0, 0, 0, 0, 1 / 48.0f, 1 / 136.0f};\n"
    "WelfordFinalize(f.first, f.second, f.some, f.other, counts, p);",
}


@pytest.fixture(
    scope="module",
    params=["Ascend910B3", pytest.param("Ascend950PR_9589", marks=pytest.mark.sweep)],
)
def module(request):
    bodies = {name: f"Frame<float> f(x, y);\n{call}" for name, call in FLOATS.items()}
    for word in ("float", "half"):
        head = f"using T = {word};\nFrame<T> f(x, y);\n"
        bodies |= {f"{name}_{word}": head + call for name, call in CALLS.items()}
    return kernels(bodies, "GM_ADDR x, GM_ADDR y", BEFORE, chip=request.param)


def data(kind):
    rng = np.random.default_rng(5)
    given = rng.normal(0.5, 2, (6, SIZE)).astype(kind)
    given[5] = np.abs(given[5]) + 1  # variances
    given[:2, : M * H].reshape(2, M, H)[:, :, USED:] = 0  # what pads rows
    return given


def run(kernel, given):
    left = np.zeros((3, SIZE), given.dtype)
    assert kernel[1](given, left).findings == ()
    return left.astype("f8")


def close(got, exact, kind):
    tolerance = 1e-6 if kind == "f4" else 5e-4
    np.testing.assert_allclose(got, exact, rtol=tolerance, atol=tolerance)


def as_rows(row):
    return row[: M * H].reshape(M, H)


KINDS = pytest.mark.parametrize(("word", "kind"), [("float", "f4"), ("half", "f2")])


def exact_norm(x, gamma, beta):
    mean = x[:, :USED].mean(axis=1, keepdims=True)
    variance = ((x - mean)[:, :USED] ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPSILON) * gamma[:H] + beta[:H], mean, variance


@pytest.mark.thinned(2)
@KINDS
def test_layer_norm(module, word, kind):
    given = data(kind)
    x, y, gamma, beta = given.astype("f8")[:4]
    out, means, variances = run(module[f"layer_{word}"], given)
    exact, mean, variance = exact_norm(as_rows(x), gamma, beta)
    close(as_rows(out), exact, kind)
    close(means[:M], mean[:, 0], kind)
    close(variances[:M], variance[:, 0], kind)
    assert not means[M:].any()
    out, means, variances = run(module[f"deep_{word}"], given)
    exact, mean, variance = exact_norm(2 * as_rows(x) + as_rows(y), gamma, beta)
    close(as_rows(out), exact, kind)
    close(means[:M], mean[:, 0], kind)
    close(variances[:M], variance[:, 0], kind)


def test_layer_norm_with_the_inverse_deviation(module):
    given = data("f4")
    x, _, gamma, beta, some, other = given.astype("f8")
    exact, mean, variance = exact_norm(as_rows(x), gamma, beta)
    for name, result in (
        ("inverse", exact),
        ("plain", exact_norm(as_rows(x), 1 + 0 * gamma, 0 * beta)[0]),
    ):
        out, means, roots = run(module[name], given)
        close(as_rows(out), result, "f4")
        close(means[:M], mean[:, 0], "f4")
        close(roots[:M], 1 / np.sqrt(variance[:, 0] + EPSILON), "f4")
    out, _, roots = run(module.given, given)
    root = 1 / np.sqrt(other[:M] + EPSILON)
    close(as_rows(out), (as_rows(x) - some[:M, None]) * root[:, None] * gamma[:H] + beta[:H], "f4")
    close(roots[:M], root, "f4")


@KINDS
def test_gradient_of_layer_norm(module, word, kind):
    given = data(kind)
    x, dy, gamma, _, mean, variance = given.astype("f8")
    out, res, _ = run(module[f"gradient_{word}"], given)
    g, d = as_rows(dy) * gamma[:H], as_rows(x) - mean[:M, None]
    r = (variance[:M, None] + EPSILON) ** -0.5
    v = (-0.5 * g * d * r**3)[:, :USED].sum(axis=1, keepdims=True)
    m = (-g * r)[:, :USED].sum(axis=1, keepdims=True)
    m += v / USED * (-2 * d)[:, :USED].sum(axis=1, keepdims=True)
    close(as_rows(out), g * r + v * 2 / USED * d + m / USED, kind)
    close(as_rows(res), d * r, kind)
    _, for_gamma, for_beta = run(module[f"summed_{word}"], given)
    close(for_gamma[:H], (as_rows(x) * as_rows(dy)).sum(axis=0), kind)
    close(for_beta[:H], as_rows(dy).sum(axis=0), kind)


@KINDS
def test_batch_and_group_norm(module, word, kind):
    given = data(kind)
    x, _, gamma, beta = given.astype("f8")[:4]
    out, mean, variance = run(module[f"batch_{word}"], given)
    rows = as_rows(x)
    close(mean[:H], rows.mean(axis=0), kind)
    close(variance[:H], rows.var(axis=0), kind)
    scaled = (rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + EPSILON)
    close(as_rows(out), scaled * gamma[:M, None] + beta[:M, None], kind)
    out, mean, variance = run(module[f"group_{word}"], given)
    groups = x[:192].reshape(2, 2, 4, 12)
    centre = groups.mean(axis=(2, 3), keepdims=True)
    spread = groups.var(axis=(2, 3), keepdims=True)
    exact = (groups - centre) / np.sqrt(spread + EPSILON)
    exact = exact * gamma[:8].reshape(2, 4, 1) + beta[:8].reshape(2, 4, 1)
    close(out[:192], exact.ravel(), kind)
    close(mean[:4], centre.ravel(), kind)
    close(variance[:4], spread.ravel(), kind)


def test_means_and_variances_that_come_in_parts(module):
    given = data("f4")
    x, _, _, _, mean, variance = given.astype("f8")
    _, means, seconds = run(module.update, given)
    e = (x - mean)[:USED]
    exact = mean[:USED] + e * 0.25
    close(means[:USED], exact, "f4")
    close(seconds[:USED], variance[:USED] + e * (x[:USED] - exact), "f4")
    close(means[USED:H], mean[USED:H], "f4")
    close(seconds[USED:H], variance[USED:H], "f4")
    counts = np.repeat([3, 2], [40, 8])
    given[1].view(np.int32)[:H] = counts
    last = counts.sum() - (module["corrected"].options.chip == "Ascend950PR_9589")
    for name, each, total in (
        *(("final", np.full(H, 3), 3 * H), ("tail", counts, counts.sum())),
        *(("counts", counts, counts.sum()), ("corrected", counts, last)),
    ):
        _, means, seconds = run(module[name], given)
        middle = (mean[:H] * each).sum() / each.sum()
        spread = (variance[:H] + each * (mean[:H] - middle) ** 2).sum() / total
        close([means[0], seconds[0]], [middle, spread], "f4")
        assert not means[1:].any()


@pytest.mark.sweep
def test_what_cannot_be_done_is_refused():
    bodies = {
        "small": "Frame<float> f(x, y);\nLocalTensor<uint8_t> work = f.held.Get<uint8_t>();\n"
        "work.SetSize(64);\nTBuf<TPosition::VECCALC> rest;\nf.pipe.InitBuffer(rest, 127 * 1024);\n"
        "LayerNorm(f.out, f.first, f.second, f.x, f.gamma,\n"
        "f.beta, work, 1e-3f, f.tiling);",
        "odd": "using T = half;\nFrame<T> f(x, y);\n" + CALLS["group"].replace("hw = 12", "hw = 9"),
    }
    module, given = kernels(bodies, "GM_ADDR x, GM_ADDR y", BEFORE), data("f4")
    for name, sentence in {
        "small": "LayerNorm must have a workspace as its tiling function answers, got 64 B",
        "odd": "GroupNorm.inputX must have a multiple of 32 B in each group, got 72 B",
    }.items():
        with pytest.raises(cubecore.CubecoreError) as caught:
            run(module[name], given)
        assert str(caught.value).endswith(sentence)
