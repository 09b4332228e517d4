"""The answer of `sweep`: a matmul timed over the values of one or two axes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from cubecore.advice.intervals import interval_range
from cubecore.chips.model import FACT_FIELDS, number_type
from cubecore.dtypes import type_name
from cubecore.errors import did_you_mean, refuse
from cubecore.presented import Presented
from cubecore.presented.text import Value, duration, number, shown, table
from cubecore.tiling.model.field_limits import PLANNED_FIELDS
from cubecore.tiling.model.problem import COUNTS, FLAGS, OPTIONAL_COUNTS, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cubecore.aliases import Json, JsonMapping
    from cubecore.answers.time import Timed
    from cubecore.presented import Figures
    from cubecore.timing.records import Timeline

MOST_POINTS = 1000
"""Points of one sweep."""
_RANGE = re.compile(r"([^.,]+(?:\.\d+)?)\.\.([^/x]+)(?:(/|x)(.+))?")
_COUNTS = (*COUNTS, *OPTIONAL_COUNTS, "seed")
_FLAGS = (*FLAGS, "unit_flag")
_NOT_VARIED = ("epilogue", "fix", "budget")
_KEYS = tuple(f.name for f in fields(Problem) if f.name not in _NOT_VARIED)


@dataclass(frozen=True, slots=True)
class SweptAxis:
    """A varied quantity: a key of the ``problem``, a field of the ``chip`` or the ``tiling``."""

    name: str
    of: str
    values: tuple[Value, ...]

    @property
    def is_number(self) -> bool:
        """True if the values have distances."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @classmethod
    def from_text(cls, text: str) -> SweptAxis:
        """Return the axis of ``NAME=VALUES``, as on the command line.

        VALUES are ``64,128,512``, ``512..4096/512`` (every 512), ``1..8`` (every whole number) or
        ``1024..65536x2`` (each twice the one before); names of types, formats and chips go with
        commas.

        Raises
        ------
        RequestError
            If there is no such name, or it does not take the values.
        """
        name, sign, values = (part.strip() for part in text.partition("="))
        if not sign or not name or not values:
            raise refuse("a sweep", "be given as NAME=VALUES", repr(text))
        return cls.of_values(name, list(_spelled(name, values)))

    @classmethod
    def of_values(cls, name: str, values: Sequence[object]) -> SweptAxis:
        """Return the axis over values of a name; ``-`` in a key is as good as ``_``.

        Raises
        ------
        RequestError
            If there is no such name, or it does not take the values.
        """
        key = name.replace("-", "_")
        if key in _KEYS:
            taken, of, name = [_of_key(key, value) for value in values], "problem", key
        elif name in PLANNED_FIELDS:
            taken, of = [_whole(name, value) for value in values], "tiling"
        elif name in FACT_FIELDS:
            taken, of = [_of_chip(name, value) for value in values], "chip"
        else:
            near = did_you_mean(name, [*_KEYS, *PLANNED_FIELDS, *FACT_FIELDS])
            need = "be over a key of the problem, or a field of the tiling or the chip"
            raise refuse("a sweep", need, repr(name), near)
        if not taken:
            raise refuse(name, "have values", "none")
        if len(set(taken)) < len(taken):
            raise refuse(name, "take each value once", ", ".join(map(str, taken)))
        return cls(name, of, tuple(taken))


def _spelled(name: str, text: str) -> Iterator[str | int | float]:
    """Yield the values that a text spells."""
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            yield part.strip()
            continue
        low, high = (_number(name, end) for end in match.group(1, 2))
        step = _number(name, match[4]) if match[4] else 1
        times = match[3] == "x"
        if not low <= high or step <= (1 if times else 0) or (times and low <= 0):
            need = "have a range that rises, as 512..4096/512 or 1024..65536x2"
            raise refuse(name, need, repr(part.strip()))
        yield from _steps(name, low, high, step, times=times)


def _steps(
    name: str, low: float, high: float, step: float, *, times: bool
) -> Iterator[int | float]:
    count = math.log(high / low, step) if times else (high - low) / step
    if count > MOST_POINTS:
        raise refuse(name, f"have at most {MOST_POINTS} values", f"{count:,.0f}")
    for index in range(int(count + 1e-9) + 1):
        yield low * step**index if times else low + step * index


def _number(name: str, text: str) -> int | float:
    try:
        value = float(text)
    except ValueError:
        raise refuse(name, "have a range of numbers", repr(text)) from None
    if not math.isfinite(value):
        raise refuse(name, "have a range of numbers", repr(text))
    return int(value) if value.is_integer() else value


def _whole(name: str, value: Any) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise refuse(name, "take whole numbers", repr(value)) from None
    if isinstance(value, bool) or not number.is_integer():
        raise refuse(name, "take whole numbers", repr(value))
    return int(number)


def _of_key(key: str, value: object) -> Value:
    if key in _COUNTS:
        return _whole(key, value)
    if key in _FLAGS:
        words = {"true": True, "false": False, "True": True, "False": False}
        if str(value) not in words:
            raise refuse(key, "be true or false", repr(value))
        return words[str(value)]
    return str(type_name(value))


def _of_chip(name: str, value: Any) -> Value:
    kind = number_type(name)
    if kind is Mapping:
        raise refuse(name, "be a field with one number to be varied", "a table by name")
    if kind is int:
        return _whole(name, value)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise refuse(name, "take numbers", repr(value)) from None


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One point of a sweep: its values by axis, and its timing or the `error` in its place."""

    values: Mapping[str, Value]
    timed: Timed | None
    error: str | None = None

    def to_json(self) -> Json:
        """Return the point as JSON; the figures are null where there is an error."""
        line = None if self.timed is None else self.timed.timeline
        return {
            "values": dict(self.values),
            "us": None if line is None else line.us,
            "interval": None if self.timed is None else self.timed.interval.to_json(),
            "cycles": None if line is None else line.cycles,
            "tflops": None if line is None else line.tflops,
            "utilisation": None if line is None else line.utilisation,
            "limited_by": None if line is None else line.limited_by,
            "tiling": None if self.timed is None else self.timed.tiling.to_json(),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Series(Presented):
    """A sweep's axes and points; the first axis is the slowest to change.

    `fixed` has the problem's keys that all points share.
    """

    axes: tuple[SweptAxis, ...]
    fixed: JsonMapping
    answers: tuple[SweepPoint, ...]

    @property
    def complete(self) -> bool:
        """True if every point has a time."""
        return all(answer.timed is not None for answer in self.answers)

    def to_json(self) -> Json:
        """Return axes and points as JSON."""
        return {
            "axes": [
                {"name": axis.name, "of": axis.of, "values": list(axis.values)}
                for axis in self.axes
            ],
            "problem": dict(self.fixed),
            "points": [answer.to_json() for answer in self.answers],
        }

    @property
    def text(self) -> str:
        """A table, a point a line."""
        names = [axis.name for axis in self.axes]
        rows: list[Sequence[object]] = [
            (*names, "us", "in 8 of 10 cases", "TFLOPS", "of peak", "limited by")
        ]
        rows += [_cells(answer, names) for answer in self.answers]
        return "\n".join(table(rows, "")) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each point."""
        left_out = {"values", "tiling"}
        return [
            {**point["values"], **{k: v for k, v in point.items() if k not in left_out}}
            for point in self.to_json()["points"]
        ]

    def _figures(self) -> Figures:
        axes = ", ".join(f"{axis.name} ({len(axis.values)} values)" for axis in self.axes)
        timed = [p.timed.timeline.us for p in self.answers if p.timed is not None]
        span = f"{duration(min(timed))} to {duration(max(timed))}" if timed else "none"
        failed = str(len(self.answers) - len(timed))
        figures = [("points", str(len(self.answers))), ("times", span)]
        return f"sweep of {axes}", [*figures, ("without a time", failed)]

    def _picture(self) -> str:
        return self.plot() if any(p.timed for p in self.answers) else ""

    def plot(self) -> str:
        """Return the plot of time and rate over the first axis as an SVG document.

        Points that have no time are gaps.
        """
        from cubecore.reports.html.charts.curves import Dot, curves_svg

        first, *others = self.axes
        curves: dict[str, list[Dot]] = {}
        for answer in self.answers:
            label = "".join(f"{a.name} {shown(answer.values[a.name])}" for a in others)
            coordinate = answer.values[first.name]
            at = float(coordinate) if first.is_number else float(first.values.index(coordinate))
            dots = curves.setdefault(label, [])
            if answer.timed is not None:
                line = answer.timed.timeline
                dots.append(Dot(at, line.us, line.tflops, _tooltip(answer.values, line)))
        given = {k: v for k, v in self.fixed.items() if v is not None}
        fixed = ", ".join(f"{k} {shown(v) if isinstance(v, int) else v}" for k, v in given.items())
        title = f"over {' and '.join(axis.name for axis in self.axes)}"
        return curves_svg(f"{title}; {fixed}" if fixed else title, first, curves)


def _cells(answer: SweepPoint, names: Sequence[str]) -> Sequence[object]:
    values = [shown(answer.values[name]) for name in names]
    if answer.timed is None:
        return (*values, "-", "-", "-", "-", answer.error)
    line = answer.timed.timeline
    share = "-" if line.utilisation is None else f"{line.utilisation:.1%}"
    likely = interval_range(answer.timed.interval)
    return (*values, number(line.us), likely, number(line.tflops), share, line.limited_by)


def _tooltip(values: Mapping[str, Value], line: Timeline) -> str:
    rate = "" if line.tflops is None else f", {number(line.tflops)} TFLOPS"
    point = ", ".join(f"{name} {shown(value)}" for name, value in values.items())
    return f"{point}: {duration(line.us)}{rate}, limited by {line.limited_by}"
