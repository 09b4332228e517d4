"""The changelog's fragments can be built, and its sections are for users."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
TYPES = [kind["directory"] for kind in SETTINGS["type"]]
FRAGMENTS = sorted((ROOT / SETTINGS["directory"]).glob("+*"))
TEXT = (ROOT / SETTINGS["filename"]).read_text(encoding="utf-8")


def test_the_kinds_of_change_are_those_that_users_know():
    assert TYPES == ["added", "changed", "fixed"]


def test_beside_fragments_there_is_a_page_on_them_alone():
    names = {path.name for path in (ROOT / SETTINGS["directory"]).iterdir()}
    assert names - {path.name for path in FRAGMENTS} == {"README.md"}


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_is_named_for_its_kind_and_says_one_thing(path):
    name, kind, ending = path.name.split(".")
    assert (name[0], kind in TYPES, ending) == ("+", True, "md")
    text = path.read_text(encoding="utf-8")
    assert text.strip()
    assert not text.startswith(("-", "*", "#"))
    assert "\n\n" not in text.strip()


def test_releases_go_behind_the_marker():
    assert TEXT.count(SETTINGS["start_string"]) == 1


def test_no_entry_stands_twice():
    entries = re.findall(r"^- .*(?:\n  .*)*", TEXT, re.MULTILINE)
    assert len(entries) == len(set(entries)) > 10
    headings = re.findall(r"^## .*", TEXT, re.MULTILINE)
    assert len(headings) == len(set(headings))
