"""A tiling as C++: a constant to include in a kernel, or setters for host code."""

import re
from collections.abc import Sequence

from cubecore.errors import refuse
from cubecore.tiling.model.tcubetiling import SIZE_BYTES, TCubeTiling

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
CONSTANT, FUNCTION = "kTiling", "SetTiling"
"""Names of the constant and of the function with the setters, unless they are given."""


def to_header(
    tiling: TCubeTiling, name: str = CONSTANT, namespace: str = "", about: Sequence[str] = ()
) -> str:
    """Return a C++ header that defines `tiling` as the constant `name`, ready to include.

    The values stand in the struct's order, each with its field in a comment, so that the text
    compiles as C++11 and later wherever TCubeTiling is a plain struct of 50 int32, which the text
    asserts. `about` are lines of a comment.

    Raises
    ------
    RequestError
        If `name` is not a C++ identifier, or `namespace` not some with ``::`` between them.
    """
    rows = "".join(f"    {value},  // {field}\n" for field, value in tiling.to_json().items())
    size = f'static_assert(sizeof(TCubeTiling) == {SIZE_BYTES}, "50 fields of int32");\n\n'
    body = f"{size}constexpr TCubeTiling {name} = {{\n{rows}}};\n"
    return _file("one tiling as a compile-time constant", body, name, namespace, about)


def to_setters(
    tiling: TCubeTiling, name: str = FUNCTION, namespace: str = "", about: Sequence[str] = ()
) -> str:
    """Return C++ for host code: a function `name` that sets each field of a tiling that it takes.

    It takes any class with the tiling API's setters, such as ``optiling::TCubeTiling``. The rest is
    as `to_header` has it.
    """
    rows = "".join(f"    tiling.set_{n}({value});\n" for n, value in tiling.to_json().items())
    body = f"template <typename Tiling>\ninline void {name}(Tiling& tiling)\n{{\n{rows}}}\n"
    return _file("one tiling, set field by field in host code", body, name, namespace, about)


def _file(what: str, body: str, name: str, namespace: str, about: Sequence[str]) -> str:
    """Return a header with a body in a namespace, once its names are known to be identifiers."""
    for subject, words in (("name", [name]), ("namespace", namespace.split("::"))):
        if (subject, namespace) != ("namespace", "") and not all(map(_IDENTIFIER.match, words)):
            need = "be a C++ identifier" if subject == "name" else "be identifiers joined by ::"
            raise refuse(f"header {subject}", need, repr(name if subject == "name" else namespace))
    comment = "".join(f"// {line}\n" for line in (f"Made by cubecore: {what}.", *about))
    if namespace:  # nested ones by themselves: C++11 has no A::B
        opened = " ".join(f"namespace {one} {{" for one in namespace.split("::"))
        closed = "}" * len(namespace.split("::"))
        body = f"{opened}\n{body}{closed}  // namespace {namespace}\n"
    return f"{comment}#pragma once\n\n{body}"
