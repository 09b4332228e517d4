"""A box of cubecore's own: namespaces that need no rights, with the files that a view shows."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cubecore.sandbox.confinement import confine_holder
from cubecore.sandbox.kernel_calls import (
    APART,
    BIND,
    NEW_USER,
    NO_DEVICES,
    NO_PROGRAMS,
    NO_SETUID,
    PRIVATE,
    RECURSIVE,
    change_root,
    end_with_parent,
    make_read_only,
    mount,
    unmount,
    unshare,
)
from cubecore.sandbox.view import DEVICES, SHARED_BYTES, BoxView, Scratch, system_links

_BASE = Path("/tmp")  # noqa: S108 - a folder that every system has, to mount on
_OLD, _NEW = Path("/old"), Path("/new")


class NoBoxError(Exception):
    """A box that this machine cannot have: why, and what would help."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True, eq=False, slots=True)
class Namespaces:
    """The first process in namespaces of their own, below one that waits for it."""

    process: int
    waiting: int

    def close(self) -> None:
        """End the box, and all processes in it."""
        with suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.waiting, 0)


def user_namespace() -> int:
    """Return a file of a new namespace of users, in which all users are themselves.

    Raises
    ------
    NoBoxError
        If the machine does not allow it.
    """
    child, said = _started(NEW_USER, lambda _: signal.pause())
    try:
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(said)
        _end(child)


def own_box(view: BoxView) -> Namespaces:
    """Start a box.

    Raises
    ------
    NoBoxError
        If the machine does not allow for one.
    """

    def with_first(say: int) -> None:
        child = os.fork()
        if child == 0:
            _hold(view, say)
        os.write(say, f"{child}\n".encode())
        os.close(say)
        os.waitpid(child, 0)

    # A namespace of processes takes the children of who makes it: the process that makes the others
    # waits for the first one in it, which mounts what the box shows. Each says one line.
    waiting, said = _started(NEW_USER | APART, with_first)
    lines: list[str] = []
    with os.fdopen(said, encoding="utf-8", errors="replace") as file:
        while len(lines) < 2 and (line := file.readline()):
            lines.append(line.strip())
    failures = [line for line in lines if line and not line.isdigit()]
    if failures or len(lines) < 2:
        _end(waiting)
        raise NoBoxError(failures[0] if failures else "its first process ended")
    return Namespaces(int(next(filter(str.isdigit, lines))), waiting)


def _started(namespaces: int, work: Callable[[int], object]) -> tuple[int, int]:
    """Fork a process that works in namespaces of its own; return it, and what it says.

    Raises
    ------
    NoBoxError
        If the machine does not allow it.
    """
    wait, mapped = os.pipe()
    said, say = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(mapped)
            os.close(said)
            end_with_parent()
            unshare(namespaces)
            os.write(say, b"\n")
            if os.read(wait, 1):
                work(say)
        except OSError as error:
            os.write(say, f"{error.strerror}\n".encode())
        finally:
            os._exit(0)
    os.close(wait)
    os.close(say)
    try:
        reason = _line(said)
        if not reason:
            _map_users(child)
            os.write(mapped, b"x")
    except OSError as error:
        reason = error.strerror or str(error)
    finally:
        os.close(mapped)
    if reason:
        os.close(said)
        _end(child)
        reason = f"user namespaces are not available ({reason})"
        raise NoBoxError(reason, "allow them, or run cubecore where they are")
    return child, said


def _line(file: int) -> str:
    raw = b""
    while (part := os.read(file, 1)) not in {b"", b"\n"}:
        raw += part
    return raw.decode("utf-8", "replace")


def _end(child: int) -> None:
    with suppress(OSError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _map_users(child: int) -> None:
    """Give a namespace the users that are known here: root's has all of them, others' their own."""
    process = Path(f"/proc/{child}")
    for name, own in (("gid_map", os.getgid()), ("uid_map", os.getuid())):
        text = f"{own} {own} 1"
        if os.getuid() == 0:
            spans = (line.split() for line in Path("/proc/self", name).read_text().splitlines())
            text = "\n".join(f"{first} {first} {count}" for first, _, count in spans)
        elif name == "gid_map":
            (process / "setgroups").write_text("deny")
        (process / name).write_text(text)


def _hold(view: BoxView, say: int) -> None:
    """Be the first process of a box: mount its files, and wait for the end."""
    try:
        end_with_parent()
        _mount_all(view)
        confine_holder()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever is left to it is reaped
        os.write(say, b"\n")
        os.closerange(0, 1 << 16)
        while True:
            signal.pause()
    except OSError as error:
        os.write(say, f"{error.strerror}\n".encode())
    finally:
        os._exit(1)


def _mount_all(view: BoxView) -> None:
    """Make the view the only files there are."""
    links, mounts = system_links(), list(view.mounts())  # as they are under the old root
    # The old root stays below a new one while its parts are bound, as a part may lie where the new
    # one is mounted.
    mount("", "/", "", RECURSIVE | PRIVATE)
    plain = NO_SETUID | NO_DEVICES
    mount("tmpfs", str(_BASE), "tmpfs", plain, "mode=0755,size=1m")
    for each in (_OLD, _NEW):
        (_BASE / each.relative_to("/")).mkdir()
    change_root(str(_BASE), str(_BASE / _OLD.relative_to("/")))
    os.chdir("/")
    mount("tmpfs", str(_NEW), "tmpfs", plain, "mode=0755,size=1m")
    for target, link in links:
        _inside(Path(link)).symlink_to(target)
    _mount_system()
    for path, shown in mounts:
        if isinstance(shown, Scratch):
            _mount_scratch(path, shown.most_bytes)
        elif shown is not None:
            _bind(shown, path)
        elif _OLD.joinpath(path.relative_to("/")).is_dir():
            _mount_scratch(path, 4096)
            make_read_only(str(_inside(path)))
        else:
            _bind(Path("/dev/null"), path, read_only=False)
    make_read_only(str(_NEW), below=False)
    unmount(str(_OLD))
    os.chdir(_NEW)
    change_root(".", ".")
    unmount(".")
    os.chdir("/")


def _inside(path: Path) -> Path:
    return _NEW / path.relative_to("/")


def _mount_system() -> None:
    for name in ("proc", "dev"):
        _inside(Path("/", name)).mkdir()
    mount("proc", str(_inside(Path("/proc"))), "proc", NO_SETUID | NO_DEVICES | NO_PROGRAMS)
    for name in DEVICES:
        _bind(Path("/dev", name), Path("/dev", name), read_only=False)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        _inside(Path("/dev", name)).symlink_to(f"/proc/self/fd/{number}")
    _inside(Path("/dev/fd")).symlink_to("/proc/self/fd")
    _mount_scratch(Path("/dev/shm"), SHARED_BYTES)  # noqa: S108 - as a system has it


def _mount_scratch(path: Path, most_bytes: int) -> None:
    inside = _inside(path)
    inside.mkdir(parents=True, exist_ok=True)
    options = f"mode=1777,size={most_bytes}"
    mount("tmpfs", str(inside), "tmpfs", NO_SETUID | NO_DEVICES, options)


def _bind(source: Path, path: Path, *, read_only: bool = True) -> None:
    held, inside = _OLD / source.relative_to("/"), _inside(path)
    if held.is_dir():
        inside.mkdir(parents=True, exist_ok=True)
    elif not inside.exists():
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.touch()
    try:
        mount(str(held), str(inside), "", BIND | RECURSIVE)
    except FileNotFoundError:  # an old part of a cache that another process trims: nobody needs it
        return
    if read_only:
        make_read_only(str(inside))
