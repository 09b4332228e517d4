"""A tuned tiling as text: legal or not, its time, the small changes that help, the best plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.reports.text.answers import (
    duration,
    problem_line,
    reasons_lines,
    table,
    timeline_lines,
)
from cubecore.reports.text.repair import findings_text
from cubecore.tiling.model.field_limits import PLANNED_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cubecore.workflows.tune import Tuned

LEAST_SAVED = 0.005
"""Share of the time below which the plan is no faster."""


def tune_text(tuned: Tuned) -> str:
    """Return the verdict, the time by pipe with its causes, the changes and the plan."""
    lines = [problem_line(tuned.request), *findings_text(tuned.findings).splitlines()]
    if tuned.timed is not None:
        line = tuned.timed.timeline
        of_what = "" if tuned.legal else "As repaired: "
        first, *rest = timeline_lines(line, tuned.timed.interval)
        lines += ["", of_what + first, *rest]
        if reasons := tuned.timed.reasons:
            lines += ["", *reasons_lines(reasons, line.cycles)]
        lines += ["", *_changes(tuned)]
    return "\n".join([*lines, "", *plan_lines(tuned)]) + "\n"


def _changes(tuned: Tuned) -> Iterator[str]:
    if not tuned.changes:
        yield "No change of up to three fields saves time"
        return
    yield "Smallest changes that help, each timed with the rest kept"
    rows = [("saves", "then", "of", "change")]
    rows += [(f"{c.gain:.1%}", duration(c.us), c.kind, c.what) for c in tuned.changes]
    yield from table(rows)


def plan_lines(tuned: Tuned) -> Iterator[str]:
    """Yield the best plan beside the tiling: its time, and the fields in which it differs."""
    plan, timed = tuned.best, tuned.timed
    if plan is None:
        yield "No plan: no tiling is legal"
        return
    us = duration(plan.predicted.us)
    if timed is None:
        yield f"Best plan: {us}"
        return
    saved = 1 - plan.predicted.cycles / timed.timeline.cycles
    if saved < LEAST_SAVED:
        yield f"The best plan takes {us}: the planner knows none faster"
        return
    yield f"Best plan: {us}, {saved:.1%} less"
    old, new = timed.tiling.to_json(), plan.tiling.to_json()
    names = [name for name in PLANNED_FIELDS if old[name] != new[name]]
    yield from table((name, old[name], "->", new[name]) for name in names)
