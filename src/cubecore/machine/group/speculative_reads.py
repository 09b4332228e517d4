"""Values of global memory that a kernel would be given before cores that go first write them.

Cores that do not signal each other go one after another to their ends, so that a core reads what
all before it have written. In lockstep they record side by side: a value that another core's
writes decide, executed or only recorded, is not given to a kernel, which would go its way by it.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.trace import Names
from cubecore.machine.group.recorder import Recorder
from cubecore.machine.group.sanitize.aliasing import Addresses, GroupAliasing, written_by_others
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.footprint import footprints

_Spans = tuple[Addresses, Addresses]
"""Starts and ends of bytes, in no order."""
_WHOLE = (-(1 << 62), 1 << 62)
"""The reach of a write that registers, or values, decide."""


class SpeculativeReads:
    """Bytes that the cores of a launch have recorded to write, and not written yet."""

    def __init__(self, recorders: Sequence[Recorder], gm: GlobalMemory, names: Names) -> None:
        self._recorders, self._gm, self._names = recorders, gm, names
        self._numbers = {core.id: number for number, core in enumerate(recorders)}
        self._writes: list[list[tuple[int, int, int]]] = []
        nowhere = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._spans: list[tuple[tuple[int, int], _Spans]] = [((0, 0), nowhere)] * len(recorders)

    def recorded(self, core: Recorder, low: int, high: int) -> bool:
        """Return whether a core that goes before this one has recorded a write to [low, high)."""
        before = range(self._numbers[core.id])
        return any(_meet(self._pending(number), low, high) for number in before)

    def executed(
        self, groups: Iterable[GroupAliasing], core: Recorder, low: int, high: int
    ) -> bool:
        """Return whether groups have executed a write of another core to [low, high)."""
        tensor = self._gm.near(low)
        if tensor is None:
            return False
        return written_by_others(groups, tensor.address, core.id, low, high)

    def _pending(self, number: int) -> _Spans:
        """Return the bytes that a core has recorded to write."""
        recorder, (known, spans) = self._recorders[number], self._spans[number]
        if known != recorder.extent:
            spans = self._of(recorder)
            self._spans[number] = recorder.extent, spans
        return spans

    def _of(self, recorder: Recorder) -> _Spans:
        # All pending writes of a core as two arrays: for each template that occurs, the addresses
        # of each global operand that it writes are picked out of the flat array, and widened by its
        # footprint.
        part, templates = recorder.segment(self._gm), self._names.templates
        self._writes += [_global_writes(kind) for kind in templates[len(self._writes) :]]
        widths = self._names.operands().widths[part.kinds]
        begins = np.cumsum(widths) - widths
        starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for kind in np.flatnonzero(np.bincount(part.kinds, minlength=1)).tolist():
            for operand, low, high in self._writes[kind]:
                at = part.addresses[begins[part.kinds == kind] + operand]
                # Values or registers decide the bytes: every byte of the tensor may be written.
                if (low, high) == _WHOLE:
                    owners = [self._gm.near(one) for one in at.tolist()]
                    starts.append(np.array([one.address for one in owners if one], np.int64))
                    ends.append(np.array([one.end for one in owners if one], np.int64))
                else:
                    starts.append(at + low)
                    ends.append(at + high)
        return np.concatenate(starts), np.concatenate(ends)


def _global_writes(template: Instruction) -> list[tuple[int, int, int]]:
    """Return the operands in global memory that a template writes, and around which bytes."""
    writes = [
        number
        for number, operand in enumerate(template.operands())
        if operand.mem is Mem.GM and operand.access.writes
    ]
    if template.takes_registers or template.steering:
        return [(number, *_WHOLE) for number in writes]
    touched = footprints(template) if writes else ()
    return [(n, found.low, found.high) for n in writes if (found := touched[n]) is not None]


def _meet(spans: _Spans, low: int, high: int) -> bool:
    starts, ends = spans
    return bool(starts.size) and bool(((starts < high) & (ends > low)).any())
