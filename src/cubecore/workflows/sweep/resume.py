"""A file of answers that grows line by line, and goes on where a killed sweep left off.

Answers are collected in FILE.part, beside FILE.part.of, which says what they answer: a digest of
the queries, the options and the model. FILE appears when all are there. A sweep that finds a part
of its own continues after the last whole line of it; a part of another sweep is started anew.
"""

import hashlib
import json
import os
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self

from cubecore.errors import refuse
from cubecore.workflows.sweep.answers import Options, model_version

try:
    import fcntl
except ImportError:  # a system without it cannot see that two sweeps write one file
    fcntl = None  # type: ignore[assignment]


def signature(queries: BufferedReader, options: Options, defaults: object) -> str:
    """Return what a file of answers answers; `queries` is read and set back to its start."""
    digest = hashlib.file_digest(queries, "sha256").hexdigest()
    queries.seek(0)
    asked = {"queries": digest, "defaults": defaults, **options.to_json()}
    return json.dumps({"model": model_version(), **asked}, sort_keys=True)


class GrowingFile:
    """The answers of one sweep on their way into `path`.

    Raises:
        RequestError: the file cannot be written, or another sweep is writing it.
    """

    def __init__(self, path: str, asked: str) -> None:
        self.path = Path(path).resolve()
        self._subject = f"--out {path}"
        self._part = self.path.with_name(f"{self.path.name}.part")
        self._of = self.path.with_name(f"{self.path.name}.part.of")
        try:
            self._lock = self._of.open("a+b")
            self._claim()
            self.done = self._continue(asked)
            self.planned = self._planned()
            self._file = self._part.open("ab")
        except OSError as error:
            reason = error.strerror or str(error)
            raise refuse(self._subject, "be a file that can be written", reason) from None

    def _claim(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise refuse(self._subject, "be written by one sweep at a time", "another") from None

    def _continue(self, asked: str) -> int:
        """Return how many answers are there already; what is not whole or not ours is dropped."""
        self._lock.seek(0)
        if self._lock.read() != asked.encode():
            self._part.write_bytes(b"")
            self._lock.truncate(0)
            self._lock.write(asked.encode())
            self._lock.flush()
            return 0
        done = whole = 0
        with self._part.open("a+b") as file:
            file.seek(0)
            for line in file:
                if line.endswith(b"\n"):
                    done, whole = done + 1, whole + len(line)
            file.truncate(whole)
        return done

    def _planned(self) -> int:
        """Return how many of the answers that are there are plans."""
        with self._part.open(encoding="utf-8") as file:
            return sum("error" not in json.loads(line) for line in file)

    def write(self, lines: list[str]) -> None:
        """Add lines.

        Raises:
            RequestError: they cannot be written.
        """
        try:
            self._file.write("".join(f"{line}\n" for line in lines).encode())
            self._file.flush()
        except OSError as error:
            reason = error.strerror or str(error)
            raise refuse(self._subject, "be a file that can be written", reason) from None

    def finish(self) -> None:
        """Give the file its name: all answers are there."""
        self._file.close()
        os.replace(self._part, self.path)  # noqa: PTH105 - Path.replace would return another path
        self._of.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._lock.close()
