"""Stores read back: two models compared, and all plans as CSV."""

import csv
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from cubecore.answers.store import AnswerPair, ModelComparison, StoredPlan
from cubecore.errors import refuse
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.workflows.sweep.store import Store

if TYPE_CHECKING:
    from cubecore.aliases import JsonMapping

_COLUMNS = ("us", "cycles", "lower_bound_us", "limited_by", "rule", "message")


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
