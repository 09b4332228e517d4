"""The folder of headers that are written from declarations, and how compilers find headers."""

import os
from functools import cache
from pathlib import Path

from cubecore.frontends.cpp.files import HERE, INCLUDE
from cubecore.frontends.cpp.toolchain.cache import digest, folder, used

_WRITERS = ("toolchain", "../../isa", "../../tiling/model/tcubetiling.py")
"""Files and folders of Python that say what is written."""
_READY = "ready"


@cache
def headers() -> str:
    """Return a digest of the headers and the runtime: of their sizes and times, not their text."""
    return _state("include", "runtime")


def include_flags(*folders: Path) -> list[str]:
    """Return the compiler's arguments by which it finds headers, `folders` last."""
    return [f"-I{each}" for each in (header_folder(), INCLUDE, *folders)]


def header_folder() -> Path:
    """Return the folder of headers that no architecture changes, written if it is not there.

    Some stand before those of the same name in the package, from which they are made.
    """
    base = folder() / f"headers-{digest((str(HERE), headers(), _state(*_WRITERS)))}"
    if not (base / _READY).is_file():
        from cubecore.frontends.cpp.toolchain.generated_headers import shared_headers

        for name, text in shared_headers():
            write_header(base / name, text)
        write_header(base / _READY, "")
    used(base / _READY)
    return base


@cache
def compiled_texts() -> dict[str, str]:
    """Return the headers in the folder `cubecore` as they are compiled, by their names."""
    written, found = header_folder(), {}
    for path in sorted((INCLUDE / "cubecore").rglob("*.h")):
        name = path.relative_to(INCLUDE)
        compiled = written / name if (written / name).is_file() else path
        found[name.as_posix()] = compiled.read_text("utf-8")
    return found


def write_header(path: Path, text: str) -> None:
    """Write a header in one step, as other processes write it, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    beside.write_text(text, "utf-8")
    beside.replace(path)


def _state(*names: str) -> str:
    """Return a digest of the sizes and times of files, in the folders of these names."""
    found = []
    for base in (HERE / name for name in names):
        inside = ((parent, name) for parent, _, files in os.walk(base) for name in files)
        for path in (Path(*each) for each in inside) if base.is_dir() else (base,):
            if path.suffix != ".pyc":
                state = path.stat()
                found.append(f"{path} {state.st_size} {state.st_mtime_ns}")
    return digest(sorted(found))
