"""A file of an op_host that uses what is not here, compiled with functions that refuse when called.

The file is preprocessed, headers that are not found are empty, and the functions in which the
compiler finds errors are rewritten (`rewriting/refused_uses.py`), until the file compiles.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.operator_projects.project_files import ProjectFiles, with_headers
from cubecore.frontends.cpp.rewriting.refused_uses import UseError, marked, refusing
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.diagnostics import (
    MissingHeaderError,
    compile_with,
    errors_of,
    ran,
)

_ROUNDS = 12
_STAND_INS = {
    "nlohmann/json.hpp": """namespace nlohmann {
class json {};
using ordered_json = json;
}
#define NLOHMANN_DEFINE_TYPE_INTRUSIVE(...)
#define NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(...)
"""
}
"""Names that other declarations are made of, by their header; functions that use them refuse."""
Command = Callable[[ProjectFiles], list[str]]


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """A file as an object: the project with its headers' folders, and headers that are not here."""

    files: ProjectFiles
    absent: tuple[str, ...]


def compile_refusing(
    files: ProjectFiles, path: Path, out: Path, work: Path, command: Command
) -> TranslationUnit | None:
    """Compile a file into `out` with functions that refuse; None if that does not help.

    `command` returns the compiler's arguments but the file's. What is read is named in a file
    beside `out`, as the compiler's -MD writes it.
    """
    try:
        translation, text = _preprocessed(files, path, out.with_suffix(".ii"), work, command)
    except CubecoreError:
        return None
    unit = out.with_suffix(".ii")
    output = ["-x", "c++-cpp-output", "-c", str(unit), "-o", str(out)]
    arguments = [*command(translation.files), *output]
    text = marked(text, path)
    for _ in range(_ROUNDS):
        unit.write_text(text, "utf-8")
        code, said = ran(arguments, path, work)
        if code == 0:
            return translation
        changed = refusing(text, _errors(said, path), translation.absent)
        if changed == text:
            return None
        text = changed
    return None


def _preprocessed(
    files: ProjectFiles, path: Path, unit: Path, work: Path, command: Command
) -> tuple[TranslationUnit, str]:
    """Return a file's text behind the preprocessor; a header that is not here is empty."""
    stand_ins, absent = work / "stand_ins", list[str]()
    own = ["-MD", "-MF", str(unit.with_suffix(".d")), "-E", str(path), "-o", str(unit)]
    # The text names the compiled header in the place of its 95,000 lines, which a round would take
    # nearly a second to read.
    own += [] if compiler().is_clang else ["-fpch-preprocess"]

    def preprocess(project: ProjectFiles) -> None:
        compile_with([*command(project), f"-I{stand_ins}", "-x", "c++", *own], path, work)

    while True:
        try:
            files, _ = with_headers(files, path, preprocess)
            return TranslationUnit(files, tuple(absent)), unit.read_text("utf-8", "replace")
        except MissingHeaderError as error:
            name = re.sub(r"^(?:\.\.?/)+", "", error.header)
            if error.header in absent or name != error.header:
                raise
            absent.append(error.header)
            (stand_ins / name).parent.mkdir(parents=True, exist_ok=True)
            (stand_ins / name).write_text("#pragma once\n" + _STAND_INS.get(name, ""))


def _errors(said: str, path: Path) -> Iterator[UseError]:
    for error in errors_of(said, path):
        yield UseError(error.file, error.line, str(error.refusal))
