"""The answers of `run` and `time` about kernels of a script, and of one launch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from cubecore.advice.intervals import Interval, interval, interval_line
from cubecore.frontends.finding_text import failed_line, finding_lines, launch_text
from cubecore.frontends.launch_timing import launch_of, timed_chip
from cubecore.frontends.source_lines import by_place, source_lines
from cubecore.machine.sanitize.findings import SanitizerFinding, faults
from cubecore.presented import Presented
from cubecore.presented.text import duration, table
from cubecore.reports.timelines import RECORDED, pipe_bars, pipe_rows, time_figures, timeline_lines
from cubecore.timing.launch import time_launch
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cubecore.advice.kernel_rules.rule import KernelAdvice
    from cubecore.advice.timed_changes import TimedChanges
    from cubecore.aliases import Json
    from cubecore.frontends.kernels.session import KernelRun
    from cubecore.frontends.result_comparison import ResultComparison
    from cubecore.frontends.tik.host.kernel import TikKernel, TikRun
    from cubecore.frontends.tik.trace.tensor import Tensor
    from cubecore.presented import Figures
    from cubecore.reports.files.trace_view import TraceView
    from cubecore.timing.records import LineTime, Timeline

_USUAL_BITS = 16
"""The bits of an element for intervals of kernels, whose tensors may have several types."""
_ALL = "; --all shows them"
_SHOWN_LINES = 5
_LINE_WIDTH = 60
"""Characters of a source line that are shown."""
_PATH_WIDTH = 30
"""Characters above which a path is shown as the file's name."""


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """The result of a script: its launches in order, and how it ended.

    `failure` is what an assertion of the script, or an exit with another code than 0, said; None
    if it ran to its end. `checked` tells if the script checked anything after a launch, and `built`
    are the kernels of TIK that it built and did not run. `linked`: it is a program that `cubecore
    c++` linked, of which nothing tells if it compares its results. `compared` are arrays beside the
    values that they should hold, and `results` the names of arrays that launches left. The text has
    `everything` that was found, or counts what follows from another finding.
    """

    script: str
    launches: tuple[KernelRun | TikRun, ...]
    failure: str | None
    total_wall_s: float
    peak_bytes: int | None
    checked: bool = False
    linked: bool = False
    built: tuple[TikKernel, ...] = ()
    compared: tuple[ResultComparison, ...] = ()
    results: tuple[str, ...] = ()
    everything: bool = False

    @property
    def findings(self) -> tuple[SanitizerFinding, ...]:
        """The findings of every launch."""
        return tuple(finding for launch in self.launches for finding in launch.findings)

    @property
    def clean(self) -> bool:
        """True if nothing but notes was found, all compared is equal and no check failed."""
        right = all(each.verified for each in self.compared)
        return self.failure is None and right and not faults(self.findings)

    @property
    def verified(self) -> bool:
        """True if nothing was found, and a result was compared, or checked by the script."""
        return self.clean and (self.checked or bool(self.compared))

    @property
    def verdict(self) -> str:
        """The outcome: verified, FAILED with the reasons, or finished without a comparison."""
        if not self.clean:
            wrong = [each.name for each in self.compared if not each.verified]
            reasons = [f"{', '.join(wrong)} not as expected"] if wrong else []
            reasons += [] if self.failure is None else ["its own check"]
            return failed_line(self.findings, reasons)
        if not self.launches:
            return "built, not run"
        if self.verified:
            return "verified"
        name = self.results[0] if self.results else "NAME"
        if self.linked and self.results:
            return f"finished, no findings; the program returned 0 (--expect {name}=... compares)"
        return f"finished, no findings; result not compared (give --expect {name}=...)"

    def to_json(self) -> Json:
        """Return the run as JSON."""
        return {
            "script": self.script,
            "verified": self.verified,
            "verdict": self.verdict,
            "failure": self.failure,
            "compared": [each.to_json() for each in self.compared],
            "findings": [finding.to_json() for finding in self.findings],
            "launches": [launch.to_json() for launch in self.launches],
            "built": [kernel.to_json() for kernel in self.built],
            "issued": sum(launch.issued for launch in self.launches),
            "wall_s": sum(launch.wall_s for launch in self.launches),
            "total_wall_s": self.total_wall_s,
            "peak_bytes": self.peak_bytes,
        }

    @property
    def text(self) -> str:
        """The outcome, each launch with its findings, and what was built and not run."""
        lines = [f"{self.script}: {self.verdict}"]
        if self.failure is not None:
            lines.append(self.failure)
        lines += [line for each in self.compared for line in each.text.splitlines()]
        for launch in self.launches:
            done = title_of(launch), launch.issued, launch.wall_s, launch.findings
            lines += ["", launch_text(*done, everything=self.everything, hint=_ALL)]
        for kernel in self.built:
            lines += ["", f"{kernel.name}[{kernel.blocks}] on {kernel.chip.name}: built, not run"]
            lines += [f"  input {_tensor(tensor)}" for tensor in kernel.inputs]
            lines += [f"  output {_tensor(tensor)}" for tensor in kernel.outputs]
        if self.built:
            lines += ["", "--debug-inputs random runs what is built on random numbers"]
        return "\n".join(lines) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each finding."""
        return [finding.to_json() for finding in self.findings]


@dataclass(frozen=True, slots=True)
class TimedLaunch(Presented):
    """One launch of a script, where its cycles go, and what of the chip would help if asked for.

    `rough` says why a time is no more than that; None where the chip's costs are known. `script` is
    the file that launched it. `not_modelled` is what it does that costs nothing in the model; with
    advice that has it.
    """

    run: KernelRun | TikRun
    timeline: Timeline
    changes: TimedChanges | None = None
    rough: str | None = None
    script: str = ""
    advice: tuple[KernelAdvice, ...] | None = None
    not_modelled: tuple[KernelAdvice, ...] = ()

    @property
    def lines(self) -> tuple[LineTime, ...]:
        """The source lines, by the calls that led to each, the busiest first."""
        return source_lines(self.timeline.lines, self.run, self.script)

    @property
    def interval(self) -> Interval | None:
        """The time's interval; None of a rough time."""
        if self.rough is not None:
            return None
        of_vector = all(group.part == "AIV" for group in self.timeline.groups)
        group = "vector" if of_vector else "known"
        return interval(self.timeline.us, self.run.chip.arch, group, _USUAL_BITS)

    @property
    def title(self) -> str:
        """The launch in a line."""
        return title_of(self.run)

    def to_json(self) -> Json:
        """Return the launch's timeline as JSON."""
        return {
            "kernel": self.run.kernel,
            "blocks": self.run.blocks,
            "chip": self.run.chip.name,
            "findings": [finding.to_json() for finding in self.run.findings],
            **self.timeline.to_json(),
            "lines": [line.to_json() for line in self.lines],
            **({} if self.changes is None else self.changes.to_json()),
            **({} if self.advice is None else {"advice": [each.to_json() for each in self.advice]}),
            "not_modelled": [each.to_json() for each in self.not_modelled],
            **({} if self.rough is None else {"rough": self.rough}),
            "interval": None if self.interval is None else self.interval.to_json(),
        }

    @property
    def text(self) -> str:
        """Cycles by their place, the findings, and the advice and changes that were asked for."""
        lines = [self.title, *([self.rough] if self.rough else [])]
        lines += timeline_lines(self.timeline, self.interval)
        lines += _hottest_lines(self.lines, self.timeline.cycles)
        if self.not_modelled:
            left_out = [each.line for each in self.not_modelled]
            lines += ["", "Not modelled, may be slower than shown", *left_out]
        if self.run.findings:
            lines += ["", *finding_lines(self.run.findings)]
        if self.changes is not None:
            lines += ["", *_advice_lines(self.advice), "", *self.changes.lines]
        return "\n".join(lines)

    def to_rows(self) -> list[Json]:
        """Return a row for each pipe."""
        return pipe_rows(self.timeline)

    def _figures(self) -> Figures:
        found = ("findings", str(len(self.run.findings)))
        return self.title, [*time_figures(self.timeline), found]

    def _picture(self) -> str:
        return pipe_bars(self.timeline)

    def _page(self) -> str:
        target, rough = timed_chip(self.run)
        launch, stand_in = launch_of(self.run), rough is not None
        again = time_launch(launch, target, record=RECORDED, stand_in=stand_in, lines=True)
        return replace(self, timeline=again).page()

    def page(self, among: Sequence[TimedLaunch] = ()) -> str:
        """Return the page: what holds of any kernel, and the findings.

        Where it is one launch `among` several of its script, they are listed.
        """
        from cubecore.machine.finding_kinds import KINDS
        from cubecore.manual import address
        from cubecore.reports.html.charts.kernel_roofline import kernel_roofline
        from cubecore.reports.html.page import common_data, page
        from cubecore.reports.html.source import source_panel

        chip, line, likely = self.run.chip, self.timeline, self.interval
        data = common_data(self.title, chip, line)
        data["likely"] = self.rough or ("" if likely is None else interval_line(likely))
        data["findings"] = [
            finding.to_json()
            | {"remedy": KINDS[finding.id].remedy, "link": address("finding", finding.id)}
            for finding in self.run.findings
        ]
        roof = kernel_roofline(self.run.traces, chip, line)
        if roof is not None:
            data["roofline"] = roof
        if line.lines:
            data["source"] = source_panel(self.lines, self.script)
        if self.changes is not None:
            data |= self.changes.to_json()
            advice = self.advice or ()
            data["advice"] = [each.to_json() | {"remedy": each.remedy} for each in advice]
        if len(among) > 1:
            data["launches"] = [_launch_row(other, shown=other is self) for other in among]
        return page(self.title, data)


def _launch_row(launch: TimedLaunch, *, shown: bool) -> Json:
    line = launch.timeline
    return {
        "title": launch.title,
        "us": line.us,
        "cycles": line.cycles,
        "limited_by": line.limited_by,
        "findings": len(launch.run.findings),
        "shown": shown,
    }


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that was tried: what, and the time; or why it was dropped, which leaves no time."""

    change: str
    us: float | None
    saves_us: float = 0.0
    dropped: str = ""

    def to_json(self) -> Json:
        """Return the trial as JSON."""
        return {
            "change": self.change,
            "us": self.us,
            "saves_us": self.saves_us,
            "dropped": self.dropped,
        }

    @property
    def cells(self) -> tuple[str, ...]:
        """The change, and its time and saving or the reason why it was dropped."""
        if self.us is None:
            return f"{self.change}:", self.dropped
        saves = f"saves {duration(self.saves_us)}" if self.saves_us > 0 else "saves nothing"
        return self.change, duration(self.us), saves


@dataclass(frozen=True, slots=True)
class ScriptTime:
    """A script, the timing of its launches, and what came of other numbers that were tried."""

    script: str
    launches: tuple[TimedLaunch, ...]
    trials: tuple[Trial, ...] | None = None

    @property
    def findings(self) -> tuple[SanitizerFinding, ...]:
        """The findings of every launch."""
        return tuple(finding for launch in self.launches for finding in launch.run.findings)

    @property
    def clean(self) -> bool:
        """True if no launch left findings but notes."""
        return not faults(self.findings)

    @property
    def longest(self) -> TimedLaunch:
        """The launch that takes the longest."""
        return max(self.launches, key=lambda launch: launch.timeline.cycles)

    def to_json(self) -> Json:
        """Return every launch; the keys beside them are those of the longest."""
        return {
            "script": self.script,
            **self.longest.to_json(),
            "launches": [launch.to_json() for launch in self.launches],
            **({} if self.trials is None else {"trials": [t.to_json() for t in self.trials]}),
        }

    @property
    def text(self) -> str:
        """The cycles of every launch by their place, and what was tried."""
        parts = [launch.text for launch in self.launches]
        if self.trials is not None:
            parts.append("\n".join(_trial_lines(self.trials)))
        return "\n\n".join(parts) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each launch."""
        rows = []
        for launch in self.launches:
            line, run = launch.timeline, launch.run
            figures = {"us": line.us, "cycles": line.cycles, "limited_by": line.limited_by}
            pipes = {f"{pipe}_cycles": busy for pipe, busy in line.pipes.items()}
            row = {"kernel": run.kernel, "blocks": run.blocks, "chip": run.chip.name}
            rows.append({**row, **figures, **pipes, "findings": len(run.findings)})
        return rows

    def page(self, _tiling_from: str = "") -> str:
        """Return the page about the longest launch, among the others."""
        return self.longest.page(self.launches)

    def trace(self, view: TraceView) -> Json:
        """Return the Chrome trace of the longest launch."""
        from cubecore.reports.files.chrome_trace import trace_json

        longest = self.longest
        return trace_json(longest.title, longest.run.chip, [("", longest.timeline)], view)

    def metrics(self) -> Json:
        """Return the figures of every launch."""
        return self.to_json()


def title_of(launch: KernelRun | TikRun) -> str:
    """Return a kernel with its blocks, on its chip."""
    return f"{launch.kernel}[{launch.blocks}] on {launch.chip.name}"


def _hottest_lines(lines: Sequence[LineTime], cycles: int) -> list[str]:
    """Return the lines that keep pipes busy longest, each with its busiest pipe."""
    places = [line for line in by_place(lines) if line.location is not None and line.busy]
    if not places:
        return []
    rows = [
        row
        for line in places[:_SHOWN_LINES]
        for row in (_line_row(line, cycles), *_path_rows(line, lines, cycles))
    ]
    more = len(places) - _SHOWN_LINES
    rest = [f"  {plural(more, 'more line')} in --json and --report"] if more > 0 else []
    return ["", "Hottest lines, average cycles", *table(rows), *rest]


def _line_row(line: LineTime, cycles: int) -> tuple[str, ...]:
    where = line.location
    assert where is not None
    # A copy whose time is another path's has no pipe that is busy for it.
    pipe, busy = max(line.busy_cycles.items(), key=lambda each: each[1], default=("", 0))
    text = line.text if len(line.text) <= _LINE_WIDTH else line.text[: _LINE_WIDTH - 3] + "..."
    waits = f"{line.stall_cycles:,} waiting" if line.stall_cycles else ""
    share = f"{busy / cycles:.0%}"
    file = where.file if len(where.file) <= _PATH_WIDTH else PurePath(where.file).name
    return (f"{file}:{where.line}", pipe, f"{busy:,}", share, waits, text)


def _path_rows(
    place: LineTime, lines: Sequence[LineTime], cycles: int
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each path of calls that led to a line, where there are several."""
    here = place.location
    assert here is not None
    of_place = [
        (line, line.location)
        for line in lines
        if line.location is not None
        and (line.location.file, line.location.line) == (here.file, here.line)
    ]
    for line, where in of_place if len(of_place) > 1 else ():
        _, pipe, busy, share, waits, _ = _line_row(line, cycles)
        called = ", ".join(map(str, where.callers)) or "no other function"
        yield "", pipe, busy, share, waits, f"called at {called}"


def _advice_lines(advice: Sequence[KernelAdvice] | None) -> list[str]:
    """Return each advice with its line, its reason, its saving and its remedy.

    None is a launch that was too long to be looked at.
    """
    if advice is None:
        return [
            "Advice",
            "  none: the kernel branches, and issues too much to be recorded for it",
        ]
    if not advice:
        return ["Advice", "  nothing that a rule counts costs 2% or more"]
    return ["Advice, the most helpful first", *(line for each in advice for line in each.lines)]


def _trial_lines(trials: Sequence[Trial]) -> list[str]:
    """Return what was tried, with its time, and what was dropped, with the reason."""
    timed = table([each.cells for each in trials if each.us is not None])
    dropped = table([each.cells for each in trials if each.us is None])
    lines = ["Tried, each launched again and right", *(timed or ["  nothing in that time"])]
    return [*lines, *(["", "Dropped", *dropped] if dropped else [])]


def _tensor(tensor: Tensor) -> str:
    extents = (str(extent) if isinstance(extent, int) else "?" for extent in tensor.shape)
    return f"{tensor.name}: {tensor.dtype} [{', '.join(extents)}]"
