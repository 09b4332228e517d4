"""The cache of compiled kernels, by content: a folder that may be emptied at any time."""

import atexit
import hashlib
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cubecore.version import __version__

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

MOST_BYTES = 2_000_000_000
"""The limit of the folder's size; the files that were used longest ago go first."""


@cache
def folder() -> Path:
    """Return $CUBECORE_CACHE or the platform's folder; one of this process if it is read-only."""
    given = os.environ.get("CUBECORE_CACHE")
    if given:
        base = Path(given)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches" / "cubecore"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cubecore"
    chosen = base / "cpp"
    try:
        chosen.mkdir(parents=True, exist_ok=True)
        if os.access(chosen, os.W_OK | os.X_OK):
            return chosen
    except OSError:
        pass
    from tempfile import mkdtemp

    temporary = Path(mkdtemp(prefix="cubecore-"))
    atexit.register(_remove, temporary, os.getpid())
    return temporary


def scratch_folder() -> "TemporaryDirectory[str]":
    """Return a new folder inside, which goes with the `with` that it is for."""
    from tempfile import TemporaryDirectory  # a start that compiles nothing is quicker

    return TemporaryDirectory(dir=folder())


def _remove(temporary: Path, owner: int) -> None:
    if os.getpid() == owner:
        import shutil

        shutil.rmtree(temporary, ignore_errors=True)


def digest(parts: Iterable[str | bytes]) -> str:
    """Return a name for some content."""
    hashed = hashlib.sha256(__version__.encode())
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        hashed.update(len(raw).to_bytes(8, "little"))
        hashed.update(raw)
    return hashed.hexdigest()[:32]


def file_digest(path: Path) -> str:
    """Return the digest of a file's bytes; of none if it cannot be read."""
    try:
        return digest([path.read_bytes()])
    except OSError:
        return ""


def trim() -> None:
    """Remove what was used longest ago, down to three quarters of the cap, if it is passed."""
    files = []
    for parent, _, names in os.walk(folder()):  # others may remove theirs meanwhile
        for path in (Path(parent, name) for name in names):
            with suppress(OSError):
                state = path.stat()
                files.append((state.st_atime, state.st_size, path))
    total = sum(size for _, size, _ in files)
    if total <= MOST_BYTES:
        return
    for _, size, path in sorted(files):
        path.unlink(missing_ok=True)
        total -= size
        if total <= MOST_BYTES * 3 // 4:
            return
