"""`mad` and the BiasTable, against sums in Python's own integers and fractions."""

import math
import struct
from fractions import Fraction
from operator import mul

import ml_dtypes
import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube.mad import CopyCbufToBt, Mad
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench, Image

INT = ("int8", "int8", "int32")
HALF = ("float16", "float16", "float32")
BRAIN = ("bfloat16", "bfloat16", "float32")
SINGLE = ("float32", "float32", "float32")
TYPES = [INT, HALF, BRAIN, SINGLE]
FORMS = {"zero": {}, "tile": {"c_matrix_init_val": False}} | {
    "bias": {"c_matrix_init_val": False, "c_matrix_source": True}
}
LIMITS = {"int8": (1, "b"), "float16": (2, "e"), "int32": (4, "i"), "float32": (4, "f")} | {
    "bfloat16": (2, "")
}


def unpack(image: Image, at: int, dtype: str) -> Fraction:
    size, code = LIMITS[dtype]
    if dtype == "bfloat16":  # the upper half of a float32
        return Fraction(struct.unpack("<f", bytes(2) + image.get(at, 2))[0])
    return Fraction(struct.unpack("<" + code, image.get(at, size))[0])


def fractal_byte(order: str, i: int, j: int, across: int, down: int, high: int, size: int) -> int:
    """The byte of element (i, j), seed 002; `across` and `down` count fractals of high x wide."""
    wide = {"ZZ": 32 // size, "ZN": 16, "NZ": 16}[order]
    inside = (j % wide) * high + i % high if order == "ZN" else (i % high) * wide + j % wide
    number = (j // wide) * down + i // high if order == "NZ" else (i // high) * across + j // wide
    return (number * high * wide + inside) * size


def places(m: int, k: int, n: int, size: int, pairs: bool = False):
    """Byte offsets of a[i, l], b[l, j] and c[i, j]; `pairs` is kDirectionAlign."""
    c0, m1, n1 = 32 // size, -(-m // 16), -(-n // 16)
    k1 = -(-k // c0)
    if pairs:
        k1 = -(-k // 16) * 2

    def a(i: int, x: int) -> int:
        # one row is a plain vector (GEMV)
        return x * size if m == 1 else fractal_byte("ZZ", i, x, k1, m1, 16, size)

    return (
        a,
        lambda x, j: fractal_byte("ZN", x, j, n1, k1, c0, size),
        lambda i, j: fractal_byte("NZ", i, j, n1, m1, 16, 4),
    )


def mad_by_hand(bench: Bench, types, m, k, n, form, at, pairs=False) -> Image:
    """Return L0C as the documents have it after one mad; exact, then one rounding."""
    a, b, c = places(m, k, n, LIMITS[types[0]][0], pairs)
    l0a, l0b, l0c, bt = (bench.image(mem) for mem in (Mem.L0A, Mem.L0B, Mem.L0C, Mem.BT))
    after = bench.image(Mem.L0C)
    if 0 in (m, k, n):
        return after
    left = [[unpack(l0a, at["a"] + a(i, x), types[0]) for x in range(k)] for i in range(m)]
    right = [[unpack(l0b, at["b"] + b(x, j), types[1]) for j in range(n)] for x in range(k)]
    (left, left_unit), (right, right_unit) = whole(left), whole(right)
    columns = list(zip(*right, strict=True))
    for i in range(m):
        for j in range(n):
            products = sum(map(mul, left[i], columns[j]))
            total = Fraction(products, left_unit * right_unit)
            if form == "tile":
                total += unpack(l0c, at["c"] + c(i, j), types[2])
            elif form == "bias":
                total += unpack(bt, at["bias"] + 4 * j, types[2])
            after.put(at["c"] + c(i, j), encode(total, types[2]))
    return after


def whole(matrix: list[list[Fraction]]) -> tuple[list[list[int]], int]:
    """Return the matrix in one common unit, as integers, and how many of it make 1."""
    unit = math.lcm(*(value.denominator for row in matrix for value in row))
    return [[v.numerator * (unit // v.denominator) for v in row] for row in matrix], unit


def encode(total: Fraction, dtype: str) -> bytes:
    """int32 saturates; float32 is rounded once (these sums fit float64 exactly)."""
    if dtype == "int32":
        return struct.pack("<i", int(max(min(total, 2**31 - 1), -(2**31))))
    assert Fraction(float(total)) == total
    return struct.pack("<f", float(total))


def fill(bench: Bench, types) -> None:
    """Noise of the types: whole memories, so that padding is noise too."""
    rng = bench.rng
    if types == INT:
        inputs = [rng.integers(-128, 128, 65536).astype(np.int8) for _ in range(2)]
        start = rng.integers(-(2**31), 2**31, 32768).astype(np.int32)
        bias = rng.integers(-(2**31), 2**31, 256).astype(np.int32)
    else:
        kind, most, count = {
            HALF: (np.float16, 1000, 32768),
            BRAIN: (ml_dtypes.bfloat16, 256, 32768),
            SINGLE: (np.float32, 1000, 16384),
        }[types]
        inputs = [(rng.integers(1 - most, most, count) / 16).astype(kind) for _ in range(2)]
        start, bias = (
            (rng.integers(-(2**23), 2**23, size) / 256).astype(np.float32) for size in (32768, 256)
        )
    for mem, values in zip(
        (Mem.L0A, Mem.L0B, Mem.L0C, Mem.BT), [*inputs, start, bias], strict=True
    ):
        bench.poke(mem, 0, values.tobytes())


def mad(types, m, k, n, form, **more) -> Mad:
    a, b, c = map(element_type, types)
    return Mad(a_type=a, b_type=b, c_type=c, m=m, k=k, n=n, **FORMS[form], **more)


def run(bench: Bench, types, m, k, n, form, at) -> None:
    expected = mad_by_hand(bench, types, m, k, n, form, at)
    addresses = [at["c"], at["a"], at["b"]] + ([at["bias"]] if form == "bias" else [])
    bench.do(mad(types, m, k, n, form), *addresses)
    assert bench.messages == [], (m, k, n, form)
    bench.check(Mem.L0C, expected)


ZERO = {"c": 0, "a": 0, "b": 0, "bias": 0}
EDGES = [
    *((1, 1, 1), (2, 1, 1), (1, 33, 17), (1, 70, 1), (16, 16, 16), (17, 17, 17)),
    *((15, 33, 31), (30, 70, 40), (33, 1, 33), (2, 34, 1), (16, 32, 16), (0, 5, 5)),
    *((5, 0, 5), (5, 5, 0), (32, 64, 32), (34, 31, 18)),
]


@pytest.mark.parametrize("types", TYPES, ids=lambda t: t[0])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", EDGES, ids=str)
@pytest.mark.thinned(4)
def test_mad(types, form, shape):
    bench = Bench(seed=sum(shape))
    fill(bench, types)
    at = {"c": 2048, "a": 512, "b": 1536, "bias": 128}
    run(bench, types, *shape, form, at)


@pytest.mark.parametrize("types", TYPES, ids=lambda t: t[0])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.thinned(3)
def test_mad_of_random_extents(types, form):
    bench = Bench(seed=3)
    fill(bench, types)
    for _ in range(12):
        shape = (int(x) for x in bench.rng.integers(1, 35, 3))
        run(bench, types, *shape, form, ZERO)


@pytest.mark.sweep
@pytest.mark.parametrize("types", TYPES, ids=lambda t: t[0])
@pytest.mark.parametrize("m", range(1, 35))
def test_mad_of_small_extents(types, m):
    bench = Bench(seed=m)
    fill(bench, types)
    for k in range(1, 35, 2):
        for n in range(1 + k % 3, 35, 5):
            run(bench, types, m, k, n, "tile" if (k + n) % 2 else "bias", ZERO)


@pytest.mark.parametrize("shape", [*EDGES, (17, 36, 5), (33, 44, 17), (20, 40, 1)], ids=str)
def test_k_direction_align_pads_rows_of_l0a_to_pairs_of_fractals(shape):
    bench = Bench(seed=sum(shape))
    fill(bench, SINGLE)
    expected = mad_by_hand(bench, SINGLE, *shape, "tile", ZERO, pairs=True)
    bench.do(mad(SINGLE, *shape, "tile", k_direction_align=True), 0, 0, 0)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


def test_the_fractals_of_k_36_and_44():
    """Two rows of fractals each: 12 fractals long or 10, of which k needs 10 or 12."""
    for k, pairs, places_of_a in (
        (44, True, range(12)),
        (36, True, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]),
        (44, False, range(12)),
        (36, False, range(10)),
    ):
        template = mad(SINGLE, 32, k, 16, "zero", k_direction_align=pairs)
        assert np.unique(template.offsets("a") // 128).tolist() == list(places_of_a), (k, pairs)
        assert np.unique(template.offsets("b") // 128).tolist() == list(range(-(-k // 8)))


@pytest.mark.parametrize("types", [INT, HALF, BRAIN], ids=lambda t: t[0])
def test_k_direction_align_is_for_float32_alone(types):
    plain, aligned = (mad(types, 33, 40, 7, "zero", k_direction_align=k) for k in (False, True))
    assert np.array_equal(plain.offsets("a"), aligned.offsets("a"))


@pytest.mark.parametrize("types", TYPES, ids=lambda t: t[0])
@pytest.mark.parametrize("flag", [2, 3])
def test_the_unit_flag_changes_no_value(types, flag):
    bench = Bench(seed=flag)
    fill(bench, types)
    expected = mad_by_hand(bench, types, 20, 40, 30, "tile", ZERO)
    bench.do(mad(types, 20, 40, 30, "tile", unit_flag=flag), 0, 0, 0)
    assert bench.messages == []
    bench.check(Mem.L0C, expected)


def test_unit_flag_1_is_refused():
    bench = Bench()
    bench.do(mad(HALF, 16, 16, 16, "zero", unit_flag=1), 0, 0, 0)
    assert bench.messages == ["parameter: mad.unit_flag must be one of 0, 2, 3, got 1"]


@pytest.mark.parametrize("types", TYPES, ids=lambda t: t[0])
def test_gemv_reads_a_plain_vector(types):
    """A of one row, laid out as ZZ, is another product once k passes C0."""
    k, size = 40, LIMITS[types[0]][0]
    bench = Bench()
    kind = element_type(types[0]).numpy
    vector = np.arange(1, k + 1).astype(kind)
    eye = np.zeros((k, 16), kind)
    eye[39, 0] = 1
    _, b, c = places(1, k, 16, size)
    for x in range(k):
        for j in range(16):
            bench.poke(Mem.L0B, b(x, j), eye[x, j].tobytes())
    bench.poke(Mem.L0A, 0, vector.tobytes())
    bench.do(mad(types, 1, k, 16, "zero"), 0, 0, 0)
    assert bench.messages == []
    assert unpack(bench.image(Mem.L0C), c(0, 0), types[2]) == 40


def test_gemv_needs_only_the_vector():
    bench = Bench()
    bench.poke(Mem.L0A, 0, np.ones(20, np.float16).tobytes())
    bench.poke(Mem.L0B, 0, np.ones(1024, np.float16).tobytes())
    bench.do(mad(HALF, 1, 20, 16, "zero"), 0, 0, 0)
    assert bench.messages == []


@pytest.mark.parametrize(("start", "sign"), [(2**31 - 10, 1), (-(2**31) + 10, -1)])
@pytest.mark.parametrize("form", ["tile", "bias"])
def test_an_int32_sum_saturates(start, sign, form):
    bench = Bench()
    ones = np.ones(1024, np.int8)
    bench.poke(Mem.L0A, 0, ones.tobytes())
    bench.poke(Mem.L0B, 0, (sign * ones).tobytes())
    starts = np.full(256, start, np.int32)
    bench.poke(Mem.L0C if form == "tile" else Mem.BT, 0, starts.tobytes())
    template = mad(INT, 2, 11, 16, form)
    bench.do(template, 0, 0, 0, *([0] if form == "bias" else []))
    assert bench.messages == []
    value = unpack(bench.image(Mem.L0C), 0, "int32")
    assert value == (2**31 - 1 if sign > 0 else -(2**31))


def test_the_largest_int8_product_is_exact():
    bench = Bench()
    bench.poke(Mem.L0A, 0, np.full(65536, -128, np.int8).tobytes())
    bench.poke(Mem.L0B, 0, np.full(65536, -128, np.int8).tobytes())
    bench.do(mad(INT, 16, 4095, 16, "zero"), 0, 0, 0)
    assert bench.messages == []
    assert unpack(bench.image(Mem.L0C), 0, "int32") == 4095 * 128 * 128


def special(values: list[float], other: list[float], form: str, start: float = 0.0) -> float:
    bench = Bench()
    k = len(values)
    bench.poke(Mem.L0A, 0, np.array(values, np.float16).tobytes())
    _, b, _ = places(1, k, 1, 2)
    for x in range(k):
        bench.poke(Mem.L0B, b(x, 0), np.float16(other[x]).tobytes())
    bench.poke(Mem.L0C, 0, np.float32(start).tobytes())
    bench.do(mad(HALF, 1, k, 1, form), 0, 0, 0)
    assert bench.messages == []
    return struct.unpack("<f", bench.image(Mem.L0C).get(0, 4))[0]


INF, NAN = float("inf"), float("nan")
LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("a", "b", "form", "start", "result"),
    [
        ([INF], [1.0], "zero", 0.0, INF),
        ([INF, 1.0], [-1.0, 1.0], "zero", 0.0, -INF),
        ([NAN], [1.0], "zero", 0.0, NAN),
        ([1.0], [1.0], "tile", INF, INF),
        ([1.0], [1.0], "tile", NAN, NAN),
        ([65504.0], [65504.0], "tile", LARGEST, LARGEST),
        ([-0.0], [1.0], "zero", 0.0, 0.0),
    ],
)
def test_mad_of_infinities_and_nan_is_ieee(a, b, form, start, result):
    assert np.array_equal(special(a, b, form, start), result, equal_nan=True)


@pytest.mark.parametrize(
    ("a", "b", "form", "start"),
    [
        ([INF], [0.0], "zero", 0.0),
        ([INF, INF], [1.0, -1.0], "zero", 0.0),
        ([INF], [1.0], "tile", -INF),
    ],
)
def test_mad_of_infinities_that_cancel_is_nan_without_a_warning(a, b, form, start):
    assert np.isnan(special(a, b, form, start))


def test_float32_tiles_accumulate_with_one_rounding_each():
    """2**24 + 1 is lost when each mad adds it alone, and kept when one mad adds two."""
    assert special([1.0], [1.0], "tile", 2.0**24) == 2.0**24
    assert special([1.0, 1.0], [1.0, 1.0], "tile", 2.0**24) == 2.0**24 + 2


# --- L1 to BiasTable


def bias_by_hand(bench: Bench, at: tuple[int, int], dtype: str, p: dict) -> Image:
    """Runs of 32-byte source blocks; float16 becomes float32, so that each fills 64 bytes."""
    source, after = bench.image(Mem.L1), bench.image(Mem.BT)
    convert = dtype == "float16"
    size = 2 if convert else 4
    there, here = at
    for run_number in range(p["n_burst"]):
        s = there + run_number * (p["len_burst"] + p["source_gap"]) * 32
        d = here + run_number * (p["len_burst"] * (2 if convert else 1) + p["dst_gap"]) * 32
        for i in range(p["len_burst"] * 32 // size):
            raw = source.get(s + i * size, size)
            if convert:
                raw = struct.pack("<f", struct.unpack("<e", raw)[0])
            after.put(d + i * 4, raw, int(source.written(s + i * size, size)))
    return after


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize(
    "runs", [(1, 1, 0, 0), (1, 16, 0, 0), (3, 2, 1, 0), (3, 2, 0, 3), (2, 3, 5, 1)], ids=str
)
def test_l1_to_bias_table(dtype, runs):
    p = dict(zip(("n_burst", "len_burst", "source_gap", "dst_gap"), runs, strict=True))
    bench = Bench(seed=sum(runs))
    bench.noise(Mem.BT)
    bench.noise(Mem.L1, written=True)
    if dtype == "float16":
        values = bench.rng.integers(-2000, 2000, 1024) / 32
        bench.poke(Mem.L1, 0, values.astype(np.float16).tobytes())
    # whole values that nobody wrote, and one of which only a byte is missing
    bench.buffer(Mem.L1).valid[64:68] = 0
    bench.buffer(Mem.L1).valid[77] = 0
    here = 0 if runs[1] == 16 else 128
    expected = bias_by_hand(bench, (64, here), dtype, p)
    template = CopyCbufToBt(src_type=element_type(dtype), conv_control=dtype == "float16", **p)
    bench.do(template, here, 64)
    assert bench.messages == []
    bench.check(Mem.BT, expected)


def test_every_half_widens_exactly_on_the_way_to_bias_table():
    codes = np.arange(65536, dtype=np.uint16)
    for start in range(0, 65536, 256):
        bench = Bench()
        bench.poke(Mem.L1, 0, codes[start : start + 256].tobytes())
        bench.do(
            CopyCbufToBt(src_type=element_type("float16"), len_burst=16, conv_control=True), 0, 0
        )
        assert bench.messages == []
        got = np.frombuffer(bench.image(Mem.BT).get(0, 1024), np.float32)
        for code, value in zip(codes[start : start + 256], got, strict=True):
            (wanted,) = struct.unpack("<e", int(code).to_bytes(2, "little"))
            assert value == wanted or (np.isnan(value) and np.isnan(wanted))


@pytest.mark.parametrize(
    ("dtype", "convert", "got"),
    [
        ("float16", False, "0 for float16"),
        ("float32", True, "1 for float32"),
        ("int32", True, "1 for int32"),
    ],
)
def test_only_float16_is_converted(dtype, convert, got):
    bench = Bench()
    bench.noise(Mem.L1, Mem.BT)
    before = bench.image(Mem.BT)
    template = CopyCbufToBt(src_type=element_type(dtype), len_burst=1, conv_control=convert)
    bench.do(template, 0, 0)
    assert bench.messages == [
        "parameter: copy_cbuf_to_bt.conv_control must be set for float16 and only for it, "
        f"got {got}"
    ]
    bench.check(Mem.BT, before)


def test_a_finding_says_what_was_written_whatever_was_judged_before():
    for convert in (1, True):
        template = CopyCbufToBt(src_type=element_type("int32"), len_burst=9, conv_control=convert)
        bench = Bench()
        bench.do(template, 0, 0)
        assert bench.messages[0].endswith("got 1 for int32")


@pytest.mark.parametrize(
    ("types", "got"),
    [
        (("int8", "float16", "int32"), "int8 x float16 -> int32"),
        (("float16", "float16", "int32"), "float16 x float16 -> int32"),
        (("int8", "int8", "float32"), "int8 x int8 -> float32"),
    ],
)
def test_mad_of_other_types_is_a_finding(types, got):
    bench = Bench()
    bench.do(mad(types, 16, 16, 16, "zero"), 0, 0, 0)
    (message,) = bench.messages
    assert message.startswith("parameter: mad must multiply one of int8 x int8 -> int32, float16")
    assert message.endswith(f" on Ascend910B3, got {got}")
