"""The queries of a file: one JSON object a line, the keys of a problem."""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

from cubecore.aliases import Json, JsonMapping
from cubecore.errors import RequestError, no_json, refuse, unreadable

MAX_LINE_BYTES = 1 << 16
"""Longer lines are no problems."""


@dataclass(frozen=True, slots=True)
class Query:
    """One line that is not blank: its number, and the object on it or what is wrong with it.

    `label` is a name of the user's for the question, None without one.
    """

    line: int
    asked: Any
    error: RequestError | None
    label: str | None = None

    @classmethod
    def of(cls, line: int, asked: Any) -> "Query":
        """Return the query of what was asked; ``label`` is no key of a problem."""
        if not isinstance(asked, Mapping) or "label" not in asked:
            return cls(line, asked, None)
        rest = {key: value for key, value in asked.items() if key != "label"}
        label = asked["label"]
        if label is None or isinstance(label, str):
            return cls(line, rest, None, label)
        return cls(line, rest, refuse("label", "be a text", repr(label)))


def open_queries(path: str) -> BufferedReader:
    """Open a file of queries, or standard input as ``-``, which is read whole.

    Raises
    ------
    RequestError
        If the file cannot be read.
    """
    where = f"--queries {path}"
    if path == "-":
        return BufferedReader(BytesIO(sys.stdin.buffer.read()))
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - the caller closes it
        file.read(0)
        if not file.seekable():  # a pipe: it is read twice
            with file:
                return BufferedReader(BytesIO(file.read()))
    except (OSError, ValueError) as error:
        raise unreadable(where, error) from None
    return file


def count_lines(file: BufferedReader) -> int:
    """Return how many lines of a file are not blank, and go back to its start."""
    count = sum(1 for _ in _lines(file))
    file.seek(0)
    return count


def read_queries(file: BufferedReader, defaults: JsonMapping) -> Iterator[Query]:
    """Yield the queries of a file; keys that a line leaves out are those of `defaults`."""
    for number, line in _lines(file):
        try:
            yield Query.of(number, {**defaults, **_object(line)})
        except RequestError as error:
            yield Query(number, None, error)


def _lines(file: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank with their numbers; a long one is cut after its limit."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):  # the rest of a line that is too long
            rest = file.readline(MAX_LINE_BYTES + 1)
        if line.strip():
            yield number, line


def _object(line: bytes) -> Json:
    where = "the line"
    if len(line) > MAX_LINE_BYTES:
        raise refuse(where, f"be at most {MAX_LINE_BYTES} B long", "a longer line")

    def unique(pairs: list[tuple[str, Any]]) -> Json:
        """Return the object; refuse a key that stands twice."""
        names = [name for name, _ in pairs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise refuse(where, "give a key once", repr(twice))
        return dict(pairs)

    try:
        record = json.loads(line.decode("utf-8-sig"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise refuse(where, "be JSON", no_json(error)) from None
    if not isinstance(record, dict):
        raise refuse(where, "be a JSON object", type(record).__name__)
    return record
