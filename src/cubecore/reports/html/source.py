"""The source panel of a kernel's report: its files, each line with what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.frontends.source_lines import by_place, source_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cubecore.aliases import Json
    from cubecore.timing.records import LineTime

_AROUND = 3
"""Lines that are shown around one that issues something."""
_MOST_LINES = 600
"""Lines of a file that are shown."""


def source_panel(lines: Iterable[LineTime], script: str) -> list[Json]:
    """Return the files of a launch, the busiest first: their lines around those that issue.

    `script` is the file that launched it.
    """
    by_file: dict[str, list[LineTime]] = {}
    for line in lines:
        if line.location is not None:
            by_file.setdefault(line.location.file, []).append(line)
    files = sorted(by_file.items(), key=lambda each: -sum(line.busy for line in each[1]))
    return [_file(name, of_file, script) for name, of_file in files]


def _file(name: str, lines: Sequence[LineTime], script: str) -> Json:
    text = source_text(name, script)
    paths: dict[int, list[str]] = {}
    for line in lines:
        if line.location is not None and line.location.callers:
            called = ", ".join(map(str, line.location.callers))
            title = f"{called}: {line.busy:,} busy cycles"
            paths.setdefault(line.location.line, []).append(title)
    used = {line.location.line: line for line in by_place(lines) if line.location is not None}
    rows = [_row(n, text, used.get(n), paths.get(n, [])) for n in _shown(used, len(text))]
    return {"file": name, "rows": rows}


def _shown(used: Iterable[int], count: int) -> list[int]:
    """Return the numbers of the lines that are shown."""
    near = {n for at in used for n in range(at - _AROUND, at + _AROUND + 1) if 0 < n <= count}
    return sorted(near | set(used))[:_MOST_LINES]


def _row(number: int, text: Sequence[str], line: LineTime | None, paths: Sequence[str]) -> Json:
    code = text[number - 1] if 0 < number <= len(text) else ""
    row: Json = {"line": number, "text": code}
    if line is not None:
        row |= {
            "busy": {pipe: cycles for pipe, cycles in line.busy_cycles.items() if cycles},
            "stalls": [[s.pipe, s.reason, s.cycles] for s in line.stalls[:_AROUND]],
            "stalled": line.stall_cycles,
            "instructions": line.instructions,
            "bytes": line.bytes,
            "paths": list(paths),
        }
    return row
