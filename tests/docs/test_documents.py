"""What the documents show is what the software does."""

import re
from pathlib import Path

import pytest
from tools.pages import console, decisions

from cubecore.frontends.cpp.toolchain.compiler import has_compiler
from sandbox.machine import missing

ROOT = Path(__file__).resolve().parents[2]

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
LINKING = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GENERATED = {"api.html", "commands.html"}
"""Pages that exist on the site alone."""
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", console.DOCUMENTS)
def test_console_blocks_show_what_the_commands_print(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    if "```cpp title" in text and not has_compiler():
        pytest.skip("no C++ compiler")
    if "$ cubecore judge" in text and missing("auto"):
        pytest.skip(missing("auto"))
    now = console.rendered(text)
    assert console.same(text, now), f"{name} is stale; make docs writes it\n{now}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
@pytest.mark.thinned(6)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "document"}
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize("page", LINKING, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page):
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        there = (page.parent / target).exists() or Path(target).name in GENERATED
        assert there, f"{page.name} links to {target}"


def test_every_page_is_reachable_from_the_readme():
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert page.name in shown or page.name == "README.md", f"README does not name {page.name}"


def test_a_decisions_number_is_its_own():
    numbers = [one.number for one in decisions.decisions()]
    assert len(numbers) > 100
    assert numbers == sorted(set(numbers))  # some are set aside for changes under way


def test_every_heading_of_an_area_has_a_number_a_context_and_a_decision():
    for path in decisions.FOLDER.glob("*.md"):
        _, *entries = re.split(r"^##+ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for entry in entries:
            title = entry.partition("\n")[0]
            assert re.match(r"\d+\. \S", title), f"{path.name}: {title}"
            parts = re.findall(r"\*(Context|Decision|Consequence)\.\*", entry)
            assert parts[:2] == ["Context", "Decision"], f"{path.name}: {title}"


def test_an_anchor_is_the_heading_without_its_punctuation():
    one = decisions.Decision(49, "`mad.k` isn't free: 0.1 % of it", "plans.md", "plans")
    assert one.anchor == "49-madk-isnt-free-01-of-it"


@pytest.mark.parametrize("part", ["src/cubecore", "docs"])
def test_no_text_cites_a_file_that_users_do_not_have(part):
    """The specification's pages are cited by their titles."""
    digests = re.compile(r"\b(?:spec|facts)/\w|isa_semantics|c_api_inventory|\btik\.md")
    texts = [*(ROOT / part).rglob("*.py"), *(ROOT / part).rglob("*.h"), *(ROOT / part).glob("*.md")]
    assert texts
    assert [str(p) for p in texts if digests.search(p.read_text(encoding="utf-8"))] == []
