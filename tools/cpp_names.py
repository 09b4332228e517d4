"""The page of names of the class API in C++: which a kernel may use, and which are refused."""

import re
from collections.abc import Iterator

from cubecore.frontends.cpp.compile.diagnostics import missing_names
from cubecore.frontends.cpp.compile.source import header_names
from cubecore.frontends.cpp.launch_options import INCLUDE

_DECLARED = re.compile(
    r"^\s*(?:inline|constexpr)\s[\w:<>&*,\s]*?\b(?P<function>[A-Z]\w+)\("
    r"|^(?:struct|class|enum class)\s+(?P<type>[A-Z]\w+)"
    r"|^CUBECORE_\w+\((?P<family>[A-Z]\w+)[,)]"
    r"|^#define\s+(?P<macro>[A-Z_]\w+)"
    r"|^(?P<own>[A-Z]\w+)\s*\(.*\)\s*\{",
    re.MULTILINE,
)
_OURS = re.compile(r"^CUBECORE_|^MOST_|^LANES$|^Unless$")
_DETAIL = re.compile(
    r"namespace (?:[\w:]+::)?(?:detail|cubecore|order) \{.*?\n\}  // namespace \w+", re.DOTALL
)
_HEAD = """# Names of the class API in C++

Generated from the headers in `src/cubecore/frontends/cpp/include` (`python -m tools.docs
cpp_names.md`): which names of the documentation kernels may use, by header, and which are refused
when the file is compiled. A name that is here may still refuse an argument that architecture 2201
or cubecore does not take, in a sentence. Functions of the C API (`asc_...`) come from the
[instructions](instructions.md) and are listed only where they are refused.
"""


def provided() -> dict[str, list[str]]:
    """Return the names of the class API by header."""
    found: dict[str, list[str]] = {}
    for path in sorted((INCLUDE / "cubecore").rglob("*.h")):
        text = _DETAIL.sub("", path.read_text("utf-8"))
        names = {name for match in _DECLARED.finditer(text) for name in _named(match)}
        names = {name for name in names if not _OURS.search(name)}
        if names:
            found[path.relative_to(INCLUDE).as_posix()] = sorted(names)
    return found


def _named(match: re.Match[str]) -> Iterator[str]:
    """Yield the names that a declaration makes."""
    name = next(filter(None, match.groups()))
    if match[0].startswith("CUBECORE_WORKSPACE"):
        yield from (f"Get{name}MaxMinTmpSize", f"Get{name}TmpBufferFactorSize")
    elif name != "NAME":
        yield name


def page() -> str:
    """Return the page: a table of provided names, then those that are refused."""
    by_header, missing = provided(), sorted(missing_names())
    count = len({name for names in by_header.values() for name in names})
    aliases = len(header_names())
    lines = [
        *(_HEAD, "## Provided", ""),
        f"{count} names; {aliases} of the documentation's headers may be included by their names.",
        *("", "| header | names |", "|---|---|"),
    ]
    lines += [f"| `{header}` | {', '.join(names)} |" for header, names in by_header.items()]
    lines += ["", "## Refused", ""]
    of_class = [name for name in missing if name[0].isupper()]
    of_c = [name for name in missing if name.startswith("asc_")]
    others = sorted({*missing} - {*of_class} - {*of_c})
    for kind, names in (
        ("the class API", of_class),
        ("the C API, most of them for architecture 3510", of_c),
        ("SIMT, for architecture 3510", others),
    ):
        lines += [f"{len(names)} names of {kind}: {', '.join(names)}.", ""]
    return "\n".join(lines)
