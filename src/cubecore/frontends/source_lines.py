"""The source lines of a timed launch: the calls that led to each, and its text."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cubecore.isa.program.tree import Location
from cubecore.timing.records import LineTime, Stall

if TYPE_CHECKING:
    from cubecore.frontends.kernels.session import KernelRun
    from cubecore.frontends.tik.host.kernel import TikRun

_K = TypeVar("_K")
_MOST_BYTES = 4_000_000
"""Bytes above which a file is taken for something else than source."""


def source_lines(
    lines: Iterable[LineTime], run: "KernelRun | TikRun", script: str
) -> tuple[LineTime, ...]:
    """Return the lines of a launch, told apart by the calls that led to them, with their texts.

    `script` is the file that was run: a file of a location is looked for beside it, too.
    """
    held = tuple(lines)
    names = {id(trace.names): trace.names for trace in run.traces.values()}.values()
    places = [line.location for line in held if line.location is not None]
    known = {key: place for each in names for key, place in each.with_callers(places).items()}
    merged: dict[object, LineTime] = {}
    texts = lru_cache(_texts)
    for line in held:
        where = known.get(id(line.location), line.location)
        path = None if where is None else (where, where.call, where.callers)
        text = "" if where is None else _text(where, script, texts)
        located = replace(line, location=where, text=text)
        merged[path] = _together(merged[path], located) if path in merged else located
    return tuple(_busiest_first(merged.values()))


def source_text(file: str, script: str) -> tuple[str, ...]:
    """Return the lines of a file of locations; none where it cannot be read.

    It is looked for beside the `script` that was run, too.
    """
    return next(filter(None, map(_texts, _candidates(file, script))), ())


def by_place(lines: Iterable[LineTime]) -> tuple[LineTime, ...]:
    """Return the lines with those of one place added up, by whatever calls they were reached."""
    merged: dict[object, LineTime] = {}
    for line in lines:
        where = line.location
        place = None if where is None else (where.file, where.line)
        merged[place] = _together(merged[place], line) if place in merged else line
    return tuple(_busiest_first(merged.values()))


def _busiest_first(lines: Iterable[LineTime]) -> list[LineTime]:
    return sorted(lines, key=lambda each: (each.location is None, -each.busy, -each.stall_cycles))


def _together(one: LineTime, other: LineTime) -> LineTime:
    """Return the sum of two lines, which lie at the place of the first."""
    stalls = _added(_by_reason(one), _by_reason(other))
    return replace(
        one,
        busy_cycles=_added(one.busy_cycles, other.busy_cycles),
        stalls=tuple(
            Stall(pipe, reason, cycles)
            for (pipe, reason), cycles in sorted(
                stalls.items(), key=lambda stall: (-stall[1], stall[0])
            )
        ),
        instructions=one.instructions + other.instructions,
        bytes=one.bytes + other.bytes,
    )


def _by_reason(line: LineTime) -> dict[tuple[str, str], int]:
    return {(stall.pipe, stall.reason): stall.cycles for stall in line.stalls}


def _added(one: Mapping[_K, int], other: Mapping[_K, int]) -> dict[_K, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in (*one, *other)}


def _text(where: Location, script: str, texts: Callable[[Path], tuple[str, ...]]) -> str:
    """Return a line without its indentation; empty where it cannot be read."""
    held = next(filter(None, map(texts, _candidates(where.file, script))), ())
    return held[where.line - 1].strip() if 0 < where.line <= len(held) else ""


def _candidates(file: str, script: str) -> Iterator[Path]:
    beside = Path(script)
    yield Path(file)
    yield beside if beside.name == Path(file).name else beside.parent / file


def _texts(path: Path) -> tuple[str, ...]:
    """Return the lines of a file; none where it cannot be read."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return ()
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()
