"""Findings at the end of a launch: outputs that were not written whole."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from cubecore.errors import Violation
from cubecore.isa.program.tree import Location
from cubecore.machine.memory.buffers import GlobalTensor
from cubecore.machine.sanitize.findings import EVERY_CORE, SanitizerFinding

_MOST_RANGES = 4096
"""Ranges of uninitialised bytes of an output that a finding keeps."""


def unwritten(
    tensors: Mapping[str, GlobalTensor], outputs: Collection[str], place: Location
) -> Iterator[SanitizerFinding]:
    """Yield a finding for each output that was not written whole, or holds uninitialised bytes.

    So does any other tensor but scratch that uninitialised bytes were copied to.
    """
    for name, tensor in tensors.items():
        # An output begins invalid. Any other tensor begins valid, so that invalid bytes in it
        # are copies of bytes that nobody wrote.
        valid = tensor.buffer.valid
        missing = valid.size - int(np.count_nonzero(valid))
        if missing and (name in outputs or not tensor.scratch):
            need, got = "be written whole", "never written or written from uninitialised memory"
            if name not in outputs:
                need, got = "hold what was written", "copied from uninitialised memory"
            first = int(np.argmin(valid))
            counted = f"{missing} of {valid.size} B {got}, the first at byte {first}"
            claim = Violation(name, need, counted)
            yield SanitizerFinding(
                *("uninitialised", str(claim), "end of kernel", place, EVERY_CORE),
                arrays=ranges_of(valid == 0),
                claim=claim,
            )


def ranges_of(missing: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Return the first ranges [start, end) of bytes that are marked."""
    edges = np.flatnonzero(np.diff(missing, prepend=False, append=False))
    pairs = edges.reshape(-1, 2)[:_MOST_RANGES].tolist()
    return tuple((start, end) for start, end in pairs)
