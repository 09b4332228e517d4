"""A sweep as text, and as one SVG file: time over the first axis, and the Cube's rate below."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

from cubecore.lazy_dataclass import dataclass
from cubecore.reports.text.answers import duration, interval_range, number, table
from cubecore.workflows.sweep.vary import Axis, Series, SweepPoint, Value

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


def sweep_text(series: Series) -> str:
    """Return a sweep as a table, a point a line."""
    names = [axis.name for axis in series.axes]
    rows: list[Sequence[object]] = [
        (*names, "us", "in 8 of 10 cases", "TFLOPS", "of peak", "limited by")
    ]
    rows += [_row(answer, names) for answer in series.answers]
    return "\n".join(table(rows, "")) + "\n"


def _row(answer: SweepPoint, names: Sequence[str]) -> Sequence[object]:
    values = [shown(answer.values[name]) for name in names]
    if answer.timed is None:
        return (*values, "-", "-", "-", "-", answer.error)
    line = answer.timed.timeline
    share = "-" if line.utilisation is None else f"{line.utilisation:.1%}"
    likely = interval_range(answer.timed.interval)
    return (*values, number(line.us), likely, number(line.tflops), share, line.limited_by)


def shown(value: Value) -> str:
    """Return a value as the table and the plot have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class _Scale:
    """The scale of an axis: the positions of its values, and its labels."""

    at: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]


def sweep_svg(series: Series) -> str:
    """Return the plot as an SVG document; points that have no time are gaps."""
    first = series.axes[0]
    columns = _columns(first)
    rates = [a.timed.timeline.tflops for a in series.answers if a.timed is not None]
    panels: list[tuple[str, Callable[[SweepPoint], float | None]]] = [("time, us", _us)]
    if any(rates):
        panels.append(("TFLOPS", _tflops))
    height = _TOP + len(panels) * (_PANEL + _GAP)
    parts = [
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="{_LEFT}" y="20">{escape(_title(series))}</text>',
    ]
    for index, (name, value) in enumerate(panels):
        top = _TOP + index * (_PANEL + _GAP)
        parts += _panel(series, columns, name, value, top)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-label="{escape(_title(series))}">\n'
        f"<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _us(answer: SweepPoint) -> float | None:
    return None if answer.timed is None else answer.timed.timeline.us


def _tflops(answer: SweepPoint) -> float | None:
    return None if answer.timed is None else answer.timed.timeline.tflops


def _title(series: Series) -> str:
    given = {k: v for k, v in series.fixed.items() if v is not None}
    fixed = ", ".join(f"{k} {shown(v) if isinstance(v, int) else v}" for k, v in given.items())
    over = " and ".join(axis.name for axis in series.axes)
    return f"over {over}" + (f"; {fixed}" if fixed else "")


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
    series: Series,
    columns: _Scale,
    name: str,
    value: Callable[[SweepPoint], float | None],
    top: float,
) -> list[str]:
    values = [x for answer in series.answers if (x := value(answer))]
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
    axis = escape(series.axes[0].name)
    middle = (_LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 36}" text-anchor="middle">{axis}</text>')
    labels: list[tuple[float, str, str]] = []
    for curve, (label, answers) in enumerate(_curves(series)):
        colour = _COLOURS[curve % len(_COLOURS)]
        dash = ' stroke-dasharray="6 4"' if curve >= len(_COLOURS) else ""
        points = [
            (columns.at(at), scale.at(x), answer)
            for at, answer in answers
            if (x := value(answer)) is not None
        ]
        if series.axes[0].is_number:
            steps = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
            parts.append(f'<polyline class="curve" stroke="{colour}"{dash} points="{steps}"/>')
        for x, y, answer in points:
            dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">'
            parts.append(f"{dot}<title>{escape(_tooltip(answer))}</title></circle>")
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


def _curves(series: Series) -> list[tuple[str, list[tuple[float, SweepPoint]]]]:
    """Return each curve's name and points: one for each value of the second axis."""
    first, *others = series.axes
    curves: dict[str, list[tuple[float, SweepPoint]]] = {}
    for answer in series.answers:
        label = "".join(f"{a.name} {shown(answer.values[a.name])}" for a in others)
        coordinate = answer.values[first.name]
        at = float(coordinate) if first.is_number else float(first.values.index(coordinate))
        curves.setdefault(label, []).append((at, answer))
    return [(label, sorted(points, key=lambda p: p[0])) for label, points in curves.items()]


def _tooltip(answer: SweepPoint) -> str:
    values = ", ".join(f"{name} {shown(value)}" for name, value in answer.values.items())
    assert answer.timed is not None, "a point without a time is not drawn"
    line = answer.timed.timeline
    rate = "" if line.tflops is None else f", {number(line.tflops)} TFLOPS"
    return f"{values}: {duration(line.us)}{rate}, limited by {line.limited_by}"
