"""Moves beside the Cube's main path, against loops over bytes."""

import struct

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetAtomic
from cubecore.isa.mte.copies_side_paths import (
    CopyCbufToGm,
    CopyCbufToMatrixCc,
    CopyGmToCbufPad,
    LoadGmToCa,
    LoadGmToCb,
    LoadGmToCbuf,
)
from isa.bench import Bench

# --- fractals from global memory

LOADS = [(LoadGmToCa, Mem.L0A), (LoadGmToCb, Mem.L0B), (LoadGmToCbuf, Mem.L1)]
FRACTALS = [
    {"repeat": 1},
    {"repeat": 3},  # the same fractal again: the stride's default is 0
    {"repeat": 4, "src_stride": 1, "start_index": 2},
    {"repeat": 3, "src_stride": 2, "dst_gap": 3},
    {"repeat": 3, "src_stride": 2, "start_index": 5, "decrement": True},
    {"repeat": 0, "src_stride": 1},
]


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load[0].name)
@pytest.mark.parametrize("p", FRACTALS, ids=str)
def test_fractals_from_global_memory(load, p):
    kind, sink = load
    bench = Bench(seed=len(p), gm_bytes=4200)
    bench.noise(Mem.GM, sink)
    source, expected = bench.image(Mem.GM), bench.image(sink)
    there, here = 7, 1024
    step = p.get("src_stride", 0) * (-1 if p.get("decrement") else 1)
    for r in range(p["repeat"]):
        fractal = p.get("start_index", 0) + r * step
        to = here + r * (1 + p.get("dst_gap", 0)) * 512
        expected.copy_from(source, there + fractal * 512, to, 512)
    bench.do(kind(**p), here, bench.base + there)
    assert bench.messages == []
    bench.check(sink, expected)


# --- L1 to global memory

RUNS = [(1, 1, 0, 0), (1, 7, 0, 0), (3, 2, 0, 0), (3, 2, 1, 0), (3, 2, 0, 2), (4, 1, 3, 1)]


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_runs_from_l1_to_global_memory(run):
    n_burst, len_burst, src_gap, dst_gap = run
    bench = Bench(seed=n_burst, gm_bytes=700)
    bench.noise(Mem.L1, Mem.GM)
    source, expected = bench.image(Mem.L1), bench.image(Mem.GM)
    there, here = 96, 5
    for _ in range(n_burst):
        expected.copy_from(source, there, here, len_burst * 32)
        there += (len_burst + src_gap) * 32
        here += (len_burst + dst_gap) * 32
    p = {"n_burst": n_burst, "len_burst": len_burst, "src_gap": src_gap, "dst_gap": dst_gap}
    bench.do(CopyCbufToGm(**p), bench.base + 5, 96)
    assert bench.messages == []
    bench.check(Mem.GM, expected)


def test_stores_of_l1_add_where_set_atomic_says_so():
    bench = Bench(gm_bytes=64)
    for mem in (Mem.L1, Mem.GM):
        bench.poke(mem, 0, struct.pack("<16i", *range(16)))
    bench.do(SetAtomic(operation="add", dtype=element_type("int32")))
    bench.do(CopyCbufToGm(n_burst=1, len_burst=2), bench.base, 0)
    assert bench.messages == []
    assert bench.image(Mem.GM).get(0, 64) == struct.pack("<16i", *(2 * i for i in range(16)))


# --- L1 to L0C

PLAIN = ("float16", "bfloat16", "float32", "int32", "uint32")
SIZES = {"float16": 2, "bfloat16": 2}
PAIRS = [(t, t) for t in PLAIN] + [("float32", "float16"), ("float32", "bfloat16")]


def narrowed(raw: bytes, target: str) -> bytes:
    """A float32 to nearest even, finite: the largest number for infinity, 0 for NaN."""
    (bits,) = struct.unpack("<I", raw)
    magnitude, sign = bits & 0x7FFFFFFF, bits >> 31 << 15
    if magnitude > 0x7F800000:
        return bytes(2)
    if target == "bfloat16":
        upper = magnitude + 0x7FFF + (magnitude >> 16 & 1) >> 16
        return struct.pack("<H", sign | min(upper, 0x7F7F))
    (value,) = struct.unpack("<f", struct.pack("<I", magnitude))
    try:
        (made,) = struct.unpack("<H", struct.pack("<e", value))
    except OverflowError:
        made = 0x7BFF
    return struct.pack("<H", sign | min(made, 0x7BFF))


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_runs_from_l1_to_l0c(source, target, run):
    n_burst, len_burst, src_gap, dst_gap = run
    size, narrow = SIZES.get(source, 4), source != target
    bench = Bench(seed=n_burst)
    bench.noise(Mem.L1, Mem.L0C)
    if source in {"float32", "float16"}:  # NaN's bits are not what this is about
        kinds = {"float32": (np.float32, 1e4), "float16": (np.float16, 9.0)}[source]
        values = (bench.rng.standard_normal(4096) * kinds[1]).astype(kinds[0])
        bench.buffer(Mem.L1).data[: values.nbytes] = np.frombuffer(values.tobytes(), np.uint8)
    if narrow:
        odd = (np.inf, -np.inf, np.nan, 65519.0, 65520.0, 1e30, -1e-30, 0.1)
        bench.poke(Mem.L1, 96, np.array(odd, np.float32).tobytes())
    image, expected = bench.image(Mem.L1), bench.image(Mem.L0C)
    there, here = 96, 128
    for _ in range(n_burst):
        for element in range(len_burst * 32 // size):
            raw = image.get(there + element * size, size)
            known = image.written(there + element * size, size)
            made = narrowed(raw, target) if narrow else raw
            expected.put(here + element * len(made), made, int(known))
        there += (len_burst + src_gap) * 32
        here += len_burst * (16 if narrow else 32) + dst_gap * 32
    p = {"n_burst": n_burst, "len_burst": len_burst, "src_gap": src_gap, "dst_gap": dst_gap}
    types = {"src_type": element_type(source), "dst_type": element_type(target)}
    bench.do(CopyCbufToMatrixCc(**types, **p), 128, 96)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


@pytest.mark.parametrize("source", PLAIN)
@pytest.mark.parametrize("target", PLAIN)
def test_other_conversions_do_not_exist(source, target):
    bench = Bench()
    bench.noise(Mem.L1, written=True)
    types = {"src_type": element_type(source), "dst_type": element_type(target)}
    bench.do(CopyCbufToMatrixCc(**types, n_burst=1, len_burst=1), 0, 0)
    also = " or one of float16, bfloat16" if source == "float32" else ""
    message = f"copy_cbuf_to_matrix_cc.dst_type must be {source}{also}, got {target}"
    expected = [] if (source, target) in PAIRS else [f"parameter: {message}"]
    assert bench.messages == expected


# --- padding

DATA = {1: 1, 2: 2, 3: 4, 4: 8, 5: 16}
KEPT = {6: 4, 7: 8, 8: 16}


@pytest.mark.parametrize("mode", [*DATA, *KEPT])
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_padded_and_cut_blocks(mode, run):
    """Each 32 B of L1 get so many bytes, or of each 32 B of global memory so many are kept."""
    n_burst, len_burst, src_gap, dst_gap = run
    bench = Bench(seed=mode, gm_bytes=1000)
    bench.noise(Mem.GM, Mem.L1)
    source, expected = bench.image(Mem.GM), bench.image(Mem.L1)
    there, here = 3, 64
    for _ in range(n_burst):
        for _ in range(len_burst):
            if mode in DATA:
                expected.put(here, bytes([255] * 32), 0)
                expected.copy_from(source, there, here, DATA[mode])
                there, here = there + DATA[mode], here + 32
            else:
                expected.copy_from(source, there, here, KEPT[mode])
                there, here = there + 32, here + KEPT[mode]
        there, here = there + src_gap * 32, here + dst_gap * 32
    p = {"n_burst": n_burst, "len_burst": len_burst, "src_gap": src_gap, "dst_gap": dst_gap}
    bench.do(CopyGmToCbufPad(mode=mode, **p), 64, bench.base + 3)
    assert bench.messages == []
    bench.check(Mem.L1, expected)
