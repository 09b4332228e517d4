"""A file of answers that grows line by line, and goes on where a killed sweep left off.

Answers are collected in a temporary file of a unique name, beside a journal whose name is made of
the output's. The journal names that file and says what it answers: a digest of the queries, the
options and the model. The output appears when all answers are there. A sweep that finds a journal
of its own continues after the last whole line; what another sweep left is started anew.
"""

import hashlib
import json
import os
import stat
import tempfile
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from cubecore.aliases import JsonMapping
from cubecore.chips import chip_key, is_chip_file
from cubecore.errors import refuse, unable, unwritable
from cubecore.output_files import TEMPORARY, put_in_place
from cubecore.workflows.sweep.answers import SweepOptions, model_version

try:
    import fcntl
except ImportError:  # a system without it cannot see that two sweeps write one file
    fcntl = None  # type: ignore[assignment]

_JOURNAL = "cubecore's journal of "
_PART = ".part"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def signature(queries: BufferedReader, options: SweepOptions, defaults: JsonMapping) -> str:
    """Return what a file of answers answers; `queries` is read and set back to its start."""
    chip = defaults.get("chip")
    digest = hashlib.file_digest(queries, "sha256").hexdigest()
    queries.seek(0)
    asked = {"queries": digest, "defaults": dict(defaults), **options.to_json()}
    if is_chip_file(chip):
        asked["chip"] = chip_key(chip)
    return json.dumps({"model": model_version(), **asked}, sort_keys=True)


class GrowingFile:
    """The answers of one sweep on their way into `path`.

    Raises
    ------
    RequestError
        If the file cannot be written, or another sweep is writing it.
    """

    def __init__(self, path: str, asked: str) -> None:
        self.path = Path(path).resolve()
        self._subject = f"--out {path}"
        self._journal: Path | None = None
        self._part: Path | None = None
        self._lock: BinaryIO | None = None
        self.done = self.planned = 0
        self._file: BinaryIO
        try:
            # A device such as a terminal is written directly: there is nothing to continue.
            if self.path.is_char_device():
                self._file = self.path.open("r+b", buffering=0)
                return
            name = hashlib.sha256(os.fsencode(self.path.name)).hexdigest()[:16]
            self._journal = self.path.with_name(f"{TEMPORARY}-{name}.journal")
            self._lock = _open_plain(self._journal, os.O_CREAT)
            self._claim(self._lock)
            self._part = self._continue(self._lock, asked)
            self._file = _open_plain(self._part, os.O_APPEND)
        except OSError as error:
            self._close()
            raise unwritable(self._subject, error) from None
        except BaseException:
            self._close()
            raise

    def _claim(self, lock: BinaryIO) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise unable(self._subject, f"another sweep writes {self._subject}") from None

    def _continue(self, journal: BinaryIO, asked: str) -> Path:
        """Return the file of the answers that are there already, which may be none.

        What is not whole is dropped, and so is what another sweep left.
        """
        # The journal has three parts: the head with the output's name, the name of the part file,
        # and what it answers. A journal cut short by a crash is a prefix of the head at worst.
        head = f"{_JOURNAL}{self.path.name}\n"
        text = journal.read().decode(errors="surrogateescape")
        _, _, rest = text.partition("\n")
        if not text.startswith(head) and not head.startswith(text):
            need = f"find a journal of its own in {self._journal}"
            raise refuse(self._subject, need, "another file")
        name, _, answered = rest.partition("\n")
        part = self.path.with_name(name) if _is_part(name) else None
        if part is not None and part.is_file() and not part.is_symlink():
            if answered == asked:
                self.done, self.planned = _whole_lines(part)
                return part
            part.unlink()
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=TEMPORARY, suffix=_PART)
        os.close(handle)
        journal.seek(0)
        journal.truncate()
        try:
            journal.write(f"{head}{Path(temporary).name}\n{asked}".encode(errors="surrogateescape"))
            journal.flush()
        except OSError:
            Path(temporary).unlink()
            raise
        return Path(temporary)

    def write(self, lines: list[str]) -> None:
        """Add lines.

        Raises
        ------
        RequestError
            If the lines cannot be written.
        """
        try:
            self._file.write("".join(f"{line}\n" for line in lines).encode())
            self._file.flush()
        except OSError as error:
            raise unwritable(self._subject, error) from None

    def finish(self) -> None:
        """Give the file its name: all answers are there.

        Raises
        ------
        RequestError
            If the file cannot be renamed.
        """
        try:
            self._file.close()
            if self._part is not None and self._journal is not None:
                put_in_place(self._part, self.path)
                self._journal.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(self._subject, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # what a full disk refused was told by `write`
            self._file.close()
        self._close()

    def _close(self) -> None:
        if self._lock is not None:
            with suppress(OSError):  # the journal on a full disk: that was told, too
                self._lock.close()


def _open_plain(path: Path, flags: int = 0) -> BinaryIO:
    """Open a file to read and write; a link is not followed, and nothing but a file is taken.

    Raises
    ------
    OSError
        If the file cannot be opened, or is a link.
    """
    handle = os.open(path, os.O_RDWR | _NO_LINK | flags, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is no file")
    return os.fdopen(handle, "r+b")


def _is_part(name: str) -> bool:
    """True if a journal may name such a file: one in its own folder that a sweep has made."""
    return name.startswith(TEMPORARY) and name.endswith(_PART) and os.sep not in name


def _whole_lines(part: Path) -> tuple[int, int]:
    """Return how many answers are whole and how many of them are plans; cut off what is behind."""
    done = planned = whole = 0
    with _open_plain(part) as file:
        for line in file:
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                break
            if not line.endswith(b"\n") or not isinstance(answer, dict):
                break
            done, planned, whole = done + 1, planned + ("error" not in answer), whole + len(line)
        file.truncate(whole)
    return done, planned
