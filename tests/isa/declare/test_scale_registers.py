"""Stores to global memory under set_atomic: they add, or keep the larger or the smaller."""

import struct

import ml_dtypes
import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetAtomic, SetQuantPre
from cubecore.isa.mte.copies import CopyUbufToGm
from isa.bench import Bench

HALF, BRAIN, WORD, INT = map(element_type, ("float16", "bfloat16", "float32", "int32"))
OPERATIONS = {
    "add": lambda old, new: old + new,
    "max": max,
    "min": min,
}
FORMS = {
    "float32": ("float32", "NoQuant", np.float32),
    "int32": ("int32", "NoQuant", np.int32),
    "float16": ("float32", "F322F16", np.float16),
    "bfloat16": ("float32", "F322BF16", ml_dtypes.bfloat16),
    "int8": ("int32", "REQ8", np.int8),
}
P = {"n_size": 20, "m_size": 3, "src_stride": 16, "dst_stride": 20, "nz2nd_en": True}


def small(rng: np.random.Generator, count: int) -> list[int]:
    """Whole numbers whose sums every type holds."""
    return [int(v) for v in rng.integers(-60, 60, count)]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("form", FORMS)
def test_stores_of_l0c_combine(form, operation):
    source, quant, kind = FORMS[form]
    bench = Bench(seed=len(form), gm_bytes=512)
    old, new = small(bench.rng, 60), small(bench.rng, 60)
    bench.poke(Mem.GM, 0, np.array(old).astype(kind).tobytes())
    for i in range(3):
        for j in range(20):
            at = ((j // 16) * 16 + i) * 64 + (j % 16) * 4
            raw = struct.pack("<i" if source == "int32" else "<f", new[i * 20 + j])
            bench.poke(Mem.L0C, at, raw)
    bench.do(SetQuantPre(scale=0x3F800000 | 1 << 46))
    bench.do(SetAtomic(operation=operation, dtype=element_type(form)))
    store = CopyMatrixCcToGm(src_type=element_type(source), quant_pre=quant, **P)
    bench.do(store, bench.base, 0)
    assert bench.messages == []
    wanted = [OPERATIONS[operation](a, b) for a, b in zip(old, new, strict=True)]
    got = np.frombuffer(bench.image(Mem.GM).get(0, 60 * np.dtype(kind).itemsize), kind)
    assert got.astype(np.float64).tolist() == wanted
    # and plainly again, once it is off
    bench.do(SetAtomic(operation="none"))
    bench.do(store, bench.base, 0)
    got = np.frombuffer(bench.image(Mem.GM).get(0, 60 * np.dtype(kind).itemsize), kind)
    assert got.astype(np.float64).tolist() == new


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int32", "int16", "int8"])
def test_stores_of_ub_combine_element_by_element(name, operation):
    kind = element_type(name)
    count = 64 // kind.size_bytes
    bench = Bench(sub=1, seed=count, gm_bytes=256)
    old, new = small(bench.rng, 2 * count), small(bench.rng, count)
    bench.poke(Mem.GM, 0, np.array(old).astype(kind.numpy).tobytes())
    bench.poke(Mem.UB, 0, np.array(new).astype(kind.numpy).tobytes())
    bench.do(SetAtomic(operation=operation, dtype=kind))
    # two runs of a block, one block apart in GM
    bench.do(CopyUbufToGm(n_burst=2, len_burst=1, dst_gap=1), bench.base, 0)
    assert bench.messages == []
    half = count // 2
    wanted = list(old)
    for r in range(2):
        for e in range(half):
            at = r * count + e
            wanted[at] = OPERATIONS[operation](old[at], new[r * half + e])
    got = np.frombuffer(bench.image(Mem.GM).get(0, 128), kind.numpy)
    assert got.astype(np.float64).tolist() == wanted


def added(name: str, old: float, new: float) -> float:
    kind = element_type(name)
    bench = Bench(sub=1, gm_bytes=32)
    count = 32 // kind.size_bytes
    bench.poke(Mem.GM, 0, np.full(count, old).astype(kind.numpy).tobytes())
    bench.poke(Mem.UB, 0, np.full(count, new).astype(kind.numpy).tobytes())
    bench.do(SetAtomic(operation="add", dtype=kind))
    bench.do(CopyUbufToGm(n_burst=1, len_burst=1), bench.base, 0)
    assert bench.messages == []
    return float(np.frombuffer(bench.image(Mem.GM).get(0, kind.size_bytes), kind.numpy)[0])


@pytest.mark.parametrize(
    ("name", "old", "new", "result"),
    [
        ("float32", 2.0**24, 1.0, 2.0**24),
        ("float32", 2.0**24, 3.0, 2.0**24 + 4),
        ("float16", 2048.0, 1.0, 2048.0),
        ("float16", 2048.0, 3.0, 2052.0),
        ("float16", 65504.0, 65504.0, 65504.0),
        ("bfloat16", 256.0, 1.0, 256.0),
        ("bfloat16", 256.0, 3.0, 260.0),
        ("int8", 127, 1, -128),
        ("int16", -32768, -1, 32767),
        ("int32", 2**31 - 1, 1, -(2**31)),
    ],
)
def test_sums_are_rounded_and_wrap_in_the_elements_type(name, old, new, result):
    assert added(name, old, new) == result


def test_what_nobody_wrote_cannot_be_added_to():
    bench = Bench(gm_bytes=64)
    bench.poke(Mem.L0C, 0, np.zeros(256, np.float32).tobytes())
    bench.poke(Mem.GM, 0, bytes(8))
    bench.do(SetAtomic(operation="add"))
    p = {"n_size": 16, "m_size": 1, "src_stride": 16, "dst_stride": 16, "nz2nd_en": True}
    bench.do(CopyMatrixCcToGm(src_type=WORD, **p), bench.base, 0)
    assert bench.messages == [
        "uninitialised: copy_matrix_cc_to_gm.dst must be initialised in GM, got 14 of 16 elements "
        "never written, first matrix 0, m 0, n 2"
    ]
    assert list(bench.image(Mem.GM).valid) == [1] * 8 + [0] * 56


def test_a_store_of_ub_counts_whole_blocks_that_nobody_wrote():
    bench = Bench(sub=1, gm_bytes=64)
    bench.poke(Mem.GM, 0, bytes(36))
    bench.poke(Mem.UB, 0, bytes(64))
    bench.do(SetAtomic(operation="add"))
    bench.do(CopyUbufToGm(n_burst=1, len_burst=2), bench.base, 0)
    assert bench.messages == [
        "uninitialised: copy_ubuf_to_gm.dst must be initialised in GM, got 1 of 2 elements never "
        "written, first run 0, block 1"
    ]


def test_an_unwritten_element_of_l0c_leaves_its_sum_unwritten():
    bench = Bench(gm_bytes=64)
    bench.poke(Mem.L0C, 0, np.ones(16, np.float32).tobytes())
    bench.buffer(Mem.L0C).valid[4:8] = 0
    bench.poke(Mem.GM, 0, bytes(64))
    bench.do(SetAtomic(operation="add"))
    p = {"n_size": 16, "m_size": 1, "src_stride": 16, "dst_stride": 16, "nz2nd_en": True}
    bench.do(CopyMatrixCcToGm(src_type=WORD, **p), bench.base, 0)
    assert bench.messages == []
    assert list(bench.image(Mem.GM).valid) == [1] * 4 + [0] * 4 + [1] * 56


def test_a_store_of_another_type_is_found():
    bench = Bench(gm_bytes=64)
    bench.poke(Mem.L0C, 0, np.zeros(256, np.float32).tobytes())
    bench.poke(Mem.GM, 0, bytes(64))
    bench.do(SetAtomic(operation="add", dtype=HALF))
    p = {"n_size": 16, "m_size": 1, "src_stride": 16, "dst_stride": 16, "nz2nd_en": True}
    bench.do(CopyMatrixCcToGm(src_type=WORD, **p), bench.base, 0)
    assert bench.messages == [
        "parameter: copy_matrix_cc_to_gm.dst must be float16, as set_atomic says, got float32"
    ]


def test_local_memories_are_never_combined():
    from cubecore.isa.mte.copies import CopyGmToUbuf

    bench = Bench(sub=1, gm_bytes=32)
    bench.poke(Mem.GM, 0, np.ones(8, np.float32).tobytes())
    bench.poke(Mem.UB, 0, np.ones(8, np.float32).tobytes())
    bench.do(SetAtomic(operation="add"))
    bench.do(CopyGmToUbuf(n_burst=1, len_burst=1), 0, bench.base)
    got = np.frombuffer(bench.image(Mem.UB).get(0, 32), np.float32)
    assert got.tolist() == [1.0] * 8
