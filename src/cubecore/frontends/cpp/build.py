"""From a C++ file to a shared library with one entry, by way of the cache."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from cubecore.errors import did_you_mean, refuse, shortened, unable, unreadable
from cubecore.frontends.cpp.cache import digest, file_digest, folder, trim
from cubecore.frontends.cpp.capi_header import header
from cubecore.frontends.cpp.compiler import compiler
from cubecore.frontends.cpp.elf import has_variables
from cubecore.frontends.cpp.scanner import Entry, Scan, scanned
from cubecore.frontends.source_locations import shown_path
from cubecore.lazy_dataclass import dataclass

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
_PARTS = {
    "vector": ("__DAV_C220_VEC__", "CUBECORE_PART=2"),
    "cube": ("__DAV_C220_CUBE__", "CUBECORE_PART=1"),
}
_ARCH = {"2201": ("__NPU_ARCH__=2201", "__CCE_AICORE__=220", "__DAV_C220__")}
_LONGEST_S = 300
PROGRAM = "cubecore_program"
"""The entry of a host program: its main, under another name."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file of kernels, and what is to be defined for the compiler."""

    path: Path
    text: str
    defines: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()

    @property
    def scan(self) -> Scan:
        """Return the entries and structs that the scanner finds."""
        return _scanned(self.text)

    def entry(self, name: str) -> Entry | None:
        """Return an entry of the file by its name, template arguments apart."""
        plain = name.split("<", maxsplit=1)[0].rsplit("::", maxsplit=1)[-1]
        return next((entry for entry in self.scan.entries if entry.name == plain), None)


@dataclass(frozen=True, slots=True)
class Built:
    """A library: where it is, its entry's parameters as letters, whether it has variables."""

    path: Path
    signature: str
    copies: bool


_scanned = lru_cache(maxsize=64)(scanned)


def source_of(path: str | Path, defines: Mapping[str, object] | None = None) -> Source:
    """Return the file at a path.

    Raises
    ------
    RequestError
        If there is no such file, or it is not text.
    """
    if not HERE.is_dir():
        where = "cubecore runs from an archive"
        raise unable(str(path), f"{where}, and the compiler cannot read it", "install cubecore")
    place = Path(path)
    try:
        raw = place.read_bytes()
    except OSError as error:
        raise unreadable(str(path), error) from None
    text = raw.decode("utf-8", "surrogateescape")
    named = tuple(k if v is None else f"{k}={v}" for k, v in (defines or {}).items())
    return Source(place.resolve(), text, named)


def require_entry(source: Source, name: str | None) -> str:
    """Return the entry to run: `name`, or the only one that the file has.

    Raises
    ------
    RequestError
        If the file has no such entry, or has several and none is named.
    """
    known = [entry.name for entry in source.scan.entries]
    shown = shown_path(source.path)
    if name is None:
        if len(known) == 1:
            return known[0]
        got = ", ".join(known) if known else "none"
        raise refuse("--entry", f"name a kernel of {shown}", got)
    found = source.entry(name)
    if found is None and known and name.split("<")[0].split("::")[-1] not in source.scan.words:
        raise refuse("--entry", f"name a kernel of {shown}", name, did_you_mean(name, known))
    if found is not None and found.templated and "<" not in name:
        raise refuse(name, "be named with its template arguments", name, f'as "{name}<...>"')
    return name


def built(source: Source, entry: str, arch: str, part: str, *, verbose: bool = False) -> Built:
    """Return the library of an entry, compiled if it is not in the cache.

    Raises
    ------
    RequestError
        If no compiler is found, the file does not compile, or the architecture has no headers.
    """
    if arch not in _ARCH:
        raise unable("a C++ kernel", f"C++ kernels run on architecture 2201, not on {arch}")
    macros = (*_ARCH[arch], *_PARTS[part])
    made = compiler()
    flags = (*made.flags(), *(f"-D{m}" for m in macros), *(f"-D{d}" for d in source.defines))
    content = (made.identity, str(source.path), source.text, entry, headers(), *flags)
    key = digest((*content, *source.includes))
    place = folder() / f"{key}.json"
    found = _kept(place)
    return found or _compiled(source, entry, flags, macros, place, verbose=verbose)


def _kept(place: Path) -> Built | None:
    """Return what the cache has, if the files that it was made of are as they were."""
    try:
        record = json.loads(place.read_text())
        library = place.with_suffix(".so")
        if not library.is_file():
            return None
        for name, was in record["files"].items():
            if file_digest(Path(name)) != was:
                return None
        return Built(library, record["signature"], record["copies"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@cache
def headers() -> str:
    """Return a digest of the headers and the runtime."""
    files = sorted(p for base in ("include", "runtime") for p in (HERE / base).rglob("*.*"))
    return digest(part for path in files for part in (path.name, path.read_bytes()))


def _compiled(
    source: Source,
    entry: str,
    flags: Sequence[str],
    macros: Sequence[str],
    place: Path,
    *,
    verbose: bool,
) -> Built:
    prefix = precompiled(macros)
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        work = Path(scratch)
        main, quoted = _overlay(source, work)
        unit = work / "unit.cpp"
        unit.write_text(_unit(str(main), entry), "utf-8", "surrogateescape")
        out, deps = work / "unit.so", work / "unit.d"
        search = [f"-iquote{q}" for q in quoted] + [f"-I{i}" for i in source.includes]
        command = [*flags, *search, f"-I{INCLUDE}", f"-I{prefix.parent}", "-include", str(prefix)]
        command += ["-shared"]
        command += ["-MD", "-MF", str(deps), "-x", "c++", str(unit), "-o", str(out)]
        compile_with(command, source.path, work, verbose=verbose)
        files = {str(f): file_digest(f) for f in _dependencies(deps, work, source.path)}
        for original in quoted:
            files.setdefault(str(original), "")
        files = {f: d for f, d in files.items() if d}
        signature = _signature(out)
        record = {"signature": signature, "copies": has_variables(out), "files": files}
        out.replace(place.with_suffix(".so"))
        note = work / "record.json"
        note.write_text(json.dumps(record))
        note.replace(place)
    trim()
    return Built(place.with_suffix(".so"), signature, record["copies"] is True)


def _unit(main: str, entry: str) -> str:
    escaped = main.replace("\\", "\\\\").replace('"', '\\"')
    if entry == PROGRAM:
        return (
            f'#define main {PROGRAM}\n#include "{escaped}"\n#undef main\n#line 1 "entry"\n'
            'extern "C" int cubecore_program_entry(int count, char** words) '
            f"{{ return cubecore::started(&{PROGRAM}, count, words); }}\n"
            'extern "C" const char* cubecore_signature() { return ""; }\n'
        )
    return (
        f'#include "{escaped}"\n'
        '#line 1 "entry"\n'
        'extern "C" int cubecore_entry(const uint64_t* words) '
        f"{{ return cubecore::enter(&{entry}, words); }}\n"
        'extern "C" const char* cubecore_signature() '
        f"{{ return cubecore::signature(&{entry}); }}\n"
    )


def _overlay(source: Source, work: Path) -> tuple[Path, list[Path]]:
    """Return the file to compile, rewritten where C++ needs it, and the folders of its includes.

    A file that includes a rewritten one is rewritten too.
    """
    made: dict[Path, Path | None] = {}

    def visit(path: Path, text: str) -> Path | None:
        if path in made:
            return made[path]
        made[path] = None
        scan = _scanned(text)
        new, changed = scan.text, scan.rewritten
        for name in dict.fromkeys(scan.includes):
            below = (path.parent / name).resolve()
            if not below.is_file():
                continue
            try:
                inner = visit(below, below.read_bytes().decode("utf-8", "surrogateescape"))
            except OSError:
                continue
            if inner is not None:
                changed = True
                new = _including(new, name, inner)
        if changed:
            target = work / f"{len(made)}-{path.name}"
            line = str(path).replace("\\", "\\\\").replace('"', '\\"')
            target.write_text(f'#line 1 "{line}"\n{new}', "utf-8", "surrogateescape")
            made[path] = target
        return made[path]

    main = visit(source.path, source.text)
    folders = list(dict.fromkeys(path.parent for path in made))
    if main is None and not source.path.is_file():
        main = work / source.path.name
        line = str(source.path).replace("\\", "\\\\").replace('"', '\\"')
        main.write_text(f'#line 1 "{line}"\n{source.text}', "utf-8", "surrogateescape")
    return main or source.path, folders


def _including(text: str, name: str, target: Path) -> str:
    """Return the text with another file included in the place of `name`."""
    pattern = rf'(?m)^([ \t]*#[ \t]*include[ \t]*)"{re.escape(name)}"'
    return re.sub(pattern, lambda match: f'{match.group(1)}"{target}"', text)


def _dependencies(deps: Path, work: Path, main: Path) -> list[Path]:
    """Return the user's files that a library was made of, but the first, which the key holds."""
    text = deps.read_text("utf-8", "surrogateescape").replace("\\\n", " ")
    names = re.findall(r"(?:\\.|[^\s\\])+", text.partition(": ")[2])
    found = []
    for name in names:
        path = Path(re.sub(r"\\(.)", r"\1", name))
        ours = path.is_relative_to(INCLUDE) or path.is_relative_to(folder())
        if ours or path.is_relative_to(work) or path == main or path.is_relative_to("/usr"):
            continue
        found.append(path)
    return found


def precompiled(macros: Sequence[str]) -> Path:
    """Return the header that every unit includes first; its compiled form lies beside it.

    Raises
    ------
    RequestError
        If the headers of cubecore do not compile.
    """
    made = compiler()
    flags = (*made.flags(), *(f"-D{m}" for m in macros))
    written = file_digest(HERE / "capi_header.py")
    base = folder() / f"pch-{digest((made.identity, headers(), written, *flags))}"
    prefix, ready = base / "prefix.h", base / "prefix.h.gch"
    if ready.is_file():
        return prefix
    base.mkdir(exist_ok=True)
    if not prefix.is_file():
        (base / "c_api").mkdir(exist_ok=True)
        _write(base / "c_api" / "asc_simd.h", header(_arch_of(macros)))
        _write(prefix, '#include "kernel_operator.h"\n#include "c_api/asc_simd.h"\n')
    if made.is_clang:
        return prefix
    with tempfile.TemporaryDirectory(dir=folder()) as scratch:
        out = Path(scratch) / "out.gch"
        command = [
            *flags,
            f"-I{INCLUDE}",
            f"-I{base}",
            "-x",
            "c++-header",
            str(prefix),
            "-o",
            str(out),
        ]
        compile_with(command, prefix, Path(scratch), verbose=True)
        out.replace(ready)
    return prefix


def runtime() -> Path:
    """Return the compiled runtime.

    Raises
    ------
    RequestError
        If no compiler is found.
    """
    made = compiler()
    place = folder() / f"runtime-{digest((made.identity, headers()))}.so"
    if not place.is_file():
        with tempfile.TemporaryDirectory(dir=folder()) as scratch:
            out = Path(scratch) / "runtime.so"
            text = HERE / "runtime" / "runtime.cpp"
            command = ["-std=c++17", "-O2", "-fPIC", "-shared", f"-I{INCLUDE}"]
            compile_with([*command, str(text), "-o", str(out)], text, Path(scratch), verbose=True)
            out.replace(place)
    return place


def _arch_of(macros: Sequence[str]) -> str:
    return next(arch for arch, own in _ARCH.items() if set(own) <= set(macros))


def _write(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as out:
        out.write(text)
    Path(out.name).replace(path)


def compile_with(arguments: Sequence[str], path: Path, work: Path, *, verbose: bool) -> None:
    """Run the compiler.

    Raises
    ------
    RequestError
        If it fails; the message has the first error with the user's file and line.
    """
    command = [*compiler().command, *arguments]
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(work)}
    try:
        done = subprocess.run(  # noqa: S603 - the compiler that the user has
            command,
            capture_output=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        late = f"the compiler did not finish {shown_path(path)} within {_LONGEST_S} s"
        raise unable(str(path), late) from None
    except OSError as error:
        raise unable(command[0], f"cannot run {command[0]}: {error.strerror}") from None
    if done.returncode == 0:
        return
    text = done.stderr.decode("utf-8", "replace")
    raise _first_error(text, path, done.returncode, verbose=verbose)


_ERROR = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_LACKING = re.compile(
    r"'(?:AscendC::)?(?P<name>\w+)'(?: was not declared| is not a member of 'AscendC"
    r"| does not name a| has not been declared| is not a template)"
    r"|(?:arguments to|template named|identifier|member named) '(?P<other>\w+)'"
)
_FROM = re.compile(r"^(?:.*from |.*required from .*?)?(?P<file>/[^\n:]+):(?P<line>\d+)")
_OURS = ("static assertion failed: ", "static_assert failed: ", "static assertion failed due to")


def _first_error(text: str, path: Path, code: int, *, verbose: bool) -> Exception:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = _ERROR.match(line)
        if match is None:
            continue
        file, at, said = Path(match["file"]), match["line"], match["text"].strip()
        if file.is_relative_to(INCLUDE) or str(file) == "entry":
            outside = _outside(lines, number)
            if outside is not None:
                file, at = outside
        where = f"{_shown(file, path)}:{at}" if str(file) != "entry" else shown_path(path)
        for own in _OURS:
            if said.startswith(own):
                return _refused(where, said.removeprefix(own).strip(' "'))
        lacking = _LACKING.search(said)
        name = (lacking["name"] or lacking["other"]) if lacking else ""
        if name in missing_names():
            return unable(f"AscendC::{name}", f"{where}: AscendC::{name} is not supported")
        more = "\n" + text if verbose else ""
        remedy = "" if verbose else "--verbose shows everything the compiler says"
        return unable(where, f"{where} does not compile: {shortened(said)}{more}", remedy)
    got = f"exit {code} of the compiler" if code >= 0 else f"signal {-code} of the compiler"
    got += f": {lines[-1]}" if lines else ""
    shown = shown_path(path)
    return unable(shown, f"{shown} does not compile: {got}")


@cache
def missing_names() -> frozenset[str]:
    """Return the documented names of the class API that the headers do not have."""
    return frozenset((HERE / "missing_names.txt").read_text("ascii").split())


def _refused(where: str, sentence: str) -> Exception:
    """Return the refusal of a documented name: the header's own sentence."""
    subject, _, rest = sentence.partition(" must ")
    need, _, got = rest.partition(", got ")
    value, _, remedy = got.partition("; ")
    return refuse(f"{where}: {subject}", need or "be provided", value or "none", remedy)


def _outside(lines: Sequence[str], number: int) -> tuple[Path, str] | None:
    """Return the user's line that led to an error in a header."""
    for line in [*lines[number + 1 :], *reversed(lines[:number])]:
        match = _FROM.match(line)
        ours = match is None or Path(match["file"]).is_relative_to(INCLUDE)
        if match is not None and not ours and not Path(match["file"]).is_relative_to(folder()):
            return Path(match["file"]), match["line"]
    return None


def _shown(file: Path, path: Path) -> str:
    if file.is_relative_to(folder()):
        return shown_path(path)
    try:
        return shown_path(file)
    except ValueError:
        return str(file)


def _signature(library: Path) -> str:
    """Return the letters of a library's entry, asked in another process: loading runs user code."""
    from cubecore.frontends.cpp.child import answer_of

    def ask() -> str:
        import ctypes

        ctypes.CDLL(str(runtime()), mode=ctypes.RTLD_GLOBAL)
        found = ctypes.CDLL(str(library)).cubecore_signature
        found.restype = ctypes.c_char_p
        return (found() or b"").decode()

    return answer_of(ask, "loading the kernel", 60)
