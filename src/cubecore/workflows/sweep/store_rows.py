"""The rows of a store: an answer as a row, and back; a damaged row is no answer."""

import json
import zlib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from cubecore.answers.store import StoredPlan
from cubecore.chips import is_chip_file
from cubecore.errors import CubecoreError
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.workflows.sweep.answers import AnswerLine, SweepOptions, key_of

if TYPE_CHECKING:
    from cubecore.aliases import Json

PLAN_COLUMNS = (
    "models.model, key, problem, settings, us, cycles, lower_bound_us, limited_by, rule, message, "
    "tiling, alternatives"
)
"""The columns that `plan_of` makes a plan of."""
_NUMBERS = ("us", "lower_bound_us")
_TEXTS = ("model", "limited_by", "rule", "message")


def row_of(line: AnswerLine, options: SweepOptions) -> tuple[Any, ...]:
    """Return an answer's row but for the model."""
    record = json.loads(line.text)
    p, error, predicted = record["problem"], record.get("error", {}), record.get("predicted", {})
    tiling = TCubeTiling(**record["tiling"]).to_bytes() if "tiling" in record else None
    return (
        *(key_of(p, options), p["chip"], p["m"], p["n"], p["k"], json.dumps(p)),
        *(json.dumps(options.to_json()["settings"]), options.alternatives),
        *(predicted.get("us"), predicted.get("cycles"), record.get("lower_bound_us")),
        *(predicted.get("limited_by"), error.get("rule"), error.get("message")),
        *(tiling, zlib.compress(line.text.encode(), 1)),
    )


def plan_of(row: tuple[Any, ...]) -> StoredPlan | None:
    """Return the plan in the `PLAN_COLUMNS` of a row; None if the row is damaged."""
    *cells, alternatives = row
    values = dict(zip((f.name for f in fields(StoredPlan)), cells, strict=True))
    try:
        for name in ("problem", "settings"):
            values[name] = json.loads(values[name])
        # The key is a digest of the question: if the row's own problem and settings give another
        # one, some cell was changed.
        options = SweepOptions(values["settings"], alternatives)
        problem = values["problem"]  # of a chip's file only the text then is known
        if not is_chip_file(problem["chip"]) and key_of(problem, options) != values["key"]:
            return None
        if values["tiling"] is not None:
            values["tiling"] = TCubeTiling.from_bytes(values["tiling"])
        plan = StoredPlan(**values)
        return plan if _is_whole(plan) else None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, CubecoreError):
        return None


def _is_whole(plan: StoredPlan) -> bool:
    """True if what `key` does not stand for has the right kinds."""
    planned = plan.message is None
    numbers = all(isinstance(getattr(plan, name), float | int | None) for name in _NUMBERS)
    texts = [getattr(plan, name) for name in _TEXTS]
    figures = isinstance(plan.us, float | int), type(plan.cycles) is int, plan.tiling is not None
    return (
        numbers
        and all(isinstance(text, str | None) for text in texts)
        and all(not text or text.isprintable() or "\n" in text for text in texts)
        and figures == (planned,) * len(figures)
    )


def line_of(answer: Any, key: str, options: SweepOptions) -> AnswerLine | None:
    """Return the answer in a row's last cell; None if it is damaged or another question's."""
    try:
        text = zlib.decompress(answer).decode()
        record: Json = json.loads(text)
        if key_of(record["problem"], options) != key or "\n" in text:
            return None
        if "error" not in record:
            TCubeTiling.from_json(record["tiling"])
        return AnswerLine("error" not in record, text)
    except (zlib.error, KeyError, TypeError, ValueError, RecursionError, CubecoreError):
        return None
