"""HF32: the rounding over every code, its registers, and products of rounded inputs."""

import struct

import numpy as np
import pytest

from cubecore.chips import chip, costs
from cubecore.dtypes import FLOAT16, FLOAT32, element_type
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.control_registers import SetHf32Mode, SetHf32TransMode
from cubecore.numerics import HF32_ROUNDINGS, round_hf32
from isa.bench import A2, Bench

INFINITY = np.uint32(0x7F800000)


def every_code_and_what_is_near() -> np.ndarray:
    """Each of the 2**20 HF32 numbers, the tie above it, and the neighbours of both."""
    codes = np.arange(1 << 20, dtype=np.uint32) << 12
    return np.concatenate([codes | d for d in (0, 1, 0x7FF, 0x800, 0x801, 0xFFF)])


def by_hand(values: np.ndarray, mode: str) -> np.ndarray:
    """Round in float64 to multiples of the last of 12 significant bits."""
    wide = values.astype(np.float64)
    _, exponent = np.frexp(np.abs(wide))
    unit = np.ldexp(1.0, np.maximum(exponent, -125) - 12)
    to_integer = np.rint if mode == "nearest_even" else np.trunc
    return to_integer(wide / unit) * unit


@pytest.mark.thinned(2)
@pytest.mark.parametrize("mode", HF32_ROUNDINGS)
def test_every_hf32_number_and_what_lies_between(mode):
    bits = every_code_and_what_is_near()
    bits = bits[bits & 0x7FFFFFFF < INFINITY]
    values = bits.view(np.float32)
    got = round_hf32(values, mode)
    wanted = by_hand(values, mode)
    with np.errstate(over="ignore"):  # beyond the largest number the next one is infinity
        assert np.array_equal(got, wanted.astype(np.float32))
    assert np.array_equal(np.signbit(got), np.signbit(values))
    assert not (got.view(np.uint32) & 0xFFF).any()


@pytest.mark.parametrize("mode", HF32_ROUNDINGS)
def test_infinity_and_every_kind_of_nan_stay(mode):
    bits = every_code_and_what_is_near()
    bits = bits[bits & 0x7FFFFFFF >= INFINITY]
    got = round_hf32(bits.view(np.float32), mode)
    nan = bits & 0x7FFFFFFF > INFINITY
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(got.view(np.uint32)[~nan], bits[~nan])


def test_the_largest_numbers():
    largest = np.array([np.finfo(np.float32).max, -np.finfo(np.float32).max], np.float32)
    assert round_hf32(largest, "nearest_even").tolist() == [np.inf, -np.inf]
    kept = float(2**128 - 2**116)
    assert round_hf32(largest, "toward_zero").tolist() == [kept, -kept]


# --- the registers and the product

ABOVE_A_TIE, TIE = 1 + 2**-12 + 2**-20, 1 + 2**-12
"""Between 1 and 1 + 2**-11."""
UP = 1 + 2**-11


def product_of(value: float, *modes) -> float:
    """One times a value, after instructions that set modes."""
    bench = Bench()
    bench.poke(Mem.L0A, 0, struct.pack("<f", value))
    bench.poke(Mem.L0B, 0, struct.pack("<f", 1.0))
    for mode in modes:
        bench.do(mode)
    template = Mad(a_type=FLOAT32, b_type=FLOAT32, c_type=FLOAT32, m=1, k=1, n=1)
    bench.do(template, 0, 0, 0)
    assert bench.messages == []
    return struct.unpack("<f", bench.image(Mem.L0C).get(0, 4))[0]


ON, OFF = SetHf32Mode(enable=True), SetHf32Mode(enable=False)
TO_EVEN, TO_ZERO = SetHf32TransMode(mode=0), SetHf32TransMode(mode=1)


@pytest.mark.parametrize(
    ("modes", "above", "tie"),
    [
        ((), ABOVE_A_TIE, TIE),
        ((ON,), UP, 1.0),
        ((ON, TO_ZERO), 1.0, 1.0),
        ((TO_ZERO, ON), 1.0, 1.0),
        ((ON, TO_ZERO, TO_EVEN), UP, 1.0),
        ((ON, TO_ZERO, OFF), ABOVE_A_TIE, TIE),
        ((ON, TO_ZERO, OFF, ON), 1.0, 1.0),
        ((TO_ZERO,), ABOVE_A_TIE, TIE),
    ],
    ids=str,
)
def test_hf32_registers(modes, above, tie):
    assert product_of(ABOVE_A_TIE, *modes) == above
    assert product_of(TIE, *modes) == tie


@pytest.mark.parametrize("mode", HF32_ROUNDINGS)
def test_both_operands_are_rounded_and_the_sum_is_not(mode):
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((2, 8, 8)).astype(np.float32)
    left = np.pad(a, ((0, 8), (0, 0)))  # 16 x 8 row by row, and 8 x 16 column by column
    right = np.pad(b, ((0, 0), (0, 8))).T
    start = np.float32(1 + 2**-20)
    bench = Bench()
    bench.poke(Mem.L0A, 0, left.tobytes())
    bench.poke(Mem.L0B, 0, np.ascontiguousarray(right).tobytes())
    bench.poke(Mem.L0C, 0, np.full(256, start).tobytes())
    bench.do(ON)
    bench.do(TO_ZERO if mode == "toward_zero" else TO_EVEN)
    template = Mad(a_type=FLOAT32, b_type=FLOAT32, c_type=FLOAT32, m=8, k=8, n=8)
    bench.do(Mad(**(vars(template) | {"c_matrix_init_val": False})), 0, 0, 0)
    got = np.frombuffer(bench.image(Mem.L0C).get(0, 1024), np.float32).reshape(16, 16)[:8, :8]
    wanted = by_hand(a, mode) @ by_hand(b, mode) + float(start)
    assert np.array_equal(got, wanted.astype(np.float32))


def test_other_types_are_not_rounded():
    bench = Bench()
    value = np.float16(1 + 2**-10)
    bench.poke(Mem.L0A, 0, value.tobytes())
    bench.poke(Mem.L0B, 0, np.float16(1).tobytes())
    bench.do(ON)
    template = Mad(a_type=FLOAT16, b_type=FLOAT16, c_type=FLOAT32, m=1, k=1, n=1)
    bench.do(template, 0, 0, 0)
    assert bench.messages == []
    assert struct.unpack("<f", bench.image(Mem.L0C).get(0, 4))[0] == float(value)


def test_hf32_of_other_types_is_refused():
    bench = Bench()
    template = Mad(
        a_type=FLOAT16, b_type=FLOAT16, c_type=FLOAT32, m=1, k=1, n=1, hf32="nearest_even"
    )
    bench.do(template, 0, 0, 0)
    assert bench.messages == ["parameter: mad.hf32 must be off for float16, got nearest_even"]


def test_hf32_costs_half_on_2201_and_an_eighth_on_3510():
    """asc_enable_hf32, tables 1 and 2: 4 against 8, and 1 against 8, elements of K a cycle."""
    single = element_type("float32")
    a5 = chip("Ascend950PR_9589")
    assert costs.mad_cycles(A2, single, 64, 64, 64) == 256
    assert costs.mad_cycles(A2, single, 64, 64, 64, hf32=True) == 128
    assert costs.mad_cycles(a5, single, 64, 64, 64) == 1024
    assert costs.mad_cycles(a5, single, 64, 64, 64, hf32=True) == 128
    fields = {"a_type": single, "b_type": single, "c_type": single, "m": 64, "k": 64, "n": 64}
    plain, rounded = Mad(**fields).cost(A2), Mad(**fields, hf32="nearest_even").cost(A2)
    assert plain.busy - rounded.busy == 128
