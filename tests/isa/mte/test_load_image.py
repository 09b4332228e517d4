"""Images to L1, against plain loops over pixels."""

from fractions import Fraction

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench

IMAGE_ROWS, IMAGE_COLUMNS = 12, 14
SAMPLES = {"gray": 1, "RGB888": 3, "XRGB8888": 4, "yuv": 1}
KINDS = [
    ("gray", {}),
    *(("RGB888", {"swaps": swaps}) for swaps in (False, True)),
    *(("XRGB8888", {"swaps": s, "first_dropped": d}) for s in (False, True) for d in (False, True)),
    *(("yuv", {"swaps": swaps}) for swaps in (False, True)),
]
MEANS, MINIMUM, FACTOR = (7, 200, 90), (0.5, -3.25, 11), (0.125, 1.5, 0.0078125)


def channels_of(kind, options, image, row, column):
    """The channels of a pixel of an image of bytes, as its format orders them."""
    plane = IMAGE_ROWS * IMAGE_COLUMNS
    at = (row * IMAGE_COLUMNS + column) * SAMPLES[kind]
    if kind == "gray":
        return [image[at]]
    if kind == "yuv":
        pair = plane + (row // 2) * IMAGE_COLUMNS + column // 2 * 2
        u, v = image[pair], image[pair + 1]
        return [image[at], v, u] if options["swaps"] else [image[at], u, v]
    first = 1 if options.get("first_dropped") else 0
    found = list(image[at + first : at + first + 3])
    return found[::-1] if options["swaps"] else found


def nearest_half(exact):
    """The half nearest to a fraction, of the two around it."""
    near = np.float16(float(exact))
    around = [np.nextafter(near, np.float16(s)) for s in (-np.inf, np.inf)]
    return min([near, *around], key=lambda one: abs(Fraction(float(one)) - exact))


def converted(dtype, values):
    """Values of a pixel in L1's type, by the page's formulas."""
    if dtype == "int8":
        return [max(-128, min(127, value - MEANS[n])) for n, value in enumerate(values)]
    return [
        nearest_half((value - mean - Fraction(low)) * Fraction(factor))
        for value, mean, low, factor in zip(values, MEANS, MINIMUM, FACTOR, strict=False)
    ]


def source_of(mode, at, extent):
    """The crop's position at a place along an axis; None where a constant stands."""
    if 0 <= at < extent:
        return at
    if mode == 1:
        return max(0, min(extent - 1, at))
    return None


def axis(mode, extent, before, behind):
    """Positions of the crop along a padded axis."""
    if mode < 2:
        return [source_of(mode, at, extent) for at in range(-before, extent + behind)]
    inside = list(range(extent))
    first, last = inside[:before], inside[len(inside) - behind :]
    return [*(first[::-1] if mode == 3 else first), *inside, *(last[::-1] if mode == 3 else last)]


def expected(kind, options, dtype, image, given):
    """All values in L1, pixel by pixel."""
    mode, crop_rows = given["pad_mode"], 1 if given["one_row"] else given["rows"]
    wanted = []
    count = 4 if given["channel_mode"] else 32 // np.dtype(dtype).itemsize
    constants = [11, 12, 13] if kind != "gray" else [11]
    for y in axis(mode, crop_rows, given["pad_top"], given["pad_bottom"]):
        for x in axis(mode, given["columns"], given["pad_left"], given["pad_right"]):
            if x is None:
                values = constants
            else:
                at = given["first_row"] + y, given["first_column"] + x
                values = converted(dtype, [int(v) for v in channels_of(kind, options, image, *at)])
            wanted += [*values, *[5] * (count - len(values))]
    return np.array(wanted, dtype)


def bits(value, dtype):
    return int(np.array(value, dtype).view(f"u{np.dtype(dtype).itemsize}"))


def template(kind, options, dtype, given):
    names = {"gray": "load_image_gray", "yuv": "load_image_yuv"}
    more = options | ({} if kind in names else {"pixel": kind})
    numbers = range(3)
    return instruction_named(names.get(kind, "load_image_rgb"))(
        dtype=element_type(dtype),
        image_columns=IMAGE_COLUMNS,
        **given,
        **more,
        **{f"mean_{n}": MEANS[n] for n in numbers},
        **{f"minimum_{n}": bits(MINIMUM[n], "float16") for n in numbers},
        **{f"factor_{n}": bits(FACTOR[n], "float16") for n in numbers},
        **{f"pad_{n}": bits(11 + n, dtype) for n in numbers},
        channel_value=bits(5, dtype),
    )


def drawn(rng, mode):
    rows, columns = (int(n) for n in rng.integers(2, 6, 2))
    one_row = bool(rng.integers(0, 2))
    given = {"rows": rows, "columns": columns, "pad_mode": mode, "one_row": one_row}
    given["first_row"] = 2 * int(rng.integers(0, (IMAGE_ROWS - rows) // 2 + 1))
    given["first_column"] = 2 * int(rng.integers(0, (IMAGE_COLUMNS - columns) // 2 + 1))
    tall = 0 if mode == 0 else 1 if one_row else rows
    for side, most in (("top", tall), ("bottom", tall), ("left", columns), ("right", columns)):
        given[f"pad_{side}"] = int(rng.integers(0, most + 1))
    return given | {"channel_mode": int(rng.integers(0, 2))}


@pytest.mark.parametrize("dtype", ["int8", "float16"])
@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("mode", range(4))
def test_images_in_l1(kind, options, dtype, mode):
    rng = np.random.default_rng(mode)
    for _ in range(3):
        given = drawn(rng, mode)
        plane = IMAGE_ROWS * IMAGE_COLUMNS
        image = rng.integers(0, 256, plane * SAMPLES[kind] + plane // 2, np.uint8)
        bench = Bench(gm_bytes=image.size)
        bench.noise(Mem.L1)
        bench.poke(Mem.GM, 0, image.tobytes())
        wanted = bench.image(Mem.L1)
        wanted.put(96, expected(kind, options, dtype, image, given).tobytes())
        addresses = (bench.base, bench.base + plane) if kind == "yuv" else (bench.base,)
        bench.do(template(kind, options, dtype, given), 96, *addresses)
        assert bench.messages == []
        bench.check(Mem.L1, wanted)


PLAIN = {"rows": 4, "columns": 6, "first_row": 2, "first_column": 2, "channel_mode": 0}
WRONG = [
    ("gray", {"first_column": 3}, "load_image_gray.first_column must be even, got 3"),
    ("RGB888", {"first_column": 3}, "load_image_rgb.first_column must be even, got 3"),
    ("yuv", {"first_row": 1}, "load_image_yuv.first_row must be even, got 1"),
    ("gray", {"rows": 1}, "load_image_gray.rows must be in [2, 4095], got 1"),
    ("gray", {"pad_left": 33}, "load_image_gray.pad_left must be in [0, 32], got 33"),
    ("gray", {"pad_top": 1}, "load_image_gray.pad_top must be 0 where pad_mode is 0, got 1"),
    (
        "gray",
        {"pad_mode": 2, "pad_right": 7},
        "load_image_gray.pad_right must be at most the crop's 6 where pad_mode is 2, got 7",
    ),
    (
        "gray",
        {"pad_mode": 3, "pad_bottom": 5},
        "load_image_gray.pad_bottom must be at most the crop's 4 where pad_mode is 3, got 5",
    ),
]


@pytest.mark.parametrize(("kind", "wrong", "said"), WRONG)
def test_an_image_out_of_range(kind, wrong, said):
    bench = Bench(gm_bytes=1024)
    bench.noise(Mem.GM, written=True)
    before = bench.image(Mem.L1)
    addresses = (bench.base, bench.base + 168) if kind == "yuv" else (bench.base,)
    bench.do(template(kind, {}, "int8", PLAIN | wrong), 96, *addresses)
    assert bench.messages == [f"parameter: {said}"]
    bench.check(Mem.L1, before)


def test_four_bytes_a_pixel_start_at_a_multiple_of_four():
    bench = Bench(gm_bytes=1024)
    bench.noise(Mem.GM, written=True)
    bench.do(template("XRGB8888", {}, "int8", PLAIN), 96, bench.base + 2)
    assert bench.messages == [
        "misaligned: load_image_rgb.src must start at a multiple of 4 B in GM, got "
        f"{bench.base + 2}"
    ]
