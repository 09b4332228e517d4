"""Arguments of a call as the user's file writes them: the names of its arrays.

A finding knows the line and the call. The text is read when a finding is reported, and no sooner;
where it cannot be read, or has the call more than once, the arguments have no names.
"""

import re
from functools import lru_cache
from pathlib import Path

from cubecore.isa.program.tree import Location

_MOST_LINES = 12
"""Lines of source that a call may take."""
_MOST_BYTES = 4_000_000
_MOST_CHARACTERS = 40
"""Characters of an argument that a sentence can hold."""
_OPENING, _CLOSING = "([{", ")]}"
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^;()]*>)?\s*\(")
_KEYWORDS = frozenset({"if", "for", "while", "switch", "return", "sizeof"})
_COMMENT = re.compile(r"//.*|/\*.*?\*/")


def argument(where: Location, position: int) -> str:
    """Return an argument of a location's call as it is written; empty where it is not known."""
    given = _arguments(source_lines(where.file), where.line, where.call)
    text = given[position] if position < len(given) else ""
    return text if len(text) <= _MOST_CHARACTERS else ""


def receiver(where: Location) -> str:
    """Return the object whose method a location calls, such as a queue; else nothing."""
    if not where.call:
        return ""
    text = source_lines(where.file)[where.line - 1 : where.line]
    found = re.findall(rf"([\w\[\].>-]+?)(?:\.|->){where.call}\b", "".join(text))
    return found[0] if len(found) == 1 else ""


def calls_at(file: str, line: int) -> tuple[str, ...]:
    """Return the functions that a line calls, as they are written without their namespaces."""
    lines = source_lines(file)
    found = _CALL.findall(lines[line - 1]) if 0 < line <= len(lines) else []
    return tuple(each for each in found if each not in _KEYWORDS)


@lru_cache(maxsize=1024)
def _arguments(source: tuple[str, ...], line: int, call: str) -> tuple[str, ...]:
    if not call or not 0 < line <= len(source):
        return ()
    begun = re.compile(rf"\b{re.escape(call)}\s*(?:<[^;()]*>)?\s*\(")
    if len(begun.findall(source[line - 1])) == 1:
        text = " ".join(source[line - 1 : line - 1 + _MOST_LINES])
    else:  # the line is that of a later argument
        first = max(0, line - _MOST_LINES)
        text = " ".join(source[first:line])
        starts = [match.start() for match in begun.finditer(text)]
        if not starts or begun.search(source[line - 1]):
            return ()
        text = text[starts[-1] :]
    begin = begun.search(text)
    return () if begin is None else _split(text[begin.end() :])


def _split(text: str) -> tuple[str, ...]:
    """Return the arguments of which the first begins a text; none if they do not end in it."""
    arguments, depth, begin = list[str](), 0, 0
    for at, character in enumerate(text):
        if depth == 0 and character in (",", ")"):
            arguments.append(" ".join(text[begin:at].split()))
            begin = at + 1
            if character == ")":
                return tuple(arguments)
        depth += (character in _OPENING) - (character in _CLOSING)
    return ()


def source_lines(file: str) -> tuple[str, ...]:
    """Return the lines of a file without their comments; none where it cannot be read."""
    path = Path(file)
    try:
        held = path.stat()
        if not path.is_file() or held.st_size > _MOST_BYTES:
            return ()
        version = f"{held.st_mtime_ns} {held.st_size} {held.st_ino}"
        return _lines_of(path.resolve(), version)
    except OSError:
        return ()


@lru_cache(maxsize=64)
def _lines_of(path: Path, _version: str) -> tuple[str, ...]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return tuple(_COMMENT.sub("", line).rstrip() for line in lines)


def mentions(file: str, word: str) -> bool:
    """Return whether a file has a word in its source."""
    return any(re.search(rf"\b{word}\b", line) for line in source_lines(file))
