"""Stores read back: two models compared, and all plans as CSV."""

import csv
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from cubecore.aliases import Json, JsonMapping
from cubecore.errors import refuse
from cubecore.lazy_dataclass import dataclass
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.workflows.sweep.store import Store
from cubecore.workflows.sweep.store_rows import StoredPlan

_COLUMNS = ("us", "cycles", "lower_bound_us", "limited_by", "rule", "message")


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


def compare_models(
    store: Store, old: str | None = None, new: str | None = None, **chosen: Any
) -> ModelComparison:
    """Compare two models of a store: by default the two that were the last to begin.

    `chosen` leaves out plans as for `Store.plans`.

    Raises
    ------
    RequestError
        If the store does not have a model, or fewer than two are named.
    """
    models = list(store.models())
    if (old is None or new is None) and len(models) < 2:
        raise refuse("store", "hold answers of two models to compare", len(models))
    before = store.require_model(models[-2] if old is None else old)
    after = store.require_model(models[-1] if new is None else new)
    answers = {plan.key: plan for plan in store.plans(before, **chosen)}
    both, only_new = [], 0
    for plan in store.plans(after, **chosen):
        earlier = answers.pop(plan.key, None)
        if earlier is None:
            only_new += 1
        else:
            both.append(AnswerPair(earlier, plan))
    planned = [pair for pair in both if pair.ratio is not None]
    return ModelComparison(
        before,
        after,
        tuple(sorted(planned, key=lambda pair: -(pair.ratio or 0))),
        tuple(p for p in both if p.old.cycles is not None and p.new.cycles is None),
        tuple(p for p in both if p.old.cycles is None and p.new.cycles is not None),
        len(answers),
        only_new,
    )


def write_csv(store: Store, plans: Iterable[StoredPlan], file: TextIO) -> int:
    """Write plans of `store` as CSV with a line of heads; return how many.

    Columns: the model, the problem's keys, the settings, the prediction, then TCubeTiling's fields,
    empty where there is no plan. Objects and flags are JSON.
    """
    keys = store.problem_keys()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["model", *keys, "settings", *_COLUMNS, *FIELDS])
    count = 0
    for plan in plans:
        count += 1
        tiling: JsonMapping = {} if plan.tiling is None else plan.tiling.to_json()
        cells = [plan.model, *(plan.problem.get(key) for key in keys), plan.settings]
        cells += [getattr(plan, name) for name in _COLUMNS]
        cells += [tiling.get(name) for name in FIELDS]
        writer.writerow([_cell(cell) for cell in cells])
    return count


def _cell(value: object) -> Any:
    return json.dumps(value) if isinstance(value, bool | Mapping) else value
