"""Run the compiler, and say in one sentence why it failed: the first error at the user's line."""

import os
import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cubecore.errors import (
    COMPILER,
    CubecoreError,
    RequestError,
    Violation,
    both_ends,
    refuse,
    unable,
)
from cubecore.frontends.cpp.documented import replaced
from cubecore.frontends.cpp.files import HERE, INCLUDE
from cubecore.frontends.cpp.rewriting.definitions import defined_alike, lines_of_calls_by_constants
from cubecore.frontends.cpp.toolchain.api_names import is_missing, of_host_code
from cubecore.frontends.cpp.toolchain.architecture_names import of_another_arch
from cubecore.frontends.cpp.toolchain.cache import folder
from cubecore.frontends.cpp.toolchain.compiler import UNDEFINED, compiler
from cubecore.frontends.cpp.toolchain.excerpts import excerpt
from cubecore.frontends.cpp.toolchain.kit_headers import definition_of, is_of_kit, nearest
from cubecore.frontends.cpp.toolchain.spelling import as_written, with_known_types
from cubecore.frontends.cpp.toolchain.user_macros import array_types, unfit_macro
from cubecore.frontends.source_locations import shown_path

SHOWS_ALL = "--verbose shows everything the compiler says"
"""The remedy of an error of which more was printed; a judge, which has no such option, lacks it."""
_LONGEST_S = 900
_STANDARD = "-std=c++17"
_NEEDS_CXX20 = re.compile(
    r"called in a constant expression|call to non-'constexpr' function"
    r"|must be initialized by mem-initializer in 'constexpr' constructor"
    r"|was not declared in this scope; did you mean 'AscendC::"
    r"|'(?P<name>\w+)' was not declared in this scope.*\n(?:.*\b(?P=name)\s*<|(?!\s*\d+ \|))"
)
"""Errors at what C++20 allows, and the vendor's compiler before C++20.

They are constexpr functions, and calls with template arguments of a function that the namespace of
its other arguments has, or would have: one that a template which nobody uses calls is never looked
for. An excerpt shows the arguments; of text that is no file there is none.
"""
_CHANGES_MEANING = " changes meaning of "
"""In an error at a member called like what its class uses, which clang does not look for."""

_MIXED = re.compile(r"operands to '\?:' have different types|conditional expression is ambiguous")
"""In errors at a conditional of a half and a number, which C++ converts either way."""


class MissingHeaderError(RequestError):
    """A header that the compiler does not find; `header` is its name in the include."""

    def __init__(self, where: str, header: str) -> None:
        lacks = "which is neither beside it nor among cubecore's headers"
        sentence = f"{where} includes {header}, {lacks}"
        remedy = nearest(header) or "put it beside the file"
        super().__init__([Violation(where, "", "", remedy, sentence)])
        self.header = header


_AGAIN = re.compile(r"redefinition of ")
_BEFORE = re.compile(r"(?P<file>[^\s:][^:]*):(?P<line>\d+):\d+: note: ")
"""At a function that is defined again, and where it was defined before."""


class RewritableError(RequestError):
    """Errors that a rewritten text does not have; `lines` are the files and lines to rewrite.

    There are conditionals of a half and a float, functions that are defined twice, and calls by a
    constant of their class template.
    """

    def __init__(self, error: CubecoreError, lines: frozenset[tuple[str, int]]) -> None:
        super().__init__(error.violations)
        self.origin = COMPILER
        _add_detail(self, error.detail)
        self.lines = lines


@dataclass(frozen=True, slots=True)
class _Unit:
    """A file that is compiled with the entries that it calls; how much of its errors is shown.

    `types` are the macros by which an operator's build names the types of its arrays.
    """

    path: Path
    entries: Sequence[str] = ()
    arch: str = ""
    types: Sequence[str] = ()
    verbose: bool = False


def _add_detail(error: CubecoreError, detail: str) -> None:
    """Set the lines under an error's sentence; a traceback has them too."""
    if detail:
        error.detail = detail
        error.add_note(detail)


def compile_with(
    arguments: Sequence[str],
    path: Path,
    work: Path,
    entries: Sequence[str] = (),
    *,
    files: Iterable[Path] = (),
    verbose: bool = False,
) -> None:
    """Run the compiler; `entries` are those that the unit calls, each on two lines of its end.

    `files` are those that it reads, where they are known.

    Raises
    ------
    RequestError
        If it fails; the message has the first error with the user's file and line.
    """
    # Some refusals say what the compiler lacks: a header or a constant of the kit, a later C++.
    # Each of these adds an argument that is not there yet, so that the loop ends.
    code, text = ran(arguments, path, work)
    while code != 0 and (changed := _accepting(text, work, arguments)) is not None:
        arguments = changed
        code, text = ran(arguments, path, work)
    if code != 0:
        macros = (each.partition("=") for each in arguments if each.startswith("-D"))
        arch = next((value for name, _, value in macros if name == "-D__NPU_ARCH__"), "")
        unit = _Unit(path, entries, arch, array_types(work), verbose)
        first = _first_error(text, unit, code)
        if isinstance(first, CubecoreError):
            first.origin = COMPILER
            _add_detail(first, "" if verbose else _excerpt(text, work, first))
        errors = [match for _, match in _errors(text.splitlines())]
        mixed = {(m["file"], int(m["line"])) for m in errors if _MIXED.search(m["text"])}
        lines = mixed.union(*(_twice(m["file"], text) for m in errors if _AGAIN.search(m["text"])))
        lines |= _calls_by_constants(text, {path, *files}, work)
        if lines and isinstance(first, CubecoreError):
            raise RewritableError(first, frozenset(lines))
        raise first
    if "-o" in arguments and not Path(arguments[arguments.index("-o") + 1]).is_file():
        shown = " ".join(compiler().command)
        raise unable(str(path), f"{shown} compiled {shown_path(path)} and wrote nothing")


def _twice(file: str, said: str) -> set[tuple[str, int]]:
    """Return the functions that a file and the one named in a note define alike."""
    before = next((m["file"] for m in _BEFORE.finditer(said)), file)
    texts = [Path(name) for name in (file, before)]
    if file == before or not all(path.is_file() for path in texts):
        return set()
    alike = defined_alike(*(path.read_text("utf-8", "surrogateescape") for path in texts))
    return {(n, line) for n, lines in zip((file, before), alike, strict=True) for line in lines}


def _calls_by_constants(text: str, read: set[Path], work: Path) -> set[tuple[str, int]]:
    """Return such calls that led to an error, or an end of the compiler, in ours."""
    if not any(_is_ours(Path(match["file"])) for match in _FAILED.finditer(text)):
        return set()
    led = {(m["file"], int(m["line"])) for m in map(_FROM.match, text.splitlines()) if m}
    files = {*map(str, read), *(file for file, _ in led)}
    texts = {file: _text_of(Path(file), work) for file in files if not _is_ours(Path(file))}
    calls = {(f, line) for f, each in texts.items() for line in lines_of_calls_by_constants(each)}
    return calls & led or calls  # a compiler that ends may not have said which


def _text_of(path: Path, work: Path) -> str:
    """Return the text of a file, or that of a source that is none, as it is compiled."""
    if path.is_file():
        return path.read_text("utf-8", "surrogateescape")
    copies = [each.read_text("utf-8", "surrogateescape") for each in work.glob(f"*{path.name}")]
    return copies[0].partition("\n")[2] if copies else ""  # behind its #line


def _accepting(text: str, work: Path, arguments: Sequence[str]) -> list[str] | None:
    """Return the arguments by which the compiler may take what it refused; None if none are."""
    if "-D__NPU_HOST__" not in arguments:
        more = _of_kit(text, work, arguments)
        if more is not None:
            return [*arguments, more]
    if _NEEDS_CXX20.search(text) and _STANDARD in arguments:
        return ["-std=c++20" if each == _STANDARD else each for each in arguments]
    if _CHANGES_MEANING in text and "-fpermissive" not in arguments:
        return [*arguments, "-fpermissive"]
    return None


def _of_kit(text: str, work: Path, arguments: Sequence[str]) -> str | None:
    """Return the argument that gives the name of the kit's that the compiler did not find.

    It is the folder of a header written now, or the definition of a constant.
    """
    first = next((match["text"] for _, match in _errors(text.splitlines())), "")
    lacking = _LACKING.search(first)
    constant = (lacking["name"] or lacking["other"]) if lacking else ""
    definition = definition_of(constant, work)
    if definition is not None:
        return None if definition in arguments else definition
    missing = _NO_FILE.match(first)
    name = (missing["gcc"] or missing["clang"]) if missing else ""
    header, folder = work / "kit" / name, f"-I{work / 'kit'}"
    if not is_of_kit(name) or (folder in arguments and header.exists()):
        return None
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text('#pragma once\n#include "kernel_operator.h"\n', "ascii")
    return folder


def ran(arguments: Sequence[str], path: Path, work: Path) -> tuple[int, str]:
    """Run the compiler; return its code, and what it says.

    Raises
    ------
    RequestError
        If it cannot be run, or does not end.
    """
    import subprocess  # a start without a compiler is quicker

    command = [*compiler().command, *arguments]
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(work)}
    try:
        # A session of its own: compilers start further processes, which have to end with it.
        process = subprocess.Popen(  # noqa: S603 - the compiler that the user has
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise unable(command[0], f"cannot run {command[0]}: {error.strerror}") from None
    with process:
        try:
            _, said = process.communicate(timeout=_LONGEST_S)
        except BaseException as stopped:
            os.killpg(process.pid, signal.SIGKILL)  # what it has started too
            if not isinstance(stopped, subprocess.TimeoutExpired):
                raise
            late = f"the compiler did not finish {shown_path(path)} within {_LONGEST_S} s"
            raise unable(str(path), late) from None
    return process.returncode, said.decode("utf-8", "replace")


_ERROR = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<text>.*)$"
)
_FAILED = re.compile(r"^(?P<file>[^\n:]+):\d+:\d+: (?:fatal |internal \w+ )?error: ", re.MULTILINE)
_LACKING = re.compile(
    r"'(?:AscendC::)?(?P<name>\w+)'(?: was not declared| is not a member of 'AscendC"
    r"|(?: in namespace '[\w:]+')? does not name a| has not been declared| is not a template)"
    r"|(?:arguments to|template named|identifier|(?:member|type) named|type name) '(?P<other>\w+)'"
)
_UNNAMED = re.compile(r"declared void$|^expected (?:template|class)-name ")
"""Errors at a name that is not declared which do not name it; the line behind them does."""
_NO_FILE = re.compile(
    r"(?P<gcc>[^\n:]+): No such file or directory|'(?P<clang>[^\n']+)' file not found"
)
_LENGTH = re.compile(r"local_array<[^>]*, (?P<length>[^>]*)>")
_UNDEFINED = re.compile(
    r"(?:^(?P<file>[^\n:]+):(?P<line>\d+): )?undefined reference to [`'](?P<name>[^\n]*)'"
    r"|undefined symbol: (?P<symbol>[^\n]*)\n>>> referenced by (?P<at>[^\n:]+):(?P<number>\d+)",
    re.MULTILINE,
)
_FROM = re.compile(
    r"^(?:.*from |.*required from .*?)?(?P<file>/[^\n:]+):(?P<line>\d+)(?::(?P<column>\d+))?"
)
_FLAG = re.compile(
    r"(?:unsupported|unknown|unrecognized|invalid)\b.*?\b(?:arg|arguments?|options?|flag|value)\b"
    r"[^-\n]*?(?P<flag>-[^\s'\";,]+)"
)
"""In a line that is no error at a file's: an argument that the compiler or its linker refuses."""
_IN_ITS_WORDS = " does not compile: "
_NAMES = "docs/cpp_names.md lists the names that are"
_OURS = re.compile(
    r"static(?:_assert| assertion) failed(?: due to requirement '.*')?:? \"?(?P<sentence>.*?)\"?$"
)


@dataclass(frozen=True, slots=True)
class CompilerError:
    """An error of the compiler: the user's line that led to it, and what is said of it."""

    file: Path
    line: int
    refusal: Exception


def errors_of(text: str, path: Path) -> Iterator[CompilerError]:
    """Yield the errors in the compiler's words on a file."""
    lines = text.splitlines()
    for number, match in _errors(lines):
        file, at = _place(lines, number, match)
        yield CompilerError(file, int(at), _told(lines, number, match, _Unit(path)))


def _errors(lines: Sequence[str]) -> Iterator[tuple[int, re.Match[str]]]:
    for number, line in enumerate(lines):
        match = _ERROR.match(line)
        if match is not None:
            yield number, match


def _place(lines: Sequence[str], number: int, match: re.Match[str]) -> tuple[Path, str]:
    """Return the file and the line of an error; of one in a header, those that led to it."""
    file = Path(match["file"])
    if _is_ours(file) or str(file) == "entry":
        return _outside(lines, number) or (file, match["line"])
    return file, match["line"]


def _is_ours(file: Path) -> bool:
    return any(map(file.is_relative_to, (INCLUDE, folder())))


def _first_error(text: str, unit: _Unit, code: int) -> Exception:
    lines = text.splitlines()
    flag = _refused_flag(lines)
    if flag:
        return _unfit_flag(flag)
    if any(map(unit.path.is_relative_to, (HERE, folder()))):
        return _unfit_compiler(lines, code)
    for number, match in _errors(lines):
        return _told(lines, number, match, unit)
    return _without_error(text, unit.path, code)


def _without_error(text: str, path: Path, code: int) -> Exception:
    """Return the refusal of what has no error at a line: a link, or an end of the compiler."""
    shown = shown_path(path)
    undefined = _UNDEFINED.search(text)
    if undefined is not None:
        where, file = shown, undefined["file"] or undefined["at"]
        if file:
            where = f"{_shown(Path(file), path)}:{undefined['line'] or undefined['number']}"
        return unable(
            UNDEFINED, f"{where} does not link: no {undefined['name'] or undefined['symbol']}"
        )
    return unable(shown, f"{shown} does not compile: {_end(code, text.splitlines())}")


def _refused_flag(lines: Sequence[str]) -> str:
    """Return the argument that the compiler or its linker does not take; none if it takes all."""
    for line in lines:
        if _ERROR.match(line):
            return ""
        match = None if "warning: " in line or "note: " in line else _FLAG.search(line)
        if match is not None:
            return match["flag"]
    return ""


def _unfit_flag(flag: str) -> Exception:
    """Return the refusal of a compiler that does not take a flag of ours or of CUBECORE_CXX."""
    tool = compiler()
    remedy = "set CUBECORE_CXX to g++ 11 or later, or clang++"
    if any(flag in word for word in tool.command[1:]):
        remedy = "leave it out of CUBECORE_CXX"
    shown = tool.version()
    return unable(shown, f"the compiler {shown} refuses the flag {flag}", remedy)


def _unfit_compiler(lines: Sequence[str], code: int) -> Exception:
    """Return the refusal of a compiler that fails on texts of cubecore's own."""
    shown = " ".join(compiler().command)
    got = next((line for line in lines if "error: " in line), _end(code, lines))
    remedy = "another compiler, or its flags, may be named in CUBECORE_CXX"
    said = f"{shown} does not compile cubecore's headers: {both_ends(with_known_types(got))}"
    return unable(shown, said, remedy)


def _end(code: int, lines: Sequence[str]) -> str:
    """Return how the compiler ended, and its last line."""
    got = f"exit {code} of the compiler" if code >= 0 else f"signal {-code} of the compiler"
    return got + (f": {both_ends(with_known_types(lines[-1]))}" if lines else "")


def _told(lines: Sequence[str], number: int, match: re.Match[str], unit: _Unit) -> Exception:
    """Return the refusal that the error on a line of the compiler's words is."""
    said, line = match["text"].strip(), int(match["line"])
    path, entries = unit.path, unit.entries
    if match["file"] == "entry" and line <= 2 * len(entries):
        unfit = _unfit(entries[(line - 1) // 2], said, shown_path(path))
        if unfit is not None:
            return unfit
    ours = _is_ours(Path(match["file"]))
    # From here on the cases that have a sentence of ours, the surest first; what is left is told in
    # the compiler's words.
    file, at = _place(lines, number, match)
    where = f"{_shown(file, path)}:{at}" if str(file) != "entry" else shown_path(path)
    asserted = _OURS.match(said)
    if asserted is not None:
        sentence = asserted["sentence"]
        return _refused(where, sentence) if ours else unable(where, f"{where}: {sentence}")
    if "local_array" in said:
        length = _LENGTH.search(said)
        got = length["length"].strip() if length else "another value"
        need = "be known when the kernel is compiled"
        return refuse(f"{where}: an array's length", need, got)
    no_file = _NO_FILE.match(said)
    if no_file is not None:
        return MissingHeaderError(where, no_file["gcc"] or no_file["clang"])
    lacking = _LACKING.search(said)
    name = (lacking["name"] or lacking["other"]) if lacking else ""
    excerpted = "".join(lines[number + 1 : number + 2])
    if _UNNAMED.search(said):
        name = next(filter(is_missing, re.findall(r"\w+", excerpted)), name)
    elsewhere = of_another_arch(said + excerpted, name, unit.arch, where)
    if elsewhere is not None:
        return elsewhere
    if is_missing(name):
        full = name if name.startswith(("asc_", "__")) else f"AscendC::{name}"
        return unable(full, f"{where}: {full} is not supported", replaced().get(name, _NAMES))
    expanded = "\n".join(lines[number + 1 : number + 5])  # a macro's line, and that which has it
    if (of_build := unfit_macro(name, expanded, unit.types, where)) is not None:
        return of_build
    if name == "cubecore_tiling_default":
        remedy = "write REGISTER_TILING_DEFAULT(Struct)"
        return refuse(f"{where}: GET_TILING_DATA", "have a registered struct", "none", remedy)
    if (unprovided := of_host_code(said, where)) is not None:
        return unprovided
    more = "\n" + "\n".join(map(with_known_types, lines)) if unit.verbose else ""
    remedy = "" if unit.verbose else SHOWS_ALL
    return unable(where, f"{where}{_IN_ITS_WORDS}{both_ends(as_written(said))}{more}", remedy)


def _unfit(entry: str, said: str, shown: str) -> Exception | None:
    """Return the refusal of an entry that the unit cannot call, as `said`, if it is known."""
    name, sign, arguments = entry.partition("<")
    if sign:
        return refuse(entry, f"have template arguments that {name} takes", f"<{arguments}")
    if said.startswith((f"'{entry}' was not declared", f"use of undeclared identifier '{entry}'")):
        return refuse("--entry", f"name a kernel of {shown}", entry)
    if said.startswith("no matching function for call to 'cubecore_enter"):
        return refuse(entry, "return void", "another type")
    if said.startswith("expected "):
        return unable(shown, f"{shown} does not compile: it ends within a block or a declaration")
    return None


def _refused(where: str, sentence: str) -> Exception:
    """Return the refusal that a header states: about a value, or of what it cannot do."""
    subject, must, rest = sentence.partition(" must ")
    if not must:
        said, _, remedy = sentence.partition("; ")
        return unable(where, f"{where}: {said}", remedy)
    need, _, got = rest.partition(", got ")
    value, _, remedy = got.partition("; ")
    return refuse(f"{where}: {subject}", need, value or "another", remedy)


def _outside(lines: Sequence[str], number: int) -> tuple[Path, str] | None:
    """Return the user's line that led to an error in a header."""
    match = _led_to(lines, number)
    return (Path(match["file"]), match["line"]) if match is not None else None


def _led_to(lines: Sequence[str], number: int) -> re.Match[str] | None:
    """Return the mention of the user's line that led to an error in a header."""
    for line in [*lines[number + 1 :], *reversed(lines[:number])]:
        match = _FROM.match(line)
        if match is not None and not _is_ours(Path(match["file"])):
            return match
    return None


def _excerpt(text: str, work: Path, error: CubecoreError) -> str:
    """Return the user's line at an error that is in the compiler's words, and a caret."""
    lines = text.splitlines()
    first = next(_errors(lines), None)
    if first is None or _IN_ITS_WORDS not in error.violations[0].sentence:
        return ""
    number, match = first
    behind, at = lines[number + 1 : number + 3], match
    if _is_ours(Path(match["file"])) or match["file"] == "entry":
        led = _led_to(lines, number)
        if led is None:
            return ""
        behind, at = [], led
    column, file = int(at["column"] or 0), Path(at["file"])
    is_clang = compiler().is_clang
    return excerpt(behind, file, int(at["line"]), column, work, counts_bytes=is_clang)


def _shown(file: Path, path: Path) -> str:
    if file.is_relative_to(folder()):
        return shown_path(path)
    try:
        return shown_path(file)
    except ValueError:
        return str(file)
