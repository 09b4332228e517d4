"""The answer of `tune`: a tiling judged and timed, the small changes that help, the best plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cubecore.advice.reasons import reasons_lines
from cubecore.advice.timed_changes import TimedChange, TimedChanges, tiling_change
from cubecore.answers.time import Timed, time_legal
from cubecore.errors import unable
from cubecore.presented import Presented
from cubecore.presented.text import duration, table
from cubecore.reports.timelines import RECORDED, pipe_bars, timeline_lines
from cubecore.tiling.model.field_limits import PLANNED_FIELDS
from cubecore.tiling.model.request import TilingRequest, problem_line
from cubecore.tiling.solver.solver import Ranked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cubecore.aliases import Json
    from cubecore.answers.plan import TilingPlan
    from cubecore.presented import Figures
    from cubecore.tiling.model.tcubetiling import TCubeTiling
    from cubecore.tiling.rules.checker import Findings

LEAST_SAVED = 0.005
"""Share of the time below which the plan is no faster."""


@dataclass(frozen=True)
class Tuned(Presented):
    """A tiling judged, timed and improved by small changes.

    Attributes
    ----------
    tiling : TCubeTiling
        The tiling that was given.
    findings : Findings
        The rules that it breaks; `RepairedFindings` where it breaks one.
    timed : Timed or None
        The timing of the tiling, or of the nearest legal one; None where there is none.
    changes : tuple of TimedChange
        Changes of one field, of two and of three that save time, each timed with all other fields
        kept; those of fewer fields first.
    best : TilingPlan or None
        The planner's tiling, or one that is faster, where the search from the tiling or one of its
        changes leads to one: nothing else here is faster. None where no tiling is legal.
    """

    request: TilingRequest
    tiling: TCubeTiling
    findings: Findings
    timed: Timed | None
    changes: tuple[TimedChange, ...]
    best: TilingPlan | None

    @property
    def legal(self) -> bool:
        """True if the tiling that was given breaks no rule."""
        return self.findings.legal

    @property
    def as_changes(self) -> TimedChanges:
        """The changes and the best plan, the most helpful first, as a page shows them."""
        if self.timed is None or self.best is None:
            return TimedChanges(self.changes)
        plan = Ranked(self.best.tiling, self.best.predicted)
        whole = tiling_change("plan", self.timed.tiling, plan, self.timed.timeline.cycles)
        return TimedChanges(tuple(sorted((*self.changes, whole), key=lambda one: one.cycles)))

    def to_json(self) -> Json:
        """Return the public contract's object."""
        return {
            "problem": self.request.problem.to_json(),
            "tiling": self.tiling.to_json(),
            **self.findings.to_json(),
            "timed": None if self.timed is None else self.timed.to_json(),
            "changes": [change.to_json() for change in self.changes],
            "best": None if self.best is None else self.best.to_json(),
        }

    @property
    def text(self) -> str:
        """The verdict, the time by pipe with its causes, the changes and the plan."""
        lines = [problem_line(self.request), *self.findings.text.splitlines()]
        if self.timed is not None:
            line = self.timed.timeline
            of_what = "" if self.legal else "As repaired: "
            first, *rest = timeline_lines(line, self.timed.interval)
            lines += ["", of_what + first, *rest]
            if reasons := self.timed.reasons:
                lines += ["", *reasons_lines(reasons, line.cycles)]
            lines += ["", *self._change_lines()]
        return "\n".join([*lines, "", *self._plan_lines()]) + "\n"

    def _change_lines(self) -> Iterator[str]:
        if not self.changes:
            yield "No change of up to three fields saves time"
            return
        yield "Smallest changes that help, each timed with the rest kept"
        rows = [("saves", "then", "of", "change")]
        rows += [(f"{c.gain:.1%}", duration(c.us), c.kind, c.what) for c in self.changes]
        yield from table(rows)

    def _plan_lines(self) -> Iterator[str]:
        """Yield the best plan beside the tiling: its time, and the fields in which it differs."""
        plan, timed = self.best, self.timed
        if plan is None:
            yield "No plan: no tiling is legal"
            return
        us = duration(plan.predicted.us)
        if timed is None:
            yield f"Best plan: {us}"
            return
        saved = 1 - plan.predicted.cycles / timed.timeline.cycles
        if saved < LEAST_SAVED:
            yield f"The best plan takes {us}: the planner knows none faster"
            return
        yield f"Best plan: {us}, {saved:.1%} less"
        old, new = timed.tiling.to_json(), plan.tiling.to_json()
        names = [name for name in PLANNED_FIELDS if old[name] != new[name]]
        yield from table((name, old[name], "->", new[name]) for name in names)

    def to_rows(self) -> list[Json]:
        """Return a row for each change, the most helpful first."""
        return [
            {
                "kind": change.kind,
                "change": change.what,
                "us": change.us,
                "cycles": change.cycles,
                "gain": change.gain,
                "limited_by": change.limited_by,
                **({} if change.tiling is None else change.tiling.to_json()),
            }
            for change in self.as_changes.tried
        ]

    def _figures(self) -> Figures:
        figures = [("legal", "yes" if self.legal else "no")]
        if self.timed is not None:
            figures.append(("time", duration(self.timed.timeline.us)))
        figures += [(f"{c.kind}, {c.gain:.0%} less", c.what) for c in self.changes]
        if self.best is not None:
            figures.append(("best plan", duration(self.best.predicted.us)))
        return problem_line(self.request), figures

    def _remarks(self) -> list[str]:
        return [finding.message for finding in self.findings.findings]

    def _picture(self) -> str:
        return pipe_bars(self.timed.timeline) if self.timed else ""

    def _page(self) -> str:
        if self.timed is None:
            return self.page()
        again = time_legal(self.request, self.timed.tiling, RECORDED)
        return replace(self, timed=again).page()

    def page(self, tiling_from: str = "") -> str:
        """Return the page: that of the timing, with the rules broken and the changes.

        `tiling_from` names the file of the tiling.

        Raises
        ------
        RequestError
            If no tiling is legal: there is nothing to draw.
        """
        from cubecore.reports.html.page import page

        if self.timed is None:
            raise unable("report", "no page: no tiling is legal")
        source = tiling_from if self.legal else f"{tiling_from or 'the given tiling'}, repaired"
        data = replace(self.timed, changes=self.as_changes).page_data(source)
        rules = [
            {"id": f.rule, "message": f.message, "location": f.source, "count": 1}
            for f in self.findings.findings
        ]
        return page(problem_line(self.request), {**data, "findings": rules} if rules else data)
