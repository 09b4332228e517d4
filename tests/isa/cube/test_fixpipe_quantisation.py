"""Fixpipe's scales: the arithmetic over small spaces, and every mode into GM and L1, by loops."""

import math
import struct

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe import CopyMatrixCcToCbuf, CopyMatrixCcToGm
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import CopyCbufToFbuf, SetFpc, SetQuantPre
from cubecore.isa.scalar.control_registers import SetCtrl
from cubecore.numerics.quantisation import quantised, scale_words, scaled
from isa.bench import A2, Bench, Image

INT8, INT4 = element_type("int8"), element_type("int4")

# --- one value, from the pages: fields of the word, float32 product, and the ways to the targets


def single(value: float) -> float:
    """Round to float32."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def factor_of(word: int) -> float:
    """Bits 31 to 13 as a float32."""
    return struct.unpack("<f", struct.pack("<I", word & 0xFFFFE000))[0]


def product(value: float, word: int, *, integer: bool) -> float:
    if integer and word >> 36 & 1:
        value = max(min(value >> (word >> 32 & 15) + 1, 2**15 - 1), -(2**15))
    if value in {float("inf"), float("-inf")} and factor_of(word) == 0:
        return float("nan")
    return single(single(value) * factor_of(word))


def integer_of(value: float, word: int, target: str, *, integer: bool) -> int:
    """Round to even, 9 bits, the offset, and the target's range."""
    exact = product(value, word, integer=integer)
    whole = 0 if math.isnan(exact) else round(max(min(exact, 1000.0), -1000.0))
    whole = max(min(whole, 255), -256)
    offset = word >> 37 & 0x1FF
    whole += offset - 512 if offset > 255 else offset
    if target == "int4":
        return max(min(whole, 7), -8)
    return max(min(whole, 127), -128) if word >> 46 & 1 else max(min(whole, 255), 0)


def half_of(value: float) -> bytes:
    """To nearest even, finite: NaN is 0, infinity the largest number."""
    if math.isnan(value):
        return bytes(2)
    try:
        return struct.pack("<e", value)
    except OverflowError:
        return struct.pack("<e", 65504.0 if value > 0 else -65504.0)


def word_of(scale: float, offset: int = 0, *, signed: bool = True, shift: int = 0) -> int:
    """Pack a word; a shift of 0 is none."""
    (bits,) = struct.unpack("<I", struct.pack("<f", scale))
    word = bits | (offset & 0x1FF) << 37 | int(signed) << 46
    return word | ((shift - 1) << 32 | 1 << 36 if shift else 0)


# --- the arithmetic


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("offset", [-256, -255, -128, -1, 0, 1, 127, 255])
@pytest.mark.parametrize("scale", [1.0, 0.5, -1.0, 0.25])
@pytest.mark.thinned(4)
def test_every_edge_of_8_bits(scale, offset, signed):
    """Halves are ties: they go to the even neighbour."""
    values = np.arange(-1100, 1101, dtype=np.int32)
    word = word_of(scale, offset, signed=signed)
    got = quantised(values, np.array(word, np.uint64), INT8)
    wanted = [integer_of(int(v), word, "int8", integer=True) & 0xFF for v in values]
    assert got.view(np.uint8).tolist() == wanted
    floats = values.astype(np.float32)
    assert np.array_equal(quantised(floats, np.array(word, np.uint64), INT8), got)


@pytest.mark.parametrize("offset", [-256, -9, 0, 3, 255])
@pytest.mark.parametrize("scale", [1.0, 0.5, -0.5])
def test_every_edge_of_4_bits(scale, offset):
    values = np.arange(-600, 601, dtype=np.int32)
    word = word_of(scale, offset)
    got = quantised(values, np.array(word, np.uint64), INT4)
    wanted = [integer_of(int(v), word, "int4", integer=True) for v in values]
    assert got.astype(int).tolist() == wanted


@pytest.mark.parametrize("shift", range(1, 17))
def test_every_shift(shift):
    word = word_of(0.5, shift=shift)
    values = [0, 1, -1, 2**shift, -(2**shift), 3 << shift - 1, 2**31 - 1, -(2**31), 123_456_789]
    array = np.array(values, np.int32)
    got = scaled(array, np.array(word, np.uint64))
    assert got.tolist() == [product(v, word, integer=True) for v in values]
    # a float accumulator has nothing to shift
    floats = array.astype(np.float32)
    assert np.array_equal(scaled(floats, np.array(word, np.uint64)), floats / 2)


@pytest.mark.parametrize("value", [1, -3, 127, 2**24 + 1, -(2**31), 2**31 - 1])
def test_every_factor(value):
    """All 2**19 factors of 1 sign, 8 exponent and 10 mantissa bits; float64 holds each product."""
    bits = np.arange(2**19, dtype=np.uint64) << np.uint64(13)
    bits = bits[(bits >> np.uint64(23) & np.uint64(255)) != 255]
    factors = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    with np.errstate(over="ignore"):
        wanted = (np.float64(np.float32(value)) * factors).astype(np.float32)
    got = scaled(np.full(bits.size, value, np.int32), bits)
    assert np.array_equal(got.view(np.uint32), wanted.view(np.uint32))


def test_the_low_13_bits_of_a_factor_do_not_count():
    rng = np.random.default_rng(3)
    words = scale_words(rng.uniform(0.001, 9, 1000).astype(np.float32))
    clean = words & ~np.uint64(0x1FFF)
    values = rng.integers(-(2**31), 2**31, 1000).astype(np.int32)
    assert np.array_equal(scaled(values, words), scaled(values, clean))


def test_words_hold_what_they_were_made_of():
    for offset in range(-256, 256):
        for signed in (True, False):
            made = int(scale_words(0.75, offset=offset, signed=signed))
            assert made == word_of(0.75, offset, signed=signed)
    assert [int(w) for w in scale_words(np.array([1, 2], np.float32))] == [
        word_of(1.0),
        word_of(2.0),
    ]


@pytest.mark.parametrize("factor", [1.0, -2.0])
def test_special_accumulators(factor):
    values = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45], np.float32)
    word = word_of(factor)
    got = quantised(values, np.array(word, np.uint64), INT8)
    wanted = [integer_of(float(v), word, "int8", integer=False) for v in values]
    assert got.tolist() == wanted
    assert got.tolist()[2] == 0


# --- tiles

MODES = {
    "F322F16": ("float32", "float16"),
    "F322BF16": ("float32", "bfloat16"),
    "DEQF16": ("int32", "float16"),
    "QF322B8_PRE": ("float32", "int8"),
    "REQ8": ("int32", "int8"),
    "QF322B4_PRE": ("float32", "int4"),
    "REQ4": ("int32", "int4"),
}
SCALED = [mode for mode in MODES if not mode.startswith("F")]
TO_L1 = list(MODES) + [f"V{mode}" for mode in SCALED]
TO_GM = [mode for mode in TO_L1 if "4" not in mode]
BITS = {"float16": 16, "bfloat16": 16, "int8": 8, "int4": 4}
FIELDS = {"n_size": 64, "m_size": 19, "src_stride": 32}
SCALES_AT = 384


def source_of(mode: str) -> tuple[str, str]:
    return MODES[mode] if mode in MODES else MODES[mode[1:]]


def fill(bench: Bench, mode: str) -> list[int]:
    """Put numbers in L0C and a word for each of 64 columns in the Fixpipe buffer; return words."""
    source, target = source_of(mode)
    raw = bench.rng.integers(-3000, 3000, 32768)
    values = raw.astype(np.int32) if source == "int32" else (raw / 7).astype(np.float32)
    bench.poke(Mem.L0C, 0, values.tobytes())
    bench.buffer(Mem.L0C).valid[:] = np.repeat(bench.rng.random(32768) < 0.9, 4)
    scale = {"int8": 0.05, "int4": 0.003, "float16": 3.0, "bfloat16": 1.0}[target]
    words = []
    for _ in range(64):
        factor = scale * float(bench.rng.uniform(-2, 2))
        words.append(
            word_of(
                factor,
                int(bench.rng.integers(-9, 10)) if target != "float16" else 0,
                signed=bool(bench.rng.integers(2)) or target == "int4",
                shift=int(bench.rng.integers(4)) if source == "int32" else 0,
            )
        )
    bench.poke(Mem.FB, SCALES_AT, struct.pack("<64Q", *words))
    return words


def bits_of(raw: bytes, mode: str, word: int, *, relu: bool) -> int:
    """One element of L0C as the bits that reach the target."""
    source, target = source_of(mode)
    (value,) = struct.unpack("<i" if source == "int32" else "<f", raw)
    if relu and value < 0:
        value = 0
    if mode == "F322BF16":
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return bits + 0x7FFF + (bits >> 16 & 1) >> 16
    if target == "float16":
        integer = source == "int32"
        exact = value if mode == "F322F16" else product(value, word, integer=integer)
        return int.from_bytes(half_of(exact), "little")
    whole = integer_of(value, word, target, integer=source == "int32")
    return whole & (0xFF if target == "int8" else 0xF)


def put_bits(image: Image, at_bit: int, bits: int, width: int, valid: int) -> None:
    """Store an element; a byte of two nibbles is written only if both are."""
    byte, shift = divmod(at_bit, 8)
    if width == 4:
        image.data[byte] = image.data[byte] & ~(15 << shift) | bits << shift
        image.valid[byte] = valid if shift == 0 else image.valid[byte] & valid
    else:
        image.put(byte, bits.to_bytes(width // 8, "little"), valid)


def nz_bit(i: int, j: int, p: dict, width: int, columns: int) -> int:
    """Where NZ has element (i, j): fractals `columns` wide, the odd 16 columns of int8 16 wide."""
    wide = columns if j < p["n_size"] // columns * columns else 16
    return (j // columns) * p["dst_stride"] * 256 + (i * wide + j % columns) * width


def tile_by_hand(bench: Bench, after: Image, here: int, mode: str, p: dict, words, where) -> Image:
    """Every element of a tile; `where` gives its bit from `here`."""
    source = bench.image(Mem.L0C)
    width = BITS[source_of(mode)[1]]
    for i in range(p["m_size"]):
        for j in range(p["n_size"]):
            taken = ((j // 16) * p["src_stride"] + i) * 64 + (j % 16) * 4
            word = words[j] if mode.startswith("V") else words[0]
            bits = bits_of(source.get(taken, 4), mode, word, relu=p.get("relu_pre", False))
            known = int(source.written(taken, 4))
            put_bits(after, here * 8 + where(i, j, p, width), bits, width, known)
    return after


def set_scales(bench: Bench, mode: str, words: list[int]) -> None:
    if mode.startswith("V"):
        bench.do(SetFpc(scales_at=SCALES_AT))
    elif mode not in {"F322F16", "F322BF16"}:
        bench.do(SetQuantPre(scale=words[0]))


def template(kind, mode: str, p: dict):
    return kind(src_type=element_type(source_of(mode)[0]), quant_pre=mode, **p)


@pytest.mark.parametrize("mode", TO_L1)
@pytest.mark.parametrize("relu", [False, True])
def test_tiles_to_l1(mode, relu):
    """NZ: int8 in fractals of 16 x 32, int4 of 16 x 64."""
    columns = {16: 16, 8: 32, 4: 64}[BITS[source_of(mode)[1]]]
    p = FIELDS | {"dst_stride": 41, "relu_pre": relu, "unit_flag": 3}
    bench = Bench(seed=len(mode))
    bench.noise(Mem.L1)
    words = fill(bench, mode)
    expected = tile_by_hand(
        bench, bench.image(Mem.L1), 96, mode, p, words, lambda *a: nz_bit(*a, columns)
    )
    set_scales(bench, mode, words)
    bench.do(template(CopyMatrixCcToCbuf, mode, p), 96, 0)
    assert bench.messages == []
    bench.check(Mem.L1, expected)


@pytest.mark.parametrize("mode", TO_GM)
@pytest.mark.parametrize("relu", [False, True])
def test_tiles_to_gm_row_by_row(mode, relu):
    p = FIELDS | {"n_size": 37, "dst_stride": 45, "relu_pre": relu, "nz2nd_en": True}
    bench = Bench(seed=len(mode), gm_bytes=4096)
    bench.noise(Mem.GM)
    words = fill(bench, mode)

    def where(i, j, p, width):
        return (i * p["dst_stride"] + j) * width

    expected = tile_by_hand(bench, bench.image(Mem.GM), 11, mode, p, words, where)
    set_scales(bench, mode, words)
    bench.do(template(CopyMatrixCcToGm, mode, p), bench.base + 11, 0)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


@pytest.mark.parametrize("mode", TO_GM)
@pytest.mark.parametrize("n", [16, 32, 48, 64])
def test_tiles_to_gm_as_nz(mode, n):
    """An odd number of sixteens leaves the last 16 columns of int8 unmerged."""
    columns = {16: 16, 8: 32}[BITS[source_of(mode)[1]]]
    p = FIELDS | {"n_size": n, "dst_stride": 40}
    bench = Bench(seed=n, gm_bytes=8192)
    bench.noise(Mem.GM)
    words = fill(bench, mode)
    expected = tile_by_hand(
        bench, bench.image(Mem.GM), 32, mode, p, words, lambda *a: nz_bit(*a, columns)
    )
    set_scales(bench, mode, words)
    bench.do(template(CopyMatrixCcToGm, mode, p), bench.base + 32, 0)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


@pytest.mark.parametrize(("m", "n"), [(16, 16), (19, 24), (3, 8), (64, 40)])
@pytest.mark.parametrize("relu", [False, True])
def test_channel_split(m, n, relu):
    """float32 in fractals of 16 x 8; n is a multiple of 8."""
    p = {"n_size": n, "m_size": m, "src_stride": 64, "dst_stride": m + 1}
    bench = Bench(seed=n, gm_bytes=16384)
    bench.noise(Mem.GM)
    fill(bench, "F322F16")
    source, expected = bench.image(Mem.L0C), bench.image(Mem.GM)
    for i in range(m):
        for j in range(n):
            taken = ((j // 16) * 64 + i) * 64 + (j % 16) * 4
            raw = source.get(taken, 4)
            if relu and struct.unpack("<f", raw)[0] < 0:
                raw = bytes(4)
            at = (j // 8) * p["dst_stride"] * 32 + (i * 8 + j % 8) * 4
            expected.put(at, raw, int(source.written(taken, 4)))
    split = CopyMatrixCcToGm(
        src_type=element_type("float32"), channel_split=True, relu_pre=relu, **p
    )
    bench.do(split, bench.base, 0)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


@pytest.mark.parametrize(
    ("runs", "at"), [((1, 1, 0, 0), (128, 32)), ((1, 16, 0, 0), (0, 96)), ((3, 2, 9, 3), (128, 0))]
)
def test_l1_to_fixpipe_buffer(runs, at):
    """Runs of 128 B; from one to the next src_stride x 32 B and dst_stride x 128 B."""
    n_burst, len_burst, src_stride, dst_stride = runs
    here, there = at
    bench = Bench(seed=n_burst)
    bench.noise(Mem.L1, Mem.FB)
    source, expected = bench.image(Mem.L1), bench.image(Mem.FB)
    for r in range(n_burst):
        expected.copy_from(
            source, there + r * src_stride * 32, here + r * dst_stride * 128, len_burst * 128
        )
    load = CopyCbufToFbuf(
        n_burst=n_burst, len_burst=len_burst, src_stride=src_stride, dst_stride=dst_stride
    )
    bench.do(load, here, there)
    assert bench.messages == []
    bench.check(Mem.FB, expected)


def test_infinities_stay_when_ctrl_48_is_set():
    bench = Bench(gm_bytes=64)
    bench.poke(Mem.L0C, 0, np.array([1e30, -1e30, np.nan, 1.5] * 4, np.float32).tobytes())
    p = {"n_size": 16, "m_size": 1, "src_stride": 16, "dst_stride": 16}
    results = []
    for ctrl in (0, 1 << 48):
        bench.do(SetCtrl(value=ctrl))
        bench.do(template(CopyMatrixCcToGm, "F322F16", p), bench.base, 0)
        results.append(np.frombuffer(bench.image(Mem.GM).get(0, 8), np.float16).astype(float))
    assert bench.messages == []
    assert results[0].tolist() == [65504.0, -65504.0, 0.0, 1.5]
    assert np.array_equal(results[1], [np.inf, -np.inf, np.nan, 1.5], equal_nan=True)


def test_the_registers_hold_until_they_are_set_again():
    p = {"n_size": 16, "m_size": 1, "src_stride": 16, "dst_stride": 16}
    bench = Bench(gm_bytes=64)
    bench.poke(Mem.L0C, 0, np.full(16, 10, np.int32).tobytes())
    seen = []
    for scale in (1.0, None, 2.0):
        if scale is not None:
            bench.do(SetQuantPre(scale=word_of(scale)))
        bench.do(template(CopyMatrixCcToGm, "REQ8", p), bench.base, 0)
        seen.append(bench.image(Mem.GM).data[0])
    assert bench.messages == []
    assert seen == [10, 10, 20]


# --- what is refused or found


@pytest.mark.parametrize("kind", [CopyMatrixCcToGm, CopyMatrixCcToCbuf])
@pytest.mark.parametrize(("mode", "setter"), [("REQ8", "set_quant_pre"), ("VREQ8", "set_fpc")])
def test_a_scale_that_nobody_set_is_found(kind, mode, setter):
    bench = Bench(gm_bytes=4096)
    fill(bench, mode)
    bench.do(template(kind, mode, FIELDS | {"dst_stride": 40}), bench.base, 0)
    assert bench.messages == [
        f"parameter: {kind.name}.quant_pre must follow a {setter}, got {mode}"
    ]


def test_an_unwritten_scale_is_found():
    bench = Bench()
    fill(bench, "VREQ8")
    bench.buffer(Mem.FB).valid[SCALES_AT + 8 * 5 + 3] = 0
    bench.do(SetFpc(scales_at=SCALES_AT))
    bench.do(template(CopyMatrixCcToCbuf, "VREQ8", FIELDS | {"dst_stride": 40}), 0, 0)
    assert bench.messages == [
        "uninitialised: copy_matrix_cc_to_cbuf.scales must be initialised in Fixpipe, "
        "got 1 of 64 elements never written, first n 5"
    ]


def test_scales_beyond_the_fixpipe_buffer_are_found():
    bench = Bench()
    fill(bench, "VREQ8")
    bench.do(SetFpc(scales_at=1920))
    bench.do(template(CopyMatrixCcToCbuf, "VREQ8", FIELDS | {"dst_stride": 40}), 0, 0)
    assert bench.messages == [
        "out-of-bounds: copy_matrix_cc_to_cbuf.scales must stay inside Fixpipe (0 to 2048 B), "
        "got bytes [1920, 2432)"
    ]


@pytest.mark.parametrize("bits", [0x7F800000, 0xFF800000, 0x7FC00000, 0x00002000, 0x807FE000])
def test_scales_that_are_no_ordinary_numbers_are_refused(bits):
    bench = Bench()
    bench.do(SetQuantPre(scale=bits))
    assert bench.messages == [
        "parameter: set_quant_pre.scale must hold no infinity, NaN or subnormal number in bits 31 "
        f"to 13, got {bits:#018x}"
    ]


@pytest.mark.parametrize("bits", [0, 1 << 12, 0x00800000, 0x7F7FFFFF, 0x80800000])
def test_other_scales_are_legal(bits):
    bench = Bench()
    bench.do(SetQuantPre(scale=bits))
    assert bench.messages == []


SPLIT = "copy_matrix_cc_to_gm.channel_split must"


@pytest.mark.parametrize(
    ("kind", "p", "message"),
    [
        (
            CopyMatrixCcToGm,
            {"quant_pre": "REQ8"},
            "copy_matrix_cc_to_gm.quant_pre must convert int32, got float32",
        ),
        (
            CopyMatrixCcToCbuf,
            {"quant_pre": "VREQ4"},
            "copy_matrix_cc_to_cbuf.quant_pre must convert int32, got float32",
        ),
        (
            CopyMatrixCcToCbuf,
            {"quant_pre": "QF322B4_PRE", "n_size": 48},
            "copy_matrix_cc_to_cbuf.n_size must be a multiple of 64 for int4, got 48",
        ),
        (
            CopyMatrixCcToCbuf,
            {"quant_pre": "QF322B8_PRE", "n_size": 40},
            "copy_matrix_cc_to_cbuf.n_size must be a multiple of 16 for int8, got 40",
        ),
        (
            CopyMatrixCcToCbuf,
            {"n_size": 8},
            "copy_matrix_cc_to_cbuf.n_size must be a multiple of 16 for float16, got 8",
        ),
        (
            CopyMatrixCcToGm,
            {"channel_split": True, "n_size": 12},
            "copy_matrix_cc_to_gm.n_size must be a multiple of 8 with channel_split, got 12",
        ),
        (
            CopyMatrixCcToGm,
            {"channel_split": True, "quant_pre": "F322F16"},
            f"{SPLIT} write float32 as it is, got float16",
        ),
        (
            CopyMatrixCcToGm,
            {"channel_split": True, "nz2nd_en": True},
            f"{SPLIT} be off with nz2nd_en, got on",
        ),
        (
            CopyMatrixCcToGm,
            {"channel_split": True, "unit_flag": 3},
            f"{SPLIT} be off with unit_flag, got on",
        ),
    ],
)
def test_what_it_refuses(kind, p, message):
    p = {"n_size": 16, "m_size": 16, "dst_stride": 16, "src_stride": 16} | p
    bench = Bench(gm_bytes=64)
    bench.do(SetQuantPre(scale=0x3F800000))
    bench.do(SetFpc(scales_at=0))
    bench.do(kind(src_type=element_type("float32"), **p), bench.base, 0)
    assert bench.messages == [f"parameter: {message}"]


def test_int4_is_for_l1_alone():
    bench = Bench(gm_bytes=64)
    p = FIELDS | {"dst_stride": 40}
    bench.do(template(CopyMatrixCcToGm, "REQ4", p), bench.base, 0)
    assert bench.messages == [
        "parameter: copy_matrix_cc_to_gm.quant_pre must be one of NoQuant, F322F16, F322BF16, "
        "DEQF16, VDEQF16, QF322B8_PRE, VQF322B8_PRE, REQ8, VREQ8, got 'REQ4'"
    ]


def test_nothing_reaches_l1_unconverted():
    bench = Bench()
    p = FIELDS | {"dst_stride": 40}
    bench.do(CopyMatrixCcToCbuf(src_type=element_type("float32"), quant_pre="NoQuant", **p), 0, 0)
    assert bench.messages == [
        "parameter: copy_matrix_cc_to_cbuf.quant_pre must be one of F322F16, F322BF16, "
        "QF322B8_PRE, VQF322B8_PRE, QF322B4_PRE, VQF322B4_PRE for float32 on Ascend910B3, got "
        "NoQuant"
    ]


def test_costs_follow_elements_and_bytes():
    """64 elements a cycle to L1, 32 B a cycle to the Fixpipe buffer, 20 cycles before each."""
    p = {"n_size": 128, "m_size": 64, "dst_stride": 64, "src_stride": 64}
    for mode in ("F322F16", "QF322B8_PRE"):
        assert template(CopyMatrixCcToCbuf, mode, p).cost(A2).busy == 20 + 128
    assert CopyCbufToFbuf(len_burst=4).cost(A2).busy == 20 + 16
