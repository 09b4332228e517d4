"""The broadcast of a tensor on architecture 3510, against NumPy."""

import math

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa import functions_rows as rows
from isa.bench import Bench

CHIP = chip("Ascend950PR_9589")
SHAPES = {
    "rows": ((1, 5), (7, 5)),
    "columns": ((6, 1), (6, 9)),
    "both": ((2, 1, 3, 1), (2, 4, 3, 5)),
    "nine": ((1, 2, 1, 1, 2, 1, 1, 1, 3), (2, 2, 1, 2, 2, 1, 1, 2, 3)),
    "same": ((4, 8), (4, 8)),
}


def fields(src, dst):
    behind = 9 - len(dst)
    sizes = {f"src_size{behind + n}": size for n, size in enumerate(src)}
    return sizes | {f"dst_size{behind + n}": size for n, size in enumerate(dst)}


def run(dtype, **given):
    bench = Bench(1, seed=3, on=CHIP)
    bench.noise(Mem.UB, written=True)
    before = bench.image(Mem.UB)
    bench.do(instruction_named("broadcast")(dtype=element_type(dtype), **given), 8192, 0)
    return bench, before


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", rows.TYPES["broadcast", "dtype"])
def test_shapes(dtype, name):
    src, dst = SHAPES[name]
    bench, image = run(dtype, count=math.prod(dst), **fields(src, dst))
    assert bench.messages == []
    kind = np.dtype(f"u{element_type(dtype).size_bytes}")
    given = np.frombuffer(image.get(0, math.prod(src) * kind.itemsize), kind).reshape(src)
    image.put(8192, np.broadcast_to(given, dst).tobytes())
    bench.check(Mem.UB, image)


def test_shapes_that_do_not_fit():
    bench, _ = run("float32", count=35, **fields((2, 5), (7, 5)))
    assert bench.messages == ["parameter: broadcast.src_size7 must be 1 or 7, as dst's, got 2"]
    bench, _ = run("float32", count=34, **fields((1, 5), (7, 5)))
    assert bench.messages == ["parameter: broadcast.count must be 35, dst's elements, got 34"]
