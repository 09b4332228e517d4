"""What this process takes."""

import resource
import sys


def peak_bytes() -> int:
    """Return the largest resident size so far; Linux counts KiB, macOS bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
