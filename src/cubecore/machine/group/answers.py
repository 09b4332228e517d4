"""Values that the cores of a group ask for: of registers, and what their scalar units read."""

from collections.abc import Iterator, Sequence

import numpy as np

from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.tree import LoadScalar
from cubecore.machine.group.recorder import Asked, Issued, RanAheadError
from cubecore.machine.group.running import Running
from cubecore.machine.group.sanitize.divergence import (
    DivergedGroupError,
    UnlikeError,
    UnorderedError,
)

_AT_ITSELF = np.zeros(1, np.int64)


def answers(running: Running) -> Sequence[object]:
    """Return what the cores of a group are to be answered, in their order; nothing if none asks."""
    asks = [core.asks for core in running.cores]
    if not any(asks):
        return ()
    loads = [ask[0] for ask in asks if ask is not None]
    templates = {ask[1] for ask in asks if ask is not None}
    if len(loads) < len(asks) or len(templates) > 1:
        raise DivergedGroupError("cores of a group that ask differently")
    (template,) = templates
    if template is not None:
        return running.group.scalars(template)
    addresses = [ask[2] for ask in asks if ask is not None]
    return _loaded(running, [load for load in loads if load is not None], addresses)


def follow_reads(running: Running) -> None:
    """Follow what the cores of a group read at once, before all else that they recorded."""
    first, *others = [core.read for core in running.cores]
    if any(len(read) != len(first) for read in others):
        raise DivergedGroupError("cores of a group that ask differently")
    for number in range(len(first)):
        asked = [core.read[number] for core in running.cores]
        _move(running, [load for load, _ in asked], [at for _, at in asked])
        running.group.follow_load([load for load, _ in asked], [at for _, at in asked])
    for core in running.cores:
        core.read.clear()


def values_ahead(running: Running) -> Sequence[Sequence[Asked]]:
    """Return what the kernels of a group had ahead and nobody has judged yet."""
    ahead = [core.take_ahead() for core in running.cores]
    if any(ahead):
        first, *others = ([one.at_kind for one in of_core] for of_core in ahead)
        if any(kinds != first for kinds in others):
            raise DivergedGroupError("cores of a group that ask differently")
    return ahead


def asking_again(
    running: Running, asked: Sequence[Sequence[Asked]], steps: Iterator[Issued], *, alone: bool
) -> Iterator[Issued]:
    """Return the first issues of a group, that ask again in between what was asked there."""
    return _asking(running, asked, steps, alone=alone) if any(asked) else steps


def _asking(
    running: Running, asked: Sequence[Sequence[Asked]], steps: Iterator[Issued], *, alone: bool
) -> Iterator[Issued]:
    # A replay: what the kernels asked for lies among the issues at known positions (`behind`
    # issues). It is asked again exactly there, when memory is in the state that the kernels saw.
    number = 0
    for index, step in enumerate(steps):
        while number < len(asked[0]) and asked[0][number].behind <= index:
            _ask_again(running, [of_core[number] for of_core in asked], alone=alone)
            number += 1
        yield step
    for entries in list(zip(*asked, strict=True))[number:]:
        _ask_again(running, entries, alone=alone)


def _ask_again(running: Running, asked: Sequence[Asked], *, alone: bool) -> None:
    """Ask once more; the answers must be those of before.

    `alone`: each core takes its own turns. One whose value a race has changed since goes on with
    the one that it has: its kernel does not run twice. One that had its value ahead does.
    """
    load, template = asked[0].load, asked[0].template
    values: Sequence[object]
    if load is not None:
        loads = [one.load for one in asked if one.load is not None]
        values = _loaded(running, loads, [one.address for one in asked])
    else:
        assert template is not None
        values = running.group.scalars(template)
    changed = [one for one, value in zip(asked, values, strict=True) if one.answer != value]
    if any(one.ahead for one in changed):
        raise RanAheadError
    if changed and not alone:
        raise UnorderedError("values that are not those of before")


def _loaded(
    running: Running, loads: Sequence[LoadScalar], addresses: Sequence[int]
) -> Sequence[int]:
    _move(running, loads, addresses)
    try:
        return running.group.load_scalars(loads, addresses)
    except UnlikeError as unlike:
        running.part(str(unlike), unlike.kinds)


def _move(running: Running, loads: Sequence[LoadScalar], addresses: Sequence[int]) -> None:
    """Require that the cores of a group read the same value, each its own."""
    group, gm = running.group, running.group.gm
    if len(loads) == 1:  # all that a core alone can do is to read at no distance from itself
        if loads[0].mem is Mem.GM:
            group.aliasing.move(gm.start_of(addresses[0]), _AT_ITSELF)
        return
    owners = gm.owners(np.array(addresses, np.int64)).tolist()
    kinds: list[object] = [
        (load.mem, load.element, owner if load.mem is Mem.GM else address)
        for load, owner, address in zip(loads, owners, addresses, strict=True)
    ]
    if any(kind != kinds[0] for kind in kinds):
        running.part("cores of a group that ask differently", kinds)
    if loads[0].mem is Mem.GM:
        # The distances of this read are the group's present ones from here on, as for any access.
        far = np.array(addresses, np.int64) - addresses[0]
        group.aliasing.move(owners[0], far)
