"""The user's line at an error of the compiler, with a caret under it."""

import re
from collections.abc import Sequence
from pathlib import Path

from cubecore.errors import printable
from cubecore.frontends.cpp.rewriting.source import quoted, text_of

_SOURCE = re.compile(r"^ *\d+ \|(?P<text>.*)$")
_MARKS = re.compile(r"^ +\|(?P<text>[ ~^]*\^[ ~^]*)$")
_TAB = 8
_WIDEST = 160
"""Columns of a line that are shown; of a longer one those about the caret."""


def excerpt(
    lines: Sequence[str], file: Path, line: int, column: int, work: Path, *, counts_bytes: bool
) -> str:
    """Return two lines: the user's, and the caret; nothing if there is no such line.

    `lines` follow the error. The compiler may have read a rewritten copy in `work`, whose columns
    `line` and `column` are; its excerpt is taken where both have the same text. It counts tabs as
    it shows them, or bytes.
    """
    copy = _line(_copy(file, work), line + 1)
    own = _line(text_of(file), line) if file.is_file() else copy
    if own is None or column < 1:
        return ""
    shown = own.expandtabs(_TAB)
    said = [_SOURCE.match(lines[0]), _MARKS.match(lines[1])] if len(lines) > 1 else [None, None]
    if said[0] and said[1] and copy in {None, own} and said[0]["text"].strip() == shown.strip():
        text, marks = said[0]["text"][1:].rstrip(), said[1]["text"][1:].rstrip()
    else:
        index = _index(own if copy is None else copy, column, counts_bytes=counts_bytes)
        at = _moved(index, copy, own) if copy is not None else index
        text = shown.rstrip()
        marks = "" if at is None else " " * len(own[:at].expandtabs(_TAB)) + "^"
    start = max(marks.find("^") - _WIDEST // 2, 0) if len(text) > _WIDEST else 0
    text, marks = text[start : start + _WIDEST], marks[start : start + _WIDEST]
    number = f"{line:5} | "
    return f"{number}{printable(text)}" + (f"\n{'':5} | {marks}" if marks.strip() else "")


def _copy(file: Path, work: Path) -> str:
    """Return the text that the compiler read for a file; none if that is the file itself."""
    first = f"#line 1 {quoted(file)}\n"
    texts = (text_of(path) for path in sorted(work.iterdir()) if path.is_file())
    return next((text for text in texts if text.startswith(first)), "")


def _line(text: str, number: int) -> str | None:
    lines = text.split("\n")
    return lines[number - 1].rstrip("\r") if text and number <= len(lines) else None


def _index(line: str, column: int, *, counts_bytes: bool) -> int:
    """Return the index of the character at a column of the compiler's."""
    if counts_bytes:
        return len(line.encode("utf-8", "replace")[: column - 1].decode("utf-8", "ignore"))
    return next((n for n in range(len(line)) if len(line[:n].expandtabs(_TAB)) >= column - 1), 0)


def _moved(index: int, copy: str, own: str) -> int | None:
    """Return where a character of the copy's line is in the user's; None if it is not there."""
    if copy[: index + 1] == own[: index + 1]:
        return index
    rest = len(copy) - index
    return len(own) - rest if copy[index:] == own[len(own) - rest :] and rest <= len(own) else None
