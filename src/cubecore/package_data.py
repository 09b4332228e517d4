"""Files of the package, in its folder or in the archive that it was imported from."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

ROOT = Path(__file__).parent
"""The package's folder, or the name that it has in an archive."""


def packaged(*names: str, root: Path = ROOT) -> "Traversable":
    """Return a file or a folder of the package; its reader says if it is not there."""
    path = root.joinpath(*names)
    return path if path.exists() else _archived(path)


def _archived(path: Path) -> "Traversable":
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    if archive is None:
        return path
    from zipfile import Path as ArchivePath  # an installed package needs none

    return ArchivePath(archive).joinpath(*path.relative_to(archive).parts)


def files_below(folder: "Traversable", *endings: str) -> "Iterator[tuple[str, Traversable]]":
    """Yield the files of a folder and its folders, by their names from there, sorted."""
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from (
                (f"{entry.name}/{name}", file) for name, file in files_below(entry, *endings)
            )
        elif entry.name.endswith(endings):
            yield entry.name, entry
