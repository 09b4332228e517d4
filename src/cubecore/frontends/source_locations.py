"""Source locations: the file and line of the user's code behind a call."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, MappingProxyType, TracebackType
from typing import Self

from cubecore.errors import CubecoreError, RequestError, shortened
from cubecore.isa.program.tree import Location

_PACKAGE = str(Path(__file__).resolve().parents[1])


class KernelError(CubecoreError):
    """A kernel that failed; each sentence begins with the location in the user's source."""

    @classmethod
    def at(cls, where: Location, error: CubecoreError) -> Self:
        """Return an error with its source location in front of each sentence.

        Parameters
        ----------
        where : Location
            The location in the user's source.
        error : CubecoreError
            The error.

        Returns
        -------
        KernelError
            The error with its violations located.
        """
        return cls(violation.within(str(where)) for violation in error.violations)


class ArchitectureError(KernelError, RequestError):
    """A kernel that calls what chips of its architecture do not have (exit code 2)."""


class LaunchSizeError(KernelError, RequestError):
    """A kernel launched on more threads or memory than it takes (exit code 2)."""


class InstructionLimitError(KernelError):
    """A kernel that passed the limit of instructions of its launch, or of all launches together.

    `issued` are the instructions that each pipe was given, the most first.
    """

    issued: Mapping[str, int] = MappingProxyType({})


def location_of(file: str, line: int, function: str, call: str = "") -> Location:
    """Return a location; its file is as `shown_path` has it, a long function name is cut."""
    return Location(shown_path(file), line, shortened(function), call)


def shown_path(file: str | Path) -> str:
    """Return a file relative to the working directory if it lies inside, else its whole path."""
    try:
        whole = Path(file).resolve()
        here = Path.cwd()
    except (OSError, ValueError):  # no working directory any more
        return Path(file).name
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


_location = lru_cache(maxsize=65536)(location_of)
"""Not by the code itself: equal code of two files is one key."""


def place_of(code: CodeType) -> Location:
    """Return where a function begins."""
    return _location(code.co_filename, code.co_firstlineno, code.co_name)


def kernel_frame() -> FrameType | None:
    """Return the frame of the nearest caller outside this package."""
    outer: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads source files
    while outer is not None and outer.f_code.co_filename.startswith(_PACKAGE):
        outer = outer.f_back
    return outer


def is_outside(code: CodeType) -> bool:
    """True if code is not this package's, nor what starts a script."""
    return not code.co_filename.startswith((_PACKAGE, "<frozen"))


def location(frame: FrameType, call: str = "") -> Location:
    """Return the location of a frame, or of the nearest caller outside this package.

    `call` is the function that the author calls there.
    """
    outer: FrameType | None = frame
    while outer is not None and outer.f_code.co_filename.startswith(_PACKAGE):
        outer = outer.f_back
    innermost = frame if outer is None else outer
    code = innermost.f_code
    return _location(code.co_filename, innermost.f_lineno, code.co_name, call)


def here() -> Location:
    """Return the nearest location outside this package that led here."""
    return location(sys._getframe(1))  # noqa: SLF001 - inspect.stack reads source files


def raised_at(trace: TracebackType | None) -> Location | None:
    """Return the innermost location outside this package, and outside libraries, of a traceback."""
    where = None
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_filename
        if not name.startswith((_PACKAGE, "<")) and "site-packages" not in name:
            where = _location(name, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return where
