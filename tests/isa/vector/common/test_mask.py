"""vadd, vsub, vmul, vmax, vmin and the mask, against loops over repeats, lanes and bytes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.control_registers import SetCtrl
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from isa.bench import ALL_ONES, Bench, Image
from isa.lanes import (
    CTRL,
    IEEE,
    INF,
    LARGEST,
    NAN,
    SATURATE,
    lane_byte,
    pack_float,
    pack_integer,
    size_of,
    unpack,
)

NAMES = ("vadd", "vsub", "vmul", "vmax", "vmin")
DTYPES = ("int16", "int32", "float16", "float32")
INTEGERS, FLOATS = ("int16", "int32"), ("float16", "float32")
every_name = pytest.mark.parametrize("name", NAMES)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def combine(name: str, dtype: str, raw0: bytes, raw1: bytes, ctrl: int) -> bytes:
    """One lane; spec/isa_semantics.md 2.5."""
    x, y = (unpack(dtype, raw) for raw in (raw0, raw1))
    if dtype in INTEGERS:
        value = {"vadd": x + y, "vsub": x - y, "vmul": x * y, "vmax": max(x, y), "vmin": min(x, y)}
        return pack_integer(value[name], dtype, bool(ctrl & SATURATE))
    return pack_float(float_value(name, x, y), dtype, ctrl)


def float_value(name: str, x: float, y: float) -> float:
    """The value in float64, which is wide enough for one rounding to suffice."""
    if math.isnan(x) or math.isnan(y):
        return NAN
    if name in {"vmax", "vmin"}:
        return (max if name == "vmax" else min)(x, y)
    if name == "vmul":
        return NAN if 0 in (x, y) and (math.isinf(x) or math.isinf(y)) else x * y
    return x + (y if name == "vadd" else -y)


ADJACENT = {"dst_block_stride": 1, "src0_block_stride": 1, "src1_block_stride": 1} | {
    "dst_repeat_stride": 8,
    "src0_repeat_stride": 8,
    "src1_repeat_stride": 8,
}


def vector_by_hand(
    before: Image, name: str, dtype: str, at: tuple[int, int, int], p: dict, mask: dict
) -> Image:
    """Repeat after repeat; within one, all lanes are read before any is written."""
    size, ctrl = size_of(dtype), mask.get("ctrl", 0)
    lanes = 256 // size
    p = ADJACENT | {"repeat": 1} | p
    repeats, count = p["repeat"], mask.get("count")
    if count is not None:
        repeats = -(-count // lanes)
    bits = mask.get("low", ALL_ONES) | mask.get("high", ALL_ONES) << 64
    after = Image(bytearray(before.data), bytearray(before.valid))
    for r in range(repeats):
        results = []
        for lane in range(lanes):
            on = r * lanes + lane < count if count is not None else bits >> lane & 1
            if not on:
                continue
            d, s0, s1 = (
                a + lane_byte(r, lane, size, p[f"{o}_block_stride"], p[f"{o}_repeat_stride"])
                for o, a in zip(("dst", "src0", "src1"), at, strict=True)
            )
            raw = combine(name, dtype, after.get(s0, size), after.get(s1, size), ctrl)
            results.append((d, raw))
        for d, raw in results:
            after.put(d, raw)
    return after


def run(bench: Bench, name: str, dtype: str, at, p: dict, mask: dict | None = None) -> None:
    mask = mask or {}
    expected = vector_by_hand(bench.image(Mem.UB), name, dtype, at, p, mask)
    bench.do(SetCtrl(value=mask.get("ctrl", 0)))
    if "count" in mask:
        bench.do(SetMaskCount())
        bench.do(SetVectorMask(mask_high=0, mask_low=mask["count"]))
    else:
        bench.do(SetMaskNorm())
        words = {"mask_high": mask.get("high", ALL_ONES), "mask_low": mask.get("low", ALL_ONES)}
        bench.do(SetVectorMask(**words))
    bench.do(instruction_named(name)(dtype=element_type(dtype), **p), *at)
    assert bench.messages == [], (name, dtype, p, mask)
    if dtype in FLOATS:
        allow_any_nan(bench, expected, dtype)
    bench.check(Mem.UB, expected)


def allow_any_nan(bench: Bench, expected: Image, dtype: str) -> None:
    """Which of the NaNs an operation gives is not documented: take the machine's."""
    got = bench.buffer(Mem.UB).data.view(dtype)
    wanted = np.frombuffer(expected.data, dtype)
    wanted[np.isnan(wanted) & np.isnan(got)] = got[np.isnan(wanted) & np.isnan(got)]


def numbers(bench: Bench, dtype: str) -> None:
    """Fill UB: every exponent for floats, both ends for integers, infinities and NaN among them."""
    rng, size = bench.rng, size_of(dtype)
    count = 196608 // size
    if dtype in INTEGERS:
        values = rng.integers(-(1 << 8 * size - 1), 1 << 8 * size - 1, count)
        values[::3] //= 1 << 4 * size
        raw = values.astype(dtype)
    else:
        limit = 15 if dtype == "float16" else 127
        scale = 2.0 ** rng.integers(-limit - 8, limit + 1, count)
        raw = (rng.uniform(-2, 2, count) * scale).clip(-LARGEST[dtype], LARGEST[dtype])
        raw = raw.astype(dtype)
        for place, value in enumerate((INF, -INF, NAN, 0.0, LARGEST[dtype], -LARGEST[dtype])):
            raw[place + 5 :: 37] = value
    bench.poke(Mem.UB, 0, raw.tobytes())


@every_name
@every_dtype
@pytest.mark.parametrize("ctrl", CTRL)
@pytest.mark.thinned(4)
def test_two_repeats_of_every_function(name, dtype, ctrl):
    bench = Bench(1, seed=5)
    numbers(bench, dtype)
    run(bench, name, dtype, (4096, 8192, 65536), {"repeat": 2}, {"ctrl": CTRL[ctrl]})


MASKS = [
    {"low": 1, "high": 0},
    {"low": 0x5555555555555555, "high": 0x5555555555555555},
    {"low": 0xFF, "high": 0},
    {"low": 1 << 63, "high": 1},
    {"low": 0xDEADBEEF12345678, "high": 0x8000000000000001},
    {"count": 1},
    {"count": 63},
    {"count": 64},
    {"count": 65},
    {"count": 128},
    {"count": 129},
    {"count": 1000},
    {"count": 0},
]


@every_dtype
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_masks(dtype, mask):
    bench = Bench(1, seed=6)
    numbers(bench, dtype)
    run(bench, "vadd", dtype, (0, 16384, 32768), {"repeat": 3}, mask)


def test_the_high_mask_word_only_matters_to_16_bits():
    for dtype in DTYPES:
        bench = Bench(1)
        numbers(bench, dtype)
        mask = {"low": 6, "high": 9}
        run(bench, "vsub", dtype, (0, 16384, 32768), {}, mask)


STRIDES = [
    {"repeat": 0},
    {"repeat": 255},
    {"repeat": 3, "dst_repeat_stride": 9},
    {"repeat": 3, "src0_repeat_stride": 0},
    {"repeat": 3, "src1_repeat_stride": 0},
    {"repeat": 3, "src0_repeat_stride": 4},
    {"repeat": 2, "dst_block_stride": 2, "dst_repeat_stride": 16},
    {"repeat": 2, "src0_block_stride": 3, "src1_block_stride": 0},
    # repeats that interleave: block 2 apart, repeats 1 apart
    {"repeat": 2, "dst_block_stride": 2, "dst_repeat_stride": 1},
    {"repeat": 4, "dst_repeat_stride": 0},
    {"repeat": 2, "dst_block_stride": 9, "src0_block_stride": 7, "src1_block_stride": 5}
    | {"dst_repeat_stride": 80, "src0_repeat_stride": 61, "src1_repeat_stride": 50},
    {"repeat": 2, "src0_block_stride": 255, "src0_repeat_stride": 255},
]


@every_dtype
@pytest.mark.parametrize("p", STRIDES, ids=str)
@pytest.mark.thinned(4)
def test_strides(dtype, p):
    bench = Bench(1, seed=8)
    numbers(bench, dtype)
    run(bench, "vadd", dtype, (0, 65536, 131072), p)


@pytest.mark.parametrize("operand", ["src0", "src1"])
@every_dtype
def test_in_place(dtype, operand):
    bench = Bench(1, seed=9)
    numbers(bench, dtype)
    at = (4096, 4096, 65536) if operand == "src0" else (4096, 65536, 4096)
    run(bench, "vadd", dtype, at, {"repeat": 4})


@pytest.mark.parametrize("dtype", ["float16", "int32", "float32"])
@pytest.mark.parametrize(
    "p",
    [
        {"repeat": 5, "dst_repeat_stride": 0, "src1_repeat_stride": 0},
        {"repeat": 3, "dst_repeat_stride": 8, "src1_repeat_stride": 0},
    ],
    ids=["accumulate", "chain"],
)
def test_dst_of_one_repeat_is_src1_of_the_next(dtype, p):
    bench = Bench(1)
    values = np.arange(1, 98305 if dtype == "float16" else 49153) % 7
    bench.poke(Mem.UB, 0, values.astype(dtype).tobytes())
    run(bench, "vadd", dtype, (4096, 65536, 4096), p)


@every_dtype
def test_counter_mode_ignores_the_repeat_argument(dtype):
    bench = Bench(1)
    numbers(bench, dtype)
    run(bench, "vmax", dtype, (0, 65536, 131072), {"repeat": 0}, {"count": 300})
    run(bench, "vmax", dtype, (0, 65536, 131072), {"repeat": 200}, {"count": 10})


def test_counter_mode_under_the_initial_mask_is_a_finding():
    """MASK[31:0] of all ones counts 2**32 - 1 elements, which leave UB."""
    bench = Bench(1)
    numbers(bench, "float32")
    bench.do(SetMaskCount())
    bench.do(instruction_named("vadd")(dtype=element_type("float32")), 0, 0, 0)
    assert bench.messages != []


def test_counter_mode_far_beyond_ub_is_a_finding():
    bench = Bench(1)
    numbers(bench, "float32")
    bench.do(SetMaskCount())
    bench.do(SetVectorMask(mask_high=0, mask_low=49153))
    bench.do(instruction_named("vadd")(dtype=element_type("float32")), 0, 0, 0)
    assert bench.messages[0] == (
        "out-of-bounds: vadd.dst must stay inside UB (0 to 196608 B), got bytes [0, 196612)"
    )


# --- numbers, value by value


def one(name: str, dtype: str, x: float, y: float, ctrl: str) -> float:
    bench = Bench(1)
    bench.poke(Mem.UB, 32, np.array([x], dtype).tobytes())
    bench.poke(Mem.UB, 64, np.array([y], dtype).tobytes())
    bench.do(SetCtrl(value=CTRL[ctrl]))
    bench.do(SetVectorMask(mask_high=0, mask_low=1))
    bench.do(instruction_named(name)(dtype=element_type(dtype)), 0, 32, 64)
    assert bench.messages == []
    return np.frombuffer(bench.image(Mem.UB).get(0, size_of(dtype)), dtype)[0]


@pytest.mark.parametrize(
    ("name", "dtype", "x", "y", "wrapped", "clamped"),
    [
        ("vadd", "int16", 32767, 1, -32768, 32767),
        ("vadd", "int16", -32768, -1, 32767, -32768),
        ("vsub", "int16", -32768, 32767, 1, -32768),
        ("vmul", "int16", 300, 300, 90000 - 65536, 32767),
        ("vmul", "int16", -32768, -32768, 0, 32767),
        ("vadd", "int32", 2**31 - 1, 1, -(2**31), 2**31 - 1),
        ("vsub", "int32", -(2**31), 1, 2**31 - 1, -(2**31)),
        ("vmul", "int32", 2**31 - 1, 2**31 - 1, 1, 2**31 - 1),
        ("vmul", "int32", -(2**31), -(2**31), 0, 2**31 - 1),
        ("vmul", "int32", 65536, 65536, 0, 2**31 - 1),
        ("vmax", "int16", -32768, 32767, 32767, 32767),
        ("vmin", "int32", -(2**31), 5, -(2**31), -(2**31)),
    ],
)
def test_integers_wrap_or_saturate(name, dtype, x, y, wrapped, clamped):
    assert one(name, dtype, x, y, "plain") == wrapped
    assert one(name, dtype, x, y, "ieee") == wrapped
    assert one(name, dtype, x, y, "saturating") == clamped
    assert one(name, dtype, x, y, "both") == clamped


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "x", "y", "ieee"),
    [
        ("vadd", "largest", "largest", INF),
        ("vsub", "-largest", "largest", -INF),
        ("vmul", "largest", "-largest", -INF),
        ("vadd", INF, 1.0, INF),
        ("vadd", INF, -INF, NAN),
        ("vsub", INF, INF, NAN),
        ("vmul", INF, 0.0, NAN),
        ("vmul", NAN, 1.0, NAN),
        ("vmax", INF, 1.0, INF),
        ("vmin", -INF, 1.0, -INF),
        ("vmax", NAN, 1.0, NAN),
        ("vmin", 1.0, NAN, NAN),
    ],
)
def test_halves_stay_finite_unless_ctrl_48_and_floats_never_do(dtype, name, x, y, ieee):
    largest = LARGEST[dtype]
    numbers_of = {"largest": largest, "-largest": -largest}
    x, y = numbers_of.get(x, x), numbers_of.get(y, y)
    with_infinities = float(one(name, dtype, x, y, "ieee"))
    finite = float(one(name, dtype, x, y, "plain"))
    assert with_infinities == ieee or (math.isnan(ieee) and math.isnan(with_infinities))
    if dtype == "float32":
        assert finite == ieee or (math.isnan(ieee) and math.isnan(finite))
    else:
        assert finite == (0.0 if math.isnan(ieee) else math.copysign(largest, ieee))


@pytest.mark.parametrize("ctrl", ["plain", "ieee"])
def test_the_largest_half_rounds_to_itself_below_the_tie(ctrl):
    """65504 + 15.99 rounds down to 65504; 65504 + 16 is the tie that overflows."""
    assert one("vadd", "float16", 65504, 15.992, ctrl) == 65504
    assert one("vadd", "float16", 65504, 16, ctrl) == (65504 if ctrl == "plain" else INF)


def nearest_even(exact: Fraction, bits: int, lowest: int) -> Fraction:
    """Round to `bits` significant bits, none below 2**lowest, ties to even."""
    if exact == 0:
        return exact
    size, exponent = abs(exact), 0
    exponent = math.floor(math.log2(size))
    exponent += (Fraction(2) ** (exponent + 1) <= size) - (Fraction(2) ** exponent > size)
    unit = Fraction(2) ** max(exponent - bits + 1, lowest)
    return round(exact / unit) * unit


@pytest.mark.parametrize(("dtype", "bits", "lowest"), [("float16", 11, -24), ("float32", 24, -149)])
@pytest.mark.parametrize("name", ["vadd", "vsub", "vmul"])
@pytest.mark.thinned(2)
def test_sums_and_products_are_rounded_once(name, dtype, bits, lowest):
    """Fractions decide; a result that were rounded twice, or toward zero, would differ."""
    bench = Bench(1, seed=11)
    size = size_of(dtype)
    count, rng = 128 * 256 // size, bench.rng
    near = 9 if dtype == "float16" else 30
    x, y = (
        (rng.integers(1 << bits - 1, 1 << bits, count) * rng.choice([-1.0, 1.0], count))
        * 2.0 ** rng.integers(-near - bits, -bits + (6 if dtype == "float16" else near), count)
        for _ in range(2)
    )
    x[:8], y[:8] = 2.0**lowest, 2.0 ** (lowest + 1)
    x, y = x.astype(dtype), y.astype(dtype)
    bench.poke(Mem.UB, 0, x.tobytes())
    bench.poke(Mem.UB, 65536, y.tobytes())
    bench.do(instruction_named(name)(dtype=element_type(dtype), repeat=128), 131072, 0, 65536)
    assert bench.messages == []
    got = np.frombuffer(bench.image(Mem.UB).get(131072, count * size), dtype)
    for a, b, c in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        p, q = Fraction(a), Fraction(b)
        exact = {"vadd": p + q, "vsub": p - q, "vmul": p * q}[name]
        assert Fraction(c) == nearest_even(exact, bits, lowest), (a, b)


# --- the mask registers


def test_a_stale_count_is_the_mask_of_normal_mode():
    """spec/isa_semantics.md 2.2: leaving counter mode leaves (0, n) behind as mask bits."""
    bench = Bench(1)
    numbers(bench, "float16")
    expected = vector_by_hand(
        bench.image(Mem.UB), "vadd", "float16", (0, 4096, 8192), {}, {"high": 0, "low": 100}
    )
    bench.do(SetMaskCount())
    bench.do(SetVectorMask(mask_high=0, mask_low=100))
    bench.do(SetMaskNorm())
    bench.do(instruction_named("vadd")(dtype=element_type("float16")), 0, 4096, 8192)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


@pytest.mark.parametrize(
    ("dtype", "high"), [("float16", 0), ("int16", 0), ("float32", 0), ("int32", ALL_ONES)]
)
def test_a_mask_without_lanes_is_a_finding(dtype, high):
    bench = Bench(1)
    numbers(bench, dtype)
    before = bench.image(Mem.UB)
    bench.do(SetVectorMask(mask_high=high, mask_low=0))
    bench.do(instruction_named("vmin")(dtype=element_type(dtype)), 0, 4096, 8192)
    assert bench.messages == [
        "parameter: vmin: the vector mask must have an active lane, got all lanes off"
    ]
    bench.check(Mem.UB, before)


def test_lanes_that_are_off_may_lie_outside_and_be_unwritten():
    bench = Bench(1)
    bench.poke(Mem.UB, 0, bytes(64))
    bench.do(SetVectorMask(mask_high=0, mask_low=0xFF))
    vadd = instruction_named("vadd")(dtype=element_type("float32"))
    bench.do(vadd, 196352 - 32, 0, 32)
    assert bench.messages == []
    after = bench.image(Mem.UB)
    assert after.written(196320, 32)
    assert not any(after.valid[196352:])


@pytest.mark.parametrize("value", [IEEE, SATURATE, IEEE | SATURATE, 0])
def test_ctrl_is_replaced_whole(value):
    bench = Bench(1)
    bench.do(SetCtrl(value=IEEE | SATURATE))
    bench.do(SetCtrl(value=value))
    assert bench.core.registers.ctrl == value
    assert bench.core.registers.float_ieee == bool(value & IEEE)
    assert bench.core.registers.int_saturates == bool(value & SATURATE)


def test_ctrl_refuses_bits_that_are_not_modelled():
    bench = Bench(1)
    bench.do(SetCtrl(value=IEEE))
    bench.do(SetCtrl(value=1 << 57 | 1 << 48 | 4))
    assert bench.messages == [
        "parameter: set_ctrl.value must set no bit but 48, 53, 56, 59 and 60, got bits [2, 57]"
    ]
    assert bench.core.registers.ctrl == IEEE


def test_ctrl_56_is_the_mode_of_the_mask():
    bench = Bench(1)
    bench.do(SetCtrl(value=IEEE))
    bench.do(SetMaskCount())
    assert bench.core.registers.ctrl == IEEE | 1 << 56
    bench.do(SetCtrl(value=0))
    assert not bench.core.registers.mask_counts
    bench.do(SetCtrl(value=1 << 56 | SATURATE))
    assert bench.core.registers.mask_counts
    bench.do(SetMaskNorm())
    assert bench.core.registers.ctrl == SATURATE


def test_mask_words_and_mode_are_kept():
    bench = Bench(1)
    registers = bench.core.registers
    initial = (registers.mask_high, registers.mask_low, registers.mask_counts)
    assert initial == (ALL_ONES, ALL_ONES, False)
    bench.do(SetVectorMask(mask_high=3, mask_low=5))
    bench.do(SetMaskCount())
    registers = bench.core.registers
    assert (registers.mask_high, registers.mask_low, registers.mask_counts) == (3, 5, True)
    bench.do(SetMaskNorm())
    registers = bench.core.registers
    assert (registers.mask_high, registers.mask_low, registers.mask_counts) == (3, 5, False)
