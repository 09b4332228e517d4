"""Programs that start in a box, where one is open: those that run a user's machine code.

What makes boxes is loaded with the first: other systems than Linux have no module for it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn

from cubecore.errors import CubecoreError
from cubecore.sandbox.words import AUTO

if TYPE_CHECKING:
    from cubecore.sandbox.box import Sandbox
    from cubecore.sandbox.view import BoxView

_box: ContextVar["Sandbox | None"] = ContextVar("box", default=None)


def current_box() -> "Sandbox | None":
    """Return the box that programs start in; None for none."""
    return _box.get()


@contextmanager
def programs_boxed(word: str, view: "BoxView") -> Iterator[None]:
    """Have programs start in the box that a word asks for, until the end of the `with`.

    Where a machine has none, auto goes on without one and says so on standard error.

    Raises
    ------
    RequestError
        If the machine does not have the one that was asked for by its name.
    """
    from cubecore.sandbox.box import opened

    with ExitStack() as stack:
        try:
            box = stack.enter_context(opened(word, view))
        except CubecoreError as error:
            if word != AUTO:
                raise
            say_unboxed(str(error).partition(";")[0])
        else:
            stack.callback(_box.reset, _box.set(box))
        yield


def say_unboxed(reason: str) -> None:
    """Say on standard error that code runs without a box, and why."""
    sys.stderr.write(f"{reason}: it runs with your rights\n")
    sys.stderr.flush()


def started_in(box: "Sandbox", line: list[str], kept: tuple[int, ...], error: int) -> int:
    """Start a program in a box; return the process outside, which ends as the program does.

    `kept` are the files that the program gets under their numbers, `error` its standard error.
    """
    child = os.fork()
    if child == 0:
        _become(box, line, kept, error)
    return child


def _become(box: "Sandbox", line: list[str], kept: tuple[int, ...], error: int) -> NoReturn:
    """Become a program in a box."""
    from cubecore.sandbox.confinement import clean_environment

    try:
        os.setpgid(0, 0)
        os.dup2(error, 2)
        box.enter(kept, releases=True)
        for file in kept:
            os.set_inheritable(file, True)
        os.execve(line[0], line, clean_environment())  # noqa: S606 - the runtime of kernels
    except BaseException as failure:  # noqa: BLE001 - said by the pipe that its parent reads
        os.write(2, f"{failure}\n".encode())
    finally:
        os._exit(127)
