"""The page of the class API's rules: its kinds of findings and its tests are there."""

import re
from pathlib import Path

from cubecore.machine.finding_kinds import KINDS

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "frontends" / "cpp"


def rows():
    text = (ROOT / "docs" / "class_api_rules.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ") and "| page |" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_rule_has_a_page_a_check_and_tests_that_exist():
    assert len(rows()) > 100
    for rule, page, check, tests in rows():
        assert all((rule, page, check)), rule
        for name in filter(None, tests.split(", ")):
            assert (TESTS / f"test_{name}.py").is_file(), (rule, name)


def test_every_kind_of_finding_that_a_check_names_is_one():
    words = {
        word for *_, check, _ in rows() for word in re.findall(r"\b[a-z]+(?:-[a-z]+)+\b", check)
    }
    kinds = {word for word in words if word.split("-")[0] in {kind.split("-")[0] for kind in KINDS}}
    assert kinds <= set(KINDS)
    assert {"queue-full", "flag-unmet", "race-waw", "rows-overlap"} <= kinds
