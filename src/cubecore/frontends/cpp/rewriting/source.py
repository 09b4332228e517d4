"""A file of kernels: its text, its entries and their kinds, and the overlay that compilers read."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from cubecore.errors import did_you_mean, refuse, unable, unreadable
from cubecore.frontends.cpp.documented import header_names
from cubecore.frontends.cpp.files import HERE, INCLUDE, is_file
from cubecore.frontends.cpp.rewriting.definitions import defined_once, with_dependent_calls
from cubecore.frontends.cpp.rewriting.kinds import kind_of
from cubecore.frontends.cpp.rewriting.scanner import Entry, Scan, scanned
from cubecore.frontends.cpp.rewriting.tokens import defined_macros, with_common_types
from cubecore.frontends.source_locations import shown_path

_DEVICE_WORDS = frozenset({"__aicore__", "__global__", "CUBECORE_LAUNCH"})
_KEYED = re.compile(
    r"^[ \t]*#[ \t]*(?:el)?if\b.*\bTILING_KEY_VAR\b|<[^;\n\"]*\bTILING_KEY_VAR\b", re.MULTILINE
)
"""Uses of the key that must be known to the compiler: in conditions and template arguments."""


_CONDITION = re.compile(r"^[ \t]*#[ \t]*if", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """A file of kernels, and what is to be defined for the compiler.

    `tiling_key` is the key that conditions of the preprocessor see. `rewritten` are the files
    and lines at which a conditional has a half and a float, or a function is defined a second time.
    """

    path: Path
    text: str
    defines: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    tiling_key: int = 0
    rewritten: frozenset[tuple[str, int]] = frozenset()

    @property
    def scan(self) -> Scan:
        """Return the entries and structs that the scanner finds."""
        macros = self.macros() if _CONDITION.search(self.text) else None
        return _scan(self.path, self.text, self.defines, macros)

    def macros(self) -> frozenset[str] | None:
        """Return the macros that the file, its headers or cubecore's define; None if not known.

        They are read anew: a header may have changed.
        """
        texts, missing = _read_by(self)
        if not all(map(_is_ours, missing)):
            return None
        return _own_macros().union(*map(defined_macros, texts.values()))

    @property
    def keyed(self) -> str:
        """Return the definition of the key, if a condition of the preprocessor asks for it."""
        near = self.path.parent.name == "op_kernel" and _takes_key(self.path.parent)
        if not near and _KEYED.search(self.text) is None:
            return ""
        return f"#undef TILING_KEY_VAR\n#define TILING_KEY_VAR {self.tiling_key}\n"

    def entry(self, name: str) -> Entry | None:
        """Return an entry of the file by its name, template arguments apart."""
        plain = name.split("<", maxsplit=1)[0].rsplit("::", maxsplit=1)[-1]
        return next((entry for entry in self.scan.entries if entry.name == plain), None)

    def kind(self, name: str) -> str:
        """Return the kind of an entry: what its file says, else what it uses."""
        return kind_of(self.entry(name), self.scan.words)


_scanned = lru_cache(maxsize=64)(scanned)


@cache
def _own_macros() -> frozenset[str]:
    """Return the macros of cubecore's headers."""
    texts = (text_of(path) for path in sorted(INCLUDE.rglob("*.h")))
    return frozenset().union(*map(defined_macros, texts))


def _is_ours(name: str) -> bool:
    """True of a header that cubecore has or makes."""
    made = name.startswith(("c_api/", "aclrtlaunch_", "cubecore"))
    return made or is_file(INCLUDE / name) or name in header_names()


def _scan(path: Path, text: str, defines: tuple[str, ...], macros: frozenset[str] | None) -> Scan:
    """Return what a file holds; `macros` are those that its program defines, if known.

    Public operator projects have functions beside a kernel that launch it and would not compile:
    their build does not look into them.
    """
    base = _op_kernel(path)
    launches = base is None or not (base.parent / "op_host").is_dir()
    return _scanned(text, defines, macros, launches=launches)


def _op_kernel(path: Path) -> Path | None:
    """Return the folder of an operator project's kernels that a file lies in, if it does."""
    return next((parent for parent in path.parents if parent.name == "op_kernel"), None)


@cache
def _takes_key(folder: Path) -> bool:
    """True if a header of an operator's kernels takes the tiling key when it is compiled."""
    return any(_KEYED.search(text_of(path)) for path in sorted(folder.rglob("*.h*")))


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
    file = Path(path)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise unreadable(str(path), error) from None
    text = raw.decode("utf-8", "surrogateescape")
    named = defined_words(defines or {})
    return Source(file.resolve(), text, named)


def defined_words(defines: Mapping[str, object]) -> tuple[str, ...]:
    """Return macros as the compiler's -D takes them."""
    return tuple(name if v is None else f"{name}={v}" for name, v in defines.items())


def require_entry(source: Source, name: str | None) -> str:
    """Return the entry to run: `name`, or the only one that the file has.

    Raises
    ------
    RequestError
        If the file has no such entry, or has several and none is named.
    """
    names = [entry.name for entry in source.scan.entries]
    shown = shown_path(source.path)
    if name is None:
        if len(names) == 1:
            return names[0]
        if not names:
            where = " that its #if leaves in; -D defines a macro" * ("__global__" in source.text)
            raise unable("--entry", f"{shown} has no kernel: no __global__ function{where}")
        several = f"{shown} has several kernels; --entry names one of {', '.join(names)}"
        raise unable("--entry", several)
    kernel_entry = source.entry(name)
    if (
        kernel_entry is None
        and names
        and name.split("<")[0].split("::")[-1] not in source.scan.words
    ):
        near = did_you_mean(name, names)
        raise refuse("--entry", f"name a kernel of {shown}", name or "''", near)
    if kernel_entry is not None and kernel_entry.templated and "<" not in name:
        raise refuse(name, "be named with its template arguments", name, f'as "{name}<...>"')
    return name


_STRUCT = re.compile(r"BEGIN_TILING_DATA_DEF\s*\(.*?END_TILING_DATA_DEF\b", re.DOTALL)
_EXTENT = re.compile(r"_FIELD_DEF_ARR\s*\(\s*\w+\s*,([^;]*),")
_STRUCT_NAME = re.compile(r"BEGIN_TILING_DATA_DEF\s*\(\s*(\w+)")
_CONSTANT = re.compile(
    r"^[ \t]*(?:static[ \t]+|inline[ \t]+)*(?:constexpr|const)[ \t]+\w+[ \t]+"
    r"(?P<name>\w+)[ \t]*=[^;{]+;",
    re.MULTILINE,
)
_PASSIVE = re.compile(
    r"/\*.*?\*/|^[ \t]*//[^\n]*|^[ \t]*#[ \t]*if[ \t]+0\b.*?^[ \t]*#[ \t]*(?:else|endif)[^\n]*",
    re.DOTALL | re.MULTILINE,
)
"""Comments, and what `#if 0` leaves out."""
_DEFAULT = re.compile(r"\bREGISTER_TILING_DEFAULT\s*\(\s*(\w+)\s*\)")
_TAKES = re.compile(r"\bGET_TILING_DATA\s*\(")
_REGISTERED = re.compile(r"REGISTER_TILING_DATA_CLASS\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def host_structs(source: Source) -> str:
    """Return the structs that an operator project's host code registers, as C++.

    A kernel in op_kernel takes them from nowhere: the build writes them beside it. They lie in
    the op_host of its operator, and of operators whose headers it includes.
    """
    # The vendor's build generates these structs from the host code's macros and puts them before
    # the kernel. Here the macros' text itself is compiled, in a namespace, with the constants that
    # lengths of arrays use; the struct of this tiling key, or the operator's, becomes the default.
    words = source.scan.words
    uses = any(word.startswith("GET_TILING_DATA") for word in words) or _header_uses(source)
    given = _DEFAULT.search(source.text) if "REGISTER_TILING_DEFAULT" in words else None
    if not uses or (given is None and "REGISTER_TILING_DEFAULT" in words):
        return ""
    headers = [path for path in _host_headers(source) if not _hidden(path, source)]
    texts = [_PASSIVE.sub("", text_of(path)) for path in headers]
    structs = dict[str, str]()  # a folder for another chip may have a struct of the same name
    for block in (match[0] for text in texts for match in _STRUCT.finditer(text)):
        structs.setdefault(_STRUCT_NAME.findall(block)[0], block)
    blocks = structs.values()
    if not blocks or (given is not None and not _is_hosts(given[1], structs, source, headers)):
        return ""
    named = [match.groups() for text in texts for match in _REGISTERED.finditer(text)]
    # A registration names an operator, or an operator with a tiling key behind it (``Name_1``).
    stem = _stem(source).lower()
    wanted = (f"{stem}_{source.tiling_key}", stem)  # a struct may be that of one tiling key
    default = next((n for op in wanted for known, n in named if known.lower() == op), None)
    default = default or next((name for op, name in named if op[-1:].isalpha()), None)
    lines = [re.sub(r"//[^\n]*", "", block) + ";" for block in blocks]
    used = set(re.findall(r"\w+", " ".join(_EXTENT.findall(" ".join(lines)))))
    constants = [match for text in texts for match in _CONSTANT.finditer(text)]
    first = {match["name"]: match[0].strip() for match in reversed(constants)}
    lines = [first[name] for name in _in_order(constants) if name in used] + lines
    lines = ["namespace cubecore_op_host {", *dict.fromkeys(lines), "}"]  # constants stay inside
    lines += [f"using cubecore_op_host::{name};" for name in structs]
    lines += [f"using cubecore_tiling_default = {default};"] if default else []
    return '#line 1 "op_host"\n' + "\n".join(lines) + "\n"


def _header_uses(source: Source) -> bool:
    """True if a header of the kernel takes the tiling data of the struct that is registered."""
    if _op_kernel(source.path) is None:
        return False
    texts = _read_by(source)[0].values()
    registers = any("REGISTER_TILING_DEFAULT" in text for text in texts)
    return not registers and any(_TAKES.search(text) for text in texts)


def structs_text(source: Source, tiling_key: int = 0) -> str:
    """Return the text in which a kernel's structs stand: its file, headers and host code."""
    texts, _ = _read_by(source)
    return "\n".join([*texts.values(), host_structs(replace(source, tiling_key=tiling_key))])


def _read_by(source: Source) -> tuple[dict[Path, str], set[str]]:
    """Return the texts of a file and of what it includes in quotes, and the names not found."""
    # A walk over includes in quotes, each file once: beside the including file first, then in the
    # folders that the compiler is given.
    texts, missing, waiting = {source.path: source.text}, set[str](), [source.path]
    while waiting:
        path = waiting.pop()
        for name in _INCLUDED.findall(texts[path]):
            beside = [folder / name for folder in (path.parent, *map(Path, source.includes))]
            header = next((each.resolve() for each in beside if is_file(each)), None)
            if header is None:
                missing.add(name)
            elif header not in texts:
                texts[header] = text_of(header)
                waiting.append(header)
    return texts, missing


def _is_hosts(name: str, structs: Container[str], source: Source, headers: Container[Path]) -> bool:
    """True if a struct that a kernel registers is in host code's headers and no file of kernels."""
    has = re.compile(
        rf"\b(?:struct|class)\s+{name}\b|BEGIN_TILING_DATA_DEF\s*\(\s*{name}\b|op_host/"
    )
    near = (path for path in sorted(source.path.parent.rglob("*.*")) if path not in headers)
    return name in structs and not any(has.search(text_of(path)) for path in near)


def _hidden(path: Path, source: Source) -> bool:
    """True of copies that editors keep in hidden folders of the project."""
    own = source.path.parent.parent
    inside = path.relative_to(own).parts if path.is_relative_to(own) else ()
    return any(part.startswith(".") for part in inside)


_INCLUDED = re.compile(r'#\s*include\s*"(?P<path>[^"\n]+)"')


def _outermost_first(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder, those of folders within it last."""
    return sorted(folder.rglob(pattern), key=lambda path: (len(path.parts), path))


def _host_headers(source: Source) -> list[Path]:
    """Return the headers in which an operator's structs may stand.

    They lie in the op_host of the operator and of those whose headers it includes, or elsewhere if
    its op_host includes them and its kernels do not, or register it in `common/inc` of the
    operators' repository, or in another operator's op_host if it has none.
    """
    own = source.path.parent.parent
    near = [path for name in ("op_kernel", "op_host") for path in sorted((own / name).rglob("*.*"))]
    named = {name for path in near for name in _included_in(path)} | {*source.scan.includes}
    others = re.findall(r"\.\./(\w+)/", " ".join(sorted(named)))
    folders = [own, *(own.parent / name for name in dict.fromkeys(others))]
    headers = [path for folder in folders for path in _outermost_first(folder / "op_host", "*.h")]
    host = [path for path in near if path.is_relative_to(own / "op_host")]
    included = (path.parent / name for path in host for name in _included_in(path))
    known = {*headers, *_read_by(source)[0]}
    read = dict.fromkeys(path.resolve() for path in included if is_file(path))
    headers += [path for path in read if path not in known]
    shared = [folder / "common" / "inc" for folder in own.parents[:4]]
    if not (own / "op_host").is_dir():
        shared += [each / "op_host" for each in sorted(own.parent.iterdir())]
    found = [path for folder in shared if folder.is_dir() for path in sorted(folder.rglob("*.h"))]
    registers = re.compile(rf"REGISTER_TILING_DATA_CLASS\s*\(\s*{_stem(source)}\s*,", re.IGNORECASE)
    return headers + [path for path in found if registers.search(text_of(path))]


def _stem(source: Source) -> str:
    """Return the operator's name in a file's; that of a kernel for 950 may end in `_apt`."""
    return source.path.stem.removesuffix("_apt").replace("_", "")


def text_of(path: Path) -> str:
    """Return the text of a file, none of one that is not there."""
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _included_in(path: Path) -> list[str]:
    return _INCLUDED.findall(text_of(path))


def _in_order(constants: Sequence[re.Match[str]]) -> list[str]:
    """Return the names of constants, each where it is defined first."""
    return list(dict.fromkeys(match["name"] for match in constants))


@dataclass(frozen=True, slots=True)
class Overlay:
    """The file that the compiler reads, the user's files that it holds, and their kernels."""

    main: Path
    files: tuple[Path, ...]
    kernels: tuple[tuple[Entry, str, Path], ...]
    words: frozenset[str]

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that includes in quotes are looked for in."""
        return tuple(dict.fromkeys(path.parent for path in self.files))

    @property
    def has_device_code(self) -> bool:
        """True if a file has words of the device's language."""
        return bool(self.kernels) or bool(self.words & _DEVICE_WORDS)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that a program's kernels are compiled for: vector before cube."""
        kinds = {kind for _, kind, _ in self.kernels}
        if kinds <= {"vector"}:
            return ("vector",)
        return ("cube",) if kinds == {"cube"} else ("vector", "cube")


class _Copies:
    """Copies of the files that a source reads, rewritten where C++ needs it."""

    def __init__(self, source: Source, work: Path) -> None:
        self._source, self._work, self._macros = source, work, source.macros()
        self.copied: dict[Path, Path | None] = {}
        self.scans: dict[Path, Scan] = {}

    def visit(self, path: Path, text: str) -> Path | None:
        """Return the copy of a file; None if the file itself will do.

        A file that includes a rewritten one is rewritten too.
        """
        if path in self.copied:
            return self.copied[path]
        self.copied[path] = None
        number = len(self.copied)  # no other file's
        scan = self.scans[path] = _scan(path, text, self._source.defines, self._macros)
        new, changed = scan.text, scan.rewritten
        lines = {line for file, line in self._source.rewritten if file == str(path)}
        if lines:
            new = with_dependent_calls(defined_once(with_common_types(new, lines), lines), lines)
            changed = True
        for name in dict.fromkeys(scan.includes):
            inner = self._included(path, name)
            if inner is not None:
                changed = True
                new = _including(new, name, inner)
        if changed:
            self.copied[path] = self.write(f"{number}-{path.name}", path, new)
        return self.copied[path]

    def _included(self, path: Path, name: str) -> Path | None:
        candidates = [folder / name for folder in (path.parent, *map(Path, self._source.includes))]
        beside = _of_another_operator(path, name)
        if beside is not None and not is_file(candidates[0]):
            inner = self._included(path, str(beside))
            return inner or beside
        for below in (candidate.resolve() for candidate in candidates if is_file(candidate)):
            if below.is_relative_to(HERE):
                continue
            try:
                return self.visit(below, below.read_bytes().decode("utf-8", "surrogateescape"))
            except OSError:
                return None
        return None

    def write(self, name: str, path: Path, text: str) -> Path:
        """Return a new file whose lines are those of `path`."""
        target = self._work / name
        target.write_text(f"#line 1 {quoted(path)}\n{text}", "utf-8", "surrogateescape")
        return target


def _of_another_operator(path: Path, name: str) -> Path | None:
    """Return the file that an operator project's build finds beside an operator's.

    The build puts every operator's op_kernel into one folder, by the operator's name, and what
    operators share in `common/inc/op_kernel` of their repository there as `inc`; files lie in
    folders of op_kernel, too, which their includes leave by `../`.
    """
    base = _op_kernel(path)
    if base is None:
        return None
    inside = path.parent.relative_to(base).parts
    up = "../" * (len(inside) + 1)
    if name.startswith(up):
        operator, _, rest = name.removeprefix(up).partition("/")
    elif inside and name.startswith("../inc/"):  # as from op_kernel itself
        operator, rest = "inc", name.removeprefix("../inc/")
    else:
        return None
    found = [base.parent.parent / operator / "op_kernel" / rest]
    if operator == "inc":
        found += [above / "common" / "inc" / "op_kernel" / rest for above in base.parents[1:]]
    return next((each.resolve() for each in found if rest and is_file(each)), None)


def quoted(path: Path) -> str:
    """Return a path as a literal of C++."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def overlay(source: Source, work: Path) -> Overlay:
    """Return the file to compile, rewritten where C++ needs it."""
    copies = _Copies(source, work)
    main = copies.visit(source.path, source.text)
    if main is None and not source.path.is_file():
        main = copies.write(source.path.name, source.path, source.text)
    words = frozenset().union(*(scan.words for scan in copies.scans.values()))
    kernels = {
        entry.name: (entry, kind_of(entry, words), path)
        for path, scan in copies.scans.items()
        for entry in scan.entries
    }
    return Overlay(main or source.path, tuple(copies.scans), tuple(kernels.values()), words)


def _including(text: str, name: str, target: Path) -> str:
    """Return the text with another file included in the place of `name`."""
    pattern = rf'(?m)^([ \t]*#[ \t]*include[ \t]*)"{re.escape(name)}"'
    return re.sub(pattern, lambda match: f'{match.group(1)}"{target}"', text)
