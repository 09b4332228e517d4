"""The answers of `store`: plans that were kept, two models compared, what was exported."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cubecore.presented.text import number, table
from cubecore.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cubecore.aliases import Json, JsonMapping
    from cubecore.tiling.model.tcubetiling import TCubeTiling

SHOWN_PAIRS = 5


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """One answer of a store: a plan, or `rule` and `message` of why there is none.

    `key` stands for the question, whatever the model.
    """

    model: str
    key: str
    problem: JsonMapping
    settings: Mapping[str, str]
    us: float | None
    cycles: int | None
    lower_bound_us: float | None
    limited_by: str | None
    rule: str | None
    message: str | None
    tiling: TCubeTiling | None

    def to_json(self) -> Json:
        """Return the parts."""
        return {
            "model": self.model,
            "problem": dict(self.problem),
            "settings": dict(self.settings),
            "us": self.us,
            "cycles": self.cycles,
            "lower_bound_us": self.lower_bound_us,
            "limited_by": self.limited_by,
            "rule": self.rule,
            "message": self.message,
            "tiling": None if self.tiling is None else self.tiling.to_json(),
        }


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
        text += f"\n{_plans_text(self.plans)}" if self.plans else ""
        shown = f"The first {plural(len(self.plans), 'plan')}; --limit shows more\n"
        return text + shown * (self.more and bool(self.plans))

    def to_rows(self) -> list[Json]:
        """Return a row for each plan."""
        rows = []
        for plan in self.to_json()["plans"]:
            problem, tiling = plan.pop("problem"), plan.pop("tiling") or {}
            rows.append({**plan, **problem, **tiling})
        return rows


def _plans_text(plans: Iterable[StoredPlan]) -> str:
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


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """One question, as two models answered it."""

    old: StoredPlan
    new: StoredPlan

    @property
    def ratio(self) -> float | None:
        """The new predicted cycles over the old; None unless both have a plan."""
        if self.old.cycles is None or self.new.cycles is None:
            return None
        return self.new.cycles / self.old.cycles

    def to_json(self) -> Json:
        """Return the problem and both answers in short."""
        sides = {
            name: {"us": side.us, "cycles": side.cycles, "message": side.message}
            for name, side in (("old", self.old), ("new", self.new))
        }
        return {"problem": dict(self.old.problem), **sides, "ratio": self.ratio}


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Two models on the questions that both answered.

    `pairs` are those with a plan from both, the largest ratio of new to old first; `lost` have a
    plan from the old model only, `gained` from the new only. `same_tiling` counts pairs whose
    tilings are equal. `only_old` and `only_new` count questions that one model answered.
    """

    old: str
    new: str
    pairs: tuple[AnswerPair, ...]
    lost: tuple[AnswerPair, ...]
    gained: tuple[AnswerPair, ...]
    only_old: int
    only_new: int

    @property
    def same_tiling(self) -> int:
        """Return the number of tilings that did not change."""
        return sum(pair.old.tiling == pair.new.tiling for pair in self.pairs)

    @property
    def mean_ratio(self) -> float | None:
        """The geometric mean of new over old predicted cycles; None without a pair."""
        if not self.pairs:
            return None
        logs = [math.log(pair.ratio) for pair in self.pairs if pair.ratio]
        return math.exp(sum(logs) / len(logs))

    def to_json(self) -> Json:
        """Return the counts, the mean and every pair."""
        return {
            "old": self.old,
            "new": self.new,
            "mean_ratio": self.mean_ratio,
            "same_tiling": self.same_tiling,
            "only_old": self.only_old,
            "only_new": self.only_new,
            "pairs": [pair.to_json() for pair in self.pairs],
            "lost": [pair.to_json() for pair in self.lost],
            "gained": [pair.to_json() for pair in self.gained],
        }

    @property
    def text(self) -> str:
        """The counts, and the pairs that changed the most."""
        lines = [f"{self.old} to {self.new}: {plural(len(self.pairs), 'plan')} of both"]
        if self.mean_ratio is not None:
            lines.append(f"  predicted time {self.mean_ratio:.4f} times on average (geometric)")
            lines.append(f"  {self.same_tiling:,} with the same tiling")
        for count, what in (
            (len(self.lost), "lost their plan"),
            (len(self.gained), "gained one"),
            (self.only_old, f"answered by {self.old} only"),
            (self.only_new, f"answered by {self.new} only"),
        ):
            if count:
                lines.append(f"  {count:,} {what}")
        slower = [pair for pair in self.pairs if (pair.ratio or 0) > 1][:SHOWN_PAIRS]
        faster = [pair for pair in reversed(self.pairs) if (pair.ratio or 0) < 1][:SHOWN_PAIRS]
        for heading, pairs in (("Slower", slower), ("Faster", faster)):
            if pairs:
                lines += ["", heading, *table(_pair_row(pair) for pair in pairs)]
        return "\n".join(lines) + "\n"

    def to_rows(self) -> list[Json]:
        """Return a row for each pair."""
        return [
            {**pair["problem"], "old_us": pair["old"]["us"], "new_us": pair["new"]["us"]}
            | {"ratio": pair["ratio"]}
            for pair in self.to_json()["pairs"]
        ]


def _pair_row(pair: AnswerPair) -> tuple[Any, ...]:
    p = pair.old.problem
    shape = f"{p['m']} x {p['n']} x {p['k']} {p['a']} on {p['chip']}"
    return (shape, number(pair.old.us), "->", number(pair.new.us), f"{pair.ratio:.4f} times")


@dataclass(frozen=True, slots=True)
class Exported:
    """The number of exported plans, and their file."""

    plans: int
    path: str

    def to_json(self) -> Json:
        """Return the two."""
        return {"plans": self.plans, "path": self.path}

    def to_rows(self) -> list[Json]:
        """Return one row."""
        return [self.to_json()]

    @property
    def text(self) -> str:
        """One line."""
        return f"{plural(self.plans, 'plan')} in {self.path}\n"
