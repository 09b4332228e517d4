"""The high-level mathematics of the class API against NumPy and the standard library."""

import math
from functools import cache

import numpy as np
import pytest

from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import kernel, needs_compiler

pytestmark = needs_compiler
N = 1000
KINDS = {"float32": "float", "float16": "half", "int16": "int16_t"}
FRAME = """
  GlobalTensor<T> from, from1, to;
  from.SetGlobalBuffer((T*)x, {n});
  from1.SetGlobalBuffer((T*)y, {n});
  to.SetGlobalBuffer((T*)z, {n});
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<TPosition::VECCALC> calc;
  pipe.InitBuffer(in, 2, {n} * sizeof(T));
  pipe.InitBuffer(out, 1, {n} * sizeof(T));
  pipe.InitBuffer(calc, {workspace});
  LocalTensor<T> a = in.AllocTensor<T>();
  DataCopyPad(a, from, {{1, (uint32_t)({n} * sizeof(T)), 0, 0, 0}}, {{false, 0, 0, 0}});
  in.EnQue(a);
  LocalTensor<T> b = in.AllocTensor<T>();
  DataCopyPad(b, from1, {{1, (uint32_t)({n} * sizeof(T)), 0, 0, 0}}, {{false, 0, 0, 0}});
  in.EnQue(b);
  a = in.DeQue<T>();
  b = in.DeQue<T>();
  LocalTensor<T> c = out.AllocTensor<T>();
  LocalTensor<uint8_t> tmp = calc.Get<uint8_t>();
  {call};
  in.FreeTensor(a);
  in.FreeTensor(b);
  out.EnQue(c);
  c = out.DeQue<T>();
  DataCopyPad(to, c, {{1, (uint32_t)({n} * sizeof(T)), 0, 0, 0}});
  out.FreeTensor(c);
"""


def kernel_of(call, kind, n=N):
    """Return a kernel that makes z of x and y by a call, in c of a and b."""
    before = f"using T = {KINDS[kind]};"
    parameters = "GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t which, uint32_t space"
    return kernel(FRAME.format(call=call, n=n, workspace="space"), parameters, before)


@cache
def functions(kind):
    """Return a kernel of all functions of one tensor, each in four forms."""
    forms = (
        "{name}(c, a, tmp, {n})",
        "{name}(c, a, {n})",
        "{name}(c, a, tmp)",
        "{name}(a, a); Adds(c, a, (T)0, {n})",
    )
    cases = (
        f"case {4 * number + form}: {text.format(name=name, n=N)}; break;"
        for number, name in enumerate(FUNCTIONS)
        for form, text in enumerate(forms)
    )
    return kernel_of(f"switch (which) {{ {' '.join(cases)} }}", kind)


def launched(made, x, y=None, which=0, workspace=4096):
    """Return what a kernel makes of arrays."""
    z = np.zeros_like(x)
    assert made[1](x, x if y is None else y, z, which, workspace).findings == ()
    return z


def result(call, x, y=None, workspace=4096):
    """Return what a call makes of arrays, in c of a and b."""
    return launched(kernel_of(call, x.dtype.name, x.size), x, y, 0, workspace)


def spread(low, high, kind=np.float32):
    values = np.random.default_rng(7).uniform(low, high, N)
    values[:3] = low, high, (low + high) / 2
    return values.astype(kind)


def each(function):
    return lambda x: np.array([function(float(value)) for value in x.ravel()])


FUNCTIONS = {
    "Ceil": (np.ceil, -9, 9), "Floor": (np.floor, -9, 9), "Trunc": (np.trunc, -9, 9),
    "Round": (np.rint, -9, 9), "Rint": (np.rint, -9, 9),
    "Frac": (lambda x: x - np.trunc(x), -9, 9), "Sign": (np.sign, -2, 2),
    "Log": (np.log, 1e-3, 90), "Log2": (np.log2, 1e-3, 90), "Log10": (np.log10, 1e-3, 90),
    "Sinh": (np.sinh, -8, 8), "Cosh": (np.cosh, -8, 8), "Tanh": (np.tanh, -30, 30),
    "Asinh": (np.arcsinh, -50, 50), "Acosh": (np.arccosh, 1, 50),
    "Atanh": (np.arctanh, -0.99, 0.99), "Erf": (each(math.erf), -5, 5),
    "Erfc": (each(math.erfc), -3, 3), "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -20, 20),
    "Sin": (np.sin, -60, 60), "Cos": (np.cos, -60, 60), "Tan": (np.tan, -1.4, 1.4),
    "Asin": (np.arcsin, -1, 1), "Acos": (np.arccos, -1, 1), "Atan": (np.arctan, -90, 90),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_that_of_numpy(name):
    function, low, high = FUNCTIONS[name]
    at, x = 4 * list(FUNCTIONS).index(name), spread(low, high)
    floats, halves = functions("float32"), functions("float16")
    exact = function(x.astype(np.float64))
    whole = launched(floats, x, which=at)
    assert np.allclose(whole, exact, rtol=4e-6, atol=1e-6)
    small = launched(floats, x, which=at + 1, workspace=32)
    in_place = launched(floats, x, which=at + 3)
    for other in (small, in_place):
        assert np.array_equal(whole.view("u4"), other.view("u4"))
    half = spread(low, high, np.float16)
    exact = function(half.astype(np.float64))
    for form in (0, 2):
        assert np.allclose(launched(halves, half, which=at + form), exact, rtol=1e-3, atol=1e-3)


def test_several_turns_give_what_one_gives():
    x, at = spread(-5, 5), 4 * list(FUNCTIONS).index("Erf")
    one, several = (launched(functions("float32"), x, None, at, size) for size in (16384, 768))
    assert np.array_equal(one.view("u4"), several.view("u4"))


@pytest.mark.parametrize("level", [0, 5, 10])
def test_an_exponential_has_as_many_terms_as_asked_for(level):
    x = spread(-10, 10)
    floor = np.floor(x.astype(np.float64))
    rest = x - floor
    series = sum(rest**n / math.factorial(n) for n in range(level + 1))
    exact = np.exp(floor) * series if level else np.exp(x.astype(np.float64))
    found = result(f"Exp<T, {level}>(c, a, tmp, {N})", x)
    assert np.allclose(found, exact, rtol=2e-6, atol=0)


def test_powers_of_tensors_and_numbers():
    base, by = spread(0.01, 8), spread(-4, 4)
    exact = np.power(base.astype(np.float64), by)
    assert np.allclose(result(f"Power(c, a, b, tmp, {N})", base, by), exact, rtol=2e-5)
    exact = np.power(base.astype(np.float64), 2.5)
    assert np.allclose(result("Power(c, a, (T)2.5f, tmp)", base), exact, rtol=2e-5)
    exact = np.power(3.0, by.astype(np.float64))
    assert np.allclose(result("Power(c, (T)3.0f, a, tmp)", by), exact, rtol=2e-5)


def test_powers_at_their_edges():
    base = np.array([-2, -2, -2, 0, 0, 0, -3, 5, 1, -0.5, -2, 7], np.float32)
    by = np.array([2, 3, 0.5, 0, 2, -1, 0, 0, 9, -3, -2, 1], np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(base.astype(np.float64), by)
    found = result(f"Power(c, a, b, tmp, {base.size})", base, by)
    assert np.allclose(found, exact, rtol=2e-5, equal_nan=True)


def test_remainders_have_the_sign_of_the_dividend():
    x, y = spread(-90, 90), spread(0.5, 7)
    exact = np.fmod(x.astype(np.float64), y)
    found = result(f"Fmod(c, a, b, tmp, {N})", x, y)
    wrapped = np.abs(np.abs(found - exact) - y) < 1e-4  # a quotient that is whole but for rounding
    assert (np.isclose(found, exact, atol=2e-5) | wrapped).all()
    assert wrapped.sum() < 3


def test_bits_that_either_has_but_not_both():
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-(2**15), 2**15, N).astype(np.int16) for _ in range(2))
    assert np.array_equal(result(f"Xor(c, a, b, tmp, {N})", x, y), x ^ y)
    assert np.array_equal(result("Xor(c, a, b)", x, y, workspace=32), x ^ y)


def test_clamps_and_scaled_sums():
    x = spread(-9, 9)
    assert np.array_equal(result(f"ClampMax(c, a, tmp, (T)2, {N})", x), np.minimum(x, 2))
    assert np.array_equal(result(f"ClampMin(c, a, tmp, (T)-2, {N})", x), np.maximum(x, -2))
    exact = x + x * np.float32(2)
    call = f"Adds(c, a, (T)0, {N}); PipeBarrier<PIPE_V>(); Axpy(c, a, (T)2, tmp, {N})"
    assert np.allclose(result(call, x), exact, rtol=1e-6)


def test_sums_along_the_rows():
    x = spread(-9, 9, np.float16)
    call = "static constexpr CumSumConfig own = {false, false, false}; CumSum<T, own>(c, c, a, "
    call += "tmp, CumSumInfo{10, 96})"
    found = result(call, x[:960])
    exact = np.cumsum(x[:960].reshape(10, 96).astype(np.float64), axis=0).ravel()
    assert np.allclose(found, exact, rtol=1e-3, atol=1e-2)


def test_a_workspace_that_is_too_small_is_refused():
    at = 4 * list(FUNCTIONS).index("Erf")
    with pytest.raises(CubecoreError) as caught:
        launched(functions("float32"), spread(-1, 1), None, at, 512)
    assert str(caught.value).endswith("sharedTmpBuffer must have 768 B or more, got 512 B")
