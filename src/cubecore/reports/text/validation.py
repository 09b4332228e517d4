"""A validation as text and as a page of the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.reports.text.answers import duration, number, table
from cubecore.units import plural
from cubecore.workflows.calibration.validation import (
    GROUPS,
    Errors,
    HeldOut,
    Order,
    Validated,
    Validation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def validation_text(answer: Validation) -> str:
    """Return every case, what was left out and why, and a summary at the end."""
    lines = []
    for group in answer.by_group:
        lines.append(f"{group}: {GROUPS[group]}")
        cases = [case for case in answer.timed if case.group == group]
        lines += table([_row(case) for case in cases])
        lines.append("")
    skipped = [(c.point.id, c.skipped) for c in answer.cases if c.skipped is not None]
    if skipped:
        lines += ["not timed", *table(skipped), ""]
    if answer.unreadable:
        lines.append("not read")
        lines += [f"  line {line.line}: {line.reason}" for line in answer.unreadable]
        lines.append("")
    return "\n".join([*lines, *_summary(answer)]) + "\n"


def _row(case: Validated) -> tuple[str, ...]:
    wall, pipes = case.wall, " ".join(f"{name} {_signed(p)}" for name, p in _pipes(case).items())
    if wall is None:
        return (case.point.id, case.chip, "", "", "", pipes)
    times = (duration(wall.measured_us), duration(wall.predicted_us))
    return (case.point.id, case.chip, *times, _signed(wall.error), pipes)


def _pipes(case: Validated) -> dict[str, float]:
    return {name: pair.error for name, pair in case.pipes.items()}


def _signed(error: float) -> str:
    return f"{100 * error:+.1f}%"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def _summary(answer: Validation) -> Iterator[str]:
    counts = answer.summary
    yield (
        f"{plural(counts['points'], 'point')}: {counts['timed']} timed, {counts['skipped']} not, "
        f"{plural(counts['unreadable'], 'line')} not read"
    )
    for title, errors in _tables(answer):
        rows = [(title, "cases", "median", "90th percentile")]
        rows += [(name, *_figures(some)) for name, some in errors.items() if some.values]
        if len(rows) > 1:
            yield ""
            yield from table(rows)
    if answer.held_out:
        yield ""
        yield from table([("left out", "cases", *_FITS), *map(_held_row, answer.held_out)])
    if answer.orders:
        yield ""
        yield f"order of two tilings of one product: {_order(answer.orders)}"
    if answer.variants:
        yield f"order of two kernels of libraries: {_order(answer.variants)}"


def _tables(answer: Validation) -> tuple[tuple[str, Mapping[str, Errors]], ...]:
    return (
        ("absolute error", answer.by_group),
        ("pipe (known)", answer.by_pipe),
        ("chip and kind", answer.by_chip),
        ("publication and group", answer.by_source),
    )


_FITS = ("chip files", "fitted on all", "left out", "in the interval")


def _held_row(one: HeldOut) -> tuple[str, ...]:
    """Return the medians and 90th percentiles of a row's cases under each fit."""
    fits = (one.shipped, one.fitted, one.held)
    shares = (f"{_share(errors.median)}, {_share(errors.p90)}" for errors in fits)
    count = len(one.held.values)
    return (one.name, str(count), *shares, _share(one.inside / count))


def _figures(errors: Errors) -> tuple[str, str, str]:
    return str(len(errors.values)), _share(errors.median), _share(errors.p90)


def _order(pairs: Sequence[Order]) -> str:
    right = sum(order.right for order in pairs)
    return f"right in {right} of {len(pairs)} pairs ({_share(right / len(pairs))})"


_INTRODUCTION = """\
# The timing model against published measurements

Made by `cubecore validate --held-out`, which times every published point that it can as the case
that it describes (`--points` takes a file of your own, `--report` draws the scatter).
The error is predicted over measured, less 1. Pipe times are averages over the cores. What a point
leaves open is filled in and said so; a point that cannot be timed says why. What the model is, and
where its constants come from, is in [timing.md](timing.md); tests hold every case to a bound.
"""


def validation_page(answer: Validation) -> str:
    """Return the page docs/validation.md."""
    lines = [_INTRODUCTION, "## Summary"]
    for title, errors in _tables(answer):
        lines += ["", f"| {title} | cases | median | 90th percentile |", "|---|---|---|---|"]
        for name, some in errors.items():
            if some.values:
                label = f"{name}: {GROUPS[name]}" if name in GROUPS else name
                lines.append(f"| {label} | {' | '.join(_figures(some))} |")
    lines += ["", f"The order of two tilings of one product is {_order(answer.orders)};"]
    lines += [f"that of two kernels of libraries, over 5% apart, {_order(answer.variants)}."]
    if answer.held_out:
        lines += ["", *_held_lines(answer)]
    for group in answer.by_group:
        lines += ["", f"## {group}: {GROUPS[group]}", "", *_cases(answer, group)]
    lines += ["", "## Not timed", "", "| point | reason |", "|---|---|"]
    for case in answer.cases:
        if case.skipped is not None:
            lines.append(f"| `{case.point.id}` | {case.skipped} |")
    return "\n".join(lines) + "\n"


_HELD = """\
## Error left out, beside the one in sample

The constants of A2 and 950 were found by `python -m tools.calibration.refit` from documented or
round figures (the timing model's page says in which calls), on all publications ("fitted on all";
"chip files" are the same, rounded). The same fit without a publication, a repository, says how far
it carries: "left out" has the median and the 90th percentile of the absolute error on cases whose
publication the fit has not seen. Loads, micro-benchmarks and launches, which are made to identify
constants, stay in every fit; operators are in none. "Fitted on the other half": constants of vector
cores fitted on half of the operators beside all else, and judged on those of the other half. "In
the interval" is the share of cases that the interval of their prediction holds, both made without
their publication; 80 % is what intervals are made for.
"""


def _held_lines(answer: Validation) -> Iterator[str]:
    yield _HELD
    for head, of_kind in (("kind of kernel", True), ("architecture and publication", False)):
        yield f"| {head} | cases | {' | '.join(_FITS)} |"
        yield "|---|---|---|---|---|---|"
        for one in answer.held_out:
            if (one.arch == "") == of_kind:
                yield f"| {' | '.join(_held_row(one))} |"
        yield ""


def _cases(answer: Validation, group: str) -> Iterator[str]:
    yield "| point | chip | measured us | predicted us | error | pipes | assumed |"
    yield "|---|---|---|---|---|---|---|"
    for case in answer.timed:
        if case.group == group:
            wall = case.wall
            figures = ["", "", ""]
            if wall is not None:
                figures = [
                    number(wall.measured_us),
                    number(wall.predicted_us, 3),
                    f"{100 * wall.error:+.0f}%",
                ]
            pipes = ", ".join(f"{name} {100 * e:+.0f}%" for name, e in _pipes(case).items())
            cells = (f"`{case.point.id}`", case.chip, *figures, pipes, "; ".join(case.assumed))
            yield "| " + " | ".join(cells) + " |"
