"""Rows of answers as CSV."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from cubecore.aliases import JsonMapping


def csv_text(table: Sequence[JsonMapping]) -> str:
    """Return rows as CSV: a header with every column, then a line each."""
    columns = list(dict.fromkeys(name for row in table for name in row))
    return "".join(csv_lines(columns, table))


def csv_lines(columns: Sequence[str], table: Iterable[JsonMapping]) -> Iterator[str]:
    """Yield the header and the rows as lines of CSV."""
    yield _line(columns)
    for row in table:
        yield _line([_cell(row.get(name)) for name in columns])


def _line(cells: Sequence[object]) -> str:
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _cell(value: object) -> object:
    """Return a value as a cell: nothing for None, true or false, JSON of what has parts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict):
        return json.dumps(value)
    return "" if value is None else value
