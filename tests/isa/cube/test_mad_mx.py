"""MX on architecture 3510: scales to L0, and products with a scale for each 32 of K."""

import struct

import ml_dtypes
import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.mad_mx import LoadCbufToCaMx, LoadCbufToCbMx, MadMx
from cubecore.isa.declare.instruction import Mem
from cubecore.workflows.explain import describe
from isa.bench import Bench
from parts import crossed

A5 = chip("Ascend950PR_9599")
LOADS = [(LoadCbufToCaMx, Mem.L0A_MX), (LoadCbufToCbMx, Mem.L0B_MX)]
STEPS = [
    {"x_step": 1, "y_step": 1, "src_stride": 1, "dst_stride": 1},
    {"x_step": 3, "y_step": 2, "src_stride": 2, "dst_stride": 2},
    {"x_step": 3, "y_step": 2, "src_stride": 5, "dst_stride": 3},
    {"x_step": 2, "y_step": 3, "src_stride": 4, "dst_stride": 3, "x_start_pos": 2},
    {"x_step": 2, "y_step": 1, "src_stride": 7, "dst_stride": 2, "x_start_pos": 1}
    | {"y_start_pos": 3},
    {"x_step": 0, "y_step": 4, "src_stride": 4, "dst_stride": 4},
    {"x_step": 4, "y_step": 0, "src_stride": 4, "dst_stride": 4},
]


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load[0].name)
@pytest.mark.parametrize("p", STEPS, ids=str)
def test_scales_to_l0(load, p):
    """Block (x, y) is at ((x_start + x) * src_stride + y_start + y) * 32 of the source."""
    kind, mem = load
    bench = Bench(seed=p["src_stride"], on=A5)
    bench.noise(Mem.L1, mem)
    source, expected = bench.image(Mem.L1), bench.image(mem)
    for x in range(p["x_step"]):
        for y in range(p["y_step"]):
            row = p.get("x_start_pos", 0) + x
            taken = 96 + (row * p["src_stride"] + p.get("y_start_pos", 0) + y) * 32
            expected.copy_from(source, taken, 64 + (x * p["dst_stride"] + y) * 32, 32)
    bench.do(kind(dst_at=64, **p), 96)
    assert bench.messages == []
    bench.check(mem, expected)


# the values of the codes of float4 by its fields: 1 sign, 2 exponent, 1 mantissa bit
FP4 = {"float4_e2m1fn": [0, 0.5, 1, 1.5, 2, 3, 4, 6]}
FP4["float4_e1m2"] = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]
FP8 = {
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
PAIRS = [(a, b) for a in FP4 for b in FP4]
PAIRS += [(a, b) for a in FP8 for b in FP8]
SHAPES = [(16, 64, 16), (17, 128, 20), (30, 192, 33), (1, 64, 5)]


def value(dtype: str, code: int) -> float:
    """What a code means."""
    if dtype in FP4:
        return float(FP4[dtype][code & 7] * (-1 if code >> 3 else 1))
    return float(np.array(code, np.uint8).view(FP8[dtype]))


def put(bench: Bench, mem: Mem, start: int, place: int, code: int, bits: int) -> None:
    """Store one code; of two in a byte the first is the low half."""
    at = start + place * bits // 8
    if bits == 4:
        old = bench.buffer(mem).data[at]
        code = int(old & 15) | code << 4 if place % 2 else int(old & 240) | code
    bench.poke(mem, at, bytes([code]))


def draw(bench: Bench, dtype: str, shape: tuple[int, int]) -> np.ndarray:
    """Codes of finite values."""
    if dtype in FP4:
        return bench.rng.integers(0, 16, shape)
    values = bench.rng.integers(-6, 7, shape).astype(FP8[dtype])
    return values.view(np.uint8).astype(np.int64)


def product_case(bench: Bench, left: str, right: str, shape: tuple[int, int, int]):
    """Draw and place A, B and their scales; return their values, scaled, as float64."""
    m, k, n = shape
    a, b = draw(bench, left, (m, k)), draw(bench, right, (k, n))
    sa = bench.rng.integers(120, 135, (m, k // 32))
    sb = bench.rng.integers(120, 135, (k // 32, n))
    bits = 4 if left in FP4 else 8
    c0, tall, wide = 256 // bits, -(-m // 16) * 16, -(-n // 16)
    for i in range(m):
        for j in range(k):
            at = j if m == 1 else (j // c0) * tall * c0 + i * c0 + j % c0
            put(bench, Mem.L0A, 1024, at, int(a[i, j]), bits)
    for i in range(k):
        for j in range(n):
            at = ((i // c0) * wide + j // 16) * 16 * c0 + (j % 16) * c0 + i % c0
            put(bench, Mem.L0B, 2048, at, int(b[i, j]), bits)
    fractals = -(-(k // 32) // 2)
    for s in range(k // 32):
        for i in range(m):
            at = ((i // 16) * fractals + s // 2) * 32 + (i % 16) * 2 + s % 2
            bench.poke(Mem.L0A_MX, 1024 // 16 + at, bytes([int(sa[i, s])]))
        for j in range(n):
            at = ((j // 16) * fractals + s // 2) * 32 + (j % 16) * 2 + s % 2
            bench.poke(Mem.L0B_MX, 2048 // 16 + at, bytes([int(sb[s, j])]))
    x = [[value(left, int(a[i, j])) * 2.0 ** (sa[i, j // 32] - 127) for j in range(k)]
         for i in range(m)]  # fmt: skip
    y = [[value(right, int(b[i, j])) * 2.0 ** (sb[i // 32, j] - 127) for j in range(n)]
         for i in range(k)]  # fmt: skip
    return x, y


@pytest.mark.parametrize(
    ("shape", "types", "start"), crossed(SHAPES, PAIRS, ["zero", "old", "bias"], every=5), ids=str
)
@pytest.mark.thinned(3)
def test_products_of_scaled_matrices(shape, types, start):
    """Small values and scales: every sum is exact, so that its order cannot matter."""
    (m, k, n), (left, right) = shape, types
    bench = Bench(seed=m + n, on=A5)
    bench.noise(Mem.L0C)
    x, y = product_case(bench, left, right, shape)
    tall = -(-m // 16) * 16
    places = {(i, j): ((j // 16) * tall * 16 + i * 16 + j % 16) * 4
              for i in range(m) for j in range(n)}  # fmt: skip
    old = bench.rng.integers(-99, 99, (m, n))
    bias = bench.rng.integers(-99, 99, n)
    for (i, j), at in places.items():
        bench.poke(Mem.L0C, at, struct.pack("<f", old[i, j]))
    bench.poke(Mem.BT, 0, struct.pack(f"<{n}f", *bias))
    expected = bench.image(Mem.L0C)
    for (i, j), at in places.items():
        total = {"zero": 0.0, "old": float(old[i, j]), "bias": float(bias[j])}[start]
        total += sum(x[i][p] * y[p][j] for p in range(k))
        expected.put(at, struct.pack("<f", np.float32(total)))
    types = {"a_type": element_type(left), "b_type": element_type(right)}
    p = {"c_matrix_init_val": start == "zero", "c_matrix_source": start == "bias"}
    addresses = (0, 1024, 2048, 0) if start == "bias" else (0, 1024, 2048)
    bench.do(MadMx(m=m, k=k, n=n, **types, **p), *addresses)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


def test_a_scale_of_255_is_nan():
    bench = Bench(on=A5)
    bench.noise(Mem.L0C)
    product_case(bench, "float4_e2m1fn", "float4_e2m1fn", (2, 64, 2))
    bench.poke(Mem.L0A_MX, 64 + 2, b"\xff")  # row 1, first scale
    kind = element_type("float4_e2m1fn")
    bench.do(MadMx(a_type=kind, b_type=kind, m=2, k=64, n=2), 0, 1024, 2048)
    assert bench.messages == []
    l0c = bench.image(Mem.L0C)
    found = [struct.unpack("<2f", l0c.get(64 * row, 8)) for row in range(2)]
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_4_and_8_bits_do_not_mix():
    bench = Bench(on=A5)
    p = {"a_type": element_type("float4_e2m1fn"), "b_type": element_type("float8_e5m2")}
    bench.do(MadMx(m=16, k=64, n=16, **p), 0, 0, 0)
    assert bench.messages == ["parameter: mad_mx.b_type must be of 4 bits, as a, got float8_e5m2"]


def test_8_bit_values_start_at_multiples_of_1024():
    bench = Bench(on=A5)
    for mem in (Mem.L0A, Mem.L0B, Mem.L0A_MX, Mem.L0B_MX):
        bench.poke(mem, 0, bytes(bench.buffer(mem).size_bytes))
    kind = element_type("float8_e5m2")
    bench.do(MadMx(a_type=kind, b_type=kind, m=16, k=64, n=16), 0, 512, 1024)
    assert bench.messages == [
        "misaligned: mad_mx.a must start at a multiple of 1024 B in L0A, got 512"
    ]


def test_its_page_names_one_layout_of_each_operand():
    lines = [line.split() for line in describe(MadMx).splitlines() if " aligned to " in line]
    layouts = {line[0]: line[line.index("aligned") - 1].rstrip(",") for line in lines}
    assert [line[0] for line in lines] == ["c", "a", "b", "bias", "scale_a", "scale_b"]
    assert {name: layouts[name] for name in "cab"} == {"c": "NZ", "a": "NZ", "b": "ZN"}
