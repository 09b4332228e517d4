"""How much of a space a run goes through: all of it with the sweeps, a fixed part without."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import settings


def stride(every: int = 3) -> int:
    """Return 1 in a run with sweeps, and `every` in others.

    An ordinary run is the one whose examples are the same every time (conftest.py).
    """
    return every if settings.default.derandomize else 1


def part(count: int, every: int = 3) -> int:
    """Return `count` in a run with sweeps, and one of `every` of that number in others."""
    return -(-count // stride(every))


def examples(count: int, every: int = 8) -> settings:
    """Draw `count` examples in a run with sweeps, and one of `every` of that number in others."""
    return settings(max_examples=part(count, every))


def strided(values: Iterable[Any], every: int = 3) -> list[Any]:
    """Return parameters of a test: one of `every`, and the others marked as a sweep."""
    return crossed(values, every=every)


def crossed(*axes: Iterable[Any], every: int = 3) -> list[Any]:
    """Return the same of all combinations of the values of several parameters.

    Every value of an axis is among the first of them if `every` has no divisor in common with the
    lengths of the axes.
    """
    sweep = pytest.mark.sweep
    return [
        pytest.param(*values, marks=sweep if place % every else ())
        for place, values in enumerate(product(*axes))
    ]
