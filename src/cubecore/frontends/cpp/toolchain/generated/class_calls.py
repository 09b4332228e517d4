"""Calls of whole families of instructions, written from the instructions' declarations.

A header has the functions of one call as a macro, and says of which families it is used: names of
classes in `isa`, then the macro's use, in which `name`, `cpp` and `c_api` stand for an
instruction's. From

    CUBECORE_EACH(Unary, CUBECORE_UNARY(cpp, "c_api"))

the header that is compiled has

    CUBECORE_UNARY(Abs, "asc_abs")
    CUBECORE_UNARY(Exp, "asc_exp")

and so on, in the order of their declarations. Left out are instructions without such a name, and
those whose function the header has by hand.
"""

import re
from collections.abc import Iterator

from cubecore.isa.catalogue import instructions

_EACH = re.compile(r"^CUBECORE_EACH\((?P<families>[\w ]+), (?P<use>.+)\)\n", re.MULTILINE)
_WORD = re.compile(r"\b(?:name|cpp|c_api)\b")


def with_calls(text: str) -> str:
    """Return a header with a use of a macro for each instruction of the families that it names."""
    return _EACH.sub(lambda match: "".join(_uses(text, match)), text)


def _uses(text: str, match: re.Match[str]) -> Iterator[str]:
    """Yield the uses that stand for a line of a header."""
    families, use = {*match["families"].split()}, match["use"]
    words = _WORD.findall(use)
    for name, kind in instructions().items():
        names = {"name": name, **kind.names}
        is_of_family = any(base.__name__ in families for base in kind.__mro__[1:])
        if is_of_family and all(word in names for word in words):
            by_hand = re.search(rf"^inline .*\b{names[words[0]]}\(", text, re.MULTILINE)
            if by_hand is None:
                yield _WORD.sub(lambda word, names=names: names[word[0]], use) + "\n"
