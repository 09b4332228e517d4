"""Sorts and merges against plain insertion and the taking of heads."""

import math
import struct

import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench
from isa.lanes import CODES, INF, NAN, size_of

every_dtype = pytest.mark.parametrize("dtype", ["float16", "float32"])
Record = tuple[float, int]


def before(x: float, y: float) -> bool:
    """Whether score x stands in front of y: larger, or a number before NaN."""
    return x > y or (math.isnan(y) and not math.isnan(x))


def record(dtype: str, score: float, index: int) -> bytes:
    """A score, for half two bytes, the index."""
    return struct.pack("<" + CODES[dtype], score).ljust(4, b"\0") + struct.pack("<I", index)


def scores(bench: Bench, count: int) -> list[float]:
    """Many equals; zeros of both signs, infinities and NaN among them."""
    values = [float(v) / 2 for v in bench.rng.integers(-9, 10, count)]
    for place, value in ((3, INF), (7, -INF), (11, NAN), (12, NAN), (20, -0.0), (21, 0.0)):
        if place < count:
            values[place] = value
    return values


@pytest.mark.parametrize("repeat", [0, 1, 3, 255])
@every_dtype
def test_thirty_two(dtype, repeat):
    """Insertion, so that equals keep their order."""
    bench = Bench(1, seed=141)
    size = size_of(dtype)
    expected_sorted = b""
    for number in range(repeat):
        values = scores(bench, 32)
        indices = bench.rng.integers(0, 2**32, 32, dtype="uint64").tolist()
        bench.poke(Mem.UB, 98304 + 32 * size * number, struct.pack(f"<32{CODES[dtype]}", *values))
        bench.poke(Mem.UB, 147456 + 128 * number, struct.pack("<32I", *indices))
        ordered: list[Record] = []
        for item in zip(values, indices, strict=True):
            place = len(ordered)
            while place and before(item[0], ordered[place - 1][0]):
                place -= 1
            ordered.insert(place, item)
        expected_sorted += b"".join(record(dtype, *item) for item in ordered)
    expected = bench.image(Mem.UB)
    expected.put(0, expected_sorted)
    template = instruction_named("vbitsort")(dtype=element_type(dtype), repeat=repeat)
    bench.do(template, 0, 98304, 147456)
    assert bench.messages == []
    bench.check(Mem.UB, expected)


def merge(queues: list[list[Record]], suspends: bool) -> tuple[list[Record], list[int]]:
    """Take the largest head again and again; of equals the earliest queue's."""
    taken, merged = [0] * len(queues), []
    while True:
        open_queues = [q for q in range(len(queues)) if taken[q] < len(queues[q])]
        if not open_queues or (suspends and len(open_queues) < len(queues)):
            return merged, taken
        best = open_queues[0]
        for q in open_queues[1:]:
            if before(queues[q][taken[q]][0], queues[best][taken[best]][0]):
                best = q
        merged.append(queues[best][taken[best]])
        taken[best] += 1


def queue(bench: Bench, length: int, in_order: bool) -> list[Record]:
    values = scores(bench, length)
    if in_order:
        numbers = sorted((v for v in values if not math.isnan(v)), reverse=True)
        values = numbers + [NAN] * (length - len(numbers))
    return [(v, int(i)) for v, i in zip(values, bench.rng.integers(0, 2**32, length), strict=True)]


AT = (0, 49152, 81928, 114688 + 24, 147456)


def place(bench: Bench, dtype: str, queues: list[list[Record]], at: tuple[int, ...]) -> None:
    for address, items in zip(at, queues, strict=False):
        bench.poke(Mem.UB, address, b"".join(record(dtype, *item) for item in items))


def lengths_of(queues: list[list[Record]]) -> dict[str, int]:
    return {f"element_length_{i}": len(q) for i, q in enumerate(queues)}


LENGTHS = [(5, 9), (32, 32), (1, 40), (7, 0), (3, 4, 5), (32, 32, 32, 32), (1, 2, 3, 100)]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@every_dtype
@pytest.mark.thinned(4)
def test_merges(dtype, lengths, suspends, in_order):
    """With suspension nothing behind the last merged record is written."""
    for seed in range(142, 146):
        bench = Bench(1, seed=seed)
        queues = [queue(bench, length, in_order) for length in lengths]
        place(bench, dtype, queues, AT[1:])
        merged, taken = merge(queues, suspends)
        expected = bench.image(Mem.UB)
        expected.put(0, b"".join(record(dtype, *item) for item in merged))
        template = instruction_named("vmrgsort4")(
            dtype=element_type(dtype),
            if_exhausted_suspension=suspends,
            valid_bit=(1 << len(queues)) - 1,
            **lengths_of(queues),
        )
        bench.do(template, *AT[: 1 + len(queues)])
        assert bench.messages == []
        bench.check(Mem.UB, expected)
        counts = bench.core.scalars(instruction_named("get_vms4_sr")())
        assert counts == (*taken, *[0] * (4 - len(taken)))


@every_dtype
def test_repeats_take_four_queues_that_lie_one_behind_another(dtype):
    bench = Bench(1, seed=147)
    expected_merged = b""
    at = 98304
    for repeat in range(3):
        queues = [queue(bench, 8, True) for _ in range(4)]
        start = at + 4 * 8 * 8 * repeat
        place(bench, dtype, queues, tuple(start + 64 * i for i in range(4)))
        expected_merged += b"".join(record(dtype, *item) for item in merge(queues, False)[0])
    expected = bench.image(Mem.UB)
    expected.put(0, expected_merged)
    lengths = {f"element_length_{i}": 8 for i in range(4)}
    kind = instruction_named("vmrgsort4")
    template = kind(dtype=element_type(dtype), repeat=3, **lengths)
    bench.do(template, 0, *(at + 64 * i for i in range(4)))
    assert bench.messages == []
    bench.check(Mem.UB, expected)
    bench.do(template, 0, at, at + 64, at + 128, at + 200)
    assert bench.messages == [
        "parameter: vmrgsort4: the queues must lie at [98304, 98368, 98432, 98496], "
        "got [98304, 98368, 98432, 98504]"
    ]


@pytest.mark.parametrize(
    "p",
    [
        {"valid_bit": 7},
        {"if_exhausted_suspension": True},
        {"element_length_3": 9},
    ],
    ids=str,
)
def test_what_more_than_one_repeat_needs(p):
    bench = Bench(1)
    bench.poke(Mem.UB, 0, bytes(65536))
    lengths = {f"element_length_{i}": 8 for i in range(4)}
    template = instruction_named("vmrgsort4")(
        dtype=element_type("float32"), repeat=2, **(lengths | p)
    )
    count = 1 + (3 if p.get("valid_bit") == 7 else 4)
    bench.do(template, 32768, *(64 * i for i in range(count - 1)))
    assert bench.messages == [
        "parameter: vmrgsort4.repeat must be 1 but for four queues of one length without "
        "suspension, got 2"
    ]


def test_a_number_of_queues_that_is_none():
    bench = Bench(1)
    template = instruction_named("vmrgsort4")(
        dtype=element_type("float32"), element_length_0=1, element_length_1=1, valid_bit=5
    )
    bench.do(template, 32768, 0, 64, 128, 192)
    assert bench.messages == ["parameter: vmrgsort4.valid_bit must be 3, 7 or 15, got 5"]


def test_eight_queues_in_two_steps():
    """asc-devkit, asc_mrgsort4's example: two repeats of four, then one of two."""
    bench = Bench(1, seed=148)
    queues = [queue(bench, 32, True) for _ in range(8)]
    place(bench, "float32", queues, tuple(65536 + 256 * i for i in range(8)))
    kind = instruction_named("asc_mrgsort4")
    single = element_type("float32")
    quarter = {f"element_length_{i}": 32 for i in range(4)}
    bench.do(kind(dtype=single, repeat=2, **quarter), 32768, *(65536 + 256 * i for i in range(4)))
    halves = {"element_length_0": 128, "element_length_1": 128, "valid_bit": 3}
    bench.do(kind(dtype=single, **halves), 0, 32768, 32768 + 1024)
    assert bench.messages == []
    wanted, _ = merge([merge(queues[:4], False)[0], merge(queues[4:], False)[0]], False)
    assert bench.image(Mem.UB).get(0, 2048) == b"".join(record("float32", *r) for r in wanted)
