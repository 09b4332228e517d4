"""Running a TIK program: the modules that it imports are there while it runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cubecore.errors import CubecoreError
from cubecore.frontends.kernels.scripts import run_as_main
from cubecore.frontends.tik.host.legacy_names import older_names
from cubecore.frontends.tik.host.session import TikSession
from cubecore.frontends.tik.host.vendor_modules import provided
from cubecore.frontends.tik.trace.run_options import TikOptions
from cubecore.frontends.tik.trace.target import DEFAULT_SOC, Platform

_USAGE = "usage: python -m cubecore.frontends.tik PROGRAM.py [ARGUMENT...]\n"


@contextmanager
def program_session(options: TikOptions | None = None) -> Iterator[TikSession]:
    """Let a program inside import TIK; collect what it builds and launches."""
    Platform.soc = DEFAULT_SOC
    with TikSession(options or TikOptions()).collecting() as session, provided(), older_names():
        yield session


def run_program(path: str, arguments: tuple[str, ...] = ()) -> tuple[TikSession, str | None]:
    """Run a program as ``__main__``; return what it built, and what it holds against it.

    Raises
    ------
    RequestError
        If the language refuses a call; the message begins with the program's line.
    KernelError
        If the program fails on its own.
    """
    with program_session() as session:
        return session, run_as_main(path, arguments)


def main(arguments: list[str]) -> int:
    """Run a program; 0 done, 1 findings or a failed assertion, 2 a program that is refused."""
    if not arguments:
        sys.stderr.write(_USAGE)
        return 2
    path = arguments[0]
    if not Path(path).is_file():
        sys.stderr.write(f"PROGRAM must be a file, got {path}\n")
        return 2
    try:
        session, failure = run_program(path, tuple(arguments[1:]))
    except CubecoreError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if failure is not None:
        sys.stderr.write(f"{failure}\n")
    return 1 if failure is not None or not all(run.clean for run in session.runs) else 0
