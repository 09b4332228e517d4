"""Areas, overlaps and greedy suppression of proposals, against plain loops."""

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench

OLD = chip("Ascend310P3")
TYPES = ("float16", "float32")
RNG = np.random.default_rng(31)


def boxes(count, dtype):
    """Proposals with small whole corners, so that every area is exact."""
    low = RNG.integers(0, 20, (count, 2))
    rest = RNG.integers(0, 9, (count, 4))
    return np.concatenate([low, low + RNG.integers(-3, 12, (count, 2)), rest], 1).astype(dtype)


def area(low, high, offset):
    wide, tall = (max(high[axis] - low[axis] + offset, 0) for axis in (0, 1))
    return wide * tall


def run(name, dtype, arrays, size, offset=None, **parameters):
    """Run an instruction on arrays in UB, 8 KiB apart; return what it wrote to the first place."""
    bench = Bench(sub=1, on=OLD)
    if offset is not None:
        bits = int(np.float32(offset).view(np.uint32))
        bench.do(instruction_named("set_rpn_offset")(value=bits))
    for place, values in enumerate(arrays, start=1):
        bench.poke(Mem.UB, 8192 * place, values.tobytes())
    template = instruction_named(name)(dtype=element_type(dtype), **parameters)
    bench.do(template, *(8192 * place for place in range(len(arrays) + 1)))
    assert bench.messages == []
    buffer = bench.buffer(Mem.UB)
    count = size * np.dtype(dtype).itemsize
    assert buffer.valid[: 8192 - 32].sum() == count
    return buffer.data[:count].view(dtype).tolist()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("offset", [None, 0.0, 2.0])
def test_areas(dtype, offset):
    given = boxes(32, dtype)
    got = run("vrpac", dtype, [given], 32, offset, repeat=2)
    one = 1 if offset is None else offset
    assert got == [area(row[:2], row[2:4], one) for row in given.astype(float).tolist()]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("repeat", [0, 1, 3])
def test_areas_in_common(dtype, repeat):
    ones, others = boxes(16 * repeat, dtype), boxes(16, dtype)
    got = run("viou", dtype, [ones, others], 256 * repeat, repeat=repeat)
    want = []
    for x in ones.astype(float).tolist():
        for y in others.astype(float).tolist():
            low = [max(x[axis], y[axis]) for axis in (0, 1)]
            high = [min(x[axis], y[axis]) for axis in (2, 3)]
            want.append(area(low, high, 1))
    assert got == want


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("repeat", [0, 1, 3])
def test_sums_of_areas(dtype, repeat):
    ones = RNG.integers(0, 500, 16 * repeat).astype(dtype)
    others = RNG.integers(0, 500, 16).astype(dtype)
    got = run("vaadd", dtype, [ones, others], 256 * repeat, repeat=repeat)
    assert got == [x + y for x in ones.tolist() for y in others.tolist()]


def test_proposals_are_suppressed_group_by_group():
    bench = Bench(sub=1, on=OLD)
    rows = RNG.integers(0, 2**16, 48) & RNG.integers(0, 2**16, 48) & RNG.integers(0, 2**16, 48)
    rows = rows.astype(np.uint16)
    bench.poke(Mem.UB, 1024, rows.tobytes())
    earlier = RNG.integers(0, 2, 32).astype(np.uint16)
    bench.poke(Mem.UB, 2048, earlier.tobytes())
    bench.do(instruction_named("set_rpn_cor_ir")(value=0b100))
    bench.do(instruction_named("rpn_cor")(repeat=2), 1024, 2048)
    bench.do(instruction_named("rpn_cor_diag")(), 1024 + 64, 4096)
    assert bench.messages == []
    gone = {2} | {b for r in range(32) if not earlier[r] for b in range(16) if rows[r] >> b & 1}
    want = []
    for place in range(16):
        want.append(int(place in gone))
        if place not in gone:
            gone |= {b for b in range(16) if rows[32 + place] >> b & 1}
    buffer = bench.buffer(Mem.UB)
    assert buffer.data[4096 : 4096 + 32].view(np.uint16).tolist() == want
    assert 0 < sum(want) < 16
    assert bench.core.registers.suppressed >> 2 & 1


def test_strides_of_suppression_count_blocks():
    bench = Bench(sub=1, on=OLD)
    rows = np.zeros(64, np.uint16)
    rows[0], rows[16], rows[32] = 1, 2, 4
    bench.poke(Mem.UB, 0, rows.tobytes())
    bench.poke(Mem.UB, 1024, np.zeros(64, np.uint16).tobytes())
    bench.do(instruction_named("rpn_cor")(repeat=2, matrix_stride=2, vector_stride=1), 0, 1024)
    assert bench.core.registers.suppressed == 1 | 4
