"""A file of an op_host that uses what is not here: functions with such uses refuse when called.

The file is preprocessed, headers that are not found are empty, and the bodies of the functions in
which the compiler finds errors become a refusal, until the file compiles. A using-declaration of a
name that is not here is left out.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cubecore.frontends.cpp.rewriting.tokens import Token, closing, tokens

_MARKER = re.compile(r'^# (?P<line>\d+) "(?P<file>[^"\n]*)"(?P<flags>[ \d]*)\n', re.MULTILINE)
_USING = re.compile(r"\s*using\s+[\w:]+\s*;\s*")
_REFUSAL = "::cubecore::refused("
_REGISTERING = "static bool& cubecore_{} = ::cubecore::op_host::refusing() = {};\n"
_TYPES = frozenset({"class", "struct", "union"})
_BEHIND_PARAMETERS = frozenset({"const", "noexcept", "override", "final", "try", "mutable"})


@dataclass(frozen=True, slots=True)
class UseError:
    """An error of the compiler in a user's file: its line, and the sentence that says it."""

    file: Path
    line: int
    sentence: str


def marked(text: str, path: Path) -> str:
    """Return a text whose registrations say that functions of its file refuse."""
    own = [m for m in _MARKER.finditer(text) if m["file"] == str(path) and not m["flags"].strip()]
    start = max((m.start() for m in own if m["line"] == "1"), default=0)
    begin, end = _REGISTERING.format("begin", "true"), _REGISTERING.format("end", "false")
    return f"{text[:start]}{begin}{text[start:]}\n{end}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines of a file that follow each other: where they lie, and the first one's number."""

    start: int
    end: int
    line: int


def refusing(text: str, errors: Iterable[UseError], absent: Sequence[str] = ()) -> str:
    """Return preprocessed text whose functions with errors refuse, each with its first error.

    `absent` are headers that are not here, which the sentences name.
    """
    # Errors come by file and line, the text is one long preprocessed text in which a file lies in
    # pieces, perhaps several times. A line is mapped to its place, the place to the function body
    # around it; the first error of a body gives its refusal.
    edits: dict[tuple[int, int], str] = {}
    of_file: dict[Path, list[tuple[list[_Piece], list[tuple[int, int]]]]] = {}
    copies = _copies(text)
    for error in errors:
        if error.file not in of_file:
            of_file[error.file] = [(p, _bodies(text, p)) for p in copies.get(str(error.file), ())]
        for pieces, bodies in of_file[error.file]:
            start, end = _span(text, pieces, error.line)
            within = [body for body in bodies if body[0] < end and start < body[1]]
            for body in within:
                edits.setdefault(body, _refusal(text[slice(*body)], error, absent))
            # A using-declaration of a missing name is dropped: its uses refuse where they stand.
            if not within and _USING.fullmatch(text, start, end):
                edits[start, end] = ""
    parts, at = [], 0
    for (start, end), changed in sorted(edits.items()):
        parts += [text[at:start], changed]
        at = end
    return "".join([*parts, text[at:]])


def _refusal(body: str, error: UseError, absent: Sequence[str]) -> str:
    """Return what stands in the place of a function's body; it keeps its lines."""
    if _REFUSAL in body:
        return body
    lines = "".join(f"\n{marker.group()}" for marker in _MARKER.finditer(body))
    lines = lines or "\n" * body.count("\n")
    return f" {_REFUSAL}{json.dumps(_sentence(error, absent))});{lines}"


def _sentence(error: UseError, absent: Sequence[str]) -> str:
    said = error.sentence.partition("; --verbose")[0]
    if not absent:
        return said
    return f"{said}; if {' or '.join(absent)} declares it, put that beside the file"


def _copies(text: str) -> dict[str, list[list[_Piece]]]:
    """Return the pieces of each file, for each time that it is included."""
    # Line markers of the preprocessor: flag 1 enters a file, flag 2 returns to the one before. The
    # stack `open_` holds the inclusions that are being read.
    found: dict[str, list[list[_Piece]]] = {}
    open_: list[list[_Piece]] = []
    markers = list(_MARKER.finditer(text))
    ends = [*(m.start() for m in markers[1:]), len(text)]
    for marker, end in zip(markers, ends, strict=True):
        flags = marker["flags"].split()
        if "2" in flags and open_:
            open_.pop()
        if "1" in flags or not open_:
            open_.append([])
            found.setdefault(marker["file"], []).append(open_[-1])
        if marker["file"].startswith("<"):
            continue
        open_[-1].append(_Piece(marker.end(), end, int(marker["line"])))
    return found


def _span(text: str, pieces: Sequence[_Piece], line: int) -> tuple[int, int]:
    """Return where a line of a file begins and ends in the text; nowhere if it is not there."""
    for piece in pieces:
        if piece.line <= line <= piece.line + text.count("\n", piece.start, piece.end):
            start = piece.start
            for _ in range(line - piece.line):
                start = text.index("\n", start) + 1
            return start, text.find("\n", start) % (len(text) + 1)
    return 0, 0


def _bodies(text: str, pieces: Sequence[_Piece]) -> list[tuple[int, int]]:
    """Return where the bodies of a file's functions begin and end, their braces left out."""
    # A file's pieces are read as one text, as a function may span an include; `place` maps an
    # offset in it back to the whole text.
    joined = "".join(text[piece.start : piece.end] for piece in pieces)
    starts = [0]
    for piece in pieces:
        starts.append(starts[-1] + piece.end - piece.start)
    code = [t for t in tokens(joined) if t.kind not in {"space", "comment"}]

    def place(offset: int) -> int:
        number = bisect_right(starts, offset) - 1
        return pieces[number].start + offset - starts[number]

    return [(place(code[a].end), place(code[b].start)) for a, b in _functions(code)]


def _functions(code: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the braces of functions that are no other function's part."""
    number, begin = 0, 0
    while number < len(code):
        sign = code[number].text
        if sign in {";", "}"}:
            begin = number + 1
        elif sign == "(":
            number = closing(code, number)
        elif sign == "{":
            # `head` are the tokens since the last declaration ended: they tell what the brace
            # opens. A scope is entered, anything else is skipped with its contents.
            head, last = code[begin:number], closing(code, number)
            words = [token.text for token in head]
            kind = _kind(words, head)
            if kind == "function":
                yield number, last
            if kind == "scope":
                begin = number + 1
            else:
                number = last
                begin = begin if kind == "value" else last + 1
        number += 1


def _kind(words: Sequence[str], head: Sequence[Token]) -> str:
    """Return what a brace opens: a scope with declarations, a function's body, or a value."""
    if "namespace" in words or (words[:1] == ["extern"] and len(words) == 2):
        return "scope"
    called = "(" in words
    if not called and _TYPES & {*words}:
        return "scope"
    assigned = "=" in chain.from_iterable(_outside_brackets(words))
    if not called or ("operator" not in words and assigned):
        return "value"
    behind = head[-1]
    if ":" in words and behind.kind == "word" and behind.text not in _BEHIND_PARAMETERS:
        return "value"  # of a member, in a constructor's list
    return "function"


def _outside_brackets(words: Sequence[str]) -> Iterator[Sequence[str]]:
    depth = 0
    for word in words:
        depth -= word in {")", "]", ">"}
        if depth <= 0:
            yield [word]
        depth += word in {"(", "[", "<"}
