"""Reductions against loops that add and compare as the documents say."""

import math
import struct

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, spelled
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench, Image
from isa.lanes import (
    CODES,
    CTRL,
    IEEE,
    INF,
    NAN,
    Mask,
    Operand,
    any_nan,
    fill,
    pack_float,
    size_of,
    unpack,
)

DTYPES = ("float16", "float32")
MASKS = (Mask(), Mask(low=0x8001_00FF_0000_0F05, high=0xFF00), Mask(low=1 << 40, high=0))
COUNTS = (Mask(count=1), Mask(count=130), Mask(count=300))
ORDERS = ("value_index", "index_value", "only_value", "only_index")
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_mask = pytest.mark.parametrize("mask", [*MASKS, *COUNTS], ids=str)


def total(values: list[float | None], dtype: str, ctrl: int) -> float:
    """Neighbours first, then neighbours of those; None is a lane that does not count.

    What comes out of a step is clamped, whether it had one addend or two.
    """
    while len(values) > 1:
        level = []
        for x, y in zip(values[::2], values[1::2], strict=True):
            some = [v for v in (x, y) if v is not None]
            exact = some[0] + some[1] if len(some) == 2 else some[0] if some else None
            level.append(None if exact is None else unpack(dtype, pack_float(exact, dtype, ctrl)))
        values = level
    assert values[0] is not None
    return values[0]


def extreme(values: list[float | None], largest: bool) -> tuple[float, int]:
    """The extreme (NaN first, then by value, +0 above -0) and the first lane that equals it."""
    lanes = [(i, v) for i, v in enumerate(values) if v is not None]
    for i, v in lanes:
        if math.isnan(v):
            return NAN, i
    best = (max if largest else min)(v for _, v in lanes)
    place = next(i for i, v in lanes if v == best)
    if best == 0:
        signs = [math.copysign(1, v) for _, v in lanes if v == 0]
        best = math.copysign(0.0, (max if largest else min)(signs))
    return best, place


def sources(before: Image, dtype: str, repeat: int, mask: Mask, p: dict) -> list[float | None]:
    """The lanes of one repeat of src, which lies at 65536."""
    size = size_of(dtype)
    src = Operand(65536, dtype, p.get("src_block_stride", 1), p.get("src_repeat_stride", 8))
    width = 256 // size
    return [
        unpack(dtype, before.get(src.byte(repeat, lane), size))
        if mask.on(repeat, lane, width)
        else None
        for lane in range(width)
    ]


def start(dtype: str, seed: int, mask: Mask, ctrl: int) -> Bench:
    bench = Bench(1, seed=seed)
    bench.noise(Mem.UB, written=True)
    fill(bench, dtype, 65536)
    mask.ctrl = ctrl
    mask.set(bench)
    return bench


def finish(bench: Bench, name: str, dtype: str, expected: Image, p: dict) -> None:
    bench.do(instruction_named(name)(dtype=element_type(dtype), **p), 0, 65536)
    assert bench.messages == []
    any_nan(bench, expected, dtype)
    bench.check(Mem.UB, expected)


STRIDES = [
    {},
    {"repeat": 0},
    {"repeat": 3},
    {"repeat": 3, "dst_repeat_stride": 5, "src_block_stride": 3, "src_repeat_stride": 24},
    {"repeat": 2, "src_repeat_stride": 0, "src_block_stride": 0},
]
every_stride = pytest.mark.parametrize("p", STRIDES, ids=str)
every_ctrl = pytest.mark.parametrize("ctrl", ["plain", "ieee"])


@pytest.mark.thinned(3)
@every_ctrl
@every_stride
@every_mask
@every_dtype
def test_repeat_sum(dtype, mask, p, ctrl):
    bench = start(dtype, 81, mask, CTRL[ctrl])
    expected, size = bench.image(Mem.UB), size_of(dtype)
    before = bench.image(Mem.UB)
    for repeat in range(mask.repeats(p.get("repeat", 1), 256 // size)):
        value = total(sources(before, dtype, repeat, mask, p), dtype, CTRL[ctrl])
        here = repeat * p.get("dst_repeat_stride", 1) * size
        expected.put(here, pack_float(value, dtype, IEEE))
    finish(bench, "vcadd", dtype, expected, p)


@every_ctrl
@pytest.mark.parametrize("p", STRIDES[2:], ids=str)
@every_mask
@every_dtype
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["vcmax", "vcmin"])
@pytest.mark.thinned(4)
def test_repeat_extreme(name, order, dtype, mask, p, ctrl):
    bench = start(dtype, 82, mask, CTRL[ctrl])
    if ctrl == "plain":  # without NaN, whose extreme hides all others
        fill_without_nan(bench, dtype)
    expected, size = bench.image(Mem.UB), size_of(dtype)
    before, largest = bench.image(Mem.UB), name == "vcmax"
    found = []
    for repeat in range(mask.repeats(p.get("repeat", 1), 256 // size)):
        value, index = extreme(sources(before, dtype, repeat, mask, p), largest)
        raw = pack_float(value, dtype, CTRL[ctrl])
        found.append((unpack(dtype, raw), repeat * (256 // size) + index))
        parts = {"value": raw, "index": struct.pack("<Q", index)[:size]}
        if order == "only_index":
            parts["index"] = struct.pack("<I", index)
        result = b"".join(parts[w] for w in order.removeprefix("only_").split("_"))
        expected.put(repeat * p.get("dst_repeat_stride", 1) * len(result), result)
    finish(bench, name, dtype, expected, {**p, "order": order})
    best, place = extreme([value for value, _ in found], largest)
    bits, index = bench.core.scalars(instruction_named("get_max_min_cnt")())
    got = struct.unpack("<" + CODES[dtype], struct.pack("<Q", bits)[:size])[0]
    assert got == best or (math.isnan(got) and math.isnan(best))
    assert index == found[place][1]


def fill_without_nan(bench: Bench, dtype: str) -> None:
    """Whole numbers with many equals, zeros of both signs and infinities among them."""
    import numpy as np

    values = bench.rng.integers(-20, 21, 131072 // size_of(dtype)).astype(dtype)
    values[5::97], values[6::89], values[7::11] = np.inf, -np.inf, -0.0
    bench.poke(Mem.UB, 65536, values.tobytes())


@every_ctrl
@every_stride
@every_mask
@every_dtype
@pytest.mark.thinned(4)
def test_block_sum(dtype, mask, p, ctrl):
    by_block("vcgadd", dtype, mask, p, CTRL[ctrl])


@every_ctrl
@every_stride
@every_mask
@every_dtype
@pytest.mark.parametrize("name", ["vcgmax", "vcgmin"])
@pytest.mark.thinned(4)
def test_block_extreme(name, dtype, mask, p, ctrl):
    by_block(name, dtype, mask, p, CTRL[ctrl])


def by_block(name: str, dtype: str, mask: Mask, p: dict, ctrl: int) -> None:
    """Eight results; a block without a lane writes nothing."""
    bench = start(dtype, 83, mask, ctrl)
    expected, size = bench.image(Mem.UB), size_of(dtype)
    before, c0 = bench.image(Mem.UB), 32 // size
    for repeat in range(mask.repeats(p.get("repeat", 1), 256 // size)):
        lanes = sources(before, dtype, repeat, mask, p)
        for block in range(8):
            values = lanes[block * c0 : (block + 1) * c0]
            if all(v is None for v in values):
                continue
            if name == "vcgadd":
                raw = pack_float(total(values, dtype, ctrl), dtype, IEEE)
            else:
                raw = pack_float(extreme(values, name == "vcgmax")[0], dtype, ctrl)
            here = repeat * p.get("dst_repeat_stride", 1) * 8 * size + block * size
            expected.put(here, raw)
    finish(bench, name, dtype, expected, p)


@every_ctrl
@every_stride
@every_mask
@every_dtype
@pytest.mark.thinned(4)
def test_pair_sum(dtype, mask, p, ctrl):
    bench = start(dtype, 84, mask, CTRL[ctrl])
    expected, size = bench.image(Mem.UB), size_of(dtype)
    before = bench.image(Mem.UB)
    for repeat in range(mask.repeats(p.get("repeat", 1), 256 // size)):
        lanes = sources(before, dtype, repeat, mask, p)
        for pair in range(128 // size):
            values = lanes[2 * pair : 2 * pair + 2]
            if any(v is not None for v in values):
                here = repeat * p.get("dst_repeat_stride", 1) * 128 + pair * size
                expected.put(here, pack_float(total(values, dtype, CTRL[ctrl]), dtype, IEEE))
    finish(bench, "vcpadd", dtype, expected, p)


# --- what the documents print


def one(name: str, dtype: str, values: list[float], ctrl: int, mask: Mask | None = None) -> float:
    """The first result of one repeat whose lanes are `values`, over and over."""
    bench = Bench(1)
    count = 256 // size_of(dtype)
    cycled = (values * count)[:count]
    bench.poke(Mem.UB, 4096, struct.pack(f"<{count}{CODES[dtype]}", *cycled))
    mask = mask or Mask()
    mask.ctrl = ctrl
    mask.set(bench)
    bench.do(instruction_named(name)(dtype=element_type(dtype)), 0, 4096)
    assert bench.messages == []
    return unpack(dtype, bench.image(Mem.UB).get(0, size_of(dtype)))


def test_half_sums_are_clamped_pair_by_pair():
    """asc-devkit, asc_repeat_reduce_sum: 60000 + 60000 - 30000 + 100, clamped to 65504 - 29900.

    The page prints 35604; half holds 29904 of the second pair and multiples of 32 of the result.
    """
    first_four = Mask(low=15, high=0)
    assert one("vcadd", "float16", [60000, 60000, -30000, 100], 0, first_four) == 35584
    assert one("vcadd", "float16", [60000, 60000, -30000, 100], IEEE, first_four) == INF


ONES = [1.0] * 127
EDGES = [
    # tables 33 to 38 for half: (lanes, with infinities, clamped)
    ("vcadd", [-65504.0], -INF, -65504.0),
    ("vcadd", [65504.0], INF, 65504.0),
    ("vcadd", [-0.0], -0.0, -0.0),
    ("vcadd", [NAN], NAN, 0.0),
    ("vcadd", [INF, -INF], NAN, 0.0),
    ("vcadd", [INF, -INF, NAN], NAN, 0.0),
    ("vcadd", [*ONES, INF], INF, 65504.0),
    ("vcadd", [*ONES, -INF], -INF, -65376.0),
    ("vcadd", [*ONES, NAN], NAN, 126.0),
    ("vcgadd", [*ONES[:15], NAN], NAN, 14.0),
    ("vcgadd", [-INF], -INF, -65504.0),
    ("vcmax", [INF, -INF], INF, 65504.0),
    ("vcmax", [INF, NAN], NAN, 0.0),
    ("vcmax", [*ONES, -INF], 1.0, 1.0),
    ("vcmax", [*ONES, NAN], NAN, 0.0),
    ("vcmin", [*ONES, INF], 1.0, 1.0),
    ("vcmin", [INF, -INF], -INF, -65504.0),
    ("vcgmax", [-0.0], -0.0, -0.0),
    ("vcgmax", [*ONES[:15], NAN], NAN, 0.0),
    ("vcgmin", [INF, -INF, NAN], NAN, 0.0),
]
"""Two rows of table 35 are left out: 15 ones and an infinity add up to 65344 there, which no order
of sums gives."""


@pytest.mark.parametrize(("name", "lanes", "ieee", "clamped"), EDGES)
def test_documented_edges_of_half(name, lanes, ieee, clamped):
    for ctrl, wanted in ((IEEE, ieee), (0, clamped)):
        got = one(name, "float16", lanes, ctrl)
        same = math.isnan(got) if math.isnan(wanted) else got == wanted
        assert same, (ctrl, got)
        if wanted == 0:
            assert math.copysign(1, got) == math.copysign(1, wanted)


def test_the_documented_index():
    """asc-devkit, asc_repeat_reduce_max: 1 to 256 in half; asc_get_reduce_max_cnt: 256 at 255."""
    bench = Bench(1)
    bench.poke(Mem.UB, 4096, struct.pack("<256e", *range(1, 257)))
    ((kind, fixed),) = spelled("asc_repeat_reduce_max_value_index")
    bench.do(kind(dtype=element_type("float16"), repeat=2, **fixed), 0, 4096)
    assert struct.unpack("<eHeH", bench.image(Mem.UB).get(0, 8)) == (128.0, 127, 256.0, 127)
    bits, index = bench.core.scalars(instruction_named("asc_get_reduce_min_cnt")())
    assert (struct.unpack("<e", struct.pack("<H", bits))[0], index) == (256.0, 255)


@pytest.mark.parametrize(
    ("order", "dtype", "align"),
    [
        *((order, "float16", 4) for order in ("value_index", "index_value", "only_index")),
        *((order, "float32", 8) for order in ("value_index", "index_value")),
        *(("only_value", "float16", 2), ("only_value", "float32", 4), ("only_index", "float32", 4)),
    ],
)
def test_dst_is_aligned_to_a_result(order, dtype, align):
    """asc-devkit, basic API, ReduceRepeat, table 3."""
    template = instruction_named("vcmax")(dtype=element_type(dtype), order=order)
    for at in (align, align + align // 2):
        bench = Bench(1)
        fill(bench, dtype)
        bench.do(template, at, 65536)
        wanted = f"misaligned: vcmax.dst must start at a multiple of {align} B in UB, got {at}"
        assert bench.messages == ([] if at == align else [wanted])
