"""Rounding and saturation, against fractions; int8, half and the small floats whole."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubecore.dtypes import ELEMENT_TYPES, FLOAT16, FLOAT32, INT8, INT16, INT32, element_type
from cubecore.numerics import (
    accumulate_product,
    exact,
    largest_finite,
    round_float,
    saturate,
    wrap,
)

FORMATS = {
    # significant bits, exponent of the least subnormal, largest finite
    "float16": (11, -24, Fraction(65504)),
    "bfloat16": (8, -133, Fraction(2**128 - 2**120)),
    "float32": (24, -149, Fraction(2**128 - 2**104)),
    "float8_e4m3fn": (4, -9, Fraction(448)),
    "float8_e5m2": (3, -16, Fraction(57344)),
    "float4_e2m1fn": (2, -1, Fraction(6)),
}
INF = float("inf")


def nearest_even(value: float, name: str) -> Fraction | None:
    """Round to nearest even, exactly; None beyond the largest finite value."""
    bits, lowest, largest = FORMATS[name]
    exact = Fraction(value)
    unit = Fraction(2) ** max(math.frexp(value)[1] - bits, lowest)
    rounded = round(exact / unit) * unit
    return None if abs(rounded) > largest else rounded


def interesting(name: str) -> np.ndarray:
    """Every boundary of the format (or many of a wide one) and its neighbours, as float64."""
    bits, lowest, largest = FORMATS[name]
    rng = np.random.default_rng(4)
    if name in {"float16", "bfloat16"}:
        codes = np.arange(0, 65536, 17, dtype=np.uint16)
        with np.errstate(invalid="ignore"):
            values = codes.view(element_type(name).numpy).astype(np.float64)
    elif name == "float32":
        codes = rng.integers(0, 2**32, 4000, dtype=np.uint64).astype(np.uint32)
        with np.errstate(invalid="ignore"):
            values = codes.view(np.float32).astype(np.float64)
    else:
        codes = np.arange(1 << element_type(name).bits, dtype=np.uint8)
        values = codes.view(element_type(name).numpy).astype(np.float64)
    values = np.unique(np.abs(values[np.isfinite(values)]))
    steps = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(values, 2.0**lowest))) - bits + 1, lowest)
    ties = values + steps / 2
    near = [values, ties, np.nextafter(ties, INF), np.nextafter(ties, 0), values + steps / 4]
    ends = [float(largest) * 1.5, float(largest) * 4, 2.0**lowest / 2, 2.0**lowest / 4]
    found = np.unique(np.concatenate([*near, ends]))
    found = found[found < 1e300]
    return np.concatenate([found, -found])


INFINITE = ("float16", "bfloat16", "float32", "float8_e5m2")


def check_rounding(values: np.ndarray, name: str, *, finite: bool) -> None:
    got = round_float(values, element_type(name), finite=finite).astype(np.float64)
    end = float(FORMATS[name][2]) if finite else INF
    for value, result in zip(values.tolist(), got.tolist(), strict=True):
        wanted = nearest_even(value, name)
        if wanted is None:
            assert result == math.copysign(end, value), value
        else:
            assert Fraction(result) == wanted, value


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.thinned(2)
def test_float64_is_rounded_once_to_nearest_even(name):
    check_rounding(interesting(name), name, finite=True)


@pytest.mark.parametrize("name", INFINITE)
@pytest.mark.thinned(2)
def test_float64_beyond_the_largest_is_infinite(name):
    check_rounding(interesting(name), name, finite=False)


def as_float32(name: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        values = interesting(name).astype(np.float32)
    return values[np.isfinite(values)]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.thinned(2)
def test_float32_is_rounded_once_to_nearest_even(name):
    check_rounding(as_float32(name), name, finite=True)


@pytest.mark.parametrize("name", INFINITE)
@pytest.mark.thinned(2)
def test_float32_beyond_the_largest_is_infinite(name):
    check_rounding(as_float32(name), name, finite=False)


@pytest.mark.parametrize("name", FORMATS)
def test_infinity_and_nan_when_results_stay_finite(name):
    values = np.array([INF, -INF, float("nan"), -float("nan"), 0.0, -0.0])
    got = round_float(values, element_type(name), finite=True)
    largest = float(FORMATS[name][2])
    assert got.dtype == element_type(name).numpy
    assert got.astype(np.float64).tolist() == [largest, -largest, 0.0, 0.0, 0.0, -0.0]
    assert np.signbit(got.astype(np.float64)).tolist() == [False, True, False, False, False, True]


@pytest.mark.parametrize("name", INFINITE)
def test_infinity_and_nan_when_they_may_appear(name):
    values = np.array([INF, -INF, float("nan")])
    got = round_float(values, element_type(name), finite=False).astype(np.float64)
    assert got[0] == INF
    assert got[1] == -INF
    assert np.isnan(got[2])


@pytest.mark.parametrize("name", FORMATS)
def test_the_largest_finite_value(name):
    assert Fraction(largest_finite(element_type(name))) == FORMATS[name][2]


@pytest.mark.parametrize("kept", [np.float32, np.float64])
def test_every_half_is_itself(kept):
    codes = np.arange(65536, dtype=np.uint16)
    halves = codes.view(np.float16)
    with np.errstate(invalid="ignore"):
        wide = halves.astype(kept)
    ieee = round_float(wide, FLOAT16, finite=False)
    numbers = ~np.isnan(halves)
    assert np.array_equal(ieee.view(np.uint16)[numbers], codes[numbers])
    assert np.isnan(ieee[~numbers]).all()
    finite = round_float(wide, FLOAT16, finite=True)
    plain = np.isfinite(halves)
    assert np.array_equal(finite.view(np.uint16)[plain], codes[plain])
    assert not finite.view(np.uint16)[~numbers].any()


@pytest.mark.parametrize("target", [INT8, INT16, INT32], ids=str)
def test_integers_saturate_and_wrap(target):
    half = 1 << (target.bits - 1)
    values = [-3 * half, -half - 1, -half, -1, 0, 1, half - 1, half, 2 * half, 3 * half + 5]
    array = np.array(values, np.int64)
    assert saturate(array, target).tolist() == [min(max(v, -half), half - 1) for v in values]
    assert wrap(array, target).tolist() == [(v + half) % (2 * half) - half for v in values]
    assert saturate(array, target).dtype == wrap(array, target).dtype == target.numpy


@settings(max_examples=100)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20))
def test_integers_of_any_size(values):
    array = np.array(values, np.int64)
    for target in (INT8, INT16, INT32):
        half = 1 << (target.bits - 1)
        assert saturate(array, target).tolist() == [min(max(v, -half), half - 1) for v in values]
        assert wrap(array, target).tolist() == [(v + half) % (2 * half) - half for v in values]


def test_saturating_floats_that_hold_integers():
    values = np.array([1e300, -1e300, 2147483647.0, -2147483648.0, 2147483648.0, 5.0])
    assert saturate(values, INT32).tolist() == [
        *(2**31 - 1, -(2**31), 2**31 - 1),
        *(-(2**31), 2**31 - 1, 5),
    ]


def test_a_product_of_integers_is_exact_and_clamped():
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (5, 40)).astype(np.int8)
    b = rng.integers(-128, 128, (40, 7)).astype(np.int8)
    start = rng.integers(-(2**31), 2**31, (5, 7)).astype(np.int32)
    start[0, :] = 2**31 - 1
    exact = start.astype(object) + a.astype(object) @ b.astype(object)
    wanted = np.clip(exact, -(2**31), 2**31 - 1).astype(np.int32)
    got = accumulate_product(start, a, b, INT32)
    assert got.dtype == np.int32
    assert np.array_equal(got, wanted)


def test_a_product_of_floats_is_rounded_once():
    """2**24 + 1 + 1: adding one at a time in float32 would lose both."""
    a, b = np.ones((1, 2), np.float16), np.ones((2, 1), np.float16)
    got = accumulate_product(np.full((1, 1), 2.0**24, np.float32), a, b, FLOAT32)
    assert got.dtype == np.float32
    assert got.tolist() == [[2.0**24 + 2]]


def test_a_float_product_overflows_to_infinity():
    a = np.array([[65504]], np.float16)
    start = np.array([[3.4028235e38]], np.float32)
    huge = accumulate_product(start, np.array([[2.0**120]], ml_dtypes.bfloat16), a, FLOAT32)
    assert huge.tolist() == [[INF]]


def test_every_format_here_is_every_float_that_a_library_has():
    libraries = {"numpy", "ml_dtypes"}
    known = {t.name for t in ELEMENT_TYPES.values() if t.kind == "float" and t.library in libraries}
    assert known == set(FORMATS)


@pytest.mark.parametrize("wide", [np.float32, np.float64])
def test_halves_of_every_size_are_rounded_as_numpy_does(wide):
    codes = np.arange(2**16, dtype=np.uint16).view(np.float16)
    exact = codes.astype(wide)
    finite = exact[np.isfinite(exact)]
    with np.errstate(all="ignore"):
        between = (finite[:-1] / 2 + finite[1:] / 2).astype(wide)
        near = [np.nextafter(between, wide(end)) for end in (-np.inf, np.inf)]
        values = np.concatenate([exact, between, *near, -between, finite * wide(2.0**-9)])
        rounded, numpys = (
            round_float(values, element_type("half"), finite=False),
            values.astype("e"),
        )
    assert (rounded.view(np.uint16) == numpys.view(np.uint16)).all()


def test_many_float32_round_to_the_nearest_half_or_the_even_one():
    """Halves, the numbers midway between neighbours, and those beside these, of both signs."""
    codes = np.arange(0x7C00, dtype=np.uint16)  # that is infinity
    halves = codes.view(np.float16).astype(np.float32)
    midway = (halves[:-1] + halves[1:]) / 2
    beyond = np.array([65519.99, 65520, 2.0**16, np.inf, np.nan], np.float32)
    values = np.concatenate([halves, midway, np.nextafter(midway, 0), np.nextafter(midway, 1e9)])
    lower, upper = codes[:-1], codes[1:]
    nearest = np.concatenate([codes, lower + (lower & 1), lower, upper])
    target = element_type("half")
    for sign, bit in ((1, 0), (-1, 0x8000)):
        rounded = round_float(sign * values, target, finite=False)
        assert np.array_equal(rounded.view(np.uint16), nearest | bit)
        with_more = round_float(sign * np.concatenate([values, beyond]), target, finite=False)
        assert np.array_equal(with_more[:-5].view(np.uint16), nearest | bit)
        ends = [sign * end for end in (65504, np.inf, np.inf, np.inf, np.nan)]
        assert np.array_equal(with_more[-5:], np.array(ends, np.float16), equal_nan=True)


@pytest.mark.parametrize("kept", ["all", "finite", "few"])
def test_halves_are_exact_in_float64(kept):
    """Every half by its sign, exponent and mantissa; those beside infinity and NaN, too."""
    codes = np.arange(2**16, dtype=np.uint16)
    if kept != "all":
        codes = codes[codes & 0x7C00 != 0x7C00]
    codes = codes[:: 2000 if kept == "few" else 1]
    got = exact(codes.view(np.float16))
    assert got.dtype == np.float64
    power, mantissa = codes >> 10 & 31, codes.astype(np.float64) % 1024
    steps = np.where(power, mantissa + 1024, mantissa)
    magnitudes = np.ldexp(steps, np.maximum(power.astype(int), 1) - 25)
    magnitudes[power == 31] = np.where(mantissa[power == 31], np.nan, np.inf)
    assert np.array_equal(np.abs(got), magnitudes, equal_nan=True)
    number = ~np.isnan(got)
    assert np.array_equal(np.signbit(got)[number], codes[number] >= 0x8000)
    pairs = codes[: codes.size // 2 * 2].reshape(-1, 2).view(np.float16)
    assert np.array_equal(exact(pairs.T), got[: pairs.size].reshape(-1, 2).T, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, ml_dtypes.bfloat16])
@pytest.mark.parametrize("other", [None, (0, 0), (15, 7)])
@pytest.mark.parametrize("alike", ["", "a", "b", "ab"])
def test_each_core_has_the_product_that_it_has_alone(dtype, other, alike):
    """All cores have one B, or one of them another in its first element or its last.

    `alike` are those that all cores have in the same bytes.
    """
    rng = np.random.default_rng(5)
    a = rng.integers(-9, 9, (5, 4, 16)).astype(dtype)
    b = np.repeat(rng.integers(-9, 9, (1, 16, 8)).astype(dtype), 5, axis=0)
    if other is not None:
        b[3][other] += 1
    a, b = (
        np.broadcast_to(one[3], one.shape) if name in alike else one
        for name, one in (("a", a), ("b", b))
    )
    kind = INT32 if dtype is np.int8 else FLOAT32
    start = rng.integers(-9, 9, (5, 4, 8)).astype(kind.numpy)
    together = accumulate_product(start, a, b, kind)
    for core in range(5):
        exact = start[core] + a[core].astype(np.float64) @ b[core].astype(np.float64)
        assert np.array_equal(together[core], exact)
