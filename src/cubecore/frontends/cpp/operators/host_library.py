"""An op_host as a library of the host: compiled file by file, linked, kept in the cache."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.compile.build import dependencies, headers, runtime
from cubecore.frontends.cpp.compile.cache import (
    digest,
    file_digest,
    folder,
    scratch_folder,
    trim,
    used,
)
from cubecore.frontends.cpp.compile.compiler import compiler
from cubecore.frontends.cpp.compile.diagnostics import compile_with, ran
from cubecore.frontends.cpp.compile.generated_headers import TCUBETILING_NAME, tcubetiling_header
from cubecore.frontends.cpp.launch_options import HERE, INCLUDE
from cubecore.frontends.cpp.operators.project_files import ProjectFiles
from cubecore.lazy_dataclass import dataclass

_UNDEFINED = re.compile(r"undefined reference to [`']?(?P<name>[\w.$@]+)")
_SERVE = '#include "cubecore/op_host/serve.h"\n'


@dataclass(frozen=True, slots=True)
class HostLibrary:
    """A compiled op_host, and the sentences on those of its files that do not compile."""

    path: Path
    failed: tuple[str, ...]


def host_library(
    files: ProjectFiles, defines: Sequence[str] = (), *, verbose: bool = False
) -> HostLibrary:
    """Return the library of a project's op_host, compiled if the cache does not have it.

    A file that does not compile is left out; functions that the others lack refuse when they are
    called.

    Raises
    ------
    RequestError
        If no compiler is found, or none of the files compiles.
    """
    tool = compiler()
    content = [tool.identity, headers(), str(HERE), *tool.flags(), *map(str, files.includes)]
    content += ["defines", *defines]
    for path in files.host:
        content += [str(path), file_digest(path)]
    record_path = folder() / f"op-host-{digest(content)}.json"
    kept = _kept(record_path)
    if kept is None:
        _build(files, defines, record_path, verbose=verbose)
        kept = _kept(record_path)
    assert kept is not None
    return kept


def _kept(record_path: Path) -> HostLibrary | None:
    try:
        record = json.loads(record_path.read_text())
        library = record_path.with_suffix(".so")
        if not library.is_file():
            return None
        if any(file_digest(Path(name)) != was for name, was in record["files"].items()):
            return None
        used(library)
        return HostLibrary(library, tuple(record["failed"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _build(
    files: ProjectFiles, defines: Sequence[str], record_path: Path, *, verbose: bool
) -> None:
    """Put the library of an op_host into the cache."""
    first: CubecoreError | None = None
    failed: list[str] = []
    objects: list[Path] = []
    read: set[Path] = set()
    with scratch_folder() as scratch:
        work = Path(scratch)
        for number, path in enumerate(files.host):
            out, deps = work / f"{number}.o", work / f"{number}.d"
            command = [
                *_command(files, defines),
                "-MD",
                "-MF",
                str(deps),
                "-c",
                str(path),
                "-o",
                str(out),
            ]
            try:
                compile_with(command, path, work, verbose=verbose)
            except CubecoreError as error:
                first = first or error
                failed.append(str(error))
                continue
            objects.append(out)
            read |= {*dependencies(deps, work, path)}
        if not objects:
            assert first is not None
            raise first
        library = _linked([*objects, _main()], files.folder, work)
        record = {"files": {str(f): file_digest(f) for f in sorted(read)}, "failed": failed}
        library.replace(record_path.with_suffix(".so"))
        note = work / "record.json"
        note.write_text(json.dumps(record))
        note.replace(record_path)
    trim()


def _command(files: ProjectFiles, defines: Sequence[str] = ()) -> list[str]:
    """Return the compiler's arguments for a file of an op_host, but the file."""
    prefix = _prefix()
    search = [f"-I{path}" for path in (*files.includes, INCLUDE, prefix.parent)]
    macros = [f"-D{one}" for one in defines]
    return [*_flags(), *macros, *search, "-include", str(prefix), "-x", "c++"]


def _flags() -> tuple[str, ...]:
    return (*compiler().flags(), "-O0", "-D__NPU_HOST__", "-D_GLIBCXX_USE_CXX11_ABI=1")


@cache
def _prefix() -> Path:
    """Return the header that every file of an op_host includes first, compiled beforehand."""
    tool = compiler()
    names = (HERE / "op_host_names.txt").read_text("ascii")
    made = (names, tcubetiling_header(), headers())
    base = folder() / f"op-host-{digest((tool.identity, str(HERE), *made, *_flags()))}"
    prefix, ready = base / "prefix.h", base / "prefix.h.gch"
    if ready.is_file() or (tool.is_clang and prefix.is_file()):
        used(prefix)
        return prefix
    base.mkdir(exist_ok=True)
    for name in names.split():
        alias = base / name
        alias.parent.mkdir(parents=True, exist_ok=True)
        _written(alias, '#pragma once\n#include "cubecore/op_host/all.h"\n')
    _written(base / TCUBETILING_NAME, tcubetiling_header())
    _written(prefix, '#include "cubecore/op_host/all.h"\n')
    if not tool.is_clang:
        with scratch_folder() as scratch:
            out = Path(scratch) / "out.gch"
            command = [*_flags(), f"-I{INCLUDE}", f"-I{base}", "-x", "c++-header", str(prefix)]
            command += ["-o", str(out)]
            compile_with(command, prefix, Path(scratch), verbose=True)
            out.replace(ready)
    return prefix


@cache
def _main() -> Path:
    """Return the object with the function that answers, which every op_host has."""
    prefix = _prefix()
    ready = prefix.with_name("serve.o")
    if not ready.is_file():
        with scratch_folder() as scratch:
            unit, out = Path(scratch) / "serve.cpp", Path(scratch) / "serve.o"
            unit.write_text(_SERVE)
            search = [f"-I{INCLUDE}", f"-I{prefix.parent}", "-include", str(prefix)]
            command = [*_flags(), *search, "-x", "c++", "-c"]
            compile_with([*command, str(unit), "-o", str(out)], unit, Path(scratch), verbose=True)
            out.replace(ready)
    return ready


def _written(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.part")
    beside.write_text(text)
    beside.replace(path)


def _linked(objects: Sequence[Path], project: Path, work: Path) -> Path:
    """Return the library; functions that its files lack are there, and refuse.

    Raises
    ------
    RequestError
        If the files cannot be linked.
    """
    library, lacking = work / "library.so", work / "lacking.o"
    command = ["-shared", "-o", str(library), *map(str, objects), str(runtime())]
    command += ["-lm", "-lpthread", "-Wl,-z,defs", "-Wl,-z,muldefs"]  # builds link some files only
    code, text = ran([*command, "-Wl,--no-demangle"], project, work)
    if code != 0:
        _refusing(dict.fromkeys(_UNDEFINED.findall(text)), lacking, work)
        compile_with([*command, str(lacking)], project, work)
    return library


def _refusing(names: Iterable[str], out: Path, work: Path) -> None:
    """Compile a function for each name that ends the program with a sentence."""
    text = '#include "cubecore/op_host/lacking.h"\n'
    for number, name in enumerate(names):
        text += f'CUBECORE_LACKING(lacking{number}, "{name}")\n'
    unit = work / "lacking.cpp"
    unit.write_text(text)
    command = [*_flags(), f"-I{INCLUDE}", "-x", "c++", "-c", str(unit), "-o", str(out)]
    compile_with(command, unit, work, verbose=True)
