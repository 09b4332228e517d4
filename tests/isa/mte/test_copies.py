"""Moves: every byte that arrives and every byte that must not, against loops over bytes."""

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import (
    CopyGmToCbuf,
    CopyGmToCbufMultiNd2Nz,
    CopyGmToUbuf,
    CopyUbufToGm,
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from isa.bench import Bench, Image

BYTES = {
    "int8": 1,
    "uint8": 1,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
}
every_dtype = pytest.mark.parametrize("dtype", BYTES)

# --- runs of 32-byte blocks


def copy_runs(
    source: Image,
    target: Image,
    at: tuple[int, int],
    n: int,
    length: int,
    gaps: tuple[int, int],
) -> None:
    """n runs of `length` blocks; a gap lies between a run's tail and the next one's head."""
    (there, here), (src_gap, dst_gap) = at, gaps
    for _ in range(n):
        target.copy_from(source, there, here, length * 32)
        there += (length + src_gap) * 32
        here += (length + dst_gap) * 32


RUNS = [
    (1, 1, 0, 0),
    (1, 64, 0, 0),
    (5, 3, 0, 0),
    (5, 3, 2, 0),
    (5, 3, 0, 2),
    (7, 2, 5, 3),
    (3, 1, 1, 1),
    (4095, 1, 0, 0),
    (2, 1, 1000, 1),
    (2, 1, 1, 1000),
]
DIRECTIONS = [
    (CopyGmToCbuf, 0, Mem.GM, Mem.L1),
    (CopyGmToUbuf, 1, Mem.GM, Mem.UB),
    (CopyUbufToGm, 1, Mem.UB, Mem.GM),
]


@pytest.mark.parametrize("direction", DIRECTIONS, ids=lambda d: d[0].name)
@pytest.mark.parametrize("runs", RUNS, ids=str)
def test_runs_of_blocks(direction, runs):
    kind, sub, source, sink = direction
    n, length, src_gap, dst_gap = runs
    bench = Bench(sub, seed=n, gm_bytes=180_000)
    bench.noise(source, sink)
    # a GM address needs no alignment, a local one 32 B
    there, here = (37, 4096) if source is Mem.GM else (4096, 37)
    expected = bench.image(sink)
    copy_runs(bench.image(source), expected, (there, here), n, length, (src_gap, dst_gap))
    template = kind(n_burst=n, len_burst=length, src_gap=src_gap, dst_gap=dst_gap)
    if source is Mem.GM:
        bench.do(template, here, bench.base + there)
    else:
        bench.do(template, bench.base + here, there)
    assert bench.messages == []
    bench.check(sink, expected)


@pytest.mark.parametrize("direction", DIRECTIONS, ids=lambda d: d[0].name)
def test_runs_may_fill_a_tensor_to_its_last_byte(direction):
    kind, sub, source, sink = direction
    bench = Bench(sub, gm_bytes=(3 * 2 + 2) * 32 + 2)
    bench.noise(source, sink)
    expected = bench.image(sink)
    copy_runs(bench.image(source), expected, (2, 0) if source is Mem.GM else (0, 2), 3, 2, (1, 1))
    gm = bench.base + 2
    template = kind(n_burst=3, len_burst=2, src_gap=1, dst_gap=1)
    bench.do(template, *((0, gm) if source is Mem.GM else (gm, 0)))
    assert bench.messages == []
    bench.check(sink, expected)


# --- ND to NZ


def nd_to_nz(source: Image, target: Image, at: tuple[int, int], size: int, p: dict) -> None:
    """spec/isa_semantics.md 3.2, element by element; the last piece of a row is zero-filled."""
    (there, here), c0 = at, 32 // size
    columns = -(-p["d_value"] // c0) * c0
    for m in range(p["nd_num"]):
        for i in range(p["n_value"]):
            for j in range(columns):
                piece = (j // c0) * p["dst_nz_c0_stride"] + i * p["dst_nz_n_stride"]
                to = here + (m * p["dst_nz_matrix_stride"] + piece * c0 + j % c0) * size
                if j >= p["d_value"]:
                    target.put(to, bytes(size))
                    continue
                taken = m * p["src_nd_matrix_stride"] + i * p["src_d_value"] + j
                target.copy_from(source, there + taken * size, to, size)


def nd2nz_cases(size: int) -> list[dict]:
    c0 = 32 // size
    plain = {
        "nd_num": 1,
        "src_nd_matrix_stride": 0,
        "dst_nz_n_stride": 1,
        "dst_nz_matrix_stride": 1,
    }
    return [
        plain | {"n_value": 1, "d_value": 1, "src_d_value": 1, "dst_nz_c0_stride": 1},
        plain | {"n_value": 16, "d_value": c0, "src_d_value": c0, "dst_nz_c0_stride": 16},
        # ragged in both, rows further apart than they are long, tall columns
        plain
        | {"n_value": 13, "d_value": 3 * c0 + 1, "src_d_value": 4 * c0 + 3, "dst_nz_c0_stride": 19},
        plain | {"n_value": 5, "d_value": 2 * c0 - 1, "src_d_value": 2 * c0, "dst_nz_c0_stride": 5},
        # rows overlap at the source: each starts one element after the one before
        plain | {"n_value": 6, "d_value": c0 + 2, "src_d_value": 1, "dst_nz_c0_stride": 6},
        # rows two blocks apart, columns of fractals between them
        plain
        | {"n_value": 4, "d_value": 2 * c0, "src_d_value": 40, "dst_nz_c0_stride": 1}
        | {"dst_nz_n_stride": 2},
        plain
        | {"n_value": 4, "d_value": c0 + 1, "src_d_value": 70, "dst_nz_c0_stride": 33}
        | {"dst_nz_n_stride": 3},
        # several matrices
        {"nd_num": 3, "n_value": 5, "d_value": c0 + 3, "src_nd_matrix_stride": 7 * (c0 + 5) + 1}
        | {"src_d_value": c0 + 5, "dst_nz_c0_stride": 8, "dst_nz_n_stride": 1}
        | {"dst_nz_matrix_stride": 16 * c0},
        # every matrix from the same source
        {"nd_num": 2, "n_value": 3, "d_value": 5, "src_nd_matrix_stride": 0, "src_d_value": 9}
        | {"dst_nz_c0_stride": 3, "dst_nz_n_stride": 1, "dst_nz_matrix_stride": 4 * c0},
    ]


@every_dtype
@pytest.mark.parametrize("number", range(9))
def test_nd_to_nz(dtype, number):
    size = BYTES[dtype]
    p = nd2nz_cases(size)[number]
    bench = Bench(seed=number, gm_bytes=4096)
    bench.noise(Mem.GM, Mem.L1)
    # an element's own alignment is not asked of a GM address
    there, here = 3, 1024
    expected = bench.image(Mem.L1)
    nd_to_nz(bench.image(Mem.GM), expected, (there, here), size, p)
    bench.do(CopyGmToCbufMultiNd2Nz(dtype=element_type(dtype), **p), here, bench.base + there)
    assert bench.messages == []
    bench.check(Mem.L1, expected)


@every_dtype
def test_nd_to_nz_of_random_strides(dtype):
    size, c0 = BYTES[dtype], 32 // BYTES[dtype]
    rng = np.random.default_rng(7)
    bench = Bench(gm_bytes=30_000)
    for _ in range(12):
        n, d = int(rng.integers(1, 20)), int(rng.integers(1, 4 * c0))
        n_stride = int(rng.integers(1, 4))
        c0_stride = n * n_stride + int(rng.integers(0, 5))
        one = c0_stride * -(-d // c0) * c0
        p = {
            "nd_num": int(rng.integers(1, 4)),
            "n_value": n,
            "d_value": d,
            "src_nd_matrix_stride": int(rng.integers(0, 500)),
            "src_d_value": int(rng.integers(1, 200)),
            "dst_nz_c0_stride": c0_stride,
            "dst_nz_n_stride": n_stride,
            "dst_nz_matrix_stride": one + c0 * int(rng.integers(0, 9)),
        }
        bench.noise(Mem.GM, Mem.L1)
        expected = bench.image(Mem.L1)
        nd_to_nz(bench.image(Mem.GM), expected, (5, 96), size, p)
        bench.do(CopyGmToCbufMultiNd2Nz(dtype=element_type(dtype), **p), 96, bench.base + 5)
        assert bench.messages == []
        bench.check(Mem.L1, expected)


@pytest.mark.parametrize("nothing", ["nd_num", "n_value", "d_value"])
def test_nd_to_nz_of_nothing_leaves_l1_alone(nothing):
    p = {"nd_num": 2, "n_value": 3, "d_value": 5, "src_d_value": 5, "dst_nz_c0_stride": 3} | {
        nothing: 0
    }
    bench = Bench(gm_bytes=64)
    bench.noise(Mem.GM, Mem.L1)
    expected = bench.image(Mem.L1)
    bench.do(CopyGmToCbufMultiNd2Nz(dtype=element_type("float16"), **p), 0, bench.base)
    assert bench.messages == []
    bench.check(Mem.L1, expected)


# --- fractals to L0

LOADS = [(LoadCbufToCa, Mem.L0A), (LoadCbufToCb, Mem.L0B)]
FRACTALS = [
    {"repeat": 1},
    {"repeat": 8},
    {"repeat": 5, "start_index": 3},
    {"repeat": 5, "src_stride": 4},
    {"repeat": 5, "src_stride": 0, "start_index": 2},
    {"repeat": 5, "dst_gap": 2},
    {"repeat": 6, "src_stride": 3, "dst_gap": 1, "start_index": 7},
    {"repeat": 5, "start_index": 4, "decrement": True},
    {"repeat": 4, "start_index": 20, "src_stride": 6, "dst_gap": 3, "decrement": True},
    {"repeat": 128, "src_stride": 2},
]


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load[0].name)
@pytest.mark.parametrize("p", FRACTALS, ids=str)
def test_fractals_to_l0(load, p):
    kind, sink = load
    bench = Bench(seed=len(p))
    bench.noise(Mem.L1, sink)
    source, expected = bench.image(Mem.L1), bench.image(sink)
    there, here = 96, 512
    step = p.get("src_stride", 1) * (-1 if p.get("decrement") else 1)
    if p["repeat"] == 128:
        here = 0
    for r in range(p["repeat"]):
        fractal = p.get("start_index", 0) + r * step
        to = here + r * (p.get("dst_gap", 0) + 1) * 512
        expected.copy_from(source, there + fractal * 512, to, 512)
    bench.do(kind(**p), here, there)
    assert bench.messages == []
    bench.check(sink, expected)


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load[0].name)
def test_no_fractal_is_no_load(load):
    kind, sink = load
    bench = Bench()
    expected = bench.image(sink)
    bench.do(kind(repeat=0), 0, 0)
    assert bench.messages == []
    bench.check(sink, expected)


# --- transposed squares to L0

TRANSPOSED = [(LoadCbufToCaTranspose, Mem.L0A), (LoadCbufToCbTranspose, Mem.L0B)]


def transpose_squares(
    source: Image, target: Image, at: tuple[int, int], size: int, p: dict
) -> None:
    """spec/isa_semantics.md 3.3: squares of whole fractals, each transposed and cut again."""
    there, here = at
    edge = 32 if size == 1 else 16
    # fractals in a square: (row of fractals, column of fractals) -> its number in the square
    c0, two = 32 // size, size != 2
    step = p.get("src_stride", 1) * (-1 if p.get("decrement") else 1)
    for r in range(p["repeat"]):
        unit = 512 if p.get("in_fractals") or not two else 1024
        square = there + (p.get("index_id", 0) + r * step) * unit
        first = here + r * (p.get("dst_gap", 0) + 1) * 512
        second = first + (p.get("dst_frac_gap", 0) + 1) * 512
        for i in range(edge):
            for j in range(edge):
                taken = i // 16 + j // c0  # 8 bits: upper or lower; 32 bits: left or right
                far = taken * (1 + p.get("src_frac_gap", 0)) * 512
                old = square + far + (i % 16) * 32 + (j % c0) * size
                base = second if (j // 16 + i // c0) else first
                new = base + (j % 16) * 32 + (i % c0) * size
                target.copy_from(source, old, new, size)


def squares(size: int) -> list[dict]:
    two = size != 2
    cases = [
        {"repeat": 1},
        {"repeat": 3, "dst_gap": int(two)},
        {"repeat": 3, "dst_gap": 2, "index_id": 2},
        {"repeat": 4, "dst_gap": 3, "src_stride": 3},
        {"repeat": 3, "dst_gap": 1, "src_stride": 0, "index_id": 1},
        {"repeat": 3, "dst_gap": 1, "index_id": 2, "decrement": True},
        {"repeat": 2, "dst_gap": 4, "index_id": 9, "src_stride": 5, "decrement": True},
        {"repeat": 0},
    ]
    if two:
        # the second fractals of all squares behind the first ones, or far from them
        cases += [{"repeat": 4, "dst_gap": 0, "dst_frac_gap": 3}, {"repeat": 2, "dst_frac_gap": 9}]
        cases += [{"repeat": 3, "dst_gap": 3, "dst_frac_gap": 1}]
    return cases


@every_dtype
@pytest.mark.parametrize("load", TRANSPOSED, ids=lambda load: load[0].name)
def test_transposed_squares_to_l0(load, dtype):
    kind, sink = load
    size = BYTES[dtype]
    bench = Bench(seed=size)
    counted = [{"repeat": 3, "src_stride": 5, "dst_gap": 1, "index_id": 1, "in_fractals": True}]
    counted += [p | {"src_frac_gap": 2} for p in counted if size != 2]
    for p in [*squares(size), *(counted if sink is Mem.L0B else [])]:
        bench.noise(Mem.L1, sink)
        expected = bench.image(sink)
        transpose_squares(bench.image(Mem.L1), expected, (160, 1024), size, p)
        bench.do(kind(dtype=element_type(dtype), **p), 1024, 160)
        assert bench.messages == [], p
        bench.check(sink, expected)


@every_dtype
def test_a_transposing_load_turns_nz_of_a_matrix_into_zz_of_its_transpose(dtype):
    """What it is for: [k, m] as NZ in L1, of one square, is [m, k] as ZZ in L0A."""
    size = BYTES[dtype]
    edge, c0 = (32 if size == 1 else 16), 32 // size
    bench = Bench()
    matrix = bench.rng.integers(0, 256, (edge, edge, size), dtype=np.uint8)
    for i in range(edge):
        for j in range(edge):
            nz = (j // c0) * edge * c0 + i * c0 + j % c0
            bench.poke(Mem.L1, nz * size, matrix[i, j].tobytes())
    template = LoadCbufToCaTranspose(dtype=element_type(dtype), repeat=1)
    bench.do(template, 0, 0)
    l0a = bench.image(Mem.L0A)
    for i in range(edge):
        for j in range(edge):
            zz = ((i // 16) * (edge // c0) + j // c0) * 16 * c0 + (i % 16) * c0 + j % c0
            assert l0a.get(zz * size, size) == matrix[j, i].tobytes()


@pytest.mark.parametrize("load", [*LOADS, *TRANSPOSED], ids=lambda load: load[0].name)
def test_a_walk_downwards_stops_at_the_source(load):
    kind, sink = load
    start = "start_index" if load in LOADS else "index_id"
    extra = {} if load in LOADS else {"dtype": element_type("float16")}
    bench = Bench()
    bench.noise(Mem.L1, sink)
    bench.do(kind(repeat=3, src_stride=2, decrement=True, **{start: 4}, **extra), 0, 0)
    assert bench.messages == []
    before = bench.image(sink)
    bench.do(kind(repeat=3, src_stride=2, decrement=True, **{start: 3}, **extra), 0, 0)
    assert bench.messages == [
        f"parameter: {kind.name}.src_stride must stay at or above the source, got -1"
    ]
    bench.check(sink, before)
