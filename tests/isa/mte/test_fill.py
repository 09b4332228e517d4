"""Blocks of L1, L0A and L0B filled with a value, byte by byte."""

import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.fill import CreateCaMatrix, CreateCbMatrix, CreateCbufMatrix
from isa.bench import Bench

FILLS = [(CreateCaMatrix, Mem.L0A, 512), (CreateCbMatrix, Mem.L0B, 512)]
FILLS += [(CreateCbufMatrix, Mem.L1, 32)]
SIZES = {"int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "uint32": 4}
SIZES |= {"float32": 4}
RUNS = [(1, 1, 0), (1, 5, 0), (3, 2, 0), (3, 2, 3), (5, 1, 2), (2, 0, 4), (0, 2, 1), (4, 3, 1)]


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("fill", FILLS, ids=lambda fill: fill[0].name)
def test_blocks_are_filled(fill, dtype):
    """asc_fill_value_config: repeat runs of blk_num blocks, dst_gap blocks from tail to head."""
    kind, mem, block = fill
    size = SIZES[dtype]
    bits = 0x89AB if size == 2 else 0x89ABCDEF
    word = bits.to_bytes(size, "little")
    for repeat, blocks, gap in RUNS:
        bench = Bench(seed=repeat)
        bench.noise(mem)
        expected = bench.image(mem)
        here = 1024
        for _ in range(repeat):
            for _ in range(blocks):
                expected.put(here, word * (block // size))
                here += block
            here += gap * block
        p = {"bits": bits, "repeat": repeat, "blk_num": blocks, "dst_gap": gap}
        bench.do(kind(dtype=element_type(dtype), **p), 1024)
        assert bench.messages == []
        bench.check(mem, expected)


@pytest.mark.parametrize("on", ["KirinX90", "Kirin9030"])
@pytest.mark.parametrize("fill", FILLS, ids=lambda fill: fill[0].name)
def test_kirin_fills_halves_alone(fill, on):
    kind, mem, block = fill
    bench = Bench(on=chip(on))
    expected = bench.image(mem)
    expected.put(512, b"\xab\x89" * block)
    bench.do(kind(dtype=element_type("float16"), bits=0x89AB, repeat=1, blk_num=2), 512)
    bench.do(kind(dtype=element_type("int16"), bits=0x89AB, repeat=1, blk_num=2), 512)
    assert bench.messages == [
        f"parameter: {kind.name}.dtype must be one of float16 on {on}, got int16"
    ]
    bench.check(mem, expected)


@pytest.mark.parametrize("fill", FILLS, ids=lambda fill: fill[0].name)
def test_a_value_is_no_wider_than_the_element(fill):
    kind, mem, _ = fill
    bench = Bench()
    before = bench.image(mem)
    bench.do(kind(dtype=element_type("float16"), bits=0x10000, repeat=1, blk_num=1), 0)
    assert bench.messages == [
        f"parameter: {kind.name}.bits must fit the 16 bits of float16, got 0x10000"
    ]
    bench.check(mem, before)
