"""Headers of the vendor's toolkit: the names that its pages, or names of the API, give them."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from itertools import chain
from pathlib import Path

from cubecore.frontends.cpp.documented import header_names, library_functions
from cubecore.frontends.cpp.files import INCLUDE
from cubecore.frontends.cpp.toolchain.api_names import missing_names, provided

_LIBRARY = re.compile(
    r"(?P<prefix>(?:ascendc/)?adv_api/|lib/)(?P<subject>\w+)/(?:\w+/)*(?P<stem>\w+)\.h"
)
"""Headers of the library, a folder a subject."""
_CLOSE, _CLOSE_WORDS = 0.85, 0.7
"""Whole names share a folder and endings; a typo is nearer than that."""
_BASIC = re.compile(
    r"(?:(?:ascendc/)?basic_api/(?:interface/|reg_compute/)?)?kernel_(?P<stem>\w+)\.h"
)
"""Headers of the basic API."""
_PARTS = {
    *("kernel", "operator", "struct", "intf", "impl", "utils", "common", "base", "vec"),
    *("tiling", "reg", "compute"),
}
"""Words of such names that say nothing of what the header has."""


_CONSTANTS = {
    "B32_DATA_NUM_PER_BLOCK": "8",
    "B32_DATA_NUM_PER_REPEAT": "64",
    "FOUR": "4",
    "FULL_MASK": "0xffffffffffffffffull",
    "ONE_REPEAT_FLOAT_SIZE": "64",
    "ONE_BLOCK_SIZE": "32",
    "PI": "3.14159265f",
    "SYNC_AIC_FLAG": "11",
    "THREE": "3",
    "TWO": "2",
    "VECTOR_REG_WIDTH_2XVL": "512",
}
"""Constants of the vendor's toolkit that no page has; public host code gives them these values."""


def definition_of(name: str, work: Path) -> str | None:
    """Return the argument that gives a file the kit's constant of this name; None of others.

    A kernel may have its own of the name, so it gets one only if it lacks it, and as a constant of
    a namespace, which one of another namespace hides.
    """
    if name not in _CONSTANTS:
        return None
    header, value = work / f"{name}.h", f"inline constexpr auto {name} = {_CONSTANTS[name]};"
    header.write_text(f"namespace AscendC {{\n{value}\n}}\nusing AscendC::{name};\n", "ascii")
    return f"-include{header}"


def is_of_kit(name: str) -> bool:
    """True of a header's name that the vendor's toolkit may have, beside those of the list.

    It is named after functions of the API: `kernel_operator.h` is all of them.
    """
    if name.rpartition("basic_api/")[2] in {*header_names(), *_own_headers()} - {name}:
        return True
    match = _LIBRARY.fullmatch(name)
    if match is not None:
        words = _words(match["stem"])
        return bool(words) and words in _subjects().get(match["subject"], ())
    match = _BASIC.fullmatch(name)
    if match is None:
        return False
    parts = _significant(match["stem"])
    return bool(parts) and ("".join(parts) in _api_words() or _api_words().issuperset(parts))


def nearest(name: str) -> str:
    """Return ``did you mean X?`` for the known header nearest to a name, or an empty string.

    It is one of this name in another folder; else names of one folder are compared by the words
    that say what a header has, others whole.
    """
    if name in header_names():  # this file is none of kernels, which have it
        return "kernels include it, host code tiling/tiling_api.h"
    folder, _, own = name.rpartition("/")
    same = _elsewhere(folder, own)
    if same:
        return f"did you mean {same}?"
    anywhere = [*header_names(), *_own_headers()]
    beside = [*_known(folder)] if folder or own.startswith("kernel_") else []
    of_words = get_close_matches(_key(own), {_key(each) for each in beside}, 1, _CLOSE_WORDS)
    alike = [each for each in beside if [_key(each)] == of_words]
    close = get_close_matches(name, alike, 1, 0) or get_close_matches(name, anywhere, 1, _CLOSE)
    return f"did you mean {close[0]}?" if close else ""


def _elsewhere(folder: str, own: str) -> str:
    """Return the header of this last part in another folder, the library's first.

    A name without a folder is not looked for in the library: it may be a file of the user's.
    """
    stem = own.removesuffix(".h") if folder else ""
    library = (
        f"adv_api/{subject}/{own}" for subject, has in library_functions().items() if stem in has
    )
    others = (each for each in _own_headers() if each.rpartition("/")[2] == own)
    return next(chain(library, others), "")


def _known(folder: str) -> Iterator[str]:
    """Yield the headers that a folder may have."""
    yield from (name for name in header_names() if name.rpartition("/")[0] == folder)
    yield from (name for name in _own_headers() if name.rpartition("/")[0] == folder)
    match = _LIBRARY.fullmatch(f"{folder}/any.h")
    if match is not None:
        yield from (f"{folder}/{stem}.h" for stem in library_functions().get(match["subject"], ()))


@cache
def _own_headers() -> tuple[str, ...]:
    """Return the headers of the API that cubecore has as files."""
    paths = (path.relative_to(INCLUDE) for path in sorted(INCLUDE.rglob("*.h")))
    return tuple(path.as_posix() for path in paths if path.parts[0] != "cubecore")


@cache
def _subjects() -> dict[str, frozenset[str]]:
    return {
        subject: frozenset(map(_words, stems)) for subject, stems in library_functions().items()
    }


def _key(header: str) -> str:
    return _words(header.rpartition("/")[2].removesuffix(".h"))


def _words(stem: str) -> str:
    return "".join(_significant(stem))


def _significant(stem: str) -> list[str]:
    return [word for word in stem.lower().split("_") if word and word not in _PARTS]


@cache
def _api_words() -> frozenset[str]:
    """Return names in small letters: what headers have or refuse, and what listed ones are of."""
    names = {name for names in provided().values() for name in names} | missing_names()
    found = {name.lower().replace("_", "") for name in names}
    listed = filter(None, map(_BASIC.fullmatch, header_names()))
    found.update(_words(match["stem"]) for match in listed)
    return frozenset(found)
