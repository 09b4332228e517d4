"""What differs on architecture 3510: the left matrix is NZ in L0A, and 8-bit floats multiply."""

import struct

import ml_dtypes
import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.fixpipe_3510 import CopyMatrixCcToCbufV2, CopyMatrixCcToGmV2
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import LoadCbufToCb, LoadCbufToCbTranspose
from cubecore.isa.program.check import template_violations
from cubecore.isa.scalar.caches import Dcci
from cubecore.isa.scalar.control_registers import SetFp8Mode
from isa.bench import A2, Bench
from test_codes import INFINITE, NAN, hifloat8

A5 = chip("Ascend950PR_9599")
FLOATS = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
PAIRS = [(t, t) for t in FLOATS] + [("int8", "int8")]
PAIRS += [("float8_e4m3fn", "float8_e5m2"), ("float8_e5m2", "float8_e4m3fn")]
SHAPES = [(16, 64, 16), (17, 33, 40), (40, 70, 30), (1, 48, 20), (2, 5, 3)]


def place_a(bench: Bench, a: np.ndarray, size: int, *, gemv: bool = True) -> None:
    """NZ: fractals of 16 x C0 column by column, elements row by row; a row as it is for GEMV."""
    m, k = a.shape
    c0, tall = 32 // size, -(-m // 16) * 16
    for i in range(m):
        for j in range(k):
            at = j if m == 1 and gemv else (j // c0) * tall * c0 + i * c0 + j % c0
            bench.poke(Mem.L0A, at * size, a[i, j].tobytes())


def place_b(bench: Bench, b: np.ndarray, size: int) -> None:
    """ZN: fractals of C0 x 16 row by row, elements column by column."""
    k, n = b.shape
    c0, wide = 32 // size, -(-n // 16)
    for i in range(k):
        for j in range(n):
            at = ((i // c0) * wide + j // 16) * 16 * c0 + (j % 16) * c0 + i % c0
            bench.poke(Mem.L0B, at * size, b[i, j].tobytes())


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.thinned(4)
def test_products_with_a_as_nz(left, right, shape):
    m, k, n = shape
    bench = Bench(seed=m, on=A5)
    bench.noise(Mem.L0C)
    a = bench.rng.integers(-4, 5, (m, k)).astype(FLOATS.get(left, np.int8))
    b = bench.rng.integers(-4, 5, (k, n)).astype(FLOATS.get(right, np.int8))
    place_a(bench, a, a.itemsize)
    place_b(bench, b, b.itemsize)
    expected = bench.image(Mem.L0C)
    code, result = ("<i", "int32") if left == "int8" else ("<f", "float32")
    tall = -(-m // 16) * 16
    for i in range(m):
        for j in range(n):
            total = sum(int(a[i, x]) * int(b[x, j]) for x in range(k))
            at = ((j // 16) * tall * 16 + i * 16 + j % 16) * 4
            expected.put(at, struct.pack(code, total))
    types = (element_type(t) for t in (left, right, result))
    named = dict(zip(("a_type", "b_type", "c_type"), types, strict=True))
    bench.do(Mad(m=m, k=k, n=n, a_layout="NZ", **named), 0, 0, 0)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


@pytest.mark.parametrize("off", [False, True])
def test_one_row_is_a_vector_unless_gemv_is_off(off):
    bench = Bench(on=A5)
    bench.noise(Mem.L0A, written=True)
    a, b = (bench.rng.integers(-4, 5, s).astype(np.float16) for s in ((1, 40), (40, 20)))
    place_a(bench, a, 2, gemv=not off)
    place_b(bench, b, 2)
    bench.do(product(m=1, k=40, n=20, a_layout="NZ", disable_gemv=off), 0, 0, 0)
    assert bench.messages == []
    l0c = bench.image(Mem.L0C)
    found = [struct.unpack("<f", l0c.get((j // 16 * 256 + j % 16) * 4, 4))[0] for j in range(20)]
    assert found == [sum(int(a[0, x]) * int(b[x, j]) for x in range(40)) for j in range(20)]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_code_of_an_8_bit_float(dtype):
    """All 256 codes times one: their values by the format's own fields, NaN and infinity too."""
    wide, bias = (3, 7) if dtype == "float8_e4m3fn" else (2, 15)
    bench = Bench(on=A5)
    bench.poke(Mem.L0A, 0, bytes(8192))
    for code in range(256):  # row `code`, column 0 of NZ
        bench.poke(Mem.L0A, code * 32, bytes([code]))
    bench.poke(Mem.L0B, 0, bytes(512))
    bench.poke(Mem.L0B, 0, FLOATS[dtype].type(1).tobytes())
    kind, word = element_type(dtype), element_type("float32")
    bench.do(SetFp8Mode())  # changes nothing
    bench.do(Mad(a_type=kind, b_type=kind, c_type=word, m=256, k=1, n=1, a_layout="NZ"), 0, 0, 0)
    assert bench.messages == []
    l0c = bench.image(Mem.L0C)
    for code in range(256):
        (found,) = struct.unpack("<f", l0c.get(code * 64, 4))
        exponent, fraction = code >> wide & (1 << 7 - wide) - 1, code & (1 << wide) - 1
        top = (1 << 7 - wide) - 1
        if exponent == top and (wide == 2 or fraction == 7):
            wanted = np.inf if wide == 2 and not fraction else np.nan
        elif exponent:
            wanted = (1 + fraction / 2**wide) * 2.0 ** (exponent - bias)
        else:
            wanted = fraction / 2**wide * 2.0 ** (1 - bias)
        wanted = -wanted if code >> 7 else wanted
        assert found == wanted or (np.isnan(found) and np.isnan(wanted)), code


@pytest.mark.parametrize("side", ["a", "b"])
def test_every_code_of_hifloat8(side):
    """All 256 codes times one; the numbers are put together from exponents and mantissas."""
    bench, kind = Bench(on=A5), element_type("hifloat8")
    sizes = {"m": 256, "n": 1} if side == "a" else {"m": 2, "n": 256}
    for mem in (Mem.L0A, Mem.L0B):
        bench.poke(mem, 0, bytes(8192))
    for code in range(256):  # K is 1: the first of each row of 32 B
        bench.poke(Mem.L0A if side == "a" else Mem.L0B, code * 32, bytes([code]))
    bench.poke(Mem.L0B if side == "a" else Mem.L0A, 0, bytes([0b0_0001_000]))
    p = {"a_type": kind, "b_type": kind, "c_type": element_type("float32")}
    bench.do(Mad(k=1, a_layout="NZ", **p, **sizes), 0, 0, 0)
    assert bench.messages == []
    l0c, wanted = bench.image(Mem.L0C), hifloat8()
    wanted |= {INFINITE: float("inf"), 0x80 | INFINITE: -float("inf"), NAN: float("nan")}
    for code in range(256):
        at = code * 64 if side == "a" else (code // 16 * 256 + code % 16) * 4
        (found,) = struct.unpack("<f", l0c.get(at, 4))
        value = float(wanted[code])
        assert found == value or (np.isnan(found) and np.isnan(value)), code


SMALL = {"float8_e4m3fn": 8, "float8_e5m2": 8, "hifloat8": 8, "float4_e2m1fn": 4, "float4_e1m2": 4}


@pytest.mark.parametrize("dtype", SMALL)
def test_squares_of_small_floats_are_transposed_to_l0b(dtype):
    """Element (r, c) of a square of C0 x C0 becomes (c, r), in fractals of 16 rows."""
    bits, kind = SMALL[dtype], element_type(dtype)
    c0 = 256 // bits
    bench = Bench(seed=bits, on=A5)
    bench.noise(Mem.L1, written=True)
    bench.poke(Mem.L0B, 0, bytes(8192))
    source, expected = bench.image(Mem.L1), bench.image(Mem.L0B)

    def code(place):
        byte = source.get(512 + place * bits // 8, 1)[0]
        return byte if bits == 8 else byte >> place % 2 * 4 & 15

    for square in range(2):
        found = [
            code((square * c0 + r) * c0 + c) for c in range(c0) for r in range(c0)
        ]  # row c of L0B: fractal c // 16, row c % 16
        data = (
            found
            if bits == 8
            else [x | y << 4 for x, y in zip(found[::2], found[1::2], strict=True)]
        )
        expected.put(1024 + square * c0 * 32, bytes(data))
    gap = {"dst_gap": c0 // 16 - 1}
    bench.do(LoadCbufToCbTranspose(dtype=kind, repeat=2, **gap), 1024, 512)
    assert bench.messages == []
    bench.check(Mem.L0B, expected)


def test_small_floats_are_not_transposed_on_2201():
    bench = Bench()
    bench.do(LoadCbufToCbTranspose(dtype=element_type("hifloat8"), repeat=1), 0, 0)
    assert bench.messages == [
        "parameter: load_cbuf_to_cb_transpose.dtype must be one of int4, int8, uint8, float16, "
        "bfloat16, int16, uint16, float32, int32, uint32 on Ascend910B3, got hifloat8"
    ]


def product(**changes):
    half, word = element_type("float16"), element_type("float32")
    p = {"a_type": half, "b_type": half, "c_type": word, "m": 16, "k": 16, "n": 16} | changes
    return Mad(**p)


def store(kind=CopyMatrixCcToGm, **changes):
    p = {"src_type": element_type("float32"), "n_size": 16, "m_size": 16, "src_stride": 16}
    return kind(**(p | {"dst_stride": 16} | changes))


@pytest.mark.parametrize(
    ("template", "on", "line"),
    [
        (product(), A5, "mad.a_layout must be NZ on Ascend950PR_9599, got ZZ"),
        (product(a_layout="NZ"), A2, "mad.a_layout must be ZZ on Ascend910B3, got NZ"),
        (product(a_layout="NZ"), A5, None),
        (
            product(
                hf32="nearest_even",
                a_layout="NZ",
                a_type=element_type("float32"),
                b_type=element_type("float32"),
            ),
            A5,
            "mad.hf32 must be off or nearest_even_10 or toward_zero_10 on Ascend950PR_9599, got "
            "nearest_even",
        ),
        (product(disable_gemv=True), A2, "mad.disable_gemv must be off on Ascend910B3, got on"),
        (
            product(a_type=element_type("float8_e5m2"), b_type=element_type("float8_e5m2")),
            A2,
            "mad must multiply one of int8 x int8 -> int32, float16 x float16 -> float32, "
            "float32 x float32 -> float32, bfloat16 x bfloat16 -> float32, int4 x int4 -> int32 "
            "on Ascend910B3, got float8_e5m2 x float8_e5m2 -> float32",
        ),
        (
            store(),
            A5,
            "copy_matrix_cc_to_gm must run on architecture 2201 or 3003 or 3113, got 3510",
        ),
        (
            store(CopyMatrixCcToGmV2),
            A2,
            "copy_matrix_cc_to_gm_v2 must run on architecture 3510, got 2201",
        ),
        (store(CopyMatrixCcToGmV2), A5, None),
        (store(CopyMatrixCcToGmV2, nz2nd_en=True), A5, None),
        (store(CopyMatrixCcToGmV2, src_type=element_type("int32"), quant_pre="REQ8"), A5, None),
        (
            store(CopyMatrixCcToGmV2, broadcast_en=2),
            A5,
            "copy_matrix_cc_to_gm_v2.broadcast_en must be in [0, 1], got 2",
        ),
        (
            store(CopyMatrixCcToGmV2, nz2dn_en=True, nz2nd_en=True),
            A5,
            "copy_matrix_cc_to_gm_v2.nz2dn_en must be off with nz2nd_en, got on",
        ),
        (
            store(CopyMatrixCcToGmV2, nz2dn_en=True, unit_flag=3, row_stride=2),
            A5,
            "copy_matrix_cc_to_gm_v2.nz2dn_en must have a row_stride of 1 with unit_flag, got on",
        ),
        (
            store(CopyMatrixCcToGmV2, nz2dn_en=True, m_size=15),
            A5,
            "copy_matrix_cc_to_gm_v2.m_size must fill whole blocks of 32 B, got 60 B",
        ),
        (
            store(CopyMatrixCcToCbufV2, nz2nd_en=True, n_size=13),
            A5,
            "copy_matrix_cc_to_cbuf_v2.n_size must fill whole blocks of 32 B, got 52 B",
        ),
        (store(CopyMatrixCcToCbufV2, nz2dn_en=True, row_stride=1), A5, None),
        (LoadCbufToCb(repeat=1), A5, None),
        (Dcci(lines="entire", where="ub"), A2, None),
        (Dcci(lines="single", where="ub"), A5, None),
        (
            Dcci(lines="entire", where="ub"),
            A5,
            "dcci.where must not be ub for all lines on Ascend950PR_9599, got ub",
        ),
    ],
)
def test_facts_of_the_architectures(template, on, line):
    found = [str(v) for v in template_violations(template, on)]
    assert found == ([] if line is None else [line])
