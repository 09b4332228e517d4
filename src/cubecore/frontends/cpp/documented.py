"""Names of the vendor's documentation and of public programs: `documented_names.txt` lists them."""

import re
from collections.abc import Mapping
from functools import cache

from cubecore.frontends.cpp.files import HERE

LIST = "documented_names.txt"
_HEADERS = re.compile(
    r"^(?P<folders>\S[^:>\n]*?)(?: > (?P<more>\S+))?:(?P<names>(?:\s+\S+\.h\b)+)", re.MULTILINE
)
_FUNCTIONS = re.compile(r"^(?P<subject>\w+):(?P<stems>(?:\s+\w+\b(?!:))+)", re.MULTILINE)


@cache
def documented_names() -> frozenset[str]:
    """Return names of functions, types and constants that the headers may lack."""
    return frozenset(_section("names").split())


@cache
def header_names(of: str = "kernels") -> Mapping[str, str]:
    """Return the names that headers of kernels, or of op_hosts, go by, and what each includes."""
    return {
        name if folder == "." else f"{folder}/{name}": match["more"] or ""
        for match in _HEADERS.finditer(_section(f"headers of {of}"))
        for folder in match["folders"].split()
        for name in match["names"].split()
    }


@cache
def library_functions() -> Mapping[str, tuple[str, ...]]:
    """Return the functions of the library by subject, as its headers are named."""
    section = _section("functions of the library")
    return {m["subject"]: (*m["stems"].split(),) for m in _FUNCTIONS.finditer(section)}


@cache
def of_2201() -> Mapping[str, str]:
    """Return the functions that architecture 3510 lacks by their pages, with what replaces each."""
    return _replacements("of 2201 alone")


@cache
def replaced() -> Mapping[str, str]:
    """Return the functions that 2201 and 3510 lack by their pages, with what replaces each."""
    return _replacements("replaced on both")


def _replacements(title: str) -> dict[str, str]:
    """Return the names of a section, each with its remedy."""
    return dict(line.split(": ", 1) for line in _section(title).splitlines())


def _section(title: str) -> str:
    """Return the lines of a section."""
    text = (HERE / LIST).read_text("ascii")
    return text.partition(f"[{title}]\n")[2].partition("\n[")[0]
