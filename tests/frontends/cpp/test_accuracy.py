"""Functions of the high-level API within the accuracy that they promise, over hostile ranges."""

import math
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
FUNCTIONS = {
    function["name"]: function
    for function in tomllib.loads(
        (Path(__file__).parent / "accuracy.toml").read_text(encoding="utf-8")
    )["function"]
}
N = 2048
KINDS = {"float32": "float", "float16": "half"}
BODY = """
  using T = {type};
  const uint32_t first = GetBlockIdx() * {n};
  GlobalTensor<T> from, from1, to;
  from.SetGlobalBuffer((__gm__ T*)x + first, {n});
  from1.SetGlobalBuffer((__gm__ T*)y + first, {n});
  to.SetGlobalBuffer((__gm__ T*)z + first, {n});
  TPipe pipe;
  TBuf<TPosition::VECCALC> tensors, space;
  pipe.InitBuffer(tensors, 3 * {n} * sizeof(T));
  pipe.InitBuffer(space, {n} * 40);
  LocalTensor<T> a = tensors.Get<T>(), b = a[{n}], c = a[2 * {n}];
  LocalTensor<uint8_t> tmp = space.Get<uint8_t>();
  DataCopy(a, from, {n});
  DataCopy(b, from1, {n});
  PipeBarrier<PIPE_ALL>();
  {call};
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, c, {n});
"""
BOTH = ("Power", "Fmod", "SwiGLU", "GeGLU", "ReGlu")


def logistic(scale):
    return lambda x: x / (1 + np.exp(-scale * x))


def gelu(x):
    return x / (1 + np.exp(-1.5957691216057308 * (x + 0.044715 * x**3)))


def faster_gelu_v2(x):
    square = 0.1444 * (np.minimum(np.abs(x) / math.sqrt(2), 1.769) - 1.769) ** 2
    return np.where(x < 0, x * square, x * (1 - square))


def each(function):
    return np.vectorize(function, otypes=[float])


EXACT = {
    "Exp": np.exp, "Log": np.log, "Log2": np.log2, "Log10": np.log10,
    "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh,
    "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
    "Erf": each(math.erf), "Erfc": each(math.erfc), "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan,
    "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Gelu": gelu, "FasterGelu": logistic(1.702), "FasterGeluV2": faster_gelu_v2,
    "Silu": logistic(1), "Swish": None,
    "Power": np.power, "Fmod": np.fmod,
    "SwiGLU": lambda x, y: x * logistic(1)(y), "GeGLU": lambda x, y: x * gelu(y),
    "ReGlu": lambda x, y: x * np.maximum(y, 0),
}  # fmt: skip


@pytest.fixture(scope="module")
def compiled(chosen):
    """Return what makes the kernels of a type."""
    cases = chosen("test_a_function_is_as_close_as_it_promises")
    return cache(
        lambda kind: compiled_of({case["name"] for case in cases if case["kind"] == kind}, kind)
    )


def compiled_of(names, kind):
    calls = {}
    for name in sorted(names):
        function = FUNCTIONS[name]
        operands = "c, a, b" if name in BOTH else "c, a"
        text = function.get("call", f"{name}({operands}, tmp, {{n}})").format(n=N)
        calls[f"of_{name}"] = BODY.format(type=KINDS[kind], n=N, call=text)
    return kernels(calls, "GM_ADDR x, GM_ADDR y, GM_ADDR z")


def called(kernel, kind, *operands):
    size = operands[0].size
    padded = [np.concatenate([x, np.ones(-size % N, kind)]) for x in operands]
    z = np.zeros_like(padded[0])
    assert kernel[z.size // N](padded[0], padded[-1], z).findings == ()
    return z[:size]


def numbers(kind, low, high):
    """Return all halves of a range, or floats of every magnitude and dense ones."""
    if kind == "float16":
        x = np.arange(65536, dtype=np.uint16).view(np.float16)
        return x[~((x < low) | (x > high))]
    sizes = np.arange(0, 0x7F800001, 104729, dtype=np.uint32).view(np.float32)
    rng = np.random.default_rng(3)
    dense = [rng.uniform(max(low, -edge), min(high, edge), 20000) for edge in (1, 5, 20, 100)]
    special = [0, -0.0, 1e-45, -1e-45, math.inf, -math.inf, math.nan, low, high]
    x = np.concatenate([sizes, -sizes, *dense, special]).astype(np.float32)
    return x[~((x < low) | (x > high))]


def of_any_size(rng, count):
    """Return numbers of every magnitude of float32, subnormal ones too."""
    return rng.choice([-1, 1], count) * np.exp2(rng.uniform(-149, 128, count))


def pairs(name, kind):
    rng = np.random.default_rng(4)
    count = 30000
    if name == "Power":
        base = np.exp(rng.uniform(-87, 88, count)).astype(kind).astype(float)
        near = np.exp(rng.uniform(-0.5, 0.5, count)).astype(kind).astype(float)
        with np.errstate(all="ignore"):
            yield base, rng.uniform(-103, 88, count) / np.log(base)
            yield near, rng.uniform(-100, 88, count) / np.log(near)
        yield -rng.uniform(0.01, 8, count), np.rint(rng.uniform(-20, 20, count))
        special = [0, 1, -1, 2, -2, 0.5, 3, 1e-45, 3e38, math.inf, 1e30]
        by = [0, 1, -1, 2, -2, 0.5, 3, 1e30, math.inf, -math.inf]
        yield tuple(table.ravel() for table in np.meshgrid(special, by))
    elif name == "Fmod":
        yield rng.uniform(-1e5, 1e5, count), rng.uniform(-7, 7, count)
        divisor = rng.uniform(0.1, 9, count).astype(kind)
        yield np.rint(rng.uniform(1, 1e3, count)) * divisor, divisor
        yield np.array([0, -0.0, 1, -2.5, 3e38, math.inf, math.nan]), np.full(7, 3e38)
    else:
        yield rng.normal(0, 1, count), rng.normal(0, 3, count)
        yield rng.uniform(-100, 100, count), rng.uniform(-9, 9, count)
        yield of_any_size(rng, count), rng.uniform(-200, 9, count)
        yield rng.normal(0, 1, count), rng.uniform(-104, -80, count)
        yield of_any_size(rng, count), of_any_size(rng, count)
        special = [0, -0.0, 1, -1, 1e-45, -1e-45, 3e38, -3e38, math.inf, -math.inf, math.nan]
        yield tuple(table.ravel() for table in np.meshgrid(special, special))


def off_by(got, exact):
    """Return how many units in the last place results lie from the nearest numbers of their type.

    Half saturates, and has 0 for what is no number, as its instructions do.
    """
    if got.dtype == np.float16:
        exact = np.where(np.isnan(exact), 0, np.clip(exact, -65504, 65504))
    nearest = exact.astype(got.dtype)
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    unit = np.spacing(np.abs(nearest)).astype(float)
    error = np.abs(got.astype(float) - nearest.astype(float)) / unit
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


@pytest.mark.thinned(10)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_is_as_close_as_it_promises(compiled, name, kind):
    function = FUNCTIONS[name]
    exact = EXACT[name] or logistic(float(np.array(0.3, "f4").astype(kind)))
    if name in BOTH:
        given = [tuple(np.asarray(x).astype(kind) for x in pair) for pair in pairs(name, kind)]
    else:
        low, high = function.get("low", -math.inf), function.get("high", math.inf)
        given = [(numbers(kind, low, high),)]
    for operands in given:
        got = called(getattr(compiled(kind), f"of_{name}"), kind, *operands)
        error = off_by(got, exact(*(x.astype(float) for x in operands)))
        worst = int(np.argmax(error))
        assert error[worst] <= 2, [x[worst] for x in operands]
