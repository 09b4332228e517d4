"""int4: packed operands through loads and `mad`, against loops over nibbles."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import (
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from isa.bench import Bench, Image

INT4, INT32 = element_type("int4"), element_type("int32")
C0 = 64


def nibble(image: Image, number: int) -> int:
    """The number-th 4-bit integer from the start: the low half of a byte is the first."""
    code = image.data[number // 2] >> 4 * (number % 2) & 15
    return code - 16 if code > 7 else code


def put_nibble(image: Image, number: int, code: int, valid: int) -> None:
    byte, shift = number // 2, 4 * (number % 2)
    image.data[byte] = image.data[byte] & ~(15 << shift) | code << shift
    # whole bytes are written: the second half of one is known only if the first one was
    image.valid[byte] = valid if shift == 0 else image.valid[byte] & valid


def up(value: int, unit: int) -> int:
    return -(-value // unit)


def mad(m, k, n, **more) -> Mad:
    return Mad(a_type=INT4, b_type=INT4, c_type=INT32, m=m, k=k, n=n, **more)


def by_hand(bench: Bench, m: int, k: int, n: int, *, accumulate: bool) -> Image:
    """ZZ of 16 x 64 fractals, ZN of 64 x 16 fractals, NZ of 16 x 16; one row is a vector."""
    l0a, l0b, l0c = (bench.image(mem) for mem in (Mem.L0A, Mem.L0B, Mem.L0C))
    after = bench.image(Mem.L0C)
    for i in range(m):
        for j in range(n):
            at = ((j // 16) * up(m, 16) * 256 + (i // 16) * 256 + (i % 16) * 16 + j % 16) * 4
            total = int.from_bytes(l0c.get(at, 4), "little", signed=True) if accumulate else 0
            for x in range(k):
                of_a = ((i // 16) * up(k, C0) + x // C0) * 1024 + (i % 16) * C0 + x % C0
                of_b = ((x // C0) * up(n, 16) + j // 16) * 1024 + (j % 16) * C0 + x % C0
                total += nibble(l0a, x if m == 1 else of_a) * nibble(l0b, of_b)
            clamped = max(min(total, 2**31 - 1), -(2**31))
            after.put(at, clamped.to_bytes(4, "little", signed=True))
    return after


SHAPES = [
    (16, 64, 16),
    (17, 65, 17),
    (5, 130, 33),
    (1, 70, 20),
    (1, 129, 3),
    (33, 1, 1),
    (2, 63, 2),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
def test_mad_of_int4(shape, accumulate):
    bench = Bench(seed=sum(shape))
    bench.noise(Mem.L0A, Mem.L0B, Mem.L0C, written=True)
    expected = by_hand(bench, *shape, accumulate=accumulate)
    bench.do(mad(*shape, c_matrix_init_val=not accumulate), 0, 0, 0)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


def test_the_largest_int4_product_is_exact():
    bench = Bench()
    for mem in (Mem.L0A, Mem.L0B):
        bench.poke(mem, 0, bytes([0x88]) * 65536)
    bench.do(mad(16, 4095, 16), 0, 0, 0)
    assert bench.messages == []
    assert bench.image(Mem.L0C).get(0, 4) == (4095 * 64).to_bytes(4, "little")


def test_one_unwritten_byte_of_a_is_two_unwritten_elements():
    bench = Bench()
    bench.poke(Mem.L0A, 0, bytes(512))
    bench.poke(Mem.L0B, 0, bytes(512))
    bench.buffer(Mem.L0A).valid[33] = 0
    bench.do(mad(16, 64, 16), 0, 0, 0)
    assert bench.messages == [
        "uninitialised: mad.a must be initialised in L0A, got 2 of 1024 elements never written, "
        "first m 1, k 2"
    ]


def test_int4_takes_no_bias():
    bench = Bench()
    bench.do(mad(16, 64, 16, c_matrix_init_val=False, c_matrix_source=True), 0, 0, 0, 0)
    assert bench.messages == [
        "parameter: mad must take no bias for int4 x int4 (Mmad, table 5), got one"
    ]


# --- loads


@pytest.mark.parametrize(("load", "sink"), [(LoadCbufToCa, Mem.L0A), (LoadCbufToCb, Mem.L0B)])
def test_fractals_of_int4_move_as_bytes(load, sink):
    bench = Bench()
    bench.noise(Mem.L1, sink)
    source, expected = bench.image(Mem.L1), bench.image(sink)
    for r in range(3):
        expected.copy_from(source, (1 + 2 * r) * 512, r * 512, 512)
    bench.do(load(repeat=3, start_index=1, src_stride=2), 0, 0)
    assert bench.messages == []
    bench.check(sink, expected)


SQUARES = [
    {"repeat": 1},
    {"repeat": 3, "dst_gap": 3},
    {"repeat": 2, "dst_gap": 5, "index_id": 2},
    {"repeat": 3, "dst_gap": 0, "dst_frac_gap": 2},
    {"repeat": 2, "dst_gap": 7, "dst_frac_gap": 1, "src_stride": 2},
    {"repeat": 3, "dst_gap": 3, "index_id": 2, "decrement": True},
    {"repeat": 2, "dst_gap": 3, "src_stride": 0},
    {"repeat": 0},
]


@pytest.mark.parametrize("p", SQUARES, ids=str)
def test_transposed_squares_of_int4(p):
    """Four fractals of 16 x 64 are a square of 64 x 64, turned and cut into four again."""
    bench = Bench(seed=p["repeat"])
    bench.noise(Mem.L1, Mem.L0B)
    source, expected = bench.image(Mem.L1), bench.image(Mem.L0B)
    there, here = 96, 1024
    step = p.get("src_stride", 1) * (-1 if p.get("decrement") else 1)
    for r in range(p["repeat"]):
        square = there * 2 + (p.get("index_id", 0) + r * step) * 4096
        for row in range(64):
            for column in range(64):  # of the result
                taken = square + column * 64 + row
                part = row // 16 * (p.get("dst_frac_gap", 0) + 1)
                fractal = r * (p.get("dst_gap", 0) + 1) + part
                code, known = nibble(source, taken) & 15, source.valid[taken // 2]
                to = here * 2 + fractal * 1024 + (row % 16) * 64 + column
                put_nibble(expected, to, code, known)
    bench.do(LoadCbufToCbTranspose(dtype=INT4, **p), here, there)
    assert bench.messages == []
    bench.check(Mem.L0B, expected)


def test_a_transposing_load_of_int4_into_l0a_is_refused():
    bench = Bench()
    bench.do(LoadCbufToCaTranspose(dtype=INT4, repeat=1), 0, 0)
    assert bench.messages == [
        "parameter: load_cbuf_to_ca_transpose.dtype must be one of int8, uint8, float16, bfloat16, "
        "int16, uint16, float32, int32, uint32, got int4"
    ]


@pytest.mark.parametrize("trans_b", [False, True])
def test_a_product_of_int4_from_l1(trans_b):
    """A as [m, k] in NZ; B as [n, k] in NZ, or as [k, n] through transposing loads."""
    m, k, n = 20, 128, 64
    bench = Bench(seed=1)
    a, b = bench.rng.integers(-8, 8, (m, k)), bench.rng.integers(-8, 8, (k, n))
    poke_nz(bench, 0, a)
    poke_nz(bench, 1 << 17, b if trans_b else b.T)
    for i in range(up(m, 16)):
        load = LoadCbufToCa(repeat=k // C0, src_stride=up(m, 16))
        bench.do(load, i * (k // C0) * 512, i * 512)
    if trans_b:  # squares down the column of fractals: one for each 64 of K
        square = LoadCbufToCbTranspose(dtype=INT4, repeat=k // 64, dst_gap=n // 16 - 1)
        bench.do(square, 0, 1 << 17)
    else:
        bench.do(LoadCbufToCb(repeat=(k // C0) * (n // 16)), 0, 1 << 17)
    bench.do(mad(m, k, n), 0, 0, 0)
    assert bench.messages == []
    flat = bench.buffer(Mem.L0C).data.view(np.int32)
    for i in range(m):
        for j in range(n):
            at = (j // 16) * up(m, 16) * 256 + (i // 16) * 256 + (i % 16) * 16 + j % 16
            assert flat[at] == int(a[i] @ b[:, j])


def poke_nz(bench: Bench, at: int, matrix: np.ndarray) -> None:
    """Lay a matrix out as NZ in L1, padding zero."""
    rows, columns = matrix.shape
    image = Image(bytearray(up(rows, 16) * 16 * up(columns, C0) * 32), bytearray(1 << 20))
    for i in range(rows):
        for j in range(columns):
            place = (j // C0) * up(rows, 16) * 1024 + i * C0 + j % C0
            put_nibble(image, place, int(matrix[i, j]) & 15, 1)
    bench.poke(Mem.L1, at, bytes(image.data))
