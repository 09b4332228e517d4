"""Marks of cheating in results that were accepted, beside the expected ones."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.workflows.judge.cheating.kinds import CONSTANT, PRECISION, TOLERANCE
from cubecore.workflows.judge.tasks.comparison import Compared, leaves, ordered, plain

_LEAST = 16
"""Elements of a result that says something of its kind."""
_RIDDEN = 0.3
_LOW_BITS = {"float16": 13, "bfloat16": 16}
"""Bits of a float32 that its 16-bit types do not have."""


def result_marks(compared: Compared, expected: Any, got: Any, case: str) -> Iterator[Json]:
    """Yield the marks of the accepted results of a case."""
    pairs = zip(leaves(expected), ordered(expected, got), strict=False)
    for number, ((_, wanted), (_, found)) in enumerate(pairs):
        want, have = plain(wanted), plain(found)
        if want.shape == have.shape and want.size >= _LEAST:
            yield from _of_output(number, compared, want, have, case)


def _of_output(
    number: int, compared: Compared, want: Array, have: Array, case: str
) -> Iterator[Json]:
    if _is_constant(have):
        if not _is_constant(want):
            value = have.reshape(-1)[0]
            yield CONSTANT.found(f"output {number} is {value} in {have.size:,} elements", case)
        return
    if want.dtype.kind not in "fV" or want.dtype.name not in {"float32", "float64"}:
        return
    with np.errstate(all="ignore"):
        share = np.abs(have - want) / (compared.atol + compared.rtol * np.abs(want))
    ridden = np.count_nonzero((share > _RIDDEN) & (share <= 1))
    if 2 * ridden > want.size:
        yield TOLERANCE.found(f"output {number}: {ridden:,} of {want.size:,} elements", case)
    kind = _lower(have)
    if kind and not _lower(want):
        yield PRECISION.found(f"output {number} has the bits of {kind}", case)


def _is_constant(array: Array) -> bool:
    return bool((array == array.reshape(-1)[0]).all())


def _lower(array: Array) -> str:
    """Return the 16-bit type that a float32 array has no more bits than."""
    if array.dtype != np.float32 or np.array_equal(array, np.rint(array)):
        return ""
    bits = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
    for name, low in sorted(_LOW_BITS.items(), key=lambda each: -each[1]):
        if not (bits & ((1 << low) - 1)).any():
            return name
    return ""
