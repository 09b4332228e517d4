"""Our rules against the vendor's own answers, and our plans for the problems it was asked."""

import pytest
from tools.evidence.vendor_agreement import AGREEMENTS, GAINS, UNNAMED

from cubecore.tiling.rules.checker import check_tiling, rule_named, rules
from cubecore.tiling.rules.model import EDITIONS, READINGS, RuleCase, satisfied
from cubecore.tiling.rules.ub import trans_length
from tiling.reference import answered, plans_beside_answers, ratios_by_cores, recorded

NEVER_BROKEN = (
    ("USED-CORE-NUM-RANGE", "documented"),
    ("L0A-CAPACITY", "effective"),
    ("L0C-CAPACITY", "effective"),
    ("DEPTH-A1", "effective"),
    ("BASE-M-ALIGNMENT", "effective"),
    ("BASE-N-ALIGNMENT", "effective"),
    ("BASE-M-POSITIVE", "effective"),
    ("STEP-KB-POSITIVE", "documented"),
    ("MDL-STEP-N", "effective"),
    ("MX-BASE-K-ALIGNMENT", "documented"),
    ("MX-SPARE-BITS", "documented"),
    ("MX-SCALE-A-WHOLE-K", "documented"),
    ("MX-SCALE-KA-EXTENT", "effective"),
    ("TRANS-LENGTH", "documented"),
)
"""Constraints that the reference sheet says its answers always satisfy."""


def broken(rule_id, edition, reading):
    """Return the ids of the answers that break our rule."""
    measure = rule_named(rule_id).measure
    return {
        record["id"]
        for record, p, soc, t in answered()
        if not satisfied(RuleCase(t, p, soc, edition, reading), measure)
    }


def named(name):
    return {record["id"] for record, *_ in answered() if name in record["breaks"]}


@pytest.mark.parametrize("agreement", AGREEMENTS, ids=lambda a: a.name)
def test_our_rules_find_what_the_record_found(agreement):
    theirs = named(agreement.name)
    for edition in EDITIONS:
        ours = broken(agreement.rule, edition, agreement.reading)
        if agreement.older and edition != agreement.edition:
            assert ours != theirs
            continue
        only = {"cubecore": ours - theirs, "the record": theirs - ours}
        for side, answers in only.items():
            explained = {i for d in agreement.differences if d.by == side for i in d.answers}
            assert answers == explained
    (other,) = set(READINGS) - {agreement.reading}
    counts = tuple(len(broken(agreement.rule, edition, other)) for edition in EDITIONS)
    assert counts == agreement.elsewhere
    assert (len(theirs), agreement.found) == (
        agreement.broken,
        len(broken(agreement.rule, agreement.edition, agreement.reading)),
    )


def test_every_name_of_the_record_is_a_rule():
    names = {name for record in recorded("answers") for name in record["breaks"]}
    assert names == {agreement.name for agreement in AGREEMENTS}


@pytest.mark.parametrize("unnamed", UNNAMED, ids=lambda u: u.rule)
def test_rules_that_the_record_does_not_name(unnamed):
    for reading, counts in (("documented", unnamed.documented), ("effective", unnamed.effective)):
        found = tuple(len(broken(unnamed.rule, edition, reading)) for edition in EDITIONS)
        assert found == counts


def test_every_broken_rule_is_in_the_table():
    known = {a.rule for a in AGREEMENTS} | {u.rule for u in UNNAMED}
    assert len(known) == len({a.rule for a in AGREEMENTS}) + len(UNNAMED)
    for declared in rules():
        if declared.id not in known:
            for edition in EDITIONS:
                for reading in READINGS:
                    assert broken(declared.id, edition, reading) == set(), declared.id


def test_trans_length_is_the_answered_one():
    answers = [(t.transLength, RuleCase(t, p, soc)) for _, p, soc, t in answered()]
    assert all(trans_length(case) == length for length, case in answers)
    assert sum(length > 0 for length, _ in answers) == 75


@pytest.mark.parametrize(("rule_id", "reading"), NEVER_BROKEN)
def test_what_the_vendor_always_keeps(rule_id, reading):
    assert broken(rule_id, "000", reading) == set()


PART = 10
"""An ordinary run plans one recorded problem of so many; a sweep plans them all."""


@pytest.mark.parametrize("every", [PART, pytest.param(1, marks=pytest.mark.sweep)])
def test_every_plan_is_legal(every):
    plans = plans_beside_answers(every)
    assert len(plans) >= 480 // every
    for beside in plans:
        ours, p, soc = beside.ours, beside.problem, beside.chip
        for ranked in (ours.best, *ours.alternatives):
            assert check_tiling(ranked.tiling, p, soc).findings == (), p
            assert not ranked.tiling.mismatches(*p.extents)
            assert ranked.predicted.cycles >= ours.best.predicted.cycles
        assert ours.best.predicted.cycles >= ours.search_bound >= ours.lower_bound


@pytest.mark.parametrize("every", [PART, pytest.param(1, marks=pytest.mark.sweep)])
def test_no_legal_answer_is_predicted_to_be_faster_than_ours(every):
    legal = [beside for beside in plans_beside_answers(every) if beside.theirs is not None]
    assert len(legal) >= 400 // every
    assert [(beside.id, beside.ratio) for beside in legal if beside.ratio < 1] == []


@pytest.mark.sweep
def test_the_ratios_are_the_documents():
    """To 10 %: the timing's constants may move a little before the page is made anew."""
    found = ratios_by_cores()
    assert set(found) == {gains.cores for gains in GAINS}
    for gains in GAINS:
        here = found[gains.cores]
        assert here["answers"] == gains.answers
        for name in ("geometric_mean", "least", "p10", "median", "p90", "largest"):
            assert here[name] == pytest.approx(getattr(gains, name), rel=0.1), name
