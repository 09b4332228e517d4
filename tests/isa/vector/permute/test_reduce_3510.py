"""The extremes of a tensor on architecture 3510, against loops over what the mask lets through."""

import math

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa import vector_rows as rows
from isa.bench import Bench
from isa.lanes import Mask

CHIP = chip("Ascend950PR_9589")
MASKS = (Mask(), Mask(low=0x0F05, high=0), Mask(count=1), Mask(count=130))
TYPES = rows.TYPES["reduce_max", "dtype"]


def drawn(rng, kind, count):
    if kind.kind == "float":
        return (rng.integers(-9, 9, count) / 2).astype(kind.numpy)
    info = np.iinfo(kind.numpy)
    return rng.integers(info.min, info.max, count, kind.numpy, endpoint=True)


def expected(values, largest):
    """The extreme (NaN before all) and its first index."""
    best = next(iter(values))
    for index, value in values.items():
        if math.isnan(values[best]):
            break
        if math.isnan(value) or (value > values[best] if largest else value < values[best]):
            best = index
    return best


CASES = [
    (dtype, mask, nan)
    for dtype in TYPES
    for mask in MASKS
    for nan in ([False, True] if dtype == "float32" else [False])
    if mask.count is not None or not dtype.endswith("64")  # these by a count alone
]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(("dtype", "mask", "nan"), CASES, ids=str)
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_extremes(name, dtype, mask, indexed, nan):
    kind, bench = element_type(dtype), Bench(1, seed=4, on=CHIP)
    counts = mask.count is not None
    repeats, size = (1 if counts else 3), kind.size_bytes
    width = 256 // size
    values = drawn(np.random.default_rng(6), kind, 512)
    values[[5, 70]] = values.max() if name == "reduce_max" else values.min()  # the first counts
    if nan:
        values[[0, 9]] = np.nan
    bench.noise(Mem.UB, written=True)
    bench.poke(Mem.UB, 4096, values.tobytes())
    mask.set(bench)
    template = instruction_named(name)(dtype=kind, indexed=indexed, repeat=repeats)
    image = bench.image(Mem.UB)
    bench.do(template, 64, 4096)
    assert bench.messages == []
    on = {
        repeat * width + lane: values[repeat * width + lane].item()
        for repeat in range(mask.repeats(repeats, width))
        for lane in range(width)
        if mask.on(repeat, lane, width)
    }
    index = expected(on, name == "reduce_max")
    image.put(64, values[index : index + 1].tobytes())
    if indexed:
        image.put(64 + size, index.to_bytes(size, "little"))
    bench.check(Mem.UB, image)


def test_a_result_is_aligned_to_its_parts():
    bench = Bench(1, on=CHIP)
    bench.poke(Mem.UB, 4096, bytes(256))
    template = instruction_named("reduce_max")(dtype=element_type("float32"), indexed=True)
    bench.do(template, 68, 4096)
    want = "misaligned: reduce_max.dst must start at a multiple of 8 B in UB, got 68"
    assert bench.messages == [want]
