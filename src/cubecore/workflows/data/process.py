"""What this process takes, and what the machine has."""

import os
import sys

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


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
