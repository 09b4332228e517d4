"""Declarations of the class API's names, as the headers have them: signatures and comments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

from cubecore.frontends.cpp.toolchain.api_names import DETAIL_NAMESPACES, OURS, provided
from cubecore.frontends.cpp.toolchain.generated.header_folder import compiled_texts

_TEMPLATE = r"(?:^{indent}template <[^;{{}}]*?>\n)?"
_PARAMETERS = r"\([^{};]*?\)"
_FORMS = {
    "function": _TEMPLATE.format(indent="")
    + r"^(?:inline|constexpr|static)\b[\w:<>&*,\s]*?\b(?P<name>[A-Z]\w+)"
    + _PARAMETERS
    + r"(?:\s*const)?\s*\{",
    "member": _TEMPLATE.format(indent="  ")
    + r"^  (?! |return\b|using\b|else\b)(?:[\w:<>&*, ]+ )?[&*]?(?P<name>[A-Z]\w*[a-z]\w*)"
    + _PARAMETERS
    + r"(?:\s*const)?\s*[{;:]",
    "type": _TEMPLATE.format(indent="")
    + r"^(?:(?:struct|class|enum(?: class)?) (?P<name>[A-Z]\w+)\b(?![^;{]*;)[^;{]*(?=\{)"
    + r"|using (?P<alias>[A-Z]\w+) = [^;]*;)",
    "macro": r"^#define (?P<name>[A-Z_][A-Z0-9_]+)\b(?:\([^)]*\))?",
    "constant": r"^(?:inline |static )*constexpr [\w:<>&* ]+?\b(?P<name>[A-Z]\w+) ?= ?[^;]*;",
}
_KINDS = {kind: re.compile(form, re.MULTILINE) for kind, form in _FORMS.items()}
_ENUM = re.compile(r"^enum(?: class)? (?P<owner>\w+)[^;{]*\{(?P<body>[^}]*)\}", re.MULTILINE)
_OWNER = re.compile(r"^(?:struct|class) (\w+)\b(?![^{;]*;)", re.MULTILINE)
_SECTION = re.compile(r"^ (public|private|protected):", re.MULTILINE)
_BASES = re.compile(r"^(?:struct|class) (\w+)\s*:\s*public ([^{;]*)\{", re.MULTILINE)
_ALIAS = re.compile(r"^using (\w+) = (\w+)<", re.MULTILINE)
_COMMENT = re.compile(r"(?:^ *//[^\n]*\n)+\Z", re.MULTILINE)
_SEAM = re.compile(r",?\s*\bCUBECORE_AT\b|\binline |\bstatic ")
_NOT_API = ("cubecore/seam/abi.h",)
"""Headers of the interface to the recorder, which kernels do not name."""


@dataclass(frozen=True, slots=True)
class ApiDeclaration:
    """One declaration of a name: its kind, its text, the class of a member, header and comment."""

    name: str
    kind: str
    signature: str
    owner: tuple[str, ...]
    header: str
    comment: str


@cache
def api_declarations() -> dict[str, tuple[ApiDeclaration, ...]]:
    """Return the declarations of each name that kernels may use, in the order of the headers.

    Functions that macros of the headers make for whole families have none.
    """
    found: dict[str, dict[object, ApiDeclaration]] = {}
    for one in _all_declarations():
        found.setdefault(one.name, {}).setdefault((one.owner, one.signature), one)
    for names in provided().values():
        for name in names:
            found.setdefault(name, {})
    return {name: tuple(ones.values()) for name, ones in sorted(found.items())}


def headers_of(name: str) -> tuple[str, ...]:
    """Return the headers that provide a name."""
    declared = [one.header for one in api_declarations().get(name, ())]
    return (*dict.fromkeys([*declared, *(h for h, names in provided().items() if name in names)]),)


def members_of(name: str) -> tuple[str, ...]:
    """Return the functions, or the values of an enumeration, that a class has."""
    return _members().get(name, ())


@cache
def _members() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for member, ones in api_declarations().items():
        for owner in dict.fromkeys(owner for one in ones for owner in one.owner):
            if owner != member:
                found.setdefault(owner, {})[member] = None
    return {owner: tuple(members) for owner, members in found.items()}


@cache
def introductions() -> dict[str, tuple[str, ...]]:
    """Return the sentences of the comments that headers begin with, by folder."""
    found: dict[str, tuple[str, ...]] = {}
    for header, text in compiled_texts().items():
        lines = (line.removeprefix("//").strip() for line in text.splitlines())
        comment = takewhile(lambda line: not line.startswith("#"), lines)
        said = re.split(r"(?<=[.;]) (?=[A-Z])", " ".join(" ".join(comment).split()))
        folder = header.rpartition("/")[0]
        found[folder] = (*found.get(folder, ()), *said)
    return found


def _all_declarations() -> Iterator[ApiDeclaration]:
    for header, whole in compiled_texts().items():
        if header in _NOT_API:
            continue
        text = DETAIL_NAMESPACES.sub(_blank, whole)
        for kind, form in _KINDS.items():
            if kind == "member":  # bases of classes lie in namespaces of the headers' own, too
                yield from _declared(kind, form, header, whole)
            else:
                yield from _declared(kind, form, header, text)
        for match in _ENUM.finditer(text):
            for value in re.findall(r"(?:^|,)\s*(?://[^\n]*\s*)*(\w+)", match["body"]):
                said = f"{match['owner']}::{value}"
                yield ApiDeclaration(value, "value", said, (match["owner"],), header, "")


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _declared(kind: str, form: re.Pattern[str], header: str, text: str) -> Iterator[ApiDeclaration]:
    for match in form.finditer(text):
        name = match["name"] or match["alias"]
        if OURS.search(name):
            continue
        owner = _owners(text, match.start()) if kind == "member" else ()
        if kind == "member" and not owner:
            continue
        above = _COMMENT.search(text, 0, match.start())
        comment = re.sub(r"^ *// ?", "", above[0], flags=re.MULTILINE) if above else ""
        if comment.startswith("Ours"):
            continue
        said = " ".join(comment.split())
        yield ApiDeclaration(name, kind, _signature(match[0]), owner, header, said)


def _signature(text: str) -> str:
    """Return a declaration in one line, without what the headers add for themselves."""
    plain = " ".join(_SEAM.sub("", text).split()).removeprefix("#define ")
    if re.search(r"\b(?:class|struct) \w+ :", plain):
        plain = plain.partition(" : ")[0]  # bases are the headers' own
    return plain.strip("{;: ").replace("( ", "(").replace(" )", ")")


def _owners(text: str, at: int) -> tuple[str, ...]:
    """Return the classes that have what is declared at a place as a public member."""
    before = list(_OWNER.finditer(text, 0, at))
    if not before or "\n}" in text[before[-1].start() : at]:
        return ()
    start = before[-1]
    sections = _SECTION.findall(text[start.start() : at])
    public = (sections[-1] if sections else start[0].split()[0]) in {"public", "struct"}
    return _known(start[1]) if public else ()


@cache
def _known(owner: str) -> tuple[str, ...]:
    """Return the classes that kernels know which are a class, or derive from it."""
    derived = dict.fromkeys(name for name, base in _derivations() if base == owner)
    names = [each for name in derived for each in _known(name)]
    own = [owner] if not derived and owner in _classes() else []
    return tuple(dict.fromkeys([*names, *own]))


@cache
def _classes() -> frozenset[str]:
    """Return the classes that kernels know, by another name as well."""
    declared = {name for names in provided().values() for name in names}
    texts = (DETAIL_NAMESPACES.sub("", text) for text in compiled_texts().values())
    return frozenset(declared | {name for text in texts for name, _ in _ALIAS.findall(text)})


@cache
def _derivations() -> tuple[tuple[str, str], ...]:
    """Return pairs of a class and one that it derives from, or that it is another name of."""
    pairs = []
    for text in compiled_texts().values():
        for name, bases in _BASES.findall(text):
            pairs += [(name, base) for base in re.findall(r"(?:\w+::)?(\w+)<", bases)]
        pairs += _ALIAS.findall(text)
    return tuple(pair for pair in pairs if pair[0] != pair[1])
