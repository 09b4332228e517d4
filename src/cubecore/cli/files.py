"""The files that a timing or a run can leave: a report, a trace, figures, findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cubecore.errors import unable
from cubecore.output_files import require_writable, write_whole
from cubecore.reports.files.trace_view import WHOLE, TraceView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cubecore.aliases import Json
    from cubecore.answers.time import Timed
    from cubecore.machine.sanitize.findings import SanitizerFinding


class DrawnAnswer(Protocol):
    """An answer that can be drawn on a timeline."""

    def page(self, tiling_from: str, /) -> str:
        """Return the HTML report; `tiling_from` says where its tilings come from."""

    def trace(self, view: TraceView) -> Json:
        """Return the Chrome trace."""

    def metrics(self) -> Json:
        """Return the figures."""


@dataclass(frozen=True, slots=True)
class TimeFiles:
    """Paths of the HTML report, the Chrome trace and the figures as JSON, None for no file.

    `tiling_from` is where the tilings came from; the report says so. `view` is what of the launch
    the trace holds.
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
    def wanted(self) -> bool:
        """True if any file is asked for."""
        return bool(self._paths)

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

    def write(self, chip: str, answer: DrawnAnswer) -> None:
        """Write each file about an answer on a chip in one step.

        Raises
        ------
        RequestError
            If a path can no longer be written, or no viewer would open the trace.
        """
        if self.report is not None:
            from cubecore.cli.provenance import signed

            page = signed(answer.page(self.tiling_from), chip)
            write_whole(self.report, page, "--report")
        if self.trace is not None:
            from cubecore.reports.files.chrome_trace import trace_bytes

            write_whole(self.trace, trace_bytes(answer.trace(self.view)), "--trace")
        if self.metrics is not None:
            from cubecore.reports.files.metrics import metrics_bytes

            write_whole(self.metrics, metrics_bytes(chip, answer.metrics()), "--metrics")


def write_sarif(path: str | None, findings: Iterable[SanitizerFinding]) -> None:
    """Write findings as SARIF, to None for no file.

    Raises
    ------
    RequestError
        If the path can no longer be written.
    """
    if path is not None:
        from cubecore.reports.files.sarif import sarif_bytes

        write_whole(path, sarif_bytes(findings), "--sarif")
