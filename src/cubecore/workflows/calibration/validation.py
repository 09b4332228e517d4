"""The answer of a validation: every case's error, and statistics of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

from cubecore.aliases import Json
from cubecore.presented import Figures, Presented
from cubecore.presented.text import duration, number, table
from cubecore.units import plural
from cubecore.workflows.calibration.measured_points import Point, Unreadable

if TYPE_CHECKING:
    from cubecore.reports.html.charts.scatter import CaseDot

APART = 0.02
"""Measured times of tilings that differ by less have no order."""
VARIANTS_APART = 0.05
"""The same of kernels of libraries."""
GROUPS: Mapping[str, str] = {
    "known": "matmuls whose tiling is published",
    "doubted": "kernels whose publication contradicts itself or never measured the whole",
    "library": "matmuls in our planner's tiling, from 15 us on",
    "small": "the same, below 15 us: their start decides",
    "partial": "kernels of which a part is left out",
    "vector": "element-wise kernels whose code is published",
    "vector library": "element-wise kernels of a library, their instructions guessed",
    "operator": "operators of a library: norms, softmax, quantisation",
    "attention": "attention written by hand",
    "attention library": "attention of libraries",
    "dma": "kernels that only load",
    "bench": "1000 Adds at stated addresses of the Unified Buffer",
    "launch": "empty kernels",
}
"""The groups that cases are counted in."""
_NUMBERS = {name: index for index, name in enumerate(GROUPS)}
PIPES = ("M", "MTE1", "MTE2", "FIX", "S")


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """A measured time and the prediction, microseconds."""

    measured_us: float
    predicted_us: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted_us / self.measured_us - 1

    def to_json(self) -> dict[str, float]:
        """Return both and the error."""
        return {
            "measured_us": self.measured_us,
            "predicted_us": self.predicted_us,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Validated:
    """A point and what the model says: a time and pipes, or in `skipped` why there is none.

    `wall` is None where the point states pipes alone. `group` is one of `GROUPS`, or the point's
    kind where it is skipped.
    """

    point: Point
    chip: str
    group: str
    wall: MeasuredPair | None = None
    pipes: Mapping[str, MeasuredPair] = field(default_factory=dict)
    tiling_known: bool = False
    assumed: tuple[str, ...] = ()
    skipped: str | None = None

    @property
    def pipe_errors(self) -> dict[str, float]:
        """The error of each pipe's busy time."""
        return {name: pair.error for name, pair in self.pipes.items()}

    def to_json(self) -> Json:
        """Return the public contract's keys."""
        wall = self.wall
        return {
            "id": self.point.id,
            "chip": self.chip,
            "kind": self.point.kind,
            "group": self.group,
            "measured_us": None if wall is None else wall.measured_us,
            "predicted_us": None if wall is None else wall.predicted_us,
            "error": None if wall is None else wall.error,
            "pipes": {name: pair.to_json() for name, pair in self.pipes.items()},
            "tiling_known": self.tiling_known,
            "assumed": list(self.assumed),
            "skipped": self.skipped,
            "source": self.point.source,
        }


@dataclass(frozen=True, slots=True)
class Errors:
    """Absolute errors of several cases, smallest first."""

    values: tuple[float, ...]

    @staticmethod
    def of(pairs: Sequence[MeasuredPair | None]) -> "Errors":
        """Return the errors of those that have a time."""
        return Errors(tuple(sorted(abs(pair.error) for pair in pairs if pair is not None)))

    @property
    def median(self) -> float | None:
        """The median; None of no errors."""
        return median(self.values) if self.values else None

    @property
    def p90(self) -> float | None:
        """The 90th percentile by nearest rank; None of no errors."""
        # Nearest rank: element number ceil(0.9 n), counted from 1.
        return self.values[-(-9 * len(self.values) // 10) - 1] if self.values else None

    def to_json(self) -> Json:
        """Return how many there are, their median, and their 90th percentile."""
        return {"count": len(self.values), "median": self.median, "p90": self.p90}


@dataclass(frozen=True, slots=True)
class Order:
    """Two tilings of one matmul on one chip, and whether the faster one is predicted to be so."""

    one: Validated
    other: Validated
    right: bool


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A publication on an architecture, or a kind of kernel, and the errors on its cases.

    `shipped` are those of the chip files, `fitted` those of the automatic fit on everything, `held`
    those of the same fits without the cases' publications; `inside` counts the cases whose
    interval, made without their publication, holds what was measured. Of a kind `arch` is empty,
    and `chip` is empty where it is of all chips.
    """

    arch: str
    source: str
    chip: str
    shipped: Errors
    fitted: Errors
    held: Errors
    inside: int

    @property
    def name(self) -> str:
        """The row's label: the cases' common part."""
        return " ".join(part for part in (self.arch, self.source, self.chip) if part)

    def to_json(self) -> Json:
        """Return the errors as JSON."""
        return {
            "arch": self.arch,
            "source": self.source,
            "chip": self.chip,
            "shipped": self.shipped.to_json(),
            "fitted_on_all": self.fitted.to_json(),
            "held_out": self.held.to_json(),
            "in_interval": self.inside,
        }


@dataclass(frozen=True)
class Validation(Presented):
    """Every case, the lines that are no points, and a summary.

    `held_out` has the errors on each publication that a fit was made without, where it was asked
    for.
    """

    cases: tuple[Validated, ...]
    unreadable: tuple[Unreadable, ...]
    held_out: tuple[HeldOut, ...] = ()

    @property
    def timed(self) -> tuple[Validated, ...]:
        """The cases that were not skipped."""
        return tuple(case for case in self.cases if case.skipped is None)

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """Pairs of each tuning series whose times differ by more than 2 %.

        A series is one matmul on one chip in tilings of its own, from one publication.
        """
        return _orders(self.timed, ("known",), lambda point: (point.cores, point.types), APART)

    @cached_property
    def variants(self) -> tuple[Order, ...]:
        """Pairs of kernels of libraries whose times differ by more than 5 %.

        A pair is one matmul of the same inputs, from one publication on one chip; what differs is
        the kernel: how it deals blocks, splits K, shares L1, or scales its result.
        """

        def alike(point: Point) -> object:
            return point.types[:2], point.tiling.get("batch", 1)

        return _orders(self.timed, ("library", "small"), alike, VARIANTS_APART)

    def errors(self, key: Callable[[Validated], str]) -> dict[str, Errors]:
        """Return the errors of the timed cases by what `key` gives."""
        parts: dict[str, list[MeasuredPair | None]] = {}
        for case in self.timed:
            parts.setdefault(key(case), []).append(case.wall)
        return {name: Errors.of(pairs) for name, pairs in sorted(parts.items())}

    @cached_property
    def by_group(self) -> dict[str, Errors]:
        """Errors by group, in the order of `GROUPS`."""
        errors = self.errors(lambda case: case.group)
        return {name: errors[name] for name in GROUPS if name in errors}

    @cached_property
    def by_chip(self) -> dict[str, Errors]:
        """Errors by chip and kind."""
        return self.errors(lambda case: f"{case.chip} {case.point.kind}")

    @cached_property
    def by_source(self) -> dict[str, Errors]:
        """Errors by publication and group."""
        return self.errors(lambda case: f"{case.point.repository} {case.group}")

    @cached_property
    def by_pipe(self) -> dict[str, Errors]:
        """Errors of the pipes' busy times, of matmuls whose tiling is published."""
        cases = [case for case in self.timed if case.group == "known"]
        return {name: Errors.of([case.pipes.get(name) for case in cases]) for name in PIPES}

    @cached_property
    def summary(self) -> Json:
        """Counts, and errors by group, pipe, chip and kind, and publication."""

        def as_json(errors: Mapping[str, Errors]) -> Json:
            return {name: some.to_json() for name, some in errors.items()}

        timed = len(self.timed)
        return {
            "points": len(self.cases),
            "timed": timed,
            "skipped": len(self.cases) - timed,
            "unreadable": len(self.unreadable),
            "groups": as_json(self.by_group),
            "pipes_of_known_tilings": as_json(self.by_pipe),
            "chips": as_json(self.by_chip),
            "sources": as_json(self.by_source),
            "order": _counted(self.orders),
            "order_of_variants": _counted(self.variants),
        }

    def to_json(self) -> Json:
        """Return the public contract's keys."""
        return {
            "cases": [case.to_json() for case in self.cases],
            "unreadable": [line.to_json() for line in self.unreadable],
            "summary": self.summary,
            **({"held_out": [one.to_json() for one in self.held_out]} if self.held_out else {}),
        }

    @property
    def text(self) -> str:
        """Every case, what was left out and why, and a summary at the end."""
        lines = []
        for group in self.by_group:
            lines.append(f"{group}: {GROUPS[group]}")
            cases = [case for case in self.timed if case.group == group]
            lines += table([_cells(case) for case in cases])
            lines.append("")
        skipped = [(c.point.id, c.skipped) for c in self.cases if c.skipped is not None]
        if skipped:
            lines += ["not timed", *table(skipped), ""]
        if self.unreadable:
            lines.append("not read")
            lines += [f"  line {line.line}: {line.reason}" for line in self.unreadable]
            lines.append("")
        return "\n".join([*lines, *_summary_lines(self)]) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each case."""
        return [
            {
                "point": case.point.id,
                "chip": case.chip,
                "group": case.group,
                "measured_us": case.wall and case.wall.measured_us,
                "predicted_us": case.wall and case.wall.predicted_us,
                "error": case.wall and case.wall.error,
                "skipped": case.skipped,
                "source": case.point.source,
            }
            for case in self.cases
        ]

    def _figures(self) -> Figures:
        figures = [("cases", str(len(self.timed)))]
        figures.append(("skipped", str(len(self.cases) - len(self.timed))))
        for name, group in self.by_group.items():
            if group.median is not None:
                figures.append((name, f"median error {group.median:.1%} of {len(group.values)}"))
        return "predictions beside measurements", figures

    def _page(self) -> str:
        return self.page()

    def page(self) -> str:
        """Return the page: measured against predicted, and every case."""
        from cubecore.reports.html.charts.scatter import SIZE, mark_of, scatter_plot
        from cubecore.reports.html.templates import rendered

        groups = [
            {
                "name": name,
                "text": GROUPS[name],
                "count": len(errors.values),
                "median": _share(errors.median),
                "p90": _share(errors.p90),
                **mark_of(_NUMBERS[name]),
            }
            for name, errors in self.by_group.items()
        ]
        return rendered(
            "validation.html",
            title="cubecore validate",
            styles=("validation.css",),
            plot=scatter_plot(list(_dots(self))),
            groups=groups,
            cases=[_page_case(case) for case in self.timed],
            skipped=[case for case in self.cases if case.skipped is not None],
            unreadable=self.unreadable,
            number=number,
            size=SIZE,
        )


def _dots(answer: Validation) -> "Iterator[CaseDot]":
    """Yield the cases that have a time, as the plot has them."""
    from cubecore.reports.html.charts.scatter import CaseDot

    for case in answer.timed:
        if (wall := case.wall) is not None:
            times = f"measured {wall.measured_us:.4g} us, predicted {wall.predicted_us:.4g} us"
            title = f"{case.point.id}: {times}, {100 * wall.error:+.1f}%"
            yield CaseDot(wall.measured_us, wall.predicted_us, title, _NUMBERS[case.group])


def _page_case(case: Validated) -> Json:
    return {
        "point": case.point,
        "chip": case.chip,
        "group": case.group,
        "wall": case.wall,
        "pipes": [(name, f"{100 * error:+.0f}%") for name, error in case.pipe_errors.items()],
        "assumed": case.assumed,
    }


def _counted(pairs: Sequence[Order]) -> Json:
    return {"pairs": len(pairs), "right": sum(order.right for order in pairs)}


def _orders(
    cases: Iterable[Validated],
    groups: Sequence[str],
    alike: Callable[[Point], object],
    apart: float,
) -> tuple[Order, ...]:
    """Return the pairs of one matmul in some groups whose times differ by more than `apart`."""
    series: dict[object, list[tuple[Validated, MeasuredPair]]] = {}
    for case in cases:
        p = case.point
        if case.group in groups and case.wall is not None and p.kind == "matmul":
            key = (p.repository, case.chip, p.m, p.n, p.k, p.trans, alike(p))
            series.setdefault(key, []).append((case, case.wall))
    pairs = []
    for together in series.values():
        for (one, first), (other, second) in combinations(together, 2):
            slower = second.measured_us / first.measured_us - 1
            if abs(slower) > apart:
                right = (second.predicted_us - first.predicted_us) * slower > 0
                pairs.append(Order(one, other, right))
    return tuple(pairs)


def _cells(case: Validated) -> tuple[str, ...]:
    wall = case.wall
    pipes = " ".join(f"{name} {_signed(error)}" for name, error in case.pipe_errors.items())
    if wall is None:
        return (case.point.id, case.chip, "", "", "", pipes)
    times = (duration(wall.measured_us), duration(wall.predicted_us))
    return (case.point.id, case.chip, *times, _signed(wall.error), pipes)


def _signed(error: float) -> str:
    return f"{100 * error:+.1f}%"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def _summary_lines(answer: Validation) -> Iterator[str]:
    counts = answer.summary
    yield (
        f"{plural(counts['points'], 'point')}: {counts['timed']} timed, {counts['skipped']} not, "
        f"{plural(counts['unreadable'], 'line')} not read"
    )
    for title, errors in error_tables(answer):
        rows = [(title, "cases", "median", "90th percentile")]
        rows += [(name, *figures_of(some)) for name, some in errors.items() if some.values]
        if len(rows) > 1:
            yield ""
            yield from table(rows)
    if answer.held_out:
        yield ""
        yield from table([("held out", "cases", *FITS), *map(held_row, answer.held_out)])
    if answer.orders:
        yield ""
        yield f"order of two tilings of one product: {order_text(answer.orders)}"
    if answer.variants:
        yield f"order of two kernels of libraries: {order_text(answer.variants)}"


def error_tables(answer: Validation) -> tuple[tuple[str, Mapping[str, Errors]], ...]:
    """Return the errors by several keys, each with its title."""
    return (
        ("absolute error", answer.by_group),
        ("pipe (known)", answer.by_pipe),
        ("chip and kind", answer.by_chip),
        ("publication and group", answer.by_source),
    )


FITS = ("chip files", "fitted on all", "held out", "in the interval")
"""Columns of the errors on publications that were held out."""


def held_row(one: HeldOut) -> tuple[str, ...]:
    """Return the medians and 90th percentiles of a row's cases under each fit."""
    fits = (one.shipped, one.fitted, one.held)
    shares = (f"{_share(errors.median)}, {_share(errors.p90)}" for errors in fits)
    count = len(one.held.values)
    return (one.name, str(count), *shares, _share(one.inside / count))


def figures_of(errors: Errors) -> tuple[str, str, str]:
    """Return the count, the median and the 90th percentile as texts."""
    return str(len(errors.values)), _share(errors.median), _share(errors.p90)


def order_text(pairs: Sequence[Order]) -> str:
    """Return how many pairs are in the right order."""
    right = sum(order.right for order in pairs)
    return f"right in {right} of {len(pairs)} pairs ({_share(right / len(pairs))})"
