"""Pages of the site with the names of the class API in C++, by folder of headers, and of TIK."""

from itertools import groupby

from cubecore.frontends.cpp.toolchain.api_declarations import api_declarations
from cubecore.manual import page
from cubecore.workflows.manual import class_api, tik_api

_HEADINGS = {
    "basic": "tensors, copies, vector calls",
    "cube": "the Cube: loads, Mmad, Fixpipe",
    "intrinsics": "built-in functions",
    "library": "the library of operators",
    "matmul": "the Matmul object",
    "op_host": "host code of operators",
    "reg": "registers of architecture 3510",
    "seam": "keywords, enumerations, macros",
    "sync": "queues, flags, pipes",
    "system": "the core: indices, control, prints",
    "te": "tensors of the tile interface",
}
"""Subjects of folders whose name does not say them."""


def pages() -> dict[str, str]:
    """Return the pages by path: an index, one of each folder, and TIK's."""
    named = sorted(api_declarations(), key=lambda name: (class_api.section_of(name), name.lower()))
    folders = {s: list(names) for s, names in groupby(named, key=class_api.section_of)}
    made = {f"class_api/{folder}.md": _page(folder, names) for folder, names in folders.items()}
    made["class_api.md"] = _index(folders)
    made["tik_api.md"] = _tik_page()
    return made


def _index(folders: dict[str, list[str]]) -> str:
    lines = ["# Class API in C++", "", "Names that kernels in C++ may use, from the headers;"]
    lines += ["`cubecore explain NAME` prints one.", "", "| folder | names |", "|---|---|"]
    lines += [f"| [{_title(f)}](class_api/{f}.md) | {len(n)} |" for f, n in folders.items()]
    return "\n".join([*lines, ""])


def _title(folder: str) -> str:
    subject = _HEADINGS.get(folder)
    return f"{folder}: {subject}" if subject else folder


def _page(folder: str, names: list[str]) -> str:
    lines = [f"# Class API: {_title(folder)}", "", "[All folders](../class_api.md)", ""]
    for name in names:
        told = class_api.named(name)
        assert told is not None
        lines += _section(name, told.text, "class API")
    return "\n".join(lines)


def _tik_page() -> str:
    lines = ["# TIK", "", "Names of TIK that programs may use. `cubecore explain NAME` prints one."]
    for name in sorted(tik_api.names(), key=str.lower):
        told = tik_api.named(name)
        assert told is not None
        lines += ["", *_section(name, told.text, "TIK")]
    return "\n".join([*lines, ""])


def _section(name: str, text: str, kind: str) -> list[str]:
    _, _, rest = text.partition("\n")
    return [
        f"## `{name}` {{#{page(kind, name).partition('#')[2]}}}",
        "",
        "```text",
        rest.strip("\n"),
        "```",
        "",
    ]
