"""Conversions in every rounding mode, against integer arithmetic on the formats' own bits."""

import math
import struct
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, spelled
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench
from isa.lanes import CODES, IEEE, INF, NAN, Mask, Operand, Run, fill, size_of
from parts import strided

WRAPS = 1 << 59 | 1 << 60
DIRECTED = ("rint", "round", "floor", "ceil", "trunc")
ANY = ("none", *DIRECTED)
NAMES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "int4": "s4",
    "int8": "s8",
    "uint8": "u8",
    "int16": "s16",
    "int32": "s32",
    "int64": "s64",
}
PAIRS = {
    ("float16", "float32"): ("none",),
    ("bfloat16", "float32"): ("none",),
    ("float32", "float16"): (*ANY, "odd"),
    ("float32", "bfloat16"): DIRECTED,
    ("float32", "float32"): DIRECTED,
    ("float32", "int16"): DIRECTED,
    ("float32", "int32"): DIRECTED,
    ("float32", "int64"): DIRECTED,
    ("float16", "int4"): ANY,
    ("float16", "int8"): ANY,
    ("float16", "uint8"): ANY,
    ("float16", "int16"): DIRECTED,
    ("float16", "int32"): DIRECTED,
    ("bfloat16", "int32"): DIRECTED,
    ("int4", "float16"): ("none",),
    ("int8", "float16"): ("none",),
    ("uint8", "float16"): ("none",),
    ("int16", "float16"): ANY,
    ("int16", "float32"): ("none",),
    ("int32", "float32"): ANY,
    ("int64", "float32"): DIRECTED,
    ("int32", "int16"): ("none",),
    ("int32", "int64"): ("none",),
    ("int64", "int32"): ("none",),
}
"""asc-devkit, basic API, Cast, the table of A2 and A3."""
FORMAT = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23)}
"""Bits of the exponent and of the fraction."""


def bits(dtype: str) -> int:
    return 4 if dtype == "int4" else 8 * size_of(dtype)


def run(source: str, target: str, rounding: str, raw: bytes, ctrl: int = 0) -> bytes:
    """Convert as many values as `raw` holds; src lies at 0, dst behind it."""
    bench = Bench(1)
    name = f"vconv_{NAMES[source]}2{NAMES[target]}"
    lanes = 256 // max(bits(source) // 8, bits(target) // 8, 1)
    count = len(raw) * 8 // bits(source)
    assert count % lanes == 0
    assert count // lanes <= 255
    bench.poke(Mem.UB, 0, raw)
    at = -(-len(raw) // 256) * 256
    Mask(ctrl=ctrl).set(bench)
    bench.do(instruction_named(name)(rounding=rounding, repeat=count // lanes), at, 0)
    assert bench.messages == []
    return bench.image(Mem.UB).get(at, count * bits(target) // 8)


# --- rounding, in integers


def decode(code: int, dtype: str) -> Fraction | float:
    """The exact value of a float's bits."""
    exponents, fractions = FORMAT[dtype]
    sign = -1 if code >> exponents + fractions & 1 else 1
    exponent, fraction = code >> fractions & (1 << exponents) - 1, code & (1 << fractions) - 1
    if exponent == (1 << exponents) - 1:
        return NAN if fraction else sign * INF
    if exponent:
        fraction |= 1 << fractions
    power = max(exponent, 1) - (1 << exponents - 1) + 1 - fractions
    return Fraction(sign * fraction * 2 ** max(power, 0), 2 ** max(-power, 0))


def to_integral(numerator: int, denominator: int, mode: str) -> int:
    """numerator / denominator as an integer; asc-devkit, precision conversion, table 1."""
    low, rest = divmod(numerator, denominator)
    if not rest:
        return low
    match mode:
        case "floor":
            return low
        case "ceil":
            return low + 1
        case "trunc":
            return low + (numerator < 0)
        case "odd":
            return low | 1
    twice = 2 * rest
    if twice != denominator:
        return low + (twice > denominator)
    if mode == "round":
        return low + (numerator > 0)
    return low + (low & 1)


def integer_range(dtype: str) -> tuple[int, int]:
    wide = bits(dtype)
    return (0, 2**wide - 1) if dtype[0] == "u" else (-(2 ** (wide - 1)), 2 ** (wide - 1) - 1)


def settle(value: float, dtype: str, wraps: bool) -> int:
    """Clamp, or keep the low bits; infinities are clamped and NaN is 0 either way."""
    low, high = integer_range(dtype)
    if isinstance(value, float):
        return 0 if math.isnan(value) else high if value > 0 else low
    if wraps:
        return (value - low) % 2 ** bits(dtype) + low
    return min(max(value, low), high)


@cache
def integral(dtype: str, mode: str) -> tuple[int | float, ...]:
    """Every 16-bit code of a format, rounded to an integer."""
    result = []
    for code in range(65536):
        value = decode(code, dtype)
        exact = isinstance(value, float)
        result.append(value if exact else to_integral(value.numerator, value.denominator, mode))
    return tuple(result)


EVERY_CODE = np.arange(65536, dtype=np.uint16)
NARROW = [(s, t, m) for (s, t), ms in PAIRS.items() for m in ms if s in ("float16", "bfloat16")]


@pytest.mark.parametrize("kind", strided(n for n in NARROW if n[1][:5] != "float"), ids=str)
@pytest.mark.thinned(12)
def test_every_16_bit_float_to_an_integer(kind):
    """All 65536 codes; CTRL[59] means nothing without CTRL[60], CTRL[48] nothing here."""
    source, target, mode = kind
    settled = {wraps: settled_bytes(source, target, mode, wraps) for wraps in (False, True)}
    for ctrl in (0, IEEE, WRAPS, 1 << 59):
        got = b"".join(
            run(source, target, mode, EVERY_CODE[part << 13 :][: 1 << 13].tobytes(), ctrl)
            for part in range(8)
        )
        assert got == settled[ctrl == WRAPS], hex(ctrl)


def settled_bytes(source, target, mode, wraps):
    """Return every code's integer, as memory holds them."""
    wanted = [settle(value, target, wraps) for value in integral(source, mode)]
    if target == "int4":
        return bytes(
            (a & 15) | (b & 15) << 4 for a, b in zip(wanted[::2], wanted[1::2], strict=True)
        )
    return np.array(wanted, element_type(target).numpy).tobytes()


@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_every_16_bit_float_to_float(source):
    for part in range(8):
        codes = EVERY_CODE[part << 13 :][: 1 << 13]
        got = np.frombuffer(run(source, "float32", "none", codes.tobytes()), np.float32)
        for code, value in zip(codes.tolist(), got.tolist(), strict=True):
            exact = decode(code, source)
            assert value == exact or (math.isnan(value) and math.isnan(exact))
            sign = -1 if code >> 15 and not (value == 0 and source == "float16") else 1
            assert math.copysign(1, value) == sign or math.isnan(value)


@pytest.mark.parametrize(("source", "codes"), [("int8", "b"), ("uint8", "B")])
def test_every_8_bit_integer_to_half(source, codes):
    raw = bytes(range(256))
    wanted = struct.pack("<256e", *struct.unpack(f"<256{codes}", raw))
    assert run(source, "float16", "none", raw) == wanted


def test_every_4_bit_integer_to_half():
    """The low half of a byte comes first."""
    raw = bytes(range(256))
    wanted = [nibble - 16 if nibble > 7 else nibble for b in raw for nibble in (b & 15, b >> 4)]
    assert run("int4", "float16", "none", raw) == struct.pack("<512e", *wanted)


# --- to floats


def to_float(exact: Fraction, dtype: str, mode: str, ieee: bool) -> Fraction | float:
    """Round to the format; beyond it infinity, or the largest value."""
    exponents, fractions = FORMAT[dtype]
    if exact == 0:
        return Fraction(0)
    size = abs(exact)
    power = size.numerator.bit_length() - size.denominator.bit_length()
    power -= size < Fraction(2) ** power
    lowest = 2 - (1 << exponents - 1) - fractions
    unit = Fraction(2) ** max(power - fractions, lowest)
    scaled = exact / unit
    rounded = to_integral(scaled.numerator, scaled.denominator, mode) * unit
    most = (2 - Fraction(1, 2**fractions)) * 2 ** ((1 << exponents - 1) - 1)
    if abs(rounded) > most:
        return math.copysign(INF, rounded) if ieee else (most if rounded > 0 else -most)
    return rounded


def code_of(value: Fraction | float, dtype: str, negative: bool) -> int:
    """The bits of an exact or special value, independently of struct."""
    exponents, fractions = FORMAT[dtype]
    sign = int(negative) << exponents + fractions
    top = (1 << exponents) - 1 << fractions
    if isinstance(value, float):
        return sign | top | (1 << fractions - 1 if math.isnan(value) else 0)
    size = abs(value)
    if size == 0:
        return sign
    bias = (1 << exponents - 1) - 1
    power = max(math.floor(math.log2(size)), 1 - bias)
    significand = size / Fraction(2) ** (power - fractions)
    while significand >= 2 << fractions:
        power, significand = power + 1, significand / 2
    while significand < 1 << fractions and power > 1 - bias:
        power, significand = power - 1, significand * 2
    assert significand.denominator == 1
    exponent = power + bias if significand >= 1 << fractions else 0
    return sign | exponent << fractions | int(significand) & (1 << fractions) - 1


def compare(got: bytes, exacts: list[Fraction | float], signs: list[bool], dtype: str, mode, ieee):
    """Compare results with exact sources rounded by hand; any NaN is as good as another."""
    size = bits(dtype) // 8
    for place, (exact, negative) in enumerate(zip(exacts, signs, strict=True)):
        code = int.from_bytes(got[place * size : (place + 1) * size], "little")
        if isinstance(exact, float) and math.isnan(exact):
            assert math.isnan(decode(code, dtype)) if ieee else code == 0, place
            continue
        if isinstance(exact, float):
            most = (2 - Fraction(1, 2 ** FORMAT[dtype][1])) * 2 ** ((1 << FORMAT[dtype][0] - 1) - 1)
            wanted = exact if ieee else (most if exact > 0 else -most)
        else:
            wanted = to_float(exact, dtype, mode, ieee)
        assert code == code_of(wanted, dtype, negative), (place, exact, mode)


def test_code_of_is_the_inverse_of_decode():
    for code in range(0, 65536, 7):
        value = decode(code, "float16")
        if not (isinstance(value, float) and math.isnan(value)):
            assert code_of(value, "float16", bool(code >> 15)) == code


def to_eleven_bits(value: int, mode: str) -> float:
    """An integer below 2**16 in half: 11 significant bits."""
    unit = 1 << max(abs(value).bit_length() - 11, 0)
    return float(to_integral(value, unit, mode) * unit)


@pytest.mark.parametrize("mode", ANY)
def test_every_16_bit_integer_to_half(mode):
    codes = np.arange(-32768, 32768).astype(np.int16)
    for part in range(4):
        values = codes[part << 14 :][: 1 << 14]
        got = struct.unpack("<16384e", run("int16", "float16", mode, values.tobytes()))
        assert list(got) == [to_eleven_bits(v, mode) for v in values.tolist()]


def test_every_16_bit_integer_to_float():
    codes = np.arange(-32768, 32768).astype(np.int16)
    for part in range(8):
        values = codes[part << 13 :][: 1 << 13]
        got = struct.unpack("<8192f", run("int16", "float32", "none", values.tobytes()))
        assert list(got) == [float(v) for v in values.tolist()]


def near_ties(target: str, seed: int) -> np.ndarray:
    """Floats on, just below and just above what `target` can hold or halfway between two."""
    rng = np.random.default_rng(seed)
    _, fractions = FORMAT[target]
    count = 1024 - 32
    power = rng.integers(*((-140, 128) if target == "bfloat16" else (-28, 18)), count)
    steps = rng.integers(1 << fractions, 2 << fractions, count) * 2 + rng.integers(0, 2, count)
    values = np.ldexp(steps.astype(np.float64), power - fractions - 1).astype(np.float32)
    moved = np.nextafter(values, np.float32(INF) * rng.choice([-1, 1], count)).astype(np.float32)
    values = np.where(rng.random(count) < 0.5, values, moved) * rng.choice([-1, 1], count)
    edges = [0.0, -0.0, INF, -INF, NAN, 65504, 65519.99, 65520, 65536, 1e38, -3.4028235e38, 2**-149]
    edges += [2**-24, 2**-25, 2**-25 * 1.0001, 6e-8, 2**-14, -(2**-126), 1.17e-38, 3.3895e38]
    return np.concatenate([values, np.resize(edges, 32)]).astype(np.float32)


@pytest.mark.parametrize("ctrl", [0, IEEE], ids=["plain", "ieee"])
@pytest.mark.parametrize(
    ("target", "mode"),
    [(t, m) for t in ("float16", "bfloat16") for m in PAIRS["float32", t]],
)
@pytest.mark.thinned(4)
def test_float_to_a_narrower_float(target, mode, ctrl):
    values = near_ties(target, 41)
    got = run("float32", target, mode, values.tobytes(), ctrl)
    codes = values.view(np.uint32).tolist()
    exacts = [decode(code, "float32") for code in codes]
    compare(got, exacts, [bool(c >> 31) for c in codes], target, mode, bool(ctrl))


@pytest.mark.parametrize("mode", DIRECTED)
def test_float_to_an_integral_float(mode):
    with np.errstate(over="ignore"):
        values = near_ties("float16", 42) * np.float32(64)
    got = np.frombuffer(run("float32", "float32", mode, values.tobytes()), np.float32)
    for x, y in zip(values.tolist(), got.tolist(), strict=True):
        if not math.isfinite(x):
            assert y == x or math.isnan(y)
            continue
        exact = Fraction(x)
        wanted = to_integral(exact.numerator, exact.denominator, mode)
        assert y == wanted
        assert wanted or math.copysign(1, y) == 1  # -0 becomes +0


def integer_edges(seed: int) -> np.ndarray:
    """Floats around the limits of the integer types, and halves."""
    rng = np.random.default_rng(seed)
    limits = np.array([15, 16, 31, 32, 63, 64])
    around = (2.0**limits)[:, None] * np.array([1, 1 - 2**-24, 1 + 2**-23, 1.5, 3.25])
    halves = rng.integers(-40000, 40000, 700) / 2
    some = np.array([INF, -INF, NAN, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3e38, 1e-40, 2**23 + 1])
    values = np.concatenate([around.ravel(), -around.ravel(), halves, some])
    spread = rng.uniform(-1, 1, 1024 - values.size) * 2.0 ** rng.integers(0, 40, 1024 - values.size)
    return np.concatenate([values, spread]).astype(np.float32)


@pytest.mark.parametrize("ctrl", [0, WRAPS], ids=["plain", "wraps"])
@pytest.mark.parametrize(
    ("target", "mode"), [(t, m) for t in ("int16", "int32", "int64") for m in DIRECTED]
)
def test_float_to_an_integer(target, mode, ctrl):
    values = integer_edges(43)
    got = np.frombuffer(run("float32", target, mode, values.tobytes(), ctrl), target)
    for x, y in zip(values.tolist(), got.tolist(), strict=True):
        exact = Fraction(x) if math.isfinite(x) else x
        if isinstance(exact, Fraction):
            exact = to_integral(exact.numerator, exact.denominator, mode)
        assert y == settle(exact, target, bool(ctrl)), x


BELOW = 2147483520
"""The float32 below 2^31."""


def integers(dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, 960, endpoint=True, dtype=dtype)
    values >>= rng.integers(0, info.bits - 1, 960).astype(dtype)
    powers = [2**p + d for p in (24, 25, 26, 30, 31, 32, 53, 54, 62, 63) for d in (-1, 0, 1)]
    edges = [v for p in powers for v in (p, -p) if info.min <= v <= info.max]
    return np.concatenate([values, np.resize([*edges, info.min, info.max, 0], 64)]).astype(dtype)


@pytest.mark.parametrize(
    ("source", "mode"),
    [(s, m) for s in ("int32", "int64", "int16") for m in PAIRS[s, "float32"]],
)
def test_integer_to_float(source, mode):
    values = integers(source, 44)
    got = run(source, "float32", mode, values.tobytes())
    most = BELOW if source == "int32" else math.inf
    exacts = [Fraction(min(v, most)) for v in values.tolist()]
    compare(got, exacts, [v < 0 for v in exacts], "float32", mode, True)


@pytest.mark.parametrize("mode", PAIRS["int32", "float32"])
def test_the_largest_int32_in_float(mode):
    """Boundary values, table 32: 2147483520 and -2147483648."""
    ends = np.array([2**31 - 1, -(2**31), 2**31 - 64, 2**31 - 129], np.int32)
    got = np.frombuffer(run("int32", "float32", mode, np.resize(ends, 1024).tobytes()), np.float32)
    assert got[:3].tolist() == [BELOW, -(2.0**31), BELOW]
    assert got[3] <= BELOW


@pytest.mark.parametrize("ctrl", [0, WRAPS], ids=["plain", "wraps"])
@pytest.mark.parametrize(
    ("source", "target"), [("int32", "int16"), ("int64", "int32"), ("int32", "int64")]
)
def test_integer_to_integer(source, target, ctrl):
    values = integers(source, 45)
    got = np.frombuffer(run(source, target, "none", values.tobytes(), ctrl), target)
    assert got.tolist() == [settle(v, target, bool(ctrl)) for v in values.tolist()]


# --- lanes, masks, names


MASKS = (Mask(low=0x3C, high=0), Mask(low=1, high=2, count=None), Mask(count=70))


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize(
    ("source", "target"),
    [("float16", "float32"), ("float32", "bfloat16"), ("int64", "int32"), ("int8", "float16")],
)
def test_the_wider_type_decides_the_lanes(source, target, mask):
    """The narrow operand's lanes fill fewer blocks, each with its own strides."""
    bench = Bench(1, seed=46)
    fill(bench, source)
    operands = {"dst": Operand(0, target, 2, 17), "src": Operand(98304, source, 3, 25)}
    mode = PAIRS[source, target][0]
    template = instruction_named(f"vconv_{NAMES[source]}2{NAMES[target]}")(
        rounding=mode,
        repeat=2,
        **{f"{n}_block_stride": o.block for n, o in operands.items()},
        **{f"{n}_repeat_stride": o.repeat for n, o in operands.items()},
    )

    def lane(v: dict) -> bytes:
        code = struct.pack("<f", v["src"]) if target == "bfloat16" else b""
        if target == "bfloat16":
            exact = decode(int.from_bytes(code, "little"), "float32")
            if isinstance(exact, float):
                wanted = 0.0 if math.isnan(exact) else math.copysign(3.3895313892515355e38, exact)
                return struct.pack("<f", wanted)[2:]
            rounded = to_float(exact, target, mode, False)
            return code_of(rounded, target, math.copysign(1, v["src"]) < 0).to_bytes(2, "little")
        value = settle(v["src"], target, False) if target.startswith("int") else v["src"] + 0.0
        return struct.pack("<" + CODES[target], value)

    Run(template, operands, lane, mask).check(bench)


def test_a_mask_of_64_bit_lanes():
    """Seed 003: one word of which the low 32 bits count."""
    off = ["have an active lane, got all lanes off"]
    for low, wanted in ((1, []), (2**32 - 1, []), (2**32, off)):
        bench = Bench(1)
        fill(bench, "int64")
        Mask(low=low, high=0).set(bench)
        bench.do(instruction_named("vconv_s642s32")(), 65536, 0)
        subject = "parameter: vconv_s642s32: the vector mask must "
        assert bench.messages == [subject + text for text in wanted]


def test_lanes_that_share_a_byte_are_alike():
    kind = instruction_named("vconv_f162s4")
    for mask, wanted in (
        (Mask(low=0b1100, high=0), []),
        (
            Mask(low=0b0110, high=0),
            ["treat both lanes of a byte alike, got lane 0 unlike the next"],
        ),
        (
            Mask(low=3, high=1 << 62),
            ["treat both lanes of a byte alike, got lane 126 unlike the next"],
        ),
        (Mask(count=10), []),
        (Mask(count=11), ["count an even number, got 11"]),
    ):
        bench = Bench(1)
        fill(bench, "float16")
        mask.set(bench)
        bench.do(kind(), 65536, 0)
        subject = "parameter: vconv_f162s4: the vector mask must "
        assert bench.messages == [subject + text for text in wanted]


def test_masked_nibbles():
    bench = Bench(1)
    fill(bench, "float16")
    bench.poke(Mem.UB, 0, struct.pack("<8e", 1, 2, 3, 4, 5, 6, 7, -8))
    bench.poke(Mem.UB, 65536, bytes(64))
    Mask(low=0b11001100, high=0).set(bench)
    bench.do(instruction_named("vconv_f162s4")(), 65536, 0)
    assert bench.image(Mem.UB).get(65536, 5) == bytes([0, 0x43, 0, 0x87, 0])


SUFFIX = {"rint": "rn", "round": "rna", "floor": "rd", "ceil": "ru", "trunc": "rz", "odd": "ro"}
WORDS = {"float16": "half", "bfloat16": "bfloat16", "float32": "float"}


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_c_api_name_fixes_its_rounding(source, target):
    (from_, to) = (WORDS.get(t, t) for t in (source, target))
    kind = instruction_named(f"vconv_{NAMES[source]}2{NAMES[target]}")
    for mode in PAIRS[source, target]:
        name = f"asc_{from_}2{to}" + (f"_{SUFFIX[mode]}" if mode != "none" else "")
        fixed = {} if mode == "none" else {"rounding": mode}
        assert spelled(name) == ((kind, fixed),)
        assert kind(**fixed).rounding == mode
