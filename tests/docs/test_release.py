"""The release: metadata with the repository's address, the site's versions, the workflows."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from tools.pages.site.missing_page import based
from tools.pages.versions import newest_first, publish, version_of

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def metadata():
    pytest.importorskip("hatchling")
    from tools.packaging import metadata

    return metadata


def test_metadata_without_an_address_has_no_urls(metadata, monkeypatch):
    monkeypatch.delenv("CUBECORE_REPOSITORY", raising=False)
    fields = {}
    metadata.RepositoryMetadata(str(ROOT), {}).update(fields)
    assert fields == {
        "readme": {
            "content-type": "text/markdown",
            "text": (ROOT / "README.md").read_text("utf-8"),
        }
    }


def test_an_address_makes_every_link_of_readme_absolute(metadata, monkeypatch):
    monkeypatch.setenv("CUBECORE_REPOSITORY", "https://host.example/us/cubecore/")
    fields = {}
    metadata.RepositoryMetadata(str(ROOT), {}).update(fields)
    assert fields["urls"]["Issues"] == "https://host.example/us/cubecore/issues"
    targets = re.findall(r"\]\(([^)\s]+)\)", fields["readme"]["text"])
    assert targets
    assert all(target.startswith(("https://", "#")) for target in targets)
    prefix = r"https://host\.example/us/cubecore/(?:blob|raw)/v[\d.]+/([^#]+)"
    inside = [found[1] for target in targets if (found := re.match(prefix, target))]
    assert inside
    assert all((ROOT / path).exists() for path in inside)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/a.md#b)", "[a](https://r/blob/v1/docs/a.md#b)"),
        ("![a](docs/a.svg)", "![a](https://r/raw/v1/docs/a.svg)"),
        ("[a](https://b) [c](#d)", "[a](https://b) [c](#d)"),
    ],
)
def test_links(metadata, text, expected):
    assert metadata.with_absolute_links(text, "https://r", "v1") == expected


def test_the_site_of_a_version_lies_beside_the_others(tmp_path):
    site, pages = tmp_path / "site", tmp_path / "pages"
    site.mkdir()
    pages.mkdir()
    for ref in ("main", "v0.9.0", "v0.10.0", "main"):
        (site / "index.html").write_text(ref)
        (site / "404.html").write_text(ref)
        publish(site, pages, ref)
    listed = json.loads((pages / "versions.json").read_text())
    assert [entry["version"] for entry in listed] == ["0.10.0", "0.9.0", "dev"]
    assert [entry["aliases"] for entry in listed] == [["latest"], [], []]
    assert "url=0.10.0/" in (pages / "index.html").read_text()
    assert (pages / "0.9.0" / "index.html").read_text() == "v0.9.0"
    assert (pages / "404.html").read_text() == "v0.10.0"


def test_links_of_the_missing_page_start_at_its_site():
    text = '<head></head><a href="/a.html"><a href="/../b.html"><a href="#c"><img src="/d.png">'
    page = based(text)
    assert page.endswith('<a href="a.html"><a href="../b.html"><a href="#c"><img src="d.png">')
    assert page.startswith("<head><script>")


def test_versions_are_named_by_tags():
    assert [version_of(ref) for ref in ("v1.2.3", "main", "v1.2.3-fork")] == ["1.2.3", "dev", "dev"]
    assert newest_first({"dev"}) == ["dev"]


def test_workflows_try_every_python_that_the_metadata_names():
    named = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line}
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    tried = re.search(r"python: \[(.+)\]", workflow)
    assert tried is not None
    assert set(re.findall(r'"(.+?)"', tried[1])) == named
    for target in re.findall(r"make (\w+)", workflow):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text("utf-8")
    for folder in re.findall(r"tests/\S+", workflow):
        assert (ROOT / folder).exists(), folder
