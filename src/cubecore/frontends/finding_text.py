"""Findings of a launch as text, with the calls that led to each, consequences under their cause."""

from collections import Counter
from collections.abc import Sequence

from cubecore.isa.program.tree import Location
from cubecore.machine.sanitize.findings import EVERY_CORE, SanitizerFinding, causes, faults
from cubecore.manual import address_lines
from cubecore.units import plural


def launch_text(
    title: str,
    issued: int,
    wall_s: float,
    findings: tuple[SanitizerFinding, ...],
    *,
    everything: bool = False,
    hint: str = "",
) -> str:
    """Return what a launch did, and what was found in it, as `finding_lines` does."""
    done = f"{title}: {plural(issued, 'instruction')} in {wall_s:.2f} s"
    return "\n".join([done, *finding_lines(findings, everything=everything, hint=hint)])


def failed_line(findings: tuple[SanitizerFinding, ...], reasons: Sequence[str]) -> str:
    """Return the outcome of a run that failed: the number of findings, and other reasons."""
    found = causes(faults(findings))
    counted = [plural(len(found), "finding")] if found else []
    return f"FAILED: {', '.join([*counted, *reasons])}"


def finding_lines(
    findings: tuple[SanitizerFinding, ...], *, everything: bool = False, hint: str = ""
) -> list[str]:
    """Return a line for each finding that follows from no other, under their number.

    What follows from it is counted under it, with a `hint`; `everything` shows that, too.
    """
    if not findings:
        return ["  findings none"]
    wrong = causes(faults(findings))
    notes = [finding for finding in findings if finding.is_note]
    lines = [f"Findings: {len(wrong)}"] if wrong else ["  findings none"]
    for number, finding in enumerate((*wrong, *notes)):
        if number == len(wrong):
            lines.append(f"Notes: {len(notes)}")
        lines += _lines(finding)
        consequences = [each for each in findings if each.cause is finding]
        if everything:
            lines += [f"  {line}" for each in consequences for line in _lines(each)]
        elif consequences:
            lines.append(f"    {_counted(consequences)}{hint}")
    shown = [finding.id for finding in findings if everything or finding.cause is None]
    return lines + address_lines("finding", shown)


def _lines(finding: SanitizerFinding) -> list[str]:
    """Return a finding, and the calls that led to each of its places."""
    places = dict.fromkeys((*(each.location for each in finding.accesses), finding.location))
    paths = (f"    {path}" for path in map(_path, places) if path)
    return [f"  {finding.id}: {_text(finding)}", *paths]


def _counted(consequences: Sequence[SanitizerFinding]) -> str:
    """Return how many findings follow from one, and their kinds."""
    kinds = Counter(finding.id for finding in consequences)
    each = ", ".join(f"{kind} x {count}" if count > 1 else kind for kind, count in kinds.items())
    follow = "finding follows" if len(consequences) == 1 else "findings follow"
    return f"{len(consequences)} {follow} from it ({each})"


def _text(finding: SanitizerFinding) -> str:
    """Return a finding in the words of its source, how often it was made, and where it was first.

    One that no front end has told is in the words of the instruction set.
    """
    core = f"{finding.block} ({finding.core})" if finding.block else finding.core
    if finding.text and finding.core == EVERY_CORE:
        return finding.text
    seen = f"{plural(finding.count, 'time')}; {core}"
    if not finding.text:
        return f"{finding.message} ({seen}, {finding.location})"
    return f"{finding.text} ({seen})"


def _path(where: Location) -> str:
    """Return what a line calls and the calls that led there; nothing where they are not known."""
    if not where.callers:
        return ""
    callers = ", ".join(map(str, where.callers))
    return f"{where.call or 'the call'} at {where}, called at {callers}"
