"""Markdown that prints text as it is."""

import re
from collections.abc import Iterable, Iterator, Sequence

_MARKED = re.compile(r"(`[^`\n]+`)|([\\*_\[])|<")


def escaped(text: str) -> str:
    """Return text that Markdown prints as it is, but for code between backticks."""
    return _MARKED.sub(lambda m: m[1] or (f"\\{m[2]}" if m[2] else "&lt;"), text)


def cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return escaped(" ".join(text.split())).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines and the empty one behind; cells are Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""
