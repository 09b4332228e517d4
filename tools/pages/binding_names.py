"""The page of names of PyTorch's C++ API that bindings may use, from the stand-in headers."""

import re
from collections.abc import Iterator
from pathlib import Path

from cubecore.frontends.cpp.files import INCLUDE
from cubecore.frontends.cpp.host_programs.torch_glue import HEADERS

_FOLDER = INCLUDE / "cubecore" / "torch"
_OURS = "cubecore"
_NAMESPACE = re.compile(r"^namespace ([\w:]+) \{$")
_CLOSED = re.compile(r"^\}  // namespace")
_TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)")
_ALIAS = re.compile(r"^(?:using|namespace) (?:[\w:]*::)?(\w+)(?: =|;)")
_CALL = re.compile(r"^(?:[\w:<>,*&\[\] ]+ )[*&]?(\w+)\(")
_MACRO = re.compile(r"^#define (\w+)")
_NO_CALLS = {"decltype", "operator", "static_assert"}

_HEAD = """# Names of PyTorch in bindings

Generated from `src/cubecore/frontends/cpp/include/cubecore/torch` (`python -m tools.pages.docs
binding_names.md`): what a binding for PyTorch may use when `cubecore judge` compiles it, without
PyTorch. Nothing here computes but copies, conversions and fills. Another name is refused by the
compiler, at the binding's line.
"""


def page() -> str:
    """Return the page: headers, then names by namespace, members of types by their type."""
    by_scope: dict[str, set[str]] = {}
    for path in sorted(_FOLDER.glob("*.h")):
        for scope, name in _names(path):
            by_scope.setdefault(scope, set()).add(name)
    count = len({name for names in by_scope.values() for name in names})
    lines = [_HEAD, "## Headers", "", "Included under their own names, as are others below"]
    lines += ["`torch`, `ATen`, `c10`, `pybind11`, `torch_npu` and `op_plugin`:"]
    lines += [", ".join(f"`{name}`" for name in HEADERS) + ".", "", "## Names", ""]
    lines += [f"{count} names.", "", "| in | names |", "|---|---|"]
    scopes = sorted(by_scope, key=lambda scope: (scope != "", scope))
    for scope in scopes:
        shown = f"`{scope}`" if scope else "macros, and names without a namespace"
        lines.append(f"| {shown} | {', '.join(sorted(by_scope[scope]))} |")
    return "\n".join([*lines, ""])


def _names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names of a header, each with its namespace or type."""
    namespace, kind = "", ""
    for line in path.read_text("utf-8").splitlines():
        if match := _MACRO.match(line):
            if not match[1].startswith(_OURS.upper()):
                yield "", match[1]
        elif match := _NAMESPACE.match(line):
            namespace, kind = match[1], ""
        elif _CLOSED.match(line):
            namespace, kind = "", ""
        elif not namespace.startswith(_OURS):
            kind = yield from _of_line(line, namespace, kind)


def _of_line(line: str, namespace: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield what a line declares; return the type that the next line is in."""
    if match := _TYPE.match(line):
        yield namespace, match[1]
        return "" if line.endswith("};") else match[1]
    if line.startswith("}"):
        return ""
    if match := _ALIAS.match(line):
        if not line.startswith("using namespace"):
            yield namespace, match[1]
    elif line == " private:":
        return ""
    elif kind and line.startswith("  ") and line[2].isalpha():
        match = _CALL.match(line[2:])
        # PyTorch's functions have small letters, those of its extension have capitals.
        capital = match and match[1][0].isupper() and not namespace.startswith("at_npu")
        if (
            match
            and not capital
            and match[1] not in {*_NO_CALLS, kind}
            and "return" not in match[0]
        ):
            yield f"{namespace}::{kind}", match[1]
    elif line[:1].isalpha() and (match := _CALL.match(line)) and match[1] not in _NO_CALLS:
        yield namespace, match[1]
    return kind
