"""What a request asks of a tiling beyond the rules: values, ranges and multiples of fields.

The solver proposes candidates by itself; where a field is asked for, it proposes values that fit,
and takes nothing else.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.struct import INT32_MAX
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

Ints = NDArray[np.int64]
SHARED_AXES = {"singleCoreM": "M", "singleCoreN": "N", "singleCoreK": "Ka"}
"""Fields that divide an extent among cores."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The values of one field that will do: `low` to `high`, multiples of `multiple`.

    A core's share may also be the whole extent, whatever the multiple: such an axis is not cut.
    """

    low: int = 0
    high: int = INT32_MAX
    multiple: int = 1

    @property
    def only(self) -> int | None:
        """The one value that will do, if there is one."""
        return self.low if self.low == self.high else None

    def __str__(self) -> str:
        """Return ``= 48``, or ``at least 16, at most 64, a multiple of 32``."""
        if self.only is not None:
            return f"= {self.low}"
        parts = [f"at least {self.low}"] if self.low > 0 else []
        parts += [f"at most {self.high}"] if self.high < INT32_MAX else []
        parts += [f"a multiple of {self.multiple}"] if self.multiple > 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Wanted:
    """What is asked of a tiling's fields, by name. Nothing by default."""

    fields: Mapping[str, Limits] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        """Return ``baseM = 48 and singleCoreN a multiple of 32``."""
        return " and ".join(f"{name} {limits}" for name, limits in self.fields.items())

    def of(self, names: Iterable[str]) -> "Wanted":
        """Return what is asked of some fields only."""
        return Wanted({name: self.fields[name] for name in names if name in self.fields})

    def mask(self, columns: Any) -> NDArray[np.bool_]:
        """Return which candidates have every field as asked; a field that they lack is let pass."""
        found = np.ones(len(columns), dtype=bool)
        for name, limits in self.fields.items():
            if not hasattr(columns, name):
                continue
            values = getattr(columns, name)
            fits = np.asarray(values) % limits.multiple == 0
            if name in SHARED_AXES:
                fits = fits | (values >= getattr(columns, SHARED_AXES[name]))
            found &= fits & (values >= limits.low) & (values <= limits.high)
        return found

    def shares(self, name: str, extent: int, proposed: Ints) -> Ints:
        """Return the shares of an axis to try: `proposed`, as they can be made to fit."""
        limits = self.fields.get(name)
        if limits is None:
            return proposed
        if limits.only is not None:
            return np.array([limits.only])
        unit = math.lcm(FRACTAL_ROWS, limits.multiple)
        rounded = align_up(ceil_div(extent, ceil_div(extent, proposed)), unit)
        ends = _within(limits, unit)
        found = np.unique(np.minimum(np.concatenate([proposed, rounded, ends]), extent))
        fits = (found % limits.multiple == 0) | (found >= extent)
        return np.asarray(found[fits & (found >= limits.low) & (found <= limits.high)])

    def blocks(self, name: str, proposed: Ints, unit: int = FRACTAL_ROWS) -> Ints:
        """Return the base blocks to try; an end of a range is one of them."""
        limits = self.fields.get(name)
        if limits is None:
            return proposed
        if limits.only is not None:
            return np.full(1, limits.only) if len(proposed) else proposed
        near = proposed[(proposed >= limits.low) & (proposed <= limits.high)]
        return np.unique(np.concatenate([near, _within(limits, unit)]))

    def clipped(self, name: str, values: Ints, unit: int) -> Ints:
        """Return `values`, multiples of `unit`, brought into the range, row by row."""
        limits = self.fields.get(name)
        if limits is None:
            return values
        if limits.only is not None:
            return np.full_like(values, limits.only)
        low, high = align_up(limits.low, unit), limits.high // unit * unit
        return np.asarray(np.minimum(np.maximum(values, low), max(high, unit)))


def _within(limits: Limits, unit: int) -> Ints:
    """Return the ends of a range, in whole units."""
    ends = (align_up(max(limits.low, 1), unit), limits.high // unit * unit)
    return np.array([end for end in ends if limits.low <= end <= limits.high], dtype=np.int64)


NOTHING = Wanted()
"""What a plain plan asks for."""
