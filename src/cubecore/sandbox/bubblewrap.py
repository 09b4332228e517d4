"""A box of bubblewrap: it makes the namespaces and the files, and holds them while it runs."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cubecore.sandbox.namespaces import NoBoxError, user_namespace
from cubecore.sandbox.seccomp_filter import program
from cubecore.sandbox.view import SHARED_BYTES, BoxView, Scratch, system_links

_HELD = "echo; exec cat"
"""Says that all is mounted, and waits for the end of its input."""


@dataclass(frozen=True, eq=False, slots=True)
class Bubblewrap:
    """A running bubblewrap, and the first process in its namespaces."""

    process: int
    running: "subprocess.Popen[bytes]"

    def close(self) -> None:
        """End the box, and all processes in it."""
        if self.process:
            with suppress(OSError):
                os.kill(self.process, signal.SIGKILL)  # it ends when all others have ended
        else:
            self.running.kill()
        for pipe in (self.running.stdin, self.running.stdout, self.running.stderr):
            if pipe is not None:
                pipe.close()
        self.running.wait()


def program_of_bubblewrap() -> str | None:
    """Return bubblewrap's path: of this environment's packages, or of the system."""
    beside = Path(sys.executable).with_name("bwrap")
    return str(beside) if beside.is_file() else shutil.which("bwrap")


def bubblewrap_box(view: BoxView) -> Bubblewrap:
    """Start a box.

    Raises
    ------
    NoBoxError
        If bubblewrap is not installed, or does not start.
    """
    path = program_of_bubblewrap()
    if path is None:
        raise NoBoxError("bubblewrap is not installed", "install the package bubblewrap")
    held: list[int] = []
    try:
        info, info_end = os.pipe()
        held += [info, info_end]
        words = [path, *_apart(held), "--die-with-parent", "--info-fd", str(info_end)]
        words += ["--seccomp", str(_file_of(program(), held)), *_mounts(view)]
        running = subprocess.Popen(  # noqa: S603 - bubblewrap
            [*words, "--", "/usr/bin/env", "sh", "-c", _HELD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=held,
            env={"PATH": "/usr/bin:/bin"},
        )
        assert running.stdout is not None
        assert running.stderr is not None
        if running.stdout.readline() != b"\n":
            said = running.stderr.read().decode("utf-8", "replace").strip()
            Bubblewrap(0, running).close()
            raise NoBoxError(said.splitlines()[-1] if said else "bubblewrap does not start")
        return Bubblewrap(json.loads(os.read(info, 4096))["child-pid"], running)
    finally:
        for file in held:
            os.close(file)


def _apart(held: list[int]) -> list[str]:
    """Return the words for namespaces; root's has all users, so that one can be nobody."""
    if os.getuid() == 0:
        held.append(user_namespace())
        users = ["--userns", str(held[-1])]
    else:
        users = ["--unshare-user"]
    others = ("ipc", "pid", "net", "uts", "cgroup-try")
    return [*users, *(f"--unshare-{each}" for each in others)]


def _file_of(raw: bytes, held: list[int]) -> int:
    # A pipe holds the filter until bubblewrap reads it: it is smaller than what a pipe takes, and a
    # process in a box, which has no memfd_create, gets as far as the reason why it has no box.
    file, end = os.pipe()
    held.append(file)
    os.write(end, raw)
    os.close(end)
    return file


def _mounts(view: BoxView) -> list[str]:
    words = ["--proc", "/proc", "--dev", "/dev", *_scratch("/dev/shm", SHARED_BYTES)]  # noqa: S108
    words += ["--remount-ro", "/dev"]
    for target, link in system_links():
        words += ["--symlink", target, link]
    folders, bound = {Path("/")}, [Path("/proc"), Path("/dev")]
    for path, shown in view.mounts():
        # Folders on the way to a mount would get the rights of those outside, which may be for root
        # alone: a program that asks the kernel for its access (cmake does) finds nothing there.
        for folder in reversed(path.parents):
            if folder not in folders and not any(folder.is_relative_to(one) for one in bound):
                words += ["--perms", "0755", "--dir", str(folder)]
                folders.add(folder)
        folders.add(path)
        if not isinstance(shown, Scratch):
            bound.append(path)
        if isinstance(shown, Scratch):
            words += _scratch(str(path), shown.most_bytes)
        elif shown is None and path.is_dir():
            words += [*_scratch(str(path), 4096), "--remount-ro", str(path)]
        else:
            # What is gone by then, an old part of a cache that another process trims, nobody needs.
            words += ["--ro-bind-try", "/dev/null" if shown is None else str(shown), str(path)]
    return [*words, "--remount-ro", "/"]


def _scratch(path: str, most_bytes: int) -> list[str]:
    return ["--perms", "1777", "--size", str(most_bytes), "--tmpfs", path]
