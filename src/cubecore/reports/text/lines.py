"""The hottest source lines of a launch, as text."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from cubecore.reports.text.answers import table
from cubecore.units import plural
from cubecore.workflows.scripts.source_lines import by_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cubecore.timing.records import LineTime

_SHOWN = 5
_WIDTH = 60
_PATH = 30
"""Characters above which a path is shown as the file's name."""


def hottest_lines(lines: Sequence[LineTime], cycles: int) -> list[str]:
    """Return the lines that keep pipes busy longest, each with its busiest pipe."""
    places = [line for line in by_place(lines) if line.location is not None and line.busy]
    if not places:
        return []
    rows = [_row(line, cycles) for line in places[:_SHOWN]]
    more = len(places) - _SHOWN
    rest = [f"  {plural(more, 'more line')} in --json and --report"] if more > 0 else []
    return ["", "Hottest lines, average cycles", *table(rows), *rest]


def _row(line: LineTime, cycles: int) -> tuple[str, ...]:
    where = line.location
    assert where is not None
    pipe, busy = max(line.busy_cycles.items(), key=lambda each: each[1])
    text = line.text if len(line.text) <= _WIDTH else line.text[: _WIDTH - 3] + "..."
    waits = f"{line.stall_cycles:,} waiting" if line.stall_cycles else ""
    share = f"{busy / cycles:.0%}"
    file = where.file if len(where.file) <= _PATH else PurePath(where.file).name
    return (f"{file}:{where.line}", pipe, f"{busy:,}", share, waits, text)
