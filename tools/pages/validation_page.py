"""The page docs/validation.md: the timing model's error on every published point."""

from collections.abc import Iterator

from tools.evidence import thread_times

from cubecore.presented.text import number
from cubecore.workflows.calibration.held_out import KINDS
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


_EXPECT = """\
## Expect this of a new kernel

Errors on publications held out: the constants are fitted without the measurements of one
publication (a repository), and then each kernel of that publication is timed with them. For half of
the kernels of a kind the error is below the median, for nine of ten below the 90th percentile.
`time` says so for one kernel: its interval is made to hold 80 % of the cases, and was checked on
publications held out, too.

Kernels of other authors than those measured here may be farther off. That is likeliest where all
kernels of a kind come from one publication (marked "one"): its interval only says how much the
kernels of that publication differ from each other.
Of an operator that is not measured at all, the interval is wider and says so: "no measured kernel
of this kind". [What is not modelled](limits.md) makes a kernel slower than shown.
"""
_KINDS = {
    "products, tiling published": "matmul, its tiling known",
    "products of libraries": "matmul of a library",
    "element-wise kernels, code published": "element-wise, its code known",
    "element-wise kernels of libraries": "element-wise of a library",
    "operators, in no fit": "norms, softmax, quantisation of a library",
    "attention by hand, in no fit": "attention by hand",
    "attention of libraries, in no fit": "attention of a library",
}
"""The kinds of the record in the words of who asks, and their order."""


def _expected_lines(answer: Validation) -> Iterator[str]:
    """Yield the errors on publications held out, by kind and chip."""
    authors: dict[str, set[str]] = {}
    for case in answer.timed:
        if (kind := KINDS.get(case.group)) is not None:
            authors.setdefault(kind, set()).add(case.point.repository)
    yield _EXPECT
    yield "| kernel | chip | publications | cases | median | 90th percentile | in the interval |"
    yield "|---|---|---|---|---|---|---|"
    rows = {(one.source, one.chip): one for one in answer.held_out if not one.arch}
    for kind, words in _KINDS.items():
        count = len(authors.get(kind, ()))
        for (source, chip), one in rows.items():
            if source == kind:
                share = f"{one.inside / len(one.held.values):.0%}"
                marked = f"{count} (one)" if count == 1 else str(count)
                cells = (words, chip or "all", marked, *figures_of(one.held), share)
                yield f"| {' | '.join(cells)} |"


def validation_page(answer: Validation) -> str:
    """Return the page docs/validation.md: publications held out first, what is in sample last."""
    lines = [_INTRODUCTION]
    if answer.held_out:
        lines += [*_expected_lines(answer), "", *_held_lines(answer)]
    for group in answer.by_group:
        lines += ["", f"## {group}: {GROUPS[group]}", "", *_cases(answer, group)]
    lines += ["", *_thread_lines()]
    lines += ["", "## Not timed", "", "| point | reason |", "|---|---|"]
    for case in answer.cases:
        if case.skipped is not None:
            lines.append(f"| `{case.point.id}` | {case.skipped} |")
    lines += ["", "## In sample", "", _IN_SAMPLE]
    for title, errors in error_tables(answer):
        lines += ["", f"| {title} | cases | median | 90th percentile |", "|---|---|---|---|"]
        for name, some in errors.items():
            if some.values:
                label = f"{name}: {GROUPS[name]}" if name in GROUPS else name
                lines.append(f"| {label} | {' | '.join(figures_of(some))} |")
    lines += ["", f"The order of two tilings of one product is {order_text(answer.orders)};"]
    lines += [f"that of two kernels of libraries, over 5% apart, {order_text(answer.variants)}."]
    return "\n".join(lines) + "\n"


_THREADS = """\
## Kernels of threads (SIMT)

Rough times of public samples that state the times of their variants, run as they are
(`python -m tools.evidence.thread_times`); "mixed" ones have vector code and copies around calls of
threads, whose times are those of the day of the survey. The cycles of threads were chosen on these
same points, so that this error is in sample. It is the order of a sample's variants that the time
is made for: {right} of {count} pairs ({share:.0%}) are in the published order. Off by {error:.0%}
in the median, {most:.0%} at the 90th percentile.
"""


def _thread_lines() -> Iterator[str]:
    """Yield the section on kernels of threads: its figures, and a row for each variant."""
    rows = thread_times.rows()
    right = [each for *_, each in thread_times.pairs(rows)]
    errors = sorted(abs(thread_times.predicted_us(row) / row["us"] - 1) for row in rows)
    figures = {"right": sum(right), "count": len(right), "share": sum(right) / len(right)}
    most = errors[int(0.9 * (len(errors) - 1))]
    yield _THREADS.format(**figures, error=thread_times.median_error(rows), most=most)
    yield "| sample | variant | kernel | measured us | predicted us | error |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        us = thread_times.predicted_us(row)
        error = f"{100 * (us / row['us'] - 1):+.0f}%"
        cells = (row["variant"], f"`{row['kernel']}`", number(row["us"]), number(us, 3), error)
        yield f"| {row['sample']} | {' | '.join(cells)} |"


_IN_SAMPLE = "The errors of the chips' constants, most of which were found on these same points."

_HELD = """\
## Error held out, beside the one in sample

The constants of A2 and 950 were found by `python -m tools.calibration.refit` from documented or
round figures (the timing model's page says in which calls), on all publications ("fitted on all";
"chip files" are the same, rounded). The fit is then repeated without one publication (a
repository), and "held out" is the median and the 90th percentile of the absolute error on the cases
of that publication. Loads, micro-benchmarks and launches, which are made to
identify constants, stay in every fit; operators are in none. "Fitted on the other half": constants
of vector cores fitted on half of the operators beside all else, and judged on those of the other
half. "In the interval" is the share of cases that the interval of their prediction holds, both made
without their publication; 80 % is what intervals are made for.
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
