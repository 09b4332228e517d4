"""Lines of the data cache that several cores may touch, in what they have recorded.

Groups of cores do not follow such lines: where there are any, each core is judged on its own. Only
launches whose scalar units access global memory by the cache are looked at.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import span_bytes
from cubecore.isa.program.trace import InstructionTrace, Names
from cubecore.isa.scalar.caches import LINE_BYTES
from cubecore.isa.scalar.store import StoreScalarGm, valueless
from cubecore.machine.group.recorder import Recorder
from cubecore.units import distinct

_Numbers = NDArray[np.int64]
_Row = tuple[int, int, bool]
"""Of an operand: the bytes that it touches from its address on, and whether it writes."""
_NOTHING: _Row = 0, 0, False


class SharedLines:
    """Looks for lines that cores share; what is known of templates is kept for later launches."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._cached: list[bool] = []
        self._widths = np.zeros(0, np.int64)
        self._operands = np.zeros((0, 0, 3), np.int64)
        """Of each template's operands in global memory the bytes [low, high), and 1 if written."""

    def any_among(self, recorders: Sequence[Recorder]) -> bool:
        """Return whether a core touches a line that another one holds, and one of them writes."""
        if len(recorders) < 2:
            return False
        self._cached += map(_stores, self._names.templates[len(self._cached) :])
        loaded = [_loaded(core) for core in recorders]
        if not (any(self._cached) or any(lines.size for lines in loaded)):
            return False
        self._learn()
        stored = [self._stored(core.trace) for core in recorders]
        # The cache is coherent within a core only, and writes back whole lines. A core is at risk
        # where its line was changed by another one's scalar unit (`changed`), or where it writes by
        # a pipe to a line that another one's cache may hold (`held`: changed or loaded). Reading a
        # line that others have only loaded is harmless.
        for number, core in enumerate(recorders):
            others = [n for n in range(len(recorders)) if n != number]
            changed = distinct(np.concatenate([stored[n] for n in others]))
            held = distinct(np.concatenate([changed, *(loaded[n] for n in others)]))
            if _meets(loaded[number], loaded[number] + 1, changed):
                return True
            for first, last, writes in self._spans(core.trace):
                if _meets(first[writes], last[writes], held):
                    return True
                if _meets(first[~writes], last[~writes], changed):
                    return True
        return False

    def _learn(self) -> None:
        """Take the templates that are new."""
        # One row a template: its number of addresses, and (low, high, writes) of each operand,
        # filled up with empty spans. A whole trace can then be looked up by its kinds in one
        # indexing, without a loop over instructions.
        templates, known = self._names.templates, self._widths.size
        new = [_rows(template) for template in templates[known:]]
        if not new:
            return
        self._widths = np.append(self._widths, np.array([len(rows) for rows in new], np.int64))
        most = max(self._operands.shape[1], *map(len, new))
        operands = np.zeros((len(templates), most, 3), np.int64)
        operands[:known, : self._operands.shape[1]] = self._operands
        for number, rows in enumerate(new, known):
            operands[number, : len(rows)] = np.array(rows, np.int64).reshape(-1, 3)
        self._operands = operands

    def _stored(self, trace: InstructionTrace) -> _Numbers:
        """Return the lines that a core's scalar unit stores to by the cache."""
        if not any(self._cached):
            return np.zeros(0, np.int64)
        kinds, addresses, begins = self._read(trace)
        return distinct(addresses[begins[np.array(self._cached)[kinds]]] // LINE_BYTES)

    def _spans(
        self, trace: InstructionTrace
    ) -> Iterator[tuple[_Numbers, _Numbers, NDArray[np.bool_]]]:
        """Yield the first lines of operands in global memory, the ends, and which are written."""
        kinds, addresses, begins = self._read(trace)
        for number in range(self._operands.shape[1]):
            of_kind = self._operands[:, number]
            touching = (of_kind[:, 1] > of_kind[:, 0])[kinds]
            if touching.any():
                low, high, writes = of_kind[kinds[touching]].T
                at = addresses[begins[touching] + number]
                ends = (at + high - 1) // LINE_BYTES + 1
                yield (at + low) // LINE_BYTES, ends, writes.astype(np.bool_)

    def _read(self, trace: InstructionTrace) -> tuple[NDArray[np.uint32], _Numbers, _Numbers]:
        """Return a trace's kinds, its addresses, and where each instruction's begin."""
        # Addresses of all instructions lie in one flat array; the running sum of the operand counts
        # says where each instruction's begin.
        kinds = np.array(trace.kinds, np.uint32)
        ends = np.cumsum(self._widths[kinds])
        return kinds, np.array(trace.addresses, np.int64), ends - self._widths[kinds]


def _stores(template: Instruction) -> bool:
    """Return whether an instruction stores to global memory by the data cache."""
    return isinstance(template, StoreScalarGm) and bool(template.cached)


def _rows(template: Instruction) -> list[_Row]:
    """Return what each operand touches in global memory; nothing where values decide that."""
    if template.steering:
        return [_NOTHING for _ in template.operands()]
    rows, template = [], valueless(template)
    for operand in template.operands():
        span = span_bytes(template, operand, 0) if operand.mem is Mem.GM else None
        rows.append(_NOTHING if span is None else (*span, operand.access.writes))
    return rows


def _loaded(core: Recorder) -> _Numbers:
    """Return the lines that a core's scalar unit has loaded by the cache."""
    loads = [one.address for one in core.asked if one.load is not None and one.load.by_cache]
    return distinct(np.array(loads, np.int64) // LINE_BYTES)


def _meets(first: _Numbers, ends: _Numbers, lines: _Numbers) -> bool:
    """Return whether one of some lines, in their order, lies in one of the spans [first, end)."""
    # As `lines` ascends, a span holds one of them exactly if its two ends fall into different gaps.
    return bool((lines.searchsorted(first) < lines.searchsorted(ends)).any())
