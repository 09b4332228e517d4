"""Boxes opened and entered: by bubblewrap or by cubecore's own means, whichever a machine has."""

import os
import re
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cubecore.errors import unable
from cubecore.sandbox.bubblewrap import bubblewrap_box
from cubecore.sandbox.confinement import confine
from cubecore.sandbox.kernel_calls import APART, NEW_USER, end_with_parent, join
from cubecore.sandbox.namespaces import NoBoxError, own_box
from cubecore.sandbox.seccomp_filter import is_known
from cubecore.sandbox.view import BoxView
from cubecore.sandbox.words import AUTO, BWRAP, NONE, OWN

_MOST_FILES = 4096
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_TIMES = slice(11, 15)
"""The ticks in a process's stat, behind its name: its own, and those of children that ended."""
_OF_PROCESS = re.compile(rb"^Rss(?:Anon|Shmem):\s*(\d+) kB", re.MULTILINE)


class Holder(Protocol):
    """An open box, known by its first process."""

    @property
    def process(self) -> int:
        """The first process in the box's namespaces."""

    def close(self) -> None:
        """End the box, and all processes in it."""


@dataclass(frozen=True, eq=False, slots=True)
class Sandbox:
    """An open box: what holds it, and what it shows."""

    kind: str
    view: BoxView
    holder: Holder

    def enter(self, kept: tuple[int, ...], *, releases: bool = False) -> None:
        """Go on inside, in a child of this process, which ends as the child does.

        `kept` are the files that stay open, beside standard output and error. With `releases` they
        are open inside alone, so that they close when the child ends.
        """
        join(self.holder.process, NEW_USER | APART)
        child = os.fork()
        if child:
            if releases:
                _close_all_but({0, 1, 2})
            signal.signal(signal.SIGXCPU, lambda *_: os.kill(child, signal.SIGXCPU))
            _end_as(child)
        end_with_parent()
        os.setsid()  # a signal to the group stays inside
        os.chdir("/")
        _close_all_but({0, 1, 2, *kept})
        confine()

    def memory_bytes(self) -> int:
        """Return the memory of all processes inside: what they share counts for each of them."""
        texts = self._of_processes("status")
        return sum(int(size) for text in texts for size in _OF_PROCESS.findall(text)) << 10

    def cpu_s(self) -> float:
        """Return the CPU seconds of all processes inside, and of those of theirs that ended."""
        fields = (text.rpartition(b")")[2].split()[_TIMES] for text in self._of_processes("stat"))
        return sum(int(ticks) for times in fields for ticks in times) * _TICK_S

    def _of_processes(self, file: str) -> Iterator[bytes]:
        """Yield what a file of /proc says of each process inside."""
        root = f"/proc/{self.holder.process}/root/proc"
        with suppress(OSError):
            for name in filter(str.isdigit, os.listdir(root)):  # noqa: PTH208 - a text is enough
                with suppress(OSError), open(f"{root}/{name}/{file}", "rb") as text:  # noqa: PTH123
                    yield text.read()

    def copied_out(self, folder: Path, out: Path, most_bytes: int) -> None:
        """Copy plain files of a scratch folder out of the box; links are not followed.

        Files that are there are left; records, which end in .json, come last.
        """
        root = f"/proc/{self.holder.process}/root"
        opened = os.open(f"{root}{folder}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            names = sorted(os.listdir(opened))[:_MOST_FILES]  # noqa: PTH208 - a file's number
            for name in sorted(names, key=lambda each: each.endswith(".json")):
                with suppress(OSError):
                    if not (out / name).exists():
                        most_bytes -= _copied(opened, name, out / name, most_bytes)
        finally:
            os.close(opened)


def _copied(folder: int, name: str, out: Path, most_bytes: int) -> int:
    """Copy a plain file that is small enough; return its bytes."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_size > most_bytes:
            return 0
        raw = file.read(state.st_size)
        part = out.with_name(f"{name}.{os.getpid()}.part")
        part.write_bytes(raw)
        part.chmod(0o755 if state.st_mode & stat.S_IXUSR else 0o644)
        part.replace(out)
        return len(raw)


def _end_as(child: int) -> None:
    """Wait for a child, and end as it has ended."""
    status = 0
    with suppress(OSError):
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        with suppress(OSError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _close_all_but(kept: set[int]) -> None:
    ends = sorted(kept)
    for low, high in zip(ends, [*ends[1:], 1 << 16], strict=True):
        os.closerange(low + 1, high)


@contextmanager
def opened(word: str, view: BoxView) -> Iterator[Sandbox | None]:
    """Open the box that a word asks for, None for none; it ends with the `with`.

    Raises
    ------
    RequestError
        If the machine does not have it.
    """
    box = _opened(word, view)
    try:
        yield box
    finally:
        if box is not None:
            box.holder.close()


def _opened(word: str, view: BoxView) -> Sandbox | None:
    if word == NONE:
        return None
    makers: dict[str, Callable[[BoxView], Holder]] = {BWRAP: bubblewrap_box, OWN: own_box}
    kinds = list(makers) if word == AUTO else [word]
    # Both kinds need the same of a machine: where the last one fails, its reason is that of all.
    for kind in kinds:
        try:
            _require_filter()
            return Sandbox(kind, view, makers[kind](view))
        except NoBoxError as error:
            if kind == kinds[-1]:
                remedies = [error.remedy] if error.remedy else []
                remedies += ["--sandbox none runs it with your rights"]
                sentence = f"no sandbox for --sandbox {word}: {error.reason}"
                raise unable("--sandbox", sentence, "; ".join(remedies)) from None
    return None


def _require_filter() -> None:
    if sys.platform != "linux" or not is_known():
        raise NoBoxError("boxes need Linux on x86_64 or aarch64")
