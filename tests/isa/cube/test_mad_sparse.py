"""Sparse 4:2: fractals with their indices, and products, against loops over single values."""

import struct

import numpy as np
import pytest

from cubecore.isa.cube.mad_sparse import LoadCbufToCbSp, MadSp
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench

LOADS = [(1, 0), (3, 0), (4, 2), (0, 5), (255, 1)]


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_fractals_and_their_indices(load):
    """512 B of data to dst, 128 B of indices to a quarter of dst's address."""
    repeat, start = load
    bench = Bench(seed=repeat)
    bench.noise(Mem.L1, Mem.L0B, Mem.L0B_INDEX)
    source = bench.image(Mem.L1)
    data, indices = bench.image(Mem.L0B), bench.image(Mem.L0B_INDEX)
    dst, src, index = (0 if repeat == 255 else 2048), 96, 262144 + 32
    repeat = min(repeat, 128)
    for r in range(repeat):
        data.copy_from(source, src + (start + r) * 512, dst + r * 512, 512)
        indices.copy_from(source, index + (start + r) * 128, dst // 4 + r * 128, 128)
    bench.do(LoadCbufToCbSp(repeat=repeat, start_index=start), dst, src, index)
    assert bench.messages == []
    bench.check(Mem.L0B, data)
    bench.check(Mem.L0B_INDEX, indices)


def test_indices_leave_their_buffer_with_the_data():
    bench = Bench()
    bench.noise(Mem.L1, written=True)
    bench.do(LoadCbufToCbSp(repeat=2), 65536 - 512, 0, 0)
    assert bench.messages == [
        "out-of-bounds: load_cbuf_to_cb_sp.dst must stay inside L0B (0 to 65536 B), "
        "got bytes [65024, 66048)",
        "out-of-bounds: load_cbuf_to_cb_sp.index_dst must stay inside L0B's indices "
        "(0 to 16384 B), got bytes [16256, 16512)",
    ]


# --- what software does: four values of K become two and two indices (asc_mmad_sparse's table)

TABLE = {
    (0, 0, 1, 1): (2, 2),
    (0, 1, 0, 1): (1, 2),
    (1, 0, 0, 1): (0, 2),
    (0, 1, 1, 0): (1, 1),
    (1, 0, 1, 0): (0, 1),
    (1, 1, 0, 0): (0, 0),
    (0, 0, 0, 1): (0, 2),
    (0, 0, 1, 0): (2, 0),
    (0, 1, 0, 0): (1, 0),
    (1, 0, 0, 0): (0, 0),
    (0, 0, 0, 0): (0, 0),
}


def compacted(four: list[int]) -> tuple[list[int], tuple[int, int]]:
    """Two values and two indices of four; of three or four that are not 0 the first two."""
    places = [p for p, value in enumerate(four) if value][:2]
    codes = TABLE[tuple(int(p in places) for p in range(4))]
    if not places:
        return [0, 0], codes
    if len(places) == 2:
        return [four[p] for p in places], codes
    value = four[places[0]]
    return ([0, value] if places[0] == 3 else [value, 0]), codes


def place_zz(bench: Bench, a: np.ndarray) -> None:
    """A in L0A: fractals of 16 x 32 row by row, their elements row by row."""
    m, k = a.shape
    wide = -(-k // 32)
    for i in range(m):
        for j in range(k):
            at = ((i // 16) * wide + j // 32) * 512 + (i % 16) * 32 + j % 32
            bench.poke(Mem.L0A, at, struct.pack("b", int(a[i, j])))


def place_compacted(bench: Bench, values: dict, codes: dict, n: int, at: int) -> None:
    """B and its indices: fractals of 32 (K) x 16 (N) row by row, elements column by column."""
    wide = -(-n // 16)
    packed: dict[int, int] = {}
    for (r, j), value in values.items():
        fractal = (r // 32) * wide + j // 16
        bench.poke(Mem.L0B, at + fractal * 512 + (j % 16) * 32 + r % 32, struct.pack("b", value))
        byte = fractal * 128 + (j % 16) * 8 + (r % 32) // 4
        packed[byte] = packed.get(byte, 0) | codes[r, j] << 2 * (r % 4)
    for byte, word in packed.items():
        bench.poke(Mem.L0B_INDEX, at // 4 + byte, bytes([word]))


def c_at(i: int, j: int, m: int) -> int:
    """The byte of an element of C in L0C: columns of fractals of 16 x 16."""
    tall = -(-m // 16) * 16
    return ((j // 16) * tall * 16 + i * 16 + j % 16) * 4


def sparse_case(bench: Bench, m: int, k: int, n: int, dense: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw A, and B with at most `dense` values in four; place both; return what is multiplied."""
    a = bench.rng.integers(-128, 128, (m, k))
    b = np.zeros((k, n), np.int64)
    values, codes = {}, {}
    for j in range(n):
        for g in range(k // 4):
            four = [0] * 4
            for p in bench.rng.choice(4, size=int(bench.rng.integers(0, dense + 1)), replace=False):
                four[int(p)] = int(bench.rng.integers(1, 128)) * int(bench.rng.choice([-1, 1]))
            (x, y), (first, second) = compacted(four)
            values |= {(2 * g, j): x, (2 * g + 1, j): y}
            codes |= {(2 * g, j): first, (2 * g + 1, j): second}
            seen = 0
            for p, value in enumerate(four):
                if value and seen < 2:
                    b[4 * g + p, j] = value
                    seen += 1
    place_zz(bench, a)
    place_compacted(bench, values, codes, n, 1024)
    return a, b


SHAPES = [(16, 64, 16), (1, 4, 1), (1, 64, 16), (17, 68, 33), (30, 128, 20), (2, 12, 18)]


@pytest.mark.parametrize("start", ["zero", "old", "bias"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.thinned(3)
def test_products_of_sparse_matrices(shape, start):
    m, k, n = shape
    bench = Bench(seed=m * k + n)
    bench.noise(Mem.L0C)
    a, b = sparse_case(bench, m, k, n, 2)
    bias = bench.rng.integers(-(2**31), 2**31, n)
    bench.poke(Mem.BT, 128, struct.pack(f"<{n}i", *(int(x) for x in bias)))
    old = bench.rng.integers(-(2**30), 2**30, (m, n))
    for i in range(m):
        for j in range(n):
            bench.poke(Mem.L0C, 1024 + c_at(i, j, m), struct.pack("<i", int(old[i, j])))
    expected = bench.image(Mem.L0C)
    for i in range(m):
        for j in range(n):
            total = {"zero": 0, "old": int(old[i, j]), "bias": int(bias[j])}[start]
            for x in range(k):
                total += int(a[i, x]) * int(b[x, j])
            total = max(-(2**31), min(2**31 - 1, total))
            expected.put(1024 + c_at(i, j, m), struct.pack("<i", total))
    p = {"c_matrix_init_val": start == "zero", "c_matrix_source": start == "bias"}
    addresses = (1024, 0, 1024, 128) if start == "bias" else (1024, 0, 1024)
    bench.do(MadSp(m=m, k=k, n=n, **p), *addresses)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


def test_of_three_or_four_values_that_are_not_0_the_first_two_count():
    bench = Bench(seed=5)
    bench.noise(Mem.L0C)
    a, b = sparse_case(bench, 16, 32, 16, 4)
    expected = bench.image(Mem.L0C)
    for i in range(16):
        for j in range(16):
            total = sum(int(a[i, x]) * int(b[x, j]) for x in range(32))
            expected.put(c_at(i, j, 16), struct.pack("<i", total))
    bench.do(MadSp(m=16, k=32, n=16), 0, 0, 1024)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


PICKS = {
    # MmadWithSparse, table 2: which of four elements of A each pair of indices picks
    (2, 2): (2, 3),
    (1, 2): (1, 3),
    (0, 2): (0, 3),
    (1, 1): (1, 2),
    (0, 1): (0, 2),
    (0, 0): (0, 1),
    (2, 0): (2, 2),
    (1, 0): (1, 1),
}


@pytest.mark.parametrize(("codes", "places"), PICKS.items())
def test_which_elements_of_a_every_pair_of_indices_picks(codes, places):
    """Both values of B are not 0 here, so that both picks show."""
    bench = Bench()
    bench.noise(Mem.L0C)
    a = np.array([[3, 7, 20, 50]])
    place_zz(bench, a)
    values = {(0, 0): 100, (1, 0): 9}
    place_compacted(bench, values, {(0, 0): codes[0], (1, 0): codes[1]}, 1, 0)
    bench.do(MadSp(m=1, k=4, n=1), 0, 0, 0)
    assert bench.messages == []
    first, second = places
    (found,) = struct.unpack("<i", bench.image(Mem.L0C).get(0, 4))
    assert found == int(a[0, first]) * 100 + int(a[0, second]) * 9


def test_the_order_of_indices_in_a_byte():
    """The page's example: 1 2 0 1 is the byte 1 0 2 1 from its highest bits down."""
    bench = Bench()
    bench.noise(Mem.L0C)
    place_zz(bench, np.array([[1, 2, 4, 8, 16, 32, 64, 127]]))
    for row, value in enumerate((1, 3, 5, 7)):
        bench.poke(Mem.L0B, row, bytes([value]))
    bench.poke(Mem.L0B_INDEX, 0, bytes([0b01_00_10_01]))
    bench.do(MadSp(m=1, k=8, n=1), 0, 0, 0)
    assert bench.messages == []
    # 1 picks element 1, 2 element 3 of the first four; 0 element 0, 1 element 2 of the others
    assert struct.unpack("<i", bench.image(Mem.L0C).get(0, 4)) == (2 * 1 + 8 * 3 + 16 * 5 + 64 * 7,)


def test_an_index_of_3_is_a_finding():
    bench = Bench()
    place_zz(bench, np.ones((1, 8), np.int64))
    place_compacted(bench, dict.fromkeys([(r, j) for r in range(4) for j in range(2)], 1), {
        (r, j): 3 if (r, j) == (2, 1) else 0 for r in range(4) for j in range(2)
    }, 2, 0)  # fmt: skip
    before = bench.image(Mem.L0C)
    bench.do(MadSp(m=1, k=8, n=2), 0, 0, 0)
    assert bench.messages == [
        "parameter: mad_sp.index must hold indices 0, 1 and 2, got 3 at row 2, column 1"
    ]
    bench.check(Mem.L0C, before)


@pytest.mark.parametrize("nothing", "mkn")
def test_a_product_of_nothing_is_none(nothing):
    bench = Bench()
    before = bench.image(Mem.L0C)
    bench.do(MadSp(**({"m": 16, "k": 16, "n": 16} | {nothing: 0})), 0, 0, 0)
    assert bench.messages == []
    bench.check(Mem.L0C, before)
