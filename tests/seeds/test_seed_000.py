"""What TCubeTiling's fields mean to the kernel (seeds 000 and 001), and what a check reports."""

import struct
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from cubecore import layouts
from cubecore.dtypes import element_type
from cubecore.errors import RequestError
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz, LoadCbufToCa, LoadCbufToCb
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.advice import ROWS
from cubecore.tiling.rules.checker import check_tiling, rule_named
from cubecore.tiling.rules.model import RuleCase
from harness import (
    A2,
    expected,
    issued,
    listing,
    make_operands,
    make_tiling,
    run_matmul,
    tensor_of,
    whole_numbers,
)
from seeds import ledger

EDITIONS = ("000", "001")
both_editions = pytest.mark.parametrize("edition", EDITIONS)


def launch_of(problem, **fields):
    return matmul_launch(problem, make_tiling(problem, **fields), A2)


def assert_right(problem, tiling):
    """The tiling is legal, and its kernel computes the product without a finding."""
    assert check_tiling(tiling, problem, A2).findings == ()
    operands = make_operands(problem)
    ran = run_matmul(problem, tiling, operands)
    assert ran.findings == ()
    assert ran.written.all()
    assert np.array_equal(ran.c, expected(problem, operands))


def loads_to_l1(launch, tensor):
    """Return (template, addresses) of the transfers from one tensor to L1."""
    transfers = issued(launch, CopyGmToCbufMultiNd2Nz)
    return [pair for pair in transfers if tensor_of(launch, pair[1][1])[0] == tensor]


# --- the structure


FULL_K = {"stepKa": 8, "stepKb": 8}
VARIANTS = [
    {},
    {"singleCoreM": 32},
    {"singleCoreN": 48},
    {"baseM": 32},
    {"baseN": 32},
    {"baseK": 32},
    {"depthA1": 2},
    {"depthB1": 2},
    {"stepKa": 2},
    {"stepKb": 2},
    FULL_K,
    FULL_K | {"stepM": 2},
    FULL_K | {"stepN": 2},
    {"iterateOrder": 0},
    {"dbL0A": 2},
    {"dbL0B": 2},
    {"dbL0C": 2},
]


def test_a_tiling_alone_defines_the_kernel():
    problem = Problem(m=64, n=96, k=128, cores=20)
    kernels = []
    for fields in VARIANTS:
        tiling = make_tiling(problem, **fields)
        assert_right(problem, tiling)
        kernels.append(listing(matmul_launch(problem, tiling, A2)))
        # What reaches the kernel is 200 bytes; they make the same kernel.
        received = TCubeTiling.from_bytes(tiling.to_bytes())
        assert listing(matmul_launch(problem, received, A2)) == kernels[-1]
    # Every one of these numbers makes another kernel.
    same = [
        (VARIANTS[i], VARIANTS[j])
        for i in range(len(kernels))
        for j in range(i)
        if kernels[i] == kernels[j]
    ]
    assert same == []


def test_every_field_is_an_int32():
    values = {name: number * 1000 - 7000 for number, name in enumerate(FIELDS)}
    values |= {"M": 2**31 - 1, "N": -(2**31)}
    tiling = TCubeTiling(**values)
    assert struct.unpack("<50i", tiling.to_bytes()) == tuple(values[name] for name in FIELDS)
    assert TCubeTiling.from_bytes(tiling.to_bytes()) == tiling
    for name in FIELDS:
        for value in (2**31, -(2**31) - 1):
            with pytest.raises(RequestError) as refused:
                TCubeTiling(**(values | {name: value}))
            assert str(refused.value) == f"tiling.{name} must fit int32, got {value}"
        with pytest.raises(RequestError) as refused:
            TCubeTiling(**(values | {name: 1.5}))
        assert str(refused.value) == f"tiling.{name} must be an integer, got 1.5"


# --- cores and extents


def test_used_core_num_cores_take_part():
    problem = Problem(m=96, n=64, k=32, cores=20)
    tiling = make_tiling(problem, singleCoreM=32, singleCoreN=32)
    assert tiling.usedCoreNum == 6 < A2.aic_count
    launch = matmul_launch(problem, tiling, A2)
    assert [core.core for core in launch.cores] == list(range(6))
    assert all(issued(launch, Mad, core) for core in range(6))
    assert_right(problem, tiling)
    # Each of the six is needed.
    operands = make_operands(problem)
    for idle in range(6):
        rest = run_matmul(problem, tiling, operands, only=set(range(6)) - {idle})
        assert rest.written.mean() == pytest.approx(5 / 6)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_extents_are_the_problems(trans_a, trans_b):
    problem = Problem(m=20, n=37, k=50, trans_a=trans_a, trans_b=trans_b, cores=20)
    tiling = make_tiling(problem)
    assert (tiling.M, tiling.N, tiling.Ka, tiling.Kb) == (20, 37, 50, 50)
    sizes = {t.name: t.size_bytes for t in matmul_launch(problem, tiling, A2).tensors}
    assert sizes == {"a": 20 * 50 * 2, "b": 50 * 37 * 2, "c": 20 * 37 * 4}
    assert_right(problem, tiling)
    for field, key in (("M", "m = 20"), ("N", "n = 37"), ("Ka", "k = 50"), ("Kb", "k = 50")):
        other = make_tiling(problem, **{field: 51})
        with pytest.raises(RequestError) as refused:
            check_tiling(other, problem, A2)
        assert str(refused.value) == f"tiling.{field} must equal the problem's {key}, got 51"


ODD = [(1, 1, 1), (7, 13, 5), (33, 17, 65), (16, 31, 1)]


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize("extents", ODD, ids=str)
@pytest.mark.thinned(2)
def test_nd_extents_need_no_alignment(extents, dtype):
    m, n, k = extents
    for trans_a, trans_b in ((False, False), (True, False), (False, True), (True, True)):
        problem = Problem(m=m, n=n, k=k, a=dtype, trans_a=trans_a, trans_b=trans_b, cores=20)
        base = {"baseM": 32, "baseN": 32, "baseK": 32}
        assert_right(problem, make_tiling(problem, **base))


def test_a_core_computes_its_single_core_block():
    problem = Problem(m=80, n=96, k=64, cores=20)
    tiling = make_tiling(problem, singleCoreM=32, singleCoreN=48)
    assert tiling.usedCoreNum == 3 * 2
    launch = matmul_launch(problem, tiling, A2)
    operands = make_operands(problem)
    c = expected(problem, operands)
    for core in range(6):
        rows = slice(core % 3 * 32, min(core % 3 * 32 + 32, 80))
        columns = slice(core // 3 * 48, core // 3 * 48 + 48)
        # NaN outside of the core's share of A and B reaches nothing.
        own = {"a": np.full_like(operands["a"], np.nan), "b": np.full_like(operands["b"], np.nan)}
        own["a"][rows], own["b"][:, columns] = operands["a"][rows], operands["b"][:, columns]
        ran = run_matmul(problem, tiling, own, only=[core])
        assert np.array_equal(ran.c[rows, columns], c[rows, columns])
        block = np.zeros((80, 96), bool)
        block[rows, columns] = True
        assert np.array_equal(ran.written, block)
        work = sum(mad.m * mad.k * mad.n for mad, _ in issued(launch, Mad, core))
        assert work == (rows.stop - rows.start) * 64 * 48


# --- base blocks


@pytest.mark.parametrize("order", [0, 1])
def test_a_base_block_is_one_mad(order):
    problem = Problem(m=72, n=80, k=40)
    launch = launch_of(problem, baseM=32, baseN=48, baseK=16, iterateOrder=order)
    found = Counter((mad.m, mad.k, mad.n) for mad, _ in issued(launch, Mad))
    blocks = Counter((m, k, n) for m in (32, 32, 8) for k in (16, 16, 8) for n in (48, 32))
    assert found == blocks


@both_editions
def test_base_blocks_are_whole_fractals(edition):
    problem = Problem(m=64, n=64, k=64, cores=1, a="int8", trans_b=True)

    def broken(problem, **fields):
        tiling = make_tiling(problem, **({"baseM": 32, "baseN": 32, "baseK": 32} | fields))
        return [f.rule for f in check_tiling(tiling, problem, A2, edition).findings]

    c0 = problem.a_type.c0
    fractals = {"baseM": layouts.l0a_fractal(c0)[0], "baseK": layouts.l0a_fractal(c0)[1]}
    assert layouts.l0b_fractal(c0) == (fractals["baseK"], 16)
    fractals["baseN"] = 16
    for field, edge in fractals.items():
        rule = f"BASE-{field[-1]}-ALIGNMENT"
        assert broken(problem, **{field: edge}) == []
        assert broken(problem, **{field: 2 * edge}) == []
        for off in (edge // 2, edge - 1, edge + 1, edge * 3 // 2):
            assert broken(problem, **{field: off}) == [rule]
    # Where a transposing load pads K on chip, the newer edition asks for 16 only.
    plain = Problem(m=64, n=64, k=64, cores=1, a="int8")
    assert broken(plain, baseK=16) == ([] if edition == "000" else ["BASE-K-ALIGNMENT"])


def test_c0_of_half_and_int8():
    assert element_type("half").c0 == 16
    assert element_type("int8_t").c0 == 32

    def measure(rule, dtype, reading="effective", edition="000", **options):
        problem = Problem(m=64, n=64, k=64, a=dtype, **options)
        tiling = make_tiling(problem, baseM=40, baseN=72, baseK=32)
        return rule_named(rule).measure(RuleCase(tiling, problem, A2, edition, reading))

    for edition in EDITIONS:
        for dtype, c0 in (("half", 16), ("int8_t", 32)):
            assert measure("BASE-K-ALIGNMENT", dtype, edition=edition, trans_b=True).limit == c0
    # Table 2 as printed: CeilDiv(baseN, C0) columns of a plain B, CeilDiv(baseM, C0) of A^T.
    printed = {
        ("half", False): (40 * 32 + 5 * 32) * 2,
        ("int8_t", False): 40 * 32 + 3 * 32,
        ("half", True): (3 * 32 + 72 * 32) * 2,
        ("int8_t", True): 2 * 32 + 72 * 32,
    }
    for (dtype, trans), size in printed.items():
        options = {"trans_a": trans, "trans_b": trans}
        assert measure("L1-CAPACITY", dtype, "documented", **options).used == size
    # On chip: rows of a stored matrix in whole C0.
    on_chip = {
        ("half", False): (48 * 32 + 80 * 32) * 2,
        ("int8_t", False): 48 * 32 + 96 * 32,
        ("half", True): (48 * 32 + 80 * 32) * 2,
        ("int8_t", True): 64 * 32 + 80 * 32,
    }
    for (dtype, trans), size in on_chip.items():
        options = {"trans_a": trans, "trans_b": trans}
        assert measure("L1-CAPACITY", dtype, **options).used == size


# --- L1


STEPS = [
    {"stepM": 2, "stepN": 3, "stepKa": 4, "stepKb": 4},
    {"stepM": 1, "stepN": 1, "stepKa": 2, "stepKb": 1},
    {"stepM": 1, "stepN": 1, "stepKa": 1, "stepKb": 4},
    {"stepM": 2, "stepN": 1, "stepKa": 4, "stepKb": 2},
]


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("steps", STEPS, ids=lambda s: "-".join(map(str, s.values())))
def test_step_is_the_extent_of_an_l1_buffer(steps, trans):
    problem = Problem(m=64, n=96, k=64, trans_a=trans, trans_b=trans, cores=20)
    base = {"baseM": 16, "baseN": 16, "baseK": 16}
    tiling = make_tiling(problem, **base, **steps)
    launch = matmul_launch(problem, tiling, A2)
    extents = {
        "a": (steps["stepM"] * 16, steps["stepKa"] * 16),
        "b": (steps["stepN"] * 16, steps["stepKb"] * 16),
    }
    for tensor, (own, along_k) in extents.items():
        # A is stored [m, k] and B [k, n]; transposed, the other way round.
        rows, columns = (own, along_k) if (tensor == "a") != trans else (along_k, own)
        transfers = loads_to_l1(launch, tensor)
        assert {(t.n_value, t.d_value) for t, _ in transfers} == {(rows, columns)}
    assert_right(problem, tiling)


DEPTHS = [
    {"stepKa": 2, "stepKb": 2, "depthA1": 2, "depthB1": 4},
    {"stepKa": 2, "stepKb": 2, "depthA1": 4, "depthB1": 2},
    {"stepM": 2, "stepN": 3, "stepKa": 8, "stepKb": 8, "depthA1": 16, "depthB1": 24},
    {"stepM": 1, "stepN": 1, "stepKa": 8, "stepKb": 8, "depthA1": 16, "depthB1": 16},
]


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("fields", DEPTHS, ids=lambda f: f"{f['depthA1']}-{f['depthB1']}")
@pytest.mark.thinned(2)
def test_depth_is_the_base_blocks_in_l1(fields, order):
    problem = Problem(m=64, n=96, k=128, cores=20)
    tiling = make_tiling(problem, baseM=16, baseN=16, baseK=16, iterateOrder=order, **fields)
    launch = matmul_launch(problem, tiling, A2)
    held = {}
    for tensor in "ab":
        touched = [
            address[0] + template.offsets("dst").reshape(-1) * 2
            for template, address in loads_to_l1(launch, tensor)
        ]
        held[tensor] = set(np.concatenate(touched).tolist())
    block = 16 * 16
    assert len(held["a"]) == tiling.depthA1 * block
    assert len(held["b"]) == tiling.depthB1 * block
    assert not held["a"] & held["b"]
    assert_right(problem, tiling)


# --- bias


@pytest.mark.parametrize(
    ("dtype", "bias"), [("float16", "float32"), ("float16", "float16"), ("int8", "int32")]
)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.thinned(2)
def test_is_bias_adds_the_bias_row(dtype, bias, order):
    shape = {"m": 40, "n": 72, "k": 64, "cores": 20}
    with_bias = Problem(a=dtype, bias=bias, **shape)
    without = Problem(a=dtype, **shape)
    operands = make_operands(with_bias)
    operands["bias"] = whole_numbers(np.random.default_rng(9), (72,), bias)
    fields = {"baseM": 16, "baseN": 32, "singleCoreN": 48, "iterateOrder": order}
    results = []
    for problem, flag in ((without, 0), (with_bias, 1)):
        tiling = make_tiling(problem, **fields)
        assert tiling.isBias == flag
        assert check_tiling(tiling, problem, A2).findings == ()
        ran = run_matmul(problem, tiling, operands)
        assert ran.findings == ()
        results.append(ran.c.astype(np.float64))
    assert np.array_equal(results[0], expected(without, operands))
    assert np.array_equal(results[1] - results[0], np.tile(operands["bias"], (40, 1)))
    # A flag that contradicts the problem is refused, not guessed.
    for problem, flag in ((without, 1), (with_bias, 0)):
        (finding,) = check_tiling(make_tiling(problem, **fields, isBias=flag), problem, A2).findings
        assert finding.rule == "IS-BIAS-MATCHES"


# --- order and double buffers


@pytest.mark.parametrize("steps", [{}, {"stepM": 3, "stepN": 4}], ids=["1", "all"])
def test_iterate_order_is_the_order_of_base_blocks(steps):
    problem = Problem(m=80, n=128, k=32)
    orders = {
        0: [(m, n) for n in range(4) for m in range(3)],
        1: [(m, n) for m in range(3) for n in range(4)],
    }
    for order, blocks in orders.items():
        fields = {"baseM": 32, "baseN": 32, "baseK": 32, "iterateOrder": order} | steps
        launch = launch_of(problem, **fields)
        pieces = []
        for fixpipe, address in issued(launch, CopyMatrixCcToGm):
            tensor, offset = tensor_of(launch, address[0])
            row, column = divmod(offset // 4, 128)
            assert tensor == "c"
            assert (fixpipe.m_size, fixpipe.n_size) == (min(32, 80 - row), 32)
            pieces.append((row // 32, column // 32))
        assert pieces == blocks
        assert_right(problem, make_tiling(problem, **fields))


def alternates(places, distance):
    """Whether neighbours are at least `distance` apart and every second is the same."""
    return all(abs(a - b) >= distance for a, b in pairwise(places)) and all(
        a == b for a, b in zip(places, places[2:], strict=False)
    )


@pytest.mark.parametrize("buffers", [1, 2])
def test_db_l0_fields_alternate_buffers(buffers):
    # One fractal per base block of A and B: one load for each step, one tile of C for each 4.
    problem = Problem(m=48, n=48, k=64, trans_b=True, cores=20)
    base = {"baseM": 16, "baseN": 16, "baseK": 16}
    for field, block_bytes in (("dbL0A", 512), ("dbL0B", 512), ("dbL0C", 1024)):
        tiling = make_tiling(problem, **base, **{field: buffers})
        launch = matmul_launch(problem, tiling, A2)
        c, a, b = zip(*(addresses for _, addresses in issued(launch, Mad)), strict=True)
        places = {"dbL0A": a, "dbL0B": b, "dbL0C": c[::4]}
        assert all(len(set(c[at : at + 4])) == 1 for at in range(0, len(c), 4))
        for name, found in places.items():
            if name == field and buffers == 2:
                assert alternates(found, block_bytes)
            else:
                assert set(found) == {0}
        # Who fills and who empties the buffers walks with the Cube.
        assert tuple(at[0] for _, at in issued(launch, LoadCbufToCa)) == a
        assert tuple(at[0] for _, at in issued(launch, LoadCbufToCb)) == b
        assert tuple(at[1] for _, at in issued(launch, CopyMatrixCcToGm)) == c[::4]
        assert_right(problem, tiling)


# --- what a check reports

CHECKED = Problem(m=512, n=1024, k=512, bias="float32", cores=20)
LEGAL = (
    {"singleCoreM": 256, "singleCoreN": 256, "baseM": 128, "baseN": 128, "baseK": 64}
    | {"stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8}
    | {"dbL0A": 2, "dbL0B": 2, "dbL0C": 1}
)
BREAKS = {
    "t1/usedCoreNum": {"usedCoreNum": 7},
    "t1/singleCoreM": {"singleCoreM": 528, "usedCoreNum": 4},
    "t1/isBias": {"isBias": 2},
    "t1/iterateOrder": {"iterateOrder": 2},
    "t1/dbL0A": {"dbL0C": 3},
    "t1/depthA1": {"depthA1": 0},
    "t1/stepM": {"stepM": 0},
    "t2/usedCoreNum": {"singleCoreM": 64, "singleCoreN": 256},
    "t2/l0a-capacity": {"baseM": 256, "baseN": 64, "baseK": 128},
    "t2/l0b-capacity": {"baseM": 64, "baseN": 256, "baseK": 128},
    "t2/l0c-capacity": {"dbL0C": 2, "baseM": 256},
    "t2/biasT-capacity": {"baseN": 272, "baseM": 64},
    "t2/depthA1": {"depthA1": 12},
    "t2/depthB1": {"depthB1": 7},
    "t2/l1-capacity": {"stepKa": 8, "stepKb": 8, "depthA1": 16, "depthB1": 16, "baseN": 256},
    "t2/alignment": {"baseM": 120},
    "t3/stepM": {"stepM": 2, "depthA1": 8},
    "t3/stepN": {"stepN": 2, "depthB1": 8},
    "t3/k-step-multiple": {"stepKa": 3, "depthA1": 6},
}
ALL_AT_ONCE = (
    {"usedCoreNum": 21, "isBias": 2, "iterateOrder": 2, "dbL0A": 3, "singleCoreM": 528}
    | {"baseM": 264, "baseN": 520, "baseK": 264, "depthA1": 0, "depthB1": 3}
    | {"stepM": 1, "stepN": 1, "stepKa": 1, "stepKb": 1}
)


def rows_broken(fields, edition, problem=CHECKED):
    """Return the rows (table/row) of one seed whose rules a tiling breaks."""
    findings = check_tiling(make_tiling(problem, **fields), problem, A2, edition).findings
    rows = [row.split("/", 1) for f in findings for row in rule_named(f.rule).rows]
    return {row for seed, row in rows if seed == edition}


@both_editions
def test_check_reports_every_violated_row(edition):
    assert rows_broken(LEGAL, edition) == set()
    for row, fields in BREAKS.items():
        assert row in rows_broken(LEGAL | fields, edition), row
    # Many wrong things are all reported, at once: among them every row of table 2.
    book = next(b for b in ledger.load_all() if b.seed == edition)
    table_2 = {f"t2/{row}" for row in book.section("t2").rows} - {"t2/mx"}
    table_1 = {row for row in BREAKS if row.startswith("t1/")} - {"t1/stepM"}
    assert table_1 | table_2 <= rows_broken(LEGAL | ALL_AT_ONCE, edition)


@both_editions
def test_table_3_binds_only_the_mdl_template(edition):
    breaks = {row: fields for row, fields in BREAKS.items() if row.startswith("t3/")}
    shape = {"m": 512, "n": 1024, "k": 512, "bias": "float32", "cores": 20}
    for row, fields in breaks.items():
        tiling = LEGAL | fields
        assert rows_broken(tiling, edition, Problem(**shape, template="MDL")) == {row}
        for template in ("NORM", "IBSHARE"):
            assert rows_broken(tiling, edition, Problem(**shape, template=template)) == set()


RECOMMENDED = (
    {"singleCoreM": 128, "singleCoreN": 256, "baseM": 128, "baseN": 256, "baseK": 64}
    | {"stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8}
    | {"dbL0A": 2, "dbL0B": 2}
)
DEVIATIONS = [
    (("BASE",), "base", {"baseM": 112, "stepM": 2, "depthA1": 16}),
    (("BASE",), "base", {"baseN": 128, "stepN": 2, "depthB1": 16}),
    (("BASE",), "base", {"baseK": 32, "stepKa": 8, "stepKb": 8, "depthA1": 16, "depthB1": 16}),
    (("DOUBLE-BUFFER-L0",), "dbL0", {"dbL0A": 1}),
    (("DOUBLE-BUFFER-L0",), "dbL0", {"dbL0B": 1}),
    (("DOUBLE-BUFFER-A1",), "depthA1", {"depthA1": 4}),
    (("DOUBLE-BUFFER-B1",), "depthB1", {"depthB1": 4}),
    (("K-FULL-LOAD",), "k-full-load", {"stepKa": 2, "depthA1": 4}),
    (("K-FULL-LOAD",), "k-full-load", {"stepKb": 2, "depthB1": 4}),
    (("MN-FULL-LOAD",), "k-full-load", {"singleCoreM": 256, "usedCoreNum": 2}),
    (
        ("MN-FULL-LOAD", "DOUBLE-BUFFER-B1"),
        "k-full-load",
        {"singleCoreN": 512, "usedCoreNum": 2, "depthB1": 4},
    ),
]


@both_editions
@pytest.mark.parametrize(("names", "row", "change"), DEVIATIONS)
def test_recommended_values_are_advice(edition, names, row, change):
    def advised(fields):
        cores = fields.get("usedCoreNum", 4)
        problem = Problem(m=256, n=512, k=256, cores=cores)
        found = check_tiling(make_tiling(problem, **fields), problem, A2, edition)
        assert found.legal
        return {advice.id for advice in found.advice}

    assert advised(RECOMMENDED) == set()
    assert advised(RECOMMENDED | change) == set(names)
    assert f"{edition}/rec/{row}" in ROWS[names[0]]
