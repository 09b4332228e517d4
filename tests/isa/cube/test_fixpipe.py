"""Fixpipe, against loops over bytes; its conversion, over every half and its neighbours."""

import struct

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.chips.products import fixpipe_modes
from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe import CopyMatrixCcToCbuf, CopyMatrixCcToGm
from cubecore.isa.cube.fixpipe_registers import SetNdPara
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.scale_registers import SetQuantPre
from cubecore.isa.program.check import template_violations
from isa.bench import Bench, Image

FORMS = {
    "float32": ("float32", "NoQuant", "f", 4),
    "int32": ("int32", "NoQuant", "i", 4),
    "to half": ("float32", "F322F16", "e", 2),
    "to brain": ("float32", "F322BF16", "", 2),
}


def brain(value: float) -> bytes:
    """The upper half of a float32, to nearest even; NaN is 0 and infinity the largest number."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bytes(2)
    upper = bits + 0x7FFF + (bits >> 16 & 1) >> 16
    if upper & 0x7FFF >= 0x7F80:
        upper = upper & 0x8000 | 0x7F7F
    return struct.pack("<H", upper)


def convert(raw: bytes, form: str, relu: bool) -> bytes:
    """One element: ReLU, then float32 to float16 to nearest even, finite."""
    source, quant, code, _ = FORMS[form]
    (value,) = struct.unpack("<i" if source == "int32" else "<f", raw)
    if relu and value < 0:
        value = 0
    if quant == "NoQuant":
        return struct.pack("<" + code, value)
    if quant == "F322BF16":
        return brain(value)
    try:
        return struct.pack("<e", value)
    except OverflowError:
        return struct.pack("<e", 65504.0 if value > 0 else -65504.0)


def fixpipe_by_hand(bench: Bench, at: tuple[int, int], form: str, p: dict, nd=(1, 0, 0)) -> Image:
    """Rows of ND, or columns of 16, from the columns of fractals of L0C."""
    source, after = bench.image(Mem.L0C), bench.image(Mem.GM)
    there, here = at
    size = FORMS[form][3]
    tall = p["src_stride"]
    for matrix in range(nd[0]):
        for i in range(p["m_size"]):
            for j in range(p["n_size"]):
                # a row of 16 four-byte elements of L0C is 64 B
                taken = there + matrix * nd[1] * 1024 + ((j // 16) * tall + i) * 64 + (j % 16) * 4
                if p.get("nz2nd_en"):
                    to = (matrix * nd[2] + i * p["dst_stride"] + j) * size
                else:
                    to = (j // 16) * p["dst_stride"] * 32 + (i * 16 + j % 16) * size
                raw = convert(source.get(taken, 4), form, p.get("relu_pre", False))
                written = source.written(taken, 4) or pads_columns(source, there, p, i, j)
                after.put(here + to, raw, int(written))
    return after


def pads_columns(source: Image, there: int, p: dict, i: int, j: int) -> bool:
    """True of a column of NZ in which, and behind which, its fractal has no results."""
    if p.get("nz2nd_en"):
        return False

    def written(row: int, column: int) -> bool:
        taken = there + ((column // 16) * p["src_stride"] + row) * 64 + (column % 16) * 4
        return bool(source.written(taken, 4))

    fractal = range(i // 16 * 16, min(i // 16 * 16 + 16, p["m_size"]))
    columns = range(j // 16 * 16, j // 16 * 16 + 16)
    behind = any(written(row, column) for row in fractal for column in columns if column >= j)
    return not behind and any(written(i, column) for column in columns)


def template_of(form: str, p: dict) -> CopyMatrixCcToGm:
    source, quant, _, _ = FORMS[form]
    return CopyMatrixCcToGm(src_type=element_type(source), quant_pre=quant, **p)


def values_in_l0c(bench: Bench, form: str) -> None:
    """Numbers of both signs, a part of them never written."""
    raw = bench.rng.integers(-100_000, 100_000, 32768)
    raw[::7] = 0
    values = raw.astype(np.int32) if form == "int32" else (raw / 1000).astype(np.float32)
    bench.poke(Mem.L0C, 0, values.tobytes())
    unwritten = bench.rng.random(32768) < 0.2
    bench.buffer(Mem.L0C).valid[:] = np.repeat(~unwritten, 4)
    bench.buffer(Mem.L0C).valid[40] = 0  # a byte of an element is enough


TILES = [
    {"n_size": 16, "m_size": 16, "dst_stride": 16, "src_stride": 16},
    {"n_size": 40, "m_size": 30, "dst_stride": 40, "src_stride": 32},
    {"n_size": 40, "m_size": 30, "dst_stride": 40, "src_stride": 0},
    {"n_size": 33, "m_size": 5, "dst_stride": 77, "src_stride": 16},
    {"n_size": 17, "m_size": 1, "dst_stride": 17, "src_stride": 16},
    # rows of L0C that belong to no whole number of fractals
    {"n_size": 35, "m_size": 20, "dst_stride": 50, "src_stride": 21},
    {"n_size": 1, "m_size": 33, "dst_stride": 3, "src_stride": 48},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("p", TILES, ids=str)
def test_nz_to_nd(form, relu, p):
    p = p | {"nz2nd_en": True, "relu_pre": relu}
    bench = Bench(seed=p["n_size"], gm_bytes=12_000)
    bench.noise(Mem.GM)
    values_in_l0c(bench, form)
    expected = fixpipe_by_hand(bench, (128, 10), form, p)
    bench.do(template_of(form, p), bench.base + 10, 128)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(
    "p",
    [
        {"n_size": 16, "m_size": 16, "dst_stride": 32, "src_stride": 16},
        {"n_size": 48, "m_size": 30, "dst_stride": 60, "src_stride": 32},
        {"n_size": 48, "m_size": 30, "dst_stride": 61, "src_stride": 0},
        {"n_size": 32, "m_size": 1, "dst_stride": 2, "src_stride": 16},
        {"n_size": 64, "m_size": 17, "dst_stride": 37, "src_stride": 40},
    ],
    ids=str,
)
def test_nz_stays_nz_and_drops_rows(form, relu, p):
    p = p | {"relu_pre": relu}
    bench = Bench(seed=p["n_size"], gm_bytes=12_000)
    bench.noise(Mem.GM)
    values_in_l0c(bench, form)
    expected = fixpipe_by_hand(bench, (64, 6), form, p)
    bench.do(template_of(form, p), bench.base + 6, 64)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nd", [(2, 2, 600), (3, 5, 701), (2, 0, 640), (4, 1, 19)], ids=str)
def test_nz_to_nd_of_several_matrices(form, nd):
    p = {"n_size": 19, "m_size": 13, "dst_stride": 19, "src_stride": 16, "nz2nd_en": True}
    if nd == (4, 1, 19):
        # matrices interleaved row by row, as DN-like batches are
        p["dst_stride"] = 4 * 19
    bench = Bench(seed=nd[0], gm_bytes=12_000)
    bench.noise(Mem.GM)
    values_in_l0c(bench, form)
    expected = fixpipe_by_hand(bench, (0, 0), form, p, nd)
    bench.do(SetNdPara(nd_num=nd[0], src_nd_stride=nd[1], dst_nd_stride=nd[2]))
    bench.do(template_of(form, p), bench.base, 0)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


@pytest.mark.parametrize("flag", [2, 3])
def test_the_unit_flag_changes_no_value(flag):
    p = {"n_size": 33, "m_size": 5, "dst_stride": 77, "src_stride": 16, "nz2nd_en": True}
    bench = Bench(gm_bytes=4096)
    bench.noise(Mem.GM)
    values_in_l0c(bench, "to half")
    expected = fixpipe_by_hand(bench, (0, 0), "to half", p)
    bench.do(template_of("to half", p | {"unit_flag": flag}), bench.base, 0)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


def test_set_nd_para_says_nothing_of_nz():
    p = {"n_size": 16, "m_size": 16, "dst_stride": 32, "src_stride": 16}
    bench = Bench(gm_bytes=4096)
    bench.noise(Mem.GM)
    values_in_l0c(bench, "float32")
    expected = fixpipe_by_hand(bench, (0, 0), "float32", p)
    bench.do(SetNdPara(nd_num=3, src_nd_stride=1, dst_nd_stride=256))
    bench.do(template_of("float32", p), bench.base, 0)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


def test_set_nd_para_holds_until_it_is_set_again():
    p = {"n_size": 16, "m_size": 2, "dst_stride": 16, "src_stride": 16, "nz2nd_en": True}
    bench = Bench(gm_bytes=4096)
    bench.noise(Mem.GM)
    values_in_l0c(bench, "float32")
    expected = fixpipe_by_hand(bench, (0, 0), "float32", p)
    bench.do(SetNdPara(nd_num=3, src_nd_stride=1, dst_nd_stride=256))
    bench.do(SetNdPara(nd_num=1, src_nd_stride=0, dst_nd_stride=1))
    bench.do(template_of("float32", p), bench.base, 0)
    bench.check(Mem.GM, expected)


# --- float32 to float16, every half

FINITE = np.arange(0x7C00, dtype=np.uint16)  # the non-negative finite halves, in order
HALVES = FINITE.view(np.float16).astype(np.float32)


def run_conversion(values: np.ndarray, *, relu: bool = False) -> np.ndarray:
    """Push float32 values through fixpipe, 16 rows of as many columns as fit at a time."""
    results = []
    for start in range(0, values.size, 32768):
        part = np.resize(values[start : start + 32768], 32768).astype(np.float32)
        bench = Bench(gm_bytes=65536)
        bench.poke(Mem.L0C, 0, part.tobytes())
        p = {"n_size": 2048, "m_size": 16, "dst_stride": 16, "src_stride": 16, "relu_pre": relu}
        bench.do(template_of("to half", p), bench.base, 0)
        assert bench.messages == []
        results.append(np.frombuffer(bench.image(Mem.GM).get(0, 65536), np.float16))
    return np.concatenate(results)[: values.size]


def cases() -> tuple[np.ndarray, np.ndarray]:
    """Return (float32, expected half code): each half, the ties above it, and what is near."""
    upper = np.append(HALVES[1:], np.float32(65536))
    ties = (HALVES + upper) / np.float32(2)  # exact in float32
    above, below = np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(0))
    after = np.minimum(FINITE + 1, 0x7BFF).astype(np.uint16)  # never beyond 65504
    even = np.where(FINITE % 2 == 0, FINITE, after).astype(np.uint16)
    just_above = np.nextafter(HALVES, np.float32(np.inf))
    just_below = np.nextafter(HALVES[1:], np.float32(0))
    values = np.concatenate([HALVES, just_above, just_below, below, ties, above])
    codes = np.concatenate([FINITE, FINITE, FINITE[1:], FINITE, even, after])
    return values, codes


@pytest.mark.parametrize("sign", [1, -1])
def test_every_half_and_what_lies_between(sign):
    values, codes = cases()
    got = run_conversion(values * np.float32(sign))
    wanted = codes | (0x8000 if sign < 0 else 0)
    assert np.array_equal(got.view(np.uint16), wanted.astype(np.uint16))


def test_relu_before_the_conversion():
    values, codes = cases()
    got = run_conversion(values, relu=True)
    assert np.array_equal(got.view(np.uint16), codes)
    got = run_conversion(-values[1:], relu=True)
    assert np.array_equal(got, np.zeros(values.size - 1, np.float16))


@pytest.mark.parametrize(
    ("value", "half"),
    [
        (65504.0, 65504.0),
        (65519.99, 65504.0),
        (65520.0, 65504.0),
        (70000.0, 65504.0),
        (3.4e38, 65504.0),
        (float("inf"), 65504.0),
        (-65520.0, -65504.0),
        (float("-inf"), -65504.0),
        (float("nan"), 0.0),
        (1e-45, 0.0),
        (2.0**-25, 0.0),
        (2.0**-25 * 1.0001, 2.0**-24),
        (-1e-45, -0.0),
    ],
)
def test_the_ends_of_half(value, half):
    (got,) = run_conversion(np.array([value], np.float32))
    assert struct.pack("<e", got) == struct.pack("<e", half)


def test_every_nan_becomes_zero():
    payloads = np.arange(1, 1 << 23, 4099, dtype=np.uint32)
    values = np.concatenate([payloads | 0x7F800000, payloads | 0xFF800000]).astype(np.uint32)
    got = run_conversion(values.view(np.float32))
    assert not got.view(np.uint16).any()


# --- what it refuses


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (
            {"form": "int32", "quant_pre": "F322F16", "nz2nd_en": True},
            "copy_matrix_cc_to_gm.quant_pre must convert float32, got int32",
        ),
        (
            {"m_size": 8193, "nz2nd_en": True},
            "copy_matrix_cc_to_gm.m_size must be in [1, 8192] with nz2nd_en, got 8193",
        ),
        (
            {"n_size": 17},
            "copy_matrix_cc_to_gm.n_size must be a multiple of 16 without nz2nd_en, got 17",
        ),
        ({"nd_num": 2}, "copy_matrix_cc_to_gm.nd_num must be 1 without nz2nd_en, got 2"),
    ],
)
def test_what_it_refuses(p, message):
    p = {"n_size": 16, "m_size": 16, "dst_stride": 16, "src_stride": 16} | p
    source = element_type(p.pop("form", "float32"))
    bench = Bench(gm_bytes=64)
    bench.do(CopyMatrixCcToGm(src_type=source, **p), bench.base, 0)
    assert bench.messages == [f"parameter: {message}"]


def test_every_float32_beside_a_bfloat16_is_rounded_once():
    """Each bfloat16, its ties with the next one, and the neighbours of both; NaN and infinity."""
    upper = np.arange(65536, dtype=np.uint32) << 16
    bits = np.concatenate([upper + d for d in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    values = bits.astype(np.uint32).view(np.float32)
    template = CopyMatrixCcToGm(
        src_type=element_type("float32"),
        n_size=16,
        m_size=1,
        dst_stride=16,
        src_stride=16,
        quant_pre="F322BF16",
    )
    got = template.compute({"src": values}, Registers())["dst"]
    wanted = b"".join(brain(value) for value in values.tolist())
    assert got.astype(got.dtype).tobytes() == wanted


@pytest.mark.parametrize("on", ["KirinX90", "Kirin9030"])
@pytest.mark.parametrize("nd", [True, False])
def test_half_sums_of_kirin_are_written_as_they_are(on, nd):
    """Fractals of 16 x 16 halves, 512 B each, in columns; no page has their conversion."""
    bench = Bench(0, gm_bytes=8192, on=chip(on))
    values = np.arange(3 * 2 * 256, dtype=np.float16).reshape(2, 48, 16)
    bench.poke(Mem.L0C, 0, values.tobytes())
    shape = {"n_size": 32, "m_size": 40, "dst_stride": 32 if nd else 48, "src_stride": 48}
    half = element_type("float16")
    bench.do(CopyMatrixCcToGm(src_type=half, nz2nd_en=nd, **shape), bench.base, 0)
    assert bench.messages == []
    found = np.frombuffer(bench.image(Mem.GM).get(0, 8192), np.float16)
    if nd:
        rows = np.concatenate([values[0], values[1]], axis=1)[:40]
        assert np.array_equal(found[: 40 * 32].reshape(40, 32), rows)
    else:
        assert np.array_equal(found[: 40 * 16].reshape(40, 16), values[0, :40])
        assert np.array_equal(found[48 * 16 :][: 40 * 16].reshape(40, 16), values[1, :40])


KIRIN_TO_L1 = {
    "KirinX90": {("float32", "float16"): "F322F16", ("float32", "int8"): "QF322B8_PRE"}
    | {("int32", "float16"): "DEQF16", ("int32", "int8"): "REQ8"}
    | {("float16", "float16"): "NoQuant"},
    "Kirin9030": {("float32", "float16"): "F322F16", ("int32", "float16"): "DEQF16"}
    | {("float16", "float16"): "NoQuant"},
}
"""Fixpipe to L1, tables of types; halves as they are, which is inferred."""


@pytest.mark.parametrize("on", KIRIN_TO_L1)
@pytest.mark.parametrize("source", ["float32", "int32", "float16"])
@pytest.mark.parametrize("mode", sorted(fixpipe_modes("L1", "2201", "3003", "3113")))
def test_kirin_converts_to_l1_what_its_tables_have(on, source, mode):
    made = CopyMatrixCcToCbuf(
        src_type=element_type(source),
        quant_pre=mode,
        n_size=64,
        m_size=8,
        dst_stride=8,
        src_stride=16,
    )
    wrong = template_violations(made, chip(on))
    taken = any(of == source and own == mode for (of, _), own in KIRIN_TO_L1[on].items())
    assert (wrong == ()) == taken
    if taken:
        assert KIRIN_TO_L1[on][source, made.dst_type.name] == mode


@pytest.mark.parametrize("on", KIRIN_TO_L1)
def test_sums_of_kirin_reach_l1_as_operands(on):
    """Halves as they are; X90's int32 times a scale of 0.5, in columns of fractals."""
    bench = Bench(0, on=chip(on))
    halves = np.arange(2 * 48 * 16, dtype=np.float16).reshape(2, 48, 16)
    shape = {"n_size": 32, "m_size": 40, "dst_stride": 48, "src_stride": 48}
    bench.poke(Mem.L0C, 0, halves.tobytes())
    bench.do(
        CopyMatrixCcToCbuf(src_type=element_type("float16"), quant_pre="NoQuant", **shape), 0, 0
    )
    found = np.frombuffer(bench.image(Mem.L1).get(0, 2 * 48 * 32), np.float16).reshape(2, 48, 16)
    assert np.array_equal(found[:, :40], halves[:, :40])
    whole = np.arange(2 * 48 * 16, dtype=np.int32).reshape(2, 48, 16)
    bench.poke(Mem.L0C, 0, whole.tobytes())
    bench.do(SetQuantPre(scale=0x3F000000))
    word = element_type("int32")
    bench.do(CopyMatrixCcToCbuf(src_type=word, quant_pre="DEQF16", **shape), 0, 0)
    found = np.frombuffer(bench.image(Mem.L1).get(0, 2 * 48 * 32), np.float16).reshape(2, 48, 16)
    assert np.array_equal(found[:, :40], (whole[:, :40] / 2).astype(np.float16))
    assert bench.messages == []
