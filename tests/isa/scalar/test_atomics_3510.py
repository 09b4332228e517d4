"""Atomic operations of 950's scalar unit: each against Python's integers, and counters of cores."""

import struct

import numpy as np
import pytest

import cubecore
from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from frontends.cpp.cpp_kernels import needs_compiler
from isa import rows_3510 as rows
from isa.bench import Bench

CHIP = "Ascend950PR_9589"
EDGES = {"int": (0, 1, -1, 5, "low", "high"), "uint": (0, 1, 5, "high"), "float": (0.0, 1.5, -2.5)}


def expected(operation, old, value, compare):
    """Return the new element as whole numbers, or floats, without a limit of bits."""
    return {
        "add": lambda: old + value,
        "sub": lambda: old - value,
        "max": lambda: max(old, value),
        "min": lambda: min(old, value),
        "exch": lambda: value,
        "cas": lambda: value if old == compare else old,
        "and": lambda: old & value,
        "or": lambda: old | value,
        "xor": lambda: old ^ value,
        "inc": lambda: 0 if old >= value else old + 1,
        "dec": lambda: value if old == 0 or old > value else old - 1,
    }[operation]()


def numbers(kind):
    low, high = (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1)
    if kind.kind == "uint":
        low, high = 0, (1 << kind.bits) - 1
    return [{"low": low, "high": high}.get(n, n) for n in EDGES[kind.kind]]


def raw(value, kind):
    if kind.kind == "float":
        return struct.pack("<f", value)
    return (value % (1 << kind.bits)).to_bytes(kind.size_bytes, "little")


@pytest.mark.parametrize("name", rows.ATOMICS)
def test_atomic_operations(name):
    operation = name.rpartition("_")[2]
    for dtype in rows.TYPES[name, "dtype"]:
        kind, bench = element_type(dtype), Bench(1, seed=3, gm_bytes=64, on=chip(CHIP))
        for old in numbers(kind):
            for value in numbers(kind):
                bits = int.from_bytes(raw(value, kind), "little")
                more = {"compare": int.from_bytes(raw(1, kind), "little")}
                more = more if operation == "cas" else {}
                bench.poke(Mem.GM, 8, raw(old, kind))
                template = instruction_named(name)(dtype=kind, value=bits, **more)
                image = bench.image(Mem.GM)
                image.put(8, raw(expected(operation, old, value, 1), kind))
                bench.do(template, bench.base + 8)
                bench.check(Mem.GM, image)
                (read,) = template.result(bench.core.registers)
                assert read.to_bytes(kind.size_bytes, "little") == raw(old, kind)
        assert bench.messages == []


@pytest.mark.parametrize("dtype", rows.TYPES["store_dev", "dtype"])
def test_a_store_past_the_data_cache(dtype):
    kind, bench = element_type(dtype), Bench(1, seed=3, gm_bytes=64, on=chip(CHIP))
    for value in numbers(kind):
        bench.poke(Mem.GM, 0, bytes(64))
        image = bench.image(Mem.GM)
        image.put(8, raw(value, kind))
        template = instruction_named("store_dev")(dtype=kind, value=value)
        bench.do(template, bench.base + 8)
        bench.check(Mem.GM, image)
    assert bench.messages == []


PAST_IN_C = """#include "c_api/asc_simd.h"
extern "C" __global__ __vector__ void stored(__gm__ int16_t* z) {
  const int16_t mine = -asc_get_block_idx();
  asc_store_dev(z + asc_get_block_idx(), mine);
}
"""


@cubecore.kernel(chip=CHIP)
def stored(core, z):
    """Do in Python what PAST_IN_C does."""
    core.asc_store_dev(z + core.block_idx, -core.block_idx)


@pytest.mark.parametrize("order", ["program", "late"])
@pytest.mark.parametrize("language", [pytest.param("c", marks=needs_compiler), "python"])
def test_cores_store_into_one_line_past_the_data_cache(language, order):
    """By the data cache their lines would overwrite each other: a finding on each."""
    called = stored if language == "python" else cubecore.inline(PAST_IN_C, chip=CHIP).stored
    z = np.zeros(32, np.int16)
    assert called.using(order=order)[8](z).findings == ()
    assert z.tolist() == [*range(0, -8, -1), *[0] * 24]


def test_an_element_that_nobody_wrote():
    bench = Bench(1, gm_bytes=64, on=chip(CHIP))
    half = instruction_named("scalar_atomic_add")(dtype=element_type("int32"), value=1)
    bench.do(half, bench.base)
    assert [message.partition(":")[0] for message in bench.messages] == ["uninitialised"]


IN_C = """#include "c_api/asc_simd.h"
extern "C" __global__ __vector__ void counted(__gm__ uint32_t* count, __gm__ float* most,
                                              __gm__ int32_t* least, __gm__ uint32_t* z) {
  uint32_t old = asc_atomic_add(count, 1);
  AscendC::AtomicMax(most, old + 0.5f);
  asc_atomic_min(least, -3 * (int32_t)old);
  AscendC::AtomicExch(z + old, old + 1u);
  asc_atomic_cas(z + old, 3, 30);
}
"""


@cubecore.kernel(chip=CHIP)
def counted(core, count, most, least, z):
    """Do in Python what IN_C does."""
    old = core.asc_atomic_add(count, 1)
    core.asc_atomic_max(most, old + 0.5)
    core.asc_atomic_min(least, -3 * old)
    core.asc_atomic_exch(z + old, old + 1)
    core.asc_atomic_cas(z + old, 3, 30)


@pytest.mark.parametrize("language", [pytest.param("c", marks=needs_compiler), "python"])
def test_cores_that_count_together(language):
    """Each core of four gets a number of its own, and nothing is a race."""
    called = counted if language == "python" else cubecore.inline(IN_C, chip=CHIP).counted
    count, most = np.zeros(1, np.uint32), np.zeros(1, np.float32)
    least, z = np.zeros(1, np.int32), np.zeros(8, np.uint32)
    assert [f.message for f in called[4](count, most, least, z).findings] == []
    assert (count.tolist(), most.tolist(), least.tolist()) == ([4], [3.5], [-9])
    assert z.tolist() == [1, 2, 30, 4, 0, 0, 0, 0]


@cubecore.kernel(chip=CHIP)
def mixed(core, count):
    """Count once atomically, and once by the data cache."""
    core.asc_atomic_add(count, 1)
    core.store(count, 5)


def test_a_plain_store_beside_atomic_operations_is_a_race():
    found = mixed[2](np.zeros(1, np.uint32)).findings
    assert {f.id.partition("-")[0] for f in found} >= {"race"}
