"""Files of C and C++ kernels: where the front end's own lie, and what a user's file is."""

from contextlib import suppress
from pathlib import Path

from cubecore.errors import unwritable

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
"""The folder of the front end: headers, runtime and CMake package."""
REGISTERS_NAME = "cubecore_registers.h"
"""The header of register instructions, which is written from their declarations."""
SUFFIXES = (".cpp", ".cc", ".cxx", ".c", ".asc", ".cce")
"""The suffixes of files with C and C++ kernels."""
VENDOR_LIBRARIES = (
    *("ascendcl", "acl_rt", "runtime", "register", "platform", "tiling_api", "graph_base", "graph"),
    "msprofiler",
    *("c_sec", "profapi", "ascendalog", "ascend_dump", "unified_dlog", "mmpa", "error_manager"),
    *("nnopbase", "opapi", "ge_common_base", "exe_graph", "ascendc_runtime", "tikcpp_debug"),
)
"""Libraries of the vendor that programs link; headers of cubecore stand for them."""

PROGRAM_HEAD = b"#!/bin/sh\n# A program of cubecore: kernels, and a main of their own.\n"
"""The first bytes of a program that `cubecore c++` linked."""


def is_file(path: str | Path) -> bool:
    """True if a regular file is there; a name that no file can have is none's."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a null character
        return False


def is_program(path: str | Path) -> bool:
    """True if a file is one that `cubecore c++` linked; a pipe is not opened."""
    if not is_file(path):
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(len(PROGRAM_HEAD)) == PROGRAM_HEAD
    except OSError:
        return False


def is_project(path: str | Path) -> bool:
    """True if a folder is an operator project: it has host code and kernels of operators."""
    try:
        return all((Path(path) / name).is_dir() for name in ("op_host", "op_kernel"))
    except (OSError, ValueError):
        return False


def write_at_once(out: str | Path, data: bytes, mode: int | None = None) -> None:
    """Write a file in one step, with rights of its own if `mode` gives them.

    Raises
    ------
    RequestError
        If the file cannot be written.
    """
    beside = Path(f"{out}.part")
    try:
        beside.write_bytes(data)
        if mode is not None:
            beside.chmod(mode)
        beside.replace(out)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise unwritable(str(out), error) from None
