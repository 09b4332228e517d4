"""A store of verdicts: an SQLite file that a batch adds to, one verdict a transaction."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from cubecore.aliases import Json
from cubecore.errors import refuse, unable, unwritable

APPLICATION_ID = 0x6375626A
"""The mark of an SQLite file as a store of verdicts."""
FORMAT = 1
"""The version of the table below."""
_PATIENCE_S = 60.0
_TABLE = """
CREATE TABLE IF NOT EXISTS verdicts (
    key TEXT PRIMARY KEY, submission TEXT NOT NULL, task TEXT NOT NULL,
    outcome TEXT NOT NULL, cpu_s REAL NOT NULL, verdict TEXT NOT NULL
)
"""
_MOST_NAMES = 500
"""Keys of one question; SQLite takes 999 at least."""


class VerdictStore:
    """An open store; a context that closes it."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection, self._path = connection, path

    @classmethod
    def open(cls, path: str) -> "VerdictStore":
        """Open a store, or make it if there is no such file.

        Raises
        ------
        RequestError
            If the file is no store of verdicts, is one of another format, or cannot be opened.
        """
        where = f"--store {path}"
        try:
            new = not Path(path).exists() or not Path(path).stat().st_size
            connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
            try:
                _check(connection, where, new=new)
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError, ValueError) as error:
            raise unwritable(where, error) from None
        return cls(connection, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def outcomes(self) -> dict[str, str]:
        """Return the outcome of each verdict, by key."""
        return dict(self._connection.execute("SELECT key, outcome FROM verdicts"))

    def among(self, keys: Iterable[str]) -> Iterator[tuple[str, Json]]:
        """Yield the keys and verdicts that there are, one at a time."""
        asked = list(keys)
        for first in range(0, len(asked), _MOST_NAMES):
            some = asked[first : first + _MOST_NAMES]
            marks = ", ".join("?" * len(some))
            question = f"SELECT key, verdict FROM verdicts WHERE key IN ({marks})"  # noqa: S608
            for key, text in self._connection.execute(question, some):
                yield key, json.loads(text)

    def add(self, key: str, submission: str, task: str, verdict: Json) -> None:
        """Add a verdict, in place of one that was there; it is on the disk on return.

        Raises
        ------
        RequestError
            If the file cannot be written.
        """
        cpu_s = float((verdict.get("seconds") or {}).get("cpu", 0.0))
        row = (key, submission, task, verdict["outcome"], cpu_s, json.dumps(verdict))
        try:
            self._connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?,?,?,?,?,?)", row)
        except sqlite3.Error as error:
            raise unwritable(f"--store {self._path}", error) from None

    def verdicts(self) -> Iterator[Json]:
        """Yield all verdicts, in the order of submissions."""
        question = "SELECT verdict FROM verdicts ORDER BY submission, task"
        for (text,) in self._connection.execute(question):
            yield json.loads(text)


def _check(connection: sqlite3.Connection, where: str, *, new: bool) -> None:
    # The write-ahead log lets others read while a batch writes; mark and format tell the file
    # from other databases, and from stores that later versions write.
    if new:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute(_TABLE)
        return
    try:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError:
        raise refuse(where, "be a store of verdicts", "another file") from None
    if mark != APPLICATION_ID:
        raise refuse(where, "be a store of verdicts", "another SQLite file")
    if version != FORMAT:
        raise unable(where, f"{where} has format {version}, this version reads format {FORMAT}")
