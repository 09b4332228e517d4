"""The high-level mathematics of the class API against NumPy and the standard library."""

import math
from functools import cache

import numpy as np
import pytest

from cubecore import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler
from frontends.cpp.test_gamma import digamma

pytestmark = needs_compiler
N = 1000
KINDS = {"float32": "float", "float16": "half", "int16": "int16_t", "int32": "int32_t"}
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


def body(call, kind, n=N):
    """Return a kernel's body that makes z of x and y by a call, in c of a and b."""
    frame = FRAME.format(call=call, n=n, workspace="space")
    return f"using T = {KINDS[kind]};\n{frame}"


FORMS = {
    "float32": (
        "{name}(c, a, tmp, {n})",
        "{name}(c, a, {n})",
        "{name}(a, a); Adds(c, a, (T)0, {n})",
    ),
    "float16": ("{name}(c, a, tmp, {n})", "{name}(c, a, tmp)"),
}
"""How each function is called on each type."""
CALLS = {}


def call(text, kind="float32", n=N):
    """Return the name of the kernel of a call; all kernels of this file are compiled together."""
    return CALLS.setdefault((text, kind, n), f"k{len(CALLS)}")


@cache
def compiled():
    bodies = {name: body(*key) for key, name in CALLS.items()}
    for kind, forms in FORMS.items():
        cases = (
            f"case {len(forms) * number + form}: {text.format(name=name, n=N)}; break;"
            for number, name in enumerate(FUNCTIONS)
            for form, text in enumerate(forms)
        )
        bodies[kind] = body(f"switch (which) {{ {' '.join(cases)} }}", kind)
    return kernels(bodies, "GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t which, uint32_t space")


def launched(name, x, y=None, which=0, workspace=4096):
    """Return what a kernel makes of arrays."""
    z = np.zeros_like(x)
    made = compiled()[name]
    assert made[1](x, x if y is None else y, z, which, workspace).findings == ()
    return z


def called(name, x, form, workspace=4096):
    """Return what a function makes of an array when it is called in a form."""
    kind = x.dtype.name
    which = list(FUNCTIONS).index(name) * len(FORMS[kind]) + form
    return launched(kind, x, None, which, workspace)


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
    "Digamma": (each(digamma), 2, 60), "Lgamma": (each(math.lgamma), 3, 60),
    "Asin": (np.arcsin, -1, 1), "Acos": (np.arccos, -1, 1), "Atan": (np.arctan, -90, 90),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned(16)
def test_a_function_is_that_of_numpy(name):
    function, low, high = FUNCTIONS[name]
    x = spread(low, high)
    exact = function(x.astype(np.float64))
    whole = called(name, x, 0)
    assert np.allclose(whole, exact, rtol=4e-7, atol=0)
    small = called(name, x, 1, workspace=32)
    in_place = called(name, x, 2)
    for other in (small, in_place):
        assert np.array_equal(whole.view("u4"), other.view("u4"))
    half = spread(low, high, np.float16)
    exact = function(half.astype(np.float64))
    for form in (0, 1):
        assert np.allclose(called(name, half, form), exact, rtol=1e-3, atol=1e-3)


def test_several_turns_give_what_one_gives():
    one, several = (called("Erf", spread(-5, 5), 0, size) for size in (16384, 768))
    assert np.array_equal(one.view("u4"), several.view("u4"))


LEVELS = {level: call(f"Exp<T, {level}>(c, a, tmp, {N})") for level in (0, 5, 10)}


@pytest.mark.parametrize("level", LEVELS)
def test_an_exponential_has_as_many_terms_as_asked_for(level):
    x = spread(-10, 10)
    floor = np.floor(x.astype(np.float64))
    rest = x - floor
    series = sum(rest**n / math.factorial(n) for n in range(level + 1))
    exact = np.exp(floor) * series if level else np.exp(x.astype(np.float64))
    found = launched(LEVELS[level], x)
    assert np.allclose(found, exact, rtol=2e-6, atol=0)


POWER = call(f"Power(c, a, b, tmp, {N})")
POWER_OF_NUMBER = call("Power(c, (T)3.0f, a, tmp)")
POWER_BY_NUMBER = call("Power(c, a, (T)2.5f, tmp)")
EDGES = call("Power(c, a, b, tmp, 12)", n=12)
WHOLE_POWER = call(f"Power(c, a, b, tmp, {N})", "int32")
FMOD = call(f"Fmod(c, a, b, tmp, {N})")
XOR, XOR_ALONE = (call(text, "int16") for text in (f"Xor(c, a, b, tmp, {N})", "Xor(c, a, b)"))
LARGEST, SMALLEST = (
    call(f"Clamp{end}, {N})") for end in ("Max(c, a, tmp, (T)2", "Min(c, a, tmp, (T)-2")
)
AXPY = call(f"Adds(c, a, (T)0, {N}); PipeBarrier<PIPE_V>(); Axpy(c, a, (T)2, tmp, {N})")
ALONG_ROWS = {
    kind: call(
        "static constexpr CumSumConfig own = {true, false, true}; "
        f"CumSum<T, own>(c, b, a, tmp, CumSumInfo{{{rows}, {columns}}}); "
        f"PipeBarrier<PIPE_V>(); Adds(c[{rows * columns}], b, (T)0, {columns})",
        kind,
        (rows + 1) * columns,
    )
    for kind, rows, columns in (("float32", 11, 40), ("float16", 3, 48))
}
CUM_SUM = call(
    "static constexpr CumSumConfig own = {false, false, false}; "
    "CumSum<T, own>(c, c, a, tmp, CumSumInfo{10, 96})",
    "float16",
    960,
)


@pytest.mark.parametrize("kind", ALONG_ROWS)
def test_sums_along_the_last_axis(kind):
    rows, columns = (11, 40) if kind == "float32" else (3, 48)
    x = np.random.default_rng(5).integers(-9, 10, (rows + 1, columns)).astype(kind)
    found = launched(ALONG_ROWS[kind], x.reshape(-1)).reshape(rows + 1, columns)
    exact = np.cumsum(x[:rows], axis=1)
    assert np.array_equal(found, [*exact, exact[-1]])


def test_powers_of_tensors_and_numbers():
    base, by = spread(0.01, 8), spread(-4, 4)
    exact = np.power(base.astype(np.float64), by)
    assert np.allclose(launched(POWER, base, by), exact, rtol=3e-7)
    exact = np.power(base.astype(np.float64), 2.5)
    assert np.allclose(launched(POWER_BY_NUMBER, base), exact, rtol=3e-7)
    exact = np.power(3.0, by.astype(np.float64))
    assert np.allclose(launched(POWER_OF_NUMBER, by), exact, rtol=3e-7)


def test_powers_at_their_edges():
    base = np.array([-2, -2, -2, 0, 0, 0, -3, 5, 1, -0.5, -2, 7], np.float32)
    by = np.array([2, 3, 0.5, 0, 2, -1, 0, 0, 9, -3, -2, 1], np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(base.astype(np.float64), by)
    found = launched(EDGES, base, by)
    assert np.allclose(found, exact, rtol=3e-7, equal_nan=True)


def test_powers_of_integers_are_exact():
    base = np.arange(N, dtype=np.int32) % 15 - 7
    by = np.arange(N, dtype=np.int32) // 15 % 11
    expected = base**by
    by[base == -1] += 1000000
    assert np.array_equal(launched(WHOLE_POWER, base, by), expected)


def test_remainders_have_the_sign_of_the_dividend():
    x, y = spread(-90, 90), spread(0.5, 7)
    assert np.array_equal(launched(FMOD, x, y), np.fmod(x, y))


def test_bits_that_either_has_but_not_both():
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-(2**15), 2**15, N).astype(np.int16) for _ in range(2))
    assert np.array_equal(launched(XOR, x, y), x ^ y)
    assert np.array_equal(launched(XOR_ALONE, x, y, workspace=32), x ^ y)


def test_clamps_and_scaled_sums():
    x = spread(-9, 9)
    assert np.array_equal(launched(LARGEST, x), np.minimum(x, 2))
    assert np.array_equal(launched(SMALLEST, x), np.maximum(x, -2))
    exact = x + x * np.float32(2)
    assert np.allclose(launched(AXPY, x), exact, rtol=1e-6)


def test_sums_along_the_rows():
    x = spread(-9, 9, np.float16)
    found = launched(CUM_SUM, x[:960])
    exact = np.cumsum(x[:960].reshape(10, 96).astype(np.float64), axis=0).ravel()
    assert np.allclose(found, exact, rtol=1e-3, atol=1e-2)


@pytest.mark.sweep
def test_a_workspace_that_is_too_small_is_refused():
    body = """TPipe pipe;
TBuf<TPosition::VECCALC> held;
pipe.InitBuffer(held, 190 * 1024 + which);
LocalTensor<float> a = held.Get<float>();
LocalTensor<uint8_t> tmp = held.Get<uint8_t>()[1024];
tmp.SetSize(512);
Duplicate(a, 1.0f, 128);
Erf(a, a, tmp, 64);"""
    made = kernels({"k": body}, "GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t which").k
    x = spread(-1, 1)
    made[1](x, x, x, 0)  # memory that no buffer has takes its place
    with pytest.raises(CubecoreError) as caught:
        made[1](x, x, x, 1536)
    assert str(caught.value).endswith("sharedTmpBuffer must have 768 B or more, got 512 B")
