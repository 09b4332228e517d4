"""A store of plans: an SQLite file, keyed by question and by the version of the model.

Several processes may write one at a time: a question is answered once for each version, whoever
comes first. Rows of another version are never read as this one's.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn, Self

from cubecore.aliases import Json, JsonMapping
from cubecore.errors import did_you_mean, refuse, unable, unreadable, unwritable
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.sweep.answers import Line, SweepOptions, key_of, model_version

APPLICATION_ID = 0x63756265
"""What marks an SQLite file as a store of cubecore."""
FORMAT = 1
"""The version of the tables below."""
PATIENCE_S = 60.0
"""How long to wait for another process that writes."""
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


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """One answer of a store: a plan, or `rule` and `message` of why there is none.

    `key` stands for the question, whatever the model.
    """

    model: str
    key: str
    problem: JsonMapping
    settings: Mapping[str, str]
    us: float | None
    cycles: int | None
    lower_bound_us: float | None
    limited_by: str | None
    rule: str | None
    message: str | None
    tiling: TCubeTiling | None

    def to_json(self) -> Json:
        """Return the parts."""
        return {
            "model": self.model,
            "problem": dict(self.problem),
            "settings": dict(self.settings),
            "us": self.us,
            "cycles": self.cycles,
            "lower_bound_us": self.lower_bound_us,
            "limited_by": self.limited_by,
            "rule": self.rule,
            "message": self.message,
            "tiling": None if self.tiling is None else self.tiling.to_json(),
        }


class Store:
    """An open store; `close` it, or use it as a context."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection, self._path = connection, path

    @classmethod
    def open(cls, path: str, *, write: bool = False, subject: str = _SUBJECT) -> "Store":
        """Open the store at `path`; with `write` make it if it is not there.

        Raises:
            RequestError: a file that is no store of cubecore's, of another format, or that cannot
                be read or written; `subject` is what the sentence is about.
        """
        where = f"{subject} {path}"
        target = Path(path).absolute()
        if not write and not target.is_file():
            raise unreadable(where, "is a directory" if target.is_dir() else "no such file")
        try:
            connection = sqlite3.connect(target, timeout=PATIENCE_S, isolation_level=None)
        except (sqlite3.Error, ValueError) as error:
            _refuse(where, write, error)
        try:
            _require_ours(connection, where)
            if write:
                _write_ahead(connection)
                with _transaction(connection):
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
                    for table in _TABLES.strip().split(";\n"):
                        connection.execute(table)
        except sqlite3.Error as error:
            connection.close()
            _refuse(where, write, error)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- a sweep's side

    def answers(self, problems: Sequence[JsonMapping], options: SweepOptions) -> list[Line | None]:
        """Return this model's answers to some problems; None where it has none."""
        number = self._number(model_version())
        if number is None:
            return [None] * len(problems)
        found = (
            self._rows(
                "SELECT message IS NULL, answer FROM plans WHERE model = ? AND key = ?",
                (number, key_of(problem, options)),
            )
            for problem in problems
        )
        return [
            Line(bool(rows[0][0]), zlib.decompress(rows[0][1]).decode()) if rows else None
            for rows in found
        ]

    def add(self, answers: Iterable[Line], options: SweepOptions) -> None:
        """Keep this model's answers; a question that has one keeps it.

        Raises:
            RequestError: the file can no longer be written.
        """
        rows = [_row(json.loads(made.text), made.text, options) for made in answers]
        marks = ", ".join("?" * 16)
        try:
            with _transaction(self._connection):
                self._connection.execute(
                    "INSERT OR IGNORE INTO models (model) VALUES (?)", (model_version(),)
                )
                number = self._number(model_version())
                self._connection.executemany(
                    f"INSERT OR IGNORE INTO plans VALUES ({number}, {marks})",  # noqa: S608
                    rows,
                )
        except sqlite3.Error as error:
            _refuse(f"{_SUBJECT} {self._path}", True, error)

    # --- a reader's side

    def models(self) -> dict[str, int]:
        """Return the models and how many answers each gave, the first to write first."""
        rows = self._rows(
            "SELECT models.model, COUNT(key) FROM models LEFT JOIN plans ON plans.model = number "
            "GROUP BY number ORDER BY number"
        )
        return dict(rows)

    def require_model(self, model: str) -> str:
        """Return the name of one of the models.

        Raises:
            RequestError: the store has no such model; the nearest is named.
        """
        known = self.models()
        if model not in known:
            listed = ", ".join(known) or "none"
            raise refuse("model", f"be one of {listed}", repr(model), did_you_mean(model, known))
        return model

    def plans(
        self, model: str | None = None, *, settings: Mapping[str, str] | None = None, **keys: object
    ) -> Iterator[StoredPlan]:
        """Yield the answers of one model or of all, by model and by m, n, k.

        `settings` and `keys`, values that a problem must have, leave out the others.
        """
        cursor = self._execute(
            "SELECT models.model, key, problem, settings, us, cycles, lower_bound_us, limited_by, "
            "rule, message, tiling FROM plans JOIN models ON plans.model = number "
            "WHERE (? IS NULL OR models.model = ?) ORDER BY number, m, n, k, key",
            (model, model),
        )
        for row in cursor:
            made = _stored(row)
            wanted = settings is None or dict(settings) == dict(made.settings)
            if wanted and all(made.problem.get(key) == value for key, value in keys.items()):
                yield made

    def problem_keys(self) -> tuple[str, ...]:
        """Return the keys of the problems in the store, whatever the model."""
        known = [f.name for f in fields(Problem)]
        rows = self._rows("SELECT DISTINCT json_each.key FROM plans, json_each(plans.problem)")
        found = {row[0] for row in rows}
        return (*(key for key in known if key in found), *sorted(found - {*known}))

    def _number(self, model: str) -> int | None:
        rows = self._rows("SELECT number FROM models WHERE model = ?", (model,))
        return int(rows[0][0]) if rows else None

    def _rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        return self._execute(query, values).fetchall()

    def _execute(self, query: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        try:
            return self._connection.execute(query, values)
        except sqlite3.Error as error:
            _refuse(f"{_SUBJECT} {self._path}", False, error)


def _row(made: JsonMapping, answer: str, options: SweepOptions) -> tuple[Any, ...]:
    """Return an answer's row but for the model."""
    p, error, predicted = made["problem"], made.get("error", {}), made.get("predicted", {})
    tiling = TCubeTiling(**made["tiling"]).to_bytes() if "tiling" in made else None
    return (
        *(key_of(p, options), p["chip"], p["m"], p["n"], p["k"], json.dumps(p)),
        *(json.dumps(options.to_json()["settings"]), options.alternatives),
        *(predicted.get("us"), predicted.get("cycles"), made.get("lower_bound_us")),
        *(predicted.get("limited_by"), error.get("rule"), error.get("message")),
        *(tiling, zlib.compress(answer.encode(), 1)),
    )


def _stored(row: tuple[Any, ...]) -> StoredPlan:
    values = dict(zip((f.name for f in fields(StoredPlan)), row, strict=True))
    for name in ("problem", "settings"):
        values[name] = json.loads(values[name])
    if values["tiling"] is not None:
        values["tiling"] = TCubeTiling.from_bytes(values["tiling"])
    return StoredPlan(**values)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
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


def _refuse(where: str, write: bool, error: Exception) -> NoReturn:
    raise (unwritable if write else unreadable)(where, error) from None
