"""Findings of a launch as text, with the calls that led to each."""

from collections.abc import Sequence

from cubecore.isa.program.tree import Location
from cubecore.machine.sanitizer.findings import SanitizerFinding, faults
from cubecore.manual import address_lines
from cubecore.units import plural


def launch_text(
    title: str, issued: int, wall_s: float, findings: tuple[SanitizerFinding, ...]
) -> str:
    """Return what a launch did, and what was found in it."""
    done = f"{title}: {plural(issued, 'instruction')} in {wall_s:.2f} s"
    return "\n".join([done, *finding_lines(findings)])


def failed_line(findings: tuple[SanitizerFinding, ...], reasons: Sequence[str]) -> str:
    """Return the outcome of a run that failed: the number of findings, and other reasons."""
    found = faults(findings)
    counted = [plural(len(found), "finding")] if found else []
    return f"FAILED: {', '.join([*counted, *reasons])}"


def finding_lines(findings: tuple[SanitizerFinding, ...]) -> list[str]:
    """Return a line for each finding, under their number."""
    if not findings:
        return ["  findings none"]
    wrong = faults(findings)
    lines = [f"Findings: {len(wrong)}"] if wrong else ["  findings none"]
    for number, f in enumerate((*wrong, *(f for f in findings if f.is_note))):
        if number == len(wrong):
            lines.append(f"Notes: {len(findings) - len(wrong)}")
        lines.append(f"  {f.id}: {f.message} ({plural(f.count, 'time')}; {f.core}, {f.location})")
        places = dict.fromkeys((*(each.location for each in f.accesses), f.location))
        lines += [f"    {way}" for way in map(_way, places) if way]
    return lines + address_lines("finding", (finding.id for finding in findings))


def _way(where: Location) -> str:
    """Return what a line calls and the calls that led there; nothing where they are not known."""
    if not where.call and not where.callers:
        return ""
    callers = ", ".join(map(str, where.callers))
    called = f", called at {callers}" if callers else ""
    return f"{where.call or 'the call'} at {where}{called}"
