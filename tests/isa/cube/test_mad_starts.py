"""Where C starts: from a tile of L0C that is an operand; C of half on Kirin."""

import struct
from fractions import Fraction

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import template_violations
from isa.bench import A2, Bench

X90, K9030 = chip("KirinX90"), chip("Kirin9030")
A2_TYPES = [("int8", "int32"), ("float16", "float32"), ("float32", "float32")]
INPUT = {"int8": (np.int8, 1), "float16": (np.float16, 2), "float32": (np.float32, 4)}


def mad(types, m, k, n, **more) -> Mad:
    inputs, result = map(element_type, types)
    return Mad(a_type=inputs, b_type=inputs, c_type=result, m=m, k=k, n=n, **more)


def fill(bench: Bench, types) -> None:
    """Small whole numbers everywhere, so that every sum is exact."""
    kind, size = INPUT[types[0]]
    for mem in (Mem.L0A, Mem.L0B):
        values = bench.rng.integers(-9, 10, 8192 // size).astype(kind)
        bench.poke(mem, 0, values.tobytes())
    result = element_type(types[1]).numpy
    bench.poke(Mem.L0C, 0, bench.rng.integers(-900, 900, 8192).astype(result).tobytes())


def by_hand(bench: Bench, types, shape, at: dict[str, int], on_start: bool):
    """Return L0C after a product that starts from the tile at at["start"]."""
    m, k, n = shape
    kind, size = INPUT[types[0]]
    code = {"int32": "i", "float32": "f", "float16": "e"}[types[1]]
    wide = struct.calcsize(code)
    c0, m1, n1 = 32 // size, -(-m // 16), -(-n // 16)
    a = np.frombuffer(bytes(bench.image(Mem.L0A).data), kind)
    b = np.frombuffer(bytes(bench.image(Mem.L0B).data), kind)
    before, after = bench.image(Mem.L0C), bench.image(Mem.L0C)
    for i in range(m):
        for j in range(n):
            total = Fraction(0)
            for x in range(k):
                of_a = (i // 16) * -(-k // c0) * 16 * c0 + (x // c0) * 16 * c0
                of_a = x if m == 1 else of_a + (i % 16) * c0 + x % c0
                of_b = ((x // c0) * n1 + j // 16) * 16 * c0 + (j % 16) * c0 + x % c0
                total += Fraction(float(a[of_a])) * Fraction(float(b[of_b]))
            place = ((j // 16) * m1 * 256 + (i // 16) * 256 + (i % 16) * 16 + j % 16) * wide
            if on_start:
                (start,) = struct.unpack("<" + code, before.get(at["start"] + place, wide))
                total += Fraction(start)
            value = int(total) if code == "i" else float(total)
            after.put(at["c"] + place, struct.pack("<" + code, value))
    return after


SHAPES = [(16, 32, 16), (20, 17, 33), (1, 24, 18), (3, 1, 3)]


@pytest.mark.parametrize("types", A2_TYPES, ids=lambda t: t[0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("start", [16384, 16384 + 128, 0])
@pytest.mark.thinned(4)
def test_a_product_that_starts_from_another_tile(types, shape, start):
    """At a multiple of 128 B; the tile may be C itself, which is an accumulation."""
    bench = Bench(seed=sum(shape))
    fill(bench, types)
    at = {"c": 0, "start": start}
    expected = by_hand(bench, types, shape, at, on_start=True)
    bench.do(mad(types, *shape, c_matrix_init_val=False, bias_in_l0c=True), 0, 0, 0, start)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


def test_the_tile_is_not_read_where_c_starts_from_zero_or_from_bias_table():
    for more, names in (
        ({"c_matrix_init_val": True}, "cab"),
        ({"c_matrix_init_val": False, "c_matrix_source": True}, ("c", "a", "b", "bias")),
        ({"c_matrix_init_val": False, "bias_in_c2": True}, ("c", "a", "b", "bias")),
        ({"c_matrix_init_val": False}, ("c", "a", "b", "start")),
    ):
        template = mad(A2_TYPES[1], 16, 16, 16, bias_in_l0c=True, **more)
        assert [o.name for o in template.operands()] == list(names)
        assert not template.operands()[0].access.reads


@pytest.mark.parametrize("off", [1, 64])
def test_the_tile_starts_at_a_multiple_of_128_bytes(off):
    bench = Bench()
    fill(bench, A2_TYPES[1])
    template = mad(A2_TYPES[1], 16, 16, 16, c_matrix_init_val=False, bias_in_l0c=True)
    bench.do(template, 0, 0, 0, 4096 + off)
    assert bench.messages == [
        f"misaligned: mad.start must start at a multiple of 128 B in L0C, got {4096 + off}"
    ]


def test_an_unwritten_tile_is_found():
    bench = Bench()
    for mem in (Mem.L0A, Mem.L0B):
        bench.poke(mem, 0, bytes(512))
    template = mad(A2_TYPES[1], 16, 16, 16, c_matrix_init_val=False, bias_in_l0c=True)
    bench.do(template, 0, 0, 0, 8192)
    assert bench.messages == [
        "uninitialised: mad.start must be initialised in L0C, got 256 of 256 elements never "
        "written, first m 0, n 0"
    ]


# --- Kirin: half in L0C

HALVES = ("float16", "float16")


@pytest.mark.parametrize("on", [X90, K9030], ids=lambda c: c.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_half_times_half_is_half_on_kirin(on, shape):
    bench = Bench(seed=sum(shape), on=on)
    fill(bench, HALVES)
    expected = by_hand(bench, HALVES, shape, {"c": 512}, on_start=False)
    bench.do(mad(HALVES, *shape), 512, 0, 0)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


@pytest.mark.parametrize("on", [X90, K9030], ids=lambda c: c.name)
def test_a_half_tile_accumulates_with_one_rounding(on):
    """2048 + 1 is a tie that goes to the even neighbour; 2048 + 3 goes to 2052."""
    for added, result in ((1.0, 2048.0), (3.0, 2052.0), (65504.0, float("inf"))):
        bench = Bench(on=on)
        bench.poke(Mem.L0A, 0, np.float16(added).tobytes())
        bench.poke(Mem.L0B, 0, np.float16(1).tobytes())
        bench.poke(Mem.L0C, 0, np.float16(2048).tobytes())
        bench.do(mad(HALVES, 1, 1, 1, c_matrix_init_val=False), 0, 0, 0)
        assert bench.messages == []
        assert np.frombuffer(bench.image(Mem.L0C).get(0, 2), np.float16)[0] == result


@pytest.mark.parametrize("types", [("int8", "int32"), HALVES], ids=lambda t: t[0])
def test_x90_starts_from_the_bias_row(types):
    bench = Bench(on=X90)
    fill(bench, types)
    kind = element_type(types[1]).numpy
    bench.poke(Mem.BT, 128, np.arange(16).astype(kind).tobytes())
    plain = by_hand(bench, types, (2, 5, 16), {"c": 0}, on_start=False)
    bench.do(mad(types, 2, 5, 16, c_matrix_init_val=False, bias_in_c2=True), *(0, 0, 0, 128))
    assert bench.messages == []
    got = bench.buffer(Mem.L0C).data.view(kind)[:32].astype(float)
    without = np.frombuffer(bytes(plain.data), kind)[:32].astype(float)
    assert (got - without).tolist() == [*range(16), *range(16)]


C_OFF = [(A2, ("float16", "float32"), 1024), (X90, HALVES, 512), (K9030, HALVES, 512)]


@pytest.mark.parametrize(("on", "types", "unit"), C_OFF, ids=lambda v: getattr(v, "name", None))
def test_c_starts_at_a_multiple_of_256_elements(on, types, unit):
    """Seed 002, table 2: 1024 B of 32-bit elements, 512 B of half."""
    bench = Bench(on=on)
    fill(bench, types)
    bench.do(mad(types, 16, 16, 16), unit, 0, 0)
    assert bench.messages == []
    bench.do(mad(types, 16, 16, 16), unit // 2, 0, 0)
    assert bench.messages == [
        f"misaligned: mad.c must start at a multiple of {unit} B in L0C, got {unit // 2}"
    ]


def refusals(template: Mad, on) -> list[str]:
    return [str(v) for v in template_violations(template, on)]


BIASED = {"c_matrix_init_val": False}


@pytest.mark.parametrize(
    ("on", "template", "line"),
    [
        (
            K9030,
            mad(HALVES, 16, 16, 16, bias_in_c2=True, **BIASED),
            "mad must take no bias for float16 x float16 (Mmad, table of products), got one",
        ),
        (
            K9030,
            mad(HALVES, 16, 16, 16, bias_in_l0c=True, **BIASED),
            "mad must take no bias for float16 x float16 (Mmad, table of products), got one",
        ),
        (
            A2,
            mad(("int4", "int32"), 16, 16, 16, bias_in_l0c=True, **BIASED),
            "mad must take no bias for int4 x int4 (Mmad, table 5), got one",
        ),
        (
            K9030,
            mad(("int8", "int32"), 16, 16, 16),
            "mad must multiply one of float16 x float16 -> float16 on Kirin9030, "
            "got int8 x int8 -> int32",
        ),
        (
            X90,
            mad(("float16", "float32"), 16, 16, 16),
            "mad must multiply one of int8 x int8 -> int32, float16 x float16 -> float16 on "
            "KirinX90, got float16 x float16 -> float32",
        ),
        (X90, mad(HALVES, 16, 16, 16, unit_flag=3), "mad.unit_flag must be 0 on KirinX90, got 3"),
        (
            K9030,
            mad(HALVES, 16, 16, 16, unit_flag=2),
            "mad.unit_flag must be 0 on Kirin9030, got 2",
        ),
    ],
)
def test_what_a_chip_does_not_have(on, template, line):
    assert refusals(template, on) == [line]
