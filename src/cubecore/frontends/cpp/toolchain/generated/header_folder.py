"""The folder of headers that are written from declarations, and how compilers find headers."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cubecore.frontends.cpp.files import HERE, INCLUDE, REGISTERS_NAME
from cubecore.frontends.cpp.toolchain.cache import digest, folder, used

_WRITERS = ("toolchain", "../capi", "../../isa", "../../tiling/model/tcubetiling.py")
"""Files and folders of Python that say what is written."""
_RECORDS = ("wire.py", "matmul_wire.py", "thread_functions.py")
_READY = "ready"


def headers() -> str:
    """Return a digest of the headers and the runtime: of their sizes and times, not their text."""
    return _state("include", "runtime", *_RECORDS)


def include_flags(*folders: Path) -> list[str]:
    """Return the compiler's arguments by which it finds headers, `folders` last."""
    return [f"-I{each}" for each in (header_folder(), INCLUDE, *folders)]


def header_folder() -> Path:
    """Return the folder of headers that no architecture changes, written if it is not there.

    Some stand before those of the same name in the package, from which they are made.
    """
    base = folder() / f"headers-{digest((str(HERE), headers(), _state(*_WRITERS)))}"
    if not (base / _READY).is_file():
        for name, text in shared_headers():
            write_header(base / name, text)
        write_header(base / _READY, "")
    used(base / _READY)
    return base


def shared_headers() -> Iterator[tuple[str, str]]:
    """Yield the headers for every architecture: their names, and their texts."""
    from cubecore.frontends.cpp.toolchain.generated.class_calls import with_calls
    from cubecore.frontends.cpp.toolchain.generated.constructors import with_constructors
    from cubecore.frontends.cpp.toolchain.generated.register_headers import registers_header
    from cubecore.frontends.cpp.toolchain.generated.thread_math import (
        THREAD_MATH_NAME,
        thread_math_header,
    )
    from cubecore.frontends.cpp.toolchain.generated.wire_headers import wire_headers

    yield from wire_headers()
    yield REGISTERS_NAME, registers_header()
    yield THREAD_MATH_NAME, thread_math_header()
    for path in sorted(INCLUDE.rglob("*.h")):
        text = path.read_text("utf-8")
        written = with_calls(with_constructors(text))
        if written != text:
            yield path.relative_to(INCLUDE).as_posix(), written


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


@cache
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
