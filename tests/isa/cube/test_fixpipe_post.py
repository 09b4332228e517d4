"""Fixpipe's second conversion, broadcast and hybrid rounding on 3510, against plain Python."""

import struct
from fractions import Fraction

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe_3510 import CopyMatrixCcToCbufV2, CopyMatrixCcToGmV2, SetReluAlpha
from cubecore.isa.cube.fixpipe_post import SetQuantPost
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetQuantPre
from cubecore.isa.scalar.control_registers import SetCtrl
from isa.bench import Bench
from isa.vector.registers.test_casts import hybrid

A5 = chip("Ascend950PR_9599")
M, N = 5, 64
KINDS = [(CopyMatrixCcToGmV2, Mem.GM), (CopyMatrixCcToCbufV2, Mem.L1)]
BITS = {"QF162S4_POST": 4, "QF162B8_POST": 8, "QF162S16_POST": 16}
WIDTHS = {4: 64, 8: 32, 16: 16}


def word_of(factor: float, offset: int, bits: int, *, signed: bool) -> int:
    """QUANT_POST: 19 bits of the factor, an offset of one bit more than the result, the sign."""
    word = struct.unpack("<I", struct.pack("<f", factor))[0] & 0xFFFFE000
    if bits == 4:
        return word | offset & 0x1F
    if bits == 8:
        return word | offset & 0x1FF | signed << 9
    return word | offset & 0x1FF | (offset >> 9 & 0xFF) << 32


def made(value: float, factor: float, offset: int, bits: int, *, signed: bool, relu: int) -> int:
    """ReLU, the product to nearest even, one bit more, the offset, the result's bits."""
    value *= (1, 0, 0.25)[relu] if value < 0 else 1
    whole = round(Fraction(value) * Fraction(factor))
    whole = min(max(whole, -(1 << bits)), (1 << bits) - 1) + offset
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(whole, low), high) & (1 << bits) - 1


def run(bench: Bench, kind, mem, values, **params):
    """Run a fixpipe on values in L0C, to byte 32 of a memory."""
    for i, j in np.ndindex(*values.shape):
        bench.poke(Mem.L0C, (j // 16 * 16 + i) * 64 + j % 16 * 4, values[i, j].tobytes())
    shape = {"m_size": values.shape[0], "n_size": values.shape[1], "src_stride": 16}
    template = kind(src_type=element_type(values.dtype.name), **shape | params)
    bench.do(template, (bench.base if mem is Mem.GM else 0) + 32, 0)


@pytest.mark.parametrize("relu", [0, 1, 2])
@pytest.mark.parametrize("nz", [False, True])
@pytest.mark.parametrize("mode", BITS)
@pytest.mark.parametrize(("kind", "mem"), KINDS)
def test_second_conversion(kind, mem, mode, nz, relu):
    """Halves times the factor, rounded and clamped; 4-bit results two to a byte."""
    bits = BITS[mode]
    signed = bits != 8 or nz
    factor, offset = -3.140625 if relu else 0.4375, (-300 if bits == 16 else -3)
    bench = Bench(seed=bits, gm_bytes=8192, on=A5)
    values = (bench.rng.integers(-4000, 4000, (M, N)) / 8).astype(np.float32)
    values[0, :4] = [60000, -60000, 0.5, -0.5]
    bench.do(SetCtrl(value=0))
    bench.do(SetReluAlpha(config=0x3E800000 << 32))
    bench.do(SetQuantPost(config=word_of(factor, offset, bits, signed=signed)))
    bench.noise(mem)
    expected = bench.image(mem)
    bits_of_all = {}
    for i, j in np.ndindex(M, N):
        wide = WIDTHS[bits]
        place = j // wide * 640 + i * wide + j % wide if nz else i * 96 + j
        half = float(np.float16(values[i, j]))
        bits_of_all[place] = made(half, factor, offset, bits, signed=signed, relu=relu)
    for place, code in bits_of_all.items():
        if bits >= 8:
            expected.put(32 + place * bits // 8, code.to_bytes(bits // 8, "little"))
        elif place % 2 == 0:
            expected.put(32 + place // 2, bytes([code | bits_of_all[place + 1] << 4]))
    run(
        bench,
        *(kind, mem, values),
        quant_pre="F322F16",
        quant_post=mode,
        relu_post=relu,
        nz2nd_en=not nz,
        dst_stride=640 if nz else 96,
    )
    assert bench.messages == []
    bench.check(mem, expected)


@pytest.mark.parametrize("nz", [False, True])
@pytest.mark.parametrize(("kind", "mem"), KINDS)
def test_broadcast(kind, mem, nz):
    """All rows are the first one; others of the tile are not read."""
    bench = Bench(seed=2, gm_bytes=8192, on=A5)
    bench.noise(mem)
    row = bench.rng.integers(-99, 99, (1, 32)).astype(np.float32)
    expected = bench.image(mem)
    for i, j in np.ndindex(M, 32):
        place = j // 16 * 200 + i * 16 + j % 16 if nz else i * 40 + j
        expected.put(32 + place * 4, row[0, j].tobytes())
    p = {"m_size": M, "broadcast_en": True, "nz2nd_en": not nz, "dst_stride": 200 if nz else 40}
    run(bench, kind, mem, row, **p)
    assert bench.messages == []
    bench.check(mem, expected)


def test_hybrid_rounding_to_hifloat8():
    """The product in float32, then the rule of the registers' conversion."""
    bench = Bench(seed=5, gm_bytes=8192, on=A5)
    values = np.exp2(bench.rng.uniform(-24, 15, (16, 32))).astype(np.float32)
    values *= bench.rng.choice([1, -1], values.shape).astype(np.float32)
    bench.do(SetQuantPre(scale=0x3FC00000))  # 1.5
    bench.do(SetCtrl(value=1 << 48))
    bench.noise(Mem.GM)
    expected = bench.image(Mem.GM)
    for i, j in np.ndindex(*values.shape):
        product = values[i, j] * np.float32(1.5)
        expected.put(32 + i * 32 + j, bytes([hybrid(int(product.view(np.uint32)), "float32")]))
    p = {"quant_pre": "QF322HIF8_PRE_HYBRID", "nz2nd_en": True, "dst_stride": 32}
    run(bench, CopyMatrixCcToGmV2, Mem.GM, values, **p)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


NO_LIMIT = "be 0, as no page of architecture 3510 says which register has the limit, got 1"
NO_OPERAND = "be 0, as no page of architecture 3510 says where the other operand is, got 1"
WRONG = {
    "clip": ({"clip_relu_pre": 1, "relu_pre": 1}, f"clip_relu_pre must {NO_LIMIT}"),
    "clip later": ({"clip_relu_post": 1}, f"clip_relu_post must {NO_LIMIT}"),
    "operand": ({"eltwise_op": 1}, f"eltwise_op must {NO_OPERAND}"),
    "padding": (
        {"c0_pad_en": 1},
        "c0_pad_en must be 0, as no page of architecture 3510 says what is filled, got 1",
    ),
    "int16": (
        {"quant_post": "QS162B8_POST", "quant_pre": "F322F16"},
        "quant_post must convert float16, as no quant_pre makes int16, got QS162B8_POST",
    ),
    "columns": (
        {"quant_post": "VQF162S16_POST", "quant_pre": "F322F16"},
        "quant_post must have one factor, as no page says where those of the columns are in the "
        "Fixpipe buffer, got VQF162S16_POST",
    ),
    "first": (
        {"quant_post": "QF162B8_POST"},
        "quant_post must follow a quant_pre that makes float16, got QF162B8_POST",
    ),
    "relu alone": ({"relu_post": 1}, "relu_post must be 0 without quant_post, got 1"),
    "units": (
        {"broadcast_en": True, "unit_flag": 2},
        "broadcast_en must be off with unit_flag, got on",
    ),
    "odd": (
        {"quant_post": "QF162S4_POST", "quant_pre": "F322F16", "n_size": 31},
        "n_size must be even for int4, got 31",
    ),
    "fractals": (
        {"quant_post": "QF162S4_POST", "quant_pre": "F322F16", "nz2nd_en": False},
        "n_size must be a multiple of 64 for int4, got 32",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_it_does_not_take(case):
    params, said = WRONG[case]
    bench = Bench(seed=1, gm_bytes=8192, on=A5)
    bench.do(SetQuantPost(config=0x3F800000))
    values = np.ones((16, 32), np.float32)
    run(bench, CopyMatrixCcToGmV2, Mem.GM, values, **{"nz2nd_en": True, "dst_stride": 640} | params)
    assert bench.messages == [f"parameter: copy_matrix_cc_to_gm_v2.{said}"]


def test_registers_that_are_to_be_set():
    bench = Bench(seed=1, gm_bytes=8192, on=A5)
    p = {"nz2nd_en": True, "dst_stride": 32, "quant_pre": "F322F16", "relu_post": 2}
    values = np.ones((16, 32), np.float32)
    run(bench, CopyMatrixCcToGmV2, Mem.GM, values, quant_post="QF162B8_POST", **p)
    assert bench.messages == [
        "parameter: copy_matrix_cc_to_gm_v2.quant_post must follow a set_quant_post, got "
        "QF162B8_POST",
        "parameter: copy_matrix_cc_to_gm_v2.relu_post must follow a set_relu_alpha with bits 63 "
        "to 45, got none",
    ]
    bench = Bench(on=A5)
    bench.do(SetQuantPost(config=0x7F800000))
    assert bench.messages == [
        "parameter: set_quant_post.config must hold no infinity, NaN or subnormal number in bits "
        "31 to 13, got 0x7f800000"
    ]
