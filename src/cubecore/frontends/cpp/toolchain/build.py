"""From a C++ file to a shared library with its entries, by way of the cache."""

import json
import re
import sys
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cubecore.errors import CubecoreError, unable
from cubecore.frontends.cpp.documented import LIST, header_names, of_2201
from cubecore.frontends.cpp.files import HERE, INCLUDE, REGISTERS_NAME
from cubecore.frontends.cpp.rewriting.kinds import types_of_keys, words_of_kinds
from cubecore.frontends.cpp.rewriting.source import (
    Overlay,
    Source,
    host_structs,
    overlay,
    quoted,
)
from cubecore.frontends.cpp.toolchain.cache import (
    digest,
    file_digest,
    filled,
    folder,
    scratch_folder,
    trim,
    used,
)
from cubecore.frontends.cpp.toolchain.compiler import compiler, wrapped
from cubecore.frontends.cpp.toolchain.elf import has_variables
from cubecore.frontends.cpp.toolchain.generated.header_folder import (
    header_folder,
    headers,
    include_flags,
    write_header,
)
from cubecore.frontends.cpp.toolchain.runtime import runtime
from cubecore.frontends.cpp.toolchain.spelling import RENAMED
from cubecore.frontends.cpp.toolchain.thread_flags import enters, thread_flags, thread_linking
from cubecore.frontends.cpp.toolchain.user_macros import split_macros
from cubecore.frontends.source_locations import shown_path

_PARTS = {"vector": ("VEC", 2), "cube": ("CUBE", 1)}
"""The parts of a kernel, as macros name and count them."""
_TWIN = frozenset({"GmAlloc", "ICPU_RUN_KF"})
"""Words of programs that call kernels as the vendor's CPU twin does, by headers of any name."""
_LAYOUTS = frozenset(("MakeShape", "MakeStride", "MakeLayout", "MakeCoord", "Crd2Idx", "is_layout"))
"""Functions of a header with types whose names kernels have for their own."""
_TYPES = (
    *("DT_FLOAT", "DT_FLOAT16", "DT_INT8", "DT_INT32", "DT_UINT8", "DT_INT16", "DT_UINT16"),
    *("DT_UINT32", "DT_INT64", "DT_UINT64", "DT_DOUBLE", "DT_BOOL", "DT_BF16", "DT_INT4"),
    *("DT_COMPLEX32", "DT_COMPLEX64", "DT_HIFLOAT8", "DT_FLOAT8_E5M2", "DT_FLOAT8_E4M3FN"),
    *("DT_FLOAT8_E8M0", "DT_FLOAT4_E2M1", "DT_FLOAT4_E1M2", "DT_UINT1"),
)
"""Types that the build of an operator project compares ORIG_DTYPE_X with; the numbers are ours."""
_FORMATS = (
    *("FORMAT_ND", "FORMAT_NCHW", "FORMAT_NHWC", "FORMAT_NCDHW", "FORMAT_NDHWC", "FORMAT_NC1HWC0"),
    *("FORMAT_NDC1HWC0", "FORMAT_FRACTAL_Z", "FORMAT_FRACTAL_Z_3D", "FORMAT_FRACTAL_NZ"),
)
"""Formats that it compares FORMAT_X with, likewise."""
_ABSENT = "of_2201_alone.h"
"""The header that lets no use of a function compile that architecture 3510 lacks."""
_ARCH = {"2201": 220, "3510": 310, "3003": 300, "3113": 311}
"""The architectures that have headers, with the number that __CCE_AICORE__ has for each.

Uncertain: those of Kirin, of which the pages name the Cube's functions alone.
"""
ARCHITECTURES = tuple(_ARCH)
DEFAULT_ARCH = "2201"
_ARCH_MARK = "cubecore's architecture "
_C_NAMES = frozenset(
    (
        *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil"),
        *("copysign", "cos", "cosh", "div", "erf", "erfc", "exp", "exp2", "expm1", "fabs"),
        *("floor", "fma", "fmax", "fmin", "fmod", "frexp", "hypot", "index", "j0", "j1", "ldexp"),
        *("lgamma", "log", "log10", "log1p", "log2", "logb", "modf", "nan", "pow", "remainder"),
        *("rint", "round", "select", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"),
        *("y0", "y1"),
    )
)
"""Functions of the host's C library: an entry of such a name gets another for the compiler."""
_IN_STD = _C_NAMES - {"index", "j0", "j1", "select", "y0", "y1"}
"""Those that std has, too: host code that says so means the function, not the entry."""
_NAMESPACES = frozenset({"matmul", "matmul_tiling"})
"""Global namespaces of the API, which a kernel of the name does not use: likewise."""
_PRODUCTS = (b"asc_mmad\0", b"asc_mmad_sparse\0", b"cubecore_matmul\0")
"""Texts and symbols of a library whose kernels multiply on the Cube."""
_SIGNATURE = "cubecore signature "
"""Begins the text in a library that describes the parameters of an entry."""
TAKEN = ("exit", "readlink")
"""Calls of a program that the runtime takes: its end, and the question where it lies."""
PROGRAM = "cubecore_program"
"""The name for a file's own main in the place of an entry."""


@dataclass(frozen=True, slots=True)
class Built:
    """An entry of a library: its parameters as letters, whether the library has variables.

    `words` are those of its files that say kinds of kernels; `products` says if it issues some.
    `types` are the entries, tiling keys and kernel types of the library's KERNEL_TASK_TYPE.
    """

    path: Path
    symbol: str
    signature: str
    copies: bool
    words: frozenset[str]
    products: bool
    types: tuple[tuple[str, int, str], ...]


def built(source: Source, entry: str, arch: str, part: str, *, verbose: bool = False) -> Built:
    """Return an entry in its library, compiled if it is not in the cache.

    Entries that are no templates share a library, which is compiled once; where that fails, since
    one of them is not there for the compiler, an entry has its own.

    Raises
    ------
    RequestError
        If no compiler is found, the file does not compile, or the architecture has no headers.
    """
    macros = macros_of(arch, part)
    content = _content(source, macros)
    # First the library of all entries, then the entry's own.
    plain = tuple(one.name for one in source.scan.entries if not one.templated)
    together = plain if entry in plain and len(set(plain)) == len(plain) else (entry,)
    for entries in dict.fromkeys((together, (entry,))):
        record_path = folder() / f"{digest((*content, *entries))}.json"
        kept = _kept(record_path, entry)
        if kept is not None:
            return kept
    if together != (entry,):
        first = folder() / f"{digest((*content, *together))}.json"
        try:
            _compile(source, together, macros, first, verbose=verbose)
            return _require_kept(first, entry)
        except CubecoreError as error:
            if error.violations[0].subject not in {shown_path(source.path), str(source.path)}:
                raise  # at a line of the user's, which is in both
    _compile(source, (entry,), macros, record_path, verbose=verbose)
    return _require_kept(record_path, entry)


def _content(source: Source, macros: Sequence[str]) -> tuple[str, ...]:
    """Return all that is known of a library before its compilation, but the entries.

    A digest of it is the key; headers that the compiler then read are in the record, and compared
    by content when it is looked up.
    """
    tool, listed = compiler(), file_digest(HERE / LIST)
    texts = (source.text, source.scan.text, headers(), listed, host_structs(source), source.keyed)
    given = (*(f"-D{d}" for d in source.defines), *source.includes)
    return (tool.identity, str(HERE), str(source.path), *texts, *_flags(macros), *given)


def _flags(macros: Sequence[str]) -> tuple[str, ...]:
    return (*compiler().flags(), *(f"-D{m}" for m in macros))


def fill(source: Source, entries: Sequence[str], macros: Sequence[str], *, verbose: bool) -> None:
    """Put the library of some entries into the cache, for a process that cannot.

    Raises
    ------
    CubecoreError
        If it does not compile.
    """
    record_path = folder() / f"{digest((*_content(source, macros), *entries))}.json"
    _compile(source, entries, macros, record_path, verbose=verbose)


def program_parts(source: Source) -> tuple[str, ...]:
    """Return the parts that a program's file is compiled for, that with its main first."""
    with scratch_folder() as scratch:
        return overlay(source, Path(scratch)).parts


def macros_of(arch: str, part: str) -> tuple[str, ...]:
    """Return the macros that tell the headers of an architecture and a part.

    Raises
    ------
    RequestError
        If the architecture has no headers.
    """
    if arch not in _ARCH:
        known = f"{', '.join(ARCHITECTURES[:-1])} and {ARCHITECTURES[-1]}"
        raise unable("a C++ kernel", f"C++ kernels run on architectures {known}, not on {arch}")
    core, (name, number) = _ARCH[arch], _PARTS[part]
    of_arch = f"__NPU_ARCH__={arch}", f"__CCE_AICORE__={core}", f"__DAV_C{core}__"
    return (*of_arch, f"__DAV_C{core}_{name}__", "__NPU_DEVICE__", f"CUBECORE_PART={number}")


_ARCH_TEXT = re.compile(rf"{_ARCH_MARK}(\d+)".encode())


def arch_of(library: bytes) -> str:
    """Return the architecture that a library's kernels were compiled for."""
    found = _ARCH_TEXT.search(library)
    return found[1].decode() if found else DEFAULT_ARCH


def arch_text_of(libraries: Iterable[Path]) -> bytes:
    """Return the text that names the architecture of shared libraries' kernels; none: empty."""
    texts = (_ARCH_TEXT.search(path.read_bytes()) for path in libraries)
    return next((text[0] for text in texts if text), b"")


def _require_kept(record_path: Path, entry: str) -> Built:
    """Return what was put into the cache just now.

    Raises
    ------
    RequestError
        If it is gone, or a file that it was made of has changed meanwhile.
    """
    kept = _kept(record_path, entry)
    if kept is None:
        raise unable(entry, f"the files of {entry} changed while they were compiled", "try again")
    return kept


def _kept(record_path: Path, entry: str) -> Built | None:
    """Return what the cache has, if the files that it was made of are as they were."""
    try:
        record = json.loads(record_path.read_text())
        library = record_path.with_suffix(".so")
        if not library.is_file():
            return None
        for name, was in record["files"].items():
            if file_digest(Path(name)) != was:
                return None
        number = list(record["signatures"]).index(entry)
        signature = record["signatures"][entry]
        used(library)
        types = tuple((name, key, task) for name, key, task in record["types"])
        return Built(
            library,
            f"cubecore_entry{number}",
            signature,
            record["copies"],
            frozenset(record["words"]),
            record["products"],
            types,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _compile(
    source: Source,
    entries: Sequence[str],
    macros: Sequence[str],
    record_path: Path,
    *,
    verbose: bool,
) -> None:
    """Put the library of some entries into the cache."""
    if filled("kernel", source, entries, macros, verbose):
        return
    from cubecore.frontends.cpp.toolchain.diagnostics import RewritableError, compile_with

    with scratch_folder() as scratch:
        work = Path(scratch)
        code = overlay(source, work)
        out, deps = work / "unit.so", work / "unit.d"
        command = [*unit_command(source, code, entries, macros, work), "-MD", "-MF", str(deps)]
        command += ["-shared", "-o", str(out)]
        command += linked(*TAKEN) if entries == (PROGRAM,) else linked()
        command += thread_linking(code, macros)
        try:
            call = [*_flags(macros), *command]
            compile_with(call, source.path, work, entries, files=code.files, verbose=verbose)
        except RewritableError as error:
            if error.lines <= source.rewritten:
                raise
            again = replace(source, rewritten=source.rewritten | error.lines)
            _compile(again, entries, macros, record_path, verbose=verbose)
            return
        # The library is moved into place before its record: whoever finds a record finds its
        # library.
        read = {*dependencies(deps, work, source.path), *code.files} - {source.path}
        files = {str(f): file_digest(f) for f in sorted(read)}
        raw = out.read_bytes()
        signatures = {e: "" if e == PROGRAM else _signature(raw, n) for n, e in enumerate(entries)}
        record = {
            "signatures": signatures,
            "copies": has_variables(raw),
            "words": sorted(words_of_kinds(code.words)),
            "products": any(call in raw for call in _PRODUCTS),
            "types": [(name.removeprefix(RENAMED), *rest) for name, *rest in types_of_keys(raw)],
            "files": files,
        }
        out.replace(record_path.with_suffix(".so"))
        note = work / "record.json"
        note.write_text(json.dumps(record))
        note.replace(record_path)
    trim()


def unit_command(
    source: Source,
    code: Overlay,
    entries: Sequence[str],
    macros: Sequence[str],
    work: Path,
    *,
    auto_sync: bool = True,
) -> list[str]:
    """Return the compiler's arguments for a unit that includes a source, but flags and output."""
    prefix = precompiled(macros)
    unit = work / "unit.cpp"
    unit.write_text(
        source.keyed + host_structs(source) + _unit(code, entries, auto_sync=auto_sync),
        "utf-8",
        "surrogateescape",
    )
    search = [f"-iquote{q}" for q in code.folders] + [f"-I{i}" for i in source.includes]
    before, after = user_macros(source, code, work, header_names())
    search += [*before, *include_flags(prefix.parent), "-include", str(prefix)]
    if _arch_of(macros) == "3510" and not code.words.isdisjoint(of_2201()):
        search += ["-include", str(prefix.parent / _ABSENT)]  # precompiled, it would be forgotten
    if any(word.startswith("ORIG_DTYPE_") for word in code.words):
        named = code.words | {word.partition("=")[2] for word in source.defines}
        search += [f"-D{name}={n}" for n, name in enumerate(_TYPES) if name in named]
    if code.words & {*_FORMATS[6:]}:  # names that are nobody else's
        search += [f"-D{name}={n}" for n, name in enumerate(_FORMATS) if name in code.words]
    search += thread_flags(code, macros)
    if code.words & _LAYOUTS:
        is_te = "Te" in code.words and _arch_of(macros) == "3510"
        name = "te/older.h" if is_te else "system/layouts.h"
        search += ["-include", str(INCLUDE / "cubecore" / name)]
    if code.words & _TWIN:
        search += ["-include", str(INCLUDE / "tikicpulib.h")]
    return [*search, *after, "-x", "c++", str(unit)]


def user_macros(
    source: Source, code: Overlay, work: Path, known: Container[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the compiler's words for a source's macros: before our headers, and after them.

    `known` are names that our headers go by beside their own.

    Raises
    ------
    RequestError
        If a macro has no name, or one of the API's.
    """
    return split_macros(source.defines, work, code.files, known)


def linked(*wrapped_calls: str) -> list[str]:
    """Return the linker's words for a library: the runtime's functions, and calls that it takes."""
    if sys.platform != "linux":
        return ["-undefined", "dynamic_lookup"]
    libraries = ["-x", "none", str(runtime().library), "-ldl", "-lm", "-lpthread"]
    # A kernel may be called like a function of C's library.
    own = "-Wl,-Bsymbolic" if compiler().is_zig else "-Wl,-Bsymbolic-functions"
    return ["-Wl,-z,defs", own, *wrapped(*wrapped_calls), *libraries]


_NO_LAUNCH = "#undef CUBECORE_LAUNCH\n#define CUBECORE_LAUNCH(...) ((void)0)\n"
"""Host code beside a kernel does not run in the kernel's library: its launches are left out."""
_LOCAL_POINTERS = frozenset({"__ubuf__", "GetPhyAddr", "asc_get_phy_buf_addr"})
"""Words of kernels that may have pointers into UB: in others such an address is a null pointer."""
_POINTS_INTO_UB = (
    "__attribute__((constructor)) static void cubecore_pointers() { cubecore_points_into_ub(); }\n"
)


def _in_std(name: str) -> str:
    """Return what lets host code call std's function whose name an entry has."""
    if name not in _IN_STD:
        return ""
    return (
        "#include <cmath>\n#include <cstdlib>\nnamespace std {\ntemplate <typename... A>\n"
        f"inline auto {RENAMED}{name}(A... a) -> decltype(::std::{name}(a...)) {{\n"
        f"  return ::std::{name}(a...);\n}}\n}}\n"
    )


def _unit(code: Overlay, entries: Sequence[str], *, auto_sync: bool) -> str:
    named = [kernel.name for kernel, _, _ in code.kernels if kernel.name in _C_NAMES | _NAMESPACES]
    renamed = "".join(f"{_in_std(name)}#define {name} {RENAMED}{name}\n" for name in named)
    include = f'{renamed}#include {quoted(code.main)}\n#line 1 "entry"\n'
    if code.words & _LOCAL_POINTERS:
        include += _POINTS_INTO_UB
    if (*entries,) == (PROGRAM,):
        facts = (
            f'{{"{kernel.name}", "{kind}", {quoted(path)}, {kernel.line}, {int(auto_sync)}}}'
            for kernel, kind, path in code.kernels
        )
        return f"{include}" + "".join(
            f"static const ::cubecore::Registered cubecore_kernel{number}{fact};\n"
            for number, fact in enumerate(facts)
        )
    return (
        _NO_LAUNCH
        + include
        + "".join(
            f'extern "C" void cubecore_entry{number}(const uint64_t* cubecore_words) '
            f"{{ cubecore::{enters(code, entry)}(&{entry}, cubecore_words); }}\n"
            f"__attribute__((__used__)) inline constexpr auto cubecore_signature{number} = "
            f'cubecore::cubecore_signature_of("{_SIGNATURE}{number}:", &{entry});\n'
            for number, entry in enumerate(entries)
        )
    )


def dependencies(deps: Path, work: Path, main: Path) -> list[Path]:
    """Return the user's files that a library was made of, but the first, which the key holds."""
    text = deps.read_text("utf-8", "surrogateescape").replace("\\\n", " ")
    names = re.findall(r"(?:\\.|[^\s\\])+", text.partition(": ")[2])
    paths = []
    for name in names:
        path = Path(re.sub(r"\\(.)", r"\1", name))
        ours = path.is_relative_to(INCLUDE) or path.is_relative_to(folder())
        if ours or path.is_relative_to(work) or path == main or path.is_relative_to("/usr"):
            continue
        paths.append(path)
    return paths


def precompiled(macros: Sequence[str]) -> Path:
    """Return the header that every unit includes first; its compiled form lies beside it.

    Raises
    ------
    RequestError
        If the headers of cubecore do not compile.
    """
    tool = compiler()
    flags = (*tool.flags(), *(f"-D{m}" for m in macros))
    made_of = header_folder().name, file_digest(HERE / LIST)
    base = folder() / f"pch-{digest((tool.identity, *made_of, *flags))}"
    prefix, ready = base / "prefix.h", base / "prefix.h.gch"
    if ready.is_file():
        used(ready)
        return prefix
    from cubecore.frontends.cpp.toolchain.diagnostics import compile_with
    from cubecore.frontends.cpp.toolchain.generated.capi_header import capi_header
    from cubecore.frontends.cpp.toolchain.generated.wire_headers import TCUBETILING_NAME

    if not prefix.is_file():
        write_header(base / "c_api" / "asc_simd.h", capi_header(_arch_of(macros)))
        for name, more in header_names().items():
            alias, included = base / name, ("kernel_operator.h", *filter(None, [more]))
            includes = "".join(f'#include "{one}"\n' for one in included)
            write_header(alias, f"#pragma once\n{includes}")
        parts = ["kernel_operator.h", "c_api/asc_simd.h", TCUBETILING_NAME]
        if _arch_of(macros) == "3510":
            parts.append(REGISTERS_NAME)
            from cubecore.frontends.cpp.toolchain.api_names import of_tensor_api

            gone = [name for name in of_2201() if name not in of_tensor_api()]
            write_header(base / _ABSENT, f"#pragma GCC poison {' '.join(gone)}\n")
        write_header(prefix, "".join(f'#include "{name}"\n' for name in parts))
    if tool.is_clang:
        return prefix
    with scratch_folder() as scratch:
        out = Path(scratch) / "out.gch"
        search = include_flags(base)
        command = [*flags, *search, "-x", "c++-header", str(prefix), "-o", str(out)]
        compile_with(command, prefix, Path(scratch))
        out.replace(ready)
    return prefix


def prepare(arch: str) -> None:
    """Compile what all kernels of an architecture share, unless the cache has it.

    Raises
    ------
    RequestError
        If the architecture has no headers, or no compiler is found.
    """
    runtime()
    for part in _PARTS:
        precompiled(macros_of(arch, part))


def _arch_of(macros: Sequence[str]) -> str:
    return next(arch for arch in _ARCH if f"__NPU_ARCH__={arch}" in macros)


def _signature(library: bytes, number: int) -> str:
    """Return the letters of a library's entry, a text in it: to load it would run user code."""
    mark = f"{_SIGNATURE}{number}:".encode()
    begin = library.index(mark) + len(mark)
    return library[begin : library.index(b"\0", begin)].decode("ascii")
