"""Names of what threads (SIMT) call in C++ as text, from headers and the table of mathematics."""

import re
from functools import cache
from textwrap import fill

from cubecore.answers.explain import Explanation

KIND = "function of threads (SIMT)"
_FOLDER = "cubecore/simt/"
_VARIABLE = re.compile(r"^inline constexpr [\w ]+&? ?(\w+) = ", re.MULTILINE)
_OF_KERNELS = re.compile(r"asc_\w|__\w|lane\w|[a-z]\w*(?:Idx|Dim|Size)$")
_WIDTH = 96


def names() -> tuple[str, ...]:
    """Return the functions and variables that threads have, without their types."""
    return tuple(_headers())


def named(name: str) -> Explanation | None:
    """Return a function or a variable of threads; None for other words. Case does not matter."""
    from cubecore.frontends.cpp.toolchain.generated.header_folder import compiled_texts

    small = {each.lower(): each for each in names()}
    found = name if name in _headers() else small.get(name.lower())
    if found is None:
        return None
    header, declared = _headers()[found], _mathematics().get(found, ())
    about = compiled_texts().get(header, "").partition("\n#")[0].replace("//", " ").split()
    said = "Mathematics of threads." if declared else " ".join(about).partition(" Pages:")[0]
    parts = (said, *declared)
    text = "\n\n".join([f"{found}: of threads (SIMT) of Ascend 950", *map(_wrapped, parts)])
    return Explanation(found, KIND, f"{text}\n\nHeaders: {header}\n")


@cache
def _headers() -> dict[str, str]:
    """Return the header of each name."""
    from cubecore.frontends.cpp.toolchain.api_names import functions_of
    from cubecore.frontends.cpp.toolchain.generated.header_folder import compiled_texts
    from cubecore.frontends.cpp.toolchain.generated.thread_math import THREAD_MATH_NAME

    found = dict.fromkeys(_mathematics(), THREAD_MATH_NAME)
    for header, whole in compiled_texts().items():
        if header.startswith(_FOLDER):
            text = whole.replace("CUBECORE_SIMT", "inline")
            every = (*functions_of(text), *_VARIABLE.findall(text))
            found |= {name: header for name in every if _OF_KERNELS.match(name)}
    return found


@cache
def _mathematics() -> dict[str, tuple[str, ...]]:
    """Return the declarations of each function of mathematics."""
    from cubecore.frontends.cpp.thread_functions import thread_functions

    found: dict[str, tuple[str, ...]] = {}
    for each in thread_functions():
        found[each.name] = (*found.get(each.name, ()), each.declaration)
    return found


def _wrapped(text: str) -> str:
    return fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
