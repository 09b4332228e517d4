"""An op_host as a library of the host: compiled file by file, linked, kept in the cache."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.documented import header_names
from cubecore.frontends.cpp.files import HERE
from cubecore.frontends.cpp.operator_projects.project_files import (
    ProjectFiles,
    companions,
    with_headers,
)
from cubecore.frontends.cpp.operator_projects.refusing_compiler import compile_refusing
from cubecore.frontends.cpp.toolchain.build import dependencies
from cubecore.frontends.cpp.toolchain.cache import (
    digest,
    file_digest,
    filled,
    folder,
    scratch_folder,
    trim,
    used,
)
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.diagnostics import MissingHeaderError, compile_with, ran
from cubecore.frontends.cpp.toolchain.generated.header_folder import (
    header_folder,
    headers,
    include_flags,
    write_header,
)
from cubecore.frontends.cpp.toolchain.runtime import runtime
from cubecore.frontends.cpp.toolchain.user_macros import split_macros

_UNDEFINED = re.compile(r"undefined reference to [`']?(?P<name>[\w.$@]+)")
_SERVE = '#include "cubecore/op_host/compiled/serve.h"\n'


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
    kept = _kept(record_path, files)
    if kept is None:
        if not filled("host", files, defines, verbose):
            _build(files, defines, record_path, verbose=verbose)
        kept = _kept(record_path, files)
    assert kept is not None
    return kept


def _kept(record_path: Path, files: ProjectFiles) -> HostLibrary | None:
    """Return the library of a record, None if a file has changed or what was absent is there."""
    try:
        record = json.loads(record_path.read_text())
        library = record_path.with_suffix(".so")
        if not library.is_file():
            return None
        if any(file_digest(Path(name)) != was for name, was in record["files"].items()):
            return None
        # A header that was missing then may be there now: what was left out compiles.
        if any((path / name).is_file() for name in record["absent"] for path in files.includes):
            return None
        used(library)
        return HostLibrary(library, tuple(record["failed"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _build(
    files: ProjectFiles, defines: Sequence[str], record_path: Path, *, verbose: bool
) -> None:
    """Put the library of an op_host into the cache."""
    with scratch_folder() as scratch:
        work = Path(scratch)
        objects = _Objects(files, tuple(defines), work, verbose)
        for path in files.host:
            objects.compile(path)
        if not objects.objects:
            raise objects.errors[0]
        # A part of a project that lacks something must not stop the rest. Files that do not compile
        # become ones whose functions refuse; functions that no file has are looked for in the
        # companions of the files that were read; what is still missing is linked as functions that
        # refuse when they are called.
        failed = [str(error) for error in objects.errors]
        undefined = _linked([*objects.objects, _main()], files.folder, work)
        if undefined and (more := companions(objects.files, objects.read)):
            for path in more:
                objects.compile(path)
            undefined = _linked([*objects.objects, _main()], files.folder, work)
        if undefined is not None:
            _complete([*objects.objects, _main()], undefined, files.folder, work)
        digests = {str(file): file_digest(file) for file in sorted(objects.read)}
        # The library comes first, the record that vouches for it last: other processes look for the
        # record.
        record = {"files": digests, "failed": failed, "absent": sorted(objects.absent)}
        _library(work).replace(record_path.with_suffix(".so"))
        note = work / "record.json"
        note.write_text(json.dumps(record))
        note.replace(record_path)
    trim()


@dataclass(eq=False, slots=True)
class _Objects:
    """The files of an op_host as objects: what they have read, and those that do not compile."""

    files: ProjectFiles
    defines: tuple[str, ...]
    work: Path
    verbose: bool
    whole: list[Path] = field(default_factory=list)
    refusing: list[Path] = field(default_factory=list)
    read: set[Path] = field(default_factory=set)
    errors: list[CubecoreError] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)

    @property
    def objects(self) -> list[Path]:
        """The objects in the order of their linking: of two definitions the first one stays."""
        return [*self.whole, *self.refusing]

    def _arguments(self, files: ProjectFiles) -> list[str]:
        return _command(files, self.work, self.defines)

    def compile(self, path: Path) -> None:
        """Compile a file, with the headers of its repository where it needs them."""
        number = len(self.objects) + len(self.errors)
        out, deps = self.work / f"{number}.o", self.work / f"{number}.d"
        own = ("-x", "c++", "-MD", "-MF", str(deps), "-c", str(path), "-o", str(out))

        def compiled(files: ProjectFiles) -> None:
            compile_with([*self._arguments(files), *own], path, self.work, verbose=self.verbose)

        try:
            self.files, _ = with_headers(self.files, path, compiled)
        except CubecoreError as error:
            unit = compile_refusing(self.files, path, out, self.work, self._arguments)
            if unit is None:
                self.errors.append(error)
                self.absent |= {error.header} if isinstance(error, MissingHeaderError) else set()
                return
            self.files = unit.files
            self.absent |= {*unit.absent}
            self.refusing.append(out)
        else:
            self.whole.append(out)
        self.read |= {*dependencies(deps, self.work, path)}


def _command(files: ProjectFiles, work: Path, defines: Sequence[str] = ()) -> list[str]:
    """Return the compiler's arguments for a file of an op_host, but the file."""
    prefix = _prefix()
    search = [*(f"-I{path}" for path in files.includes), *include_flags(prefix.parent)]
    before, after = split_macros(defines, work)
    return [*_flags(), *before, *search, "-include", str(prefix), *after]


def _flags() -> tuple[str, ...]:
    return (*compiler().flags(), "-O0", "-D__NPU_HOST__", "-D_GLIBCXX_USE_CXX11_ABI=1")


_PREFIX = '#include "cubecore/op_host/all.h"\n#include "tiling/tiling_api.h"\n'
"""All headers that define something: lines above a file's includes may define macros."""


@cache
def _prefix() -> Path:
    """Return the header that every file of an op_host includes first, compiled beforehand."""
    tool = compiler()
    names = header_names("op_hosts")
    content = (str(names), _PREFIX, header_folder().name)
    base = folder() / f"op-host-{digest((tool.identity, *content, *_flags()))}"
    prefix, ready = base / "prefix.h", base / "prefix.h.gch"
    if ready.is_file() or (tool.is_clang and prefix.is_file()):
        used(prefix)
        return prefix
    for name, header in names.items():
        write_header(
            base / name, f'#pragma once\n#include "cubecore/op_host/{header or "all"}.h"\n'
        )
    write_header(prefix, _PREFIX)
    if not tool.is_clang:
        with scratch_folder() as scratch:
            out = Path(scratch) / "out.gch"
            search = include_flags(base)
            command = [*_flags(), *search, "-x", "c++-header", str(prefix), "-o", str(out)]
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
            search = [*include_flags(prefix.parent), "-include", str(prefix)]
            command = [*_flags(), *search, "-x", "c++", "-c"]
            compile_with([*command, str(unit), "-o", str(out)], unit, Path(scratch), verbose=True)
            out.replace(ready)
    return ready


def prepare_host() -> None:
    """Compile what all op_hosts share, unless the cache has it."""
    _main()


def _library(work: Path) -> Path:
    return work / "library.so"


def _link(objects: Sequence[Path], work: Path) -> list[str]:
    """Return the arguments that link objects; builds link some of their files only."""
    command = ["-shared", "-o", str(_library(work)), *map(str, objects), str(runtime().library)]
    return [*command, "-lm", "-lpthread", "-Wl,-z,defs", "-Wl,-z,muldefs"]


def _linked(objects: Sequence[Path], project: Path, work: Path) -> list[str] | None:
    """Link objects; return the functions that none of them defines, None if all is linked."""
    code, text = ran([*_link(objects, work), "-Wl,--no-demangle"], project, work)
    return list(dict.fromkeys(_UNDEFINED.findall(text))) if code != 0 else None


def _complete(objects: Sequence[Path], undefined: Sequence[str], project: Path, work: Path) -> None:
    """Link objects whose files lack functions: these are there, and refuse.

    Raises
    ------
    RequestError
        If the files cannot be linked.
    """
    lacking = work / "lacking.o"
    _refusing(undefined, lacking, work)
    compile_with([*_link(objects, work), str(lacking)], project, work)


def _refusing(names: Iterable[str], out: Path, work: Path) -> None:
    """Compile a function for each name that ends the program with a sentence."""
    text = '#include "cubecore/op_host/compiled/lacking.h"\n'
    for number, name in enumerate(names):
        text += f'CUBECORE_LACKING(lacking{number}, "{name}")\n'
    unit = work / "lacking.cpp"
    unit.write_text(text)
    command = [*_flags(), *include_flags(), "-x", "c++", "-c", str(unit), "-o", str(out)]
    compile_with(command, unit, work, verbose=True)
