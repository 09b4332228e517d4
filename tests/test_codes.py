"""hifloat8 and float4_e1m2: every code against the formats' definitions, and rounding to them."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.numerics.codes import codes_of, numbers

HIFLOAT8, FLOAT4 = element_type("hifloat8"), element_type("float4_e1m2")
INFINITE, NAN = 0x6F, 0x80


def hifloat8() -> dict[int, Fraction]:
    """The code of every finite number, put together from its exponent and mantissa.

    arXiv 2409.16626: exponents -3 to 3 have 3 bits of mantissa, up to 7 two, up to 15 one, and
    -22 to -16 none.
    """
    found = {0: Fraction(0)}
    for sign in (0, 1):
        for exponent in range(-22, 16):
            size = abs(exponent)
            power = Fraction(2) ** exponent * (-1) ** sign
            if exponent < -15:
                found[sign << 7 | exponent + 23] = power
                continue
            stored = size.bit_length()  # of the exponent, its sign in place of its leading 1
            dot, places = {0: (1, 4), 1: (1, 3), 2: (1, 2), 3: (2, 2), 4: (3, 2)}[stored]
            left = 7 - places - stored
            assert left == (3 if size < 4 else 2 if size < 8 else 1)
            field = (exponent < 0) << stored - 1 | size - (1 << stored - 1) if stored else 0
            for mantissa in range(1 << left):
                code = sign << 7 | dot << stored + left | field << left | mantissa
                if code & 0x7F != INFINITE:
                    found[code] = power * (1 + Fraction(mantissa, 1 << left))
    return found


def float4() -> dict[int, Fraction]:
    """A sign and multiples of a quarter."""
    return {s << 3 | q: Fraction((-1) ** s * q, 4) for s in (0, 1) for q in range(8)}


def test_every_code_of_hifloat8():
    wanted = hifloat8()
    assert sorted({*wanted, INFINITE, 0x80 | INFINITE, NAN}) == list(range(256))
    found = numbers(np.arange(256, dtype=np.uint8), HIFLOAT8)
    assert found.dtype == np.float32
    for code, value in wanted.items():
        assert Fraction(float(found[code])) == value, code
    assert found[INFINITE] == np.inf
    assert found[0x80 | INFINITE] == -np.inf
    assert np.isnan(found[NAN])
    assert max(wanted.values()) == 2**15


def test_the_examples_of_the_documents():
    """14 is 0 01 01 110 (vendor's page of 8-bit floats); the smallest numbers are 2**-22."""
    found = numbers(np.array([0b0_01_01_110, 1, 7, 0b0_0001_000], np.uint8), HIFLOAT8)
    assert found.tolist() == [14, 2.0**-22, 2.0**-16, 1]


def test_every_code_of_float4_e1m2():
    found = numbers(np.arange(16, dtype=np.uint8), FLOAT4)
    assert {code: Fraction(float(value)) for code, value in enumerate(found)} == float4()
    assert np.signbit(found[8])


def test_other_types_are_what_they_are():
    values = np.arange(5, dtype=np.float16)
    assert numbers(values, element_type("float16")) is values


def nearest(value: Fraction, codes: dict[int, Fraction]) -> Fraction:
    """The number nearest to a value; of two the one away from 0."""
    return min(codes.values(), key=lambda x: (abs(x - value), -abs(x)))


@pytest.mark.parametrize(
    ("kind", "codes"),
    [(HIFLOAT8, hifloat8()), (FLOAT4, float4())],
    ids=["hifloat8", "float4_e2m1"],
)
def test_numbers_round_to_the_nearest_code(kind, codes):
    """Every number, every half between two, and what lies close beside them."""
    exact = sorted(set(codes.values()))
    halves = [(a + b) / 2 for a, b in pairwise(exact)]
    asked = [x * (1 + Fraction(e, 2**30)) for x in (*exact, *halves) for e in (-1, 0, 1)]
    found = numbers(codes_of(np.array([float(x) for x in asked]), kind), kind)
    for value, got in zip(asked, found, strict=True):
        assert Fraction(float(got)) == nearest(value, codes), float(value)


def test_what_lies_beyond():
    """From half a step above 2**15 on it is infinity; the smaller format ends at its largest."""
    asked = np.array([40959.9, 40960, -1e30, np.inf, np.nan, 2.0**-24, -(2.0**-24), -0.0])
    assert codes_of(asked, HIFLOAT8).tolist() == [0x6E, 0x6F, 0xEF, 0x6F, 0x80, 0, 0, 0]
    assert codes_of(asked, HIFLOAT8, finite=True).tolist() == [0x6E] * 2 + [0xEE, 0x6E] + [0] * 4
    assert codes_of(np.array([9, -9, np.inf, np.nan, -0.0]), FLOAT4).tolist() == [7, 15, 7, 0, 8]
