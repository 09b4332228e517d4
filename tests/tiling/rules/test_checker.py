"""The rules, by the pairs of tiling.pairs and by what they have in common."""

from dataclasses import replace

import pytest

from cubecore.chips import chip, chip_names
from cubecore.chips.products import combinations
from cubecore.citations import EDITIONS, TITLES
from cubecore.errors import RequestError
from cubecore.tiling.rules.checker import (
    NOT_CHECKED,
    check_tiling,
    explain,
    legal_mask,
    rule_named,
    rules,
)
from cubecore.tiling.rules.model import READINGS, RuleCase
from tiling.cases import B3, problem, stack, tiling
from tiling.pairs import PAIRS as PLAIN
from tiling.pairs_formats import PAIRS as FORMATS
from tiling.pairs_kernel import PAIRS as CUT
from tiling.pairs_mx import PAIRS as SCALED
from tiling.pairs_places import PAIRS as PLACES

PAIRS = (*PLAIN, *FORMATS, *SCALED, *PLACES, *CUT)


def judged(rule_id, case):
    measure = rule_named(rule_id).measure(case)
    return measure is None or bool(measure.holds())


def finding(rule_id, t, p, soc=B3, **how):
    found = check_tiling(t, p, soc, **how).findings
    return next((f for f in found if f.rule == rule_id), None)


def test_the_base_tiling_is_legal():
    result = check_tiling(tiling(), problem(), B3)
    assert result.legal
    assert result.to_json()["legal"] is True
    assert result.findings == ()


def test_every_rule_has_a_pair():
    assert {pair.rule for pair in PAIRS} == {r.id for r in rules()}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}-{pair.how}")
def test_right_and_wrong(pair):
    soc = chip(pair.soc)
    right = problem(**pair.problem)
    wrong = problem(**(pair.problem if pair.wrong_problem is None else pair.wrong_problem))
    assert finding(pair.rule, tiling(right, **pair.right), right, soc, **pair.how) is None
    found = finding(pair.rule, tiling(wrong, **pair.wrong), wrong, soc, **pair.how)
    assert found.message == pair.line
    assert found.message.endswith(found.remedy)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.rule}-{pair.how}")
def test_the_remedy_makes_the_rule_hold(pair):
    soc = chip(pair.soc)
    wrong = problem(**(pair.problem if pair.wrong_problem is None else pair.wrong_problem))
    t = tiling(wrong, **pair.wrong)
    found = finding(pair.rule, t, wrong, soc, **pair.how)
    if not found.remedy:
        assert pair.rule == "B-INNER-EXTENT"
        return
    assert found.tiling_changes or found.problem_changes
    repaired = replace(t, **found.tiling_changes)
    better = replace(wrong, **found.problem_changes)
    assert judged(pair.rule, RuleCase(repaired, better, soc, **pair.how))


def test_findings_carry_the_contracts_keys():
    (found,) = check_tiling(
        tiling(baseK=192, stepKa=3, stepKb=3, depthA1=3, depthB1=3), problem(), B3
    ).findings[:1]
    assert found.to_json() == {
        "rule": "L0A-CAPACITY",
        "used": 98304,
        "limit": 65536,
        "relation": "<=",
        "unit": "B",
        "terms": "2 x 128 x 192 x float16",
        "message": "L0A-CAPACITY: 2 x 128 x 192 x float16 = 98304 B, Ascend910B3 allows 65536 B: "
        "over by 32768 B; largest baseK here is 128",
        "remedy": "largest baseK here is 128",
        "source": "TCubeTiling structure, newer edition, table 2",
        "rows": ["000/t2/l0a-capacity"],
        "tiling_changes": {"baseK": 128},
        "problem_changes": {},
    }
    depth = finding("DEPTH-A1", tiling(depthA1=5), problem())
    assert (depth.used, depth.limit, depth.unit) == (5, [4, 8], "")


def test_all_findings_come_at_once_in_a_fixed_order():
    wrong = tiling(usedCoreNum=5, baseM=100, dbL0C=3, iterateOrder=2, depthA1=3)
    found = [f.rule for f in check_tiling(wrong, problem(), B3).findings]
    assert found == [
        "USED-CORE-NUM-PRODUCT",
        "BASE-M-ALIGNMENT",
        "DEPTH-A1",
        "ITERATE-ORDER",
        "DB-L0C",
        "L0C-CAPACITY",
    ]


def test_zero_fields_are_one_finding_each_and_never_a_division_by_zero():
    zero = tiling(**dict.fromkeys(("baseM", "baseN", "baseK", "singleCoreM", "singleCoreN"), 0))
    found = [f.rule for f in check_tiling(zero, problem(), B3).findings]
    assert found == [
        "SINGLE-CORE-M-POSITIVE",
        "SINGLE-CORE-N-POSITIVE",
        "BASE-M-POSITIVE",
        "BASE-N-POSITIVE",
        "BASE-K-POSITIVE",
    ]
    nothing = tiling(**dict.fromkeys(("stepM", "stepN", "stepKa", "stepKb", "singleCoreK"), -1))
    found = [f.rule for f in check_tiling(nothing, problem(), B3, reading="documented").findings]
    assert "STEP-KA-POSITIVE" in found
    assert "MDL-STEP-M" not in found


RESERVED = (
    *("shareMode", "shareL1Size", "shareL0CSize", "shareUbSize"),
    *("batchM", "batchN", "singleBatchM", "singleBatchN"),
)


def test_no_rule_reads_a_reserved_field():
    for value in (7, -1):
        assert check_tiling(tiling(**dict.fromkeys(RESERVED, value)), problem(), B3).legal
    assert {row.split("/")[2] for row in NOT_CHECKED} == set(RESERVED)


def test_editions_and_readings_are_named():
    for how in ({"edition": "002"}, {"reading": "literal"}):
        with pytest.raises(RequestError):
            check_tiling(tiling(), problem(), B3, **how)
    with pytest.raises(RequestError) as caught:
        check_tiling(tiling(), problem(), B3, reading="efective")
    want = "reading must be effective or documented, got 'efective'; did you mean effective?"
    assert str(caught.value) == want


def test_a_tiling_of_another_problem_is_refused():
    with pytest.raises(RequestError, match=r"^tiling.M must equal the problem's m = 255, got 256$"):
        check_tiling(tiling(), problem(m=255), B3)


def test_types_that_the_chip_lacks_are_refused():
    with pytest.raises(RequestError, match="Mmad, table 4"):
        check_tiling(tiling(), problem(a="float8_e5m2"), B3)


def test_a_longer_row_is_advice_where_it_is_no_finding():
    p = problem(k=65536)
    t = tiling(p)
    result = check_tiling(t, p, B3)
    assert finding("A-INNER-EXTENT", t, p) is None
    assert [a.id for a in result.advice] == ["IDLE-CORES", "INTRINSICS-CHECK"]
    assert finding("A-INNER-EXTENT", t, p, reading="documented") is not None
    checked = problem(k=65536, intrinsics_check=True)
    assert finding("A-INNER-EXTENT", t, checked, reading="documented") is None
    assert "INTRINSICS-CHECK" not in [a.id for a in check_tiling(t, checked, B3).advice]
    newer = chip("Ascend950PR_9589")
    assert finding("A-INNER-EXTENT", t, p, newer, reading="documented") is None
    assert finding("A-INNER-EXTENT", t, p, newer, edition="001") is not None


def test_a_chip_without_bias_table_has_no_bias_table_rule():
    old = chip("Ascend310P3")
    assert old.bt_bytes is None
    assert finding("BIAS-TABLE-CAPACITY", tiling(baseN=4000), problem(bias="float32"), old) is None


def test_template_rules_bind_only_mdl():
    t = tiling(stepM=2, depthA1=16)
    assert finding("MDL-STEP-M", t, problem()) is not None
    for template in ("NORM", "IBSHARE"):
        assert finding("MDL-STEP-M", t, problem(template=template)) is None
        assert finding("MDL-STEP-N", tiling(stepN=2), problem(template=template)) is None
        assert finding("MDL-K-STEP-MULTIPLE", tiling(stepKa=3), problem(template=template)) is None


def test_documented_says_nothing_about_what_tables_do_not_state():
    t = tiling(baseM=4096, isBias=1)
    assert finding("MMAD-M-EXTENT", t, problem(), reading="documented") is None
    assert finding("IS-BIAS-MATCHES", t, problem(), reading="documented") is None
    both = {"reading": "documented", "edition": "001"}
    assert finding("BASE-K-POSITIVE", tiling(baseK=0), problem(), **both) is None
    assert finding("DEPTH-A1-POSITIVE", tiling(depthA1=0), problem(), **both) is not None


@pytest.mark.parametrize("declared", rules(), ids=lambda r: r.id)
def test_every_rule_explains_itself_and_cites_its_page(declared):
    text = explain(declared.id)
    assert "reading" in text.lower()
    assert text.startswith(f"{declared.id}: {declared.title}\n")
    assert declared.text in text
    assert declared.rows or declared.basis
    for edition in EDITIONS:
        own = [row for row in declared.rows if row.startswith(EDITIONS[edition])]
        tables = {f"{TITLES[row[:3]]}, table {row[5]}" for row in own or declared.rows}
        source = declared.source(edition)
        assert source in tables if own or not declared.basis else source == declared.basis


@pytest.mark.parametrize("declared", rules(), ids=lambda r: r.id)
def test_every_rule_says_what_it_is_in_both_readings(declared):
    text = " ".join(explain(declared.id).split()).lower()
    apart = "effective reading" in text and "documented reading" in text
    alone = "effective reading only" in text
    assert apart or alone or "both readings" in text or "readings and editions agree" in text


def test_explain_names_the_nearest_rule():
    with pytest.raises(RequestError) as caught:
        explain("L0A-CAPACTY")
    want = "rule must be one of cubecore's, got 'L0A-CAPACTY'; did you mean L0A-CAPACITY?"
    assert str(caught.value) == want


def test_a_tiny_buffer_has_no_remedy_but_a_finding():
    small = replace(B3, l0a_bytes=100)
    found = finding("L0A-CAPACITY", tiling(), problem(), small)
    assert found.remedy == ""
    assert found.message.endswith("over by 32668 B")
    narrow = replace(B3, l0a_bytes=600)
    found = finding("L0A-CAPACITY", tiling(), problem(), narrow)
    assert found.remedy == "set baseK to 16 and baseM to 16 and dbL0A to 1"


def test_more_columns_than_one_at_once():
    good, bad = tiling(), tiling(baseK=192)
    columns = stack([good, bad, good])
    mask, excluded = legal_mask(columns, problem(), B3)
    assert mask.tolist() == [True, False, True]
    assert excluded["L0A-CAPACITY"] == 1
    assert "DEPTH-A1" not in excluded


@pytest.mark.parametrize("name", chip_names())
@pytest.mark.thinned(4)
def test_every_chip_of_the_catalogue_is_judged_by_its_own_sizes(name):
    soc = chip(name)
    for row in combinations(soc.arch):
        p = problem(chip=name, a=row.a, b=row.b, cores=1)
        t = tiling(p, usedCoreNum=1, singleCoreM=256, singleCoreN=512, baseM=2048, baseN=2048)
        t = replace(t, baseK=64, mxTypePara=0x01010101 if p.mx else 0)
        for edition in EDITIONS:
            for reading in READINGS:
                found = {f.rule: f for f in check_tiling(t, p, soc, edition, reading).findings}
                sizes = (soc.l0a_bytes, soc.l0b_bytes, soc.l0c_bytes)
                rows = zip(("L0A", "L0B", "L0C"), sizes, strict=True)
                assert all(found[f"{x}-CAPACITY"].limit == size for x, size in rows)
                l1 = soc.l1_bytes if reading == "effective" else soc.l1_user_bytes
                assert found["L1-CAPACITY"].limit == l1
