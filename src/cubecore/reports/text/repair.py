"""The answer of a check as text: what is broken, what would mend it, or why nothing can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.manual import address_lines
from cubecore.reports.text.answers import duration, table
from cubecore.units import plural
from cubecore.workflows.check import RepairedFindings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cubecore.tiling.repair.infeasibility import Conflict
    from cubecore.tiling.repair.repair import Repair
    from cubecore.tiling.rules.checker import Findings


def findings_text(findings: Findings) -> str:
    """Return the answer of a check."""
    count = len(findings.findings)
    lines = ["legal" if findings.legal else f"illegal: {plural(count, 'rule')} broken"]
    for finding in findings.findings:
        lines += [f"  {finding.message}", f"    {finding.source}"]
    lines += address_lines("rule", (finding.rule for finding in findings.findings))
    if findings.letter:
        names = ", ".join(findings.letter)
        lines.append(f"The letter of the page refuses {names}: --reading documented says why")
    if isinstance(findings, RepairedFindings) and not findings.legal:
        lines += ["", *_outcome(findings)]
    if findings.advice:
        lines += ["", "Advice", *(f"  {advice.to_json()['message']}" for advice in findings.advice)]
    return "\n".join(lines) + "\n"


def _outcome(findings: RepairedFindings) -> Iterator[str]:
    if findings.repair is not None:
        yield from repair_lines(findings.repair)
    elif findings.conflict is not None:
        yield from conflict_lines(findings.conflict)
    else:
        yield "No legal tiling was found, and none is excluded: the search ended first"


def repair_lines(repair: Repair) -> Iterator[str]:
    """Yield what a repair changes, why, and what is proven of it."""
    us = "" if repair.predicted is None else f", predicted {duration(repair.predicted.us)}"
    yield f"Repaired by {plural(len(repair.changes), 'change')}{us}"
    yield from table((c.field, c.before, "->", c.after, c.findings[0].rule) for c in repair.changes)
    if not repair.fewest:
        yield "  Fewer changes are not excluded: the search ended first"
    elif not repair.fastest:
        yield "  No fewer changes do; other changes of as few fields may be faster"
    else:
        yield "  No fewer changes do, and no other change of as few fields ranks before it"


def conflict_lines(conflict: Conflict) -> Iterator[str]:
    """Yield the constraints that no tiling satisfies together."""
    need = "; without any one of them there is one" if conflict.minimal else ""
    yield f"No tiling satisfies these together{need}"
    yield from (f"  {constraint.text}" for constraint in conflict.constraints)
