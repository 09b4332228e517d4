"""A few values of a field that stand for all: in a proof that none will do, and in a guess."""

from collections.abc import Iterable

import numpy as np

from cubecore.tiling.model.field_limits import SHARED_AXES
from cubecore.tiling.repair.field_domains import Ints, extent_of
from cubecore.tiling.repair.neighbourhood import GROWING, Neighbourhood
from cubecore.tiling.rules.field_dependencies import RuleReads
from cubecore.units import FRACTAL_ROWS, ceil_div

LIKELY_SHARES = {"singleCoreM": 48, "singleCoreN": 48, "singleCoreK": 12}
"""For how many numbers of cores a guess tries a share: the smallest numbers, and some others."""

_TIED = {
    "stepM": ("depthA1",),
    "stepN": ("depthB1",),
    "stepKa": ("depthA1", "stepKb"),
    "stepKb": ("depthB1", "stepKa"),
}
"""Fields of which a step is best a divisor."""


def sufficient(space: Neighbourhood, name: str, values: Ints, about: Iterable[RuleReads]) -> Ints:
    """Return values such that one of them keeps the rules in `about` if any of `values` does.

    `values` keep the rules that read only this field. Where the others grow the smallest is the
    best; where some look at how many cores a share is enough for, the smallest for each number.
    Base blocks grow by whole fractals only.
    """
    others = [r for r in about if name in r.reads and len(r.reads) > 1]
    if not len(values) or name not in GROWING or np.any(values[values > 1] % _unit(name)):
        return values
    if all(r.id in space.growing for r in others):
        return values[:1]
    counted = name in SHARED_AXES and space.case.effective
    if counted and all(r.id in space.growing or r.rule.counts for r in others):
        return _each_number(space, name, values)
    return values


def likely(space: Neighbourhood, name: str, values: Ints) -> Ints:
    """Return the values of a field that are tried first where any legal tiling will do.

    The smallest of each field, and divisors of what a step goes with; of a core's share the
    smallest for some numbers of cores.
    """
    if name not in SHARED_AXES or not len(values):
        held = [x for x in (_held(space, other) for other in _TIED.get(name, ())) if x is not None]
        # A step divides a depth, and steps of A and of B divide one another: where the other field
        # has one value only, its divisors are likely.
        tried = np.arange(len(values)) == 0
        for other in held:
            tried |= other % np.maximum(values, 1) == 0
        first: Ints = values[tried]
        return first
    numbers = _each_number(space, name, values)[::-1]
    most = LIKELY_SHARES[name]
    if len(numbers) <= most:
        return numbers
    # The first half as they are, the rest at growing distances up to the largest number.
    others = np.geomspace(most // 2, len(numbers) - 1, most - most // 2).round().astype(int)
    some: Ints = numbers[np.concatenate([np.arange(most // 2), others])]
    return some


def _held(space: Neighbourhood, name: str) -> int | None:
    """Return the one value that a field can have; None if it can have others."""
    if name not in space.changeable:
        return int(space.base[name][0])
    values = space.domain(name).values
    return int(values[0]) if len(values) == 1 else None


def _unit(name: str) -> int:
    return FRACTAL_ROWS if name.startswith("base") else 1


def _each_number(space: Neighbourhood, name: str, values: Ints) -> Ints:
    """Return the smallest share, ascending, for each number of cores that an axis is cut for."""
    numbers = ceil_div(extent_of(name, space.case), np.maximum(values, 1))
    _, first = np.unique(-numbers, return_index=True)
    return values[first]
