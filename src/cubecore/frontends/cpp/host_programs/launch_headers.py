"""Headers aclrtlaunch_NAME.h, by which host code launches the kernels of other files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from cubecore.frontends.cpp.documented import header_names
from cubecore.frontends.cpp.rewriting.scanner import Entry
from cubecore.frontends.cpp.rewriting.source import Source
from cubecore.frontends.cpp.toolchain.generated.wire_headers import (
    LAUNCH_NAME,
    TCUBETILING_NAME,
    launch_header,
    tcubetiling_header,
)

_PARAMETER = re.compile(r"(?P<type>.*[\s*&])(?P<name>\w+)\s*$", re.DOTALL)
_HEAD = """// Written by cubecore c++. Page: "基于样例工程完成Kernel直调" (ACLRT_LAUNCH_KERNEL).
#pragma once

#include "acl/acl.h"
#include "cubecore/host/program.h"
#include "cubecore/seam/types.h"

#define ACLRT_LAUNCH_KERNEL(kernel_func) aclrtlaunch_##kernel_func
"""


@cache
def host_headers() -> Mapping[str, str]:
    """Return the headers of host code that are written for its compilation, by name.

    They are the struct of a product's tiling, that of launches, and names of the library's tiling
    functions.
    """
    functions = (n for n in header_names("op_hosts") if n.startswith(("lib/", "adv_api/")))
    named = dict.fromkeys(functions, '#pragma once\n#include "tiling/tiling_api.h"\n')
    return {**_structs(), **named}


def _structs() -> Mapping[str, str]:
    alias = f'#pragma once\n#include "{TCUBETILING_NAME}"\n'
    written = {TCUBETILING_NAME: tcubetiling_header(), LAUNCH_NAME: launch_header()}
    return {**written, "kernel_tiling/kernel_tiling.h": alias}


def write_host_headers(folder: Path, *, functions: bool = False) -> None:
    """Write the headers of host code, with `functions` those that name tiling functions, too."""
    for name, text in (host_headers() if functions else _structs()).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def write_launch_headers(sources: Sequence[Source], folder: Path, *, included: bool = True) -> bool:
    """Write a header for each kernel, with `included` that a source includes; True if one is."""
    wanted = {name for source in sources for name in source.scan.includes}
    any_written = False
    for entry in (entry for source in sources for entry in source.scan.entries):
        header = f"aclrtlaunch_{entry.name}.h"
        if (header in wanted or not included) and not entry.templated:
            (folder / header).write_text(_HEAD + _launch(entry), "utf-8", "surrogateescape")
            any_written = True
    return any_written


def _launch(entry: Entry) -> str:
    """Return the declaration of a kernel, and the function that launches it.

    It is static: what is known of a launch must not be shared by the libraries of its two parts.
    """
    parameters = list(_parameters(entry.declaration))
    linkage = 'extern "C" ' if '"C"' in entry.words else ""
    given = "".join(f", ::cubecore::FromHost<{kind}>::type {name}" for kind, name in parameters)
    passed = ", ".join(f"({kind}){name}" for kind, name in parameters)
    head = f"static inline uint32_t aclrtlaunch_{entry.name}"
    return (
        f"{linkage}void {entry.name}({entry.declaration});\n"
        f"{head}(uint32_t numBlocks, aclrtStream{given}) {{\n"
        f"  CUBECORE_LAUNCH(({entry.name}), (numBlocks), ({passed}));\n"
        "  return 0;\n}\n"
    )


def _parameters(declaration: str) -> Iterator[tuple[str, str]]:
    for text in filter(str.strip, declaration.split(",")):
        match = _PARAMETER.match(text.strip())
        if match is not None:
            yield match["type"].strip(), match["name"]
