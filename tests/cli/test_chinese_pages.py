"""HTML reports in Chinese: each text of a page's template has a line, and the page may run them."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

import cubecore
from cubecore.cli.zh.pages import chinese_page
from cubecore.cli.zh.translation import catalogue
from workflows.command import cli

REPORTS = Path(cubecore.__file__).parent / "reports"
TEMPLATES = sorted((REPORTS / "templates").glob("*.html"))
SHAPE = ("--m", "64", "--n", "64", "--k", "64")
NAMES = {
    "M x N x K",
    "base M x N x K",
    "singleCore M x N x K",
    "stepKa, stepKb",
    "depthA1, depthB1",
}
"""Texts of templates that are names of fields."""
CHINESE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")


def texts(template: str) -> set[str]:
    """Return the texts between the tags of a template that hold no value."""
    bare = re.sub(r"{#.*?#}|<style.*?</style>|<script.*?</script>", "", template, flags=re.DOTALL)
    found = (" ".join(text.split()) for text in re.findall(r">([^<>{}]+)<", bare))
    return {text for text in found if re.search(r"[a-z]{2}", text)} - NAMES


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_each_text_of_a_template_has_a_line(path):
    said = {text for text in texts(path.read_text("utf-8")) if not text.startswith("cubecore")}
    assert {text for text in said if text not in catalogue("report")} - {"iterateOrder"} == set()


def test_each_line_is_of_a_text_that_pages_say():
    said = "\n".join(
        re.sub(r'"\s*\+\s*"|"\n\s+"|"\n\s+f"', "", path.read_text("utf-8"))
        for folder in (REPORTS, REPORTS.parent / "answers", REPORTS.parent / "presented")
        for path in folder.rglob("*")
        if path.suffix in {".py", ".js", ".html"}
    )
    words = set(re.findall(r"[A-Za-z]{3,}", said))
    gone = {
        english: missing
        for english in catalogue("report")
        if (missing := set(re.findall(r"[A-Za-z]{3,}", re.sub(r"\{\w+\}", "", english))) - words)
    }
    # Titles of rules, reasons and limits are said where they are declared.
    declared = "\n".join(
        path.read_text("utf-8")
        for folder in ("tiling", "advice", "timing", "workflows", "isa", "models")
        for path in (REPORTS.parent / folder).rglob("*.py")
    )
    assert {e for e, missing in gone.items() if not all(w in declared for w in missing)} == set()


def test_lines_are_chinese_with_the_places_of_the_english():
    for english, chinese in catalogue("report").items():
        places = re.findall(r"\{(\w+)\}", english)
        assert sorted(set(places)) == sorted(places), english
        assert sorted(re.findall(r"\{(\w+)\}", chinese)) == sorted(places), english


def test_a_report_in_chinese_is_the_english_page_with_words_that_its_policy_allows(tmp_path):
    english, chinese = tmp_path / "en.html", tmp_path / "zh.html"
    for path, language in ((english, "en"), (chinese, "zh")):
        assert cli("time", *SHAPE, "--report", str(path), "--lang", language).code == 0
    assert 'id="words"' not in english.read_text("utf-8")
    page = chinese.read_text("utf-8")
    policy = unescape(re.search(r'Policy" content="([^"]*)"', page)[1])
    script = page.index('id="words"')
    assert script < page.index('id="data"')
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    for text in scripts:
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "http" not in policy
    words = json.loads(re.search(r'id="words">(.*?)</script>', page, re.DOTALL)[1])
    assert dict(words["page"]["whole"])["What sets the time?"] == "时间由什么决定？"


def test_a_page_without_a_script_gets_one_that_its_policy_allows():
    page = (
        '<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;">'
        "<body><h1>Cases</h1></body>"
    )
    told = chinese_page(page)
    script = re.search(r"<script>(.*?)</script>", told, re.DOTALL)[1]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in unescape(told)
    assert CHINESE.search(told)
