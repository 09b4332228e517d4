"""A script's launches, their results and their cycles, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.machine.sanitizer.findings import faults
from cubecore.manual import address_lines
from cubecore.reports.text.advice import advice_lines, trial_lines
from cubecore.reports.text.answers import changes_lines, timeline_lines
from cubecore.reports.text.lines import hottest_lines
from cubecore.units import plural

if TYPE_CHECKING:
    from cubecore.frontends.kernels.session import KernelRun
    from cubecore.frontends.tik.host.kernel import TikRun
    from cubecore.frontends.tik.trace.tensor import Tensor
    from cubecore.isa.program.tree import Location
    from cubecore.machine.sanitizer.findings import SanitizerFinding
    from cubecore.workflows.scripts.script import ScriptRun, ScriptTime, TimedLaunch


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


def script_run_text(run: ScriptRun) -> str:
    """Return what a script did."""
    lines = [f"{run.script}: {run.verdict}"]
    if run.failure is not None:
        lines.append(run.failure)
    for launch in run.launches:
        lines += ["", launch_text(launch)]
    for kernel in run.built:
        lines += ["", f"{kernel.name}[{kernel.blocks}] on {kernel.chip.name}: built, not run"]
        lines += [f"  input {_tensor(tensor)}" for tensor in kernel.inputs]
        lines += [f"  output {_tensor(tensor)}" for tensor in kernel.outputs]
    if run.built:
        lines += ["", "--debug-inputs random runs what is built on random numbers"]
    return "\n".join(lines) + "\n"


def launch_text(launch: KernelRun | TikRun) -> str:
    """Return what a launch did, and what was found in it."""
    title = f"{launch.kernel}[{launch.blocks}] on {launch.chip.name}"
    issued = f"{plural(launch.issued, 'instruction')} in {launch.wall_s:.2f} s"
    return "\n".join([f"{title}: {issued}", *finding_lines(launch.findings)])


def _tensor(tensor: Tensor) -> str:
    extents = (str(extent) if isinstance(extent, int) else "?" for extent in tensor.shape)
    return f"{tensor.name}: {tensor.dtype} [{', '.join(extents)}]"


def script_time_text(timed: ScriptTime) -> str:
    """Return where the cycles of a script's launches go."""
    parts = [timed_launch_text(launch) for launch in timed.launches]
    if timed.trials is not None:
        parts.append("\n".join(trial_lines(timed.trials)))
    return "\n\n".join(parts) + "\n"


def timed_launch_text(launch: TimedLaunch) -> str:
    """Return where the cycles of a launch go."""
    lines = [launch.title, *([launch.rough] if launch.rough else [])]
    lines += timeline_lines(launch.timeline, launch.interval)
    lines += hottest_lines(launch.lines, launch.timeline.cycles)
    if launch.run.findings:
        lines += ["", *finding_lines(launch.run.findings)]
    if launch.changes is not None:
        lines += ["", *advice_lines(launch.advice), "", *changes_lines(launch.changes)]
    return "\n".join(lines)
