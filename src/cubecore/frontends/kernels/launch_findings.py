"""Findings at the end of a launch: outputs that were not written whole."""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from cubecore.errors import Violation
from cubecore.isa.program.tree import Location
from cubecore.machine.memory.buffers import GlobalTensor
from cubecore.machine.sanitizer.findings import SanitizerFinding


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
                *("uninitialised", str(claim), "end of kernel", place, "all cores"),
                claim=claim,
                limits=(first, valid.size),
            )
