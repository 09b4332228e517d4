"""A store of plans: an SQLite file, keyed by question and by the version of the model.

Several processes may write one at a time: a question is answered once for each version, whoever
comes first. Rows of another version are never read as this one's.
"""

import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn, Self

from cubecore.aliases import JsonMapping
from cubecore.answers.store import StoredPlan
from cubecore.errors import did_you_mean, refuse, unable, unreadable, unwritable
from cubecore.tiling.model.problem import Problem
from cubecore.workflows.sweep.answers import AnswerLine, SweepOptions, key_of, model_version
from cubecore.workflows.sweep.store_rows import (
    PLAN_COLUMNS,
    line_of,
    plan_of,
    row_of,
)

APPLICATION_ID = 0x63756265
"""The mark of an SQLite file as a store of cubecore."""
FORMAT = 1
"""The version of the tables below."""
PATIENCE_S = 60.0
"""The longest wait for another process that writes."""
_TABLES = """
CREATE TABLE IF NOT EXISTS models (number INTEGER PRIMARY KEY, model TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS plans (
    model INTEGER NOT NULL REFERENCES models (number),
    key TEXT NOT NULL,
    chip TEXT NOT NULL, m INTEGER NOT NULL, n INTEGER NOT NULL, k INTEGER NOT NULL,
    problem TEXT NOT NULL, settings TEXT NOT NULL, alternatives INTEGER NOT NULL,
    us REAL, cycles INTEGER, lower_bound_us REAL, limited_by TEXT, rule TEXT, message TEXT,
    tiling BLOB, answer BLOB NOT NULL,
    PRIMARY KEY (model, key)
);
"""
_SUBJECT = "store"
_BESIDE: dict[str, tuple[bytes, ...]] = {
    "-wal": (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"),
    "-journal": (b"\xd9\xd5\x05\xf9", bytes(4)),
    "-shm": (),
}
"""Files that SQLite keeps beside a database, and their first bytes (SQLite, database file format);
a journal may have no header yet, and the memory that is shared has no fixed one."""


class Store:
    """An open store of answers, an SQLite file; `close` it, or use it as a context."""

    damaged = 0
    """Rows that `plans` came upon and left out, since no answer can be read from them."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection, self._path = connection, path

    @classmethod
    def open(cls, path: str, *, write: bool = False, subject: str = _SUBJECT) -> "Store":
        """Open a store.

        Parameters
        ----------
        path : str
            The SQLite file.
        write : bool
            Open it for writing, and make it if it does not exist.
        subject : str
            The beginning of the message if it cannot be opened.

        Returns
        -------
        Store
            The store.

        Raises
        ------
        RequestError
            If the file is not a store of cubecore's, has another format, or cannot be opened.
        """
        where = f"{subject} {path}"
        try:
            target = Path(path).absolute()
            if not write and not target.is_file():
                raise unreadable(where, "is a directory" if target.is_dir() else "no such file")
            if (strange := _strange_beside(target)) is not None:
                _refuse(where, write, f"{strange} is in the way, no file of SQLite's; move it")
        except (OSError, ValueError) as error:
            _refuse(where, write, error)
        try:
            # A reader of a file in WAL mode makes files beside it. Where the folder takes none and
            # no log is left over, the database is opened as immutable, which needs no locks.
            connection = _connected(str(target), where, write=write)
        except (sqlite3.Error, ValueError) as error:
            if write or not _takes_no_files(target):  # a reader, too, would make some
                _refuse(where, write, error)
            try:
                connection = _connected(f"{target.as_uri()}?immutable=1", where)
            except (sqlite3.Error, ValueError) as other:
                _refuse(where, write, other)
        return cls(connection, path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- a sweep's side

    def answers(
        self, problems: Sequence[JsonMapping], options: SweepOptions
    ) -> list[AnswerLine | None]:
        """Return this model's answers to some problems.

        Parameters
        ----------
        problems : sequence of mapping
            The problems, as JSON objects.
        options : SweepOptions
            The settings of the sweep.

        Returns
        -------
        list of Line or None
            The answer to each problem; None where there is none. A damaged one is dropped.
        """
        number = self._number(model_version())
        if number is None:
            return [None] * len(problems)
        lines = []
        for key in (key_of(problem, options) for problem in problems):
            which = "WHERE model = ? AND key = ?", (number, key)
            rows = self._rows(f"SELECT answer FROM plans {which[0]}", which[1])  # noqa: S608
            line = line_of(rows[0][0], key, options) if rows else None
            if rows and line is None:  # so that `add` keeps what is answered anew
                self._rows(f"DELETE FROM plans {which[0]}", which[1])  # noqa: S608
            lines.append(line)
        return lines

    def add(self, answers: Iterable[AnswerLine], options: SweepOptions) -> None:
        """Keep this model's answers; a question with an answer keeps it.

        Parameters
        ----------
        answers : iterable of AnswerLine
            The answers.
        options : SweepOptions
            The settings of the sweep.

        Raises
        ------
        RequestError
            If the file can no longer be written.
        """
        rows = [row_of(line, options) for line in answers]
        marks = ", ".join("?" * 17)
        try:
            with _transaction(self._connection):
                self._connection.execute(
                    "INSERT OR IGNORE INTO models (model) VALUES (?)", (model_version(),)
                )
                number = self._number(model_version())
                self._connection.executemany(
                    f"INSERT OR IGNORE INTO plans VALUES ({marks})",  # noqa: S608
                    [(number, *row) for row in rows],
                )
        except sqlite3.Error as error:
            _refuse(f"{_SUBJECT} {self._path}", True, error)

    # --- a reader's side

    def models(self) -> dict[str, int]:
        """Return the number of answers of each model, the first to write first.

        Returns
        -------
        dict
            The number by the model's name.
        """
        rows = self._rows(
            "SELECT models.model, COUNT(key) FROM models LEFT JOIN plans ON plans.model = number "
            "GROUP BY number ORDER BY number"
        )
        if not all(isinstance(name, str) and name.isprintable() for name, _ in rows):
            _refuse(f"{_SUBJECT} {self._path}", False, "a damaged table of models")
        return dict(rows)

    def require_model(self, model: str) -> str:
        """Return the name of one of the store's models.

        Parameters
        ----------
        model : str
            The name.

        Returns
        -------
        str
            The same name.

        Raises
        ------
        RequestError
            If the store has no such model; the message names the nearest.
        """
        models = self.models()
        if model not in models:
            listed = ", ".join(models) or "none"
            raise refuse("model", f"be one of {listed}", repr(model), did_you_mean(model, models))
        return model

    def plans(
        self, model: str | None = None, *, settings: Mapping[str, str] | None = None, **keys: object
    ) -> Generator[StoredPlan, None, None]:
        """Yield the answers of one model or of all, by model and by m, n, k.

        Damaged rows are left out, and counted in `damaged`.

        Parameters
        ----------
        model : str or None
            The model; all unless given.
        settings : mapping or None
            The chip's settings that an answer must have.
        **keys : object
            Values that a problem must have, by key.

        Yields
        ------
        StoredPlan
            An answer, in order.
        """
        rows = self._iterated(
            f"SELECT {PLAN_COLUMNS} FROM plans JOIN models ON plans.model = number "  # noqa: S608
            "WHERE (? IS NULL OR models.model = ?) ORDER BY number, m, n, k, key",
            (model, model),
        )
        for row in rows:
            plan = plan_of(row)
            if plan is None:
                self.damaged += 1
                continue
            wanted = settings is None or dict(settings) == dict(plan.settings)
            if wanted and all(plan.problem.get(key) == value for key, value in keys.items()):
                yield plan

    def problem_keys(self) -> tuple[str, ...]:
        """Return the keys of the problems in the store, of all models.

        Returns
        -------
        tuple of str
            The keys.
        """
        fields_of_problem = [f.name for f in fields(Problem)]
        rows = self._rows(
            "SELECT DISTINCT json_each.key FROM plans, json_each(plans.problem) "
            "WHERE json_valid(problem) AND json_type(problem) = 'object'"
        )
        stored = {row[0] for row in rows}
        return (
            *(key for key in fields_of_problem if key in stored),
            *sorted(stored - {*fields_of_problem}),
        )

    def _number(self, model: str) -> int | None:
        rows = self._rows("SELECT number FROM models WHERE model = ?", (model,))
        if rows and not isinstance(rows[0][0], int):
            raise unreadable(f"{_SUBJECT} {self._path}", "a model without a number")
        return rows[0][0] if rows else None

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        return list(self._iterated(query, values))

    def _iterated(self, query: str, values: tuple[object, ...]) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(query, values)
        except (sqlite3.Error, OverflowError) as error:
            _refuse(f"{_SUBJECT} {self._path}", False, error)


def _connected(name: str, where: str, *, write: bool = False) -> sqlite3.Connection:
    """Open a file of cubecore's, by its name or as a URI.

    Raises
    ------
    RequestError
        If the file is not a store of cubecore's.
    sqlite3.Error
        If the file cannot be opened, read or, with `write`, written.
    """
    uri = name.startswith("file:")
    connection = sqlite3.connect(name, timeout=PATIENCE_S, isolation_level=None, uri=uri)
    try:
        # A text that is no UTF-8 is its row's damage, which `plan_of` sees.
        connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
        _require_ours(connection, where)
        if write:
            _write_ahead(connection)
            with _transaction(connection):
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                for table in _TABLES.strip().split(";\n"):
                    connection.execute(table)
    except BaseException:
        connection.close()
        raise
    return connection


def _strange_beside(store: Path) -> str | None:
    """Return the name of a file that SQLite would take for its own, and delete or write.

    It is a link or a folder, or begins as none of SQLite's do; an unfinished one is empty.
    """
    for ending, beginnings in _BESIDE.items():
        file = store.with_name(store.name + ending)
        if file.is_symlink() or (file.exists() and not file.is_file()):
            return file.name
        if beginnings and file.is_file():
            with file.open("rb") as opened:
                begins = opened.read(4)
            if begins and begins not in beginnings:
                return file.name
    return None


def _takes_no_files(store: Path) -> bool:
    """True if a store lies in a folder that takes no files, and nothing is still on its way in."""
    log = store.with_name(f"{store.name}-wal")
    return not os.access(store.parent, os.W_OK) and not (log.exists() and log.stat().st_size)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers read while one writes; SQLite does not wait for this by itself."""
    end = monotonic() + PATIENCE_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() > end:
                raise
            sleep(0.05)
        else:
            connection.execute("PRAGMA synchronous = NORMAL")
            return


def _require_ours(connection: sqlite3.Connection, where: str) -> None:
    """Refuse an SQLite file that something else made, or a later cubecore."""
    values = [
        connection.execute(query).fetchone()[0]
        for query in (
            "SELECT COUNT(*) FROM sqlite_master",
            "PRAGMA application_id",
            "PRAGMA user_version",
        )
    ]
    tables, owner, version = values
    if tables and owner != APPLICATION_ID:
        raise unable(where, f"{where} is no store of cubecore but another SQLite database")
    if tables and version != FORMAT:
        raise unable(where, f"{where} has store format {version}; this version reads {FORMAT}")


def _refuse(where: str, write: bool, error: Exception | str) -> NoReturn:
    raise (unwritable if write else unreadable)(where, error) from None
