"""Sweeps and stores as text and JSON."""

from __future__ import annotations

from dataclasses import field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cubecore.lazy_dataclass import dataclass
from cubecore.reports.text.answers import number, table
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cubecore.aliases import Json
    from cubecore.workflows.sweep.plan_many import QueryAnswer
    from cubecore.workflows.sweep.store_compare import AnswerPair, ModelComparison
    from cubecore.workflows.sweep.store_rows import StoredPlan

SHOWN_BROKEN = 20
"""Broken lines that are named on standard error; the answers name all."""
SHOWN_PAIRS = 5


@dataclass(slots=True)
class SweepTally:
    """The count of a sweep's answers as they come.

    `resumed` were there from an earlier run, `planned_before` of them plans.
    """

    queries: int
    resumed: int = 0
    planned_before: int = 0
    planned: int = 0
    without_tiling: int = 0
    broken: int = 0
    from_store: int = 0
    complaints: list[str] = field(default_factory=list)
    begin: float = field(default_factory=perf_counter)

    def add(self, answer: QueryAnswer) -> None:
        """Count an answer."""
        self.planned += answer.planned
        self.from_store += answer.stored
        if answer.error is not None:
            self.broken += 1
            if self.broken <= SHOWN_BROKEN:
                lines = str(answer.error).splitlines()
                self.complaints += [f"{answer.line}: {line}" for line in lines]
        elif not answer.planned:
            self.without_tiling += 1

    @property
    def done(self) -> int:
        """Return the number of queries that have an answer."""
        return self.resumed + self.planned + self.without_tiling + self.broken

    @property
    def every_one_planned(self) -> bool:
        """True if every query has a plan."""
        return self.planned + self.planned_before == self.queries

    def to_json(self) -> Json:
        """Return the counts and the seconds since the start."""
        return {
            "queries": self.queries,
            "planned": self.planned,
            "without_tiling": self.without_tiling,
            "broken": self.broken,
            "from_store": self.from_store,
            "resumed": self.resumed,
            "wall_s": perf_counter() - self.begin,
        }

    @property
    def text(self) -> str:
        """The counts in a few lines."""
        wall = perf_counter() - self.begin
        lines = [f"{self.planned:,} of {self.queries:,} planned in {wall:.1f} s"]
        for count, what in (
            (self.resumed, "were there from an earlier run"),
            (self.from_store, "were in the store"),
            (self.without_tiling, "have no plan"),
            (self.broken, "make no sense"),
        ):
            if count:
                lines.append(f"  {count:,} {what}")
        return "\n".join(lines) + "\n"

    def complaint_lines(self, path: str) -> Iterator[str]:
        """Yield a line for each of the first broken queries, and how many more there are."""
        yield from (f"{path}:{text}" for text in self.complaints)
        if self.broken > SHOWN_BROKEN:
            more = plural(self.broken - SHOWN_BROKEN, "more line")
            yield f"{path}: {more} like these; the answers name them"


@dataclass(frozen=True, slots=True)
class StoreView:
    """The view of a store: its models with their counts, and some plans.

    `more` is True if the store has more plans of those that were asked for.
    """

    models: Mapping[str, int]
    plans: tuple[StoredPlan, ...]
    more: bool = False

    def to_json(self) -> Json:
        """Return both."""
        counted = [{"model": name, "answers": count} for name, count in self.models.items()]
        return {"models": counted, "plans": [plan.to_json() for plan in self.plans]}

    @property
    def text(self) -> str:
        """The models, then the plans, a line each."""
        rows = [("model", "answers"), *((name, f"{n:,}") for name, n in self.models.items())]
        text = "\n".join(table(rows, "")) + "\n"
        text += f"\n{plans_text(self.plans)}" if self.plans else ""
        shown = f"The first {plural(len(self.plans), 'plan')}; --limit shows more\n"
        return text + shown * (self.more and bool(self.plans))


@dataclass(frozen=True, slots=True)
class Exported:
    """The number of exported plans, and their file."""

    plans: int
    path: str

    def to_json(self) -> Json:
        """Return the two."""
        return {"plans": self.plans, "path": self.path}

    @property
    def text(self) -> str:
        """One line."""
        return f"{plural(self.plans, 'plan')} in {self.path}\n"


def plans_text(plans: Iterable[StoredPlan]) -> str:
    """Return stored plans, a line each."""
    heads = ("model", "chip", "m", "n", "k", "a", "b", "us", "cores", "base M x N x K", "by")
    rows: list[tuple[Any, ...]] = [heads]
    for plan in plans:
        p, t = plan.problem, plan.tiling
        shape = (plan.model, p["chip"], p["m"], p["n"], p["k"], p["a"], p["b"])
        if t is None:
            rows.append((*shape, "-", "-", "-", plan.rule or "refused"))
        else:
            base = f"{t.baseM} x {t.baseN} x {t.baseK}"
            rows.append((*shape, number(plan.us), t.usedCoreNum, base, plan.limited_by))
    return "\n".join(table(rows, "")) + "\n"


def comparison_text(comparison: ModelComparison) -> str:
    """Return two models side by side."""
    c = comparison
    lines = [f"{c.old} to {c.new}: {plural(len(c.pairs), 'plan')} of both"]
    if c.mean_ratio is not None:
        lines.append(f"  predicted time {c.mean_ratio:.4f} times on average (geometric)")
        lines.append(f"  {c.same_tiling:,} with the same tiling")
    for count, what in (
        (len(c.lost), "lost their plan"),
        (len(c.gained), "gained one"),
        (c.only_old, f"answered by {c.old} only"),
        (c.only_new, f"answered by {c.new} only"),
    ):
        if count:
            lines.append(f"  {count:,} {what}")
    slower = [pair for pair in c.pairs if (pair.ratio or 0) > 1][:SHOWN_PAIRS]
    faster = [pair for pair in reversed(c.pairs) if (pair.ratio or 0) < 1][:SHOWN_PAIRS]
    for heading, pairs in (("Slower", slower), ("Faster", faster)):
        if pairs:
            lines += ["", heading, *table(_pair_row(pair) for pair in pairs)]
    return "\n".join(lines) + "\n"


def _pair_row(pair: AnswerPair) -> tuple[Any, ...]:
    p = pair.old.problem
    shape = f"{p['m']} x {p['n']} x {p['k']} {p['a']} on {p['chip']}"
    return (shape, number(pair.old.us), "->", number(pair.new.us), f"{pair.ratio:.4f} times")
