"""The Chinese pages follow the English ones: code and console blocks, figures and names.

A page under docs/zh is written by hand, all but its blocks: they are those of the English page of
the same name, and `follow` puts them in. Its prose is held to the English one by what needs no
translation: `facts` has the inline code and the figures of each section.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OWN = {"index.md"}
"""Pages that are written for themselves."""

_BLOCK = re.compile(r"^```[^\n]*\n.*?^```$|(?<=\n\n)(?: {4}[^\n]*\n)+", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) .*$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_FIGURE = re.compile(r"(?<![A-Za-z_\d.])(\d+(?:[.,]\d+)*)(?:th|ths)?(?![A-Za-z_\d])")


class Section(NamedTuple):
    """What a section has in every language: the level of its heading, code and figures."""

    level: int
    code: frozenset[str]
    figures: frozenset[str]


def translated() -> list[str]:
    """Return the paths under docs/zh of the pages that are translations of English ones."""
    pages = (path.relative_to(DOCS / "zh") for path in (DOCS / "zh").rglob("*.md"))
    names = {page.as_posix() for page in pages if (DOCS / page).is_file()}
    return sorted(names - OWN)


def blocks(text: str) -> list[str]:
    """Return the fenced and the indented blocks of a page, in order."""
    return _BLOCK.findall(text)


def following(chinese: str, english: str) -> str:
    """Return a Chinese page with the blocks of the English one.

    ValueError: they have not as many blocks, so that the Chinese page needs an author.
    """
    put = blocks(english)
    if (count := len(blocks(chinese))) != len(put):
        raise ValueError(f"the Chinese page has {count} blocks, the English one {len(put)}")
    left = iter(put)
    return _BLOCK.sub(lambda _: next(left), chinese)


def facts(text: str) -> list[Section]:
    """Return the code and the figures of each section of a page, its blocks left out."""
    plain = _BLOCK.sub("", text)
    heads = list(_HEADING.finditer(plain))
    ends = [head.start() for head in heads[1:]] + [len(plain)]
    return [
        _section(len(head[1]), plain[head.end() : end])
        for head, end in zip(heads, ends, strict=True)
    ]


def _section(level: int, text: str) -> Section:
    prose = re.sub(r"\]\([^)]*\)", "]", _CODE.sub("", text))
    code = (" ".join(span.split()) for span in _CODE.findall(text))
    return Section(level, frozenset(code), frozenset(_FIGURE.findall(prose)))


def follow() -> None:
    """Rewrite the Chinese pages whose blocks are not those of the English ones."""
    for name in translated():
        path = DOCS / "zh" / name
        text = path.read_text("utf-8")
        try:
            now = following(text, (DOCS / name).read_text("utf-8"))
        except ValueError as error:
            sys.exit(f"docs/zh/{name}: {error}")
        if now != text:
            path.write_text(now, encoding="utf-8")


if __name__ == "__main__":
    follow()
