"""Surveys of public samples and operator projects for Ascend 950: what they hold, their sums."""

from collections import Counter

import pytest
from tools.evidence import operator_projects, samples_950
from tools.evidence.samples_950 import told

OUTCOMES = {"verified", "verified, findings", "not compared", "failed", "compiles", "refused"}


@pytest.mark.parametrize("survey", [samples_950, operator_projects])
def test_a_survey_holds_names_and_outcomes_in_order(survey):
    lines = survey.DATA.read_text("utf-8").splitlines()
    assert lines == sorted(lines)
    for row in survey.rows():
        assert row["outcome"] in OUTCOMES
        assert (row["outcome"] in {"failed", "refused"}) == ("why" in row)
        assert set(row) <= {"sample", "project", "headers", "outcome", "why"}


def test_samples_verify_on_950():
    outcomes = Counter(row["outcome"] for row in samples_950.rows())
    assert outcomes["verified"] >= 50


@pytest.mark.parametrize(
    ("code", "line", "outcome"),
    [
        (0, "add: verified in 3 s", {"outcome": "verified"}),
        (0, "add: finished in 3 s, no findings; result not compared", {"outcome": "not compared"}),
        (1, "add: FAILED: 1 finding; verified by itself in 3 s", {"outcome": "verified, findings"}),
        (
            1,
            "add: make failed: add.asc:3 does not compile: 'Huh' was not declared in this scope",
            {"outcome": "failed", "why": "Huh"},
        ),
    ],
)
def test_the_last_line_of_a_sample_tells_its_outcome(code, line, outcome):
    assert told(code, line) == outcome
