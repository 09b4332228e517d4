"""Names of the AscendC API that the headers declare, by header."""

import re
from collections.abc import Iterator
from functools import cache

from cubecore.errors import unable
from cubecore.frontends.cpp.documented import documented_names
from cubecore.frontends.cpp.files import INCLUDE, REGISTERS_NAME
from cubecore.frontends.cpp.toolchain.generated.header_folder import compiled_texts, header_folder

_DECLARED = re.compile(
    r"^\s*(?:inline|constexpr)\s[\w:<>&*,\s]*?\b(?P<function>[A-Z]\w+)\("
    r"|^(?:struct|class|enum class)\s+(?P<type>[A-Z]\w+)"
    r"|^CUBECORE_\w+\((?P<family>[A-Z]\w+)[,)]"
    r"|^#define\s+(?P<macro>[A-Z_]\w+)"
    r"|^(?P<own>[A-Z]\w+)\s*\(.*\)\s*\{",
    re.MULTILINE,
)
OURS = re.compile(r"^CUBECORE_|^MOST_|^LANES$|^Unless$")
DETAIL_NAMESPACES = re.compile(
    r"namespace (?:[\w:]+::)?(?:detail|cubecore|order) \{.*?\n\}  // namespace \w+", re.DOTALL
)
_USED_ALONE = re.compile(
    r"^(?:using|struct)\s+(?P<type>[a-z]\w*_t|half|bfloat16|[A-Z]\w*[a-z]\w*)\b"
    r"|^#define\s+(?P<call>[A-Z]+(?:_[A-Z]+)+)\("
    r"|^#define\s+(?P<address>GM_ADDR)\b",
    re.MULTILINE,
)
"""Types by their other names, and macros that are called."""
_MEMBER = re.compile(r"^  (?:[\w:<>&*, ]+ )?[&*]?(?P<name>[A-Z]\w*[a-z]\w*)\(", re.MULTILINE)
"""Functions of a class, which a base in `detail` may have."""
_CLASSES = (
    *("basic/tensors.h", "sync/queue.h", "sync/pipe.h"),
    *("matmul/object.h", "matmul/operands.h"),
)
"""Headers of the classes that kernels make objects of."""


_OF_3510 = re.compile(r"^#if __NPU_ARCH__ == 3510\n.*?^#endif", re.MULTILINE | re.DOTALL)
"""The includes for kernels of one architecture."""
_CONDITION = re.compile(
    r"^#if __NPU_ARCH__ == 3510\n(.*?)^#(?:endif|else)", re.MULTILINE | re.DOTALL
)
"""The part of a header for one architecture."""
_INCLUDED = re.compile(r"#include <(.+)>")
_REGISTERS = "cubecore/reg/"
_FOLDERS_OF_3510 = (_REGISTERS, "cubecore/library/registers/")
_FOLDERS_OF_SOME = ("cubecore/op_host/", *_FOLDERS_OF_3510, "cubecore/te/")
"""Folders of headers for host code, and for one architecture."""
_HOST = r"(?:gert|ge|fe|ops|platform_ascendc|matmul_tiling)::\w+"
_HOST_MEMBER = re.compile(
    rf"'(?:const )?(?:class |struct )?(?P<owner>{_HOST})' has no member named '(?P<name>\w+)'$"
    rf"|no member named '(?P<name_of>\w+)' in '(?P<owner_of>{_HOST})'$"
)
"""In a compiler's words: a call of host code that no header has, and no name is like."""
_BINDING_NAMES = "docs/binding_names.md lists the names that are"
_TORCH = r"(?:at|torch)(?:::\w+)*"
_TORCH_MEMBER = re.compile(
    rf"'(?P<name>\w+)' is not a member of '(?P<owner>{_TORCH})'"
    rf"|'(?P<owner_in>{_TORCH})::(?P<name_in>\w+)' has not been declared"
    rf"|'(?:const )?(?:class |struct )?(?P<owner_with>{_TORCH})(?: &)?' has no member named "
    r"'(?P<name_with>\w+)'"
    rf"|no member named '(?P<name_of>\w+)' in (?:namespace )?'(?P<owner_of>{_TORCH})'"
)
_TORCH_OPERATOR = re.compile(
    r"no match for 'operator\S+' \(operand types? (?:are|is) .*'(?:const )?at::Tensor"
    r"|invalid (?:operands to binary|argument type) .*'(?:const )?(?:at::)?Tensor'"
)
"""In a compiler's words: what a binding calls of PyTorch that its headers do not have."""


@cache
def provided() -> dict[str, list[str]]:
    """Return the names of the class API by header."""
    from cubecore.isa.vector.registers.c_api.names import c_names

    found: dict[str, list[str]] = {}
    for header, whole in {**compiled_texts(), _GENERATED: _generated()}.items():
        text = DETAIL_NAMESPACES.sub("", whole)
        names = _declared(text)
        if header.startswith(_REGISTERS):
            names.update(functions_of(text))
        if header == _GENERATED:  # names that macros of another header make
            names.update(set(c_names()).difference(*found.values()))
        names = {name for name in names if not OURS.search(name)}
        if names:
            found[header] = sorted(names)
    return found


_GENERATED = f"{_REGISTERS}{REGISTERS_NAME}"
"""The header of register instructions that is written from their declarations, by this name."""
_MACRO = re.compile(r"^#define (CUBECORE_\w+)\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_MADE = re.compile(r"\binline [\w:<>&* ]+?[\s&*](\w*[a-z]\w*|\w+##\w[\w#]*|NAME\w*)\(")
_ALIAS = re.compile(r"^(?:using|inline constexpr \w+) (\w+) = ", re.MULTILINE)
_FUNCTION = re.compile(r"^inline [\w:&* ]+?[\s&*](\w*[a-z]\w*)\(", re.MULTILINE)


def _generated() -> str:
    return (header_folder() / REGISTERS_NAME).read_text("utf-8")


def functions_of(text: str) -> Iterator[str]:
    """Yield the functions and types of a header, with functions that its macros make."""
    yield from _FUNCTION.findall(text)
    yield from _ALIAS.findall(text)
    for macro, parameters, body in _MACRO.findall(text):
        names = [re.sub(r"\s", "", name) for name in _MADE.findall(body)]
        for arguments in re.findall(rf"^{macro}\(([^()]*)", text, re.MULTILINE):
            values = [value.strip() for value in arguments.split(",")]
            known = dict(zip((p.strip() for p in parameters.split(",")), values, strict=False))
            for name in names:
                yield "".join(known.get(part, part) for part in name.split("##"))


@cache
def of_3510() -> frozenset[str]:
    """Return the names that only kernels of architecture 3510 have: of registers, and others."""
    named = (
        names
        for header, names in provided().items()
        if header.startswith(_FOLDERS_OF_3510) or header in _included_for_3510()
    )
    found = {"MicroAPI", "Reg", *_in_conditions(), *(name for names in named for name in names)}
    return frozenset(found - _of_every_kernel())


def _declared(text: str) -> set[str]:
    return {name for match in _DECLARED.finditer(text) for name in _named(match)}


@cache
def _in_conditions() -> frozenset[str]:
    """Return the names that headers of every kernel declare for architecture 3510 alone."""
    inside, outside = set[str](), set[str]()
    for header, whole in compiled_texts().items():
        if header not in _included_for_3510() and not header.startswith(_FOLDERS_OF_SOME):
            text = DETAIL_NAMESPACES.sub("", whole)
            for part in _CONDITION.findall(text):
                inside.update(_declared(part), _ALIAS.findall(part))
            text = _CONDITION.sub("", text)
            outside.update(_declared(text), _ALIAS.findall(text))
    return frozenset(inside - outside)


def _named(match: re.Match[str]) -> Iterator[str]:
    """Yield the names that a declaration makes."""
    name = next(filter(None, match.groups()))
    if match[0].startswith("CUBECORE_WORKSPACE"):
        yield from (f"Get{name}MaxMinTmpSize", f"Get{name}TmpBufferFactorSize")
    elif name != "NAME":
        yield name


def is_missing(name: str) -> bool:
    """True of a documented name that the headers of every kernel lack, and those of 3510."""
    return name in documented_names() and name not in _of_every_kernel() and name not in of_3510()


def missing_names() -> frozenset[str]:
    """Return the documented names that the headers lack on every architecture."""
    return documented_names() - _of_every_kernel() - of_3510()


@cache
def _of_every_kernel() -> frozenset[str]:
    """Return the names in headers that kernels of each architecture include."""
    return frozenset(
        name
        for header, names in provided().items()
        if header not in _included_for_3510() and not header.startswith(_FOLDERS_OF_SOME)
        for name in names
        if name not in _in_conditions()
    )


@cache
def of_tensor_api() -> frozenset[str]:
    """Return the names of the tensor API, which has some of the class API's of 2201."""
    headers = (h for h in provided() if h.startswith("cubecore/te/"))
    return frozenset(name for header in headers for name in provided()[header])


def _included_for_3510() -> set[str]:
    """Return the headers that kernels of architecture 3510 alone include."""
    found = _OF_3510.search((INCLUDE / "kernel_operator.h").read_text("utf-8"))
    return {*_INCLUDED.findall(found[0])} if found else set()


@cache
def of_api() -> frozenset[str]:
    """Return the names that no macro of a user's may have: types, functions, members, calls.

    Constants and enumerators are left out: kernels have macros of such short names.
    """
    declared = {name for names in provided().values() for name in names}
    found = {name for name in declared if re.search("[a-z]", name)}
    for header, whole in compiled_texts().items():
        if "/op_host/" not in header:
            text = DETAIL_NAMESPACES.sub("", whole)
            found.update(next(filter(None, m.groups())) for m in _USED_ALONE.finditer(text))
    for name in _CLASSES:
        text = compiled_texts()[f"cubecore/{name}"]
        found.update(match["name"] for match in _MEMBER.finditer(text))
    return frozenset(name for name in found if not OURS.search(name))


def of_host_code(said: str, where: str) -> Exception | None:
    """Return the refusal of a call in an operator's host code, or a binding, that no header has.

    `said` are the compiler's words; None for another error.
    """
    match = _HOST_MEMBER.search(said)
    if match is not None:
        name = _full_name(match)
        return unable(name, f"{where}: {name} is not provided", "leave the call out")
    match = _TORCH_MEMBER.search(said)
    if match is None and _TORCH_OPERATOR.search(said) is None:
        return None
    name = "an operator of at::Tensor" if match is None else _full_name(match)
    sentence = f"{name} is not provided for bindings, which compute in kernels alone"
    return unable(name, f"{where}: {sentence}", _BINDING_NAMES)


def _full_name(match: re.Match[str]) -> str:
    found = {name.partition("_")[0]: text for name, text in match.groupdict().items() if text}
    return f"{found['owner']}::{found['name']}"
