"""Meetings: where groups of cores that had parted have the same before them again.

Groups meet behind a barrier of all pipes from which on they recorded the same, to the end of what
they have recorded.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.sync import joined_pipes
from cubecore.machine.lockstep.recorder import RecordedPart, Recorder
from cubecore.machine.memory.buffers import GlobalMemory

_LEAST = 64
"""Issues that groups must have before them for a meeting to pay."""
_MOST_TRIED = 8
"""Barriers behind which a meeting is tried."""


class Meeting(NamedTuple):
    """Groups that may meet, by number, and how many issues are left behind each barrier."""

    groups: Sequence[int]
    left: Sequence[int]


def meetings(groups: Sequence[Sequence[Recorder]], gm: GlobalMemory) -> list[Meeting]:
    """Return which groups may meet, each in one meeting at most; the first core stands for each."""
    found, firsts = [], [cores[0] for cores in groups]
    alone = list(range(len(firsts)))
    while len(alone) > 1:
        first, *others = alone
        tails = {number: _tail(firsts[first], firsts[number], gm) for number in others}
        met = [number for number in others if tails[number] >= _LEAST]
        alone = [number for number in others if number not in met]
        if met:
            tail = min(tails[number] for number in met)
            cores = [firsts[number] for number in met]
            behind = _behind_barriers(firsts[first].segment(gm), tail)
            left = [many for many in behind if _go_alike(firsts[first], cores, many, gm)]
            found.append(Meeting([first, *met], left))
    return found


def _tail(one: Recorder, other: Recorder, gm: GlobalMemory) -> int:
    """Return how many last issues of two cores are alike."""
    return one.segment(gm).common_tail(other.segment(gm)) if one.ends_like(other) else 0


def _behind_barriers(part: RecordedPart, tail: int) -> list[int]:
    """Return how many issues are left behind each of the first barriers of all pipes in a tail."""
    kinds = part.kinds[-tail:]
    joins = [joined_pipes(template) != () for template in part.names.templates]
    left = tail - 1 - np.flatnonzero(np.array(joins)[kinds])
    worth: list[int] = left[left >= _LEAST][:_MOST_TRIED].tolist()
    return worth


def _go_alike(one: Recorder, others: Sequence[Recorder], left: int, gm: GlobalMemory) -> bool:
    """Return whether cores lie evenly over each tensor from there on, and ask for the same."""
    rest, asked = one.last(left, gm), one.asked_from(left)
    if any(entry.load is not None and entry.load.mem is Mem.GM for entry in asked):
        return False
    for other in others:
        far = rest.apart(other.last(left, gm))
        if far is None or not rest.evenly(far):
            return False
        if [e.at_kind for e in other.asked_from(left)] != [e.at_kind for e in asked]:
            return False
    return True
