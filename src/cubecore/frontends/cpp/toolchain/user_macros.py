"""Macros of -D, and of lines before an include: a user's files see them, cubecore's headers do not.

Headers have parameters and fields called T, N or MODE, as the vendor's have. So the headers are
read first, in a file that the compiler includes, and macros of -D are defined behind them there.
"""

import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from cubecore.errors import refuse, unable
from cubecore.frontends.cpp.files import INCLUDE, is_file
from cubecore.frontends.cpp.rewriting.source import text_of
from cubecore.frontends.cpp.toolchain.api_names import of_api

_DEFINED = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?P<parameters>\([^()=]*\))?(?:=(?P<value>.*))?", re.DOTALL
)
_READ = frozenset({"EOK", "OPS_UTILS_LOG_SUB_MOD_NAME", "OPS_UTILS_LOG_PACKAGE_TYPE"})
"""Macros that headers ask for, apart from those whose names the language reserves."""
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<](?P<name>[^">\n]+)[">]', re.MULTILINE)
_DEFINES = re.compile(r"^[ \t]*#[ \t]*define[ \t]+[A-Za-z]\w*(?:\(|[ \t]+\S)", re.MULTILINE)
"""Definitions of more than a guard's empty macro."""
_FILE = "macros.h"
_ARRAY_TYPE = re.compile(r"^#define (DTYPE_\w+)", re.MULTILINE)
_OF_BUILD = re.compile(r"(?:ORIG_)?DTYPE_\w+|FORMAT_\w+")
"""Macros that the build of an operator project defines."""
_DECLARED = re.compile(r"\busing (?P<alias>\w+) *=|\btypedef .*\b(?P<typedef>\w+) *;")
_TWIN = "tikicpulib.h"
"""A header that changes what the others mean: it is not read before its own line."""


def split_macros(
    defines: Sequence[str], work: Path, files: Sequence[Path] = (), known: Container[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the compiler's words for macros: before cubecore's headers are read, and after.

    `files` are the user's: headers of cubecore's that they include, some by the names `known`, are
    read before the macros are defined, be it by -D or by a line above the include.

    Raises
    ------
    RequestError
        If a macro has no name, or one of the API's.
    """
    before, lines = [], []
    for word in defines:
        match = _DEFINED.fullmatch(word)
        if match is None:
            raise refuse("-D", "be NAME or NAME=VALUE", repr(word))
        name = match["name"]
        if name.startswith("_") or name in _READ:
            before.append(f"-D{word}")
            continue
        if name in of_api() or name.startswith("asc_"):
            need = "be named unlike the AscendC API's own names"
            raise refuse(f"the macro of -D {word}", need, name, "rename the macro")
        value = "1" if match["value"] is None else match["value"].partition("\n")[0]
        lines.append(f"#undef {name}\n#define {name}{match['parameters'] or ''} {value}\n\n")
    texts = {path: text_of(path) for path in files}
    headers = _included(texts, known)
    if not lines and not (headers and any(map(_DEFINES.search, texts.values()))):
        return before, []
    file = work / _FILE
    file.write_text("".join((*headers, *lines)), "utf-8", "surrogateescape")
    return before, ["-include", str(file)]


def array_types(work: Path) -> tuple[str, ...]:
    """Return the macros for the types of an operator's arrays, of the unit in a folder."""
    file = work / _FILE
    return tuple(_ARRAY_TYPE.findall(file.read_text("utf-8", "replace"))) if file.is_file() else ()


def unfit_macro(name: str, lines: str, types: Sequence[str], where: str) -> Exception | None:
    """Return the refusal of an operator's macro; None for an error of another kind.

    The error lacks `name`, or is at `lines` that declare what the build has defined; `types` are
    the macros for the types of the operator's arrays.
    """
    if _OF_BUILD.fullmatch(name):
        remedy = f"-D {name}=... says what the operator's build does"
        if types:
            remedy = f"the operator that op_host registers has {', '.join(types)}"
        return refuse(f"{where}: {name}", "be defined", "nothing", remedy)
    match = _DECLARED.search(lines)
    declared = (match["alias"] or match["typedef"]) if match is not None else ""
    if declared not in types:
        return None
    sentence = f"{where}: {declared} is a macro of the operator's build"
    return unable(where, sentence, "leave its declaration out")


def _included(texts: Mapping[Path, str], known: Container[str]) -> list[str]:
    """Return includes of the headers of cubecore's that files include, in their order."""
    names = dict.fromkeys(m["name"] for t in texts.values() for m in _INCLUDED.finditer(t))
    folders = {path.parent for path in texts}
    ours = (n for n in names if n in known or is_file(INCLUDE / n))
    own = {name for name in names if any(is_file(folder / name) for folder in folders)}
    return [f"#include <{name}>\n" for name in ours if name not in {_TWIN, *own}]
