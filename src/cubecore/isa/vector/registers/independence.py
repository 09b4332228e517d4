"""Loops whose trips may run at once: nothing passes from one trip to another."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.vector.registers.coverage import FARTHEST
from cubecore.isa.vector.registers.flow import leaves_of
from cubecore.isa.vector.registers.folding import FoldedLoop, Node
from cubecore.isa.vector.registers.steps import RegisterStep, ValueSource

_MOST_PAIRS = 1 << 22
"""Pairs of trips that are looked at for a conflict; loops with more run trip by trip."""


def independent_loops(nodes: Sequence[Node], steps: Mapping[int, RegisterStep]) -> Iterator[int]:
    """Yield the numbers of such loops; leaves that are not among the steps do not count."""
    for node in nodes:
        if isinstance(node, FoldedLoop):
            yield from independent_loops(node.body, steps)
            numbers = [leaf.number for leaf, _ in leaves_of(node.body, ())]
            inside = [steps[number] for number in numbers if number in steps]
            if not _passes_values(node.number, inside) and not _conflicts(node.number, inside):
                yield node.number


def _passes_values(level: int, inside: Sequence[RegisterStep]) -> bool:
    """Return whether a trip reads what an earlier one made."""
    position = {step.number: n for n, step in enumerate(inside)}
    for n, step in enumerate(inside):
        within = step.levels[step.levels.index(level) + 1 :]
        for source in (*step.sources, *filter(None, [step.mask])):
            taken: ValueSource | None = source
            while taken is not None:
                if taken.level == level:
                    return True
                # What an inner loop hands on to its next trip stays within this trip.
                if taken.level not in within and position.get(taken.leaf, -1) >= n:
                    return True
                taken = taken.initial
    return False


def _conflicts(level: int, inside: Sequence[RegisterStep]) -> bool:
    """Return whether one trip stores to bytes that another one touches."""
    memory = [step for step in inside if step.loads or step.stores]
    stores = [step for step in memory if step.stores]
    return any(_overlap(level, store, other) for store in stores for other in memory)


def _overlap(level: int, store: RegisterStep, other: RegisterStep) -> bool:
    low, high = _reach(level, store)
    other_low, other_high = _reach(level, other)
    if low.shape[1] ** 2 * low.shape[0] > _MOST_PAIRS:
        return True
    # [trips outside, trips, trips]: do trips i and j of the loop touch a common byte? The diagonal
    # is a trip with itself, whose own order is kept.
    touch = (low[:, :, None] < other_high[:, None, :]) & (other_low[:, None, :] < high[:, :, None])
    touch &= ~np.eye(low.shape[1], dtype=bool)
    return bool(touch.any())


def _reach(level: int, step: RegisterStep) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bytes between which a step touches UB, shaped [trips outside, trips]."""
    axis = step.levels.index(level)
    shape = step.addresses.shape
    outside = int(np.prod(shape[:axis], dtype=int))
    low, sizes = step.addresses, step.extents
    if step.landed is not None:
        low, sizes = step.landed.low, step.landed.sizes
    low = low.reshape(outside, shape[axis], -1)
    sizes = sizes.reshape(low.shape)
    begin = np.where(sizes > 0, low, FARTHEST).min(axis=-1)
    return begin, np.where(sizes > 0, low + sizes, 0).max(axis=-1)
