"""Files that a command writes: each is whole or as it was, and no other one's input."""

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from cubecore.errors import RequestError, Violation, unwritable

TEMPORARY = ".cubecore"
"""The prefix of temporary files' names; they lie beside the file that they become."""


def _target(path: str, subject: str) -> Path:
    """Return the file that a name stands for; refuse what is no file and cannot become one."""
    where = f"{subject} {path}"
    try:
        target = Path(path).resolve()
        if path == "-":
            raise unwritable(where, "an output is a file; ./- names one called -")
        if path.endswith(os.sep) or target.is_dir():
            raise unwritable(where, "is a directory")
        if target.exists() and not (target.is_file() or target.is_char_device()):
            raise unwritable(where, "neither a file nor a terminal")
    except (OSError, ValueError, RuntimeError) as error:
        raise unwritable(where, error) from None
    return target


def require_apart(outputs: Sequence[tuple[str, str]], inputs: Sequence[tuple[str, str]]) -> None:
    """Refuse an output that is the same file as an input or as an output before it.

    Both are pairs of a subject and a path; ``-`` as an input is standard input. Links are followed
    and two names of one file are one. A terminal or /dev/null keeps nothing and may be both.

    Raises
    ------
    RequestError
        One violation for each such output.
    """
    taken = [(subject, path, _identity(path, read=True)) for subject, path in inputs]
    violations = []
    for subject, path in outputs:
        identity = _identity(path)
        other = next((t for t in taken if not identity.isdisjoint(t[2])), None)
        if other is None:
            taken.append((subject, path, identity))
            continue
        same = "" if path == other[1] else f", the same file as {other[1]}"
        violations.append(Violation(subject, f"name another file than {other[0]}", f"{path}{same}"))
    if violations:
        raise RequestError(violations)


def _identity(path: str, *, read: bool = False) -> frozenset[object]:
    """Return what two names of one file share: the resolved path, and the number on the device."""
    try:
        if read and path == "-":
            state = os.fstat(sys.stdin.fileno())
            return frozenset({(state.st_dev, state.st_ino)})
        resolved = Path(path).resolve()
    except (OSError, ValueError, RuntimeError):  # refused later, by who opens it
        return frozenset()
    try:
        state = resolved.stat()
    except OSError:
        return frozenset({resolved})
    if stat.S_ISCHR(state.st_mode):
        return frozenset()
    return frozenset({resolved, (state.st_dev, state.st_ino)})


def _temporary(folder: Path) -> tuple[int, str]:
    """Return (the descriptor, the name) of a new file in a folder."""
    import tempfile

    return tempfile.mkstemp(dir=folder, prefix=TEMPORARY)


def require_writable(path: str, subject: str) -> None:
    """Refuse an output path that cannot be written, before any work is done."""
    target = _target(path, subject)
    try:
        if target.exists():
            with target.open("ab"):
                return
        handle, probe = _temporary(target.parent)
        os.close(handle)
        Path(probe).unlink()
        if len(os.fsencode(target.name)) > _longest_name(target.parent):
            raise unwritable(f"{subject} {path}", "file name too long")
    except (OSError, ValueError) as error:
        raise unwritable(f"{subject} {path}", error) from None


def _longest_name(folder: Path) -> int:
    """Return how many bytes a name in a folder may have; Windows does not say, and takes 255."""
    return os.pathconf(folder, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255


def write_whole(path: str, data: bytes | str, subject: str) -> None:
    """Write a file in one step: it holds all of `data` or what it held before.

    A link's target is written, not the link; a terminal or /dev/null is written to as it is. Of a
    text, what has no encoding is written as an escape.
    """
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace")
    target = _target(path, subject)
    part = None
    try:
        if target.is_char_device():
            target.write_bytes(raw)
            return
        handle, part = _temporary(target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        put_in_place(Path(part), target)
        part = None
    except OSError as error:
        raise unwritable(f"{subject} {path}", error) from None
    finally:  # behind a Ctrl-C, too
        if part is not None:
            Path(part).unlink(missing_ok=True)


def put_in_place(part: Path, target: Path) -> None:
    """Give a finished temporary file its name, with the rights that the target has or would have.

    Raises
    ------
    OSError
        If the file cannot be renamed.
    """
    umask = os.umask(0)
    os.umask(umask)
    part.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~umask)
    part.replace(target)
