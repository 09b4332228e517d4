"""Offsets that lie evenly along a few axes: a strided view finds them several times faster.

Rows of a matrix, fractals, windows and blocks are such offsets; tables of values are not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.arrays import Array

Rows = tuple[int, int, int]
"""Cores whose bytes lie evenly: how many, how far apart, and where those of the first start."""
_MOST_AXES = 8
_FEW = 256
"""Places of each row that are looked up for all rows at once: of more, row by row is faster."""


@dataclass(frozen=True, eq=False, slots=True)
class Lattice:
    """Elements from `first` on, `steps` apart along the axes of `shape`."""

    first: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def distinct(self) -> bool:
        """True if no two elements are surely one: each axis steps over all within it."""
        extent = 0
        for step, count in sorted(
            (abs(step), count) for step, count in zip(self.steps, self.shape, strict=True)
        ):
            # By rising steps: an axis that steps over all within it gives each element an offset of
            # its own.
            if step <= extent:
                return False
            extent += step * (count - 1)
        return True

    def view(self, data: Array, rows: Rows, dtype: Any, size: int) -> Array:
        """Return the elements of each core, [cores, *shape], in an array of bytes.

        They count from where each row starts, in units of `size` bytes, and must lie inside `data`.
        """
        count, step, at = rows
        strides = (step, *[inner * size for inner in self.steps])
        start = at + self.first * size
        return np.ndarray((count, *self.shape), dtype, data, start, strides)

    @property
    def last(self) -> int:
        """The highest offset."""
        ahead = (step * (n - 1) for step, n in zip(self.steps, self.shape, strict=True) if step > 0)
        return self.first + sum(ahead)

    @property
    def run(self) -> int:
        """Return the number of consecutive elements along the last axis."""
        return self.shape[-1] if self.steps and self.steps[-1] == 1 else 1

    @property
    def of_runs(self) -> "Lattice":
        """The same without the last axis: where each run starts."""
        return Lattice(self.first, self.shape[:-1], self.steps[:-1])


def whole(data: Array, rows: Rows, dtype: Any, size: int) -> Array:
    """Return the elements of each core that fit, [cores, elements], in a flat array of bytes."""
    count, step, at = rows
    fit = (data.size - at - step * (count - 1)) // size
    return np.ndarray((count, fit), dtype, data, at, (step, size))


def gathered(window: Array, indices: Array) -> Array:
    """Return the elements at flat `indices` of each row, [rows, indices]; all must be inside."""
    if len(window) > 1 and indices.size < _FEW:
        return np.asarray(window[:, indices])
    elements = np.empty((len(window), indices.size), window.dtype)
    # One row after another: of all rows together `take` would copy them whole.
    for row, target in zip(window, elements, strict=True):
        row.take(indices, out=target, mode="clip")
    return elements


def scatter(window: Array, indices: Array, values: Array) -> None:
    """Store values, [rows or 1, indices], at flat `indices` of each row; what comes last stays."""
    if indices.size < _FEW:
        window[:, indices] = values
        return
    for row, of_row in zip(
        window, np.broadcast_to(values, (len(window), indices.size)), strict=True
    ):
        row[indices] = of_row


def lattices(*offsets: Array) -> tuple[Lattice, ...] | None:
    """Return arrays of as many offsets as lattices of one shape; None if one is no lattice."""
    rest = np.stack([one.reshape(-1) for one in offsets])
    if not rest.size:
        return None
    shape: list[int] = []
    steps: list[tuple[int, ...]] = []
    while rest.shape[1] > 1:
        count = rest.shape[1]
        # From the innermost axis outwards: the first run of equal distances is an axis if all
        # others are like it; then what is left are the starts of the runs.
        far = rest[:, 1:] - rest[:, :-1]
        uneven = (far != far[:, :1]).any(axis=0)
        run = int(uneven.argmax()) + 1 if uneven.any() else count
        grid = rest.reshape(len(rest), -1, run) if count % run == 0 else None
        if grid is None or len(shape) == _MOST_AXES:
            return None
        within = far[:, :1, None] * np.arange(run)
        if (grid != grid[:, :, :1] + within).any():
            return None
        shape.insert(0, run)
        steps.insert(0, tuple(far[:, 0].tolist()))
        rest = grid[:, :, 0]
    axes = tuple(zip(*steps, strict=True)) if steps else ((),) * len(rest)
    return tuple(
        Lattice(first, tuple(shape), one)
        for first, one in zip(rest[:, 0].tolist(), axes, strict=True)
    )
