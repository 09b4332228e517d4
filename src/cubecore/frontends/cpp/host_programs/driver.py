"""`cubecore c++`: compile files of kernels and of host code, and link them to a program."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cubecore.errors import refuse, unable
from cubecore.frontends.cpp.files import INCLUDE, SUFFIXES, VENDOR_LIBRARIES, write_at_once
from cubecore.frontends.cpp.host_programs.executable import (
    has_other,
    joined,
    libraries_among,
    other_of,
    write_program,
)
from cubecore.frontends.cpp.host_programs.launch_headers import (
    host_headers,
    write_host_headers,
    write_launch_headers,
)
from cubecore.frontends.cpp.rewriting.source import Source, overlay, source_of
from cubecore.frontends.cpp.toolchain.build import (
    ARCHITECTURES,
    DEFAULT_ARCH,
    PROGRAM,
    TAKEN,
    arch_text_of,
    linked,
    macros_of,
    unit_command,
    user_macros,
)
from cubecore.frontends.cpp.toolchain.cache import scratch_folder
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.diagnostics import RewritableError, compile_with
from cubecore.frontends.cpp.toolchain.generated.header_folder import include_flags
from cubecore.frontends.cpp.toolchain.thread_flags import instrumented, is_of_threads

_DAV = "dav-"
"""The prefix of an architecture in `--npu-arch`."""
_JOINED = ("-D", "-U", "-I", "-L", "-l", "-iquote")
"""Options whose value may stand in the same word."""
_TAKEN = frozenset((*_JOINED, "-isystem", "-include"))
_WITH_VALUE = _TAKEN.union(("-o", "-x", "-MF"))
_IGNORED = (
    "-O",
    "-g",
    "-std=",
    "-W",
    "-f",
    "-M",
    "-m",
    "--cce-",
    "-x",
    "-pthread",
    "-s",
    "-r",
    "--sanitizer",
)


@dataclass(eq=False, slots=True)
class CompilerCall:
    """The arguments of one call of the compiler, sorted."""

    output: str | None = None
    compile_only: bool = False
    shared: bool = False
    archive: bool = False
    of_threads: bool = False
    arch: str = DEFAULT_ARCH
    auto_sync: bool = True
    verbose: bool = False
    launch_headers: str | None = None
    sources: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    defines: dict[str, object] = field(default_factory=dict)
    includes: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)


def compiler_call(words: Sequence[str]) -> CompilerCall:
    """Return the arguments of a call, sorted.

    Raises
    ------
    RequestError
        If an option lacks its value, or asks for another architecture.
    """
    call, rest = CompilerCall(), list(words)
    while rest:
        word = rest.pop(0)
        value = ""
        if word in _WITH_VALUE:
            if not rest:
                raise unable(word, f"{word} needs a value")
            value = rest.pop(0)
        _take(call, word, value)
    if not call.sources and not call.linked and call.launch_headers is None:
        raise unable("c++", "c++ needs a file", "as in: cubecore c++ main.cpp kernel.cpp -o demo")
    return call


def _take(call: CompilerCall, word: str, value: str) -> None:
    if word == "-o":
        call.output = value
    elif word in {"-c", "-dc"}:  # objects here may call functions of other ones anyway
        call.compile_only = True
    elif word == "--enable-simt":
        call.of_threads = True
    elif word == "-lib":
        call.archive = True
    elif word == "-shared":
        call.shared = True
    elif word == "--verbose":
        call.verbose = True
    elif word in _TAKEN:
        _take_value(call, word, value)
    elif word.startswith(_JOINED):
        option = next(each for each in _JOINED if word.startswith(each))
        _take_value(call, option, word.removeprefix(option))
    elif word.startswith("--launch-headers="):
        call.launch_headers = word.partition("=")[2]
    elif word.startswith("--npu-arch"):
        got = word.partition("=")[2]
        call.arch = got.removeprefix(_DAV)
        if call.arch not in ARCHITECTURES or not got.startswith(_DAV):
            known = " or ".join(f"{_DAV}{arch}" for arch in ARCHITECTURES)
            raise refuse("--npu-arch", f"be {known} for C++ kernels", got)
    elif word.startswith("--cce-auto-sync"):
        got = word.partition("=")[2] or "on"
        if got not in {"on", "off"}:
            raise refuse("--cce-auto-sync", "be on or off", got)
        call.auto_sync = got == "on"
    elif word.startswith("-Wl,-rpath"):
        call.linked.append(word)
    elif word.startswith(("-Wl,", "-rdynamic")):
        pass  # a library that another process loads is linked as it needs
    elif word.startswith("-") and word.startswith(_IGNORED):
        pass
    elif word.startswith("-"):
        raise unable(word, f"c++ does not know {word}", "see cubecore c++ --help")
    elif word.endswith(SUFFIXES):
        call.sources.append(word)
    else:
        call.linked.append(word)


def _take_value(call: CompilerCall, option: str, value: str) -> None:
    if option == "-D":
        name, sign, text = value.partition("=")
        call.defines[name] = text if sign else None
    elif option in {"-I", "-iquote", "-isystem"}:
        # The toolkit's folder is our headers', which stand behind those generated from them.
        if Path(value).resolve() != INCLUDE.resolve():
            call.includes.append(str(Path(value).absolute()))
    elif option == "-l":
        if value not in VENDOR_LIBRARIES:
            call.linked.append(f"-l{value}")
    elif option == "-L":
        call.linked.append(f"-L{value}")
    else:
        if option == "-U":
            call.defines.pop(value, None)
        call.passed += [option, value]


def compile_and_link(words: Sequence[str]) -> None:
    """Do what a call of the compiler asks for: objects, or a program.

    Raises
    ------
    RequestError
        If an argument is not usable, or a file does not compile.
    """
    call = compiler_call(words)
    with scratch_folder() as scratch:
        work = Path(scratch)
        sources = [source_of(name, call.defines) for name in call.sources]
        if call.launch_headers is not None:
            _launch_headers(call.launch_headers, sources)
            return
        if write_launch_headers(sources, work):
            call.includes.append(str(work))
        if call.compile_only:
            _objects(call, work)
            return
        objects = []
        for number, name in enumerate(call.sources):
            objects.append(work / f"{number}.o")
            _compile(call, name, objects[-1], work)
        if call.archive:
            _archive(Path(call.output or "a.a"), [*map(str, objects), *call.linked])
        else:
            _link(call, objects, work)


def _archive(out: Path, objects: Sequence[str]) -> None:
    """Make a static library of objects.

    Raises
    ------
    RequestError
        If `ar` is missing or fails.
    """
    tool = shutil.which("ar")
    if tool is None:
        raise unable("-lib", "c++ -lib needs the program ar", "install binutils")
    out.unlink(missing_ok=True)
    command = [tool, "qcs", str(out), *objects]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise unable("-lib", f"cannot write {out}: {done.stderr.strip().splitlines()[-1]}")


def _launch_headers(folder: str, sources: Sequence[Source]) -> None:
    """Write the headers that host code of other commands needs: of launches, and of a struct."""
    from cubecore.errors import unwritable

    try:
        write_host_headers(Path(folder))
        write_launch_headers(sources, Path(folder), included=False)
    except OSError as error:
        raise unwritable(folder, error) from None


def _objects(call: CompilerCall, work: Path) -> None:
    if call.output is not None and len(call.sources) > 1:
        raise unable("-o", "-o with -c takes one file", "compile the files one by one")
    for name in call.sources:
        _compile(call, name, Path(call.output or f"{Path(name).stem}.o"), work)


def _compile(
    call: CompilerCall,
    name: str,
    out: Path,
    work: Path,
    rewritten: frozenset[tuple[str, int]] = frozenset(),
) -> None:
    """Compile a file; `rewritten` are lines that the compiler refuses as they are."""
    named = source_of(name, call.defines)
    source = Source(
        named.path, named.text, named.defines, tuple(call.includes), rewritten=rewritten
    )
    code = overlay(source, work)
    object_file = work / "made.o"
    flags = compiler().flags()
    # A file with kernels is compiled once for each kind of core that it has code for; the first
    # object has main, too. Any other file is plain host code.
    commands = []
    if code.has_device_code or name.endswith((".asc", ".cce")):
        for part in code.parts:
            macros = macros_of(call.arch, part)
            unit = unit_command(source, code, (PROGRAM,), macros, work, auto_sync=call.auto_sync)
            if call.of_threads and not code.kernels and not is_of_threads(code, macros):
                unit = [*instrumented(), *unit]  # functions that threads of other files call
            commands.append([*(f"-D{m}" for m in macros), *unit])
    else:
        write_host_headers(work / "host", functions=True)
        folders = [*(f"-I{each}" for each in source.includes), *include_flags(work / "host")]
        before, after = user_macros(source, code, work, host_headers())
        commands.append([*before, *folders, *after, "-x", "c++", str(source.path)])
    made = []
    for command in commands:
        whole = [*flags, *command, *call.passed, "-c", "-o", str(object_file)]
        try:
            compile_with(whole, source.path, work, files=code.files, verbose=call.verbose)
        except RewritableError as error:
            # The lines are rewritten already, and it did not help.
            if error.lines <= rewritten:
                raise
            _compile(call, name, out, work, rewritten | error.lines)
            return
        made.append(object_file.read_bytes())
    write_at_once(out, joined(made[0], made[1] if len(made) > 1 else None))


def _link(call: CompilerCall, objects: Sequence[Path], work: Path) -> None:
    """Link a library for each part that an object has, and make a program of them."""
    out = Path(call.output or "a.out")
    words = [*map(str, objects), *call.linked]
    _require_one_part(words)
    libraries = [_linked(call, words, out, work) + arch_text_of(libraries_among(words))]
    # An object may hold a second one, of the AIC's part. These are linked as a library of their
    # own, in which files without such a part stand as they are.
    others = {word: other_of(Path(word)) for word in words if word.endswith(".o")}
    if any(part is not None for part in others.values()):
        for number, (word, part) in enumerate(others.items()):
            if part is not None:
                held = work / f"other{number}.o"
                held.write_bytes(part)
                words[words.index(word)] = str(held)
        libraries.append(_linked(call, words, out, work))
    library = joined(libraries[0], libraries[1] if len(libraries) > 1 else None)
    if call.shared:
        write_at_once(out, library)
    else:
        write_program(library, out)


def _require_one_part(words: Sequence[str]) -> None:
    """Refuse libraries with a part for AICs: only the first part of them would be linked.

    Raises
    ------
    RequestError
        If a library has two parts.
    """
    for path in libraries_among(words):
        if has_other(path):
            has = f"{path.name} has kernels of AICs and AIVs, and libraries are linked for one kind"
            raise unable(path.name, has, "link their object files into the program")


def _linked(call: CompilerCall, words: Sequence[str], out: Path, work: Path) -> bytes:
    """Return the library of some objects."""
    program = work / "program.so"
    command = ["-shared", "-o", str(program), *words]
    compile_with([*command, *linked(*TAKEN)], out, work, verbose=call.verbose)
    return program.read_bytes()
