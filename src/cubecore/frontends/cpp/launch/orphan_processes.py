"""Processes that a kernel has begun and left behind, in sessions of their own."""

import contextlib
import os
import select
import signal
import time
from pathlib import Path

_TIMES = 20
_PAUSE_S = 0.05


def end_descendants(child: int) -> None:
    """End what a child has begun, while it is there and takes in those whose parents have ended."""
    if not _children(child):
        return
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGSTOP)
    for _ in range(_TIMES):
        found, waiting = set[int](), [child]
        while waiting:
            below = _children(waiting.pop()) - found
            found |= below
            waiting += below
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if all(_has_ended(process) for process in found):
            return
        time.sleep(_PAUSE_S)


def _children(process: int) -> set[int]:
    """Return the children of a process, as Linux knows them."""
    found: set[int] = set()
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError, ValueError):
            found |= set(map(int, thread.read_text().split()))
    return found


def _has_ended(process: int) -> bool:
    """Return whether a process waits for nothing but its parent's look."""
    try:
        return _state(Path(f"/proc/{process}"))[0] in {"Z", "X"}
    except OSError:
        return True


def _state(process: Path) -> list[str]:
    """Return what a process's entry of /proc says behind its name: its state, its parent, ..."""
    return (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


def end_strays(read: int) -> None:
    """End who still holds the other end of a pipe, behind the end of the process it was made for.

    A child of this process is another launch's, on another thread, and is left alone.
    """
    for _ in range(_TIMES):
        strays = [] if _is_at_end(read) else _holders(Path(f"/proc/self/fd/{read}"))
        if not strays:
            return
        for process in strays:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        select.select([read], [], [], _PAUSE_S)


def _is_at_end(read: int) -> bool:
    while select.select([read], [], [], 0)[0]:
        if not os.read(read, 1 << 20):
            return True
    return False


def _holders(own: Path) -> list[int]:
    """Return the processes with the file of an entry of /proc, but this one and its children."""
    found: list[int] = []
    if not own.is_symlink():  # not on Linux
        return found
    link = own.readlink()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            number, parent = int(process.name), int(_state(process)[1])
            if os.getpid() in {number, parent}:
                continue
            if any(file.readlink() == link for file in (process / "fd").iterdir()):
                found.append(number)
    return found
