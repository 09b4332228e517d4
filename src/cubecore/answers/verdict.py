"""The answer of `judge`: a submission's verdict, with all its looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cubecore.presented import Presented
from cubecore.presented.text import duration, table
from cubecore.units import plural
from cubecore.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cubecore.aliases import Json
    from cubecore.presented import Figures

SCHEMA = "cubecore.judge/1"
DONE, STOPPED = "done", "stopped"
REQUEST, FAULT = "request", "fault"
"""Other ways to fail: by a request that does not fit, or by cubecore's own fault."""
_SHOWN_FINDINGS = 10
_COUNTED = ("right", "wrong", "refused", "late", "not run", "too large", "uncomparable")


@dataclass(frozen=True, slots=True)
class JudgedError:
    """An error of a submission: the stage that it ended in, the sentence and its line."""

    stage: str
    message: str
    file: str | None = None
    line: int | None = None
    detail: str = ""

    def to_json(self) -> Json:
        """Return the error as JSON."""
        record: Json = {"stage": self.stage, "file": self.file, "line": self.line}
        message, _, fix = self.message.partition("; ")
        return {**record, "message": message, "fix": fix or None, "detail": self.detail or None}


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case: its arrays, its outcome, and how far its results are from the expected ones.

    `compared` and `written_at` are as the comparison and the trace left them: the first wrong
    element, the tolerance, and the line that wrote it. `sizes` are empty for the task's own sizes;
    else they tell the variant, the numbers of the task that are smaller, each as it is and as it
    was run, and the costs.
    """

    name: str
    outcome: str
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    compared: Json = field(default_factory=dict)
    written_at: Json = field(default_factory=dict)
    reason: str = ""
    instructions: int = 0
    seconds: float = 0.0
    sizes: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        """Return the case as JSON."""
        compared = self.compared
        return {
            "name": self.name,
            "shapes": [list(shape) for shape in self.shapes],
            "dtypes": list(self.dtypes),
            "sizes": self.sizes or None,
            "outcome": self.outcome,
            "max_abs": compared.get("max_abs"),
            "max_rel": compared.get("max_rel"),
            "wrong": compared.get("wrong"),
            "output": compared.get("output"),
            "where": compared.get("where"),
            "value": compared.get("value"),
            "expected": compared.get("expected"),
            "tolerance": compared.get("tolerance"),
            "written_at": self.written_at or None,
            "reason": self.reason or None,
            "instructions": self.instructions,
            "seconds": self.seconds,
        }

    @property
    def line(self) -> str:
        """The case in one line: its outcome, and what is wrong."""
        return f"{self.name}: {self.outcome}" + (f": {self.why}" if self.why else "")

    @property
    def why(self) -> str:
        """The reason of the outcome, or the first wrong element and who wrote it."""
        compared = self.compared
        if self.reason or not (compared.get("where") or compared.get("wrong")):
            return self.reason
        index = f"[{', '.join(map(str, compared['where']))}]" if compared["where"] else ""
        at = self.written_at
        by = f", written at {at['file']}:{at['line']} ({at['function']})" if at else ""
        value, expected, error = (_short(compared[n]) for n in ("value", "expected", "max_abs"))
        return (
            f"output {compared['output']}{index} = {value}, expected {expected} "
            f"({compared['wrong']:,} wrong, largest error {error}){by}"
        )


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def deciding(cases: Sequence[JudgedCase]) -> list[JudgedCase]:
    """Return the cases that decide a verdict: of reduced sizes one alone.

    The full shape decides, then the reduced one with its remainders. Odd sizes, which the task does
    not ask for, decide where that one is late.
    """
    by_variant = {case.sizes.get("variant"): case for case in cases if case.sizes}
    for name in ("full", "aligned", "odd tail"):
        if name in by_variant and by_variant[name].outcome in {"right", "wrong", "refused"}:
            return [by_variant[name]]
    return list(cases)


@dataclass(frozen=True, slots=True)
class JudgedFinding:
    """A finding of the checks, the first time that it was made, and in how many launches."""

    id: str
    certainty: str
    file: str
    line: int
    function: str
    message: str
    fix: str
    core: str
    count: int
    case: str

    def to_json(self) -> Json:
        """Return the finding as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def text(self) -> str:
        """The line, the sentence and the fix."""
        where = f"{self.file}:{self.line} ({self.function})"
        return f"{self.id} ({self.certainty}) {where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Verdict(Presented):
    """A submission's verdict.

    Attributes
    ----------
    chip : str
        The chip that it ran on.
    submission : dict
        Its kind, the SHA-256 of its content, the names of its operators or kernels.
    task : dict
        The task's name, its kind, how many cases it had, and the policy of their sizes: full,
        reduced, or full with sampled blocks, with the costs of the full shape.
    stage : str
        host, kernel, binding, load, run or compare where it ended there; done; or stopped by a
        limit of time, which is no verdict.
    compiled : bool
        True if its host code and its kernels compile.
    correct : bool or None
        True if a case is right and none is wrong or refused; None without a verdict.
    errors : tuple of JudgedError
        The submission's errors.
    cases : tuple of JudgedCase
        The cases in their order.
    findings : tuple of JudgedFinding
        The findings of the checks, certain ones first. They do not make a right result wrong.
    time : dict
        The predicted time of the largest case that ran, or the reason why there is none. It is
        that of the full shape: ``at`` says if it was extrapolated, ``from`` of what.
    coverage : dict
        Bytes of outputs that kernels wrote, and that they should write.
    seconds : dict
        CPU seconds, and seconds by step.
    limits : dict
        The limits of the judgement.
    reproducible : str
        The command that judges again.
    cheating : tuple of dict
        Marks of cheating, certain ones first: the kind, the evidence, the case, and how often. They
        leave `correct` as it is.
    sandbox : str
        The box that held the submission: bwrap, own, or none where it ran with the user's rights.
    """

    chip: str
    submission: Json
    task: Json
    stage: str
    compiled: bool
    correct: bool | None
    errors: tuple[JudgedError, ...] = ()
    cases: tuple[JudgedCase, ...] = ()
    findings: tuple[JudgedFinding, ...] = ()
    time: Json = field(default_factory=dict)
    coverage: Json = field(default_factory=dict)
    seconds: Json = field(default_factory=dict)
    limits: Json = field(default_factory=dict)
    reproducible: str = ""
    cheating: tuple[Json, ...] = ()
    sandbox: str = "none"

    @property
    def outcome(self) -> str:
        """The verdict in one word: right, wrong, or stopped."""
        if self.correct is None:
            return STOPPED
        return "right" if self.correct else "wrong"

    def to_json(self) -> Json:
        """Return the verdict as JSON.

        Returns
        -------
        dict
            The schema's name, and the fields.
        """
        return {
            "schema": SCHEMA,
            "cubecore": __version__,
            "chip": self.chip,
            "submission": self.submission,
            "task": self.task,
            "compiled": self.compiled,
            "stage": self.stage,
            "errors": [each.to_json() for each in self.errors],
            "correct": self.correct,
            "cases": [each.to_json() for each in self.cases],
            "findings": [each.to_json() for each in self.findings],
            "time": self.time or None,
            "cheating": list(self.cheating),
            "coverage": self.coverage,
            "seconds": self.seconds,
            "sandbox": self.sandbox,
            "limits": self.limits,
            "reproducible": self.reproducible,
        }

    def to_rows(self) -> list[Json]:
        """Return the cases as rows.

        Returns
        -------
        list of dict
            A row for each case.
        """
        return [
            {
                "case": case.name,
                "outcome": case.outcome,
                "max_abs": case.compared.get("max_abs"),
                "max_rel": case.compared.get("max_rel"),
                "instructions": case.instructions,
                "reason": case.why,
            }
            for case in self.cases
        ]

    @property
    def text(self) -> str:
        """The outcome, what is wrong, the cases, the findings, and the predicted time."""
        lines = [f"{self._subject}: {self.headline}"]
        lines += [f"  {error.stage}: {error.message}" for error in self.errors]
        messages = {error.message for error in self.errors}
        lines += [f"  {case.line}" for case in self.cases if case.why and case.why not in messages]
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        if counts:
            lines.append(f"Cases: {counts}")
        lines += [line for line in (self.sizes_line,) if line]
        if self.findings:
            lines += ["", "Findings, what to fix first on top"]
            for finding in self.findings[:_SHOWN_FINDINGS]:
                lines += [f"  {finding.text}", f"    fix: {finding.fix}"]
            more = len(self.findings) - _SHOWN_FINDINGS
            lines += [f"  {plural(more, 'more finding')} in --json"] if more > 0 else []
        if self.cheating:
            lines += ["", "Cheating", *(f"  {each}" for each in self._marks())]
        lines += [*self._time_lines(), f"CPU: {self.seconds.get('cpu', 0):.1f} s"]
        return "\n".join(lines) + "\n"

    @property
    def headline(self) -> str:
        """The outcome, with the stage that it was reached at, and the findings."""
        said = self.outcome
        if self.outcome not in {"right", self.stage}:
            said += f" at {self.stage}"
        certain = sum(finding.certainty == "certain" for finding in self.findings)
        others = sum(finding.certainty == "open" for finding in self.findings)
        cheats = [mark["id"] for mark in self.cheating if mark["certainty"] == "certain"]
        said += f", cheating ({', '.join(cheats)})" if cheats else ""
        if certain or others:
            parts = [plural(certain, "certain finding")] if certain else []
            parts += [f"{others} open"] if others else []
            said += f", {' and '.join(parts)}"
        return said

    @property
    def sizes_line(self) -> str:
        """The policy of sizes in a line; empty where the task's own were run alone."""
        reduced = [case.sizes for case in self.cases if case.sizes.get("numbers")]
        if not reduced:
            return ""
        numbers = ", ".join(f"{n} {a} -> {b}" for n, (a, b) in reduced[-1]["numbers"].items())
        return f"Sizes: {self.task['sizes']['policy']}; {reduced[-1]['variant']}: {numbers}"

    @property
    def counts(self) -> dict[str, int]:
        """The cases by outcome."""
        outcomes = [case.outcome for case in self.cases]
        return {name: outcomes.count(name) for name in _COUNTED if name in outcomes}

    @property
    def _subject(self) -> str:
        names = ", ".join(self.submission.get("operators", ())) or self.submission["kind"]
        return f"{names} for {self.task['name']} on {self.chip}"

    def _marks(self) -> list[str]:
        cases = ((each, f" ({each['case']})" if each["case"] else "") for each in self.cheating)
        return [f"{m['id']} ({m['certainty']}): {m['evidence']}{case}" for m, case in cases]

    def _time_lines(self) -> list[str]:
        if not self.time:
            return []
        if "us" not in self.time:
            return [f"Time: none: {self.time['reason']}"]
        low, high = self.time["low_us"], self.time["high_us"]
        interval = "" if low is None else f" ({duration(low)} to {duration(high)})"
        bound = f", limited by {self.time['limited_by']}"
        rows = [
            (f"  {each['kernel']}[{each['blocks']}]", duration(each["us"]))
            for each in self.time["launches"]
        ]
        whole = f"Time: {duration(self.time['us'])}{interval}{bound}, of {self.time['case']}"
        if self.time.get("at") == "extrapolated":
            points = " and ".join(duration(each["us"]) for each in self.time["from"])
            names = " and ".join(each["variant"] for each in self.time["from"])
            whole = (
                f"Time: {duration(self.time['us'])}{interval}{bound}, of the full shape: "
                f"extrapolated from {points} ({names})"
            )
            if "why" in self.time:
                whole += f"; not from its own tiling: {self.time['why']}"
        return ["", whole, *(table(rows) if len(rows) > 1 else [])]

    def _figures(self) -> Figures:
        figures = [("verdict", self.headline)]
        figures += [(name, str(count)) for name, count in self.counts.items()]
        if "us" in self.time:
            figures.append(("predicted", duration(self.time["us"])))
        return self._subject, figures

    def _page(self) -> str:
        return self.page()

    def page(self) -> str:
        """Return the page: the outcome, the cases, the findings and the predicted time."""
        from cubecore.reports.html.templates import rendered

        return rendered(
            "verdict.html",
            title=f"cubecore judge: {self._subject}",
            styles=("validation.css",),
            subject=self._subject,
            headline=self.headline,
            errors=self.errors,
            cases=self.cases,
            findings=self.findings,
            marks=self._marks(),
            sizes=self.sizes_line,
            times=self._time_lines(),
            reproducible=self.reproducible,
        )
