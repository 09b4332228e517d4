"""Gather mask and squeeze against loops over the bits of a pattern."""

import struct

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench, Image
from isa.lanes import Mask, lane_byte, size_of

BUILT_IN = {1: "0101", 2: "1010", 3: "0001", 4: "0010", 5: "0100", 6: "1000", 7: "1111"}
"""asc-devkit, asc_reduce; the last digit is the first element."""
every_dtype = pytest.mark.parametrize("dtype", ["uint16", "uint32"])


def start(seed: int) -> Bench:
    bench = Bench(1, seed=seed)
    bench.noise(Mem.UB)
    bench.buffer(Mem.UB).valid[131072:] = 1
    return bench


def by_hand(bench: Bench, dtype: str, repeats: int, width: int, p: dict, bit) -> tuple[Image, int]:
    """dst at 0, src0 at 65536; returns the count too."""
    after, before, size = bench.image(Mem.UB), bench.image(Mem.UB), size_of(dtype)
    kept = 0
    strides = p.get("src0_block_stride", 1), p.get("src0_repeat_stride", 8)
    for repeat in range(repeats):
        for element in range(width):
            if bit(repeat, element):
                there = 65536 + lane_byte(repeat, element, size, *strides)
                after.put(kept * size, before.get(there, size), int(before.written(there, size)))
                kept += 1
    return after, kept


def finish(bench: Bench, name: str, dtype: str, expected: tuple[Image, int], p: dict) -> None:
    template = instruction_named(name)(dtype=element_type(dtype), **p)
    bench.do(template, *(0, 65536, 131072)[: len(template.operands())])
    assert bench.messages == []
    image, kept = expected
    bench.check(Mem.UB, image)
    assert bench.core.scalars(instruction_named("get_rsvd_cnt")()) == (kept,)


STRIDES = [
    {},
    {"repeat": 0},
    {"repeat": 3},
    {"repeat": 2, "src0_block_stride": 2, "src0_repeat_stride": 19},
    {"repeat": 300, "src0_repeat_stride": 1},
]
every_stride = pytest.mark.parametrize("p", STRIDES, ids=str)


@every_stride
@every_dtype
@pytest.mark.parametrize("pattern", BUILT_IN)
def test_built_in_patterns(pattern, dtype, p):
    """Whatever the mask's bits are."""
    bench = start(121)
    Mask(low=1, high=0).set(bench)
    digits, width = BUILT_IN[pattern], 256 // size_of(dtype)
    repeats = p.get("repeat", 1)
    if repeats == 300 and pattern == 7:
        return  # more than lies before src0
    bench.noise(Mem.UB)
    expected = by_hand(bench, dtype, repeats, width, p, lambda _, e: digits[3 - e % 4] == "1")
    finish(bench, "vreducev2", dtype, expected, {"pattern": pattern, **p})


def stored(bench: Bench, stride: int):
    """Bits of the pattern in memory at 131072; successive repeats lie `stride` blocks apart."""
    image = bench.image(Mem.UB)
    return lambda repeat, e: image.get(131072 + 32 * stride * repeat + e // 8, 1)[0] >> e % 8 & 1


@every_stride
@every_dtype
@pytest.mark.parametrize("stride", [0, 1, 3])
def test_a_pattern_in_memory(dtype, p, stride):
    if p.get("repeat") == 300:
        p = p | {"repeat": 200}
    bench = start(122)
    width = 256 // size_of(dtype)
    repeats = p.get("repeat", 1)
    expected = by_hand(bench, dtype, repeats, width, p, stored(bench, stride))
    finish(bench, "vreducev2", dtype, expected, {"pattern": 0, "src1_repeat_stride": stride, **p})


@every_dtype
@pytest.mark.parametrize("pattern", [0, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 70, 128, 200])
def test_counter_mode_counts_the_elements_of_a_repeat(dtype, pattern, count):
    """Basic API, GatherMask: repeat times as many elements as the mask counts."""
    bench = start(123)
    digits, p = BUILT_IN.get(pattern, ""), {"repeat": 2, "src0_repeat_stride": 30}
    bit = stored(bench, 2) if pattern == 0 else lambda _, e: digits[3 - e % 4] == "1"
    expected = by_hand(bench, dtype, 2, count, p, bit)
    Mask(count=count).set(bench)
    finish(bench, "vreducev2", dtype, expected, {"pattern": pattern, "src1_repeat_stride": 2, **p})


@every_dtype
def test_squeeze(dtype):
    bench = start(124)
    width, p = (
        256 // size_of(dtype),
        {"repeat": 3, "src0_block_stride": 2, "src0_repeat_stride": 17},
    )
    expected = by_hand(bench, dtype, 3, width, p, stored(bench, 8))
    finish(bench, "vreduce", dtype, expected, p | {"dst_block_stride": 5, "dst_repeat_stride": 7})


def test_the_documented_gather_mask():
    """Basic API, GatherMask: 1 to 256, pattern 2, in place, leave 2, 4 ... 256 and 128."""
    bench = Bench(1)
    bench.poke(Mem.UB, 0, struct.pack("<256H", *range(1, 257)))
    template = instruction_named("vreducev2")(dtype=element_type("uint16"), pattern=2, repeat=2)
    bench.do(template, 0, 0)
    assert struct.unpack("<128H", bench.image(Mem.UB).get(0, 256)) == tuple(range(2, 258, 2))
    assert bench.core.scalars(instruction_named("asc_get_rsvd_count")()) == (128,)


def test_a_pattern_that_nobody_wrote():
    bench = Bench(1)
    bench.poke(Mem.UB, 65536, bytes(256))
    bench.buffer(Mem.UB).data[131072:] = 0
    bench.do(
        instruction_named("vreducev2")(dtype=element_type("uint16"), pattern=0), 0, 65536, 131072
    )
    assert bench.messages == [
        "uninitialised: vreducev2.src1 must be initialised in UB, "
        "got 8 of 8 elements never written, first repeat 0, word 0"
    ]


def test_a_count_far_beyond_the_unified_buffer():
    bench = Bench(1)
    Mask(count=2**20).set(bench)
    template = instruction_named("vreducev2")(dtype=element_type("uint16"), pattern=7, repeat=9)
    bench.do(template, 0, 65536)
    assert bench.messages == [
        "parameter: vreducev2: repeats of the count must take at most 8388608 elements, got 9437184"
    ]
