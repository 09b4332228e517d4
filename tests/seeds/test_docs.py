"""The generated pages are what their generators return."""

import pytest
from tools.pages import docs

from cubecore.workflows.calibration import validate


@pytest.fixture
def made_before(monkeypatch, published):
    """Give the page what other tests of the run need too."""
    monkeypatch.setattr(validate, "published_validation", lambda: published)


PAGES = [
    pytest.param(name, marks=pytest.mark.sweep if name == "validation.md" else ())
    for name in docs.DOCUMENTS
]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_fresh(name, request):
    if name == "validation.md":
        request.getfixturevalue("made_before")
    assert docs.stale([name]) == []


def test_check_names_a_stale_page_and_writes_nothing(tmp_path, monkeypatch, capsys):
    page = tmp_path / "seeds.md"
    page.write_text("old\n", encoding="utf-8")
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    assert docs.main(["--check", "seeds.md"]) == 1
    assert page.read_text(encoding="utf-8") == "old\n"
    assert capsys.readouterr().err == (
        "docs/seeds.md is stale; python -m tools.pages.docs seeds.md writes it\n"
    )


def test_writing_a_page_makes_it_fresh(tmp_path, monkeypatch):
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    assert docs.main(["seeds.md"]) == 0
    assert docs.main(["--check", "seeds.md"]) == 0


def test_an_unknown_page_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        docs.main(["sedes.md"])
    assert stopped.value.code == 2
    assert "NAME must be one of" in capsys.readouterr().err


def test_the_seeds_page_has_a_line_for_every_entry():
    from seeds import ledger

    lines = docs.DOCUMENTS["seeds.md"]().splitlines()
    ids = [entry.id for book in ledger.load_all() for entry in book.entries]
    assert [line.split("`")[1] for line in lines if line.startswith("- `")] == ids
