"""The picture of the packages, and the modules and packages that the documents name."""

import re
from pathlib import Path

import pytest
from tools.pages import architecture

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "cubecore"

PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/decisions").glob("*.md")]
)
PATH = re.compile(r"`([\w./-]+/[\w.-]*)`")
FILE = re.compile(r"`([\w/-]+\.(?:py|toml))`")


def exists(name):
    return any((base / name).exists() for base in (SOURCE, ROOT))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_module_and_package_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    heads = {p.name for base in (SOURCE, ROOT) for p in base.iterdir()}
    named = {name for name in PATH.findall(text) if name.split("/")[0] in heads}
    named |= {name for name in FILE.findall(text) if "/" in name}
    assert sorted(name for name in named if not exists(name)) == []


def test_every_package_has_a_line_in_the_table():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w/]+)/` \|", text, re.MULTILINE))
    packages = {
        path.parent.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("__init__.py")
        if any(p.name != "__init__.py" for p in path.parent.glob("*.py"))
    }
    covered = {"tiling", "isa", "isa/vector", "machine", "timing", "kernels", "reports"}
    covered |= {"frontends", "frontends/tik", "."}
    assert packages - covered <= rows
    assert {row for row in rows if not (SOURCE / row).is_dir()} == set()


def test_ranks_follow_the_longest_chain():
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}
    assert architecture.ranks(graph) == {"a": 2, "b": 1, "c": 0, "d": 1}


def test_an_arrow_that_others_imply_is_left_out():
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}
    assert architecture.reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set(), "d": {"c"}}


def test_imports_are_those_of_the_source():
    graph = architecture.imports()
    assert graph["chips"] == {"presented"}
    assert {"chips", "numerics"} <= graph["isa"]
    assert "tiling" not in graph["isa"]
    assert "workflows" in graph["cli"]


def test_every_arrow_and_package_is_drawn():
    text = architecture.picture()
    links = architecture.reduced(architecture.imports())
    assert text.count('class="arrow"') == sum(len(uses) for uses in links.values())
    for name in links:
        assert f">{name}</text>" in text
    assert "prefers-color-scheme: dark" in text
