"""The page docs/validation.md: the timing model's error on every published point."""

from collections.abc import Iterator

from cubecore.presented.text import number
from cubecore.workflows.calibration.validation import (
    FITS,
    GROUPS,
    Validation,
    error_tables,
    figures_of,
    held_row,
    order_text,
)

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
    for title, errors in error_tables(answer):
        lines += ["", f"| {title} | cases | median | 90th percentile |", "|---|---|---|---|"]
        for name, some in errors.items():
            if some.values:
                label = f"{name}: {GROUPS[name]}" if name in GROUPS else name
                lines.append(f"| {label} | {' | '.join(figures_of(some))} |")
    lines += ["", f"The order of two tilings of one product is {order_text(answer.orders)};"]
    lines += [f"that of two kernels of libraries, over 5% apart, {order_text(answer.variants)}."]
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
        yield f"| {head} | cases | {' | '.join(FITS)} |"
        yield "|---|---|---|---|---|---|"
        for one in answer.held_out:
            if (one.arch == "") == of_kind:
                yield f"| {' | '.join(held_row(one))} |"
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
            pipes = ", ".join(f"{name} {100 * e:+.0f}%" for name, e in case.pipe_errors.items())
            cells = (f"`{case.point.id}`", case.chip, *figures, pipes, "; ".join(case.assumed))
            yield "| " + " | ".join(cells) + " |"
