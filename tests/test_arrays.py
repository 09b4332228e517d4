"""Memory of arrays that come and go: pages that were freed are not asked for anew."""

import os
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from cubecore.arrays import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        columns = [np.ones(1 << 17) for _ in range(6)]
        del columns
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
faults()
print(faults())
"""
ROUND_PAGES = 6 * (8 << 17) // 4096
"""Pages that one of the twenty rounds writes."""


@pytest.mark.skipif(
    "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", {}),
    reason="another allocator",
)
def test_freed_columns_are_written_again_without_faults() -> None:
    ran = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < ROUND_PAGES
