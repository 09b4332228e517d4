"""The cache of compiled kernels, by content: a folder that may be emptied at any time."""

import atexit
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cubecore.version import __version__

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

MOST_BYTES = 2_000_000_000
"""The limit of the folder's size; the files that were used longest ago go first."""
_IN_USE_S = 600
"""Seconds behind its last use for which something may be in use."""


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

    return TemporaryDirectory(dir=None if _filler else folder())


_filler: list[Callable[..., None]] = []


def fill_by(ask: Callable[..., None]) -> None:
    """Have another process compile what the cache lacks: this one cannot write to it.

    `ask` takes a kind, and what `filled` is given of it.
    """
    _filler[:] = [ask]


def filled(kind: str, *given: Any) -> bool:
    """Have another process compile something, if one does; False if this one is to.

    Raises
    ------
    CubecoreError
        If it does not compile.
    """
    for ask in _filler:
        ask(kind, *given)
    return bool(_filler)


def _remove(temporary: Path, owner: int) -> None:
    if os.getpid() == owner:
        import shutil

        shutil.rmtree(temporary, ignore_errors=True)


def digest(parts: Iterable[str | bytes]) -> str:
    """Return a name for some content."""
    # Each part is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.
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


def shared_units() -> list[Path]:
    """Return what is there of cubecore's own: headers, plain and compiled, and the runtime."""
    folders = ("pch-*", "headers-*", "op-host-*", "torch-*")
    found = [each for name in folders for each in folder().glob(name) if each.is_dir()]
    return [*found, *folder().glob("runtime-*"), *folder().glob("process-*")]


def used(path: Path) -> None:
    """Say that something of the cache is used now; most systems note reading it once a day."""
    with suppress(OSError):
        os.utime(path)


def trim() -> None:
    """Remove what was used longest ago, down to three quarters of the cap, if it is passed.

    A library goes with its record, and a folder as a whole. What is in use stays, as it may be
    another process's.
    """
    # A unit is all that has one digest: a folder, or files that differ in their suffix.
    units: dict[str, list[tuple[float, int, Path]]] = {}
    for parent, _, names in os.walk(folder()):  # others may remove theirs meanwhile
        for path in (Path(parent, name) for name in names):
            with suppress(OSError):
                state, unit = path.stat(), path.relative_to(folder()).parts[0].partition(".")[0]
                latest = max(state.st_atime, state.st_mtime)
                units.setdefault(unit, []).append((latest, state.st_size, path))
    sizes = {unit: sum(size for _, size, _ in files) for unit, files in units.items()}
    total = sum(sizes.values())
    if total <= MOST_BYTES:
        return
    for latest, unit in sorted((max(files)[0], unit) for unit, files in units.items()):
        if total <= MOST_BYTES * 3 // 4 or latest > time.time() - _IN_USE_S:
            return
        for _, _, path in units[unit]:
            with suppress(OSError):
                path.unlink()
        for inner, _, _ in os.walk(folder() / unit, topdown=False):
            with suppress(OSError):
                Path(inner).rmdir()
        total -= sizes[unit]
