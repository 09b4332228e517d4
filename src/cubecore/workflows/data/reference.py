"""NumPy's own time for a product."""

import statistics
from time import perf_counter

import numpy as np

from cubecore.tiling.model.problem import Problem
from cubecore.workflows.data.operands import Operands, matrices

_RUNS = 3


def reference_seconds(problem: Problem, operands: Operands) -> float:
    """Return the median time of NumPy's float32 product of the shape, at its own thread count."""
    a, b = (values.astype(np.float32) for values in matrices(problem, operands))
    times = []
    for _ in range(_RUNS):
        begin = perf_counter()
        for left, right in zip(a, b, strict=True):
            _ = left @ right
        times.append(perf_counter() - begin)
    return statistics.median(times)
