"""Instructions of two and three steps, against the same steps one by one on every lane."""

import math
import struct

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, spelled
from cubecore.isa.declare.instruction import Mem
from cubecore.numerics.conversion import bits_of
from isa.bench import Bench
from isa.lanes import (
    CODES,
    CTRL,
    IEEE,
    INF,
    LARGEST,
    NAN,
    SATURATE,
    Mask,
    Operand,
    Run,
    fill,
    pack_float,
    pack_integer,
    unpack,
)

FLOAT_PAIRS = (("float16", "float16"), ("float32", "float16"), ("float32", "float32"))
RELU_PAIRS = (
    *(("int16", "int16"), ("float16", "float16"), ("float32", "float32")),
    *(("int8", "int16"), ("int8", "float16"), ("float16", "float32")),
)
every_ctrl = pytest.mark.parametrize("ctrl", CTRL)


def rounded(value: float, dtype: str, ctrl: int) -> float:
    """A step's value in its type."""
    return unpack(dtype, pack_float(value, dtype, ctrl))


def multiply_add(x: float, y: float, z: float, dtype: str, ctrl: int) -> float:
    return rounded(rounded(x * y, dtype, ctrl) + z, dtype, ctrl)


def relu(x: float) -> float:
    return x if math.isnan(x) or x > 0 else 0.0


def nearest_int(value: float, dtype: str) -> bytes:
    """Ties to even; saturated; NaN is 0."""
    low, high = (-128, 127) if dtype == "int8" else (0, 255)
    if math.isnan(value):
        return b"\0"
    limited = min(max(value, -1000.0), 1000.0)
    return struct.pack("<" + CODES[dtype], min(max(round(limited), low), high))


def typed(name: str, dst: str, src: str, **parameters):
    return instruction_named(name)(
        dst_type=element_type(dst), src_type=element_type(src), **parameters
    )


def three(dst: str, src: str) -> dict[str, Operand]:
    return {
        "dst": Operand(0, dst, 1, 8),
        "src0": Operand(65536, src, 1, 9),
        "src1": Operand(131072, src, 2, 16),
    }


STRIDES = {"src0_repeat_stride": 9, "src1_block_stride": 2, "src1_repeat_stride": 16}


def filled(seed: int, *types: str) -> Bench:
    """dst's type in the first third of UB, the sources' in the rest."""
    bench = Bench(1, seed=seed)
    fill(bench, types[-1])
    fill(bench, types[0], 0, 32768 // struct.calcsize(CODES[types[0]]))
    return bench


@every_ctrl
@pytest.mark.parametrize(("dst", "src"), FLOAT_PAIRS)
@pytest.mark.parametrize("value", [1.5, -2.0, 65504.0, INF, NAN, 0.0, -0.0, 2.0**-14])
@pytest.mark.thinned(4)
def test_axpy(dst, src, value, ctrl):
    bits = CTRL[ctrl]
    Run(
        typed("vaxpy", dst, src, repeat=2, value=bits_of(value, element_type(src))),
        {"dst": Operand(0, dst), "src": Operand(65536, src)},
        lambda v: pack_float(
            multiply_add(v["src"], value, v["dst"], dst, CTRL[ctrl]), dst, CTRL[ctrl]
        ),
        Mask(high=3, ctrl=bits),
    ).check(filled(51, dst, src))


MULTIPLIES = [("vmla", *pair) for pair in FLOAT_PAIRS] + [
    (name, dtype, dtype) for name in ("vmadd", "vmaddrelu") for dtype in ("float16", "float32")
]


@every_ctrl
@pytest.mark.parametrize(("name", "dst", "src"), MULTIPLIES)
def test_multiply_and_add(name, dst, src, ctrl):
    bits = CTRL[ctrl]

    def lane(v: dict) -> bytes:
        x, y, z = (
            v[o] for o in (("src0", "src1", "dst") if name == "vmla" else ("src0", "dst", "src1"))
        )
        value = multiply_add(x, y, z, dst, bits)
        return pack_float(relu(value) if name == "vmaddrelu" else value, dst, bits)

    if name == "vmla":
        template = typed(name, dst, src, repeat=2, **STRIDES)
    else:
        template = instruction_named(name)(dtype=element_type(dst), repeat=2, **STRIDES)
    Run(template, three(dst, src), lane, Mask(ctrl=bits)).check(filled(52, dst, src))


@every_ctrl
@pytest.mark.parametrize(("dst", "src"), RELU_PAIRS)
@pytest.mark.parametrize("name", ["vaddrelu", "vsubrelu"])
def test_sums_with_relu(name, dst, src, ctrl):
    bits, sign = CTRL[ctrl], 1 if name == "vaddrelu" else -1

    def lane(v: dict) -> bytes:
        x, y = v["src0"], sign * v["src1"]
        if src == "int16":
            if dst == "int8":
                return pack_integer(max(x + y, 0), dst, True)
            total = unpack(src, pack_integer(x + y, src, bool(bits & SATURATE)))
            return pack_integer(max(total, 0), dst, True)
        total = relu(rounded(x + y, src, bits))
        if dst == "int8":
            return nearest_int(total, dst)
        return pack_float(0.0 if dst != src and math.isnan(total) else total, dst, bits)

    Run(typed(name, dst, src, repeat=2, **STRIDES), three(dst, src), lane, Mask(ctrl=bits)).check(
        filled(53, dst, src)
    )


@every_ctrl
@pytest.mark.parametrize("dst", ["int8", "uint8"])
def test_products_as_integers(dst, ctrl):
    ((kind, fixed),) = spelled(f"asc_mul_cast_half2{dst}")
    template = kind(src_type=element_type("float16"), repeat=2, **STRIDES, **fixed)
    Run(
        template,
        three(dst, "float16"),
        lambda v: nearest_int(rounded(v["src0"] * v["src1"], "float16", CTRL[ctrl]), dst),
        Mask(low=~6 & 2**64 - 1, ctrl=CTRL[ctrl]),
    ).check(filled(54, dst, "float16"))


@pytest.mark.parametrize("name", ["vaxpy", "vmla"])
def test_types_that_do_not_combine(name):
    bench = filled(55, "float32", "float32")
    addresses = (0, 65536) if name == "vaxpy" else (0, 65536, 131072)
    extra = {"value": 0} if name == "vaxpy" else {}
    bench.do(typed(name, "float16", "float32", **extra), *addresses)
    listed = "float16 from float16, float32 from float16, float32 from float32"
    assert bench.messages == [
        f"parameter: {name}: the types must be {listed}, got float16 from float32"
    ]


# --- asc-devkit, boundary values of Memory vector compute

MAX = LARGEST["float16"]
STEPS = [
    # x, y, z: x * y + z with infinities, and where half stays finite (tables 20 to 22)
    (0.0, 0.0, -0.0, 0.0, 0.0),
    (0.0, -0.0, -0.0, -0.0, -0.0),
    (MAX, MAX, 0.0, INF, MAX),
    (INF, INF, -INF, NAN, -MAX),
    (MAX, MAX, -INF, NAN, -MAX),
    (MAX, MAX, -MAX, INF, 0.0),
    (MAX, -MAX, MAX, -INF, 0.0),
    (MAX, -MAX, INF, NAN, MAX),
    (MAX, 1.0, MAX, INF, MAX),
    (-MAX, 1.0, -MAX, -INF, -MAX),
    (NAN, 1.0, MAX, NAN, MAX),
    (0.0, INF, -MAX, NAN, -MAX),
    (0.0, INF, NAN, NAN, 0.0),
]
"""Left out: the rows of a product -0 and an infinite addend, which the page keeps infinite where
half stays finite, against every other row."""


@pytest.mark.parametrize(("x", "y", "z", "ieee", "finite"), STEPS)
def test_documented_steps_of_a_product_and_a_sum(x, y, z, ieee, finite):
    for ctrl, wanted in ((IEEE, ieee), (0, finite)):
        for name, order in (("vmla", (z, x, y)), ("vmadd", (y, x, z))):
            bench = Bench(1)
            for place, value in enumerate(order):
                bench.poke(Mem.UB, 32 * place, struct.pack("<e", value))
            half = element_type("float16")
            types = {"dst_type": half, "src_type": half} if name == "vmla" else {"dtype": half}
            Mask(low=1, high=0, ctrl=ctrl).set(bench)
            bench.do(instruction_named(name)(**types), 0, 32, 64)
            got = struct.unpack("<e", bench.image(Mem.UB).get(0, 2))[0]
            if math.isnan(wanted):
                assert math.isnan(got)
            else:
                assert (got, math.copysign(1, got)) == (wanted, math.copysign(1, wanted))
