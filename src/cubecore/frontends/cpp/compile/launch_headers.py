"""Headers aclrtlaunch_NAME.h, by which host code launches the kernels of other files."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from cubecore.frontends.cpp.compile.scanner import Entry
from cubecore.frontends.cpp.compile.source import Source

_PARAMETER = re.compile(r"(?P<type>.*[\s*&])(?P<name>\w+)\s*$", re.DOTALL)
_HEAD = """// Written by cubecore c++. Page: "基于样例工程完成Kernel直调" (ACLRT_LAUNCH_KERNEL).
#pragma once

#include "acl/acl.h"
#include "cubecore/host.h"
#include "cubecore/types.h"

#define ACLRT_LAUNCH_KERNEL(kernel_func) aclrtlaunch_##kernel_func
"""


def write_launch_headers(sources: Sequence[Source], folder: Path) -> bool:
    """Write a header for each kernel whose header a source includes; True if there is one."""
    wanted = {name for source in sources for name in source.scan.includes}
    made = False
    for entry in (entry for source in sources for entry in source.scan.entries):
        header = f"aclrtlaunch_{entry.name}.h"
        if header in wanted and not entry.templated:
            (folder / header).write_text(_HEAD + _launch(entry), "utf-8", "surrogateescape")
            made = True
    return made


def _launch(entry: Entry) -> str:
    """Return the declaration of a kernel, and the function that launches it."""
    parameters = list(_parameters(entry.declaration))
    linkage = 'extern "C" ' if '"C"' in entry.words else ""
    given = "".join(f", ::cubecore::FromHost<{kind}>::type {name}" for kind, name in parameters)
    passed = ", ".join(f"({kind}){name}" for kind, name in parameters)
    return (
        f"{linkage}void {entry.name}({entry.declaration});\n"
        f"inline uint32_t aclrtlaunch_{entry.name}(uint32_t numBlocks, aclrtStream{given}) {{\n"
        f"  CUBECORE_LAUNCH(({entry.name}), (numBlocks), ({passed}));\n"
        "  return 0;\n}\n"
    )


def _parameters(declaration: str) -> Iterator[tuple[str, str]]:
    for text in filter(str.strip, declaration.split(",")):
        match = _PARAMETER.match(text.strip())
        if match is not None:
            yield match["type"].strip(), match["name"]
