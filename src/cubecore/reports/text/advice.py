"""Advice on a kernel, as text."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from cubecore.reports.text.answers import duration, table
from cubecore.workflows.advice.kernel_rules.rule import BOUND, RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cubecore.workflows.advice.kernel_rules.rule import Advice
    from cubecore.workflows.scripts.trials import Trial

_WIDTH = 96


def advice_lines(advice: Sequence[Advice] | None) -> list[str]:
    """Return each advice with its line, its reason, its saving and its remedy.

    None is a launch that was too long to be looked at.
    """
    if advice is None:
        return ["Advice", "  none: the kernel branches, and issues too much to be recorded for it"]
    if not advice:
        return ["Advice", "  nothing that a rule counts costs 2% or more"]
    lines = ["Advice, the most helpful first"]
    for each in advice:
        most = "at most " if each.certainty == BOUND else ""
        saved = f"saves {most}{duration(each.saves_us)} ({each.saves_share:.0%})"
        tried = f", timed with {each.tried}" if each.tried else ""
        lines.append(f"  {each.location.file}:{each.location.line}: {each.rule} {saved}{tried}")
        for text in (each.text, RULES[each.rule].remedy):
            lines += [f"    {line}" for line in wrap(text, _WIDTH)]
    return lines


def trial_lines(trials: Sequence[Trial]) -> list[str]:
    """Return what was tried, with its time, and what was dropped, with the reason."""
    timed = [
        (each.change, duration(each.us), f"saves {duration(each.saves_us)}")
        if each.saves_us > 0
        else (each.change, duration(each.us), "saves nothing")
        for each in trials
        if each.us is not None
    ]
    lines = ["Tried, each launched again and right", *(table(timed) or ["  nothing in that time"])]
    dropped = [(f"{each.change}:", each.dropped) for each in trials if each.us is None]
    return [*lines, *(["", "Dropped", *table(dropped)] if dropped else [])]
