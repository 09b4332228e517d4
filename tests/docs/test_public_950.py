"""Surveys of public samples and operator projects for Ascend 950: what they hold, their sums."""

from collections import Counter

import pytest
from tools.evidence import (
    both_chips,
    class_api_950,
    operator_projects,
    operator_runs,
    samples_950,
)
from tools.evidence.samples_950 import told

OUTCOMES = {
    *("verified", "verified, findings", "not compared", "failed", "compiles", "refused"),
    *("right", "right, findings", "the same", "other files", "leaves no file"),
    *("not verified on 2201", "not verified on 3510"),
}
UNEXPLAINED = {"verified", "not compared", "compiles", "right", "the same", "other files"}
"""Outcomes without a reason."""
SURVEYS = [both_chips, class_api_950, operator_projects, operator_runs, samples_950]


@pytest.mark.parametrize("survey", SURVEYS)
def test_a_survey_holds_names_and_outcomes_in_order(survey):
    lines = survey.DATA.read_text("utf-8").splitlines()
    assert lines == sorted(lines)
    for row in survey.rows():
        assert row["outcome"] in OUTCOMES
        if row["outcome"] in UNEXPLAINED or "why" in row:
            assert (row["outcome"] in UNEXPLAINED) != ("why" in row)
        assert set(row) <= {"sample", "project", "file", "headers", "outcome", "why"}


def test_the_sums_of_surveys():
    sums = {each: Counter(row["outcome"] for row in each.rows()) for each in SURVEYS}
    assert sums[samples_950]["verified"] >= 50
    assert sums[operator_runs]["right"] >= 30
    assert sums[both_chips]["the same"] >= 30
    compiled = sums[class_api_950]["compiles"]
    assert compiled >= 0.85 * len(class_api_950.rows())
    assert compiled >= 200


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
