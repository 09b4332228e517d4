"""vsel in its three modes against loops over lanes."""

import struct

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench
from isa.lanes import CODES, INF, NAN, Mask, Operand, size_of

DTYPES = ("float16", "float32")
MASKS = [Mask(), Mask(low=0xFF00_FF00_FF00_FF01, high=0xF), Mask(count=200)]
SEL = 180224
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_mask = pytest.mark.parametrize("mask", MASKS, ids=str)


def noise(seed: int) -> Bench:
    """Any bytes: a selected element arrives bit for bit."""
    bench = Bench(1, seed=seed)
    bench.noise(Mem.UB, written=True)
    return bench


def set_register(bench: Bench, raw: bytes) -> None:
    bench.poke(Mem.UB, 196608 - 512, raw)
    bench.do(instruction_named("set_cmpmask")(), 196608 - 512)


def by_hand(bench: Bench, dtype: str, mask: Mask, repeats: int, bit, other):
    """dst at 0, src0 at 65536 (every second block), src1 at 131072, or a scalar."""
    after, size = bench.image(Mem.UB), size_of(dtype)
    width = 256 // size
    dst, src0 = Operand(0, dtype, 1, 9), Operand(65536, dtype, 2, 16)
    src1 = Operand(131072, dtype, 1, 0)
    for repeat in range(mask.repeats(repeats, width)):
        for lane in range(width):
            if not mask.on(repeat, lane, width):
                continue
            if bit(repeat, lane):
                raw = after.get(src0.byte(repeat, lane), size)
            else:
                raw = other or after.get(src1.byte(repeat, lane), size)
            after.put(dst.byte(repeat, lane), raw)
    return after


TWO = {"dst_repeat_stride": 9, "src0_block_stride": 2, "src0_repeat_stride": 16}
THREE = TWO | {"src1_repeat_stride": 0}


@every_mask
@every_dtype
def test_by_the_register(dtype, mask):
    """Every repeat uses the same bits: 128 of half, the lower 64 of float."""
    bench = noise(101)
    raw = bench.rng.integers(0, 256, 16, dtype="uint8").tobytes()
    set_register(bench, raw)
    bits = int.from_bytes(raw, "little")
    expected = by_hand(bench, dtype, mask, 3, lambda _, lane: bits >> lane & 1, None)
    mask.set(bench)
    bench.do(
        instruction_named("vsel")(dtype=element_type(dtype), repeat=3, **THREE), 0, 65536, 131072
    )
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def bit_of(bench: Bench, dtype: str):
    """Each repeat has bits of its own, one after another from SEL on."""
    image, width = bench.image(Mem.UB), 256 // size_of(dtype)

    def bit(repeat: int, lane: int) -> int:
        place = repeat * width + lane
        return image.get(SEL + place // 8, 1)[0] >> place % 8 & 1

    return bit


@every_mask
@every_dtype
def test_by_memory(dtype, mask):
    bench = noise(102)
    set_register(bench, struct.pack("<QQ", SEL, 2**64 - 1))
    expected = by_hand(bench, dtype, mask, 3, bit_of(bench, dtype), None)
    mask.set(bench)
    template = instruction_named("vsel_tensor")(dtype=element_type(dtype), repeat=3, **THREE)
    bench.do(template, 0, 65536, 131072)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


@every_mask
@every_dtype
@pytest.mark.parametrize("scalar", [1.5, NAN, -INF, -0.0])
def test_with_a_scalar(dtype, mask, scalar):
    bench = noise(103)
    raw = struct.pack("<" + CODES[dtype], scalar)
    set_register(bench, raw + bytes(range(16 - len(raw))))
    expected = by_hand(bench, dtype, mask, 3, bit_of(bench, dtype), raw)
    mask.set(bench)
    template = instruction_named("vsel_scalar")(dtype=element_type(dtype), repeat=3, **TWO)
    bench.do(template, 0, 65536, SEL)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def test_a_comparison_selects():
    """The larger of two, by vcmp_gt and vsel; NaN in src0 gives src1."""
    bench = Bench(1)
    x, y = [1.0, NAN, 3.0, -1.0] * 16, [2.0] * 64
    bench.poke(Mem.UB, 4096, struct.pack("<64f", *x))
    bench.poke(Mem.UB, 8192, struct.pack("<64f", *y))
    single = element_type("float32")
    bench.do(instruction_named("vcmp_gt")(dtype=single), 4096, 8192)
    bench.do(instruction_named("vsel")(dtype=single), 0, 4096, 8192)
    assert bench.messages == []
    assert struct.unpack("<4f", bench.image(Mem.UB).get(0, 16)) == (2.0, 2.0, 3.0, 2.0)


def test_what_is_not_chosen_may_be_unwritten():
    bench = Bench(1)
    bench.poke(Mem.UB, 4096, struct.pack("<32f", *range(32)))
    bench.poke(Mem.UB, 8192 + 128, struct.pack("<32f", *range(32)))
    single = element_type("float32")
    for kind, first in (("vsel", (1 << 32) - 1), ("vsel_tensor", SEL)):
        set_register(bench, struct.pack("<QQ", first, 0))
        bench.poke(Mem.UB, SEL, struct.pack("<Q", (1 << 32) - 1))
        bench.do(instruction_named(kind)(dtype=single), 0, 4096, 8192)
        assert bench.messages == []
    set_register(bench, struct.pack("<QQ", (1 << 33) - 1, 0))
    bench.do(instruction_named("vsel")(dtype=single), 0, 4096, 8192)
    assert bench.messages == [
        "uninitialised: vsel.src0 must be initialised in UB, got 1 of 64 elements never written, "
        "first repeat 0, lane 32"
    ]


def test_bits_outside_the_unified_buffer_are_a_finding():
    bench = noise(104)
    set_register(bench, struct.pack("<QQ", 196608, 0))
    single = element_type("float32")
    bench.do(instruction_named("vsel_tensor")(dtype=single), 0, 65536, 131072)
    assert bench.messages == [
        "out-of-bounds: vsel_tensor.sel must stay inside UB (0 to 196608 B), "
        "got bytes [196608, 196616)"
    ]
