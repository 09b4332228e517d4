"""MxMatmul: mxTypePara by its bits, when it acts, and what K and the scales must be (seed 000)."""

import dataclasses

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.errors import RequestError
from cubecore.tiling.model.mx_type_para import PLAIN, MxTypePara, scale_factor
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import check_tiling, rule_named, rules
from cubecore.tiling.rules.model import RuleCase
from harness import make_tiling

NEW = chip("Ascend950PR_9589")
NAMES = ("scaleFactorKa", "scaleFactorKb", "scaleFactorM", "scaleFactorN")
FIRST_BIT = dict(zip(NAMES, (0, 8, 16, 24), strict=True))
ON_FACTORS = ("MX-SPARE-BITS", "MX-FACTOR-", "MX-SCALE-")
UNSTATED = {"edition": "001", "reading": "documented"}


def mx_problem(**options):
    extents = {"m": 256, "n": 256, "k": 512, "a": "fp8_e5m2_t", "scale_a": "fp8_e8m0_t"}
    return Problem(**(extents | options))


def tiling_of(problem, **fields):
    base = {"baseM": 64, "baseN": 64, "baseK": 64, "stepKa": 2, "stepKb": 2, "mxTypePara": PLAIN}
    return make_tiling(problem, **(base | fields))


def broken(problem, edition="000", reading="effective", **fields):
    found = check_tiling(tiling_of(problem, **fields), problem, NEW, edition, reading).findings
    return {f.rule for f in found}


def about_factors(names):
    return {name for name in names if name.startswith(ON_FACTORS)}


def test_each_factor_is_seven_bits_of_its_byte():
    for name, bit in FIRST_BIT.items():
        for value in (1, 2, 64, 127):
            packed = MxTypePara(**{name: value}).pack()
            rest = sum(1 << other for key, other in FIRST_BIT.items() if key != name)
            assert packed == rest + value * 2**bit
            assert getattr(MxTypePara.unpack(packed), name) == value
    assert PLAIN == 0x01010101
    assert MxTypePara(2, 3, 4, 5).pack() == 0x05040302


def test_packing_is_undone_by_unpacking():
    rng = np.random.default_rng(7)
    for factors in rng.integers(1, 128, (200, 4)).tolist():
        para = MxTypePara(*factors)
        assert MxTypePara.unpack(para.pack()) == para
        assert para.pack() < 2**31


@pytest.mark.parametrize("name", NAMES)
def test_a_factor_is_1_to_127(name):
    for wrong in (0, 128, -1):
        with pytest.raises(RequestError) as refused:
            MxTypePara(**{name: wrong})
        assert str(refused.value) == f"{name} must be in [1, 127], got {wrong}"
    without = PLAIN & ~(0x7F << FIRST_BIT[name])
    with pytest.raises(RequestError) as refused:
        MxTypePara.unpack(without)
    assert str(refused.value) == f"{name} must be in [1, 127], got 0"
    for spare in (7, 15, 23, 31):
        assert scale_factor(PLAIN | 1 << spare, name) == 1


def test_the_other_bits_are_clear():
    for bit in (7, 15, 23, 31):
        with pytest.raises(RequestError) as refused:
            MxTypePara.unpack(PLAIN | 1 << bit)
        want = f"mxTypePara must leave bits 7, 15, 23 and 31 clear, got 0x{1 << bit:08x}"
        assert str(refused.value) == want


@pytest.mark.parametrize("reading", ["effective", "documented"])
@pytest.mark.parametrize(
    ("name", "factor_k", "step"),
    [("scaleFactorM", "scaleFactorKa", "stepKa"), ("scaleFactorN", "scaleFactorKb", "stepKb")],
)
def test_more_along_m_or_n_needs_all_of_k(name, factor_k, step, reading):
    scale = "A" if name == "scaleFactorM" else "B"
    for k in (500, 512):
        problem = mx_problem(k=k)
        for steps in (1, 2, 4, 8):
            for along in range(1, 9):
                para = MxTypePara(**{name: 2, factor_k: along}).pack()
                found = broken(problem, reading=reading, **{step: steps, "mxTypePara": para})
                whole = 64 * steps * along >= k
                assert (f"MX-SCALE-{scale}-WHOLE-K" in found) == (not whole)
                ones = MxTypePara(**{factor_k: along}).pack()
                found = broken(problem, reading=reading, **{step: steps, "mxTypePara": ones})
                assert f"MX-SCALE-{scale}-WHOLE-K" not in found


@pytest.mark.parametrize("reading", ["effective", "documented"])
def test_no_more_of_a_scale_is_loaded_than_exists(reading):
    cases = (
        ("scaleFactorKa", "KA", "k", "stepKa", {}),
        ("scaleFactorKb", "KB", "k", "stepKb", {}),
        ("scaleFactorM", "M", "m", "stepM", {"scaleFactorKa": 8}),
        ("scaleFactorN", "N", "n", "stepN", {"scaleFactorKb": 8}),
    )
    for name, slug, key, step, others in cases:
        for extent in (384, 400, 512):
            problem = mx_problem(**{key: extent, "template": "MDL"})
            for steps in (1, 2, 3):
                for factor in range(1, 10):
                    para = MxTypePara(**({name: factor} | others)).pack()
                    found = broken(problem, reading=reading, **{step: steps, "mxTypePara": para})
                    loaded = 64 * steps * factor
                    # The last load may be ragged: it must still begin within what exists.
                    begins = 64 * steps * (factor - 1)
                    right = begins < extent if reading == "effective" else loaded <= extent
                    want = factor == 1 or right
                    assert (f"MX-SCALE-{slug}-EXTENT" in found) != want


def test_mx_type_para_acts_in_mdl_and_with_scales_only():
    wrong = {"mxTypePara": -1}  # every bit set
    mdl = mx_problem()
    assert len(about_factors(broken(mdl, **wrong))) > 3
    for problem in (mx_problem(template="NORM"), Problem(m=256, n=256, k=512, a="float16")):
        assert about_factors(broken(problem, **wrong)) == set()
        (advice,) = (
            a
            for a in check_tiling(tiling_of(problem, **wrong), problem, NEW).advice
            if a.id == "MX-TYPE-PARA-UNUSED"
        )
        where = "the NORM template" if problem.mx else "a matmul without scales"
        assert advice.message == f"mxTypePara = -1 has no effect in {where}"
        assert advice.source == "TCubeTiling structure, newer edition, table 1"
    used = check_tiling(tiling_of(mdl), mdl, NEW).advice
    assert "MX-TYPE-PARA-UNUSED" not in {a.id for a in used}


def test_the_older_edition_does_not_know_mx():
    case = RuleCase(tiling_of(mx_problem(), mxTypePara=0), mx_problem(k=33, pos_a="TSCM"), NEW)
    named = [r for r in rules() if r.id.startswith("MX-")]
    assert len(named) == 13
    for declared in named:
        assert declared.measure(case) is not None
        assert declared.measure(dataclasses.replace(case, **UNSTATED)) is None


def test_base_k_is_a_multiple_of_64():
    for dtype in ("fp8_e4m3fn_t", "fp8_e5m2_t", "fp4x2_e2m1_t", "fp4x2_e1m2_t"):
        for trans_a, trans_b in ((False, False), (True, True), (False, True)):
            problem = mx_problem(a=dtype, trans_a=trans_a, trans_b=trans_b)
            for base_k in range(16, 257, 16):
                found = broken(problem, baseK=base_k, reading="documented")
                assert ("MX-BASE-K-ALIGNMENT" in found) == (base_k % 64 != 0)


POSITIONS = ("GM", "TSCM", "VECOUT")


def test_a_cores_k_by_position():
    for pos_a in POSITIONS:
        for pos_b in POSITIONS:
            for k in range(1, 200):
                problem = mx_problem(k=k, pos_a=pos_a, pos_b=pos_b)
                groups = -(-k // 32)
                free = pos_a == pos_b == "GM"
                found = broken(problem)
                assert ("MX-SINGLE-CORE-K" in found) == (not free and groups % 2 == 1), k


def test_an_odd_count_of_scales_is_padded_by_whoever_stores_them():
    for k in range(1, 200):
        problem = mx_problem(k=k)
        advice = {a.id: a for a in check_tiling(tiling_of(problem), problem, NEW).advice}
        groups = -(-k // 32)
        assert ("MX-SCALE-PADDING" in advice) == (groups % 2 == 1)
        assert problem.scale_k == groups + groups % 2
    found = {
        a.id: a for a in check_tiling(tiling_of(mx_problem(k=65)), mx_problem(k=65), NEW).advice
    }
    want = "ceil(singleCoreK / 32) = 3 is odd: store scaleA and scaleB with a 0 more along K"
    assert found["MX-SCALE-PADDING"].message == want
    # Where A or B lies on chip the count is even anyway.
    problem = mx_problem(k=65, pos_a="TSCM")
    advised = {a.id for a in check_tiling(tiling_of(problem), problem, NEW).advice}
    assert "MX-SCALE-PADDING" not in advised


def test_the_scales_of_every_block_lie_in_l1():
    problem = mx_problem(k=2048)
    fields = {"baseM": 48, "baseN": 80, "baseK": 64, "stepM": 1, "stepN": 1}
    fields |= {"stepKa": 4, "stepKb": 2, "depthA1": 8, "depthB1": 2}
    blocks = 8 * 48 * 64 + 2 * 64 * 96  # B's 80 columns lie in whole C0 of 32

    def used(reading="effective", template="MDL", **factors):
        p = dataclasses.replace(problem, template=template)
        tiling = tiling_of(p, **fields, mxTypePara=MxTypePara(**factors).pack())
        return rule_named("L1-CAPACITY").measure(RuleCase(tiling, p, NEW, "000", reading)).used

    # depthA1 is two loads of A, depthB1 one of B
    assert used() == blocks + 48 * 8 * 64 // 32 + 80 * 2 * 64 // 32
    assert used(scaleFactorKa=2) == used() + 48 * 8 * 64 // 32  # each buffer holds a load
    more = {"scaleFactorKa": 8, "scaleFactorKb": 3, "scaleFactorM": 2}
    assert used(**more) == blocks + 2 * 48 * 8 * 4 * 64 // 32 + 80 * 3 * 2 * 64 // 32
    assert used(template="NORM", **more) == used()
    assert used("documented", **more) == 8 * 48 * 64 + 2 * 64 * -(-80 // 32)
