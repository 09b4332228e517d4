"""Answers on a terminal: lines folded to its width, weight and colour; in a pipe the plain text.

The text of an answer is the same everywhere. Its layout says what it is: a line that stands over
indented ones is a heading, columns are two or more spaces apart.
"""

import os
import re
from collections.abc import Iterator

from cubecore.cli.streams import terminal_columns

_BOLD, _DIM, _RED, _GREEN, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"
_GAP = re.compile(r"  +")
_WRONG = re.compile(r"(?:illegal|FAILED|Findings)\b|  [A-Z][A-Z0-9-]+-[A-Z0-9-]+: ")
_RIGHT = re.compile(r"(?:legal|verified)\b")
_DIGIT = re.compile(r"\d")
_LEAST_WIDTH = 20
_DEEPEST = 0.6
"""Share of the width beyond which a folded line does not begin again under its last column."""


def dressed(text: str) -> str:
    """Return a text as a terminal shows it best."""
    folded = fitted(text, terminal_columns())
    return emphasised(folded) if _has_colour() else folded


def _has_colour() -> bool:
    """Return True if the terminal has colours and nobody asked for none (NO_COLOR)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def fitted(text: str, width: int) -> str:
    """Return a text with lines of at most `width` characters, folded between words.

    What does not fit goes on under the last column, or under the beginning of the line.
    """
    width = max(width, _LEAST_WIDTH)
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width))


def _folded(line: str, width: int) -> Iterator[str]:
    if len(line) <= width:
        yield line
        return
    begin = len(line) - len(line.lstrip())
    gaps = [gap.end() for gap in _GAP.finditer(line) if begin < gap.end() <= _DEEPEST * width]
    indent = " " * (gaps[-1] if gaps else begin + 2)
    while len(line) > width:
        cut = line.rfind(" ", begin + 1, width + 1)
        if cut < 0:
            cut = line.find(" ", width)
        if cut < 0:
            break
        yield line[:cut].rstrip()
        line, begin = indent + line[cut:].lstrip(), len(indent)
    yield line


def emphasised(text: str) -> str:
    """Return a text with its title and headings bold, heads of tables dim, verdicts in colour."""
    lines = text.split("\n")
    pairs = zip(lines, [*lines[1:], ""], strict=True)
    return "\n".join(_emphasised(number, line, below) for number, (line, below) in enumerate(pairs))


def _emphasised(number: int, line: str, below: str) -> str:
    if _WRONG.match(line):
        return f"{_RED}{line}{_PLAIN}"
    if _RIGHT.match(line):
        return f"{_GREEN}{line}{_PLAIN}"
    indented = line.startswith("  ")
    if line and not indented and (number == 0 or below.startswith("  ")):
        return f"{_BOLD}{line}{_PLAIN}"
    if _is_head(line, below):
        return f"{_DIM}{line}{_PLAIN}"
    return line


def _is_head(line: str, below: str) -> bool:
    """Return True if a line of columns has no figures, and the one below it has."""
    columns = len(_GAP.findall(line.strip()))
    return columns > 0 and not _DIGIT.search(line) and bool(_DIGIT.search(below))
