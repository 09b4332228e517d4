"""Bytes of UB that a program touches: loaded before it stores there, or stored."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.vector.registers.steps import RegisterStep

FARTHEST = 1 << 21
"""Bytes that no UB has: a program that reaches as far is wrong, and its bytes are not counted."""


@dataclass(frozen=True, eq=False, slots=True)
class CoveredBytes:
    """Bytes of UB from the program's base on: runs that follow each other without a gap."""

    runs: tuple[tuple[int, int], ...]

    @staticmethod
    def of(steps: Sequence[RegisterStep], *, loads: bool) -> "CoveredBytes":
        """Return the bytes that steps load before they store there, or those that they store."""
        concerned = [step for step in steps if (step.loads if loads else step.stores)]
        ends = [_ends(step) for step in concerned if step.pieces.low.size]
        if reach(steps) > FARTHEST:  # they leave UB, and are not executed
            return CoveredBytes(
                ((min(a for a, _ in ends), max(b for _, b in ends)),) if ends else ()
            )
        touched = _touched(concerned)
        if loads and rewrites(steps):
            touched &= _first_loads(steps)[: touched.size]
        return CoveredBytes(tuple(_parted(_runs(touched), _starts(ends))))

    @staticmethod
    def idle(steps: Sequence[RegisterStep]) -> "CoveredBytes":
        """Return the bytes that steps load, and that no call looks at."""
        if reach(steps) > FARTHEST:
            return CoveredBytes(())
        loads = [step for step in steps if step.loads and step.landed is None]
        behind = [step for step in loads if (step.extents < step.span).any()]
        if not behind:
            return CoveredBytes(())
        looked_at, touched = _touched([s for s in steps if s.loads]), np.zeros(0, bool)
        for step in behind:
            high = step.addresses.reshape(-1) + step.span
            more = np.zeros(max(touched.size, int(high.max())), bool)
            more[: touched.size] = touched
            for low, end in zip(step.pieces.high, high, strict=True):
                more[low:end] = True
            touched = more
        both = min(touched.size, looked_at.size)
        touched[:both] &= ~looked_at[:both]
        return CoveredBytes(_runs(touched))


def reach(steps: Iterable[RegisterStep]) -> int:
    """Return the bytes from the base to the end of the last access, whatever its mask says."""
    memory = [step for step in steps if step.loads or step.stores]
    ends = (
        int(step.addresses.max()) + step.span
        if step.landed is None
        else int(step.pieces.high.max(initial=0))
        for step in memory
    )
    return max(ends, default=0)


def rewrites(steps: Iterable[RegisterStep]) -> bool:
    """Return whether steps store to bytes that some load."""
    memory = [step for step in steps if step.loads or step.stores]
    if reach(memory) > FARTHEST:
        return False
    loaded = _touched([step for step in memory if step.loads])
    stored = _touched([step for step in memory if step.stores])
    both = min(loaded.size, stored.size)
    return bool((loaded[:both] & stored[:both]).any())


def _ends(step: RegisterStep) -> tuple[int, int]:
    _, low, high = step.pieces
    return int(low.min()), int(high.max())


def _touched(steps: Sequence[RegisterStep]) -> NDArray[np.bool_]:
    """Return which bytes some steps touch."""
    pieces = [step.pieces for step in steps]
    size = max((int(high.max(initial=0)) for _, _, high in pieces), default=0)
    # A difference array: +1 where an access begins, -1 where it ends; a byte is touched where the
    # running sum is above 0.
    edges = np.zeros(size + 1, np.int64)
    for _, low, high in pieces:
        np.add.at(edges, low, 1)
        np.subtract.at(edges, high, 1)
    return np.asarray(np.cumsum(edges[:-1]) > 0)


def _first_loads(steps: Sequence[RegisterStep]) -> NDArray[np.bool_]:
    """Return which bytes are loaded before they are stored, call by call in their order."""
    memory = [step for step in steps if step.loads or step.stores]
    pieces = [step.pieces for step in memory]
    kinds = np.concatenate(
        [np.full(each.low.size, step.loads) for each, step in zip(pieces, memory, strict=True)]
    )
    entry, low, high = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    first = np.zeros(int(high.max()), np.int8)
    for n in np.argsort(-entry):  # the first access to a byte is the last one that is noted
        first[low[n] : high[n]] = 1 if kinds[n] else -1
    return np.asarray(first > 0)


def _starts(ends: Sequence[tuple[int, int]]) -> list[int]:
    """Return where calls' bytes begin behind all those of others: of another array, most often."""
    starts, stop = [], 0
    for low, high in sorted(ends):
        if low >= stop:
            starts.append(low)
        stop = max(stop, high)
    return starts


def _parted(runs: Sequence[tuple[int, int]], starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    for low, high in runs:
        yield from pairwise([low, *(start for start in starts if low < start < high), high])


def _runs(touched: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], touched, [False]]).astype(np.int8)))
    return tuple((int(a), int(b)) for a, b in edges.reshape(-1, 2))
