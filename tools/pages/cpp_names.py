"""The page of names of the class API in C++: which a kernel may use, and which are refused."""

from tools.evidence.register_files import section

from cubecore.frontends.cpp.documented import header_names
from cubecore.frontends.cpp.toolchain.api_names import missing_names, provided

_HEAD = """# Names of the class API in C++

Generated from the headers in `src/cubecore/frontends/cpp/include` (`python -m tools.pages.docs
cpp_names.md`): which names of the documentation kernels may use, by header, and which are refused
when the file is compiled. A name that is here may still refuse an argument that architecture 2201
or cubecore does not take, in a sentence. Functions of the C API (`asc_...`) come from the
[instructions](instructions.md) and are listed only where they are refused.
"""


def page() -> str:
    """Return the page: a table of provided names, then those that are refused."""
    by_header, missing = provided(), sorted(missing_names())
    count = len({name for names in by_header.values() for name in names})
    aliases = len(header_names())
    lines = [
        *(_HEAD, "## Provided", ""),
        f"{count} names; {aliases} of the documentation's headers may be included by their names.",
        *("", "| header | names |", "|---|---|"),
    ]
    lines += [f"| `{header}` | {', '.join(names)} |" for header, names in by_header.items()]
    lines += ["", "## Refused", ""]
    of_class = [name for name in missing if name[0].isupper()]
    of_c = [name for name in missing if name.startswith("asc_")]
    others = sorted({*missing} - {*of_class} - {*of_c})
    for kind, names in (
        ("the class API", of_class),
        ("the C API, most of them for architecture 3510", of_c),
        ("SIMT, for architecture 3510", others),
    ):
        lines += [f"{len(names)} names of {kind}: {', '.join(names)}.", ""]
    return "\n".join([*lines, *section()])
