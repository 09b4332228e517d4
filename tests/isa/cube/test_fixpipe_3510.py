"""Fixpipe of architecture 3510: its NZ, its scales, its conversions, against plain Python."""

import math
import struct
from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe_3510 import (
    CopyMatrixCcToCbufV2,
    CopyMatrixCcToGmV2,
    SetChannelPara,
    SetNdParaV2,
    SetReluAlpha,
)
from cubecore.isa.cube.fixpipe_registers import SetLreluAlpha
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetFpc, SetQuantPre
from cubecore.isa.scalar.control_registers import SetCtrl
from isa.bench import Bench
from test_codes import INFINITE, NAN, hifloat8

A5 = chip("Ascend950PR_9599")
M, N = 5, 32
# mode: accumulator, target, bits of the mantissa, exponent of the smallest number, largest
FLOATS = {
    "QF322FP8_PRE": ("float32", "float8_e4m3fn", 3, -9, 448.0),
    "QF322F16_PRE": ("float32", "float16", 10, -24, 65504.0),
    "QF322BF16_PRE": ("float32", "bfloat16", 7, -133, float.fromhex("0x1.fep127")),
    "QF322F32_PRE": ("float32", "float32", 23, -149, float.fromhex("0x1.fffffep127")),
    "QS322BF16_PRE": ("int32", "bfloat16", 7, -133, float.fromhex("0x1.fep127")),
    "DEQF16": ("int32", "float16", 10, -24, 65504.0),
}
HIF8, HIF8_MODES = hifloat8(), ["QF322HIF8_PRE", "VQF322HIF8_PRE"]
HIF8_CODES = {value: code for code, value in HIF8.items()}
INTEGERS = {"QF322B8_PRE": "float32", "REQ8": "int32"}
MODES = [*FLOATS, *(f"V{mode}" for mode in FLOATS), *INTEGERS, *(f"V{mode}" for mode in INTEGERS)]
SIZES = {"float8_e4m3fn": 1, "float16": 2, "bfloat16": 2, "float32": 4, "int8": 1}


def nearest(value: float, bits: int, lowest: int) -> float:
    """To `bits` of mantissa, ties to even; nothing below 2**lowest."""
    if value == 0 or math.isinf(value) or math.isnan(value):
        return value
    unit = max(math.frexp(value)[1] - 1 - bits, lowest)  # ldexp changes the exponent alone
    return math.copysign(math.ldexp(round(math.ldexp(value, -unit)), unit), value)  # ties to even


def factor(word: int) -> float:
    """Sign, 8 exponent and 10 mantissa bits of the low 32."""
    return struct.unpack("<f", struct.pack("<I", word & 0xFFFFE000))[0]


def float_result(value: float, word: int, mode: str, *, infinite: bool) -> float:
    """A product rounded to float32, then to the target; CTRL[48] says what is too large."""
    _, target, bits, lowest, largest = FLOATS[mode]
    product = nearest(nearest(float(value), 23, -149) * factor(word), 23, -149)
    if abs(product) > float.fromhex("0x1.fffffep127"):
        product = math.copysign(math.inf, product)
    if not infinite:
        product = 0.0 if math.isnan(product) else min(max(product, -largest), largest)
    found = nearest(product, bits, lowest)
    if abs(found) > largest:
        found = math.nan if target == "float8_e4m3fn" else math.copysign(math.inf, found)
    return found


HIF8_NUMBERS = sorted(HIF8_CODES)


def hifloat8_code(value: float, word: int, *, infinite: bool) -> int:
    """A product rounded to float32, then to the nearest number, of two the one away from 0."""
    product = nearest(nearest(value, 23, -149) * factor(word), 23, -149)
    if infinite and abs(product) >= 1.25 * 2**15:
        return INFINITE | (product < 0) << 7
    exact = Fraction(min(max(product, -(2.0**15)), 2.0**15))
    above = bisect_left(HIF8_NUMBERS, exact)
    beside = HIF8_NUMBERS[max(above - 1, 0) : above + 1]
    return HIF8_CODES[min(beside, key=lambda x: (abs(x - exact), -abs(x)))]


def integer_result(value: float, word: int) -> int:
    """Rounded, nine bits, the offset, eight bits; bits 36 to 32 shift nothing here."""
    product = nearest(nearest(float(value), 23, -149) * factor(word), 23, -149)
    whole = 0 if math.isnan(product) else round(min(max(product, -1e6), 1e6))
    offset = word >> 37 & 511
    whole = min(max(whole, -256), 255) + (offset - 512 if offset > 255 else offset)
    low, high = (-128, 127) if word >> 46 & 1 else (0, 255)
    return min(max(whole, low), high)


def drawn(bench: Bench, mode: str) -> tuple[np.ndarray, list[int]]:
    """Accumulators [M, N] with edges among them, and a word for each column."""
    source = (FLOATS.get(mode) or (INTEGERS.get(mode),))[0]
    if source == "int32":
        values = bench.rng.integers(-(2**31), 2**31, (M, N)).astype(np.int32)
        values[0] = bench.rng.integers(-2000, 2000, N)
    else:
        values = (bench.rng.standard_normal((M, N)) * 300).astype(np.float32)
        values[0, :8] = [0.0, -0.0, 1e30, -1e30, 448.0, 464.0, 480.0, 2.0**-10]
    scales = bench.rng.choice([1.0, -0.5, 0.0123, 3.0, 2.0**-20], N).astype(np.float32)
    words = scales.view(np.uint32).astype(np.uint64)
    words |= bench.rng.integers(0, 2**15, N).astype(np.uint64) << np.uint64(32)
    return values, [int(word) for word in words]


def run_mode(mode: str, kind, mem: Mem, *, nz: bool, infinite: bool) -> None:
    """Every accumulator by hand; the tile in NZ, or row by row."""
    plain = mode.removeprefix("V")
    bench = Bench(seed=len(mode), gm_bytes=8192, on=A5)
    bench.noise(mem)
    values, words = drawn(bench, plain)
    if not mode.startswith("V"):
        words = [words[0]] * N
        bench.do(SetQuantPre(scale=words[0]))
    else:
        bench.poke(Mem.FB, 128, struct.pack(f"<{N}Q", *words))
        bench.do(SetFpc(scales_at=128))
    bench.do(SetCtrl(value=int(infinite) << 48))
    for i in range(M):
        for j in range(N):
            bench.poke(Mem.L0C, ((j // 16) * 16 + i) * 64 + j % 16 * 4, values[i, j].tobytes())
    target = FLOATS[plain][1] if plain in FLOATS else "int8"
    size, wide = SIZES[target], 32 if SIZES[target] == 1 else 16
    expected, nans = bench.image(mem), []
    for i in range(M):
        for j in range(N):
            place = j // wide * 200 + i * wide + j % wide if nz else i * 40 + j
            if plain in FLOATS:
                found = float_result(values[i, j].item(), words[j], plain, infinite=infinite)
                raw = np.array(found).astype(element_type(target).numpy).tobytes()
                nans += [32 + place * size] if math.isnan(found) and size == 1 else []
            else:
                raw = bytes([integer_result(values[i, j].item(), words[j]) & 255])
            expected.put(32 + place * size, raw)
    source = element_type(values.dtype.name)
    template = kind(
        src_type=source,
        n_size=N,
        m_size=M,
        dst_stride=200 if nz else 40,
        src_stride=16,
        quant_pre=mode,
        nz2nd_en=not nz,
    )
    bench.do(template, (bench.base if mem is Mem.GM else 0) + 32, 0)
    assert bench.messages == []
    for at in nans:  # of either sign
        got = bench.image(mem).get(at, 1)
        assert got[0] & 0x7F == 0x7F
        expected.put(at, got)
    bench.check(mem, expected)


@pytest.mark.parametrize("infinite", [False, True])
@pytest.mark.parametrize("mode", HIF8_MODES)
@pytest.mark.parametrize(
    ("kind", "mem"), [(CopyMatrixCcToGmV2, Mem.GM), (CopyMatrixCcToCbufV2, Mem.L1)]
)
def test_hifloat8(kind, mem, mode, infinite):
    """Numbers, halves between two, zeros and what is too large; NaN is NaN, or 0."""
    bench = Bench(seed=3, gm_bytes=8192, on=A5)
    bench.noise(mem)
    exact = HIF8_NUMBERS
    halves = [(a + b) / 2 for a, b in pairwise(exact)]
    values = np.array([float(x) for x in (*exact, *halves, *[0] * 1024)], np.float32)[: 32 * 32]
    values[-9:] = [-0.0, 1e30, -1e30, np.nan, 40959, 40960, np.inf, 2.0**-24, -(2.0**-23)]
    values = values.reshape(32, 32)
    scales = np.resize(np.array([1.0, -0.5, 4.0], np.float32), 32)
    words = [int(word) for word in scales.view(np.uint32)]
    if mode[0] == "V":
        bench.poke(Mem.FB, 128, struct.pack("<32Q", *words))
        bench.do(SetFpc(scales_at=128))
    else:
        words = [words[0]] * 32
        bench.do(SetQuantPre(scale=words[0]))
    bench.do(SetCtrl(value=int(infinite) << 48))
    expected = bench.image(mem)
    for i, j in np.ndindex(32, 32):
        value = values[i, j].item()
        bench.poke(Mem.L0C, (j // 16 * 32 + i) * 64 + j % 16 * 4, values[i, j].tobytes())
        code = NAN * infinite if math.isnan(value) else None
        if code is None:
            code = hifloat8_code(value, words[j], infinite=infinite)
        expected.put(32 + i * 64 + j, bytes([code]))
    p = {"n_size": 32, "m_size": 32, "dst_stride": 64, "src_stride": 32, "nz2nd_en": True}
    template = kind(src_type=element_type("float32"), quant_pre=mode, **p)
    bench.do(template, (bench.base if mem is Mem.GM else 0) + 32, 0)
    assert bench.messages == []
    bench.check(mem, expected)


@pytest.mark.parametrize("infinite", [False, True])
@pytest.mark.parametrize("nz", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_every_conversion(mode, nz, infinite):
    run_mode(mode, CopyMatrixCcToGmV2, Mem.GM, nz=nz, infinite=infinite)


@pytest.mark.parametrize("mode", MODES)
def test_every_conversion_to_l1(mode):
    run_mode(mode, CopyMatrixCcToCbufV2, Mem.L1, nz=len(mode) % 2 == 0, infinite=mode[0] == "V")


KINDS = [(CopyMatrixCcToGmV2, Mem.GM), (CopyMatrixCcToCbufV2, Mem.L1)]
PLAIN = [
    ("NoQuant", "float32", "<f", 4),
    ("NoQuant", "int32", "<i", 4),
    ("F322F16", "float32", "<e", 2),
]


def tile(bench: Bench, form: str) -> np.ndarray:
    """All of L0C as small numbers, 16 in a row."""
    count = bench.buffer(Mem.L0C).size_bytes // 4
    values = bench.rng.integers(-2000, 2000, count).astype(form)
    bench.poke(Mem.L0C, 0, values.tobytes())
    return values


@pytest.mark.parametrize("apart", [1, 3])
@pytest.mark.parametrize("plain", PLAIN, ids=str)
@pytest.mark.parametrize(("kind", "mem"), KINDS, ids=str)
def test_columns(kind, mem, plain, apart):
    """NZ2DN: element (m, n) at n * dst_stride + m; rows of L0C as CHANNEL_PARA says."""
    mode, form, code, size = plain
    bench = Bench(seed=size, gm_bytes=8192, on=A5)
    bench.noise(mem)
    values = tile(bench, form)
    expected = bench.image(mem)
    for m in range(16):
        for n in range(32):
            taken = (n // 16 * 60 + m * apart) * 16 + n % 16
            raw = struct.pack(code, values[taken].item())
            expected.put(32 + (n * 40 + m) * size, raw)
    bench.do(SetChannelPara(config=apart << 48 | 0x1234))
    p = {"n_size": 32, "m_size": 16, "dst_stride": 40, "src_stride": 60, "nz2dn_en": True}
    template = kind(src_type=element_type(form), quant_pre=mode, **p)
    bench.do(template, (bench.base if mem is Mem.GM else 0) + 32, 0)
    assert bench.messages == []
    bench.check(mem, expected)


def test_columns_need_their_register():
    bench = Bench(gm_bytes=4096, on=A5)
    tile(bench, "float32")
    p = {"n_size": 16, "m_size": 16, "dst_stride": 16, "src_stride": 16, "nz2dn_en": True}
    bench.do(CopyMatrixCcToGmV2(src_type=element_type("float32"), **p), bench.base, 0)
    assert bench.messages == [
        "parameter: copy_matrix_cc_to_gm_v2.nz2dn_en must follow a set_channel_para with a "
        "row_stride, got none"
    ]


@pytest.mark.parametrize("plain", PLAIN, ids=str)
@pytest.mark.parametrize(("kind", "mem"), KINDS, ids=str)
def test_several_matrices(kind, mem, plain):
    """NZ2ND: the register counts distances in L0C by 16 elements, 2201's by fractals."""
    mode, form, code, size = plain
    bench = Bench(seed=size, gm_bytes=16384, on=A5)
    bench.noise(mem)
    values = tile(bench, form)
    expected = bench.image(mem)
    for x in range(3):
        for m in range(5):
            for n in range(32):
                taken = x * 37 * 16 + (n // 16 * 16 + m) * 16 + n % 16
                raw = struct.pack(code, values[taken].item())
                expected.put(32 + (x * 300 + m * 50 + n) * size, raw)
    bench.do(SetNdParaV2(nd_num=3, src_nd_stride=37, dst_nd_stride=300))
    p = {"n_size": 32, "m_size": 5, "dst_stride": 50, "src_stride": 16, "nz2nd_en": True}
    template = kind(src_type=element_type(form), quant_pre=mode, **p)
    bench.do(template, (bench.base if mem is Mem.GM else 0) + 32, 0)
    assert bench.messages == []
    bench.check(mem, expected)


@pytest.mark.parametrize(
    "setter", [SetLreluAlpha(alpha=0x3E800000), SetReluAlpha(config=0x3E800FFF)], ids=str
)
@pytest.mark.parametrize(("kind", "mem"), KINDS, ids=str)
def test_leaky_relu(kind, mem, setter):
    bench = Bench(seed=7, gm_bytes=4096, on=A5)
    values = tile(bench, "float32")
    bench.do(setter)
    p = {"n_size": 16, "m_size": 16, "dst_stride": 16, "src_stride": 16, "nz2nd_en": True}
    template = kind(src_type=element_type("float32"), relu_pre=2, **p)
    bench.do(template, bench.base if mem is Mem.GM else 0, 0)
    assert bench.messages == []
    got = np.frombuffer(bench.image(mem).get(0, 1024), np.float32)
    assert got.tolist() == [v if v >= 0 else v / 4 for v in values[:256].tolist()]


@pytest.mark.parametrize(
    ("config", "need"),
    [
        (1 << 45, "hold no infinity, NaN or subnormal number"),
        (0x7F800000, "hold no infinity, NaN or subnormal number"),
        (0x00400000, "hold no infinity, NaN or subnormal number"),
    ],
)
def test_factors_that_it_does_not_take(config, need):
    bench = Bench(on=A5)
    bench.do(SetReluAlpha(config=config))
    assert bench.messages == [f"parameter: set_relu_alpha.config must {need}, got {config:#x}"]
