"""Names of the class API in C++ as text: declarations in the headers, and instructions issued."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from inspect import getdoc
from textwrap import fill
from typing import TYPE_CHECKING

from cubecore.answers.explain import Explanation
from cubecore.presented.text import table

if TYPE_CHECKING:
    from cubecore.frontends.cpp.toolchain.api_declarations import ApiDeclaration
    from cubecore.isa.declare.instruction import Instruction

_MOST_FORMS = 16
"""Declarations of a name that are shown."""
_WIDTH = 96
KIND = "class API"


@cache
def names() -> dict[str, str]:
    """Return the names that kernels in C++ may use, by their small letters where that is clear."""
    from cubecore.frontends.cpp.toolchain.api_declarations import api_declarations

    found: dict[str, str] = {}
    for name in api_declarations():
        found.setdefault(name.lower(), name)
    return found


def named(name: str) -> Explanation | None:
    """Return a name of the class API with its declarations; None for other words."""
    from cubecore.frontends.cpp.toolchain.api_declarations import api_declarations

    if name not in api_declarations():
        return None
    return Explanation(name, KIND, _text(name), section_of(name))


def section_of(name: str) -> str:
    """Return the folder of the first header that provides a name: its page on the site."""
    from cubecore.frontends.cpp.toolchain.api_declarations import headers_of

    return headers_of(name)[0].removeprefix("cubecore/").partition("/")[0]


def instructions_called(dialect: str, name: str) -> "list[tuple[str, type[Instruction]]]":
    """Return the instructions that a name of a dialect issues, each with the name as spelled.

    Case does not matter.
    """
    from cubecore.isa.catalogue import instructions

    return [
        (spelled, cls)
        for cls in instructions().values()
        for each in (cls.names.get(dialect, ""), *cls.variants)
        if (spelled := each.partition("(")[0]).lower() == name.lower()
    ]


def instruction_lines(dialect: str, name: str) -> list[str]:
    """Return a line for each instruction that a name of a dialect issues; none where none is."""
    rows = [
        (cls.name, cls.pipe.value, " ".join((getdoc(cls) or "").split("\n\n")[0].split()))
        for _, cls in instructions_called(dialect, name)
    ]
    return ["", "Instructions that it issues", *table(rows)] if rows else []


def _text(name: str) -> str:
    from cubecore.frontends.cpp.toolchain.api_declarations import (
        api_declarations,
        headers_of,
        members_of,
    )

    declared = sorted(api_declarations()[name], key=lambda one: one.kind != "type")
    issued = instruction_lines("cpp", name)
    lines = [f"{name}: {_kind(declared)}, AscendC class API", ""]
    said = [*_from_introductions(name, headers_of(name))]
    said += [one.comment for one in declared if one.comment]
    if issued or len(said) > 1:
        said = [sentence for sentence in said if not sentence.startswith("Pages:")]
    for sentence in dict.fromkeys(said):
        lines += [_wrapped(sentence), ""]
    lines += [*issued[1:], ""] if issued else []
    forms = [one.signature for one in declared if one.signature]
    lines += [_wrapped(form) for form in forms[:_MOST_FORMS]]
    if len(forms) > _MOST_FORMS:
        lines.append(f"  and {len(forms) - _MOST_FORMS} more forms")
    members = members_of(name)
    if members:
        lines += ["", "Members", _wrapped(", ".join(members))]
    return "\n".join([*lines, "", f"Headers: {', '.join(headers_of(name))}"]) + "\n"


def _kind(declared: "Sequence[ApiDeclaration]") -> str:
    """Return what a name is, with the classes of a member."""
    if not declared:
        return "a function"
    first = declared[0]
    owners = dict.fromkeys(o for one in declared for o in one.owner if o != one.name)
    return f"a {first.kind} of {', '.join(owners)}" if owners else f"a {first.kind}"


def _from_introductions(name: str, headers: tuple[str, ...]) -> Iterator[str]:
    """Yield the sentences about a name of the comments that headers of its folders begin with."""
    from cubecore.frontends.cpp.toolchain.api_declarations import introductions

    word = re.compile(rf"\b{re.escape(name)}\b")
    for folder in dict.fromkeys(header.rpartition("/")[0] for header in headers):
        yield from (each for each in introductions()[folder] if word.search(each))


def _wrapped(text: str) -> str:
    return fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
