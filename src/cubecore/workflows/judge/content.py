"""Digests of submissions and tasks by their content, which stores and caches know them by."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from cubecore.errors import unreadable

_BUILT = "build"
"""The folder that a project's build leaves its files in: no part of what was submitted."""


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder, below it too, in the order of their names; no build's."""
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return [each for each in files if _BUILT not in each.relative_to(folder).parts]


def folder_digest(folder: Path, files: Iterable[Path]) -> str:
    """Return the digest of a folder's files with their names."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file.relative_to(folder)).encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def content_digest(path: str) -> str:
    """Return the digest of a file, or of a folder's files with their names.

    Raises
    ------
    RequestError
        If it cannot be read.
    """
    place = Path(path)
    try:
        if place.is_dir():
            return folder_digest(place, files_of(place))
        return hashlib.sha256(place.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
