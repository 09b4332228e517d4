"""A validation as one self-contained HTML page: measured against predicted, and the cases."""

from math import ceil, floor, log10
from typing import Any

from cubecore.aliases import Json
from cubecore.reports.html.templates import rendered
from cubecore.reports.text.answers import number
from cubecore.workflows.calibration.validation import (
    GROUPS,
    Errors,
    MeasuredPair,
    Validated,
    Validation,
)

_SIZE, _MARGIN = 640, 48
_MARKS = ("circle", "square", "diamond")
_UNITS = ("us", "ms", "s")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


def scatter_page(answer: Validation) -> str:
    """Return the page. It has no script, and its policy allows its one style sheet alone."""
    return rendered(
        "validation.html",
        title="cubecore validate",
        styles=("validation.css",),
        plot=_plot(answer),
        groups=[_group(name, errors) for name, errors in answer.by_group.items()],
        cases=[_case(case) for case in answer.timed],
        skipped=[case for case in answer.cases if case.skipped is not None],
        unreadable=answer.unreadable,
        number=number,
        size=_SIZE,
    )


def _group(name: str, errors: Errors) -> Json:
    return {
        "name": name,
        "text": GROUPS[name],
        "count": len(errors.values),
        "median": _percent(errors.median),
        "p90": _percent(errors.p90),
        **_look(name),
    }


def _look(group: str) -> dict[str, str]:
    """Return a group's mark and colour; no two groups have both in common."""
    index = list(GROUPS).index(group)
    return {"mark": _MARKS[index // len(_COLOURS)], "colour": _COLOURS[index % len(_COLOURS)]}


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def _case(case: Validated) -> Json:
    return {
        "point": case.point,
        "chip": case.chip,
        "group": case.group,
        "wall": case.wall,
        "pipes": [(name, f"{100 * pair.error:+.0f}%") for name, pair in case.pipes.items()],
        "assumed": case.assumed,
    }


def _plot(answer: Validation) -> Json:
    """Return the marks and the lines of the plot, in its own coordinates; both axes logarithmic."""
    pairs = [(case, case.wall) for case in answer.timed if case.wall is not None]
    times = [us for _, pair in pairs for us in (pair.measured_us, pair.predicted_us)] or [1.0, 10.0]
    low, high = floor(log10(min(times))), max(ceil(log10(max(times))), floor(log10(min(times))) + 1)
    span = (_SIZE - 2 * _MARGIN) / (high - low)

    def x(us: float) -> float:
        return round(_MARGIN + (log10(us) - low) * span, 1)

    def y(us: float) -> float:
        return round(_SIZE - x(us), 1)

    first, last = 10.0**low, 10.0**high
    bands = [_band(first, last, ratio, x, y) for ratio in (1.0, 1.1, 1 / 1.1, 1.5, 1 / 1.5)]
    return {
        "ticks": [
            {"at": x(10.0**e), "down": y(10.0**e), "text": _duration(e)}
            for e in range(low, high + 1)
        ],
        "bands": bands,
        "marks": [
            {"x": x(p.measured_us), "y": y(p.predicted_us), "title": _title(c, p), **_look(c.group)}
            for c, p in pairs
        ],
        "edge": {"low": _MARGIN, "high": _SIZE - _MARGIN},
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


def _title(case: Validated, pair: MeasuredPair) -> str:
    times = f"measured {pair.measured_us:.4g} us, predicted {pair.predicted_us:.4g} us"
    return f"{case.point.id}: {times}, {100 * pair.error:+.1f}%"
