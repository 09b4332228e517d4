"""Transposes against loops over bytes."""

import struct

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench, Image


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_sixteen_by_sixteen(dtype, in_place):
    bench = Bench(1, seed=131)
    bench.noise(Mem.UB)
    expected, before = bench.image(Mem.UB), bench.image(Mem.UB)
    src = 0 if in_place else 4096
    for row in range(16):
        for column in range(16):
            there, here = src + 2 * (16 * column + row), 2 * (16 * row + column)
            expected.put(here, before.get(there, 2), int(before.written(there, 2)))
    bench.do(instruction_named("vtranspose")(dtype=element_type(dtype)), 0, src)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def load(bench: Bench, first: int, addresses: list[int]) -> None:
    """Put sixteen addresses into two successive VA registers."""
    for half in range(2):
        given = {f"address{i}": addresses[8 * half + i] for i in range(8)}
        bench.do(instruction_named("set_va_reg_sb")(va=first + half, **given))


def by_hand(
    bits: int, dst: list[int], src: list[int], high: tuple[bool, bool]
) -> list[tuple[int, int]]:
    """(from, to) of every element of one repeat; asc-devkit, asc_transto5hd."""
    size = bits // 8
    moves = []
    for i in range(8 if bits == 32 else 16):
        for j in range(16):
            taken, given = (i + 16 * high[1], j + 16 * high[0]) if bits == 8 else (i, j)
            block, place = (2 * i + j // 8, j % 8) if bits == 32 else (i, given)
            moves.append((src[j] + taken * size, dst[block] + place * size))
    return moves


CASES = [
    {},
    {"repeat": 0},
    {"dst_stride": 3, "src_stride": 2},  # a single repeat adds the strides once
    {"repeat": 3, "dst_stride": 40, "src_stride": 5},
    {"repeat": 2, "dst_stride": 64, "src_stride": 0},
]


@pytest.mark.parametrize("p", CASES, ids=str)
@pytest.mark.parametrize(
    ("bits", "high"),
    [(8, (d, s)) for d in (False, True) for s in (False, True)]
    + [(16, (False, False)), (32, (False, False))],
)
def test_blocks_at_addresses(bits, high, p):
    """Addresses in no order; a repeat's strides move them all."""
    bench = Bench(1, seed=132)
    bench.noise(Mem.UB)
    dst = [4096 * i + 32 for i in bench.rng.permutation(16).tolist()]
    src = [98304 + 32 * int(i) for i in bench.rng.permutation(64)[:16]]
    load(bench, 4, dst)
    load(bench, 1, src)
    expected, size = bench.image(Mem.UB), bits // 8
    repeats = p.get("repeat", 1)
    for repeat in range(repeats):
        steps = repeat + (repeats == 1)
        moved = [a + 32 * steps * p.get("dst_stride", 0) for a in dst]
        taken = [a + 32 * steps * p.get("src_stride", 0) for a in src]
        before = Image(bytearray(expected.data), bytearray(expected.valid))
        for there, here in by_hand(bits, moved, taken, high):
            expected.put(here, before.get(there, size), int(before.written(there, size)))
    halves = {"dst_high_half": high[0], "src_high_half": high[1]} if bits == 8 else {}
    kind = instruction_named(f"scatter_vnchwconv_b{bits}")
    bench.do(kind(dst_va=4, src_va=1, **halves, **p))
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_the_documented_transpose_of_half():
    """asc-devkit, asc_transto5hd, example 1: sixteen rows of sixteen, strides 0."""
    bench = Bench(1)
    bench.poke(Mem.UB, 4096, struct.pack("<256H", *range(256)))
    load(bench, 0, [32 * i for i in range(16)])
    load(bench, 2, [4096 + 32 * i for i in range(16)])
    bench.do(instruction_named("asc_transto5hd_b16")(dst_va=0, src_va=2, repeat=1))
    got = struct.unpack("<256H", bench.image(Mem.UB).get(0, 512))
    assert list(got) == [16 * column + row for row in range(16) for column in range(16)]


def test_addresses_are_multiples_of_a_block():
    bench = Bench(1)
    addresses = {f"address{i}": 32 * i for i in range(8)} | {"address3": 48}
    bench.do(instruction_named("set_va_reg_sb")(va=0, **addresses))
    assert bench.messages == ["parameter: set_va_reg_sb.address3 must be a multiple of 32, got 48"]


def test_an_address_outside_the_unified_buffer():
    bench = Bench(1)
    load(bench, 0, [32 * i for i in range(16)])
    load(bench, 2, [196608 - 32 * i for i in range(16)])
    bench.do(instruction_named("scatter_vnchwconv_b32")(dst_va=0, src_va=2))
    assert bench.messages == [
        "out-of-bounds: scatter_vnchwconv_b32.src must stay inside UB (0 to 196608 B), "
        "got bytes [196128, 196640)"
    ]
