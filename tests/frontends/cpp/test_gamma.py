"""Digamma, Lgamma and Hypot of both chips against recurrences in float64 and NumPy."""

import math
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from cubecore.errors import RequestError
from frontends.cpp.cpp_kernels import kernels, needs_compiler
from frontends.cpp.test_accuracy import BODY, called, of_any_size, off_by

pytestmark = needs_compiler
CHIPS = ("Ascend910B3", "Ascend950PR_9589")
N = 2048
CPP = {"float32": "float", "float16": "half", "bfloat16": "bfloat16_t"}
FINITE = np.finfo("float32").max


def digamma(x):
    """psi by its recurrence up to 30, where the series of 1/x^2 has more digits than float64."""
    if math.isnan(x) or x == math.inf:
        return x
    if x == 0:
        return -math.copysign(math.inf, x)
    if x == math.floor(x) and x < 0:
        return math.nan
    if x < 0:
        turn = x - round(x)
        return digamma(1 - x) - math.pi / math.tan(math.pi * turn)
    lifted = []
    while x < 30:
        lifted.append(1 / x)
        x += 1
    y = 1 / x**2
    tail = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))
    return math.fsum([math.log(x), -0.5 / x, -tail, *(-part for part in lifted)])


def lgamma(x):
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


EXACT = {"Digamma": np.vectorize(digamma, otypes=[float]), "Lgamma": np.vectorize(lgamma)}


@cache
def compiled(chip, kind):
    calls = {
        f"of_{name}": BODY.format(type=CPP[kind], n=N, call=f"{name}(c, a, tmp, {N})")
        for name in EXACT
    }
    return kernels(calls, "GM_ADDR x, GM_ADDR y, GM_ADDR z", chip=chip)


def both(name, kind, x):
    """Return what the chips make of numbers, which is the same."""
    got = [called(getattr(compiled(chip, kind), f"of_{name}"), kind, x) for chip in CHIPS]
    assert got[0].tobytes() == got[1].tobytes()
    return got[0]


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_above_0_are_within_four_units(name):
    rng = np.random.default_rng(3)
    sizes = 10 ** rng.uniform(-37, 38, 3000)
    dense = [rng.uniform(0, edge, 6000) for edge in (2.5, 5, 20)]
    special = [0, -0.0, 1, 2, 1.4616321, 1e-45, math.inf, math.nan]
    x = np.concatenate([sizes, *dense, special]).astype(np.float32)
    error = off_by(both(name, "float32", x), EXACT[name](x))
    assert error.max() <= 4, x[error.argmax()]


@pytest.mark.parametrize("name", EXACT)
def test_numbers_below_0_are_within_units_of_the_larger_term(name):
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(-8, 0, 6000), rng.uniform(-90, 0, 2000)]).astype(np.float32)
    smooth = EXACT[name](1 - x.astype(float))
    exact = EXACT[name](x)
    terms = np.maximum(np.abs(smooth), np.abs(exact + smooth if name == "Lgamma" else exact))
    error = np.abs(both(name, "float32", x).astype(float) - exact)
    assert (error / np.maximum(terms, 1)).max() <= 8 * 2.0**-24


def test_poles_below_0():
    x = np.array([-1, -2, -77, -1e9, -math.inf], np.float32)
    assert np.isnan(both("Digamma", "float32", x)).all()
    assert (both("Lgamma", "float32", x) == np.inf).all()


@pytest.mark.sweep
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_halves_are_the_nearest_but_for_one(name):
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    x = x[~((x < 0) & (np.abs(x) > 100))]
    exact = EXACT[name](x.astype(float))
    got = both(name, "float16", x)
    error = off_by(got, exact)
    near_zero = (x < 0) & (np.abs(exact) < 0.25)
    assert error[~near_zero].max() <= 1
    assert np.abs(got[near_zero].astype(float) - exact[near_zero]).max() < 1e-4


HYPOT = {
    "offered": f"Hypot(c, a, b, tmp, {N})",
    "taken": f"Hypot(c, a, b, {N})",
    "whole": f"c.SetSize({N}); a.SetSize({N}); b.SetSize({N}); Hypot(c, a, b)",
    "both": f"c.SetSize({N}); a.SetSize({N}); b.SetSize({N}); Hypot(c, a, b, tmp)",
}


def hypot(kind):
    made = kernels(
        {form: BODY.format(type=CPP[kind], n=N, call=text) for form, text in HYPOT.items()},
        "GM_ADDR x, GM_ADDR y, GM_ADDR z",
        chip=CHIPS[1],
    )

    def launched(form, x, y):
        z = np.zeros_like(x)
        assert getattr(made, form)[x.size // N](x, y, z).findings == ()
        return z

    return launched


@pytest.mark.parametrize("kind", CPP)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_hypotenuse_leaves_no_range(kind):
    target = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    rng = np.random.default_rng(7)
    special = [0, -0.0, 1, -3, math.inf, -math.inf, math.nan, 6e4, 3e38]
    table = np.array(np.meshgrid(special, special)).reshape(2, -1)
    sized = np.stack([of_any_size(rng, 4 * N - table.shape[1]) for _ in range(2)])
    sized[np.abs(sized) < 1e-30] = 2  # subnormal quotients and results lose digits
    x, y = np.concatenate([sized, table], 1).astype(target)
    exact = np.hypot(x.astype(float), y.astype(float))
    exact[np.isinf(x.astype(float)) | np.isinf(y.astype(float))] = np.inf
    launched = hypot(kind)
    got = launched("offered", x, y)
    nearest = exact.astype(target)
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    unit = 2.0 ** (np.floor(np.log2(exact[~same])) - np.finfo("float32").nmant)
    if kind == "float32":
        assert (np.abs(got[~same].astype(float) - exact[~same]) / unit).max() <= 2.5
    else:  # by way of float, which rounds once more
        assert same.mean() > 0.999
        assert np.allclose(got[~same].astype(float), exact[~same], rtol=2.0**-7)
    for form in ("taken", "whole", "both"):
        assert launched(form, x, y).tobytes() == got.tobytes()


def test_a_hypotenuse_is_refused_on_2201():
    body = BODY.format(type="float", n=N, call=HYPOT["offered"])
    with pytest.raises(RequestError) as caught:
        kernels({"k": body}, "GM_ADDR x, GM_ADDR y, GM_ADDR z").k  # noqa: B018
    assert str(caught.value).endswith(
        "AscendC::Hypot is of architecture 3510; run it with --chip Ascend950PR_9589"
    )


SIZES = """
  AscendC::TensorShape shape({{1024}});
  uint32_t most = 1, least = 1, live = 9, extra = 9;
  AscendC::Get{name}MaxMinTmpSize(shape, 4, false, most, least);
  AscendC::Get{name}TmpBufferFactorSize(4, live, extra);
  *((__gm__ uint32_t*)x) = most;
  *((__gm__ uint32_t*)x + 1) = least;
  *((__gm__ uint32_t*)x + 2) = live;
  *((__gm__ uint32_t*)x + 3) = extra;
"""


def test_sizes_of_workspaces_hold_what_the_functions_need():
    made = kernels(
        {f"of_{name}": SIZES.format(name=name) for name in (*EXACT, "Hypot")}, chip=CHIPS[1]
    )
    for name in EXACT:
        sizes = np.zeros(8, np.uint32)
        getattr(made, f"of_{name}")[1](sizes)
        most, least, live, extra = (int(size) for size in sizes[:4])
        assert 10 * 256 <= least <= most <= live * 1024 * 4 + extra
    sizes = np.ones(8, np.uint32)
    made.of_Hypot[1](sizes)
    assert list(sizes[:4]) == [0, 0, 0, 0]
