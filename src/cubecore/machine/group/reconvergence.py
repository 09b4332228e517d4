"""Reconvergence: where groups of cores that had diverged have the same before them again.

Groups reconverge behind a barrier of all pipes from which on they recorded the same, to the end of
what they have recorded.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.sync import joined_pipes
from cubecore.machine.group.lockstep_group import LockstepGroup
from cubecore.machine.group.recorder import RecordedPart, Recorder
from cubecore.machine.group.running import Running
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.core_schedule import take_turns

_LEAST = 64
"""Issues that groups must have before them for a reconvergence to pay."""
_MOST_TRIED = 8
"""Barriers behind which a reconvergence is tried."""


class Reconvergence(NamedTuple):
    """Groups that may reconverge, by number, and how many issues are left behind each barrier."""

    groups: Sequence[int]
    left: Sequence[int]


def may_reconverge(groups: Sequence[Sequence[Recorder]]) -> bool:
    """Return whether some groups are cores of one kind."""
    return len(groups) > len({cores[0].id.is_aic for cores in groups})


def reconvergences(
    groups: Sequence[Sequence[Recorder]], gm: GlobalMemory, *, evenly: bool
) -> list[Reconvergence]:
    """Return which groups may reconverge, each once at most; the first core stands for each.

    `evenly`: cores that have reconverged must lie at constant distances in each tensor.
    """
    found, firsts = [], [cores[0] for cores in groups]
    alone = list(range(len(firsts)))
    while may_reconverge([groups[number] for number in alone]):
        # Greedy, by the first core of each group: all groups with a common tail long enough join
        # the first one, the rest try among themselves. The shortest common tail of a set is what
        # all of its members share, so barriers are looked for in that.
        first, *others = alone
        tails = {number: _tail(firsts[first], firsts[number], gm) for number in others}
        met = [number for number in others if tails[number] >= _LEAST]
        alone = [number for number in others if number not in met]
        if met:
            tail = min(tails[number] for number in met)
            cores = [firsts[number] for number in met]
            behind = _behind_barriers(firsts[first].segment(gm), tail)
            left = [n for n in behind if _go_alike(firsts[first], cores, n, gm, evenly=evenly)]
            found.append(Reconvergence([first, *met], left))
    return found


def _tail(one: Recorder, other: Recorder, gm: GlobalMemory) -> int:
    """Return how many last issues of two cores are alike."""
    if one.id.is_aic != other.id.is_aic or not one.ends_like(other):
        return 0
    return one.segment(gm).common_tail(other.segment(gm))


def _behind_barriers(part: RecordedPart, tail: int) -> list[int]:
    """Return how many issues are left behind each of the first barriers of all pipes in a tail."""
    kinds = part.kinds[-tail:]
    joins = [joined_pipes(template) != () for template in part.names.templates]
    # Behind a barrier of all pipes nothing of before is unfinished, so that clocks of both groups
    # can be replaced by one.
    left = tail - 1 - np.flatnonzero(np.array(joins)[kinds])
    worth: list[int] = left[left >= _LEAST][:_MOST_TRIED].tolist()
    return worth


def _go_alike(
    one: Recorder, others: Sequence[Recorder], left: int, gm: GlobalMemory, *, evenly: bool
) -> bool:
    """Return whether cores issue and ask for the same from there on, and lie as they must."""
    rest, asked = one.last(left, gm), one.asked_from(left)
    # A value of global memory may be one that the other group wrote: which comes first was decided
    # apart.
    if evenly and any(entry.load is not None and entry.load.mem is Mem.GM for entry in asked):
        return False
    for other in others:
        far = rest.apart(other.last(left, gm))
        if far is None or (evenly and not rest.evenly(far)):
            return False
        if [e.at_kind for e in other.asked_from(left)] != [e.at_kind for e in asked]:
            return False
    return True


def stop_together(members: Sequence[Running]) -> bool:
    """Let members of a reconvergence, all stopped, go on to the farthest stop that one is at.

    Returns whether all are there, and may reconverge.
    """
    farthest = min(running.stop for running in members)
    behind = [running for running in members if running.stop > farthest]
    for running in behind:
        running.go_past()
    return not behind


def have_equal_states(one: LockstepGroup, other: LockstepGroup) -> bool:
    """Return whether two groups, both at rest, may go on as one: all that cores share is equal."""
    at_rest = one.watch.rests and other.watch.rests
    return at_rest and one.registers == other.registers and _written(one) == _written(other)


def _written(group: LockstepGroup) -> dict[Mem, bytes]:
    """Return the maps of initialised bytes of the local memories in which anything was written."""
    stacks = group.stacks.items()
    return {mem: stack.valid.tobytes() for mem, stack in stacks if stack.valid.any()}


def reconverge(
    groups: list[Running],
    met: Sequence[Reconvergence],
    join: Callable[[Sequence[Running], int], Running],
) -> None:
    """Let groups take turns to their ends; those that reconverge go on as one, which `join` makes.

    `groups` are those that are there at the end.
    """
    open_ = [[groups[number] for number in one.groups] for one in met]
    for one, members in zip(met, open_, strict=True):
        for running in members:
            running.stop_at(one.left)
    while True:
        take_turns(groups)
        stopped = [running for running in groups if running.stopped]
        if not stopped:
            return
        whole = [members for members in open_ if all(running.stopped for running in members)]
        if not whole:  # some of the others wait for those that have stopped
            for running in stopped:
                running.go_past()
        for members in whole:
            if not stop_together(members):
                continue
            first, *others = [running.group for running in members]
            if not all(have_equal_states(first, other) for other in others):
                for running in members:
                    running.go_past()
                continue
            place = groups.index(members[0])
            groups[place] = join(members, members[0].stop)
            groups[:] = [running for running in groups if running not in members]
            open_.remove(members)
