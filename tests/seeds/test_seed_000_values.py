"""Values of single fields in seeds 000 and 001: signs, flags, fractals and depths, as stated.

Every value is tried in both editions and both readings; only the effective reading asks for what
an edition leaves out.
"""

import pytest

from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.checker import rule_named
from cubecore.tiling.rules.model import RuleCase
from harness import A2, make_tiling

CASES = [(e, r) for e in ("000", "001") for r in ("effective", "documented")]
every_case = pytest.mark.parametrize(("edition", "reading"), CASES)
IN_BOTH = ("usedCoreNum", "depthA1", "depthB1", "stepM", "stepN", "stepKa", "stepKb")
IN_NEWER = (*(f"singleCore{x}" for x in "MNK"), *(f"base{x}" for x in "MNK"))
SLUGS = {
    "usedCoreNum": "USED-CORE-NUM",
    **{f"singleCore{x}": f"SINGLE-CORE-{x}" for x in "MNK"},
    **{f"base{x}": f"BASE-{x}" for x in "MNK"},
    **{f"depth{x}": f"DEPTH-{x}" for x in ("A1", "B1")},
    **{f"step{x}": f"STEP-{x.upper()}" for x in ("M", "N", "Ka", "Kb")},
}
FLAGS = {
    "isBias": ("IS-BIAS", {0, 1}),
    "iterateOrder": ("ITERATE-ORDER", {0, 1}),
    "dbL0A": ("DB-L0A", {1, 2}),
    "dbL0B": ("DB-L0B", {1, 2}),
    "dbL0C": ("DB-L0C", {1, 2}),
}


def passes(rule, edition, reading, fields, **keys):
    """Return whether a rule lets a tiling pass, or has nothing to say."""
    problem = Problem(**({"m": 256, "n": 256, "k": 256} | keys))
    usual = {"usedCoreNum": 1, "depthA1": 1, "depthB1": 1}
    tiling = make_tiling(problem, **(usual | fields))
    measure = rule_named(rule).measure(RuleCase(tiling, problem, A2, edition, reading))
    return measure is None or bool(measure.holds())


@every_case
@pytest.mark.parametrize("field", SLUGS)
def test_a_field_is_greater_than_0(field, edition, reading):
    stated = field in IN_BOTH or edition == "000" or reading == "effective"
    for value in (-(2**31), -1, 0, 1, 2, 2**31 - 1):
        found = passes(f"{SLUGS[field]}-POSITIVE", edition, reading, {field: value})
        assert found == (value > 0 or not stated)


@every_case
@pytest.mark.parametrize("field", FLAGS)
def test_a_flag_has_two_values(field, edition, reading):
    rule, values = FLAGS[field]
    for value in range(-2, 6):
        assert passes(rule, edition, reading, {field: value}) == (value in values)


@every_case
@pytest.mark.parametrize("axis", "MN")
def test_base_m_and_n_are_multiples_of_16(axis, edition, reading):
    for dtype in ("half", "int8_t", "float"):
        for value in range(1, 130):
            found = passes(
                f"BASE-{axis}-ALIGNMENT", edition, reading, {f"base{axis}": value}, a=dtype
            )
            assert found == (value % 16 == 0)


@every_case
@pytest.mark.parametrize(("depth", "own", "along"), [("A1", "M", "Ka"), ("B1", "N", "Kb")])
def test_depth_is_one_or_two_steps(depth, own, along, edition, reading):
    for step, step_k in ((1, 1), (1, 3), (2, 1), (3, 2)):
        others = {"stepM": 5, "stepN": 5, "stepKa": 5, "stepKb": 5}
        fields = others | {f"step{own}": step, f"step{along}": step_k}
        for value in range(1, 40):
            found = passes(f"DEPTH-{depth}", edition, reading, fields | {f"depth{depth}": value})
            assert found == (value in (step * step_k, 2 * step * step_k))


@pytest.mark.parametrize("reading", ["effective", "documented"])
def test_base_k_is_a_multiple_of_64_with_scales(reading):
    for value in range(16, 400, 16):
        for edition in ("000", "001"):
            found = passes(
                "MX-BASE-K-ALIGNMENT",
                edition,
                reading,
                {"baseK": value},
                a="fp8_e5m2_t",
                scale_a="fp8_e8m0_t",
                chip="Ascend950PR_9589",
            )
            unstated = (edition, reading) == ("001", "documented")
            assert found == (value % 64 == 0 or unstated)
