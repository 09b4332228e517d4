"""Measured against predicted times as marks in a square: one mark and colour for each group."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from cubecore.aliases import Json

SIZE = 640
"""The plot's width and height."""
_MARGIN = 48
_MARKS = ("circle", "square", "diamond", "triangle")
_UNITS = ("us", "ms", "s")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


@dataclass(frozen=True, slots=True)
class CaseDot:
    """A case: what was measured and predicted, its title, and the number of its group."""

    measured_us: float
    predicted_us: float
    title: str
    group: int


def mark_of(group: int) -> dict[str, str]:
    """Return a group's mark and colour; no two of the first 16 groups have both in common."""
    count = len(_COLOURS)
    return {"mark": _MARKS[group // count % len(_MARKS)], "colour": _COLOURS[group % count]}


def scatter_plot(dots: Sequence[CaseDot]) -> Json:
    """Return the marks and the lines of the plot, in its own coordinates; both axes logarithmic."""
    times = [us for dot in dots for us in (dot.measured_us, dot.predicted_us)] or [1.0, 10.0]
    low, high = floor(log10(min(times))), max(ceil(log10(max(times))), floor(log10(min(times))) + 1)
    span = (SIZE - 2 * _MARGIN) / (high - low)

    def x(us: float) -> float:
        return round(_MARGIN + (log10(us) - low) * span, 1)

    def y(us: float) -> float:
        return round(SIZE - x(us), 1)

    first, last = 10.0**low, 10.0**high
    bands = [_band(first, last, ratio, x, y) for ratio in (1.0, 1.1, 1 / 1.1, 1.5, 1 / 1.5)]
    return {
        "ticks": [
            {"at": x(10.0**e), "down": y(10.0**e), "text": _duration(e)}
            for e in range(low, high + 1)
        ],
        "bands": bands,
        "marks": [
            {"x": x(d.measured_us), "y": y(d.predicted_us), "title": d.title, **mark_of(d.group)}
            for d in dots
        ],
        "edge": {"low": _MARGIN, "high": SIZE - _MARGIN},
    }


def _band(first: float, last: float, ratio: float, x: Any, y: Any) -> Json:
    """Return the line predicted = ratio x measured, as far as it lies in the plot."""
    begin, end = max(first, first / ratio), min(last, last / ratio)
    return {
        "line": (x(begin), y(begin * ratio), x(end), y(end * ratio)),
        "middle": ratio == 1.0,
    }


def _duration(exponent: int) -> str:
    """Return 10^exponent us in the unit that keeps it short."""
    thousands = max(0, min(exponent // 3, len(_UNITS) - 1))
    return f"{10.0 ** (exponent - 3 * thousands):,g} {_UNITS[thousands]}"
