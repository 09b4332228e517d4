"""What expressions compute beyond sums and products, against NumPy."""

import numpy as np
import pytest

from cubecore.isa.program.arithmetic import FUNCTIONS
from cubecore.isa.program.expr import Expr, Var

FLOATS = np.array([0.0, 1.5, -2.25, 3e38, 1e-30, 65520.0, -7.5, 2.5, np.inf, np.nan], np.float32)
WHOLE = (-9, -1, 0, 1, 2, 7, 40)


def bits(value):
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_floats_round_as_float32(name):
    operation = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
    for x in FLOATS:
        for y in FLOATS:
            with np.errstate(all="ignore"):
                want = operation(x, y)
            got = np.uint32(FUNCTIONS[f"f32{name}"](bits(x), bits(y))).view(np.float32)
            assert got == want or (np.isnan(got) and np.isnan(want)), (x, y)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_relations_are_0_or_1(name):
    python = f"__{name}__"
    for x in WHOLE:
        for y in WHOLE:
            assert FUNCTIONS[name](x, y) == int(getattr(x, python)(y))
    for x in FLOATS:
        for y in FLOATS:
            assert FUNCTIONS[f"f32{name}"](bits(x), bits(y)) == int(getattr(x, python)(y))


@pytest.mark.parametrize(
    ("code", "kind"), [(8, "u1"), (-8, "i1"), (-16, "i2"), (32, "u4"), (-32, "i4")]
)
def test_wrapping_keeps_the_low_bits(code, kind):
    for value in (*WHOLE, 127, 128, 255, 256, 2**31, 2**32 + 3, -(2**31) - 1):
        assert FUNCTIONS["wrap"](value, code) == int(np.array(value, np.int64).astype(kind))


def test_floats_to_integers_by_mode():
    table = {2.5: (2, 2, 2, 3, 3), -2.5: (-2, -2, -3, -2, -3), 1.2: (1, 1, 1, 2, 1)}
    for value, wanted in table.items():
        assert tuple(FUNCTIONS["f32toint"](bits(value), m) for m in range(5)) == wanted
    assert FUNCTIONS["f32toint"](bits(np.nan), 0) == 0


def test_half_and_back():
    for value in (0.0, 1.5, -2.25, 65504.0, 1e-7, 70000.0):
        with np.errstate(over="ignore"):
            half = np.float16(value)
        assert FUNCTIONS["f32tof16"](bits(value), 0) == int(half.view(np.uint16))
        assert FUNCTIONS["f16tof32"](int(half.view(np.uint16)), 0) == bits(half)


def test_bits_are_counted():
    for value in (0, 1, 5, 255, 256):
        text = format(value, "016b")
        assert FUNCTIONS["countbits"](value, 16) == text.count("1")
        assert FUNCTIONS["leadingzeros"](value, 16) == 16 - len(text.lstrip("0"))


def test_the_source_of_an_expression_computes_the_same():
    x = Expr.of(Var("x", 0))
    expression = (x + 3).applied("shl", 2).applied("bitor", x * 2).applied("lt", 40)
    for value in range(10):
        want = expression.at({Var("x", 0): value})
        assert eval(expression.source(), dict(FUNCTIONS) | {"v0": value}) == want
        assert want == int(((value + 3) << 2 | value * 2) < 40)
