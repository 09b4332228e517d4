"""Memory of this process, and of the machine."""

import os
import sys
import time

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_IMPORTED = time.perf_counter()
_START_FIELD = 19
"""Of /proc/self/stat, counted from the state of the process: ticks from boot to start."""


def peak_bytes() -> int | None:
    """Return the largest resident size so far, None where the system does not say.

    Linux counts KiB, macOS bytes.
    """
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_bytes() -> int | None:
    """Return the machine's memory, None where the system does not say."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def process_seconds() -> float:
    """Return the time since this process started: on Linux; elsewhere since the import of this."""
    try:
        with open("/proc/self/stat", encoding="ascii") as file:  # noqa: PTH123 - no file of a user
            # The command, which may hold blanks, ends with the last bracket.
            started = int(file.read().rpartition(")")[2].split()[_START_FIELD])
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):  # not Linux
        return time.perf_counter() - _IMPORTED
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / ticks
