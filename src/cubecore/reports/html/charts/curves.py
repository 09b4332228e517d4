"""A sweep as one SVG file: time over the first axis, and the Cube's rate below."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Protocol
from xml.sax.saxutils import escape

from cubecore.presented.text import Value, shown

_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _GAP = 760, 250, 76, 150, 56, 66
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5fd0", "#8c564b")
_WIDE = 8
"""A range of positive values this many times its start is drawn logarithmically."""
_LONG = 9
_STYLE = """\
svg { --ink: #1b1f24; --soft: #5a6470; --line: #d8dde3; --page: #ffffff; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e4e8ed; --soft: #9aa5b1; --line: #333b45; --page: #14171b; }
}
text { font: 12px system-ui, sans-serif; fill: var(--soft); }
text.title { font-size: 13px; fill: var(--ink); }
.page { fill: var(--page); } .grid { stroke: var(--line); fill: none; }
.curve { fill: none; stroke-width: 2; } circle { stroke: var(--page); stroke-width: 1.5; }
"""


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a curve: its position on the first axis, its time and rate, and its tooltip."""

    at: float
    us: float
    tflops: float | None
    tooltip: str


class Axis(Protocol):
    """The first axis of a plot."""

    @property
    def name(self) -> str:
        """The quantity that is varied."""

    @property
    def values(self) -> Sequence[Value]:
        """Its values."""

    @property
    def is_number(self) -> bool:
        """True if the values have distances."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """The scale of an axis: the positions of its values, and its labels."""

    at: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]


def curves_svg(title: str, axis: Axis, curves: Mapping[str, Sequence[Dot]]) -> str:
    """Return the plot of curves by their names as an SVG document."""
    columns = _columns(axis)
    panels: list[tuple[str, Callable[[Dot], float | None]]] = [("time, us", lambda dot: dot.us)]
    if any(dot.tflops for dots in curves.values() for dot in dots):
        panels.append(("TFLOPS", lambda dot: dot.tflops))
    height = _TOP + len(panels) * (_PANEL + _GAP)
    parts = [
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="{_LEFT}" y="20">{escape(title)}</text>',
    ]
    for index, (name, value) in enumerate(panels):
        top = _TOP + index * (_PANEL + _GAP)
        parts += _panel(axis, curves, columns, name, value, top)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _columns(axis: Axis) -> _Scale:
    """Return where the first axis's values lie; words lie at equal distances."""
    span = _WIDTH - _LEFT - _RIGHT
    if not axis.is_number:
        step = span / max(len(axis.values), 1)
        ticks = [(_LEFT + step * (i + 0.5), shown(v)) for i, v in enumerate(axis.values)]
        return _Scale(lambda index: _LEFT + step * (index + 0.5), tuple(ticks))
    values = [float(v) for v in axis.values]
    low, high = min(values), max(values)
    if low == high:
        return _Scale(lambda _: _LEFT + span / 2, ((_LEFT + span / 2, shown(axis.values[0])),))
    if low > 0 and high / low >= _WIDE:
        wide = log10(high / low)

        def at(value: float) -> float:
            return _LEFT + span * log10(value / low) / wide
    else:

        def at(value: float) -> float:
            return _LEFT + span * (value - low) / (high - low)

    rising = sorted(axis.values, key=float)
    return _Scale(at, tuple(_apart([(at(float(v)), _tick(v)) for v in rising])))


def _tick(value: Value) -> str:
    """Return a value of the first axis, in powers of ten where it is long."""
    text = shown(value)
    return text if len(text) <= _LONG else f"{float(value):.4g}"


def _apart(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the ticks whose texts do not meet."""
    kept: list[tuple[float, str]] = []
    free = float("-inf")
    for at, text in ticks:
        half = 4 + 3.6 * len(text)
        if at - half >= free:
            kept.append((at, text))
            free = at + half
    return kept


def _heights(values: Sequence[float], top: float) -> _Scale:
    """Return the scale of a panel: from 0, or logarithmic where values span much."""
    low, high, bottom = min(values), max(values), top + _PANEL
    if low > 0 and high / low >= _WIDE:
        # Round ends 1, 2 or 5 times a power of ten around the values, and the same kind of marks
        # between.
        exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
        round_ones = [factor * 10.0**e for e in exponents for factor in (1, 2, 5)]
        first = max(x for x in round_ones if x <= low)
        last = min(x for x in round_ones if x >= high)

        def at(value: float) -> float:
            return bottom - _PANEL * log10(value / first) / log10(last / first)

        marks = [x for x in round_ones if first <= x <= last]
    else:
        step = _round_step(high / 4)
        most = ceil(high / step) * step

        def at(value: float) -> float:
            return bottom - _PANEL * value / most

        marks = [step * i for i in range(round(most / step) + 1)]
    return _Scale(at, tuple((at(mark), f"{mark:,g}") for mark in marks))


def _round_step(rough: float) -> float:
    power: float = 10.0 ** floor(log10(rough))
    return next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= rough)


def _panel(
    axis: Axis,
    curves: Mapping[str, Sequence[Dot]],
    columns: _Scale,
    name: str,
    value: Callable[[Dot], float | None],
    top: float,
) -> list[str]:
    values = [x for dots in curves.values() for dot in dots if (x := value(dot))]
    scale, bottom, right = _heights(values, top), top + _PANEL, _WIDTH - _RIGHT
    parts = [f'<text x="{_LEFT}" y="{top - 6}">{name}</text>']
    for y, text in scale.ticks:
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    for x, text in columns.ticks:
        parts.append(f'<path class="grid" d="M{x:.1f} {bottom}v5"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{escape(text)}</text>'
        )
    middle, below = (_LEFT + right) / 2, f'y="{bottom + 36}" text-anchor="middle"'
    parts.append(f'<text x="{middle}" {below}>{escape(axis.name)}</text>')
    # Colours repeat after eight curves; those behind are dashed.
    labels: list[tuple[float, str, str]] = []
    for curve, (label, dots) in enumerate(curves.items()):
        colour = _COLOURS[curve % len(_COLOURS)]
        dash = ' stroke-dasharray="6 4"' if curve >= len(_COLOURS) else ""
        points = [
            (columns.at(dot.at), scale.at(x), dot)
            for dot in sorted(dots, key=lambda dot: dot.at)
            if (x := value(dot)) is not None
        ]
        if axis.is_number:
            steps = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
            parts.append(f'<polyline class="curve" stroke="{colour}"{dash} points="{steps}"/>')
        for x, y, dot in points:
            circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">'
            parts.append(f"{circle}<title>{escape(dot.tooltip)}</title></circle>")
        if points and label:
            labels.append((points[-1][1], label, colour))
    return [*parts, *_labels(labels, right)]


def _labels(labels: Sequence[tuple[float, str, str]], right: float) -> list[str]:
    """Return the curves' names at their ends, moved down where they would meet."""
    parts, free = [], float("-inf")
    for y, label, colour in sorted(labels):
        baseline = max(y, free)
        free = baseline + 15
        style = f'style="fill:{colour}"'
        parts.append(
            f'<text x="{right + 10}" y="{baseline + 4:.1f}" {style}>{escape(label)}</text>'
        )
    return parts
