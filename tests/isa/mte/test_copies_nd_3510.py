"""The copy of several dimensions of architecture 3510, element by element."""

from itertools import product

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa import rows_3510 as rows
from isa.bench import Bench

CHIP = chip("Ascend950PR_9589")
TYPES = rows.TYPES["copy_gm_to_ubuf_nd", "dtype"]
TO, FROM = 96, 64
SHAPES = {
    # sizes, strides of the source and of the destination, padding before and behind
    "padded": ((5, 3), (1, 9), (1, 12), (2, 1), (3, 2)),
    "turned": ((4, 6), (1, 7), (6, 1), (0, 0), (0, 0)),
    "broadcast": ((7, 3), (1, 0), (1, 8), (0, 0), (0, 0)),
    "slice": ((2, 3, 2), (2, 5, 40), (1, 3, 11), (0, 0, 0), (1, 0, 0)),
    "five": ((2, 1, 3, 2, 2), (1, 0, 4, 16, 40), (1, 3, 9, 36, 144), (0, 1, 0, 1, 0), (1,) * 5),
}


def expected(image, gm, size, shape, nearest, constant):
    """Fill the image as the page's figures do: every element of the destination by itself."""
    sizes, src, dst, left, right = shape
    ranges = [range(n + a + b) for n, a, b in zip(sizes, left, right, strict=True)]
    for place in product(*ranges):
        inner = [i - a for i, a in zip(place, left, strict=True)]
        held = [min(max(i, 0), n - 1) for i, n in zip(inner, sizes, strict=True)]
        at = FROM + size * sum(i * s for i, s in zip(held, src, strict=True))
        raw = bytes(gm.get(at, size))
        if held != inner and not nearest:
            raw = constant.to_bytes(size, "little")
        image.put(TO + size * sum(i * s for i, s in zip(place, dst, strict=True)), raw)


def fields(shape, **more):
    names = ("size", "src_stride", "dst_stride", "left", "right")
    made = {
        f"{name}{n}": v for name, of in zip(names, shape, strict=True) for n, v in enumerate(of)
    }
    return {**made, **more}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_loops(dtype, nearest, name):
    kind, shape, bench = element_type(dtype), SHAPES[name], Bench(1, seed=7, gm_bytes=4096, on=CHIP)
    if kind.bits == 64 and nearest:
        nearest = False  # test_what_pads_64_bits has it
    constant = 0 if kind.bits == 64 else 0x5A
    bench.noise(Mem.UB, written=True)
    bench.noise(Mem.GM, written=True)
    image, gm = bench.image(Mem.UB), bench.image(Mem.GM)
    expected(image, gm, kind.size_bytes, shape, nearest, constant)
    given = fields(shape, dtype=kind, nearest=nearest, constant=constant)
    bench.do(instruction_named("copy_gm_to_ubuf_nd")(**given), TO, bench.base + FROM)
    assert bench.messages == []
    bench.check(Mem.UB, image)


def messages(**given):
    bench = Bench(1, gm_bytes=4096, on=CHIP)
    bench.noise(Mem.GM, written=True)
    bench.do(instruction_named("copy_gm_to_ubuf_nd")(**given), TO, bench.base + FROM)
    return bench.messages


def test_loops_that_overlap():
    shape = fields(((5, 3), (1, 9), (1, 4), (0, 0), (0, 0)), dtype=element_type("float32"))
    need = "be 5 or more, what the loops of smaller strides write"
    assert messages(**shape) == [f"parameter: copy_gm_to_ubuf_nd.dst_stride1 must {need}, got 4"]


def test_what_pads_64_bits():
    shape = fields(SHAPES["padded"], dtype=element_type("int64"))
    said = "parameter: copy_gm_to_ubuf_nd: the padding must be 0 for int64, got "
    assert messages(**shape, constant=3) == [f"{said}3"]
    assert messages(**shape, nearest=True) == [f"{said}the nearest element"]


C_TYPES = rows.TYPES["copy_gm_to_ubuf_ndim", "dtype"]


def in_registers(shape, kind, *, nearest, constant):
    """Return the instructions that set the loops, and the copy."""
    padded = [
        (*of, *(fill,) * (5 - len(of))) for of, fill in zip(shape, (1, 0, 0, 0, 0), strict=True)
    ]
    sizes, src, dst, left, right = padded
    for n in range(5):
        strides = {"dst_stride": dst[n], "src_stride": src[n]}
        yield instruction_named(f"set_ndim_loop{n}_stride")(**strides)
    counts = {f"loop{n}_lp_count": left[n] for n in range(1, 5)}
    counts |= {f"loop{n}_rp_count": right[n] for n in range(1, 5)}
    yield instruction_named("set_ndim_pad_count")(**counts)
    if constant is not None:
        yield instruction_named("set_ndim_pad_value")(pad_value=constant)
    given = {f"loop{n}_size": size for n, size in enumerate(sizes)}
    given |= {"loop0_lp_count": left[0], "loop0_rp_count": right[0]}
    yield instruction_named("copy_gm_to_ubuf_ndim")(dtype=kind, padding_mode=not nearest, **given)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("dtype", C_TYPES)
@pytest.mark.thinned(4)
def test_loops_in_registers(dtype, nearest, name):
    """The C API's copy: the same loops, whose strides and padding registers hold."""
    kind, shape, bench = element_type(dtype), SHAPES[name], Bench(1, seed=7, gm_bytes=4096, on=CHIP)
    size = max(kind.bits // 8, 1)  # two numbers of 4 bits are one element
    bench.noise(Mem.UB, written=True)
    bench.noise(Mem.GM, written=True)
    image, gm = bench.image(Mem.UB), bench.image(Mem.GM)
    expected(image, gm, size, shape, nearest, 0x5A)
    *setting, copy = in_registers(shape, kind, nearest=nearest, constant=0x5A)
    for instruction in setting:
        bench.do(instruction)
    bench.do(copy, TO, bench.base + FROM)
    assert bench.messages == []
    bench.check(Mem.UB, image)


def messages_of_registers(shape, constant=0x5A):
    bench = Bench(1, gm_bytes=4096, on=CHIP)
    bench.noise(Mem.GM, written=True)
    half = element_type("float16")
    *setting, copy = in_registers(shape, half, nearest=False, constant=constant)
    for instruction in setting:
        bench.do(instruction)
    bench.do(copy, TO, bench.base + FROM)
    return bench


def test_loops_of_registers_that_overlap():
    wrong = messages_of_registers(((5, 3), (1, 9), (1, 4), (0, 0), (0, 0)))
    need = "be 5 or more, what the loops of smaller strides write"
    said = f"parameter: copy_gm_to_ubuf_ndim.loop1_dst_stride must {need}, got 4"
    assert wrong.messages == [said]


def test_padding_before_its_value_is_set_stays_unwritten():
    bench = messages_of_registers(((4,), (1,), (1,), (2,), (0,)), constant=None)
    assert bench.messages == []
    np.testing.assert_array_equal(bench.buffer(Mem.UB).valid[TO : TO + 12], [0] * 4 + [1] * 8)
