"""Register instructions that work lane by lane against oracles written from their pages."""

import itertools

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from isa.vector.registers import formats
from isa.vector.registers.formats import (
    bits_of,
    decode,
    is_integer,
    lanes,
    registers,
    same,
    samples,
)
from isa.vector.registers.lane_oracles import (
    FLUSHING,
    INTEGERS,
    REALS,
    lane,
    shift_left,
    shift_right,
)

UNARY = ("Abs", "Neg", "Relu", "Exp", "Ln", "Log2", "Log10", "Sqrt", "Not")
SCALARS = ("Adds", "Muls", "Maxs", "Mins", "LeakyRelu", "Axpy")
FUSED = ("MulAddDst", "MulDstAdd", "Axpy")
MERGING = ("Add", "Max", "Min")
NAMES = sorted({*INTEGERS, *REALS, "And", "Or", "Xor", "Not"})
CASES = [(name, kind) for name in NAMES for kind in operations()[name].types]
FINITE, SATURATE = 1 << 60, 1 << 53
IEEE = FINITE | 1 << 48
COMPARISONS = {
    "EQ": lambda x, y: x == y,
    "NE": lambda x, y: x != y,
    "GT": lambda x, y: x > y,
    "GE": lambda x, y: x >= y,
    "LT": lambda x, y: x < y,
    "LE": lambda x, y: x <= y,
}


def call(name, kind, mode="", ctrl=0):
    element = element_type(kind)
    return Call(operations()[name], element, element, mode, ctrl)


def active(which, kind):
    """Return which lanes a mask lets through, and the mask with no more than governing bits."""
    width = bits_of(kind) // 8
    count = 256 // width
    on = [
        which == "all"
        or (which == "count" and n < count // 2 - 1)
        or (which == "M3" and n % 3 == 0)
        for n in range(count)
    ]
    mask = np.zeros(256, bool)
    mask[::width] = on
    return on, mask[None]


def operands(name, kind, *, every=False):
    """Return columns of codes: all pairs of 8 bits, or edges with edges and random ones."""
    count = 1 if name in UNARY else 3 if name in FUSED else 2
    one = samples(kind)
    if count == 1:
        return [one]
    if bits_of(kind) == 8 and not every:
        some = [0, 1, 2, 3, 7, 8, 9, 100, 127, 128, 129, 200, 254, 255]
        return [list(column) for column in zip(*itertools.product(one, some), strict=True)]
    edges = one if bits_of(kind) == 8 else one[: 44 : 1 if count == 2 else 4]
    rows = [*itertools.product(edges, repeat=count)]
    random = np.random.default_rng(7)
    rows += zip(
        *([one[n] for n in random.permutation(len(one))] for _ in range(count)), strict=True
    )
    return [list(column) for column in zip(*rows, strict=True)]


def computed(name, kind, columns, mask=None, mode="", ctrl=0):
    """Return the codes of an instruction's results for columns of operands."""
    if name not in SCALARS:
        parts = [registers(column, kind) for column in columns]
        return lanes(
            operations()[name].compute(call(name, kind, mode, ctrl), parts, mask, None)[0], kind
        )
    rows = {}
    for n, code in enumerate(columns[1]):
        rows.setdefault(code, []).append(n)
    result = [0] * len(columns[0])
    for code, places in rows.items():
        others = [columns[0], *columns[2:]]
        parts = [registers([column[n] for n in places], kind) for column in others]
        scalar = np.full(parts[0].shape[0], code, np.uint64)
        made = operations()[name].compute(call(name, kind, mode, ctrl), parts, mask, scalar)[0]
        for place, value in zip(places, lanes(made, kind), strict=False):
            result[place] = value
    return result


def near(got, wanted, kind):
    """Return whether codes are at most one step apart."""
    return same(got, wanted, kind) or abs(got - wanted) <= 1


def wrong(name, kind, columns, ctrl=0):
    """Return the first lanes that are not as the oracle has them."""
    got = computed(name, kind, columns, ctrl=ctrl)
    loose = name in FLUSHING and name not in {"Div", "Sqrt"}
    alike = near if loose and not is_integer(kind) else same
    finite, saturates = ctrl & IEEE == FINITE, bool(ctrl & SATURATE)
    bad = []
    for made, *codes in zip(got, *columns, strict=False):
        wanted = lane(name, kind, codes, finite=finite, saturates=saturates)
        if not alike(made, wanted, kind):
            bad.append(([hex(code) for code in codes], hex(made), hex(wanted)))
    return bad[:3]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_values(name, kind):
    columns = operands(name, kind)
    assert wrong(name, kind, columns) == []


@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[1] == "float16"])
def test_halves_stay_finite_where_ctrl_says_so(name, kind):
    columns = [column[:600] for column in operands(name, kind)]
    assert wrong(name, kind, columns, FINITE) == []
    assert wrong(name, kind, columns, IEEE) == []


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if is_integer(case[1])])
def test_integers_saturate_where_ctrl_says_so(name, kind):
    columns = [column[:2000] for column in operands(name, kind)]
    assert wrong(name, kind, columns, SATURATE) == []


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if bits_of(case[1]) == 8])
def test_all_pairs_of_8_bits(name, kind):
    columns = operands(name, kind, every=True)
    assert wrong(name, kind, columns) == []
    assert wrong(name, kind, columns, SATURATE) == []


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "kind"), [case for case in CASES if case[0] in UNARY and bits_of(case[1]) == 16]
)
def test_all_codes_of_16_bits(name, kind):
    assert wrong(name, kind, [list(range(1 << 16))]) == []


@pytest.mark.thinned(6)
@pytest.mark.parametrize("which", ["all", "count", "M3"])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_lanes_without_a_bit_are_zero(name, kind, which):
    on, mask = active(which, kind)
    columns = [[column[n % len(column)] for n in range(len(on))] for column in operands(name, kind)]
    if name in SCALARS:
        columns[1] = columns[1][:1] * len(on)
    everything = computed(name, kind, columns)
    got = computed(name, kind, columns, mask)
    assert got == [code if bit else 0 for code, bit in zip(everything, on, strict=True)]


@pytest.mark.parametrize("which", ["all", "count", "M3"])
@pytest.mark.parametrize(("name", "kind"), [case for case in CASES if case[0] in MERGING])
def test_merging_keeps_lanes_without_a_bit(name, kind, which):
    on, mask = active(which, kind)
    columns = [[column[n % len(column)] for n in range(len(on))] for column in operands(name, kind)]
    old = [(5 * n + 1) & 0x3F for n in range(len(on))]
    everything = computed(name, kind, columns)
    got = computed(name, kind, [*columns, old], mask, "MERGING")
    kept = zip(everything, old, on, strict=True)
    assert got == [code if bit else before for code, before, bit in kept]


SHIFTS = {"ShiftLeft": shift_left, "ShiftRight": shift_right}


@pytest.mark.parametrize("kind", operations()["ShiftLeft"].types)
@pytest.mark.parametrize("name", SHIFTS)
def test_shifts(name, kind):
    bits = bits_of(kind)
    amounts = [
        0,
        1,
        3,
        bits // 2,
        bits - 1,
        bits,
        bits + 1,
        2 * bits - 1,
        min(127, 2**bits // 2 - 1),
    ]
    pairs = [*itertools.product(samples(kind), amounts)]
    x, n = (list(column) for column in zip(*pairs, strict=True))
    wanted = [SHIFTS[name](code, amount, kind) for code, amount in pairs]
    parts = [registers(x, kind), registers(n, kind)]
    assert (
        lanes(operations()[name].compute(call(name, kind), parts, None, None)[0], kind)[: len(x)]
        == wanted
    )
    of_scalar = operations()[f"{name}s"]
    for amount in amounts:
        column = [code for code, each in pairs if each == amount]
        part, scalar = (
            registers(column, kind),
            np.full(len(registers(column, kind)), amount, np.uint64),
        )
        made = lanes(of_scalar.compute(call(f"{name}s", kind), [part], None, scalar)[0], kind)
        assert made[: len(column)] == [SHIFTS[name](code, amount, kind) for code in column]


def test_the_example_of_a_signed_shift():
    made = operations()["ShiftLefts"].compute(
        call("ShiftLefts", "int16"), [registers([0xAAAA], "int16")], None, np.full(1, 3, np.uint64)
    )
    assert lanes(made[0], "int16")[0] == 0b1101010101010000


@pytest.mark.thinned(4)
@pytest.mark.parametrize("which", ["all", "count", "M3"])
@pytest.mark.parametrize("mode", COMPARISONS)
@pytest.mark.parametrize("kind", operations()["Compare"].types)
def test_comparisons_set_the_governing_bit(kind, mode, which):
    on, mask = active(which, kind)
    width = bits_of(kind) // 8
    columns = operands("Max", kind)
    x, y = (registers(column, kind) for column in columns)
    made = operations()["Compare"].compute(call("Compare", kind, mode), [x, y], mask, None)[0]
    bits = made.reshape(-1, width)
    assert not bits[:, 1:].any()
    wanted = [
        on[n % len(on)] and COMPARISONS[mode](decode(one, kind), decode(other, kind))
        for n, (one, other) in enumerate(zip(*columns, strict=True))
    ]
    assert bits[: len(wanted), 0].tolist() == wanted
    scalar = np.full(len(x), columns[1][0], np.uint64)
    made = operations()["Compares"].compute(call("Compares", kind, mode), [x], mask, scalar)[0]
    first = decode(columns[1][0], kind)
    wanted = [
        on[n % len(on)] and COMPARISONS[mode](decode(one, kind), first)
        for n, one in enumerate(columns[0])
    ]
    assert made.reshape(-1, width)[: len(wanted), 0].tolist() == wanted


@pytest.mark.parametrize("which", ["all", "count", "M3"])
@pytest.mark.parametrize("kind", operations()["Select"].types)
def test_moves_take_active_lanes(kind, which):
    on, mask = active(which, kind)
    count = len(on)
    x, y = (list(column)[:count] for column in (samples(kind, 256), samples(kind, 256)[::-1]))
    parts = [registers(x, kind), registers(y, kind)]
    blended = [one if bit else other for one, other, bit in zip(x, y, on, strict=True)]
    for name, mode in (("Select", ""), ("Move", "")):
        made = operations()[name].compute(call(name, kind, mode), parts, mask, None)[0]
        assert lanes(made, kind) == blended
    zeroed = [x[0] if bit else 0 for bit in on]
    merged = [x[0] if bit else other for other, bit in zip(y, on, strict=True)]
    scalar = np.full(1, x[0], np.uint64)
    for mode, wanted, old in (("", zeroed, []), ("MERGING", merged, parts[1:])):
        filled = operations()["Duplicate"].compute(call("Duplicate", kind, mode), old, mask, scalar)
        assert lanes(filled[0], kind) == wanted
        of_lane = operations()["DuplicateLane"]
        filled = of_lane.compute(call("DuplicateLane", kind, mode), [parts[0], *old], mask, None)
        assert lanes(filled[0], kind) == wanted


@pytest.mark.parametrize("which", ["all", "count", "M3"])
@pytest.mark.parametrize("name", ["AddCarry", "SubCarry", "AddC", "SubC"])
@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_carries(kind, name, which):
    on, mask = active(which, kind)
    pairs = [*itertools.product(samples(kind)[:22], repeat=2)]
    x, y = (list(column) for column in zip(*pairs, strict=True))
    carries = [n % 3 == 1 for n in range(len(registers(x, kind)) * 64)]
    bits = np.zeros((len(carries), 4), bool)
    bits[:, 0] = carries
    parts = [registers(x, kind), registers(y, kind)]
    parts += [bits.reshape(-1, 256)] if name.endswith("C") else []
    made, low = operations()[name].compute(call(name, kind), parts, mask, None)
    wanted, sums = [], []
    for n, (one, other) in enumerate(pairs):
        first = carries[n] if name.endswith("C") else name == "SubCarry"
        whole = one + (other ^ 0xFFFFFFFF if name.startswith("Sub") else other) + first
        wanted.append(on[n % 64] and bool(whole >> 32))
        sums.append(whole & 0xFFFFFFFF if on[n % 64] else 0)
    assert lanes(low, kind)[: len(sums)] == sums
    assert made.reshape(-1, 4)[: len(sums), 0].tolist() == wanted
    assert not made.reshape(-1, 4)[:, 1:].any()


@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_long_products(kind):
    pairs = [*itertools.product(samples(kind)[:30], repeat=2)]
    x, y = (list(column) for column in zip(*pairs, strict=True))
    made = operations()["Mull"].compute(
        call("Mull", kind), [registers(x, kind), registers(y, kind)], None, None
    )
    products = [decode(one, kind) * decode(other, kind) for one, other in pairs]
    low, high = (lanes(each, kind)[: len(pairs)] for each in made)
    assert low == [product & 0xFFFFFFFF for product in products]
    assert high == [product >> 32 & 0xFFFFFFFF for product in products]


SUBNORMAL = {  # the pages' examples of Div, Sqrt and Exp: operands, and results without flushing
    "Div": [
        ((0x3F800000, 0x8036A794), 0xFF800000, 0xFF15E301),
        ((0x0014440B, 0x0053E3CF), None, 0x3E775FBC),
    ],
    "Sqrt": [((0x00776672,), 0, 0x1FF7402B)],
}


@pytest.mark.parametrize("name", SUBNORMAL)
def test_the_pages_examples_of_subnormal_numbers(name):
    for codes, flushed, kept in SUBNORMAL[name]:
        columns = [[code] for code in codes]
        got = computed(name, "float32", columns)[0]
        assert got == flushed if flushed is not None else formats.decode(got, "float32") != got
        got = computed(name, "float32", columns, mode="SUBNORMAL")[0]
        assert abs(got - kept) <= 1
