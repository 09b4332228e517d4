"""What the earlier AI Cores do between L0C, the scalar unit and UB, against plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies_joined_core import (
    CopyCbufToUbuf,
    CopyMatrixCcToUbuf,
    CopyUbufToCbuf,
)
from cubecore.isa.scalar.store import StoreScalar, StoreScalarGm
from isa.bench import Bench

OLD = chip("Ascend910A")


@pytest.mark.parametrize(
    ("source", "target", "relu"),
    [
        ("float32", "float32", False),
        ("float32", "float16", False),
        ("float32", "float16", True),
        ("int32", "int32", True),
        ("int32", "float16", False),
        ("float16", "float16", False),
    ],
)
@pytest.mark.parametrize(
    ("n_burst", "len_burst", "src_gap", "dst_gap"), [(1, 2, 0, 0), (3, 1, 2, 1)]
)
def test_fractals_to_the_unified_buffer(source, target, relu, n_burst, len_burst, src_gap, dst_gap):
    bench = Bench(on=OLD)
    rng = np.random.default_rng(3)
    held = rng.integers(-3000, 3000, 256 * 16).astype(source)
    bench.poke(Mem.L0C, 0, held.tobytes())
    template = CopyMatrixCcToUbuf(
        src_type=element_type(source),
        dst_type=element_type(target),
        n_burst=n_burst,
        len_burst=len_burst,
        src_gap=src_gap,
        dst_gap=dst_gap,
        relu=relu,
        scale=int(np.float32(0.5).view(np.uint32)),
    )
    bench.do(template, 0, 0)
    assert bench.messages == []
    raw = bench.buffer(Mem.UB).data.view(target)
    valid = bench.buffer(Mem.UB).valid.view(f"V{np.dtype(target).itemsize}")
    written = 0
    for run in range(n_burst):
        for element in range(len_burst * 256):
            value = held[run * (len_burst + src_gap) * 256 + element]
            if relu and value < 0:
                value = 0
            if (source, target) == ("int32", "float16"):
                value = value * 0.5
            place = run * (len_burst + dst_gap) * 256 + element
            assert raw[place] == np.dtype(target).type(value)
            written += 1
    assert bench.buffer(Mem.UB).valid.sum() == written * valid.itemsize


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [(CopyCbufToUbuf, Mem.L1, Mem.UB), (CopyUbufToCbuf, Mem.UB, Mem.L1)],
)
@pytest.mark.parametrize(("src_gap", "dst_gap"), [(0, 0), (1, 0), (2, 3)])
def test_blocks_between_local_memories(kind, source, target, src_gap, dst_gap):
    bench = Bench(on=OLD)
    held = np.random.default_rng(4).integers(0, 256, 16 * 32).astype(np.uint8)
    bench.poke(source, 64, held.tobytes())
    bench.do(kind(n_burst=3, len_burst=2, src_gap=src_gap, dst_gap=dst_gap), 96, 64)
    assert bench.messages == []
    wanted = {}
    for run in range(3):
        for byte in range(64):
            wanted[96 + run * (2 + dst_gap) * 32 + byte] = held[run * (2 + src_gap) * 32 + byte]
    memory = bench.buffer(target)
    assert set(np.flatnonzero(memory.valid)) == set(wanted)
    assert all(memory.data[place] == value for place, value in wanted.items())


def test_a_conversion_that_there_is_not():
    bench = Bench(on=OLD)
    kinds = {"src_type": element_type("float32"), "dst_type": element_type("int32")}
    bench.do(CopyMatrixCcToUbuf(n_burst=1, len_burst=1, **kinds), 0, 0)
    assert bench.messages == [
        "parameter: copy_matrix_cc_to_ubuf.dst_type must be one of float16 to float16, "
        "float32 to float16, float32 to float32, int32 to float16, int32 to int32, "
        "got float32 to int32"
    ]


SCALARS = [
    ("int8", -1, b"\xff"),
    ("uint16", 0x1234, b"\x34\x12"),
    ("int32", 2**32 + 5, b"\x05\0\0\0"),
    ("float16", 0x3C00, b"\x00\x3c"),
    ("int64", -2, b"\xfe" + b"\xff" * 7),
    ("uint8", 0x1FE, b"\xfe"),
    ("int16", -2, b"\xfe\xff"),
    ("uint32", 0x12345678, b"\x78\x56\x34\x12"),
    ("float32", 0x40490FDB, b"\xdb\x0f\x49\x40"),
    ("uint64", 2**63 + 1, b"\x01" + bytes(6) + b"\x80"),
]


@pytest.mark.parametrize(("dtype", "value", "raw"), SCALARS)
def test_a_scalar_in_memory(dtype, value, raw):
    bench = Bench(on=OLD)
    bench.do(StoreScalar(dtype=element_type(dtype), value=value), 40)
    assert bench.messages == []
    buffer = bench.buffer(Mem.UB)
    assert bytes(buffer.data[40 : 40 + len(raw)]) == raw
    assert buffer.valid.sum() == buffer.valid[40 : 40 + len(raw)].sum() == len(raw)


@pytest.mark.parametrize(("dtype", "value", "raw"), SCALARS)
def test_a_scalar_in_global_memory(dtype, value, raw):
    bench = Bench()
    tensor = bench.gm.allocate("x", 64)
    bench.do(StoreScalarGm(dtype=element_type(dtype), value=value), tensor.address + 40)
    assert bench.messages == []
    assert bytes(tensor.buffer.data[40 : 40 + len(raw)]) == raw
    assert tensor.buffer.valid.sum() == tensor.buffer.valid[40 : 40 + len(raw)].sum() == len(raw)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize(
    ("n_burst", "len_burst", "src_gap", "dst_gap"), [(1, 2, 0, 0), (3, 1, 2, 1), (2, 2, 0, 3)]
)
def test_fractals_from_the_unified_buffer(dtype, n_burst, len_burst, src_gap, dst_gap):
    bench = Bench(on=OLD)
    held = np.random.default_rng(4).integers(-3000, 3000, 256 * 16).astype(dtype)
    bench.poke(Mem.UB, 0, held.tobytes())
    kind = instruction_named("copy_ubuf_to_matrix_cc")
    runs = {"n_burst": n_burst, "len_burst": len_burst, "src_gap": src_gap, "dst_gap": dst_gap}
    bench.do(kind(dtype=element_type(dtype), **runs), 1024, 0)
    assert bench.messages == []
    got = bench.buffer(Mem.L0C).data[1024:].view(dtype)
    for run in range(n_burst):
        for element in range(len_burst * 256):
            source = held[run * (len_burst + src_gap) * 256 + element]
            assert got[run * (len_burst + dst_gap) * 256 + element] == source
    size = n_burst * len_burst * 256 * held.itemsize
    assert bench.buffer(Mem.L0C).valid.sum() == size


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize(("src_gap", "dst_gap"), [(0, 0), (1, 0), (2, 3)])
def test_pieces_to_every_row_of_a_fractal(dtype, src_gap, dst_gap):
    bench = Bench(on=OLD)
    held = np.random.default_rng(8).integers(-99, 99, 16 * 32).astype(dtype)
    bench.poke(Mem.UB, 64, held.tobytes())
    kind = instruction_named("broadcast_ub_to_cc")
    gaps = {"src_gap": src_gap, "dst_gap": dst_gap}
    bench.do(kind(dtype=element_type(dtype), n_burst=3, len_burst=2, **gaps), 1024, 64)
    assert bench.messages == []
    got = bench.buffer(Mem.L0C).data[1024:].view(dtype)
    for run in range(3):
        for piece in range(2):
            for row in range(16):
                at = (run * (2 + dst_gap) + piece) * 256 + row * 16
                start = (run * (2 + src_gap) + piece) * 16
                assert got[at : at + 16].tolist() == held[start : start + 16].tolist()


def test_registers_in_memory():
    bench = Bench(sub=1, on=OLD)
    bench.core.registers = replace(bench.core.registers, kept=77, merged=(1, 2, 3, 4))
    bench.do(instruction_named("store_kept")(), 32)
    bench.do(instruction_named("store_merged")(), 64)
    assert bench.messages == []
    numbers = bench.buffer(Mem.UB).data.view(np.int64)
    assert numbers[4] == 77
    assert numbers[8:12].tolist() == [1, 2, 3, 4]
