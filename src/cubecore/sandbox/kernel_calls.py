"""System calls of Linux that Python 3.11 has no functions for."""

import ctypes
import os
import platform
from functools import cache

NEW_FILES, NEW_CGROUP, NEW_NAMES, NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEW_USER, NEW_PROCESSES, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
APART = NEW_FILES | NEW_CGROUP | NEW_NAMES | NEW_IPC | NEW_PROCESSES | NEW_NETWORK
"""The namespaces of a box, but that of users."""
NO_SETUID, NO_DEVICES, NO_PROGRAMS = 2, 4, 8
BIND, RECURSIVE, PRIVATE = 4096, 16384, 1 << 18
DETACH = 2
_DEATH_SIGNAL, _DUMPABLE, _KEEP, _SECCOMP, _DROP, _NO_NEW, _AMBIENT = 1, 4, 8, 22, 24, 38, 47
_FILTER, _RAISE, _CLEAR = 2, 2, 4
_READ_ANY = 2
"""CAP_DAC_READ_SEARCH."""
_CAPABILITIES = 41
_CAPABILITY_VERSION = 0x20080522
_NUMBERS = {"x86_64": (155, 442), "aarch64": (41, 442)}
"""The numbers of pivot_root and mount_setattr, for which the C library has no functions."""
_RECURSIVE_PATH, _READ_ONLY = 0x8000, 1


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("true", ctypes.c_uint8),
        ("false", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.c_void_p))


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("users", ctypes.c_uint64),
    )


class _CapabilityHead(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _require(result: int, name: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(namespaces: int) -> None:
    """Give this process namespaces of its own."""
    _require(_library().unshare(ctypes.c_int(namespaces)), "unshare")


def join(process: int, namespaces: int) -> None:
    """Enter another process's namespaces; that of processes takes the children of this one."""
    file = os.pidfd_open(process)
    try:
        _require(_library().setns(file, ctypes.c_int(namespaces)), "setns")
    finally:
        os.close(file)


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount a file system, or bind a file or folder to another path."""
    words = (os.fsencode(word) if word else None for word in (source, target, kind))
    flags_word = ctypes.c_ulong(flags)
    _require(
        _library().mount(*words, flags_word, os.fsencode(data) if data else None),
        f"mount {target}",
    )


def make_read_only(target: str, *, below: bool = True) -> None:
    """Let nobody write to a mount, and those below it; a program's owner is of no account there."""
    asked = _Attributes(_READ_ONLY | NO_SETUID)
    number = _NUMBERS[platform.machine()][1]
    path = ctypes.c_char_p(os.fsencode(target))
    result = _library().syscall(
        ctypes.c_long(number),
        ctypes.c_long(-100),
        path,
        ctypes.c_long(_RECURSIVE_PATH if below else 0),
        ctypes.byref(asked),
        ctypes.c_long(ctypes.sizeof(asked)),
    )
    _require(result, "mount_setattr")


def change_root(root: str, old: str) -> None:
    """Make a mount the root of the files; the old root lies below it at `old`."""
    number = _NUMBERS[platform.machine()][0]
    words = (ctypes.c_char_p(os.fsencode(each)) for each in (root, old))
    _require(_library().syscall(ctypes.c_long(number), *words), "pivot_root")


def unmount(target: str) -> None:
    """Take a mount away, as soon as nothing uses it."""
    _require(_library().umount2(os.fsencode(target), DETACH), "umount2")


def end_with_parent() -> None:
    """End this process with the one that it was forked from."""
    import signal

    _library().prctl(_DEATH_SIGNAL, signal.SIGKILL)


def keep_capabilities() -> None:
    """Let the next change of the user leave the capabilities."""
    _library().prctl(_KEEP, 1, 0, 0, 0)


def hide_memory() -> None:
    """Let no other process of this user read or write this one's memory, or use its open files."""
    _library().prctl(_DUMPABLE, 0, 0, 0, 0)


def bound_capabilities() -> None:
    """Let no program have another capability than that to read."""
    for number in range(_CAPABILITIES):
        if number != _READ_ANY:
            _library().prctl(_DROP, number, 0, 0, 0)


def drop_capabilities(*, read_any: bool) -> None:
    """Give up all capabilities, for this process and all programs; but that to read, if asked."""
    library = _library()
    left = 1 << _READ_ANY if read_any else 0
    head = _CapabilityHead(_CAPABILITY_VERSION, 0)
    words = (ctypes.c_uint32 * 6)(left, left, left, 0, 0, 0)
    _require(library.capset(ctypes.byref(head), words), "capset")
    library.prctl(_AMBIENT, _CLEAR, 0, 0, 0)
    if read_any:  # programs that this one starts need it, too
        _require(library.prctl(_AMBIENT, _RAISE, _READ_ANY, 0, 0), "prctl")


def require_no_new_privileges() -> None:
    """Let no program that this process starts have more rights than it has."""
    _require(_library().prctl(_NO_NEW, 1, 0, 0, 0), "prctl")


def install_filter(program: bytes) -> None:
    """Have system calls judged by a program, for this process and all that it starts."""
    raw = ctypes.create_string_buffer(program, len(program))
    length = len(program) // ctypes.sizeof(_Instruction)
    whole = _Program(length, ctypes.cast(raw, ctypes.c_void_p).value)
    _require(_library().prctl(_SECCOMP, _FILTER, ctypes.byref(whole), 0, 0), "prctl")


def instruction(code: int, true: int, false: int, k: int) -> bytes:
    """Return an instruction of a filter."""
    return bytes(_Instruction(code, true, false, k))
