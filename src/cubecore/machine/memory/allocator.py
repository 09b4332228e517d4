"""The C library's memory while instructions run."""

from functools import lru_cache

import numpy as np

_LARGEST_BLOCK = 31 << 20
"""Bytes of a block that glibc still puts among the others once it has freed one as large."""


@lru_cache
def keep_freed_memory() -> None:
    """Let arrays of a few megabytes reuse memory, where that is glibc's to choose.

    At first glibc gives each such block back to the system when it is freed, and the system fills
    the next one's pages with zeros again, which takes longer than most instructions. It stops
    after it has freed a large one, which is allocated here, not touched, and freed.
    """
    np.empty(_LARGEST_BLOCK, np.uint8)
