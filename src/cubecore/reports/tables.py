"""Tables of results as rows, and as CSV: what ``--csv`` prints and `to_frame` holds."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from cubecore.aliases import Json, JsonMapping
from cubecore.tiling.model.field_limits import PLANNED_FIELDS


def rows(result: object) -> list[Json]:
    """Return the rows of a result's table."""
    table: list[Json] = entry_of(result, _ROWS)(result)
    return table


def csv_text(result: object) -> str:
    """Return the rows of a result as CSV: a header with every column, then a line each."""
    table = rows(result)
    columns = list(dict.fromkeys(name for row in table for name in row))
    return "".join(csv_lines(columns, table))


def csv_lines(columns: Sequence[str], table: Iterable[JsonMapping]) -> Iterator[str]:
    """Yield the header and the rows as lines of CSV."""
    yield _line(columns)
    for row in table:
        yield _line([_cell(row.get(name)) for name in columns])


def _line(cells: Sequence[object]) -> str:
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _cell(value: object) -> object:
    """Return a value as a cell: nothing for None, true or false, JSON of what has parts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict):
        return json.dumps(value)
    return "" if value is None else value


def entry_of(result: object, table: Mapping[str, Any]) -> Any:
    """Return a table's entry for a result's class or the nearest base that has one."""
    return next(table[base.__name__] for base in type(result).__mro__ if base.__name__ in table)


def _tilings(plan: Any) -> list[Json]:
    ranked = [(plan.tiling, plan.predicted), *((r.tiling, r.predicted) for r in plan.alternatives)]
    return [
        {"us": p.us, "cycles": p.cycles, "limited_by": p.limited_by, **tiling.to_json()}
        for tiling, p in ranked
    ]


def _changes(tuned: Any) -> list[Json]:
    return [
        {
            "kind": change.kind,
            "change": change.what,
            "us": change.us,
            "cycles": change.cycles,
            "gain": change.gain,
            "limited_by": change.limited_by,
            **change.tiling.to_json(),
        }
        for change in tuned.as_changes.tried
    ]


def _sides(comparison: Any) -> list[Json]:
    return [
        {"legal": side.findings.legal, "us": side.timed and side.timed.timeline.us}
        | side.tiling.to_json()
        for side in (comparison.first, comparison.second)
    ]


def _products(answer: Any) -> list[Json]:
    rows = []
    for row in answer.to_json()["products"]:
        row.pop("problem")
        tiling, variants = row.pop("tiling") or {}, " ".join(row.pop("variants"))
        rows.append({**row, "variants": variants, **tiling})
    return rows


def _facts(sheet: Any) -> list[Json]:
    return [{"field": name, **fact} for name, fact in sheet.to_json()["facts"].items()]


def _chips(listed: Any) -> list[Json]:
    rows = []
    for sheet in listed.sheets:
        told = sheet.to_json()
        facts = {name: fact["value"] for name, fact in told["facts"].items()}
        rows.append({"name": told["name"], "arch": told["arch"], **facts})
    return rows


def _stored(view: Any) -> list[Json]:
    rows = []
    for plan in view.to_json()["plans"]:
        problem, tiling = plan.pop("problem"), plan.pop("tiling") or {}
        rows.append({**plan, **problem, **tiling})
    return rows


def _pairs(comparison: Any) -> list[Json]:
    return [
        {**pair["problem"], "old_us": pair["old"]["us"], "new_us": pair["new"]["us"]}
        | {"ratio": pair["ratio"]}
        for pair in comparison.to_json()["pairs"]
    ]


def _cases(validation: Any) -> list[Json]:
    return [
        {
            "point": case.point.id,
            "chip": case.chip,
            "group": case.group,
            "measured_us": case.wall and case.wall.measured_us,
            "predicted_us": case.wall and case.wall.predicted_us,
            "error": case.wall and case.wall.error,
            "skipped": case.skipped,
            "source": case.point.source,
        }
        for case in validation.cases
    ]


def _launches(script: Any) -> list[Json]:
    rows = []
    for launch in script.launches:
        line = launch.timeline
        figures = {"us": line.us, "cycles": line.cycles, "limited_by": line.limited_by}
        pipes = {f"{pipe}_cycles": busy for pipe, busy in line.pipes.items()}
        run = launch.run
        row = {"kernel": run.kernel, "blocks": run.blocks, "chip": run.chip.name}
        rows.append({**row, **figures, **pipes, "findings": len(run.findings)})
    return rows


_PROBLEM = ("chip", "m", "n", "k", "batch", "a", "b", "c", "trans_a", "trans_b", "format_b")
QUERY_COLUMNS = (
    *("line", "label", *_PROBLEM, "us", "cycles", "lower_bound_us", "limited_by"),
    *(*PLANNED_FIELDS, "error"),
)
"""Columns of the table of answers to queries."""


def query_row(line: int, answer: JsonMapping) -> Json:
    """Return the row of an answer to a query: the question, the time and the tiling's fields."""
    predicted = answer.get("predicted") or {}
    return {
        **(answer.get("problem") or {}),
        "line": line,
        "label": answer.get("label"),
        **{name: predicted.get(name) for name in ("us", "cycles", "limited_by")},
        "lower_bound_us": answer.get("lower_bound_us"),
        **(answer.get("tiling") or {}),
        "error": (answer.get("error") or {}).get("message"),
    }


def _pipes(timed: Any) -> list[Json]:
    line = timed.timeline
    return [
        {"pipe": pipe, "cycles": cycles, "share": cycles / line.cycles}
        for pipe, cycles in line.pipes.items()
    ]


_ROWS: dict[str, Callable[[Any], list[Json]]] = {
    "ChipList": _chips,
    "ChipSheet": _facts,
    "Comparison": _sides,
    "Findings": lambda result: [finding.to_json() for finding in result.findings],
    "KernelRun": lambda run: [finding.to_json() for finding in run.findings],
    "ModelComparison": _pairs,
    "ModelStep": _products,
    "Run": lambda run: [finding.to_json() for finding in run.findings],
    "ScriptRun": lambda run: [finding.to_json() for finding in run.findings],
    "ScriptTime": _launches,
    "Series": lambda series: [
        {**point["values"], **{k: v for k, v in point.items() if k not in {"values", "tiling"}}}
        for point in series.to_json()["points"]
    ],
    "StoreView": _stored,
    "Timed": _pipes,
    "TimedLaunch": _pipes,
    "TilingPlan": _tilings,
    "Tuned": _changes,
    "Validation": _cases,
}
