"""Duplicate, copy and broadcast against loops over bytes."""

import struct

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.numerics.conversion import bits_of
from isa.bench import Bench
from isa.lanes import CODES, INF, NAN, Mask, Operand, Run, size_of

VALUES = {
    "float16": (1.5, INF, NAN, -0.0),
    "bfloat16": (3.140625, -INF),
    "float32": (0.1, NAN),
    "int16": (-2, 32767),
    "uint16": (65535,),
    "int32": (-(2**31), 7),
    "uint32": (2**32 - 1,),
}
MASKS = (Mask(), Mask(low=0xF0F0, high=1), Mask(count=100))


def raw(value: float, dtype: str) -> bytes:
    if dtype == "bfloat16":
        return struct.pack("<f", value)[2:]
    return struct.pack("<" + CODES[dtype], value)


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize(("dtype", "value"), [(d, v) for d, vs in VALUES.items() for v in vs])
def test_duplicate(dtype, value, mask):
    bench = Bench(1, seed=61)
    bench.noise(Mem.UB)
    element = element_type(dtype)
    template = instruction_named("vector_dup")(
        dtype=element,
        value=bits_of(value, element),
        repeat=3,
        dst_block_stride=2,
        dst_repeat_stride=17,
    )
    operands = {"dst": Operand(64, dtype, 2, 17)}
    Run(template, operands, lambda _: raw(value, dtype), mask).check(bench)


def nearest_half(exact):
    """The half next to an integer, ties to even, from the halves' spacing; 65504 at most."""
    spacing = max(1, 2 ** (max(abs(exact), 1).bit_length() - 11))
    below = exact // spacing
    twice = 2 * (exact - below * spacing)
    below += twice > spacing or (twice == spacing and below % 2)
    return float(max(-65504, min(65504, below * spacing)))


@pytest.mark.parametrize("mask", [*MASKS, Mask(count=500)], ids=str)
@pytest.mark.parametrize(
    ("dtype", "first"),
    [
        *(("int16", 0), ("int16", -100), ("int16", 32700), ("int32", 2**31 - 5)),
        *(("float16", 0), ("float16", -2050), ("float16", 65472), ("float32", 0.25)),
        *(("float32", -(2**24)), ("int32", -3)),
    ],
)
def test_index(dtype, first, mask):
    """It counts on over repeats and over lanes that are off."""
    bench = Bench(1, seed=63)
    bench.noise(Mem.UB)
    element = element_type(dtype)
    template = instruction_named("CreateVecIndex")(
        dtype=element,
        first=bits_of(first, element),
        repeat=3,
        dst_block_stride=2,
        dst_repeat_stride=17,
    )
    dst = Operand(64, dtype, 2, 17)
    run = Run(template, {"dst": dst}, lambda _: b"", mask)
    expected = bench.image(Mem.UB)
    for repeat in range(mask.repeats(3, run.width)):
        for lane in range(run.width):
            if not mask.on(repeat, lane, run.width):
                continue
            exact = first + repeat * run.width + lane
            if dtype == "float16":
                stored = struct.pack("<e", nearest_half(exact))
            elif dtype == "float32":
                stored = struct.pack("<f", exact)
            else:
                bits = 8 * size_of(dtype)
                stored = (exact % 2**bits).to_bytes(bits // 8, "little")
            expected.put(dst.byte(repeat, lane), stored)
    mask.set(bench)
    bench.do(template, 64)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_index_saturates_by_ctrl():
    bench = Bench(1)
    bench.do(instruction_named("set_ctrl")(value=1 << 53))
    bench.do(instruction_named("vci")(dtype=element_type("int16"), first=32766), 0)
    assert struct.unpack("<4h", bench.image(Mem.UB).get(0, 8)) == (32766, 32767, 32767, 32767)


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32"])
def test_copy(dtype, mask):
    """What nobody wrote arrives as unwritten."""
    bench = Bench(1, seed=62)
    bench.noise(Mem.UB)
    size = size_of(dtype)
    run = Run(
        instruction_named("vcopy")(
            dtype=element_type(dtype), repeat=2, src_block_stride=2, dst_repeat_stride=9
        ),
        {"dst": Operand(0, dtype, 1, 9), "src": Operand(65536, dtype, 2, 8)},
        lambda v: struct.pack("<" + CODES[dtype], v["src"]),
        mask,
    )
    before = bench.image(Mem.UB)
    expected = run.by_hand(before)
    for repeat in range(mask.repeats(2, run.width)):
        for lane in range(run.width):
            if mask.on(repeat, lane, run.width):
                there, here = (run.operands[o].byte(repeat, lane) for o in ("src", "dst"))
                known = before.written(there, size)
                expected.valid[here : here + size] = bytes([known] * size)
    mask.set(bench)
    bench.do(run.template, 0, 65536)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


@pytest.mark.parametrize(
    "p",
    [
        {},
        {"repeat": 0},
        {"repeat": 2},
        {"repeat": 3, "dst_block_stride": 2, "dst_repeat_stride": 20},
        {"repeat": 2, "dst_block_stride": 300, "dst_repeat_stride": 5},
        {"repeat": 2, "dst_block_stride": 0, "dst_repeat_stride": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_broadcast(dtype, p):
    bench = Bench(1, seed=63)
    bench.noise(Mem.UB)
    size = size_of(dtype)
    values = bench.rng.integers(0, 256, 64 * size, dtype="uint8").tobytes()
    bench.poke(Mem.UB, 131072, values)
    expected = bench.image(Mem.UB)
    block, step = p.get("dst_block_stride", 1) or 1, p.get("dst_repeat_stride", 8)
    for repeat in range(p.get("repeat", 1)):
        for i in range(8):
            start = 131072 + (8 * repeat + i) * size
            here = 32 * (repeat * step + i * block)
            expected.put(here, expected.get(start, size) * (32 // size))
    Mask(low=1, high=0).set(bench)  # the mask does not count
    bench.do(instruction_named("vbrcb")(dtype=element_type(dtype), **p), 0, 131072)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_the_documented_broadcast():
    """asc-devkit, asc_brcb: 1 to 16, two repeats."""
    bench = Bench(1)
    bench.poke(Mem.UB, 0, struct.pack("<16H", *range(1, 17)))
    bench.do(instruction_named("vbrcb")(dtype=element_type("uint16"), repeat=2), 1024, 0)
    got = struct.unpack("<256H", bench.image(Mem.UB).get(1024, 512))
    assert list(got) == [1 + i // 16 for i in range(256)]
