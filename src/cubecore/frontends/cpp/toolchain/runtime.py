"""The program that a user's kernels run in, and the library that it loads, compiled once."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cubecore.frontends.cpp.files import HERE
from cubecore.frontends.cpp.toolchain.cache import digest, folder, scratch_folder, used
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers, include_flags

_SONAME = "libcubecore_runtime.so"


class Runtime(NamedTuple):
    """The program that a user's code runs in, and the library that it loads first."""

    program: Path
    library: Path


def runtime() -> Runtime:
    """Return the runtime, compiled if it is not in the cache.

    Raises
    ------
    RequestError
        If no compiler is found.
    """
    shared = ["-std=c++17", "-O2", "-fno-omit-frame-pointer", "-fPIC", "-shared"]
    if sys.platform == "linux":
        shared.append(f"-Wl,-soname,{_SONAME}")
    library = _made_once("runtime.cpp", ".so", shared)
    return Runtime(_made_once("process.cpp", "", ["-O2"], "-ldl"), library)


def _made_once(name: str, suffix: str, flags: Sequence[str], *libraries: str) -> Path:
    """Return what a text of the runtime's is compiled to."""
    text, tool = HERE / "runtime" / name, compiler()
    file = folder() / f"{text.stem}-{digest((tool.identity, headers()))}{suffix}"
    if not file.is_file():
        from cubecore.frontends.cpp.toolchain.diagnostics import compile_with

        with scratch_folder() as scratch:
            out = Path(scratch) / "made"
            search = include_flags(HERE / "runtime")
            command = [*flags, *search, str(text), *libraries, "-o", str(out)]
            compile_with(command, text, Path(scratch))
            out.replace(file)
    used(file)
    return file
