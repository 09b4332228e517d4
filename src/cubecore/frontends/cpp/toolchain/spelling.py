"""The compiler's words about types, as users write them.

half is a struct of cubecore's, and types of the API have long arguments; a message names them as a
kernel does.
"""

import re
from functools import cache

from cubecore.frontends.cpp.files import INCLUDE

_ELEMENTS = "cubecore/seam/types.h"
"""The header that gives element types their names."""
_USING = re.compile(r"^using (?P<name>\w+) = cubecore::(?P<ours>\w+<[^>;]*>);", re.MULTILINE)
_ALSO = re.compile(r" \{aka [^{}]*\}| \(aka '[^']*'\)")
"""Other names of a type, by g++ and by clang."""
_ALIAS = re.compile(r"(?<=')using (?P<name>[\w:]+) = [^']*(?=')")
_KEY = re.compile(r"(?<=')(?P<const>const )?(?:class|struct|enum|union) (?=[A-Za-z_])")
_LOCATION = re.compile(r"(?:, )?(?:const )?cubecore::(?:Here|Where)\b(?: ?&)?(?= ?[,)])")
"""The last parameter of functions of ours: the line of the call."""
_CONSTRUCTOR = r"\b(?P<name>{})::(?P<sign>~?)(?:Float16|Storage)\b"
_INNER = re.compile(r"\bcubecore::|(?<=\bAscendC::)(?:detail|Impl::Detail)::")
_WITH_ARGUMENTS = re.compile(r"(?P<name>[A-Za-z_][\w:]*)<(?P<arguments>[^<>']*)>")
_KEPT = str.maketrans("\x01\x02", "<>")
_LONGEST = 40
"""Characters of the arguments of a type of the API that a message shows."""
RENAMED = "cubecore_kernel_"
"""Put before the name of an entry that the compiler has for something else."""


@cache
def _element_types() -> dict[str, str]:
    """Return by the type that headers declare: the name that kernels have for it."""
    text = (INCLUDE / _ELEMENTS).read_text("utf-8")
    return {match["ours"]: match["name"] for match in _USING.finditer(text)}


def with_known_types(said: str) -> str:
    """Return the compiler's words with the names of types that users know, other names left out."""
    said = _KEY.sub(lambda m: m["const"] or "", _ALIAS.sub(r"\g<name>", _ALSO.sub("", said)))
    names = _element_types()
    for ours, name in names.items():
        said = re.sub(rf"\b(?:cubecore::)?{re.escape(ours)}(?: (?=>))?", name, said)
    constructor = _CONSTRUCTOR.format("|".join(names.values()))
    said = re.sub(constructor, r"\g<name>::\g<sign>\g<name>", _LOCATION.sub("", said))
    return re.sub(r"(?<=>) (?=>)", "", _INNER.sub("", said))


def as_written(said: str) -> str:
    """Return the compiler's words as a message has them: long arguments of the API's types cut."""
    said = with_known_types(said)
    while (match := _WITH_ARGUMENTS.search(said)) is not None:
        arguments = match["arguments"]
        if len(arguments) > _LONGEST and match["name"].startswith("AscendC::"):
            arguments = "..."
        said = f"{said[: match.start()]}{match['name']}\x01{arguments}\x02{said[match.end() :]}"
    return said.translate(_KEPT)


def function_as_written(function: str) -> str:
    """Return a function's name as the user writes it, and its types."""
    function = function.replace(RENAMED, "")
    for ours, name in _element_types().items():
        function = function.replace(f"cubecore::{ours}", name)
    return function.replace(" >", ">")
