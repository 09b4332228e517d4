"""Advice on a kernel, as text."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from cubecore.reports.text.answers import duration
from cubecore.workflows.advice.kernel_rules.rule import BOUND, RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cubecore.workflows.advice.kernel_rules.rule import Advice

_WIDTH = 96


def advice_lines(advice: Sequence[Advice]) -> list[str]:
    """Return each advice with its line, its reason, its saving and its remedy."""
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
