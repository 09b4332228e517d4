"""Comparisons into CMPMASK and into memory, against loops over lanes and bits."""

import math
import struct

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, spelled
from cubecore.isa.declare.instruction import Mem
from cubecore.numerics.conversion import bits_of
from isa.bench import ALL_ONES, Bench
from isa.lanes import CODES, FLOATS, INF, LARGEST, NAN, Mask, Operand, fill, size_of, unpack

RELATIONS = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y and not math.isnan(x) and not math.isnan(y),
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
"""asc-devkit, boundary values, tables 30 and 31: of NaN `not equal` is false too."""
every_relation = pytest.mark.parametrize("relation", RELATIONS)
TYPES = [(r, d) for r in RELATIONS for d in ("float16", "float32")] + [("eq", "int32")]
OLD = 0x0123_4567_89AB_CDEF_FEDC_BA98_7654_3210


def sources(dtype: str, seed: int, bench: Bench | None = None) -> Bench:
    """Numbers among which equals are common, and both zeros, infinities and NaN occur."""
    bench = bench or Bench(1, seed=seed)
    fill(bench, dtype)
    values = bench.rng.integers(-3, 4, 16384 // size_of(dtype)).astype(dtype)
    if dtype in FLOATS:
        values[::7], values[3::29], values[5::31], values[6::37] = -0.0, INF, NAN, -INF
    bench.poke(Mem.UB, 65536, values.tobytes())
    bench.poke(Mem.UB, 131072, values[::-1].tobytes())
    return bench


def load_old(bench: Bench) -> None:
    """Put a known pattern into CMPMASK."""
    bench.poke(Mem.UB, 4096, OLD.to_bytes(16, "little"))
    bench.do(instruction_named("set_cmpmask")(), 4096)


@pytest.mark.parametrize(
    "mask",
    [Mask(), Mask(low=0xF0F0_0000_1234_5678, high=3), Mask(count=5), Mask(count=1000)],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@every_relation
def test_to_the_register(relation, dtype, mask):
    """One repeat; bits of lanes that are off, or that the type has not, stay as they were."""
    bench = sources(dtype, 91)
    load_old(bench)
    before, width = bench.image(Mem.UB), 256 // size_of(dtype)
    wanted = OLD
    src0, src1 = Operand(65536, dtype, 2, 8), Operand(131072, dtype, 1, 8)
    for lane in range(width):
        if mask.on(0, lane, width):
            x, y = (
                unpack(dtype, before.get(o.byte(0, lane), size_of(dtype))) for o in (src0, src1)
            )
            wanted = wanted & ~(1 << lane) | RELATIONS[relation](x, y) << lane
    mask.set(bench)
    kind = instruction_named(f"vcmp_{relation}")
    bench.do(kind(dtype=element_type(dtype), repeat=0, src0_block_stride=2), 65536, 131072)
    bench.do(instruction_named("get_cmpmask")(), 8192 + 16)
    assert bench.messages == []
    before.put(8192 + 16, wanted.to_bytes(16, "little"))
    bench.check(Mem.UB, before)


STRIDES = [
    {},
    {"repeat": 0},
    {"repeat": 4},
    {"repeat": 3, "src0_block_stride": 2, "src0_repeat_stride": 17, "src1_repeat_stride": 0},
]


@pytest.mark.parametrize("p", STRIDES, ids=str)
@pytest.mark.parametrize(("relation", "dtype"), TYPES)
@pytest.mark.thinned(4)
def test_to_memory(relation, dtype, p):
    """Whatever the mask, in normal mode or as a count."""
    for mask in (Mask(low=2, high=0), Mask(count=3)):
        bench = sources(dtype, 92)
        expected, size = bench.image(Mem.UB), size_of(dtype)
        width = 256 // size
        src0 = Operand(65536, dtype, p.get("src0_block_stride", 1), p.get("src0_repeat_stride", 8))
        src1 = Operand(131072, dtype, 1, p.get("src1_repeat_stride", 8))
        for repeat in range(p.get("repeat", 1)):
            bits = 0
            for lane in range(width):
                x, y = (
                    unpack(dtype, expected.get(o.byte(repeat, lane), size)) for o in (src0, src1)
                )
                bits |= RELATIONS[relation](x, y) << lane
            expected.put(64 + repeat * width // 8, bits.to_bytes(width // 8, "little"))
        mask.set(bench)
        kind = instruction_named(f"vcmpv_{relation}")
        template = kind(dtype=element_type(dtype), dst_block_stride=7, dst_repeat_stride=9, **p)
        bench.do(template, 64, 65536, 131072)
        assert bench.messages == []
        bench.check(Mem.UB, expected)


SCALARS = {"float16": (1.0, -0.0, INF, NAN), "float32": (2.0, 0.0, NAN), "int32": (-1, 2)}


@pytest.mark.parametrize(
    ("relation", "dtype", "scalar"), [(r, d, s) for r, d in TYPES for s in SCALARS[d]]
)
def test_with_a_scalar(relation, dtype, scalar):
    bench = sources(dtype, 93)
    expected, size = bench.image(Mem.UB), size_of(dtype)
    width, src = 256 // size, Operand(65536, dtype, 3, 30)
    for repeat in range(2):
        bits = 0
        for lane in range(width):
            x = unpack(dtype, expected.get(src.byte(repeat, lane), size))
            bits |= RELATIONS[relation](x, scalar) << lane
        expected.put(repeat * width // 8, bits.to_bytes(width // 8, "little"))
    Mask(low=1, high=0).set(bench)
    element = element_type(dtype)
    strides = {"src_block_stride": 3, "src_repeat_stride": 30, "repeat": 2}
    kind = instruction_named(f"vcmpvs_{relation}")
    bench.do(kind(dtype=element, value=bits_of(scalar, element), **strides), 0, 65536)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


EDGES = ("MIN", "MAX", "0", "-0", "nan", "inf", "-inf")
TABLE_30 = {
    "eq": "1000000 0100000 0011000 0011000 0000000 0000010 0000001",
    "ge": "1000001 1111001 1011001 1011001 0000000 1111011 0000001",
    "gt": "0000001 1011001 1000001 1000001 0000000 1111001 0000000",
    "le": "1111010 0100010 0111010 0111010 0000000 0000010 1111011",
    "lt": "0111010 0000010 0100010 0100010 0000000 0000000 1111010",
    "ne": "0111011 1011011 1100011 1100011 0000000 1111001 1111010",
}
"""asc-devkit, boundary values, table 30: a row for src0, in it a digit for src1, both in the order
of EDGES."""


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@every_relation
def test_documented_edges(relation, dtype):
    most, code = LARGEST[dtype], CODES[dtype]
    values = {"MIN": -most, "MAX": most} | {t: float(t) for t in EDGES[2:]}
    for first, row in zip(EDGES, TABLE_30[relation].split(), strict=True):
        bench = Bench(1)
        lanes = 256 // size_of(dtype)
        others = [values[second] for second in EDGES] + [0.0] * (lanes - len(EDGES))
        bench.poke(Mem.UB, 4096, struct.pack(f"<{lanes}{code}", *[values[first]] * lanes))
        bench.poke(Mem.UB, 8192, struct.pack(f"<{lanes}{code}", *others))
        bench.do(instruction_named(f"vcmpv_{relation}")(dtype=element_type(dtype)), 0, 4096, 8192)
        bits = bench.image(Mem.UB).get(0, 1)[0]
        assert "".join(str(bits >> i & 1) for i in range(7)) == row, first


def test_the_documented_scalar_comparison():
    """asc-devkit, asc_eq_scalar: 1 to 128 against 20 set bit 3 of byte 2 alone."""
    bench = Bench(1)
    bench.poke(Mem.UB, 4096, struct.pack("<128e", *range(1, 129)))
    ((kind, _),) = spelled("asc_eq_scalar")
    half = element_type("float16")
    bench.do(kind(dtype=half, value=bits_of(20.0, half)), 0, 4096)
    assert bench.image(Mem.UB).get(0, 16) == bytes([0, 0, 8, *[0] * 13])


@every_relation
def test_a_name_of_the_c_api_is_two_instructions(relation):
    kinds = [kind.name for kind, _ in spelled(f"asc_{relation}")]
    assert kinds == [f"vcmp_{relation}", f"vcmpv_{relation}"]


def test_cmpmask_is_loaded_whole():
    bench = Bench(1)
    load_old(bench)
    assert bench.core.registers.cmp_mask == OLD
    bench.poke(Mem.UB, 4096, b"\xff" * 16)
    bench.do(instruction_named("set_cmpmask")(), 4096)
    assert bench.core.registers.cmp_mask == ALL_ONES | ALL_ONES << 64
