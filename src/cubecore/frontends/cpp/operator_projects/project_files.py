"""The files of an operator project: host code, kernels, and where their includes lie."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from cubecore.errors import unable
from cubecore.frontends.cpp.toolchain.diagnostics import MissingHeaderError
from cubecore.frontends.source_locations import shown_path

_SUFFIXES = (".cpp", ".cc", ".cxx", ".asc")
_HEADERS = (".h", ".hpp")
_ELSEWHERE = {"op_api", "opapi", "op_graph", "tests", "test", "examples", "build", "build_out"}
"""Folders of a project whose files are other programs."""
_REGISTERS = re.compile(r"\b(OP_ADD|IMPL_OP\w*|REGISTER_TILING_TEMPLATE\w*)\s*\(")
_ENTRY = re.compile(r"\b__global__\b")
_ANCESTORS = 4
_MARKS = ("CMakeLists.txt", "build.sh", "pyproject.toml", ".git")
"""Files and folders that a repository has at its top, and often in the folders of its parts."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """An operator project: its folder, the files of its op_host, and those of its kernels.

    `given` are folders for headers beside those that the project's files tell.
    """

    folder: Path
    host: tuple[Path, ...]
    kernels: tuple[Path, ...]
    given: tuple[Path, ...] = ()

    @property
    def includes(self) -> tuple[Path, ...]:
        """The folders in which the project's build looks for headers."""
        folders = {path.parent: None for path in self.host}
        for folder in (self.folder, *list(self.folder.parents)[:_ANCESTORS]):
            for name in ("", "op_host", "common", "common/inc", "inc", "include"):
                candidate = folder / name if name else self.folder
                if candidate.is_dir():
                    folders[candidate] = None
        return (*folders, *self.given)


def project_files(path: str | Path, includes: Sequence[str | Path] = ()) -> ProjectFiles:
    """Return the files of the operator project in a folder.

    Raises
    ------
    RequestError
        If there is no such folder, or it has no host code or no kernel of an operator.
    """
    folder, *given = (Path(each).resolve() for each in (path, *includes))
    for each, name in zip((folder, *given), (path, *includes), strict=True):
        if not each.is_dir():
            raise unable(str(name), f"cannot read {name}: no such folder")
    found = [
        file
        for file in sorted(folder.rglob("*"))
        if file.suffix in _SUFFIXES
        and file.is_file()
        and not _elsewhere(file.relative_to(folder).parts[:-1])
    ]
    texts = {file: file.read_bytes().decode("utf-8", "replace") for file in found}
    kernels = [file for file in found if _ENTRY.search(texts[file]) and not _in_host(file, folder)]
    host = [file for file in found if _in_host(file, folder)]
    host = host or [f for f in found if f not in kernels and _REGISTERS.search(texts[f])]
    for part, files in (("host code (op_host)", host), ("kernel (op_kernel)", kernels)):
        if not files:
            sentence = f"{shown_path(folder)} has no {part} of an operator"
            raise unable(str(path), sentence, "give the folder that holds op_host and op_kernel")
    return ProjectFiles(folder, tuple(host), tuple(kernels), tuple(given))


def _elsewhere(folders: tuple[str, ...]) -> bool:
    """True of other programs' files, and of copies that editors keep in hidden folders."""
    return any(name in _ELSEWHERE or name.startswith(".") for name in folders)


def _in_host(file: Path, folder: Path) -> bool:
    return "op_host" in file.relative_to(folder).parts


def with_headers(
    files: ProjectFiles, path: Path, compile_file: Callable[[ProjectFiles], T]
) -> tuple[ProjectFiles, T]:
    """Compile a file; of headers that are not found, take the nearest of the repository.

    Returns
    -------
    tuple
        The files with the folders of such headers, and what `compile_file` returns.

    Raises
    ------
    CubecoreError
        If the file does not compile.
    """
    while True:
        try:
            return files, compile_file(files)
        except MissingHeaderError as error:
            more = _folder_with(error.header, path, files)
            if more is None or more in files.given:
                raise
            files = replace(files, given=(*files.given, more))


def _folder_with(header: str, path: Path, files: ProjectFiles) -> Path | None:
    """Return the folder from which a repository's header has its name, the nearest to a file."""
    name = re.sub(r"^(?:\.\.?/)+", "", header)
    # The project's own repository comes first: packages beside it have headers of the same names.
    for root in _repositories(files):
        known = _repository_files(root).get(Path(name).name, ())
        fitting = [each for each in known if f"/{each.as_posix()}".endswith(f"/{name}")]
        if fitting:
            return Path(_nearest(fitting, path).as_posix().removesuffix(name))
    return None


def companions(files: ProjectFiles, read: Iterable[Path]) -> list[Path]:
    """Return the sources that define what the repository's headers declare: those of their names.

    `read` are the headers that the host code includes, of the project's repository and of those
    that hold the folders that are given.
    """
    roots = _repositories(files)
    found: dict[Path, None] = {}
    for header in sorted(read):
        root = next((each for each in roots if header.is_relative_to(each)), None)
        if header.suffix in _HEADERS and root is not None:
            known = _repository_files(root)
            named = [p for suffix in _SUFFIXES for p in known.get(header.stem + suffix, ())]
            if named:
                found[_nearest(sorted(named), header)] = None
    return [path for path in found if path not in files.host]


def _nearest(paths: Sequence[Path], to: Path) -> Path:
    return max(paths, key=lambda each: len(os.path.commonpath([each, to])))


def _repositories(files: ProjectFiles) -> list[Path]:
    """Return the project's repository, and those that hold the folders that are given."""
    return list(dict.fromkeys(map(_repository, (files.folder, *files.given))))


def _repository(folder: Path) -> Path:
    """Return the topmost folder above a project that looks like a repository's."""
    above = [folder, *folder.parents][: 2 * _ANCESTORS]
    marked = [each for each in above if any((each / mark).exists() for mark in _MARKS)]
    return marked[-1] if marked else folder


@cache
def _repository_files(root: Path) -> dict[str, list[Path]]:
    """Return the headers and sources below a folder by their names."""
    found: dict[str, list[Path]] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if each not in _ELSEWHERE and each[0] != ".")
        for name in names:
            if name.endswith((*_HEADERS, *_SUFFIXES)):
                found.setdefault(name, []).append(Path(folder) / name)
    return found
