"""Copies of any length of architecture 3510 and their loops, against loops over bytes."""

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench

A5 = chip("Ascend950PR_9599")
SIZES = {"int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "int16": 2, "uint16": 2}
SIZES |= {"float16": 2, "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4, "hifloat8": 1}
VALUE = 0x4433_2211
# runs, bytes, strides in global memory and in UB; padding left and right; loops: turns, and
# distances of turns in global memory and in UB, of the inner and of the outer one
COPIES = [
    {"n": 1, "len": 64},
    {"n": 1, "len": 40},
    {"n": 3, "len": 64, "far": 68, "near": 96},
    {"n": 3, "len": 40, "far": 41, "near": 64},
    {"n": 3, "len": 32, "far": 0, "near": 32},
    {"n": 2, "len": 40, "far": 44, "near": 96, "left": 2},
    {"n": 2, "len": 40, "far": 48, "near": 128, "right": 3},
    {"n": 2, "len": 8, "far": 24, "near": 96, "left": 8, "right": 8},
    {"n": 3, "len": 40, "far": 44, "near": 40},
    {"n": 2, "len": 48, "far": 48, "near": 48, "inner": (2, 96, 128), "outer": (2, 192, 288)},
    {"n": 2, "len": 20, "far": 20, "near": 32, "inner": (3, 40, 64), "outer": (2, 0, 192)},
    {"n": 1, "len": 12, "inner": (2, 13, 32), "outer": (3, 100, 64)},
    {"n": 1, "len": 32, "inner": (0, 32, 32)},
    {"n": 1, "len": 32, "outer": (0, 32, 32)},
]
"""Among them the page's example with loops."""


def turns(p: dict):
    """Yield the bytes to each turn's start in global memory and in UB."""
    inner, outer = (p.get(loop, (1, 0, 0)) for loop in ("inner", "outer"))
    for o in range(outer[0]):
        for i in range(inner[0]):
            yield o * outer[1] + i * inner[1], o * outer[2] + i * inner[2]


def set_loops(bench: Bench, p: dict, way: str) -> None:
    inner, outer = (p.get(loop, (1, 0, 0)) for loop in ("inner", "outer"))
    bench.do(instruction_named(f"set_loop_size_{way}")(loop1_size=inner[0], loop2_size=outer[0]))
    for number, (_, far, near) in ((1, inner), (2, outer)):
        strides = {"src": near, "dst": far} if way == "ubtoout" else {"src": far, "dst": near}
        named = {f"loop{number}_{side}_stride": value for side, value in strides.items()}
        bench.do(instruction_named(f"set_loop{number}_stride_{way}")(**named))


def fields(p: dict, far: str, near: str) -> dict[str, int]:
    """The instruction's words."""
    strides = {f"{far}_stride": p.get("far", 0), f"{near}_stride": p.get("near", 0)}
    return {"n_burst": p["n"], "len_burst": p["len"]} | strides


def is_packed(p: dict) -> bool:
    return p["n"] > 1 and p.get("near", 0) == p["len"] and p["len"] % 32 != 0


@pytest.mark.thinned(6)
@pytest.mark.parametrize(
    ("value", "constant"), [(None, True), (VALUE, True), (VALUE, False)], ids=str
)
@pytest.mark.parametrize("p", COPIES, ids=str)
@pytest.mark.parametrize("dtype", SIZES)
def test_padded_loads(dtype, p, value, constant):
    """Rest of a block: the run's first element; with padding what pads; unwritten where nothing is
    known. Runs that follow each other fill the last block alone."""
    bench, size = Bench(1, seed=171, gm_bytes=4096, on=A5), SIZES[dtype]
    bench.noise(Mem.UB, Mem.GM)
    gm, expected = bench.image(Mem.GM), bench.image(Mem.UB)
    left, right = p.get("left", 0) * size, p.get("right", 0) * size
    length, packed = p["len"], is_packed(p)

    def pad(at: int, place: int) -> None:
        if value is None or not constant:
            expected.put(at, b"\xff", 0)
        else:
            expected.put(at, value.to_bytes(4, "little")[place % size : place % size + 1])

    for far, near in turns(p):
        for run in range(p["n"]):
            there = 7 + far + run * p.get("far", 0)
            here = 64 + near + run * p.get("near", 0)
            rest = 0 if packed else -(left + length + right) % 32
            for at in range(left + length + right + rest):
                if left <= at < left + length:
                    expected.copy_from(gm, there + at - left, here + at, 1)
                elif constant and (left or right):
                    pad(here + at, at)
                else:  # the first element, whole or byte by byte
                    expected.copy_from(gm, there + at % size, here + at, 1)
            if packed and run == p["n"] - 1:
                for at in range(-p["n"] * length % 32):
                    pad(here + length + at, at)
    if value is not None:
        bench.do(instruction_named("set_mov_pad_val")(value=value))
    set_loops(bench, p, "outtoub")
    template = instruction_named("copy_gm_to_ubuf_align_v2")(
        dtype=element_type(dtype),
        left_padding_num=p.get("left", 0),
        right_padding_num=p.get("right", 0),
        enable_constant_pad=constant,
        **fields(p, "src", "dst"),
    )
    bench.do(template, 64, bench.base + 7)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


BLOCK_COPIES = [
    {"n": 1, "len": 256},
    {"n": 2, "len": 128},
    {"n": 2, "len": 128, "left": 1},
    {"n": 3, "len": 128, "far": 130, "near": 192, "right": 3},
    {"n": 2, "len": 128, "inner": (2, 96, 256), "outer": (2, 192, 512)},
]
"""Runs without strides follow each other, at the destination with their padding."""


@pytest.mark.parametrize("p", BLOCK_COPIES, ids=str)
@pytest.mark.parametrize("dtype", SIZES)
def test_loads_of_blocks_to_l1(dtype, p):
    bench, size = Bench(0, seed=173, gm_bytes=4096, on=A5), SIZES[dtype]
    bench.noise(Mem.L1, Mem.GM)
    gm, expected = bench.image(Mem.GM), bench.image(Mem.L1)
    left, right, length = p.get("left", 0) * size, p.get("right", 0) * size, p["len"]
    whole = -(-(left + length + right) // 32) * 32
    for far, near in turns(p):
        for run in range(p["n"]):
            there = 7 + far + run * p.get("far", length)
            here = 64 + near + run * p.get("near", whole)
            for at in range(whole):
                inside = left <= at < left + length
                expected.copy_from(gm, there + (at - left if inside else at % size), here + at, 1)
    bench.do(instruction_named("set_pad_val_outtol1")(pad_val=VALUE))
    set_loops(bench, p, "outtol1")
    template = instruction_named("copy_gm_to_cbuf_align_v2")(
        dtype=element_type(dtype),
        left_padding_num=p.get("left", 0),
        right_padding_num=p.get("right", 0),
        **fields(p | {"len": length // 32}, "src", "dst"),
    )
    bench.do(template, 64, bench.base + 7)
    assert bench.messages == []
    bench.check(Mem.L1, expected)


def test_blocks_of_elements_of_l1():
    assert messages(name="copy_gm_to_cbuf_align_v2", n_burst=1, len_burst=3) == [
        ".len_burst must be a multiple of float16's 2 B, got 3; it counts 32 B"
    ]


@pytest.mark.parametrize("p", COPIES, ids=str)
@pytest.mark.parametrize("dtype", SIZES)
def test_unaligned_stores(dtype, p):
    bench = Bench(1, seed=172, gm_bytes=4096, on=A5)
    bench.noise(Mem.UB, Mem.GM)
    ub, expected = bench.image(Mem.UB), bench.image(Mem.GM)
    for far, near in turns(p):
        for run in range(p["n"]):
            there = 96 + near + run * p.get("near", 0)
            expected.copy_from(ub, there, 5 + far + run * p.get("far", 0), p["len"])
    set_loops(bench, p, "ubtoout")
    template = instruction_named("copy_ubuf_to_gm_align_v2")(
        dtype=element_type(dtype), **fields(p, "dst", "src")
    )
    bench.do(template, bench.base + 5, 96)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


def test_two_names_of_the_padding():
    """asc_set_gm2ub_pad is the older name of asc_set_copy_pad_val."""
    made = []
    for name, word in (("set_mov_pad_val", "value"), ("set_pad_val_outtoub", "pad_val")):
        bench = Bench(1, gm_bytes=64, on=A5)
        bench.poke(Mem.GM, 0, bytes(range(64)))
        bench.do(instruction_named(name)(**{word: 0xA5}))
        p = {"n_burst": 1, "len_burst": 16, "left_padding_num": 2, "enable_constant_pad": True}
        kind = instruction_named("copy_gm_to_ubuf_align_v2")
        bench.do(kind(dtype=element_type("uint8"), **p), 0, bench.base)
        assert bench.messages == []
        made.append(bench.image(Mem.UB).get(0, 32))
    assert made == [b"\xa5" * 2 + bytes(range(16)) + b"\xa5" * 14] * 2


@pytest.mark.parametrize("far", [8, 10])
def test_atomic_stores(far):
    """A stride that is no multiple of the type leaves nothing to add elements by."""
    bench = Bench(1, gm_bytes=64, on=A5)
    bench.poke(Mem.GM, 0, np.arange(16, dtype=np.float32).tobytes())
    bench.poke(Mem.UB, 0, np.full(16, 10, np.float32).tobytes())
    bench.do(instruction_named("set_atomic")(operation="add", dtype=element_type("float32")))
    kind = instruction_named("copy_ubuf_to_gm_align_v2")
    p = {"n_burst": 2, "len_burst": 8, "dst_stride": far, "src_stride": 32}
    bench.do(kind(dtype=element_type("float32"), **p), bench.base, 0)
    got = np.frombuffer(bench.image(Mem.GM).get(0, 64), np.float32).tolist()
    if far == 10:
        assert bench.messages == [
            "parameter: copy_ubuf_to_gm_align_v2 must move elements of float32, as set_atomic "
            "says, got runs of uint8"
        ]
        assert got == list(range(16))
        return
    assert bench.messages == []
    assert got == [i + 10 * (i < 4) for i in range(16)]


def test_loops_stay_until_they_are_set_anew():
    """The page asks for a reset after each use, since the next copy repeats too."""
    bench = Bench(1, gm_bytes=256, on=A5)
    bench.poke(Mem.GM, 0, bytes(range(256)))
    bench.poke(Mem.UB, 0, bytes(1024))
    set_loops(bench, {"inner": (2, 100, 64)}, "outtoub")
    kind = instruction_named("copy_gm_to_ubuf_align_v2")
    template = kind(dtype=element_type("uint8"), n_burst=1, len_burst=32)
    for start in (0, 256):
        bench.do(template, start, bench.base)
    set_loops(bench, {}, "outtoub")
    bench.do(template, 512, bench.base)
    image = bench.image(Mem.UB)
    for start, turned in ((0, True), (256, True), (512, False)):
        assert image.get(start, 32) == bytes(range(32))
        assert image.get(start + 64, 32) == (bytes(range(100, 132)) if turned else bytes(32))
    assert bench.messages == []


def messages(*first, name="copy_gm_to_ubuf_align_v2", **p) -> list[str]:
    bench = Bench(1, gm_bytes=4096, on=A5)
    bench.poke(Mem.GM, 0, bytes(4096))
    bench.poke(Mem.UB, 0, bytes(4096))
    for other, values in first:
        bench.do(instruction_named(other)(**values))
    template = instruction_named(name)(**({"dtype": element_type("float16"), "n_burst": 1} | p))
    bench.do(template, *((0, bench.base) if "to_ubuf" in name else (bench.base, 0)))
    return [line.removeprefix(f"parameter: {name}") for line in bench.messages]


def test_what_is_not_documented():
    assert messages(len_burst=7) == [
        ".len_burst must be a multiple of float16's 2 B, got 7; it is a number of bytes"
    ]
    wide = {"left_padding_num": 17, "right_padding_num": 16}
    assert messages(len_burst=8, **wide) == [".left_padding_num must fill at most 32 B, got 34 B"]
    need = "_stride must be len_burst or a multiple of 32 B, got 40"
    assert messages(n_burst=2, len_burst=32, dst_stride=40) == [f".dst{need}"]
    store = {"name": "copy_ubuf_to_gm_align_v2", "n_burst": 2, "len_burst": 32, "dst_stride": 32}
    assert messages(src_stride=40, **store) == [f".src{need}"]
    assert messages(n_burst=2, len_burst=40, dst_stride=40, right_padding_num=1) == [
        ".right_padding_num must be 0 where dst_stride is len_burst, got 1"
    ]


def test_what_would_be_written_over():
    need = "must be {} or more, what is written before the next, got {}"
    assert messages(n_burst=2, len_burst=40, dst_stride=32) == [
        f".dst_stride {need.format(64, 32)}"
    ]
    turns = ("set_loop_size_outtoub", {"loop1_size": 2, "loop2_size": 2})
    assert messages(turns, len_burst=40) == [f".loop1_dst_stride {need.format(64, 0)}"]
    inner = ("set_loop1_stride_outtoub", {"loop1_src_stride": 0, "loop1_dst_stride": 96})
    outer = ("set_loop2_stride_outtoub", {"loop2_src_stride": 0, "loop2_dst_stride": 128})
    assert messages(turns, inner, outer, len_burst=40) == [
        f".loop2_dst_stride {need.format(160, 128)}"
    ]


def test_loops_that_ask_for_too_much():
    """Each number is in its range; together they would be terabytes."""
    turns = ("set_loop_size_ubtoout", {"loop1_size": 2**21 - 1, "loop2_size": 2**21 - 1})
    assert messages(turns, name="copy_ubuf_to_gm_align_v2", len_burst=2) == [
        " must move at most 16777216 B, more than all memories of a core hold, got 8796084633602 B"
    ]
