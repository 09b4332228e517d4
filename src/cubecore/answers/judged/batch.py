"""The answer of `judge --batch`: submissions by outcome, and what took longest."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from cubecore.presented import Presented
from cubecore.presented.text import table
from cubecore.units import plural

if TYPE_CHECKING:
    from cubecore.aliases import Json
    from cubecore.presented import Figures

_MEANINGS = {
    "right": "a case is right, and none is wrong or refused",
    "wrong": "a wrong or refused case, or does not compile",
    "stopped": "a limit of time ended it, or a shape is too large: no verdict",
    "request": "does not fit its task, or cannot be read",
    "fault": "cubecore's own fault: judged again next time",
}
_SLOW_SHARE = 10
"""The slowest are one in so many."""


@dataclass(frozen=True, slots=True)
class JudgedRequest:
    """A submission of a batch: its outcome, the first reason, its CPU seconds, the longest step.

    Its verdict stays in the store: those of a batch are more than memory should hold.
    """

    submission: str
    task: str
    chip: str
    outcome: str
    reason: str
    cpu_s: float
    longest: str

    def to_row(self) -> Json:
        """Return the submission as a row."""
        return {
            "submission": self.submission,
            "task": self.task,
            "chip": self.chip,
            "outcome": self.outcome,
            "cpu_s": self.cpu_s,
            "longest": self.longest,
            "reason": self.reason,
        }


_WHOLE = {"cpu", "wall"}


def summary_of(verdict: Json) -> tuple[str, str, float, str]:
    """Return the outcome, the reason, the CPU seconds and the longest step of a verdict."""
    seconds = verdict.get("seconds") or {}
    steps = {name: length for name, length in seconds.items() if name not in _WHOLE}
    name = max(steps, key=lambda each: steps[each], default="")
    longest = f"{name} {steps[name]:.1f} s" if name else ""
    return verdict["outcome"], verdict["reason"], float(seconds.get("cpu", 0.0)), longest


@dataclass(frozen=True, slots=True)
class JudgedBatch(Presented):
    """A batch of submissions.

    Attributes
    ----------
    requests : tuple of JudgedRequest
        Every submission, in the order of the request.
    judged : int
        How many were judged now; the verdicts of the others were in the store.
    wall_s : float
        Seconds of this run.
    store : str
        The file with the verdicts.
    """

    requests: tuple[JudgedRequest, ...]
    judged: int
    wall_s: float
    store: str

    @property
    def chips(self) -> list[str]:
        """Full SoC names of the chips that were asked for, each once."""
        return list(dict.fromkeys(each.chip for each in self.requests))

    @property
    def counts(self) -> dict[str, int]:
        """The submissions by outcome."""
        counts = Counter(each.outcome for each in self.requests)
        return {name: counts[name] for name in _MEANINGS if name in counts}

    @property
    def slowest(self) -> list[JudgedRequest]:
        """The tenth that took the most CPU time, the slowest first."""
        by_time = sorted(self.requests, key=lambda each: -each.cpu_s)
        return by_time[: max(1, len(by_time) // _SLOW_SHARE)]

    def to_json(self) -> Json:
        """Return the counts, CPU seconds, and a row for each submission."""
        return {
            "schema": "cubecore.judge-batch/1",
            "counts": self.counts,
            "judged": self.judged,
            "wall_s": self.wall_s,
            "cpu_s": self._cpu,
            "store": self.store,
            "submissions": self.to_rows(),
        }

    def to_rows(self) -> list[Json]:
        """Return a row for each submission."""
        return [each.to_row() for each in self.requests]

    @property
    def _cpu(self) -> Json:
        times = sorted(each.cpu_s for each in self.requests)
        late = times[min(len(times) - 1, 95 * len(times) // 100)]
        return {"median": statistics.median(times), "p95": late, "most": times[-1]}

    @property
    def headline(self) -> str:
        """The counts in a line."""
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        return f"{plural(len(self.requests), 'submission')}: {counts}"

    @property
    def speed(self) -> str:
        """Submissions judged now, and their rate."""
        reused = plural(len(self.requests) - self.judged, "verdict")
        if not self.judged:
            return f"nothing new to judge; {reused} reused"
        rate = 60 * self.judged / self.wall_s
        text = f"{self.judged:,} judged in {self.wall_s:.1f} s, {rate:.1f} a minute"
        return text if self.judged == len(self.requests) else f"{text}; {reused} reused"

    @property
    def folder(self) -> str:
        """The folder that all submissions lie below; empty if it would shorten no name."""
        parents = [PurePath(each.submission).parent for each in self.requests]
        if len(parents) < 2:
            return ""
        folders = (parents[0], *parents[0].parents)
        shared = next(
            (f for f in folders if all(each.is_relative_to(f) for each in parents)), PurePath()
        )
        return str(shared) if len(shared.parts) > 1 else ""

    @property
    def names(self) -> dict[str, str]:
        """The path of each submission from that folder, by its whole path."""
        folder, paths = self.folder, (PurePath(each.submission) for each in self.requests)
        names = (str(path.relative_to(folder) if folder else path) for path in paths)
        return dict(zip((each.submission for each in self.requests), names, strict=True))

    @property
    def text(self) -> str:
        """The counts, every submission that is not right, and the slowest."""
        cpu, names = self._cpu, self.names
        lines = [self.headline, self.speed]
        lines += [f"Submissions below {self.folder}"] if self.folder else []
        lines.append(f"CPU: median {cpu['median']:.1f} s, 95th percentile {cpu['p95']:.1f} s")
        others = [each for each in self.requests if each.outcome != "right"]
        if others:
            rows = [(names[each.submission], each.outcome, each.reason) for each in others]
            lines += ["", "Not right", *table(rows)]
        lines += ["", "Slowest"]
        lines += table(
            (names[each.submission], f"{each.cpu_s:.1f} s", each.longest) for each in self.slowest
        )
        return "\n".join(lines) + "\n"

    def _figures(self) -> Figures:
        figures = [(name, f"{count:,}") for name, count in self.counts.items()]
        return "cubecore judge --batch", figures

    def _page(self) -> str:
        return self.page()

    def page(self) -> str:
        """Return the page: the counts, every submission, and the slowest."""
        from cubecore.reports.html.templates import rendered

        return rendered(
            "verdicts.html",
            title="cubecore judge --batch",
            styles=("validation.css",),
            headline=self.headline,
            speed=self.speed,
            meanings=[(name, count, _MEANINGS[name]) for name, count in self.counts.items()],
            requests=self.requests,
            slowest=self.slowest,
            folder=self.folder,
            names=self.names,
        )
