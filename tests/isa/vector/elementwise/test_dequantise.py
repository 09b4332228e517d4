"""Integers scaled to half or to bytes, against exact fractions."""

import math
import struct
from fractions import Fraction

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named, spelled
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.vector.elementwise.dequantise import deq_word
from isa.bench import Bench, Image
from isa.lanes import IEEE, Mask, Operand, Run, fill, pack_float


def test_the_register_is_packed_as_documented():
    """spec/isa_semantics.md 2.5: bits 31 to 0, 45 to 37, 46."""
    assert deq_word(1.0, 2, signed=False) == 0x3F800000 | 2 << 37
    assert deq_word(-2.0, -1, signed=True) == 0xC0000000 | 0x1FF << 37 | 1 << 46
    assert deq_word(0.5, 0x203, signed=False) == 0x3F000000 | 3 << 37  # nine bits count
    bench = Bench(1)
    bench.do(instruction_named("set_deqscale")(value=2**64 - 1))
    assert bench.core.registers.deq_scale == 2**64 - 1


@pytest.mark.parametrize("ctrl", [0, IEEE], ids=["plain", "ieee"])
@pytest.mark.parametrize("scale", [1.0, 2.0, -0.5, 2.0**-14, 65504.0, 0.0999755859375])
def test_integers_to_half(scale, ctrl):
    bench = Bench(1, seed=71)
    fill(bench, "int32")
    bench.poke(
        Mem.UB, 98304, struct.pack("<8i", 0, 65504, -65504, 65519, 65520, 2**31 - 1, -(2**31), 1)
    )
    (code,) = struct.unpack("<H", struct.pack("<e", scale))
    bench.do(instruction_named("set_deqscale")(value=code))
    Run(
        instruction_named("vconv_deq")(repeat=2, dst_block_stride=2, dst_repeat_stride=9),
        {"dst": Operand(0, "float16", 2, 9), "src": Operand(98304, "int32")},
        lambda v: pack_float(v["src"] * scale, "float16", ctrl),
        Mask(low=0xFFFF_FFFF_0000_00FF, ctrl=ctrl),
    ).check(bench)


def scaled(value: int, scale: float, offset: int, signed: bool) -> int:
    """The nearest integer, ties to even, saturated."""
    low, high = (-128, 127) if signed else (0, 255)
    if math.isnan(scale) or (math.isinf(scale) and value == 0):
        return 0
    if math.isinf(scale):
        return high if (scale > 0) == (value > 0) else low
    return min(max(round(Fraction(scale) * value + offset), low), high)


def bytes_by_hand(
    before: Image,
    half: str,
    signed: bool,
    scales: list[tuple[float, int]],
    mask: Mask,
    repeats: int,
) -> Image:
    """Src at 65536, dst at 0; a block of 16 becomes half a block."""
    after = Image(bytearray(before.data), bytearray(before.valid))
    for repeat in range(mask.repeats(repeats, 128)):
        for lane in range(128):
            if mask.on(repeat, lane, 128):
                start = 65536 + 32 * (repeat * 9 + lane // 16) + lane % 16 * 2
                (value,) = struct.unpack("<h", before.get(start, 2))
                scale, offset = scales[lane % 16]
                here = 32 * (repeat * 8 + lane // 16) + lane % 16 + (16 if half == "high" else 0)
                after.put(here, bytes([scaled(value, scale, offset, signed) & 255]))
    return after


MASKS = (Mask(), Mask(low=0x00FF_0000_FFFF_0001, high=1), Mask(count=150))


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("half", ["high", "low"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("scale", "offset"), [(1.0, 0), (0.5, -3), (-0.0078125, 255), (1e30, -256)]
)
def test_halves_to_bytes(scale, offset, dtype, half, mask):
    ((kind, fixed),) = spelled(f"asc_deq_int162b8_{half[0]}")
    assert fixed == {"half": half}
    bench = Bench(1, seed=72)
    fill(bench, "int16")
    signed = dtype == "int8"
    scales = [(scale, offset)] * 16
    expected = bytes_by_hand(bench.image(Mem.UB), half, signed, scales, mask, 2)
    mask.set(bench)
    bench.do(instruction_named("set_deqscale")(value=deq_word(scale, offset, signed=signed)))
    template = kind(dst_type=element_type(dtype), repeat=2, src_repeat_stride=9, **fixed)
    bench.do(template, 0, 65536)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("half", ["high", "low"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_halves_to_bytes_by_lane(dtype, half, mask):
    ((kind, fixed),) = spelled(f"asc_vdeq_int162b8_{half[0]}")
    bench = Bench(1, seed=73)
    fill(bench, "int16")
    signed = dtype == "int8"
    scales = [(float(2.0 ** (i - 12)) * (-1) ** i, 3 * i - 20) for i in range(16)]
    words = [deq_word(scale, offset, signed=signed) for scale, offset in scales]
    bench.poke(Mem.UB, 131072, struct.pack("<16Q", *words))
    expected = bytes_by_hand(bench.image(Mem.UB), half, signed, scales, mask, 2)
    mask.set(bench)
    bench.do(instruction_named("set_deqscale")(value=131072 // 32))
    template = kind(dst_type=element_type(dtype), repeat=2, src_repeat_stride=9, **fixed)
    bench.do(template, 0, 65536)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_a_sign_that_is_not_the_types():
    bench = Bench(1)
    fill(bench, "int16")
    bench.do(instruction_named("set_deqscale")(value=deq_word(1.0, 0, signed=True)))
    bench.do(instruction_named("vconv_deqs162b8")(dst_type=element_type("uint8")), 0, 65536)
    words = [deq_word(1.0, 0, signed=i > 3) for i in range(16)]
    bench.poke(Mem.UB, 4096, struct.pack("<16Q", *words))
    bench.do(instruction_named("set_deqscale")(value=128))
    bench.do(instruction_named("vconv_vdeqs162b8")(dst_type=element_type("int8")), 0, 65536)
    assert bench.messages == [
        "parameter: vconv_deqs162b8: DEQSCALE must state the sign of uint8, got int8",
        "parameter: vconv_vdeqs162b8: the scales must state the sign of int8, got another",
    ]


def test_scales_outside_the_unified_buffer_are_a_finding():
    bench = Bench(1)
    fill(bench, "int16")
    bench.do(instruction_named("set_deqscale")(value=6144))
    bench.do(instruction_named("vconv_vdeqs162b8")(dst_type=element_type("int8")), 0, 65536)
    assert bench.messages == [
        "out-of-bounds: vconv_vdeqs162b8.scales must stay inside UB (0 to 196608 B), "
        "got bytes [196608, 196736)"
    ]


def test_scales_that_nobody_wrote_are_a_finding():
    bench = Bench(1)
    bench.poke(Mem.UB, 65536, bytes(256))
    bench.do(instruction_named("set_deqscale")(value=128))
    bench.do(instruction_named("vconv_vdeqs162b8")(dst_type=element_type("int8")), 0, 65536)
    assert bench.messages == [
        "uninitialised: vconv_vdeqs162b8.scales must be initialised in UB, "
        "got 16 of 16 elements never written, first lane 0"
    ]
