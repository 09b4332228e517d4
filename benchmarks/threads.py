"""Kernels of threads (SIMT) of Ascend 950: CPU of a launch, with all checks.

Prints one JSON object. `million`: CPU seconds of a million threads that add two arrays, without a
barrier. `barriers_ms`: CPU milliseconds of 1,024 threads with ten barriers. Both less those of a
launch of one thread of the same kernel; medians of launches.
"""

import json
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from cpp import spent
from targets import against, arguments

import cubecore

TARGETS = {"million": 0.3, "barriers_ms": 20.0}
THREADS = 1 << 20
TEXT = """#include "simt_api/asc_simt.h"
__global__ void added(float* x, float* y, float* z) {
  const uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  z[at] = x[at] + y[at];
}
__global__ void passed(int* x) {
  __ubuf__ int values[1024];
  values[threadIdx.x] = int(threadIdx.x);
  for (int turn = 0; turn < 5; ++turn) {
    asc_syncthreads();
    const int next = values[(threadIdx.x + 1) % blockDim.x];
    asc_syncthreads();
    values[threadIdx.x] = next;
  }
  x[threadIdx.x] = values[threadIdx.x];
}
"""


def cpu(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of a piece of work."""
    before = spent()
    work()
    return spent() - before


def main() -> None:
    repeats = arguments(__doc__ or "", repeats=7).parse_args().repeats
    kernels = cubecore.inline(TEXT, chip="Ascend950PR_9589", checks="all")
    x = np.arange(THREADS, dtype=np.float32)
    z, small = np.zeros_like(x), np.zeros(1024, np.int32)

    def net(full: Callable[[], Any], least: Callable[[], Any]) -> float:
        full(), least()
        return statistics.median(cpu(full) - cpu(least) for _ in range(repeats))

    figures = {
        "million": net(
            lambda: kernels.added[THREADS // 1024, 1024](x, x, z),
            lambda: kernels.added[1, 1](x, x, z),
        ),
        "barriers_ms": 1000
        * net(lambda: kernels.passed[1, 1024](small), lambda: kernels.passed[1, 1](small)),
    }
    assert (z == 2 * x).all()
    print(json.dumps({name: against(figures[name], TARGETS[name]) for name in TARGETS}, indent=1))


if __name__ == "__main__":
    main()
