"""Operators that were timed or run, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.reports.text.answers import timeline_lines
from cubecore.reports.text.script import finding_lines

if TYPE_CHECKING:
    from cubecore.kernels.operators.named import NamedOperator
    from cubecore.workflows.operators.operators import OperatorRun, TimedOperator


def _title(problem: NamedOperator, chip: str) -> str:
    shape = " x ".join(map(str, problem.extents))
    return f"{problem.op} of {shape} {problem.dtype} on {chip}: {problem.text}"


def operator_time_text(timed: TimedOperator) -> str:
    """Return where the cycles of an operator go."""
    from cubecore.workflows.operators.operators import FUSED

    lines = [_title(timed.problem, timed.chip.name), *([FUSED] if timed.fused else [])]
    return "\n".join([*lines, *timeline_lines(timed.timeline, timed.interval)]) + "\n"


def operator_run_text(run: OperatorRun) -> str:
    """Return how the execution of an operator ended."""
    verdict = "verified" if run.verified else "NOT verified"
    lines = [
        _title(run.problem, run.chip.name),
        f"{verdict}: the worst error is {run.worst:.2g} of what rounding may cause",
        f"{run.issued:,} instructions in {run.wall_s:.2f} s ({run.engine} engine)",
        *finding_lines(run.findings),
    ]
    return "\n".join(lines) + "\n"
