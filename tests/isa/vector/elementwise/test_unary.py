"""Vector instructions of one source, with or without a scalar, against loops over lanes."""

import math
import struct
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.numerics.conversion import bits_of
from isa.bench import Bench
from isa.lanes import (
    CTRL,
    FLOATS,
    INF,
    NAN,
    SATURATE,
    Mask,
    Operand,
    Run,
    fill,
    pack_float,
    pack_integer,
    size_of,
)
from parts import crossed

HALF_FLOAT = ("float16", "float32")
UNARY = dict.fromkeys(("vabs", "vexp", "vln", "vrec", "vsqrt", "vrsqrt"), HALF_FLOAT) | {
    "vrelu": ("float16", "int32", "float32"),
    "vnot": ("int16", "uint16"),
}
ARITHMETIC = ("int16", "float16", "int32", "float32")
SCALAR = dict.fromkeys(("vadds", "vsubs", "vmuls", "vmaxs", "vmins"), ARITHMETIC) | {
    "vlrelu": HALF_FLOAT
}
SHIFTED = ("int16", "uint16", "int32", "uint32")


def of_decimal(name: str, x: float) -> float:
    """e**x or ln x, rounded to float64 from 40 digits."""
    with localcontext() as context:
        context.prec = 40
        value = Decimal(x)
        return float(value.exp() if name == "vexp" else value.ln())


def exponential(x: float) -> float:
    if x > 700:
        return INF
    return 0.0 if x < -700 else of_decimal("vexp", x)


def logarithm(x: float) -> float:
    if x == 0:
        return -INF
    return NAN if x < 0 else INF if x == INF else of_decimal("vln", x)


def reciprocal(x: float) -> float:
    return math.copysign(INF, x) if x == 0 else 1 / x


def root(x: float) -> float:
    return x if x == 0 else NAN if x < 0 else math.sqrt(x)


def unary(name: str, x: float) -> float | int:
    """What the documents say of one value."""
    if isinstance(x, float) and math.isnan(x):
        return NAN
    match name:
        case "vabs":
            return abs(x)
        case "vexp":
            return exponential(x)
        case "vln":
            return logarithm(x)
        case "vrec":
            return reciprocal(x)
        case "vsqrt":
            return root(x)
        case "vrsqrt":
            return reciprocal(root(x))
        case "vrelu":
            return x if x > 0 else type(x)(0)
    assert name == "vnot"
    return ~x


def larger(x, y):
    if x == y:
        return y if math.copysign(1, x) < 0 else x
    return max(x, y)


def with_scalar(name: str, x: float, y: float) -> float | int:
    if any(isinstance(v, float) and math.isnan(v) for v in (x, y)) and name != "vlrelu":
        return NAN
    match name:
        case "vadds":
            return x + y
        case "vsubs":
            return x - y
        case "vmuls":
            return x * y  # of infinity and 0 it is NaN in Python too
        case "vmaxs":
            return larger(x, y)
        case "vmins":
            return -larger(-x, -y)
    assert name == "vlrelu"
    return x * y if math.copysign(1, x) < 0 else x


def pack(value: float, dtype: str, ctrl: int) -> bytes:
    if dtype in FLOATS:
        return pack_float(value, dtype, ctrl)
    return pack_integer(value, dtype, bool(ctrl & SATURATE))


def template(name: str, dtype: str, **parameters):
    return instruction_named(name)(dtype=element_type(dtype), **parameters)


def operands(dtype: str, dst: int = 0, src: int = 98304, **strides) -> dict[str, Operand]:
    return {
        "dst": Operand(
            dst, dtype, strides.get("dst_block_stride", 1), strides.get("dst_repeat_stride", 8)
        ),
        "src": Operand(
            src, dtype, strides.get("src_block_stride", 1), strides.get("src_repeat_stride", 8)
        ),
    }


@pytest.mark.parametrize("ctrl", CTRL)
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in UNARY.items() for d in ds])
@pytest.mark.thinned(4)
def test_every_function_of_one_source(name, dtype, ctrl):
    bench = Bench(1, seed=21)
    fill(bench, dtype)
    bits = CTRL[ctrl] & ~SATURATE if name == "vnot" else CTRL[ctrl]
    Run(
        template(name, dtype, repeat=3),
        operands(dtype),
        lambda v: pack(unary(name, v["src"]), dtype, bits),
        Mask(low=0xFFFF_0FFF_FFFF_FFF1, ctrl=CTRL[ctrl]),
    ).check(bench)


HALVES = [n for n, dtypes in UNARY.items() if "float16" in dtypes]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("name", "ctrl"), crossed(HALVES, ["plain", "ieee"]))
def test_every_half(name, ctrl):
    """All 65536 codes, in four instructions."""
    for part in range(4):
        bench = Bench(1)
        codes = np.arange(part << 14, part + 1 << 14, dtype=np.uint16)
        bench.poke(Mem.UB, 0, codes.tobytes())
        Mask(ctrl=CTRL[ctrl]).set(bench)
        bench.do(template(name, "float16", repeat=128), 65536, 0)
        assert bench.messages == []
        got = bench.buffer(Mem.UB).data[65536 : 65536 + 32768].tobytes()
        values = struct.unpack("<16384e", codes.tobytes())
        for code, x in enumerate(values):
            result = got[2 * code : 2 * code + 2]
            wanted = pack_float(unary(name, x), "float16", CTRL[ctrl])
            same = result == wanted or all(
                math.isnan(struct.unpack("<e", raw)[0]) for raw in (result, wanted)
            )
            assert same, (hex((part << 14) + code), x, result, wanted)


@pytest.mark.parametrize("dtype", UNARY["vnot"])
def test_every_16_bit_word_inverted(dtype):
    for part in range(4):
        bench = Bench(1)
        codes = range(part << 14, part + 1 << 14)
        bench.poke(Mem.UB, 0, struct.pack("<16384H", *codes))
        bench.do(template("vnot", dtype, repeat=128), 65536, 0)
        assert bench.messages == []
        got = struct.unpack("<16384H", bench.buffer(Mem.UB).data[65536 : 65536 + 32768].tobytes())
        assert list(got) == [code ^ 0xFFFF for code in codes]


SCALARS = {
    "int16": (0, 1, -3, 32767, -32768),
    "int32": (0, 7, -1, 2**31 - 1, -(2**31)),
    "float16": (0.0, -0.0, 1.5, -2.25, 65504.0, INF, -INF, NAN),
    "float32": (0.0, -0.0, 0.1, -3e38, INF, -INF, NAN),
}


@pytest.mark.parametrize("ctrl", CTRL)
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in SCALAR.items() for d in ds])
@pytest.mark.thinned(6)
def test_every_function_of_a_source_and_a_scalar(name, dtype, ctrl):
    for y in SCALARS[dtype]:
        bench = Bench(1, seed=22)
        fill(bench, dtype)
        scalar = float(np.float32(y)) if dtype == "float32" else y
        Run(
            template(name, dtype, repeat=2, value=bits_of(y, element_type(dtype))),
            operands(dtype),
            lambda v, y=scalar: pack(with_scalar(name, v["src"], y), dtype, CTRL[ctrl]),
            Mask(high=5, ctrl=CTRL[ctrl]),
        ).check(bench)


def test_an_integer_scalar_may_be_negative_or_its_bits():
    for value in (-5, 2**16 - 5, 2**32 - 5):
        bench = Bench(1)
        fill(bench, "int16")
        Run(
            template("vadds", "int16", value=value),
            operands("int16"),
            lambda v: pack_integer(v["src"] - 5, "int16", False),
        ).check(bench)


def shifted(name: str, x: int, distance: int, rounds: bool) -> int:
    if name == "vshl":
        return x << distance
    exact = Fraction(x, 1 << distance)
    last = math.floor(exact * 2) % 2 if rounds and distance else 0
    return math.floor(exact) + last


@pytest.mark.parametrize("dtype", SHIFTED)
@pytest.mark.parametrize("name", ["vshl", "vshr"])
@pytest.mark.parametrize("ctrl", ["plain", "saturating"])
@pytest.mark.thinned(3)
def test_every_shift(name, dtype, ctrl):
    """Bits that leave the type are lost in every mode."""
    for distance in range(8 * size_of(dtype) + 1):
        for rounds in (False, True) if name == "vshr" and dtype[0] == "i" else (False,):
            bench = Bench(1, seed=23)
            fill(bench, dtype)
            Run(
                template(name, dtype, distance=distance, rounds=rounds),
                operands(dtype),
                lambda v, d=distance, r=rounds: pack_integer(
                    shifted(name, v["src"], d, r), dtype, False
                ),
                Mask(ctrl=CTRL[ctrl]),
            ).check(bench)


def test_the_documented_rounding_of_a_shift():
    """asc-devkit, asc_shiftright: 0b1010 and 0b1001, one place to the right, rounded."""
    bench = Bench(1)
    bench.poke(Mem.UB, 32, struct.pack("<16h", 0b1010, 0b1001, -1, *range(13)))
    Mask(low=7, high=0).set(bench)
    bench.do(template("vshr", "int16", distance=1, rounds=True), 0, 32)
    assert struct.unpack("<3h", bench.image(Mem.UB).get(0, 6)) == (0b0101, 0b0101, 0)


def violation(name: str, dtype: str, **parameters) -> list[str]:
    bench = Bench(1)
    fill(bench, dtype)
    bench.do(template(name, dtype, **parameters), 0, 4096)
    return bench.messages


def test_shifts_that_are_not_documented():
    assert violation("vshl", "int16", distance=17) == [
        "parameter: vshl.distance must be at most the 16 bits of int16, got 17"
    ]
    assert violation("vshr", "uint16", distance=1, rounds=True) == [
        "parameter: vshr.rounds must be clear but for vshr of a signed type, got vshr of uint16"
    ]
    assert violation("vshl", "int32", distance=1, rounds=True) == [
        "parameter: vshl.rounds must be clear but for vshr of a signed type, got vshl of int32"
    ]
    assert violation("vshl", "int32", distance=32) == []


STRIDES = [
    {"repeat": 0},
    {"repeat": 255},
    {"repeat": 3, "src_repeat_stride": 0},
    {"repeat": 3, "src_repeat_stride": 4},
    {"repeat": 2, "dst_block_stride": 2, "dst_repeat_stride": 16},
    {"repeat": 2, "src_block_stride": 0, "dst_block_stride": 300, "dst_repeat_stride": 9},
    {"repeat": 4, "dst_repeat_stride": 0},
]


@pytest.mark.parametrize("p", STRIDES, ids=str)
@pytest.mark.parametrize("dtype", HALF_FLOAT)
def test_strides(dtype, p):
    bench = Bench(1, seed=24)
    fill(bench, dtype)
    Run(
        template("vabs", dtype, **p),
        operands(dtype, **p),
        lambda v: pack(unary("vabs", v["src"]), dtype, 0),
    ).check(bench)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("name", ["vrelu", "vadds"])
def test_a_count(name, count):
    bench = Bench(1, seed=25)
    fill(bench, "float32")
    extra = {"value": bits_of(1.25, element_type("float32"))} if name == "vadds" else {}
    Run(
        template(name, "float32", repeat=99, **extra),
        operands("float32"),
        lambda v: pack(
            v["src"] + 1.25 if name == "vadds" else unary("vrelu", v["src"]), "float32", 0
        ),
        Mask(count=count),
    ).check(bench)


@pytest.mark.parametrize(
    "p", [{"repeat": 4}, {"repeat": 3, "dst_repeat_stride": 0, "src_repeat_stride": 0}], ids=str
)
def test_in_place(p):
    """With a zero stride each repeat starts from what the one before left."""
    bench = Bench(1, seed=26)
    later = "overlap: vadds.dst must not be src of a later repeat, got repeats 0 and 1"
    findings = [later] if "dst_repeat_stride" in p else []
    fill(bench, "float32")
    Run(
        template("vadds", "float32", value=bits_of(3.0, element_type("float32")), **p),
        operands("float32", dst=4096, src=4096, **p),
        lambda v: pack_float(v["src"] + 3.0, "float32", 0),
    ).check(bench, *findings)
