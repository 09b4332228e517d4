"""Tables 1 and 2 of seeds 000 and 001 by the letter: the documented reading beside the formulas.

Each limit is tried on both of its sides, with sizes that are the documents' own numbers.
"""

import pytest

from cubecore.chips import chip
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.advice import advise
from cubecore.tiling.rules.checker import check_tiling, rule_named
from cubecore.tiling.rules.model import RuleCase
from harness import A2, make_tiling

EDITIONS = ("000", "001")
both_editions = pytest.mark.parametrize("edition", EDITIONS)
NEW = chip("Ascend950PR_9589")
L0A = L0B = 65536
L0C, BIAS_TABLE, L1 = 131072, 1024, 524032
"""Bytes of Ascend910B3's buffers; L1 less what the vendor's tiling library keeps."""


def broken(rule, fields, edition="000", soc=A2, reading="documented", **keys):
    """Return whether a tiling breaks a rule by the letter."""
    problem = Problem(**({"m": 512, "n": 512, "k": 512, "chip": soc.name} | keys))
    tiling = make_tiling(problem, **fields)
    measure = rule_named(rule).measure(RuleCase(tiling, problem, soc, edition, reading))
    return measure is not None and not measure.holds()


@both_editions
@pytest.mark.parametrize("dtype", ["half", "float", "int8_t"])
@pytest.mark.thinned(2)
def test_base_blocks_are_smaller_than_their_buffers(edition, dtype):
    # A transposed A and a plain B: 48 rows and columns of int8 are 64 on chip, not by the letter.
    size = {"half": 2, "float": 4, "int8_t": 1}[dtype]
    for buffers in (1, 2):
        for other in (32, 48, 64):
            for base_k in range(16, 1100, 16):
                whole = other * base_k * size * buffers
                blocks = {"baseM": other, "baseN": other, "baseK": base_k}
                for rule, field, limit in (
                    ("L0A-CAPACITY", "dbL0A", L0A),
                    ("L0B-CAPACITY", "dbL0B", L0B),
                ):
                    fields = blocks | {field: buffers}
                    found = broken(rule, fields, edition, a=dtype, trans_a=True)
                    assert found == (whole >= limit)
            for base_n in range(16, 1100, 16):
                fields = {"baseM": other, "baseN": base_n, "dbL0C": buffers}
                whole = other * base_n * 4 * buffers
                assert broken("L0C-CAPACITY", fields, edition, a=dtype) == (whole >= L0C)


@both_editions
@pytest.mark.parametrize(("a", "c"), [("half", "float"), ("int8_t", "int32_t")])
def test_l0c_holds_int32_or_float(edition, a, c):
    problem = Problem(m=512, n=512, k=512, a=a, c=c)
    tiling = make_tiling(problem, baseM=64, baseN=96)
    for reading in ("effective", "documented"):
        case = RuleCase(tiling, problem, A2, edition, reading)
        assert rule_named("L0C-CAPACITY").measure(case).used == 64 * 96 * 4
        assert case.accumulator.name == (
            "int32" if edition == "001" or a == "int8_t" else "float32"
        )


@both_editions
@pytest.mark.parametrize(("bias", "size"), [("half", 2), ("float", 4)])
def test_the_bias_of_a_block_is_smaller_than_its_table(edition, bias, size):
    for base_n in range(16, 800, 16):
        found = broken("BIAS-TABLE-CAPACITY", {"baseN": base_n}, edition, bias=bias)
        assert found == (base_n * size >= BIAS_TABLE)
    assert not broken("BIAS-TABLE-CAPACITY", {"baseN": 4096}, edition)


@both_editions
@pytest.mark.parametrize("bias", [None, "float"])
@pytest.mark.parametrize("trans", [(False, False), (True, False), (False, True), (True, True)])
def test_blocks_and_bias_fit_l1_as_printed(edition, bias, trans):
    trans_a, trans_b = trans
    base_m, base_n, base_k = 48, 80, 64
    for depth_a, depth_b in ((1, 1), (30, 4), (4, 30), (30, 30), (200, 180), (900, 20), (20, 900)):
        fields = {"baseM": base_m, "baseN": base_n, "baseK": base_k}
        fields |= {"depthA1": depth_a, "depthB1": depth_b}
        rows, columns, row = base_m, base_n, 0
        if edition == "000":
            rows = 3 if trans_a else base_m
            columns = base_n if trans_b else 5
            row = base_n * 4 if bias else 0
        used = (depth_a * rows + depth_b * columns) * base_k * 2 + row
        problem = Problem(m=512, n=512, k=512, trans_a=trans_a, trans_b=trans_b, bias=bias)
        case = RuleCase(make_tiling(problem, **fields), problem, A2, edition, "documented")
        measure = rule_named("L1-CAPACITY").measure(case)
        assert (measure.used, measure.limit, measure.holds()) == (used, L1, used <= L1)


@both_editions
def test_l1_may_be_full(edition):
    # 1019 blocks of A and one of B are 1023 fractals of 512 B, and bias is 256 B.
    fields = {"baseM": 16, "baseN": 64, "baseK": 16, "depthA1": 1019, "depthB1": 1}
    keys = {"trans_b": True, "bias": "float"}
    assert not broken("L1-CAPACITY", fields, edition, **keys)
    assert broken("L1-CAPACITY", fields | {"depthA1": 1020}, edition, **keys)


@both_editions
def test_cores_are_the_quotients_of_m_and_n(edition):
    for cores, m, n, single_m, single_n in (
        (4, 512, 512, 256, 256),
        (6, 96, 128, 32, 64),
        (2, 96, 128, 96, 64),
        (1, 17, 31, 17, 31),
    ):
        for used in (cores - 1, cores, cores + 1):
            fields = {"singleCoreM": single_m, "singleCoreN": single_n, "usedCoreNum": used}
            for reading in ("effective", "documented"):
                found = broken("USED-CORE-NUM-PRODUCT", fields, edition, reading=reading, m=m, n=n)
                assert found == (used != cores)
    # A ragged share: no number of cores is the quotient, and the effective reading rounds up.
    ragged = {"singleCoreM": 48, "singleCoreN": 128, "usedCoreNum": 3}
    how = {"m": 128, "n": 128}
    assert broken("USED-CORE-NUM-PRODUCT", ragged, edition, **how)
    assert not broken("USED-CORE-NUM-PRODUCT", ragged, edition, reading="effective", **how)


@both_editions
def test_cores_are_at_most_the_chips(edition):
    for soc, count in ((A2, 20), (chip("Ascend910B1"), 24), (chip("Ascend310P3"), 8)):
        for used in (1, count - 1, count, count + 1):
            found = broken("USED-CORE-NUM-RANGE", {"usedCoreNum": used}, edition, soc)
            assert found == (used > count)
    assert broken("USED-CORE-NUM-POSITIVE", {"usedCoreNum": 0}, edition)


@both_editions
def test_a_cores_share_is_within_the_whole(edition):
    for axis in "MN":
        for extent in (500, 512):
            for value in (extent - 1, extent, extent + 1, extent + 12, extent + 16):
                fields = {f"singleCore{axis}": value}
                found = broken(f"SINGLE-CORE-{axis}", fields, edition, m=extent, n=extent)
                assert found == (value > extent)
    for value in (256, 511, 512, 513, 1024):
        assert broken("SINGLE-CORE-K", {"singleCoreK": value}, edition) == (value != 512)


LONG = 65536
SIDES = [
    ("A", {"trans_a": False}, "k", "m"),
    ("A", {"trans_a": True}, "m", "k"),
    ("B", {"trans_b": False}, "n", "k"),
    ("B", {"trans_b": True}, "k", "n"),
]


@pytest.mark.parametrize(("operand", "trans", "inner", "outer"), SIDES)
def test_stored_rows_of_nd_operands_are_short_or_checked(operand, trans, inner, outer):
    """The inner axis has a limit and the outer has none, by operand and transposition."""
    rule = f"{operand}-INNER-EXTENT"
    for edition in EDITIONS:
        for reading in ("documented", "effective"):
            how = {"edition": edition, "reading": reading} | trans
            limited = edition == "001" or reading == "documented"
            for length in (1, LONG - 1, LONG, 10 * LONG):
                want = limited and length >= LONG
                assert broken(rule, {}, **how, **{inner: length}) == want
                assert not broken(rule, {}, **how, **{outer: length})
            nz = {f"format_{operand.lower()}": "NZ"}
            assert not broken(rule, {}, **how, **nz, **{inner: LONG})
    # Of the newer edition: intrinsicsCheck lifts the limit, and Ascend 950 has none.
    assert not broken(rule, {}, intrinsics_check=True, **trans, **{inner: LONG})
    assert not broken(rule, {}, soc=NEW, **trans, **{inner: LONG})
    older = {"edition": "001"} | trans | {inner: LONG}
    assert broken(rule, {}, intrinsics_check=True, **older)
    assert broken(rule, {}, soc=NEW, **older)


@pytest.mark.parametrize(("operand", "trans", "inner"), [side[:3] for side in SIDES])
def test_long_rows_are_advised_to_be_checked(operand, trans, inner):
    def advised(soc=A2, **keys):
        other = {"trans_b": False} if operand == "A" else {"trans_a": True}
        problem = Problem(**({"m": 16, "n": 16, "k": 16, "chip": soc.name} | other | trans | keys))
        found = advise(RuleCase(make_tiling(problem), problem, soc))
        return [a.message for a in found if a.id == "INTRINSICS-CHECK"]

    field = {"m": "M", "n": "N", "k": f"K{operand.lower()}"}[inner]
    want = (
        f"{field} = {LONG} is longer than {LONG - 1}, a stored row of {operand}: enable "
        "intrinsicsCheck in MatmulConfig"
    )
    assert advised(**{inner: LONG}) == [want]
    assert advised(**{inner: LONG - 1}) == []
    assert advised(**{inner: LONG}, intrinsics_check=True) == []
    assert advised(NEW, **{inner: LONG}) == []


@both_editions
def test_k_of_the_mdl_template_is_the_operands(edition):
    """By the letter Ka / baseK > stepKa (Kb / baseK > stepKb) asks for stepM (stepN) of 1."""
    for rule, step, step_k in (
        ("MDL-STEP-M", "stepM", "stepKa"),
        ("MDL-STEP-N", "stepN", "stepKb"),
    ):
        for steps in (1, 3, 4, 5):
            for value in (1, 2):
                fields = {"baseK": 128, step_k: steps, step: value}
                for reading in ("effective", "documented"):
                    found = broken(rule, fields, edition, reading=reading)
                    assert found == (value > 1 and steps < 4)
                assert not broken(rule, fields, edition, template="NORM")


@both_editions
def test_iterations_along_k_are_multiples(edition):
    for step_ka in range(1, 20):
        for step_kb in (1, 2, 3, 5):
            ka, kb = (-(-496 // (16 * steps)) for steps in (step_ka, step_kb))
            fields = {"stepKa": step_ka, "stepKb": step_kb}
            want = ka % kb != 0 and kb % ka != 0
            for reading in ("effective", "documented"):
                found = broken("MDL-K-STEP-MULTIPLE", fields, edition, reading=reading, k=496)
                assert found == want
    assert not broken("MDL-K-STEP-MULTIPLE", {"stepKa": 2, "stepKb": 3}, edition, template="NORM")


@both_editions
def test_a_full_buffer_is_legal_but_by_the_letter(edition):
    # 2 x 128 x 128 half in L0A, 128 x 256 in L0B, 128 x 256 x 4 B in L0C, 256 floats of bias.
    problem = Problem(m=512, n=512, k=512, bias="float")
    tiling = make_tiling(problem, baseM=128, baseN=256, baseK=128, dbL0A=2)
    assert check_tiling(tiling, problem, A2, edition).legal
    found = check_tiling(tiling, problem, A2, edition, "documented").findings
    assert [finding.rule for finding in found] == [
        "L0A-CAPACITY",
        "L0B-CAPACITY",
        "L0C-CAPACITY",
        "BIAS-TABLE-CAPACITY",
    ]


@both_editions
@pytest.mark.parametrize("reading", ["documented", "effective"])
@pytest.mark.parametrize("axis", ["M", "N"])
def test_the_step_over_all_of_k_is_the_problems_by_the_letter(edition, reading, axis):
    """Of K = 512 a core has 256: steps of 4 blocks of 64 hold the core's K, and half of Ka."""
    step_k, rule = {"M": ("stepKa", "MDL-STEP-M"), "N": ("stepKb", "MDL-STEP-N")}[axis]
    for step in range(1, 10):
        fields = {f"step{axis}": 2, step_k: step, "baseK": 64, "singleCoreK": 256}
        found = broken(rule, fields, edition, reading=reading, template="MDL", split_k=True)
        assert found == (step < (8 if reading == "documented" else 4))
