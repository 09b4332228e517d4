"""The look of results: as text, in one line, as a card of a notebook, as a page, as rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cubecore.errors import unable
from cubecore.reports.html.card import bars, card_page, grid
from cubecore.reports.html.charts.curves import sweep_svg, sweep_text
from cubecore.reports.tables import entry_of, rows
from cubecore.reports.text.answers import (
    compare_text,
    duration,
    number,
    plan_text,
    problem_line,
    run_text,
    time_text,
)
from cubecore.reports.text.model import model_lines, model_text
from cubecore.reports.text.repair import findings_text
from cubecore.reports.text.script import launch_text, timed_launch_text
from cubecore.reports.text.tune import tune_text
from cubecore.reports.text.validation import validation_text
from cubecore.units import plural

if TYPE_CHECKING:
    import pandas as pd

_TEXTS: dict[str, Callable[[Any], str]] = {
    "Comparison": compare_text,
    "Findings": findings_text,
    "KernelRun": launch_text,
    "ModelStep": model_text,
    "Run": run_text,
    "Series": sweep_text,
    "Timed": time_text,
    "TimedLaunch": timed_launch_text,
    "TilingPlan": plan_text,
    "Tuned": tune_text,
    "Validation": validation_text,
}
"""The function that a command prints a result with, by the result's class or its base."""
_LONGEST_LINE = 390
_SHOWN_PRODUCTS = 8
_RECORDED = 2000
"""Instructions of each group of cores that a page draws."""


def text(result: object) -> str:
    """Return what the command prints, without the last line's end."""
    written: str = entry_of(result, _TEXTS)(result)
    return written.rstrip("\n")


def line(result: object) -> str:
    """Return the class and the result in one line of less than 400 characters."""
    title, figures = entry_of(result, _FIGURES)(result)
    pairs = ", ".join(f"{name} {value}" for name, value in figures)
    whole = f"<{type(result).__name__} {title}: {pairs}>"
    return whole if len(whole) <= _LONGEST_LINE else f"{whole[: _LONGEST_LINE - 4]}...>"


def card(result: object) -> str:
    """Return a table of the main figures beside a picture, as a fragment of HTML."""
    title, figures = entry_of(result, _FIGURES)(result)
    findings = getattr(result, "findings", ())
    figures = [*figures, *(("", finding.message) for finding in findings)]
    draw = _PICTURES.get(type(result).__name__)
    return card_page(title, figures, draw(result) if draw else "")


def report(result: object, path: str) -> None:
    """Write the page of a result.

    Raises
    ------
    RequestError
        If the file cannot be written, or the result has no page.
    """
    from cubecore.workflows.data.files import require_writable, write_whole

    require_writable(path, "report")
    write_whole(path, _page(result), "report")


def _page(result: Any) -> str:
    from cubecore.reports.html.page import html_report
    from cubecore.reports.html.pair import pair_report
    from cubecore.workflows.time import time

    def recorded(timed: Any) -> Any:
        request, step = timed.request, getattr(timed, "step", None)
        asked = {"tiling": timed.tiling, "settings": request.settings, "step": step}
        return time(request.problem, **asked, record=_RECORDED)

    kind = type(result).__name__
    if kind == "ModelStep":
        from cubecore.reports.html.model import model_page

        return model_page(result)
    if kind == "TimedLaunch":
        from cubecore.reports.html.page import launch_report
        from cubecore.workflows.scripts.script import time_kernel

        again = time_kernel(result.run, record=_RECORDED)
        return launch_report(replace(again, changes=result.changes))
    if kind == "Validation":
        from cubecore.reports.html.charts.scatter import scatter_page

        return scatter_page(result)
    if kind == "Tuned":
        from cubecore.reports.html.tuned import tuned_page

        drawn = None if result.timed is None else recorded(result.timed)
        return tuned_page(replace(result, timed=drawn))
    if kind in {"Timed", "TilingPlan"}:
        timed = recorded(result)
        return html_report(replace(timed, changes=getattr(result, "changes", None)))
    if kind == "Comparison" and result.timed:
        first, second = map(recorded, result.timed)
        return pair_report(first, second, problem_line(result.request))
    raise unable(
        "report",
        f"a {kind} has no page; plans, times, comparisons, models, tuned tilings and "
        "validations do",
    )


def frame(result: object) -> "pd.DataFrame":
    """Return the rows of a result as a data frame.

    Raises
    ------
    RequestError
        If pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise unable("to_frame", "to_frame needs pandas; pip install pandas") from None
    return pd.DataFrame(rows(result))


Figures = tuple[str, Sequence[tuple[str, str]]]
"""A title, and pairs of a name and a value."""


def _blocks(tiling: Any) -> list[tuple[str, str]]:
    t = tiling
    return [
        ("cores", str(t.usedCoreNum)),
        ("singleCore", f"{t.singleCoreM} x {t.singleCoreN} x {t.singleCoreK}"),
        ("base", f"{t.baseM} x {t.baseN} x {t.baseK}"),
        ("depth", f"{t.depthA1}, {t.depthB1}"),
    ]


def _plan(plan: Any) -> Figures:
    best = plan.predicted
    time = duration(best.us) if best.us is not None else f"{best.cycles:,} cycles"
    figures = [("predicted", time), ("limited by", best.limited_by), *_blocks(plan.tiling)]
    return problem_line(plan.request), figures


def _time(timed: Any) -> Figures:
    line = timed.timeline
    figures = [("time", f"{duration(line.us)} ({line.cycles:,} cycles)")]
    figures += [("limited by", line.limited_by)]
    if line.tflops is not None:
        figures += [("rate", f"{number(line.tflops)} TFLOPS")]
    return problem_line(timed.request), [*figures, *_blocks(timed.tiling)]


def _timed_launch(launch: Any) -> Figures:
    line = launch.timeline
    figures = [("time", f"{duration(line.us)} ({line.cycles:,} cycles)")]
    figures += [("limited by", line.limited_by), ("findings", str(len(launch.run.findings)))]
    return launch.title, figures


def _run(run: Any) -> Figures:
    verified = "yes" if run.verified else "no"
    error = f"{run.verification.max_abs_error:.3g}"
    figures = [("verified", verified), ("largest error", error), ("engine", run.engine)]
    figures += [("issued", f"{run.issued:,}"), ("findings", str(len(run.findings)))]
    return problem_line(run.request), figures


def _launch(run: Any) -> Figures:
    ids = ", ".join(dict.fromkeys(finding.id for finding in run.findings))
    figures = [("findings", ids or "none"), ("issued", f"{run.issued:,}"), ("engine", run.engine)]
    return f"{run.kernel}[{run.blocks}] on {run.chip.name}", figures


def _findings(findings: Any) -> Figures:
    rules = ", ".join(finding.rule for finding in findings.findings)
    if findings.legal:
        return "legal", [("advice", str(len(findings.advice)))]
    return f"illegal: {plural(len(findings.findings), 'rule')} broken", [("rules", rules)]


def _comparison(comparison: Any) -> Figures:
    ratio = comparison.ratio
    times = [
        duration(side.timed.timeline.us) if side.timed else "illegal"
        for side in (comparison.first, comparison.second)
    ]
    figures = [("first", times[0]), ("second", times[1])]
    figures += [("second over first", "none" if ratio is None else f"{ratio:.3f}")]
    return problem_line(comparison.request), figures


def _series(series: Any) -> Figures:
    axes = ", ".join(f"{axis.name} ({len(axis.values)} values)" for axis in series.axes)
    timed = [p.timed.timeline.us for p in series.answers if p.timed is not None]
    span = f"{duration(min(timed))} to {duration(max(timed))}" if timed else "none"
    failed = str(len(series.answers) - len(timed))
    return f"sweep of {axes}", [
        ("points", str(len(series.answers))),
        ("times", span),
        ("without a time", failed),
    ]


def _model(answer: Any) -> Figures:
    title, step = model_lines(answer)
    steps = [total for total in answer.totals if total.of == "step"]
    figures = [("step", step)]
    for total in steps:
        whole = duration(answer.whole_us(total.variant))
        figures.append((total.variant, f"{whole}, of which products {duration(total.us)}"))
    return title, [*figures, ("not counted", ", ".join(answer.not_counted))]


def _tuned(tuned: Any) -> Figures:
    figures = [("legal", "yes" if tuned.legal else "no")]
    if tuned.timed is not None:
        figures.append(("time", duration(tuned.timed.timeline.us)))
    figures += [(f"{c.kind}, {c.gain:.0%} less", c.what) for c in tuned.changes]
    if tuned.best is not None:
        figures.append(("best plan", duration(tuned.best.predicted.us)))
    return problem_line(tuned.request), figures


def _validation(answer: Any) -> Figures:
    errors = answer.by_group
    figures = [
        ("cases", str(len(answer.timed))),
        ("skipped", str(len(answer.cases) - len(answer.timed))),
    ]
    for name, group in errors.items():
        if group.median is not None:
            figures.append((name, f"median error {group.median:.1%} of {len(group.values)}"))
    return "predictions beside measurements", figures


_FIGURES: dict[str, Callable[[Any], Figures]] = {
    "Comparison": _comparison,
    "Findings": _findings,
    "KernelRun": _launch,
    "ModelStep": _model,
    "Run": _run,
    "Series": _series,
    "Timed": _time,
    "TimedLaunch": _timed_launch,
    "TilingPlan": _plan,
    "Tuned": _tuned,
    "Validation": _validation,
}


def _pipes(timed: Any) -> str:
    line = timed.timeline
    return bars({pipe: busy / line.cycles for pipe, busy in line.pipes.items() if busy})


def _pair(comparison: Any) -> str:
    sides = zip(("first", "second"), comparison.timed, strict=False)
    times = {name: timed.timeline.cycles for name, timed in sides}
    return bars({name: cycles / max(times.values()) for name, cycles in times.items()})


def _curves(series: Any) -> str:
    return sweep_svg(series) if any(p.timed for p in series.answers) else ""


def _shares(answer: Any) -> str:
    """Return the longest products of a fused step as bars."""
    times = {
        f"{row.product.name} of {row.product.layers}": row.us * row.product.launches
        for row in answer.rows
        if row.us is not None and "fused" in row.product.variants
    }
    whole = sum(times.values())
    longest = sorted(times, key=lambda name: -times[name])[:_SHOWN_PRODUCTS]
    return bars({name: times[name] / whole for name in longest}, label_width=180)


_PICTURES: dict[str, Callable[[Any], str]] = {
    "Comparison": _pair,
    "ModelStep": _shares,
    "Series": _curves,
    "Timed": _pipes,
    "TimedLaunch": _pipes,
    "TilingPlan": lambda plan: grid(plan.blocks),
    "Tuned": lambda tuned: _pipes(tuned.timed) if tuned.timed else "",
}
