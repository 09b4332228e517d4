"""The files that a run or a timing can leave: findings, a report, a trace."""

from collections.abc import Iterable
from dataclasses import dataclass

from cubecore.errors import refuse
from cubecore.machine.findings import Finding
from cubecore.workflows.files import require_writable, write_whole
from cubecore.workflows.script import ScriptTime
from cubecore.workflows.time import Timed


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Path of the SARIF file with the findings; None for none."""

    sarif: str | None

    def require_writable(self) -> None:
        """Refuse a path that cannot be written, before any work is done.

        Raises:
            RequestError: one sentence on the path.
        """
        if self.sarif is not None:
            require_writable(self.sarif, "--sarif")

    def write(self, findings: Iterable[Finding]) -> None:
        """Write the file in one step.

        Raises:
            RequestError: a path that can no longer be written.
        """
        if self.sarif is not None:
            from cubecore.reports.sarif import sarif_bytes

            write_whole(self.sarif, sarif_bytes(findings), "--sarif")


@dataclass(frozen=True, slots=True)
class TimeFiles:
    """Paths of the HTML report and the Chrome trace, None for neither.

    `tiling_from` is the file that the tiling came from; the report names it.
    """

    report: str | None
    trace: str | None
    tiling_from: str = ""

    def require_writable(self) -> None:
        """Refuse paths that cannot be written, before any work is done.

        Raises:
            RequestError: one sentence on the path.
        """
        if self.report is not None:
            require_writable(self.report, "--report")
        if self.trace is not None:
            require_writable(self.trace, "--trace")
            if self.trace == self.report:
                raise refuse("--trace", "name another file than --report", self.trace)

    @property
    def record(self) -> int:
        """How many instructions of each group of cores the files need."""
        wanted = [0]
        if self.report is not None:
            from cubecore.reports.html import SHOWN_INSTRUCTIONS

            wanted.append(SHOWN_INSTRUCTIONS)
        if self.trace is not None:
            from cubecore.reports.trace import TRACED_INSTRUCTIONS

            wanted.append(TRACED_INSTRUCTIONS)
        return max(wanted)

    def write(self, timed: Timed) -> None:
        """Write each file in one step.

        Raises:
            RequestError: a path that can no longer be written.
        """
        if self.report is not None:
            from cubecore.reports.html import html_report

            page = html_report(timed, tiling_from=self.tiling_from)
            write_whole(self.report, page.encode(), "--report")
        if self.trace is not None:
            from cubecore.reports.trace import trace_bytes

            write_whole(self.trace, trace_bytes(timed), "--trace")

    def write_launches(self, timed: ScriptTime) -> None:
        """Write each file about the longest launch of a user's script, in one step.

        Raises:
            RequestError: a path that can no longer be written.
        """
        if self.report is not None:
            from cubecore.reports.html import launch_report

            page = launch_report(timed.longest, timed.launches)
            write_whole(self.report, page.encode(), "--report")
        if self.trace is not None:
            from cubecore.reports.trace import launch_trace_bytes

            write_whole(self.trace, launch_trace_bytes(timed.longest), "--trace")
