"""Options of the command line for the launch of a C or C++ kernel."""

from dataclasses import fields
from pathlib import Path

from cubecore.errors import refuse
from cubecore.lazy_dataclass import dataclass

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
"""The folder of the front end: headers, runtime and CMake package."""
SUFFIXES = (".cpp", ".cc", ".cxx", ".c", ".asc", ".cce")
"""The suffixes of files with C and C++ kernels."""
VENDOR_LIBRARIES = (
    *("ascendcl", "acl_rt", "runtime", "register", "platform", "tiling_api", "graph_base", "graph"),
    *("c_sec", "profapi", "ascendalog", "ascend_dump", "unified_dlog", "mmpa", "error_manager"),
    *("nnopbase", "opapi", "ge_common_base", "exe_graph", "ascendc_runtime", "tikcpp_debug"),
)
"""Libraries of the vendor that programs link; headers of cubecore stand for them."""
TIMEOUT_S = 60.0
"""Seconds that a launch may take, unless told."""
LIMIT = 10_000_000
"""Instructions of a launch, unless told: more than of one in Python, since its time is limited."""

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


@dataclass(frozen=True, slots=True)
class CppLaunchOptions:
    """Options of a launch on the command line: texts, as they were typed."""

    entry: str | None = None
    blocks: int | None = None
    arguments: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    marked_outputs: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    tiling_data: str | None = None
    tiling_key: int = 0
    timeout_s: float = TIMEOUT_S
    auto_sync: str = "on"
    verbose: bool = False

    def __post_init__(self) -> None:
        """Refuse a limit that leaves no time."""
        if not self.timeout_s > 0:
            raise refuse("--timeout", "be above 0 s", f"{self.timeout_s:g}")

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given: for a file that has none of them."""
        plain = CppLaunchOptions()
        names = {"arguments": "--arg", "outputs": "--out-arg", "defines": "-D"}
        names |= {"timeout_s": "--timeout", "marked_outputs": "--outputs"}
        return tuple(
            names.get(f.name, "--" + f.name.replace("_", "-"))
            for f in fields(self)
            if getattr(self, f.name) != getattr(plain, f.name)
        )
