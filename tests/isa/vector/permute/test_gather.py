"""Gathers of elements and blocks against loops over offsets."""

import struct

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench
from isa.lanes import Mask, Operand, size_of

TYPES = ("int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32")
MASKS = [Mask(), Mask(low=0xF, high=1 << 63), Mask(count=77), Mask(count=300)]
OFFSET = 131072


def start(offsets: np.ndarray, seed: int) -> Bench:
    """Noise, a quarter of it unwritten; the offsets from OFFSET on."""
    bench = Bench(1, seed=seed)
    bench.noise(Mem.UB)
    bench.poke(Mem.UB, OFFSET, offsets.astype("<u4").tobytes())
    return bench


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_elements(dtype, mask):
    """From anywhere in the buffer; what nobody wrote arrives as unwritten."""
    size, rng = size_of(dtype), np.random.default_rng(111)
    width, src = 256 // size, 65536 + 32
    offsets = rng.integers(0, (131072 - src) // size, 5 * width) * size
    bench = start(offsets, 112)
    expected = bench.image(Mem.UB)
    dst = Operand(64, dtype, 1, 9)
    before = bench.image(Mem.UB)
    for repeat in range(mask.repeats(2, width)):
        for lane in range(width):
            if mask.on(repeat, lane, width):
                there = src + int(offsets[repeat * width + lane])
                here = dst.byte(repeat, lane)
                expected.put(here, before.get(there, size), int(before.written(there, size)))
    mask.set(bench)
    kind = instruction_named("vgather")
    bench.do(kind(dtype=element_type(dtype), repeat=2, dst_repeat_stride=9), 64, src, OFFSET)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


@pytest.mark.parametrize(
    "p",
    [
        {},
        {"repeat": 0},
        {"repeat": 3},
        {"repeat": 2, "dst_block_stride": 3, "dst_repeat_stride": 30},
        {"repeat": 2, "dst_block_stride": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_blocks(dtype, p):
    """A block stride of 0 counts as 1."""
    offsets = np.random.default_rng(113).integers(0, 1000, 24) * 32
    bench = start(offsets, 114)
    expected, before = bench.image(Mem.UB), bench.image(Mem.UB)
    size = size_of(dtype)
    for repeat in range(p.get("repeat", 1)):
        for block in range(8):
            here = repeat * p.get("dst_repeat_stride", 8) + block * (
                p.get("dst_block_stride", 1) or 1
            )
            there = 65536 + int(offsets[8 * repeat + block])
            for at in range(0, 32, size):
                known = int(before.written(there + at, size))
                expected.put(32 * here + at, before.get(there + at, size), known)
    Mask(low=1, high=0).set(bench)  # the mask does not count
    bench.do(instruction_named("vgatherb")(dtype=element_type(dtype), **p), 0, 65536, OFFSET)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_the_documented_gather():
    """asc-devkit, asc_gather: 1 to 128 in half, back to front."""
    bench = start(np.arange(254, -2, -2), 115)
    bench.poke(Mem.UB, 65536, struct.pack("<128e", *range(1, 129)))
    bench.do(instruction_named("vgather")(dtype=element_type("float16")), 0, 65536, OFFSET)
    assert struct.unpack("<128e", bench.image(Mem.UB).get(0, 256)) == tuple(range(128, 0, -1))


def findings(name: str, offsets: list[int], mask: Mask | None = None, **p) -> list[str]:
    bench = start(np.resize(offsets, 128), 116)
    (mask or Mask()).set(bench)
    bench.do(instruction_named(name)(**p), 0, 65536, OFFSET)
    return bench.messages


def test_offsets_that_are_not_multiples():
    half, word = element_type("float16"), element_type("uint32")
    assert findings("vgather", [0, 2, 5], dtype=half) == [
        "parameter: vgather: the offsets must be multiples of 2 B, got 5 at [0, 2]"
    ]
    assert findings("vgather", [0, 2, 5], Mask(low=3, high=0), dtype=half) == []
    assert findings("vgatherb", [0, 48], dtype=word) == [
        "parameter: vgatherb: the offsets must be multiples of 32 B, got 48 at [0, 1]"
    ]


def test_offsets_that_leave_the_unified_buffer():
    half, word = element_type("float16"), element_type("uint32")
    assert findings("vgather", [0, 131072], dtype=half) == [
        "out-of-bounds: vgather.src must stay inside UB (0 to 196608 B), got bytes [65536, 196610)"
    ]
    assert findings("vgatherb", [131072 - 32, 0], dtype=word)[0].startswith(
        "capacity: vgatherb.src"
    )
    assert findings("vgatherb", [2**32 - 32, 0], dtype=word) == [
        "out-of-bounds: vgatherb.src must stay inside UB (0 to 196608 B), "
        f"got bytes [65536, {65536 + 2**32})"
    ]


def test_offsets_that_nobody_wrote():
    bench = Bench(1)
    bench.poke(Mem.UB, 65536, bytes(512))
    bench.poke(Mem.UB, OFFSET, bytes(4 * 127))
    bench.buffer(Mem.UB).data[OFFSET + 4 * 127 :] = 0
    bench.do(instruction_named("vgather")(dtype=element_type("float16")), 0, 65536, OFFSET)
    assert bench.messages == [
        "uninitialised: vgather.offset must be initialised in UB, "
        "got 1 of 128 elements never written, first repeat 0, lane 127"
    ]
