"""The filter of system calls of a box, as a program of the kernel's packet filter.

Calls that a compiler and a kernel need pass; those that look into other processes, change mounts or
namespaces, make memory that is no process's and of no folder's size (memfd_create, shmget), or
reach large rarely used parts of the kernel fail with EPERM.
"""

import errno
import platform
import socket
from functools import cache

from cubecore.sandbox.kernel_calls import (
    APART,
    NEW_USER,
    instruction,
)

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),
    "memfd_secret": (447, 447),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
}
"""Calls that fail, with their numbers on x86_64 and on aarch64."""
_CLONE, _CLONE3 = {"x86_64": 56, "aarch64": 220}, 435
_SOCKET, _IOCTL = {"x86_64": 41, "aarch64": 198}, {"x86_64": 16, "aarch64": 29}
_TO_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type into the caller's terminal."""
_FOREIGN = 0x40000000
"""The numbers of x32, another interface of x86_64."""
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _SECOND_AT = 0, 4, 16, 24
"""Bytes of what a filter sees of a call: its number, and the low words of its arguments."""


def is_known() -> bool:
    """Return whether the system calls of this machine have numbers here."""
    return platform.machine() in _ARCHITECTURES


@cache
def program() -> bytes:
    """Return the filter of this machine."""
    machine = platform.machine()
    column = list(_ARCHITECTURES).index(machine)
    numbers = [each[column] for each in _DENIED.values()]
    parts = [
        instruction(_LOAD, 0, 0, _ARCHITECTURE_AT),
        instruction(_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        instruction(_RETURN, 0, 0, _KILL),
        instruction(_LOAD, 0, 0, _NUMBER_AT),
        *_fails(_AT_LEAST, _FOREIGN, errno.EPERM),
    ]
    for number in numbers:
        parts += _fails(_EQUAL, number, errno.EPERM) if number is not None else []
    # Flags of clone3 lie in memory, where a filter does not see them: libraries that find it absent
    # take clone.
    parts += _fails(_EQUAL, _CLONE3, errno.ENOSYS)
    parts += _argument(_CLONE[machine], _FIRST_AT, _fails(_ANY_BIT, NEW_USER | APART, errno.EPERM))
    local = [
        instruction(_EQUAL, 1, 0, socket.AF_UNIX),
        instruction(_RETURN, 0, 0, _FAIL | errno.EAFNOSUPPORT),
    ]
    parts += _argument(_SOCKET[machine], _FIRST_AT, local)
    typed = [part for code in _TO_TERMINAL for part in _fails(_EQUAL, code, errno.EPERM)]
    parts += _argument(_IOCTL[machine], _SECOND_AT, typed)
    return b"".join([*parts, instruction(_RETURN, 0, 0, _ALLOW)])


def _fails(test: int, value: int, number: int) -> list[bytes]:
    """Return instructions that fail a call whose loaded word passes a test."""
    return [instruction(test, 0, 1, value), instruction(_RETURN, 0, 0, _FAIL | number)]


def _argument(call: int, at: int, judged: list[bytes]) -> list[bytes]:
    """Return instructions that judge an argument of a call; the number is loaded again behind."""
    inner = [instruction(_LOAD, 0, 0, at), *judged, instruction(_LOAD, 0, 0, _NUMBER_AT)]
    return [instruction(_EQUAL, 0, len(inner), call), *inner]
