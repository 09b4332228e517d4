"""Image to column and back on the earlier AI Cores, against plain loops."""

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.load3d_v1 import Col2img, Img2colCbufToCa, Img2colCbufToCb, Img2colCbufToUb
from cubecore.isa.program.check import template_violations
from isa.bench import Bench

OLD = chip("Ascend910A")
HALF = element_type("float16")
RNG = np.random.default_rng(41)

MAPS = [
    {"height": 5, "width": 6, "filter_h": 2, "filter_w": 3},
    {"height": 4, "width": 7, "filter_h": 3, "filter_w": 2, "stride_h": 2, "stride_w": 3}
    | {"pad_left": 1, "pad_right": 2, "pad_top": 1, "pad_bottom": 1},
    {"height": 6, "width": 6, "filter_h": 2, "filter_w": 2, "dilation_filter_h": 2}
    | {"dilation_filter_w": 3, "pad_left": 2, "pad_top": 1},
]


def corners(given, count):
    """Return the first `count` corners (row, column) of the filter's places."""
    reach = given.get("dilation_filter_w", 1) * (given["filter_w"] - 1) + 1
    last = given["width"] + given.get("pad_right", 0) - reach
    y, x, found = given["left_top_h"], given["left_top_w"], []
    while len(found) < count:
        found.append((y, x))
        x += given.get("stride_w", 1)
        if x > last:
            y, x = y + given.get("stride_h", 1), -given.get("pad_left", 0)
    return found


def seen(given, corner, point):
    """Return (row, column) of what a point of the filter sees from a corner; None outside."""
    down, along = divmod(point, given["filter_w"])
    y = corner[0] + down * given.get("dilation_filter_h", 1)
    x = corner[1] + along * given.get("dilation_filter_w", 1)
    inside = 0 <= y < given["height"] and 0 <= x < given["width"]
    return (y, x) if inside else None


KINDS = [
    *((Img2colCbufToCa, Mem.L0A, t) for t in ("float16", "int8", "uint8")),
    (Img2colCbufToCb, Mem.L0B, "float16"),
    *((Img2colCbufToUb, Mem.UB, t) for t in ("float16", "int8", "uint8")),
]


@pytest.mark.parametrize(("kind", "mem", "dtype"), KINDS)
@pytest.mark.parametrize("given", MAPS)
@pytest.mark.parametrize("mode", [0, 1])
def test_columns_of_a_map(kind, mem, dtype, given, mode):
    of = np.dtype(dtype)
    channels, blocks = 32 // of.itemsize, 2
    shape = (blocks, given["height"], given["width"], channels)
    image = RNG.integers(-99, 99, shape).astype(of)
    bench = Bench(on=OLD)
    bench.poke(Mem.L1, 64, image.tobytes())
    start = {"left_top_w": -given.get("pad_left", 0), "left_top_h": -given.get("pad_top", 0)}
    given = given | start | {"fetch_filter_w": 1, "fetch_filter_h": 1}
    pad = np.float16(-65504) if dtype == "float16" else np.array(77, of)[()]
    template = kind(
        **given,
        dtype=element_type(dtype),
        c1_index=0 if mode == 0 else 1,
        repeat=3,
        repeat_mode=mode,
        jump_offset=2,
        pad_value=int(pad.view(f"u{of.itemsize}")),
    )
    assert template_violations(template, OLD) == ()
    bench.do(template, 512, 64)
    assert bench.messages == []
    memory = bench.buffer(mem).data[512:].view(of)
    places = corners(given, 48)
    points = given["filter_w"] * given["filter_h"]
    for number in range(3):
        point = given["filter_w"] + 1 + (number if mode == 0 else 0)
        block = (0 if mode == 0 else 1) + point // points
        for row in range(16):
            place = places[row + (16 * number if mode else 0)]
            at = seen(given, place, point % points)
            for channel in range(channels):
                want = pad if at is None else image[block, *at, channel]
                inner = channel * 16 + row if mem is Mem.L0B else row * channels + channel
                assert memory[number * 32 * channels + inner] == want, (number, row, channel)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("given", MAPS)
def test_columns_add_up_to_a_map(dtype, given):
    start = {"left_top_w": -given.get("pad_left", 0), "left_top_h": -given.get("pad_top", 0)}
    given = given | start | {"fetch_filter_w": 1, "fetch_filter_h": 0}
    image = RNG.integers(-99, 99, (given["height"], given["width"], 16)).astype(dtype)
    fractals = RNG.integers(-99, 99, (2, 16, 16)).astype(dtype)
    bench = Bench(sub=1, on=OLD)
    bench.poke(Mem.UB, 0, image.tobytes())
    bench.poke(Mem.UB, 16384, fractals.tobytes())
    bench.do(Col2img(**given, dtype=element_type(dtype), repeat=2), 0, 16384)
    assert bench.messages == []
    want = image.copy()
    for number, place in enumerate(corners(given, 32)):
        if (at := seen(given, place, 1)) is not None:
            want[at] += fractals[number // 16, number % 16]
    got = bench.buffer(Mem.UB).data[: image.nbytes].view(dtype).reshape(image.shape)
    assert np.array_equal(got, want)


WRONG = [
    ({"fetch_filter_w": 3}, "col2img.fetch_filter_w must be below the filter's size 3, got 3"),
    ({"fetch_filter_h": 2}, "col2img.fetch_filter_h must be below the filter's size 2, got 2"),
    ({"width": 2}, "col2img.filter_w must fit the padded map, got 3 dilated points"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_filter_fits_its_map(change, message):
    template = Col2img(**(MAPS[0] | change), dtype=HALF)
    assert [str(v) for v in template_violations(template, OLD)] == [message]


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"]
)
@pytest.mark.parametrize("chw2hwc", [False, True])
def test_matrices_are_transposed(dtype, chw2hwc):
    chip_200 = chip("Ascend310P3")
    points, channels = 37, 5
    shape = (channels, points) if chw2hwc else (points, channels)
    given = RNG.integers(-99, 99, shape).astype(dtype)
    bench = Bench(sub=1, on=chip_200)
    bench.poke(Mem.UB, 4096, given.tobytes())
    kind = instruction_named("v4dtrans")
    sizes = {"hw_size": points, "c_size": channels}
    bench.do(kind(dtype=element_type(dtype), chw2hwc=chw2hwc, **sizes), 0, 4096)
    assert bench.messages == []
    got = bench.buffer(Mem.UB).data[: given.nbytes].view(dtype).reshape(shape[::-1])
    for row in range(shape[0]):
        for column in range(shape[1]):
            assert got[column, row] == given[row, column]
