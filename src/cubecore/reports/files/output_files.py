"""The files that a timing can leave: a report, a trace, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cubecore.errors import unable
from cubecore.lazy_dataclass import dataclass
from cubecore.reports.files.trace_view import WHOLE, TraceView
from cubecore.workflows.data.files import require_writable, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cubecore.workflows.scripts.script import ScriptTime
    from cubecore.workflows.time import Timed


@dataclass(frozen=True, slots=True)
class TimeFiles:
    """Paths of the HTML report, the Chrome trace and the figures as JSON, None for no file.

    `tiling_from` is the file that the tiling came from; the report names it. `view` is what of the
    launch the trace holds.
    """

    report: str | None
    trace: str | None
    tiling_from: str = ""
    metrics: str | None = None
    view: TraceView = WHOLE

    def require_writable(self) -> None:
        """Refuse paths that cannot be written, before any work is done.

        Raises
        ------
        RequestError
            If the path cannot be written.
        """
        if self.trace is None and self.view != WHOLE:
            raise unable("--trace-...", "--trace-... needs --trace")
        for option, path in self._paths:
            require_writable(path, option)

    def require_openable(self, timed: Callable[[], Sequence[Timed]]) -> None:
        """Refuse a trace that nothing would open, before its instructions are recorded.

        `timed` times the launches without recording; it is asked where a trace may be that large.

        Raises
        ------
        RequestError
            If the trace has more events than viewers open; the message says how to keep fewer.
        """
        if self.trace is None or not self.view.is_long:
            return
        from cubecore.reports.files.chrome_trace import require_openable

        runs = timed()
        if runs:
            lines = [run.timeline for run in runs]
            require_openable(lines, runs[0].request.chip, self.view)

    @property
    def _paths(self) -> list[tuple[str, str]]:
        """The files that are asked for, by option."""
        files = (("--report", self.report), ("--trace", self.trace), ("--metrics", self.metrics))
        return [(option, path) for option, path in files if path is not None]

    @property
    def record(self) -> int:
        """Return the number of instructions of each group of cores that the files need."""
        wanted = [0]
        if self.report is not None:
            from cubecore.reports.html.page import SHOWN_INSTRUCTIONS

            wanted.append(SHOWN_INSTRUCTIONS)
        if self.trace is not None or self.metrics is not None:
            wanted.append(self.view.record)
        return max(wanted)

    def write(self, timed: Timed) -> None:
        """Write each file in one step.

        Raises
        ------
        RequestError
            If a path can no longer be written.
        """
        if self.report is not None:
            from cubecore.reports.html.page import html_report

            page = html_report(timed, tiling_from=self.tiling_from)
            write_whole(self.report, page, "--report")
        if self.trace is not None:
            from cubecore.reports.files.chrome_trace import trace_bytes

            write_whole(self.trace, trace_bytes(timed, self.view), "--trace")
        if self.metrics is not None:
            from cubecore.reports.files.metrics import metrics_bytes

            write_whole(self.metrics, metrics_bytes(timed), "--metrics")

    def write_pair(self, first: Timed, second: Timed, title: str) -> None:
        """Write each file about two runs, on one time axis.

        Raises
        ------
        RequestError
            If a path can no longer be written, or no viewer would open the trace.
        """
        if self.report is not None:
            from cubecore.reports.html.pair import pair_report

            write_whole(self.report, pair_report(first, second, title), "--report")
        if self.trace is not None:
            from cubecore.reports.files.chrome_trace import pair_trace_bytes

            write_whole(self.trace, pair_trace_bytes(first, second, self.view), "--trace")
        if self.metrics is not None:
            from cubecore.reports.files.metrics import pair_metrics_bytes

            write_whole(self.metrics, pair_metrics_bytes(first, second), "--metrics")

    def write_launches(self, timed: ScriptTime) -> None:
        """Write each file about the longest launch of a user's script, in one step.

        Raises
        ------
        RequestError
            If a path can no longer be written.
        """
        if self.report is not None:
            from cubecore.reports.html.page import launch_report

            page = launch_report(timed.longest, timed.launches)
            write_whole(self.report, page, "--report")
        if self.trace is not None:
            from cubecore.reports.files.chrome_trace import launch_trace_bytes

            write_whole(self.trace, launch_trace_bytes(timed.longest, self.view), "--trace")
        if self.metrics is not None:
            from cubecore.reports.files.metrics import launch_metrics_bytes

            write_whole(self.metrics, launch_metrics_bytes(timed), "--metrics")
