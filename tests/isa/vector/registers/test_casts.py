"""Conversions between types in registers against an oracle written from the page of Cast."""

import math
from fractions import Fraction

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.isa.vector.registers.operations.convert import CASTS
from isa.vector.registers.formats import (
    FLOATS,
    INF,
    MODES,
    bits_of,
    decode,
    hifloat8,
    integer_range,
    integral,
    is_integer,
    lanes,
    registers,
    same,
    samples,
    to_float,
    to_hifloat8,
    to_integer,
)

LAYOUTS = ("ZERO", "ONE", "TWO", "THREE")
FINITE, WRAPS, IEEE = 1 << 60, 1 << 59, 1 << 48
SATURATING = {  # between floats; the others have no mode
    *(
        ("float32", to)
        for to in ("hifloat8", "float8_e5m2", "float8_e4m3fn", "float16", "bfloat16")
    ),
    *(("float16", "hifloat8"), ("bfloat16", "float16")),
}
MODES_OF = {
    (source, target): [
        mode for mode in roundings if mode in MODES or mode in {"CAST_HYBRID", "CAST_NONE"}
    ]
    for (source, target), roundings in CASTS.items()
}
ROWS = [(*types, mode) for types, modes in MODES_OF.items() for mode in modes]
NARROW = [(*types, mode) for types, modes in MODES_OF.items() for mode in modes[:1]]


def hybrid(code, kind):
    """Return the code of hifloat8 as the pseudo-code of the page has it, of others than its own."""
    value = decode(code, kind)
    if math.isnan(value) or abs(value) == INF or abs(value) in {0, *hifloat8()}:
        return to_hifloat8(value, finite=False)
    wide = to_float(value, "float32")
    ev, bits = (wide >> 23 & 0xFF) - 127, wide & 0x7FFFFF
    kept = f"{bits:023b}"
    count = 14 if kind == "float32" else 2
    threshold = code & 0x3FFF if kind == "float32" else (code & 1) << 1 | 1
    sign = -1 if value < 0 else 1
    if ev < -23:
        return 0
    if ev == -23:
        up = int("1" + kept[: count - 1], 2) >= threshold
        return to_hifloat8(sign * Fraction(2) ** -22, finite=False) if up else 0
    if ev > 15:
        return to_hifloat8(sign * INF, finite=False)
    if ev <= -16:
        up = int(kept[:count], 2) >= threshold
        return to_hifloat8(sign * Fraction(2) ** (ev + up), finite=False)
    width = 3 if abs(ev) <= 3 else 2 if abs(ev) <= 7 else 1
    up = kept[width] == "1" if width == 3 else int(kept[width : width + count], 2) >= threshold
    size = (1 + Fraction(int(kept[:width], 2) + up, 1 << width)) * Fraction(2) ** ev
    if size not in hifloat8():
        assert size >= 2**15
        return to_hifloat8(sign * INF, finite=False)
    return to_hifloat8(sign * size, finite=False)


def scale(value):
    """Return the code of float8_e8m0fnu with the exponent of a number."""
    if math.isnan(value) or abs(value) == INF:
        return 255
    if not value:
        return 0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    return max(exponent - (size < Fraction(2) ** exponent) + 127, 0)


def four_bits(value, kind, mode):
    """Return the code of a float of 4 bits: without NaN, and the largest beyond the range."""
    if math.isnan(value):
        return 0
    return to_float(value, kind, mode, finite=True)


def converted(code, source, target, mode, *, saturates):
    """Return the code of a lane in another type."""
    value, word = decode(code, source), MODES.get(mode, "hybrid")
    if is_integer(target):
        if is_integer(source):
            low, high = integer_range(target)
            wider = bits_of(target) > bits_of(source)
            number = min(max(value, low), high) if saturates or wider else value
            return number & (1 << bits_of(target)) - 1
        never_wraps = (source, target) == ("float16", "int16")  # the page of boundary values
        return to_integer(value, target, word, saturates=saturates or never_wraps)
    finite = saturates and (source, target) in SATURATING
    if target == "hifloat8":
        if finite and (math.isnan(value) or abs(value) == INF):
            return to_hifloat8(value, finite=True)
        made = hybrid(code, source) if word == "hybrid" else to_hifloat8(value, finite=finite)
        return made & 0x80 | 0x6E if finite and made & 0x7F == 0x6F else made
    if target == "float8_e8m0fnu":
        return scale(value)
    if bits_of(target) == 4:
        return four_bits(value, target, word)
    return to_float(value or 0.0 if is_integer(source) else value, target, word, finite=finite)


def source_registers(source, target, position, count=None):
    """Return registers of a source whose position of each group has a sample, and those."""
    codes = samples(source) if count is None else list(range(count))
    narrow, wide = sorted((bits_of(source), bits_of(target)))
    ratio = wide // narrow if bits_of(source) < bits_of(target) else 1
    if bits_of(source) == 4:  # pairs: a byte of each group has two lanes
        codes += [0] * (len(codes) % 2)
        spread = []
        for low, high in zip(codes[::2], codes[1::2], strict=True):
            group = [0xA5] * ratio
            group[position] = low | high << 4
            spread += group
        return registers(spread, "uint8"), codes
    spread = []
    for code in codes:
        group = [decoy(source)] * ratio
        group[position if ratio > 1 else 0] = code
        spread += group
    return registers(spread, source), codes


def decoy(kind):
    """Return a code that must not be read."""
    return (1 << bits_of(kind)) // 3


def cast(source, target, mode, layout, saturation, parts, mask=None, ctrl=0):
    element = element_type(target), element_type(source)
    call = Call(operations()["Cast"], *element, f"{layout}.{saturation}.{mode}", ctrl)
    return operations()["Cast"].compute(call, [parts], mask, None)[0]


def results(register, source, target, position):
    """Return the codes at the position of each group, and whether all others are 0."""
    ratio = bits_of(source) // bits_of(target)
    if ratio <= 1:
        return lanes(register, target), True
    if bits_of(target) == 4:
        groups = np.asarray(lanes(register, "uint8")).reshape(-1, ratio)
        rest = np.delete(groups, position, axis=1)
        return [
            n for byte in groups[:, position].tolist() for n in (byte & 15, byte >> 4)
        ], not rest.any()
    groups = np.asarray(lanes(register, target), object).reshape(-1, ratio)
    return groups[:, position].tolist(), not np.delete(groups, position, axis=1).any()


def positions(source, target):
    return range(max(bits_of(source), bits_of(target)) // min(bits_of(source), bits_of(target)))


def wrong(source, target, mode, position, saturation, count=None, ctrl=0):
    parts, codes = source_registers(source, target, position, count)
    made = cast(source, target, mode, LAYOUTS[position], saturation, parts, ctrl=ctrl)
    got, others = results(made, source, target, position)
    saturates = saturation == "SAT"
    if ctrl & FINITE:
        saturates = not ctrl & (WRAPS if is_integer(target) else IEEE)
    bad = [] if others else ["other positions are not 0"]
    for code, one in zip(codes, got, strict=False):
        wanted = converted(code, source, target, mode, saturates=saturates)
        if not same(one, wanted, target):
            bad.append((hex(code), hex(one), hex(wanted)))
    return bad[:3]


@pytest.mark.thinned(12)
@pytest.mark.parametrize("saturation", ["NO_SAT", "SAT"])
@pytest.mark.parametrize(("source", "target", "mode"), ROWS)
def test_values_and_layouts(source, target, mode, saturation):
    for position in positions(source, target):
        assert wrong(source, target, mode, position, saturation) == []


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("source", "target", "mode"), NARROW)
def test_ctrl_decides_where_its_bit_60_says_so(source, target, mode):
    for saturation in ("NO_SAT", "SAT"):
        for ctrl in (FINITE, FINITE | IEEE | WRAPS, FINITE | IEEE, FINITE | WRAPS, IEEE | WRAPS):
            assert wrong(source, target, mode, 0, saturation, ctrl=ctrl) == []


@pytest.mark.sweep
@pytest.mark.parametrize("saturation", ["NO_SAT", "SAT"])
@pytest.mark.parametrize(
    ("source", "target", "mode"), [row for row in ROWS if bits_of(row[0]) == 16]
)
def test_all_codes_of_16_bits(source, target, mode, saturation):
    assert wrong(source, target, mode, 0, saturation, 1 << 16) == []


@pytest.mark.parametrize("which", ["count", "M3"])
@pytest.mark.parametrize(("source", "target", "mode"), NARROW)
def test_the_mask_is_that_of_the_lanes_that_are_read(source, target, mode, which):
    """The governing bit of the source's lane that is read; of two lanes of 4 bits the even one."""
    width, small = max(bits_of(source) // 8, 1), min(bits_of(source), bits_of(target))
    for position in positions(source, target):
        parts, _ = source_registers(source, target, position)
        parts = parts[:1]
        lane = np.arange(256 // width)
        on = lane < 256 // width // 2 - 1 if which == "count" else lane % 3 == 0
        mask = np.zeros((1, 256), bool)
        mask[0, ::width] = on
        whole, _ = results(
            cast(source, target, mode, LAYOUTS[position], "SAT", parts), source, target, position
        )
        made = cast(source, target, mode, LAYOUTS[position], "SAT", parts, mask)
        got, others = results(made, source, target, position)
        ratio = max(bits_of(target) // bits_of(source), 1)
        if bits_of(source) == 4:
            read = np.repeat(mask[0, position::ratio], 2)
        elif small == 4:
            read = np.repeat(mask[0, :: 2 * width], 2)
        elif ratio > 1:
            read = on[position::ratio]
        else:
            read = on
        assert others
        assert got == [code if bit else 0 for code, bit in zip(whole, read, strict=True)]


WORDS = ["CAST_RINT", "CAST_ROUND", "CAST_FLOOR", "CAST_CEIL", "CAST_TRUNC"]


def truncated(code, kind, mode):
    value = decode(code, kind)
    if math.isnan(value) or abs(value) == INF or not value:
        return code
    whole = integral(value, MODES[mode])
    return to_float(whole or math.copysign(0.0, value), kind)


@pytest.mark.parametrize("mode", WORDS)
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_truncate(kind, mode):
    codes = samples(kind, 400)
    element = element_type(kind)
    call = Call(operations()["Truncate"], element, element, mode, FINITE)
    got = lanes(
        operations()["Truncate"].compute(call, [registers(codes, kind)], None, None)[0], kind
    )
    wanted = [truncated(code, kind, mode) for code in codes]
    bad = [
        (hex(code), hex(one), hex(other))
        for code, one, other in zip(codes, got, wanted, strict=False)
        if not same(one, other, kind)
    ]
    assert bad[:3] == []


@pytest.mark.parametrize("layout", ["ZERO", "ONE"])
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_exponentials_of_differences(kind, layout):
    element = element_type("float32"), element_type(kind)
    call = Call(operations()["ExpSub"], *element, layout)
    x, y = samples(kind)[:128], samples(kind)[:128][::-1]
    parts = [registers(x, kind)[:1], registers(y, kind)[:1]]
    got = np.array(lanes(operations()["ExpSub"].compute(call, parts, None, None)[0], "float32"))
    got = got.astype(np.uint32).view(np.float32)
    step = 2 if kind == "float16" else 1
    first = int(layout == "ONE") if step == 2 else 0
    values = [
        np.float32(float(decode(a, kind))) - np.float32(float(decode(b, kind)))
        for a, b in [*zip(x, y, strict=True)][first : 64 * step : step]
    ]
    with np.errstate(all="ignore"):
        wanted = np.exp(np.array(values, np.float64)).astype(np.float32)
    assert np.allclose(got, wanted, rtol=3e-7, atol=2e-45, equal_nan=True)


@pytest.mark.parametrize("layout", ["ZERO", "ONE"])
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_an_exponential_has_the_bit_of_the_lane_that_it_reads(kind, layout):
    element = element_type("float32"), element_type(kind)
    call = Call(operations()["ExpSub"], *element, layout)
    width = bits_of(kind) // 8
    on = np.arange(256 // width) % 3 == 0
    mask = np.zeros((1, 256), bool)
    mask[0, ::width] = on
    part = registers([0] * (256 // width), kind)
    made = lanes(operations()["ExpSub"].compute(call, [part, part], mask, None)[0], "float32")
    read = on[int(layout == "ONE") :: 2] if width == 2 else on
    assert made == [0x3F800000 if bit else 0 for bit in read]


@pytest.mark.parametrize("layout", ["ZERO", "ONE"])
def test_products_are_rounded_to_halves_ties_away(layout):
    call = Call(operations()["MulsCast"], element_type("float16"), element_type("float32"), layout)
    codes = [to_float(Fraction(n, 8), "float32") for n in range(16379, 16411)] * 2
    codes[5:9] = samples("float32")[20:24]
    mask = np.repeat(np.arange(64) % 3 == 0, 4)[None]
    scalar = np.full(1, to_float(3, "float32"), np.uint64)
    parts = [registers(codes, "float32")]
    got = lanes(operations()["MulsCast"].compute(call, parts, mask, scalar)[0], "float16")
    first = int(layout == "ONE")
    assert not any(got[1 - first :: 2])
    for n, (code, made) in enumerate(zip(codes, got[first::2], strict=True)):
        value = decode(code, "float32")
        product = decode(to_float(3 * value, "float32"), "float32")
        wanted = 0 if n % 3 else to_float(product, "float16", "round")
        assert same(made, wanted, "float16")


def test_floats_are_declared():
    assert set(FLOATS) <= {kind for types in CASTS for kind in types}
