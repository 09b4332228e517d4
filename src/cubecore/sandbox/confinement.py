"""Limits, rights and variables that a process gives itself inside of a box."""

import os
import resource
from contextlib import suppress
from pathlib import Path

from cubecore.sandbox.kernel_calls import (
    bound_capabilities,
    drop_capabilities,
    hide_memory,
    install_filter,
    keep_capabilities,
    require_no_new_privileges,
)
from cubecore.sandbox.seccomp_filter import program

NOBODY = 65534
"""The user that root becomes in a box: limits of processes do not bind root."""
MEMORY_BYTES = 4 << 30
"""Bytes that a process may have beyond what it has when it enters."""
TOTAL_BYTES = 8 << 30
"""Bytes that all processes of a box may have together, as their judge counts them."""
PROCESSES = 256
FILES = 1024
_KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH", "TZ", "CUBECORE_", "PYTHON", "OMP_", "OPENBLAS_")
"""The beginnings of variables that a box's programs get."""


def clean_environment() -> dict[str, str]:
    """Return the variables that programs need, and none that may hold a secret of the caller."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    return kept | {"HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}


def confine() -> None:
    """Give up all rights that the box does not need, for good."""
    for name, value in _limits().items():
        _limit(name, value)
    os.umask(0o022)
    bound_capabilities()
    reads_any = os.getuid() == 0 and _become_nobody()
    _give_up(read_any=reads_any)
    hide_memory()  # the programs that this process starts are the submission's; its memory is not


def confine_holder() -> None:
    """Give up all rights of the process that holds a box."""
    bound_capabilities()
    _give_up(read_any=False)


def _give_up(*, read_any: bool) -> None:
    drop_capabilities(read_any=read_any)
    require_no_new_privileges()
    install_filter(program())


def _become_nobody() -> bool:
    """Become another user than root; False where the machine has none."""
    # Files of the user may be for root alone: inside of the box their content may be read, whoever
    # they are of, and nothing else.
    keep_capabilities()
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError:
        return False
    return True


def _limits() -> dict[int, int]:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: pages * resource.getpagesize() + MEMORY_BYTES,
        resource.RLIMIT_NPROC: PROCESSES,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }


def _limit(name: int, value: int) -> None:
    _, most = resource.getrlimit(name)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    with suppress(OSError, ValueError):
        resource.setrlimit(name, (value, value))
