"""Text in columns: plain lines, the same on a terminal, in a pipe and in the documentation."""

import re
from collections.abc import Iterable, Sequence

_FIGURE = re.compile(r"[\d,.]+( us| ms| s| MB| kB| GB/s|%|\.\.)?")
"""A cell that stands to the right of its column."""
Value = int | float | bool | str


def table(rows: Iterable[Sequence[object]], indent: str = "  ") -> list[str]:
    """Return rows as lines with aligned columns, numbers to the right."""
    cells = [[("" if c is None else str(c)) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))] if cells else []
    lines = []
    for row in cells:
        parts = [
            c.rjust(w) if _FIGURE.fullmatch(c) else c.ljust(w)
            for c, w in zip(row, widths, strict=True)
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with `digits` significant digits; ``unknown`` for None."""
    if value is None:
        return "unknown"
    if value == 0 or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def duration(us: float | None) -> str:
    """Return a time of so many microseconds in the unit that fits: us, ms or s."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us is not None and us >= size:
            return f"{number(us / size)} {unit}"
    return f"{number(us)} us"


def shown(value: Value) -> str:
    """Return a value as tables and plots have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else value
