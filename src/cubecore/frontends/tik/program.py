"""Running a TIK program: the modules that it imports are there while it runs."""

import runpy
import sys
from pathlib import Path

from cubecore.errors import CubecoreError
from cubecore.frontends.tik.instance import Tik, built
from cubecore.frontends.tik.shims import provided
from cubecore.frontends.tik.target import DEFAULT_SOC, Platform

_USAGE = "usage: python -m cubecore.frontends.tik PROGRAM.py [ARGUMENT...]\n"


def run_program(path: str, arguments: list[str] | None = None) -> list[Tik]:
    """Run a program as ``__main__`` and return the kernels that it built.

    Raises:
        RequestError: what the language refuses, with the program's line.
    """
    old_arguments, old_path = sys.argv, list(sys.path)
    sys.argv = [path, *(arguments or [])]
    sys.path.insert(0, str(Path(path).resolve().parent))
    Platform.soc = DEFAULT_SOC
    built.clear()
    try:
        with provided():
            runpy.run_path(path, run_name="__main__")
    finally:
        sys.argv, sys.path = old_arguments, old_path
    return list(built)


def main(arguments: list[str]) -> int:
    """Run a program; 0 done, 1 findings in a debug run, 2 a program that is refused."""
    if not arguments:
        sys.stderr.write(_USAGE)
        return 2
    try:
        kernels = run_program(arguments[0], arguments[1:])
    except CubecoreError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"PROGRAM must be a file that can be read, got {arguments[0]}: {error}\n")
        return 2
    found = any(k.tikdb.last is not None and k.tikdb.last.findings for k in kernels)
    return 1 if found else 0
