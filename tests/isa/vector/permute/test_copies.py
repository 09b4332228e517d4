"""Copies inside the Unified Buffer and of any length, against loops over bytes."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench
from isa.lanes import size_of

LOADED = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32")


def blocks(length: int) -> int:
    """Bytes of the whole blocks that hold `length` bytes."""
    return -(-length // 32) * 32


@pytest.mark.parametrize(
    "p",
    [
        {"n_burst": 1, "len_burst": 1},
        {"n_burst": 4, "len_burst": 3},
        {"n_burst": 3, "len_burst": 2, "src_gap": 5, "dst_gap": 1},
        {"n_burst": 2, "len_burst": 500, "src_gap": 7},
    ],
    ids=str,
)
def test_runs_inside_the_buffer(p):
    bench = Bench(1, seed=161)
    bench.noise(Mem.UB)
    expected, before = bench.image(Mem.UB), bench.image(Mem.UB)
    length = p["len_burst"]
    for run in range(p["n_burst"]):
        there = 98304 + 32 * run * (length + p.get("src_gap", 0))
        expected.copy_from(
            before, there, 64 + 32 * run * (length + p.get("dst_gap", 0)), 32 * length
        )
    bench.do(instruction_named("copy_ubuf_to_ubuf")(**p), 64, 98304)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_runs_that_meet_in_the_buffer_are_a_finding():
    bench = Bench(1)
    bench.poke(Mem.UB, 0, bytes(4096))
    bench.do(instruction_named("copy_ubuf_to_ubuf")(n_burst=1, len_burst=4), 0, 64)
    assert bench.messages == [
        "overlap: copy_ubuf_to_ubuf.dst must keep apart from src, got 0 and 64"
    ]


RUNS = [
    {"n_burst": 1, "len_burst": 64},
    {"n_burst": 3, "len_burst": 64, "src_gap": 4, "dst_gap": 1},
    {"n_burst": 2, "len_burst": 48, "src_gap": 1, "dst_gap": 1},
    {"n_burst": 4, "len_burst": 8, "src_gap": 0},
    {"n_burst": 2, "len_burst": 40, "src_gap": 3, "left": 2},
    {"n_burst": 2, "len_burst": 40, "src_gap": 8, "right": 3, "dst_gap": 2},
    {"n_burst": 3, "len_burst": 8, "src_gap": 16, "left": 4, "right": 4},
    {"n_burst": 1, "len_burst": 32, "left": 8, "right": 8},
    {"n_burst": 0, "len_burst": 32},
    {"n_burst": 2, "len_burst": 0},
]
VALUE = 0x1122_3344_5566_7788


def sides(p: dict) -> dict[str, int]:
    return {f"{side}_padding_num": p.get(side, 0) for side in ("left", "right")}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("value", [None, VALUE], ids=["unset", "set"])
@pytest.mark.parametrize("p", RUNS, ids=str)
@pytest.mark.parametrize("dtype", LOADED)
def test_padded_loads(dtype, p, value):
    """asc-devkit, basic API, DataCopyPad: what is left of a block takes the first element, or the
    padding where there is some; padding that nobody set stays unwritten."""
    bench, size = Bench(1, seed=162, gm_bytes=4096), size_of(dtype)
    bench.noise(Mem.UB, Mem.GM)
    gm, expected = bench.image(Mem.GM), bench.image(Mem.UB)
    left, right = p.get("left", 0) * size, p.get("right", 0) * size
    length = p["len_burst"]
    there, here = 7, 64
    for _ in range(p["n_burst"] if length else 0):
        whole = blocks(left + length + right)
        for at in range(whole):
            inside = at - left
            if 0 <= inside < length:
                expected.copy_from(gm, there + inside, here + at, 1)
            elif not left and not right:
                expected.copy_from(gm, there + at % size, here + at, 1)
                first = gm.written(there, size)
                if p.get("src_gap", 0) % size == 0 and not first:  # elements move, not bytes
                    expected.valid[here + at] = gm.valid[there + at % size]
            elif value is None:
                expected.put(here + at, b"\xff", 0)
            else:
                expected.put(here + at, value.to_bytes(8, "little")[at % size : at % size + 1])
        there += length + p.get("src_gap", 0)
        here += whole + 32 * p.get("dst_gap", 0)
    if value is not None:
        bench.do(instruction_named("set_mov_pad_val")(value=value))
    gaps = {"src_gap": p.get("src_gap", 0), "dst_gap": p.get("dst_gap", 0)}
    template = instruction_named("copy_gm_to_ubuf_align")(
        dtype=element_type(dtype), n_burst=p["n_burst"], len_burst=length, **gaps, **sides(p)
    )
    bench.do(template, 64, bench.base + 7)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


@pytest.mark.parametrize("p", RUNS, ids=str)
@pytest.mark.parametrize("dtype", [*LOADED, "int64", "uint64"])
def test_unaligned_stores(dtype, p):
    bench, size = Bench(1, seed=163, gm_bytes=4096), size_of(dtype)
    bench.noise(Mem.UB, Mem.GM)
    ub, expected = bench.image(Mem.UB), bench.image(Mem.GM)
    here, there = 5, 96
    length = p["len_burst"]
    for _ in range(p["n_burst"]):
        expected.copy_from(ub, there, here, length)
        here += length + p.get("src_gap", 0)
        there += blocks(length) + 32 * p.get("dst_gap", 0)
    gaps = {"dst_gap": p.get("src_gap", 0), "src_gap": p.get("dst_gap", 0)}
    padded = {} if size == 8 else sides(p)
    template = instruction_named("copy_ubuf_to_gm_align")(
        dtype=element_type(dtype), n_burst=p["n_burst"], len_burst=length, **gaps, **padded
    )
    bench.do(template, bench.base + 5, 96)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


def test_the_documented_load():
    """asc-devkit, basic API, DataCopyPad from GM to UB, example 2: 47 bytes, gaps of 1 and 1."""
    bench = Bench(1, gm_bytes=256)
    bench.poke(Mem.GM, 0, bytes(range(1, 201)))
    template = instruction_named("copy_gm_to_ubuf_align")(
        dtype=element_type("int8"), n_burst=2, len_burst=47, src_gap=1, dst_gap=1
    )
    bench.do(template, 0, bench.base)
    got = bench.image(Mem.UB).get(0, 160)
    assert got[:64] == bytes(range(1, 48)) + bytes([1] * 17)
    assert got[96:] == bytes(range(49, 96)) + bytes([49] * 17)


def messages(**p) -> list[str]:
    bench = Bench(1, gm_bytes=4096)
    bench.poke(Mem.GM, 0, bytes(4096))
    kind = instruction_named("copy_gm_to_ubuf_align")
    bench.do(kind(**({"dtype": element_type("float16"), "n_burst": 1} | p)), 0, bench.base)
    return bench.messages


def test_runs_that_are_not_documented():
    name = "parameter: copy_gm_to_ubuf_align"
    assert messages(len_burst=7) == [
        f"{name}.len_burst must be a multiple of float16's 2 B, got 7; it is a number of bytes"
    ]
    assert messages(len_burst=8, left_padding_num=17, right_padding_num=16) == [
        f"{name}.left_padding_num must fill at most 32 B, got 34 B"
    ]
    assert messages(n_burst=4095, len_burst=2097150) == [
        f"{name}: the runs must take at most 196608 B of UB, got {4095 * 2097152} B"
    ]
    assert messages(n_burst=2, len_burst=32, dst_gap=2**32 - 1) == [
        f"{name}: the runs must take at most 196608 B of UB, got {64 + 32 * (2**32 - 1)} B"
    ]


@pytest.mark.parametrize("gap", [0, 4, 2])
def test_atomic_stores_of_any_length(gap):
    """A gap that is no multiple of the type leaves nothing to add elements by."""
    bench = Bench(1, gm_bytes=64)
    bench.poke(Mem.GM, 0, np.arange(16, dtype=np.float32).tobytes())
    bench.poke(Mem.UB, 0, np.full(16, 10, np.float32).tobytes())
    bench.do(instruction_named("set_atomic")(operation="add", dtype=element_type("float32")))
    template = instruction_named("copy_ubuf_to_gm_align")(
        dtype=element_type("float32"), n_burst=2, len_burst=8, dst_gap=gap
    )
    bench.do(template, bench.base, 0)
    got = np.frombuffer(bench.image(Mem.GM).get(0, 64), np.float32).tolist()
    if gap == 2:
        assert bench.messages == [
            "parameter: copy_ubuf_to_gm_align must move elements of float32, as set_atomic says, "
            "got runs of uint8"
        ]
        assert got == list(range(16))
        return
    assert bench.messages == []
    added = {0, 1, 2 + gap // 4, 3 + gap // 4}
    assert got == [i + 10 * (i in added) for i in range(16)]
