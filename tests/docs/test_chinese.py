"""The Chinese pages follow the English ones, block by block and section by section."""

import re
from pathlib import Path

import pytest
from tools.pages import chinese

ROOT = Path(__file__).resolve().parents[2]
ZH = chinese.DOCS / "zh"
GUIDES = {
    *("install", "coming_from", "limits", "cookbook", "planning", "tuning", "models", "kernels"),
    *("cpp", "debugging", "examples", "timing"),
}
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([\w./]*\.md)?#([^)]+)\)")


def _pair(name):
    return (ZH / name).read_text("utf-8"), (chinese.DOCS / name).read_text("utf-8")


def test_every_guide_is_translated():
    assert {f"{name}.md" for name in GUIDES} <= set(chinese.translated())


@pytest.mark.parametrize("name", chinese.translated())
def test_a_chinese_page_has_the_blocks_of_the_english_one(name):
    translation, english = _pair(name)
    assert chinese.blocks(translation) == chinese.blocks(english), (
        f"docs/zh/{name} does not follow docs/{name}; python -m tools.pages.chinese puts the "
        "blocks of the English page into it"
    )


@pytest.mark.parametrize("name", chinese.translated())
def test_a_chinese_section_has_the_code_and_the_figures_of_the_english_one(name):
    translation, english = _pair(name)
    for place, (here, there) in enumerate(
        zip(chinese.facts(translation), chinese.facts(english), strict=True), 1
    ):
        assert here == there, f"docs/zh/{name}: heading {place} says other things than docs/{name}"
    assert re.search("[\u4e00-\u9fff]", translation)


@pytest.mark.parametrize("page", sorted(ZH.rglob("*.md")), ids=lambda p: str(p.relative_to(ZH)))
def test_an_anchor_of_a_chinese_page_is_a_heading(page):
    """Of Chinese pages; mkdocs holds the anchors of English ones."""
    for path, anchor in _LINK.findall(page.read_text("utf-8")):
        target = (page.parent / path).resolve() if path else page
        if target.is_relative_to(ZH):
            headings = _HEADING.findall(target.read_text("utf-8"))
            assert anchor in {_anchor(heading) for heading in headings}, f"{path}#{anchor}"


def _anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_chinese_navigation_has_every_translated_page():
    navigation = (ROOT / "mkdocs.zh.yml").read_text("utf-8")
    assert set(re.findall(r"[\w/]+\.md", navigation)) == {
        path.relative_to(ZH).as_posix() for path in ZH.rglob("*.md")
    }


ENGLISH = """\
# Title

`plan` takes 12 us.

```python title="a.py"
plan()

    indented()
```

    $ cubecore plan

End, in 8 of 10.
"""
TRANSLATION = """\
# 标题

`plan` 用时 12 us。

```text
old
```

    old

结束，10 个中的 8 个。
"""


def test_the_blocks_of_the_english_page_are_put_into_the_chinese_one():
    after = chinese.following(TRANSLATION, ENGLISH)
    assert chinese.blocks(after) == chinese.blocks(ENGLISH)
    assert len(chinese.blocks(after)) == 2
    assert after.startswith("# 标题\n\n`plan` 用时 12 us。\n\n```python")
    assert after.endswith("\n\n    $ cubecore plan\n\n结束，10 个中的 8 个。\n")


def test_a_page_with_another_number_of_blocks_needs_an_author():
    with pytest.raises(ValueError, match=r"Chinese page has 2 blocks, the English one 1$"):
        chinese.following(TRANSLATION, ENGLISH.replace("    $ cubecore plan\n", ""))


def test_pages_are_rewritten_and_one_that_needs_an_author_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(chinese, "DOCS", tmp_path)
    (tmp_path / "zh").mkdir()
    (tmp_path / "page.md").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "zh" / "page.md").write_text(TRANSLATION, encoding="utf-8")
    (tmp_path / "zh" / "manual.md").write_text("# 手册\n", encoding="utf-8")
    assert chinese.translated() == ["page.md"]
    chinese.follow()
    written = (tmp_path / "zh" / "page.md").read_text("utf-8")
    assert written == chinese.following(TRANSLATION, ENGLISH)
    (tmp_path / "page.md").write_text("# Title\n", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        chinese.follow()
    text = "docs/zh/page.md: the Chinese page has 2 blocks, the English one 0"
    assert stopped.value.code == text
    assert (tmp_path / "zh" / "page.md").read_text("utf-8") == written


@pytest.mark.parametrize(
    ("before", "after"),
    [("12 us", "13 us"), ("`plan`", "`check`"), ("# 标题", "## 标题"), ("8 个", "9 个")],
)
def test_a_translation_that_differs_is_seen(before, after):
    assert chinese.facts(TRANSLATION) == chinese.facts(ENGLISH)
    assert chinese.facts(TRANSLATION.replace(before, after)) != chinese.facts(ENGLISH)
