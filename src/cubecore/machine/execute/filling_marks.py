"""Marks of filling at elements of operands, of one core or of many at once."""

import numpy as np
from numpy.typing import NDArray

from cubecore.dtypes import ElementType
from cubecore.machine.memory.buffers import Spot
from cubecore.machine.memory.elements import Elements
from cubecore.machine.memory.filling_table import FIRST_FILLING, Marks


def marks_of(spot: Spot, here: Elements, element: ElementType) -> Marks | None:
    """Return the fillings that elements hold, shaped as their offsets; None if they hold none.

    Those that the mask excludes hold none. Cores have one map.
    """
    if here.span is None:
        return None
    (low, high), (_, _, at) = here.span, spot.maps[0]
    if spot.valid[at + low : at + high].max() < FIRST_FILLING:
        return None
    marks = spot.valid[_bytes(spot, at, here, element)].max(axis=-1)
    through = here.offsets >= 0
    if here.active is not None:
        through = through & here.active
    found = np.where(through & (marks >= FIRST_FILLING), marks, 0).astype(np.uint8)
    return found if found.any() else None


def filled_bytes(spot: Spot, here: Elements, element: ElementType, number: int = 0) -> int:
    """Return how many bytes of elements are filling, perhaps of one number."""
    marks = spot.valid[_bytes(spot, spot.maps[0][2], here, element)]
    chosen = here.offsets >= 0
    if here.active is not None:
        chosen = chosen & here.active
    found = marks == number if number else marks >= FIRST_FILLING
    return int(found[chosen].sum())


def put_marks(spot: Spot, here: Elements, element: ElementType, marks: Marks) -> None:
    """Mark elements that were written, where there are marks for them, on every core."""
    chosen = marks > 0
    if here.active is not None:
        chosen = chosen & here.active
    starts = [first + core * step for count, step, first in spot.maps for core in range(count)]
    for at in starts:
        indices = _bytes(spot, at, here, element)[chosen]
        there = spot.valid[indices]
        spot.valid[indices] = np.where(there > 0, marks[chosen][:, None], there)


def _bytes(spot: Spot, at: int, here: Elements, element: ElementType) -> NDArray[np.intp]:
    """Return the bytes of each element, a last axis more; of one outside of memory, the last."""
    size = max(element.bits // 8, 1)
    first = here.offsets * element.bits // 8 + at
    indices = first[..., None] + np.arange(size, dtype=np.intp)
    return np.asarray(np.clip(indices, 0, spot.valid.size - 1), np.intp)
