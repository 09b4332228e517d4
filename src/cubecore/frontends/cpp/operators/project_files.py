"""The files of an operator project: host code, kernels, and where their includes lie."""

import re
from collections.abc import Sequence
from pathlib import Path

from cubecore.errors import unable
from cubecore.frontends.source_locations import shown_path
from cubecore.lazy_dataclass import dataclass

_SUFFIXES = {".cpp", ".cc", ".cxx", ".asc"}
_ELSEWHERE = {"op_api", "opapi", "op_graph", "tests", "test", "examples", "build", "build_out"}
"""Folders of a project whose files are other programs."""
_REGISTERS = re.compile(r"\b(OP_ADD|IMPL_OP\w*|REGISTER_TILING_TEMPLATE\w*)\s*\(")
_ENTRY = re.compile(r"\b__global__\b")
_ANCESTORS = 4


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
