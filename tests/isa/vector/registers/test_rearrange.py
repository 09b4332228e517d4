"""Reductions and moves between lanes against loops written from their pages."""

import math

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from isa.vector.registers.formats import (
    INF,
    bits_of,
    decode,
    integer_range,
    is_integer,
    lanes,
    registers,
    same,
    samples,
    to_float,
)
from isa.vector.registers.lane_oracles import larger, smaller, total

WHICH = ("all", "count", "M3", "none")
ANY = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32")


def run(name, target, parts, mask=None, mode="", source=None, scalar=None, ctrl=0):
    element = element_type(target), element_type(source or target)
    call = Call(operations()[name], *element, mode, ctrl)
    return operations()[name].compute(call, parts, mask, scalar)


def active(which, kind):
    width = bits_of(kind) // 8
    count = 256 // width
    lane = np.arange(count)
    on = {
        "all": lane < count,
        "count": lane < count // 2 - 1,
        "M3": lane % 3 == 0,
        "none": lane < 0,
    }[which]
    mask = np.zeros((1, 256), bool)
    mask[0, ::width] = on
    return on.tolist(), mask


def some(kind, seed):
    """Return codes for a register: small ones, so that sums stay exact enough to differ."""
    count, random = 256 // (bits_of(kind) // 8), np.random.default_rng(seed)
    if is_integer(kind):
        return [samples(kind, 600, seed)[n] for n in random.integers(0, 200, count)]
    return [to_float(float(v) or 0.5, kind) for v in random.normal(0, 30, count)]


def coded(value, kind):
    return value & (1 << bits_of(kind)) - 1 if is_integer(kind) else to_float(value, kind)


def tree(values, kind):
    """Return a sum by neighbours, rounded to the type each time."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [
            decode(coded(a + b if is_integer(kind) else total(a, b), kind), kind) for a, b in pairs
        ]
    return coded(values[0], kind)


def extreme(values, kind, *, largest):
    """Return the largest or smallest, and where it comes first; of none the type's other end."""
    if is_integer(kind):
        best = values[0][1] if values else None
        for _, value in values:
            best = max(best, value) if largest else min(best, value)
        if not values:
            return integer_range(kind)[0 if largest else 1], 0
        return best, next(n for n, value in values if value == best)
    best = -INF if largest else INF
    for _, value in values:
        best = (larger if largest else smaller)(best, value)
    for n, value in values:
        alike = value == best and math.copysign(1, value) == math.copysign(1, best)
        if (math.isnan(value) and math.isnan(best)) or alike:
            return best, n
    return best, 0


SUMS = [(source, to) for source, to, mode in operations()["Reduce"].pairs if mode == "SUM"]
ENDS = [source for source, _, mode in operations()["Reduce"].pairs if mode == "MAX"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize(("source", "target"), SUMS)
def test_sums(source, target, which):
    on, mask = active(which, source)
    zero = 0 if is_integer(source) else 0.0
    for seed in range(4):
        codes = some(source, seed)
        values = [decode(c, source) if bit else zero for c, bit in zip(codes, on, strict=True)]
        got = lanes(
            run("Reduce", target, [registers(codes, source)], mask, "SUM", source)[0], target
        )
        assert got == [tree(values, target), *[0] * (len(got) - 1)]
        if "64" in source:
            continue
        made = run("ReduceDataBlock", target, [registers(codes, source)], mask, "SUM", source)[0]
        block = len(values) // 8
        wanted = [tree(values[n * block : n * block + block], target) for n in range(8)]
        assert lanes(made, target) == [*wanted, *[0] * (len(got) - 8)]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("mode", ["MAX", "MIN"])
@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("kind", ENDS)
def test_extremes_and_where_they_come_first(kind, which, mode):
    on, mask = active(which, kind)
    rows = [some(kind, seed) for seed in range(3)]
    if not is_integer(kind):
        zero, top = 0, 1 << (bits_of(kind) - 1)
        nan = to_float(math.nan, kind)
        count = len(rows[0])
        rows += [[top] * (count // 2) + [zero] * (count // 2), [zero] * 6 + [top] * (count - 6)]
        rows += [[*rows[0][:9], nan, *rows[0][10:12], nan | top, *rows[0][13:]]]
    for codes in rows:
        values = [(n, decode(c, kind)) for n, c in enumerate(codes) if on[n]]
        best, place = extreme(values, kind, largest=mode == "MAX")
        got = lanes(run("Reduce", kind, [registers(codes, kind)], mask, mode)[0], kind)
        assert same(got[0], coded(best, kind), kind)
        assert got[1] == place
        assert not any(got[2:])
        if "64" in kind:
            continue
        made = lanes(run("ReduceDataBlock", kind, [registers(codes, kind)], mask, mode)[0], kind)
        block = len(codes) // 8
        for n in range(8):
            inside = [(i, v) for i, v in values if i // block == n]
            wanted = coded(extreme(inside, kind, largest=mode == "MAX")[0], kind)
            assert same(made[n], wanted, kind)
        assert not any(made[8:])


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_sums_of_neighbours(kind, which):
    on, mask = active(which, kind)
    codes = some(kind, 5)
    values = [decode(c, kind) if bit else 0.0 for c, bit in zip(codes, on, strict=True)]
    wanted = [coded(total(a, b), kind) for a, b in zip(values[::2], values[1::2], strict=True)]
    got = lanes(run("PairReduceElem", kind, [registers(codes, kind)], mask, "SUM")[0], kind)
    assert got == [*wanted, *[0] * len(wanted)]


@pytest.mark.parametrize("kind", operations()["Interleave"].types)
def test_interleaving(kind):
    count = 256 // (bits_of(kind) // 8)
    a, b = samples(kind, 600)[:count], samples(kind, 600, 1)[-count:]
    parts = [registers(a, kind), registers(b, kind)]
    both = [code for pair in zip(a, b, strict=True) for code in pair]
    low, high = (lanes(each, kind) for each in run("Interleave", kind, parts))
    assert low + high == both
    even, odd = (lanes(each, kind) for each in run("DeInterleave", kind, parts))
    assert (even, odd) == ((a + b)[::2], (a + b)[1::2])


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32"])
def test_interleaving_of_masks(kind):
    width = bits_of(kind) // 8
    a, b = np.random.default_rng(3).integers(0, 2, (2, 256)).astype(bool).tolist()
    groups = [[mask[n : n + width] for n in range(0, 256, width)] for mask in (a, b)]
    parts = [np.array([a]), np.array([b])]
    flat = [bit for pair in zip(*groups, strict=True) for group in pair for bit in group]
    low, high = run("MaskInterleave", kind, parts)
    assert [*low[0].tolist(), *high[0].tolist()] == flat
    whole = groups[0] + groups[1]
    even, odd = run("MaskDeInterleave", kind, parts)
    assert even[0].tolist() == [bit for group in whole[::2] for bit in group]
    assert odd[0].tolist() == [bit for group in whole[1::2] for bit in group]


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("kind", operations()["Squeeze"].types)
def test_squeeze(kind, which):
    on, mask = active(which, kind)
    codes = samples(kind, 600)[: len(on)]
    kept = [code for code, bit in zip(codes, on, strict=True) if bit]
    got = lanes(run("Squeeze", kind, [registers(codes, kind)], mask)[0], kind)
    assert got == kept + [0] * (len(on) - len(kept))


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("kind", operations()["Unsqueeze"].types)
def test_unsqueeze(kind, which):
    on, mask = active(which, kind)
    got = lanes(run("Unsqueeze", kind, [], mask)[0], kind)
    assert got == [sum(on[:n]) & (1 << bits_of(kind)) - 1 for n in range(len(on))]


@pytest.mark.parametrize(("source", "target"), [pair[:2] for pair in operations()["Pack"].pairs])
def test_pack(source, target):
    codes = samples(source, 600)[: 256 * 8 // bits_of(source)]
    low = [code & (1 << bits_of(target)) - 1 for code in codes]
    part = [registers(codes, source)]
    assert lanes(run("Pack", target, part, mode="LOWEST", source=source)[0], target) == (
        low + [0] * len(low)
    )
    assert lanes(run("Pack", target, part, mode="HIGHEST", source=source)[0], target) == (
        [0] * len(low) + low
    )


@pytest.mark.parametrize(("source", "target"), [pair[:2] for pair in operations()["UnPack"].pairs])
def test_unpack(source, target):
    codes = samples(source, 600)[: 256 * 8 // bits_of(source)]
    values = [coded(decode(code, source), target) for code in codes]
    half, part = len(codes) // 2, [registers(codes, source)]
    low, high = (
        lanes(run("UnPack", target, part, mode=mode, source=source)[0], target)
        for mode in ("LOWEST", "HIGHEST")
    )
    assert (low, high) == (values[:half], values[half:])


def test_masks_are_packed_and_unpacked():
    bits = np.random.default_rng(9).integers(0, 2, 256).astype(bool).tolist()
    none = [False] * 128
    spread = [bit for n in range(128) for bit in (bits[n], False)]
    top = [bit for n in range(128, 256) for bit in (bits[n], False)]
    part = [np.array([bits])]
    for name, mode, wanted in (
        ("MaskPack", "LOWEST", bits[::2] + none),
        ("MaskPack", "HIGHEST", none + bits[::2]),
        ("MaskUnPack", "LOWEST", spread),
        ("MaskUnPack", "HIGHEST", top),
    ):
        assert run(name, "uint8", part, mode=mode)[0][0].tolist() == wanted


@pytest.mark.parametrize("mode", ["INCREASE_ORDER", "DECREASE_ORDER"])
@pytest.mark.parametrize("kind", operations()["Arange"].types)
def test_arange(kind, mode):
    count = 256 // (bits_of(kind) // 8)
    starts = [0, 1, 100] if is_integer(kind) else [0.0, 2.5, -7.25]
    starts += [integer_range(kind)[1] - 3, integer_range(kind)[0]] if is_integer(kind) else []
    for start in starts:
        code = coded(start, kind)
        got = lanes(run("Arange", kind, [], mode=mode, scalar=np.full(1, code, np.uint64))[0], kind)
        wanted = [coded(start + n, kind) for n in range(count)]
        assert got == (wanted if mode == "INCREASE_ORDER" else wanted[::-1])


@pytest.mark.parametrize(
    "kind", ["int8", "uint8", "int16", "uint16", "float16", "float32", "uint32"]
)
def test_gather_takes_indices_modulo_the_lanes(kind):
    bits = bits_of(kind)
    codes = samples(kind, 600)[: 256 * 8 // bits]
    indices = [(7 * n * n + 3) & (1 << bits) - 1 for n in range(len(codes))]
    parts = [registers(codes, kind), registers(indices, f"uint{bits}")]
    assert lanes(run("Gather", kind, parts)[0], kind) == [codes[n % len(codes)] for n in indices]


PATTERNS = {
    "ALL": lambda n, count: n < count,
    "ALLF": lambda n, _: n < 0,
    "H": lambda n, count: n < count // 2,
    "Q": lambda n, count: n < count // 4,
    "M3": lambda n, _: n % 3 == 0,
    "M4": lambda n, _: n % 4 == 0,
    **{f"VL{k}": lambda n, _, k=k: n < k for k in (1, 2, 3, 4, 8, 16, 32, 64, 128)},
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32"])
def test_patterns(kind, pattern):
    width = bits_of(kind) // 8
    mask = run("CreateMask", kind, [], mode=pattern)[0][0]
    assert mask[::width].tolist() == [
        PATTERNS[pattern](n, 256 // width) for n in range(256 // width)
    ]


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32"])
def test_counts(kind):
    width = bits_of(kind) // 8
    for count in (0, 1, 31, 64, 100, 256, 1000, 2**32 - 1):
        mask = run("UpdateMask", kind, [], scalar=np.full(1, count, np.uint64))[0][0]
        assert mask[::width].tolist() == [n < count for n in range(256 // width)]


def test_masks_of_masks():
    a, b, on = np.random.default_rng(2).integers(0, 2, (3, 1, 256)).astype(bool)
    assert (run("MaskAnd", "uint8", [a, b], on)[0] == (a & b & on)).all()
    assert (run("MaskOr", "uint8", [a, b], on)[0] == ((a | b) & on)).all()
    assert (run("MaskXor", "uint8", [a, b], on)[0] == ((a ^ b) & on)).all()
    assert (run("MaskNot", "uint8", [a], on)[0] == (~a & on)).all()
    assert (run("MaskMove", "uint8", [a], on)[0] == (a & on)).all()
    assert (run("MaskSelect", "uint8", [a, b], on)[0] == ((a & on) | (b & ~on))).all()


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("half", ["BIN0", "BIN1"])
@pytest.mark.parametrize("mode", ["FREQUENCY", "ACCUMULATE"])
def test_histograms(mode, half, which):
    on, mask = active(which, "uint8")
    data = np.random.default_rng(4).integers(0, 256, 256).tolist()
    data[:40] = [200] * 20 + [7] * 20
    old = [65530 + n % 6 for n in range(128)]
    counted = [value for value, bit in zip(data, on, strict=True) if bit]
    first = 128 if half == "BIN1" else 0
    wanted = [
        before + sum(v == n + first if mode == "FREQUENCY" else v <= n + first for v in counted)
        for n, before in enumerate(old)
    ]
    parts = [registers(data, "uint8"), registers(old, "uint16")]
    made = run("Histograms", "uint16", parts, mask, f"{mode}.{half}", "uint8")[0]
    assert lanes(made, "uint16") == [count & 0xFFFF for count in wanted]


@pytest.mark.parametrize(("kind", "size"), [("uint16", 16), ("uint32", 8)])
def test_a_block_of_a_register_is_a_mask(kind, size):
    data = np.random.default_rng(6).integers(0, 256, 256).tolist()
    for block in (0, 1, 256 // size - 1):
        bits = [
            byte >> n & 1 for byte in data[block * size : block * size + size] for n in range(8)
        ]
        wanted = [bool(bit) for bit in bits for _ in range(16 // size * 2)]
        scalar = np.full(1, block, np.uint64)
        parts = [registers(data, "uint8")]
        made = run("MaskGenWithRegTensor", kind, parts, scalar=scalar)[0]
        assert made[0].tolist() == wanted
