"""The answer of `time`: where the cycles of a matmul go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cubecore.advice.intervals import Interval, interval, interval_line
from cubecore.advice.reasons import Reason, reasons, reasons_lines
from cubecore.kernels.matmul.launch import require_supported
from cubecore.kernels.runnable import require_timed
from cubecore.planning.timed_product import TimedProduct
from cubecore.presented import Presented
from cubecore.presented.text import number, table
from cubecore.reports.timelines import RECORDED, pipe_bars, pipe_rows, time_figures, timeline_lines
from cubecore.tiling.cost.closed_form import lower_bound, start_cycles
from cubecore.tiling.model.core_grid import problem_blocks
from cubecore.tiling.model.request import TilingRequest, problem_line
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import ceil_div

if TYPE_CHECKING:
    from cubecore.advice.timed_changes import TimedChanges
    from cubecore.aliases import Json
    from cubecore.presented import Figures
    from cubecore.reports.files.trace_view import TraceView
    from cubecore.tiling.model.tcubetiling import TCubeTiling
    from cubecore.timing.records import CriticalPath, Timeline


@dataclass(frozen=True)
class Timed(Presented):
    """A timeline, the problem and tiling that it is of, and the advice that was asked for.

    `step` is the kind of kernel, None for the template's.
    """

    request: TilingRequest
    tiling: TCubeTiling
    timeline: Timeline
    changes: TimedChanges | None = None
    step: str | None = None

    @property
    def _product(self) -> TimedProduct:
        return TimedProduct(self.request.problem, self.tiling, self.request.chip, self.step)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Causes of the time in words, the dearest first; timed when first asked for."""
        return reasons(self._product, self.timeline)

    @property
    def interval(self) -> Interval:
        """The time's interval, by how far the model was off on publications held out of its fit."""
        return product_interval(self.timeline.us, self.request)

    @property
    def lower_bound(self) -> int:
        """Cycles that no tiling of this kind of kernel can beat."""
        return lower_bound(self.request.problem, self.request.chip, self.step)

    def to_json(self) -> Json:
        """Return the public contract's object, with the problem and the tiling.

        ``changes`` and ``untried`` are there where they were asked for.
        """
        return {
            "problem": self.request.problem.to_json(),
            "tiling": self.tiling.to_json(),
            **self.timeline.to_json(),
            "interval": self.interval.to_json(),
            "lower_bound_us": self.request.chip.microseconds(self.lower_bound),
            "reasons": [reason.to_json() for reason in self.reasons],
            **({} if self.changes is None else self.changes.to_json()),
        }

    @property
    def text(self) -> str:
        """The cycles by their place, the causes, and the changes that were asked for."""
        lines = [problem_line(self.request), *timeline_lines(self.timeline, self.interval)]
        if self.reasons:
            lines += ["", *reasons_lines(self.reasons, self.timeline.cycles)]
        if self.changes is not None:
            lines += ["", *self.changes.lines]
        return "\n".join(lines) + "\n"

    @property
    def path_text(self) -> str:
        """The text, and the critical path of the slowest cores."""
        path = self.timeline.critical
        assert path is not None, "the critical path is asked for, and instructions were recorded"
        return "\n".join([self.text, *_path_lines(path)]) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each pipe."""
        return pipe_rows(self.timeline)

    def _figures(self) -> Figures:
        line = self.timeline
        rate = [] if line.tflops is None else [("rate", f"{number(line.tflops)} TFLOPS")]
        figures = [*time_figures(line), *rate, *tiling_figures(self.tiling)]
        return problem_line(self.request), figures

    def _picture(self) -> str:
        return pipe_bars(self.timeline)

    def _page(self) -> str:
        again = time_legal(self.request, self.tiling, RECORDED, self.step)
        return replace(again, changes=self.changes).page()

    def page(self, tiling_from: str = "", *, limit: int | None = None) -> str:
        """Return the page about the instructions that were recorded.

        `tiling_from` names the file of the tiling; empty for the plan's own. The timeline shows the
        first `limit` instructions of each group.
        """
        from cubecore.reports.html.page import page

        return page(problem_line(self.request), self.page_data(tiling_from, limit))

    def page_data(self, tiling_from: str = "", limit: int | None = None) -> Json:
        """Return everything that the page shows, as one JSON object."""
        from cubecore.reports.html.charts.occupancy import occupancy
        from cubecore.reports.html.charts.roofline import roofline
        from cubecore.reports.html.core_map import core_map
        from cubecore.reports.html.memory_diagram import memory_diagram
        from cubecore.reports.html.page import common_data
        from cubecore.reports.html.slack import slack
        from cubecore.reports.html.why import models, moved_in_core, tiling_rows

        problem, chip, line = self.request.problem, self.request.chip, self.timeline
        case = RuleCase(self.tiling, problem, chip)
        depth = min(self.tiling.singleCoreK, problem.shared_k)
        return common_data(problem_line(self.request), chip, line, limit) | {
            **({} if self.changes is None else self.changes.to_json()),
            "steps": ceil_div(depth, self.tiling.baseK),
            "likely": interval_line(self.interval),
            "tiling": {
                "from": tiling_from,
                "rows": tiling_rows(case),
                "fields": self.tiling.to_json(),
                "launch": problem.launch,
                "template": problem.template,
            },
            "models": models(case, line, self.lower_bound, start_cycles(chip, self.step)),
            "reasons": [reason.to_json() for reason in self.reasons],
            "rules": slack(case),
            "buffers": occupancy(case),
            "roofline": roofline(problem, chip, line),
            "memory": memory_diagram(line, moved_in_core(case), self.tiling.usedCoreNum),
            "map": core_map(
                problem_blocks(problem, chip, self.tiling), [group.cores for group in line.groups]
            ),
        }

    def trace(self, view: TraceView) -> Json:
        """Return the Chrome trace of the instructions that were recorded.

        Raises
        ------
        RequestError
            If no viewer would open the trace; raised before it is made.
        """
        from cubecore.reports.files.chrome_trace import trace_json

        request = self.request
        return trace_json(problem_line(request), request.chip, [("", self.timeline)], view)

    def metrics(self) -> Json:
        """Return the figures of the page: what ``--json`` prints, and the roofline."""
        from cubecore.reports.html.charts.roofline import roofline

        request = self.request
        return {
            **self.to_json(),
            "roofline": roofline(request.problem, request.chip, self.timeline),
        }


def time_legal(
    request: TilingRequest, tiling: TCubeTiling, record: int = 0, step: str | None = None
) -> Timed:
    """Return the timing of a legal tiling, `record` instructions of each group of cores kept.

    Raises
    ------
    RequestError
        If no model times the request.
    """
    require_timed(request.chip)
    require_supported(request.problem)
    line = TimedProduct(request.problem, tiling, request.chip, step).timed(record=record)
    return Timed(request, tiling, line, step=step)


def product_interval(us: float, request: TilingRequest) -> Interval:
    """Return the interval of a matmul's time."""
    return interval(us, request.chip.arch, "known", request.problem.a_type.bits)


def _path_lines(path: CriticalPath) -> list[str]:
    """Return where the cycles of a critical path lie, the longest part first."""
    whole = sum(path.cycles.values())
    parts = sorted(path.cycles.items(), key=lambda part: (-part[1], part[0]))
    rows = [(name, f"{cycles:,}", f"{cycles / whole:.0%}") for name, cycles in parts]
    part = "" if path.complete else " of the part that was recorded"
    return [f"Critical path{part}, cycles on", *table(rows)]


def tiling_figures(tiling: TCubeTiling) -> list[tuple[str, str]]:
    """Return the blocks of a tiling."""
    t = tiling
    return [
        ("cores", str(t.usedCoreNum)),
        ("singleCore", f"{t.singleCoreM} x {t.singleCoreN} x {t.singleCoreK}"),
        ("base", f"{t.baseM} x {t.baseN} x {t.baseK}"),
        ("depth", f"{t.depthA1}, {t.depthB1}"),
    ]
