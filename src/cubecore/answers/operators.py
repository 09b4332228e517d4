"""The answers of `run` and `time` about an operator of vector cores, and operators of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecore.advice.intervals import ATTENTION, ATTENTION_LIBRARY, Interval, interval
from cubecore.models.collectives import COLLECTIVES
from cubecore.models.operators import OPERATOR_TERMS
from cubecore.presented.text import duration
from cubecore.reports.timelines import pipe_rows, timeline_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cubecore.aliases import Json
    from cubecore.chips.model import Chip
    from cubecore.kernels.operators.named import NamedOperator
    from cubecore.machine.sanitize.findings import SanitizerFinding
    from cubecore.timing.records import Timeline

LAUNCHES = "launches"
TERMS = (*OPERATOR_TERMS, COLLECTIVES, LAUNCHES)
"""The terms of a step beside its matmuls; each can be left out."""


@dataclass(frozen=True, slots=True)
class TimedOperator:
    """An operator on a chip, and where its cycles go."""

    problem: NamedOperator
    chip: Chip
    timeline: Timeline

    @property
    def interval(self) -> Interval:
        """The time's interval, by how far the model was off on operators that no fit has seen."""
        op = self.problem.op
        group = "operator" if self.problem.rows else "vector library"
        group = ATTENTION_LIBRARY if op == ATTENTION else group
        return interval(self.timeline.us, self.chip.arch, group, self.problem.dtype.bits, op)

    def to_json(self) -> Json:
        """Return the operator, its chip and its timeline."""
        return {
            "operator": _operator_json(self.problem),
            "chip": self.chip.name,
            **self.timeline.to_json(),
            "interval": self.interval.to_json(),
            "assumed": [],
        }

    @property
    def text(self) -> str:
        """The cycles by their place."""
        title = _operator_title(self.problem, self.chip.name)
        return "\n".join([title, *timeline_lines(self.timeline, self.interval)]) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each pipe."""
        return pipe_rows(self.timeline)


@dataclass(frozen=True, slots=True)
class OperatorRun:
    """An operator that was executed: its findings, and its worst error over the tolerance."""

    problem: NamedOperator
    chip: Chip
    findings: tuple[SanitizerFinding, ...]
    worst: float
    issued: int
    engine: str
    wall_s: float

    @property
    def verified(self) -> bool:
        """True if every result is right and nothing but notes was found."""
        from cubecore.machine.sanitize.findings import faults

        return self.worst <= 1 and not faults(self.findings)

    def to_json(self) -> Json:
        """Return what was run, and how it ended."""
        return {
            "operator": _operator_json(self.problem),
            "chip": self.chip.name,
            "verified": self.verified,
            "worst_error_over_tolerance": self.worst,
            "findings": [finding.to_json() for finding in self.findings],
            "issued": self.issued,
            "engine": self.engine,
            "wall_s": self.wall_s,
        }

    @property
    def text(self) -> str:
        """The verdict, and what was found."""
        from cubecore.frontends.finding_text import failed_line, finding_lines

        error = f"the worst error is {self.worst:.2g} of what rounding may cause"
        lines = [
            _operator_title(self.problem, self.chip.name),
            f"verified: {error}" if self.verified else failed_line(self.findings, [error]),
            f"{self.issued:,} instructions in {self.wall_s:.2f} s ({self.engine} engine)",
            *finding_lines(self.findings),
        ]
        return "\n".join(lines) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each finding."""
        return [finding.to_json() for finding in self.findings]


def _operator_json(problem: NamedOperator) -> Json:
    named = {"op": problem.op, "shape": list(problem.extents), "a": problem.dtype.name}
    return {**named, **problem.options.to_json()}


def _operator_title(problem: NamedOperator, chip: str) -> str:
    shape = " x ".join(map(str, problem.extents))
    options = "".join(f", {text}" for text in problem.options.texts)
    return f"{problem.op} of {shape} {problem.dtype}{options} on {chip}: {problem.text}"


@dataclass(frozen=True, slots=True)
class TermRow:
    """An operator or a collective of a step: its time, or in `error` why it has none.

    `extents` are those of `time --op`; a collective has its bytes and cards, and no interval, since
    its rates are not measured. `bound` is the pipe, or the links, that hold its time.
    """

    term: str
    name: str
    layers: str
    launches: int
    op: str
    extents: tuple[int, ...]
    us: float | None
    error: str | None = None
    assumed: tuple[str, ...] = ()
    interval: Interval | None = None
    bound: str | None = None

    @property
    def step_us(self) -> float:
        """The time of all launches of a step; 0 without a time."""
        return (self.us or 0.0) * self.launches

    def to_json(self) -> Json:
        """Return the row."""
        return {
            "term": self.term,
            "name": self.name,
            "of": self.layers,
            "launches": self.launches,
            "op": self.op,
            "extents": list(self.extents),
            "us": self.us,
            "step_us": None if self.us is None else self.step_us,
            "interval": None if self.interval is None else self.interval.to_json(),
            "limited_by": self.bound,
            "error": self.error,
        }

    @property
    def cells(self) -> Sequence[str]:
        """The row of a table of terms."""
        counts = " x ".join(map(str, self.extents))
        if self.term == COLLECTIVES:
            counts = "{:,} B on {} cards".format(*self.extents)
        times = ("-", "-") if self.us is None else (duration(self.us), duration(self.step_us))
        return (self.term, f"{self.name}, {self.layers}", self.op, counts or "-", *times)
